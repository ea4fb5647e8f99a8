"""Fusion weights: the gain of tuned weights on queries that were not used for tuning.

Weights that are chosen and measured on the same queries look better than they are. Here the queries
are split into folds, repeatedly; the weights for each fold are chosen on the other folds (nested
cross-validation), and only the gain on the held-out folds is a result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import DataError, SettingError
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.arrays import Floats, Integers
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import evaluate
from rankdash.core.metrics.judged import match
from rankdash.core.rerankers.fusion import Fusion, Joined
from rankdash.core.runs.combining import Tuned
from rankdash.core.statistics.alignment import places_of
from rankdash.core.statistics.inference import corrected, intervals, p_values
from rankdash.core.statistics.verdict import is_proven
from rankdash.core.study.cache import part
from rankdash.core.study.study import Study

FOLDS = 5
REPEATS = 200
"""The number of splits: the held-out gain of 60 queries then has a random error of .0005."""

HALVES, OF_A_HALF = 100, 10
"""The number of random halves of the queries for the standard error, and of splits of each."""

FEWEST = 20
"""The number of queries needed to choose weights: with fewer, a fold has three or fewer."""

SYSTEMS = (2, 4)
"""The smallest and the largest number of systems."""

MOST_ROWS = 3_000_000
"""The largest number of ranked documents of all systems together. If there are more, weights are
tuned on a random sample of the queries."""

SAME = 0.8
"""The smallest share of common words (Jaccard) with which two queries are near duplicates."""

_KS = (1.0, 10.0, 20.0, 60.0, 100.0)
_USUAL_K = 60.0
# The number of steps from weight 0 to weight 1, by the number of systems.
_STEPS = {2: 10, 3: 5, 4: 4}
_DIGITS = 12
_ROUNDING = 1e-9


# Folds of queries.


def near_duplicates(texts: Sequence[str]) -> Integers:
    """Return a number for each text, (n,); near duplicates have the same number: texts with the
    same words, or with at least `SAME` of their words in common, also via a third text. Chinese
    characters count as words. A text without words is equal to the same text only."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    from rankdash.core.rerankers.kinds.bm25 import Tokenizer

    words = [
        frozenset(each) or frozenset([text.strip()])
        for each, text in zip(Tokenizer("none")(texts), texts, strict=True)
    ]
    number, sets = pd.factorize(np.array([*words, frozenset()], dtype=object)[:-1])
    one, other = np.array([*_alike(list(sets))], dtype=np.int64).reshape(-1, 2).T
    links = coo_array((np.ones(len(one)), (one, other)), shape=(len(sets), len(sets)))
    group: Integers = connected_components(links)[1].astype(np.int64)
    return group[number]


def _alike(sets: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of different sets with at least `SAME` of their words in common."""
    counts: dict[str, int] = {}
    for each in sets:
        for word in each:
            counts[word] = counts.get(word, 0) + 1
    known: dict[str, list[int]] = {}
    for at, each in enumerate(sets):
        # Two such sets have a word in common among these rarest words of each of them.
        most = len(each) - math.ceil(SAME * len(each) - _ROUNDING) + 1
        rare = sorted(each, key=lambda word: (counts[word], word))[:most]
        for before in {place for word in rare for place in known.get(word, ())}:
            if len(each & sets[before]) >= SAME * len(each | sets[before]) - _ROUNDING:
                yield before, at
        for word in rare:
            known.setdefault(word, []).append(at)


def folds(groups: Integers, seed: int, repeat: int = 0, *, count: int = FOLDS) -> Integers:
    """Return the fold of each query, (n,), 0 to `count` - 1: random, of about equal sizes, and the
    same for all queries of a group.

    groups: (n,) such as from `near_duplicates`. repeat: another number gives another split.
    """
    group, _groups = pd.factorize(groups)
    sizes = np.bincount(group)
    order = np.random.default_rng([seed, repeat]).permutation(len(sizes))
    before = np.empty(len(sizes), dtype=np.int64)
    before[order] = np.cumsum(sizes[order]) - sizes[order]
    fold: Integers = before[group] * count // max(len(groups), 1)
    return fold


def check_folds(fold: Integers, groups: Integers) -> None:
    """Raise DataError if two folds have queries of the same group, so that a held-out query would
    not be new."""
    group, numbers = pd.factorize(groups)
    fold_of = np.zeros(len(numbers), dtype=np.int64)
    fold_of[group] = fold
    if (fold_of[group] != fold).any():
        raise DataError("The same query is in two folds.")


# The settings that are compared.


@dataclass(frozen=True)
class Variant:
    """A method with a weight for each system; the weights add up to 1. A system with the weight 0
    is not fused. k: of "rrf", else 0."""

    method: str
    k: float
    weights: tuple[float, ...]

    @property
    def fused(self) -> tuple[int, ...]:
        """The places of the systems with a weight above 0."""
        return tuple(place for place, weight in enumerate(self.weights) if weight)

    @property
    def fusion(self) -> Fusion | None:
        """The settings of the fusion of these systems; None for a single system."""
        if len(self.fused) < 2:
            return None
        weights = tuple(weight for weight in self.weights if weight)
        return Fusion(self.method, weights, self.k or _USUAL_K)


def variants(systems: int) -> tuple[Variant, ...]:
    """Return the variants for a number of systems: equal RRF first, then each single system, then
    RRF, min-max and z-scores with weights in equal steps: 65 for two systems, 136 for three and 221
    for four.

    Raises SettingError for another number of systems.
    """
    if not SYSTEMS[0] <= systems <= SYSTEMS[1]:
        raise SettingError("Weights can be tuned for two to four systems.")
    steps = _STEPS[systems]
    cells = (cell for cell in product(range(steps + 1), repeat=systems) if sum(cell) == steps)
    grid = [tuple(each / steps for each in cell) for cell in cells]
    equal = (1 / systems,) * systems
    mixed = [each for each in dict.fromkeys([equal, *grid]) if max(each) < 1]
    single = [Variant("rrf", _USUAL_K, each) for each in grid if max(each) == 1]
    methods = [("rrf", _USUAL_K), *(("rrf", k) for k in _KS if k != _USUAL_K)]
    methods += [("minmax", 0.0), ("z", 0.0)]
    fused = [Variant(*method, each) for method in methods for each in mixed]
    return (fused[0], *single[::-1], *fused[1:])


@dataclass(frozen=True)
class Gain:
    """A mean change with its interval. p: corrected; NaN for a gain that is not tested."""

    change: float
    low: float
    high: float
    p: float = math.nan
    proven: bool = False


@dataclass(frozen=True, eq=False)
class Weights:
    """Variants of the fusion of S systems, on n queries. V variants, as from `variants`.

    query_ids: (n,) queries with a value of every system. sampled: from this number of queries, if
        it is larger than n; else n.
    values: (n, V) the metric. held_out: (n,) mean over the repeats of the value of the variant that
        was chosen without the query's fold.
    best: index of the variant with the highest mean; single: of the best single system; 0 is equal
        RRF.
    in_sample, gain: change from equal RRF, of the best variant on the queries that it was chosen
        on, and of held-out weights. over_single: of held-out weights, from the best single system.
    splits: (REPEATS,) `gain.change` of each split.
    table: one row per variant: method, k, weights, mean, change (from equal RRF, in-sample), share
        (of the training sets on which the variant was the best).
    """

    systems: tuple[str, ...]
    query_ids: npt.NDArray[np.object_]
    sampled: int
    variants: tuple[Variant, ...]
    values: Floats
    held_out: Floats
    best: int
    single: int
    in_sample: Gain
    gain: Gain
    over_single: Gain
    splits: Floats
    table: pd.DataFrame

    @property
    def chosen(self) -> Variant:
        return self.variants[self.best]

    @cached_property
    def spread(self) -> tuple[float, float]:
        """The ends of the middle 90 % of `splits`."""
        low, high = np.quantile(self.splits, [0.05, 0.95]).tolist()
        return low, high

    def record(self, study: Study) -> Tuned:
        """Return the record for the settings of a run with the chosen weights."""
        return Tuned(
            on=study.stored_id or study.dataset.id,
            by=f"nested {FOLDS}-fold, {REPEATS} repeats, seed {study.statistics.seed}",
            metric=study.measure.title,
            level=study.statistics.level,
            gain=self.gain.change,
            low=self.gain.low,
            high=self.gain.high,
        )


@part("labels", "metric", "conventions", "statistics")
def weights(study: Study, systems: tuple[str, ...]) -> Weights:
    """Return the gain of tuned weights for systems of the study, at least two and at most four.

    Raises SettingError for another number of systems or a metric that does not measure quality, and
    DataError for too few queries.
    """
    grid = variants(len(systems))
    if not study.measures_quality:
        raise SettingError("Weights can be tuned only for a metric that measures quality.")
    query_ids, among = _queries(study, systems)
    texts = study.dataset.query_text().reindex(query_ids).fillna("").tolist()
    groups = near_duplicates(texts) if any(texts) else np.arange(len(query_ids))
    different = len(np.unique(groups))
    if different < FEWEST:
        raise DataError(
            "Too few different queries to tune weights: {n}. At least {fewest} are needed.",
            remedy="Label more queries.",
            n=different,
            fewest=FEWEST,
        )
    values = _values(study, systems, grid, query_ids)
    seed, means = study.statistics.seed, values.mean(axis=0)
    held_out, splits, share = _cross_validated(values, groups, seed, range(REPEATS))
    single = 1 + int(np.argmax(means[1 : 1 + len(systems)]))
    best = best_of(values)
    over = values[:, [0, single]]
    changes = _widened(held_out[:, None] - over, _error(values, groups, over, seed))
    gains = _gains(np.column_stack([values[:, best] - values[:, 0], changes]), study)
    table = pd.DataFrame([(each.method, each.k, each.weights) for each in grid])
    table.columns = pd.Index(["method", "k", "weights"])
    return Weights(
        systems=systems,
        query_ids=query_ids,
        sampled=among,
        variants=grid,
        values=values,
        held_out=held_out,
        best=best,
        single=single,
        in_sample=gains[0],
        gain=gains[1],
        over_single=gains[2],
        splits=splits,
        table=table.assign(mean=means, change=means - means[0], share=share),
    )


def best_of(values: Floats) -> int:
    """Return the index of the variant with the highest mean, (n, V) values; the first of equals."""
    return int(np.argmax(np.round(values.mean(axis=0), _DIGITS)))


def _error(values: Floats, groups: Integers, over: Floats, seed: int) -> Floats:
    """Return the standard errors of the mean held-out changes from `over`, (n, 2), as (2,): their
    standard deviations over random halves of the queries (Shao and Wu 1989), each with separate
    choices of weights. They include the uncertainty of these choices."""
    changes = np.zeros((HALVES, over.shape[1]))
    for half in range(HALVES):
        first = REPEATS + half * (OF_A_HALF + 1)
        rows = folds(groups, seed, first, count=2) == 0
        repeats = range(first + 1, first + 1 + OF_A_HALF)
        held_out, _splits, _share = _cross_validated(values[rows], groups[rows], seed, repeats)
        changes[half] = (held_out[:, None] - over[rows]).mean(axis=0)
    error: Floats = changes.std(axis=0, ddof=1)
    return error


def _widened(changes: Floats, error: Floats) -> Floats:
    """Return columns of changes with the same means, and at least these standard errors."""
    means = changes.mean(axis=0)
    own = changes.std(axis=0, ddof=1) / math.sqrt(len(changes))
    factor = np.where(own > 0, np.maximum(error / np.where(own > 0, own, 1.0), 1.0), 1.0)
    widened: Floats = means + factor * (changes - means)
    return widened


def _gains(changes: Floats, study: Study) -> tuple[Gain, Gain, Gain]:
    """Return the gains of (n, 3) changes; only the last two are tested."""
    settings: StatisticsSettings = study.statistics
    low, high = intervals(changes, settings, possible=study.measure.changes)
    p = [math.nan, *corrected(p_values(changes[:, 1:], settings).tolist(), settings.correction)]
    rows = zip(changes.mean(axis=0).tolist(), low.tolist(), high.tolist(), p, strict=True)
    one, two, three = (
        Gain(*row, proven=is_proven(row[1], row[2], row[3], settings.level)) for row in rows
    )
    return one, two, three


def _cross_validated(
    values: Floats, groups: Integers, seed: int, repeats: range
) -> tuple[Floats, Floats, Floats]:
    """Return (n,) the mean held-out value of each query, (R,) the change from the first variant of
    each split, and (V,) the share of training sets on which each variant is the best. repeats: the
    numbers of R splits."""
    n, width = values.shape
    sums, total = values.sum(axis=0), np.zeros(n)
    splits, share = np.zeros(len(repeats)), np.zeros(width)
    for place, repeat in enumerate(repeats):
        fold = folds(groups, seed, repeat)
        check_folds(fold, groups)
        sizes = np.bincount(fold, minlength=FOLDS)
        inside = np.stack([values[fold == each].sum(axis=0) for each in range(FOLDS)])
        means = (sums - inside) / (n - sizes)[:, None]
        selected = np.argmax(np.round(means, _DIGITS), axis=1)
        held_out = values[np.arange(n), selected[fold]]
        total += held_out
        splits[place] = (held_out - values[:, 0]).mean()
        share += np.bincount(selected, minlength=width)
    return total / len(repeats), splits, share / (len(repeats) * FOLDS)


def _queries(study: Study, systems: Sequence[str]) -> tuple[npt.NDArray[np.object_], int]:
    """Return the queries with a value of every system, a sample of them if their lists are too
    long, and how many there are."""
    evaluations = [study.evaluate(system, (study.spec,)) for system in systems]
    ids = evaluations[0].query_ids
    known = np.ones(len(ids), dtype=bool)
    rows = np.zeros(len(ids))
    for system, each in zip(systems, evaluations, strict=True):
        at = places_of(each.query_ids, ids)
        known &= (at >= 0) & ~np.isnan(each.values[at, 0])
        ranking = study.ranking(system)
        place = np.array([ranking.positions.get(query, -1) for query in ids], dtype=np.int64)
        known &= place >= 0
        rows += np.append(np.diff(ranking.offsets), 0)[place]
    places = np.flatnonzero(known)
    if rows[places].sum() > MOST_ROWS:
        order = np.random.default_rng(study.statistics.seed).permutation(places)
        places = np.sort(order[np.cumsum(rows[order]) <= MOST_ROWS])
    return ids[places], int(known.sum())


def _values(
    study: Study,
    systems: Sequence[str],
    grid: Sequence[Variant],
    query_ids: npt.NDArray[np.object_],
) -> Floats:
    """Return the metric of every query and variant, (n, V), as of the fused rankings."""
    values = np.empty((len(query_ids), len(grid)))
    requested = set(query_ids)
    rankings = [study.ranking(system).only(requested) for system in systems]
    by_parts: dict[tuple[int, ...], list[int]] = {}
    for place, variant in enumerate(grid):
        by_parts.setdefault(variant.fused, []).append(place)
    for parts, columns in by_parts.items():
        if len(parts) == 1:
            evaluation = study.evaluate(systems[parts[0]], (study.spec,))
            at = places_of(evaluation.query_ids, query_ids)
            values[:, columns[0]] = evaluation.values[at, 0]
            continue
        fused = [how for place in columns if (how := grid[place].fusion) is not None]
        lists = [rankings[each] for each in parts]
        values[:, columns] = _of_fused(study, lists, fused, query_ids)
    return values


def _of_fused(
    study: Study,
    rankings: Sequence[Ranking],
    fused: Sequence[Fusion],
    query_ids: npt.NDArray[np.object_],
) -> Floats:
    """Return the metric of fusions of the same rankings, (n, variants): documents and labels are
    joined once."""
    rules, labels = study.conventions, study.dataset.labels
    joined = Joined.of(rankings)
    unordered = joined.ranked(np.zeros((1, len(joined.docs))), (1.0,))
    matched = match(unordered, labels)
    values, points, last = [], np.zeros((0, 0)), ("", 0.0)
    for how in fused:
        if (how.method, how.k) != last:
            last, points = (how.method, how.k), joined.points(how)
        ranking = joined.ranked(points, how.weights)
        ranking = ranking.with_ties(rules.order_rule(ranking.ties), rules.score_precision)
        place = np.empty(len(ranking), dtype=np.int64)
        place[ranking.given] = np.arange(len(ranking))
        located = replace(matched, conventions=rules, tied=ranking.tied, rows=place[matched.rows])
        judged = located.judged(np.asarray(labels["label"], dtype=np.float64))
        evaluation = evaluate(judged, [study.measure], rules)
        values.append(evaluation.values[places_of(evaluation.query_ids, query_ids), 0])
    return np.column_stack(values)
