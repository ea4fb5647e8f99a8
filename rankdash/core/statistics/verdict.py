"""Verdicts: better, worse or not proven, from an interval and a p together; small if the user set
a minimum gain, as good as if the user set a margin; as a sentence without statistical terms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

from rankdash.core.base.errors import Phrase
from rankdash.core.base.i18n import plain, quantity
from rankdash.core.base.rules import FEWEST_QUERIES, Conventions
from rankdash.core.metrics import Measure
from rankdash.core.statistics.planning import POWER, QueryPlan

Kind = Literal[
    "better",
    "small",
    "equal",
    "unproven",
    "worse",
    "identical",
    "too_few",
    "nothing_common",
    "no_values",
    "descriptive",
]

TITLES: dict[Kind, str] = {
    "better": "better",
    "small": "better, but small",
    "equal": "as good as",
    "unproven": "not proven",
    "worse": "worse",
    "identical": "the same",
    "too_few": "too few queries",
    "nothing_common": "nothing in common",
    "no_values": "no values",
    "descriptive": "no verdict",
}
"""Title of each kind, the same in every command, file and page."""

PROVEN: frozenset[str] = frozenset(("better", "small", "worse"))
"""Kinds of a proven gain or loss."""

_FEWEST_DIGITS, _MOST_DIGITS = 3, 6
# Grades of 0 to 100 have gains of up to 2^100 with exponential gain, so a mean may be 1e-27 and not
# 0.
_LARGEST = 1e6
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Verdict:
    """Verdict on a challenger: `template` and each sentence of `advice` are `str.format` templates
    over `params`, which contains unrounded numbers.

    kind:
      "better": a proven gain; if the user set a minimum gain, the mean gain reaches it;
      "small": a proven gain whose mean is below the minimum that the user set;
      "equal": a change that is not proven, but proven to be smaller than the margin that the user
          set (two one-sided tests);
      "unproven": the interval includes 0, the corrected p is too large, or too few queries change
          for an interval;
      "worse": a proven loss, of any size;
      "identical": no query changes by more than the tie band;
      "too_few": fewer paired queries than the test needs to prove a change, or than
          `FEWEST_QUERIES`; or the effective number of weighted queries is below that;
      "nothing_common": the systems answered no common query among those with values of both;
      "no_values": neither system has a value, for example without labels;
      "descriptive": the metric describes labels, not quality, so no verdict follows.
    """

    kind: Kind
    template: str
    advice: tuple[str, ...]
    params: Mapping[str, object]

    @property
    def sentence(self) -> str:
        """English sentence, advice included."""
        return " ".join((self.template, *self.advice)).format(**self.params)

    @property
    def more(self) -> int | None:
        """Least number of additional queries in the advice; None without one."""
        planned = {_MORE, _MORE_OR_MANY} & set(self.advice)
        more = self.params.get("least") if planned else None
        return more if isinstance(more, int) else None

    @property
    def fewest(self) -> int:
        """Least number of paired queries that can prove a change."""
        return cast(int, self.params["fewest"])

    def named(self, names: Mapping[str, str]) -> Verdict:
        """Return the verdict with other names of the systems, such as display names for ids."""
        renamed = {
            side: names.get(str(self.params[side]), self.params[side])
            for side in ("baseline", "challenger")
        }
        return replace(self, params={**self.params, **renamed})


@dataclass(frozen=True)
class Margin:
    """Largest irrelevant change, in points of the metric, that the user set, with the interval of
    the change at `level` = 1 − 2α, α corrected: two one-sided tests at α (Schuirmann 1987)."""

    points: float
    low: float
    high: float
    level: float

    @property
    def met(self) -> bool:
        """True if the change is proven to be smaller than the margin, up and down."""
        return -self.points < self.low and self.high < self.points


@dataclass(frozen=True)
class Facts:
    """Facts that a verdict depends on.

    metric: its title. n: paired queries; in_common: those with documents from both systems;
        n_before and n_after: queries with values of baseline and challenger. before, after, delta:
        means over the paired queries; low…high: the interval of delta. p: corrected over
        `comparisons`. identical: no query changes by more than tie_band; exact: no query changes at
        all. plan: for an unproven change, the number of additional queries that would prove it;
        None if unknown. corrected: whether it is planned for a stricter level than `level`. fewest:
        the least number of paired queries that can prove a change. worthwhile: the smallest
        practically relevant relative gain; None if the user set none. margin: None if the user
        set none. tuned: whether baseline and challenger were tuned on these queries. effective:
        the effective number of paired queries if it is too small for a verdict, else None. Numbers
        that do not exist are NaN.
    """

    baseline: str
    challenger: str
    metric: str | Phrase
    n: int
    in_common: int
    n_before: int
    n_after: int
    before: float
    after: float
    delta: float
    low: float
    high: float
    p: float
    identical: bool
    exact: bool
    comparisons: int
    corrected: bool
    level: float
    tie_band: float
    worthwhile: float | None
    quality: bool
    plan: QueryPlan | None = None
    fewest: int = FEWEST_QUERIES
    margin: Margin | None = None
    stopped: bool = False
    tuned: tuple[bool, bool] = (False, False)
    effective: float | None = None


def title_of(measure: Measure, conventions: Conventions) -> str | Phrase:
    """Return the title of a metric, with the weights if means are per search."""
    return (
        Phrase("{metric} per search", metric=measure.title)
        if conventions.weighted
        else (measure.title)
    )


def relative_change(delta: float, before: float) -> float:
    """Return a change as a share of the baseline's mean; NaN if that is 0 or, compared with the
    change, only a rounding error."""
    return delta / before if abs(delta) < _LARGEST * before else math.nan


def decide(facts: Facts) -> Kind:
    """Return the kind of verdict. A gain or loss is proven if the interval excludes 0 and the p,
    corrected for the number of comparisons, is significant at the interval's level."""
    if not facts.n_before and not facts.n_after:
        return "no_values"
    if not facts.in_common:
        return "nothing_common"
    if not facts.quality:
        return "descriptive"
    if facts.n < facts.fewest or facts.effective is not None:
        return "too_few"
    if facts.identical:
        return "identical"
    if is_in_sample(facts.tuned, facts.low, facts.high):
        return "unproven"
    if not is_proven(facts.low, facts.high, facts.p, facts.level):
        return "equal" if facts.margin is not None and facts.margin.met else "unproven"
    if facts.high < 0:
        return "worse"
    return kind_of_gain(facts.delta, facts.before, facts.worthwhile)


def is_in_sample(tuned: tuple[bool, bool], low: float, high: float) -> bool:
    """Return whether a change proves nothing, because a system was tuned on these queries and so
    looks better than it is. Only a loss of a tuned challenger and a gain over a tuned baseline can
    be proven.

    tuned: as in `Facts`. low, high: the interval of the change.
    """
    baseline, challenger = tuned
    return (challenger and not high < 0) or (baseline and not low > 0)


def kind_of_gain(delta: float, before: float, worthwhile: float | None) -> Kind:
    """Return "better" for a proven gain of at least the user's minimum, else "small". before: the
    baseline's mean. worthwhile: the minimum as a share of this mean; None: always "better"."""
    # A rounding error must not turn a gain of exactly the minimum into a small one; over a baseline
    # mean of 0, any proven gain is relevant.
    enough = worthwhile is None or delta >= worthwhile * before - _ROUNDING
    return "better" if enough else "small"


def is_below_minimum(high: float, before: float, worthwhile: float | None) -> bool:
    """Return whether an interval that ends at `high` excludes the minimum gain that the user
    set."""
    return worthwhile is not None and high < worthwhile * before


def verdict_on(facts: Facts) -> Verdict:
    """Return the verdict with its sentence."""
    kind = decide(facts)
    advice = (*_advice(kind, facts), *((_ANYTIME,) if facts.stopped else ()))
    return Verdict(kind, _template(kind, facts), advice, _params(facts))


def is_proven(low: float, high: float, p: float, level: float) -> bool:
    """Return whether a change is proven: its interval excludes 0 and its corrected p is at most 1 -
    level."""
    return (low > 0 < high or low < 0 > high) and p <= 1 - level + _ROUNDING


def has_width(low: float, high: float) -> bool:
    """Return whether the ends of an interval differ. If all queries have the same value, resampling
    always gives the same mean, and both ends equal it."""
    return high - low > _ROUNDING


_OF_KIND: dict[Kind, str] = {
    "better": (
        "{challenger} is better than {baseline}: {metric} rises by {change:.1%}, from "
        "{before:.{digits}f} to {after:.{digits}f} ({points}) over {n:,} queries, and "
        "with {level:g}% confidence the true gain is between {low} and {high}."
    ),
    "small": (
        "{challenger} is better than {baseline}, but only by {change:.1%}, less than the minimum "
        "practically relevant gain of {worthwhile} (set by the user): {metric} rises from "
        "{before:.{digits}f} to {after:.{digits}f} ({points}) over {n:,} queries, and with "
        "{level:g}% confidence the true gain is between {low} and {high}."
    ),
    "equal": (
        "{challenger} is as good as {baseline}, within the margin of {margin} (set by the user): "
        "{metric} goes from {before:.{digits}f} to {after:.{digits}f} over {n:,} queries, and with "
        "{within_level:g}% confidence the true change is between {within_low} and {within_high}."
    ),
    "unproven": (
        "Not proven that {challenger} differs from {baseline}: {metric} goes from "
        "{before:.{digits}f} to {after:.{digits}f} over {n:,} queries, but with {level:g}% "
        "confidence the true change may be anything between {low} and "
        "{high}."
    ),
    "worse": (
        "{challenger} is worse than {baseline}: {metric} falls by {change:.1%}, from "
        "{before:.{digits}f} to {after:.{digits}f} ({points}) over {n:,} queries, and "
        "with {level:g}% confidence the true change is between {low} and {high}."
    ),
    "identical": "{challenger} and {baseline} score the same on every one of the {n:,} queries.",
    "too_few": (
        "Too few queries to compare {challenger} with {baseline}: {n}; at least {fewest} are "
        "needed."
    ),
    "nothing_common": (
        "{challenger} and {baseline} have no answered query in common, so they cannot be compared."
    ),
    "no_values": "No query has a value of {metric}, so {challenger} cannot be compared.",
    "descriptive": (
        "{metric} describes the labels, not the quality of a ranking: no verdict follows."
    ),
}
_FROM_NOTHING = (
    "{challenger} is better than {baseline}: {metric} rises from 0 to {after:.{digits}f} over "
    "{n:,} queries, and with {level:g}% confidence the true gain is between {low} and "
    "{high}."
)
_EVENLY: dict[Kind, str] = {
    "better": (
        "{challenger} is better than {baseline}: {metric} rises by {change:.1%}, from "
        "{before:.{digits}f} to {after:.{digits}f} ({points}), by the same amount for each of the "
        "{n:,} queries. Without spread, an interval cannot be computed: other queries may differ."
    ),
    "small": (
        "{challenger} is better than {baseline}, but only by {change:.1%}, less than the minimum "
        "practically relevant gain of {worthwhile} (set by the user): {metric} rises from "
        "{before:.{digits}f} to {after:.{digits}f} ({points}), by the same amount for each of the "
        "{n:,} queries. Without spread, an interval cannot be computed: other queries may differ."
    ),
    "worse": (
        "{challenger} is worse than {baseline}: {metric} falls by {change:.1%}, from "
        "{before:.{digits}f} to {after:.{digits}f} ({points}), by the same amount for each of the "
        "{n:,} queries. Without spread, an interval cannot be computed: other queries may differ."
    ),
}
_FROM_NOTHING_EVENLY = (
    "{challenger} is better than {baseline}: {metric} rises from 0 to {after:.{digits}f}, by the "
    "same amount for each of the {n:,} queries. Without spread, an interval cannot be computed: "
    "other queries may differ."
)
_ALIKE = (
    "{challenger} and {baseline} are practically equal: {metric} changes by at most {tie_band} on "
    "every one of the {n:,} queries."
)
_BY_CHANCE = (
    "Not proven that {challenger} differs from {baseline}: {metric} goes from {before:.{digits}f} "
    "to {after:.{digits}f} over {n:,} queries, but a change like this may be due to chance (p = "
    "{p:.3f}, comparisons made: {comparisons})."
)

_IN_SAMPLE = (
    "Not proven that {challenger} differs from {baseline}: {metric} goes from "
    "{before:.{digits}f} to {after:.{digits}f} over {n:,} queries, but these queries were used to "
    "tune weights, so the change is in-sample."
)

_FEW_CHANGED = (
    "Not proven that {challenger} differs from {baseline}: {metric} goes from "
    "{before:.{digits}f} to {after:.{digits}f} over {n:,} queries, but too few of them change for "
    "a {level:g}% interval."
)

_UNEVEN = (
    "Too few queries to compare {challenger} with {baseline}: the weights of the {n:,} queries are "
    "so uneven that their effective number is {effective:.1f}; at least {effective_fewest} are "
    "needed."
)
_LABEL_OR_UNWEIGHTED = "Label more queries, or use the weights “per query”."

_ADVICE: dict[Kind, str] = {
    "too_few": "Label more queries.",
    "nothing_common": "Use systems that answer the same queries under the same ids.",
    "no_values": "Label documents for at least {fewest} queries.",
}
_WITHIN = (
    "The change is within the margin of {margin} (set by the user): with {within_level:g}% "
    "confidence it is between {within_low} and {within_high}."
)
_MORE = (
    "To prove a change with {power:.0%} probability, add {least:,} to {most:,} queries like these, "
    "depending on the size of the true change. A very small change needs more."
)
_MORE_OR_MANY = (
    "To prove a change with {power:.0%} probability, add at least {least:,} queries like these. "
    "This is enough only if the true change is clearly larger than the observed one; a smaller "
    "change needs more."
)
_CORRECTED = (
    "These numbers use the stricter level that the correction for {comparisons} comparisons "
    "requires."
)
_ANYTIME = (
    "The run was stopped by its result, so the interval is anytime-valid, and wider "
    "than for a fixed number of queries."
)
_NONE = (
    "More queries like these are unlikely to give a conclusive result: the true change may well be "
    "zero."
)
_TOO_SMALL = (
    "No number of such queries is likely to show the minimum practically relevant gain of "
    "{worthwhile} (set by the user): the whole interval is below it."
)


def _template(kind: Kind, facts: Facts) -> str:
    even = not has_width(facts.low, facts.high)
    if kind == "better" and math.isnan(relative_change(facts.delta, facts.before)):
        return _FROM_NOTHING_EVENLY if even else _FROM_NOTHING
    if kind in _EVENLY and even:
        return _EVENLY[kind]
    if kind == "too_few" and facts.n >= facts.fewest:
        return _UNEVEN
    if kind == "identical" and not facts.exact:
        return _ALIKE
    if kind == "unproven" and is_in_sample(facts.tuned, facts.low, facts.high):
        return _IN_SAMPLE
    if kind == "unproven" and math.isnan(facts.low):
        return _FEW_CHANGED
    if kind == "unproven" and not facts.low <= 0 <= facts.high:
        return _BY_CHANCE
    return _OF_KIND[kind]


def _advice(kind: Kind, facts: Facts) -> tuple[str, ...]:
    if kind in PROVEN and facts.margin is not None and facts.margin.met:
        return (_WITHIN,)
    if kind == "too_few" and facts.n >= facts.fewest:
        return (_LABEL_OR_UNWEIGHTED,)
    if kind != "unproven":
        return (_ADVICE[kind],) if kind in _ADVICE else ()
    plan = facts.plan
    if plan is None:
        return ()
    if is_below_minimum(facts.high, facts.before, facts.worthwhile):
        return (_TOO_SMALL,)
    if plan.likely is None or plan.none_within:
        return (_NONE,)
    more = _MORE if plan.most is not None else _MORE_OR_MANY
    return (more, _CORRECTED) if facts.corrected else (more,)


def _params(facts: Facts) -> dict[str, object]:
    digits = _digits(facts)
    params: dict[str, object] = {
        "baseline": facts.baseline,
        "challenger": facts.challenger,
        "metric": facts.metric,
        "n": facts.n,
        "fewest": facts.fewest,
        "before": facts.before,
        "after": facts.after,
        "delta": facts.delta,
        "change": abs(relative_change(facts.delta, facts.before)),
        "points": _signed(facts.delta, digits),
        "low": _signed(facts.low, digits),
        "high": _signed(facts.high, digits),
        "digits": digits,
        "level": round(100 * facts.level, 6),
        "p": facts.p,
        "comparisons": facts.comparisons,
        "tie_band": plain(facts.tie_band),
    }
    if facts.effective is not None:
        # Rounded down, so that a number that is too small never looks like the least number.
        params["effective"] = math.floor(10 * facts.effective) / 10
        params["effective_fewest"] = FEWEST_QUERIES
    if facts.worthwhile is not None:
        params["worthwhile"] = f"{quantity(100 * facts.worthwhile, 6)}%"
    if facts.margin is not None:
        params |= {
            "margin": plain(facts.margin.points),
            "within_low": _signed(facts.margin.low, digits),
            "within_high": _signed(facts.margin.high, digits),
            "within_level": round(100 * facts.margin.level, 6),
        }
    if facts.plan is not None:
        planned = {"least": facts.plan.least, "most": facts.plan.most}
        params |= {name: queries for name, queries in planned.items() if queries is not None}
        params["power"] = POWER
    return params


def _signed(value: float, digits: int) -> str:
    """Format with a sign; a value that rounds to zero has none."""
    return f"{value:+.{digits}f}" if round(value, digits) else f"{0:.{digits}f}"


def _digits(facts: Facts) -> int:
    """Return the number of decimals that distinguishes the interval's ends and the change from
    0."""
    shown = [abs(x) for x in (facts.delta, facts.low, facts.high) if abs(x) > _ROUNDING]
    needed = math.ceil(-math.log10(2 * min(shown))) if shown else _FEWEST_DIGITS
    return min(max(needed, _FEWEST_DIGITS), _MOST_DIGITS)
