"""The effects of an online experiment: changes of the mean outcome of a search between arms, or the
preference between two interleaved rankings, by the unit of randomisation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rankdash.core.base.errors import DataError, Finding, SpecError
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.arrays import Floats, Integers
from rankdash.core.data.outcomes import Outcomes
from rankdash.core.statistics.clustered import (
    FEWEST_UNITS,
    Change,
    Mean,
    change_of,
    effective_units,
    mean_of,
    mismatch_p,
    preference_of,
)
from rankdash.core.statistics.inference import corrected
from rankdash.core.statistics.verdict import Kind

MISMATCH = 0.001
"""No effect is shown if the p of the sample-ratio test is below."""

# A unit with more searches, and this many times as many as 99 of 100 units, is hardly a person.
_BOT_SEARCHES, _BOT_TIMES = 100, 10
# With more units in several arms, the arms are not separate.
_MOST_MIXED = 0.01
_MOST_EXAMPLES = 3
# Of each unit and arm, a number of searches is computed.
_MOST_ARMS = 100


@dataclass(frozen=True)
class Effect:
    """The effect of an arm. change: from the control; corrected: its p, corrected over the arms.
    verdict: as of a comparison of systems, from the interval at the planned end, or from the
    anytime-valid one if the experiment had no planned end."""

    arm: str
    mean: Mean
    change: Change
    corrected: float
    verdict: Kind


@dataclass(frozen=True)
class Preference:
    """The preference for the second of two teams, from -1 to 1. change: its value with intervals
    and p. wins: the outcomes of each team."""

    first: str
    second: str
    change: Change
    wins: tuple[float, float]
    units: int
    verdict: Kind


@dataclass(frozen=True, eq=False)
class Experiment:
    """Outcomes with the checks of an experiment.

    outcomes: the searches that count. control: the arm that others are compared with. shares:
    (A,) the planned shares of the arms. planned: whether the experiment ends at a planned number
    of searches, so that intervals for one look are valid. findings: doubts about the data.
    """

    outcomes: Outcomes
    control: str
    shares: Floats
    settings: StatisticsSettings
    planned: bool
    findings: tuple[Finding, ...]

    @cached_property
    def units(self) -> Integers:
        """The number of units of each arm, (A,)."""
        counts: Integers = (self.outcomes.searches_by_unit() > 0).sum(axis=0)
        return counts

    @cached_property
    def mismatch(self) -> float:
        """The p of the sample-ratio test; NaN for interleaved rankings."""
        return math.nan if self.outcomes.team else mismatch_p(self.units, self.shares)

    @property
    def refused(self) -> bool:
        """True if the arms do not have their planned sizes, so that no effect is shown."""
        return self.mismatch < MISMATCH

    def means(self) -> dict[str, Mean]:
        """Return arm → its mean."""
        searches, totals = self.outcomes.searches_by_unit(), self.outcomes.totals_by_unit()
        return {
            arm: mean_of(searches[present, a], totals[present, a])
            for a, arm in enumerate(self.outcomes.arms)
            for present in [searches[:, a] > 0]
        }

    def effects(self) -> tuple[Effect, ...]:
        """Return the effect of each arm but the control, in order; none if `refused`, or if the
        rankings are interleaved."""
        if self.refused or self.outcomes.team:
            return ()
        means = self.means()
        others = [arm for arm in self.outcomes.arms if arm != self.control]
        strict = self.settings.corrects(len(others))
        changes = [
            change_of(
                means[self.control], means[arm], self.settings.level, len(others) if strict else 1
            )
            for arm in others
        ]
        p = corrected([each.p for each in changes], self.settings.correction)
        return tuple(
            Effect(
                arm,
                means[arm],
                change,
                each,
                self._verdict(
                    change, each, min(means[self.control].effective, means[arm].effective)
                ),
            )
            for arm, change, each in zip(others, changes, p, strict=True)
        )

    def preference(self) -> Preference | None:
        """Return the preference between two teams; None if the rankings are not interleaved."""
        if not self.outcomes.team:
            return None
        totals = self.outcomes.totals_by_unit()
        c = self.outcomes.arms.index(self.control)
        first, second = totals[:, c], totals[:, 1 - c]
        change = preference_of(first, second, self.settings.level)
        wins = first + second
        return Preference(
            self.control,
            self.outcomes.arms[1 - c],
            change,
            (float(first.sum()), float(second.sum())),
            int((wins > 0).sum()),
            self._verdict(change, change.p, effective_units(wins) if wins.any() else 0.0),
        )

    def interval(self, change: Change) -> tuple[float, float]:
        """Return the interval that the verdict uses."""
        if self.planned:
            return change.low, change.high
        return change.always_low, change.always_high

    def _verdict(self, change: Change, p: float, units: float) -> Kind:
        if units < FEWEST_UNITS:
            return "too_few"
        if math.isnan(change.low):
            # The outcomes do not vary.
            return "identical" if change.delta == 0 else "descriptive"
        low, high = self.interval(change)
        if self.planned and p > 1 - self.settings.level:
            return "unproven"
        if low > 0 or high < 0:
            return "better" if low > 0 else "worse"
        return "unproven"


def experiment_of(
    outcomes: Outcomes,
    settings: StatisticsSettings,
    *,
    control: str = "",
    shares: Mapping[str, float] | None = None,
    start: float = math.nan,
    planned: bool = False,
) -> Experiment:
    """Return an experiment without the searches that cannot count, and its doubts.

    control: by default an arm of a usual name, such as "control". shares: arm → planned share; by
    default equal. start: the start in seconds since 1970; earlier outcomes do not count.

    Raises SpecError for an unknown arm, and if no arm is recognised as the control; DataError for
    outcomes of which no effect can be computed.
    """
    control = _control(outcomes, control)
    planned_shares = _shares(outcomes, shares or {})
    findings: list[Finding] = []
    outcomes = _in_time(outcomes, start, findings)
    outcomes = _with_value(outcomes, findings)
    if outcomes.team:
        _refuse_teams(outcomes)
    else:
        outcomes = _in_one_arm(outcomes, findings)
    _note_bots(outcomes, findings)
    if not outcomes.unit_name:
        findings.append(Finding(
            "warning", "no-units",
            "The table has no column of users or sessions, so each search counts as a unit.",
            remedy="If one user makes several searches, the intervals are too narrow: add a column "
            "user or session.",
        ))  # fmt: skip
    # Of interleaved rankings, a table may list clicks only.
    if np.ptp(outcomes.value) == 0 and not (outcomes.team and outcomes.value[0] > 0):
        raise DataError(
            "Every search has the outcome {value}, so no effect can be computed.",
            remedy="Check the column of outcomes: searches without a click need a row with 0.",
            value=f"{outcomes.value[0]:g}",
        )
    return Experiment(outcomes, control, planned_shares, settings, planned, tuple(findings))


_CONTROLS = ("control", "baseline", "a", "off", "0", "false", "old", "对照", "对照组", "基线")


def _control(outcomes: Outcomes, typed: str) -> str:
    arms = outcomes.arms
    if len(arms) > _MOST_ARMS:
        raise DataError(
            "The table has {count:,} arms; the limit is {most}.",
            remedy="Choose the column of the arms, for example: --columns arm=group",
            count=len(arms), most=_MOST_ARMS,
        )  # fmt: skip
    if len(arms) < 2:
        raise DataError(
            "The table contains only one arm: {arm!r}.",
            remedy="An effect is the change between at least two arms.",
            arm=arms[0] if arms else "",
        )
    if typed:
        if typed not in arms:
            raise SpecError(
                "No arm is named {name!r}. The arms are: {arms}.",
                remedy="Choose one of them as the control.",
                name=typed, arms=", ".join(arms),
            )  # fmt: skip
        return typed
    usual = [arm for name in _CONTROLS for arm in arms if arm.casefold() == name]
    if not usual:
        raise SpecError(
            "No arm has the name of a control. The arms are: {arms}.",
            remedy="Choose the arm that others are compared with, for example: --control {first}",
            arms=", ".join(arms), first=arms[0],
        )  # fmt: skip
    return usual[0]


def _shares(outcomes: Outcomes, planned: Mapping[str, float]) -> Floats:
    if not planned:
        return np.full(len(outcomes.arms), 1 / len(outcomes.arms))
    given = np.array([planned.get(arm, math.nan) for arm in outcomes.arms])
    if set(planned) != set(outcomes.arms) or not (given > 0).all():
        raise SpecError(
            "The planned shares must name each arm of the table: {arms}.",
            remedy="Write a share above 0 for each arm, such as control=0.9 reranker=0.1.",
            arms=", ".join(outcomes.arms),
        )
    return np.asarray(given / given.sum(), dtype=np.float64)


def _in_time(outcomes: Outcomes, start: float, findings: list[Finding]) -> Outcomes:
    if math.isnan(start):
        return outcomes
    if np.isnan(outcomes.time).all():
        raise SpecError(
            "The table has no times, so outcomes before the start cannot be excluded.",
            remedy="Add a column time, or omit the start.",
        )
    early = outcomes.time < start
    if early.any():
        findings.append(Finding(
            "warning", "before-start",
            "Outcomes before the start of the experiment, which do not count: {count:,}.",
            {"count": int(early.sum())}, count=int(early.sum()),
            remedy="Check the time zone, and whether the assignment began earlier.",
        ))  # fmt: skip
    return _refuse_empty(outcomes.only(~early))


def _with_value(outcomes: Outcomes, findings: list[Finding]) -> Outcomes:
    missing = np.isnan(outcomes.value)
    if not missing.any():
        return outcomes
    counts = np.bincount(outcomes.arm[missing], minlength=len(outcomes.arms))
    findings.append(Finding(
        "warning", "missing-outcomes",
        "Searches without an outcome, which do not count: {count:,} ({arms}).",
        {
            "count": int(missing.sum()),
            "arms": ", ".join(
                f"{arm} {n:,}" for arm, n in zip(outcomes.arms, counts.tolist(), strict=True)
            ),
        },
        count=int(missing.sum()),
        remedy="A search without a click has the outcome 0. If arms differ in missing outcomes, "
        "the effect is biased.",
    ))  # fmt: skip
    return _refuse_empty(outcomes.only(~missing))


def _refuse_empty(outcomes: Outcomes) -> Outcomes:
    present = np.bincount(outcomes.arm, minlength=len(outcomes.arms))
    if (present == 0).any():
        raise DataError(
            "The arm {arm!r} has no search that counts.",
            remedy="Check the column of outcomes and the start of the experiment.",
            arm=outcomes.arms[int(np.argmin(present))],
        )
    return outcomes


def _in_one_arm(outcomes: Outcomes, findings: list[Finding]) -> Outcomes:
    """Exclude units with searches in several arms. Raises DataError if they are more than a few."""
    if not outcomes.unit_name:
        return outcomes
    arms_of = (outcomes.searches_by_unit() > 0).sum(axis=1)
    mixed, units = arms_of > 1, int((arms_of > 0).sum())
    count = int(mixed.sum())
    if not count:
        return outcomes
    places = np.flatnonzero(mixed)[:_MOST_EXAMPLES].tolist()
    examples = tuple(str(outcomes.units[place].as_py()) for place in places)
    details: dict[str, Any] = {
        "count": count, "share": f"{count / units:.1%}", "unit": outcomes.unit_name,
        "example": examples[0],
    }  # fmt: skip
    if count > _MOST_MIXED * units:
        raise DataError(
            "{count:,} units ({share}) of the column {unit!r} have searches in several arms, such "
            "as {example!r}.",
            remedy="Choose the column by which searches are assigned to arms, for example: "
            "--columns unit=visitor. Name the column team if the rankings are interleaved.",
            **details,
        )
    findings.append(Finding(
        "warning", "mixed-units",
        "Units of the column {unit!r} with searches in several arms, which do not count: "
        "{count:,} ({share}).",
        details, count=count, examples=examples,
        remedy="Check the assignment to arms.",
    ))  # fmt: skip
    return _refuse_empty(outcomes.only(~mixed[outcomes.unit]))


def _refuse_teams(outcomes: Outcomes) -> None:
    if len(outcomes.arms) != 2:
        raise DataError(
            "Interleaved rankings have two teams, and the table has {count}.",
            remedy="If the column team contains the arms of an A/B test, choose it as the arm: "
            "--columns arm=team",
            count=len(outcomes.arms),
        )
    if (outcomes.value < 0).any():
        raise DataError(
            "An outcome of an interleaved ranking is below 0.",
            remedy="Count clicks or other successes of each team.",
        )
    if outcomes.unit_name and not ((outcomes.searches_by_unit() > 0).sum(axis=1) > 1).any():
        raise DataError(
            "No unit of the column {unit!r} has outcomes of both teams, so the rankings are not "
            "interleaved.",
            remedy="If the column team contains the arms of an A/B test, choose it as the arm: "
            "--columns arm=team",
            unit=outcomes.unit_name,
        )


def _note_bots(outcomes: Outcomes, findings: list[Finding]) -> None:
    if not outcomes.unit_name:
        return
    searches = outcomes.searches_by_unit().sum(axis=1)
    usual = float(np.quantile(searches[searches > 0], 0.99, method="lower"))
    many = np.flatnonzero(searches > max(_BOT_SEARCHES, _BOT_TIMES * usual))
    if len(many):
        examples = tuple(str(outcomes.units[place].as_py()) for place in many[:3].tolist())
        findings.append(Finding(
            "warning", "implausible-units",
            "Units with implausibly many searches: {count:,}, with up to {most:,} searches; 99 of "
            "100 units have at most {usual:,.0f}.",
            {"count": len(many), "most": int(searches.max()), "usual": usual},
            count=len(many), examples=examples,
            remedy="They count. If they are programs, delete their rows.",
        ))  # fmt: skip
