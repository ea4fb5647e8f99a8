"""The JSON parts of a workspace file, as types: `decoded` refuses whatever does not fit them."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, convert

from rankdash.core.data.dataset import FirstStage
from rankdash.core.workspace.jobs.judges import LONGEST_JUDGE_NAME, LONGEST_REASON, JudgeUsage
from rankdash.core.workspace.notes.corrections import LONGEST_NAME
from rankdash.core.workspace.notes.label_notes import LONGEST_LABEL_NOTE
from rankdash.core.workspace.notes.label_plans import LONGEST_GUIDELINES
from rankdash.core.workspace.notes.notes import LONGEST_NOTE, LONGEST_TAG, MOST_TAGS
from rankdash.core.workspace.rows import Record, Settings

_Decoded = TypeVar("_Decoded")
_LONGEST_RECORD = 1_000_000


def _text(most: int, least: int = 0) -> Meta:
    """Characters that SQLite can hold."""
    return Meta(min_length=least, max_length=most, pattern=r"^[^\0\ud800-\udfff]*\Z")


class Moment(str):
    """A time in ISO 8601."""


_Id = Annotated[str, Meta(pattern=r"^[0-9A-Za-z][0-9A-Za-z_-]{0,63}\Z")]
# Letters, digits and dots in steps: nothing that could lead out of a folder.
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
"""Data set → its runs."""


class WorkspacePart(Struct):
    """What the list says of a part."""

    bytes: _Count
    sha256: str


class Head(Struct):
    """The list of parts, and what the file is. datasets: `Contents` in a file of this version.
    excluded: the names of what was damaged where the file was written."""

    parts: dict[_PartName, WorkspacePart]
    format: str = ""
    version: int = 0
    rankdash: str = ""
    datasets: Any = None
    excluded: list[_Text] = []


class NoteRow(Struct):
    query_id: _Text
    tags: Annotated[list[Annotated[str, _text(LONGEST_TAG, least=1)]], Meta(max_length=MOST_TAGS)]
    note: Annotated[str, _text(LONGEST_NOTE)]
    changed: Moment
    # Files of an older version do not say.
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
    made: Moment


class LabelNoteRow(Struct):
    query_id: _Text
    doc_id: _Text
    who: _Person
    note: Annotated[str, _text(LONGEST_LABEL_NOTE, least=1)]


class PauseRow(Struct):
    who: _Person
    ended: Moment


class PlanRow(Struct):
    """before: how many of the corrections, from the first, were there when it began."""

    id: _Id
    settings: dict[_Text, Any]
    before: _Count
    guidelines: Annotated[str, _text(LONGEST_GUIDELINES)]
    created: Moment
    pauses: list[PauseRow]

    def __post_init__(self) -> None:
        if len(repr(self.settings)) > _LONGEST_RECORD:
            raise ValueError("settings are too long")


class AnswerRow(Struct):
    grade: _Number | None
    reason: _Reason
    error: _Text
    kind: _Kind


class JudgedPairRow(Struct):
    """A pair with neither a grade nor an error was not asked about yet."""

    query_id: _Text
    doc_id: _Text
    grade: _Number | None
    reason: _Reason | None
    error: _Text | None
    kind: _Kind | None
    answers: Annotated[list[AnswerRow], Meta(max_length=100)]


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
    created: Moment
    started: Moment | None
    finished: Moment | None
    pairs: list[JudgedPairRow]

    def __post_init__(self) -> None:
        if max(len(repr(self.settings)), len(repr(self.usage))) > _LONGEST_RECORD:
            raise ValueError("settings or usage are too long")
        for pair in self.pairs:
            if pair.grade is not None and (pair.error or not 0 <= pair.grade <= self.top):
                raise ValueError("a grade is not on the scale, or has an error beside it")
            if pair.grade is None and pair.error == "":
                raise ValueError("a pair has neither a grade nor an error")


class DatasetPart(Struct):
    name: _Name
    source: _Kind
    first_stage: FirstStage
    report: Annotated[str, _text(50_000_000)]
    notes: list[NoteRow]
    corrections: list[CorrectionRow]
    # Files of an older version have none.
    label_notes: list[LabelNoteRow] = []
    plan: PlanRow | None = None
    judges: list[JudgePart] = []
    candidates_name: _Text = ""

    def __post_init__(self) -> None:
        if self.plan is not None and self.plan.before > len(self.corrections):
            raise ValueError("a plan began at labels that are not there")


class RunNoteRow(Struct):
    note: Annotated[str, _text(LONGEST_NOTE, least=1)]
    changed: Moment
    who: _Person = ""


class Explained(Struct):
    query_id: _Text
    doc_id: _Text
    level: _Kind
    result: Annotated[str, _text(5_000_000)]
    finished: Moment


class RunPart(Struct):
    name: _Name
    reranker: Annotated[str, _text(200)]
    settings: Record
    machine: Record
    depth: _Count | None
    load_ms: _Number | None
    created: Moment
    note: RunNoteRow | None
    pinned: Moment | None
    explanations: list[Explained]

    def __post_init__(self) -> None:
        if max(len(repr(self.settings)), len(repr(self.machine))) > _LONGEST_RECORD:
            raise ValueError("settings or machine are too long")


class SettingsPart(Struct):
    settings: dict[_Text, _Record]


def decoded(content: bytes, kind: type[_Decoded]) -> _Decoded:
    """JSON as one of these types. Raises ValueError or RecursionError."""
    # Not msgspec's own reader: it refuses half of a surrogate pair, which settings may hold.
    return fitted(json.loads(content), kind)


def fitted(value: object, kind: type[_Decoded]) -> _Decoded:
    """The value as the type. Raises ValueError that names the place."""
    return convert(value, kind, dec_hook=_moment)


def _moment(kind: type, value: Any) -> object:
    datetime.fromisoformat(value)
    return kind(value)
