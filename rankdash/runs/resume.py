"""A run that was stopped goes on: which results of the attempts before it still count."""

from __future__ import annotations

from collections.abc import Iterable

from rankdash.runs.plan import Plan
from rankdash.runs.results import QueryResult


def still_good(results: Iterable[QueryResult], asked: Plan) -> dict[str, QueryResult]:
    """Query → its result, for queries that are done for as many documents as are asked for now;
    all others are scored, those that failed tried again."""
    return {
        result.query_id: result
        for result in results
        if result.state == "done"
        and len(result.scores) == len(asked.documents.get(result.query_id, ()))
    }
