"""One file that holds named parts: a zip with a list of them, and nothing in it is believed.

    manifest.json    format, version, who wrote it, and for every part its size and SHA-256
    …                the parts

A part is looked up by a name that we make; a name from the file is never used as a path. Sizes are
counted while unpacking, not taken from a header.
"""

from __future__ import annotations

import errno
import hashlib
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Meta, Struct, convert

from rankdash.core.base.errors import FormatError, LimitError, Phrase, RankdashError
from rankdash.core.data.dataset import FirstStage
from rankdash.core.workspace.jobs.judges import LONGEST_JUDGE_NAME, LONGEST_REASON, JudgeUsage
from rankdash.core.workspace.notes.corrections import LONGEST_NAME
from rankdash.core.workspace.notes.label_plans import LONGEST_GUIDELINES
from rankdash.core.workspace.notes.notes import (
    LONGEST_LABEL_NOTE,
    LONGEST_NOTE,
    LONGEST_TAG,
    MOST_TAGS,
)
from rankdash.core.workspace.rows import Record, Settings

MANIFEST = "manifest.json"
_MEGABYTE = 1_000_000
_REMEDY = "Copy or export it again."
_Decoded = TypeVar("_Decoded")
_BATCH_ROWS = 20_000
# Dates in the zip would make the same content another file.
_NO_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Bounds:
    """What is unpacked at most: how many parts, the list of them, one part and all parts in bytes,
    and one table once it is decoded."""

    parts: int = 50_000
    manifest: int = 32 * _MEGABYTE
    part: int = 1_000 * _MEGABYTE
    together: int = 4_000 * _MEGABYTE
    decoded: int = 4_000 * _MEGABYTE


class Packer:
    """Writes parts and, at the end, their list."""

    def __init__(self, target: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED)
        self._parts: dict[str, dict[str, object]] = {}

    def add(self, name: str, content: bytes) -> None:
        """name: of letters, digits, "-", "_", "." and "/"; each once."""
        self._parts[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        self._write(name, content)

    def add_json(self, name: str, value: object) -> None:
        # Half of a surrogate pair, as data may hold one, is written as an escape.
        self.add(name, json.dumps(value, ensure_ascii=True, allow_nan=False).encode())

    def close(self, head: Mapping[str, object]) -> None:
        """Write the list; head: what it says beside the parts."""
        text = json.dumps({**head, "parts": self._parts}, ensure_ascii=True, indent=1)
        self._write(MANIFEST, text.encode())
        self._zip.close()

    def abandon(self) -> None:
        """Write no list, without which the file is none."""
        self._zip.close()

    def _write(self, name: str, content: bytes) -> None:
        entry = zipfile.ZipInfo(name, _NO_DATE)
        # Parquet is compressed already.
        packed = not name.endswith(".parquet")
        entry.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
        try:
            self._zip.writestr(entry, content)
        except OSError:
            # Not later, when nobody catches what closing raises on a full disk.
            with suppress(OSError):
                self._zip.close()
            raise


class Unpacker:
    """Reads what a `Packer` wrote. Every method raises FormatError where the file is not that or
    was changed since, and LimitError where it is larger than `bounds`."""

    def __init__(self, source: Path | BinaryIO, file: str, bounds: Bounds | None = None) -> None:
        self._file, self._bounds = file, bounds or Bounds()
        with self._broken():
            self._zip = zipfile.ZipFile(source)
        names = [member.filename for member in self._zip.infolist()]
        if len(names) > self._bounds.parts:
            raise self._too_large(
                "It holds more than {limit:,} files. Nothing was imported.", self._bounds.parts
            )
        if len(set(names)) != len(names):
            raise self._refused(Phrase("it holds two files of the same name"))
        if MANIFEST not in names:
            raise self.unknown()
        self.head = self._decoded(MANIFEST, self._unpacked(MANIFEST, self._bounds.manifest), Head)
        self._parts = self.head.parts
        for name in sorted({*names, *self._parts} - {MANIFEST}):
            if name not in names:
                raise self._refused(Phrase("{name} is missing", name=name[:200]))
            if name not in self._parts:
                raise self._refused(Phrase("{name!r} is not on its list", name=name[:200]))
        # Of a part no more is unpacked than the list says, and it is asked for once.
        if sum(part.bytes for part in self._parts.values()) > self._bounds.together:
            raise self._too_large(
                "Unpacked, it is larger than {limit:,} MB. Nothing was imported.",
                self._bounds.together // _MEGABYTE,
            )

    def __enter__(self) -> Unpacker:
        return self

    def __exit__(self, *_error: object) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def read(self, name: str) -> bytes:
        """A part whose content is what the list says."""
        if name not in self._parts:
            raise self._refused(Phrase("{name} is missing", name=name))
        listed = self._parts[name]
        content = self._unpacked(name, min(listed.bytes, self._bounds.part))
        if (len(content), hashlib.sha256(content).hexdigest()) != (listed.bytes, listed.sha256):
            raise self._refused(Phrase("{name} differs from what was packed", name=name))
        return content

    def read_json(self, name: str, kind: type[_Decoded]) -> _Decoded:
        """A part that is JSON, as one of the types of `json_parts`."""
        return self._decoded(name, self.read(name), kind)

    def read_table(self, name: str) -> Any:
        """A part that is a Parquet file, as an Arrow table."""
        batches, size = [], 0
        try:
            parquet = pq.ParquetFile(
                pa.BufferReader(self.read(name)), page_checksum_verification=True
            )
            # In batches: a few bytes of encoded text can become gigabytes.
            for batch in parquet.iter_batches(batch_size=_BATCH_ROWS):
                size += batch.nbytes
                if size > self._bounds.decoded:
                    raise self._too_large(
                        "A table in it is larger than {limit:,} MB. Nothing was imported.",
                        self._bounds.decoded // _MEGABYTE,
                    )
                batches.append(batch)
            return pa.Table.from_batches(batches, schema=parquet.schema_arrow)
        except MemoryError:
            # One of Arrow's is an ArrowException too.
            raise
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise self.refused(name, error) from error

    def refused(self, name: str, error: Exception) -> FormatError:
        """The error for a part that is not what rankdash writes; what a library says of it stays in
        English."""
        message = error.message if isinstance(error, RankdashError) else str(error)
        detail = message.strip().partition("\n")[0].rstrip(".")[:200]
        return self._refused(
            Phrase(
                "{name} is not what rankdash writes ({detail})", name=name, detail=Phrase(detail)
            )
        )

    def unknown(self) -> FormatError:
        """The error for a file that no `Packer` wrote, or not to its end."""
        return FormatError(
            "This is no workspace file, or it is damaged or cut short. Nothing was imported.",
            remedy=_REMEDY,
            file=self._file,
        )

    def _unpacked(self, name: str, most: int) -> bytes:
        with self._broken(), self._zip.open(name) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise self._too_large(
                "{what} in it is larger than its {limit:,} bytes. Nothing was imported.", most, name
            )
        return content

    def _decoded(self, name: str, content: bytes, kind: type[_Decoded]) -> _Decoded:
        try:
            return decoded(content, kind)
        except (ValueError, RecursionError) as error:
            raise self.refused(name, error) from error

    @contextmanager
    def _broken(self) -> Iterator[None]:
        """What zipfile says of a file that is no good, in words."""
        try:
            yield
        except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, RuntimeError, ValueError,
                OverflowError) as error:  # fmt: skip
            raise self.unknown() from error
        except OSError as error:
            # A list that is damaged sends the reader to a place before the beginning.
            if error.errno != errno.EINVAL:
                raise
            raise self.unknown() from error
        except Exception as error:
            # The decompressors have errors of their own kind, which share no base.
            if type(error).__module__ not in ("zlib", "lzma", "_lzma", "bz2"):
                raise
            raise self._refused(Phrase("it cannot be unpacked")) from error

    def _refused(self, reason: Phrase) -> FormatError:
        return FormatError(
            "This workspace file differs from its export: {reason}. Nothing was imported.",
            remedy=_REMEDY,
            file=self._file,
            reason=reason,
        )

    def _too_large(self, template: str, limit: int, what: str = "") -> LimitError:
        return LimitError(
            template,
            remedy="Export fewer data sets into one file.",
            file=self._file,
            limit=limit,
            what=what[:200],
        )


# The JSON parts of a workspace file, as types: `decoded` refuses whatever does not fit them.

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
