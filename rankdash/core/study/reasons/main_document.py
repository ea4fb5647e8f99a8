"""The document that contributes most to each query's change, and the documents that overtook it.

It is called the main document of the query. `rankdash.core.study.reasons.reasons` defines it
exactly, and defines one-sided changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.data.arrays import Flags, Floats, Integers, offsets_from, owners, places_in
from rankdash.core.data.overlap import places_of
from rankdash.core.data.ranking import Ranking, Reading
from rankdash.core.metrics import Conventions, Judged, Measure
from rankdash.core.metrics.engine import Relevance
from rankdash.core.statistics.alignment import direction
from rankdash.core.study.reasons.contributions import CARRIED, Split, credits_of
from rankdash.core.study.unjudged.system_bounds import RankedLabels

ONE_SIDED = 0.5
ROUNDING = 1e-9
KINDS = ("worse", "unjudged", "other")


@dataclass(frozen=True, eq=False)
class Overtaker:
    """A document that overtook the main document. kind: "worse" (judged worse than it), "unjudged"
    or "other" (as good or better)."""

    doc_id: str
    rank_before: float
    rank_after: float
    label: float
    kind: str


def evidence(row: pd.Series, split: Split, conventions: Conventions) -> list[Overtaker]:
    """Return the documents that overtook a query's main document, by rank.

    row: of the table from `reasons`, which has the counts of these documents. split: of the same
    query.
    """
    docs = split.documents
    if docs.empty or not isinstance(row["doc_id"], str):
        return []
    bound = row["rank_after"] if np.isfinite(row["rank_after"]) else np.inf
    # Documents that are above the main one now, and were not before.
    passed = (docs["rank_after"] < bound) & ~(docs["rank_before"] < row["rank_before"])
    if split.measure.k is not None:
        passed &= docs["rank_after"] <= split.measure.k
    above = docs[passed].sort_values("rank_after")
    kinds = _kinds(
        above["label"].to_numpy(),
        np.full(len(above), float(row["label"])),
        split.measure,
        conventions,
    )
    return [
        Overtaker(doc, before, after, label, KINDS[kind])
        for doc, before, after, label, kind in zip(
            above["doc_id"], above["rank_before"], above["rank_after"], above["label"], kinds,
            strict=True,
        )
    ]  # fmt: skip


def _kinds(label: Floats, main: Floats, measure: Measure, rules: Conventions) -> Integers:
    """Return indexes into `KINDS` for documents that passed `main`. label: NaN for none."""
    worse = label < rules.threshold if measure.metric.binary else label < main
    return np.where(np.isnan(label), 1, np.where(worse, 0, 2))


class MainDocuments:
    """The main documents of Q queries, and P pairs of query and document with a label above 0 in
    either list."""

    def __init__(
        self,
        baseline: RankedLabels,
        challenger: RankedLabels,
        measure: Measure,
        rules: Conventions,
        tie_band: float,
        reading: Reading | None,
    ) -> None:
        self.measure, self.rules, self.tie_band = measure, rules, tie_band
        self.reading = reading
        self.before, self.after = (Side(each, measure, rules) for each in (baseline, challenger))
        self.size = len(self.before.judged.query_ids)
        self._join()
        self._sum()
        self._choose()

    def _join(self) -> None:
        """Join the positions of both sides by query and document."""
        self.earlier, at = joined(self.before, self.after)
        was, now = self.before.query, self.after.query
        fresh = np.flatnonzero(at < 0)
        matched = np.flatnonzero(at >= 0)
        count = len(was) + len(fresh)
        place = np.empty(len(now), dtype=np.int64)
        place[matched], place[fresh] = at[matched], len(was) + np.arange(len(fresh))
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
            # The value passes from one document to another: a loss of one is a gain of the other.
            self.gained, self.lost = np.maximum(self.change, 0.0), np.maximum(-self.change, 0.0)
        else:
            self.gained = total(np.maximum(self.delta, 0.0))
            self.lost = total(np.maximum(-self.delta, 0.0))
        self.sign = direction(self.change, self.tie_band)
        small, large = np.minimum(self.gained, self.lost), np.maximum(self.gained, self.lost)
        self.one_sided = small <= ONE_SIDED * large + ROUNDING

    def _choose(self) -> None:
        """Set (Q,) the main document of each query, -1 if no document changed the value."""
        sign = self.sign[self.query]
        weight = np.where(sign == 0, np.abs(self.delta), sign * self.delta)
        moved = np.flatnonzero(weight > ROUNDING)
        query, rounded = self.query[moved], np.round(weight[moved], 12)
        most = np.zeros(self.size)
        np.maximum.at(most, query, rounded)
        # In reverse order, so that the first of equal ones is written last.
        first = moved[rounded == most[query]][::-1]
        self.main = np.full(self.size, -1, dtype=np.int64)
        self.main[self.query[first]] = first
        if self.measure.metric.name in CARRIED:
            firsts = [side.first_relevant() for side in (self.before, self.after)]
            self.main_rank, self.main_row = (np.stack(both) for both in zip(*firsts, strict=True))
            self.main_rank[:, self.main < 0] = np.nan
            self.main_row[:, self.main < 0] = -1
        else:
            self.main_rank = np.stack([self.of_main(side, np.nan) for side in self.rank])
            self.main_row = np.stack([self.of_main(side, -1) for side in self.row])

    def of_main(self, values: npt.NDArray[Any], missing: float) -> npt.NDArray[Any]:
        if not len(values):
            return np.full(self.size, missing)
        return np.where(self.main >= 0, values[self.main], missing)

    @cached_property
    def margin(self) -> Floats:
        """(Q,) difference between the challenger's scores at the current and the former rank of the
        main document, as a share of the list's score range; NaN if meaningless."""
        lengths, span, meaningful = self.after.scored()
        scores, starts = self.after.ranking.scores, self.after.judged.starts
        was = self.main_row[0] - self.before.judged.starts
        now = self.main_row[1] - starts
        both = (self.main_row >= 0).all(axis=0) & (was < lengths) & (now < lengths)
        valid = np.flatnonzero(both & meaningful & (was != now))
        margin = np.full(self.size, np.nan)
        there, current = scores[(starts + was)[valid]], scores[(starts + now)[valid]]
        margin[valid] = np.abs(there - current) / span[valid]
        return margin

    @cached_property
    def overtook(self) -> Integers:
        """(Q, 3) the number of documents of each of `KINDS` that overtook the main one."""
        query = np.flatnonzero(self.main_row[0] >= 0)
        was, now = self.main_row[:, query]
        start, length = self.after.judged.starts[query], self.after.judged.lengths[query]
        now = np.where(now < 0, start + length, now)
        if self.measure.k is not None and not self.rules.judged_only:
            now = np.minimum(now, start + self.measure.k)
        above, mine = side_rows(start, now)
        stood = self.earlier[above]
        new = (stood < 0) | (stood > was[mine])
        above, mine = above[new], mine[new]
        label = self.after.row_label[above]
        if self.rules.judged_only:
            count = self.after.judged.judged_before
            place = count[above] - count[start[mine]]
            near = ~np.isnan(label) & (place < (self.measure.k or len(count)))
            above, mine, label = above[near], mine[near], label[near]
        kind = _kinds(label, self.label[self.main[query]][mine], self.measure, self.rules)
        counts = np.zeros((self.size, len(KINDS)), dtype=np.int64)
        counts[query] = np.bincount(
            mine * len(KINDS) + kind, minlength=len(query) * len(KINDS)
        ).reshape(-1, len(KINDS))
        return counts

    def _tokens(self, of: Literal["read", "full"]) -> Integers:
        """Return (Q,) tokens of the main document, -1 if unknown."""
        tokens = np.full(self.size, -1, dtype=np.int64)
        if self.reading is not None:
            row = self.main_row[1]
            here = np.flatnonzero(row >= 0)
            rows = given_rows(self.after.ranking, self.after.system.ranking)[row[here]]
            tokens[here] = getattr(self.reading, of)[rows]
        return tokens

    @cached_property
    def read(self) -> Integers:
        """(Q,) the tokens of the main document that the model read, -1 if unknown."""
        return self._tokens("read")

    @cached_property
    def full(self) -> Integers:
        """(Q,) all tokens of the main document, -1 if unknown."""
        return self._tokens("full")

    def ids(self) -> npt.NDArray[np.object_]:
        ids = np.full(self.size, None, dtype=object)
        for side, ranking in ((1, self.after.ranking), (0, self.before.ranking)):
            row = self.of_main(self.row[side], -1)
            here = np.flatnonzero(row >= 0)
            ids[here] = ranking.doc_ids[ranking.docs[row[here]]]
        return ids


# Two rankings of the same queries as a metric reads them, joined by document.

_Joined = tuple[npt.NDArray[np.int32], Integers]
_JOINED: WeakKeyDictionary[Judged, WeakKeyDictionary[Judged, _Joined]] = WeakKeyDictionary()


class Side:
    """A ranking as the metric reads it: resolved ties, labels by row, credits of positions."""

    def __init__(self, system: RankedLabels, measure: Measure, rules: Conventions) -> None:
        self.system = system
        self.judged = system.judged
        self.ranking = system.ranking.with_ties(
            rules.order_rule(system.ranking.ties), rules.score_precision
        )
        self._relevance = relevance = Relevance(system.judged, rules)
        self.query, self.rank, self.label = relevance.query, relevance.rank, relevance.label
        self.relevant = relevance.relevant
        self.credit = credits_of(relevance, measure)
        self.row: Integers = self.judged.starts[self.judged.query] + self.judged.rank - 1

    @property
    def row_label(self) -> Floats:
        """(N,) labels: unchanged above 0, 0 for other labelled documents, NaN for the rest."""
        return self._relevance.cached("row label", self._row_label)

    def _row_label(self) -> Floats:
        labels = np.full(self.judged.ranked, np.nan)
        labels[self.judged.judged_rows] = 0.0
        labels[self.row] = self.label
        return labels

    def first_relevant(self) -> tuple[Floats, Integers]:
        """Return (Q,) the rank and the row of the first relevant document; NaN and -1 without
        one."""
        relevant = np.flatnonzero(self.relevant)
        first = relevant[np.diff(self.query[relevant], prepend=-1) != 0]
        rank = np.full(len(self.judged.query_ids), np.nan)
        row = np.full(len(rank), -1, dtype=np.int64)
        rank[self.query[first]], row[self.query[first]] = self.rank[first], self.row[first]
        return rank, row

    def scored(self) -> tuple[Integers, Floats, Flags]:
        """Return (Q,) the number of documents with a score, the range of the scores, and whether
        margins are meaningful."""
        scores, starts = self.ranking.scores, self.judged.starts
        lengths = self.judged.lengths
        if not len(scores):
            # Every query failed, so there are no scores.
            return lengths, np.zeros(len(lengths)), np.zeros(len(lengths), dtype=bool)
        if bool(np.isnan(scores).any()):
            score_offsets = offsets_from(~np.isnan(scores))
            lengths = score_offsets[starts + lengths] - score_offsets[starts]
        some = lengths > 0
        span = np.zeros(len(lengths))
        first, last = starts[some], (starts + lengths - 1)[some]
        span[some] = scores[first] - scores[last]
        step = span / np.maximum(lengths - 1, 1)
        allowed = ROUNDING * np.maximum(span, 1e-300)
        # With even steps, every score is on a straight line from first to last; three points
        # exclude nearly all lists whose scores are not ranks.
        even = np.ones(len(lengths), dtype=bool)
        for share in (0.25, 0.5, 0.75):
            place = np.floor(share * np.maximum(lengths - 1, 0)).astype(np.int64)
            at = np.where(some, starts + place, 0)
            line = np.where(some, scores[np.where(some, starts, 0)] - step * place, 0.0)
            even &= ~some | (np.abs(scores[at] - line) <= allowed)
        # In the remaining lists, every step is checked.
        lists = np.flatnonzero(even & (lengths > 2))
        offsets = offsets_from(lengths[lists] - 1)
        of = owners(offsets)
        rows = np.arange(len(of)) - offsets[of] + starts[lists][of]
        uneven = np.abs(scores[rows] - scores[rows + 1] - step[lists][of]) > allowed[lists][of]
        even[lists] = np.bincount(of, uneven, minlength=len(lists)) == 0
        # Two scores, and equal ones, are even.
        return lengths, span, ~even


def joined(before: Side, after: Side) -> _Joined:
    """Return (N,) for each row of `after` the row of `before` with the same query and document, and
    for each position of `after` with a label above 0 the position in `before`; -1 without one.

    Cached as long as both joins with the labels exist: the same for every metric and cutoff.
    """
    cached = _JOINED.setdefault(before.judged, WeakKeyDictionary())
    if after.judged not in cached:
        mirrored = _JOINED.get(after.judged, WeakKeyDictionary[Judged, _Joined]())
        if before.judged in mirrored:
            row, position = mirrored[before.judged]
            cached[after.judged] = (
                _inverse(row, len(after.ranking)).astype(np.int32),
                _inverse(position, len(after.row)),
            )
        else:
            cached[after.judged] = _join(before, after)
    return cached[after.judged]


def _inverse(places: npt.NDArray[np.signedinteger], size: int) -> Integers:
    """Return (size,) the index of each number in `places`, which are unique; -1 if missing."""
    inverse = np.full(size, -1)
    valid = np.flatnonzero(places >= 0)
    inverse[places[valid]] = valid
    return inverse


def _join(before: Side, after: Side) -> _Joined:
    ours, theirs = before.ranking, after.ranking
    there, query = side_rows(after.judged.starts, after.judged.starts + after.judged.lengths)
    docs = theirs.docs[there].astype(np.int64)
    if ours.documents is not theirs.documents:
        docs = places_in(ours.documents, theirs.documents)[docs]
    matched = (docs >= 0) & (before.judged.lengths > 0)[query]
    if not matched.all():
        there, query, docs = there[matched], query[matched], docs[matched]
    list_of = np.searchsorted(ours.offsets, before.judged.starts, side="right") - 1
    row, pair = places_of(ours, list_of[query], docs)
    earlier = np.full(len(theirs), -1, dtype=np.int32)
    earlier[there[pair]] = row
    position = np.full(len(ours) + 1, -1, dtype=np.int64)
    position[before.row] = np.arange(len(before.row))
    return earlier, position[earlier[after.row]]


def side_rows(starts: Integers, stops: Integers) -> tuple[Integers, Integers]:
    """Return all rows from each start to its stop, concatenated, and the range index of each."""
    counts = np.maximum(stops - starts, 0)
    offsets = offsets_from(counts)
    which = np.repeat(np.arange(len(starts)), counts)
    return np.arange(offsets[-1]) + (starts - offsets[:-1])[which], which


def given_rows(ordered: Ranking, ranking: Ranking) -> Integers:
    """Return (N,) the row in `ranking` of each row of the same ranking with resolved ties."""
    if ordered is ranking:
        return np.arange(len(ranking))
    row_of = np.empty(len(ranking), dtype=np.int64)
    row_of[ranking.given] = np.arange(len(ranking))
    return row_of[ordered.given]
