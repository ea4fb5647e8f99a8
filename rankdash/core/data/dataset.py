"""`Dataset`: labelled queries, documents and the first-stage ranking, validated on creation."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.compute as pc

from rankdash.core.base.errors import DataError
from rankdash.core.base.text import html_safe, language_of, notebook_html
from rankdash.core.data.arrays import (
    Coded,
    Integers,
    alike,
    arrow_integers,
    descending_ids,
    has_repeats,
    owners,
    places_in,
    rearranged,
    sort_pairs,
)
from rankdash.core.data.ranking import (
    Ranking,
    coded,
    digest,
    group_rows,
    text_array,
    unique_documents,
)
from rankdash.core.data.weights import Weights, is_number_column, weights_of

FirstStage = Literal["given", "bm25", "corpus-bm25", "corpus-bi-encoder", "corpus-fused", "rows"]
# The method that retrieves candidates from all documents.
Retriever = Literal["bm25", "bi-encoder", "fused"]
# Notebooks show the counts of at most this many different labels.
_SHOWN_LABELS = 10
# Characters of a text that are shown in its name.
_OPENING = 80

MOST_GRADES = 100
"""The highest whole grade that annotators are offered in addition to the labels in use."""


class Tables(NamedTuple):
    """The tables of a `Dataset`, without its candidates."""

    queries: pd.DataFrame
    documents: pd.DataFrame
    qrels: pd.DataFrame


class Dataset:
    """Immutable queries, documents, labels and candidates.

    queries:    query_id (unique str), text (str or missing), then any segment columns (str).
    documents:  doc_id (unique str), title (str, may be empty), text (str or missing).
    qrels:      query_id, doc_id, label (float64, finite; may be fractional or negative), one row
                per pair.
    candidates: the first-stage `Ranking`.
    first_stage: "given" if the order came with the data; else how rankdash made it: "bm25" orders
                only the documents that the files list for a query, "corpus-…" retrieves from all
                documents, "rows" is the order of the rows in the files.
    candidates_name: the name of the file that contains the candidates; "" if there is none.
    id:         a hash of the content (not of the name).

    Every id in `qrels` and `candidates` has a row in `queries` and `documents`; texts that are not
    in the data are missing values there. The properties return copy-on-write frames, so writing to
    one does not change the data set.
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
        candidates_name: str = "",
        codes: Mapping[str, Coded] | None = None,
        known_id: str | None = None,
    ) -> None:
        """Validate the tables. codes: the columns query_id and doc_id of `qrels`, if already
        encoded. known_id: the id, if the content is known to be the hashed one."""
        self._tables, self.__dict__["labels"] = _checked(
            queries, documents, qrels, candidates, codes
        )
        self.name = name
        self.candidates = candidates
        self.first_stage: FirstStage = first_stage
        self.candidates_name = candidates_name
        if known_id is not None:
            self.__dict__["id"] = known_id

    @classmethod
    def of_labels(
        cls,
        name: str,
        labels: Mapping[str, Any],
        candidates: Ranking,
        make: Callable[[], Tables],
        *,
        candidates_name: str = "",
        only_ids: bool = False,
    ) -> Self:
        """Create a data set from labels (as in the property) and a ranking. `make` creates its
        tables, which are validated on first use; metrics do not use them.

        only_ids: the tables contain no texts and only ids that are labelled or ranked.
        """
        dataset = cls.__new__(cls)
        dataset.name, dataset.candidates, dataset.first_stage = name, candidates, "given"
        dataset.candidates_name = candidates_name
        dataset.__dict__["labels"] = labels
        dataset._make, dataset.only_ids = make, only_ids
        return dataset

    _make: Callable[[], Tables]
    only_ids = False

    timings: pd.DataFrame | None = None
    """State and latency of each query in the first stage, as in `Run.queries`; None if they were
    not measured. They are not part of the id."""

    before: Self | None = None
    """The data set with the original labels, if `relabelled` changed any."""

    changed: frozenset[str] = frozenset()
    """The queries with labels changed by `relabelled`."""

    added: str = ""
    """A hash of the documents and texts added by `with_documents`, which `id` does not cover; "" if
    there are none."""

    @cached_property
    def _tables(self) -> Tables:
        return _checked(*self._make(), self.candidates)[0]

    @cached_property
    def labels(self) -> Mapping[str, Any]:
        """The columns of `qrels` with the ids as `Coded`, for joins with rankings."""
        return _labels(self.qrels)

    @cached_property
    def id(self) -> str:
        """A hash of the content (see `content_id`)."""
        return content_id(self.queries, self.documents, self.labels, self.candidates)

    @cached_property
    def label_values(self) -> tuple[float, ...]:
        """The distinct labels in use, ascending."""
        return tuple(float(label) for label in sorted(self.qrels["label"].unique()))

    @cached_property
    def labelled_queries(self) -> int:
        """The number of queries with a label."""
        return len(self.labels["query_id"].texts)

    @property
    def top_grade(self) -> float:
        """The highest label; 1 if none is above 0."""
        highest = self.label_values[-1] if self.label_values else 0.0
        return highest if highest > 0 else 1.0

    @property
    def grades(self) -> tuple[float, ...]:
        """The labels that an annotator can choose, ascending: the whole numbers from 0 to the top
        grade (at most `MOST_GRADES`) and the labels in use."""
        whole = range(int(min(self.top_grade, MOST_GRADES)) + 1)
        return tuple(sorted({*map(float, whole), *self.label_values}))

    @cached_property
    def has_texts(self) -> bool:
        """True if at least one query and one document have a text."""
        return bool((self.query_text() != "").any() and (self.document_text() != "").any())

    @cached_property
    def textless(self) -> frozenset[str]:
        """The documents without a text."""
        texts = self.document_text()
        return frozenset(texts.index[texts.str.strip() == ""])

    @cached_property
    def language(self) -> str:
        """The language of the queries, detected by `language_of`."""
        return language_of(self.query_text())

    @cached_property
    def query_names(self) -> dict[str, str]:
        """Query id → display name: its text, or its id if it has none."""
        texts = self.query_text()
        return {query: text or query for query, text in zip(texts.index, texts, strict=True)}

    @cached_property
    def document_names(self) -> tuple[dict[str, str], dict[str, str]]:
        """Document id → title, and document id → beginning of the text, as display names. A missing
        one is replaced by the other, or by the id if both are missing."""
        ids, texts = list(self.documents["doc_id"]), self.documents["text"].fillna("").str
        ellipsis = np.where(texts.len() > _OPENING, "…", "")
        starts: list[str] = list(texts[:_OPENING].str.rstrip() + ellipsis)
        rows = list(zip(ids, self.documents["title"], starts, strict=True))
        return (
            {doc_id: title or start or doc_id for doc_id, title, start in rows},
            {doc_id: start or title or doc_id for doc_id, title, start in rows},
        )

    def names_of(self, doc_ids: Iterable[str]) -> dict[str, str]:
        """Return document id → title, or the beginning of its text if another one of `doc_ids` has
        the same title, as passages of one article do."""
        titles, openings = self.document_names
        names = {doc: titles.get(doc, doc) for doc in doc_ids}
        often = Counter(names.values())
        return {
            doc: title if often[title] == 1 else openings.get(doc, doc)
            for doc, title in names.items()
        }

    @cached_property
    def document_places(self) -> dict[str, int]:
        """Document id → its row in `documents`."""
        return {doc: place for place, doc in enumerate(self.documents["doc_id"])}

    @cached_property
    def ids_with_blanks(self) -> bool:
        """True if an id of a query or document contains white space, as TREC files do not allow."""
        ids = (self.queries["query_id"], self.documents["doc_id"])
        return any(bool(each.str.contains(r"[ \t\n\r\v\f]", regex=True).any()) for each in ids)

    @property
    def queries(self) -> pd.DataFrame:
        return self._tables.queries.copy(deep=False)

    @property
    def documents(self) -> pd.DataFrame:
        return self._tables.documents.copy(deep=False)

    @property
    def qrels(self) -> pd.DataFrame:
        return self._tables.qrels.copy(deep=False)

    @cached_property
    def segments(self) -> list[str]:
        """The names of the query columns other than id and text, frequency and probability."""
        queries = self.queries
        return [each for each in queries.columns[2:] if not is_number_column(queries, each)]

    def weights(self, query_ids: npt.NDArray[np.object_]) -> Weights:
        """Return the weights of queries per search, (Q,). Raises DataError if this data set has no
        valid frequency of one of them."""
        return weights_of(self.queries, query_ids)

    def relabelled(self, changes: pd.DataFrame) -> Self:
        """Return this data set with changed labels for some pairs; all other data is shared.

        changes: query_id, doc_id, label, one row per pair: NaN removes the label; new pairs are
            appended.

        Raises DataError if a pair is listed twice, refers to a query or document that is not in
        this data set, or has an infinite label.
        """
        new = _table(changes, ["query_id", "doc_id", "label"], "changes")
        _unique(new, ["query_id", "doc_id"], "changes")
        for column, table, name in (
            ("query_id", self.queries, "queries"),
            ("doc_id", self.documents, "documents"),
        ):
            _closed(text_array(new[column]), table[column], "changes", name)
        if np.isinf(new["label"].to_numpy(dtype=np.float64)).any():
            raise DataError("A label is not a finite number.")
        new_labels = {
            (query, doc): label
            for query, doc, label in zip(new["query_id"], new["doc_id"], new["label"], strict=True)
        }
        old = self.qrels
        labels = old["label"].to_numpy(dtype=np.float64).copy()
        near = old["query_id"].isin(new["query_id"]) & old["doc_id"].isin(new["doc_id"])
        for row in np.flatnonzero(near).tolist():
            pair = (old["query_id"].iat[row], old["doc_id"].iat[row])
            labels[row] = new_labels.pop(pair, labels[row])
        added = pd.DataFrame(
            [(*pair, label) for pair, label in new_labels.items() if not np.isnan(label)],
            columns=["query_id", "doc_id", "label"],
        )
        result = copy.copy(self)
        for of_labels in ("id", "label_values", "labels", "labelled_queries"):
            result.__dict__.pop(of_labels, None)
        result.before = self if self.before is None else self.before
        result.changed = self.changed.union(new["query_id"])
        if not np.isnan(labels).any() and np.array_equal(self.labels["label"], old["label"]):
            result.__dict__["labels"] = {
                "query_id": self.labels["query_id"].extended(alike(text_array(added["query_id"]))),
                "doc_id": self.labels["doc_id"].extended(alike(text_array(added["doc_id"]))),
                "label": np.append(labels, added["label"].to_numpy(dtype=np.float64)),
            }
        remaining = old.assign(label=labels)[~np.isnan(labels)]
        labelled = pd.concat([remaining, added]) if len(added) else remaining
        qrels = _table(labelled, ["query_id", "doc_id", "label"], "qrels")
        result._tables = self._tables._replace(qrels=qrels)
        return result

    def frame(self) -> pd.DataFrame:
        """Return one row per query and document with a label or a rank: query_id, query, doc_id,
        title, document, label, rank, score (NaN without one), then the segments of the query, with
        "query " before a name that another column has.

        Queries and documents without a label and a rank are not in it.
        """
        pairs = self.candidates.frame().merge(
            self.qrels, on=["query_id", "doc_id"], how="outer", sort=False
        )
        columns = ["query_id", "query", "doc_id", "title", "document", "label", "rank", "score"]
        names = {name: f"query {name}" if name in columns else name for name in self.segments}
        queries = self.queries.rename(columns={**names, "text": "query"})
        rows = pairs.merge(queries, on="query_id")
        rows = rows.merge(self.documents.rename(columns={"text": "document"}), on="doc_id")
        return rows[[*columns, *names.values()]]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows of `frame` as an Arrow stream, for polars, DuckDB and others."""
        return self.frame().__arrow_c_stream__(requested_schema)

    def named(self, name: str) -> Self:
        """Return this data set, with the same id, and another name."""
        result = copy.copy(self)
        result.__dict__["id"] = self.id
        result.name = name
        return result

    def with_candidates(self, candidates: Ranking, name: str) -> Self:
        """Return this data set, with the same id, and another ranking as its first stage."""
        result = copy.copy(self)
        result.__dict__["id"] = self.id
        result.candidates, result.candidates_name, result.first_stage = candidates, name, "given"
        result.timings = None
        return result

    def with_documents(self, documents: pd.DataFrame) -> Self:
        """Return this data set, with the same id, and the documents of a search engine that it
        lacks. A known document that has no text receives one; all other known ones do not change.

        documents: doc_id, title, text; of rows with the same id the first with a text counts.
        """
        new = unique_documents(_table(documents, ["doc_id", "title", "text"], "documents"))
        known = self.documents
        fetched = new.set_index("doc_id").reindex(known["doc_id"]).reset_index()
        filled = (known["text"].isna() & fetched["text"].notna()).to_numpy()
        titles = fetched["title"].where(known["title"] == "", known["title"])
        known["title"] = known["title"].mask(filled, titles)
        known["text"] = known["text"].mask(filled, fetched["text"])
        added = new[~new["doc_id"].isin(known["doc_id"])]
        result = copy.copy(self)
        result.__dict__["id"] = self.id
        used = new[new["doc_id"].isin([*added["doc_id"], *known["doc_id"][filled]])]
        if len(used):
            columns, order = _by_id(used, "doc_id")
            parts = (part for values, _ in columns.values() for part in _content(values, order))
            result.added = digest([self.added.encode(), *parts])
        for name in ("has_texts", "textless", "document_names", "document_places"):
            result.__dict__.pop(name, None)
        result.__dict__.pop("ids_with_blanks", None)
        table = pd.concat([known, added], ignore_index=True)
        result._tables = self._tables._replace(documents=table)
        return result

    def document_text(self, rows: npt.NDArray[np.intp] | None = None) -> pd.Series[str]:
        """Return doc_id → title and text joined by a space, as a model reads it; "" if missing.
        rows: row numbers of `documents`, in this order; None for all."""
        chosen = self.documents if rows is None else self.documents.iloc[rows]
        text = (chosen["title"] + " " + chosen["text"].fillna("")).str.strip()
        return pd.Series(text.to_numpy(dtype=object), index=chosen["doc_id"])

    def query_text(self) -> pd.Series[str]:
        """Return query_id → text; "" if missing."""
        text = self.queries["text"].fillna("").to_numpy(dtype=object)
        return pd.Series(text, index=self.queries["query_id"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dataset) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def _repr_html_(self) -> str:
        """Show the name and the counts in a notebook."""
        counts = {"queries": len(self.queries), "documents": len(self.documents)}
        counts |= {"ranked documents": len(self.candidates), "labels": len(self.qrels)}
        if len(self.label_values) <= _SHOWN_LABELS:
            grades = self.qrels["label"].value_counts().sort_index()
            counts |= {f"label {grade:g}": int(count) for grade, count in grades.items()}
        table = pd.DataFrame({"": counts}).to_html(header=False)
        kind = "" if self.first_stage == "given" else f", first stage: {self.first_stage}"
        return notebook_html(f"<p>{html_safe(self.name)}{kind}</p>{table}")

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self.queries)} queries, id={self.id})"


def _checked(
    queries: pd.DataFrame,
    documents: pd.DataFrame,
    qrels: pd.DataFrame,
    candidates: Ranking,
    codes: Mapping[str, Coded] | None = None,
) -> tuple[Tables, dict[str, Any]]:
    """Validate and normalise the tables as documented in `Dataset`. Return them and its `labels`.
    Raises DataError if a table is invalid."""
    queries = _table(queries, ["query_id", "text"], "queries", extra=True)
    documents = _table(documents, ["doc_id", "title", "text"], "documents")
    qrels = _table(qrels, ["query_id", "doc_id", "label"], "qrels")
    _unique(queries, ["query_id"], "queries")
    _unique(documents, ["doc_id"], "documents")
    labels = _labels(qrels, codes)
    groups = group_rows(labels["query_id"])
    if has_repeats(groups.arrange(labels["doc_id"].codes), groups.offsets):
        _unique(qrels, ["query_id", "doc_id"], "qrels")
    if not np.isfinite(labels["label"]).all():
        raise DataError("A label is not a finite number.")
    ranked = {"query_id": text_array(candidates.query_ids), "doc_id": candidates.documents}
    labelled = {key: labels[key].texts for key in ranked}
    for table, named in (("qrels", labelled), ("candidates", ranked)):
        _closed(named["query_id"], queries["query_id"], table, "queries")
        _closed(named["doc_id"], documents["doc_id"], table, "documents")
    return Tables(queries, documents, qrels), labels


def _labels(qrels: pd.DataFrame, codes: Mapping[str, Coded] | None = None) -> dict[str, Any]:
    """Return `Dataset.labels`; codes: the encoded id columns, if available."""
    ids = codes or {key: coded(qrels[key]) for key in ("query_id", "doc_id")}
    return {**ids, "label": qrels["label"].to_numpy(dtype=np.float64)}


def _table(
    frame: pd.DataFrame, columns: list[str], name: str, *, extra: bool = False
) -> pd.DataFrame:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise DataError("The {table} table lacks {missing}.", table=name, missing=missing)
    rest = [column for column in frame.columns if column not in columns] if extra else []
    table = frame[columns + rest].reset_index(drop=True)
    for column in table.columns:
        if column == "label" and column not in rest:
            table[column] = table[column].astype(np.float64)
            continue
        table[column] = table[column].astype("str")
        if column in {"query_id", "doc_id"}.difference(rest) and (
            table[column].isna().any() or (table[column] == "").any()
        ):
            raise DataError("The {table} table has an empty {column}.", table=name, column=column)
    if "title" in columns:
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


def _closed(named: Any, known: pd.Series[str], name: str, target: str) -> None:
    """Raise DataError if an id of `named` (Arrow text) is not in `known`."""
    every = alike(named).unique()
    unknown = np.flatnonzero(places_in(alike(text_array(known)), every) < 0)
    if len(unknown):
        raise DataError(
            "The {table} mention {example!r}, which is not among the {target}.",
            table=name,
            example=every[int(unknown[0])].as_py(),
            target=target,
        )


# The id of a data set: a hash of its content that does not depend on the order of its rows.


def content_id(
    queries: pd.DataFrame, documents: pd.DataFrame, labels: Mapping[str, Any], ranked: Ranking
) -> str:
    """Return the hash of the content of a `Dataset`: its tables, its property `labels` and its
    candidates `ranked`. A million candidates take a quarter of a second."""
    ids = text_array(ranked.query_ids)
    # For each table: its columns and the order of its rows. A column is a pair: values and the
    # codes that refer to them, or None if it has one value per row.
    tables: tuple[tuple[dict[str, tuple[Any, Any]], Integers], ...] = (
        _by_id(queries, "query_id"),
        _by_id(documents, "doc_id"),
        (
            {
                "query_id": (labels["query_id"].texts, labels["query_id"].codes),
                "doc_id": (labels["doc_id"].texts, labels["doc_id"].codes),
                "label": (labels["label"], None),
            },
            _by_ids(labels["query_id"], labels["doc_id"]),
        ),
        (
            {
                "query_id": (ids, owners(ranked.offsets)),
                "doc_id": (ranked.documents, ranked.docs),
                "score": (ranked.scores, None),
            },
            rearranged(np.diff(ranked.offsets), np.argsort(_places(ids)))[1],
        ),
    )
    return digest(
        part
        for columns, order in tables
        for name, (values, codes) in columns.items()
        for part in (name.encode(), *_content(values, order if codes is None else codes[order]))
    )


def _places(ids: Any) -> Integers:
    """Return (N,) the position of each of N distinct ids (Arrow text) in ascending order."""
    return len(ids) - 1 - descending_ids(ids)


def _by_id(frame: pd.DataFrame, key: str) -> tuple[dict[str, tuple[Any, Any]], Integers]:
    """Return the columns of a table of texts, and its row numbers ordered by id."""
    columns = {str(name): (text_array(values), None) for name, values in frame.items()}
    return columns, np.argsort(_places(columns[key][0]))


def _by_ids(queries: Coded, documents: Coded) -> Integers:
    """Return the row numbers of pairs ordered by query id and document id."""
    groups = group_rows(queries)
    places = _places(documents.texts)[groups.arrange(documents.codes)]
    bounds = len(queries.texts), len(documents.texts)
    within = sort_pairs(owners(groups.offsets), places, bounds)[1]
    by_query = np.argsort(_places(queries.texts))
    order = within[rearranged(np.diff(groups.offsets), by_query)[1]]
    return order if groups.rows is None else groups.rows[order]


def _content(values: Any, rows: Integers) -> tuple[bytes | memoryview, ...]:
    """Return the bytes of some rows: the values of a NumPy array; for Arrow text the lengths in
    characters, the flags of missing texts and the UTF-8 bytes."""

    def plain(numbers: npt.NDArray[Any]) -> memoryview:
        return numbers[rows].view(np.uint8).data

    if isinstance(values, np.ndarray):
        return (plain(values),)
    texts = values.fill_null("")
    size = int(pc.binary_length(texts).to_numpy()[rows].sum())
    return (
        plain(pc.utf8_length(texts).to_numpy().astype(np.int64)),
        plain(values.is_null().to_numpy(zero_copy_only=False)),
        # The buffer is contiguous; joining a million strings would take a second.
        memoryview(texts.take(arrow_integers(rows)).buffers()[2])[:size] if size else b"",
    )
