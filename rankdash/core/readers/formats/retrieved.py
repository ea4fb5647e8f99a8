"""Entries with separate lists of retrieved and relevant documents.

    {"question": …, "retrieved_docs": ["d3", "d1"], "relevant_docs": ["d1"]}
    {"query": …, "retrieved": ["d3", "d1"], "relevant": {"d1": 2, "d7": 1}}
    {"query": …, "pred_docs": ["d3", "d1"], "gt_rels": [0, 2], "rerank_scores": [0.1, 0.9]}

Tutorials use this format, and LlamaIndex (`retrieved_ids`, `expected_ids`), Ragas
(`retrieved_contexts`, `reference_contexts`), LangSmith (`inputs`, `outputs`, `reference_outputs`)
and Haystack. Such an entry is converted to one list of documents with their ranks among the
retrieved and their labels. A relevant document that was not retrieved has a label and no rank; a
retrieved document that is not listed as relevant has a rank and no label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from rankdash.core.readers.formats import nested
from rankdash.core.readers.parse.columns import (
    HIGHEST_GRADE,
    MOST_GRADES,
    PLAIN_SCORE,
    SYSTEM,
    plain,
    recognise,
)

Record = dict[str, Any]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


RETRIEVED = _names(
    "retrieved retrieveddocs retrieveddocuments retrievedids retrieveddocids retrievedcontexts "
    "retrievedcontextids retrievedtexts retrievedpassages retrievedchunks retrievedresults "
    "retrievalcontext retrievalresults retrieval results searchresults ranking rankedlist ranked "
    "rankeddocs rankedids preddocs predids predicteddocs predicted pred topk topkdocs "
    "检索结果 召回结果 召回文档 检索文档"
)
RERANKED = _names(
    "reranked rerankeddocs rerankeddocuments rerankedids rerankedcontexts rerankedtexts "
    "rerankedresults 重排结果 重排文档"
)
RELEVANT = _names(
    "relevant relevantdocs relevantdocuments relevantids relevantdocids relevantcontexts "
    "relevanttexts relevantpassages relevantchunks groundtruth groundtruths groundtruthdocs "
    "groundtruthdocuments groundtruthids groundtruthcontexts gold golddocs golddocuments goldids "
    "goldpassages goldcontexts expected expectedids expecteddocs expecteddocuments expectedtexts "
    "expectedchunks "
    "referencecontexts referencecontextids referencedocs referenceids actual gt gtdocs gtids "
    "qrels relevancescores relevancejudgments relevancejudgements judgments judgements "
    "相关文档 标准答案"
)
# Labels in the order of a list of documents, or by document.
GRADES = _names(
    "gtrels rels relevancelabels labels truescores truelabels relevance relevances grades gains "
    "ytrue truerelevance 标签 相关性"
)
SCORES = _names("yscore predscores predictedscores rerankscores scores initialscores")
DOCUMENTS = _names("docs documents passages candidates paragraphs texts contexts")
_ROLES = RETRIEVED | RERANKED | RELEVANT | GRADES | SCORES | DOCUMENTS
_QUERIES = {"userinput": "query", "input": "query", "prompt": "query"}
# LangSmith stores inputs, outputs and reference outputs in separate objects.
_AROUND = ("inputs", "input", "outputs", "output", "referenceoutputs", "referenceoutput")
_IDS = re.compile(r"ids?$")
_TEXTS = re.compile(r"(context|text|passage|chunk|paragraph)s?$")
GRADED = re.compile(r"(score|judgment|judgement)s$")
_TOKEN = re.compile(r"[!-~]{1,100}")
_NUMBER = re.compile(r"[0-9]{1,100}")
# Fields of documents, which a value of the query must not be mistaken for.
_OF_ROWS = ("document", "doc_id", "title", "label", "score", "rank", "reranked")


def joined(records: Sequence[Record]) -> list[Record]:
    """Convert entries to one list of documents with parallel lists of labels and ranks. Entries
    without retrieved or relevant documents are unchanged."""
    keys = set(chain.from_iterable(records))
    around = any(plain(key) in _AROUND for key in keys)
    # A table may have a million rows, and their cells need no look.
    if not around and not any(is_role(plain(key)) for key in keys):
        return list(records)
    opened = [_opened(record) for record in records] if around else list(records)
    roles = _roles(_readable(opened))
    if not roles.keys() & {"retrieved", "reranked", "relevant"}:
        return list(records)
    checked = [_refused(record, roles) or record for record in opened]
    ids = _Ids(_readable(checked), roles)
    return [
        record
        if isinstance(record, nested.RefusedEntry)
        else _Entry(record, roles, ids).record(f"q{position}")
        for position, record in enumerate(checked, 1)
    ]


def _readable(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if not isinstance(record, nested.RefusedEntry)]


def _refused(record: Record, roles: Mapping[str, list[str]]) -> nested.RefusedEntry | None:
    """Return the entry with the reason why it cannot be read, or None if it can."""
    if isinstance(record, nested.RefusedEntry):
        return record
    lists = {key: value for key, value in record.items() if isinstance(value, list)}

    def listed(role: str) -> list[str]:
        return [key for key in roles.get(role, ()) if key in lists]

    documents = listed("retrieved") or listed("documents") or listed("reranked")
    relevant = listed("relevant")
    refused = nested.without_text(record, [*documents, *relevant, *listed("reranked")])
    if refused:
        return refused
    # Empty lists of texts or scores mean that documents have none.
    filled = [key for key in documents if lists[key]] or documents
    lengths_of_relevant = {len(lists[key]) for key in relevant}
    graded = {*relevant, *listed("grades")}
    reranked = {len(lists[key]) for key in listed("reranked")}
    scores = [
        key
        for key, value in lists.items()
        if value
        and (nested.scores_in(key, value) or (plain(key) in SCORES and _numeric(value)))
        and key not in graded
        and len(value) not in reranked
    ]
    if not documents:
        return nested.uneven(record, [*relevant[:1], *scores])
    grades = [key for key in listed("grades")[:1] if len(lists[key]) not in lengths_of_relevant]
    apart = [key for key in relevant if _IDS.search(plain(key)) or _TEXTS.search(plain(key))]
    return nested.uneven(record, [*filled, *grades, *scores]) or nested.uneven(
        record, [key for key in apart if lists[key]]
    )


def is_role(name: str) -> bool:
    """Return whether a key (normalised by `plain`) is a name for documents, labels or scores."""
    return name in _ROLES


def _opened(record: Record) -> Record:
    """Merge the inner objects for inputs and outputs into the entry."""
    around = {key: value for key, value in record.items() if plain(key) in _AROUND}
    parts = {plain(key): value for key, value in around.items() if isinstance(value, dict)}
    if not parts or isinstance(record, nested.RefusedEntry):
        return record
    rest = {key: value for key, value in record.items() if plain(key) not in parts}
    named: Record = {}
    reference = any(name.startswith("reference") for name in parts)
    for name, part in parts.items():
        for key, value in part.items():
            of_documents = plain(key) in DOCUMENTS | RETRIEVED | RELEVANT
            if name.startswith("reference") and of_documents:
                key = "relevant_docs"
            elif name.startswith("output") and reference and of_documents:
                key = "retrieved_docs"
            named.setdefault(key, value)
    return {**rest, **named}


def _roles(records: Sequence[Record]) -> dict[str, list[str]]:
    """Return role → keys, by the names and the values of the keys."""
    values: dict[str, list[Any]] = {}
    for record in records:
        for key, value in record.items():
            if value is not None and is_role(plain(key)):
                values.setdefault(key, []).append(value)
    roles: dict[str, list[str]] = {}
    for key, contents in values.items():
        role = _role(plain(key), contents)
        if role:
            roles.setdefault(role, []).append(key)
    names = {plain(key): key for record in records for key in record}
    if "relevant" not in roles and "retrievalcontext" in names and "context" in names:
        # DeepEval names the ideal documents so.
        roles["relevant"] = [names["context"]]
    relevant = roles.get("relevant", [])
    # With relevant documents but no retrieved ones, "contexts" are the retrieved documents.
    for key in [key for key in roles.get("documents", ()) if plain(key) == "contexts"]:
        if relevant and "retrieved" not in roles:
            roles["documents"].remove(key)
            roles["retrieved"] = [key]
    for key in list(relevant):
        others = [other for other in relevant if other != key]
        beside = _beside(key, roles, records) if "retrieved" in roles else False
        if beside or (others and _grades_of(key, others, records)):
            relevant.remove(key)
            roles.setdefault("grades", []).append(key)
        elif not _names_documents(key, roles, records):
            relevant.remove(key)
    return {role: keys for role, keys in roles.items() if keys}


def _role(name: str, values: Sequence[Any]) -> str:
    if name in RELEVANT | GRADES and any(isinstance(value, dict) for value in values):
        return "relevant"
    if name in RELEVANT and all(isinstance(value, list | str) for value in values):
        return "relevant"
    lists = all(isinstance(value, list) for value in values)
    numeric = lists and all(_numeric(value) for value in values) and any(values)
    if name in GRADES and lists:
        return "grades"
    if lists and not (numeric and any(isinstance(x, float) for value in values for x in value)):
        for role, names in (
            ("retrieved", RETRIEVED),
            ("reranked", RERANKED),
            ("documents", DOCUMENTS),
        ):
            if name in names:
                return role
    return ""


def _numeric(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) or value is None for value in values)


def _beside(key: str, roles: Mapping[str, list[str]], records: Sequence[Record]) -> bool:
    """Return whether a key for relevant documents contains one grade per retrieved document."""
    retrieved = roles["retrieved"][0]
    pairs: list[tuple[Any, Any]] = [(record.get(key), record.get(retrieved)) for record in records]
    lists = [pair for pair in pairs if all(isinstance(each, list) for each in pair)]
    if not lists or len(lists) < len(pairs) or not all(_numeric(graded) for graded, _ in lists):
        return False
    if not any(_NUMBER.fullmatch(text) for _, docs in lists for text in _scalars(docs)):
        return True
    if any(each is not None and each > HIGHEST_GRADE for graded, _ in lists for each in graded):
        return False
    paired = [graded for graded, docs in lists if len(graded) == len(docs)]
    repeated = any(len(set(graded)) < len(graded) for graded in paired)
    ids_are_numbers = all(_numeric(docs) for _, docs in lists)
    return 2 * len(paired) > len(lists) and (repeated or not ids_are_numbers)


def _grades_of(key: str, others: Sequence[str], records: Sequence[Record]) -> bool:
    """Return whether a key for relevant documents contains grades of the documents under the keys
    `others`."""
    values = [record[key] for record in records if record.get(key) is not None]
    if not all(isinstance(value, list) and _numeric(value) for value in values):
        return False
    listed = [record[other] for record in records for other in others if record.get(other)]
    return bool(GRADED.search(plain(key))) or not any(map(_numeric, listed))


def _names_documents(key: str, roles: Mapping[str, list[str]], records: Sequence[Record]) -> bool:
    """Return whether single texts under the key are documents, not labels or answers."""
    values = [record[key] for record in records if record.get(key) is not None]
    if any(isinstance(value, list | dict) for value in values):
        return True
    retrieved = {
        text
        for record in records
        for other in roles.get("retrieved", ())
        for text in _scalars(record.get(other))
    }
    matched = any(str(value) in retrieved for value in values)
    ids = [*map(str, values), *retrieved]
    return matched or (bool(retrieved) and all(map(_TOKEN.fullmatch, ids)))


class _Ids:
    """Recognition of lists of document ids or texts, by one rule for all entries of a file."""

    def __init__(self, records: Sequence[Record], roles: Mapping[str, list[str]]) -> None:
        keys = [
            key
            for role in ("retrieved", "reranked", "relevant", "documents")
            for key in roles.get(role, ())
        ]
        texts = [text for record in records for key in keys for text in _scalars(record.get(key))]
        self._tokens = bool(texts) and all(_TOKEN.fullmatch(text) for text in texts)
        self.of_text: dict[str, str] = {}
        for record in records:
            for role in ("retrieved", "reranked", "relevant", "documents"):
                for document in self.documents(record, roles.get(role, ())):
                    if document.get("doc_id") and document.get("document"):
                        self.of_text.setdefault(document["document"], document["doc_id"])

    def documents(self, record: Record, keys: Sequence[str]) -> list[Record]:
        """Return the documents under the keys; values of several keys are merged by position."""
        documents: list[Record] = []
        for key in keys:
            value = record.get(key)
            listed = value if isinstance(value, list | dict) else [] if value is None else [value]
            for position, each in enumerate(listed):
                if position == len(documents):
                    documents.append({})
                documents[position].update(self._document(key, each))
        return documents

    def _document(self, key: str, value: object) -> Record:
        if isinstance(value, dict):
            row = nested.document_row(value)
            # Ranks and scores of the framework are ignored.
            fields = ["doc_id", "document", "title"]
            if plain(key) in RELEVANT or not any(plain(name).endswith("score") for name in value):
                fields.append("label")
            return {field: row[field] for field in fields if row.get(field) is not None}
        name = plain(key)
        as_id = bool(_IDS.search(name)) or (self._tokens and not _TEXTS.search(name))
        return {"doc_id" if as_id else "document": str(value)}

    def key(self, document: Record) -> str:
        """Return the key that identifies a document: its id, or its text."""
        text = document.get("document") or ""
        return str(document.get("doc_id") or self.of_text.get(text, text))


def _scalars(value: object) -> Iterator[str]:
    listed = value if isinstance(value, list | dict) else [value]
    yield from (str(each) for each in listed if each is not None and not isinstance(each, dict))


class _Entry:
    """One entry with its documents in the order of the file."""

    def __init__(self, record: Record, roles: Mapping[str, list[str]], ids: _Ids) -> None:
        self._record, self._roles, self._ids = record, roles, ids
        retrieved = self._of("retrieved")
        self._ranked = bool(retrieved)
        self._listed = retrieved or self._of("documents")
        self._found: dict[str, Record] = {}
        for document in (*retrieved, *self._of("reranked"), *self._of("relevant")):
            self._found.setdefault(ids.key(document), document)

    def _of(self, role: str) -> list[Record]:
        return self._ids.documents(self._record, self._roles.get(role, ()))

    def record(self, made: str) -> Record:
        """Convert the entry to parallel lists. made: the id of its query if it has neither an id
        nor a text."""
        used = set(chain.from_iterable(self._roles.values()))
        shared: Record = {}
        paired: Record = {}
        for key, value in self._record.items():
            if key in used:
                continue
            if _numeric_list(value) and len(value) == len(self._listed):
                paired[key] = value
            else:
                shared[_QUERIES.get(plain(key), key)] = value
        return {**_of_the_query(shared, made), **self._lists(paired)}

    def _lists(self, paired: Record) -> Record:
        """Return docs, labels, ranks and scores of the listed documents, then of the others."""
        listed = [self._ids.key(document) for document in self._listed]
        unique = set(listed)
        others = [key for key in self._found if key not in unique]
        keys = [*listed, *others]
        documents = [
            {field: value for field, value in document.items() if field != "label"}
            for document in (*self._listed, *(self._found[key] for key in others))
        ]
        lists: Record = {
            "docs": [
                {"doc_id": key, **document} if self._ids.of_text else document
                for key, document in zip(keys, documents, strict=True)
            ]
        }
        lists |= {key: [*value, *[None] * len(others)] for key, value in paired.items()}
        if self._ranked and not any(plain(key).startswith("initial") for key in paired):
            lists["ranks"] = [*range(1, len(listed) + 1), *[None] * len(others)]
        for key in self._roles.get("reranked", ())[:1]:
            places = {self._ids.key(each): at for at, each in enumerate(self._of("reranked"), 1)}
            lists[SYSTEM + key] = [-places[each] if each in places else None for each in keys]
        labels = self._labels(keys, len(listed))
        return lists if labels is None else {**lists, "labels": labels}

    def _labels(self, keys: Sequence[str], listed: int) -> list[Any] | None:
        """Return one label per document; None if the file has no labels."""
        grades = self._roles.get("grades", ())
        relevant = self._roles.get("relevant", ())
        graded = {self._ids.key(each): each["label"] for each in self._listed if "label" in each}
        if not grades and not relevant:
            return [graded.get(key) for key in keys] if graded else None
        of: dict[str, Any] = {}
        if grades:
            labels = self._record.get(grades[0]) or []
            named = list(map(self._ids.key, self._of("relevant")))
            if not named or len(labels) != len(named) or _agree(keys[:listed], labels, named):
                return [
                    *labels,
                    *[None] * (len(keys) - len(labels) if len(labels) == listed else 0),
                ]
            of |= zip(named, labels, strict=True)
        for key in relevant:
            value = self._record.get(key)
            if isinstance(value, dict):
                documents = self._ids.documents(self._record, [key])
                of |= zip(map(self._ids.key, documents), value.values(), strict=True)
        for document in self._of("relevant"):
            of.setdefault(self._ids.key(document), document.get("label", 1))
        return [of.get(key, graded.get(key)) for key in keys]


def _agree(listed: Sequence[str], grades: Sequence[Any], relevant: Sequence[str]) -> bool:
    """Return whether exactly the relevant documents of a list have a grade other than 0."""
    graded = {key for key, grade in zip(listed, grades, strict=False) if grade}
    return len(listed) == len(grades) and graded == set(listed) & set(relevant)


def _of_the_query(shared: Record, made: str) -> Record:
    """Return the query's values, with " (query)" added to keys that name a field of documents.
    made: the id for a query without id and text."""
    fields = {column: field for field, column in recognise(list(shared)).items()}
    named = {
        f"{key} (query)" if fields.get(key) in _OF_ROWS else key: value
        for key, value in shared.items()
    }
    has_query = {"query", "query_id"} & set(fields.values()) or any(
        plain(key) == "id" for key in shared
    )
    return named if has_query else {"query_id": made, **named}


# Entries with a list of grades and parallel lists of scores, with or without documents.
#
#     {"query": …, "ground_truth": [3, 1, 0], "initial_scores": [.9, .8, .7], "rerank_scores": […]}
#     {"documents": ["…", "…"], "relevance": [0, 2], "before": [0.4, 0.3], "after": [0.1, 0.8]}
#
# Examples in tutorials about evaluation have this format. A list of numbers with a name for
# relevance, and with the length of the documents or scores, contains grades, not ids. Each list of
# scores is a ranking. In entries without documents, these are numbered.

_GRADES = re.compile(r"relevan|label|grade|truth|gold|judg|ytrue|gain|相关|标注|标签")
_FIRST_STAGE = re.compile(
    r"initial|first|baseline|^base|before|original|retriev|bm25|^without|初|召回|首轮|原始"
)
_RERANKED = re.compile(r"rerank|重排|精排")
_LATER_STAGE = re.compile(r"rerank|after|重排|精排")
_RANKS = ("rank", "ranks")


def with_grades(records: Sequence[Record]) -> list[Record]:
    """Rename labels, scores and documents of the entries to names that `nested` reads. Entries
    without a list of grades are unchanged."""
    keys = list(dict.fromkeys(chain.from_iterable(records)))
    # A table may have a million rows, and their cells need no look.
    named = [key for key in keys if _is_grades(key)]
    graded = [key for key in named if _holds_grades(key, records)]
    if not graded:
        return [_uneven(record, named) or record for record in records] if named else list(records)
    # Grades have few distinct values.
    steps = {key: {each for record in records for each in record.get(key) or ()} for key in graded}
    chosen = min(graded, key=lambda key: len(steps[key]) > MOST_GRADES)
    first = _first_stage([key for key in keys if key != chosen], records, chosen)
    return [_entry(record, f"q{at}", chosen, first) for at, record in enumerate(records, 1)]


def is_graded(value: object) -> bool:
    """Return whether the value is an entry with a list of grades."""
    if not isinstance(value, dict):
        return False
    named = [key for key in value if _is_grades(key)]
    return any(_holds_grades(key, [value]) for key in named) or _uneven(value, named) is not None


def _is_grades(key: str) -> bool:
    name = plain(key)
    return name in GRADES | RELEVANT or bool(_GRADES.search(name))


def _holds_grades(key: str, records: Sequence[Record]) -> bool:
    """Return whether the values under the key are lists of numbers, one per document or score."""
    filled = [record for record in records if record.get(key) is not None]
    lists = [record for record in filled if _numeric_list(record[key])]
    if not filled or len(lists) < len(filled):
        return False
    paired = [record for record in lists if _paired(record, key)]
    return (
        2 * len(paired) > len(lists)
        and not any(_retrieves(record, key) for record in lists)
        and not all(_are_ids(record, key) for record in paired)
    )


def _retrieves(record: Record, graded: str) -> bool:
    """Return whether the entry lists retrieved documents, which `joined` converts."""
    return any(
        plain(name) in RETRIEVED
        and isinstance(value, list)
        and value
        and not _is_scores(record, name, graded)
        for name, value in record.items()
    )


def _paired(record: Record, key: str) -> bool:
    documents = nested.documents_in(record)
    if documents is not None:
        return len(documents) == len(record[key])
    return any(_is_scores(record, name, key) for name in record)


def _are_ids(record: Record, key: str) -> bool:
    """Return whether the numbers under the key are ids of the entry's documents, not grades."""
    documents, grades = nested.documents_in(record), record[key]
    same = documents is not None and set(map(str, grades)) == set(map(str, documents))
    return same and plain(key) in RELEVANT and len(set(grades)) == len(grades)


def _is_scores(record: Record, name: str, graded: str) -> bool:
    """Return whether a list contains one score or rank per grade."""
    values, called = record[name], plain(name)
    if name == graded or not _numeric_list(values) or len(values) != len(record[graded]):
        return False
    return _has_fractions(values) or called.endswith((*PLAIN_SCORE, *_RANKS)) or (called in SCORES)


def _names_scores(name: str, values: Any) -> bool:
    """Return whether a list of numbers has a name for scores or ranks, regardless of its length."""
    if not _numeric_list(values):
        return False
    called = plain(name)
    stage = _FIRST_STAGE.search(called) or _LATER_STAGE.search(called)
    return (
        nested.scores_in(name, values)
        or called.endswith(_RANKS)
        or called in SCORES
        or (bool(stage) and _has_fractions(values))
    )


def _uneven(record: Record, named: Sequence[str]) -> nested.RefusedEntry | None:
    """Return the entry as refused if the number of grades differs from the number of documents or
    scores, or None."""
    lists = [key for key in named if _numeric_list(record.get(key))]
    if not lists or any(_retrieves(record, key) for key in lists):
        return None
    # If there are documents, numbers named relevant can be their ids.
    listed = any(plain(key) in DOCUMENTS | RERANKED for key in record)
    grades = [key for key in lists if not listed or plain(key) not in RELEVANT]
    return _unpaired(record, grades[0]) if grades else None


def _unpaired(record: Record, graded: str) -> nested.RefusedEntry | None:
    """Return the entry as refused unless each document and each score has a grade; else None."""
    documents = [key for key, value in record.items() if nested.documents_in({key: value})]
    scores = [key for key in record if key != graded and _names_scores(key, record[key])]
    return nested.uneven(record, [*documents[:1], graded, *scores])


def _first_stage(keys: Sequence[str], records: Sequence[Record], graded: str) -> str | None:
    """Return the key of the only list of scores with a name for first-stage scores, or None."""
    rated = [record for record in records if _numeric_list(record.get(graded))]
    candidates = [
        key
        for key in keys
        if _FIRST_STAGE.search(plain(key))
        and not _RERANKED.search(plain(key))
        and any(key in record and _is_scores(record, key, graded) for record in rated)
    ]
    return candidates[0] if len(candidates) == 1 else None


def _entry(record: Record, made: str, graded: str, first: str | None) -> Record:
    """Convert an entry to lists that `nested` reads. made: its query id if it has no query."""
    grades = record.get(graded)
    if not isinstance(grades, list):
        return record
    refused = _unpaired(record, graded)
    if refused:
        return refused
    lists: Record = {"labels": grades}
    shared: Record = {}
    for key, value in record.items():
        if key == graded:
            continue
        if not _is_scores(record, key, graded):
            shared[key] = value
            continue
        recognised = nested.names_scores(key)
        if plain(key).endswith(_RANKS) and not recognised:
            value = [None if rank is None else -rank for rank in value]
        lists["initial_scores" if key == first else key if recognised else SYSTEM + key] = value
    if nested.documents_in(record) is None:
        lists["doc_ids"] = [f"{made}-{place}" for place in range(1, len(grades) + 1)]
    unnamed = not any(isinstance(value, str | dict) for value in shared.values())
    shared = _of_the_query(shared, made) if unnamed else shared
    # The lists come first, so that they take precedence over other lists of labels.
    return {**lists, **{f"{key} (2)" if key in lists else key: shared[key] for key in shared}}


def _numeric_list(value: object) -> bool:
    return isinstance(value, list) and bool(value) and _numeric(value)


def _has_fractions(values: Sequence[object]) -> bool:
    return any(isinstance(value, float) for value in values)
