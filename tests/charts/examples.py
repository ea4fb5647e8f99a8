"""Examples of every chart: a dictionary of cases, many of them with hostile names."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from rankdash.core.data.measured import Level
from rankdash.core.data.ranking import Reading
from rankdash.core.study.latency import ecdf, fit, on_target, summarize
from rankdash.core.study.latency import lengths_of as lengths_of
from rankdash.features.cost import charts as cost_charts
from rankdash.features.cost import charts_worth
from rankdash.features.cost.charts_worth import Lines, Need
from rankdash.features.history import charts as history_charts
from rankdash.features.latency import charts as latency_charts
from rankdash.features.latency import charts_load
from rankdash.features.policy import charts as policy_charts
from rankdash.features.policy.skipping import by_margin
from rankdash.features.policy.weights import Gain
from rankdash.features.queries.ladder import Ladder
from rankdash.features.rank_shifts.shifts import BINS, STEPS, UNRANKED, Flow, Moves, flow
from rankdash.features.rank_shifts.shifts import move_sizes as sizes_of
from rankdash.features.rank_shifts.shifts import transitions as counts_of
from rankdash.kit.drawing import frontier, style
from rankdash.kit.drawing.draw import Drawing
from tests.sets import ROOT

HOSTILE = "<a href='https://evil.example'>win</a> & <b>more</b>"
CHINESE = "急性淋巴细胞白血病的治疗与预后以及随访建议"
SYSTEMS = ["BM25", "MiniLM", HOSTILE, "BAAI/bge-reranker-v2-m3 (batch 16, 512 tokens)"]
SIDES = (HOSTILE, SYSTEMS[-1])
nan = np.nan

Case = dict[str, Any]


def of(**given: Any) -> Case:
    """Return the arguments of a chart, by the names of its parameters."""
    return given


def every(name: str, cases: dict[str, Any], **usual: Any) -> dict[str, Case]:
    return {case: {name: value} | usual for case, value in cases.items()}


def money(amount: float) -> str:
    return f"${amount:,.2f}"


def hostile_money(amount: float) -> str:
    return f"<i>{amount}"


# Cost and return.

ROWS = [
    cost_charts.Row("Gain", -50.0, 150.0, "5 %", "30 %"),
    cost_charts.Row("Price", 90.0, 10.0, "$0.50", "$1.50"),
]
SWINGS = [
    cost_charts.Row(HOSTILE, -9.0, 40.0, HOSTILE, "2"),
    cost_charts.Row("b", 1.0, 2.0, "3", "4"),
]
ACROSS = cost_charts.Axis("Searches", [1.0, 2.0, 3.0], 2.0, logarithmic=True)
UPWARD = cost_charts.Axis("Elasticity", [10.0, 20.0], 10.0)
NET = np.array([[-1.0, 0.5, 2.0], [-3.0, -2.0, 4.0]])
MARKS = style.marks_in_order(["none", "beaten", "fast", "slow", "unpriced"], "none")


def point(name: str, *given: float | bool) -> frontier.FrontierPoint:
    return frontier.FrontierPoint(name, MARKS.get(name, MARKS["none"]), *given)


POINTS = [
    point("none", 0.0, 0.5, True, 0.42, 0.55),
    point("beaten", 3.0, 0.55, False),
    point("fast", 1.0, 0.6, True),
    point("slow", 9.0, 0.7, True),
    point("unpriced", nan, 0.9, False),
]
CLOSE = [
    point("No reranker", 0.0, 0.500, True),
    point("BM25 reranker", 0.1, 0.501, False),
    point("a long name at the edge", 2.0, 0.6, True),
]
HOSTILE_POINTS = [point(HOSTILE, 1.0, 0.5, True), point("slow", 9.0, 0.5, True)]
# Two marks are close, and the name of the upper one must be above the name of the lower one.
CROWDED = [
    point("First stage", 0.0, 0.666, True),
    point("bge-small", 8.4, 0.748, True),
    point("First stage + bge-small (RRF)", 8.4, 0.730, False),
    point("MiniLM cross-encoder", 1262.0, 0.759, True),
    point("BM25 without stemming", 0.046, 0.615, False),
]
DEPTHS = pd.DataFrame(
    [(0, 0.5, 0.4, 0.6), (10, 0.6, 0.5, 0.7), (50, 0.59, 0.5, 0.7)],
    columns=["depth", "mean", "low", "high"],
)


def far(most: float) -> list[frontier.FrontierPoint]:
    return [
        point("none", 0.0, 0.5, True),
        point("fast", 1.0, 0.6, True),
        point("slow", most, 0.7, True),
    ]


def overlapping(x: float, most: float) -> list[frontier.FrontierPoint]:
    """Return overlapping marks; the better one is drawn later, on top."""
    alike = [point("fast", x, 0.651, True), point("beaten", x, 0.650, False)]
    return [*alike, point("none", 0.0, 0.5, False), point("slow", most, 0.8, True)]


def earns(name: str, *given: float, **more: bool) -> charts_worth.Point:
    price, value, low, high = given
    mark = MARKS.get(name, MARKS["fast"])
    return charts_worth.Point(name, mark, price, value, False, low, high, **more)


def need(name: str, slope: float, **more: bool) -> Need:
    lines = Lines((0.0, slope), (0.0, 2 * slope), (0.0, slope / 2))
    return Need(name, MARKS.get(name, MARKS["fast"]), lines, **more)


AT_ZERO = earns("none", 0.0, 0.0, 0.0, 0.0)
NETS = [AT_ZERO, earns("fast", 0.5, 900.0, -100.0, 1800.0, in_focus=True, proven=False),
        earns("slow", 2.0, -400.0, -700.0, nan)]  # fmt: skip
BY_PRICE = Lines((1000.0, -200.0), (100.0, -200.0), (1900.0, -200.0))
NEEDS = [need("fast", 0.01, in_focus=True), need("slow", 0.1, proven=False)]


def cost() -> dict[str, dict[str, Case]]:
    net = of(across=ACROSS, upward=UPWARD)
    away = cost_charts.Axis("Searches", ACROSS.values, None)
    return {
        "tornado": {
            "hostile": of(rows=SWINGS, net=10.0, money=hostile_money),
            "the widest on top, a dearer price the worse end": of(rows=ROWS, net=40.0),
        },
        "break_even": {
            "hostile": of(
                net=NET, money=hostile_money, across=replace(ACROSS, title=HOSTILE), upward=UPWARD
            ),
            "half of it pays": of(net=NET, **net),
            # A distant corner determines the whole scale, and the present point is close to zero.
            "far corners": of(
                net=np.array([[-0.5, 1.0, 1000.0], [-1000.0, -1.0, 1e6]]), now=1.0, **net
            ),
            "everything pays": of(net=np.abs(NET), **net),
            "the present is elsewhere": of(net=np.abs(NET), **(net | of(across=away))),
            "nothing": of(net=np.zeros((2, 3)), **net),
            "one value": of(net=np.full((2, 3), -7.0), **net),
        },
        "net_by_price": {
            "hostile": of(
                points=[earns(HOSTILE, 1.0, 5.0, 4.0, 6.0, in_focus=True)], money=hostile_money
            ),
            "hollow is not proven, outlined is in focus": of(points=NETS, by_price=BY_PRICE),
            "example values, in euros": of(points=NETS, demonstrated=True, currency="EUR"),
            "names of many are in the legend": of(
                points=[*NETS, *(earns(f"s{at}", 1.0, 9.0 * at, 0.0, nan) for at in range(4))]
            ),
            "far apart, with a place for 0": of(
                points=[AT_ZERO, earns("fast", 0.01, 1.0, 0.0, 2.0, in_focus=True), NETS[2]],
                by_price=BY_PRICE,
            ),
        },
        "value_needed": {
            "hostile": of(
                systems=[need(HOSTILE, 0.1)], most=1.0, price=0.5, value=0.02, money=hostile_money
            ),
            "neither price nor value": of(systems=NEEDS, most=4.0),
            "a price": of(systems=NEEDS, most=4.0, price=1.0),
            "a value": of(systems=NEEDS, most=4.0, value=0.02),
            "it needs no value up to a price, and there is no interval": of(
                systems=[Need("fast", MARKS["fast"], Lines((-0.01, 0.01)), in_focus=True)], most=4.0
            ),
        },
        "frontier": {
            "hostile": of(points=HOSTILE_POINTS),
            "bold if Pareto-optimal, and an interval": of(points=POINTS, written=money),
            "close together": of(points=far(20.0)),
            "far apart, with a place for 0": of(points=far(20.1)),
            "names take different corners": of(points=CLOSE),
            "names above each other": of(points=CROWDED),
            "a crowd has fewer names": of(
                points=[point(f"reranker {n}", 5.0, 0.5 + n**9 / 1e9, False) for n in range(9)]
            ),
            "overlapping at 0": of(points=overlapping(0.0, 9.0)),
            "overlapping at the edge": of(points=overlapping(9.0, 9.0)),
            "overlapping, far apart": of(points=overlapping(1.0, 30.0)),
        },
        "crossover": {
            "hostile": of(lengths=[1.0, 2.0], costs={HOSTILE: [1.0, 3.0]}, mean_length=2.0),
            "one's own length": of(
                lengths=[10.0, 200.0, 500.0],
                mean_length=200.0,
                costs={"a": [1.0, 1.0, 1.0], "b": [0.1, 2.0, 5.0]},
            ),
        },
    }


# Policy.

LIMITS = pd.DataFrame(
    [(4.0, 0.5, 0.4, 0.6, 1.0), (20.0, 0.56, nan, nan, 0.4), (300.0, 0.6, 0.5, 0.7, 0.0)],
    columns=["ms", "mean", "low", "high", "late"],
)


END = {"low": nan, "high": nan}
OUTCOMES = [
    policy_charts.Outcome(name, {"mean": mean, "low": mean - 0.04, "high": mean + 0.05}, ms, price)
    for name, mean, ms, price in (
        ("First stage", 0.67, 0.0, 0.0), ("MiniLM", 0.76, 1262.0, 0.4), ("Policy", 0.75, 90.0, 0.2),
    )
]  # fmt: skip
SKIPPED = pd.DataFrame(
    [(0.0, 0.6, 0.6, 0.6, 0.6), (0.4, 0.599, 0.596, 0.602, 0.56), (1.0, 0.5, 0.4, 0.55, 0.5)],
    columns=["share", "mean", "low", "high", "random"],
)

GAINS = [
    Gain(0.038, 0.02, 0.057),
    Gain(0.031, 0.014, 0.054, 0.001, proven=True),
    Gain(0.02, -0.001, 0.042, 0.06),
    Gain(-0.03, -0.05, -0.01, 0.01, proven=True),
]


def policy() -> dict[str, dict[str, Case]]:
    by_time = of(table=LIMITS, x="ms", title="ms", share="late", share_title="late")
    by_depth = of(table=DEPTHS, x="depth", title="documents", scale="even")
    return {
        "quality": {
            "hostile": of(
                table=LIMITS, x="ms", title="ms", share="late", share_title=HOSTILE,
                lines={HOSTILE: 0.5}, marks={HOSTILE: 20.0}, hover=["", "&lt;", ""],
            ),
            "by depth, several marks": by_depth
            | of(lines={"First stage": 0.5}, marks={"best": 10.0, "most": 10.0}, chosen=50.0),
            "a share below, on a log axis, the chosen between two rows": by_time
            | of(marks={"target": 500.0}, chosen=77.0, scale="log"),
            "linear": by_time | of(chosen=20.0),
            "beside chance and the tolerance": of(
                table=SKIPPED, x="share", title="share", other="random", other_title="random",
                lines={"loss": 0.51}, marks={"most": 0.5}, scale="percent",
            ),
        },
        "gains": {
            "held-out gains": of(gains=GAINS[:3], spread=(0.02, 0.035), single="MiniLM"),
            "a loss, without intervals": of(
                gains=(GAINS[0], Gain(-0.01, nan, nan), GAINS[3]), spread=(-0.02, 0.0),
                single=SYSTEMS[-1], level=0.9,
            ),
            "hostile": of(gains=GAINS[:3], spread=(0.0, 0.0), single=HOSTILE),
        },
        "outcomes": {
            "hostile": of(rows=[replace(each, name=HOSTILE) for each in OUTCOMES]),
            "quality, latency and price": of(rows=OUTCOMES),
            "no price, two rows": of(rows=[replace(each, price=None) for each in OUTCOMES[:2]]),
            "quality only, and no interval": of(
                rows=[
                    replace(each, p95_ms=nan, price=None, quality=each.quality | END)
                    for each in OUTCOMES
                ]
            ),
        },
    }  # fmt: skip


# Latency.

PAIR = style.marks_in_order(["a", "b"], "a")


def spent(
    values: Any, system: str = "a", name: str = "Alpha", noise: str = ""
) -> latency_charts.Row:
    """Return latencies against a target of 500 ms."""
    ordered = np.sort(np.asarray(values, dtype=float))
    summary = summarize(pd.DataFrame({"latency_ms": ordered}))
    met = on_target(ordered, 500.0)
    return latency_charts.Row(system, name, ecdf(ordered), summary, met, noise)


def cloud(x, ms, system: str = "b", name: str = "Beta") -> charts_load.Cloud:
    x, ms = np.asarray(x, dtype=float), np.asarray(ms, dtype=float)
    return charts_load.Cloud(system, name, pd.DataFrame({"x": x, "ms": ms}), fit(x, ms))


def even(n: int) -> list[charts_load.Cloud]:
    """Return latencies of 5 ms plus 2 ms per document."""
    x = np.arange(1.0, n + 1)
    return [cloud(x, 5 + 2 * x)]


def level(n: int, rate: float, p95: float, failed: int = 0) -> Level:
    return Level(n, 2.0, int(2 * rate), failed, p95 / 2, p95, rate, 20 * rate, 1.5)


def latency() -> dict[str, dict[str, Case]]:
    rng = np.random.default_rng(8)
    marks, names = of(marks=PAIR), {"a": HOSTILE, "b": SYSTEMS[-1]}
    busy = [level(n, rate, 16.0 * n, n // 8) for n, rate in ((1, 60), (2, 110), (4, 118), (8, 118))]
    levels = [level(*each) for each in ((1, 50.0, 20.0), (2, 70.0, 40.0), (4, 75.0, 90.0, 3))]
    measured = {
        name: [charts_load.Measurement("b", name, each)]
        for name, each in ((HOSTILE, busy), ("Beta", levels))
    }
    drawn = {each: rng.lognormal(at + 2, 0.4, 10_000) for at, each in enumerate("ab")}
    length = rng.integers(10, 50, 10_000)
    timed = {
        "hostile": [spent(ms, each, names[each], "busy machine") for each, ms in drawn.items()]
    }
    clouds = {"hostile": [cloud(length, ms, each, names[each]) for each, ms in drawn.items()]}
    timed |= {f"{n} queries": [spent(range(1, n + 1))] for n in (1, 4, 30, 1000)}
    timed["alike, and one without p95"] = [spent(np.full(2000, 20.0)), spent([5.0, 700.0], "b")]
    timed["within tenfold, from 0"] = [spent(range(300, 400)), spent(range(99, 700), "b")]
    timed["a disturbed measurement"] = [spent(range(1, 101), noise="busy machine")]
    clouds |= {f"{n} queries": even(n) for n in (9, 60, 5000)}
    full = np.array([10, 20, 30, 600, 700], dtype=np.int32)
    many = rng.integers(20, 1500, 5000).astype(np.int32)
    read = {
        "hostile": (many, np.minimum(many, 512)),
        "two of five are cut": (full, np.minimum(full, 512)),
        "none is cut": (full, full),
    }
    return {
        "latency_rows": every("systems", timed, target_ms=500.0, **marks),
        "latency_ecdf": every("systems", timed, target_ms=500.0, **marks),
        "latency_fit": every("clouds", clouds, against="documents", rules=True, **marks)
        | {"no rules for tokens": of(clouds=even(60), against="tokens", rules=True, **marks)},
        "throughput": {
            "hostile": of(measured=measured[HOSTILE], target_ms=50.0, **marks),
            # Computed from the mean latency, 4 clients would serve 80 queries per second.
            "the best rate at the target": of(measured=measured["Beta"], target_ms=50.0, **marks),
            "none meets it": of(measured=measured["Beta"], target_ms=5.0, **marks),
        },
        "token_lengths": {
            name: of(lengths=lengths_of(Reading(short, whole)))
            for name, (whole, short) in read.items()
        },
    }


# Ranks.


def made_moves(queries: int) -> Moves:
    """Return 30 documents per query, a fifth of them relevant; some are in one ranking only."""
    rng = np.random.default_rng(4)
    before, after = (
        np.argsort(np.argsort(rng.random((queries, 30)), axis=1), axis=1).ravel() + 1
        for _ in range(2)
    )
    lacking = rng.random((2, len(before))) < 0.05
    return Moves(
        query_ids=np.array([f"q{n}" for n in range(queries)], dtype=object),
        query=np.repeat(np.arange(queries), 30).astype(np.int32),
        names=np.array([f"d{n}" for n in range(len(before))], dtype=object),
        docs=np.arange(len(before), dtype=np.int32),
        before=np.where(lacking[0], 0, before).astype(np.int32),
        after=np.where(lacking[1], 0, after).astype(np.int32),
        relevant=rng.random(len(before)) < 0.2,
        unranked=5, only_before=0, only_after=0,
    )  # fmt: skip


def counts(far: int = 0, risen: int = 1) -> pd.DataFrame:
    """Return counts: 8 stay at rank 1, 2 fall to 2–3, some rise from > 20 to 1, 1 is new at 4–5."""
    table = pd.DataFrame(0, index=[*BINS, UNRANKED], columns=list(BINS))
    table.loc["1", "1"], table.loc["1", "2–3"] = 8, 2
    table.loc["> 20", "1"], table.loc[UNRANKED, "4–5"], table.loc["> 20", "> 20"] = risen, 1, far
    return table


def sized() -> pd.DataFrame:
    frame = pd.DataFrame({"step": STEPS, "relevant": 0, "other": 0})
    frame.loc[6, "relevant"], frame.loc[0, "other"], frame.loc[5, "other"] = 4, 1, 3
    return frame.assign(relevant_share=frame["relevant"] / 4, other_share=frame["other"] / 4)


def way() -> Flow:
    rows = [("11–20", 5, 3), ("21–50", 2, 0), ("> 50", 0, 0), (UNRANKED, 1, 0)]
    bands = pd.DataFrame(rows, columns=["band", "entered", "left"])
    return Flow(k=10, stayed=9, entered=8, left=3, outside=4, unranked=2, bands=bands)


def paired(before, change) -> pd.DataFrame:
    ids = [f"q{at}" for at in range(len(change))]
    frame = {"query_id": ids, "before": before, "after": before + change, "delta": change}
    return pd.DataFrame(frame).assign(state="paired")


def made_pairs(n: int) -> pd.DataFrame:
    """Return a paired frame: about a third is equal, and two queries are excluded."""
    rng = np.random.default_rng(5)
    change = np.where(rng.random(n) < 0.35, 0.0, rng.normal(0.05, 0.2, n))
    frame = paired(rng.random(n), change)
    frame.loc[:1, "delta"], frame.loc[:1, "state"] = nan, "failed"
    return frame


def changed_by(*changes: float) -> pd.DataFrame:
    return paired(0.5, np.array(changes))


def margined(n: int, share: float = 1.0) -> Case:
    """Return queries that are helped, same and hurt in turn."""
    ids = [f"q{at}" for at in range(n)]
    margin = pd.Series(np.linspace(0, 1, n), index=ids) * share
    means = pd.DataFrame({"margin": [0.2, 0.8], "n": [3, 3], "delta": [0.1, 0.0]})
    return of(
        pairs=pd.DataFrame({"query_id": ids, "delta": np.resize([0.2, 0.0, -0.1], n)}),
        margin=margin,
        means=means if share == share else means[:0],
    )


AGREED = pd.DataFrame(
    [
        ("a", "b", 9, 0.6, 0.5, 0.7, 0.8, 0.75, 0.82),
        ("a", "c", 9, -0.4, -0.6, -0.2, 0, 0, 0),
        ("b", "c", 1, 1.0, nan, nan, 1.0, nan, nan),
    ],
    columns=["one", "other", "n", "tau", "tau_low", "tau_high", "rbo", "rbo_low", "rbo_high"],
)
MOVES = [
    ("up", [9, 1, 2], 3.0),
    ("hold", [2, 2, 3], 1.0),
    ("unjudged", [8, 3, 1], nan),
    ("new", [nan, 4, nan], nan),
    ("bad", [1, 5, 4], 0.0),
    (HOSTILE, [3, 6, 7], 0.0),
    ("rising", [7, 7, 5], 0.0),
    ("down", [4, 12, 12], 2.0),
    ("still", [5, 8, 6], 0.0),
    ("far", [30, 31, 30], nan),
    ("gone", [6, nan, nan], 1.0),
]
TITLES = {"first": "BM25", "small": "MiniLM", "large": "Fusion"}


def moves(*systems: str) -> Ladder:
    """Return one query at k = 5: "up" enters, "down" leaves; "new" and "gone" are in some lists."""
    systems = systems or tuple(TITLES)
    label = np.array([label for _, _, label in MOVES])
    ideal = np.full(len(MOVES), nan)
    ideal[np.argsort(-np.nan_to_num(label), kind="stable")[:4]] = [1, 2, 3, 4]
    ranks = np.array([ranks for _, ranks, _ in MOVES], dtype=np.float64)[:, : len(systems)]
    ids = np.array([doc for doc, _, _ in MOVES], dtype=object)
    return Ladder(systems, ids, ranks, label, label >= 1, ideal, 5)


def wide(documents: int, k: int, systems: int = 5) -> Ladder:
    """Return systems that disagree about many documents, a few of them relevant."""
    rng = np.random.default_rng(3)
    order = np.arange(documents)
    noisy = [
        np.argsort(np.argsort(order + rng.normal(0, 3 * n, documents))) for n in range(systems)
    ]
    label = np.where(order % 9 == 0, 1.0, np.where(order % 4 == 0, 0.0, nan))
    ids = np.array([f"doc {n}" for n in order], dtype=object)
    ideal = np.where(label >= 1, np.cumsum(label >= 1), nan)
    ranks = np.column_stack(noisy) + 1.0
    names = (*SYSTEMS, "Fusion", *(f"System {n}" for n in range(5, systems)))
    return Ladder(names, ids, ranks, label, label >= 1, ideal, k)


def ranks() -> dict[str, dict[str, Case]]:
    few, many = made_moves(3), made_moves(400)
    sides = of(before=SIDES[0], after=SIDES[1])
    plain = of(before="A", after="B")
    margin = pd.Series({f"q{n}": (n * 7 % 10_000) / 10_000 for n in range(10_000)})
    made: dict[str, dict[str, Case]] = {"margins": {}}
    for name, n in (("hostile, few", 60), ("hostile, 10,000", 10_000)):
        pairs = made_pairs(n)
        drawn = of(pairs=pairs, margin=margin, means=by_margin(pairs, margin), threshold=0.5)
        made["margins"][name] = of(names={"q7": HOSTILE}, **drawn)
    made["margins"] |= {
        "a mark leads to its query": of(**margined(6), threshold=0.4),
        "a wider tie band": of(**margined(6), tie_band=0.15),
        "many are gathered": margined(9000),
        "no margins": margined(4, nan),
    }
    ladders = {
        "every document, hostile": of(
            ladder=moves(), titles={"small": HOSTILE}, names={"up": HOSTILE}, every=True
        ),
        "as usual": of(ladder=moves(), titles=TITLES),
        "one is followed": of(ladder=moves(), names={"up": HOSTILE}, focus="down"),
        "many documents": of(ladder=wide(60, 10)),
        "a deep list": of(ladder=wide(100, 50)),
        "many systems": of(ladder=wide(20, 5, systems=12)),
        "no documents": of(ladder=moves().picked(np.zeros(len(MOVES), dtype=bool)), titles=TITLES),
        "one system": of(ladder=moves("first")),
    }
    return made | {
        "ladder": ladders,
        "agreement": {
            "hostile": of(table=AGREED, p=0.9, names={"a": HOSTILE, "b": SYSTEMS[-1]}),
            "many pairs": of(table=pd.concat([AGREED] * 4), p=0.9),
        },
        "flows": {
            "hostile, many": of(flow=flow(many, 10), **sides),
            "hostile, no flow": of(flow=flow(few, 100), **sides),
            "in to the right, out to the left": of(flow=way(), **plain),
        },
        "move_sizes": {
            "hostile": of(table=sizes_of(many), **sides),
            "few": of(table=sized(), **plain),
        },
        "transitions": {
            "hostile, many": of(table=counts_of(many, relevant_only=False), **sides),
            "hostile, few": of(table=counts_of(few, relevant_only=True), **sides),
            "up, down and same": of(table=counts(), **plain),
            "large counts fit their cell": of(table=counts(652_732, 4832), **plain),
            "less than a hundredth": of(table=counts(652_732, 7), **plain),
        },
    }


# Quality.

LABEL_CURVE = [(20, 0.2, 0.11), (40, 0.14, 0.08), (100, 0.09, 0.09)]
"""(queries, half the interval with human labels only, half the corrected interval)."""
OTHER_CURVE = [(20, 0.2, 0.15), (100, 0.09, 0.09)]


def table() -> pd.DataFrame:
    rows = [
        (system, metric, 58, 0.3 + 0.1 * at, 0.3 + 0.1 * at + shift, shift)
        for at, metric in enumerate(["ndcg@10", "mrr@10", "map", "recall@10"])
        for shift, system in zip([0.0, 0.14, 0.05, -0.02], SYSTEMS, strict=True)
    ]
    return pd.DataFrame(rows, columns=["system", "metric", "paired", "before", "after", "delta"])


def compared() -> pd.DataFrame:
    """Return the table with intervals: a proven gain of the second system, a proven loss of the
    last."""
    found = table()
    room = found["system"].map(dict(zip(SYSTEMS, [0.0, 0.05, 0.07, 0.015], strict=True)))
    p = found["system"].map(dict(zip(SYSTEMS, [nan, 0.002, 0.4, 0.03], strict=True)))
    ends = {"delta_low": found["delta"] - room, "delta_high": found["delta"] + 1.2 * room}
    return found.assign(**ends, p_corrected=p)


def by_cutoff(*names: str) -> pd.DataFrame:
    rows = [
        (system, k, 0.2 + 0.05 * at + 0.1 * np.log10(k), 58)
        for at, system in enumerate(names or SYSTEMS)
        for k in (1, 2, 3, 5, 10, 15, 20, 30, 50, 100)
    ]
    return pd.DataFrame(rows, columns=["system", "k", "mean", "n"])


def banded(*names: str) -> pd.DataFrame:
    curve = by_cutoff(*names)
    return curve.assign(low=curve["mean"] - 0.06, high=curve["mean"] + 0.08)


def flat(*means: float) -> pd.DataFrame:
    return pd.DataFrame({"system": "a", "k": range(1, len(means) + 1), "mean": means, "n": 5})


def split(baseline: float, won: float, to_win: float, retriever: float) -> pd.DataFrame:
    columns = ["system", "baseline", "won", "to_win", "retriever"]
    found = pd.DataFrame([("MiniLM", baseline, won, to_win, retriever)], columns=columns)
    return found.assign(own=False)


def splits() -> pd.DataFrame:
    """Return a gain, a loss, a gain with a bar too small for its number, no loss by the retriever,
    a challenger above the ceiling, a baseline near 0, and no values."""
    rows = [
        *((0.52, 0.09, 0.26, 0.13), (0.52, -0.06, 0.41, 0.13), (0.52, 0.012, 0.338, 0.13)),
        *((0.52, 0.3, 0.18, 0.0), (0.5, 0.3, -0.05, 0.25), (0.02, 0.01, 0.015, 0.955), [nan] * 4),
    ]
    names = ["MiniLM", HOSTILE, SYSTEMS[-1], f"{CHINESE}（批量16，512词元）"]
    names += ["beyond", "low", "none"]
    return pd.concat([split(*row) for row in rows], ignore_index=True).assign(system=names)


def groups() -> pd.DataFrame:
    """Return groups of two segments: a proven gain, a proven loss, an unproven change, a rough
    estimate, too few queries, and none."""
    rows = [
        ("language", "other script", 1204, 0.12, 0.08, 0.15, 0.001, False),
        ("language", "急性淋巴细胞白血病的治疗与预后", 301, -0.09, -0.14, -0.05, 0.004, False),
        ("language", "mixed", 88, 0.03, -0.02, 0.09, 0.3, False),
        (HOSTILE, "focus group of rare diseases and their outlook", 7, 0.2, 0.05, 0.4, 0.04, True),
        (HOSTILE, HOSTILE, 3, 0.15, nan, nan, nan, True),
        (HOSTILE, "empty", 0, nan, nan, nan, nan, True),
    ]
    columns = ["segment", "value", "n", "delta", "low", "high", "p_corrected", "small"]
    return pd.DataFrame(rows, columns=columns)


def run_at(number: int, mean: float, **changes: object) -> history_charts.TrendPoint:
    usual = {"name": f"run {number}", "when": "", "seconds": number * 86400.0, "n": 60}
    usual |= {"low": mean - 0.05, "high": mean + 0.1, "compared": True, "p95_ms": nan, "failed": 0}
    return history_charts.TrendPoint(number=number, mean=mean, **usual | changes)


def past(*means: float, **columns: list[object]) -> list[history_charts.TrendLine]:
    """Return one run per mean, one per day. columns: other fields, with a value for each run."""
    rows = list(zip(*columns.values(), strict=True)) or [()] * len(means)
    return lines_of(
        run_at(at, mean, **dict(zip(columns, row, strict=True)))
        for at, (mean, row) in enumerate(zip(means, rows, strict=True), start=1)
    )


def lines_of(points: Iterable[history_charts.TrendPoint]) -> list[history_charts.TrendLine]:
    """Return one line per name: runs of a name are of one system."""
    by_name: dict[str, list[history_charts.TrendPoint]] = {}
    for point in points:
        by_name.setdefault(point.name, []).append(point)
    marks = style.marks_in_order(by_name)
    return [history_charts.TrendLine(name, marks[name], own) for name, own in by_name.items()]


def made_past(runs: int) -> list[history_charts.TrendLine]:
    """Return runs: every second one of the same system, three of four with failed queries, the
    fifth over a sample. A single run has no times."""
    rng = np.random.default_rng(7)
    means, timed = 0.4 + rng.normal(0, 0.05, runs), runs > 1
    return lines_of(
        run_at(
            at + 1, float(means[at]), name=HOSTILE if at % 2 else f"run {at}",
            when=f"Nov {at + 1}, 2026, 9:00:00 AM", seconds=at // 2 * 86400.0,
            compared=at != 4, note=HOSTILE,
            p95_ms=float(rng.lognormal(3, 2)) if timed and at % 5 else nan,
            failed=at % 4 if timed else 0,
        )
        for at in range(runs)
    )  # fmt: skip


ABOVE = [
    history_charts.Across(f"{HOSTILE} (baseline)", 0.41),
    history_charts.Across("MiniLM (pinned)", 0.47),
]
BASE = [history_charts.Across("First stage (baseline)", 0.3)]


def shares(*parts: tuple[float, float], **changes: object) -> pd.DataFrame:
    """Return a table from the contributions of each document before and after."""
    n, (before, after) = len(parts), np.array(parts, dtype=float).reshape(-1, 2).T
    frame = {"doc_id": [f"d{at}" for at in range(n)], "rank_before": np.arange(1.0, n + 1)}
    frame |= {"rank_after": np.arange(n, 0.0, -1), "label": np.arange(n) % 3.0}
    frame |= {"before": before, "after": after, "delta": after - before} | changes
    return pd.DataFrame(frame).sort_values("delta", key=lambda delta: -delta.abs(), kind="stable")


def hostile_shares() -> pd.DataFrame:
    """Return 14 changes: the largest with a hostile name, one in one list only, one with a Chinese
    name."""
    rng = np.random.default_rng(3)
    size, up = np.array([0.2, 0.15, *np.linspace(0.04, 0.01, 12)]), np.arange(14) % 3 > 0
    return shares(
        *zip(np.where(up, 0.0, size), np.where(up, size, 0.0), strict=True),
        doc_id=[HOSTILE, CHINESE, *(f"document {n}" for n in range(12))],
        rank_before=[nan, *rng.permutation(13) + 1.0], rank_after=[*rng.permutation(13) + 1.0, nan],
        label=[3.0, 0.5, *rng.integers(1, 4, 12)],
    )  # fmt: skip


def quality() -> dict[str, dict[str, Case]]:
    usual, sure, curve = table(), compared(), by_cutoff()
    titles = of(titles={"map": HOSTILE})
    two = sure["system"].isin(SYSTEMS[:2])
    high = sure.assign(before=0.95, after=0.97, delta=0.02, delta_low=-0.98, delta_high=0.08)
    some = banded()
    some.loc[some["system"] != "MiniLM", ["low", "high"]] = nan
    two_parts, mixed = (
        shares((0.3, 0.0), (0.0, 0.5)),
        of(names={"mixed": "both <scripts>", "language": "Language"}),
    )
    many = {"hostile, 1": 1, "hostile, 7": 7, "hostile, 40": 40}
    minutes = [at * 60.0 for at in range(30)]
    trends = {
        "runs of one system are joined": past(0.4, 0.5, 0.45, name=["a", "b", "a"]),
        "few queries are marked below": past(
            0.4, 0.95, 0.5, compared=[True, False, True], n=[60, 5, 60]
        ),
        "failures have a panel": past(0.4, 0.4, failed=[3, 0]),
        "times and failures": past(0.4, failed=[3], p95_ms=[12.0]),
        "not timed is a gap": past(0.4, 0.4, 0.4, p95_ms=[20.0, nan, 40.0]),
        "a note": past(0.4, 0.4, note=["new tokenizer <b>", ""]),
        "all within an hour": past(*[0.4] * 30, seconds=minutes),
        "the best is not the last": past(0.4, 0.9, 0.6, 0.5, compared=[True, False, True, True]),
        "no value": past(nan),
    }
    return {
        "deltas": {
            f"hostile, {n:,}": of(frame=made_pairs(n), names={"q7": HOSTILE})
            for n in (60, 1000, 10_000)
        }
        | {
            "worst first": of(
                frame=changed_by(0.3, -0.2, 0.0, 0.1, nan), names={"q0": "how to <return>?"}
            ),
            "a wider tie band": of(frame=changed_by(0.3, 0.02, -0.2, 0.0), tie_band=0.05),
            "on the tie band": of(frame=changed_by(0.005, -0.005, 0.0051, -0.0051)),
            "nothing to compare": of(frame=changed_by(nan)),
        },
        "systems": {
            "hostile": of(table=usual, **titles),
            "alone": of(table=usual[usual["system"] == "BM25"], order=[]),
            "hostile, intervals": of(table=sure, **titles),
            "one change": of(
                table=sure[two & (sure["metric"] == "map")],
                names={"MiniLM": "Mini <b>"},
                order=["MiniLM"],
            ),
            "a stricter level": of(table=sure[two], level=0.999),
            "hostile, several columns": of(table=usual, columns=2, **titles),
            "not corrected": of(table=sure[two], corrected=False),
            # Ticks are possible values of the metric, and no interval exceeds them.
            "near the highest value": of(table=high[two]),
            "no common query": of(table=usual[two].assign(before=nan, after=nan, delta=nan)),
        },
        "cutoffs": {
            "hostile": of(curve=curve, k=10),
            "hostile, intervals": of(curve=banded(), k=10),
            "some intervals, a k that is not drawn": of(curve=some, metric="NDCG", k=7, level=0.9),
            "noise is not stretched": of(curve=flat(0.5, 0.5001), metric="NDCG", baseline="a"),
            "the axis ends at one": of(curve=flat(0.9, 0.99), metric="NDCG", baseline="a"),
            "unless a sum of gains lies beyond": of(
                curve=flat(1.0, 3.0), metric="DCG", baseline="a"
            ),
            "no values": of(curve=flat(nan, nan), metric="NDCG", baseline="a"),
        },
        "grades": {"three labels": of(bars=[("0", 1200), ("1", 30), ("2…3", 4)])},
        "words": {
            # A chance of exactly 10% is not above the level.
            "two candidates": of(
                chances=[0.0, 0.1, 0.11, 1.0], of_others=[0.05, 0.35, 0.5, 0.95], level=0.1
            ),
            "stricter": of(chances=[0.2, 0.3, 0.9], of_others=[0.5, 0.6, 0.7], level=0.2),
        },
        "label_curve": {
            "hostile": of(curves={HOSTILE: LABEL_CURVE}),
            "two judges": of(curves={"Judge A": LABEL_CURVE, "Judge B": OTHER_CURVE}),
            "all labelled": of(curves={"Judge A": [(30, 0.2, 0.2)]}),
        },
        "headroom": {
            "hostile": of(table=splits()),
            "one": of(table=splits()[:1], names={"MiniLM": "Mini <LM>"}),
            "the best possible value is lower": of(
                table=split(0.2, 0.1, 0.05, 0.05), metric="P@10"
            ),
            "of its own list": of(
                table=pd.concat(
                    [split(0.5, 0.1, 0.2, 0.2), split(0.5, 0.1, 0.3, 0.1).assign(own=True)]
                )
            ),
            "no systems": of(table=splits()[:0], metric="M"),
        },
        "group_changes": {
            "hostile": of(table=groups(), **mixed),
            "one": of(table=groups()[3:4], corrected=False),
            "one segment, a stricter level": of(table=groups()[:3], level=0.999),
            "no change": of(table=groups()[5:]),
            "no groups": of(table=groups()[:0]),
        },
        "trend": {name: of(lines=made_past(n), across=ABOVE) for name, n in many.items()}
        | every("lines", trends, across=BASE, level=0.9)
        | {
            "a line without a value": of(
                lines=past(0.4), across=[history_charts.Across("Empty", nan)]
            )
        },
        "waterfall": {
            "hostile": of(documents=hostile_shares(), before=0.42),
            "up and down": of(
                documents=two_parts,
                before=0.3,
                systems=("BM25", "MiniLM"),
                names={"d1": "Returns <b>"},
            ),
            "a sum a hair below zero": of(
                documents=shares((0.1, 0.0), (0.2, 0.0)), before=0.1 + 0.2 - 1e-15
            ),
            "a list lacks it": of(documents=shares((0.3, 0.0), rank_after=[nan]), before=0.3),
            "nothing changes": of(documents=shares(), before=0.3),
            "nine have a bar each": of(
                documents=shares(*((0.0, 0.01 * n) for n in range(1, 10))), before=0, threshold=2
            ),
        },
    }


@cache
def examples() -> dict[str, dict[str, Case]]:
    """Return chart → its cases."""
    return cost() | policy() | latency() | ranks() | quality()


def _charts() -> Iterator[tuple[str, Callable[..., Drawing]]]:
    """Yield every chart of the package. A function that draws without a text fails."""
    files = [*ROOT.glob("rankdash/features/*/charts*.py"), *ROOT.glob("rankdash/kit/drawing/*.py")]
    for file in sorted(files):
        module = import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
        for name, function in vars(module).items():
            returned = getattr(function, "__annotations__", {}).get("return")
            if returned == "go.Figure" and function.__module__ == module.__name__ != style.__name__:
                assert hasattr(function, "__wrapped__"), f"{name} has no words: @draw.chart"
                yield name.removesuffix("_chart"), function


CHARTS = dict(_charts())


def drawn(title: str, name: str, case: Case, ink: style.Ink) -> tuple[go.Figure, str]:
    """Return the figure and its text for screen readers, for one case."""
    usual = {"metric": HOSTILE if "hostile" in name else "NDCG@10", "baseline": "BM25"}
    usual |= {"name": HOSTILE if "hostile" in name else "Beta", "x_title": "p95"}
    usual |= {"order": SYSTEMS[1:], "systems": SIDES, "money": money, "period": "a year"}
    takes = signature(CHARTS[title]).parameters
    drawing = CHARTS[title](**{each: usual[each] for each in usual if each in takes} | case)
    return drawing.draw(ink), drawing.alt


def figures_of(ink: style.Ink) -> dict[str, go.Figure]:
    """Return every chart in one ink, by names such as "deltas: hostile, 60"."""
    return {
        f"{title}: {name}": drawn(title, name, case, ink)[0]
        for title, cases in examples().items()
        if title in CHARTS
        for name, case in cases.items()
    }
