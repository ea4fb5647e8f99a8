"""The change of one query in at most three statements, each with its signed share.

Documents whose contribution changed are grouped by what became of them; the amounts of the groups
add up to the change. Where the query lost, one more statement may name what was lifted over the
documents that lost, and what that cost: it explains the losses and adds nothing to the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.data.arrays import Flags, Floats, Integers, offsets_from, owners, places_in
from rankdash.core.data.ranking import Ranking, places_of
from rankdash.core.metrics import Conventions, Judged, Measure
from rankdash.core.metrics.engine import Relevance
from rankdash.core.study.reasons.contributions import CARRIED, Split, credits_of, without
from rankdash.core.study.unjudged.system_bounds import RankedLabels

Kind = Literal[
    "entered", "left", "rose", "fell", "held", "first", "rest", "unjudged_above", "worse_above"
]
CAUSES = ("unjudged_above", "worse_above")
MOST = 3

_ZERO = 1e-12


@dataclass(frozen=True)
class Statement:
    """One thing that happened.

    kind: "entered" or "left" the first k (the list, where there is no cutoff); "rose", "fell";
        "held": kept its rank and counts differently for what stands above it; "first": the first
        relevant document was another, or elsewhere; "rest": whatever else; "unjudged_above",
        "worse_above": documents without a label, or judged worse, that were lifted over relevant
        ones.
    doc_ids: which documents; (before, after) for "first", "" where there is none.
    moves: the rank of each before and after, NaN where a list lacks it.
    amount: its share of the change; for the last two kinds what they cost, 0 or below: the value
        as it is against the value without them.
    """

    kind: Kind
    doc_ids: tuple[str, ...]
    moves: tuple[tuple[float, float], ...]
    amount: float

    @property
    def count(self) -> int:
        return len(self.moves)


def statements(
    found: Split, qrels: pd.DataFrame, conventions: Conventions
) -> tuple[Statement, ...]:
    """At most `MOST`, the largest amount first, a cause last; none where nothing changed.

    qrels: as for `contributions.split`.
    """
    carried = found.measure.metric.name in CARRIED
    if found.documents.empty or (carried and abs(found.delta) <= _ZERO):
        return ()
    groups = _first(found, conventions) if carried else _groups(found)
    cause = _cause(found, qrels, conventions) if found.delta < -_ZERO else None
    room = MOST - (cause is not None)
    if len(groups) > room:
        groups = (*groups[: room - 1], _rest(groups[room - 1 :]))
    return groups if cause is None else (*groups, cause)


def _groups(found: Split) -> tuple[Statement, ...]:
    moved = found.documents[found.documents["delta"].abs() > _ZERO]
    was, now = moved["rank_before"].to_numpy(), moved["rank_after"].to_numpy()
    k = np.inf if found.measure.k is None else found.measure.k
    was_in, is_in = was <= k, now <= k
    kinds: dict[Kind, np.ndarray] = {
        "entered": is_in & ~was_in,
        "left": was_in & ~is_in,
        "rose": is_in & was_in & (now < was),
        "fell": is_in & was_in & (now > was),
        "held": is_in & was_in & (now == was),
    }
    groups = [_group(kind, moved[chosen]) for kind, chosen in kinds.items() if chosen.any()]
    return tuple(sorted(groups, key=lambda group: -abs(group.amount)))


def _group(kind: Kind, documents: pd.DataFrame, amount: float | None = None) -> Statement:
    rows = documents.sort_values("rank_after" if kind in CAUSES else "rank_before")
    return Statement(
        kind=kind,
        doc_ids=tuple(rows["doc_id"]),
        moves=tuple(zip(rows["rank_before"], rows["rank_after"], strict=True)),
        amount=float(rows["delta"].sum()) if amount is None else amount,
    )


def _rest(groups: tuple[Statement, ...]) -> Statement:
    return Statement(
        kind="rest",
        doc_ids=tuple(doc for group in groups for doc in group.doc_ids),
        moves=tuple(move for group in groups for move in group.moves),
        amount=sum(group.amount for group in groups),
    )


def _first(found: Split, conventions: Conventions) -> tuple[Statement, ...]:
    relevant = found.documents[found.documents["label"] >= conventions.threshold]
    docs, ranks = [], []
    for side in ("rank_before", "rank_after"):
        ranked = relevant.dropna(subset=side).sort_values(side)
        docs.append(str(ranked["doc_id"].iloc[0]) if len(ranked) else "")
        ranks.append(float(ranked[side].iloc[0]) if len(ranked) else np.nan)
    return (Statement("first", tuple(docs), ((ranks[0], ranks[1]),), found.delta),)


def _cause(found: Split, qrels: pd.DataFrame, conventions: Conventions) -> Statement | None:
    """The kind of lifted documents that cost more; None where neither cost anything."""
    rows = found.documents
    hurt = rows[rows["delta"] < -_ZERO]
    binary = found.measure.metric.binary
    worse = rows["label"] < conventions.threshold if binary else rows["label"] <= 0
    now, was = rows["rank_after"].to_numpy()[:, None], rows["rank_before"].to_numpy()[:, None]
    passed = (now < hurt["rank_after"].fillna(np.inf).to_numpy()) & ~(
        was < hurt["rank_before"].to_numpy()
    )
    lifted: Flags = np.any(passed, axis=1)
    causes = []
    kinds: tuple[tuple[Kind, pd.Series[bool]], ...] = (
        ("unjudged_above", rows["label"].isna()),
        ("worse_above", worse),
    )
    for kind, own in kinds:
        documents = rows[own & lifted]
        if len(documents):
            cost = found.after - without(found, list(documents["doc_id"]), qrels, conventions)
            if cost < -_ZERO:
                causes.append(_group(kind, documents, cost))
    return min(causes, key=lambda cause: cause.amount, default=None)


# Two rankings of the same queries as a metric reads them, and which of their positions hold the
# same document.

_ROUNDING = 1e-9
_Joined = tuple[npt.NDArray[np.int32], Integers]
_JOINED: WeakKeyDictionary[Judged, WeakKeyDictionary[Judged, _Joined]] = WeakKeyDictionary()


class Side:
    """A ranking as the metric reads it: settled ties, labels by row, credits of positions."""

    def __init__(self, system: RankedLabels, measure: Measure, rules: Conventions) -> None:
        self.system = system
        self.judged = system.judged
        self.ranking = system.ranking.settled(
            rules.order_rule(system.ranking.ties), rules.score_precision
        )
        self._relevance = relevance = Relevance(system.judged, rules)
        self.query, self.rank, self.label = relevance.query, relevance.rank, relevance.label
        self.relevant = relevance.relevant
        self.credit = credits_of(relevance, measure)
        self.row: Integers = self.judged.starts[self.judged.query] + self.judged.rank - 1

    @property
    def row_label(self) -> Floats:
        """(N,) labels above 0 as they are, 0 for other labelled documents, NaN for the rest."""
        return self._relevance.kept("row label", self._row_label)

    def _row_label(self) -> Floats:
        labels = np.full(self.judged.ranked, np.nan)
        labels[self.judged.judged_rows] = 0.0
        labels[self.row] = self.label
        return labels

    def first_relevant(self) -> tuple[Floats, Integers]:
        """(Q,) the rank and the row of the first relevant document; NaN and -1 without one."""
        relevant = np.flatnonzero(self.relevant)
        first = relevant[np.diff(self.query[relevant], prepend=-1) != 0]
        rank = np.full(len(self.judged.query_ids), np.nan)
        row = np.full(len(rank), -1, dtype=np.int64)
        rank[self.query[first]], row[self.query[first]] = self.rank[first], self.row[first]
        return rank, row

    def scored(self) -> tuple[Integers, Floats, Flags]:
        """(Q,) how many documents have a score, the range of the scores, and whether they say
        anything of margins."""
        scores, starts = self.ranking.scores, self.judged.starts
        lengths = self.judged.lengths
        if not len(scores):
            # Every query failed: there is not even a first score to start from.
            return lengths, np.zeros(len(lengths)), np.zeros(len(lengths), dtype=bool)
        if bool(np.isnan(scores).any()):
            known = offsets_from(~np.isnan(scores))
            lengths = known[starts + lengths] - known[starts]
        some = lengths > 0
        span = np.zeros(len(lengths))
        first, last = starts[some], (starts + lengths - 1)[some]
        span[some] = scores[first] - scores[last]
        step = span / np.maximum(lengths - 1, 1)
        allowed = _ROUNDING * np.maximum(span, 1e-300)
        # Even steps leave every score where a straight line from first to last has it; three
        # points tell nearly all lists that are no ranks from those that may be.
        even = np.ones(len(lengths), dtype=bool)
        for share in (0.25, 0.5, 0.75):
            place = np.floor(share * np.maximum(lengths - 1, 0)).astype(np.int64)
            at = np.where(some, starts + place, 0)
            line = np.where(some, scores[np.where(some, starts, 0)] - step * place, 0.0)
            even &= ~some | (np.abs(scores[at] - line) <= allowed)
        # Of these every step is looked at.
        lists = np.flatnonzero(even & (lengths > 2))
        offsets = offsets_from(lengths[lists] - 1)
        of = owners(offsets)
        rows = np.arange(len(of)) - offsets[of] + starts[lists][of]
        uneven = np.abs(scores[rows] - scores[rows + 1] - step[lists][of]) > allowed[lists][of]
        even[lists] = np.bincount(of, uneven, minlength=len(lists)) == 0
        # Two scores, and equal ones, are even.
        return lengths, span, ~even


def joined(before: Side, after: Side) -> _Joined:
    """(N,) for each row of `after` the row of `before` with the same query and document; and for
    each position of `after` with a label above 0 such a position of `before`. -1 where none is.

    Kept as long as both joins with the labels are: they are the same for every metric and cutoff.
    """
    found = _JOINED.setdefault(before.judged, WeakKeyDictionary())
    if after.judged not in found:
        mirrored = _JOINED.get(after.judged, WeakKeyDictionary[Judged, _Joined]())
        if before.judged in mirrored:
            row, position = mirrored[before.judged]
            found[after.judged] = (
                _inverse(row, len(after.ranking)).astype(np.int32),
                _inverse(position, len(after.row)),
            )
        else:
            found[after.judged] = _join(before, after)
    return found[after.judged]


def _inverse(places: npt.NDArray[np.signedinteger], size: int) -> Integers:
    """(size,) which of the places each number stands in, -1 where in none. None does in two."""
    inverse = np.full(size, -1)
    known = np.flatnonzero(places >= 0)
    inverse[places[known]] = known
    return inverse


def _join(before: Side, after: Side) -> _Joined:
    ours, theirs = before.ranking, after.ranking
    there, query = side_rows(after.judged.starts, after.judged.starts + after.judged.lengths)
    docs = theirs.docs[there].astype(np.int64)
    if ours.documents is not theirs.documents:
        docs = places_in(ours.documents, theirs.documents)[docs]
    known = (docs >= 0) & (before.judged.lengths > 0)[query]
    if not known.all():
        there, query, docs = there[known], query[known], docs[known]
    list_of = np.searchsorted(ours.offsets, before.judged.starts, side="right") - 1
    row, pair = places_of(ours, list_of[query], docs)
    earlier = np.full(len(theirs), -1, dtype=np.int32)
    earlier[there[pair]] = row
    position = np.full(len(ours) + 1, -1, dtype=np.int64)
    position[before.row] = np.arange(len(before.row))
    return earlier, position[earlier[after.row]]


def side_rows(starts: Integers, stops: Integers) -> tuple[Integers, Integers]:
    """All rows from each start up to its stop, end to end, and which range each belongs to."""
    counts = np.maximum(stops - starts, 0)
    offsets = offsets_from(counts)
    which = np.repeat(np.arange(len(starts)), counts)
    return np.arange(offsets[-1]) + (starts - offsets[:-1])[which], which


def given_rows(settled: Ranking, ranking: Ranking) -> Integers:
    """(N,) the row of `ranking` that each row of the same ranking, settled again, was."""
    if settled is ranking:
        return np.arange(len(ranking))
    row_of = np.empty(len(ranking), dtype=np.int64)
    row_of[ranking.given] = np.arange(len(ranking))
    return row_of[settled.given]
