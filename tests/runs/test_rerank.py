"""A run by a stub: approved for each case; failures are not zeros, and times exclude the cache."""

import json
import math
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.core.base.errors import ScoringError, UnavailableError
from rankdash.core.data.measured import Measured
from rankdash.core.rerankers import Call, Capabilities, Scored, base
from rankdash.core.runs.plan import Timing, plan
from rankdash.core.runs.results import (
    QueryResult,
    estimated_searches,
    load_of,
    results_from,
    to_row,
    usage,
)
from rankdash.core.runs.runner import Cancelled
from rankdash.core.runs.scoring import Requests
from rankdash.core.study.latency import summarize
from rankdash.core.workspace.jobs.queue import read_parts, write_part
from rankdash.core.workspace.score_cache import ScoreCache
from tests.approved import table
from tests.results import result, results
from tests.runs.stub import BLOCKS, ONE_BY_ONE, Stub, broken, failed, go, scored, told

REMOTE = Capabilities(needs_network=True)
NEVER = Timing(latency="never")
CALL = Call(1.0, 1.5, attempts=2, retry_wait_s=0.25, status=200, billed={"units": 2.0}, note="cut")


class Service(Stub):
    """A service that takes 200 ms per query, of which 50 are a pause for a retry; q3 fails."""

    def score(self, requests):
        self.calls.append({request.query_id: list(request.doc_ids) for request in requests})
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        start = self.now / 1e9
        self.pass_ms(200)
        if request.query_id == "q3":
            call = Call(start, self.now / 1e9, attempts=3, status=503, error="HTTP 503")
            return replace(failed("HTTP 503")(request), calls=(call,))
        billed = {"search_units": 1.0}
        call = Call(start, self.now / 1e9, 2, 0.05, 200, billed, server_ms=90.0, note="repaired")
        return replace(scored(request), calls=(call,))


class Short(Stub):
    """A reranker that omits the last query of a block."""

    def score(self, requests):
        return super().score(requests)[: 1 if len(requests) == 1 else -1]


def taking(milliseconds, usual=scored, once=math.nan):
    """Return a reranker that takes `milliseconds` more. once: only at the call of this number."""
    model = Stub()
    model.usual = lambda request: (
        model.pass_ms(milliseconds * (once != once or len(model.calls) == once)) or usual(request)
    )
    return model


def embedding():
    """Return a bi-encoder that embeds each document once, 100 ms, as indexing does beforehand."""
    model, embedded = Stub(), set()

    def usual(request):
        new = set(request.doc_ids) - embedded
        embedded.update(new)
        model.pass_ms(100 * len(new))
        return replace(scored(request), index_seconds=0.1 * len(new))

    model.usual = usual
    return model


def same(run, other):
    assert run.ranking.frame().equals(other.ranking.frame())
    for name in ("query_id", "state", "reason", "pairs", "tokens", "truncated"):
        assert run.queries[name].equals(other.queries[name])
    assert run.reading.read.tolist() == other.reading.read.tolist()
    assert run.reading.full.tolist() == other.reading.full.tolist()


def ran(dataset, model=Stub, **options):
    model = model() if isinstance(model, type) else model
    return told(go(dataset, model, **options), model)


def test_runs_are_as_approved(make_dataset, workspace, approved):
    two, three, eight = (make_dataset(queries=size) for size in (2, 3, 8))
    one = make_dataset(queries=1)
    holes = make_dataset(queries=4, depth=3, without_candidates=["q3"])
    textless = make_dataset(queries=2, documents=5, depth=5, doc_text={"d1": None, "d3": " "})
    odd = {"q1": failed("HTTP 429"), "q2": broken}
    strange = [
        QueryResult("q0", "done", scores=np.arange(5.0)),
        QueryResult("q1", "done", scores=np.zeros(2)),
        QueryResult("q2", "failed", "no answer", scores=np.zeros(5)),
        QueryResult("elsewhere", "done", scores=np.zeros(5)),
    ]
    encoded = Stub(usual=lambda request: replace(scored(request), computed_tokens=4.0))
    counted = Stub({"q1": lambda request: Scored(np.zeros(5), np.arange(5))},
                   lambda request: Scored(np.zeros(5)))  # fmt: skip
    unread, uncounted = (
        Stub(usual=lambda request, read=read: Scored(np.zeros(5), np.full(5, read), np.full(5, 9)))
        for read in (0, -1)
    )
    cases = {
        "documents below the depth keep their order": partial(ran, two, depth=3),
        "a sample, and a query without candidates": partial(
            ran, holes, Stub({"q1": failed("no answer")}), query_ids=["q0", "q1", "q3"], depth=2
        ),
        "trap 10: a failure is no zero, in a block": partial(ran, eight, Stub(odd)),
        "trap 10: or alone": partial(ran, eight, Stub(odd), capabilities=ONE_BY_ONE),
        "traps 15, 16: a cold start is in no figure": partial(ran, eight, timing=Timing(repeats=3)),
        "trap 17: throughput is measured": partial(ran, eight),
        "a block that fails: the time of each query counts": partial(
            ran, eight, Stub({"q1": broken}), timing=NEVER
        ),
        "a reranker that answers too few is asked one by one": partial(ran, eight, Short),
        "a query that fails is not asked again for its latency": partial(
            ran, three, Stub(odd), capabilities=ONE_BY_ONE, timing=Timing(repeats=4)
        ),
        "a sample of two is timed": partial(ran, eight, timing=Timing(sample=2)),
        "every query is timed": partial(ran, eight, timing=Timing(latency="every", sample=2)),
        "a repeated query has the median": partial(
            ran, one, taking(40, once=3), timing=Timing(repeats=3), capabilities=ONE_BY_ONE
        ),
        "a model that encoded its documents reads the query": partial(ran, eight, encoded),
        "candidates without a text are left out": partial(ran, textless),
        "or scored as empty": partial(ran, textless, without_text="empty"),
        "index work is in no latency": partial(ran, three, embedding(), capabilities=ONE_BY_ONE),
        "a warm-up that fails": partial(ran, two, Stub({"q0": broken})),
        "tokens of some are known": partial(ran, two, counted),
        "nothing was read, and that is known": partial(ran, one, unread),
        "no count of what was read": partial(ran, one, uncounted),
        "of earlier results those of as many documents count": partial(ran, three, done=strange),
        "a paid call is made once, and the first is no latency": partial(
            ran, make_dataset(queries=5), Service, capabilities=REMOTE
        ),
    }
    cache = {"cache": workspace.score_cache}
    cases |= {
        "a cache that is empty": partial(ran, eight, depth=3, **cache),
        "a greater depth scores new pairs only": partial(ran, eight, **cache),
        "a smaller one nothing": partial(ran, eight, depth=2, **cache),
        "the same again nothing": partial(ran, eight, **cache),
        # Latencies of the sample, and of half of it if blocks need the rest; or of every query.
        **{
            f"known, {latency}, {sample}, in blocks {able.across_queries}": partial(
                ran, eight, capabilities=able, timing=Timing(latency, sample=sample), **cache
            )
            for able in (BLOCKS, ONE_BY_ONE)
            for latency, sample in (("always", 200), ("always", 3), ("every", 3))
        },
        "half a query has no latency": lambda: (
            workspace.score_cache.clear() or go(eight, Stub(), depth=3, query_ids=["q0"], **cache),
            ran(eight, capabilities=ONE_BY_ONE, query_ids=["q0", "q1"], **cache),
        )[1],
        "another model finds nothing": partial(ran, two, _named("weights 2"), **cache),
    }
    approved("runs/rerank", table((name, result(case)) for name, case in cases.items()))
    assert summarize(go(eight, Stub(odd)).queries).p50 == pytest.approx(15.0)


def _named(fingerprint):
    model = Stub()
    model.print = fingerprint
    return model


def ours(request):
    raise ScoringError("No words in {query!r}.", remedy="Add some.", query=request.query)


def test_why_a_query_failed_is_as_approved(make_dataset, approved):
    odd = {
        "two of five are no numbers": Scored(np.array([1, np.nan, 2, np.nan, 0.0])),
        "none is": Scored(np.full(5, np.nan)),
        "one is not finite": Scored(np.array([1, np.inf, 0, 0, 0])),
        "too few": Scored(np.zeros(4)),
        "none at all": Scored(np.zeros(0)),
        "another shape": Scored(np.ones((5, 1))),
        "long": Scored.failed(5, "x" * 600),
        "with a key": Scored.failed(5, "Bearer sk-secret-0815-4711"),
        "scores and an error": Scored(np.zeros(5), error="half an answer"),
    }
    answers = {name: lambda request, answer=answer: answer for name, answer in odd.items()}
    answers |= {"an error of ours": ours, "another": broken}
    three, said = make_dataset(queries=3), {}
    for name, answer in answers.items():
        run = go(three, Stub({"q1": answer}), capabilities=ONE_BY_ONE)
        rows = run.queries.set_index("query_id")
        assert rows["state"].to_dict() == {"q0": "done", "q1": "failed", "q2": "done"}
        assert rows.loc["q1", ["latency_ms", "pairs", "tokens", "truncated"]].isna().all()
        assert run.excluded == {"q1": "failed"} and list(run.ranking.query_ids) == ["q0", "q2"]
        said[name] = rows.loc["q1", "reason"]
    twice = Stub()
    twice.score = lambda requests: [scored(request) for request in requests] * 2
    said["two answers"] = go(make_dataset(queries=1), twice).queries["reason"][0]
    both, document = dict.fromkeys(["d0", "d1"], " "), {"documents": 1, "depth": 1}
    without = {"needs_text": False}
    for name, made, options in (
        ("a query without a text", {"query_text": " "}, {}),
        ("of which empty texts are read", {"query_text": " "}, {"without_text": "empty"}),
        ("where none is needed", {"query_text": " "}, {"capabilities": Capabilities(**without)}),
        ("a document without a text", {**document, "doc_text": {"d0": None}}, {}),
        ("which is read empty", {**document, "doc_text": {"d0": None}}, {"without_text": "empty"}),
        ("one of two", {"doc_text": {"d0": " "}}, {}),
        ("two of two", {"doc_text": both}, {}),
    ):
        model = Stub()
        run = go(
            make_dataset(**{"queries": 1, "documents": 2, "depth": 2, **made}), model, **options
        )
        said[name] = run.queries["reason"][0] or "done"
        assert bool(model.calls) == (said[name] == "done")
    approved("runs/reasons", table(said))


def calls(*spans):
    """Return calls from (start, end, seconds of pauses) of each."""
    return {"calls": tuple(Call(start, end, retry_wait_s=waited) for start, end, waited in spans)}


def test_a_latency_has_no_waits_and_no_index_work_in_it_and_a_failure_none(make_dataset):
    one = make_dataset(queries=1, depth=1)
    for answer, taken in (
        ({}, 5.0),
        (calls((0, 5, 2)), 3.0),
        (calls((0, 2, 0), (2, 5, 1)), 4.0),
        # Two calls with simultaneous pauses: at least the longest call without its pauses.
        (calls((0, 5, 3), (0, 5, 4)), 2.0),
        ({"index_seconds": 0.5}, 4.5),
        ({"index_seconds": 6.0}, 0.0),
        ({"error": "no"}, math.nan),
    ):
        model = taking(5000 - 11, lambda request, answer=answer: Scored(np.ones(1), **answer))
        run = go(one, model, capabilities=ONE_BY_ONE)
        assert run.queries["latency_ms"][0] / 1000 == pytest.approx(taken, nan_ok=True), answer


def test_batches_last_about_a_second_as_approved(make_dataset, approved):
    """Without a cost in time, batches have the largest size."""
    made = {
        "blocks": ({"queries": 900}, Stub(), {"timing": NEVER}),
        "free": ({"queries": 4000, "documents": 1, "depth": 1}, Stub(), {"timing": NEVER,
                 "clock": int}),
        "slow": ({"queries": 12}, taking(2000), {}),
        "alone": ({"queries": 120}, Stub(), {"capabilities": ONE_BY_ONE}),
    }  # fmt: skip
    cases = {}
    for name, (data, model, options) in made.items():
        go(make_dataset(**data), model, on_batch=(batches := []).append, **options)
        cases[name] = list(map(len, batches))
        assert len({each.query_id for batch in batches for each in batch}) == data["queries"]
    approved("runs/batches", results(cases))


def test_a_block_keeps_as_many_requests_under_way_as_are_allowed(make_dataset):
    remote = Capabilities(needs_network=True, across_queries=True)
    for allowed, blocks in ((4, [5, 5]), (8, [8, 2])):
        service = Service(concurrency=allowed)
        run = go(make_dataset(queries=20), service, capabilities=remote)
        # Half of the queries singly for their latency; then batches of a second, and no fewer.
        assert list(map(len, service.calls)) == [1] * 10 + blocks
        assert run.measured.together == max(blocks)


def test_only_what_hangs_on_pair_and_fingerprint_is_kept(make_dataset, workspace):
    cache = workspace.score_cache
    go(make_dataset(), _named(""), cache=cache)
    go(make_dataset(), Stub(), cache=cache, capabilities=Capabilities(deterministic=False))
    assert cache.pairs == 0


@settings(max_examples=12)
@given(data=st.data())
def test_depths_caches_and_kills_in_any_order_end_like_an_unbroken_run(
    make_dataset, tmp_path_factory, data
):
    dataset = make_dataset(queries=10, documents=8, depth=6)
    cache = ScoreCache(tmp_path_factory.mktemp("cache") / "scores.sqlite")
    failing = data.draw(st.sets(st.sampled_from([f"q{n}" for n in range(10)]), max_size=3))
    model = partial(Stub, dict.fromkeys(failing, failed("no")))
    for _ in range(data.draw(st.integers(1, 4))):
        depth, stop = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 12))
        timing = Timing(latency=data.draw(st.sampled_from(["auto", "always", "never"])))
        options = {"depth": depth, "cache": cache, "timing": timing}
        first, second, kept = model(), model(), []
        options["cancelled"] = lambda first=first, stop=stop: len(first.calls) > stop
        with suppress(Cancelled):
            go(dataset, first, on_batch=kept.extend, **options)
        run = go(dataset, second, done=kept, **{**options, "cancelled": bool})
        whole = go(dataset, model(), depth=depth)
        same(run, whole)
        assert run.id == whole.id
        done = {result.query_id for result in kept if result.state == "done"}
        assert not done & {query for call in second.calls[1:] for query in call}
        measured = run.measured
        assert measured.scored_pairs + measured.cached_pairs == (10 - len(failing)) * depth
        # Failures are not cached.
        assert cache.pairs <= (10 - len(failing)) * 6


def test_a_contended_measurement_is_marked(make_dataset):
    def used(share):
        model = taking(1000)
        model.threads = 2
        return go(make_dataset(), model, cpu_clock=lambda: share * model.now).measured

    assert used(1.0).contended and not used(1.9).contended
    assert used(1.0).cpu_per_wall == pytest.approx(1.0)
    # Runs of less than a second are never marked.
    for seconds, contended in ((0.6, True), (0.015, False)):
        spent = {"seconds": seconds, "cpu_seconds": 0.2 * seconds}
        made = Measured(pairs=8, serial_seconds=0.5, threads=2, **spent)
        assert made.contended == contended


def test_the_reranker_sees_the_whole_corpus_and_first_stage_order(make_dataset):
    dataset, requests = make_dataset(queries=2, documents=8, depth=3), []
    model = Stub(usual=lambda request: requests.append(request) or scored(request))
    go(dataset, model, capabilities=ONE_BY_ONE)
    assert list(model.corpus.doc_ids) == [f"d{number}" for number in range(8)]
    last = requests[-1]
    assert (last.query_id, last.query) == ("q1", "ask q1")
    assert list(last.doc_ids) == dataset.candidates.documents_of("q1")[0]
    assert list(last.documents) == [f"text of {doc}" for doc in last.doc_ids]


def test_a_reranker_that_is_gone_and_a_cancel_end_the_run(make_dataset):
    def gone(*of):
        raise UnavailableError("No model.", remedy="Give a folder.")

    for method in ("prepare", "score"):
        model = Stub()
        setattr(model, method, gone)
        with pytest.raises(UnavailableError):
            go(make_dataset(), model)
    model = Stub()
    with pytest.raises(Cancelled):
        go(make_dataset(), model, cancelled=lambda: model.loaded)
    assert model.calls == []


def test_each_step_of_the_preparation_is_told_and_nothing_is_loaded_where_nothing_is_left(
    make_dataset,
):
    class Slow(Stub):
        def prepare(self, corpus):
            told.append("in prepare")
            base.begin("exporting")
            super().prepare(corpus)

    told, kept, dataset = [], [], make_dataset(queries=3)
    listening = {
        "on_step": told.append,
        "on_prepared": lambda: told.append("prepared"),
        "on_loaded": told.append,
    }
    whole = go(dataset, Slow(), on_batch=kept.extend, **listening)
    assert told[:5] == ["loading", "in prepare", "exporting", "prepared", "warming"]
    assert [type(each) for each in told[5:]] == [float]
    base.begin("choosing")
    again = go(dataset, Slow(), done=kept, **listening)
    assert len(told) == 6, "nobody listens any more"
    assert math.isnan(again.load_ms)
    assert again.ranking.frame().equals(whole.ranking.frame())
    assert again.queries.equals(whole.queries)


def test_a_run_names_what_it_was_asked_for(make_dataset):
    dataset = make_dataset(queries=2)
    run = go(dataset, Stub(k=1))
    assert (run.dataset_id, run.reranker, run.settings) == (dataset.id, "stub", {"k": 1})
    assert json.loads(json.dumps(dict(run.machine)))["logical_cpus"] >= 1
    assert run.created.endswith("+00:00")
    others = [{"depth": 5}, {"query_ids": ["q0"]}, {"without_text": "empty"}]
    runs = [*(go(dataset, Stub(k=1), **each) for each in others), go(dataset, Stub(k=2))]
    assert len({run.id, *(each.id for each in runs)}) == 5
    assert run.id == go(dataset, Stub(k=1)).id


class Literate(Stub):
    def unknown_share(self, texts):
        self.asked = list(texts)
        return 0.25


def test_the_share_of_tokens_that_the_model_does_not_know_is_kept_with_the_run(make_dataset):
    dataset, model = make_dataset(), Literate()
    run = go(dataset, model, depth=2)
    assert run.measured.unknown_tokens == 0.25 and run.measured.illiterate
    queries, documents = dataset.query_text(), dataset.document_text()
    listed = [dataset.candidates.documents_of(query)[0][:2] for query in queries.index]
    assert set(model.asked) == {*queries, *(documents[doc] for docs in listed for doc in docs)}
    assert not go(dataset, Stub()).measured.illiterate


def test_texts_are_evenly_spread_and_no_more_than_asked_for(make_dataset, approved):
    def texts(most, **made):
        dataset = make_dataset(**made)
        return Requests(dataset, plan(dataset), needs_text=True).texts(most)

    five, long = {"queries": 5, "documents": 8, "depth": 8}, {"d0": "x" * 2000 + "y"}
    cases = {f"at most {most}": texts(most, **five) for most in (2, 3, 5, 100)}
    short = texts(9, queries=1, documents=1, depth=1, doc_text=long)
    cases["letters of a long one"] = list(map(len, short))
    approved("runs/texts", results(cases))


def test_results_come_back_from_the_rows_they_are_kept_as(make_dataset, workspace):
    batches, options = [], {"timing": Timing(latency="every", repeats=2)}
    run = go(make_dataset(queries=4), Stub(), on_batch=batches.extend, **options)
    told = replace(batches[0], index_ms=1.0, reason="why", cached=1, calls=(CALL,))
    write_part(workspace, "job", [to_row(each) for each in [told, *batches[1:]]])
    kept = results_from(read_parts(workspace, "job"))
    assert repr([vars(each) for each in kept]) == repr([vars(e) for e in [told, *batches[1:]]])
    assert go(make_dataset(queries=4), Stub(), done=kept).measured.repeated_ms == (
        run.measured.repeated_ms
    )
    # A row of an older version has the fields that it stored.
    row = to_row(QueryResult("q", "done", scores=np.array([0.5])))
    lacking = dict.fromkeys(("read", "full", "repeated_ms", "calls")) | {"cached": math.nan}
    (found,) = results_from(pd.DataFrame([row | lacking]))
    assert [len(each) for each in (found.read, found.full, found.repeated_ms)] == [0, 0, 0]
    assert (found.cached, found.calls, found.scores.tolist()) == (0, (), [0.5])


def test_what_a_service_bills_as_no_number_is_not_added(make_dataset):
    run = go(make_dataset(queries=3), Service(), capabilities=REMOTE)
    billed = ['{"search_units": NaN}', *run.calls["billed"][1:]]
    assert usage(replace(run, calls=run.calls.assign(billed=billed))).billed == {"search_units": 2}
    assert usage(go(make_dataset(queries=1), Stub())) is None


def test_many_equal_scores_keep_first_stage_order(make_dataset):
    """With this many scores an unstable sort changes the order."""
    dataset = make_dataset(queries=1, documents=60, depth=60)
    run = go(dataset, Stub(usual=lambda request: Scored(np.arange(60) % 2 * 1.0)))
    given = dataset.candidates.documents_of("q0")[0]
    assert run.ranking.documents_of("q0")[0] == [*given[1::2], *given[::2]]
    assert run.ranking.tied.all()


def test_a_document_has_the_tokens_of_the_queries_that_were_counted(make_dataset):
    run = go(make_dataset(queries=4), Stub())
    tokens = run.queries["pairs"] * [30.0, np.nan, 50.0, np.nan]
    for counted, expected in ((tokens, 40.0), (tokens * 0, np.nan), (tokens * np.nan, np.nan)):
        found = load_of(run.ranking, replace(run, queries=run.queries.assign(tokens=counted)), None)
        assert found.load.documents == run.queries["pairs"].mean()
        assert found.load.document_tokens == pytest.approx(expected, nan_ok=True)
        assert found.estimated == np.isnan(expected)


def test_a_search_of_a_run_sends_as_many_documents_as_it_scored(make_dataset):
    dataset = make_dataset(queries=3)
    run = go(dataset, Stub({"q1": failed("no")}), depth=2)
    for each, sizes in ((None, [5, 5]), (run, [2, 2])):
        assert estimated_searches(dataset, run.ranking, each, {}).sizes.tolist() == sizes
