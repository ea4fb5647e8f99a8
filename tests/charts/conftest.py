"""Frames to draw, with hostile names, and every chart drawn from them."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from rankdash.charts import cutoffs, deltas, ladder, style, systems

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


@pytest.fixture
def pairs() -> Callable[[int], pd.DataFrame]:
    return made_pairs


@pytest.fixture
def table() -> pd.DataFrame:
    rows = []
    for place, metric in enumerate(["ndcg@10", "mrr@10", "map", "recall@10"]):
        before = 0.3 + 0.1 * place
        for shift, system in zip([0.0, 0.14, 0.05, -0.02], SYSTEMS, strict=True):
            rows.append((system, metric, 58, before, before + shift, shift))
    return pd.DataFrame(rows, columns=["system", "metric", "paired", "before", "after", "delta"])


@pytest.fixture
def curve() -> pd.DataFrame:
    return pd.DataFrame(
        [
            (system, k, 0.2 + 0.05 * place + 0.1 * np.log10(k), 58)
            for place, system in enumerate(SYSTEMS)
            for k in (1, 2, 3, 5, 10, 15, 20, 30, 50, 100)
        ],
        columns=["system", "k", "mean", "n"],
    )


@pytest.fixture
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


@pytest.fixture(params=["light", "dark"])
def ink(request: pytest.FixtureRequest) -> style.Ink:
    return style.INKS[request.param]


@pytest.fixture
def figures(
    ink: style.Ink, table: pd.DataFrame, curve: pd.DataFrame, moves: pd.DataFrame
) -> dict[str, go.Figure]:
    """Every chart by name, in one ink."""
    hostile = {"q7": HOSTILE}
    return {
        "deltas, few": deltas.figure(made_pairs(60), HOSTILE, ink, names=hostile),
        "deltas, many": deltas.figure(made_pairs(1000), HOSTILE, ink, names=hostile),
        "deltas, most": deltas.figure(made_pairs(10_000), HOSTILE, ink, names=hostile),
        "systems": systems.figure(table, "BM25", ink, titles={"map": HOSTILE}),
        "systems, alone": systems.figure(table[table["system"] == "BM25"], "BM25", ink),
        "cutoffs": cutoffs.figure(curve, HOSTILE, "BM25", ink, k=10),
        "ladder": ladder.figure(moves, 5, HOSTILE, SYSTEMS[-1], ink, names={"up": HOSTILE}),
    }
