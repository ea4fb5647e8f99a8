"""What there is to label, and in which order: the pool of pairs, the metric, the sampled pairs.

    pool = pool_of({"first stage": a, "MiniLM": b}, 10)
    plan = LabelPlan.make(pool, Additive.of("dcg@10", top=3), seed=1)
    plan.order                                   # the pairs to label, in this order
    (found,) = estimate(plan, labels)            # at any time: the difference, and whether settled

A draw is one step of the sampling: a pair of query and document, or all pairs of a query, to be
labelled. A guess is what the gain of a pair is assumed to be before it has a label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from msgspec import Meta

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.data.arrays import Flags, Floats, Integers, owners, places
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Measure, parse_measure
from rankdash.core.metrics.definitions import EXPONENTIAL, LINEAR, GainForm, raw_gain


@dataclass(frozen=True, eq=False)
class LabelPool:
    """N pairs of Q queries that all of S systems answer, by query.

    systems: their names. query_ids: (Q,) object array of str. query: (N,) index of the query.
    doc_ids: (N,) object array of str. ranks: (S, N) float64, the rank in each system from 1; inf
    where it is beyond the depth. excluded: the queries that some systems lack.
    """

    systems: tuple[str, ...]
    query_ids: npt.NDArray[np.object_]
    query: Integers
    doc_ids: npt.NDArray[np.object_]
    ranks: Floats
    excluded: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.query)

    @cached_property
    def index(self) -> pd.MultiIndex:
        """(N,) query id and document id of each pair, to look pairs up by."""
        return pd.MultiIndex.from_arrays([self.query_ids[self.query], self.doc_ids])

    def aligned(self, table: pd.DataFrame, column: str = "label") -> Floats:
        """(N,) a value of each pair; NaN where the table has none.

        table: query_id, doc_id and the column, one row a pair; other pairs are ignored.
        """
        keyed = pd.Series(
            table[column].to_numpy(dtype=np.float64),
            index=pd.MultiIndex.from_frame(table[["query_id", "doc_id"]]),
        )
        return keyed.reindex(self.index).to_numpy(dtype=np.float64)


def pool_of(rankings: Mapping[str, Ranking], depth: int, *, fewest: int = 2) -> LabelPool:
    """The pool of the first `depth` of each ranking, as in TREC pooling.

    rankings: name → ranking, ties settled. fewest: how many there must be.

    Raises DataError where there are fewer, or where they share no query.
    """
    if len(rankings) < fewest:
        raise DataError(
            "Labels settle a question between two rankings; given: {count}.",
            remedy="Give at least two rankings of the same queries.",
            count=len(rankings),
        )
    lists = list(rankings.values())
    queries = pd.Index(lists[0].query_ids, dtype=object)
    for ranking in lists[1:]:
        queries = queries[queries.isin(ranking.query_ids)]
    if not len(queries):
        raise DataError(
            "The rankings have no query in common.",
            remedy="Give rankings of the same queries, with the same query ids.",
        )
    everyone = dict.fromkeys(query for ranking in lists for query in ranking.query_ids)
    documents = pd.Index(pd.unique(np.concatenate([each.doc_ids for each in lists])))
    entries = [_within(each, queries, documents, depth) for each in lists]
    pairs, at = np.unique(np.concatenate([codes for codes, _ in entries]), return_inverse=True)
    ranks = np.full((len(lists), len(pairs)), np.inf)
    start = 0
    for system, (codes, rank) in enumerate(entries):
        ranks[system, at[start : start + len(codes)]] = rank
        start += len(codes)
    query, document = np.divmod(pairs, len(documents))
    shared = set(queries)
    return LabelPool(
        systems=tuple(rankings),
        query_ids=queries.to_numpy(dtype=object),
        query=query,
        doc_ids=documents.to_numpy(dtype=object)[document],
        ranks=ranks,
        excluded=tuple(query for query in everyone if query not in shared),
    )


def _within(
    ranking: Ranking, queries: pd.Index, documents: pd.Index, depth: int
) -> tuple[Integers, Integers]:
    """A number for each shared query and document within the depth, and its rank."""
    query = queries.get_indexer(pd.Index(ranking.query_ids, dtype=object))
    document = documents.get_indexer(pd.Index(ranking.doc_ids, dtype=object))
    rank = places(ranking.offsets)
    owner = query[owners(ranking.offsets)]
    inside = (rank <= depth) & (owner >= 0)
    codes = owner[inside].astype(np.int64) * len(documents) + document[ranking.docs[inside]]
    return codes, rank[inside]


# A guess of each gain before it is labelled: it lowers how many labels are needed and never
# changes what they say, whatever the guess is worth.
#
# Pairs are in groups, such as one for each grade of a judge. The guess for a group is the mean
# gain of the labels sampled from it so far, with two pseudo-labels at the value that the group
# starts from.

PSEUDO_LABELS = 2.0
_RANK_BANDS = (1.0, 3.0, 10.0)


@dataclass(frozen=True, eq=False)
class Guess:
    """groups: (N,) the group of each pair of the pool, from 0. start: (G,) the gain, from 0 to 1,
    that each group starts from."""

    groups: Integers
    start: Floats

    @classmethod
    def from_ranks(cls, pool: LabelPool) -> Self:
        """Groups by the best rank in any system; all start from 0."""
        best = pool.ranks.min(axis=0)
        return cls(
            np.searchsorted(np.array(_RANK_BANDS), best).astype(np.int64),
            np.zeros(len(_RANK_BANDS) + 1),
        )

    @classmethod
    def from_gains(cls, gains: Floats) -> Self:
        """A group for each gain that a judge's grades stand for, and one for what it did not grade.

        gains: (N,) from 0 to 1; NaN where the judge has no grade.
        """
        values, groups = np.unique(np.where(np.isnan(gains), -1.0, gains), return_inverse=True)
        return cls(groups.astype(np.int64), np.maximum(values, 0.0))


# Metrics that are sums over documents, (weight of the rank) × (gain of the label): what can be
# estimated from some of the labels.
#
# NDCG, MAP and recall divide by what all labels of a query say, so they need complete labels.

_FORMS = {"dcg": LINEAR, "dcg_exp": EXPONENTIAL}
ADDITIVE = (*_FORMS, "precision", "rbp")
"""The metrics of the registry that are such sums."""


@dataclass(frozen=True)
class Additive:
    """A metric with a cutoff that is a sum over documents, and the scale of its labels.

    top: the highest label of the scale. threshold: the lowest label that is relevant, for
    precision and RBP.
    """

    measure: Measure
    top: float
    threshold: float = 1.0

    @classmethod
    def of(cls, spec: str, *, top: float, threshold: float = 1.0) -> Self:
        """Raises SpecError for a metric that is no such sum or has no cutoff, and for a scale whose
        top is not above 0 or below the threshold."""
        measure = parse_measure(spec)
        if measure.metric.name not in ADDITIVE or measure.k is None:
            raise SpecError(
                "{spec} cannot be estimated from some of the labels.",
                remedy="Use a sum over documents with a cutoff: dcg@10, dcg_exp@10, precision@10 "
                "or rbp@10. The others need all labels of a query.",
                spec=spec,
            )
        if not (
            np.isfinite(top) and top > 0 and (measure.metric.name in _FORMS or top >= threshold)
        ):
            raise SpecError(
                "The highest label of the scale is {top}, but it must be above 0 and reach the "
                "relevance threshold.",
                remedy="For grades 0 to 3 it is 3; for relevant or not it is 1.",
                top=f"{top:g}",
            )
        return cls(measure, top, threshold)

    @property
    def k(self) -> int:
        """The cutoff."""
        return self.measure.k or 0

    @property
    def _form(self) -> GainForm | None:
        return _FORMS.get(self.measure.metric.name)

    def weights(self, ranks: Floats) -> Floats:
        """What a document with the gain 1 adds to its query's value, at (…) ranks from 1; 0 beyond
        the cutoff. In the units of the metric, so that sums are what `evaluate` gives."""
        inside = ranks <= self.k
        rank = np.where(inside, ranks, 1.0)
        if self._form is not None:
            worth = float(raw_gain(self._form, np.array([self.top]))[0])
            weight = worth / self._form.discount(rank.astype(np.int64))
        elif self.measure.metric.name == "rbp":
            weight = (1 - self.measure.parameter) * self.measure.parameter ** (rank - 1)
        else:
            weight = np.full(rank.shape, 1 / self.k)
        return np.where(inside, weight, 0.0)

    def gains(self, labels: Floats) -> Floats:
        """(n,) what labels are worth, from 0 to 1; NaN where there is none. A negative label is
        worth 0. Raises DataError for a label above the top of the scale."""
        over = labels > self.top
        if over.any():
            raise DataError(
                "A label is {label}, above the top of the scale, which is {top}.",
                remedy="Give labels on this scale, or start another plan with the scale that they "
                "have: the labels so far count there as known.",
                label=f"{labels[over].max():g}",
                top=f"{self.top:g}",
            )
        if self._form is None:
            return np.where(np.isnan(labels), np.nan, (labels >= self.threshold).astype(np.float64))
        worth = raw_gain(self._form, np.maximum(np.append(labels, self.top), 0.0))
        gains: Floats = worth[:-1] / worth[-1]
        return gains


# Which pairs to label, in which order: draws with known probabilities.
#
# Draws are without replacement, so that no label is asked for twice and an unbiased estimate is
# there at every point. The order depends on the seed and the rankings only, never on a label. What
# is sampled is one of `MODES`:
#
# - "weight": pairs, each time with a probability in proportion to what the pair weighs in the
#   difference, so that those tend to come early that can move the answer most; a share of the draws
#   goes by what the pair weighs in the systems' own values;
# - "random": pairs, all equally likely, so that the first n are a random sample of that size;
# - "query": queries, all equally likely, each with all of its pairs.
#
# Source: Efraimidis and Spirakis 2006, weighted random sampling; Shekhar, Xu, Lipton, Liang and
# Ramdas 2023, Risk-limiting Financial Audits via Weighted Sampling without Replacement.

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
    was none; they count in full and are not sampled. order: (M,) the pairs to label, in the order
    in which they are sampled: all without a label that weigh anything. level: the probability that
    all intervals of all verdicts hold at every look together. mode: what is sampled, one of
    `MODES`. share: of the draws that go by the systems' own values, so that a difference can be
    stated as a part of the baseline's: documents at the same rank in all systems are then sampled
    too. 0 in plans of earlier versions.
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
        weights: Floats = self._worth[challengers] - self._worth[baselines]
        return weights

    @cached_property
    def baselines(self) -> Floats:
        """(C, N) what each pair adds to the mean of the baseline of a contrast if its gain is 1."""
        weights: Floats = self._worth[[baseline for baseline, _ in self.contrasts]]
        return weights

    @cached_property
    def _worth(self) -> Floats:
        worth: Floats = self.metric.weights(self.pool.ranks) / len(self.pool.query_ids)
        return worth

    @cached_property
    def reach(self) -> Floats:
        """(N,) how far each pair can move the differences: the sum of the sizes of its weights."""
        reach: Floats = np.abs(self.weights).sum(axis=0)
        return reach

    @cached_property
    def size(self) -> Floats:
        """(N,) what the probability of a pair is in proportion to where pairs are sampled by
        weight: its reach, and what it weighs in the values of the systems."""
        if not self.share:
            return self.reach
        worth = self._worth.sum(axis=0)
        moves, holds = self.reach / self.reach.sum(), worth / worth.sum()
        size: Floats = (1 - self.share) * moves + self.share * holds
        return size

    @cached_property
    def weighs(self) -> Flags:
        """(N,) whether a label of the pair can change the result."""
        nonzero: Flags = self.size > 0
        return nonzero

    @cached_property
    def draw(self) -> Integers:
        """(M,) the number of the draw, from 0, that each pair of `order` is part of."""
        if self.mode != "query":
            return np.arange(len(self.order))
        owner = self.pool.query[self.order]
        numbers: Integers = np.cumsum(np.diff(owner, prepend=owner[:1]) != 0)
        return numbers

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
        """(D,) the share of all there is to sample that has not been sampled before each draw; 1
        for the first."""
        return _unsampled_share(self.drawing)

    @property
    def probabilities(self) -> Floats:
        """(M,) the probability that the draw of each pair of `order` had, after those before it."""
        if not len(self.order):
            return np.zeros(0)
        probabilities: Floats = (self.drawing / self.drawing.sum() / self.remaining)[self.draw]
        return probabilities

    @property
    def alpha(self) -> float:
        """The share of error that each contrast may have (Bonferroni)."""
        return (1 - self.level) / len(self.contrasts)

    def names(self, contrast: int) -> tuple[str, str]:
        """How baseline and challenger of a contrast are called."""
        baseline, challenger = self.contrasts[contrast]
        return self.pool.systems[baseline], self.pool.systems[challenger]


def _unsampled_share(drawing: Floats) -> Floats:
    """(…, M) for (…, M) what is sampled, in order: the share of it all that comes at or after each
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
        labelled = ~np.isnan(label)
        size = len(pool)
        raters = np.bincount(pair, minlength=size)
        labels = np.bincount(pair[labelled], minlength=size)
        total = np.bincount(pair[labelled], label[labelled], size)
        mean = np.where(raters > 0, total / np.maximum(labels, 1), np.nan)
        return cls(latest, mean, (raters > 0) & (labels == 0), raters)


def next_pairs(
    plan: LabelPlan,
    answered: Answered,
    rater: str,
    count: int,
    *,
    doubled: float = 0.0,
    largest: bool = False,
) -> Integers:
    """The pairs that a rater gets next, at most `count`, as indexes into the pool.

    doubled: the share of pairs that a second rater gets too, spread evenly over the draws.
    largest: those first that can move the differences most, in place of the order of the draws.
    """
    order = plan.order
    mine = np.zeros(len(plan.pool), dtype=bool)
    mine[answered.latest.loc[answered.latest["rater"] == rater, "pair"]] = True
    places = np.arange(len(order))
    twice = np.floor((places + 1) * doubled) > np.floor(places * doubled)
    raters = answered.raters[order]
    eligible = (raters == 0) | (twice & (raters == 1) & ~mine[order])
    selected: Integers = order[eligible]
    if largest:
        selected = selected[np.argsort(-plan.reach[selected], kind="stable")]
    return selected[:count]


def draws_table(plan: LabelPlan) -> pd.DataFrame:
    """One row for each pair of the pool: draw (Int64, from 1; the same for all pairs of a query
    that was sampled) and probability (of the draw, after those before it). Both are missing where
    the label was there before, or the pair makes no difference."""
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
