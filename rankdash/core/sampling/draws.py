"""Which pairs to label, in which order: draws with known probabilities.

Draws are without replacement, so that no label is asked for twice and an unbiased estimate is there
at every point. The order depends on the seed and the rankings only, never on a label. What is drawn
is one of `MODES`:

- "weight": pairs, each time with a probability in proportion to what the pair weighs in the
  difference, so that those tend to come early that can move the answer most; a share of the draws
  goes by what the pair weighs in the systems' own values;
- "random": pairs, all equally likely, so that the first n are a random sample of that size;
- "query": queries, all equally likely, each with all of its pairs.

Source: Efraimidis and Spirakis 2006, weighted random sampling; Shekhar, Xu, Lipton, Liang and
Ramdas 2023, Risk-limiting Financial Audits via Weighted Sampling without Replacement.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal, Self

import numpy as np
import pandas as pd
from msgspec import Meta

from rankdash.core.base.errors import DataError
from rankdash.core.data.arrays import Flags, Floats, Integers
from rankdash.core.sampling.additive import Additive
from rankdash.core.sampling.label_pool import LabelPool

_Share = Annotated[float, Meta(ge=0, le=1)]

LEVEL = 0.95

Mode = Literal["weight", "random", "query"]
MODES: tuple[Mode, ...] = ("weight", "random", "query")

VALUE_SHARE = 0.2
"""The share of the draws by weight that new plans give to the systems' own values."""

FEWEST_DRAWS, FEWEST_QUERIES, FEWEST_NON_ZERO = 50, 20, 10
"""No interval is given before so many draws of pairs, or of whole queries, and so many among them
that move the difference: with fewer, coverage falls short on sparse labels."""


@dataclass(frozen=True)
class LabelSettings:
    """What a plan is made from; the same settings and rankings make the same plan again.

    systems: their ids, the baseline first. metric: a sum over documents with a cutoff, such as
    "dcg@10". top: the highest grade. threshold: the lowest that is relevant. double: the share of
    the pairs that two people label. judge: the id of the judge whose grades are the guess of the
    gains; "" for none. share: of the draws for the systems' own values; 0 in plans of earlier
    versions.
    """

    systems: tuple[str, ...]
    metric: str
    top: float
    threshold: float
    seed: Annotated[int, Meta(ge=0)]
    double: _Share = 0.0
    mode: Mode = "weight"
    keep: bool = True
    before: float | None = None
    judge: str = ""
    share: _Share = 0.0


@dataclass(frozen=True, eq=False)
class LabelPlan:
    """Draws from a pool that settle the difference of some pairs of systems by a metric.

    contrasts: (baseline, challenger) as indexes into the pool's systems, one for each verdict.
    seed: of the order. known: (N,) labels that were there before the first draw, NaN where there
    was none; they count in full and are not drawn. order: (M,) the pairs to label, in the order in
    which they are drawn: all without a label that weigh anything. level: the probability that all
    intervals of all verdicts hold at every look together. mode: what is drawn, one of `MODES`.
    share: of the draws that go by the systems' own values, so that a difference can be stated as a
    part of the baseline's: documents at the same rank in all systems are then drawn too. 0 in plans
    of earlier versions.
    """

    pool: LabelPool
    metric: Additive
    contrasts: tuple[tuple[int, int], ...]
    seed: int
    known: Floats
    order: Integers
    level: float = LEVEL
    mode: Mode = "weight"
    share: float = 0.0

    @classmethod
    def make(
        cls,
        pool: LabelPool,
        metric: Additive,
        *,
        seed: int,
        contrasts: Sequence[tuple[int, int]] = (),
        known: Floats | None = None,
        level: float = LEVEL,
        mode: Mode = "weight",
        share: float = 0.0,
    ) -> Self:
        """A plan for some contrasts; where none is given, for each system against the first.

        Raises DataError where the rankings are the same within the cutoff, so that no label could
        make a difference.
        """
        before = np.full(len(pool), np.nan) if known is None else known
        chosen = tuple(contrasts) or tuple((0, other) for other in range(1, len(pool.systems)))
        empty = np.zeros(0, dtype=np.int64)
        plan = cls(pool, metric, chosen, seed, before, empty, level, mode, share)
        if not plan.reach.any():
            raise DataError(
                "The rankings are the same within the first {k} of every query, so that no label "
                "makes a difference.",
                remedy="Compare other rankings, or a metric with a larger cutoff.",
                k=metric.k,
            )
        open_pairs = np.flatnonzero(plan.weighs & np.isnan(before))
        random = np.random.default_rng(seed)
        waits = random.exponential(size=len(pool))[open_pairs]
        if mode == "weight":
            waits /= plan.size[open_pairs]
        order = open_pairs[np.argsort(waits, kind="stable")]
        if mode == "query":
            turn = random.permutation(len(pool.query_ids))
            order = order[np.argsort(turn[pool.query[order]], kind="stable")]
        return replace(plan, order=order)

    @cached_property
    def weights(self) -> Floats:
        """(C, N) what each pair adds to the mean difference of a contrast if its gain is 1."""
        baselines, challengers = np.array(self.contrasts).T
        found: Floats = self._worth[challengers] - self._worth[baselines]
        return found

    @cached_property
    def baselines(self) -> Floats:
        """(C, N) what each pair adds to the mean of the baseline of a contrast if its gain is 1."""
        found: Floats = self._worth[[baseline for baseline, _ in self.contrasts]]
        return found

    @cached_property
    def _worth(self) -> Floats:
        found: Floats = self.metric.weights(self.pool.ranks) / len(self.pool.query_ids)
        return found

    @cached_property
    def reach(self) -> Floats:
        """(N,) how far each pair can move the differences: the sum of the sizes of its weights."""
        found: Floats = np.abs(self.weights).sum(axis=0)
        return found

    @cached_property
    def size(self) -> Floats:
        """(N,) what the probability of a pair is in proportion to where pairs are drawn by weight:
        its reach, and what it weighs in the values of the systems."""
        if not self.share:
            return self.reach
        own = self._worth.sum(axis=0)
        moves, holds = self.reach / self.reach.sum(), own / own.sum()
        found: Floats = (1 - self.share) * moves + self.share * holds
        return found

    @cached_property
    def weighs(self) -> Flags:
        """(N,) whether a label of the pair can change the result."""
        found: Flags = self.size > 0
        return found

    @cached_property
    def draw(self) -> Integers:
        """(M,) the number of the draw, from 0, that each pair of `order` is part of."""
        if self.mode != "query":
            return np.arange(len(self.order))
        owner = self.pool.query[self.order]
        found: Integers = np.cumsum(np.diff(owner, prepend=owner[:1]) != 0)
        return found

    @property
    def fewest(self) -> int:
        """Draws before anything is said of a difference."""
        return FEWEST_QUERIES if self.mode == "query" else FEWEST_DRAWS

    @cached_property
    def drawing(self) -> Floats:
        """(D,) what the probability of each of the draws is in proportion to."""
        if self.mode == "weight":
            return self.size[self.order]
        return np.ones(int(self.draw.max(initial=-1)) + 1)

    @cached_property
    def remaining(self) -> Floats:
        """(D,) the share of all there is to draw that has not been drawn before each draw; 1 for
        the first."""
        return undrawn_share(self.drawing)

    @property
    def probabilities(self) -> Floats:
        """(M,) the probability that the draw of each pair of `order` had, after those before it."""
        if not len(self.order):
            return np.zeros(0)
        found: Floats = (self.drawing / self.drawing.sum() / self.remaining)[self.draw]
        return found

    @property
    def alpha(self) -> float:
        """The share of error that each contrast may have (Bonferroni)."""
        return (1 - self.level) / len(self.contrasts)

    def names(self, contrast: int) -> tuple[str, str]:
        """How baseline and challenger of a contrast are called."""
        baseline, challenger = self.contrasts[contrast]
        return self.pool.systems[baseline], self.pool.systems[challenger]


def undrawn_share(drawing: Floats) -> Floats:
    """(…, M) for (…, M) what is drawn, in order: the share of it all that comes at or after each
    draw. Summed from the end, so that the last ones are not what rounding left over."""
    behind: Floats = np.cumsum(drawing[..., ::-1], axis=-1)[..., ::-1]
    return behind / behind[..., :1]


# What raters answered: one label for each pair, and what a rater gets next.
#
# Answers are a table with one row for each, in the order in which they were given: query_id,
# doc_id, label (float64; NaN for "cannot tell"), rater (str) and time (ISO 8601 in UTC, or ""). A
# later answer of a rater for a pair replaces the earlier one.

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
