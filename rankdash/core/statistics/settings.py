"""How a comparison is made: every choice is a named setting with its meaning."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Self

from rankdash.core.base.settings import Setting, Settings, setting, settings_of
from rankdash.core.statistics.alignment import TIE_BAND
from rankdash.core.statistics.bootstrap import RESAMPLES, SEED
from rankdash.core.statistics.significance import LEVEL, Correction, Test
from rankdash.core.statistics.verdict import FEWEST_QUERIES

Interval = Literal["skew-t", "t", "bca", "percentile"]
Family = Literal["metric", "all"]

RULE_OF_THUMB = 0.15
"""A common choice for the minimum practically relevant gain. It counts only if a user sets it."""

_MANY_QUERIES = 2_000
_ENOUGH_RESAMPLES = 1_000
_ROUNDING = 1e-9


@dataclass(frozen=True)
class StatisticsSettings(Settings):
    """The settings of a comparison; each is described in `STATISTICS_SETTINGS`.

    Raises SpecError for a value that does not exist or is out of range.
    """

    level: float = setting(
        LEVEL,
        "Confidence",
        "How sure an interval is to hold the true value; a p of at most 1 minus this is "
        "significant.",
        least=0.5,
        most=0.9999,
    )
    interval: Interval = setting(
        "skew-t",
        "Interval",
        "How an interval is computed.",
        choices={
            "skew-t": "Student's t, wider if the values are skewed",
            "t": "Student's t",
            "bca": "bootstrap, corrected for bias and skew (BCa)",
            "percentile": "bootstrap, the middle of the resampled means",
        },
    )
    test: Test = setting(
        "sign-flip",
        "Test",
        "The two-sided test of the per-query differences.",
        choices={
            "sign-flip": "permutation (sign-flip) test",
            "t": "paired t test",
            "wilcoxon": "Wilcoxon signed-rank test",
        },
    )
    correction: Correction = setting(
        "holm",
        "Correction",
        "How p values are corrected for several comparisons: the more are made, the likelier one "
        "of them looks like a gain by chance.",
        choices={
            "holm": "Holm: controls the chance of any false gain",
            "bh": "Benjamini–Hochberg: controls the false discovery rate",
            "none": "none",
        },
    )
    family: Family = setting(
        "metric",
        "Corrected over",
        "Which comparisons are corrected together.",
        choices={
            "metric": "the challengers, for each metric on its own",
            "all": "all challengers and metrics",
        },
    )
    resamples: int = setting(
        RESAMPLES,
        "Resamples",
        "The number of resamples for a bootstrap interval and of sign flips for a permutation "
        "test.",
        least=100,
        most=100_000,
    )
    seed: int = setting(
        SEED,
        "Seed",
        "The start of the random numbers. The same seed gives the same numbers.",
        least=0,
        most=2**63 - 1,
    )
    tie_band: float = setting(
        TIE_BAND,
        "Tie band",
        "Changes of a query up to this size, up or down, count as the same.",
        least=0,
        most=1,
    )
    worthwhile: float | None = setting(
        None,
        "Minimum practically relevant gain",
        "The smallest gain that matters to you, as a share of the baseline's mean. If it is not "
        "set, each proven gain is “better”.",
        unset="not set",
        least=0,
        most=10,
    )

    def corrects(self, comparisons: int) -> bool:
        """Whether a p of so many comparisons that are corrected together allows for the others."""
        return self.correction != "none" and comparisons > 1

    def fewest_queries(self, comparisons: int) -> int:
        """Return the least number of queries with which a change can be proven: if all of them
        change in one direction, every choice of signs has a probability of 2^-n."""
        if self.test == "t":
            return FEWEST_QUERIES
        strict = self.correction == "holm" and comparisons > 1
        alpha = (1 - self.level) / (comparisons if strict else 1)
        return max(FEWEST_QUERIES, math.ceil(1 - math.log2(alpha) - _ROUNDING))

    @classmethod
    def for_queries(cls, queries: int, **given: Any) -> Self:
        """The settings for so many labelled queries; given: those that were chosen. With many of
        them fewer resamples say the same: the ends of an interval then move by about a fiftieth of
        its width, and an answer comes at once."""
        if queries > _MANY_QUERIES:
            given = {"resamples": _ENOUGH_RESAMPLES, **given}
        return cls(**given)


STATISTICS_SETTINGS: tuple[Setting, ...] = settings_of(StatisticsSettings)
"""Every field of `StatisticsSettings` with its title, meaning and limits, in order."""
