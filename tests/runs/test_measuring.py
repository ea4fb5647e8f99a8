"""Two numbers, never mixed: latency of queries alone, and throughput of blocks; no cache in any."""

import math
import zlib
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.analysis.latency import repeats_deviation, summarize
from rankdash.ranking.measured import Measured
from rankdash.rerankers import Call, Capabilities, Scored
from rankdash.runs.plan import Timing
from rankdash.runs.results import results_from, to_row
from rankdash.runs.runner import Cancelled, rerank
from rankdash.store.jobs.job_batches import read_parts, write_part
from rankdash.store.score_cache import ScoreCache
from tests.runs.clock import Clock

BLOCKS = Capabilities(across_queries=True)
REMOTE = Capabilities(needs_network=True)


class Model:
    """Loads in 500 ms; its first call takes 3 s more, any call 10 ms and each pair 1 ms more.

    A score depends on the texts only. `calls` has the pairs of every call, by query.
    """

    name = "model"
    print = "weights 1"

    def __init__(self, **settings):
        self.settings = settings
        self.clock = Clock()
        self.loaded = 0
        self.calls = []
        self.odd = {}

    def prepare(self, corpus):
        self.loaded += 1
        self.clock.pass_ms(500)

    def fingerprint(self):
        assert self.loaded
        return self.print

    def score(self, requests):
        if not self.calls:
            self.clock.pass_ms(3000)
        self.calls.append({request.query_id: list(request.doc_ids) for request in requests})
        self.clock.pass_ms(10 + sum(len(request.doc_ids) for request in requests))
        return [self.answer(request) for request in requests]

    def answer(self, request):
        if request.query_id in self.odd:
            return self.odd[request.query_id](request)
        values = [zlib.crc32(f"{request.query} {text}".encode()) for text in request.documents]
        size = len(values)
        return Scored(np.array(values) / 7.0, np.full(size, 3), np.full(size, 5))

    @property
    def pairs_scored(self):
        """Of all calls but the warm-up."""
        return sum(len(docs) for call in self.calls[1:] for docs in call.values())


def go(dataset, model, **options):
    options.setdefault("capabilities", BLOCKS)
    return rerank(dataset, model, clock=model.clock, **options)


def same(run, other):
    assert run.ranking.frame().equals(other.ranking.frame())
    for name in ("query_id", "state", "reason", "pairs", "tokens", "truncated"):
        assert run.queries[name].equals(other.queries[name])
    assert run.reading.read.tolist() == other.reading.read.tolist()
    assert run.reading.full.tolist() == other.reading.full.tolist()


# --- the traps of other tools


def test_trap_10_a_failed_call_is_neither_a_zero_score_nor_a_zero_latency(make_dataset):
    model = Model()
    model.odd["q1"] = lambda request: Scored.failed(5, "HTTP 429")
    model.odd["q2"] = lambda request: 1 / 0
    for capabilities in (BLOCKS, Capabilities()):
        run = go(make_dataset(queries=8), model, capabilities=capabilities)
        failed = run.queries.set_index("query_id").loc[["q1", "q2"]]
        assert list(failed["reason"]) == ["HTTP 429", "ZeroDivisionError: division by zero"]
        assert failed["latency_ms"].isna().all()
        assert not {"q1", "q2"} & set(run.ranking.query_ids)
        summary = summarize(run.queries)
        assert summary.n == run.measured.serial_queries >= 2
        assert summary.p50 == pytest.approx(15.0)


def test_traps_15_and_16_the_model_is_made_once_and_its_cold_start_is_in_no_figure(make_dataset):
    model = Model()
    run = go(make_dataset(queries=8), model, timing=Timing(repeats=3))
    assert model.loaded == 1
    assert run.load_ms == pytest.approx(500 + 3000 + 15)
    assert run.measured.first_call_ms == pytest.approx(3015)
    assert set(run.queries["latency_ms"].dropna().round(6)) == {15.0}
    assert run.measured.seconds == pytest.approx(0.010 + 4 * 0.005)


def test_trap_17_throughput_is_measured_and_not_one_over_the_mean_latency(make_dataset):
    run = go(make_dataset(queries=8), Model())
    latency = run.queries["latency_ms"].mean()
    derived = 5 / (latency / 1000)
    # 4 queries of 5 documents in one call.
    assert run.measured.pairs_per_second == pytest.approx(20 / 0.030)
    assert run.measured.pairs_per_second > 1.9 * derived
    assert run.measured.tokens_per_second == pytest.approx(3 * 20 / 0.030)
    assert run.measured.together == 4


def test_where_a_block_fails_the_time_of_each_query_by_itself_counts(make_dataset):
    """50 ms for all eight together, which gave nothing, and 15 ms for each alone."""
    model = Model()
    model.odd["q1"] = lambda request: 1 / 0
    run = go(make_dataset(queries=8), model, timing=Timing(latency="never"))
    assert [len(call) for call in model.calls] == [1, 8] + [1] * 8
    assert run.measured.seconds == pytest.approx(8 * 0.015)
    assert run.measured.pairs == 7 * 5
    assert list(run.queries.loc[run.queries["state"] == "failed", "query_id"]) == ["q1"]
    whole = go(make_dataset(queries=8), Model(), timing=Timing(latency="never"))
    kept = whole.ranking.frame()
    assert run.ranking.frame().equals(kept[kept["query_id"] != "q1"].reset_index(drop=True))


def test_a_query_that_fails_is_not_asked_again_for_its_latency(make_dataset):
    model = Model()
    model.odd["q1"] = lambda request: Scored.failed(5, "HTTP 429")
    one_by_one = Capabilities()
    run = go(make_dataset(queries=3), model, capabilities=one_by_one, timing=Timing(repeats=4))
    asked = [query for call in model.calls[1:] for query in call]
    assert {query: asked.count(query) for query in ("q0", "q1", "q2")} == {
        "q0": 4,
        "q1": 1,
        "q2": 4,
    }
    assert run.measured.serial_seconds == pytest.approx(2 * 4 * 0.015)


# --- latency


def test_half_of_the_queries_at_most_are_timed_alone_and_the_rest_go_together(make_dataset):
    model = Model()
    run = go(make_dataset(queries=9), model)
    timed = set(run.queries["query_id"][run.queries["latency_ms"].notna()])
    assert len(timed) == 4 == run.measured.serial_queries
    alone = [set(call) for call in model.calls[1:] if len(call) == 1]
    assert set().union(*alone) == timed
    again = go(make_dataset(queries=9), Model())
    assert timed == set(again.queries["query_id"][again.queries["latency_ms"].notna()])
    few = go(make_dataset(queries=9), Model(), timing=Timing(sample=2))
    assert set(few.queries["query_id"][few.queries["latency_ms"].notna()]) < timed
    every = go(make_dataset(queries=9), Model(), timing=Timing(latency="every", sample=2))
    assert every.queries["latency_ms"].notna().all()
    assert every.measured.serial_queries == 9
    none = go(make_dataset(queries=9), Model(), timing=Timing(latency="never"))
    assert none.queries["latency_ms"].isna().all()
    assert none.measured.serial_seconds == 0.0
    same(run, none)


def test_a_repeated_query_has_the_median_of_its_latencies(make_dataset):
    model = Model()

    def stalls(request):
        model.clock.pass_ms(40 if len(model.calls) == 3 else 0)
        del model.odd["q0"]
        answer = model.answer(request)
        model.odd["q0"] = stalls
        return answer

    model.odd["q0"] = stalls
    run = go(make_dataset(queries=1), model, timing=Timing(repeats=3), capabilities=Capabilities())
    assert len(model.calls) == 1 + 3
    assert run.queries["latency_ms"][0] == pytest.approx(15.0)
    assert sorted(run.measured.repeated_ms["q0"]) == pytest.approx([15.0, 15.0, 55.0])
    assert repeats_deviation(run) == pytest.approx(1600**0.5 / 3**0.5)
    assert not go(make_dataset(queries=1), Model()).measured.repeated_ms
    # Repeats are for the latency; the throughput is that of what was asked for.
    assert run.measured.pairs == 5
    assert run.measured.serial_seconds == pytest.approx(0.085)


# --- blocks


def test_blocks_take_about_a_second_and_follow_the_pace(make_dataset):
    model = Model()
    sizes = []
    go(
        make_dataset(queries=900),
        model,
        timing=Timing(latency="never"),
        on_batch=lambda batch: sizes.append(len(batch)),
    )
    assert sizes[:4] == [10, 20, 40, 80]
    # 1,000 pairs a second less the overhead of a call.
    assert all(180 <= size <= 200 for size in sizes[5:-1])
    assert sum(sizes) == 900


def test_blocks_of_what_costs_no_time_double_up_to_the_largest(make_dataset):
    dataset, sizes = make_dataset(queries=4000, documents=1, depth=1), []
    options = {"timing": Timing(latency="never"), "capabilities": BLOCKS, "clock": int}
    rerank(dataset, Model(), on_batch=lambda batch: sizes.append(len(batch)), **options)
    assert sizes[:3] == [10, 20, 40]
    assert (max(sizes), sum(sizes)) == (1024, 4000)


def test_a_slow_model_gets_a_query_at_a_time(make_dataset):
    model = Model()
    model.answer = lambda request: (
        model.clock.pass_ms(2000) or Scored(np.arange(float(len(request.doc_ids))))
    )
    sizes = []
    go(make_dataset(queries=12), model, on_batch=lambda batch: sizes.append(len(batch)))
    assert set(sizes) == {1}


def test_a_reranker_that_answers_too_few_of_a_block_is_asked_one_by_one(make_dataset):
    class Short(Model):
        def score(self, requests):
            return super().score(requests)[: 1 if len(requests) == 1 else -1]

    same(go(make_dataset(queries=8), Short()), go(make_dataset(queries=8), Model()))


# --- the cache


def test_a_second_run_of_the_same_pairs_costs_no_model_time(make_dataset, workspace):
    cache, dataset = workspace.score_cache, make_dataset(queries=8)
    first = go(dataset, Model(), cache=cache)
    assert (first.measured.scored_pairs, first.measured.cached_pairs) == (40, 0)
    assert cache.pairs == 40
    model = Model()
    second = go(dataset, model, cache=cache)
    same(first, second)
    assert model.calls == []
    assert (second.measured.scored_pairs, second.measured.cached_pairs) == (0, 40)
    # Nothing was measured, and nothing is not zero.
    assert second.queries["latency_ms"].isna().all()
    assert math.isnan(second.measured.pairs_per_second)
    assert math.isnan(second.measured.first_call_ms) and math.isnan(second.measured.computed_tokens)
    assert second.load_ms == pytest.approx(500)


def test_throughput_counts_the_tokens_that_were_computed(make_dataset):
    """A model that encoded its documents before reads the query alone."""
    model = Model()
    answer = model.answer
    model.answer = lambda request: replace(answer(request), computed_tokens=4.0)
    run = go(make_dataset(queries=8), model, timing=Timing(latency="never"))
    assert run.measured.computed_tokens == 4 * 8
    assert run.queries["tokens"].sum() > 4 * 8


def test_a_changed_depth_scores_only_the_new_pairs(make_dataset, workspace):
    cache, dataset = workspace.score_cache, make_dataset(queries=8)
    go(dataset, Model(), depth=3, cache=cache)
    model = Model()
    deeper = go(dataset, model, depth=5, cache=cache)
    assert model.pairs_scored == 8 * 2
    assert (deeper.measured.scored_pairs, deeper.measured.cached_pairs) == (16, 24)
    same(deeper, go(dataset, Model(), depth=5))
    # The time of two pairs is not the latency of a query with five documents.
    assert deeper.queries["latency_ms"].isna().all()
    assert deeper.measured.pairs == 16
    shallower = Model()
    same(go(dataset, shallower, depth=2, cache=cache), go(dataset, Model(), depth=2))
    assert shallower.calls == []


def test_a_query_that_is_cached_in_part_has_no_latency(make_dataset, workspace):
    """A model that is asked for one query at a time times each, but for half a query."""
    cache, dataset, one_by_one = workspace.score_cache, make_dataset(queries=4), Capabilities()
    go(dataset, Model(), depth=3, cache=cache, query_ids=["q0", "q1"])
    run = go(dataset, Model(), depth=5, cache=cache, capabilities=one_by_one)
    assert (run.measured.scored_pairs, run.measured.cached_pairs) == (14, 6)
    assert run.measured.serial_queries == 2
    latencies = dict(zip(run.queries["query_id"], run.queries["latency_ms"], strict=True))
    assert latencies == pytest.approx(
        {"q0": math.nan, "q1": math.nan, "q2": 15.0, "q3": 15.0}, nan_ok=True
    )


ONE_BY_ONE = Capabilities()


@pytest.mark.parametrize(
    ("capabilities", "timing", "again"),
    [
        (BLOCKS, Timing(latency="always"), 4),
        (BLOCKS, Timing(latency="always", sample=3), 3),
        (ONE_BY_ONE, Timing(latency="always"), 8),
        (ONE_BY_ONE, Timing(latency="always", sample=3), 3),
        (BLOCKS, Timing(latency="every", sample=3), 8),
        (ONE_BY_ONE, Timing(latency="every", sample=3), 8),
    ],
)
def test_cached_scores_are_scored_again_where_the_job_asks_for_the_latency(
    make_dataset, workspace, capabilities, timing, again
):
    """Of the sample, and of half where blocks need the rest; or of every query."""
    options = {"cache": workspace.score_cache, "capabilities": capabilities}
    dataset, model = make_dataset(queries=8), Model()
    first = go(dataset, Model(), **options)
    timed = go(dataset, model, timing=timing, **options)
    same(first, timed)
    assert timed.queries["latency_ms"].notna().sum() == timed.measured.serial_queries == again
    assert model.pairs_scored == again * 5
    assert timed.measured.cached_pairs == (8 - again) * 5


def test_only_what_hangs_on_pair_and_fingerprint_is_kept_and_another_one_finds_nothing(
    make_dataset, workspace
):
    cache, nameless = workspace.score_cache, Model()
    nameless.print = ""
    go(make_dataset(), nameless, cache=cache)
    go(make_dataset(), Model(), cache=cache, capabilities=Capabilities(deterministic=False))
    assert cache.pairs == 0
    go(make_dataset(), Model(), cache=cache)
    other = Model()
    other.print = "weights 2"
    go(make_dataset(), other, cache=cache)
    assert other.pairs_scored == 6 * 5


@settings(max_examples=25)
@given(data=st.data())
def test_depths_caches_and_kills_in_any_order_end_like_an_unbroken_run(
    make_dataset, tmp_path_factory, data
):
    dataset = make_dataset(queries=10, documents=8, depth=6)
    cache = ScoreCache(tmp_path_factory.mktemp("cache") / "scores.sqlite")
    failing = data.draw(st.sets(st.sampled_from([f"q{n}" for n in range(10)]), max_size=3))

    def model():
        made = Model()
        made.odd = dict.fromkeys(failing, lambda request: Scored.failed(len(request.doc_ids), "no"))
        return made

    for _ in range(data.draw(st.integers(1, 4))):
        depth, stop = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 12))
        timing = Timing(latency=data.draw(st.sampled_from(["auto", "always", "never"])))
        options = {"depth": depth, "cache": cache, "timing": timing}
        first, second, kept = model(), model(), []
        with suppress(Cancelled):
            go(
                dataset,
                first,
                on_batch=kept.extend,
                cancelled=lambda first=first, stop=stop: len(first.calls) > stop,
                **options,
            )
        run = go(dataset, second, done=kept, **options)
        whole = go(dataset, model(), depth=depth)
        same(run, whole)
        assert run.id == whole.id
        done = {result.query_id for result in kept if result.state == "done"}
        assert not done & {query for call in second.calls[1:] for query in call}
        measured = run.measured
        assert measured.scored_pairs + measured.cached_pairs == (10 - len(failing)) * depth
        # What failed is not kept.
        assert cache.pairs <= (10 - len(failing)) * 6


# --- calls to other machines


class Service(Model):
    """Takes 200 ms for a query, 50 of it to wait for a second try; q3 fails for good."""

    def score(self, requests):
        self.calls.append({request.query_id: list(request.doc_ids) for request in requests})
        answers = []
        for request in requests:
            start = self.clock.now / 1e9
            self.clock.pass_ms(200)
            if request.query_id == "q3":
                call = Call(start, self.clock.now / 1e9, attempts=3, status=503, error="HTTP 503")
                answers.append(Scored.failed(len(request.doc_ids), "HTTP 503", (call,)))
                continue
            billed = {"search_units": 1.0}
            call = Call(start, self.clock.now / 1e9, 2, 0.05, 200, billed, server_ms=90.0)
            answers.append(Scored(np.arange(float(len(request.doc_ids))), calls=(call,)))
        return answers


class Overlapping(Service):
    """Sends each document in a call of its own, all at once: 200 ms, of which one waits 100 to try
    again and the others 40."""

    def score(self, requests):
        (request,) = requests
        start = self.clock.now / 1e9
        self.clock.pass_ms(200)
        waits = [0.1, *[0.04] * (len(request.doc_ids) - 1)]
        calls = tuple(Call(start, self.clock.now / 1e9, 2, wait) for wait in waits)
        return [Scored(np.arange(float(len(request.doc_ids))), calls=calls)]


def test_waits_that_overlap_are_taken_off_no_more_than_the_longest_call_leaves(make_dataset):
    """The waits add up to 260 ms, more than the query took; one call was at work for 160."""
    run = go(make_dataset(queries=3), Overlapping(), capabilities=REMOTE)
    assert run.queries["latency_ms"].dropna().to_numpy() == pytest.approx([160.0, 160.0])


def test_a_paid_call_is_made_once_and_the_first_is_no_latency(make_dataset, workspace):
    service = Service()
    batches = []
    run = go(make_dataset(queries=5), service, capabilities=REMOTE, on_batch=batches.append)
    assert [list(call) for call in service.calls] == [[f"q{n}"] for n in range(5)]
    latencies = run.queries.set_index("query_id")["latency_ms"]
    # Waiting to try again is the user's time, not the service's; it stands with the call.
    assert latencies[["q1", "q2", "q4"]].to_numpy() == pytest.approx(150.0)
    assert latencies[["q0", "q3"]].isna().all()
    assert run.measured.first_call_ms == pytest.approx(200.0)
    calls = run.calls.set_index("query_id")
    assert list(calls.index) == [f"q{n}" for n in range(5)]
    assert calls["retry_wait_ms"].drop("q3").to_numpy() == pytest.approx(50.0)
    assert calls.loc["q3", "error"] == "HTTP 503"
    assert calls.loc["q3", "ms"] == pytest.approx(200.0)
    assert calls.loc["q0", "billed"] == '{"search_units": 1.0}'
    assert not run.measured.contended

    # What a worker keeps of them comes back.
    results = [result for batch in batches for result in batch]
    write_part(workspace, "job", [to_row(result) for result in results])
    kept = results_from(read_parts(workspace, "job"))
    assert repr([result.calls for result in kept]) == repr([r.calls for r in results])


def test_repeats_are_kept_with_the_batches_of_an_unfinished_job(make_dataset, workspace):
    batches = []
    run = go(make_dataset(queries=4), Model(), timing=Timing(latency="every", repeats=2),
             on_batch=batches.append)  # fmt: skip
    write_part(workspace, "job", [to_row(result) for batch in batches for result in batch])
    kept = {each.query_id: each for each in results_from(read_parts(workspace, "job"))}
    resumed = go(make_dataset(queries=4), Model(), done=kept.values())
    assert set(run.measured.repeated_ms) == {"q0", "q1", "q2", "q3"}
    assert resumed.measured.repeated_ms == run.measured.repeated_ms


@pytest.mark.parametrize(("allowed", "blocks"), [(4, [5, 5]), (8, [8, 2])])
def test_a_block_keeps_as_many_requests_under_way_as_are_allowed(make_dataset, allowed, blocks):
    service = Service(concurrency=allowed)
    remote = Capabilities(needs_network=True, across_queries=True)
    run = go(make_dataset(queries=20), service, capabilities=remote)
    # Half of the queries alone for their latency; then what takes a second, and no fewer.
    assert list(map(len, service.calls)) == [1] * 10 + blocks
    assert sum(map(len, service.calls)) == 20
    alone = {query for call in service.calls[1:] if len(call) == 1 for query in call}
    timed = run.queries["query_id"][run.queries["latency_ms"].notna()]
    assert set(timed) == alone - {"q3"}
    assert len(run.calls) == 20


# --- what is asked for


def test_a_contended_measurement_is_marked(make_dataset):
    class TwoThreads(Model):
        threads = 2

        def score(self, requests):
            self.clock.pass_ms(1000)
            return super().score(requests)

    def used(share):
        model = TwoThreads()
        run = go(make_dataset(), model, cpu_clock=lambda: share * model.clock.now)
        return run.measured

    assert used(1.0).contended
    assert used(1.0).cpu_per_wall == pytest.approx(1.0)
    assert not used(1.9).contended
    assert used(1.9).threads == 2
    # What took less than a second is never called so.
    for seconds, contended in ((0.6, True), (0.015, False)):
        spent = {"seconds": seconds, "cpu_seconds": 0.2 * seconds}
        made = Measured(pairs=8, serial_seconds=0.5, threads=2, **spent)
        assert made.contended == contended
