"""Checks that imported content could have been written by the workspace itself: the JSON parts of a
workspace file as types, and its tables.

All checks raise ValueError, with an English message without a full stop.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar, cast

import numpy as np
import pandas as pd
import pyarrow as pa
from msgspec import Meta, Struct, convert

from rankdash.core.data.arrays import descend, equal_runs, has_repeats, tied_groups
from rankdash.core.data.dataset import Dataset, FirstStage
from rankdash.core.data.ranking import Ranking, Reading, Run
from rankdash.core.workspace.database import Record, Settings
from rankdash.core.workspace.jobs.judges import LONGEST_JUDGE_NAME, LONGEST_REASON, JudgeUsage
from rankdash.core.workspace.notes import (
    LONGEST_GUIDELINES,
    LONGEST_LABEL_NOTE,
    LONGEST_NAME,
    LONGEST_NOTE,
    LONGEST_TAG,
    MOST_TAGS,
)
from rankdash.core.workspace.tables import TIES, ranking_of

_TEXT, _FLOAT, _INTEGER, _WHOLE = pa.large_string(), pa.float64(), pa.int32(), pa.int64()
# An unknown number is stored as missing.
_MAY_LACK, _NEVER_LACK = (_TEXT, _FLOAT), ("query_id", "doc_id", "state")
_ROWS = {"document": _INTEGER, "score": _FLOAT, "given": _INTEGER}
_QUERIES = {"query_id": _TEXT, "documents": _WHOLE, "tied": pa.bool_()}
_RUN_TEXTS = ("query_id", "state", "reason")
_RUN_NUMBERS = ("latency_ms", "index_ms", "pairs", "tokens", "truncated")
_STATES = {"done", "failed", "skipped"}
Decoded = TypeVar("Decoded")
_CALL_TEXTS = ("query_id", "billed", "error", "note")


def frame(table: Any, columns: Sequence[str], *, numbers: Collection[str] = ()) -> pd.DataFrame:
    """Return a table with exactly these columns: texts, and numbers for those in `numbers`."""
    types = {name: _FLOAT if name in numbers else _TEXT for name in columns}
    return cast(pd.DataFrame, _fitted(table, types).to_pandas())


def texts(table: Any, first: Sequence[str]) -> pd.DataFrame:
    """Return a table of texts that begins with these columns."""
    names = list(table.column_names)
    if names[: len(first)] != list(first):
        raise ValueError(f"its columns are not {', '.join(first)}")
    return frame(table, names)


def ranking(rows: Any, queries: Any, documents: Any, *, data: Dataset | None = None) -> Ranking:
    """Return the ranking in three tables; all its queries and documents must be in `data`, if
    passed."""
    ties = (rows.schema.metadata or {}).get(TIES, b"")
    if ties not in (b"trec", b"stable"):
        raise ValueError("it does not say how ties are ordered")
    rows = _fitted(rows, _ROWS).replace_schema_metadata({TIES: ties})
    ranked = ranking_of(rows, _fitted(queries, _QUERIES), _fitted(documents, {"doc_id": _TEXT}))
    if ranked is None or (np.diff(ranked.offsets) < 0).any() or (ranked.docs < 0).any():
        raise ValueError("its rows do not match its queries and documents")
    _refuse_repeated_ids(ranked.query_ids)
    _refuse_repeated_ids(ranked.doc_ids)
    if has_repeats(ranked.docs, ranked.offsets):
        raise ValueError("it ranks a document twice for one query")
    scores = ranked.scores
    if np.isinf(scores).any() or not descend(scores, ranked.offsets):
        raise ValueError("its scores are not in order")
    if not np.array_equal(
        ranked.tied, tied_groups(equal_runs(scores, ranked.offsets)[0], ranked.offsets)
    ):
        raise ValueError("its tie positions do not match its scores")
    if len(ranked) and not (ranked.given.min() >= 0 and ranked.given.max() < len(ranked)):
        raise ValueError("its provenance record is invalid")
    if data is not None:
        _refuse_unknown_ids(ranked.query_ids, data.queries["query_id"], "query")
        _refuse_unknown_ids(ranked.doc_ids, data.documents["doc_id"], "document")
    return ranked


def run_queries(table: Any, data: Dataset, ranked: Ranking) -> pd.DataFrame:
    """Return the table of the queries of a run."""
    queries = _mixed(table, [*_RUN_TEXTS, *_RUN_NUMBERS], _RUN_TEXTS)
    _refuse_repeated_ids(queries["query_id"].to_numpy(dtype=object))
    _refuse_unknown_ids(queries["query_id"], data.queries["query_id"], "query")
    if not set(queries["state"]) <= _STATES or queries["reason"].isna().any():
        raise ValueError("a query has an unknown state")
    done = queries["query_id"][queries["state"] == "done"]
    if not set(ranked.query_ids) <= set(done):
        raise ValueError("it ranks an unfinished query")
    return queries


def reading(table: Any, rows: int) -> Reading:
    """Return the token counts of a ranking with this many rows."""
    fitted = _fitted(table, {"read": _INTEGER, "full": _INTEGER})
    if len(fitted) != rows:
        raise ValueError("its rows do not match the ranking")
    return Reading(*(fitted[name].combine_chunks().to_numpy() for name in ("read", "full")))


def calls(table: Any) -> pd.DataFrame:
    """Return the requests of a run."""
    names = list(table.column_names)
    if "query_id" not in names:
        raise ValueError("it has no column query_id")
    requests = _mixed(table, names, _CALL_TEXTS)
    for billed in requests["billed"].dropna() if "billed" in names else ():
        convert(json.loads(billed), dict[str, float])
    return requests


def documents(table: Any) -> pd.DataFrame:
    """Return the documents of a run."""
    fetched = frame(table, ("doc_id", "title", "text"))
    _refuse_repeated_ids(fetched["doc_id"])
    return fetched


def same(ours: Run, theirs: Run) -> bool:
    """Return whether two runs have the same results, whatever their names."""
    ranks = (ours.ranking, theirs.ranking)
    arrays = ("query_ids", "doc_ids", "offsets", "docs")
    return (
        all(np.array_equal(*(getattr(each, name) for each in ranks)) for name in arrays)
        and np.array_equal(ranks[0].scores, ranks[1].scores, equal_nan=True)
        and ours.queries.equals(theirs.queries)
    )


def refuse_unknown(data: Dataset, with_query: Iterable[Any], with_document: Iterable[Any]) -> None:
    """Raise ValueError for a row whose query_id or doc_id the data set does not have."""
    _refuse_unknown_ids((row.query_id for row in with_query), data.queries["query_id"], "query")
    _refuse_unknown_ids((row.doc_id for row in with_document), data.documents["doc_id"], "document")


def _fitted(table: Any, columns: Mapping[str, Any]) -> Any:
    """Return the table with exactly these columns and types, without other content."""
    if list(table.column_names) != list(columns):
        raise ValueError(f"its columns are not {', '.join(columns)}"[:300])
    fitted = {}
    for name, kind in columns.items():
        values = table[name]
        if kind == _TEXT and not _is_text(values.type):
            raise ValueError(f"{name} is not text")
        values = values.cast(kind)
        if values.null_count and (kind not in _MAY_LACK or name in _NEVER_LACK):
            raise ValueError(f"{name} is missing in a row")
        values.validate(full=True)
        fitted[name] = values
    return pa.table(fitted).replace_schema_metadata(
        {key: value for key, value in (table.schema.metadata or {}).items() if key == TIES}
    )


def _mixed(table: Any, names: Sequence[str], texts: Collection[str]) -> pd.DataFrame:
    """Return a table with exactly the columns `names` as a data frame: text for the columns in
    `texts`, int64 for other integer columns, else float64."""
    whole = {field.name for field in table.schema if pa.types.is_integer(field.type)}
    kinds = {
        name: _TEXT if name in texts else _WHOLE if name in whole else _FLOAT for name in names
    }
    return cast(pd.DataFrame, _fitted(table, kinds).to_pandas())


def _is_text(kind: Any) -> bool:
    # A column without any text has the type null.
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_null(kind)
        or (pa.types.is_dictionary(kind) and _is_text(kind.value_type))
    )


def _refuse_repeated_ids(ids: Any) -> None:
    values = list(ids)
    if len(set(values)) != len(values) or "" in values:
        raise ValueError("an id is empty or listed twice")


def _refuse_unknown_ids(ids: Iterable[str], allowed: Iterable[str], what: str) -> None:
    if not set(ids) <= set(allowed):
        raise ValueError(f"it mentions a {what} that its data set does not have")


# The JSON parts of a workspace file, as types: `decoded` refuses everything that does not fit them.

_LONGEST_RECORD = 1_000_000


def _text(most: int, least: int = 0) -> Meta:
    """Return the constraint for a text that SQLite can store."""
    return Meta(min_length=least, max_length=most, pattern=r"^[^\0\ud800-\udfff]*\Z")


class _Moment(str):
    """A time in ISO 8601."""


_Id = Annotated[str, Meta(pattern=r"^[0-9A-Za-z][0-9A-Za-z_-]{0,63}\Z")]
# Letters, digits and dots between slashes: no path can leave a folder.
_PartName = Annotated[str, Meta(pattern=r"^[\w-][\w.-]*(/[\w-][\w.-]*)*\Z", max_length=200)]
_Text = Annotated[str, _text(1_000)]
_Reason = Annotated[str, _text(LONGEST_REASON)]
_Name = Annotated[str, _text(1_000, least=1)]
_Kind = Annotated[str, _text(40)]
_Person = Annotated[str, _text(LONGEST_NAME)]
_Record = Annotated[str, _text(_LONGEST_RECORD)]
_Number = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
_Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]

Contents = dict[_Id, list[_Id]]
"""Data set id → the ids of its runs."""


class _WorkspacePart(Struct):
    """The manifest's entry for a part."""

    bytes: _Count
    sha256: str


class Head(Struct):
    """The manifest. datasets: `Contents` in a file of this version. excluded: the names of items
    that were damaged at export."""

    parts: dict[_PartName, _WorkspacePart]
    format: str = ""
    version: int = 0
    rankdash: str = ""
    datasets: Any = None
    excluded: list[_Text] = []


class NoteRow(Struct):
    query_id: _Text
    tags: Annotated[list[Annotated[str, _text(LONGEST_TAG, least=1)]], Meta(max_length=MOST_TAGS)]
    note: Annotated[str, _text(LONGEST_NOTE)]
    changed: _Moment
    # Missing in files of an older version.
    who: _Person = ""

    def __post_init__(self) -> None:
        if not (self.tags or self.note):
            raise ValueError("an empty note")


class CorrectionRow(Struct):
    query_id: _Text
    doc_id: _Text
    withdrawn: Literal[0, 1]
    label: _Number | None
    who: _Person
    made: _Moment


class LabelNoteRow(Struct):
    query_id: _Text
    doc_id: _Text
    who: _Person
    note: Annotated[str, _text(LONGEST_LABEL_NOTE, least=1)]


class PauseRow(Struct):
    who: _Person
    ended: _Moment


class PlanRow(Struct):
    """A labelling plan. before: how many of the corrections, from the first, existed when it
    began."""

    id: _Id
    settings: dict[_Text, Any]
    before: _Count
    guidelines: Annotated[str, _text(LONGEST_GUIDELINES)]
    created: _Moment
    pauses: list[PauseRow]

    def __post_init__(self) -> None:
        if len(repr(self.settings)) > _LONGEST_RECORD:
            raise ValueError("settings are too long")


class _AnswerRow(Struct):
    grade: _Number | None
    reason: _Reason
    error: _Text
    kind: _Kind


class JudgedPairRow(Struct):
    """A judged pair. One with neither a grade nor an error has not been graded yet."""

    query_id: _Text
    doc_id: _Text
    grade: _Number | None
    reason: _Reason | None
    error: _Text | None
    kind: _Kind | None
    answers: Annotated[list[_AnswerRow], Meta(max_length=100)]


class JudgePart(Struct):
    id: _Id
    name: Annotated[str, _text(LONGEST_JUDGE_NAME, least=1)]
    model: _Text
    template: _Kind
    settings: Settings
    top: Annotated[int, Meta(ge=1, le=100)]
    systems: list[_Text]
    depth: _Count
    state: Literal["done", "failed", "cancelled", "interrupted"]
    usage: JudgeUsage
    unsettled: _Count
    created: _Moment
    started: _Moment | None
    finished: _Moment | None
    pairs: list[JudgedPairRow]

    def __post_init__(self) -> None:
        if max(len(repr(self.settings)), len(repr(self.usage))) > _LONGEST_RECORD:
            raise ValueError("settings or usage are too long")
        for pair in self.pairs:
            if pair.grade is not None and (pair.error or not 0 <= pair.grade <= self.top):
                raise ValueError("a grade is not on the scale, or also has an error")
            if pair.grade is None and pair.error == "":
                raise ValueError("a pair has neither a grade nor an error")


class DatasetPart(Struct):
    name: _Name
    source: _Kind
    first_stage: FirstStage
    report: Annotated[str, _text(50_000_000)]
    notes: list[NoteRow]
    corrections: list[CorrectionRow]
    # Missing in files of an older version.
    label_notes: list[LabelNoteRow] = []
    plan: PlanRow | None = None
    judges: list[JudgePart] = []
    candidates_name: _Text = ""

    def __post_init__(self) -> None:
        if self.plan is not None and self.plan.before > len(self.corrections):
            raise ValueError("a plan refers to labels that are missing")


class RunNoteRow(Struct):
    note: Annotated[str, _text(LONGEST_NOTE, least=1)]
    changed: _Moment
    who: _Person = ""


class Explained(Struct):
    query_id: _Text
    doc_id: _Text
    level: _Kind
    result: Annotated[str, _text(5_000_000)]
    finished: _Moment


class RunPart(Struct):
    name: _Name
    reranker: Annotated[str, _text(200)]
    settings: Record
    machine: Record
    depth: _Count | None
    load_ms: _Number | None
    created: _Moment
    note: RunNoteRow | None
    pinned: _Moment | None
    explanations: list[Explained]

    def __post_init__(self) -> None:
        if max(len(repr(self.settings)), len(repr(self.machine))) > _LONGEST_RECORD:
            raise ValueError("settings or machine are too long")


class SettingsPart(Struct):
    settings: dict[_Text, _Record]


def decoded(content: bytes, kind: type[Decoded]) -> Decoded:
    """Return the value in a JSON text as an instance of the type `kind`. Raises ValueError or
    RecursionError."""
    # Not msgspec's decoder, which refuses half of a surrogate pair, which settings may contain.
    return fitted(json.loads(content), kind)


def fitted(value: object, kind: type[Decoded]) -> Decoded:
    """Return a parsed JSON value as an instance of the type `kind`. Raises ValueError that names
    the part that does not fit."""
    return convert(value, kind, dec_hook=_moment)


def _moment(kind: type, value: Any) -> object:
    datetime.fromisoformat(value)
    return kind(value)
