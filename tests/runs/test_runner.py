import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.dataset import Dataset
from rankdash.errors import ScoringError, SettingError, UnavailableError
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers import Capabilities, Scored, preparing
from rankdash.runs.results import QueryResult
from rankdash.runs.runner import Cancelled, rerank
from tests.runs.clock import Clock


class Scripted:
    """Scores by `answer(request)`; every load takes 500 ms and every query 20 ms of `clock`."""

    name = "scripted"

    def __init__(self, answer=None, clock=None):
        self.settings = {"answer": "scripted"}
        self.answer = answer or (lambda request: Scored(np.arange(float(len(request.doc_ids)))))
        self.clock = clock or Clock()
        self.corpus = None
        self.seen = []

    def prepare(self, corpus):
        self.corpus = corpus
        self.clock.pass_ms(500)

    def fingerprint(self):
        return ""

    def score(self, requests):
        (request,) = requests
        self.seen.append(request.query_id)
        self.clock.pass_ms(20)
        return [self.answer(request)]


def states(run):
    return dict(zip(run.queries["query_id"], run.queries["state"], strict=True))


def reasons(run):
    return dict(zip(run.queries["query_id"], run.queries["reason"], strict=True))


def only(query, odd, normal=None):
    def answer(request):
        if request.query_id == query:
            return odd(request)
        return Scored(np.arange(float(len(request.doc_ids)))) if normal is None else normal(request)

    return answer


def test_reranked_documents_come_by_score_and_the_rest_keep_their_order(make_dataset):
    dataset = make_dataset(queries=2, depth=5)
    run = rerank(dataset, Scripted(), depth=3)
    for query in ("q0", "q1"):
        first = dataset.candidates.documents_of(query)[0]
        docs, scores = run.ranking.documents_of(query)
        assert docs == [first[2], first[1], first[0], first[3], first[4]]
        assert list(scores[:3]) == [2.0, 1.0, 0.0]
        assert np.isnan(scores[3:]).all()
    assert run.depth == 3
    assert list(run.queries["pairs"]) == [3.0, 3.0]


def test_equal_scores_keep_first_stage_order(make_dataset):
    dataset = make_dataset(queries=1, depth=5)
    same = Scripted(lambda request: Scored(np.zeros(len(request.doc_ids))))
    run = rerank(dataset, same)
    assert run.ranking.documents_of("q0")[0] == dataset.candidates.documents_of("q0")[0]
    assert run.ranking.tied.all()


def test_the_reranker_sees_the_whole_corpus_and_first_stage_order(make_dataset):
    dataset = make_dataset(queries=2, documents=8, depth=3)
    requests = []

    def answer(request):
        requests.append(request)
        return Scored(np.zeros(len(request.doc_ids)))

    reranker = Scripted(answer)
    rerank(dataset, reranker)
    assert list(reranker.corpus.doc_ids) == [f"d{number}" for number in range(8)]
    last = requests[-1]
    assert (last.query_id, last.query) == ("q1", "ask q1")
    assert list(last.doc_ids) == dataset.candidates.documents_of("q1")[0]
    assert list(last.documents) == [f"text of {doc}" for doc in last.doc_ids]


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (
            lambda request: Scored(np.array([1.0, np.nan, 2.0, np.nan, 0.0])),
            "documents scored: 3 of 5",
        ),
        (lambda request: Scored(np.full(5, np.nan)), "documents scored: 0 of 5"),
        (lambda request: Scored(np.array([1.0, np.inf, 0, 0, 0])), "documents scored: 4 of 5"),
        (lambda request: Scored(np.zeros(4)), "scores of the reranker: 4, documents: 5"),
        (lambda request: Scored(np.zeros(0)), "scores of the reranker: 0, documents: 5"),
        (lambda request: Scored.failed(5, "HTTP 429"), "HTTP 429"),
        (lambda request: Scored(np.zeros(5), error="half an answer"), "half an answer"),
        (lambda request: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_a_failure_is_a_failure_and_never_a_zero(make_dataset, odd, reason):
    dataset = make_dataset(queries=3, depth=5)
    run = rerank(dataset, Scripted(only("q1", odd)))
    assert states(run) == {"q0": "done", "q1": "failed", "q2": "done"}
    assert reasons(run) == {"q0": "", "q1": reason, "q2": ""}
    assert run.left_out == {"q1": "failed"}
    assert list(run.ranking.query_ids) == ["q0", "q2"]
    failed = run.queries.set_index("query_id").loc["q1"]
    assert failed[["latency_ms", "pairs", "tokens", "truncated"]].isna().all()


def test_the_reason_of_an_error_of_ours_is_its_message(make_dataset):
    def odd(request):
        raise ScoringError("No words in {query!r}.", remedy="Add some.", query=request.query)

    run = rerank(make_dataset(queries=2), Scripted(only("q0", odd)))
    assert reasons(run)["q0"] == "No words in 'ask q0'. Add some."


def test_too_many_answers_fail_the_query(make_dataset):
    class Twice(Scripted):
        def score(self, requests):
            return super().score(requests) * 2

    run = rerank(make_dataset(queries=1), Twice())
    assert reasons(run) == {"q0": "answers of the reranker: 2, queries: 1"}


def test_a_reranker_that_cannot_be_had_ends_the_run(make_dataset):
    class Missing(Scripted):
        def prepare(self, corpus):
            raise UnavailableError("No model.", remedy="Give a folder.")

    class Gone(Scripted):
        def score(self, requests):
            raise UnavailableError("No model any more.")

    for reranker in (Missing(), Gone()):
        with pytest.raises(UnavailableError):
            rerank(make_dataset(), reranker)


def test_a_candidate_without_a_text_stays_below_and_ends_no_query(make_dataset):
    dataset = make_dataset(queries=2, documents=5, depth=5, doc_text={"d1": None, "d3": " "})
    seen = set()

    def answer(request):
        seen.update(request.doc_ids)
        return Scored(np.arange(float(len(request.doc_ids))))

    run = rerank(dataset, Scripted(answer))

    assert states(run) == {"q0": "done", "q1": "done"}
    assert seen == {"d0", "d2", "d4"}
    for query in ("q0", "q1"):
        ranked, scores = run.ranking.documents_of(query)
        given = [doc for doc in dataset.candidates.documents_of(query)[0] if doc in ("d1", "d3")]
        assert ranked[3:] == given
        assert np.isnan(scores).tolist() == [False] * 3 + [True] * 2
    assert run.queries["pairs"].tolist() == [3, 3]
    assert (run.measured.textless_pairs, run.measured.without_text) == (4, "exclude")


def test_a_candidate_without_a_text_is_scored_as_empty_where_that_is_chosen(make_dataset):
    dataset = make_dataset(queries=2, documents=5, depth=5, doc_text={"d1": None, "d3": " "})
    seen = {}

    def answer(request):
        seen.update(zip(request.doc_ids, request.documents, strict=True))
        return Scored(np.array([float(len(text.strip())) for text in request.documents]))

    run = rerank(dataset, Scripted(answer), without_text="empty")

    assert states(run) == {"q0": "done", "q1": "done"}
    assert {doc: text.strip() for doc, text in seen.items() if doc in ("d1", "d3")} == {
        "d1": "",
        "d3": "",
    }
    for query in ("q0", "q1"):
        ranked, scores = run.ranking.documents_of(query)
        given = [doc for doc in dataset.candidates.documents_of(query)[0] if doc in ("d1", "d3")]
        assert ranked[3:] == given
        assert scores.tolist() == [10.0, 10.0, 10.0, 0.0, 0.0]
    assert run.queries["pairs"].tolist() == [5, 5]
    assert (run.measured.textless_pairs, run.measured.without_text) == (4, "empty")
    assert run.id != rerank(dataset, Scripted(answer)).id
    alone = make_dataset(queries=1, documents=1, depth=1, doc_text={"d0": None})
    assert states(rerank(alone, Scripted(answer), without_text="empty")) == {"q0": "done"}
    with pytest.raises(SettingError, match="no rule 'drop'"):
        rerank(dataset, Scripted(answer), without_text="drop")


def test_what_has_no_text_fails_by_name_where_text_is_needed(make_dataset):
    dataset = make_dataset(queries=2, documents=1, depth=1, doc_text={"d0": None})
    reranker = Scripted()
    run = rerank(dataset, reranker)
    assert set(reasons(run).values()) == {"document 'd0' has no text"}
    assert reranker.seen == []
    several = make_dataset(queries=1, documents=2, depth=2, doc_text={"d0": " ", "d1": None})
    docs = several.candidates.documents_of("q0")[0]
    assert reasons(rerank(several, reranker)) == {
        "q0": f"2 documents have no text, such as {docs[0]!r}"
    }
    silent = make_dataset(queries=1, query_text=" ")
    assert reasons(rerank(silent, reranker)) == {"q0": "the query has no text"}
    assert states(rerank(dataset, Scripted(), capabilities=Capabilities(needs_text=False))) == {
        "q0": "done",
        "q1": "done",
    }


def test_queries_left_out_are_skipped_with_the_reason(make_dataset):
    dataset = make_dataset(queries=4, without_candidates=["q1"])
    run = rerank(dataset, Scripted(), query_ids=["q1", "q2"])
    assert states(run) == {"q0": "skipped", "q1": "skipped", "q2": "done", "q3": "skipped"}
    assert reasons(run)["q1"] == "no candidates"
    assert reasons(run)["q3"] == "not in the sample"
    assert list(run.ranking.query_ids) == ["q2"]


def test_latency_is_warm_and_serial_and_the_cold_start_is_apart(make_dataset):
    clock = Clock()

    def slow_first(request):
        if len(reranker.seen) == 1:
            clock.pass_ms(3000)
        return Scored(np.arange(float(len(request.doc_ids))))

    reranker = Scripted(slow_first, clock)
    loaded = []
    run = rerank(make_dataset(queries=3), reranker, clock=clock, on_loaded=loaded.append)
    assert reranker.seen == ["q0", "q0", "q1", "q2"]
    assert list(run.queries["latency_ms"]) == [20.0, 20.0, 20.0]
    assert run.load_ms == 500 + 3000 + 20
    assert loaded == [run.load_ms]
    assert run.queries["index_ms"].isna().all()


def test_index_work_is_kept_out_of_latency_and_cold_start(make_dataset):
    """A bi-encoder embeds each document once; a search system does that beforehand."""
    clock = Clock()
    embedded = set()

    def answer(request):
        new = set(request.doc_ids) - embedded
        embedded.update(new)
        clock.pass_ms(100 * len(new))
        return Scored(np.arange(float(len(request.doc_ids))), index_seconds=0.1 * len(new))

    dataset = make_dataset(queries=4, documents=8, depth=4)
    run = rerank(dataset, Scripted(answer, clock), clock=clock)
    assert run.queries["latency_ms"].to_numpy() == pytest.approx(20.0)
    assert run.load_ms == pytest.approx(520.0)
    # What the warm-up embedded is the first query's index work.
    assert run.queries["index_ms"].iloc[0] == pytest.approx(400.0)
    assert run.queries["index_ms"].sum() == pytest.approx(100.0 * len(embedded))


def test_each_step_of_the_preparation_is_told_when_it_begins(make_dataset):
    class Slow(Scripted):
        def prepare(self, corpus):
            told.append("in prepare")
            preparing.begin("exporting")
            super().prepare(corpus)

    told = []
    rerank(
        make_dataset(queries=1),
        Slow(),
        on_step=told.append,
        on_prepared=lambda: told.append("prepared"),
        on_loaded=told.append,
    )
    assert told[:5] == ["loading", "in prepare", "exporting", "prepared", "warming"]
    assert [type(each) for each in told[5:]] == [float]
    preparing.begin("choosing")
    assert len(told) == 6, "nobody listens any more"


def test_a_warm_up_that_fails_fails_nothing_but_its_own_query(make_dataset):
    run = rerank(make_dataset(queries=2), Scripted(only("q0", lambda request: 1 / 0)))
    assert states(run) == {"q0": "failed", "q1": "done"}
    assert run.load_ms >= 0


def test_tokens_and_truncations_are_counted_where_known(make_dataset):
    def counted(request):
        size = len(request.doc_ids)
        return Scored(np.zeros(size), tokens=np.arange(size), full=2 * np.arange(size))

    known = rerank(make_dataset(queries=1, depth=5), Scripted(counted), depth=4)
    assert (known.queries["tokens"][0], known.queries["truncated"][0]) == (6.0, 3.0)
    # Equal scores keep their order; what lies below the depth was not read.
    assert known.reading.read.tolist() == [0, 1, 2, 3, -1]
    assert known.reading.full.tolist() == [0, 2, 4, 6, -1]
    nothing = Scored(np.zeros(3), tokens=np.zeros(3), full=np.full(3, 9))
    unread = rerank(make_dataset(queries=1, depth=3), Scripted(lambda request: nothing))
    assert unread.reading.read.tolist() == [0, 0, 0], "nothing was read, and that is known"
    unknown = rerank(make_dataset(queries=1), Scripted())
    assert unknown.queries[["tokens", "truncated"]].isna().all(axis=None)
    assert unknown.reading is None


def test_token_counts_follow_their_documents_into_the_ranking(make_dataset):
    def counted(request):
        numbers = np.array([int(doc[1:]) for doc in request.doc_ids])
        return Scored(-1.0 * numbers, tokens=numbers, full=numbers + 7)

    run = rerank(make_dataset(queries=3, depth=5), Scripted(counted))
    numbers = [int(doc[1:]) for doc in run.ranking.doc_ids[run.ranking.docs]]
    assert run.reading.read.tolist() == numbers
    assert run.reading.full.tolist() == [number + 7 for number in numbers]


def test_the_tokens_of_some_queries_alone_are_kept_and_without_any_there_are_none(make_dataset):
    dataset = make_dataset(queries=2, depth=2)
    known = only("q1", lambda request: Scored(np.zeros(2), np.array([2, 3])))
    assert rerank(dataset, Scripted(known)).reading.read.tolist() == [-1, -1, 2, 3]
    assert rerank(dataset, Scripted()).reading is None


def test_batches_last_about_a_second_and_cover_every_query_once(make_dataset):
    clock = Clock()
    batches = []
    rerank(make_dataset(queries=120), Scripted(clock=clock), clock=clock, on_batch=batches.append)
    assert [len(batch) for batch in batches] == [50, 50, 20]
    assert len({result.query_id for batch in batches for result in batch}) == 120


@settings(max_examples=25)
@given(stop_after=st.integers(0, 12), fails=st.sets(st.integers(0, 9)), depth=st.integers(1, 6))
def test_stopping_anywhere_and_going_on_gives_the_run_of_an_unbroken_one(
    make_dataset_once, stop_after, fails, depth
):
    dataset = make_dataset_once

    def answer(request):
        if int(request.query_id[1:]) in fails:
            return Scored.failed(len(request.doc_ids), "always")
        return Scored(
            np.array([hash((request.query_id, doc)) % 5 for doc in request.doc_ids], float)
        )

    whole = rerank(dataset, Scripted(answer), depth=depth)
    kept = []
    first = Scripted(answer)
    try:
        rerank(
            dataset,
            first,
            depth=depth,
            on_batch=kept.extend,
            cancelled=lambda: len(first.seen) > stop_after,
        )
    except Cancelled:
        assert len(kept) < 10
    second = Scripted(answer)
    run = rerank(dataset, second, depth=depth, done=kept)
    done = {result.query_id for result in kept if result.state == "done"}
    assert not done & set(second.seen)
    assert run.ranking.frame().equals(whole.ranking.frame())
    for name in ("query_id", "state", "reason", "pairs"):
        assert run.queries[name].equals(whole.queries[name])
    assert run.id == whole.id


@pytest.fixture(scope="module")
def make_dataset_once():
    ids = [f"q{number}" for number in range(10)]
    docs = [f"d{number}" for number in range(6)]
    return Dataset(
        "made",
        pd.DataFrame({"query_id": ids, "text": ids}),
        pd.DataFrame({"doc_id": docs, "title": "", "text": docs}),
        pd.DataFrame({"query_id": ids, "doc_id": "d0", "label": 1.0}),
        Ranking.from_lists([(query, docs, [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]) for query in ids]),
    )


def test_nothing_is_loaded_when_nothing_is_left(make_dataset):
    dataset = make_dataset(queries=3)
    kept, steps = [], []
    whole = rerank(dataset, Scripted(), on_batch=kept.extend, on_step=steps.append)
    assert steps == ["loading", "warming"]
    unused = Scripted()
    again = rerank(dataset, unused, done=kept, on_step=steps.append)
    assert steps == ["loading", "warming"]
    assert unused.corpus is None
    assert math.isnan(again.load_ms)
    assert again.ranking.frame().equals(whole.ranking.frame())
    assert again.queries.equals(whole.queries)


def test_results_of_another_depth_or_data_set_are_not_taken_over(make_dataset):
    strange = [
        QueryResult("q0", "done", scores=np.zeros(2)),
        QueryResult("elsewhere", "done", scores=np.zeros(5)),
    ]
    reranker = Scripted()
    run = rerank(make_dataset(queries=1, depth=5), reranker, done=strange)
    assert "q0" in reranker.seen
    assert run.ranking.documents_of("q0")[1][0] == 4.0


def test_a_cancel_while_loading_scores_nothing(make_dataset):
    reranker = Scripted()
    with pytest.raises(Cancelled):
        rerank(make_dataset(), reranker, cancelled=lambda: reranker.corpus is not None)
    assert reranker.seen == []


def test_what_the_run_says_about_itself_can_be_written_down(make_dataset):
    dataset = make_dataset(queries=1)
    run = rerank(dataset, Scripted())
    assert (run.dataset_id, run.reranker, run.settings) == (
        dataset.id,
        "scripted",
        {"answer": "scripted"},
    )
    assert json.loads(json.dumps(dict(run.machine)))["logical_cpus"] >= 1
    assert run.created.endswith("+00:00")
    assert rerank(dataset, Scripted(), depth=2).id != run.id


class Literate(Scripted):
    """Knows no Chinese."""

    def unknown_share(self, texts):
        self.asked = list(texts)
        return 0.25


def test_the_share_of_tokens_that_the_model_does_not_know_is_kept_with_the_run(make_dataset):
    dataset = make_dataset()
    reranker = Literate()
    run = rerank(dataset, reranker, depth=2)
    assert run.measured.unknown_tokens == 0.25 and run.measured.illiterate
    queries, documents = dataset.query_text(), dataset.document_text()
    listed = [dataset.candidates.documents_of(query)[0][:2] for query in queries.index]
    read = dict.fromkeys(documents[doc] for docs in listed for doc in docs)
    ranked = [query for query, docs in zip(queries.index, listed, strict=True) if docs]
    assert set(reranker.asked) == {*queries[ranked], *read}
    assert math.isnan(rerank(dataset, Scripted()).measured.unknown_tokens)
    assert not rerank(dataset, Scripted()).measured.illiterate


def test_many_equal_scores_keep_first_stage_order(make_dataset):
    """So many that a sort which is not stable would change it."""
    dataset = make_dataset(queries=1, documents=60, depth=60)
    run = rerank(dataset, Scripted(lambda request: Scored(np.arange(60) % 2 * 1.0)))
    given = dataset.candidates.documents_of("q0")[0]
    assert run.ranking.documents_of("q0")[0] == [*given[1::2], *given[::2]]
