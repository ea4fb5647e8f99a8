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
import re
import sqlite3
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from rankdash.core.base.errors import (
    DataError,
    Finding,
    FormatError,
    LimitError,
    Phrase,
    RankdashError,
    StoreError,
)
from rankdash.core.value.assumptions import (
    PRICES,
    SCENARIOS,
    TARGETS,
)
from rankdash.core.workspace.database import (
    Record,
    now,
    read_json,
    select,
)
from rankdash.core.workspace.failures import in_words
from rankdash.core.workspace.jobs.judges import answers_of, json_of
from rankdash.core.workspace.notes import tags_of
from rankdash.core.workspace.tables import (
    PARTS,
)
from rankdash.core.workspace.workspace import Workspace
from rankdash.core.workspace.workspace_file.import_checks import (
    CorrectionRow,
    DatasetPart,
    Decoded,
    Explained,
    Head,
    JudgedPairRow,
    JudgePart,
    LabelNoteRow,
    NoteRow,
    PauseRow,
    PlanRow,
    RunNoteRow,
    RunPart,
    decoded,
)

MANIFEST = "manifest.json"
_MEGABYTE = 1_000_000
_REMEDY = "Copy or export it again."
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

    def read_json(self, name: str, kind: type[Decoded]) -> Decoded:
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

    def _decoded(self, name: str, content: bytes, kind: type[Decoded]) -> Decoded:
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


# A workspace, or some of its data sets, as one file: written, checked, taken in.
#
#     datasets/<id>/about.json    name, source, check report; notes, tags, corrected labels; the
#                                 plan of what to label; judges with their grades
#     datasets/<id>/….parquet     its tables, as the workspace keeps them
#     runs/<id>/about.json        name, settings, machine; note, pin, explanations
#     runs/<id>/….parquet         its tables
#     settings.json               scenarios, prices and targets
#
# Excluded: keys (which no workspace holds), cached scores, jobs that have not ended, and paths on
# this machine. What is taken in was checked: hashes, tables, rows, and that the content of a data
# set is what its id says. All of it is added in one transaction, or nothing. What is here already
# stays as it is; where the file says otherwise, that is reported.

SUFFIX = ".rankdash.zip"
FORMAT, VERSION = "rankdash workspace", 1
SETTINGS = "settings.json"
DAMAGED_DATASET, _DAMAGED_RUN = "archive.damaged_dataset", "archive.damaged_run"
_DAMAGED_JUDGE = "archive.damaged_judge"
MEASURED_PARTS = ("reading", "measured", "calls")
"""The tables that a run has only where it measured what they hold."""

_PASSWORD = re.compile(r"//[^/@\s]+@")

Progress = Callable[[int, int], None]
"""Is told how much is done, and of how much."""


def export(
    workspace: Workspace,
    target: BinaryIO,
    version: str,
    dataset_ids: Collection[str] | None = None,
    progress: Progress = lambda _done, _total: None,
) -> list[Finding]:
    """Write the data sets (None: all) with all that belongs to them; what is damaged and excluded,
    which the file says too: runs, and data sets with their runs.

    version: of rankdash. progress: is told how many data sets and runs are written. Raises
    StoreError for a data set that is not here, and where all are damaged.
    """
    rows = workspace.datasets()
    chosen = [row for row in rows if dataset_ids is None or row.id in dataset_ids]
    for lacking in set(dataset_ids or ()) - {row.id for row in rows}:
        workspace.dataset(lacking)
    runs = {row.id: workspace.runs(row.id) for row in chosen}
    total = len(chosen) + sum(map(len, runs.values()))
    done = 0
    contents: dict[str, list[str]] = {}
    excluded: dict[str, tuple[str, StoreError]] = {}
    packer = Packer(target)
    for row in chosen:
        # Read to see whether it is whole; what was kept is copied.
        try:
            workspace.dataset(row.id)
        except StoreError as error:
            excluded[row.name] = DAMAGED_DATASET, error
            progress(done := done + 1 + len(runs[row.id]), total)
            continue
        for name, why in _pack_dataset(workspace, packer, row.id).items():
            excluded[f"{row.name}: {name}"] = _DAMAGED_JUDGE, why
        contents[row.id] = []
        progress(done := done + 1, total)
        for run in runs[row.id]:
            try:
                workspace.run(run.id)
            except StoreError as error:
                excluded[f"{row.name}: {run.name}"] = _DAMAGED_RUN, error
            else:
                _pack_run(workspace, packer, run.id)
                contents[row.id].append(run.id)
            progress(done := done + 1, total)
    if excluded and not contents:
        packer.abandon()
        raise next(iter(excluded.values()))[1]
    shared = (SCENARIOS, PRICES, TARGETS)
    settings = {name: value for name in shared if (value := workspace.setting(name))}
    packer.add_json(SETTINGS, {"settings": settings})
    packer.close(
        {
            "format": FORMAT,
            "version": VERSION,
            "rankdash": version,
            "created": now(),
            "datasets": contents,
            **({"excluded": list(excluded)} if excluded else {}),
        }
    )
    return [
        Finding(
            "warning",
            code,
            "{name} is damaged and was not exported.",
            {"name": name},
            "To see what is wrong with it, run: rankdash workspace check",
        )
        for name, (code, _error) in excluded.items()
    ]


def is_workspace_file(source: BinaryIO) -> bool:
    """Whether a file is one that `export` wrote, as far as its list tells."""
    try:
        with Unpacker(source, "") as parts:
            return parts.head.format == FORMAT
    except DataError:
        return False


def datasets_in(file: Path) -> list[str]:
    """The ids of the data sets of a workspace file, as its list tells."""
    with Unpacker(file, file.name) as parts:
        return [str(each) for each in parts.head.datasets]


def _without_paths(value: Any) -> Any:
    """The same with the last step of every path on this machine only, and without what an address
    says before "@"."""
    if isinstance(value, dict):
        return {name: _without_paths(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_paths(each) for each in value]
    if not isinstance(value, str):
        return value
    for kind in (PurePosixPath, PureWindowsPath):
        path = kind(value)
        if path.is_absolute() or value.startswith("~"):
            return path.name
    return _PASSWORD.sub("//", value)


def _pack_dataset(workspace: Workspace, packer: Packer, dataset_id: str) -> dict[str, StoreError]:
    """Write a data set; name → why a judge of it is excluded."""
    with workspace.database.reading() as db:
        row = _one(db, "datasets", dataset_id)
        notes = select(db, "notes", "query_id", dataset_id=dataset_id)
        corrections = select(db, "corrections", dataset_id=dataset_id)
        remarks = select(db, "label_notes", "query_id", dataset_id=dataset_id)
        plan = _plan(db, dataset_id)
        judges, unread = _judges(db, dataset_id)
    tagged = [{**_fields(NoteRow, each), "tags": tags_of(each)[0]} for each in notes]
    about = {
        **_fields(DatasetPart, row),
        # Tags that cannot be read may be all there was.
        "notes": [each for each in tagged if each["tags"] or each["note"]],
        "corrections": [_fields(CorrectionRow, each) for each in corrections],
        "label_notes": [_fields(LabelNoteRow, each) for each in remarks],
        "plan": plan,
        "judges": judges,
    }
    packer.add_json(f"datasets/{dataset_id}/about.json", about)
    _copy(workspace.root / row["folder"], PARTS["datasets"], packer, f"datasets/{dataset_id}")
    return unread


def _plan(db: sqlite3.Connection, dataset_id: str) -> dict[str, Any] | None:
    """The plan that was begun last. before: how many corrections there were when it began."""
    row = next(iter(select(db, "label_plans", "rowid DESC", dataset_id=dataset_id)), None)
    if row is None:
        return None
    try:
        settings = read_json(row, "settings", dict[str, Any])
    except StoreError:
        return None
    (before,) = db.execute(
        "SELECT count(*) FROM corrections WHERE dataset_id = ? AND revision <= ?",
        (dataset_id, row["revision"]),
    ).fetchone()
    pauses = [_fields(PauseRow, each) for each in select(db, "label_pauses", plan_id=row["id"])]
    return {**_fields(PlanRow, row), "settings": settings, "before": before, "pauses": pauses}


def _judges(
    db: sqlite3.Connection, dataset_id: str
) -> tuple[list[dict[str, Any]], dict[str, StoreError]]:
    """Those that neither wait nor run, with what they said; name → why one is not among them."""
    judges, excluded = [], {}
    for row in select(db, "judges", "created, rowid", dataset_id=dataset_id):
        if row["state"] in ("queued", "running"):
            continue
        pairs = [
            {**_fields(JudgedPairRow, each), "answers": answers_of(each)}
            for each in select(db, "judged_pairs", judge_id=row["id"])
        ]
        unsettled = row["unsettled"] + row["at_risk"]
        try:
            about = {**_fields(JudgePart, row), **json_of(row), "pairs": pairs}
        except StoreError as error:
            excluded[row["name"]] = error
        else:
            settings = _without_paths(about["settings"])
            judges.append({**about, "settings": settings, "unsettled": unsettled})
    return judges, excluded


def _pack_run(workspace: Workspace, packer: Packer, run_id: str) -> None:
    with workspace.database.reading() as db:
        row = _one(db, "runs", run_id)
        notes, pins = (select(db, name, run_id=run_id) for name in ("run_notes", "pins"))
        explained = select(db, "explanations", "id", run_id=run_id, state="done")
    texts = {name: _without_paths(read_json(row, name, Record)) for name in ("settings", "machine")}
    about = {
        **_fields(RunPart, row),
        **texts,
        "note": next((_fields(RunNoteRow, note) for note in notes), None),
        "pinned": next((pin["pinned"] for pin in pins), None),
        "explanations": [
            _fields(Explained, each) for each in explained if each["result"] is not None
        ],
    }
    packer.add_json(f"runs/{run_id}/about.json", about)
    folder = workspace.root / row["folder"]
    measured = [name for name in MEASURED_PARTS if (folder / f"{name}.parquet").exists()]
    _copy(folder, (*PARTS["runs"], *measured), packer, f"runs/{run_id}")


def _fields(kind: type[Struct], row: sqlite3.Row) -> dict[str, Any]:
    """The columns of a row that are fields of a type of the workspace file."""
    columns = row.keys()
    return {name: row[name] for name in kind.__struct_fields__ if name in columns}


def _copy(folder: Path, names: Iterable[str], packer: Packer, place: str) -> None:
    for name in names:
        file = folder / f"{name}.parquet"
        with in_words(file):
            packer.add(f"{place}/{file.name}", file.read_bytes())


def _one(db: sqlite3.Connection, table: str, key: str) -> sqlite3.Row:
    for row in select(db, table, id=key):
        return row
    raise StoreError("The workspace was changed while it was exported.", remedy="Export it again.")
