"""Why a query's value changed: exactly one primary reason for each.

The reason is read off the *main document*: of the documents with a label above 0, the one that
lost most where the query was hurt, gained most where it was helped, and moved the value most where
it stayed the same. Lost and gained are the negative and the positive contributions of all documents
(`rankdash.core.study.reasons.contributions`). MRR and hit count the first relevant document alone:
there the ranks of the main document are the ranks of the first relevant document of each list,
which may be two documents, and the change itself is what was lost or gained. A change is
*one-sided* where the smaller of the two is at most half of the larger. Hurt, same and helped follow
the tie band.

The first condition that holds decides, in the order of `DECIDED`:

| code | condition |
|---|---|
| failed | a side has no result: it failed or was not run |
| no_relevant_label | no label of the query names a document that the metric counts |
| missing | a ranking lacks the query, which counts 0 or is left out as the conventions say |
| nothing_judged | none of the first k documents of either list has a label (none of the whole |
|          | list, where the metric has no k), and below_cutoff does not hold: the 0 says nothing |
| no_relevant_candidate | neither list holds a document that the metric counts: the retriever's |
| already_ideal | same, above 0, and no order of the baseline's list would have scored higher |
| below_cutoff | same, neither gains nor losses pass the tie band, and a list holds, below its |
|          | first k, documents that would add more than the tie band in the best order |
| idle | same, and neither gains nor losses pass the tie band: nothing that counts moved |
| near_tie | one-sided, the main document makes at least half of the change, and the score at the |
|          | rank it had before differs from its own by at most `NEAR` of the list's score range |
| truncated | hurt, one-sided, and the model read at most `CUT` of the main document |
| buried | hurt, one-sided, and the main document left the first k (`PAGE` where there is no k) |
| distractor_lifted | hurt, one-sided, and of the documents that overtook the main one, stand |
|          | within k and are not known to be as good, at least half were judged worse |
| unjudged_lifted | the same, and more than half have no label |
| rescued | helped, and one-sided or as high as any order of the challenger's list: relevant |
|          | documents were lifted |
| mixed | everything else: gains against losses |

Scores that fall by the same step all the way down a list are ranks in disguise: they say nothing of
margins, and there is no near-tie.
"""

from __future__ import annotations

import math
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
from rankdash.core.study.reasons.contributions import credits_of, splits
from rankdash.core.study.reasons.headroom import best_order, best_order_of, positions_of
from rankdash.core.study.reasons.main_document import KINDS, ONE_SIDED, ROUNDING, MainDocuments
from rankdash.core.study.unjudged.system_bounds import RankedLabels

CODES = (
    "failed",
    "no_relevant_label",
    "missing",
    "nothing_judged",
    "no_relevant_candidate",
    "below_cutoff",
    "already_ideal",
    "truncated",
    "buried",
    "distractor_lifted",
    "unjudged_lifted",
    "rescued",
    "near_tie",
    "idle",
    "mixed",
)
"""Every reason, in the order in which a list shows them."""

DECIDED = (
    "failed",
    "no_relevant_label",
    "missing",
    "nothing_judged",
    "no_relevant_candidate",
    "already_ideal",
    "below_cutoff",
    "idle",
    "near_tie",
    "truncated",
    "buried",
    "distractor_lifted",
    "unjudged_lifted",
    "rescued",
    "mixed",
)
"""The same codes in the order in which they are tried."""

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
    Columns: query_id; reason, one of `CODES`; delta, the change with nothing found counted 0, NaN
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
    case = _Case(baseline, challenger, measure, rules, tie_band)
    return case.table(reading)


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
        found = np.bincount(self.query[counts], minlength=self.size)
        empty: Flags = found == 0
        return empty

    @cached_property
    def total(self) -> Floats:
        """(2, Q) the values of both sides, nothing found counted 0."""
        return np.stack([np.bincount(self.query, own, minlength=self.size) for own in self.credit])

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
                own = positions_of(side.judged, possible)
                first = self._value(best_order_of(own, side.rank[possible[side.query]] <= k))
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

    def table(self, reading: Reading | None) -> pd.DataFrame:
        read, full = self.read(reading)
        hurt = (self.sign < 0) & self.one_sided
        share = self.of_main(self.delta, 0.0)
        page = float(self.measure.k or PAGE)
        was, now = self.main_rank
        worse, unjudged, _ = self.overtook.T
        most = np.abs(share) >= ONE_SIDED * np.abs(self.change) - ROUNDING
        same = self.sign == 0
        conditions = {
            "failed": self.failed,
            "no_relevant_label": self.unlabelled,
            "missing": self.missing,
            "nothing_judged": self.unjudged & ~self.below_cutoff,
            "no_relevant_candidate": self.nothing,
            "already_ideal": same & (self.total[0] > ROUNDING) & self.ideal(0),
            "below_cutoff": self.unchanged & self.below_cutoff,
            "idle": self.unchanged,
            "near_tie": self.one_sided & most & (self.margin <= NEAR),
            "truncated": hurt & (full > 0) & (read >= 0) & (read <= CUT * full),
            "buried": hurt & (was <= page) & ~(now <= page),
            "distractor_lifted": hurt & (worse > 0) & (worse >= unjudged),
            "unjudged_lifted": hurt & (unjudged > 0),
            "rescued": (self.sign > 0) & (self.one_sided | self.ideal(1)),
            "mixed": np.ones(self.size, dtype=bool),
        }
        skipped = self.rules.missing == "skip" or self.rules.queries == "both"
        valueless = self.failed | self.missing if skipped else self.failed
        decided = np.argmax(np.stack([conditions[code] for code in DECIDED]), axis=0)
        return pd.DataFrame(
            {
                "query_id": self.before.judged.query_ids,
                "reason": pd.array(DECIDED, dtype="str").take(decided),
                "delta": np.where(valueless, np.nan, self.change),
                "gained": self.gained,
                "lost": self.lost,
                "doc_id": self.ids(),
                "label": self.of_main(self.label, np.nan),
                "rank_before": was,
                "rank_after": now,
                "share": np.where(self.main >= 0, share, np.nan),
                "margin": self.margin,
                "read": read,
                "full": full,
                **{kind: self.overtook[:, place] for place, kind in enumerate(KINDS)},
            }
        )


def counted(reason: pd.Series[str], pairs: pd.DataFrame) -> pd.DataFrame:
    """Index: the reasons of the queries that have a change, in the order of `CODES`. queries, which
    sum to those that the mean change counts; mean, of their changes; adds, what they add to it.

    reason: query_id → code. pairs: as from `pairs.paired`.
    """
    delta = pairs["delta"].to_numpy(dtype=np.float64)
    # Usually of the same queries, and to look up ten thousand takes longer than all the rest.
    if not reason.index.equals(pd.Index(pairs["query_id"])):
        reason = reason.reindex(pairs["query_id"])
    found, names = pd.factorize(reason)
    # The last place is that of no reason, -1.
    codes = np.array([*(CODES.index(name) for name in names), -1])[found]
    known = ~np.isnan(delta)
    some = known & (codes >= 0)
    queries = np.bincount(codes[some], minlength=len(CODES))
    sums = np.bincount(codes[some], delta[some], minlength=len(CODES))
    table = pd.DataFrame(
        {
            "queries": queries,
            "mean": sums / np.maximum(queries, 1),
            "adds": sums / max(int(known.sum()), 1),
        },
        index=CODES,
    )
    return table[queries > 0]


# What keeps a query below a perfect ranking: the retriever, the labels or the reranker.
#
# What is lost splits without a remainder:
#
#     perfect - value = retriever + labels + reranker
#
# - retriever: perfect - best possible, as in `rankdash.core.study.reasons.headroom`: relevant
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
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Fault:
    """code: one of `FAULTS`. lost: perfect less value; NaN where labels say too little. parts: each
    of `PARTS` and what of the loss it makes, all ≥ 0; empty where lost is NaN."""

    code: str
    lost: float
    parts: dict[str, float]


LABELS_SAY_TOO_LITTLE = Fault("labels", math.nan, {})


def fault(
    value: float, condensed: float, best: float, perfect: float, tie_band: float = TIE_BAND
) -> Fault:
    """The fault of a query whose labels say enough.

    value: of the system. condensed: of its list without the documents that have no label. best: the
    best possible. perfect: of all labelled documents in the order of their labels.
    """
    lost = max(perfect - value, 0.0)
    retriever = min(max(perfect - best, 0.0), lost)
    labels = min(max(condensed - value, 0.0), lost - retriever)
    amounts = (retriever, labels, lost - retriever - labels)
    parts = dict(zip(PARTS, amounts, strict=True))
    if lost <= tie_band + _ROUNDING:
        return Fault("none", lost, parts)
    main = max(parts, key=parts.__getitem__)
    return Fault(main if parts[main] > MOST * lost + _ROUNDING else "mixed", lost, parts)
