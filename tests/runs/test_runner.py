import json
import math

import numpy as np
import pytest

from rankdash.errors import ScoringError, UnavailableError
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


def ours(request):
    raise ScoringError("No words in {query!r}.", remedy="Add some.", query=request.query)


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (lambda request: Scored(np.array([1, np.nan, 2, np.nan, 0.0])), "documents scored: 3 of 5"),
        (lambda request: Scored(np.full(5, np.nan)), "documents scored: 0 of 5"),
        (lambda request: Scored(np.array([1, np.inf, 0, 0, 0])), "documents scored: 4 of 5"),
        (lambda request: Scored(np.zeros(4)), "scores of the reranker: 4, documents: 5"),
        (lambda request: Scored(np.zeros(0)), "scores of the reranker: 0, documents: 5"),
        (lambda request: Scored(np.ones((5, 1))), "scores of the reranker: 5, documents: 5"),
        (lambda request: Scored.failed(5, "HTTP 429"), "HTTP 429"),
        (lambda request: Scored.failed(5, "x" * 600), "x" * 500),
        (lambda request: Scored.failed(5, "Bearer sk-secret-0815-4711"), "Bearer •••"),
        (lambda request: Scored(np.zeros(5), error="half an answer"), "half an answer"),
        (lambda request: 1 / 0, "ZeroDivisionError: division by zero"),
        (ours, "No words in 'ask q1'. Add some."),
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


def test_a_reranker_that_cannot_be_had_ends_the_run(make_dataset):
    def gone(*of):
        raise UnavailableError("No model.", remedy="Give a folder.")

    for method in ("prepare", "score"):
        reranker = Scripted()
        setattr(reranker, method, gone)
        with pytest.raises(UnavailableError):
            rerank(make_dataset(), reranker)
    twice = Scripted()
    twice.score = lambda requests: [twice.answer(request) for request in requests] * 2
    run = rerank(make_dataset(queries=1), twice)
    assert reasons(run) == {"q0": "answers of the reranker: 2, queries: 1"}


@pytest.mark.parametrize("rule", ["exclude", "empty"])
def test_a_candidate_without_a_text_ends_no_query_and_is_scored_where_that_is_chosen(
    make_dataset, rule
):
    """It stays below, whether it has no score or that of an empty text."""
    dataset = make_dataset(queries=2, documents=5, depth=5, doc_text={"d1": None, "d3": " "})
    seen = {}

    def answer(request):
        seen.update(zip(request.doc_ids, request.documents, strict=True))
        return Scored(np.array([float(len(text.strip())) for text in request.documents]))

    run = rerank(dataset, Scripted(answer), without_text=rule)
    assert states(run) == {"q0": "done", "q1": "done"}
    assert seen.keys() == {"d0", "d2", "d4"} | ({"d1", "d3"} if rule == "empty" else set())
    assert not any(seen.get(doc, "").strip() for doc in ("d1", "d3"))
    lowest = 0.0 if rule == "empty" else np.nan
    for query in ("q0", "q1"):
        ranked, scores = run.ranking.documents_of(query)
        given = [doc for doc in dataset.candidates.documents_of(query)[0] if doc in ("d1", "d3")]
        assert ranked[3:] == given
        np.testing.assert_array_equal(scores, [10.0] * 3 + [lowest] * 2)
    assert run.queries["pairs"].tolist() == ([5, 5] if rule == "empty" else [3, 3])
    assert (run.measured.textless_pairs, run.measured.without_text) == (4, rule)
    other = "exclude" if rule == "empty" else "empty"
    assert run.id != rerank(dataset, Scripted(answer), without_text=other).id


def test_what_has_no_text_fails_by_name_where_text_is_needed(make_dataset):
    dataset = make_dataset(queries=2, documents=1, depth=1, doc_text={"d0": None})
    reranker = Scripted()
    run = rerank(dataset, reranker)
    assert set(reasons(run).values()) == {"document 'd0' has no text"}
    assert reranker.seen == []
    for allowed in ({"without_text": "empty"}, {"capabilities": Capabilities(needs_text=False)}):
        assert states(rerank(dataset, Scripted(), **allowed)) == {"q0": "done", "q1": "done"}


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
    assert rerank(dataset, Scripted()).queries["index_ms"].isna().all()


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
    dataset = make_dataset(queries=2, depth=2)
    some = only("q1", lambda request: Scored(np.zeros(2), np.array([2, 3])))
    assert rerank(dataset, Scripted(some)).reading.read.tolist() == [-1, -1, 2, 3]
    unknown = rerank(dataset, Scripted())
    assert unknown.queries[["tokens", "truncated"]].isna().all(axis=None)
    assert unknown.reading is None


def test_batches_last_about_a_second_and_cover_every_query_once(make_dataset):
    clock = Clock()
    batches = []
    rerank(make_dataset(queries=120), Scripted(clock=clock), clock=clock, on_batch=batches.append)
    assert [len(batch) for batch in batches] == [50, 50, 20]
    assert len({result.query_id for batch in batches for result in batch}) == 120


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
    assert run.ranking.tied.all()
