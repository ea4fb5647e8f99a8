"""Quality targets: required values for a use case, and advice below them.

The shipped profiles and bands are rules of thumb from tutorials and are shown as such. Users edit
them; the edited set is transferred as JSON text, and one profile as a JSON or TOML file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from rankdash.core.base.errors import DataError
from rankdash.core.base.files import from_json, from_json_or_toml, from_toml, guarded, text_of
from rankdash.core.base.shipped import ASSETS
from rankdash.core.metrics import parse_measure

_SHIPPED = ASSETS / "targets.toml"

Status = Literal["met", "missed", "undecided", "unreachable"]
"""Result of comparing an interval with a target. undecided: it contains the target, or there is no
interval. unreachable: no order of the documents reaches the target with these labels, which does
not count as a failure."""

_BROKEN = "The targets cannot be read."
_RESTORE = "Restore the built-in targets and edit them again."

STATUSES: Mapping[Status | None, str] = {
    "met": "✓ met",
    "missed": "▼ missed",
    "undecided": "? undecided",
    "unreachable": "– cannot be reached",
    None: "not known",
}
LIMITS = {"p95_ms": "p95, ms", "per_million_tokens": "cost per million tokens"}
"""Subject of a limit → its title."""

_FILES = (".json", ".toml")

# A mean that is printed like the target must not miss it because of a rounding error.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Target:
    """Target levels of one metric. None: no such level.

    Raises SpecError for an unknown metric, DataError without any level, for a level outside the
    metric's range, or if a level is below the previous one.
    """

    metric: str
    minimum: float | None = None
    target: float | None = None
    excellent: float | None = None

    def __post_init__(self) -> None:
        measure = parse_measure(self.metric)
        object.__setattr__(self, "metric", measure.spec)
        low, high = measure.metric.range
        levels = [
            value for value in (self.minimum, self.target, self.excellent) if value is not None
        ]
        if not levels:
            raise DataError(
                "The target for {metric} has no value.",
                remedy="Set at least one of minimum, target, excellent.",
                metric=self.metric,
            )
        if not all(math.isfinite(value) and low <= value <= high for value in levels):
            raise DataError(
                "A target for {metric} lies outside {low:g} to {high:g}, the range of the metric.",
                remedy="Enter a number between them.",
                metric=self.metric,
                low=low,
                high=high,
            )
        if sorted(levels) != levels:
            raise DataError(
                "The values for {metric} must rise from minimum to target to excellent.",
                remedy="Swap them, or leave one empty.",
                metric=self.metric,
            )

    @property
    def required(self) -> float:
        """Value to reach: the target, else the minimum, else the level called excellent."""
        value = next(v for v in (self.target, self.minimum, self.excellent) if v is not None)
        return float(value)


@dataclass(frozen=True)
class Limit:
    """Upper limit of latency or cost.

    what: "p95_ms" (latency of a query in ms) or "per_million_tokens" (US dollars for a million
        tokens of queries and documents).

    Raises DataError for another subject, or levels that are not above 0 or do not fall.
    """

    what: str
    target: float
    excellent: float | None = None

    def __post_init__(self) -> None:
        levels = [self.target, *([] if self.excellent is None else [self.excellent])]
        if self.what not in LIMITS or not all(0 < each < math.inf for each in levels):
            raise DataError(
                "A limit of {what} needs a number above 0.",
                remedy="Allowed limits: {limits}.",
                what=self.what,
                limits=", ".join(LIMITS),
            )
        if levels != sorted(levels, reverse=True):
            raise DataError(
                "The values for {metric} must fall from target to excellent.",
                remedy="Swap them, or leave one empty.",
                metric=self.what,
            )


@dataclass(frozen=True)
class Profile:
    """Targets of one use case. measure: the metric with its cutoff that suits it, or "". Raises
    DataError without a title or for duplicate metrics, SpecError for an unknown measure."""

    title: str
    targets: tuple[Target, ...]
    limits: tuple[Limit, ...] = ()
    measure: str = ""

    def __post_init__(self) -> None:
        if not self.title.strip():
            raise DataError("A profile needs a title.")
        if self.measure:
            parse_measure(self.measure)
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
        """Return the metrics to evaluate for this profile."""
        return tuple(target.metric for target in self.targets)

    def limit(self, what: str) -> Limit | None:
        """Return the limit of latency or cost, or None."""
        return next((limit for limit in self.limits if limit.what == what), None)

    def to_json(self) -> str:
        """Return the profile as the text of a file for `Goals.of`."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=2)


@dataclass(frozen=True)
class Grade:
    """Band of values: its name, its lowest value, and advice."""

    name: str
    start: float
    advice: str


@dataclass(frozen=True)
class Band:
    """Grades of some metrics at any cutoff, in ascending order. `metrics` are names of the
    registry. Raises DataError if the grades do not start at 0 and rise."""

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
        """Return the band that contains a mean."""
        return [grade for grade in self.grades if grade.start <= value + _ROUNDING][-1]


@dataclass(frozen=True)
class Targets:
    """All profiles by key, the bands, and the source of the numbers. Immutable."""

    source: str
    profiles: Mapping[str, Profile]
    bands: tuple[Band, ...]

    def with_profile(self, key: str, profile: Profile) -> Targets:
        """Return these targets with one profile added or replaced."""
        return replace(self, profiles={**self.profiles, key: profile})

    def band(self, spec: str) -> Band | None:
        """Return the band of a metric, or None."""
        name = parse_measure(spec).metric.name
        return next((band for band in self.bands if name in band.metrics), None)

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Targets:
        """Parse the text of `to_json`. Raises DataError for other text."""
        with guarded("", _BROKEN, _RESTORE):
            return _targets(from_json(text), start="start")

    @classmethod
    def from_toml(cls, text: str) -> Targets:
        """Parse the format of `assets/targets.toml`. Raises DataError for other text."""
        with guarded("", _BROKEN, _RESTORE):
            return _targets(from_toml(text), start="from")


def _targets(fields: Mapping[str, Any], start: str) -> Targets:
    return Targets(
        source=str(fields["source"]),
        profiles={str(key): _profile(each) for key, each in fields["profiles"].items()},
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


def _profile(fields: Mapping[str, Any]) -> Profile:
    return Profile(
        str(fields["title"]),
        tuple(Target(**target) for target in fields["targets"]),
        tuple(Limit(**limit) for limit in fields.get("limits", ())),
        str(fields.get("measure", "")),
    )


def _read_profile(file: str) -> Profile:
    with guarded(
        file,
        "The profile cannot be read: {reason}.",
        "Use a file exported from Overview, or TOML with a title and a list of targets such as {{ "
        'metric = "ndcg@10", target = 0.8 }}.',
    ):
        try:
            content = Path(file).read_bytes()
        except OSError as problem:
            raise ValueError(str(problem)) from problem
        # The page writes JSON; TOML is for files typed by hand.
        return _profile(from_json_or_toml(text_of(content)))


@cache
def shipped() -> Targets:
    """Return the targets that ship with rankdash."""
    return Targets.from_toml(_SHIPPED.read_text(encoding="utf-8"))


def is_file(name: str) -> bool:
    """Return whether a profile name is a file name."""
    return name.casefold().endswith(_FILES)


@dataclass(frozen=True)
class Goals:
    """Profile to judge systems by. Raises DataError for an unknown key."""

    targets: Targets
    key: str

    @classmethod
    def of(cls, name: str) -> Goals:
        """Return a shipped profile by its key, or a custom profile from a .json or .toml file.

        Raises DataError, with the file name, for other names.
        """
        if not is_file(name):
            return cls(shipped(), name)
        return cls(shipped().with_profile(name, _read_profile(name)), name)

    def __post_init__(self) -> None:
        if self.key not in self.targets.profiles:
            raise DataError(
                "Unknown profile {key!r}.",
                remedy="Possible: {keys}.",
                key=self.key,
                keys=", ".join(self.targets.profiles),
            )

    @property
    def profile(self) -> Profile:
        return self.targets.profiles[self.key]

    @property
    def own(self) -> bool:
        """True for custom targets, which the shipped source does not describe."""
        return self.profile != shipped().profiles.get(self.key)


@dataclass(frozen=True)
class Reached:
    """Figure with the ends of its interval, and its highest possible value; NaN if unknown.

    For latency and cost, which should be low, `most` is NaN.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    most: float = math.nan


@dataclass(frozen=True)
class TargetRow:
    """Row of a profile: one metric or limit.

    status: None without a figure. excellent: whether that level is surely reached. band: the usual
        name of such a mean, and advice: what to check if it may be below the target; both ""
        without a text, for example with too few queries for an interval. example: whether the
        figure depends on an example price.
    """

    subject: str
    reached: Reached
    asked: Target | Limit
    status: Status | None
    excellent: bool = False
    band: str = ""
    advice: str = ""
    example: bool = False


def judge(target: Target, reached: Reached, targets: Targets) -> TargetRow:
    """Compare a mean with its target: met or missed if the whole interval agrees."""
    status = _status(target.required, reached)
    excellent = (
        status == "met"
        and target.excellent is not None
        and _status(target.excellent, reached) == "met"
    )
    band = targets.band(target.metric)
    if band is None or status is None or math.isnan(reached.low):
        return TargetRow(target.metric, reached, target, status, excellent)
    grade = band.grade(reached.value)
    # A system that has reached its target, or cannot reach it, gets no advice on how to reach it.
    below = status in ("missed", "undecided") and reached.value < target.required
    advised = below and grade != band.grades[-1]
    return TargetRow(
        subject=target.metric,
        reached=reached,
        asked=target,
        status=status,
        excellent=excellent,
        band=grade.name,
        advice=grade.advice if advised else "",
    )


def _status(required: float, reached: Reached) -> Status | None:
    if math.isnan(reached.value):
        return None
    if reached.most < required - _ROUNDING:
        return "unreachable"
    if reached.low >= required - _ROUNDING:
        return "met"
    return "missed" if reached.high < required - _ROUNDING else "undecided"
