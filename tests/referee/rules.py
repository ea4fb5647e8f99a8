"""Three sets of rules, in rankdash's terms and in the referee's."""

from dataclasses import dataclass, replace

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.metrics import Conventions

RESAMPLES = 10_000


@dataclass(frozen=True)
class Rules:
    """Rules for rankdash (conventions, statistics), and the same rules for the referee.

    single: ties by document id over scores in single precision. empty_counts: whether a query
    without a relevant document scores 0. missing_counts: whether a labelled query that a ranking
    lacks scores 0.
    """

    name: str
    conventions: Conventions
    statistics: StatisticsSettings
    threshold: float = 1.0
    judged_only: bool = False
    single: bool = False
    empty_counts: bool = False
    missing_counts: bool = True
    level: float = 0.95
    interval: str = "skew-t"
    flips: bool = True
    holm: bool = True

    def fitting(self, top: float) -> "Rules":
        """Return the rules for labels up to `top`: with a higher threshold nothing is relevant."""
        threshold = min(self.threshold, top)
        conventions = replace(self.conventions, threshold=threshold)
        return replace(self, threshold=threshold, conventions=conventions)

    def __str__(self) -> str:
        return self.name


RULES = (
    Rules("defaults", Conventions(), StatisticsSettings()),
    Rules(
        "trec_eval",
        Conventions.trec_eval(),
        StatisticsSettings(interval="percentile", test="t"),
        single=True,
        empty_counts=True,
        missing_counts=False,
        interval="percentile",
        flips=False,
    ),
    Rules(
        "judged only",
        Conventions(judged_only=True, threshold=2.0),
        StatisticsSettings(correction="bh", level=0.9, interval="bca"),
        threshold=2.0,
        judged_only=True,
        level=0.9,
        interval="bca",
        holm=False,
    ),
)
