"""JSON documents of tools, each recognised by the keys that it uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rankdash.core.readers.formats.json_records import RecordPart, RecordPlaces, text_of
from rankdash.core.readers.parse.columns import MOST_GRADES, known
from rankdash.core.readers.parse.limits import ReadLimits, Refusals
from rankdash.core.readers.parse.table import Row, Table, table_of_rows

# Judgment lists of OpenSearch's search relevance workbench.
#
#     {"name": …, "judgmentRatings": [{"query": …, "ratings": [{"docId": …, "rating": "3.000"}]}]}
#
# as they are put in, as the plugin gives them back (`_source` of a hit), or the list alone. The
# query has no id, only its text.

_RATINGS = "judgmentRatings"
# Where the plugin's answers hold a judgment.
_AROUND = ("hits", "_source")
_OPENSEARCH = {"query": "query", "doc_id": "docId", "label": "rating"}


def is_opensearch(outer: object) -> bool:
    if isinstance(outer, list):
        first = outer[0] if outer else None
        ratings = first.get("ratings") if isinstance(first, dict) and "query" in first else None
        return (
            isinstance(ratings, list)
            and bool(ratings)
            and all(isinstance(rating, dict) and "docId" in rating for rating in ratings)
        )
    return _holds_ratings(outer)


def _holds_ratings(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_holds_ratings, value))
    return isinstance(value, dict) and (
        isinstance(value.get(_RATINGS), list)
        or any(_holds_ratings(value[name]) for name in _AROUND if name in value)
    )


def read_opensearch(text: str, file: str, limits: ReadLimits) -> Table:
    """A row a rating. An entry without ratings, or a rating without a document or a value, is
    refused with its line."""
    refusals = Refusals(file)
    rows = _ratings(RecordPlaces(text), refusals)
    columns = tuple(_OPENSEARCH.values())
    return table_of_rows("OpenSearch judgments", columns, rows, refusals, limits, _OPENSEARCH)


def _ratings(places: RecordPlaces, refusals: Refusals) -> Iterator[Row]:
    for entry in _entries(places, places.outermost()):
        value = entry.value if isinstance(entry.value, dict) else {}
        query = text_of(value.get("query"))
        if not isinstance(value.get("ratings"), list) or not value["ratings"]:
            refusals.add("no_documents", [entry.line], [str(query)])
            continue
        for rating in places.inside(places.member(entry, "ratings")):
            pair = rating.value if isinstance(rating.value, dict) else {}
            yield rating.line, (query, text_of(pair.get("docId")), text_of(pair.get("rating")))


def _entries(places: RecordPlaces, part: RecordPart) -> Iterator[RecordPart]:
    """The entries (a query and its ratings) of every judgment in the document."""
    if part.name == _RATINGS or (isinstance(part.value, list) and not _holds_ratings(part.value)):
        yield from places.inside(part)
        return
    for inner in places.inside(part):
        if inner.name == _RATINGS or inner.name in _AROUND or not inner.name:
            yield from _entries(places, inner)


# Ratings files of the Rated Ranking Evaluator (RRE), also as Quepid writes them.
#
#     {"id_field": …, "topics": [{"description": …, "query_groups": [
#         {"name": …, "queries": [{"placeholders": {"$query": …}}],
#          "relevant_documents": {"doc": {"gain": 3}}}]}]}
#
# Query groups may stand without topics, and queries without groups. Documents are given by their
# gain (`{"3": ["doc", …]}`) too. All queries of a group have its judgments; the topic and the group
# become segments.

_DOCUMENTS = "relevant_documents"
_OWN = {_DOCUMENTS, "placeholders"}
_INNER = ("topics", "query_groups", "queries")


def is_rre(outer: object) -> bool:
    return isinstance(outer, dict) and any(
        isinstance(outer.get(name), list) and _judged(outer[name]) for name in _INNER
    )


def _judged(entries: object) -> bool:
    """Whether judgments, or queries as RRE writes them, stand somewhere among the entries."""
    return isinstance(entries, list) and any(
        isinstance(entry, dict)
        and (_OWN & entry.keys() or any(_judged(entry.get(name)) for name in _INNER))
        for entry in entries
    )


def read_rre(text: str, file: str, limits: ReadLimits) -> Table:
    """A row for each query of a group and each of the group's documents.

    A group without documents, or a query without a text, is refused with its line.
    """
    refusals = Refusals(file)
    columns = ("query", "doc_id", "label", "topic", "query group")
    rows = _judgements(RecordPlaces(text), refusals)
    return table_of_rows("RRE ratings", columns, rows, refusals, limits)


def _judgements(places: RecordPlaces, refusals: Refusals) -> Iterator[Row]:
    for topic, group in _groups(places, places.outermost(), None):
        part = places.member(group, _DOCUMENTS)
        documents = list(_documents(places, part)) if part else []
        if not documents:
            refusals.add("no_documents", [group.line], [str(group.value.get("name", ""))])
        name = text_of(group.value.get("name"))
        for query in _queries(group.value):
            for doc_id, gain, line in documents:
                yield line, (query, doc_id, gain, topic, name)


def _groups(
    places: RecordPlaces, outer: RecordPart, topic: str | None
) -> Iterator[tuple[str | None, RecordPart]]:
    """(topic, group) for everything that has queries and may have judgments."""
    for member in places.inside(outer):
        for entry in places.inside(member) if member.name in _INNER else ():
            if not isinstance(entry.value, dict):
                continue
            if member.name == "topics":
                yield from _groups(places, entry, text_of(entry.value.get("description")))
            else:
                yield topic, entry


def _queries(group: Mapping[str, object]) -> list[str | None]:
    """The texts of a group's queries, each once; [None] where there is none."""
    queries = group.get("queries")
    entries = queries if isinstance(queries, list) else [group]
    return list(dict.fromkeys(map(_text_of_query, entries))) or [None]


def _text_of_query(query: object) -> str | None:
    """What its placeholder `$query` stands for, else the first placeholder that is a text."""
    if not isinstance(query, dict):
        return text_of(query)
    placeholders = query.get("placeholders")
    if not isinstance(placeholders, dict):
        return None
    first = next((value for value in placeholders.values() if isinstance(value, str)), None)
    return text_of(placeholders.get("$query", first))


def _documents(
    places: RecordPlaces, documents: RecordPart
) -> Iterator[tuple[str, str | None, int]]:
    """(document, gain, line); the gain is None where none is given."""
    for entry in places.inside(documents):
        if isinstance(documents.value, list):
            yield from _documents(places, entry)
        elif isinstance(entry.value, list):
            for doc in places.inside(entry):
                yield str(doc.value), entry.name, doc.line
        else:
            gain = entry.value
            if isinstance(gain, dict):
                gain = gain.get("gain", gain.get("rating"))
            yield entry.name, text_of(gain), entry.line


# Qrels and runs as dictionaries of dictionaries, as ranx and pytrec_eval keep them in JSON.
#
#     {"q_1": {"doc_a": 1, "doc_b": 0}, "q_2": {…}}
#
# Labels are few whole numbers; anything else is a run. ranx writes labels without a decimal point
# and scores with one.


def is_ranx(outer: object) -> bool:
    if not isinstance(outer, dict) or not outer:
        return False
    values = list(outer.values())
    if not all(isinstance(value, dict) for value in values):
        return False
    # Entries with names of columns inside are records.
    names = [name for value in values for name in value]
    inner = [cell for value in values for cell in value.values()]
    numeric = [isinstance(cell, int | float) and not isinstance(cell, bool) for cell in inner]
    return 2 * sum(numeric) > len(inner) > 2 * known(names)


def read_ranx(text: str, file: str, limits: ReadLimits) -> Table:
    """A row a pair; a value that is no number is refused with its line."""
    places, refusals = RecordPlaces(text), Refusals(file)
    rows: list[tuple[str | None, ...]] = []
    lines: list[int] = []
    values: list[object] = []
    for query in places.inside(places.outermost()):
        if not query.value:
            refusals.add("no_documents", [query.line], [query.name])
        for document in places.inside(query):
            values.append(document.value)
            lines.append(document.line)
            rows.append((query.name, document.name, text_of(document.value)))
    field, name = ("label", "ranx qrels") if _are_labels(values) else ("score", "ranx run")
    numbered = zip(lines, rows, strict=True)
    return table_of_rows(name, ("query_id", "doc_id", field), numbered, refusals, limits)


def _are_labels(values: list[object]) -> bool:
    distinct = {value for value in values if isinstance(value, int | float)}
    whole = all(float(value).is_integer() for value in distinct)
    written_whole = all(isinstance(value, int) for value in values if value in distinct)
    # Runs hardly ever repeat a score, labels nearly always repeat a grade.
    repeats = 2 * len(distinct) <= len(values)
    return whole and len(distinct) <= MOST_GRADES and (written_whole or repeats)


# Topics of TREC CAsT and iKAT: conversations whose turns are the queries.
#
#     [{"number": 31, "title": …, "turn": [{"number": 1, "raw_utterance": …}]}]
#
# The id of a turn is that of the topic and its own, such as 31_1, as in the labels. An utterance
# that was rewritten by hand to stand alone is taken before the one that was said.

_TURNS = ("turn", "turns")
_SAID = ("manual_rewritten_utterance", "resolved_utterance", "utterance", "raw_utterance")


def is_cast(outer: object) -> bool:
    return isinstance(outer, list) and any(
        isinstance(topic, dict)
        and "number" in topic
        and any(isinstance(topic.get(name), list) for name in _TURNS)
        for topic in outer
    )


def read_cast(text: str, file: str, limits: ReadLimits) -> Table:
    """A row for each turn in which something was asked; the topic's title and the turn's number are
    segments."""
    columns = ("query_id", "query", "topic", "turn")
    rows = _turns(RecordPlaces(text))
    return table_of_rows("TREC CAsT topics", columns, rows, Refusals(file), limits)


def _turns(places: RecordPlaces) -> Iterator[Row]:
    for topic in places.inside(places.outermost()):
        if not isinstance(topic.value, dict):
            continue
        number, title = text_of(topic.value.get("number")), text_of(topic.value.get("title"))
        turns = next((part for part in places.inside(topic) if part.name in _TURNS), None)
        for turn in places.inside(turns):
            if not isinstance(turn.value, dict):
                continue
            utterances = (text_of(turn.value[name]) for name in _SAID if turn.value.get(name))
            query, place = next(utterances, None), text_of(turn.value.get("number"))
            if query is not None:
                yield turn.line, (f"{number}_{place}", query, title, place)
