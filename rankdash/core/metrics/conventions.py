"""How a metric is computed where the field disagrees: every choice is a named setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rankdash.core.base.settings import Setting, Settings, setting, settings_of
from rankdash.core.data.ranking import ScorePrecision, Ties

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
