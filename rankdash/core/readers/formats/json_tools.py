"""JSON of rerankers and evaluation tools, each recognised by its keys.

    {"mteb_model_meta": …, "default": {"test": {"q1": {"d1": 0.9}}}}          predictions of MTEB
    {"reranker_name": …, "search_results": {"q1": {"d1": 0.9}}}               FlagEmbedding
    {"requests": [{"id": "q1", "request": …, "ratings": [{"_id": "d1", "rating": 2}]}]}   _rank_eval
    {"details": {"q1": {"hits": [{"hit": {"_id": "d1"}, "rating": 2}]}}}      its answer
    {"query": …, "documents": […], "results": [{"index": 1, "relevance_score": 0.9}]}     services
    {"q1": {"d1": 1, "d2": 0}}                                                            ranx
    [{"number": 31, "turn": [{"number": 1, "raw_utterance": …}]}]                      TREC CAsT

A field that these formats require is never guessed: an error names its path in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankdash.core.base.errors import Finding, FormatError
from rankdash.core.readers.formats import services
from rankdash.core.readers.formats.json_records import RecordPart, RecordPlaces, table_of, text_of
from rankdash.core.readers.join.conflicts import SPLITS
from rankdash.core.readers.parse.columns import MOST_GRADES, known, lacking, unexpected
from rankdash.core.readers.parse.limits import ReadLimits, Refusals, counted
from rankdash.core.readers.parse.source import Source, stem_of
from rankdash.core.readers.parse.table import Row, Table, table_of_rows

Record = dict[str, Any]

# Scores by query and document.

_META, _FOUND = "mteb_model_meta", "search_results"
_PAIR = ("query_id", "doc_id")


def is_predictions(outer: object) -> bool:
    """Return whether a document contains predictions of MTEB or search results of FlagEmbedding."""
    return isinstance(outer, dict) and (_META in outer or isinstance(outer.get(_FOUND), dict))


def read_predictions(text: str, file: str, limits: ReadLimits) -> Table:
    """Read one row per query and document of one subset and split.

    Raises FormatError for several subsets, for several unknown splits, and for predictions that are
    not scores of documents.
    """
    places, refusals = RecordPlaces(text), Refusals(file)
    outer = places.outermost()
    name, path = "FlagEmbedding", _FOUND
    findings: list[Finding] = []
    scores = places.member(outer, _FOUND)
    if _META in outer.value:
        name = "MTEB predictions"
        subset = _only([part for part in places.inside(outer) if part.name != _META], file, outer)
        scores, findings = _split(list(places.inside(subset)), file, subset)
        path = f"{subset.name}.{scores.name}"
    rows = _scores(places, scores or outer, path, refusals)
    table = table_of_rows(name, (*_PAIR, "score"), rows, refusals, limits)
    return replace(table, findings=(*findings, *table.findings))


def _only(subsets: Sequence[RecordPart], file: str, outer: RecordPart) -> RecordPart:
    if len(subsets) == 1 and isinstance(subsets[0].value, dict):
        return subsets[0]
    raise FormatError(
        "The predictions are for several subsets ({names}), which have separate queries and "
        "documents."
        if len(subsets) > 1
        else "The file contains no predictions.",
        remedy="Write one file per subset, with its split and the scores by query and document.",
        file=file,
        line=outer.line,
        names=", ".join(part.name for part in subsets[:20]),
    )


def _split(
    splits: Sequence[RecordPart], file: str, subset: RecordPart
) -> tuple[RecordPart, list[Finding]]:
    """Return the split to use, and a finding about the others."""
    known = {part.name: part for part in splits if part.name in SPLITS}
    if len(splits) == 1:
        return splits[0], []
    if not known:
        raise FormatError(
            "The predictions {path} are not for one split.",
            remedy="Write the scores by query and document under the name of one split.",
            file=file,
            line=subset.line,
            path=subset.name,
        )
    used = known[min(known, key=SPLITS.index)]
    others = [part.name for part in splits if part is not used]
    note = Finding(
        "warning",
        "one_split",
        "The rows are in {count} splits. rankdash uses {taken} and ignores {others}.",
        {"count": len(splits), "taken": used.name, "others": ", ".join(others)},
        "To use another split, load only the files of that split.",
        file,
        used.line,
        len(others),
    )
    return used, [note]


def _scores(
    places: RecordPlaces, scores: RecordPart, path: str, refusals: Refusals
) -> Iterator[Row]:
    _expect(scores, dict, path, refusals.file)
    for query in places.inside(scores):
        _expect(query, dict, f"{path}.{query.name}", refusals.file)
        if not query.value:
            refusals.add("no_documents", [query.line], [query.name])
        for document in places.inside(query):
            inner = f"{path}.{query.name}.{document.name}"
            _expect(document, int | float | None, inner, refusals.file)
            yield document.line, (query.name, document.name, text_of(document.value))


def _expect(part: RecordPart, kind: Any, path: str, file: str) -> None:
    """Raise FormatError with the path of a value of another kind."""
    if not isinstance(part.value, kind) or isinstance(part.value, bool):
        raise unexpected(path, kind, part.value, file, part.line)


# Requests and answers of Elasticsearch's ranking evaluation API, `_rank_eval`.
#
# A request rates documents by query. An answer lists the retrieved documents of each query with
# their ratings, null for a document without one, but no rated documents that were not retrieved.

_ANSWER = "Elasticsearch _rank_eval answer"
_REQUEST = "Elasticsearch _rank_eval request"
# Clauses of Elasticsearch's query language with a text, by field or under "query".
_CLAUSES = (
    *("match", "match_phrase", "match_phrase_prefix", "match_bool_prefix", "multi_match"),
    *("query_string", "simple_query_string", "combined_fields", "semantic", "sparse_vector"),
)
_TEXT_KEYS = ("query", "query_text", "model_text")


def is_rank_eval(outer: object) -> bool:
    """Return whether a document is a request or an answer of `_rank_eval`."""
    if not isinstance(outer, dict):
        return False
    requests, details = outer.get("requests"), outer.get("details")
    return _some(requests, "ratings") or (
        isinstance(details, dict) and _some(list(details.values()), "hits")
    )


def _some(entries: object, key: str) -> bool:
    """Return whether an entry of a list is an object with a list under the key."""
    return isinstance(entries, list) and any(
        isinstance(entry, dict) and isinstance(entry.get(key), list) for entry in entries
    )


def read_rank_eval(text: str, file: str, limits: ReadLimits) -> Table:
    """Read one row per rating of a request, or per hit of an answer.

    Raises FormatError with the path of a missing id, and for an id that occurs in two indices.
    """
    places, refusals = RecordPlaces(text), Refusals(file)
    outer = places.outermost()
    if "details" in outer.value:
        rows = list(_hits(places, outer, refusals))
        names = (*_PAIR, "rank", "score", "label")
        table = table_of_rows(_ANSWER, names, rows, refusals, limits)
        return replace(table, findings=(*table.findings, *_failures(outer, file)))
    rows = list(_rated(places, outer, refusals))
    columns = [*_PAIR, "label", "query"]
    if not any(row[-1] for _, row in rows):
        columns, rows = columns[:-1], [(line, row[:-1]) for line, row in rows]
    return table_of_rows(_REQUEST, columns, rows, refusals, limits)


def _rated(places: RecordPlaces, outer: RecordPart, refusals: Refusals) -> Iterator[Row]:
    ids = _IndexedIds(refusals.file)
    for at, entry in enumerate(places.inside(places.member(outer, "requests"))):
        path = f"requests[{at}]"
        _expect(entry, dict, path, refusals.file)
        query = ids.text(entry, "id", path)
        ratings = places.member(entry, "ratings")
        if ratings is None or not ratings.value:
            refusals.add("no_documents", [entry.line], [query])
            continue
        _expect(ratings, list, f"{path}.ratings", refusals.file)
        asked = _text_of_request(entry.value)
        for place, rating in enumerate(places.inside(ratings)):
            doc = ids.of(rating, f"{path}.ratings[{place}]")
            yield rating.line, (query, doc, text_of(rating.value.get("rating")), asked)


def _hits(places: RecordPlaces, outer: RecordPart, refusals: Refusals) -> Iterator[Row]:
    ids = _IndexedIds(refusals.file)
    details = places.member(outer, "details")
    for query in places.inside(details):
        path = f"details.{query.name}"
        _expect(query, dict, path, refusals.file)
        hits = places.member(query, "hits")
        if hits is None or not hits.value:
            refusals.add("no_documents", [query.line], [query.name])
            continue
        _expect(hits, list, f"{path}.hits", refusals.file)
        for place, hit in enumerate(places.inside(hits)):
            around = f"{path}.hits[{place}]"
            _expect(hit, dict, around, refusals.file)
            inner = places.member(hit, "hit")
            if inner is None:
                raise lacking(f"{around}.hit", refusals.file, hit.line)
            doc = ids.of(inner, f"{around}.hit")
            score, rating = inner.value.get("_score"), hit.value.get("rating")
            cells = (query.name, doc, str(place + 1), text_of(score), text_of(rating))
            yield hit.line, cells


class _IndexedIds:
    """The ids of documents in one file, each in one index."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._index: dict[str, object] = {}

    def of(self, part: RecordPart, path: str) -> str:
        """Return the id of an object with `_index` and `_id`. Raises FormatError if it is missing,
        or if another index has a document with this id."""
        _expect(part, dict, path, self._file)
        doc, index = self.text(part, "_id", path), part.value.get("_index")
        other = self._index.setdefault(doc, index)
        if other != index:
            raise FormatError(
                "The document id {doc} occurs in two indices: {first} and {second}.",
                remedy="Evaluate one index at a time, or use ids that are unique in all indices.",
                file=self._file,
                line=part.line,
                doc=doc,
                first=other,
                second=index,
            )
        return doc

    def text(self, part: RecordPart, name: str, path: str) -> str:
        value = part.value.get(name)
        if value is None or value == "":
            raise lacking(f"{path}.{name}", self._file, part.line)
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise unexpected(f"{path}.{name}", str, value, self._file, part.line)
        return str(value)


def _text_of_request(entry: Record) -> str | None:
    """Return the only text that a request searches for, or None."""
    params = entry.get("params")
    if isinstance(params, dict):
        texts = {value for value in params.values() if isinstance(value, str)}
    else:
        texts = set(_clauses(entry.get("request")))
    return texts.pop() if len(texts) == 1 else None


def _clauses(value: object) -> Iterator[str]:
    """Yield the texts of the clauses of a search, at any depth."""
    if isinstance(value, list):
        for each in value:
            yield from _clauses(each)
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if key not in _CLAUSES or not isinstance(inner, dict):
            yield from _clauses(inner)
            continue
        named = [inner[name] for name in _TEXT_KEYS if name in inner] or list(inner.values())
        for each in named:
            text = each.get("query") if isinstance(each, dict) else each
            if isinstance(text, str):
                yield text


def _failures(outer: RecordPart, file: str) -> list[Finding]:
    failures = outer.value.get("failures")
    if not isinstance(failures, dict) or not failures:
        return []
    return [
        counted(
            "warning",
            "failed_queries",
            "Queries that failed in Elasticsearch, which the answer lists without hits: {count}.",
            len(failures),
            "Send the request again.",
            file,
            outer.line,
            list(failures),
        )
    ]


def rank_eval(tables: Sequence[tuple[Table, Source]]) -> list[tuple[Table, Source]]:
    """Drop the ratings of an answer that its request has, too. Add a warning to an answer without
    its request."""
    requests = [table for table, _ in tables if table.format == _REQUEST]
    rated: dict[tuple[str, str], str | None] = {}
    for table in requests:
        for query, doc, label in table.frame[[*_PAIR, "label"]].to_numpy():
            rated[query, doc] = label
    return [
        (_without_ratings(table, rated) if table.format == _ANSWER else table, source)
        for table, source in tables
    ]


def _without_ratings(table: Table, rated: Mapping[tuple[str, str], str | None]) -> Table:
    """Remove the labels of an answer that are in `rated`: pair → label."""
    if not rated:
        return replace(table, findings=(*table.findings, _hits_only(table.file)))
    cells = np.array(
        [
            None if rated.get((query, doc)) == label else label
            for query, doc, label in table.frame[[*_PAIR, "label"]].to_numpy()
        ],
        dtype=object,
    )
    if cells.any():
        return replace(table, cells=table.frame.assign(label=cells))
    fields = {field: column for field, column in (table.fields or {}).items() if field != "label"}
    return replace(table, cells=table.frame.drop(columns="label"), fields=fields)


def _hits_only(file: str) -> Finding:
    return Finding(
        "warning",
        "only_hits",
        "An answer of _rank_eval has ratings only of retrieved documents. Metrics such as recall "
        "and NDCG are too high without the other ratings.",
        {},
        "Load the file of the request together with the answer.",
        file,
    )


def read_answered(text: str, file: str, limits: ReadLimits) -> Table:
    """Read one row per document of each request.

    Raises FormatError with the path of an index that is missing, occurs twice or is not an index of
    a document.
    """
    places = RecordPlaces(text)
    outer = places.outermost()
    members = list(places.inside(outer))
    if isinstance(outer.value, list):
        records = services.in_pairs(outer.value)
        members = members if len(members) == len(records) else [outer]
    elif all(map(services.places_in, outer.value.values())):
        records = [{"query_id": part.name, **part.value} for part in members]
    else:
        records, members = [outer.value], [outer]
    lines = [part.line for part in members]
    return table_of(records, lines, file, "JSON", limits)


# Qrels and runs as nested dictionaries, the JSON format of ranx and pytrec_eval.
#
#     {"q_1": {"doc_a": 1, "doc_b": 0}, "q_2": {…}}
#
# Few distinct whole numbers are labels; anything else is a run. ranx writes labels as integers
# and scores with a decimal point.


def is_ranx(outer: object) -> bool:
    if not isinstance(outer, dict) or not outer:
        return False
    values = list(outer.values())
    if not all(isinstance(value, dict) for value in values):
        return False
    # Entries with known column names are records.
    names = [name for value in values for name in value]
    inner = [cell for value in values for cell in value.values()]
    numeric = [isinstance(cell, int | float) and not isinstance(cell, bool) for cell in inner]
    return 2 * sum(numeric) > len(inner) > 2 * known(names)


# Lists of fewer documents may have one label of each grade.
_LONG = 3


def read_ranx(text: str, file: str, limits: ReadLimits) -> Table:
    """Read one row per pair; a value that is not a number is refused with its line."""
    places, refusals = RecordPlaces(text), Refusals(file)
    rows: list[tuple[str | None, ...]] = []
    lines: list[int] = []
    values: list[list[object]] = []
    for query in places.inside(places.outermost()):
        values.append([])
        if not query.value:
            refusals.add("no_documents", [query.line], [query.name])
        for document in places.inside(query):
            values[-1].append(document.value)
            lines.append(document.line)
            rows.append((query.name, document.name, text_of(document.value)))
    stem = stem_of(file).casefold()
    labels = _are_labels(values, named_run="run" in stem and "qrel" not in stem)
    field, name = ("label", "ranx qrels") if labels else ("score", "ranx run")
    numbered = zip(lines, rows, strict=True)
    return table_of_rows(name, ("query_id", "doc_id", field), numbered, refusals, limits)


def _are_labels(by_query: list[list[object]], *, named_run: bool) -> bool:
    """Return whether values are labels. named_run: whether the name of the file decides, if lists
    of different whole numbers can be both."""
    values = [value for each in by_query for value in each]
    numeric = [[value for value in each if isinstance(value, int | float)] for each in by_query]
    distinct = {value for each in numeric for value in each}
    whole = all(isinstance(value, int) or value.is_integer() for value in distinct)
    written_whole = all(isinstance(value, int) for each in numeric for value in each)
    # Runs hardly ever repeat a score, labels nearly always repeat a grade.
    repeats = 2 * len(distinct) <= len(values)
    # Scores made from ranks repeat in other queries only.
    ranks = max(map(len, numeric)) >= _LONG and all(len({*e}) == len(e) for e in numeric)
    return (
        whole
        and len(distinct) <= MOST_GRADES
        and ((written_whole and not (ranks and named_run)) or (repeats and not ranks))
    )


# Topics of TREC CAsT and iKAT: conversations whose turns are the queries.
#
#     [{"number": 31, "title": …, "turn": [{"number": 1, "raw_utterance": …}]}]
#
# The id of a turn is topic_turn, such as 31_1, as in the labels. An utterance that was rewritten to
# be understandable without context is preferred to the original one.

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
    """Read one row per turn with an utterance; the topic's title and the turn's number are
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
