"""`ParsedFile`: what one file contributes, and `Parsed`: what all files of one call come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.findings import Finding
from rankdash.core.data.build import coded, group_rows
from rankdash.core.data.coded import Coded
from rankdash.core.data.ragged import has_repeats
from rankdash.core.data.ranking import Ranking
from rankdash.core.readers.parse.skipped_rows import Refusals

# "first stage": scores beside texts or labels; "run": a list that stands alone; "system": what a
# reranker said, beside the rows.
Role = Literal["first stage", "run", "system"]


def empty(*columns: str) -> pd.DataFrame:
    """A table without rows."""
    return pd.DataFrame({column: np.array([], dtype=object) for column in columns}, dtype=object)


def texts(values: Iterable[str | None] | npt.NDArray[np.object_]) -> pd.Series[Any]:
    """A column of str and None. pandas would otherwise make it its own text type, and each step
    would convert it back."""
    return pd.Series(np.array(list(values), dtype=object), dtype=object)


def joined_texts(columns: pd.DataFrame) -> pd.Series[Any]:
    """One text of each row's cells, a line each; None where all are blank. The index stays."""
    rows = ["\n".join(cell for cell in row if cell) for row in columns.itertuples(index=False)]
    return texts(text or None for text in rows).set_axis(columns.index)


@dataclass(frozen=True, eq=False)
class Pairs:
    """N rows of a query and a document. values: (N,) the label or score, finite. lines: (N,)."""

    queries: Coded
    documents: Coded
    values: npt.NDArray[np.float64]
    lines: npt.NDArray[np.integer[Any]]

    @classmethod
    def none(cls) -> Self:
        ids = Coded.none()
        return cls(ids, ids, np.zeros(0), np.zeros(0, dtype=np.int64))

    @classmethod
    def of(
        cls, ids: pd.DataFrame, values: npt.NDArray[np.float64], lines: npt.NDArray[np.integer[Any]]
    ) -> Self:
        """ids: query_id and doc_id."""
        return cls(coded(ids["query_id"]), coded(ids["doc_id"]), values, lines)

    @classmethod
    def joined(cls, several: Sequence[Self]) -> Self:
        """The rows of one after those of the other. several: at least one."""
        if len(several) == 1:
            return several[0]
        return cls(
            Coded.joined([pairs.queries for pairs in several]),
            Coded.joined([pairs.documents for pairs in several]),
            np.concatenate([pairs.values for pairs in several]),
            np.concatenate([pairs.lines for pairs in several]),
        )

    def __len__(self) -> int:
        return len(self.values)

    def taken(self, rows: npt.NDArray[np.bool_]) -> Self:
        """Those of some rows, given as (N,) flags."""
        return type(self)(
            self.queries.taken(rows),
            self.documents.taken(rows),
            self.values[rows],
            self.lines[rows],
        )

    def ids(self, key: Literal["query_id", "doc_id"]) -> Coded:
        return self.queries if key == "query_id" else self.documents

    def keys(self) -> npt.NDArray[np.int64]:
        """(N,) a number for each query and document; the same pair has the same."""
        return self.queries.codes.astype(np.int64) * len(self.documents.texts) + (
            self.documents.codes
        )

    def repeat(self) -> bool:
        """Whether a pair is there twice."""
        by_query = group_rows(self.queries)
        return has_repeats(by_query.arrange(self.documents.codes), by_query.offsets)

    def columns(self, value: str) -> dict[str, Any]:
        """query_id and doc_id as `Coded`, and the value under its name."""
        return {"query_id": self.queries, "doc_id": self.documents, value: self.values}

    def frame(self, value: str) -> pd.DataFrame:
        """query_id, doc_id, the value under its name, and line."""
        columns = {"query_id": self.queries.objects(), "doc_id": self.documents.objects()}
        return pd.DataFrame(columns, dtype=object).assign(**{value: self.values}, line=self.lines)


@dataclass(frozen=True, eq=False)
class Scores:
    """Scored pairs."""

    name: str
    role: Role
    pairs: Pairs


@dataclass(frozen=True, eq=False)
class ParsedFile:
    """What one file holds; None of what it does not hold. Ids are object columns of str; a missing
    text is None.

    queries:   query_id, text, then segments.        documents: doc_id, title, text.
    labels:    labelled pairs. draws: in which draw each came, where the file says so (see
               `parse.drawn.draws_of`).
    pairs:     query_id, doc_id: the rows of a file that says what each query's documents are.
    keyed_by_text: which of "query_id" and "doc_id" hold a text, since the file has no ids.
    columns:   as the file calls them.
    """

    file: str
    origin: str
    format: str
    refusals: Refusals
    queries: pd.DataFrame | None = None
    documents: pd.DataFrame | None = None
    labels: Pairs = field(default_factory=Pairs.none)
    pairs: pd.DataFrame | None = None
    scores: tuple[Scores, ...] = ()
    keyed_by_text: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    columns: tuple[str, ...] = ()
    draws: pd.DataFrame | None = None

    @property
    def only_labels(self) -> bool:
        return (
            len(self.labels) > 0
            and self.queries is None
            and self.documents is None
            and not self.scores
        )


class ParsedTables(NamedTuple):
    """queries, documents, qrels: as `Dataset` wants them. pairs: query_id, doc_id: what to rank
    where there is no order."""

    queries: pd.DataFrame
    documents: pd.DataFrame
    qrels: pd.DataFrame
    pairs: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Parsed:
    """Everything that was read, joined, each row checked.

    labels:     one a pair.
    candidates: the first-stage ranking, or None where no file gives an order.
    candidates_name: the name of the file of this ranking; "" if it came beside the rows, or if the
                name only says that it is the first stage.
    open_choice: the rankings of which any may be the first stage, if no name tells which.
    rankings:   name → ranking of a system that was run elsewhere.
    formats:    file → what it was read as.
    only_ids:   the files are of labels and rankings alone: they tell of queries and documents no
                more than their ids.
    tables:     gives what was read as tables, which are made at the first call.
    """

    name: str
    labels: Pairs
    candidates: Ranking | None
    rankings: Mapping[str, Ranking]
    findings: tuple[Finding, ...]
    formats: Mapping[str, str]
    only_ids: bool
    tables: Callable[[], ParsedTables]
    candidates_name: str = ""
    open_choice: tuple[str, ...] = ()

    @property
    def queries(self) -> pd.DataFrame:
        return self.tables().queries

    @property
    def documents(self) -> pd.DataFrame:
        return self.tables().documents

    @property
    def qrels(self) -> pd.DataFrame:
        return self.tables().qrels

    @property
    def pairs(self) -> pd.DataFrame:
        return self.tables().pairs
