"""Settings that describe themselves: frozen dataclasses whose fields have a title, a help text and
limits.

    @dataclass(frozen=True)
    class Rules(Settings):
        depth: int = setting(10, "Depth", "How many documents are read.", within=(1, math.inf))

Every surface shows, parses and validates them by their `Setting`.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from numbers import Real
from typing import Any, ClassVar, Literal, Self

from rankdash.core.base.errors import Phrase, RankdashError, SettingError, SpecError

SettingValue = str | int | float | bool

_SWITCHES = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


@dataclass(frozen=True)
class Setting:
    """The description of one setting, which every form, command, address and page of the docs uses.

    name: of the field of `Settings`.
    default: its type is the type of the values: texts, whole numbers, numbers or bools. None for a
        number without a default, of the type `number`; `unset` describes None.
    help: what the setting does, as a sentence.
    choices: the allowed values of a text; a mapping also has a description or title of each.
    within: the range of a number, both ends included. positive: whether it is above 0.
    required: whether a text must not be empty.
    suggestions: values that a form offers for a text, which accepts any other value too.
    lines: how many lines of a text a form shows; 1 for a text without line breaks.
    advanced: whether a form hides it at first, because its default suits nearly everyone.
    option: the name of its command-line option, without dashes, if it differs from `name`.
    """

    name: str
    default: Any
    title: str
    help: str
    unset: str = field(default="", kw_only=True)
    choices: Collection[str] = field(default=(), kw_only=True)
    within: tuple[float, float] | None = field(default=None, kw_only=True)
    positive: bool = field(default=False, kw_only=True)
    required: bool = field(default=False, kw_only=True)
    suggestions: tuple[str, ...] = field(default=(), kw_only=True)
    lines: int = field(default=1, kw_only=True)
    advanced: bool = field(default=False, kw_only=True)
    option: str = field(default="", kw_only=True)
    number: type[float] = field(default=float, kw_only=True)

    error: ClassVar[type[RankdashError]] = SpecError
    """The error class for an invalid value."""

    @property
    def type(self) -> type[Any]:
        return self.number if self.default is None else type(self.default)

    @property
    def words(self) -> Mapping[str, str]:
        """Choice → its description; a choice without a description describes itself."""
        choices = self.choices
        return choices if isinstance(choices, Mapping) else {value: value for value in choices}

    @property
    def least(self) -> float:
        return self.within[0] if self.within else -math.inf

    @property
    def most(self) -> float:
        return self.within[1] if self.within else math.inf

    @property
    def range(self) -> str:
        """ "1 to 512", "at least 1", or "" if every number is possible."""
        # Imported here: listing the commands does not need it, and takes no longer than this
        # import.
        from rankdash.core.base.i18n import plain

        if math.isfinite(self.most):
            return f"{plain(self.least)} to {plain(self.most)}"
        return f"at least {plain(self.least)}" if math.isfinite(self.least) else ""

    def validate(self, value: object) -> None:
        """Raise `error` for a value of another type, outside the choices, or out of range."""
        if not (self._allows(value) or (value is None and self.default is None)):
            raise self.refusal(value)

    def parse(self, value: object) -> Any:
        """Return the value in the type of the setting; texts such as "16" or "yes" are understood.

        Raises `error` for an invalid value.
        """
        typed = self._typed(value) if isinstance(value, str | int | float) else value
        if not self._allows(typed):
            raise self.refusal(value)
        return typed

    def _typed(self, value: SettingValue) -> SettingValue:
        """Return the value in the type of the setting, unchanged if it cannot be converted."""
        if self.type is bool:
            return _SWITCHES.get(str(value).strip().lower(), value)
        if self.choices or self.type is str:
            # The blanks of a free text stay: the blank after "query: " is part of a prompt.
            return str(value).strip() if self.choices or self.required else str(value)
        if isinstance(value, bool):
            return value
        with suppress(ValueError, OverflowError):
            if self.type is int and not isinstance(value, float):
                # Not via a float, which has fewer digits than a seed.
                with suppress(ValueError):
                    return int(value)
            number = float(value)
            return int(number) if self.type is int and number % 1 == 0 else number
        return value

    def _allows(self, value: Any) -> bool:
        if self.choices:
            return isinstance(value, str) and value in self.choices
        if self.type in (bool, str) or isinstance(value, bool):
            return type(value) is self.type and not (self.required and value == "")
        number: Any = value if isinstance(value, Real) else math.nan
        return (
            abs(number) <= sys.float_info.max
            and self.least <= number <= self.most
            and (number > 0 or not self.positive)
            and (self.type is not int or number % 1 == 0)
        )

    def refusal(self, value: object) -> RankdashError:
        """Return the error for an invalid value."""
        if self.choices:
            near = difflib.get_close_matches(str(value), self.choices, n=1)
            return self.error(
                "{value!r} is not a choice for {setting}.",
                remedy="Did you mean {nearest!r}? Choices: {choices}."
                if near
                else "Choices: {choices}.",
                value=value,
                setting=self.name,
                nearest="".join(near),
                choices=", ".join(self.choices),
            )
        if self.required and isinstance(value, str):
            return self.error("The setting {name!r} must not be empty.", name=self.name)
        return self.error(
            "{setting} must be {possible}, not {value!r}.",
            setting=self.name,
            possible=self._possible(),
            value=value,
        )

    def _possible(self) -> Phrase:
        if self.type is bool:
            return Phrase("true or false")
        if self.type is str:
            return Phrase("a text")
        if self.positive:
            return Phrase("a number above 0")
        whole, ends = self.type is int, {"low": f"{self.least:,}", "high": f"{self.most:,}"}
        if math.isfinite(self.most):
            return Phrase(
                "a whole number between {low} and {high}" if whole else "between {low} and {high}",
                **ends,
            )
        if math.isfinite(self.least):
            return Phrase("a whole number, at least {low}" if whole else "at least {low}", **ends)
        return Phrase("a whole number" if whole else "a number")


class SettingSpec(Setting):
    """A setting in the schema of a reranker or a judge."""

    error = SettingError


def setting(*described: Any, **more: Any) -> Any:
    """Return a field of `Settings`; the arguments are the fields of `Setting` after `name`."""
    return described_by(Setting("", *described, **more))


def described_by(spec: Setting) -> Any:
    """Return a field of `Settings` that a `Setting` describes."""
    return field(default=spec.default, metadata={"setting": spec})


@dataclass(frozen=True)
class Settings:
    """The base of a dataclass of settings. Raises the errors of `Setting.validate`."""

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for each in settings_of(kind):
            each.validate(getattr(self, each.name))

    def as_dict(self) -> dict[str, Any]:
        """Return setting → value, for JSON."""
        return dataclasses.asdict(self)


@cache
def settings_of(kind: Any) -> tuple[Any, ...]:
    """Return the `Setting` of every described field of a class of `Settings`, in order."""
    return tuple(
        dataclasses.replace(each.metadata["setting"], name=each.name)
        for each in dataclasses.fields(kind)
        if "setting" in each.metadata
    )


def parse_settings(
    specs: Sequence[SettingSpec], chosen: Mapping[str, SettingValue]
) -> dict[str, SettingValue]:
    """Return every setting of the schema with its chosen value or default, in the schema's order.

    Raises SettingError if a setting does not exist (with the nearest name) or its value is invalid.
    """
    names = [spec.name for spec in specs]
    for name in chosen:
        if name not in names:
            raise SettingError(
                "There is no setting {name!r} here.",
                remedy="Did you mean {nearest!r}? Settings: {names}."
                if names
                else "This reranker has no settings.",
                name=name,
                nearest=nearest(name, names),
                names=", ".join(names),
            )
    return {spec.name: spec.parse(chosen.get(spec.name, spec.default)) for spec in specs}


def completed(
    specs: Sequence[SettingSpec], stored: Mapping[str, object]
) -> dict[str, SettingValue]:
    """Return stored settings as `parse_settings` does, without names that the schema lacks, such as
    settings of another version. Raises SettingError for an invalid value."""
    current: Any = {spec.name: stored[spec.name] for spec in specs if spec.name in stored}
    return parse_settings(specs, current)


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the known name most like `name`; "" if none is known."""
    close = difflib.get_close_matches(name.strip().lower(), known, n=1, cutoff=0.0)
    return close[0] if close else ""


# The settings of metrics and comparisons.

Ties = Literal["trec", "stable"]
ScorePrecision = Literal["float64", "float32"]
Test = Literal["sign-flip", "t", "wilcoxon"]
Correction = Literal["holm", "bh", "none"]
LEVEL, RESAMPLES, SEED = 0.95, 10_000, 20_261_121
TIE_BAND = 0.005
"""Changes up to this size, either way, count as "same"."""
FEWEST_QUERIES = 6
"""The fewest queries for an interval or a proof: if all of five queries change in one direction,
the two-sided p is .0625."""


TieRule = Literal["as_ranked", "trec", "stable"]
Negative = Literal["nonrelevant", "unjudged"]
Missing = Literal["zero", "skip"]
NoRelevant = Literal["skip", "count"]
NoneFound = Literal["zero", "skip"]
PrecisionNorm = Literal["R", "min(R,k)"]
Queries = Literal["qrels", "both"]
Weighting = Literal["per query", "per search"]


@dataclass(frozen=True)
class Conventions(Settings):
    """The settings of an evaluation. The defaults are rankdash's own; see also `trec_eval`.

    Raises SpecError for an invalid value.
    """

    ties: TieRule = setting(
        "as_ranked",
        "Ties",
        "How documents of a query that share a score are ordered.",
        choices={
            "as_ranked": "by the ranking's own rule (files: document id, descending)",
            "trec": "by document id, descending, as trec_eval does",
            "stable": "in their original order",
        },
    )
    threshold: float = setting(
        1.0,
        "Relevance threshold",
        "The lowest label that counts as relevant in binary metrics. NDCG and ERR ignore it.",
        positive=True,
    )
    judged_only: bool = setting(
        False,
        "Condensed lists (judged documents only)",
        "Remove documents without a label from every list before computing a metric. Otherwise "
        "they count as not relevant and keep their rank.",
    )
    missing: Missing = setting(
        "zero",
        "Judged query missing from a ranking",
        "The score of a labelled query if the ranking has no documents for it.",
        choices={"zero": "scores 0 and counts", "skip": "is excluded from the means"},
    )
    no_relevant: NoRelevant = setting(
        "skip",
        "Query without a relevant document",
        "The score of a query if no label makes any document relevant.",
        choices={
            "skip": "is excluded from the means",
            "count": "scores 0 and counts, as in trec_eval",
        },
    )
    mrr_none: NoneFound = setting(
        "zero",
        "MRR if no relevant document is found",
        "The MRR of a query if no relevant document is within the cutoff.",
        choices={"zero": "scores 0 and counts", "skip": "is excluded from the mean"},
    )
    ap_norm: PrecisionNorm = setting(
        "R",
        "Divisor of average precision",
        "R is the number of relevant documents in the labels of the query, k the cutoff.",
        choices={"R": "R, as trec_eval does", "min(R,k)": "the smaller of R and k"},
    )
    score_precision: ScorePrecision = setting(
        "float64",
        "Precision of scores",
        "The precision of scores when ties are resolved.",
        choices={
            "float64": "double, as trec_eval 10 does",
            "float32": "single, as trec_eval 9 and pytrec_eval do",
        },
    )
    queries: Queries = setting(
        "qrels",
        "Queries",
        "Which queries are evaluated. Queries without labels are never evaluated.",
        choices={"qrels": "all that have labels", "both": "all that have labels and are ranked"},
    )
    negative: Negative = setting(
        "nonrelevant",
        "Negative labels",
        "How labels below 0 count. Such a document is never relevant.",
        choices={
            "nonrelevant": "labelled and not relevant",
            "unjudged": "as if it had no label, as in trec_eval",
        },
    )
    err_top_label: float | None = setting(
        None,
        "Highest label",
        "The highest label of the scale, for ERR and graded MAP. If empty, the highest label in "
        "the data.",
        unset="taken from the labels",
        option="highest-label",
        positive=True,
    )
    weights: Weighting = setting(
        "per query",
        "Weights",
        "What a mean counts: every query once, or every search of a log.",
        choices={
            "per query": "every query counts once",
            "per search": "every query counts for its searches: frequency / sampling probability",
        },
    )

    def as_dict(self) -> dict[str, Any]:
        """Return setting → value, for JSON; without the default weights, as in earlier versions."""
        return {k: v for k, v in super().as_dict().items() if k != "weights" or self.weighted}

    @property
    def weighted(self) -> bool:
        """True if means are per search, so that queries have weights."""
        return self.weights == "per search"

    @classmethod
    def rankdash(cls) -> Conventions:
        """Return the defaults: labelled queries count, except without relevant documents."""
        return cls()

    @classmethod
    def trec_eval(cls, version: Literal[9, 10] = 10) -> Conventions:
        """Return the conventions of trec_eval without `-c`: queries in both files, ties by document
        id descending, queries without relevant documents counted 0. Version 10 compares scores in
        double precision, version 9 in single precision.

        Fractional labels, which trec_eval would floor, stay as they are.
        """
        return cls(
            ties="trec",
            missing="skip",
            no_relevant="count",
            score_precision="float32" if version == 9 else "float64",
            queries="both",
            negative="unjudged",
        )

    @property
    def joining(self) -> tuple[TieRule, ScorePrecision, Negative]:
        """The settings that decide how rankings and labels are joined: a `Judged` serves every
        `Conventions` with the same `joining`."""
        return self.ties, self.score_precision, self.negative

    def order_rule(self, made_with: Ties) -> Ties:
        """Return the tie rule for a ranking that was made with `made_with`."""
        return made_with if self.ties == "as_ranked" else self.ties

    @property
    def summary(self) -> str:
        """The tie rule, and every setting that differs from its default, on one line."""
        defaults = Conventions()
        entries = []
        for each in CONVENTION_SETTINGS:
            value = getattr(self, each.name)
            if each.name == "ties" or value != getattr(defaults, each.name):
                words = {True: "yes", False: "no"}.get(value) if isinstance(value, bool) else None
                shown = words or each.words.get(str(value), f"{value}")
                entries.append(f"{each.title}: {shown}")
        return "; ".join(entries)


CONVENTION_SETTINGS: tuple[Setting, ...] = settings_of(Conventions)
"""Every field of `Conventions` with its title, help and choices, in order."""

CONVENTION_PRESETS: Mapping[str, Conventions] = {
    "rankdash": Conventions.rankdash(),
    "trec_eval": Conventions.trec_eval(),
    # ranx does not define the order of equal scores.
    "ranx": Conventions(ties="stable", no_relevant="count"),
    # scikit-learn averages over equal scores, which no setting here does, and evaluates every row
    # it gets.
    "scikit-learn": Conventions(ties="stable", missing="skip", no_relevant="count", queries="both"),
    # BEIR evaluates with pytrec_eval.
    "BEIR": Conventions.trec_eval(9),
}
"""The conventions of a tool by its name; presets do not set `_NOT_OF_A_TOOL`."""


def preset_of(conventions: Conventions) -> str | None:
    """Return the name of the tool that evaluates by these conventions, None if it is unknown."""
    free = {name: getattr(conventions, name) for name in _NOT_OF_A_TOOL}
    return next(
        (name for name, each in CONVENTION_PRESETS.items() if replace(each, **free) == conventions),
        None,
    )


_NOT_OF_A_TOOL = ("threshold", "err_top_label", "weights")
PRESET_SETTINGS = tuple(each for each in CONVENTION_SETTINGS if each.name not in _NOT_OF_A_TOOL)
"""The settings that a preset decides."""


Interval = Literal["skew-t", "t", "bca", "percentile"]
Family = Literal["metric", "all"]

LEAST_LEVEL = 0.5
"""The lowest confidence of an interval."""

RULE_OF_THUMB = 0.15
"""A common choice for the minimum practically relevant gain. It counts only if a user sets it."""

_MANY_QUERIES, _ENOUGH_RESAMPLES = 2_000, 1_000
_ROUNDING = 1e-9


@dataclass(frozen=True)
class StatisticsSettings(Settings):
    """The settings of a comparison; each is described in `STATISTICS_SETTINGS`.

    Raises SpecError for a value that is invalid or out of range.
    """

    level: float = setting(
        LEVEL,
        "Confidence",
        "Probability that the interval covers the true value. A p of at most 1 minus this is "
        "significant.",
        option="confidence",
        within=(LEAST_LEVEL, 0.9999),
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
        "How p values are corrected for multiple comparisons: the more comparisons, the "
        "likelier one of them looks like a gain by chance.",
        choices={
            "holm": "Holm: controls the chance of any false gain",
            "bh": "Benjamini–Hochberg: controls the false discovery rate",
            "none": "none",
        },
    )
    family: Family = setting(
        "metric",
        "Correction scope",
        "Which comparisons are corrected together.",
        choices={
            "metric": "the challengers, for each metric separately",
            "all": "all challengers and metrics",
        },
    )
    resamples: int = setting(
        RESAMPLES,
        "Resamples",
        "The number of resamples for a bootstrap interval and of sign flips for a permutation "
        "test.",
        within=(100, 100_000),
    )
    seed: int = setting(
        SEED,
        "Seed",
        "Random seed. The same seed gives the same numbers.",
        within=(0, 2**63 - 1),
    )
    tie_band: float = setting(
        TIE_BAND,
        "Tie band",
        "Changes of a query up to this size, up or down, count as no change.",
        within=(0, 1),
    )
    worthwhile: float | None = setting(
        None,
        "Minimum practically relevant gain",
        "The smallest gain that matters to you, as a share of the baseline's mean. If it is not "
        "set, each proven gain is “better”.",
        unset="not set",
        within=(0, 10),
    )
    equal_margin: float | None = setting(
        None,
        "Margin for “as good as”",
        "The largest change of the mean, in points of the metric, that does not matter to you. If "
        "it is set, a change that is proven to be smaller, up or down, is “as good as”.",
        option="margin",
        unset="not set",
        within=(0, 10),
    )

    def corrects(self, comparisons: int) -> bool:
        """Return whether p values of this many comparisons are corrected for multiple testing."""
        return self.correction != "none" and comparisons > 1

    def fewest_queries(self, comparisons: int) -> int:
        """Return the least number of queries that can prove a change: if all change in one
        direction, every choice of signs has a probability of 2^-n."""
        if self.test == "t":
            return FEWEST_QUERIES
        strict = self.correction == "holm" and comparisons > 1
        alpha = (1 - self.level) / (comparisons if strict else 1)
        return max(FEWEST_QUERIES, math.ceil(1 - math.log2(alpha) - _ROUNDING))

    @classmethod
    def for_queries(cls, queries: int, **settings: Any) -> Self:
        """Return the settings for this many labelled queries, with the chosen `settings`. Many
        queries need fewer resamples: an end then moves by about a fiftieth of the interval."""
        if queries > _MANY_QUERIES:
            settings = {"resamples": _ENOUGH_RESAMPLES, **settings}
        return cls(**settings)


STATISTICS_SETTINGS: tuple[Setting, ...] = settings_of(StatisticsSettings)
"""Every field of `StatisticsSettings` with its title, meaning and limits, in order."""
