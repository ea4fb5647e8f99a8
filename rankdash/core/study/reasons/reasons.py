"""Why a query's value changed: exactly one primary reason for each.

The reason is read off the *main document*: of the documents with a label above 0, the one that
lost most where the query was hurt, gained most where it was helped, and moved the value most where
it stayed the same. Lost and gained are the negative and the positive contributions of all documents
(`rankdash.core.study.reasons.contributions`). MRR and hit count the first relevant document alone:
there the ranks of the main document are the ranks of the first relevant document of each list,
which may be two documents, and the change itself is what was lost or gained. A change is
*one-sided* where the smaller of the two is at most half of the larger. Hurt, same and helped follow
the tie band.

The first of `REASONS` that applies decides; docs/statistics/causes.md has their conditions in
words.

Scores that fall by the same step all the way down a list are ranks in disguise: they say nothing of
margins, and there is no near-tie.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from rankdash.core.base.errors import SpecError
from rankdash.core.base.rules import TIE_BAND
from rankdash.core.data.arrays import Flags, Floats
from rankdash.core.data.ranking import Reading
from rankdash.core.metrics import Conventions, Judged, Measure
from rankdash.core.metrics.engine import Relevance
from rankdash.core.study.headroom import best_order, best_order_of, positions_of
from rankdash.core.study.reasons.contributions import credits_of, splits
from rankdash.core.study.reasons.main_document import KINDS, ONE_SIDED, ROUNDING, MainDocuments
from rankdash.core.study.unjudged.system_bounds import RankedLabels

NEAR = 0.01
CUT = 0.5
PAGE = 10


def reasons(
    baseline: RankedLabels,
    challenger: RankedLabels,
    measure: Measure,
    conventions: Conventions | None = None,
    *,
    tie_band: float = TIE_BAND,
    reading: Reading | None = None,
) -> pd.DataFrame:
    """One row for each labelled query, in the order of the labels.

    baseline, challenger: joined with the same labels under `conventions`.
    reading: of the challenger's ranking, where it is known.
    Columns: query_id; reason, of `REASONS`; delta, the change with nothing found counted 0, NaN
    where failed, or missing and left out; gained and lost, both ≥ 0; and of the main document,
    missing where there is none: doc_id, label, rank_before and rank_after (as the metric counts
    them, NaN where a list lacks it), share (its contribution), margin (score at the rank it had
    before against its own, as a share of the list's score range; NaN where scores say nothing),
    read and full (tokens, -1 unknown), and how many documents overtook it and stand within k:
    worse, unjudged, other.

    Raises SpecError for a metric that is no sum over documents.
    """
    if not splits(measure):
        raise SpecError(
            "{metric} cannot be split by document, so its changes have no reasons.",
            remedy="Choose a metric such as ndcg@10.",
            metric=measure.title,
        )
    rules = conventions or Conventions()
    return _Case(baseline, challenger, measure, rules, tie_band, reading).table()


class _Case(MainDocuments):
    """The condition of every reason, for each query."""

    @cached_property
    def failed(self) -> Flags:
        failed: Flags = np.zeros(self.size, dtype=bool)
        for side in (self.before, self.after):
            out = side.system.left_out
            if out:
                ids = side.judged.query_ids
                failed |= np.fromiter((query in out for query in ids), bool, len(ids))
        return failed

    @cached_property
    def missing(self) -> Flags:
        """(Q,) whether a ranking lacks the query."""
        missing: Flags = ~(self.before.judged.present & self.after.judged.present)
        return missing

    @cached_property
    def unlabelled(self) -> Flags:
        """(Q,) whether no label of the query names a document that the metric counts."""
        relevance = Relevance(self.before.judged, self.rules)
        binary = self.measure.metric.binary
        count = relevance.relevant_count if binary else relevance.positive_count
        without: Flags = count == 0
        return without

    @cached_property
    def nothing(self) -> Flags:
        """(Q,) whether neither list holds a document that the metric counts."""
        binary = self.measure.metric.binary
        counts = self.label >= self.rules.threshold if binary else self.label > 0
        hits = np.bincount(self.query[counts], minlength=self.size)
        empty: Flags = hits == 0
        return empty

    @cached_property
    def total(self) -> Floats:
        """(2, Q) the values of both sides, nothing found counted 0."""
        return np.stack(
            [np.bincount(self.query, credit, minlength=self.size) for credit in self.credit]
        )

    @cached_property
    def ceiling(self) -> Floats:
        """(2, Q) the values of the best order of either list."""
        return np.stack(
            [self._value(best_order(side.judged)) for side in (self.before, self.after)]
        )

    def _value(self, judged: Judged) -> Floats:
        relevance = Relevance(judged, self.rules)
        return relevance.total(relevance.query, credits_of(relevance, self.measure))

    def ideal(self, side: int) -> Flags:
        """(Q,) whether no order of a side's own list would score higher."""
        reached: Flags = self.total[side] >= self.ceiling[side] - ROUNDING
        return reached

    @cached_property
    def below_cutoff(self) -> Flags:
        """(Q,) whether documents below the first k of a list would add more than the tie band."""
        below: Flags = np.zeros(self.size, dtype=bool)
        k = self.measure.k
        # Looked into where it can be the reason.
        possible = self.unjudged | self.unchanged
        if k is not None and possible.any():
            for side, most in zip((self.before, self.after), self.ceiling, strict=True):
                positions = positions_of(side.judged, possible)
                first = self._value(best_order_of(positions, side.rank[possible[side.query]] <= k))
                below |= possible & (most - first > self.tie_band + ROUNDING)
        return below

    @cached_property
    def unchanged(self) -> Flags:
        """(Q,) whether neither the value nor what documents add to it moved beyond the tie band."""
        still: Flags = np.maximum(self.gained, self.lost) <= self.tie_band + ROUNDING
        unchanged: Flags = (self.sign == 0) & still
        return unchanged

    @cached_property
    def unjudged(self) -> Flags:
        """(Q,) whether none of the first k documents of either list has a label."""
        k = None if self.rules.judged_only else self.measure.k
        before, after = (side.judged.judged_within(k) for side in (self.before, self.after))
        nothing: Flags = before + after == 0
        return nothing

    @cached_property
    def share(self) -> Floats:
        """(Q,) the contribution of the main document, 0 where there is none."""
        return self.of_main(self.delta, 0.0)

    @property
    def page(self) -> int:
        """The number of documents that count, or that a page shows."""
        return self.measure.k or PAGE

    @property
    def hurt(self) -> Flags:
        """(Q,) whether the query lost, and one-sided."""
        return (self.sign < 0) & self.one_sided

    @property
    def by_main(self) -> Flags:
        """(Q,) whether the change is one-sided and the main document makes at least half of it."""
        return self.one_sided & (np.abs(self.share) >= ONE_SIDED * np.abs(self.change) - ROUNDING)

    def table(self) -> pd.DataFrame:
        skipped = self.rules.missing == "skip" or self.rules.queries == "both"
        valueless = self.failed | self.missing if skipped else self.failed
        decided = np.argmax(np.stack([each.applies(self) for each in REASONS]), axis=0)
        return pd.DataFrame(
            {
                "query_id": self.before.judged.query_ids,
                "reason": pd.array([each.code for each in REASONS], dtype="str").take(decided),
                "delta": np.where(valueless, np.nan, self.change),
                "gained": self.gained,
                "lost": self.lost,
                "doc_id": self.ids(),
                "label": self.of_main(self.label, np.nan),
                "rank_before": self.main_rank[0],
                "rank_after": self.main_rank[1],
                "share": np.where(self.main >= 0, self.share, np.nan),
                "margin": self.margin,
                "read": self.read,
                "full": self.full,
                **{kind: self.overtook[:, place] for place, kind in enumerate(KINDS)},
            }
        )


@dataclass(frozen=True)
class Reason:
    """Why a query changed, or did not.

    title: a word or two, and meaning a sentence, in which {share} is `share`. applies: (Q,) the
    condition; the first of `REASONS` that applies decides. place: in lists, those of a lower one
    first.
    """

    code: str
    title: str
    meaning: str
    applies: Callable[[_Case], Flags]
    place: int = 0
    share: float = 0.0


REASONS = (
    Reason(
        "failed", "no result", "One side has no result for the query.", lambda case: case.failed
    ),
    Reason(
        "no_relevant_label",
        "no relevant label",
        "Its labels name no relevant document at all.",
        lambda case: case.unlabelled,
    ),
    Reason(
        "missing",
        "not ranked",
        "A ranking lacks the query, which scores 0 there or is excluded, according to the metric "
        "conventions.",
        lambda case: case.missing,
    ),
    Reason(
        "nothing_judged",
        "nothing judged",
        "No document that either side shows has a label, so a value of 0 says nothing.",
        lambda case: case.unjudged & ~case.below_cutoff,
    ),
    Reason(
        "no_relevant_candidate",
        "no relevant document retrieved",
        "Neither list holds a relevant document: the retriever missed it.",
        lambda case: case.nothing,
    ),
    Reason(
        "already_ideal",
        "already ideal",
        "The baseline's order could not be better, and it stayed as good.",
        lambda case: (case.sign == 0) & (case.total[0] > ROUNDING) & case.ideal(0),
        place=2,
    ),
    Reason(
        "below_cutoff",
        "relevant below the cutoff",
        "The value stayed the same while a relevant document stands below the cutoff, where it "
        "does not count.",
        lambda case: case.unchanged & case.below_cutoff,
        place=1,
    ),
    Reason("idle", "no effect", "Nothing that counts moved.", lambda case: case.unchanged, place=5),
    Reason(
        "near_tie",
        "near-tie",
        "Decided by scores that differ by at most {share} of their range: it could as well have "
        "gone the other way.",
        lambda case: case.by_main & (case.margin <= NEAR),
        place=4,
        share=NEAR,
    ),
    Reason(
        "truncated",
        "text cut",
        "A relevant document fell, and the model read at most {share} of its text: the relevant "
        "part may be in the rest.",
        lambda case: (
            case.hurt & (case.read >= 0) & (case.full > 0) & (case.read <= CUT * case.full)
        ),
        place=3,
        share=CUT,
    ),
    Reason(
        "buried",
        "relevant dropped out",
        "A relevant document dropped out of the top ranks.",
        lambda case: (
            case.hurt & (case.main_rank[0] <= case.page) & ~(case.main_rank[1] <= case.page)
        ),
        place=3,
    ),
    Reason(
        "distractor_lifted",
        "irrelevant promoted",
        "Documents labelled as worse were promoted above a relevant one.",
        lambda case: (
            case.hurt & (case.overtook[:, 0] > 0) & (case.overtook[:, 0] >= case.overtook[:, 1])
        ),
        place=3,
    ),
    Reason(
        "unjudged_lifted",
        "unjudged promoted",
        "Documents without a label were promoted above a relevant one. They count as not relevant, "
        "which may be wrong.",
        lambda case: case.hurt & (case.overtook[:, 1] > 0),
        place=3,
    ),
    Reason(
        "rescued",
        "relevant moved up",
        "Relevant documents moved up.",
        lambda case: (case.sign > 0) & (case.one_sided | case.ideal(1)),
        place=3,
    ),
    Reason(
        "mixed",
        "mixed",
        "Some relevant documents rose and others fell.",
        lambda case: np.ones(case.size, dtype=bool),
        place=6,
    ),
)
LISTED = tuple(sorted(REASONS, key=lambda each: each.place))
"""Every reason, in the order in which a list shows them."""

_CODES = [each.code for each in LISTED]


def counted(reason: pd.Series[str], pairs: pd.DataFrame) -> pd.DataFrame:
    """Index: reasons of the queries that have a change, in the order of `LISTED`. queries, which
    sum to those that the mean change counts; mean, of their changes; adds, what they add to it.

    reason: query_id → code. pairs: as from `pairs.paired`.
    """
    delta = pairs["delta"].to_numpy(dtype=np.float64)
    # Usually of the same queries, and to look up ten thousand takes longer than all the rest.
    if not reason.index.equals(pd.Index(pairs["query_id"])):
        reason = reason.reindex(pairs["query_id"])
    indices, names = pd.factorize(reason)
    # The last place is that of no reason, -1.
    codes = np.array([*(_CODES.index(name) for name in names), -1])[indices]
    known = ~np.isnan(delta)
    some = known & (codes >= 0)
    queries = np.bincount(codes[some], minlength=len(_CODES))
    sums = np.bincount(codes[some], delta[some], minlength=len(_CODES))
    table = pd.DataFrame(
        {
            "queries": queries,
            "mean": sums / np.maximum(queries, 1),
            "adds": sums / max(int(known.sum()), 1),
        },
        index=_CODES,
    )
    return table[queries > 0]


# What keeps a query below a perfect ranking: the retriever, the labels or the reranker.
#
# What is lost splits without a remainder:
#
#     perfect - value = retriever + labels + reranker
#
# - retriever: perfect - best possible, as in `rankdash.core.study.headroom`: relevant
#   documents that the system could not order, because its list lacks them.
# - labels: what documents without a label cost that stand above relevant ones: the value of the
#   same list without them (at most the best possible) less the value. They may be relevant or not.
# - reranker: the rest, which a better order of the same documents would bring.
#
# The first condition that holds decides:
#
# | fault | condition |
# |---|---|
# | labels | no label names a relevant document, or no document that is shown has a label |
# | none | what is lost is within the tie band |
# | retriever, labels, reranker | its part is more than `MOST` of what is lost |
# | mixed | no part is |

PARTS = ("retriever", "labels", "reranker")
FAULTS = (*PARTS, "mixed", "none")
MOST = 0.5


@dataclass(frozen=True)
class Fault:
    """code: one of `FAULTS`. lost: perfect less value; NaN where labels say too little. parts: each
    of `PARTS` and what of the loss it makes, all ≥ 0; empty where lost is NaN."""

    code: str
    lost: float
    parts: dict[str, float]

    @classmethod
    def of(cls, row: pd.Series) -> Fault:
        """row: of `faults`."""
        lost = float(row["lost"])
        parts = {} if math.isnan(lost) else {part: float(row[part]) for part in PARTS}
        return cls(row["fault"], lost, parts)


LABELS_SAY_TOO_LITTLE = Fault("labels", math.nan, {})


def fault(
    value: float, condensed: float, best: float, perfect: float, tie_band: float = TIE_BAND
) -> Fault:
    """The fault of a query whose labels say enough. Arguments: as for `faults`, of one query."""
    sides = np.array([value, condensed, best, perfect])
    return Fault.of(faults(sides[:1], sides[1:2], sides[2:3], sides[3:], tie_band).iloc[0])


def faults(
    value: Floats, condensed: Floats, best: Floats, perfect: Floats, tie_band: float = TIE_BAND
) -> pd.DataFrame:
    """The faults of queries whose labels say enough: fault, one of `FAULTS`; lost; each of `PARTS`.

    value: of the system. condensed: of its list without the documents that have no label. best: the
    best possible. perfect: of all labelled documents in the order of their labels.
    """
    lost = np.maximum(perfect - value, 0.0)
    retriever = np.minimum(np.maximum(perfect - best, 0.0), lost)
    labels = np.minimum(np.maximum(condensed - value, 0.0), lost - retriever)
    parts = np.stack([retriever, labels, lost - retriever - labels])
    main = np.where(parts.max(axis=0) > MOST * lost + ROUNDING, parts.argmax(axis=0), len(PARTS))
    code = np.where(lost <= tie_band + ROUNDING, len(PARTS) + 1, main)
    named = dict(zip(PARTS, parts, strict=True))
    return pd.DataFrame({"fault": np.array(FAULTS, dtype=object)[code], "lost": lost, **named})
