"""Conversion of a table with known fields to a `ParsedFile` of checked rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import Finding
from rankdash.core.data.arrays import ArrowText, Coded
from rankdash.core.readers.join.parsed_file import Pairs, ParsedFile, Role, Scores, texts
from rankdash.core.readers.parse.annotators import (
    cannot_tell,
    draws_of,
    names_draws,
    sampled_findings,
    word_finding,
)
from rankdash.core.readers.parse.columns import (
    SYSTEM,
    MappingNeeded,
    id_and_text,
    is_id,
    suspicious,
    systems_in,
    trimmed_ids,
)
from rankdash.core.readers.parse.limits import counted
from rankdash.core.readers.parse.source import Source, stem_of
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.values import Flags, Floats, Texts, blank, labels, numbers

Key = Literal["query_id", "doc_id"]
_SIDES: dict[Key, str] = {"query_id": "queries", "doc_id": "documents"}
_QUERIES = re.compile(r"quer|question|topic|查询|问题", re.IGNORECASE)
_DOCUMENTS = re.compile(r"corpus|doc|passage|collection|文档|段落", re.IGNORECASE)


def queries_part(table: Table, fields: Mapping[str, str], source: Source) -> ParsedFile:
    """Read queries; `fields` has query, query_id or both; further columns become segments."""
    frame, queries, part = _rows_of(table, fields, source, "query_id", "query")
    for column in frame.columns:
        is_segment = column not in fields.values() and not is_id(str(column))
        if is_segment and not blank(frame[column].to_numpy(dtype=object)).all():
            queries[_free_name(column, queries)] = frame[column]
    return replace(part, queries=queries.reset_index(drop=True))


def documents_part(table: Table, fields: Mapping[str, str], source: Source) -> ParsedFile:
    """Read documents; `fields` has document, doc_id or both, and may have a title."""
    frame, documents, part = _rows_of(table, fields, source, "doc_id", "document")
    documents.insert(1, "title", _cells(frame, fields.get("title")))
    return replace(part, documents=documents.reset_index(drop=True))


def _rows_of(
    table: Table, fields: Mapping[str, str], source: Source, identity: Key, text: str
) -> tuple[pd.DataFrame, pd.DataFrame, ParsedFile]:
    """Return the rows with unique ids, their ids and texts, and a part without them."""
    ids = fields.get(identity, fields.get(text, ""))
    frame, notes = _one_row_an_id(table, fields, ids, text)
    entries = pd.DataFrame({identity: frame[ids]}, dtype=object).assign(
        text=_cells(frame, fields.get(text))
    )
    part = ParsedFile(
        table.file,
        source.origin,
        f"{table.format}, {_SIDES[identity]}",
        table.refusals,
        keyed_by_text=frozenset() if identity in fields else frozenset({identity}),
        findings=(*table.findings, *notes),
    )
    return frame, entries, part


def settle(
    unsettled: Sequence[tuple[Table, Source]], parts: Sequence[ParsedFile]
) -> list[ParsedFile]:
    """Read tables of `id` and `text` that contain either queries or documents.

    The ids decide: ids that labels and rankings use for queries are queries. If both fit, the
    file's name decides, then whether queries or documents are still missing. Raises MappingNeeded
    if the table remains ambiguous.
    """
    if not unsettled:
        return []
    unsettled = [(trimmed_ids(table, _columns(table)[:1]), source) for table, source in unsettled]
    present = {
        key: any(getattr(part, side) is not None for part in parts) for key, side in _SIDES.items()
    }
    # The ids of queries and of documents in labels, rankings and rows.
    sides = [
        {each for part in parts if key not in part.keyed_by_text for each in part.mentioned(key)}
        for key in _SIDES
    ]
    settled: list[ParsedFile] = []
    doubtful: list[tuple[Table, Source]] = []

    def read(table: Table, source: Source, key: Key) -> None:
        identity, text = _columns(table)
        present[key] = True
        settled.append(
            queries_part(table, {"query_id": identity, "query": text}, source)
            if key == "query_id"
            else documents_part(table, {"doc_id": identity, "document": text}, source)
        )

    for table, source in unsettled:
        ids = set(table.frame[_columns(table)[0]].dropna())
        queries, documents = (len(ids & expected) / max(len(expected), 1) for expected in sides)
        name = stem_of(table.file)
        named = bool(_QUERIES.search(name)) - bool(_DOCUMENTS.search(name))
        if surer := (queries - documents) or named:
            read(table, source, "query_id" if surer > 0 else "doc_id")
        else:
            doubtful.append((table, source))
    for table, source in doubtful:
        missing = [key for key, has in present.items() if not has]
        if len(missing) != 1:
            raise MappingNeeded(table.file, table.frame, "query or document")
        read(table, source, missing[0])
    return settled


def _columns(table: Table) -> tuple[str, str]:
    columns = id_and_text(table.frame)
    return columns or (str(table.frame.columns[0]), str(table.frame.columns[1]))


def _cells(frame: pd.DataFrame, column: str | None) -> pd.Series[Any]:
    """Return the column, or a column of None."""
    if column is None:
        return pd.Series([None] * len(frame), index=frame.index, dtype=object)
    return frame[column]


def _one_row_an_id(
    table: Table, fields: Mapping[str, str], column: str, text: str
) -> tuple[pd.DataFrame, list[Finding]]:
    """Return the first row of each id, and findings. Rows with another text for an id are
    refused."""
    frame = table.frame
    ids = frame[column].to_numpy(dtype=object)
    missing = blank(ids)
    table.refuse(f"no_{text}", np.flatnonzero(missing))
    again = pd.Series(ids, dtype=object).duplicated().to_numpy() & ~missing
    texts = frame[[fields[field] for field in (text, "title") if field in fields]].fillna("")
    content = pd.factorize(pd.MultiIndex.from_frame(texts))[0] if len(texts.columns) else ids
    other = again & (content != pd.Series(content).groupby(ids).transform("first").to_numpy())
    table.refuse("repeated_id", np.flatnonzero(other))
    table.refusals.stop_if_most(len(frame))
    same = int((again & ~other).sum())
    template = "Rows with a repeated id and text, which were read once: {count}."
    notes = [counted("note", "repeated_rows", template, same, file=table.file)] if same else []
    return frame[~missing & ~again], notes


def _one_each(values: Texts, codes: npt.NDArray[np.intp]) -> tuple[Texts, Flags]:
    """Return (G,) the first non-blank value of each group, or None; and (G,) flags of groups with
    several values."""
    groups = int(codes.max()) + 1 if len(codes) else 0
    kinds, unique = pd.factorize(values)
    nonblank = np.append(~blank(np.asarray(unique, dtype=object)), False)
    filled = np.flatnonzero(nonblank[kinds])
    first = np.full(groups, -1, dtype=np.int64)
    # Assigned from the last to the first, so that the first one remains.
    first[codes[filled][::-1]] = kinds[filled][::-1]
    varying = np.zeros(groups, dtype=bool)
    varying[codes[filled][kinds[filled] != first[codes[filled]]]] = True
    chosen = np.full(groups, None, dtype=object)
    chosen[first >= 0] = np.asarray(unique, dtype=object)[first[first >= 0]]
    return chosen, varying


def _free_name(column: str, frame: pd.DataFrame) -> str:
    """Return a name for a segment that `frame` does not use yet."""
    name = column
    while name in frame.columns:
        name += " (2)"
    return name


# Rows of a query and a document.

# Field of the first stage → code of the reason for an invalid value.
_BAD = {"score": "bad_score", "rank": "bad_rank"}


def part_of(
    table: Table,
    fields: Mapping[str, str],
    source: Source,
    words: Mapping[str, float | None] | None = None,
) -> ParsedFile:
    """Read rows of (query, document, and a label, a score or a rank).

    words: word → label, set by the user; None if a word is not a label.

    A row is refused for the first reason that applies. Raises FormatError if more than half of the
    rows are refused.
    """
    rows = _Rows(table, fields, words)
    rows.check()
    table.refusals.stop_if_most(len(table) + table.refusals.count - rows.refused)
    keyed = frozenset(
        key
        for key, text in (("query_id", "query"), ("doc_id", "document"))
        if key not in fields and text in fields
    )
    with_texts = "query" in fields or "document" in fields
    kind = "rows with texts" if with_texts else "labels" if "label" in fields else "a ranking"
    scores = rows.scores("label" in fields or with_texts)
    pairs = None
    if with_texts or ("label" not in fields and not scores):
        pairs = rows.keys().drop_duplicates(ignore_index=True)
    draws = rows.draws()
    return ParsedFile(
        file=table.file,
        origin=source.origin,
        format=table.format if table.fields else f"{table.format}, {kind}",
        refusals=table.refusals,
        queries=rows.queries(),
        documents=rows.documents(),
        labels=rows.labels(),
        draws=draws,
        outcomes=table.outcomes,
        pairs=pairs,
        scores=scores,
        keyed_by_text=keyed,
        findings=(
            *table.findings,
            *rows.findings,
            *suspicious(table, fields),
            *sampled_findings(table.file, draws),
        ),
    )


class _Rows:
    """The valid rows of one table, and the findings about them."""

    def __init__(
        self,
        table: Table,
        fields: Mapping[str, str],
        words: Mapping[str, float | None] | None,
    ) -> None:
        self._table, self._words, self._fields = table, words, fields
        self._keep = np.ones(len(table), dtype=bool)
        self._coded: dict[str, Coded] = {}
        self._query = fields.get("query_id", fields.get("query", ""))
        self._document = fields.get("doc_id", fields.get("document", ""))
        self._labels: Floats | None = None
        self._numbers: dict[str, Floats] = {}
        self.findings: list[Finding] = []
        self.refused = 0
        self.cannot_tell = np.zeros(len(table), dtype=bool)

    def _texts(self, column: str) -> Texts:
        return self._table.frame[column].to_numpy(dtype=object)

    def _ids(self, column: str) -> Coded:
        if column not in self._coded:
            self._coded[column] = Coded.of(self._table.values(column))
        return self._coded[column]

    def _empty(self, column: str) -> Flags:
        """Return (N,) flags: True if the id is missing, empty or only white space."""
        ids = self._ids(column)
        empty = np.append(blank(ids.texts), True)
        if not empty[:-1].any() and (ids.codes >= 0).all():
            return np.zeros(len(ids), dtype=bool)
        return empty[ids.codes]

    def check(self) -> None:
        self._refuse("no_query", self._empty(self._query))
        self._refuse("no_document", self._empty(self._document))
        for field, column in self._rankings():
            values = numbers(self._table.values(column))
            bad = ~np.isfinite(values)
            if field == "rank":
                bad |= np.floor(values) != values
            self._numbers[field] = values
            if bad.any():
                self._refuse(_BAD.get(field, "bad_score"), bad & ~blank(self._table.arrow(column)))
        if "label" in self._fields:
            self._check_labels(self._table.arrow(self._fields["label"]))
        elif self._numbers and not self._table.unranked:
            self._refuse(_BAD.get(next(iter(self._numbers)), "bad_score"), ~self._ranked())
        self._note_unranked()
        self._compare_rank_and_score()
        self._find_gaps()

    def _rankings(self) -> list[tuple[str, str]]:
        """Return (field, column) of rankings: "score", "rank", or the column of a system."""
        ranking_columns = [(field, self._fields[field]) for field in _BAD if field in self._fields]
        systems = systems_in(self._table.columns)
        system_columns = [self._fields["reranked"]] if "reranked" in self._fields else []
        used = {column for field, column in self._fields.items() if field != "reranked"}
        if system_columns:
            system_columns = [
                *system_columns,
                *(each for each in systems if each not in system_columns and each not in used),
            ]
        return [*ranking_columns, *((column, column) for column in system_columns)]

    def _ranked(self) -> Flags:
        """Return (N,) flags: True if a row is in any ranking of the file."""
        ranked = np.zeros(len(self._keep), dtype=bool)
        for values in self._numbers.values():
            ranked |= np.isfinite(values)
        return ranked

    def _note_unranked(self) -> None:
        """Add a note about labels without a rank or score, whose documents are not ranked."""
        if "label" not in self._fields:
            return
        for field, values in self._order().items():
            missing = int((np.isnan(values) & self._keep).sum())
            if missing:
                self._note(
                    "unranked_rows",
                    "Rows with an empty {column}: {count}. Their labels count; their documents are "
                    "not in this ranking.",
                    missing,
                    column=self._fields.get(field, field),
                )

    def _refuse(self, code: str, bad: Flags) -> None:
        positions = np.flatnonzero(bad & self._keep)
        self._keep[positions] = False
        self.refused += len(positions)
        self._table.refuse(code, positions)

    def _check_labels(self, texts: ArrowText) -> None:
        read = labels(texts, self._words)
        self._labels = read.values
        if np.isfinite(read.values).all() and not read.words:
            return
        empty_cells = blank(texts)
        unsure = cannot_tell(texts)
        if unsure.any():
            self.cannot_tell = unsure
            self._keep &= ~unsure
            self._note(
                "cannot_tell",
                'Labels "cannot tell": {count}. These documents count as unlabelled.',
                int(unsure.sum()),
            )
        self._refuse("bad_label", ~np.isfinite(read.values) & ~empty_cells)
        ranked = self._ranked()
        unlabelled = int((empty_cells & ranked & self._keep).sum())
        if unlabelled:
            self._note(
                "unlabelled_rows",
                "Rows without a label, used as unjudged candidates: {count}.",
                unlabelled,
            )
        if not self._table.unranked:
            self._refuse("no_label", empty_cells & ~ranked)
        if read.words:
            self.findings.append(word_finding(self._table.file, read.words, self._words))

    def _note(self, code: str, template: str, count: int, **params: Any) -> None:
        note = counted("note", code, template, count, file=self._table.file, **params)
        self.findings.append(note)

    def _compare_rank_and_score(self) -> None:
        if not {"rank", "score"} <= self._numbers.keys():
            return
        codes = self._ids(self._query).codes
        rank, score = self._numbers["rank"], self._numbers["score"]
        keep = self._keep & np.isfinite(rank) & np.isfinite(score)
        if not keep.all():
            codes, rank, score = codes[keep], rank[keep], score[keep]
        # Sorting a million rows by two keys takes longer than reading them.
        order = None if in_order(codes, rank) else np.lexsort((rank, codes))
        if order is not None:
            codes, score = codes[order], score[order]
        rises = np.flatnonzero((score[1:] > score[:-1]) & (codes[1:] == codes[:-1])) + 1
        if not len(rises):
            return
        queries = np.unique(codes[rises])
        second = int(rises[0] if order is None else order[rises[0]])
        self.findings.append(
            counted(
                "warning",
                "rank_against_score",
                "Queries whose rank column contradicts the scores: {count} of {queries}. The "
                "scores determine the order, as in trec_eval.",
                len(queries),
                "If the ranks are correct, write scores that decrease with rank.",
                self._table.file,
                int(self._table.lines[keep][second]),
                [self._table.row_text(int(np.flatnonzero(keep)[second]))],
                queries=len(np.unique(codes)),
            )
        )

    def _find_gaps(self) -> None:
        """Warn about gaps: ranks 2, 5 would become 1 and 2, which makes metrics too high."""
        if "rank" not in self._order():
            return
        ranks = self._numbers["rank"]
        keep = self._keep & np.isfinite(ranks)
        ids = self._ids(self._query)
        rows = pd.DataFrame({"query": ids.codes[keep], "rank": ranks[keep]})
        by_query = rows.groupby("query", sort=False)["rank"]
        lowest, highest = by_query.min(), by_query.max()
        gaps = (lowest > 1) | (highest - lowest >= by_query.nunique())
        if not gaps.any():
            return
        self.findings.append(
            counted(
                "warning",
                "rank_gaps",
                "Queries with gaps in their ranks: {count} of {queries}. The missing documents are "
                "not in the file, so the others move up and the metrics are too high.",
                int(gaps.sum()),
                "Add a row for each document that the search returned, with an empty label if it "
                "is unjudged.",
                self._table.file,
                examples=[ids.texts[code].as_py() for code in gaps.index[gaps][:5].tolist()],
                queries=len(gaps),
            )
        )

    def keys(self, rows: Flags | None = None) -> pd.DataFrame:
        """Return query_id and doc_id of rows, by default of the valid ones."""
        columns = {"query_id": self._query, "doc_id": self._document}
        rows = self._keep if rows is None else rows
        cells = {key: self._texts(column)[rows] for key, column in columns.items()}
        return pd.DataFrame(cells, dtype=object)

    def labels(self) -> Pairs:
        return self._pairs(self._labels) if self._labels is not None else Pairs.none()

    def draws(self) -> pd.DataFrame | None:
        """Return the sampling draw of each label, or None if the file has no draws."""
        if self._labels is None or not names_draws(self._table):
            return None
        answered = (self._keep & ~np.isnan(self._labels)) | self.cannot_tell
        frame = self.keys(answered).assign(cannot_tell=self.cannot_tell[answered])
        return draws_of(self._table, frame.set_index(np.flatnonzero(answered)))

    def _pairs(self, values: Floats) -> Pairs:
        """Return the valid rows with a value."""
        rows = self._keep & ~np.isnan(values)
        pairs = Pairs(self._ids(self._query), self._ids(self._document), values, self._table.lines)
        return pairs if rows.all() else pairs.taken(rows)

    def scores(self, among_rows: bool) -> tuple[Scores, ...]:
        """Return the rankings in these rows. among_rows: the file has labels or texts too."""
        role: Role = "first stage" if among_rows else "run"
        rankings: list[Scores] = []
        for field, values in self._order().items():
            pairs = self._pairs(-values if field == "rank" else values)
            if len(pairs) and field in _BAD:
                rankings.append(Scores(stem_of(self._table.file), role, pairs))
            elif len(pairs):
                rankings.append(Scores(field.removeprefix(SYSTEM), "system", pairs))
        return tuple(rankings)

    def _order(self) -> dict[str, Floats]:
        """Return field → (N,) values per ranking, NaN if a row is not in the ranking. Ranks are
        used if there are no scores, or if a row with a rank has none."""
        orders = dict(self._numbers)
        if {"rank", "score"} <= orders.keys():
            by_rank = self._keep & np.isfinite(orders["rank"])
            del orders["rank" if np.isfinite(orders["score"][by_rank]).all() else "score"]
        return orders

    def queries(self) -> pd.DataFrame | None:
        """Return query_id, text and segments, which are columns with one value per query."""
        if "query" not in self._fields:
            return None
        ids = self._texts(self._query)[self._keep]
        codes, unique = pd.factorize(ids)
        queries = pd.DataFrame({"query_id": unique}, dtype=object)
        queries["text"] = self._one_text(ids, codes, self._fields["query"])
        ignored: list[str] = []
        for column in self._table.frame.columns:
            if column in self._fields.values() or column in self._numbers:
                continue
            values, varying = _one_each(self._texts(column)[self._keep], codes)
            if varying.any() or is_id(column):
                ignored.append(column)
            elif any(value for value in values):
                queries[_free_name(column, queries)] = texts(values)
        if ignored:
            self._note(
                "ignored_columns",
                "Columns not used, because they have several values per query: {columns}.",
                len(ignored),
                columns=", ".join(ignored),
            )
        return queries

    def documents(self) -> pd.DataFrame | None:
        if "document" not in self._fields and "title" not in self._fields:
            return None
        ids = self._texts(self._document)[self._keep]
        codes, unique = pd.factorize(ids)
        documents = pd.DataFrame({"doc_id": unique}, dtype=object)
        for field, target in (("title", "title"), ("document", "text")):
            documents[target] = texts([None] * len(unique))
            if field in self._fields:
                documents[target] = self._one_text(ids, codes, self._fields[field])
        return documents

    def _one_text(self, ids: Texts, codes: npt.NDArray[np.intp], column: str) -> pd.Series[Any]:
        """Return the text of each id, the first if there are several."""
        text, varying = _one_each(self._texts(column)[self._keep], codes)
        rows = np.flatnonzero(varying[codes])
        names = list(dict.fromkeys(ids[rows]))
        if not names:
            return texts(text)
        self.findings.append(
            counted(
                "warning",
                "texts_differ",
                "Ids with more than one text in the column {column}: {count}. The first text is "
                "used.",
                len(names),
                "Use a unique id for each query and each document.",
                self._table.file,
                int(self._table.lines[self._keep][rows[0]]),
                names,
                column=column,
            )
        )
        return texts(text)


def in_order(codes: npt.NDArray[np.int32], ranks: Floats) -> bool:
    """Return whether rows are sorted by code, then by rank."""
    rises = codes[1:] > codes[:-1]
    return bool((rises | ((codes[1:] == codes[:-1]) & (ranks[1:] >= ranks[:-1]))).all())
