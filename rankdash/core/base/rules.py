"""How a metric is computed and a comparison is made: every choice is a named setting.

Each `Setting` serves every surface: the form, the address, the options of the command with their
help, the sentence and the refusal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Self

from rankdash.core.base.settings import Setting, Settings, setting, settings_of

Ties = Literal["trec", "stable"]
ScorePrecision = Literal["float64", "float32"]
Test = Literal["sign-flip", "t", "wilcoxon"]
Correction = Literal["holm", "bh", "none"]
LEVEL = 0.95
RESAMPLES = 10_000
SEED = 20_261_121
TIE_BAND = 0.005
"""Changes up to this size, either way, count as "same"."""
FEWEST_QUERIES = 6
"""With fewer there is no interval, and nothing is proven: if all of five queries change in one
direction, the two-sided p is .0625."""


TieRule = Literal["as_ranked", "trec", "stable"]
Negative = Literal["nonrelevant", "unjudged"]
Missing = Literal["zero", "skip"]
NoRelevant = Literal["skip", "count"]
NoneFound = Literal["zero", "skip"]
PrecisionNorm = Literal["R", "min(R,k)"]
Queries = Literal["qrels", "both"]


@dataclass(frozen=True)
class Conventions(Settings):
    """The settings of an evaluation. The defaults are rankdash's own; see also `trec_eval`.

    Raises SpecError for a value that does not exist.
    """

    ties: TieRule = setting(
        "as_ranked",
        "Ties",
        "How documents of a query that share a score are ordered.",
        choices={
            "as_ranked": "by the ranking's own rule (files: document id, descending)",
            "trec": "by document id, descending, as trec_eval does",
            "stable": "in the order given",
        },
    )
    threshold: float = setting(
        1.0,
        "Relevant from",
        "The lowest label that counts as relevant in binary metrics. NDCG and ERR ignore it.",
        positive=True,
    )
    judged_only: bool = setting(
        False,
        "Condensed lists (judged documents only)",
        "Remove documents without a label from every list before scoring it. Otherwise they count "
        "as not relevant and keep their rank.",
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
        "MRR where nothing was found",
        "The MRR of a query if no relevant document is within the cutoff.",
        choices={"zero": "scores 0 and counts", "skip": "is excluded from the mean"},
    )
    ap_norm: PrecisionNorm = setting(
        "R",
        "Average precision divided by",
        "R is the number of relevant documents in the labels of the query, k the cutoff.",
        choices={"R": "R, as trec_eval does", "min(R,k)": "the smaller of R and k"},
    )
    score_precision: ScorePrecision = setting(
        "float64",
        "Precision of scores",
        "The precision of scores when ties are settled.",
        choices={
            "float64": "double, as trec_eval 10 does",
            "float32": "single, as trec_eval 9 and pytrec_eval do",
        },
    )
    queries: Queries = setting(
        "qrels",
        "Queries",
        "Which queries are evaluated. Queries without labels never are.",
        choices={"qrels": "all that have labels", "both": "those that have labels and are ranked"},
    )
    negative: Negative = setting(
        "nonrelevant",
        "Negative labels",
        "How labels below 0 count. Such a document is never relevant.",
        choices={
            "nonrelevant": "judged, and not relevant",
            "unjudged": "as if it had no label, as in trec_eval",
        },
    )
    err_top_label: float | None = setting(
        None,
        "Highest label",
        "The top of the scale, for ERR and graded MAP. Left empty: the highest in the labels.",
        unset="taken from the labels",
        option="highest-label",
        positive=True,
    )

    @classmethod
    def rankdash(cls) -> Conventions:
        """The defaults: every labelled query counts, and one without relevant documents apart."""
        return cls()

    @classmethod
    def trec_eval(cls, version: Literal[9, 10] = 10) -> Conventions:
        """Return the conventions of trec_eval without `-c`: queries in both files, ties by document
        id descending, queries without relevant documents counted 0. Version 10 compares scores in
        double precision, version 9 in single precision.

        Fractional labels, which trec_eval would floor, are kept.
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
        """The part that decides how rankings and labels are joined: a `Judged` serves every
        `Conventions` with the same `joining`."""
        return self.ties, self.score_precision, self.negative

    def order_rule(self, made_with: Ties) -> Ties:
        """The tie rule for a ranking that was made with `made_with`."""
        return made_with if self.ties == "as_ranked" else self.ties

    @property
    def summary(self) -> str:
        """The tie rule, and every other rule that is not rankdash's own, on one line in English."""
        own = Conventions()
        said = []
        for each in CONVENTION_SETTINGS:
            value = getattr(self, each.name)
            if each.name == "ties" or value != getattr(own, each.name):
                words = {True: "yes", False: "no"}.get(value) if isinstance(value, bool) else None
                shown = words or each.choices.get(str(value), f"{value}")
                said.append(f"{each.title}: {shown}")
        return "; ".join(said)


CONVENTION_SETTINGS: tuple[Setting, ...] = settings_of(Conventions)
"""Every field of `Conventions` with its title, meaning and choices, in order."""


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
        option="confidence",
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
