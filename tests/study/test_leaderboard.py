"""The leaderboard: its order, its notes on failed, untimed and foreign systems, and Pareto-optimal
systems."""

import math
from dataclasses import replace
from datetime import date

import pytest

from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import RETRIEVAL, Run
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study import leaderboard as board_of
from rankdash.core.study.leaderboard import best_challenger, standings, usual_axis
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.prices import ListedPrice, Price
from rankdash.features.overview.report_systems import lines, notes
from tests.approved import table
from tests.study.builders import data_of, ranking, shown, study_on, together, without

QUERIES = [f"q{n}" for n in range(20)]
DATA = data_of(dict.fromkeys(QUERIES, "abcd"), {query: {"c": 1.0} for query in QUERIES})
BUSY = Measured(pairs=80, seconds=10.0, cpu_seconds=10.0, threads=2)


def run(name: str, rank: int, *, ms: float = math.nan, failed: int = 0, **more: object) -> Run:
    """Return a run with every relevant document at one rank; the last queries failed."""
    docs = ["abd"[: rank - 1] + "c" + "abd"[rank - 1 :]]
    made = run_from_ranking(name, DATA.id, ranking(dict.fromkeys(QUERIES, *docs)), f"{name}.trec")
    lost = QUERIES[len(QUERIES) - failed :]
    made = without(replace(made, id=name, **more), lost)
    kept = ~made.queries["query_id"].isin(lost)
    return replace(made, queries=made.queries.assign(latency_ms=kept.map({True: ms})))


def study(*runs: Run, **given: object) -> Study:
    return study_on(DATA, *runs, **({"metric": "mrr"} | given))


def listed(amount: float, currency: str = "USD") -> ListedPrice:
    return ListedPrice("own", "Mine", "", Price(amount, "search", currency), "", date(2026, 11, 1))


def foreign() -> Study:
    prices = {"fast": listed(3.0), "slow": listed(1.0), "untimed": listed(9.0)}
    prices["foreign"] = listed(0.1, "EUR")
    runs = run("fast", 2, ms=5.0), run("slow", 3, ms=50.0), run("untimed", 1)
    return study(*runs, run("foreign", 2, ms=7.0), money=Money(prices=prices))


def varied(currency: str) -> Study:
    made = run("varied", 1)
    made = replace(made, queries=made.queries.assign(latency_ms=[*map(float, range(1, 21))]))
    return study(made, money=Money(prices={"varied": listed(3.0, "EUR")}, currency=currency))


def skipped() -> Study:
    quick = run("quick", 1, failed=6)
    states = quick.queries["state"].mask(quick.queries.index >= 18, "skipped")
    return study(replace(quick, queries=quick.queries.assign(state=states)))


def busy(ms: float, measured: Measured) -> Study:
    return study(run("busy", 1, ms=ms, measured=measured), run("steady", 2, ms=20.0))


def fused() -> Study:
    part, other = run("part", 1, ms=30.0, measured=BUSY), run("other", 2, ms=20.0)
    return study(part, other, together(DATA, part, other, name="fused"))


def cases() -> dict[str, Study]:
    half, steady = run("half", 3, failed=10), run("steady", 2, ms=9.0)
    return {
        "the best comes first, the baseline among the others": study(
            run("worse", 4), run("best", 1), run("better", 2)
        ),
        "the baseline alone": study(),
        **{f"a hasty system answered {n} queries": study(
            steady, run("hasty", 1, ms=1.0, failed=20 - n)
        ) for n in (7, 6)},
        "nothing is Pareto-optimal alone: the only one answered five queries": study(
            run("few", 1, ms=1.0, failed=15)
        ),
        "nothing is known of the only one": study(run("untimed", 1)),
        "every query failed: no mean, and no zero": study(
            run("better", 2), run("lost", 1, failed=20)
        ),
        "what is not known of a system decides nothing": foreign(),
        "a query that was not asked for has not failed": skipped(),
        "p95 of 1 to 20 ms, and a price in the currency of the study": varied("EUR"),
        "in another currency": varied("USD"),
        "a mean is over a system's own queries, a change over those of both": study(
            half, run("whole", 1), baseline="half", challengers=("whole",)
        ),
        "a busy machine: 30 ms may be 15, and then 20 ms are dominated": busy(30.0, BUSY),
        "an idle one": busy(30.0, replace(BUSY, cpu_seconds=19.0)),
        "busy, but 50 ms are 25 at least": busy(50.0, BUSY),
        "busy, and 10 ms dominate anyway": busy(10.0, BUSY),
        "two on busy machines: 20 ms of one may be more than 30 of the other": study(
            run("busy", 1, ms=30.0, measured=BUSY), run("other", 2, ms=20.0, measured=BUSY)
        ),
        "fused of one that ran on a busy machine": fused(),
        "the latency of a fetch is of the whole search": study(
            run("engine", 1, ms=500.0, reranker=RETRIEVAL), run("reranker", 2, ms=20.0)
        ),
        "only a fetch was timed": study(run("engine", 1, ms=500.0, reranker=RETRIEVAL)),
    }  # fmt: skip


def told(of: Study) -> str:
    rows = []
    for row in standings(of):
        cost = None if row.cost is None else row.cost.lack
        fields = {name: getattr(row, name) for name in (
            "kind", "mean", "low", "high", "n", "failed", "delta", "delta_low", "delta_high",
            "helped", "hurt", "p95", "per_thousand", "pareto", "busy",
        )} | {"unsure": sorted(row.unsure), "lacks": cost}  # fmt: skip
        said = {name: value for name, value in fields.items() if value not in ("", [], None, False)}
        rows.append(f"{of.name(row.system)}: {shown(said)}")
    marked = [" | ".join(line) for line in lines(of, "p95")]
    return "\n".join([*rows, *marked, *notes(of, "p95")])


def test_leaderboards_are_as_approved(approved):
    approved("study/leaderboard", table((name, told(of)) for name, of in cases().items()))


def test_the_table_is_made_once_and_each_system_billed_once(monkeypatch):
    billed = []
    monkeypatch.setattr(board_of, "bill", lambda of, system: billed.append(system))
    of = study(run("fast", 2), run("slow", 3))
    assert standings(of) is standings(of)
    assert sorted(billed) == sorted(of.chosen)
    assert (best_challenger(of), best_challenger(study())) == ("fast", None)
    # The table depends on the prices.
    assert standings(replace(of, money=Money())) is not standings(of)


@pytest.mark.parametrize(
    ("timed", "priced", "axis"),
    [
        (("one", "two"), ("one", "two"), "p95"),
        (("one",), ("one",), "cost"),
        (("one",), (), "p95"),
        ((), (), "cost"),
    ],
)
def test_quality_is_shown_against_what_is_known_of_most_systems(timed, priced, axis):
    runs = [
        run(name, rank, ms=30.0 if name in timed else math.nan)
        for name, rank in (("one", 1), ("two", 3))
    ]
    of = study(*runs, money=Money(prices={name: listed(0.01) for name in priced}))
    assert usual_axis(standings(of)) == axis
