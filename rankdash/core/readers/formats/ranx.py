"""Qrels and runs as dictionaries of dictionaries, as ranx and pytrec_eval keep them in JSON.

    {"q_1": {"doc_a": 1, "doc_b": 0}, "q_2": {…}}

Labels are few whole numbers; anything else is a run. ranx writes labels without a decimal point
and scores with one.
"""

from __future__ import annotations

from rankdash.core.readers.parse.columns import MOST_GRADES, known
from rankdash.core.readers.parse.json_lines import RecordPlaces, text_of
from rankdash.core.readers.parse.limits import ReadLimits
from rankdash.core.readers.parse.skipped_rows import Refusals
from rankdash.core.readers.parse.table import Table, refuse_many_rows, table_of_rows

QRELS, RUN = "ranx qrels", "ranx run"


def may_match(start: str) -> bool:
    """Whether the document that begins like this is worth decoding to look at."""
    return start.lstrip().startswith("{")


def matches(outer: object) -> bool:
    if not isinstance(outer, dict) or not outer:
        return False
    values = list(outer.values())
    if not all(isinstance(value, dict) for value in values):
        return False
    # Entries with names of columns inside are records.
    names = [name for value in values for name in value]
    inner = [cell for value in values for cell in value.values()]
    return 2 * sum(map(_is_number, inner)) > len(inner) > 2 * known(names)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read(text: str, file: str, limits: ReadLimits) -> Table:
    """A row a pair; a value that is no number is refused with its line."""
    places = RecordPlaces(text)
    rows: list[tuple[str | None, ...]] = []
    lines: list[int] = []
    values: list[object] = []
    empty: list[tuple[int, str]] = []
    for query in places.inside(places.outermost()):
        if not query.value:
            empty.append((query.line, query.name))
        for document in places.inside(query):
            values.append(document.value)
            rows.append((query.name, document.name, text_of(document.value)))
            lines.append(document.line)
        refuse_many_rows(len(rows), file, limits)
    refusals = Refusals(file)
    refusals.add("no_documents", [line for line, _ in empty], [name for _, name in empty])
    field, name = ("label", QRELS) if _are_labels(values) else ("score", RUN)
    columns = ("query_id", "doc_id", field)
    fields = dict(zip(columns, columns, strict=True))
    return table_of_rows(file, name, columns, rows, lines, refusals, fields, limits)


def _are_labels(values: list[object]) -> bool:
    found = {value for value in values if isinstance(value, int | float)}
    whole = all(float(value).is_integer() for value in found)
    written_whole = all(isinstance(value, int) for value in values if value in found)
    # Runs hardly ever repeat a score, labels nearly always repeat a grade.
    repeats = 2 * len(found) <= len(values)
    return whole and len(found) <= MOST_GRADES and (written_whole or repeats)
