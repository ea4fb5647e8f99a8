"""Labels that count the queries 1, 2, 3 … in the order of their file, whatever ids the file gives.

Cranfield is the classic case: its queries are numbered 1, 2, 4, 8 … 365, and its labels 1 to 225.
Matched by id, most queries get another query's labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from rankdash.core.base.errors import DataError
from rankdash.core.base.findings import Finding
from rankdash.core.data.build import text_array
from rankdash.core.data.coded import Coded
from rankdash.core.readers.join.parsed_file import ParsedFile

Match = Literal["id", "order"]
_REMEDY = (
    "If the labels count the queries in the order of their file, load the files again with Query "
    "ids of the labels: by order (--match order)."
)


def matched(parts: Sequence[ParsedFile], match: Match) -> tuple[list[ParsedFile], list[Finding]]:
    """The parts, with the queries of their labels found by their place in the file of queries
    where `match` is "order"; else as they are, with a warning where it looks as if they should be.

    Raises DataError where the labels do not count the queries of one file, or `match` is unknown.
    """
    if match not in ("id", "order"):
        raise DataError(
            "There is no rule {match!r} for the query ids of labels.",
            remedy="The rules are: id, order.",
            match=match,
        )
    named = [part for part in parts if part.queries is not None and not len(part.labels)]
    labelled = [part for part in parts if len(part.labels) and part.queries is None]
    if match == "id" and (len(named) != 1 or not labelled):
        return list(parts), []
    if len(named) != 1 or not labelled or named[0].queries is None:
        raise DataError(
            "The labels cannot be matched by order: that needs one file of queries and labels in "
            "another file.",
            remedy="Match them by id.",
        )
    ids: list[str] = list(named[0].queries["query_id"])
    counted = [_places(part, len(ids)) for part in labelled]
    if match == "id":
        several = {place for places in counted if places for place in places}
        known = {identity.lstrip("0") for identity in ids}
        lacking = [place for place in several if str(place + 1) not in known]
        # Labels of most queries, numbered up to their count, some under ids that no query has.
        if not all(counted) or not lacking or 2 * len(several) < len(ids):
            return list(parts), []
        return list(parts), [_counted(labelled[0], named[0], ids)]
    for part, places in zip(labelled, counted, strict=True):
        if places is None:
            raise DataError(
                "The labels cannot be matched by order: their queries are not numbers from 1 to "
                "{count}, such as {example!r}.",
                remedy="Match them by id.",
                file=part.file,
                count=len(ids),
                example=part.labels.queries.texts[0].as_py(),
            )
    found = {
        part.file: _renamed(part, [ids[place] for place in places or ()])
        for part, places in zip(labelled, counted, strict=True)
    }
    note = Finding(
        "note",
        "matched_by_order",
        "The labels are matched with the queries of {file_name} by order: 1 is its first query.",
        {"file_name": named[0].file},
        file=labelled[0].file,
    )
    return [found.get(part.file, part) for part in parts], [note]


def _places(part: ParsedFile, count: int) -> list[int] | None:
    """The places that the query ids of its labels count; None where some do not."""
    texts: list[str] = part.labels.queries.texts.to_pylist()
    if not all(text.isascii() and text.isdigit() and len(text) < 10 for text in texts):
        return None
    places = [int(text) - 1 for text in texts]
    return places if all(0 <= place < count for place in places) else None


def _renamed(part: ParsedFile, ids: Sequence[str]) -> ParsedFile:
    names = text_array(ids)
    queries = Coded(part.labels.queries.codes, names)
    return replace(part, labels=replace(part.labels, queries=queries))


def _counted(labels: ParsedFile, queries: ParsedFile, ids: Sequence[str]) -> Finding:
    other = next(each for at, each in enumerate(ids, 1) if each.lstrip("0") != str(at))
    return Finding(
        "warning",
        "counted_queries",
        "The labels number the queries up to {count}, and {file_name} has {count} queries with "
        "other ids, such as {example!r}. Labels may belong to other queries than their ids say.",
        {"count": len(ids), "file_name": queries.file, "example": other},
        _REMEDY,
        labels.file,
    )
