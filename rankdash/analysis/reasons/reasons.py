"""Why a query's value changed: exactly one primary reason for each.

The reason is read off the *main document*: of the documents with a label above 0, the one that
lost most where the query was hurt, gained most where it was helped, and moved the value most where
it stayed the same. In MRR and hit it is the first relevant document, which may be another one after
than before. Lost and gained are the negative and the positive contributions of all documents
(`rankdash.analysis.reasons.contributions`). A change is *one-sided* where the smaller of the two is
at most half of the larger. Hurt, same and helped follow the tie band.

The first condition that holds decides, in the order of `DECIDED`:

| code | condition |
|---|---|
| failed | a side has no result: it failed or was not run |
| no_relevant_label | no label of the query names a document that the metric counts |
| missing | a ranking lacks the query, which counts 0 or is left out as the conventions say |
| no_relevant_candidate | neither list holds a document that the metric counts: the retriever's |
| already_ideal | same, and no order of the baseline's list would have scored higher |
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

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.analysis.reasons.contributions import CARRIED, Split, credits_of, splits
from rankdash.analysis.reasons.headroom import best_order
from rankdash.analysis.reasons.sides import Side, given_rows, joined, rows
from rankdash.analysis.statistics.pairs import TIE_BAND, direction
from rankdash.analysis.unjudged.unjudged import RankedLabels
from rankdash.errors import SpecError
from rankdash.metrics import Conventions, Measure
from rankdash.metrics.engine import Relevance
from rankdash.ranking.ragged import Flags, Floats, Integers
from rankdash.ranking.ranking import Reading

CODES = (
    "failed",
    "no_relevant_label",
    "missing",
    "no_relevant_candidate",
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
    "no_relevant_candidate",
    "already_ideal",
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
ONE_SIDED = 0.5

_ROUNDING = 1e-9
_KINDS = ("worse", "unjudged", "other")


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


@dataclass(frozen=True, eq=False)
class Overtaker:
    """A document that now stands above the main one and did not before. kind: "worse" (judged
    worse than it), "unjudged" or "other" (as good or better)."""

    doc_id: str
    rank_before: float
    rank_after: float
    label: float
    kind: str


def evidence(row: pd.Series, found: Split, conventions: Conventions) -> list[Overtaker]:
    """The documents behind the counts of a row of `reasons`, best first. found: the same query."""
    docs = found.documents
    if docs.empty or not isinstance(row["doc_id"], str):
        return []
    bound = row["rank_after"] if np.isfinite(row["rank_after"]) else np.inf
    # Only where the document was passed can it have been overtaken.
    passed = (docs["rank_after"] < bound) & ~(docs["rank_before"] < row["rank_before"])
    passed &= docs["doc_id"] != row["doc_id"]
    if found.measure.k is not None:
        passed &= docs["rank_after"] <= found.measure.k
    above = docs[passed].sort_values("rank_after")
    kinds = _kinds(
        above["label"].to_numpy(),
        np.full(len(above), float(row["label"])),
        found.measure,
        conventions,
    )
    return [
        Overtaker(doc, before, after, label, _KINDS[kind])
        for doc, before, after, label, kind in zip(
            above["doc_id"], above["rank_before"], above["rank_after"], above["label"], kinds,
            strict=True,
        )
    ]  # fmt: skip


def _kinds(label: Floats, main: Floats, measure: Measure, rules: Conventions) -> Integers:
    """Index into `_KINDS` for documents with these labels, NaN for none, that passed `main`."""
    worse = label < rules.threshold if measure.metric.binary else np.maximum(label, 0.0) < main
    return np.where(np.isnan(label), 1, np.where(worse, 0, 2))


class _Case:
    """Q queries, P pairs of query and document with a label above 0 in either list."""

    def __init__(
        self,
        baseline: RankedLabels,
        challenger: RankedLabels,
        measure: Measure,
        rules: Conventions,
        tie_band: float,
    ) -> None:
        self.measure, self.rules, self.tie_band = measure, rules, tie_band
        self.before, self.after = (Side(each, measure, rules) for each in (baseline, challenger))
        self.size = len(self.before.judged.query_ids)
        self._join()
        self._sum()
        self._choose()

    def _join(self) -> None:
        """Pair up the positions of both sides by query and document."""
        self.codes, at = joined(self.before, self.after)
        self.width = len(self.before.ranking.doc_ids) + len(self.after.ranking.doc_ids)
        was, now = self.before.query, self.after.query
        fresh = np.flatnonzero(at < 0)
        known = np.flatnonzero(at >= 0)
        count = len(was) + len(fresh)
        place = np.empty(len(now), dtype=np.int64)
        place[known], place[fresh] = at[known], len(was) + np.arange(len(fresh))
        self.query = np.append(self.before.query, self.after.query[fresh])
        self.label = np.append(self.before.label, self.after.label[fresh])
        self.rank = np.full((2, count), np.nan)
        self.row = np.full((2, count), -1, dtype=np.int64)
        credit = np.zeros((2, count))
        self.rank[0, : len(was)], self.rank[1, place] = self.before.rank, self.after.rank
        self.row[0, : len(was)], self.row[1, place] = self.before.row, self.after.row
        credit[0, : len(was)], credit[1, place] = self.before.credit, self.after.credit
        self.credit = credit
        self.delta = credit[1] - credit[0]

    def _sum(self) -> None:
        def total(values: Floats) -> Floats:
            return np.bincount(self.query, values, minlength=self.size).astype(np.float64)

        self.change = total(self.delta)
        if self.measure.metric.name in CARRIED:
            # The value passes from one document to another: what one loses the other gained.
            self.gained, self.lost = np.maximum(self.change, 0.0), np.maximum(-self.change, 0.0)
        else:
            self.gained = total(np.maximum(self.delta, 0.0))
            self.lost = total(np.maximum(-self.delta, 0.0))
        self.sign = direction(self.change, self.tie_band)
        small, large = np.minimum(self.gained, self.lost), np.maximum(self.gained, self.lost)
        self.one_sided = small <= ONE_SIDED * large + _ROUNDING

    def _choose(self) -> None:
        """(Q,) the main document of each query, -1 where nothing moved the value."""
        sign = self.sign[self.query]
        weight = np.where(sign == 0, np.abs(self.delta), sign * self.delta)
        moved = np.flatnonzero(weight > _ROUNDING)
        query, rounded = self.query[moved], np.round(weight[moved], 12)
        most = np.zeros(self.size)
        np.maximum.at(most, query, rounded)
        # Backwards, so that of equal ones the first is written last.
        first = moved[rounded == most[query]][::-1]
        self.main = np.full(self.size, -1, dtype=np.int64)
        self.main[self.query[first]] = first
        if self.measure.metric.name in CARRIED:
            firsts = [side.first_relevant() for side in (self.before, self.after)]
            self.main_rank, self.main_row = (np.stack(both) for both in zip(*firsts, strict=True))
            self.main_rank[:, self.main < 0] = np.nan
            self.main_row[:, self.main < 0] = -1
        else:
            self.main_rank = np.stack([self._of_main(side, np.nan) for side in self.rank])
            self.main_row = np.stack([self._of_main(side, -1) for side in self.row])

    def _of_main(self, values: npt.NDArray[Any], missing: float) -> npt.NDArray[Any]:
        if not len(values):
            return np.full(self.size, missing)
        return np.where(self.main >= 0, values[self.main], missing)

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

    def ideal(self, side: int) -> Flags:
        """(Q,) whether no order of a side's own list would score higher."""
        best = Relevance(best_order((self.before, self.after)[side].judged), self.rules)
        ceiling = best.total(best.query, credits_of(best, self.measure))
        value = np.bincount(self.query, self.credit[side], minlength=self.size)
        reached: Flags = value >= ceiling - _ROUNDING
        return reached

    @cached_property
    def margin(self) -> Floats:
        """(Q,) see `reasons`."""
        lengths, span, meaningful = self.after.scored()
        scores, starts = self.after.ranking.scores, self.after.judged.starts
        was = self.main_row[0] - self.before.judged.starts
        now = self.main_row[1] - starts
        both = (self.main_row >= 0).all(axis=0) & (was < lengths) & (now < lengths)
        known = np.flatnonzero(both & meaningful & (was != now))
        margin = np.full(self.size, np.nan)
        there, own = scores[(starts + was)[known]], scores[(starts + now)[known]]
        margin[known] = np.abs(there - own) / span[known]
        return margin

    @cached_property
    def overtook(self) -> Integers:
        """(Q, 3) how many documents of each of `_KINDS` overtook the main one."""
        query = np.flatnonzero(self.main_row[0] >= 0)
        was, now = self.main_row[:, query]
        start, length = self.after.judged.starts[query], self.after.judged.lengths[query]
        now = np.where(now < 0, start + length, now)
        if self.measure.k is not None and not self.rules.judged_only:
            now = np.minimum(now, start + self.measure.k)
        above, mine = rows(start, now)
        own, whose = rows(self.before.judged.starts[query], was)
        passed = self.codes[self.after.ranking.docs[above]] + mine * self.width
        stood = self.before.ranking.docs[own] + whose * self.width
        new = pd.Index(stood).get_indexer(passed) < 0
        above, mine = above[new], mine[new]
        label = self.after.row_label[above]
        if self.rules.judged_only:
            count = self.after.judged.judged_before
            place = count[above] - count[start[mine]]
            near = ~np.isnan(label) & (place < (self.measure.k or len(count)))
            above, mine, label = above[near], mine[near], label[near]
        kind = _kinds(label, self.label[self.main[query]][mine], self.measure, self.rules)
        counts = np.zeros((self.size, len(_KINDS)), dtype=np.int64)
        counts[query] = np.bincount(
            mine * len(_KINDS) + kind, minlength=len(query) * len(_KINDS)
        ).reshape(-1, len(_KINDS))
        return counts

    def read(self, reading: Reading | None) -> tuple[Integers, Integers]:
        """(Q,) tokens that the model read of the main document, and that it has."""
        unknown = np.full(self.size, -1, dtype=np.int64)
        row = self.main_row[1]
        if reading is None:
            return unknown, unknown.copy()
        here = np.flatnonzero(row >= 0)
        rows = given_rows(self.after.ranking, self.after.system.ranking)[row[here]]
        read, full = unknown, unknown.copy()
        read[here], full[here] = reading.read[rows], reading.full[rows]
        return read, full

    def table(self, reading: Reading | None) -> pd.DataFrame:
        read, full = self.read(reading)
        hurt = (self.sign < 0) & self.one_sided & (self.main >= 0)
        share = self._of_main(self.delta, 0.0)
        page = float(self.measure.k or PAGE)
        was, now = self.main_rank
        worse, unjudged, _ = self.overtook.T
        most = np.abs(share) >= ONE_SIDED * np.abs(self.change) - _ROUNDING
        same = self.sign == 0
        still = np.maximum(self.gained, self.lost) <= self.tie_band + _ROUNDING
        conditions = {
            "failed": self.failed,
            "no_relevant_label": self.unlabelled,
            "missing": self.missing,
            "no_relevant_candidate": self.nothing,
            "already_ideal": same & self.ideal(0),
            "idle": same & still,
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
        codes = np.array(DECIDED, dtype=object)
        decided = np.argmax(np.stack([conditions[code] for code in DECIDED]), axis=0)
        return pd.DataFrame(
            {
                "query_id": self.before.judged.query_ids,
                "reason": codes[decided],
                "delta": np.where(valueless, np.nan, self.change),
                "gained": self.gained,
                "lost": self.lost,
                "doc_id": self._main_ids(),
                "label": self._of_main(self.label, np.nan),
                "rank_before": was,
                "rank_after": now,
                "share": np.where(self.main >= 0, share, np.nan),
                "margin": self.margin,
                "read": read,
                "full": full,
                **{kind: self.overtook[:, place] for place, kind in enumerate(_KINDS)},
            }
        )

    def _main_ids(self) -> npt.NDArray[np.object_]:
        ids = np.full(self.size, None, dtype=object)
        for side, ranking in ((1, self.after.ranking), (0, self.before.ranking)):
            row = self._of_main(self.row[side], -1)
            here = np.flatnonzero(row >= 0)
            ids[here] = ranking.doc_ids[ranking.docs[row[here]]]
        return ids


def counted(reason: pd.Series[str], pairs: pd.DataFrame) -> pd.DataFrame:
    """Index: the reasons of the queries that have a change, in the order of `CODES`. queries, which
    sum to those that the mean change counts; mean, of their changes; adds, what they add to it.

    reason: query_id → code. pairs: as from `pairs.paired`.
    """
    delta = pairs.set_index("query_id")["delta"].dropna()
    groups = delta.groupby(reason.reindex(delta.index).to_numpy(dtype=object))
    found = pd.DataFrame({"queries": groups.size(), "mean": groups.mean(), "adds": groups.sum()})
    found["adds"] /= max(len(delta), 1)
    return found.reindex([code for code in CODES if code in found.index])
