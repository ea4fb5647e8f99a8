"""One file of named parts: a zip with a manifest, whose content is never trusted.

    manifest.json    format, version, the rankdash that wrote it; size and SHA-256 of every part
    …                the parts

A part is looked up by a name that rankdash makes; a name from the file is never used as a path.
Sizes are measured while unpacking, not taken from a header.
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
    TIMINGS,
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
# With dates in the zip, the same content would be a different file.
_NO_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Bounds:
    """The limits of unpacking: the number of parts, and the size in bytes of the manifest, of one
    part, of all parts, and of one table once it is decoded."""

    parts: int = 50_000
    manifest: int = 32 * _MEGABYTE
    part: int = 1_000 * _MEGABYTE
    together: int = 4_000 * _MEGABYTE
    decoded: int = 4_000 * _MEGABYTE


class Packer:
    """A writer of parts and, at the end, of their manifest."""

    def __init__(self, target: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED)
        self._parts: dict[str, dict[str, object]] = {}

    def add(self, name: str, content: bytes) -> None:
        """Write a part. name: of letters, digits, "-", "_", "." and "/"; each only once."""
        self._parts[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        self._write(name, content)

    def add_json(self, name: str, value: object) -> None:
        # Half of a surrogate pair, which data may contain, is written as an escape.
        self.add(name, json.dumps(value, ensure_ascii=True, allow_nan=False).encode())

    def close(self, head: Mapping[str, object]) -> None:
        """Write the manifest. head: its entries except the parts."""
        text = json.dumps({**head, "parts": self._parts}, ensure_ascii=True, indent=1)
        self._write(MANIFEST, text.encode())
        self._zip.close()

    def abandon(self) -> None:
        """Close the file without a manifest, which makes it invalid."""
        self._zip.close()

    def _write(self, name: str, content: bytes) -> None:
        entry = zipfile.ZipInfo(name, _NO_DATE)
        # Parquet is compressed already.
        packed = not name.endswith(".parquet")
        entry.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
        try:
            self._zip.writestr(entry, content)
        except OSError:
            # Not later, when closing could raise an error that is not caught.
            with suppress(OSError):
                self._zip.close()
            raise


class Unpacker:
    """A reader of files that a `Packer` wrote. Every method raises FormatError if the file is not
    such a file or was changed, and LimitError if it is larger than `bounds`."""

    def __init__(self, source: Path | BinaryIO, file: str, bounds: Bounds | None = None) -> None:
        self._file, self._bounds = file, bounds or Bounds()
        with self._broken():
            self._zip = zipfile.ZipFile(source)
        names = [member.filename for member in self._zip.infolist()]
        if len(names) > self._bounds.parts:
            raise self._too_large(
                "The file contains more than {limit:,} files. Nothing was imported.",
                self._bounds.parts,
            )
        if len(set(names)) != len(names):
            raise self._refused(Phrase("it contains two files of the same name"))
        if MANIFEST not in names:
            raise self.unknown()
        self.head = self._decoded(MANIFEST, self._unpacked(MANIFEST, self._bounds.manifest), Head)
        self._parts = self.head.parts
        for name in sorted({*names, *self._parts} - {MANIFEST}):
            if name not in names:
                raise self._refused(Phrase("{name} is missing", name=name[:200]))
            if name not in self._parts:
                raise self._refused(Phrase("{name!r} is not on its list", name=name[:200]))
        # Each part is read once, and no more of it than the size in the manifest.
        if sum(part.bytes for part in self._parts.values()) > self._bounds.together:
            raise self._too_large(
                "The unpacked content is larger than {limit:,} MB. Nothing was imported.",
                self._bounds.together // _MEGABYTE,
            )

    def __enter__(self) -> Unpacker:
        return self

    def __exit__(self, *_error: object) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def read(self, name: str) -> bytes:
        """Return a part whose content matches the manifest."""
        if name not in self._parts:
            raise self._refused(Phrase("{name} is missing", name=name))
        listed = self._parts[name]
        content = self._unpacked(name, min(listed.bytes, self._bounds.part))
        if (len(content), hashlib.sha256(content).hexdigest()) != (listed.bytes, listed.sha256):
            raise self._refused(Phrase("{name} differs from what was packed", name=name))
        return content

    def read_json(self, name: str, kind: type[Decoded]) -> Decoded:
        """Return a part that is JSON, as one of the types of `import_checks`."""
        return self._decoded(name, self.read(name), kind)

    def read_table(self, name: str) -> Any:
        """Return a part that is a Parquet file, as an Arrow table."""
        batches, size = [], 0
        try:
            parquet = pq.ParquetFile(
                pa.BufferReader(self.read(name)), page_checksum_verification=True
            )
            # In batches: a few bytes of encoded text can expand to gigabytes.
            for batch in parquet.iter_batches(batch_size=_BATCH_ROWS):
                size += batch.nbytes
                if size > self._bounds.decoded:
                    raise self._too_large(
                        "A table in the file is larger than {limit:,} MB. Nothing was imported.",
                        self._bounds.decoded // _MEGABYTE,
                    )
                batches.append(batch)
            return pa.Table.from_batches(batches, schema=parquet.schema_arrow)
        except MemoryError:
            # Arrow's MemoryError is an ArrowException too.
            raise
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise self.refused(name, error) from error

    def refused(self, name: str, error: Exception) -> FormatError:
        """Return the error for a part that rankdash did not write; the message of a library stays
        English."""
        message = error.message if isinstance(error, RankdashError) else str(error)
        detail = message.strip().partition("\n")[0].rstrip(".")[:200]
        return self._refused(
            Phrase(
                "{name} was not written by rankdash ({detail})", name=name, detail=Phrase(detail)
            )
        )

    def unknown(self) -> FormatError:
        """Return the error for a file that no `Packer` wrote, or that is incomplete."""
        return FormatError(
            "This is not a workspace file, or it is damaged or truncated. Nothing was imported.",
            remedy=_REMEDY,
            file=self._file,
        )

    def _unpacked(self, name: str, most: int) -> bytes:
        with self._broken(), self._zip.open(name) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise self._too_large(
                "{what} in the file is larger than its {limit:,} bytes. Nothing was imported.",
                most,
                name,
            )
        return content

    def _decoded(self, name: str, content: bytes, kind: type[Decoded]) -> Decoded:
        try:
            return decoded(content, kind)
        except (ValueError, RecursionError) as error:
            raise self.refused(name, error) from error

    @contextmanager
    def _broken(self) -> Iterator[None]:
        """Turn zipfile's errors about an invalid file into FormatErrors."""
        try:
            yield
        except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, RuntimeError, ValueError,
                OverflowError) as error:  # fmt: skip
            raise self.unknown() from error
        except OSError as error:
            # A damaged zip directory can point to a position before the beginning.
            if error.errno != errno.EINVAL:
                raise
            raise self.unknown() from error
        except Exception as error:
            # The decompressors have separate error classes without a common base.
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


# A workspace, or some of its data sets, as one file: export, check and import.
#
#     datasets/<id>/about.json    name, source, check report; notes, tags, corrected labels; the
#                                 labelling plan; judges with their grades
#     datasets/<id>/….parquet     its tables, as in the workspace
#     runs/<id>/about.json        name, settings, machine; note, pin, explanations
#     runs/<id>/….parquet         its tables
#     settings.json               scenarios, prices and targets
#
# Excluded: keys (which no workspace contains), cached scores, unfinished jobs, and paths on this
# machine. An import is checked first: hashes, tables, rows, and that the content of a data set
# matches its id. All of it is added in one transaction, or nothing. Existing items stay unchanged;
# differences in the file are reported.

SUFFIX = ".rankdash.zip"
FORMAT, VERSION = "rankdash workspace", 1
SETTINGS = "settings.json"
DAMAGED_DATASET, _DAMAGED_RUN = "archive.damaged_dataset", "archive.damaged_run"
_DAMAGED_JUDGE = "archive.damaged_judge"
MEASURED_PARTS = ("reading", "measured", "calls", "documents")
"""The tables that a run has only if it measured or fetched their content."""

_PASSWORD = re.compile(r"//[^/@\s]+@")

Progress = Callable[[int, int], None]
"""A callback with the amount done and the total."""


def export(
    workspace: Workspace,
    target: BinaryIO,
    version: str,
    dataset_ids: Collection[str] | None = None,
    progress: Progress = lambda _done, _total: None,
) -> list[Finding]:
    """Write the data sets (None: all) with everything that belongs to them. Return findings about
    damaged runs and data sets, which are excluded and listed in the file; a damaged data set is
    excluded with its runs.

    version: of rankdash. progress: called with the number of data sets and runs written. Raises
        StoreError for a data set that does not exist, and if all are damaged.
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
        # Read only to check it; the stored files are copied.
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
            "To see the problem, run: rankdash workspace check",
        )
        for name, (code, _error) in excluded.items()
    ]


def is_workspace_file(source: BinaryIO) -> bool:
    """Return whether a file has the manifest of a workspace file."""
    try:
        with Unpacker(source, "") as parts:
            return parts.head.format == FORMAT
    except DataError:
        return False


def datasets_in(file: Path) -> list[str]:
    """Return the ids of the data sets of a workspace file, by its manifest."""
    with Unpacker(file, file.name) as parts:
        return [str(each) for each in parts.head.datasets]


def _without_paths(value: Any) -> Any:
    """Return a value with only the last step of every path on this machine, and without user names
    and passwords in addresses."""
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
    """Write a data set; return name → error, for each of its judges that is excluded."""
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
        # A note may have had only tags, which cannot be read.
        "notes": [each for each in tagged if each["tags"] or each["note"]],
        "corrections": [_fields(CorrectionRow, each) for each in corrections],
        "label_notes": [_fields(LabelNoteRow, each) for each in remarks],
        "plan": plan,
        "judges": judges,
    }
    packer.add_json(f"datasets/{dataset_id}/about.json", about)
    folder = workspace.root / row["folder"]
    timings = [Path(TIMINGS).stem] if (folder / TIMINGS).exists() else []
    _copy(folder, (*PARTS["datasets"], *timings), packer, f"datasets/{dataset_id}")
    return unread


def _plan(db: sqlite3.Connection, dataset_id: str) -> dict[str, Any] | None:
    """Return the plan that was begun last. before: how many corrections there were when it
    began."""
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
    """Return the judges that are not queued or running, with their grades; and name → error of the
    excluded judges."""
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
    """Return column → value of a row, for the fields of `kind`, a type of the workspace file."""
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
