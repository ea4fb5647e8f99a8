"""The leaderboard: its order, what it says of failed, untimed and foreign systems, and who is
Pareto-optimal."""

import math
from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from rankdash.dataset import Dataset
from rankdash.loading import load
from rankdash.ranking.measured import Measured
from rankdash.ranking.ranking import Ranking, Run
from rankdash.readers import Source
from rankdash.reporting.leaderboard import lines, notes
from rankdash.rerankers.fusion import Fusion
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.runs.combining import CombinedRun, fuse
from rankdash.study import leaderboard as board_of
from rankdash.study.leaderboard import best_challenger, standings, usual_axis
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money, systems_of
from rankdash.value.billing import Price
from rankdash.value.price_list import ListedPrice

QUERIES, DOCS = 20, 4
DATA = "query_id,query,doc_id,document,label,score\n" + "".join(
    f"q{q},text {q},d{d},document {d},{int(d == 2)},{DOCS - d}\n"
    for q in range(QUERIES)
    for d in range(DOCS)
)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load([Source("rows.csv", DATA.encode())]).dataset


def run(
    data: Dataset, name: str, rank: int, *, ms: float = math.nan, failed: int = 0, kind: str = ""
) -> Run:
    """Every relevant document at one rank; the last queries failed."""
    others = [f"d{d}" for d in range(DOCS) if d != 2]
    lists = [
        (f"q{q}", [*others[: rank - 1], "d2", *others[rank - 1 :]], [4.0, 3.0, 2.0, 1.0])
        for q in range(QUERIES)
    ]
    made = run_from_ranking(name, data.id, Ranking.from_lists(lists), f"{name}.trec")
    queries = made.queries.assign(latency_ms=ms)
    lost = queries.index >= QUERIES - failed
    queries.loc[lost, ["state", "reason"]] = ["failed", "time-out"]
    queries.loc[lost, "latency_ms"] = np.nan
    kept = Ranking.from_lists(lists[: QUERIES - failed])
    return replace(made, queries=queries, ranking=kept, reranker=kind or made.reranker)


def study(data: Dataset, runs: list[Run], **changes: object) -> Study:
    systems = systems_of(data, runs)
    given = {"baseline": FIRST_STAGE, "challengers": tuple(each.id for each in runs)}
    return Study(data, systems, metric="mrr", **(given | changes))


def listed(amount: float, currency: str = "USD") -> ListedPrice:
    return ListedPrice("own", "Mine", "", Price(amount, "search", currency), "", date(2026, 11, 1))


def board(of: Study) -> dict[str, object]:
    return {of.name(row.system): row for row in standings(of)}


def test_the_best_comes_first_and_the_baseline_stands_among_the_others(data):
    of = study(data, [run(data, "worse", 4), run(data, "best", 1), run(data, "better", 2)])
    rows = standings(of)
    assert [of.name(row.system) for row in rows] == ["best", "better", "First stage", "worse"]
    assert [row.kind for row in rows] == ["better", "better", "baseline", "worse"]
    assert of.name(best_challenger(of)) == "best"
    for row in rows:
        compared = of.comparison.row(row.system, of.spec)
        assert (row.mean, row.low, row.high) == of.mean(row.system)
        assert (row.helped, row.hurt) == (compared["helped"], compared["hurt"])
        if row.kind == "baseline":
            assert math.isnan(row.delta)
        else:
            assert (row.delta, row.delta_low, row.delta_high) == (
                *(compared[name] for name in ("delta", "delta_low", "delta_high")),
            )


def test_without_a_challenger_there_is_the_baseline_alone(data):
    of = study(data, [])
    assert [row.kind for row in standings(of)] == ["baseline"]
    assert best_challenger(of) is None


@pytest.mark.parametrize(("answered", "first"), [(7, "hasty"), (6, "steady")])
def test_a_system_that_answered_too_few_queries_stands_last_and_is_not_pareto_optimal(
    data, answered, first
):
    hasty = run(data, "hasty", 1, ms=1.0, failed=QUERIES - answered)
    of = study(data, [run(data, "steady", 2, ms=9.0), hasty])
    rows = board(of)
    assert of.name(best_challenger(of)) == next(iter(rows)) == first
    assert rows["hasty"].mean == 1
    assert (rows["hasty"].n, rows["hasty"].failed) == (answered, QUERIES - answered)
    assert rows["hasty"].pareto["p95"] is (True if first == "hasty" else None)
    assert rows["steady"].pareto["p95"] is (first == "steady")


def test_nothing_is_pareto_optimal_alone(data):
    """With too few queries, or where nothing is known of the others."""
    few = study(data, [run(data, "few", 1, ms=1.0, failed=QUERIES - 5)])
    assert [row.pareto["p95"] for row in standings(few)] == [None, None]
    untimed = study(data, [run(data, "untimed", 1)])
    assert [row.pareto["p95"] for row in standings(untimed)] == [None, None]


def test_where_every_query_failed_there_is_no_mean_and_no_zero(data):
    of = study(data, [run(data, "better", 2), run(data, "lost", 1, failed=QUERIES)])
    *_others, last = standings(of)
    assert of.name(last.system) == "lost"
    assert math.isnan(last.mean)
    assert math.isnan(last.delta)
    assert last.pareto == {"p95": None, "cost": None}


def test_what_is_not_known_of_a_system_decides_nothing(data):
    fast, slow = run(data, "fast", 2, ms=5.0), run(data, "slow", 3, ms=50.0)
    best, foreign = run(data, "untimed", 1), run(data, "foreign", 2, ms=7.0)
    prices = {fast.id: listed(3.0), slow.id: listed(1.0), best.id: listed(9.0)}
    prices[foreign.id] = listed(0.1, "EUR")
    of = study(data, [fast, slow, best, foreign], money=Money(prices=prices))
    rows = board(of)
    assert [rows[name].p95 for name in ("First stage", "fast", "untimed")] == [0.0, 5.0, None]
    taken = {name: row.per_thousand for name, row in rows.items()}
    assert taken == {
        "untimed": 9.0, "fast": 3.0, "foreign": None, "First stage": 0.0, "slow": 1.0
    }  # fmt: skip
    assert rows["foreign"].cost.lack == "rate"
    assert rows["First stage"].cost is None
    optimal = {name: tuple(row.pareto.values()) for name, row in rows.items()}
    assert optimal == {
        "untimed": (None, True),
        "fast": (True, True),
        "foreign": (False, None),
        "First stage": (True, True),
        # As good as the first stage, which takes nothing.
        "slow": (False, False),
    }


def test_the_table_is_made_once_and_each_system_billed_once(data, monkeypatch):
    billed = []
    monkeypatch.setattr(board_of, "bill", lambda of, system: billed.append(system))
    of = study(data, [run(data, "fast", 2), run(data, "slow", 3)])
    assert standings(of) is standings(of)
    assert sorted(billed) == sorted(of.chosen)
    # Other prices make another study.
    assert standings(replace(of, money=Money())) is not standings(of)


def test_a_query_that_was_not_asked_for_has_not_failed(data):
    quick = run(data, "quick", 1, failed=6)
    states = quick.queries["state"].mask(quick.queries.index >= QUERIES - 2, "skipped")
    quick = replace(quick, queries=quick.queries.assign(state=states))
    row = board(study(data, [quick]))["quick"]
    assert (row.failed, row.n) == (4, QUERIES - 6)


def test_latency_is_the_95th_percentile_and_money_that_of_the_study(data):
    made = run(data, "varied", 1)
    ms = [float(place + 1) for place in range(QUERIES)]
    made = replace(made, queries=made.queries.assign(latency_ms=ms))
    euros = Money(prices={made.id: listed(3.0, "EUR")}, currency="EUR")
    row = board(study(data, [made], money=euros))["varied"]
    assert row.p95 == pytest.approx(np.quantile(ms, 0.95))
    assert (row.per_thousand, row.takes("p95"), row.takes("cost")) == (3.0, row.p95, 3.0)
    dollars = replace(euros, currency="USD")
    assert board(study(data, [made], money=dollars))["varied"].per_thousand is None


def test_a_mean_is_over_its_own_queries_and_a_change_over_those_of_both(data):
    """The baseline failed on half of them."""
    half, whole = run(data, "half", 3, failed=10), run(data, "whole", 1)
    of = study(data, [half, whole], baseline=half.id, challengers=(whole.id,))
    row = board(of)["whole"]
    assert (row.n, row.helped) == (QUERIES, 10)
    assert (row.mean, row.delta) == pytest.approx((1.0, 2 / 3))


BUSY = Measured(pairs=80, seconds=10.0, cpu_seconds=10.0, threads=2)
IDLE = replace(BUSY, cpu_seconds=19.0)


@pytest.mark.parametrize(
    ("ms", "measured", "optimal", "unsure"),
    [
        # Half of the processor: 30 ms may be 15, and then "steady" with 20 ms is dominated.
        (30.0, BUSY, {"busy": True, "steady": None}, {"steady"}),
        (30.0, IDLE, {"busy": True, "steady": True}, set()),
        (50.0, BUSY, {"busy": True, "steady": True}, set()),
        (10.0, BUSY, {"busy": True, "steady": False}, set()),
    ],
)
def test_no_pareto_mark_within_the_noise_of_a_busy_machine(data, ms, measured, optimal, unsure):
    best = replace(run(data, "busy", 1, ms=ms), measured=measured)
    of = study(data, [best, run(data, "steady", 2, ms=20.0)])
    rows = board(of)
    assert {name: rows[name].pareto["p95"] for name in optimal} == optimal
    assert {name for name, row in rows.items() if "p95" in row.unsure} == unsure
    assert rows["busy"].busy is (measured is BUSY)
    said = {each[0]: each for each in lines(of, "p95")[1:]}
    cells = {name.partition(" · ")[0]: each for name, each in said.items()}
    assert ("machine was busy" in cells["busy"][4]) is (measured is BUSY)
    assert (cells["steady"][-1] == "within noise") is bool(unsure)
    told = " ".join(notes(of, "p95"))
    assert ("The machine was busy while busy ran" in told) is (measured is BUSY)
    assert "Not in the chart: steady" not in told


def test_a_fused_run_of_one_measured_on_a_busy_machine_is_marked_too(data):
    part = replace(run(data, "part", 1, ms=30.0), measured=BUSY)
    other = run(data, "other", 2, ms=20.0)
    parts = [CombinedRun(each.name, each.ranking, each) for each in (part, other)]
    fused = fuse(data, parts, Fusion(), "fused")
    rows = board(study(data, [part, other, fused]))
    assert {name for name, row in rows.items() if row.busy} == {"part", "fused"}


@pytest.mark.parametrize(
    ("timed", "priced", "axis"),
    [
        (("one", "two"), ("one", "two"), "p95"),
        (("one",), ("one",), "cost"),
        (("one",), (), "p95"),
        ((), (), "cost"),
    ],
)
def test_quality_is_shown_against_what_is_known_of_most_systems(data, timed, priced, axis):
    runs = [
        run(data, name, rank, ms=30.0 if name in timed else math.nan)
        for name, rank in (("one", 1), ("two", 3))
    ]
    money = Money(prices={each.id: listed(0.01) for each in runs if each.name in priced})
    assert usual_axis(standings(study(data, runs, money=money))) == axis


def test_latency_price_and_pareto_are_omitted_if_no_reranker_has_one(data):
    untimed = study(data, [run(data, "one", 1), run(data, "two", 3)])
    timed = study(data, [run(data, "one", 1, ms=30.0), run(data, "two", 3)])
    titles = {name: lines(of, "p95")[0] for name, of in (("no", untimed), ("yes", timed))}
    assert "p95 added" not in titles["no"] and not any("Pareto" in each for each in titles["no"])
    assert "p95 added" in titles["yes"]
    assert {len(row) for row in lines(untimed, "p95")} == {len(titles["no"])}
    told = {name: " ".join(notes(of, "p95")) for name, of in (("no", untimed), ("yes", timed))}
    assert "not measured" in told["no"] and "optimal" not in told["no"]
    assert "optimal" in told["yes"]
