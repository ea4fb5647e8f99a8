"""Targets for quality: which value counts as enough, for which use, and what to do below it.

The shipped profiles and bands are rules of thumb from tutorials and are shown as such. A person
edits them; the edited set travels as JSON text.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Literal

from rankdash.errors import DataError
from rankdash.metrics import parse_measure
from rankdash.shipped import ASSETS

SHIPPED = ASSETS / "targets.toml"

Status = Literal["below", "meets", "excellent"]

LIMITS = ("p95_ms", "per_million_tokens")

# A mean that prints as the target must not fail it by the last digit of a sum.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Target:
    """What one metric should reach. Levels that are None are not asked for.

    Raises SpecError where the metric does not exist, DataError where no level is given, one lies
    outside the metric's range, or a higher level is lower than the one before.
    """

    metric: str
    minimum: float | None = None
    target: float | None = None
    excellent: float | None = None

    def __post_init__(self) -> None:
        measure = parse_measure(self.metric)
        object.__setattr__(self, "metric", measure.spec)
        low, high = measure.metric.range
        given = [
            value for value in (self.minimum, self.target, self.excellent) if value is not None
        ]
        if not given:
            raise DataError(
                "The target for {metric} has no value.",
                remedy="Give a minimum, a target or an excellent value.",
                metric=self.metric,
            )
        if not all(math.isfinite(value) and low <= value <= high for value in given):
            raise DataError(
                "A target for {metric} lies outside {low:g} to {high:g}, the range of the metric.",
                remedy="Give a number between the two.",
                metric=self.metric,
                low=low,
                high=high,
            )
        if sorted(given) != given:
            raise DataError(
                "The values for {metric} must rise from minimum to target to excellent.",
                remedy="Swap them, or leave one empty.",
                metric=self.metric,
            )

    @property
    def required(self) -> float:
        """The value to meet: the target, else the minimum, else excellent."""
        value = next(v for v in (self.target, self.minimum, self.excellent) if v is not None)
        return float(value)

    def status(self, value: float) -> Status:
        """Where a mean stands: below what is required, meeting it, or excellent."""
        if self.excellent is not None and value >= self.excellent - _ROUNDING:
            return "excellent"
        return "meets" if value >= self.required - _ROUNDING else "below"


@dataclass(frozen=True)
class Limit:
    """The most that something beside quality may take: less is better.

    what: "p95_ms" (latency of a query in ms) or "per_million_tokens" (US dollars for a million
        tokens of queries and documents).

    Raises DataError for anything else, or levels that are not above 0 or do not fall.
    """

    what: str
    target: float
    excellent: float | None = None

    def __post_init__(self) -> None:
        given = [self.target, *([] if self.excellent is None else [self.excellent])]
        if self.what not in LIMITS or not all(0 < each < math.inf for each in given):
            raise DataError(
                "A limit of {what} needs a number above 0.",
                remedy="Possible are {limits}.",
                what=self.what,
                limits=", ".join(LIMITS),
            )
        if given != sorted(given, reverse=True):
            raise DataError(
                "The values for {metric} must fall from target to excellent.",
                remedy="Swap them, or leave one empty.",
                metric=self.what,
            )

    def status(self, value: float) -> Status:
        """Where a figure stands; "below" where it misses the limit."""
        if self.excellent is not None and value < self.excellent:
            return "excellent"
        return "meets" if value < self.target else "below"


@dataclass(frozen=True)
class Profile:
    """The targets of one use. Raises DataError without a title or with a metric twice."""

    title: str
    targets: tuple[Target, ...]
    limits: tuple[Limit, ...] = ()

    def __post_init__(self) -> None:
        if not self.title.strip():
            raise DataError("A profile needs a title.")
        metrics = [target.metric for target in self.targets]
        twice = next((metric for metric in metrics if metrics.count(metric) > 1), None)
        if twice is not None:
            raise DataError(
                "The profile {title!r} has two targets for {metric}.",
                remedy="Remove all but one of them.",
                title=self.title,
                metric=twice,
            )

    def specs(self) -> tuple[str, ...]:
        """What to evaluate to judge by this profile."""
        return tuple(target.metric for target in self.targets)


@dataclass(frozen=True)
class Grade:
    """One band of values: its name, its lowest value, and what to look at there."""

    name: str
    start: float
    advice: str


@dataclass(frozen=True)
class Band:
    """The grades of some metrics, whatever their cutoff, from the lowest up. `metrics` are names
    of the registry. Raises DataError where the grades do not rise from the lowest value."""

    metrics: tuple[str, ...]
    grades: tuple[Grade, ...]

    def __post_init__(self) -> None:
        for metric in self.metrics:
            parse_measure(metric)
        starts = [grade.start for grade in self.grades]
        if not starts or starts[0] != 0 or sorted(set(starts)) != starts:
            raise DataError(
                "The bands of {metrics} must start at 0 and rise.",
                metrics=", ".join(self.metrics),
            )

    def grade(self, value: float) -> Grade:
        """The band that a mean lies in."""
        return [grade for grade in self.grades if grade.start <= value + _ROUNDING][-1]


@dataclass(frozen=True)
class Targets:
    """All profiles by key, the bands, and where the numbers come from. Never changed in place."""

    source: str
    profiles: Mapping[str, Profile]
    bands: tuple[Band, ...]

    def with_profile(self, key: str, profile: Profile) -> Targets:
        """These targets with one profile added or replaced."""
        return replace(self, profiles={**self.profiles, key: profile})

    def band(self, spec: str) -> Band | None:
        """The band of a metric, None where there is none."""
        name = parse_measure(spec).metric.name
        return next((band for band in self.bands if name in band.metrics), None)

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Targets:
        """The targets that `to_json` wrote. Raises DataError for anything else."""
        try:
            return _targets(json.loads(text), start="start")
        except json.JSONDecodeError as problem:
            raise _broken() from problem

    @classmethod
    def from_toml(cls, text: str) -> Targets:
        """Targets in the form of `assets/targets.toml`. Raises DataError where it is broken."""
        try:
            return _targets(tomllib.loads(text), start="from")
        except tomllib.TOMLDecodeError as problem:
            raise _broken() from problem


def _broken() -> DataError:
    return DataError(
        "The targets cannot be read.", remedy="Restore the built-in targets and edit them again."
    )


def _targets(fields: Mapping[str, Any], start: str) -> Targets:
    try:
        return Targets(
            source=str(fields["source"]),
            profiles={
                str(key): Profile(
                    str(profile["title"]),
                    tuple(Target(**target) for target in profile["targets"]),
                    tuple(Limit(**limit) for limit in profile.get("limits", ())),
                )
                for key, profile in fields["profiles"].items()
            },
            bands=tuple(
                Band(
                    tuple(band["metrics"]),
                    tuple(
                        Grade(str(grade["name"]), float(grade[start]), str(grade["advice"]))
                        for grade in band["grades"]
                    ),
                )
                for band in fields["bands"]
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise _broken() from problem


@cache
def shipped() -> Targets:
    """The targets that come with rankdash."""
    return Targets.from_toml(SHIPPED.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class TargetRow:
    """One metric of a profile.

    value and status: None where the metric has no mean. band: what such a value is usually
    called, and advice what to look at; both "" where the metric has no bands. gap: how far the
    value is below what is required; 0 where it is met.
    """

    metric: str
    value: float | None
    minimum: float | None
    target: float | None
    excellent: float | None
    status: Status | None
    gap: float
    band: str
    advice: str


def judge_targets(
    means: Mapping[str, float], profile: Profile, targets: Targets | None = None
) -> tuple[TargetRow, ...]:
    """Each metric of a profile, in its order, beside the mean it got.

    means: spec → mean, such as `Evaluation.means()`; a metric that is not there, or whose mean is
        NaN, is unknown. targets: whose bands to use; the shipped ones for None.
    """
    found = {parse_measure(spec).spec: float(mean) for spec, mean in means.items()}
    bands = targets or shipped()
    return tuple(
        _row(found.get(target.metric, math.nan), target, bands) for target in profile.targets
    )


def _row(value: float, target: Target, targets: Targets) -> TargetRow:
    band = targets.band(target.metric)
    known = math.isfinite(value)
    grade = band.grade(value) if band is not None and known else None
    return TargetRow(
        metric=target.metric,
        value=value if known else None,
        minimum=target.minimum,
        target=target.target,
        excellent=target.excellent,
        status=target.status(value) if known else None,
        gap=max(0.0, target.required - value) if known else 0.0,
        band=grade.name if grade else "",
        advice=grade.advice if grade else "",
    )
