"""Better, real but small, not proven, or worse: what an interval and a chosen size say together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["better", "small", "unproven", "worse", "identical", "too_few"]

FEWEST_QUERIES = 5
WORTHWHILE = 0.15


@dataclass(frozen=True)
class Verdict:
    """What may be said of a challenger. `template` and `params` make one English sentence.

    kind: "better": the interval lies above 0 and the mean gain reaches the chosen size;
          "small": it lies above 0 but the gain is smaller than that;
          "unproven": it includes 0; "worse": it lies below 0;
          "identical": no query differs; "too_few": fewer than `FEWEST_QUERIES` paired queries.
    """

    kind: Kind
    template: str
    params: dict[str, object]

    @property
    def sentence(self) -> str:
        return self.template.format(**self.params)


_SENTENCES: dict[Kind, str] = {
    "better": (
        "{challenger} is better than {baseline}: {metric} rises from {before} to {after}, and "
        "chance alone does not explain it ({low} to {high})."
    ),
    "small": (
        "{challenger} is better than {baseline}, but not by much: {metric} gains {delta} "
        "({low} to {high}), less than the {worthwhile} you asked for."
    ),
    "unproven": (
        "Not proven: {metric} changes by {delta} with {challenger}, but the true change may lie "
        "anywhere from {low} to {high}."
    ),
    "worse": (
        "{challenger} is worse than {baseline}: {metric} falls from {before} to {after} "
        "({low} to {high})."
    ),
    "identical": "{challenger} and {baseline} score the same on every one of the {n} queries.",
    "too_few": (
        "Only {n} queries can be compared; fewer than {fewest} prove nothing. Label more queries."
    ),
}


def decide(
    *,
    n: int,
    before: float,
    delta: float,
    low: float,
    high: float,
    identical: bool,
    worthwhile: float = WORTHWHILE,
) -> Kind:
    """The kind of verdict.

    n: paired queries. before: the baseline's mean. delta: mean paired difference with its interval
    low…high. worthwhile: the smallest relative gain worth having (0.15 = 15 %); where the
    baseline's mean is 0 any proven gain is.
    """
    if n < FEWEST_QUERIES:
        return "too_few"
    if identical:
        return "identical"
    if high < 0:
        return "worse"
    if low <= 0:
        return "unproven"
    # A rounding error of the last digit must not turn a gain of exactly the chosen size small.
    return "better" if delta >= worthwhile * before - 1e-12 else "small"
