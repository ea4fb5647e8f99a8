"""`ParsedFile`: the content of one file, and `Parsed`: the joined content of all files."""

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
from rankdash.core.readers.parse.table import Outcome

# "first stage": scores in a file with texts or labels; "run": a file that is only a ranking;
# "system": scores of a reranker in a file of rows.
Role = Literal["first stage", "run", "system"]


def empty(*columns: str) -> pd.DataFrame:
    """Return a table without rows."""
    return pd.DataFrame({column: np.array([], dtype=object) for column in columns}, dtype=object)


def texts(values: Iterable[str | None] | npt.NDArray[np.object_]) -> pd.Series[Any]:
    """Return a column of str and None with the type object, which avoids conversions to and from
    the text type of pandas."""
    return pd.Series(np.array(list(values), dtype=object), dtype=object)


def joined_texts(columns: pd.DataFrame) -> pd.Series[Any]:
    """Join each row's cells to one text, one line per cell; None if all are blank."""
    rows = ["\n".join(cell for cell in row if cell) for row in columns.itertuples(index=False)]
    return texts(text or None for text in rows).set_axis(columns.index)


@dataclass(frozen=True, eq=False)
class Pairs:
    """N pairs of query and document. values: (N,) labels or scores, finite. lines: (N,)."""

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
        """Create pairs. ids: columns query_id and doc_id."""
        return cls(coded(ids["query_id"]), coded(ids["doc_id"]), values, lines)

    @classmethod
    def joined(cls, several: Sequence[Self]) -> Self:
        """Concatenate pairs. several: at least one."""
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
        """Return the pairs selected by (N,) flags."""
        return type(self)(
            self.queries.taken(rows),
            self.documents.taken(rows),
            self.values[rows],
            self.lines[rows],
        )

    def ids(self, key: Literal["query_id", "doc_id"]) -> Coded:
        return self.queries if key == "query_id" else self.documents

    def keys(self) -> npt.NDArray[np.int64]:
        """Return (N,) an integer per row that is unique per pair."""
        return self.queries.codes.astype(np.int64) * len(self.documents.texts) + (
            self.documents.codes
        )

    def repeat(self) -> bool:
        """Return whether a pair occurs twice."""
        by_query = group_rows(self.queries)
        return has_repeats(by_query.arrange(self.documents.codes), by_query.offsets)

    def columns(self, value: str) -> dict[str, Any]:
        """Return query_id and doc_id as `Coded`, and the values under the name `value`."""
        return {"query_id": self.queries, "doc_id": self.documents, value: self.values}

    def frame(self, value: str) -> pd.DataFrame:
        """Return query_id, doc_id, the values under the name `value`, and line."""
        columns = {"query_id": self.queries.objects(), "doc_id": self.documents.objects()}
        return pd.DataFrame(columns, dtype=object).assign(**{value: self.values}, line=self.lines)


@dataclass(frozen=True, eq=False)
class Scores:
    """The scored pairs of one ranking."""

    name: str
    role: Role
    pairs: Pairs


@dataclass(frozen=True, eq=False)
class ParsedFile:
    """The content of one file; tables that it does not contain are None. Ids are object columns of
    str; a missing text is None.

    queries:   query_id, text, then segments.        documents: doc_id, title, text.
    labels:    labelled pairs. draws: their sampling draws, if the file contains them (see
               `parse.annotators.draws_of`).
    pairs:     query_id, doc_id: the rows of a file that lists documents for each query.
    outcomes:  the latencies and failures of queries.
    keyed_by_text: the keys, "query_id" or "doc_id", that contain texts because the file has no ids.
    columns:   the column names of the file.
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
    outcomes: tuple[Outcome, ...] = ()

    def mentioned(self, key: Literal["query_id", "doc_id"]) -> Iterator[str]:
        """Yield the ids in its pairs, labels and rankings."""
        if self.pairs is not None:
            yield from pd.unique(self.pairs[key])
        for pairs in (self.labels, *(scores.pairs for scores in self.scores)):
            yield from pairs.ids(key).texts.to_pylist()

    @property
    def only_labels(self) -> bool:
        texts = self.queries is not None or self.documents is not None
        return len(self.labels) > 0 and not texts and not self.scores


class ParsedTables(NamedTuple):
    """The joined tables. queries, documents, qrels: as for `Dataset`. pairs: query_id, doc_id: the
    pairs to rank if there is no first stage."""

    queries: pd.DataFrame
    documents: pd.DataFrame
    qrels: pd.DataFrame
    pairs: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Parsed:
    """The joined and checked content of all files.

    labels:     one per pair.
    candidates: the first-stage ranking, or None if no file contains one.
    candidates_name: the name of the file of this ranking; "" if it is in a file of rows, or if the
                name only means first stage.
    open_choice: the possible first-stage rankings, if the names are ambiguous.
    rankings:   name → ranking of a precomputed system.
    formats:    file → its format and content.
    outcomes:   name → the latencies and failures of a system, as from `rated.read_timings`, if its
                file contains them.
    only_ids:   True if the files contain only labels and rankings, so that queries and documents
                have no texts.
    tables:     returns the joined tables, which are created on the first call.
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
    outcomes: Mapping[str, pd.DataFrame] = field(default_factory=dict)

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


# The default name of a data set.

_UNNAMED = "My data set"
# Words for content, split or ranking, which do not identify the data.
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
    """Return the default name of a data set: the folder or archive that contains all files; else
    the common first folder of all names; else the first non-generic name of a file of labels, then
    of texts; else the folder or archive of texts; else `_UNNAMED`. Files of rankings are ignored,
    because they are usually named after a system.

    The name of a single file is always used.
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
    """Return the name of an archive without its suffix, and the name of a folder unchanged."""
    return stem_of(origin) if origin.lower().endswith((".zip", ".gz", ".xlsx")) else origin


# Checks of all parts together: ids that match nothing, and different texts for one id.


def noticed(parts: Sequence[ParsedFile], beside: Sequence[ParsedFile]) -> list[Finding]:
    """Return findings about texts and ids, and the findings of each part.

    beside: parts of rankings; ids with a different text in them are reported.
    """
    everything = [*parts, *beside]
    findings = _texts_differ([part.queries for part in everything], "query_id")
    findings += _texts_differ([part.documents for part in everything], "doc_id")
    findings += [*_strangers(parts, "query_id"), *_strangers(parts, "doc_id")]
    for part in parts:
        findings += [*part.findings, *part.refusals.findings()]
    return findings


def _strangers(parts: Sequence[ParsedFile], key: Literal["query_id", "doc_id"]) -> list[Finding]:
    """Return a warning if no id of the files of queries (or documents) is labelled, ranked or
    paired in another file."""
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
            "Ids of {texts} that occur in the labels or rankings: none of {count}. {texts} has "
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
    """Return a warning if tables contain different texts for an id."""
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
