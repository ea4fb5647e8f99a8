"""`Dataset`: labelled queries, documents and the first-stage ranking. Checked once, when made."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Literal, Self

import numpy as np
import pandas as pd

from rankdash.errors import DataError
from rankdash.ranking.ranking import Ranking, digest

FirstStage = Literal["given", "bm25"]
# As much of a text as tells it from others.
_OPENING = 80


class Dataset:
    """Queries, documents, labels and candidates. Never changed after it is made.

    queries:    query_id (unique str), text (str or missing), then any segment columns (str).
    documents:  doc_id (unique str), title (str, may be empty), text (str or missing).
    qrels:      query_id, doc_id, label (float64, finite; may be fractional or negative), one row
                per pair.
    candidates: the first-stage `Ranking`.
    first_stage: "given" when the order came with the data, "bm25" when rankdash made it over each
                query's candidates.
    id:         a hash of the content (not of the name).

    Every id in `qrels` and `candidates` has a row in `queries` and `documents`; text that did not
    come with the data is missing there. The properties hand out copy-on-write frames, so writing
    to one changes nothing here.
    """

    def __init__(
        self,
        name: str,
        queries: pd.DataFrame,
        documents: pd.DataFrame,
        qrels: pd.DataFrame,
        candidates: Ranking,
        *,
        first_stage: FirstStage = "given",
    ) -> None:
        self._queries = _table(queries, ["query_id", "text"], "queries", extra=True)
        self._documents = _table(documents, ["doc_id", "title", "text"], "documents")
        self._qrels = _table(qrels, ["query_id", "doc_id", "label"], "qrels")
        _unique(self._queries, ["query_id"], "queries")
        _unique(self._documents, ["doc_id"], "documents")
        _unique(self._qrels, ["query_id", "doc_id"], "qrels")
        if not np.isfinite(self._qrels["label"].to_numpy(dtype=np.float64)).all():
            raise DataError("A label is not a finite number.")
        queries_known = set(self._queries["query_id"])
        documents_known = set(self._documents["doc_id"])
        _closed(self._qrels["query_id"], queries_known, "qrels", "queries")
        _closed(self._qrels["doc_id"], documents_known, "qrels", "documents")
        _closed(candidates.query_ids, queries_known, "candidates", "queries")
        _closed(candidates.doc_ids, documents_known, "candidates", "documents")
        self.name = name
        self.candidates = candidates
        self.first_stage: FirstStage = first_stage

    @cached_property
    def id(self) -> str:
        """A hash of the content; of large data sets it takes seconds, once."""
        return self._content_hash()

    @cached_property
    def label_values(self) -> tuple[float, ...]:
        """Every label that is in use, ascending."""
        return tuple(float(label) for label in sorted(self._qrels["label"].unique()))

    @cached_property
    def labelled_queries(self) -> int:
        """How many queries have a label."""
        return int(self.qrels["query_id"].nunique())

    @property
    def top_grade(self) -> float:
        """The highest label; 1 where none is above 0."""
        highest = self.label_values[-1] if self.label_values else 0.0
        return highest if highest > 0 else 1.0

    @cached_property
    def has_texts(self) -> bool:
        """Whether any query and any document has a text."""
        return bool((self.query_text() != "").any() and (self.document_text() != "").any())

    @cached_property
    def query_names(self) -> dict[str, str]:
        """Query id → its text, or the id where there is none: what a person knows it by."""
        found = self.query_text()
        return {query: text or query for query, text in zip(found.index, found, strict=True)}

    @cached_property
    def document_names(self) -> tuple[dict[str, str], dict[str, str]]:
        """Document id → its title, and document id → how its text begins: what a person knows it
        by. What is missing is replaced by the other, and both by the id."""
        ids, texts = list(self._documents["doc_id"]), self._documents["text"].fillna("").str
        cut = np.where(texts.len() > _OPENING, "…", "")
        starts: list[str] = list(texts[:_OPENING].str.rstrip() + cut)
        rows = list(zip(ids, self._documents["title"], starts, strict=True))
        return (
            {doc_id: title or start or doc_id for doc_id, title, start in rows},
            {doc_id: start or title or doc_id for doc_id, title, start in rows},
        )

    def names_of(self, doc_ids: Iterable[str]) -> dict[str, str]:
        """Document id → its title, or how its text begins where titles repeat: passages of one
        article share its title, and then their own words tell them apart."""
        titles, openings = self.document_names
        own = {doc: titles.get(doc, doc) for doc in doc_ids}
        often = Counter(own.values())
        return {
            doc: title if often[title] == 1 else openings.get(doc, doc)
            for doc, title in own.items()
        }

    @cached_property
    def document_places(self) -> dict[str, int]:
        """Document id → its row in `documents`."""
        return {doc: place for place, doc in enumerate(self._documents["doc_id"])}

    @cached_property
    def ids_with_blanks(self) -> bool:
        """Whether an id of a query or a document cannot stand in a TREC file."""
        ids = (self._queries["query_id"], self._documents["doc_id"])
        return any(bool(each.str.contains(r"[ \t\n\r\v\f]", regex=True).any()) for each in ids)

    @property
    def queries(self) -> pd.DataFrame:
        return self._queries.copy(deep=False)

    @property
    def documents(self) -> pd.DataFrame:
        return self._documents.copy(deep=False)

    @property
    def qrels(self) -> pd.DataFrame:
        return self._qrels.copy(deep=False)

    @property
    def segments(self) -> list[str]:
        """The query columns beyond id and text."""
        return list(self._queries.columns[2:])

    def relabelled(self, changes: pd.DataFrame) -> Self:
        """This data set with other labels for some pairs; all else is shared, not copied.

        changes: query_id, doc_id, label, one row per pair: NaN takes the label away; a pair that
            had none is added after the others.

        Raises DataError where a pair is listed twice, is not of a query and a document of this data
        set, or its label is infinite.
        """
        new = _table(changes, ["query_id", "doc_id", "label"], "changes")
        _unique(new, ["query_id", "doc_id"], "changes")
        for column, table, name in (
            ("query_id", self._queries, "queries"),
            ("doc_id", self._documents, "documents"),
        ):
            known = table[column]
            _closed(new[column], set(known[known.isin(new[column])]), "changes", name)
        if np.isinf(new["label"].to_numpy(dtype=np.float64)).any():
            raise DataError("A label is not a finite number.")
        wanted = {
            (query, doc): label
            for query, doc, label in zip(new["query_id"], new["doc_id"], new["label"], strict=True)
        }
        old = self._qrels
        labels = old["label"].to_numpy(dtype=np.float64).copy()
        near = old["query_id"].isin(new["query_id"]) & old["doc_id"].isin(new["doc_id"])
        for row in np.flatnonzero(near).tolist():
            pair = (old["query_id"].iat[row], old["doc_id"].iat[row])
            labels[row] = wanted.pop(pair, labels[row])
        added = pd.DataFrame(
            [(*pair, label) for pair, label in wanted.items() if not np.isnan(label)],
            columns=["query_id", "doc_id", "label"],
        )
        made = copy.copy(self)
        for of_labels in ("id", "label_values"):
            made.__dict__.pop(of_labels, None)
        kept = old.assign(label=labels)[~np.isnan(labels)]
        made._qrels = _table(
            pd.concat([kept, added]) if len(added) else kept,
            ["query_id", "doc_id", "label"],
            "qrels",
        )
        return made

    def document_text(self) -> pd.Series[str]:
        """doc_id → title and text joined by a space, as a model reads it; "" where missing."""
        text = (self._documents["title"] + " " + self._documents["text"].fillna("")).str.strip()
        return pd.Series(text.to_numpy(dtype=object), index=self._documents["doc_id"])

    def query_text(self) -> pd.Series[str]:
        """query_id → text; "" where missing."""
        text = self._queries["text"].fillna("").to_numpy(dtype=object)
        return pd.Series(text, index=self._queries["query_id"])

    def _content_hash(self) -> str:
        def columns(frame: pd.DataFrame) -> Iterable[bytes]:
            for column in frame.columns:
                yield str(column).encode()
                values = frame[column]
                if values.dtype == np.float64:
                    yield values.to_numpy().tobytes()
                else:
                    text = values.astype("str").fillna("").to_list()
                    yield np.array([len(value) for value in text], dtype=np.int64).tobytes()
                    yield np.array(values.isna()).tobytes()
                    yield "".join(text).encode("utf-8", "surrogatepass")

        candidates = self.candidates.frame()[["query_id", "doc_id", "score"]]
        tables = (
            self._queries.sort_values("query_id"),
            self._documents.sort_values("doc_id"),
            self._qrels.sort_values(["query_id", "doc_id"]),
            candidates.sort_values("query_id", kind="stable"),
        )
        return digest(part for table in tables for part in columns(table))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dataset) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self._queries)} queries, id={self.id})"


def _table(
    frame: pd.DataFrame, columns: list[str], name: str, *, extra: bool = False
) -> pd.DataFrame:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise DataError("The {table} table lacks {missing}.", table=name, missing=missing)
    rest = [column for column in frame.columns if column not in columns] if extra else []
    table = frame[columns + rest].reset_index(drop=True)
    for column in table.columns:
        if column == "label":
            table[column] = table[column].astype(np.float64)
            continue
        table[column] = table[column].astype("str")
        if column in ("query_id", "doc_id") and (
            table[column].isna().any() or (table[column] == "").any()
        ):
            raise DataError("The {table} table has an empty {column}.", table=name, column=column)
    if "title" in table.columns:
        table["title"] = table["title"].fillna("")
    return table


def _unique(frame: pd.DataFrame, key: list[str], name: str) -> None:
    repeated = frame[frame.duplicated(key)]
    if len(repeated):
        raise DataError(
            "The {table} table lists {example!r} twice.",
            table=name,
            example=tuple(repeated[key].iloc[0]),
        )


def _closed(ids: Iterable[str], known: set[str], name: str, target: str) -> None:
    unknown = next((value for value in ids if value not in known), None)
    if unknown is not None:
        raise DataError(
            "The {table} mention {example!r}, which is not among the {target}.",
            table=name,
            example=unknown,
            target=target,
        )
