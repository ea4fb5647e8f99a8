"""`.gz` and `.zip` around any format. Nothing is written to disk; hostile archives are refused."""

from __future__ import annotations

import gzip
import io
import re
import stat
import zipfile
from collections.abc import Sequence
from typing import IO

from rankdash.core.base.errors import FormatError, LimitError
from rankdash.core.readers.parse import skipped_rows
from rankdash.core.readers.parse.gauge import CHUNK, LineGauge, refuse_long_lines
from rankdash.core.readers.parse.limits import MEGABYTE, ReadLimits, variable
from rankdash.core.readers.parse.skipped_rows import told
from rankdash.core.readers.parse.source import Source, refuse_large, too_many_files

GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_WORKBOOK = "xl/workbook.xml"
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_UTF8_NAME = 0x800
_ENCRYPTED = 0x1
# Less is no danger, however small it was packed.
_UNPACKED_ALWAYS = 50 * MEGABYTE


def unpack(sources: Sequence[Source], limits: ReadLimits) -> tuple[list[Source], list[FormatError]]:
    """The files inside the archives, in order, a file that is no archive as it is; and an error for
    each archive that is damaged, encrypted or empty.

    Raises LimitError for too large or too many files, archives inside archives, and names that
    lead out of the archive.
    """
    unpacker = _Unpacker(limits)
    files: list[Source] = []
    broken: list[FormatError] = []
    for source in sources:
        refuse_large(source.name, source.size, limits)
        try:
            files.extend(unpacker.files_of(source))
        except FormatError as problem:
            broken.append(problem)
        if len(files) > limits.files:
            raise too_many_files(source.name, limits)
    return files, broken


class _Unpacker:
    """Unpacks with one budget for everything that comes out, and one for each archive."""

    def __init__(self, limits: ReadLimits) -> None:
        self._limits = limits
        self._left = limits.unpacked_bytes
        self._left_of_archive = 0

    def files_of(self, source: Source) -> list[Source]:
        self._left_of_archive = max(self._limits.unpacked_ratio * source.size, _UNPACKED_ALWAYS)
        if source.head.startswith(_OLD_OFFICE):
            raise _workbook(source.name)
        if source.head.startswith(GZIP):
            return [self._gunzip(source)]
        if source.head.startswith(_ZIP):
            return self._unzip(source)
        if not source.on_disk:
            refuse_long_lines(source.data, source.name, self._limits)
        return [source]

    def _gunzip(self, source: Source) -> Source:
        with (
            told(source.name, skipped_rows.ARCHIVE, kind="gzip"),
            source.open() as file,
            gzip.GzipFile(fileobj=file) as packed,
        ):
            data = self._read(packed, source.name)
        if data.startswith((GZIP, *_ZIP)) or data[257:262] == b"ustar":
            raise _nested(source.name)
        return Source(source.name, data, source.origin)

    def _unzip(self, source: Source) -> list[Source]:
        with (
            told(source.name, skipped_rows.ARCHIVE, kind="zip"),
            source.open() as file,
            zipfile.ZipFile(file) as archive,
        ):
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > self._limits.files:
                raise too_many_files(source.name, self._limits)
            names = [_safe_name(entry, source.name) for entry in entries]
            if _WORKBOOK in names:
                self._count(archive, entries, source.name)
                return [source]
            _refuse_office(names, source.name)
            _refuse_workspace(names, source.name)
            members = [
                self._member(archive, entry, f"{source.name}/{name}", source.name)
                for entry, name in zip(entries, names, strict=True)
            ]
        if not members:
            raise FormatError(
                "The zip archive holds no files.",
                remedy="Put the data files into the archive and try again.",
                file=source.name,
            )
        repeated = len(members) - len({member.name for member in members})
        if repeated:
            raise FormatError(
                "Names that the zip archive holds twice: {count}.",
                remedy="Create the archive again from a folder.",
                file=source.name,
                count=repeated,
            )
        return members

    def _member(
        self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str, origin: str
    ) -> Source:
        if entry.flag_bits & _ENCRYPTED:
            raise FormatError(
                "The zip archive is protected with a password.",
                remedy="Create the archive again without a password.",
                file=name,
            )
        if entry.compress_type not in _ZIP_METHODS:
            raise FormatError(
                "The zip archive uses a compression that rankdash does not read.",
                remedy="Create the archive again with the usual compression (deflate).",
                file=name,
            )
        with archive.open(entry) as packed:
            data = self._read(packed, name)
        if data.startswith(_OLD_OFFICE):
            raise _workbook(name)
        member = Source(name, data, origin)
        if data.startswith(_ZIP):
            with zipfile.ZipFile(io.BytesIO(data)) as inner:
                if _WORKBOOK not in inner.namelist():
                    raise _nested(name)
                self._count(inner, inner.infolist(), name)
            return member
        return self._gunzip(member) if data.startswith(GZIP) else member

    def _count(
        self, workbook: zipfile.ZipFile, entries: Sequence[zipfile.ZipInfo], name: str
    ) -> None:
        """Spend the budget on what a workbook holds, before anything else opens it."""
        for entry in entries:
            with workbook.open(entry) as packed:
                self._read(packed, name)

    def _read(self, packed: gzip.GzipFile | IO[bytes], name: str) -> bytes:
        """Everything in `packed`, stopping as soon as a budget is spent or a file holds more than
        is read."""
        chunks: list[bytes] = []
        gauge = LineGauge(name, self._limits)
        while chunk := packed.read(CHUNK):
            self._left -= len(chunk)
            self._left_of_archive -= len(chunk)
            if self._left < 0:
                raise LimitError(
                    "Unpacked, the files are larger than {limit:,.1f} MB.",
                    remedy="Remove documents that are no query's candidate, load the data set in "
                    "parts, or allow more with {variable}.",
                    file=name,
                    limit=self._limits.unpacked_bytes / MEGABYTE,
                    variable=variable("unpacked_bytes"),
                )
            if self._left_of_archive < 0:
                raise LimitError(
                    "Unpacked, the archive is more than {limit:,} times as large.",
                    remedy="Check what it holds: it repeats the same bytes. Allow more with "
                    "{variable}.",
                    file=name,
                    limit=self._limits.unpacked_ratio,
                    variable=variable("unpacked_ratio"),
                )
            gauge.add(chunk)
            chunks.append(chunk)
        content = b"".join(chunks)
        gauge.end(content)
        return content


def _safe_name(entry: zipfile.ZipInfo, archive: str) -> str:
    name = entry.filename
    if not entry.flag_bits & _UTF8_NAME:
        # Archives made on a Chinese Windows store names in GBK without saying so; zipfile then
        # reads them as cp437.
        try:
            name = name.encode("cp437").decode("gb18030")
        except UnicodeError:
            name = entry.filename
    name = name.replace("\\", "/")
    if name.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in name.split("/"):
        raise LimitError(
            "The zip archive holds a name that leads out of it: {name!r}.",
            remedy="Create the archive again from a folder, with names relative to it.",
            file=archive,
            name=name,
        )
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise LimitError(
            "The zip archive holds a link: {name!r}.",
            remedy="Put the file itself into the archive, not a link to it.",
            file=archive,
            name=name,
        )
    return name


def _refuse_workspace(names: Sequence[str], archive: str) -> None:
    """A workspace file holds whole data sets with their runs, not the files of one data set."""
    own = {"manifest.json", "settings.json"}
    parts = set(names) - own
    if own <= set(names) and all(name.startswith(("datasets/", "runs/")) for name in parts):
        raise FormatError(
            "It is a workspace file, not the files of one data set.",
            remedy="Import it on the page Data, under Export or import the workspace, or with: "
            "rankdash workspace import FILE. Then compare its systems on the pages, and write "
            "reports on the page Report.",
            file=archive,
        )


def _refuse_office(names: Sequence[str], archive: str) -> None:
    if any(name.startswith("xl/") for name in names):
        raise _workbook(archive)
    if "[Content_Types].xml" in names:
        raise FormatError(
            "This is an Office document.",
            remedy="Save its table as CSV (UTF-8) and load that.",
            file=archive,
        )


def _workbook(name: str) -> FormatError:
    return FormatError(
        "This is an Excel workbook of an old or binary kind.",
        remedy="Save it as .xlsx, or the sheet as CSV (UTF-8), and load that.",
        file=name,
    )


def _nested(name: str) -> LimitError:
    return LimitError(
        "This is an archive inside an archive.",
        remedy="Unpack the outer one and load what it holds.",
        file=name,
    )
