"""The change of each kind of queries, as caveats and decisions name it."""

from __future__ import annotations

from dataclasses import dataclass

from rankdash.analysis.labels.query_groups import UNKNOWN
from rankdash.analysis.statistics.verdict import FEWEST_QUERIES, is_proven
from rankdash.study.study import Study

# Made out of values and labels: no kinds that a searcher or a router could tell apart, and queries
# that the baseline did badly on gain by chance alone.
_NO_KINDS = frozenset({"difficulty", "relevant_documents"})


@dataclass(frozen=True)
class Group:
    """A kind of queries: column and value. n: its queries that were compared. delta: their mean
    change. proven: whether that is, among the kinds of its column."""

    column: str
    value: str
    n: int
    delta: float
    proven: bool


def groups(study: Study, challenger: str) -> list[Group]:
    """Every kind with enough queries for an interval, of columns with at least two kinds. Queries
    without a value are no kind."""
    found = []
    made = _NO_KINDS - set(study.dataset.segments)
    for column in (each for each in study.segments if each not in made):
        table = study.segment(challenger, column)
        if (table["n"] > 0).sum() < 2:
            continue
        known = table[(table["n"] >= FEWEST_QUERIES) & (table["segment"] != UNKNOWN)]
        for row in known.to_dict("records"):
            proven = is_proven(row["low"], row["high"], row["p_corrected"], study.statistics.level)
            size = int(row["n"]), float(row["delta"])
            found.append(Group(column, str(row["segment"]), *size, proven))
    return found
