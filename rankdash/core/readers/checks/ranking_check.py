"""One ranking of a data set in its check report: its size, its ties, and how far it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankdash.core.base.findings import Finding
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, evaluate, judge, parse_measure

_JUDGED = "judged@10"
# From this share of rows in ties, an order says more about the tie rule than about the system.
_MANY_TIES = 0.5


@dataclass(frozen=True)
class RankingCheck:
    """One ranking: its queries, rows, judged@10 (None where no labelled query is ranked), and how
    many queries and rows are tied."""

    name: str
    queries: int
    rows: int
    judged_at_10: float | None
    tied_queries: int
    tied_rows: int


def ranking_check(name: str, ranking: Ranking, dataset: Dataset) -> RankingCheck:
    return RankingCheck(
        name=name,
        queries=len(ranking.query_ids),
        rows=len(ranking),
        judged_at_10=judged_at_10(ranking, dataset.labels),
        tied_queries=int(ranking.tied.sum()),
        tied_rows=_tied_rows(ranking),
    )


def judged_at_10(ranking: Ranking, labels: Mapping[str, Any]) -> float | None:
    if not len(labels["label"]) or not len(ranking):
        return None
    conventions = Conventions(no_relevant="count", missing="skip")
    evaluation = evaluate(
        judge(ranking, labels, conventions), [parse_measure(_JUDGED)], conventions
    )
    mean = evaluation.mean(_JUDGED)
    return float(mean) if np.isfinite(mean) else None


def _tied_rows(ranking: Ranking) -> int:
    """How many rows share their score with a neighbour of the same query."""
    query = np.repeat(np.arange(len(ranking.query_ids)), np.diff(ranking.offsets))
    equal = (ranking.scores[1:] == ranking.scores[:-1]) & (query[1:] == query[:-1])
    return int((np.append(equal, False) | np.append(False, equal)).sum()) if len(query) else 0


def ties(found: RankingCheck, *, made: bool) -> list[Finding]:
    """made: rankdash made the order, so its scores are nobody's to mend."""
    if not found.tied_queries:
        return []
    many = not made and found.tied_rows >= _MANY_TIES * found.rows
    return [
        Finding(
            "warning" if many else "note",
            "ties",
            "Rows of the ranking {name} that share their score with another: {rows} of {all}. "
            "Queries with such rows: {queries}. Ties are settled by a rule, not by the system.",
            {
                "name": found.name,
                "rows": found.tied_rows,
                "all": found.rows,
                "queries": found.tied_queries,
            },
            "Write scores with more digits." if many else "",
            count=found.tied_queries,
        )
    ]
