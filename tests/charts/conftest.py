"""Frames to draw, with hostile names, and every chart drawn from them."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from rankdash.analysis.latency import ecdf, fit, summarize
from rankdash.analysis.ranks.ladder import Ladder
from rankdash.analysis.ranks.margins import by_margin
from rankdash.analysis.ranks.shifts import Moves
from rankdash.analysis.ranks.skipping import rules_on
from rankdash.analysis.ranks.skipping import skipping as skips
from rankdash.analysis.ranks.transitions import flow
from rankdash.analysis.ranks.transitions import move_sizes as sizes_of
from rankdash.analysis.ranks.transitions import transitions as counts_of
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.analysis.token_lengths import token_lengths as lengths_of
from rankdash.charts import style
from rankdash.charts.cost import break_even, crossover, depth, frontier, tornado
from rankdash.charts.latency import (
    latency_ecdf,
    latency_fit,
    latency_spread,
    throughput,
    token_lengths,
)
from rankdash.charts.quality import (
    cutoffs,
    deltas,
    headroom,
    label_curve,
    query_groups,
    systems,
    trend,
    waterfall,
)
from rankdash.charts.ranks import (
    agreement,
    flows,
    ladder,
    margins,
    move_sizes,
    skipping,
    transitions,
)
from rankdash.ranking.measured import Level
from rankdash.ranking.ranking import Reading

HOSTILE = "<a href='https://evil.example'>win</a> & <b>more</b>"
SYSTEMS = ["BM25", "MiniLM", HOSTILE, "BAAI/bge-reranker-v2-m3 (batch 16, 512 tokens)"]


def made_moves(queries: int, seed: int = 4) -> Moves:
    """30 documents a query, a fifth of them relevant; some are in one ranking only."""
    rng = np.random.default_rng(seed)
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
        unranked=5,
        only_before=0,
        only_after=0,
    )


def made_pairs(n: int, seed: int = 5) -> pd.DataFrame:
    """A paired frame in which about a third is the same and two queries were left out."""
    rng = np.random.default_rng(seed)
    delta = np.where(rng.random(n) < 0.35, 0.0, rng.normal(0.05, 0.2, n))
    before = rng.random(n)
    frame = pd.DataFrame(
        {
            "query_id": [f"q{place}" for place in range(n)],
            "before": before,
            "after": before + delta,
            "delta": delta,
            "state": "paired",
        }
    )
    frame.loc[:1, "delta"] = np.nan
    frame.loc[:1, "state"] = "failed"
    return frame


LABEL_CURVE = [(20, 0.2, 0.11), (40, 0.14, 0.08), (100, 0.09, 0.09)]
"""People's queries, half the interval of people alone, half the corrected one."""


@pytest.fixture(scope="session")
def pairs() -> Callable[[int], pd.DataFrame]:
    return made_pairs


@pytest.fixture(scope="session")
def table() -> pd.DataFrame:
    rows = []
    for place, metric in enumerate(["ndcg@10", "mrr@10", "map", "recall@10"]):
        before = 0.3 + 0.1 * place
        for shift, system in zip([0.0, 0.14, 0.05, -0.02], SYSTEMS, strict=True):
            rows.append((system, metric, 58, before, before + shift, shift))
    return pd.DataFrame(rows, columns=["system", "metric", "paired", "before", "after", "delta"])


@pytest.fixture(scope="session")
def curve() -> pd.DataFrame:
    return pd.DataFrame(
        [
            (system, k, 0.2 + 0.05 * place + 0.1 * np.log10(k), 58)
            for place, system in enumerate(SYSTEMS)
            for k in (1, 2, 3, 5, 10, 15, 20, 30, 50, 100)
        ],
        columns=["system", "k", "mean", "n"],
    )


@pytest.fixture(scope="session")
def compared(table: pd.DataFrame) -> pd.DataFrame:
    """The table with intervals: the second system's gain is proven, the last one's loss too."""
    room = table["system"].map(dict(zip(SYSTEMS, [0.0, 0.05, 0.07, 0.015], strict=True)))
    p = table["system"].map(dict(zip(SYSTEMS, [np.nan, 0.002, 0.4, 0.03], strict=True)))
    return table.assign(
        delta_low=table["delta"] - room, delta_high=table["delta"] + 1.2 * room, p_corrected=p
    )


@pytest.fixture(scope="session")
def banded(curve: pd.DataFrame) -> pd.DataFrame:
    return curve.assign(low=curve["mean"] - 0.06, high=curve["mean"] + 0.08)


@pytest.fixture(scope="session")
def splits() -> pd.DataFrame:
    """A gain, a loss, a gain too small for its number, nothing lost to the retriever, a challenger
    above the ceiling, next to no baseline, no values."""
    rows = [
        ("MiniLM", 0.52, 0.09, 0.26, 0.13),
        (HOSTILE, 0.52, -0.06, 0.41, 0.13),
        (SYSTEMS[-1], 0.52, 0.012, 0.338, 0.13),
        ("混合检索＋大型中文重排模型第二版（批量16，512词元）", 0.52, 0.3, 0.18, 0.0),
        ("beyond", 0.5, 0.3, -0.05, 0.25),
        ("low", 0.02, 0.01, 0.015, 0.955),
        ("none", np.nan, np.nan, np.nan, np.nan),
    ]
    columns = ["system", "baseline", "won", "to_win", "retriever"]
    return pd.DataFrame(rows, columns=columns).assign(own=False)


@pytest.fixture(scope="session")
def groups() -> pd.DataFrame:
    """Proven gain, proven loss, too small to be sure, a rough guess, too few, none, of two
    segments."""
    rows = [
        ("language", "other script", 1204, 0.12, 0.08, 0.15, 0.001, False),
        ("language", "急性淋巴细胞白血病的治疗与预后", 301, -0.09, -0.14, -0.05, 0.004, False),
        ("language", "mixed", 88, 0.03, -0.02, 0.09, 0.3, False),
        (HOSTILE, "focus group of rare diseases and their outlook", 7, 0.2, 0.05, 0.4, 0.04, True),
        (HOSTILE, HOSTILE, 3, 0.15, np.nan, np.nan, np.nan, True),
        (HOSTILE, "empty", 0, np.nan, np.nan, np.nan, np.nan, True),
    ]
    columns = ["segment", "value", "n", "delta", "low", "high", "p_corrected", "small"]
    return pd.DataFrame(rows, columns=columns)


MOVES = [
    ("up", [9, 1, 2], 3.0),
    ("hold", [2, 2, 3], 1.0),
    ("unjudged", [8, 3, 1], np.nan),
    ("new", [np.nan, 4, np.nan], np.nan),
    ("bad", [1, 5, 4], 0.0),
    (HOSTILE, [3, 6, 7], 0.0),
    ("rising", [7, 7, 5], 0.0),
    ("down", [4, 12, 12], 2.0),
    ("still", [5, 8, 6], 0.0),
    ("far", [30, 31, 30], np.nan),
    ("gone", [6, np.nan, np.nan], 1.0),
]


@pytest.fixture(scope="session")
def moves() -> Ladder:
    """One query at k = 5 in three systems: "up" enters, "down" leaves, "new" and "gone" are in some
    systems only."""
    label = np.array([label for _, _, label in MOVES])
    doc_ids = np.array([doc for doc, _, _ in MOVES], dtype=object)
    ideal = np.full(len(MOVES), np.nan)
    ideal[np.argsort(-np.nan_to_num(label), kind="stable")[:4]] = [1, 2, 3, 4]
    return Ladder(
        systems=("first", "small", "large"),
        doc_ids=doc_ids,
        ranks=np.array([ranks for _, ranks, _ in MOVES], dtype=np.float64),
        label=label,
        relevant=label >= 1,
        ideal=ideal,
        k=5,
    )


def wide_ladder(documents: int, k: int) -> Ladder:
    """Five systems that disagree about many documents, a few of them relevant."""
    rng = np.random.default_rng(3)
    order = np.arange(documents)
    noisy = [np.argsort(np.argsort(order + rng.normal(0, 3 * n, documents))) for n in range(5)]
    label = np.where(order % 9 == 0, 1.0, np.where(order % 4 == 0, 0.0, np.nan))
    relevant = label >= 1
    return Ladder(
        systems=(*SYSTEMS, "Fusion"),
        doc_ids=np.array([f"doc {n}" for n in order], dtype=object),
        ranks=np.column_stack(noisy) + 1.0,
        label=label,
        relevant=relevant,
        ideal=np.where(relevant, np.cumsum(relevant), np.nan),
        k=k,
    )


@pytest.fixture(scope="session")
def wide() -> Callable[[int, int], Ladder]:
    return wide_ladder


@pytest.fixture(scope="session")
def parts() -> pd.DataFrame:
    """One query's documents with what each adds: 14 change, of which the largest are hostile, one
    is in one list only, and one has a Chinese name."""
    rng = np.random.default_rng(3)
    ids = [
        HOSTILE,
        "急性淋巴细胞白血病的治疗与预后以及随访建议",
        *(f"document {n}" for n in range(12)),
    ]
    size = np.array([0.2, 0.15, *np.linspace(0.04, 0.01, 12)])
    up = np.arange(14) % 3 > 0
    return pd.DataFrame(
        {
            "doc_id": ids,
            "rank_before": [np.nan, *rng.permutation(13) + 1.0],
            "rank_after": [*rng.permutation(13) + 1.0, np.nan],
            "label": [3.0, 0.5, *rng.integers(1, 4, 12)],
            "before": np.where(up, 0.0, size),
            "after": np.where(up, size, 0.0),
            "delta": np.where(up, size, -size),
        }
    )


@pytest.fixture(params=["light", "dark"], scope="session")
def ink(request: pytest.FixtureRequest) -> style.Ink:
    return style.INKS[request.param]


def worth(ink: style.Ink) -> dict[str, go.Figure]:
    """The charts of cost and return, with hostile names."""
    swings = [tornado.Row(HOSTILE, -9.0, 40.0, HOSTILE, "2"), tornado.Row("b", 1.0, 2.0, "3", "4")]
    axes = [break_even.Axis(HOSTILE, [1.0, 10.0], 2.0, True), break_even.Axis("y", [0.0, 1.0], 0.5)]
    net = np.array([[-1.0, 2.0], [3.0, -4.0]])
    points = [
        frontier.FrontierPoint(name, style.marks_in_order([name])[name], x, 0.5, True)
        for name, x in ((HOSTILE, 1.0), ("slow", 9.0))
    ]
    cuts = pd.DataFrame({"depth": [0, 10], "mean": [0.4, 0.5], "low": 0.3, "high": 0.6})
    return {
        "tornado": tornado.figure(swings, 10.0, ink, money=lambda amount: f"<i>{amount}"),
        "break-even": break_even.figure(net, *axes, ink, money=lambda amount: f"<i>{amount}"),
        "frontier": frontier.figure(points, HOSTILE, "cost", ink, target=5.0),
        "crossover": crossover.figure([1.0, 2.0], {HOSTILE: [1.0, 3.0]}, 2.0, ink),
        "depth": depth.figure(cuts, HOSTILE, {"best": 10}, ink, latency=[0, 9], cost=[0, 1]),
    }


def shifted(ink: style.Ink) -> dict[str, go.Figure]:
    """The charts of rank shifts, few and many documents, with hostile names."""
    few, many = (made_moves(n) for n in (3, 400))
    margin = pd.Series({f"q{n}": (n * 7 % 10_000) / 10_000 for n in range(10_000)})
    sides = (HOSTILE, SYSTEMS[-1])
    agreed = pd.DataFrame(
        [
            ("a", "b", 9, 0.6, 0.5, 0.7, 0.8, 0.75, 0.82),
            ("a", "c", 9, -0.4, -0.6, -0.2, 0, 0, 0),
            ("b", "c", 1, 1.0, np.nan, np.nan, 1.0, np.nan, np.nan),
        ],
        columns=["one", "other", "n", "tau", "tau_low", "tau_high", "rbo", "rbo_low", "rbo_high"],
    )
    names = {"a": HOSTILE, "b": SYSTEMS[-1], "c": "c"}
    drawn = {
        "agreement": agreement.figure(agreed, ink, p=0.9, names=names),
        "flows": flows.figure(flow(many, 10), *sides, ink),
        "flows, none": flows.figure(flow(few, 100), *sides, ink),
        "move sizes": move_sizes.figure(sizes_of(many), *sides, ink),
        "transitions": transitions.figure(counts_of(many, relevant_only=False), *sides, ink),
        "transitions, few": transitions.figure(counts_of(few, relevant_only=True), *sides, ink),
    }
    for name, n in (("few", 60), ("most", 10_000)):
        pairs = made_pairs(n)
        found = skips(rules_on(pairs, margin, StatisticsSettings(resamples=200)), 0.05)
        means = by_margin(pairs, margin)
        drawn[f"margins, {name}"] = margins.figure(
            pairs, margin, means, HOSTILE, ink, threshold=0.5, names={"q7": HOSTILE}
        )
        drawn[f"skipping, {name}"] = skipping.figure(
            found.curve, HOSTILE, found.tolerance, ink, chosen=found.curve["threshold"].iloc[3]
        )
    return drawn


def made_levels() -> list[Level]:
    """Twice the queries a second at twice the clients, until the cores are busy."""
    return [
        Level(n, 2.0, 2 * rate, n == 8, 10.0 * n, 16.0 * n, float(rate), 20.0 * rate, 1.8)
        for n, rate in ((1, 60), (2, 110), (4, 118), (8, 118))
    ]


def timed(ink: style.Ink) -> dict[str, go.Figure]:
    """The charts of latency, few and many queries, with hostile names."""
    marks = style.marks_in_order(["a", "b"], "a")
    rng = np.random.default_rng(8)
    drawn = {}
    for size, n in (("few", 40), ("many", 10_000)):
        found = {name: np.sort(rng.lognormal(place + 2, 0.4, n)) for place, name in enumerate("ab")}
        names = {"a": HOSTILE, "b": SYSTEMS[-1]}
        curves = [
            latency_ecdf.Curve(
                each, names[each], ecdf(ms), summarize(pd.DataFrame({"latency_ms": ms}))
            )
            for each, ms in found.items()
        ]
        spreads = [latency_spread.Spread(each, names[each], ms) for each, ms in found.items()]
        clouds = []
        for each, ms in found.items():
            points = pd.DataFrame({"x": rng.integers(10, 50, n).astype(float), "ms": ms})
            line = fit(points["x"].to_numpy(), points["ms"].to_numpy())
            clouds.append(latency_fit.Cloud(each, names[each], points, line))
        drawn |= {
            f"latency, {size}": latency_ecdf.figure(curves, marks, ink, target_ms=500.0),
            f"latency spread, {size}": latency_spread.figure(spreads, marks, ink, target_ms=9.0),
            f"latency fit, {size}": latency_fit.figure(clouds, marks, "documents", ink, rules=True),
        }
    full = rng.integers(20, 1500, 5000).astype(np.int32)
    reading = Reading(np.minimum(full, 512), full)
    levels = [throughput.Measurement("a", HOSTILE, made_levels())]
    return {
        **drawn,
        "throughput": throughput.figure(levels, marks, ink, target_ms=50.0),
        "token lengths": token_lengths.figure(lengths_of(reading), ink, name=HOSTILE),
    }


def made_past(runs: int, *, timed: bool = True) -> list[trend.TrendPoint]:
    """Every third run repeats the first, every fourth failed on something, the fifth is a quick
    look."""
    rng = np.random.default_rng(7)
    means = 0.4 + rng.normal(0, 0.05, runs)
    return [
        trend.TrendPoint(
            number=place + 1,
            name=HOSTILE if place % 2 else f"run {place}",
            when=f"Nov {place + 1}, 2026, 9:00:00 AM",
            day=f"Nov {place // 2 + 1}",
            series=0 if place % 3 == 0 else None,
            mean=float(means[place]),
            low=float(means[place]) - 0.08,
            high=float(means[place]) + 0.09,
            n=58,
            compared=place != 4,
            p95_ms=float(rng.lognormal(3, 2)) if timed and place % 5 else np.nan,
            failed=place % 4 if timed else 0,
            note=HOSTILE,
        )
        for place in range(runs)
    ]


def past(ink: style.Ink) -> dict[str, go.Figure]:
    """A baseline, a pinned run and the first stage behind few runs, many, and one."""
    across = [
        trend.Across(f"{HOSTILE} (baseline)", 0.41),
        trend.Across("MiniLM (pinned)", 0.47),
        trend.Across("First stage", 0.32),
    ]
    return {
        f"trend, {runs}": trend.figure(
            made_past(runs, timed=runs > 1), HOSTILE, across, ink, series=[HOSTILE]
        )
        for runs in (1, 7, 30)
    }


@pytest.fixture(scope="session")
def drawn_in(
    table: pd.DataFrame,
    compared: pd.DataFrame,
    curve: pd.DataFrame,
    banded: pd.DataFrame,
    splits: pd.DataFrame,
    groups: pd.DataFrame,
    moves: Ladder,
    parts: pd.DataFrame,
) -> Callable[[style.Ink], dict[str, go.Figure]]:
    """Draws every chart, by name, in one ink."""
    hostile = {"q7": HOSTILE}
    one = compared[compared["system"].isin(SYSTEMS[:2]) & (compared["metric"] == "map")]
    many = pd.concat(
        [groups.assign(segment=HOSTILE, value=groups["value"] + str(n)) for n in range(4)]
    )

    def drawn(ink: style.Ink) -> dict[str, go.Figure]:
        return {
            **past(ink),
            **worth(ink),
            **shifted(ink),
            **timed(ink),
            "deltas, few": deltas.figure(made_pairs(60), HOSTILE, ink, names=hostile),
            "deltas, many": deltas.figure(made_pairs(1000), HOSTILE, ink, names=hostile),
            "deltas, most": deltas.figure(made_pairs(10_000), HOSTILE, ink, names=hostile),
            "systems": systems.figure(table, "BM25", ink, titles={"map": HOSTILE}),
            "systems, alone": systems.figure(table[table["system"] == "BM25"], "BM25", ink),
            "systems, intervals": systems.figure(compared, "BM25", ink, titles={"map": HOSTILE}),
            "systems, one change": systems.figure(one, "BM25", ink, titles={"map": HOSTILE}),
            "cutoffs": cutoffs.figure(curve, HOSTILE, "BM25", ink, k=10),
            "label curve": label_curve.figure({HOSTILE: LABEL_CURVE}, HOSTILE, ink),
            "cutoffs, bands": cutoffs.figure(banded, HOSTILE, "BM25", ink, k=10),
            "headroom": headroom.figure(splits, HOSTILE, ink),
            "headroom, one": headroom.figure(splits[:1], HOSTILE, ink),
            "segments": query_groups.figure(groups, HOSTILE, ink),
            "segments, many": query_groups.figure(many, HOSTILE, ink),
            "segments, one": query_groups.figure(groups[3:4], HOSTILE, ink),
            "ladder": ladder.figure(
                moves, ink, titles={"small": HOSTILE}, names={"up": HOSTILE}, every=True
            ),
            "ladder, followed": ladder.figure(moves, ink, names={"up": HOSTILE}, focus="up"),
            "ladder, many": ladder.figure(wide_ladder(60, 10), ink),
            "ladder, deep": ladder.figure(wide_ladder(100, 50), ink),
            "waterfall": waterfall.figure(parts, 0.42, HOSTILE, (HOSTILE, SYSTEMS[-1]), ink),
        }

    return drawn


@pytest.fixture(scope="session")
def figures(
    drawn_in: Callable[[style.Ink], dict[str, go.Figure]], ink: style.Ink
) -> dict[str, go.Figure]:
    """Every chart by name, in one ink; none may be changed."""
    return drawn_in(ink)
