"""Windows of long documents: coverage, scores, tokens, cached scores and cancellation."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers import create, get
from rankdash.core.rerankers.defaults import Workload
from rankdash.core.rerankers.neural import packaged
from rankdash.core.rerankers.neural.runtimes import one_by_one
from rankdash.core.rerankers.neural.tokenizer import Cut, RawTokenizer, Windows
from rankdash.core.runs.runner import Cancelled, rerank
from rankdash.core.runs.scoring import OptionalCache
from tests.rerankers.models import DOCUMENTS, QUERY, prepared, score

LONG = " ".join(["cat dog sofa card order item time shipping"] * 12)
NONE = np.zeros(0, dtype=np.int64)
WINDOWS = st.builds(
    Windows, st.integers(1, 30), st.integers(0, 40), st.sampled_from(["max", "mean"])
)
scores_of = st.lists(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), min_size=1, max_size=5)


def cut(length, first=0):
    return Cut(np.arange(first, first + length, dtype=np.int64), length)


@given(WINDOWS, st.integers(0, 120), st.integers(1, 40), st.integers(0, 5), st.integers(0, 5))
def test_windows_contain_every_token_and_the_prompt(windows, length, room, before, after):
    text = cut(before + length + after)
    prompt = text.ids[:before], text.ids[before + length :]
    parts = windows.parts(text, room, *prompt)
    assert all(len(part) <= room for part in parts)
    if room <= before + after:
        assert [part.tolist() for part in parts] == [text.ids[:room].tolist()]
        return
    assert set(np.concatenate(parts)) == set(text.ids) and text.unread(parts) == 0
    size = min(windows.size, room - before - after)
    assert {len(part) for part in parts} == {min(length, size) + before + after}
    for part in parts:
        np.testing.assert_array_equal(part[:before], prompt[0])
        np.testing.assert_array_equal(part[len(part) - after :], prompt[1])
    first = [int(part[before]) for part in parts if len(part) > before]
    assert first == sorted(set(first)), "windows follow each other"
    assert len(parts) == len(windows.starts(length, room - before - after))


@given(WINDOWS, st.integers(0, 30), st.integers(1, 40))
def test_a_document_of_one_window_is_read_as_by_truncation(windows, length, room):
    text = cut(min(length, windows.size, room))
    (one,) = windows.parts(text, room, NONE, NONE)
    (truncated,) = Windows().parts(text, room, NONE, NONE)
    np.testing.assert_array_equal(one, truncated)


@given(scores_of, st.randoms())
def test_scores_of_windows(scores, random):
    counts = list(map(len, scores))
    flat, best, mean = np.concatenate(scores), Windows(1), Windows(1, score="mean")
    expected = [max(each) for each in scores]
    np.testing.assert_array_equal(best.joined(flat, counts), expected)
    assert all(top >= each for top, one in zip(expected, scores, strict=True) for each in one)
    means = mean.joined(flat, counts)
    np.testing.assert_allclose(means, [np.mean(each) for each in scores], rtol=1e-9, atol=1e-6)
    for each in scores:
        random.shuffle(each)
    shuffled = np.concatenate(scores)
    np.testing.assert_array_equal(best.joined(shuffled, counts), expected)
    np.testing.assert_allclose(mean.joined(shuffled, counts), means, rtol=1e-9, atol=1e-6)
    single = np.array([each[0] for each in scores])
    for windows in (best, mean):
        np.testing.assert_array_equal(windows.joined(single, [1] * len(single)), single)
    assert len(best.joined(NONE.astype(float), [])) == 0


@pytest.fixture(params=["cross-encoder", "bi-encoder"])
def of_kind(request, cross_folder, bi_folder):
    """Return a function from settings to a prepared reranker, and its kind."""
    folder = cross_folder if request.param == "cross-encoder" else bi_folder
    return request.param, lambda **settings: prepared(request.param, folder, **settings)


@pytest.mark.model
@pytest.mark.parametrize("joined", ["max", "mean"])
def test_the_score_is_that_of_the_windows_as_documents(of_kind, joined):
    """Each word is a token, so that windows of tokens are windows of words."""
    kind, make = of_kind
    words = LONG.split()
    texts = [" ".join(words[start : start + 20]) for start in (*range(0, 76, 15), 76)]
    alone = score(make(), "card", texts)
    found = score(
        make(window=20, stride=15, window_score=joined), "card", [DOCUMENTS[0], LONG, texts[0]]
    )
    best = {"max": np.max, "mean": np.mean}[joined]
    expected = [*score(make(), "card", DOCUMENTS[:1]).scores, best(alone.scores), alone.scores[0]]
    np.testing.assert_allclose(found.scores, expected, atol=1e-5)
    # A bi-encoder reads the query once.
    read = alone.tokens.sum() - (0 if kind == "cross-encoder" else 3 * (len(texts) - 1))
    assert found.tokens[1] == read
    np.testing.assert_array_equal(found.full, found.tokens)
    truncated = score(make(), "card", [LONG])
    assert truncated.full[0] > truncated.tokens[0] < read


@pytest.mark.model
def test_short_documents_have_the_scores_of_truncation(of_kind):
    _, make = of_kind
    with one_by_one():
        plain, windowed = (score(make(**each), QUERY, DOCUMENTS) for each in ({}, {"window": 25}))
    np.testing.assert_array_equal(windowed.scores, plain.scores)
    np.testing.assert_array_equal(windowed.tokens, plain.tokens)
    np.testing.assert_array_equal(windowed.full, plain.full)


@pytest.mark.model
def test_fingerprints_differ_by_windows_and_stored_vectors_by_document(bi_folder, cross_folder):
    ways = [{}, {"stride": 7, "window_score": "mean"}]
    ways += [{"window": 9}, {"window": 9, "stride": 3}, {"window": 9, "window_score": "mean"}]
    for kind, folder in (("bi-encoder", bi_folder), ("cross-encoder", cross_folder)):
        prints = [prepared(kind, folder, **settings).fingerprint() for settings in ways]
        assert prints[0] == prints[1] and len(set(prints)) == len(ways) - 1
    texts = [LONG, "time", LONG + " within"]
    first, again = (
        score(prepared("bi-encoder", bi_folder, window=9), "dog", texts) for _ in range(2)
    )
    assert again.index_seconds == 0
    np.testing.assert_array_equal(again.scores, first.scores)
    np.testing.assert_array_equal(again.tokens, first.tokens)


@pytest.mark.model
def test_all_documents_are_ranked_by_their_best_window(bi_folder):
    corpus = {"far": LONG, "near": LONG + " refund country", "short": "refund country"}
    reranker = prepared("bi-encoder", bi_folder, window=2, stride=2)
    docs, scores = reranker.retrieve({"q": "refund country"}, corpus, depth=3).documents_of("q")
    assert docs[-1] == "far" and scores[:2] == pytest.approx([1, 1], abs=1e-5)


def queries_of(texts: dict[str, str], queries: dict[str, str]) -> Dataset:
    docs = list(texts)
    return Dataset(
        "long",
        pd.DataFrame({"query_id": list(queries), "text": list(queries.values())}),
        pd.DataFrame({"doc_id": docs, "title": "", "text": list(texts.values())}),
        pd.DataFrame({"query_id": list(queries), "doc_id": docs[0], "label": 1.0}),
        Ranking.from_lists(
            [(query, docs, list(np.arange(len(docs), 0.0, -1.0))) for query in queries]
        ),
    )


@pytest.mark.model
def test_a_run_counts_tokens_caches_by_settings_and_stops_within_a_query(workspace, cross_folder):
    words = np.random.default_rng(1).choice(LONG.split(), (6, 96))
    texts = {f"d{at}": " ".join(each) for at, each in enumerate(words)}
    data = queries_of(texts, {"q": "card", "r": "dog"})
    kind, cache = get("cross-encoder"), OptionalCache(workspace)

    def run(cancelled=lambda: False, **settings):
        made = create(kind.name, {"model": str(cross_folder), "batch_tokens": 64, **settings})
        return rerank(data, made, capabilities=kind.capabilities, cache=cache, cancelled=cancelled)

    truncated, windowed = run(), run(window=30)
    assert truncated.queries["truncated"].sum() == 12 and windowed.queries["truncated"].sum() == 0
    assert windowed.queries["tokens"].sum() > 2 * truncated.queries["tokens"].sum()
    assert windowed.reading.read.sum() == windowed.queries["tokens"].sum()
    assert cache.pairs == 24
    assert run(window=30).measured.pairs == 0 and cache.pairs == 24
    calls = iter(range(1000))
    with pytest.raises(Cancelled):
        run(window=3, cancelled=lambda: next(calls) > 12)
    assert next(calls) < 20 and cache.pairs == 24


def test_the_expected_time_counts_the_tokens_of_windows():
    work = Workload(np.array([10, 10]), 20, 12.0, [100.0, 900.0])
    plain = work.seconds("cross-encoder", 2)
    windowed = work.seconds("cross-encoder", 2, None, {"window": 200, "stride": 200})
    # One window of 100 tokens, and five of 200; the query is read with each.
    assert windowed / plain == pytest.approx((100 + 5 * 200 + 6 * 12) / (2 * (12 + 306)))
    encoded = work.seconds("bi-encoder", 2, None, {"window": 200, "stride": 100})
    assert encoded / work.seconds("bi-encoder", 2) == pytest.approx(
        (10 * (100 + 8 * 200) + 2 * 12) / (20 * 306 + 2 * 12)
    )


FILLER = {
    "en": (
        "The museum opens at nine and closes at six. Guides show visitors the halls of paintings. ",
        "How long does a refund to a credit card take?",
        "A refund to a credit card takes five working days.",
        "Refund requests and card payments are on another page. ",
    ),
    "zh": (
        "博物馆上午九点开门，下午六点关门。讲解员带领观众参观各个展厅的绘画。",
        "退款到信用卡需要多长时间？",
        "退款到信用卡需要五个工作日。",
        "退款申请和信用卡付款的说明在另一页。",
    ),
}


@pytest.mark.model
@pytest.mark.parametrize(
    ("kind", "model", "language"),
    [
        ("cross-encoder", packaged.MODELS[1].id, "en"),
        ("bi-encoder", packaged.MODELS[2].id, "en"),
        ("bi-encoder", packaged.MULTILINGUAL, "zh"),
    ],
)
def test_an_answer_at_the_end_ranks_first_with_windows_and_last_truncated(kind, model, language):
    filler, query, answer, hint = FILLER[language]
    texts = {"answer": filler * 6 + answer} | {
        f"d{at}": hint + filler * (at + 4) for at in range(3)
    }
    settings = {"max_length": 64, "runtime": "onnx"}
    found = {}
    for window in (0, 40):
        scored = score(
            prepared(kind, model, window=window, **settings), query, list(texts.values())
        )
        found[window] = [list(texts)[at] for at in np.argsort(-scored.scores)]
    assert found[0][-1] == "answer" and found[40][0] == "answer"
    tokenizer = RawTokenizer.from_file(packaged.folder_of(packaged.named(model)) / "tokenizer.json")
    prompts = {packaged.MULTILINGUAL: ("query: ", "passage: ")}.get(model, ("", ""))
    first, begin, *sizes = map(
        len, tokenizer.plain([prompts[0] + query, prompts[1], *texts.values()])
    )
    expected = []
    for size in sizes:
        count = 1 if size <= 40 else 1 + -(-(size - 40) // 20)
        read = size if count == 1 else 40 * count
        if kind == "cross-encoder":
            expected.append(read + count * (first + 3))
        else:
            expected.append(read + count * (begin + 2) + first + 2)
    assert scored.tokens.tolist() == expected
