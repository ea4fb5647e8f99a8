"""What raters answered: one label for each pair, and what a rater gets next.

Answers are a table with one row for each, in the order in which they were given: query_id, doc_id,
label (float64; NaN for "cannot tell"), rater (str) and time (ISO 8601 in UTC, or ""). A later
answer of a rater for a pair replaces the earlier one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rankdash.core.data.ragged import Flags, Floats, Integers
from rankdash.core.sampling.draws import LabelPlan
from rankdash.core.sampling.label_pool import LabelPool

CANNOT_TELL = "cannot tell"
"""What stands for the label where no rater could tell; every reader of labels knows it."""

COLUMNS = ("query_id", "doc_id", "label", "rater", "time")


def no_answers() -> pd.DataFrame:
    """The table without a row."""
    table = pd.DataFrame({name: pd.Series(dtype=object) for name in COLUMNS})
    return table.astype({"label": np.float64})


@dataclass(frozen=True, eq=False)
class Answered:
    """The answers of a pool's pairs.

    latest: one row for each pair and rater: `COLUMNS`, and pair, its index in the pool.
    labels: (N,) the mean of the raters' labels; 0 where all of them cannot tell, since a document
    without a label counts as not relevant; NaN where nobody answered. cannot_tell: (N,) whether
    that is so. raters: (N,) how many answered.
    """

    latest: pd.DataFrame
    labels: Floats
    cannot_tell: Flags
    raters: Integers

    @classmethod
    def of(cls, pool: LabelPool, answers: pd.DataFrame) -> Answered:
        """Answers for other pairs are ignored."""
        ids = pd.MultiIndex.from_frame(answers[["query_id", "doc_id"]])
        placed = answers.assign(pair=pool.index.get_indexer(ids))
        latest = placed[placed["pair"] >= 0].drop_duplicates(["pair", "rater"], keep="last")
        pair, label = latest["pair"].to_numpy(), latest["label"].to_numpy(dtype=np.float64)
        said = ~np.isnan(label)
        size = len(pool)
        raters = np.bincount(pair, minlength=size)
        labels = np.bincount(pair[said], minlength=size)
        total = np.bincount(pair[said], label[said], size)
        mean = np.where(raters > 0, total / np.maximum(labels, 1), np.nan)
        return cls(latest, mean, (raters > 0) & (labels == 0), raters)


def next_pairs(
    plan: LabelPlan,
    answered: Answered,
    rater: str,
    count: int,
    *,
    doubled: float = 0.0,
    taken: Collection[int] = (),
    largest: bool = False,
) -> Integers:
    """The pairs that a rater gets next, at most `count`, as indexes into the pool.

    doubled: the share of pairs that a second rater gets too, spread evenly over the draws.
    taken: pairs that others have in hand. largest: those first that can move the differences most,
    in place of the order of the draws.
    """
    order = plan.order
    mine = np.zeros(len(plan.pool), dtype=bool)
    mine[answered.latest.loc[answered.latest["rater"] == rater, "pair"]] = True
    busy = np.zeros(len(plan.pool), dtype=bool)
    busy[list(taken)] = True
    places = np.arange(len(order))
    twice = np.floor((places + 1) * doubled) > np.floor(places * doubled)
    given = answered.raters[order]
    wanted = (given == 0) | (twice & (given == 1) & ~mine[order])
    found: Integers = order[wanted & ~busy[order]]
    if largest:
        found = found[np.argsort(-plan.reach[found], kind="stable")]
    return found[:count]


def draws_table(plan: LabelPlan) -> pd.DataFrame:
    """One row for each pair of the pool: draw (Int64, from 1; the same for all pairs of a query
    that was drawn) and probability (of the draw, after those before it). Both are missing where the
    label was there before, or the pair makes no difference."""
    draw, chance = np.full(len(plan.pool), np.nan), np.full(len(plan.pool), np.nan)
    draw[plan.order] = plan.draw + 1
    chance[plan.order] = plan.probabilities
    return pd.DataFrame({"draw": pd.array(draw, dtype="Int64"), "probability": chance})


def labels_table(plan: LabelPlan, answered: Answered) -> pd.DataFrame:
    """One row for each pair with a label, as labels that the readers read: query_id, doc_id, label
    (the mean of several raters', or "cannot tell"), draw and probability (as in `draws_table`),
    rater (names with semicolons between) and time (of the last answer)."""
    pool = plan.pool
    labels = np.where(answered.raters > 0, answered.labels, plan.known)
    cells = labels.astype(object)
    cells[answered.cannot_tell] = CANNOT_TELL
    by_pair = answered.latest.sort_values("rater").groupby("pair")
    names, times = by_pair["rater"].agg("; ".join), by_pair["time"].max()
    table = pd.DataFrame(
        {
            "query_id": pool.query_ids[pool.query],
            "doc_id": pool.doc_ids,
            "label": cells,
            **draws_table(plan),
            "rater": names.reindex(range(len(pool))).fillna("").to_numpy(dtype=object),
            "time": times.reindex(range(len(pool))).fillna("").to_numpy(dtype=object),
        }
    )
    return table[~np.isnan(labels)].reset_index(drop=True)
