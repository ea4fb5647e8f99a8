"""From a table with its fields to a `ParsedFile`: checked rows, sorted into what they say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import Finding
from rankdash.core.data.arrays import ArrowText, Coded
from rankdash.core.readers.join.parsed_file import Pairs, ParsedFile, Role, Scores, texts
from rankdash.core.readers.parse.annotators import word_finding
from rankdash.core.readers.parse.columns import SYSTEM, is_id, suspicious, systems_in
from rankdash.core.readers.parse.drawn import cannot_tell, drawn_finding, draws_of, names_draws
from rankdash.core.readers.parse.source import Source, stem_of
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.texts import free_name, one_each
from rankdash.core.readers.parse.values import blank, labels, numbers

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

# The first stage's values → why a row is refused where one cannot be read.
_BAD = {"score": "bad_score", "rank": "bad_rank"}


def part_of(
    table: Table,
    fields: Mapping[str, str],
    source: Source,
    words: Mapping[str, float | None] | None = None,
) -> ParsedFile:
    """Read rows of (query, document, and a label, a score or a rank).

    words: word → label, from a person, where labels are words; None where a word is no label.

    Every row is refused for the first reason that holds, the others are kept. Raises FormatError
    where more than half are refused.
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
    scores = rows.scores("label" in fields or with_texts)
    pairs = None
    if with_texts or ("label" not in fields and not scores):
        pairs = rows.keys().drop_duplicates(ignore_index=True)
    draws = rows.draws()
    drawn = [] if draws is None else [drawn_finding(table.file, draws)]
    return ParsedFile(
        file=table.file,
        origin=source.origin,
        format=table.format if table.fields else f"{table.format}, {_kind(fields)}",
        refusals=table.refusals,
        queries=rows.queries(),
        documents=rows.documents(),
        labels=rows.labels(),
        draws=draws,
        pairs=pairs,
        scores=scores,
        keyed_by_text=keyed,
        findings=(*table.findings, *rows.findings, *suspicious(table, fields), *drawn),
    )


def _kind(fields: Mapping[str, str]) -> str:
    """What rows with these fields are called."""
    if "query" in fields or "document" in fields:
        return "rows with texts"
    return "labels" if "label" in fields else "a ranking"


class _Rows:
    """The rows of one table that are still kept, and what was noticed about them."""

    def __init__(
        self,
        table: Table,
        fields: Mapping[str, str],
        words: Mapping[str, float | None] | None,
    ) -> None:
        self._table = table
        self._words = words
        self._fields = fields
        self._keep = np.ones(len(table), dtype=bool)
        self._coded: dict[str, Coded] = {}
        self._query = fields.get("query_id", fields.get("query", ""))
        self._document = fields.get("doc_id", fields.get("document", ""))
        self._labels: Floats | None = None
        self._numbers: dict[str, Floats] = {}
        self.findings: list[Finding] = []
        self.refused = 0
        self.cannot_tell = np.zeros(len(table), dtype=bool)

    def _texts(self, column: str) -> npt.NDArray[np.object_]:
        return self._table.frame[column].to_numpy(dtype=object)

    def _ids(self, column: str) -> Coded:
        if column not in self._coded:
            self._coded[column] = Coded.of(self._table.values(column))
        return self._coded[column]

    def _empty(self, column: str) -> Flags:
        """(N,) whether the id is missing, empty, or only white space."""
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
        elif self._numbers:
            self._refuse(_BAD.get(next(iter(self._numbers)), "bad_score"), ~self._ranked())
        self._note_unranked()
        self._compare_rank_and_score()
        self._find_gaps()

    def _rankings(self) -> list[tuple[str, str]]:
        """(field, column) of what ranks documents: "score", "rank", or a system's own column."""
        found = [(field, self._fields[field]) for field in _BAD if field in self._fields]
        systems = systems_in(self._table.columns)
        own = [self._fields["reranked"]] if "reranked" in self._fields else []
        used = {column for field, column in self._fields.items() if field != "reranked"}
        if own:
            own = [*own, *(each for each in systems if each not in own and each not in used)]
        return [*found, *((column, column) for column in own)]

    def _ranked(self) -> Flags:
        """Whether a row is in any ranking of the file."""
        given = [np.isfinite(values) for values in self._numbers.values()]
        return np.any(given, axis=0) if given else np.zeros(len(self._keep), dtype=bool)

    def _note_unranked(self) -> None:
        """A label without a rank or a score is one of a document that the ranking lacks."""
        if "label" not in self._fields:
            return
        for field, values in self._order().items():
            missing = int((np.isnan(values) & self._keep).sum())
            if missing:
                self._note(
                    "unranked_rows",
                    "Rows with an empty {column}: {count}. Their labels count; their documents are "
                    "not in this ranking.",
                    count=missing,
                    column=self._fields.get(field, field),
                )

    def _refuse(self, code: str, bad: Flags) -> None:
        positions = np.flatnonzero(bad & self._keep)
        self._keep[positions] = False
        self.refused += len(positions)
        examples = [self._table.row_text(int(position)) for position in positions[:5]]
        self._table.refusals.add(code, self._table.lines[positions], examples)

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
                "Labels that say that it cannot be told: {count}. These documents have no label.",
                count=int(unsure.sum()),
            )
        self._refuse("bad_label", ~np.isfinite(read.values) & ~empty_cells)
        ranked = self._ranked()
        unlabelled = int((empty_cells & ranked & self._keep).sum())
        if unlabelled:
            self._note(
                "unlabelled_rows",
                "Rows without a label, used as unjudged candidates: {count}.",
                count=unlabelled,
            )
        self._refuse("no_label", empty_cells & ~ranked)
        if read.words:
            self.findings.append(word_finding(self._table.file, read.words, self._words))

    def _note(self, code: str, template: str, *, count: int = 1, **params: object) -> None:
        self.findings.append(
            Finding(
                "note",
                code,
                template,
                {"count": count, **params},
                file=self._table.file,
                count=count,
            )
        )

    def _compare_rank_and_score(self) -> None:
        if not {"rank", "score"} <= self._numbers.keys():
            return
        codes, rank, score = (
            self._ids(self._query).codes,
            self._numbers["rank"],
            self._numbers["score"],
        )
        keep = self._keep & np.isfinite(rank) & np.isfinite(score)
        if not keep.all():
            codes, rank, score = codes[keep], rank[keep], score[keep]
        # To sort a million rows by two keys takes longer than to read them.
        order = None if in_order(codes, rank) else np.lexsort((rank, codes))
        if order is not None:
            codes, score = codes[order], score[order]
        rises = np.flatnonzero((score[1:] > score[:-1]) & (codes[1:] == codes[:-1])) + 1
        if not len(rises):
            return
        queries = np.unique(codes[rises])
        second = int(rises[0] if order is None else order[rises[0]])
        line = int(self._table.lines[keep][second])
        self.findings.append(
            Finding(
                "warning",
                "rank_against_score",
                "Queries whose rank column contradicts the scores: {count} of {queries}. The "
                "order is taken from the scores, as trec_eval does.",
                {"count": len(queries), "queries": len(np.unique(codes))},
                "If the ranks are the truth, write scores that fall with the rank.",
                self._table.file,
                line,
                len(queries),
                (self._table.row_text(int(np.flatnonzero(keep)[second])),),
            )
        )

    def _find_gaps(self) -> None:
        """Ranks 2, 5 without 1, 3, 4 would become places 1 and 2, and every metric too high."""
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
            Finding(
                "warning",
                "rank_gaps",
                "Queries whose ranks leave out places: {count} of {queries}. The documents in "
                "between are not in the file, so the others move up and the metrics are too high.",
                {"count": int(gaps.sum()), "queries": len(gaps)},
                "Add a row for each document that the search returned, with an empty label where "
                "nobody judged it.",
                self._table.file,
                count=int(gaps.sum()),
                examples=tuple(ids.texts[code].as_py() for code in gaps.index[gaps][:5].tolist()),
            )
        )

    def keys(self) -> pd.DataFrame:
        """query_id and doc_id of the kept rows."""
        return pd.DataFrame(
            {
                "query_id": self._texts(self._query)[self._keep],
                "doc_id": self._texts(self._document)[self._keep],
            },
            dtype=object,
        )

    def labels(self) -> Pairs:
        return self._pairs(self._labels) if self._labels is not None else Pairs.none()

    def draws(self) -> pd.DataFrame | None:
        """In which draw each label came, where the file says so."""
        if self._labels is None or not names_draws(self._table):
            return None
        said = (self._keep & ~np.isnan(self._labels)) | self.cannot_tell
        ids = {"query_id": self._texts(self._query), "doc_id": self._texts(self._document)}
        frame = pd.DataFrame(ids, dtype=object).assign(cannot_tell=self.cannot_tell)
        return draws_of(self._table, frame[said])

    def _pairs(self, values: Floats) -> Pairs:
        """The kept rows that have a value."""
        rows = self._keep & ~np.isnan(values)
        found = Pairs(self._ids(self._query), self._ids(self._document), values, self._table.lines)
        return found if rows.all() else found.taken(rows)

    def scores(self, among_rows: bool) -> tuple[Scores, ...]:
        """The rankings in these rows; `among_rows`: they stand beside labels or texts."""
        role: Role = "first stage" if among_rows else "run"
        found: list[Scores] = []
        for field, values in self._order().items():
            pairs = self._pairs(-values if field == "rank" else values)
            if len(pairs) and field in _BAD:
                found.append(Scores(stem_of(self._table.file), role, pairs))
            elif len(pairs):
                found.append(Scores(field.removeprefix(SYSTEM), "system", pairs))
        return tuple(found)

    def _order(self) -> dict[str, Floats]:
        """field → (N,) values, NaN where a row is not in the ranking: of each ranking in the rows.
        Ranks give the order where there are no scores, or rows with a rank have none."""
        found = dict(self._numbers)
        if {"rank", "score"} <= found.keys():
            by_rank = self._keep & np.isfinite(found["rank"])
            del found["rank" if np.isfinite(found["score"][by_rank]).all() else "score"]
        return found

    def queries(self) -> pd.DataFrame | None:
        """query_id, text and segments: the columns that say one thing for each query."""
        if "query" not in self._fields:
            return None
        ids = self._texts(self._query)[self._keep]
        codes, unique = pd.factorize(ids)
        found = pd.DataFrame({"query_id": unique}, dtype=object)
        text, varying = one_each(self._texts(self._fields["query"])[self._keep], codes)
        if varying.any():
            self._other_texts(ids, codes, self._fields["query"], varying)
        found["text"] = texts(text)
        ignored: list[str] = []
        for column in self._table.frame.columns:
            if column in self._fields.values() or column in self._numbers:
                continue
            values, varying = one_each(self._texts(column)[self._keep], codes)
            if varying.any() or is_id(column):
                ignored.append(column)
            elif any(value for value in values):
                found[free_name(column, found)] = texts(values)
        if ignored:
            self._note(
                "ignored_columns",
                "Columns not used, since they describe more than the query: {columns}.",
                count=len(ignored),
                columns=", ".join(ignored),
            )
        return found

    def documents(self) -> pd.DataFrame | None:
        if "document" not in self._fields and "title" not in self._fields:
            return None
        ids = self._texts(self._document)[self._keep]
        codes, unique = pd.factorize(ids)
        found = pd.DataFrame({"doc_id": unique}, dtype=object)
        for field, target in (("title", "title"), ("document", "text")):
            found[target] = texts([None] * len(unique))
            if field in self._fields:
                values, varying = one_each(self._texts(self._fields[field])[self._keep], codes)
                if varying.any():
                    self._other_texts(ids, codes, self._fields[field], varying)
                found[target] = texts(values)
        return found

    def _other_texts(
        self, ids: npt.NDArray[np.object_], codes: npt.NDArray[np.intp], column: str, varying: Flags
    ) -> None:
        rows = np.flatnonzero(varying[codes])
        names = list(dict.fromkeys(ids[rows]))
        self.findings.append(
            Finding(
                "warning",
                "texts_differ",
                "Ids with more than one text in the column {column}: {count}. The first text is "
                "used.",
                {"column": column, "count": len(names)},
                "Give every query and every document an id of its own.",
                self._table.file,
                int(self._table.lines[self._keep][rows[0]]),
                len(names),
                tuple(names[:5]),
            )
        )


def in_order(codes: npt.NDArray[np.int32], ranks: Floats) -> bool:
    """Whether rows stand by their code, and those of one code by their rank."""
    rises = codes[1:] > codes[:-1]
    return bool((rises | ((codes[1:] == codes[:-1]) & (ranks[1:] >= ranks[:-1]))).all())
