"""Frames to draw, with hostile names, and every chart drawn from them."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from rankdash.charts import cutoffs, deltas, headroom, ladder, segments, style, systems, waterfall

HOSTILE = "<a href='https://evil.example'>win</a> & <b>more</b>"
SYSTEMS = ["BM25", "MiniLM", HOSTILE, "BAAI/bge-reranker-v2-m3 (batch 16, 512 tokens)"]


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
    return pd.DataFrame(rows, columns=["system", "baseline", "won", "to_win", "retriever"])


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


@pytest.fixture(scope="session")
def moves() -> pd.DataFrame:
    """One query at k = 5: "up" enters, "down" leaves, "new" and "gone" are on one side only."""
    rows = [
        ("up", 9.0, 1.0, 3.0),
        ("hold", 2.0, 2.0, 1.0),
        ("unjudged", 5.0, 3.0, np.nan),
        ("new", np.nan, 4.0, np.nan),
        ("bad", 4.0, 5.0, 0.0),
        (HOSTILE, 3.0, 6.0, 0.0),
        ("down", 1.0, 12.0, 2.0),
        ("far", 30.0, 31.0, np.nan),
        ("gone", 6.0, np.nan, 1.0),
    ]
    frame = pd.DataFrame(rows, columns=["doc_id", "rank_before", "rank_after", "label"])
    was_in, is_in = frame["rank_before"] <= 5, frame["rank_after"] <= 5
    return frame.assign(
        relevant=frame["label"] >= 1, enters=is_in & ~was_in, leaves=was_in & ~is_in
    )


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


@pytest.fixture(scope="session")
def figures(
    ink: style.Ink,
    table: pd.DataFrame,
    compared: pd.DataFrame,
    curve: pd.DataFrame,
    banded: pd.DataFrame,
    splits: pd.DataFrame,
    groups: pd.DataFrame,
    moves: pd.DataFrame,
    parts: pd.DataFrame,
) -> dict[str, go.Figure]:
    """Every chart by name, in one ink; none may be changed."""
    hostile = {"q7": HOSTILE}
    one = compared[compared["system"].isin(SYSTEMS[:2]) & (compared["metric"] == "map")]
    many = pd.concat(
        [groups.assign(segment=HOSTILE, value=groups["value"] + str(n)) for n in range(4)]
    )
    return {
        "deltas, few": deltas.figure(made_pairs(60), HOSTILE, ink, names=hostile),
        "deltas, many": deltas.figure(made_pairs(1000), HOSTILE, ink, names=hostile),
        "deltas, most": deltas.figure(made_pairs(10_000), HOSTILE, ink, names=hostile),
        "systems": systems.figure(table, "BM25", ink, titles={"map": HOSTILE}),
        "systems, alone": systems.figure(table[table["system"] == "BM25"], "BM25", ink),
        "systems, intervals": systems.figure(compared, "BM25", ink, titles={"map": HOSTILE}),
        "systems, one change": systems.figure(one, "BM25", ink, titles={"map": HOSTILE}),
        "cutoffs": cutoffs.figure(curve, HOSTILE, "BM25", ink, k=10),
        "cutoffs, bands": cutoffs.figure(banded, HOSTILE, "BM25", ink, k=10),
        "headroom": headroom.figure(splits, HOSTILE, ink),
        "headroom, one": headroom.figure(splits[:1], HOSTILE, ink),
        "segments": segments.figure(groups, HOSTILE, ink),
        "segments, many": segments.figure(many, HOSTILE, ink),
        "segments, one": segments.figure(groups[3:4], HOSTILE, ink),
        "ladder": ladder.figure(moves, 5, HOSTILE, SYSTEMS[-1], ink, names={"up": HOSTILE}),
        "waterfall": waterfall.figure(parts, 0.42, HOSTILE, (HOSTILE, SYSTEMS[-1]), ink),
    }
