"""How a metric is computed where the field disagrees: every choice is a named setting."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rankdash.errors import SpecError
from rankdash.ranking.build import ScorePrecision, Ties

TieRule = Literal["as_ranked", "trec", "stable"]
Negative = Literal["nonrelevant", "unjudged"]
Missing = Literal["zero", "skip"]
NoRelevant = Literal["skip", "count"]
NoneFound = Literal["zero", "skip"]
PrecisionNorm = Literal["R", "min(R,k)"]
Queries = Literal["qrels", "both"]


@dataclass(frozen=True)
class ConventionSetting:
    """One convention as a form or a command line shows it.

    choices: value → what it means; empty where the value is a number or a switch.
    """

    name: str
    title: str
    meaning: str
    choices: Mapping[str, str] = field(default_factory=dict)

    @property
    def default(self) -> str | float | bool | None:
        value: str | float | bool | None = getattr(Conventions(), self.name)
        return value


CONVENTION_SETTINGS = (
    ConventionSetting(
        "ties",
        "Ties",
        "How documents of a query that share a score are ordered.",
        {
            "as_ranked": "by the ranking's own rule (files: document id, descending)",
            "trec": "by document id, descending, as trec_eval does",
            "stable": "in the order given",
        },
    ),
    ConventionSetting(
        "threshold",
        "Relevant from",
        "The lowest label that counts as relevant in binary metrics. NDCG and ERR ignore it.",
    ),
    ConventionSetting(
        "judged_only",
        "Judged documents only",
        "Leave documents without a label out of every list before scoring it. Otherwise they "
        "count as not relevant and keep their rank.",
    ),
    ConventionSetting(
        "missing",
        "Judged query missing from a ranking",
        "What a labelled query scores where the ranking has no documents for it.",
        {"zero": "scores 0 and counts", "skip": "is left out of the means"},
    ),
    ConventionSetting(
        "no_relevant",
        "Query without a relevant document",
        "What a query scores where no label makes any document relevant.",
        {"skip": "is left out of the means", "count": "scores 0 and counts, as in trec_eval"},
    ),
    ConventionSetting(
        "mrr_none",
        "MRR where nothing was found",
        "What a query scores in MRR where no relevant document is within the cutoff.",
        {"zero": "scores 0 and counts", "skip": "is left out of the mean"},
    ),
    ConventionSetting(
        "ap_norm",
        "Average precision divided by",
        "R is the number of relevant documents in the labels of the query, k the cutoff.",
        {"R": "R, as trec_eval does", "min(R,k)": "the smaller of R and k"},
    ),
    ConventionSetting(
        "score_precision",
        "Precision of scores",
        "How finely scores are told apart before ties are settled.",
        {"float64": "double", "float32": "single, as trec_eval does"},
    ),
    ConventionSetting(
        "queries",
        "Queries",
        "Which queries are evaluated. Queries without labels never are.",
        {"qrels": "all that have labels", "both": "those that have labels and are ranked"},
    ),
    ConventionSetting(
        "negative",
        "Negative labels",
        "What a label below 0 says of a document. It is never relevant.",
        {
            "nonrelevant": "judged, and not relevant",
            "unjudged": "as if it had no label, as in trec_eval",
        },
    ),
    ConventionSetting(
        "err_top_label",
        "Highest label for ERR",
        "The label that satisfies a reader almost surely. Left empty: the highest in the labels.",
    ),
)
"""Every field of `Conventions` with its title, meaning and choices, in order."""


@dataclass(frozen=True)
class Conventions:
    """The settings of an evaluation. The defaults are rankdash's own; see also `trec_eval`.

    Raises SpecError for a value that does not exist.
    """

    ties: TieRule = "as_ranked"
    threshold: float = 1.0
    judged_only: bool = False
    missing: Missing = "zero"
    no_relevant: NoRelevant = "skip"
    mrr_none: NoneFound = "zero"
    ap_norm: PrecisionNorm = "R"
    score_precision: ScorePrecision = "float64"
    queries: Queries = "qrels"
    negative: Negative = "nonrelevant"
    err_top_label: float | None = None

    def __post_init__(self) -> None:
        for setting in CONVENTION_SETTINGS:
            value = getattr(self, setting.name)
            if setting.choices and value not in setting.choices:
                _refuse(setting, value)
        _positive(self.threshold, "threshold")
        if self.err_top_label is not None:
            _positive(self.err_top_label, "err_top_label")

    @classmethod
    def rankdash(cls) -> Conventions:
        """The defaults: every labelled query counts, and one without relevant documents apart."""
        return cls()

    @classmethod
    def trec_eval(cls) -> Conventions:
        """The numbers of trec_eval without `-c`: queries in both files, ties by document id
        descending over single-precision scores, queries without relevant documents counted 0.

        Fractional labels, which trec_eval would floor, are kept.
        """
        return cls(
            ties="trec",
            missing="skip",
            no_relevant="count",
            score_precision="float32",
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
        for setting in CONVENTION_SETTINGS:
            value = getattr(self, setting.name)
            if setting.name == "ties" or value != getattr(own, setting.name):
                words = {True: "yes", False: "no"}.get(value) if isinstance(value, bool) else None
                shown = words or setting.choices.get(str(value), f"{value}")
                said.append(f"{setting.title}: {shown}")
        return "; ".join(said)

    def as_dict(self) -> dict[str, str | float | bool | None]:
        """Setting → value, fit for JSON."""
        return dataclasses.asdict(self)


def _refuse(setting: ConventionSetting, value: object) -> None:
    near = difflib.get_close_matches(str(value), setting.choices, n=1, cutoff=0.0)
    raise SpecError(
        "{value!r} is not a choice for {setting}.",
        remedy="Did you mean {nearest!r}? Choices: {choices}.",
        value=value,
        setting=setting.name,
        nearest=near[0],
        choices=", ".join(setting.choices),
    )


def _positive(value: float, name: str) -> None:
    if not (math.isfinite(value) and value > 0):
        raise SpecError(
            "{setting} must be a number above 0, not {value!r}.",
            remedy="Labels of 0 and below are never relevant.",
            setting=name,
            value=value,
        )
