"""Entries that tools write, recognised by their keys: result files of AutoRAG, searches of User
Behavior Insights, and experiments of OpenSearch's search relevance workbench; and the table of all
tools with such entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rankdash.core.base.errors import Finding, FormatError
from rankdash.core.readers.formats import quepid, spans
from rankdash.core.readers.formats.entries import (
    Converted,
    Listed,
    Query,
    Record,
    entries_of,
    finite,
    ids_of,
    latest,
    repeated_documents,
    text,
)
from rankdash.core.readers.formats.retrieved import is_role
from rankdash.core.readers.parse.columns import plain, recognise
from rankdash.core.readers.parse.limits import counted

# AutoRAG: qa.parquet and the result files of its nodes.
#
# qa:      qid, query, retrieval_gt (a list of lists of ids), generation_gt (answers).
# results: retrieved_contents, retrieved_ids, retrieve_scores; some nodes append their name, as in
#          retrieved_ids_semantic. `best_0.parquet` also has the columns of qa.parquet, `0.parquet`
#          has no queries: its rows are in the order of qa.parquet.

_CONTENTS, _RETRIEVED, _SCORES = "retrieved_contents", "retrieved_ids", "retrieve_scores"
_RELEVANT = "retrieval_gt"
AUTORAG, AUTORAG_ROWS = "AutoRAG", "AutoRAG results without queries"
# The begin of a query id that is the number of a row.
ROW = "row "


def _is_autorag(record: Record) -> bool:
    names = (_CONTENTS, _RETRIEVED, _SCORES)
    others = [key for key in record if not key.startswith((*names, _RELEVANT))]
    if any(is_role(plain(key)) for key in others):
        return False
    return _RELEVANT in record or any(
        key.startswith(_RETRIEVED) and _SCORES + key.removeprefix(_RETRIEVED) in record
        for key in record
    )


def _autorag(records: list[Record], lines: list[int], file: str) -> Converted:
    keys = dict.fromkeys(key for record in records[:_HEAD] for key in record)
    nodes = [key.removeprefix(_RETRIEVED) for key in keys if key.startswith(_RETRIEVED)]
    main = "" if "" in nodes or len(nodes) != 1 else nodes[0]
    named = any("query" in record or "qid" in record for record in records[:_HEAD])
    queries: list[Query] = []
    several = 0
    for at, (record, line) in enumerate(zip(records, lines, strict=True), 1):
        fields = (("query_id", "qid"), ("query", "query"))
        shared: Record = {name: text(record.get(key)) for name, key in fields if key in record}
        query = Query(shared if named else {"query_id": f"{ROW}{at}"}, line)
        queries.append(query)
        for node in nodes:
            listed = _retrieved(record, node)
            if isinstance(listed, str):
                query.refused = query.refused or listed
                query.lengths = {
                    name + node: len(cells)
                    for name in (_RETRIEVED, _CONTENTS, _SCORES)
                    if isinstance(cells := record.get(name + node), list) and listed == "not_paired"
                }
            elif listed.documents:
                query.rankings["" if node == main else node.strip("_")] = listed
        if _RELEVANT in record:
            groups = _relevant(record[_RELEVANT])
            if groups is None:
                query.refused = "bad_ids"
                continue
            several += len(groups) > 1 or any(len(group) > 1 for group in groups)
            query.labels = {doc: 1 for group in groups for doc in group}
    findings = repeated_documents(queries, file)
    if several:
        findings.append(
            counted(
                "note",
                "all_relevant",
                "Queries with several documents in retrieval_gt: {count}. Each document is "
                "relevant (label 1); alternatives within a group are not used.",
                several,
                file=file,
            )
        )
    ids = tuple(text(record.get("qid")) or "" for record in records)
    name = AUTORAG if named else AUTORAG_ROWS
    return Converted(*entries_of(queries, file), name, findings, queries=ids)


def _retrieved(record: Record, node: str) -> Listed | str:
    """Return the documents that a node retrieved, or the code of the reason why they cannot be
    read."""
    if record.get(_RETRIEVED + node) is None:
        return Listed([])
    ids = ids_of(record[_RETRIEVED + node])
    contents, scores = record.get(_CONTENTS + node), record.get(_SCORES + node)
    if ids is None:
        return "bad_ids"
    if any(isinstance(each, list) and len(each) != len(ids) for each in (contents, scores)):
        return "not_paired"
    if not isinstance(scores, list):
        scores = None
    elif not all(map(finite, scores)):
        return "bad_score"
    texts: list[Any] = contents if isinstance(contents, list) else [None] * len(ids)
    if not all(each is None or isinstance(each, str) for each in texts):
        return "no_text"
    documents = [
        {"doc_id": doc} if content is None else {"doc_id": doc, "document": content}
        for doc, content in zip(ids, texts, strict=True)
    ]
    return Listed(documents, scores)


def _relevant(value: object) -> list[list[str]] | None:
    """Return the groups of relevant documents: a list of lists, a list of ids or one id."""
    if isinstance(value, list) and any(isinstance(each, list) for each in value):
        groups = [ids_of(group) for group in value]
    else:
        groups = [ids_of(value if isinstance(value, list) else [value])]
    return None if None in groups else [group for group in groups if group]


# User Behavior Insights (UBI): the index of searches, with the ids of the hits, and the index of
# events, such as clicks.

_HITS = "query_response_hit_ids"
_UBI = frozenset((_HITS, "query_response_id", "query_attributes"))
EVENTS = "UBI events"


def _is_ubi(record: Record) -> bool:
    if is_event(record):
        return True
    searched = "user_query" in record and bool(_UBI & record.keys())
    return searched and (_HITS in record or "label" not in recognise(list(record)))


def is_event(columns: Mapping[str, object]) -> bool:
    """Return whether an entry, or the columns of a table, are events of users."""
    if "action_name" not in columns or not {"query_id", "user_query"} & set(columns):
        return False
    return "label" not in recognise(list(columns))


def _ubi(records: list[Record], lines: list[int], file: str) -> Converted:
    searches: list[tuple[Query, str]] = []
    events = 0
    for record, line in zip(records, lines, strict=True):
        if is_event(record):
            events += 1
            continue
        words = record.get("user_query")
        query = Query({"query": words.strip() if isinstance(words, str) else words}, line)
        ids = ids_of(record.get(_HITS) or [])
        if not isinstance(words, str) or not words.strip():
            query.refused = "bad_query" if words else "no_query"
        elif ids is None:
            query.refused = "bad_ids"
        elif ids:
            query.rankings[""] = Listed([{"doc_id": doc} for doc in ids])
        searches.append((query, str(record.get("timestamp") or "")))
    findings = [events_finding(events, file)] if events else []
    if not searches:
        return Converted([{"query": None}], [lines[0]], EVENTS, findings)
    queries, repeated = latest(searches)
    if repeated:
        findings.append(
            counted(
                "note",
                "repeated_searches",
                "Repeated searches for the same query, of which only the latest is used: {count}.",
                repeated,
                file=file,
            )
        )
    if not any(query.rankings or query.refused for query in queries):
        return Converted(
            [query.shared for query in queries],
            [query.line for query in queries],
            "UBI searches without hits",
            findings,
        )
    findings += repeated_documents(queries, file)
    return Converted(*entries_of(queries, file), "UBI searches", findings)


def events_finding(count: int, file: str) -> Finding:
    """Return the warning about events of users, which are not read."""
    return counted(
        "warning",
        "events_not_read",
        "Events of users (clicks and others) that were not read: {count}. A click is not a label.",
        count,
        "Label the documents, or derive labels from the events with a click model and load these.",
        file,
    )


# Experiments of OpenSearch's search relevance workbench.
#
# pairwise:   an experiment's results, with the ids that each search configuration found.
# evaluation: documents of the index search-relevance-evaluation-result, one for each query and
#             search configuration.
# pointwise:  an experiment with ids of evaluation results: it lists no documents.
# query set:  {"queryText": …, "referenceAnswer": …}

_TEXTS = ("queryText", "query_text")
CONFIGURATIONS = "OpenSearch search configurations"


def _is_experiment(record: Record) -> bool:
    of_query = any(name in record for name in _TEXTS)
    return (
        (of_query and isinstance(record.get("snapshots"), list))
        or ("searchText" in record and "documentIds" in record)
        or (
            "searchConfigurationId" in record
            and bool({"evaluationId", "evaluationResults"} & record.keys())
        )
        or (record.keys() == {"error"} and isinstance(record["error"], str))
    )


def _experiment(records: list[Record], lines: list[int], file: str) -> Converted:
    for record, line in zip(records, lines, strict=True):
        if record.keys() == {"error"}:
            raise FormatError(
                "This experiment of OpenSearch failed: {problem}.",
                remedy="Run the experiment again, and export its results.",
                file=file,
                line=line,
                problem=str(record["error"]).rstrip("."),
            )
    if not any("snapshots" in record or "documentIds" in record for record in records):
        raise FormatError(
            "This experiment of OpenSearch contains ids of evaluation results, but no documents.",
            remedy="Export the documents of the index search-relevance-evaluation-result with this "
            "experiment's evaluation ids, as JSON.",
            file=file,
            line=lines[0],
        )
    lists: dict[str, Query] = {}
    times: dict[tuple[str, str], str] = {}
    repeated = 0
    for record, line in zip(records, lines, strict=True):
        words = next((record[name] for name in (*_TEXTS, "searchText") if name in record), None)
        query_text = words.strip() if isinstance(words, str) else str(words or "")
        query = lists.setdefault(query_text, Query({"query": query_text}, line))
        if not isinstance(words, str) or not query_text:
            query.refused = "bad_query" if query_text else "no_query"
        results = record.get("snapshots") or [record]
        for each in results:
            each = each if isinstance(each, dict) else {}
            name = text(each.get("searchConfigurationId")) or "search"
            ids = ids_of(each.get("docIds", each.get("documentIds")))
            time = str(record.get("timestamp") or "")
            if ids is None:
                query.refused = query.refused or "bad_ids"
                continue
            repeated += name in query.rankings
            if time >= times.get((query_text, name), ""):
                times[query_text, name] = time
                query.rankings[name] = Listed([{"doc_id": doc} for doc in ids])
    queries = list(lists.values())
    names = dict.fromkeys(name for query in queries for name in query.rankings)
    empty = sum(not listed.documents for query in queries for listed in query.rankings.values())
    for query in queries:
        query.rankings = {name: each for name, each in query.rankings.items() if each.documents}
        if len(names) == 1:
            query.rankings = dict(zip([""], query.rankings.values(), strict=False))
    findings = repeated_documents(queries, file)
    if empty:
        findings.append(
            counted(
                "warning",
                "empty_results",
                "Results without documents: {count}. The ranking does not contain these queries.",
                empty,
                "Check whether the search failed or found nothing.",
                file,
            )
        )
    if repeated:
        findings.append(
            counted(
                "warning",
                "repeated_results",
                "Results of the same query and search configuration, of which only the latest is "
                "used: {count}.",
                repeated,
                "Export the results of one experiment.",
                file,
            )
        )
    return Converted(*entries_of(queries, file), "OpenSearch experiment", findings)


def _is_configuration(record: Record) -> bool:
    needed, others = {"id", "name", "index"}, {"timestamp", "description", "searchPipeline"}
    query = {"query", "queryBody"} & record.keys()
    return bool(query) and needed <= record.keys() <= needed | others | query


def _configurations(records: list[Record], lines: list[int], _file: str) -> Converted:
    rows = [{"id": text(each.get("id")), "name": text(each.get("name"))} for each in records]
    return Converted(rows, lines, CONFIGURATIONS, [])


def _is_query_set(record: Record) -> bool:
    return "queryText" in record and record.keys() <= {"queryText", "referenceAnswer"}


def _query_set(records: list[Record], lines: list[int], _file: str) -> Converted:
    rows = [{"query": text(record.get("queryText"))} for record in records]
    return Converted(rows, lines, "OpenSearch query set", [])


class Tool(NamedTuple):
    """The entries of one tool. matches: returns whether an object is such an entry."""

    matches: Callable[[Record], bool]
    read: Callable[[list[Record], list[int], str], Converted]


_TOOLS = (
    Tool(_is_autorag, _autorag),
    Tool(_is_ubi, _ubi),
    Tool(_is_experiment, _experiment),
    Tool(_is_configuration, _configurations),
    Tool(_is_query_set, _query_set),
    Tool(quepid.is_book, quepid.book),
    Tool(quepid.is_rated, quepid.rated),
    Tool(spans.matches, spans.converted),
)


_HEAD = 10
_BULK = frozenset(("index", "create"))


def converted(records: Sequence[Record], lines: Sequence[int], file: str) -> Converted | None:
    """Return the entries of a known tool in the form of `nested`, or None.

    Raises FormatError for entries of a known tool without rankings or labels.
    """
    sources = map(_source, records[:_HEAD])
    head = [record for record in sources if record is not None]
    for tool in _TOOLS:
        if any(map(tool.matches, head)):
            rows = [(_source(record), line) for record, line in zip(records, lines, strict=True)]
            present = [(record, line) for record, line in rows if record is not None]
            return tool.read([row[0] for row in present], [row[1] for row in present], file)
    return None


def known_entry(record: object) -> bool:
    """Return whether an object is an entry of a known tool."""
    return isinstance(record, dict) and any(tool.matches(record) for tool in _TOOLS)


def _source(record: Record) -> Record | None:
    """Return the document of an index that contains the entry, or the entry; None for the line of a
    bulk request that only names the index."""
    inner = record.get("_source")
    if isinstance(inner, dict):
        return inner
    first = next(iter(record.values()), None)
    return (
        None if len(record) == 1 and record.keys() <= _BULK and isinstance(first, dict) else record
    )
