"""The page Run without its widgets: what a run would take, what it is called, what it recorded."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from rankdash.errors import DataError
from rankdash.ranking.measured import Measured
from rankdash.rerankers.defaults import Preselection, Workload
from rankdash.runs.jobs import Timing
from rankdash.ui.run import (
    cache_panel,
    combine_form,
    run_details,
    run_estimate,
    run_form,
    run_list,
    timing_form,
    variants_form,
)
from rankdash.ui.run.run_estimate import FormPlan
from rankdash.ui.runs import settings_form
from rankdash.ui.runs.run_records import Record

PLAN = FormPlan(depth=None, sample=None, queries=4, pairs=40)
COUNTS = np.array([10, 10, 2, 18])


def row(**changes: object) -> SimpleNamespace:
    usual = {
        "id": "a", "name": "A", "reranker": "bm25", "settings": {}, "pairs_per_second": 10.0,
        "queries_done": 40, "load_ms": 2000.0, "p50_ms": 5.0,
    }  # fmt: skip
    return SimpleNamespace(**(usual | changes))


@pytest.fixture
def known(monkeypatch):
    """The runs of the workspace, as the form knows them."""

    def of(*rows: SimpleNamespace, machines: dict[str, dict[str, str]] | None = None) -> None:
        store = SimpleNamespace(runs=lambda *_a: rows)
        for module in (run_estimate, cache_panel, run_list):
            monkeypatch.setattr(module, "workspace", lambda: store)
        monkeypatch.setattr(
            run_estimate.run_records, "record",
            lambda each: SimpleNamespace(machine=(machines or {}).get(each, {})),
        )  # fmt: skip

    return of


@pytest.mark.parametrize(
    ("rows", "queries", "seconds"),
    [
        ([], 4, None),
        ([row()], 4, 6.0),
        ([row(load_ms=math.nan)], 4, 4.0),
        ([row(pairs_per_second=None)], 4, None),
        # The run over the most queries tells the pace; too few tell none, unless all were asked.
        ([row(queries_done=40), row(queries_done=30, pairs_per_second=1.0)], 4, 6.0),
        ([row(queries_done=30)], 100, 6.0),
        ([row(queries_done=29)], 100, None),
        ([row(queries_done=4)], 4, 6.0),
        ([row(reranker="bi-encoder")], 4, None),
        ([row(settings={"model": "large"})], 4, None),
    ],
)
def test_how_long_a_run_takes_is_told_by_one_like_it(known, rows, queries, seconds):
    known(*rows)
    plan = FormPlan(None, None, queries, 40)
    assert run_estimate.measured_seconds("bm25", {}, plan) == seconds


def test_what_another_machine_took_tells_nothing(known):
    known(row(), machines={"a": {run_estimate.SHIPPED_WITH: "sample"}})
    assert run_estimate.measured_seconds("bm25", {}, PLAN) is None


@pytest.mark.parametrize(
    ("rows", "chosen", "seconds"),
    [
        ([row(p50_ms=5.0), row(p50_ms=20.0)], ["bm25"], 0.02),
        ([row(p50_ms=0.0)], ["bm25"], None),
        ([row(p50_ms=math.nan)], ["bm25"], None),
        ([row(p50_ms=5.0)], ["bm25", "bi-encoder"], None),
        ([row(p50_ms=5.0), row(p50_ms=30.0, reranker="bi-encoder")], ["bm25", "bi-encoder"], 0.03),
    ],
)
def test_a_latency_is_known_where_each_chosen_reranker_has_one(known, rows, chosen, seconds):
    known(*rows)
    assert run_estimate.latency_seconds(chosen, {name: {} for name in chosen}) == seconds


@pytest.mark.parametrize(
    ("together", "latency", "queries", "timed"),
    [
        (False, "never", 100, 100),
        (True, "never", 100, 0),
        (True, "auto", 10, 5),
        (True, "always", 1, 1),
        (True, "auto", 100_000, Timing().sample),
        (None, "auto", 10, 5),
    ],
)
def test_how_many_queries_are_timed_one_at_a_time(together, latency, queries, timed):
    def able(_settings):
        if together is None:
            raise DataError("No.")
        return SimpleNamespace(across_queries=together)

    plan = FormPlan(None, None, queries, 1)
    assert run_form._timed(SimpleNamespace(able=able), {}, plan, latency) == timed


@pytest.mark.parametrize(
    ("depth", "queries", "pairs"), [(None, 4, 40), (5, 4, 17), (5, 2, 8), (100, 4, 40)]
)
def test_a_variant_of_another_depth_has_its_own_pairs(monkeypatch, depth, queries, pairs):
    monkeypatch.setattr(run_form, "_counts", lambda _id: COUNTS)
    plan = FormPlan(depth=7, sample=None, queries=queries, pairs=99)
    found = run_form._plan_of("shop", plan, SimpleNamespace(depth=depth))
    assert (found.depth, found.pairs, found.queries) == (depth, pairs, queries)
    assert run_form._plan_of("shop", plan, SimpleNamespace(depth=7)) is plan


@pytest.mark.parametrize(
    ("depth", "sample", "plan"),
    [
        (18, 4, FormPlan(None, None, 4, 40)),
        (17, 4, FormPlan(17, None, 4, 39)),
        (5, 2, FormPlan(5, 2, 2, 8)),
        (18, 3, FormPlan(None, 3, 3, 30)),
    ],
)
def test_all_candidates_and_all_queries_are_no_limit(paper, monkeypatch, depth, sample, plan):
    monkeypatch.setattr(run_form, "_counts", lambda _id: COUNTS)
    answers, offered = iter([depth, sample]), []
    columns = [
        SimpleNamespace(
            slider=lambda *_a, **_k: next(answers), button=lambda label, **_k: offered.append(label)
        )
    ] * 2
    monkeypatch.setattr(run_form, "st", SimpleNamespace(columns=lambda _n: columns))
    assert run_form._plan("shop", Preselection(("bm25",), False, 3), ["bm25"]) == plan
    assert offered == ([] if sample == 4 else ["All 4 queries"])


WORK = Workload(COUNTS, 40, 50.0, 400.0)


def wish(seconds: float | None, pairs: int = 40, *, network: bool = False) -> SimpleNamespace:
    return SimpleNamespace(
        kind=SimpleNamespace(
            name="bm25", able=lambda _settings: SimpleNamespace(needs_network=network)
        ),
        variant=SimpleNamespace(settings={"seconds": seconds}),
        plan=FormPlan(None, None, 4, pairs),
    )


FREE = "$0: all of it runs on this machine"


@pytest.mark.parametrize(
    ("wishes", "like", "said"),
    [
        ([wish(1.0)], True, ["about 40 pairs for each reranker", "about 1.0 s on this machine",
                             FREE]),
        ([wish(1.0), wish(2.0, 60)], True, ["about 100 pairs in all",
                                            "about 3.0 s on this machine", FREE]),
        ([wish(1.0), wish(None)], True, ["about 40 pairs for each reranker", "about 1.0 s on this "
         "machine, plus the rerankers that have not run here", FREE]),
        ([wish(None)], True, ["about 40 pairs for each reranker",
                              "time not known yet: too little has run here to estimate it", FREE]),
        ([wish(None, network=True)], False, [
            "about 40 pairs for each reranker",
            "time not known yet: no reranker of this kind has run here"]),
    ],
)  # fmt: skip
def test_the_estimate_says_what_is_known_of_pairs_time_and_price(
    paper, monkeypatch, wishes, like, said
):
    monkeypatch.setattr(
        run_estimate, "measured_seconds", lambda _n, settings, _p: settings["seconds"]
    )
    monkeypatch.setattr(run_estimate, "_like", lambda *_a: [1] if like else [])
    monkeypatch.setattr(run_estimate, "_workload", lambda _id: WORK)
    drawn = paper(run_estimate)
    run_estimate.say_total("shop", wishes)
    [line] = drawn.of("caption")
    assert line.split(" · ")[0] == "4 queries"
    assert [each.replace("1 s", "1.0 s").replace("3 s", "3.0 s").replace("1.0.0", "1.0")
            for each in line.split(" · ")[1:]] == said  # fmt: skip
    run_estimate.say_total("shop", [])
    assert len(drawn.drawn) == 1


def test_a_packaged_model_that_has_not_run_here_has_an_estimate_for_two_cores(paper, monkeypatch):
    monkeypatch.setattr(run_estimate, "measured_seconds", lambda *_a: None)
    monkeypatch.setattr(run_estimate, "_workload", lambda _id: WORK)
    monkeypatch.setattr(
        run_estimate.stored, "dataset",
        lambda _id: SimpleNamespace(candidates=SimpleNamespace(query_ids=list("abcdefgh"))),
    )  # fmt: skip
    wanted = wish(None)
    wanted.kind.name = "cross-encoder"
    wanted.variant.settings = {"model": "packaged/ms-marco-MiniLM-L12-v2"}
    wanted.plan = FormPlan(None, 4, 4, 40)
    drawn = paper(run_estimate)
    run_estimate.say_total("shop", [wanted])
    wanted.variant.settings = {"model": "BAAI/bge-reranker-v2-m3"}
    run_estimate.say_total("shop", [wanted])
    lines = [line.split(" · ") for line in drawn.of("caption")]
    assert [line[0] for line in lines] == ["on 4 of 8 queries"] * 2
    # 40 pairs of 450 tokens at 3,600 tokens a second.
    assert lines[0][2] == "about 10 s on two processor cores; not measured on this machine yet"
    assert lines[1][2].startswith("time not known yet")


@pytest.mark.parametrize(
    ("latency", "network", "found"),
    [("auto", False, "always"), ("auto", True, "auto"), ("never", False, "never")],
)
def test_variants_that_share_scores_are_timed_all_the_same(latency, network, found):
    timing = run_form._timing_of(wish(1.0, network=network), Timing(latency=latency))
    assert timing.latency == found


@pytest.mark.parametrize(
    ("size", "said"),
    [(0, "0"), (1, "0.1"), (104_858, "0.2"), (1024 * 1024, "1.0"), (10 * 1024 * 1024, "10"),
     (10 * 1024 * 1024 + 1, "10")],
)  # fmt: skip
def test_a_size_is_rounded_up_so_that_something_is_not_nothing(size, said):
    assert cache_panel._megabytes(size) == said


def test_scoring_again_takes_as_long_as_the_slowest_run_did(known):
    known(row(pairs_per_second=10.0), row(pairs_per_second=5.0), row(pairs_per_second=None))
    said = cache_panel._cost(100)
    assert said[0].startswith("100 pairs have to be scored again")
    assert "20" in said[1] and len(said) == 3
    known(row(pairs_per_second=None))
    assert len(cache_panel._cost(1)) == 2


@pytest.mark.parametrize(
    ("maximum", "step"), [(None, 0.01), (1.0, 0.01), (99.0, 0.01), (100.0, 1.0)]
)
def test_a_setting_of_large_numbers_goes_in_whole_steps(maximum, step):
    assert settings_form._step(SimpleNamespace(maximum=maximum)) == step


def test_a_bound_is_whole_where_the_setting_is():
    assert settings_form._bound(None, True) is None
    assert isinstance(settings_form._bound(0.0, True), int)
    assert isinstance(settings_form._bound(2, False), float)
    assert settings_form._bound(0.0, False) == 0.0


def test_repeats_are_counted_beyond_the_first_and_their_time_where_it_is_known():
    assert timing_form._again(1, None) == "Repeats ask each reranker for up to 1 query more."
    said = timing_form._again(20, 0.5)
    assert said.startswith("Repeats ask each reranker for up to 20 queries more. Here that took ")
    assert "10" in said


@pytest.mark.parametrize(("method", "name"), [("rrf", "Fused (RRF)"), ("z", "Fused (z-scores)"),
                                              ("minmax", "Fused (Scores 0–1)")])  # fmt: skip
def test_a_fused_run_is_called_by_its_method(method, name):
    assert combine_form._usual_name(method) == name


# What a run recorded.


def times(**measured: object) -> list[str]:
    load = measured.pop("load_ms", math.nan)
    run = SimpleNamespace(
        measured=Measured(**measured), load_ms=load, settings={}, shipped=False, reranker="bm25",
        machine={}, created="",
    )  # fmt: skip
    return list(run_details._times(run))


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        ({}, ["No query was timed alone, so its latency is not known."]),
        ({"scored_pairs": 3, "serial_queries": 2, "repeats": 3}, [
            "3 pairs were scored, none came from the score cache.",
            "2 queries were timed alone and warm, 3 times each."]),
        ({"scored_pairs": 3, "cached_pairs": 1}, [
            "1 of 4 pairs came from the score cache; they are not included in the times below.",
            "No query was timed alone, so its latency is not known."]),
        ({"pairs": 30, "seconds": 3.0, "together": 1}, [
            "No query was timed alone, so its latency is not known.",
            "Throughput: 10.0 pairs a second, one query at a time."]),
        ({"pairs": 30, "seconds": 3.0, "together": 2}, [
            "No query was timed alone, so its latency is not known.",
            "Throughput: 10.0 pairs a second, up to 2 queries together."]),
    ],
)  # fmt: skip
def test_what_was_timed_is_said_in_numbers(monkeypatch, measured, said):
    monkeypatch.setattr(run_details, "where_measured", lambda _run: "")
    assert times(**measured) == said


def test_a_cold_start_has_its_first_call_where_it_was_timed(monkeypatch):
    monkeypatch.setattr(run_details, "where_measured", lambda _run: "")
    assert times(load_ms=2000.0, first_call_ms=500.0)[0].count(" for the first call") == 1
    assert "first call" not in times(load_ms=2000.0)[0]
    assert times(load_ms=2000.0)[0].startswith("Cold start: 2")


@pytest.mark.parametrize(
    ("machine", "settings", "said"),
    [
        ({}, {}, []),
        ({"runtime": "onnx"}, {}, ["Computed by onnx on cpu."]),
        ({"runtime": "onnx", "device": "cuda"}, {}, [
            "Computed by onnx on cuda.", "There is a graphics card, which auto prefers."]),
        ({"runtime": "onnx", "device": "cuda"}, {"runtime": "onnx"}, [
            "Computed by onnx on cuda.", "It is set in the settings."]),
        ({"second_runtime": "int8", "second_note": "A note.", "note": "Another."}, {}, [
            "The second stage was computed by int8 on cpu.", "A note\\."]),
    ],
)  # fmt: skip
def test_what_computed_a_run_is_said_for_each_stage(machine, settings, said):
    run = SimpleNamespace(settings=settings)
    found = list(run_details._computed(Record(machine, None), run))
    assert found == said


@pytest.mark.parametrize(
    ("states", "listed"),
    [(["done", "skipped"], []), (["failed", "done", "failed"], ["q0", "q2"])],
)
def test_failed_queries_are_listed_with_their_reasons(paper, states, listed):
    queries = pd.DataFrame({"query_id": [f"q{n}" for n in range(len(states))], "state": states,
                            "reason": "no connection"})  # fmt: skip
    drawn = paper(run_details)
    run_details._failures(SimpleNamespace(queries=queries))
    tables = drawn.of("dataframe")
    assert [each for table in tables for each in table["query"]] == listed
    assert [text.partition(";")[0] for text in drawn.of("markdown")] == (
        ["2 queries failed"] if listed else []
    )


@pytest.mark.parametrize(
    ("notes", "pinned", "said"),
    [
        ({}, "other", []),
        ({"a": 1, "z": 1}, "other", ["1 note goes with it."]),
        ({"a": 1, "b": 1}, "b", ["2 notes go with them.",
         "The pinned baseline is deleted too; the first stage replaces it."]),
    ],
)  # fmt: skip
def test_what_goes_with_runs_that_are_deleted(monkeypatch, notes, pinned, said):
    monkeypatch.setattr(run_list, "workspace", lambda: None)
    monkeypatch.setattr(run_list, "RunNotes", lambda _store: SimpleNamespace(all=lambda _id: notes))
    monkeypatch.setattr(run_list, "Pins", lambda _store: SimpleNamespace(of=lambda _id: pinned))
    chosen = [SimpleNamespace(id=each, name=each.upper(), dataset_id="s") for each in "ab"]
    found = run_list._what_goes(chosen)
    assert found[0] == "A, B will be deleted permanently."
    assert found[1:] == said


def test_an_estimate_is_over_documents_down_to_the_depth(stored):
    def looked_at(depth):
        seen = []

        def estimate(_settings, requests):
            seen.extend(requests)
            return run_estimate.Estimate(len(requests), 0.0)

        found = run_estimate._estimate(
            stored, SimpleNamespace(estimate=estimate), {}, depth, queries=8
        )
        return found.calls, {len(request.documents) for request in seen}

    assert looked_at(3) == (8, {3})
    assert looked_at(None) == (8, {4})


@pytest.mark.parametrize(
    ("out", "dollars", "said"),
    [
        (0.0, math.nan, ["price not known: type it under More settings"]),
        (50.0, 0.49997, ["100 written", "about \\$0.9999"]),
        (0.0, 0.5, ["about \\$1.00"]),
        (0.0, 0.0, ["about \\$0.0000"]),
    ],
)
def test_an_estimate_of_a_service_is_the_sum_of_its_runs(paper, monkeypatch, out, dollars, said):
    estimate = run_estimate.Estimate(3.0, 120.0, out, dollars)
    monkeypatch.setattr(run_estimate, "cache", lambda _key, _make: estimate)
    place = SimpleNamespace(base_url="https://api.example/v1")
    kind = SimpleNamespace(name="far", title="Far", estimate=True, key=lambda _settings: place)
    drawn = paper(run_estimate)
    run_estimate.say("shop", kind, [({}, None), ({}, 5)], 10)
    [line] = drawn.of("caption")
    first = ["Far", r"about 6 calls to api\.example", "240 tokens read"]
    assert line.split(" · ") == [*first, *said]
    # Without a service, and before a place is typed, nothing is said.
    run_estimate.say("shop", SimpleNamespace(estimate=None, key=None), [({}, None)], 10)
    kind.key = lambda _settings: None
    run_estimate.say("shop", kind, [({}, None)], 10)
    assert len(drawn.drawn) == 1


def test_variants_are_named_by_what_differs():
    kind = SimpleNamespace(settings=[SimpleNamespace(name="k", title="Constant k")])
    variant = SimpleNamespace(differs=(("depth", 5), ("k", 0.25)))
    assert variants_form.words(kind, variant) == ["top 5", "Constant k 0.250"]
