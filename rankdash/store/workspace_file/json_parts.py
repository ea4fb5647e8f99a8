"""The JSON parts of a workspace file, as types: `decoded` refuses whatever does not fit them."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, convert

from rankdash.dataset import FirstStage
from rankdash.store.notes.corrections import LONGEST_NAME
from rankdash.store.notes.notes import LONGEST_NOTE, LONGEST_TAG, MOST_TAGS

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
    """The list of parts, and what the file is. datasets: `Contents` in a file of this version."""

    parts: dict[_PartName, WorkspacePart]
    format: str = ""
    version: int = 0
    rankdash: str = ""
    datasets: Any = None


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


class DatasetPart(Struct):
    name: _Name
    source: _Kind
    first_stage: FirstStage
    report: Annotated[str, _text(50_000_000)]
    notes: list[NoteRow]
    corrections: list[CorrectionRow]


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
    settings: dict[_Text, Any]
    machine: dict[_Text, Any]
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
