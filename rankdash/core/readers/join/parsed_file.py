"""`ParsedFile`: what one file contributes, and `Parsed`: what all files of one call come to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import Finding
from rankdash.core.data.arrays import Coded, has_repeats
from rankdash.core.data.ranking import Ranking, coded, group_rows
from rankdash.core.readers.parse.limits import Refusals, counted
from rankdash.core.readers.parse.source import stem_of

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
               `parse.annotators.draws_of`).
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

    def mentioned(self, key: Literal["query_id", "doc_id"]) -> Iterator[str]:
        """The ids that its rows, labels and rankings speak of."""
        if self.pairs is not None:
            yield from pd.unique(self.pairs[key])
        for pairs in (self.labels, *(scores.pairs for scores in self.scores)):
            yield from pairs.ids(key).texts.to_pylist()

    @property
    def only_labels(self) -> bool:
        texts = self.queries is not None or self.documents is not None
        return len(self.labels) > 0 and not texts and not self.scores


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


# What a data set is called when nobody names it.

_UNNAMED = "My data set"
# Words that say what a file holds, which split it is or how it was ranked, not which data it is.
_GENERIC = """
answer answers baseline bm candidate candidates collection content corpus csv data dataset dev
doc docs document documents eval export file files final first initial json jsonl judgement
judgements judgment judgments label labels list new of output passage passages pred predictions
qrel qrels queries query question questions rank ranked ranking rankings relevance rerank
reranked result results retrieval row rows run runs sample score scores set stage system table
test text texts top topic topics train trec tsv upload val valid validation
查询 文档 段落 标注 标签 数据 问题 语料 初排 首轮 重排 测试 训练 验证 结果 排序
"""
_GENERIC_WORDS = frozenset(_GENERIC.split())
_WORD = re.compile(r"[^\W\d_]+")


def data_set_name(parts: Sequence[ParsedFile]) -> str:
    """The folder or archive all files came with; else the folder that all names begin with; else
    a file's name that is more than a generic word, of labels before texts; else the folder or
    archive that texts came with. The file of a ranking is called after the system that made it, and
    gives no name.

    A single file gives its name in any case; `_UNNAMED` is what is left.
    """
    origins = {part.origin for part in parts}
    origin = origins.pop()
    if origin and not origins:
        return _without_ending(origin)
    if len(parts) == 1:
        return stem_of(parts[0].file)
    folders = {PurePosixPath(part.file).parts[0] for part in parts}
    common = folders if len(folders) == 1 else ()
    labels = [part for part in parts if len(part.labels)]
    texts = [part for part in parts if part.queries is not None or part.documents is not None]
    came_with = [_without_ending(part.origin) for part in texts if part.origin]
    names: tuple[str, ...] = (
        *common,
        *(stem_of(part.file) for part in (*labels, *texts)),
        *came_with,
    )
    for name in names:
        if not all(word.casefold() in _GENERIC_WORDS for word in _WORD.findall(name)):
            return name
    return _UNNAMED


def _without_ending(origin: str) -> str:
    """The name of an archive without its ending; that of a folder as it is, for a dot in it ends
    nothing."""
    return stem_of(origin) if origin.lower().endswith((".zip", ".gz", ".xlsx")) else origin


# What is odd about the parts of a data set together: ids that match nothing, texts that differ.


def noticed(parts: Sequence[ParsedFile], beside: Sequence[ParsedFile]) -> list[Finding]:
    """What is odd about texts and ids, and what was noticed of each of the parts.

    beside: of rankings that were read with them; an id that has another text there is said.
    """
    everything = [*parts, *beside]
    findings = _texts_differ([part.queries for part in everything], "query_id")
    findings += _texts_differ([part.documents for part in everything], "doc_id")
    findings += [*_strangers(parts, "query_id"), *_strangers(parts, "doc_id")]
    for part in parts:
        findings += [*part.findings, *part.refusals.findings()]
    return findings


def _strangers(parts: Sequence[ParsedFile], key: Literal["query_id", "doc_id"]) -> list[Finding]:
    """A warning where no id of the files of queries (or of documents) is labelled, ranked or
    paired by another file."""
    tables = [(part, part.queries if key == "query_id" else part.documents) for part in parts]
    if all(table is None for _, table in tables):
        return []
    speaking = [(part, frame) for part in parts for frame in _frames(part)]
    described = [(part, table) for part, table in tables if table is not None and not _frames(part)]
    if not described or not speaking:
        return []
    ids = {identity for _, table in described for identity in table[key]}
    if any(ids.intersection(pd.unique(frame[key])) for _, frame in speaking):
        return []
    (part, table), (other, frame) = described[0], speaking[0]
    return [
        counted(
            "warning",
            "ids_match_nothing",
            "Ids of {texts} that occur in the labels or rankings: none of {count}. It has "
            "{example!r}, {file_name} has {other!r}.",
            len(ids),
            "Check that the files belong to the same data set and write the ids alike in all of "
            "them.",
            other.file,
            int(frame["line"].iloc[0]) if "line" in frame.columns else None,
            texts=part.file,
            example=str(table[key].iloc[0]),
            file_name=other.file,
            other=str(frame[key].iloc[0]),
        )
    ]


def _frames(part: ParsedFile) -> list[pd.DataFrame]:
    pairs = (part.labels, *(scores.pairs for scores in part.scores))
    frames = [each.frame("value") for each in pairs if len(each)]
    return frames if part.pairs is None else [*frames, part.pairs]


def _texts_differ(frames: Sequence[pd.DataFrame | None], key: str) -> list[Finding]:
    """A warning where tables give an id different texts."""
    filled = [frame[[key, "text"]] for frame in frames if frame is not None]
    if len(filled) < 2:
        return []
    rows = pd.concat(filled, ignore_index=True).dropna(subset=["text"])
    texts = rows.groupby(key, sort=False)["text"].nunique()
    differing = list(texts.index[texts > 1])
    if not differing:
        return []
    return [
        counted(
            "warning",
            "texts_differ",
            "Ids with a different text in another file: {count}. The first file's text is used.",
            len(differing),
            "Check that the files belong to the same data set.",
            examples=differing,
        )
    ]
