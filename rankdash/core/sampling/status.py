"""Where a plan stands: estimates, raters, how far they agree, and how many labels more it takes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from rankdash.core.data.arrays import Floats
from rankdash.core.sampling.draws import Answered, LabelPlan, Mode
from rankdash.core.sampling.estimate import Estimate, estimate
from rankdash.core.sampling.label_pool import Guess
from rankdash.core.statistics.kappa import Kappa, cohen_kappa

# A longer pause between two answers of a rater is not work.
_PAUSE_S = 300.0


@dataclass(frozen=True)
class Rater:
    """What one rater answered: how often each grade, how often "cannot tell", and the median
    seconds for an answer, pauses excluded (NaN where no two answers have a time)."""

    name: str
    grades: Mapping[float, int]
    cannot_tell: int
    seconds: float

    @property
    def answers(self) -> int:
        return sum(self.grades.values()) + self.cannot_tell

    def numbers(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "rater": self.name,
            "answers": self.answers,
            "labels": {f"{grade:g}": times for grade, times in self.grades.items()},
            "cannot_tell": self.cannot_tell,
            "seconds_per_label": _or_none(self.seconds),
        }


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far two raters agree on the pairs that both gave a label."""

    raters: tuple[str, str]
    unweighted: Kappa
    quadratic: Kappa

    def numbers(self) -> dict[str, Any]:
        """For JSON."""
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
    """Where a plan stands.

    mode: what is drawn. estimates: one for each contrast; none where labels came by draws of no
    plan for these systems. cannot_tell: pairs that count as not relevant because no rater could
    tell. raters: by name. agreements: for each two raters with a pair in common. seconds: the
    median for an answer over all raters; NaN where unknown.
    """

    mode: Mode
    estimates: tuple[Estimate, ...]
    cannot_tell: int
    raters: tuple[Rater, ...]
    agreements: tuple[Agreement, ...]
    seconds: float

    @property
    def needed(self) -> int | None:
        """Labels more until all contrasts are settled; None while it is too early to say."""
        each = [found.needed for found in self.estimates if found.needed is not None]
        return max(each) if each and len(each) == len(self.estimates) else None

    @property
    def needed_most(self) -> int | None:
        """The same in at least nine of ten cases; at most what is left."""
        each = [found.needed_most for found in self.estimates if found.needed_most is not None]
        return max(each) if each and len(each) == len(self.estimates) else None

    @property
    def left(self) -> int:
        """All labels that are still to come, of the contrast with most of them."""
        return max((each.pairs - each.known - each.labels for each in self.estimates), default=0)

    @property
    def pairs(self) -> int:
        """All pairs that can move a difference, of the contrast with most of them."""
        return max((each.pairs for each in self.estimates), default=0)

    @property
    def saved(self) -> int | None:
        """About how many labels the judge has saved so far: how many more it would take without it
        to be as far; None without a judge, and while it is too early to say."""
        each = [found.saved for found in self.estimates if found.saved is not None]
        return max(each) if each and len(each) == len(self.estimates) else None

    @property
    def settled(self) -> bool:
        """Whether every contrast is."""
        return bool(self.estimates) and all(found.settled for found in self.estimates)

    @property
    def complete(self) -> bool:
        """Whether all labels are there that can move a difference."""
        return bool(self.estimates) and all(each.state == "complete" for each in self.estimates)

    @property
    def seconds_left(self) -> float:
        """The time for the labels that are needed, by one rater; NaN where unknown."""
        return math.nan if self.needed is None else self.needed * self.seconds

    def numbers(self) -> dict[str, Any]:
        """All of it for JSON: unrounded, None where there is no value."""
        return {
            "mode": self.mode,
            "settled": self.settled,
            "needed": self.needed,
            "needed_most": self.needed_most,
            "saved": self.saved,
            "seconds_per_label": _or_none(self.seconds),
            "seconds_left": _or_none(self.seconds_left),
            "cannot_tell": self.cannot_tell,
            "estimates": [
                {name: _or_none(value) for name, value in asdict(each).items()}
                | {"settled": each.settled}
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
    """Where the plan stands.

    judge: (N,) grades of a judge on the scale of the metric, to guess from; NaN where it has none.
    Where queries are drawn, nothing is guessed from it.
    resumed: name of a rater → when they went on after each pause, ISO 8601 in UTC; the pause before
    counts for no answer.

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
    """What lies between one answer, or the end of a pause, and the next answer."""
    moments = pd.Series([*resumed, *times[times != ""]], dtype=object)
    found = pd.to_datetime(moments, utc=True, format="ISO8601", errors="coerce").sort_values(
        kind="stable"
    )
    steps = np.asarray(found.diff().dt.total_seconds(), dtype=np.float64)
    # The ends of pauses are the first of the moments.
    steps = steps[found.index >= len(resumed)]
    kept: Floats = steps[(steps > 0) & (steps <= _PAUSE_S)]
    return kept


def _median(values: Floats) -> float:
    return float(np.median(values)) if len(values) else float("nan")


def _agreements(latest: pd.DataFrame, names: list[str]) -> list[Agreement]:
    if len(names) < 2:
        return []
    said = latest.dropna(subset="label")
    said = said[said.duplicated("pair", keep=False)]
    table = said.pivot(index="pair", columns="rater", values="label")
    found = []
    for first, second in itertools.combinations([name for name in names if name in table], 2):
        one, other = table[[first, second]].dropna().to_numpy(dtype=np.float64).T
        if len(one):
            plain, squared = cohen_kappa(one, other), cohen_kappa(one, other, "quadratic")
            found.append(Agreement((first, second), plain, squared))
    return found


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
