"""What labels say that came by draws, where only their file is at hand: the rankings and the
probabilities in the file tell from which plan they are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.data.arrays import Floats
from rankdash.core.data.dataset import Judgements
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import parse_measure
from rankdash.core.sampling.additive import ADDITIVE, Additive
from rankdash.core.sampling.draws import MODES, VALUE_SHARE, LabelPlan
from rankdash.core.sampling.estimate import estimate, next_draw
from rankdash.core.sampling.label_pool import Guess, LabelPool, pool_of
from rankdash.core.sampling.status import LabelStatus

# Files hold probabilities with all of their digits.
_SAME = 1e-9
_USUAL = (1, 3, 5, 10, 20, 50, 100)


def status_of_draws(
    rankings: Mapping[str, Ranking],
    drawn: pd.DataFrame,
    specs: Sequence[str],
    *,
    threshold: float,
    level: float,
    judge: Judgements | None = None,
) -> LabelStatus | None:
    """Where the labels stand; None where their probabilities are those of no plan for the rankings.

    rankings: name → ranking, the baseline first, ties settled. drawn: query_id, doc_id, label, draw
    and probability of each pair, as `labels_table` has them. specs: metrics that are asked about; a
    plan is for one of them, or for a sum over documents at the cutoff of one or at a usual one. The
    top of the scale is the highest label. judge: whose grades, brought to that scale, are the guess
    where documents were drawn.

    With several challengers the plan may be for all, or for one of them.
    """
    top = max(float(drawn["label"].max()), threshold)
    for metric in _metrics(specs, _cutoffs(rankings, drawn), top, threshold):
        for chosen in _together(list(rankings)):
            try:
                pool = pool_of({name: rankings[name] for name in chosen}, metric.k)
                found = _plan(pool, metric, drawn, level)
            except DataError:
                # Rankings without a query in common, or the same within the cutoff.
                continue
            if found is not None:
                labels = found.pool.aligned(drawn)
                guess = None if judge is None else _guess(found, judge)
                each = estimate(found, labels, guess)
                return LabelStatus(found.mode, each, 0, (), (), math.nan)
    return None


def _guess(plan: LabelPlan, judge: Judgements) -> Guess:
    low, high = judge.scale
    grades = (plan.pool.aligned(judge.table, "grade") - low) / (high - low) * plan.metric.top
    return Guess.from_gains(plan.metric.gains(grades))


def _cutoffs(rankings: Mapping[str, Ranking], drawn: pd.DataFrame) -> list[int]:
    """The usual cutoffs that all drawn pairs are within, in some ranking, and the smallest such."""
    try:
        pool = pool_of(
            rankings, max(int(np.diff(each.offsets).max()) for each in rankings.values())
        )
    except DataError:
        return []
    best = pool.ranks.min(axis=0)[~np.isnan(pool.aligned(drawn, "draw"))]
    if not len(best):
        return []
    deepest = int(best.max())
    return [deepest, *(k for k in _USUAL if k > deepest)]


def _metrics(
    specs: Sequence[str], cutoffs: Sequence[int], top: float, threshold: float
) -> Iterator[Additive]:
    measures = [parse_measure(spec) for spec in specs]
    asked = (each.k for each in measures if each.k is not None)
    named = [each.spec for each in measures]
    others = [f"{name}@{k}" for k in dict.fromkeys([*asked, *cutoffs]) for name in ADDITIVE]
    for spec in dict.fromkeys([*named, *others]):
        try:
            yield Additive.of(spec, top=top, threshold=threshold)
        except SpecError:
            continue


def _together(names: Sequence[str]) -> Iterator[Sequence[str]]:
    yield names
    if len(names) > 2:
        yield from ((names[0], other) for other in names[1:])


def _plan(pool: LabelPool, metric: Additive, drawn: pd.DataFrame, level: float) -> LabelPlan | None:
    """The plan whose draws have the probabilities of the file; of several the one for which most of
    its labels count."""
    best: tuple[int, LabelPlan | None] = (0, None)
    labels = pool.aligned(drawn)
    draw, chance = pool.aligned(drawn, "draw"), pool.aligned(drawn, "probability")
    known = np.where(np.isnan(draw), labels, np.nan)
    systems = range(len(pool.systems))
    first = [(0, other) for other in systems[1:]]
    every = list(itertools.combinations(systems, 2))
    kinds = [first] if len(first) == 1 else [first, every]
    # Plans of earlier versions have no share for the systems' values.
    for share, contrasts, mode in itertools.product([VALUE_SHARE, 0.0], kinds, MODES):
        plan = LabelPlan.make(
            pool,
            metric,
            seed=0,
            contrasts=contrasts,
            known=known,
            level=level,
            mode=mode,
            share=share,
        )
        placed = _placed(plan, draw)
        answered = next_draw(placed, labels)
        there = placed.order[:answered]
        same = np.isclose(placed.probabilities[:answered], chance[there], rtol=_SAME, atol=0.0)
        # Whatever else was drawn is a pair of the plan too.
        inside = drawn["draw"].notna().sum() == (~np.isnan(draw[plan.order])).sum()
        if same.all() and inside and len(there) > best[0]:
            best = len(there), placed
    return best[1]


def _placed(plan: LabelPlan, draw: Floats) -> LabelPlan:
    """The plan with the pairs that were drawn in the order of their draws; what is still open fills
    the gaps, in any order: it counts for nothing before it is labelled."""
    order = plan.order
    owner = plan.pool.query[order] if plan.mode == "query" else np.arange(len(order))
    turns = pd.Series(draw[order]).groupby(owner).max()
    turns[:] = _filled(np.asarray(turns, dtype=np.float64))
    return replace(plan, order=order[np.argsort(turns[owner].to_numpy(), kind="stable")])


def _filled(numbers: Floats) -> Floats:
    """(n,) the numbers, and for those that are missing the ones from 1 to n that nobody has."""
    found = numbers.copy()
    free = np.setdiff1d(np.arange(1.0, len(numbers) + 1), numbers)
    missing = np.flatnonzero(np.isnan(numbers))
    found[missing] = free[: len(missing)]
    return found
