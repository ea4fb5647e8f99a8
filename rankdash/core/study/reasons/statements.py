"""The change of one query in at most three statements, each with its signed share.

Documents whose contribution changed are grouped by what became of them; the amounts of the groups
add up to the change. Where the query lost, one more statement may name what was lifted over the
documents that lost, and what that cost: it explains the losses and adds nothing to the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from rankdash.core.data.ragged import Flags
from rankdash.core.metrics import Conventions
from rankdash.core.study.reasons.contributions import CARRIED, Split, without

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
