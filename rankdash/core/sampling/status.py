"""The status of a labelling plan: estimates, raters, agreement, and the number of labels needed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.data.arrays import Floats
from rankdash.core.data.judgements import Judgements
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import parse_measure
from rankdash.core.sampling.estimate import Estimate, estimate, next_draw
from rankdash.core.sampling.label_plan import (
    ADDITIVE,
    MODES,
    VALUE_SHARE,
    Additive,
    Answered,
    Guess,
    LabelPlan,
    LabelPool,
    Mode,
    pool_of,
)
from rankdash.core.sampling.rater_agreement import Kappa, cohen_kappa

# A longer interval between two answers of a rater counts as a pause.
_PAUSE_S = 300.0


@dataclass(frozen=True)
class Effort:
    """The number of labels that plans needed until their result was conclusive, in simulations.

    From 1,000 plans on each of three labelled data sets (tests/benchmarks/labelling.py): half_low
    and half_high are the lowest and highest median, most_low and most_high the lowest and highest
    90th percentile.
    """

    half_low: int
    half_high: int
    most_low: int
    most_high: int


DEFAULT_CUTOFF = 5
"""The cutoff of a plan if the user set none: it needs fewer labels than 10."""

# Cutoff → effort with documents by weight, and at random; and by weight with a judge's grades as
# predictions, of either simulated judge.
_EFFORTS = {
    5: (Effort(114, 302, 162, 369), Effort(168, 376, 252, 589), Effort(107, 178, 139, 220)),
    10: (Effort(177, 423, 256, 684), Effort(299, 898, 458, 1327), Effort(176, 209, 250, 264)),
}
SIMULATED_CUTOFFS = tuple(_EFFORTS)


def usual_effort(cutoff: int, mode: Mode, *, judge: bool = False) -> Effort | None:
    """Return the simulated effort at the lowest simulated cutoff that is not below `cutoff`; None
    for a larger cutoff, which needs more labels, and for a mode that was not simulated."""
    simulated = min((each for each in _EFFORTS if each >= cutoff), default=None)
    if simulated is None:
        return None
    weight, random, with_judge = _EFFORTS[simulated]
    if mode == "weight":
        return with_judge if judge else weight
    return random if mode == "random" and not judge else None


@dataclass(frozen=True)
class Rater:
    """The answers of one rater: the count of each grade and of "cannot tell", and the median
    seconds per answer, excluding pauses (NaN if no two answers have a time)."""

    name: str
    grades: Mapping[float, int]
    cannot_tell: int
    seconds: float

    @property
    def answers(self) -> int:
        return sum(self.grades.values()) + self.cannot_tell

    def numbers(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {
            "rater": self.name,
            "answers": self.answers,
            "labels": {f"{grade:g}": times for grade, times in self.grades.items()},
            "cannot_tell": self.cannot_tell,
            "seconds_per_label": _or_none(self.seconds),
        }


@dataclass(frozen=True, eq=False)
class Agreement:
    """The agreement of two raters on the pairs that both labelled."""

    raters: tuple[str, str]
    unweighted: Kappa
    quadratic: Kappa

    def numbers(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        kinds = {"unweighted": self.unweighted, "quadratic": self.quadratic}
        return {
            "raters": list(self.raters),
            "pairs": self.unweighted.pairs,
            "agree": self.unweighted.agree,
            "grades": self.unweighted.grades.tolist(),
            "table": self.unweighted.table.tolist(),
        } | {
            name: {
                "kappa": _or_none(each.kappa),
                "low": _or_none(each.low),
                "high": _or_none(each.high),
            }
            for name, each in kinds.items()
        }


@dataclass(frozen=True, eq=False)
class LabelStatus:
    """The status of a plan.

    mode: the sampling unit. estimates: one for each contrast; empty if no plan for these systems
        fits the sampled labels.
    cannot_tell: pairs that count as not relevant because no rater could tell. raters: by name.
    agreements: for each two raters with a pair in common. seconds: the median for an answer over
        all raters; NaN if unknown.
    """

    mode: Mode
    estimates: tuple[Estimate, ...]
    cannot_tell: int
    raters: tuple[Rater, ...]
    agreements: tuple[Agreement, ...]
    seconds: float

    @property
    def needed(self) -> int | None:
        """Labels needed until all contrasts are conclusive; None while it is too early for an
        estimate."""
        each = [estimate.needed for estimate in self.estimates if estimate.needed is not None]
        return max(each) if each and len(each) == len(self.estimates) else None

    @property
    def needed_most(self) -> int | None:
        """Labels that are sufficient in at least 90 % of cases; at most all remaining ones."""
        each = [
            estimate.needed_most for estimate in self.estimates if estimate.needed_most is not None
        ]
        return max(each) if each and len(each) == len(self.estimates) else None

    @property
    def left(self) -> int:
        """The number of remaining labels, of the contrast with most of them."""
        return max((each.pairs - each.known - each.labels for each in self.estimates), default=0)

    @property
    def pairs(self) -> int:
        """The number of pairs that can change a difference, of the contrast with most of them."""
        return max((each.pairs for each in self.estimates), default=0)

    @property
    def saved(self) -> int | None:
        """About how many labels the judge has saved: how many more would be needed without it for
        the same precision; None without a judge, and while it is too early for an estimate."""
        each = [estimate.saved for estimate in self.estimates if estimate.saved is not None]
        return max(each) if each and len(each) == len(self.estimates) else None

    @property
    def conclusive(self) -> bool:
        """True if every contrast is conclusive."""
        return bool(self.estimates) and all(estimate.conclusive for estimate in self.estimates)

    @property
    def complete(self) -> bool:
        """True if all labels that can change a difference are present."""
        return bool(self.estimates) and all(each.state == "complete" for each in self.estimates)

    @property
    def seconds_left(self) -> float:
        """The time for the labels needed, by one rater; NaN if unknown."""
        return math.nan if self.needed is None else self.needed * self.seconds

    def numbers(self) -> dict[str, Any]:
        """Return all fields for JSON: unrounded, None for NaN."""
        return {
            "mode": self.mode,
            "settled": self.conclusive,
            "needed": self.needed,
            "needed_most": self.needed_most,
            "saved": self.saved,
            "seconds_per_label": _or_none(self.seconds),
            "seconds_left": _or_none(self.seconds_left),
            "cannot_tell": self.cannot_tell,
            "estimates": [
                {name: _or_none(value) for name, value in asdict(each).items()}
                | {"settled": each.conclusive}
                for each in self.estimates
            ],
            "raters": [each.numbers() for each in self.raters],
            "agreements": [each.numbers() for each in self.agreements],
        }


def status(
    plan: LabelPlan,
    answered: Answered,
    judge: Floats | None = None,
    *,
    resumed: Mapping[str, Sequence[str]] | None = None,
) -> LabelStatus:
    """Return the status of a plan.

    judge: (N,) grades of a judge on the scale of the metric, as predictions; NaN without a grade.
        They are not used if queries are sampled.
    resumed: name of a rater → when they resumed after each pause, ISO 8601 in UTC; the preceding
        pause does not count as time for an answer.

    Raises DataError for a label or grade above the top of the scale.
    """
    guess = None if judge is None else Guess.from_gains(plan.metric.gains(judge))
    latest = answered.latest
    names = sorted(latest["rater"].unique())
    times = {name: latest.loc[latest["rater"] == name, "time"] for name in names}
    seconds = {name: _seconds(times[name], (resumed or {}).get(name, ())) for name in names}
    every = np.concatenate([*seconds.values(), np.zeros(0)])
    return LabelStatus(
        mode=plan.mode,
        estimates=estimate(plan, answered.labels, guess),
        cannot_tell=int(answered.cannot_tell.sum()),
        raters=tuple(
            _rater(name, latest.loc[latest["rater"] == name, "label"], seconds[name])
            for name in names
        ),
        agreements=tuple(_agreements(latest, names)),
        seconds=_median(every),
    )


def _rater(name: str, labels: pd.Series[float], seconds: Floats) -> Rater:
    grades, times = np.unique(labels.dropna().to_numpy(dtype=np.float64), return_counts=True)
    return Rater(
        name,
        dict(zip(grades.tolist(), times.tolist(), strict=True)),
        int(labels.isna().sum()),
        _median(seconds),
    )


def _seconds(times: pd.Series[str], resumed: Sequence[str]) -> Floats:
    """Return the times from one answer, or the end of a pause, to the next answer."""
    moments = pd.Series([*resumed, *times[times != ""]], dtype=object)
    dates = pd.to_datetime(moments, utc=True, format="ISO8601", errors="coerce").sort_values(
        kind="stable"
    )
    steps = np.asarray(dates.diff().dt.total_seconds(), dtype=np.float64)
    # The ends of pauses are the first moments.
    steps = steps[dates.index >= len(resumed)]
    intervals: Floats = steps[(steps > 0) & (steps <= _PAUSE_S)]
    return intervals


def _median(values: Floats) -> float:
    return float(np.median(values)) if len(values) else float("nan")


def _agreements(latest: pd.DataFrame, names: list[str]) -> list[Agreement]:
    if len(names) < 2:
        return []
    labelled = latest.dropna(subset="label")
    labelled = labelled[labelled.duplicated("pair", keep=False)]
    table = labelled.pivot(index="pair", columns="rater", values="label")
    agreements = []
    for first, second in itertools.combinations([name for name in names if name in table], 2):
        one, other = table[[first, second]].dropna().to_numpy(dtype=np.float64).T
        if len(one):
            plain, squared = cohen_kappa(one, other), cohen_kappa(one, other, "quadratic")
            agreements.append(Agreement((first, second), plain, squared))
    return agreements


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


# The status of sampled labels from their file only: the rankings and the probabilities in the file
# identify their plan.

# Files contain probabilities with all of their digits.
_SAME = 1e-9
_USUAL = (1, 3, 5, 10, 20, 50, 100)


def status_of_sampled(
    rankings: Mapping[str, Ranking],
    sampled: pd.DataFrame,
    specs: Sequence[str],
    *,
    threshold: float,
    level: float,
    judge: Judgements | None = None,
) -> LabelStatus | None:
    """Return the status of sampled labels; None if their probabilities match no plan for the
    rankings.

    rankings: name → ranking, the baseline first, with ties resolved.
    sampled: query_id, doc_id, label, draw and probability of each pair, as in `labels_table`.
    specs: the requested metrics; a plan is for one of them, or for an additive metric at the cutoff
        of one or at a usual cutoff. The top of the scale is the highest label.
    judge: the judge whose grades, mapped to that scale, are the predictions if documents were
        sampled.

    With several challengers the plan may be for all, or for one of them.
    """
    top = max(float(sampled["label"].max()), threshold)
    for metric in _metrics(specs, _cutoffs(rankings, sampled), top, threshold):
        for chosen in _system_sets(list(rankings)):
            try:
                pool = pool_of({name: rankings[name] for name in chosen}, metric.k)
                plan = _plan(pool, metric, sampled, level)
            except DataError:
                # The rankings have no query in common, or are equal within the cutoff.
                continue
            if plan is not None:
                labels = plan.pool.aligned(sampled)
                guess = None if judge is None else _guess(plan, judge)
                each = estimate(plan, labels, guess)
                return LabelStatus(plan.mode, each, 0, (), (), math.nan)
    return None


def _guess(plan: LabelPlan, judge: Judgements) -> Guess:
    low, high = judge.scale
    grades = (plan.pool.aligned(judge.table, "grade") - low) / (high - low) * plan.metric.top
    return Guess.from_gains(plan.metric.gains(grades))


def _cutoffs(rankings: Mapping[str, Ranking], sampled: pd.DataFrame) -> list[int]:
    """Return the smallest cutoff within which every sampled pair is ranked by some system, and the
    larger usual ones."""
    try:
        pool = pool_of(
            rankings, max(int(np.diff(each.offsets).max()) for each in rankings.values())
        )
    except DataError:
        return []
    best = pool.ranks.min(axis=0)[~np.isnan(pool.aligned(sampled, "draw"))]
    if not len(best):
        return []
    deepest = int(best.max())
    return [deepest, *(k for k in _USUAL if k > deepest)]


def _metrics(
    specs: Sequence[str], cutoffs: Sequence[int], top: float, threshold: float
) -> Iterator[Additive]:
    measures = [parse_measure(spec) for spec in specs]
    requested = (each.k for each in measures if each.k is not None)
    named = [each.spec for each in measures]
    others = [f"{name}@{k}" for k in dict.fromkeys([*requested, *cutoffs]) for name in ADDITIVE]
    for spec in dict.fromkeys([*named, *others]):
        try:
            yield Additive.of(spec, top=top, threshold=threshold)
        except SpecError:
            continue


def _system_sets(names: Sequence[str]) -> Iterator[Sequence[str]]:
    yield names
    if len(names) > 2:
        yield from ((names[0], other) for other in names[1:])


def _plan(
    pool: LabelPool, metric: Additive, sampled: pd.DataFrame, level: float
) -> LabelPlan | None:
    """Return the plan whose draws have the probabilities of the file; if several do, the one for
    which most labels count."""
    best: tuple[int, LabelPlan | None] = (0, None)
    labels = pool.aligned(sampled)
    draw, chance = pool.aligned(sampled, "draw"), pool.aligned(sampled, "probability")
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
        drawn = placed.order[:answered]
        same = np.isclose(placed.probabilities[:answered], chance[drawn], rtol=_SAME, atol=0.0)
        # All other sampled pairs are pairs of the plan too.
        inside = sampled["draw"].notna().sum() == (~np.isnan(draw[plan.order])).sum()
        if same.all() and inside and len(drawn) > best[0]:
            best = len(drawn), placed
    return best[1]


def _placed(plan: LabelPlan, draw: Floats) -> LabelPlan:
    """Return the plan with the sampled pairs in the order of their draws; unlabelled pairs fill the
    gaps in any order, because they do not count before they are labelled."""
    order = plan.order
    owner = plan.pool.query[order] if plan.mode == "query" else np.arange(len(order))
    turns = pd.Series(draw[order]).groupby(owner).max()
    turns[:] = _filled(np.asarray(turns, dtype=np.float64))
    return replace(plan, order=order[np.argsort(turns[owner].to_numpy(), kind="stable")])


def _filled(numbers: Floats) -> Floats:
    """Return (n,) the numbers, with NaN replaced by the unused numbers from 1 to n, ascending."""
    filled = numbers.copy()
    free = np.setdiff1d(np.arange(1.0, len(numbers) + 1), numbers)
    missing = np.flatnonzero(np.isnan(numbers))
    filled[missing] = free[: len(missing)]
    return filled
