"""Contributions of documents to a metric of one query, before and after reranking.

Every metric here is a sum over ranked documents, so the change of a query splits exactly: the
contributions of its documents add up to after - before of `metrics.evaluate`, to float rounding.
The contribution of a document is the sum of its terms in the metric's definition, each divided by
the divisor of the query.

In MAP, a document may lose credit without moving if relevant documents above it disappear. In MRR
and hit, the credit passes from one first relevant document to another. `judged` does not measure
quality and is not split.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.data.arrays import Flags, Floats, arrow_integers
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import STATES, Conventions, Evaluation, Measure, evaluate, judge_list
from rankdash.core.metrics.engine import Relevance

CARRIED = ("mrr", "hit")
"""Metrics that depend on one document only: the first relevant one."""

COLUMNS = ("doc_id", "rank_before", "rank_after", "label", "before", "after", "delta")

_NO_STATES: Mapping[str, str] = {}


@dataclass(frozen=True, eq=False)
class Split:
    """The change of one query, split by document.

    before, after: the values of the metric; NaN if a side has none.
    documents: `COLUMNS` for each document of either list, the largest |delta| first: ranks as the
        metric counts them (float, NaN if a list lacks the document; with `judged_only` among
        labelled documents only); label (NaN without one); before, after and delta, the contribution
        to the value. Empty if the change cannot be split.
    why_not: "" or why there is no split: "metric" (not a sum over documents), a state of
        `metrics.STATES` except "scored" ("failed", "missing", …), or "absent" (the query is not
        evaluated).
    """

    query_id: str
    measure: Measure
    before: float
    after: float
    documents: pd.DataFrame
    why_not: str = ""

    @property
    def delta(self) -> float:
        return self.after - self.before


def split(
    before: Ranking,
    after: Ranking,
    qrels: pd.DataFrame,
    query_id: str,
    measure: Measure,
    conventions: Conventions | None = None,
    left_out: Mapping[str, str] = _NO_STATES,
) -> Split:
    """Split the change of `measure` for one query.

    qrels: query_id, doc_id, label of the query; for ERR and graded MAP of all queries, because they
        use the highest label of the set unless the conventions set one.
    left_out: query id → "failed" or "skipped", of both sides together.
    """
    rules = with_top_label(conventions or Conventions(), qrels)
    query_labels = _of_query(qrels, query_id)
    sides = [
        _side(each, query_labels, query_id, measure, rules, left_out) for each in (before, after)
    ]
    states = [side.state for side in sides]
    was, now = (side.value for side in sides)
    why_not = "" if splits(measure) else "metric"
    for state in ("failed", "skipped", "absent", "missing", "no_relevant", "undefined"):
        why_not = why_not or (state if state in states else "")
    if why_not:
        return Split(query_id, measure, was, now, _nothing(), why_not)
    return Split(query_id, measure, was, now, _joined(*sides))


def without(
    split: Split, doc_ids: Collection[str], qrels: pd.DataFrame, conventions: Conventions
) -> float:
    """Return the challenger's value for the query of a split if its list lacked these documents and
    the others moved up."""
    lacking = set(doc_ids)
    remaining = np.array(
        [doc_id not in lacking for doc_id in split.documents["doc_id"]], dtype=bool
    )
    ranks = split.documents["rank_after"].to_numpy()
    remaining &= ranks > 0
    ranked = split.documents["label"].to_numpy()[remaining][np.argsort(ranks[remaining])]
    rules = with_top_label(conventions, qrels)
    labels = _of_query(qrels, split.query_id)["label"].to_numpy(dtype=np.float64)
    judged = judge_list(split.query_id, ranked, labels, rules)
    evaluation = evaluate(judged, [split.measure], rules)
    return float(evaluation.values[0, 0])


def splits(measure: Measure) -> bool:
    """Return whether the metric is a sum over documents."""
    return measure.metric.measures_quality


def credits_of(relevance: Relevance, measure: Measure) -> Floats:
    """Return (J,) the contribution of each position of `relevance` to the value of its query. The
    sum by query is the metric, before `evaluate` applies states. Requires `splits(measure)`."""
    return measure.metric.credits(relevance, measure.k, measure.parameter)


def with_top_label(conventions: Conventions, qrels: pd.DataFrame) -> Conventions:
    """Return the conventions with the top label of all labels, for the evaluation of a part."""
    if conventions.err_top_label is not None or qrels.empty:
        return conventions
    top = float(qrels["label"].max())
    return replace(conventions, err_top_label=top) if top > 0 else conventions


def _of_query(qrels: pd.DataFrame, query_id: str) -> pd.DataFrame:
    rows = (qrels["query_id"] == query_id).to_numpy()
    return qrels if rows.all() else qrels[rows]


def of_query(ranking: Ranking, query_id: str) -> Ranking:
    """Return a ranking with the list of one query only; empty if the query is not ranked."""
    place = ranking.positions.get(query_id)
    start, stop = (0, 0) if place is None else ranking.offsets[place : place + 2]
    count = int(stop - start)
    here = slice(0, 0) if place is None else slice(place, place + 1)
    return Ranking(
        query_ids=ranking.query_ids[here],
        documents=ranking.documents.take(arrow_integers(ranking.docs[start:stop])),
        offsets=np.array([0, count] if place is not None else [0], dtype=np.int64),
        docs=np.arange(count, dtype=np.int32),
        scores=ranking.scores[start:stop],
        tied=ranking.tied[here],
        ties=ranking.ties,
        given=ranking.given[start:stop],
    )


@dataclass(frozen=True, eq=False)
class _Side:
    """One system's list of a query. docs, label, credit: (D,) of the documents, by rank."""

    value: float
    state: str
    docs: npt.NDArray[np.object_]
    label: Floats
    credit: Floats

    @property
    def rank(self) -> Floats:
        return np.arange(1.0, len(self.docs) + 1)


def _side(
    ranking: Ranking,
    qrels: pd.DataFrame,
    query_id: str,
    measure: Measure,
    rules: Conventions,
    left_out: Mapping[str, str],
) -> _Side:
    ordered = of_query(ranking, query_id).with_ties(
        rules.order_rule(ranking.ties), rules.score_precision
    )
    docs = ordered.doc_ids[ordered.docs]
    values = qrels["label"].to_numpy(dtype=np.float64)
    labels = dict(zip(qrels["doc_id"].tolist(), values.tolist(), strict=True))
    label = np.array([labels.get(doc, np.nan) for doc in docs], dtype=np.float64)
    judged = judge_list(
        query_id,
        label if len(ordered.query_ids) else None,
        values,
        rules,
        tied=bool(ordered.tied.any()),
    )
    if rules.negative == "unjudged":
        label = np.where(label < 0, np.nan, label)
    if rules.judged_only:
        docs, label = docs[~np.isnan(label)], label[~np.isnan(label)]
    credit = np.zeros(len(docs))
    if qrels.empty:
        return _Side(np.nan, "absent", docs, label, credit)
    value, state = _value(evaluate(judged, [measure], rules, left_out), measure)
    if splits(measure) and state == "scored":
        relevance = Relevance(judged, rules)
        credit[relevance.rank - 1] = credits_of(relevance, measure)
    return _Side(value, state, docs, label, credit)


def _value(evaluation: Evaluation, measure: Measure) -> tuple[float, str]:
    if not len(evaluation.query_ids):
        return np.nan, "absent"
    return float(evaluation.values[0, 0]), STATES[evaluation.cell_states[0, 0]]


def _joined(before: _Side, after: _Side) -> pd.DataFrame:
    """Return the documents of both lists, the largest |delta| first; equal ones in the order of
    `after`, then of `before`."""
    place = {doc: row for row, doc in enumerate(after.docs)}
    lost = [row for row, doc in enumerate(before.docs) if doc not in place]
    for row in lost:
        place[before.docs[row]] = len(place)
    docs, at = np.array([*place], dtype=object), [place[doc] for doc in before.docs]
    label, ranks, credits = np.full(len(docs), np.nan), *np.full((2, 2, len(docs)), np.nan)
    label[at], ranks[0, at], credits[0, at] = before.label, before.rank, before.credit
    shown = len(after.docs)
    label[:shown] = np.where(np.isnan(after.label), label[:shown], after.label)
    ranks[1, :shown], credits[1, :shown] = after.rank, after.credit
    was, now = np.where(np.isnan(credits), 0.0, credits)
    delta = now - was
    order = np.argsort(-np.round(np.abs(delta), 12), kind="stable")
    columns = (docs, *ranks, label, was, now, delta)
    return pd.DataFrame(
        {name: values[order] for name, values in zip(COLUMNS, columns, strict=True)}
    )


def _nothing() -> pd.DataFrame:
    empty = {name: np.zeros(0) for name in COLUMNS}
    return pd.DataFrame({**empty, "doc_id": np.zeros(0, dtype=object)})


# The change of one query in at most three statements, each with its signed share.
#
# Documents whose contribution changed are grouped by movement; the amounts of the groups add up to
# the change. If the query lost, one more statement may show the documents that were promoted above
# the losing ones, with the loss they cause: it explains the losses and is not part of the sum.

Kind = Literal[
    "entered", "left", "rose", "fell", "held", "first", "rest", "unjudged_above", "worse_above"
]
CAUSES = ("unjudged_above", "worse_above")
MOST = 3

_ZERO = 1e-12


@dataclass(frozen=True)
class Statement:
    """A part of the explanation of a change.

    kind: "entered" or "left" the first k (the list, without a cutoff); "rose", "fell"; "held": the
        same rank, but another contribution due to documents above it; "first": another first
        relevant document, or another rank of it; "rest": all others; "unjudged_above",
        "worse_above": documents without a label, or judged worse, that were promoted above relevant
        ones.
    doc_ids: the documents; (before, after) for "first", "" if there is none.
    moves: the rank of each before and after, NaN if a list lacks it.
    amount: its share of the change; for the last two kinds the loss that they cause (at most 0):
        the value minus the value without them.
    """

    kind: Kind
    doc_ids: tuple[str, ...]
    moves: tuple[tuple[float, float], ...]
    amount: float

    @property
    def count(self) -> int:
        return len(self.moves)


def statements(
    split: Split, qrels: pd.DataFrame, conventions: Conventions
) -> tuple[Statement, ...]:
    """Return at most `MOST` statements, the largest amount first, a cause last; empty without a
    change.

    qrels: as for `split`.
    """
    carried = split.measure.metric.name in CARRIED
    if split.documents.empty or (carried and abs(split.delta) <= _ZERO):
        return ()
    groups = _first_statements(split, conventions) if carried else _groups(split)
    cause = _cause(split, qrels, conventions) if split.delta < -_ZERO else None
    room = MOST - (cause is not None)
    if len(groups) > room:
        groups = (*groups[: room - 1], _rest(groups[room - 1 :]))
    return groups if cause is None else (*groups, cause)


def _groups(split: Split) -> tuple[Statement, ...]:
    moved = split.documents[split.documents["delta"].abs() > _ZERO]
    was, now = moved["rank_before"].to_numpy(), moved["rank_after"].to_numpy()
    k = np.inf if split.measure.k is None else split.measure.k
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


def _first_statements(split: Split, conventions: Conventions) -> tuple[Statement, ...]:
    relevant = split.documents[split.documents["label"] >= conventions.threshold]
    docs, ranks = [], []
    for side in ("rank_before", "rank_after"):
        ranked = relevant.dropna(subset=side).sort_values(side)
        docs.append(str(ranked["doc_id"].iloc[0]) if len(ranked) else "")
        ranks.append(float(ranked[side].iloc[0]) if len(ranked) else np.nan)
    return (Statement("first", tuple(docs), ((ranks[0], ranks[1]),), split.delta),)


def _cause(split: Split, qrels: pd.DataFrame, conventions: Conventions) -> Statement | None:
    """Return a statement on the kind of promoted documents with the larger loss; None if neither
    causes a loss."""
    rows = split.documents
    hurt = rows[rows["delta"] < -_ZERO]
    binary = split.measure.metric.binary
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
    for kind, matching in kinds:
        documents = rows[matching & lifted]
        if len(documents):
            cost = split.after - without(split, list(documents["doc_id"]), qrels, conventions)
            if cost < -_ZERO:
                causes.append(_group(kind, documents, cost))
    return min(causes, key=lambda cause: cause.amount, default=None)
