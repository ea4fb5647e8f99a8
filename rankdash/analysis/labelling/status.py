"""Where a plan stands: estimates, raters, how far they agree, and how many labels more it takes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from rankdash.analysis.labelling.answers import Answered
from rankdash.analysis.labelling.draws import LabelPlan
from rankdash.analysis.labelling.estimate import Estimate, estimate
from rankdash.analysis.labelling.guess import Guess
from rankdash.analysis.labelling.kappa import Kappa, cohen_kappa
from rankdash.ranking.ragged import Floats

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

    estimates: one for each contrast. cannot_tell: pairs that count as not relevant because no rater
    could tell. raters: by name. agreements: for each two raters with a pair in common. seconds: the
    median for an answer over all raters; NaN where unknown.
    """

    estimates: tuple[Estimate, ...]
    cannot_tell: int
    raters: tuple[Rater, ...]
    agreements: tuple[Agreement, ...]
    seconds: float

    @property
    def needed(self) -> int | None:
        """Labels more until all contrasts are settled; None while it is too early to say."""
        each = [found.needed for found in self.estimates]
        return None if None in each else max(number for number in each if number is not None)

    @property
    def settled(self) -> bool:
        """Whether every contrast is."""
        return all(found.settled for found in self.estimates)

    @property
    def seconds_left(self) -> float:
        """The time for the labels that are needed, by one rater; NaN where unknown."""
        return math.nan if self.needed is None else self.needed * self.seconds

    def numbers(self) -> dict[str, Any]:
        """All of it for JSON: unrounded, None where there is no value."""
        return {
            "settled": self.settled,
            "needed": self.needed,
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


def status(plan: LabelPlan, answered: Answered, judge: Floats | None = None) -> LabelStatus:
    """Where the plan stands.

    judge: (N,) grades of a judge on the scale of the metric, to guess from; NaN where it has none.

    Raises DataError for a label or grade above the top of the scale.
    """
    guess = None if judge is None else Guess.from_gains(plan.metric.gains(judge))
    latest = answered.latest
    names = sorted(latest["rater"].unique())
    seconds = {name: _seconds(latest.loc[latest["rater"] == name, "time"]) for name in names}
    every = np.concatenate([*seconds.values(), np.zeros(0)])
    return LabelStatus(
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


def _seconds(times: pd.Series[str]) -> Floats:
    """What lies between one answer and the next."""
    moments = pd.to_datetime(times[times != ""], utc=True, format="ISO8601", errors="coerce")
    steps: Floats = np.asarray(moments.sort_values().diff().dt.total_seconds(), dtype=np.float64)
    return steps[(steps > 0) & (steps <= _PAUSE_S)]


def _median(values: Floats) -> float:
    return float(np.median(values)) if len(values) else float("nan")


def _agreements(latest: pd.DataFrame, names: list[str]) -> list[Agreement]:
    said = latest.dropna(subset="label")
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
