"""How a comparison is made: every choice is a named setting with its meaning."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rankdash.analysis.statistics.bootstrap import RESAMPLES, SEED
from rankdash.analysis.statistics.pairs import TIE_BAND
from rankdash.analysis.statistics.tests import LEVEL, Correction
from rankdash.analysis.statistics.verdict import WORTHWHILE
from rankdash.errors import SpecError

Interval = Literal["bca", "percentile"]
Test = Literal["sign-flip", "t", "wilcoxon"]
Family = Literal["metric", "all"]


@dataclass(frozen=True)
class StatisticsSetting:
    """One setting as a form or a command line shows it.

    choices: value → what it means; empty where the value is a number between low and high.
    """

    name: str
    title: str
    meaning: str
    choices: Mapping[str, str] = field(default_factory=dict)
    low: float = -math.inf
    high: float = math.inf

    @property
    def default(self) -> str | float | int:
        value: str | float | int = getattr(StatisticsSettings(), self.name)
        return value


STATISTICS_SETTINGS = (
    StatisticsSetting(
        "level",
        "Confidence",
        "How sure an interval is to hold the true value; a p of at most the rest is significant.",
        low=0.5,
        high=0.9999,
    ),
    StatisticsSetting(
        "interval",
        "Interval",
        "How an interval is read off the resampled means.",
        {
            "bca": "corrected for bias and skew (BCa)",
            "percentile": "the middle of the resampled means",
        },
    ),
    StatisticsSetting(
        "test",
        "Test",
        "The two-sided test of the per-query differences.",
        {
            "sign-flip": "randomisation: the sign of each difference is flipped at random",
            "t": "paired t test",
            "wilcoxon": "Wilcoxon signed-rank test",
        },
    ),
    StatisticsSetting(
        "correction",
        "Correction",
        "How p values allow for several comparisons: the more are made, the likelier one of them "
        "looks like a gain by chance.",
        {
            "holm": "Holm: one false gain among all is as unlikely as stated",
            "bh": "Benjamini–Hochberg: few of the gains found are false",
            "none": "none",
        },
    ),
    StatisticsSetting(
        "family",
        "Corrected over",
        "Which comparisons are corrected together.",
        {
            "metric": "the challengers, for each metric on its own",
            "all": "all challengers and metrics",
        },
    ),
    StatisticsSetting(
        "resamples",
        "Resamples",
        "How many resamples an interval and how many flips a randomisation test are made of.",
        low=100,
        high=100_000,
    ),
    StatisticsSetting(
        "seed",
        "Seed",
        "Where the random numbers start. The same seed gives the same numbers.",
        low=0,
        high=2**63 - 1,
    ),
    StatisticsSetting(
        "tie_band",
        "Tie band",
        "Changes of a query up to this size, either way, count as the same.",
        low=0,
        high=1,
    ),
    StatisticsSetting(
        "worthwhile",
        "Worthwhile gain",
        "The smallest gain worth having, as a share of the baseline's mean.",
        low=0,
        high=10,
    ),
)
"""Every field of `StatisticsSettings` with its title, meaning and limits, in order."""


@dataclass(frozen=True)
class StatisticsSettings:
    """The settings of a comparison; each is described in `STATISTICS_SETTINGS`.

    Raises SpecError for a value that does not exist or is out of range.
    """

    level: float = LEVEL
    interval: Interval = "bca"
    test: Test = "sign-flip"
    correction: Correction = "holm"
    family: Family = "metric"
    resamples: int = RESAMPLES
    seed: int = SEED
    tie_band: float = TIE_BAND
    worthwhile: float = WORTHWHILE

    def __post_init__(self) -> None:
        for setting in STATISTICS_SETTINGS:
            value = getattr(self, setting.name)
            if setting.choices and value not in setting.choices:
                raise SpecError(
                    "{value!r} is not a choice for {setting}.",
                    remedy="Choices: {choices}.",
                    value=value,
                    setting=setting.name,
                    choices=", ".join(setting.choices),
                )
            # Written so that NaN is refused as well.
            if not setting.choices and not setting.low <= value <= setting.high:
                raise SpecError(
                    "{setting} must be between {low:,g} and {high:,g}, not {value!r}.",
                    setting=setting.name,
                    low=setting.low,
                    high=setting.high,
                    value=value,
                )

    def as_dict(self) -> dict[str, str | float | int]:
        """Setting → value, fit for JSON."""
        return dataclasses.asdict(self)
