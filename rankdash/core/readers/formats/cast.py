"""Topics of TREC CAsT and iKAT: conversations whose turns are the queries.

    [{"number": 31, "title": …, "turn": [{"number": 1, "raw_utterance": …}]}]

The id of a turn is that of the topic and its own, such as 31_1, as in the labels. An utterance that
was rewritten by hand to stand alone is taken before the one that was said.
"""

from __future__ import annotations

from rankdash.core.readers.parse.json_lines import RecordPlaces, text_of
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.skipped_rows import Refusals
from rankdash.core.readers.parse.table import Table, refuse_many_rows, table_of_rows

NAME = "TREC CAsT topics"
_TURNS = ("turn", "turns")
_SAID = ("manual_rewritten_utterance", "resolved_utterance", "utterance", "raw_utterance")
_COLUMNS = ("query_id", "query", "topic", "turn")
_FIELDS = {"query_id": "query_id", "query": "query"}


def may_match(start: str) -> bool:
    """Whether the document that begins like this is worth decoding to look at."""
    return '"turn' in start


def matches(outer: object) -> bool:
    return isinstance(outer, list) and any(
        isinstance(topic, dict)
        and "number" in topic
        and any(isinstance(topic.get(name), list) for name in _TURNS)
        for topic in outer
    )


def read(text: str, file: str, limits: ReadLimits) -> Table:
    """A row for each turn in which something was asked; the topic's title and the turn's number are
    segments."""
    places = RecordPlaces(text)
    rows: list[tuple[str | None, ...]] = []
    lines: list[int] = []
    for topic in places.inside(places.outermost()):
        if not isinstance(topic.value, dict):
            continue
        number, title = text_of(topic.value.get("number")), text_of(topic.value.get("title"))
        turns = next((part for part in places.inside(topic) if part.name in _TURNS), None)
        for turn in places.inside(turns):
            if not isinstance(turn.value, dict):
                continue
            asked = next(
                (text_of(turn.value[name]) for name in _SAID if turn.value.get(name)), None
            )
            place = text_of(turn.value.get("number"))
            if asked is not None:
                rows.append((f"{number}_{place}", asked, title, place))
                lines.append(turn.line)
        refuse_many_rows(len(rows), file, limits)
    return table_of_rows(file, NAME, _COLUMNS, rows, lines, Refusals(file), _FIELDS, limits)
