"""Reasons of changes: exactly one primary reason for each query.

The reason depends on the *main document*: of the documents with a label above 0, the one that lost
most if the query was hurt, gained most if it was helped, and changed the value most if it stayed
the same. Lost and gained are the negative and the positive contributions of all documents
(`rankdash.core.study.reasons.contributions`). MRR and hit use the first relevant document only:
then the ranks of the main document are the ranks of the first relevant document of each list, which
may be two documents, and the whole change is lost or gained. A change is *one-sided* if the smaller
of the two is at most half of the larger. Hurt, same and helped follow the tie band.

The first of `REASONS` that applies decides; docs/statistics.md describes their conditions.

Scores that fall in even steps down a list are ranks: their margins are meaningless, and they have
no near-tie.
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
from rankdash.core.statistics.alignment import weights_in
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
    """Return one row for each labelled query, in the order of the labels.

    baseline, challenger: joined with the same labels under `conventions`.
    reading: the tokens read of the challenger's ranking, if known.
    Columns: query_id; reason, of `REASONS`; delta, the change, in which a list without relevant
    documents has the value 0, NaN if failed, or missing and excluded; gained and lost, both ≥ 0.
    Columns of the main document, missing without one: doc_id, label, rank_before and rank_after (as
    the metric counts them, NaN if a list lacks it), share (its contribution), margin (difference
    between its score and the score at its former rank, as a share of the list's score range; NaN if
    meaningless), read and full (tokens, -1 unknown), and the number of documents within k that
    overtook it: worse, unjudged, other.

    Raises SpecError for a metric that is not a sum over documents.
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
    """The conditions of all reasons, for each query."""

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
        """(Q,) true if a ranking lacks the query."""
        missing: Flags = ~(self.before.judged.present & self.after.judged.present)
        return missing

    @cached_property
    def unlabelled(self) -> Flags:
        """(Q,) true if the query has no labelled document that the metric counts."""
        relevance = Relevance(self.before.judged, self.rules)
        binary = self.measure.metric.binary
        count = relevance.relevant_count if binary else relevance.positive_count
        without: Flags = count == 0
        return without

    @cached_property
    def nothing(self) -> Flags:
        """(Q,) true if neither list contains a document that the metric counts."""
        binary = self.measure.metric.binary
        counts = self.label >= self.rules.threshold if binary else self.label > 0
        hits = np.bincount(self.query[counts], minlength=self.size)
        empty: Flags = hits == 0
        return empty

    @cached_property
    def total(self) -> Floats:
        """(2, Q) the values of both sides; 0 without relevant documents."""
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
        """Return (Q,) whether no order of a side's list has a higher value."""
        reached: Flags = self.total[side] >= self.ceiling[side] - ROUNDING
        return reached

    @cached_property
    def below_cutoff(self) -> Flags:
        """(Q,) true if documents below the first k of a list could add more than the tie band."""
        below: Flags = np.zeros(self.size, dtype=bool)
        k = self.measure.k
        # Computed only for queries for which it can be the reason.
        possible = self.unjudged | self.unchanged
        if k is not None and possible.any():
            for side, most in zip((self.before, self.after), self.ceiling, strict=True):
                positions = positions_of(side.judged, possible)
                first = self._value(best_order_of(positions, side.rank[possible[side.query]] <= k))
                below |= possible & (most - first > self.tie_band + ROUNDING)
        return below

    @cached_property
    def unchanged(self) -> Flags:
        """(Q,) true if the value, the gains and the losses changed by at most the tie band."""
        still: Flags = np.maximum(self.gained, self.lost) <= self.tie_band + ROUNDING
        unchanged: Flags = (self.sign == 0) & still
        return unchanged

    @cached_property
    def unjudged(self) -> Flags:
        """(Q,) true if none of the first k documents of either list has a label."""
        k = None if self.rules.judged_only else self.measure.k
        before, after = (side.judged.judged_within(k) for side in (self.before, self.after))
        nothing: Flags = before + after == 0
        return nothing

    @cached_property
    def share(self) -> Floats:
        """(Q,) the contribution of the main document, 0 without one."""
        return self.of_main(self.delta, 0.0)

    @property
    def page(self) -> int:
        """The cutoff of the metric, or `PAGE` without one."""
        return self.measure.k or PAGE

    @property
    def hurt(self) -> Flags:
        """(Q,) true if the query lost, and the change is one-sided."""
        return (self.sign < 0) & self.one_sided

    @property
    def by_main(self) -> Flags:
        """(Q,) true if the change is one-sided and at least half of it is due to the main
        document."""
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
    """A reason of a query's change, or of its absence.

    title: a word or two. meaning: a sentence, in which {share} is `share`. applies: the condition
    (Q,); the first of `REASONS` that applies decides. place: the sort key in lists, ascending.
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
        "The query has no document labelled relevant.",
        lambda case: case.unlabelled,
    ),
    Reason(
        "missing",
        "not ranked",
        "One ranking does not contain the query, which scores 0 there or is excluded, depending "
        "on the metric conventions.",
        lambda case: case.missing,
    ),
    Reason(
        "nothing_judged",
        "nothing judged",
        "No displayed document has a label, so a value of 0 is meaningless.",
        lambda case: case.unjudged & ~case.below_cutoff,
    ),
    Reason(
        "no_relevant_candidate",
        "no relevant document retrieved",
        "Neither list contains a relevant document: the retriever missed it.",
        lambda case: case.nothing,
    ),
    Reason(
        "already_ideal",
        "already ideal",
        "The baseline's order could not be better, and the value stayed the same.",
        lambda case: (case.sign == 0) & (case.total[0] > ROUNDING) & case.ideal(0),
        place=2,
    ),
    Reason(
        "below_cutoff",
        "relevant below the cutoff",
        "The value stayed the same; a relevant document is ranked below the cutoff, so it does "
        "not count.",
        lambda case: case.unchanged & case.below_cutoff,
        place=1,
    ),
    Reason(
        "idle",
        "no effect",
        "No document that affects the metric moved.",
        lambda case: case.unchanged,
        place=5,
    ),
    Reason(
        "near_tie",
        "near-tie",
        "Decided by near-equal scores (within {share} of the range): the order could as well be "
        "reversed.",
        lambda case: case.by_main & (case.margin <= NEAR),
        place=4,
        share=NEAR,
    ),
    Reason(
        "truncated",
        "text truncated",
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
"""All reasons, in the order of lists."""

_CODES = [each.code for each in LISTED]


def counted(reason: pd.Series[str], pairs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each reason of queries with a change, in the order of `LISTED`: queries,
    which sum to the queries of the mean change; mean, of their changes; adds, their part of the
    mean change.

    reason: query_id → code. pairs: as from `paired`.
    """
    delta = pairs["delta"].to_numpy(dtype=np.float64)
    # The queries are usually the same, and a reindex is slower than the rest of the function.
    if not reason.index.equals(pd.Index(pairs["query_id"])):
        reason = reason.reindex(pairs["query_id"])
    indices, names = pd.factorize(reason)
    # The last place, -1, is for queries without a reason.
    codes = np.array([*(_CODES.index(name) for name in names), -1])[indices]
    valid = ~np.isnan(delta)
    some = valid & (codes >= 0)
    queries = np.bincount(codes[some], minlength=len(_CODES))
    weights = weights_in(pairs)
    if weights is None:
        sums = np.bincount(codes[some], delta[some], minlength=len(_CODES))
        means, adds = sums / np.maximum(queries, 1), sums / max(int(valid.sum()), 1)
    else:
        searches = weights.searches
        sums = np.bincount(codes[some], searches[some] * delta[some], minlength=len(_CODES))
        sizes = np.bincount(codes[some], searches[some], minlength=len(_CODES))
        means = sums / np.where(queries > 0, sizes, 1.0)
        adds = sums / (searches[valid].sum() if valid.any() else 1.0)
    table = pd.DataFrame(
        {
            "queries": queries,
            "mean": means,
            "adds": adds,
        },
        index=_CODES,
    )
    return table[queries > 0]


# The cause of a value below the perfect one: the retriever, the labels or the reranker.
#
# The loss splits exactly into:
#
#     perfect - value = retriever + labels + reranker
#
# - retriever: perfect - best possible, as in `rankdash.core.study.headroom`: relevant
#   documents that the system could not order, because its list lacks them.
# - labels: the loss caused by unlabelled documents ranked above relevant ones: the value of the
#   same list without them (at most the best possible) minus the value. They may be relevant or not.
# - reranker: the rest, which a better order of the same documents would gain.
#
# The first condition that applies decides:
#
# | fault | condition |
# |---|---|
# | labels | no document is labelled relevant, or no displayed document has a label |
# | none | the loss is within the tie band |
# | retriever, labels, reranker | its part is more than `MOST` of the loss |
# | mixed | otherwise |

PARTS = ("retriever", "labels", "reranker")
FAULTS = (*PARTS, "mixed", "none")
MOST = 0.5


@dataclass(frozen=True)
class Fault:
    """The cause of a query's loss. code: one of `FAULTS`. lost: perfect minus value; NaN without
    enough labels. parts: each of `PARTS` → its part of the loss, all ≥ 0; empty if lost is NaN."""

    code: str
    lost: float
    parts: dict[str, float]

    @classmethod
    def of(cls, row: pd.Series) -> Fault:
        """Create a fault from a row of `faults`."""
        lost = float(row["lost"])
        parts = {} if math.isnan(lost) else {part: float(row[part]) for part in PARTS}
        return cls(row["fault"], lost, parts)


LABELS_SAY_TOO_LITTLE = Fault("labels", math.nan, {})


def fault(
    value: float, condensed: float, best: float, perfect: float, tie_band: float = TIE_BAND
) -> Fault:
    """Return the fault of a query with enough labels. Arguments: as for `faults`, of one query."""
    sides = np.array([value, condensed, best, perfect])
    return Fault.of(faults(sides[:1], sides[1:2], sides[2:3], sides[3:], tie_band).iloc[0])


def faults(
    value: Floats, condensed: Floats, best: Floats, perfect: Floats, tie_band: float = TIE_BAND
) -> pd.DataFrame:
    """Return the faults of queries with enough labels: fault, one of `FAULTS`; lost; `PARTS`.

    value: of the system. condensed: of its list without unlabelled documents. best: the best
    possible. perfect: of all labelled documents in the order of their labels.
    """
    lost = np.maximum(perfect - value, 0.0)
    retriever = np.minimum(np.maximum(perfect - best, 0.0), lost)
    labels = np.minimum(np.maximum(condensed - value, 0.0), lost - retriever)
    parts = np.stack([retriever, labels, lost - retriever - labels])
    main = np.where(parts.max(axis=0) > MOST * lost + ROUNDING, parts.argmax(axis=0), len(PARTS))
    code = np.where(lost <= tie_band + ROUNDING, len(PARTS) + 1, main)
    named = dict(zip(PARTS, parts, strict=True))
    return pd.DataFrame({"fault": np.array(FAULTS, dtype=object)[code], "lost": lost, **named})
