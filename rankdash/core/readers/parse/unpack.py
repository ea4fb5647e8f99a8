"""Limits checked on the bytes of a file before it is parsed, and unpacking of archives."""

from __future__ import annotations

import gzip
import io
import re
import stat
import zipfile
from collections.abc import Sequence
from typing import IO

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import FormatError, LimitError
from rankdash.core.readers.parse.limits import DAMAGED_ARCHIVE, MEGABYTE, ReadLimits, reading
from rankdash.core.readers.parse.source import Decoded, Source, refuse_large, too_many_files
from rankdash.core.readers.parse.table import too_many_rows

# With larger pieces, each array is newly allocated, which takes twice as long.
CHUNK = 1 << 17
_BINARY = (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff", b"PK\x03\x04", b"\x1f\x8b")
# Byte-order marks, the zeros of UTF-16 and white space.
_FIRST = re.compile(rb"[\xef\xbb\xbf\xff\xfe\0 \t\r\n]*+(.?)", re.DOTALL)
_OPEN, _CLOSE, _COMMA, _MARK = 1, 2, 3, 4
_KIND = dict(zip(b'[{]},"', (_OPEN, _OPEN, _CLOSE, _CLOSE, _COMMA, _MARK), strict=True))
_KINDS = bytes(_KIND.get(byte, 0) for byte in range(256))
_QUOTE, _BREAK = ord('"'), ord("\n")
# JSON in ASCII needs twelve bytes for a character outside the basic plane.
_BYTES_PER_CHAR = 12


def _within(quotes: npt.NDArray[np.bool_], before: bool) -> npt.NDArray[np.bool_]:
    """Return flags of the bytes inside quotation marks. quotes: flags of the marks. before: True if
    the preceding byte is inside."""
    return (np.cumsum(quotes, dtype=np.uint8) & 1).astype(bool) ^ before


def refuse_long_lines(data: bytes, file: str, limits: ReadLimits) -> None:
    """Raise LimitError for a line that is too long (with the line number), or for too many lines
    (line breaks inside quotation marks do not count). JSON and binary files are not checked; in
    markup the number of lines is not limited."""
    first = _FIRST.match(data)
    kind = first[1] if first else b""
    if data.startswith(_BINARY) or kind in (b"[", b"{"):
        return
    start = 0
    while len(data) - start > limits.line_bytes:
        window = start, start + limits.line_bytes + 1
        end = max(data.rfind(b"\n", *window), data.rfind(b"\r", *window))
        if end < 0:
            raise limits.over(
                "line_bytes",
                "A line is longer than {limit:,.1f} MB.",
                "Split the documents into passages, one per row, or allow longer lines with "
                "{variable}.",
                file,
                max(data.count(b"\n", 0, start), data.count(b"\r", 0, start)) + 1,
            )
        start = end + 1
    feeds = data.count(b"\n")
    lines = max(feeds, data.count(b"\r"))
    # The first line may be a header. Quoted texts may contain line breaks; escaped marks and UTF-16
    # are left to the reader.
    if kind == b"<" or lines <= limits.rows + 1:
        return
    if lines <= 2 * limits.rows + 1 and b'"' in data:
        if feeds <= limits.rows + 1 or b"\0" in data[:4] or b'\\"' in data:
            return
        lines, within = 0, False
        for start in range(0, len(data), CHUNK):
            codes = np.frombuffer(data[start : start + CHUNK], dtype=np.uint8)
            inside = _within(codes == _QUOTE, within)
            within = bool(inside[-1])
            lines += int(np.count_nonzero((codes == _BREAK) & ~inside))
    if lines > limits.rows + 1:
        raise too_many_rows(file, limits)


def refuse_vast_json(decoded: Decoded, file: str, limits: ReadLimits) -> None:
    """Raise LimitError, with the line, for JSON with too many values, too many nesting levels or a
    too long text. This is checked before decoding, which needs memory for the whole content."""
    rest, within = b"", False
    lines, values, depth, text = 1, 0, 0, 0
    for start in range(0, len(decoded.content), CHUNK):
        piece = decoded.content[start : start + CHUNK]
        chunk = piece if isinstance(piece, bytes) else piece.encode("utf-8", "surrogatepass")
        # A backslash at the end escapes a character in the next chunk.
        chunk = rest + chunk
        whole = len(chunk) - (len(chunk) - len(chunk.rstrip(b"\\"))) % 2
        chunk, rest = chunk[:whole], chunk[whole:]
        if b"\\" in chunk:
            chunk = chunk.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        kinds = np.frombuffer(chunk.translate(_KINDS), dtype=np.uint8)
        # Only these bytes matter below, and they are few.
        places = np.flatnonzero(kinds != 0)
        kinds = kinds[places]
        inside = _within(kinds == _MARK, within)
        marks = np.concatenate(([-text if within else 0], places[kinds == _MARK], [len(chunk)]))
        # Texts are every second interval between marks; the last may continue in the next chunk.
        texts = np.diff(marks)[not within :: 2]
        if int(texts.max(initial=0)) > _BYTES_PER_CHAR * limits.field_chars + 1:
            begins = int(marks[2 * int(texts.argmax()) + (not within)])
            raise limits.over(
                "field_chars",
                "A text in the JSON is longer than {limit:,} characters.",
                "Split the documents into passages, or allow longer ones with {variable}.",
                file,
                lines + chunk.count(b"\n", 0, max(begins, 0)),
            )
        nests = ~inside & (kinds <= _CLOSE)
        depths = depth + np.cumsum(np.where(kinds[nests] == _OPEN, 1, -1))
        too_deep = np.flatnonzero(depths > limits.json_depth)
        if len(too_deep):
            raise limits.over(
                "json_depth",
                "The file nests lists and objects in more than {limit:,} levels.",
                "Write one object for each row, or allow more with {variable}.",
                file,
                lines + chunk.count(b"\n", 0, int(places[nests][too_deep[0]])),
            )
        values += int(np.count_nonzero(~inside & ((kinds == _OPEN) | (kinds == _COMMA))))
        if values > limits.json_values:
            raise limits.over(
                "json_values",
                "The JSON contains more than {limit:,} values.",
                "Store the rows as Parquet or CSV, load a sample of the queries with all their "
                "rows, or allow more with {variable}.",
                file,
            )
        lines += chunk.count(b"\n")
        depth = int(depths[-1]) if len(depths) else depth
        within ^= bool(np.count_nonzero(kinds == _MARK) % 2)
        text = int(texts[-1]) if within else 0


# `.gz` and `.zip` around any format. Nothing is written to disk; hostile archives are refused.

GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_WORKBOOK = "xl/workbook.xml"
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_UTF8_NAME = 0x800
_ENCRYPTED = 0x1
# Up to this size, the compression ratio is not checked.
_UNPACKED_ALWAYS = 50 * MEGABYTE


def unpack(sources: Sequence[Source], limits: ReadLimits) -> tuple[list[Source], list[FormatError]]:
    """Return the files, with archives replaced by the files inside, in order; and an error for each
    archive that is damaged, encrypted or empty.

    Raises LimitError for too large or too many files, archives inside archives, and paths outside
    the archive.
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
    """An unpacker with a size budget for all archives together, and one for each archive."""

    def __init__(self, limits: ReadLimits) -> None:
        self._limits = limits
        self._budget = limits.unpacked_bytes
        self._archive_budget = 0

    def files_of(self, source: Source) -> list[Source]:
        self._archive_budget = max(self._limits.unpacked_ratio * source.size, _UNPACKED_ALWAYS)
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
            reading(source.name, DAMAGED_ARCHIVE, kind="gzip"),
            source.open() as file,
            gzip.GzipFile(fileobj=file) as packed,
        ):
            data = self._read(packed, source.name)
        if data.startswith((GZIP, *_ZIP)) or data[257:262] == b"ustar":
            raise _nested(source.name)
        return Source(source.name, data, source.origin)

    def _unzip(self, source: Source) -> list[Source]:
        with (
            reading(source.name, DAMAGED_ARCHIVE, kind="zip"),
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
                "The zip archive contains no files.",
                remedy="Add the data files to the archive and try again.",
                file=source.name,
            )
        repeated = len(members) - len({member.name for member in members})
        if repeated:
            raise FormatError(
                "Duplicate names in the zip archive: {count}.",
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
                "The zip archive uses a compression that rankdash does not support.",
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
        """Count the unpacked content of a workbook against the budgets before it is parsed."""
        for entry in entries:
            with workbook.open(entry) as packed:
                self._read(packed, name)

    def _read(self, packed: gzip.GzipFile | IO[bytes], name: str) -> bytes:
        """Unpack a file. Raises LimitError as soon as a budget or a limit is exceeded."""
        chunks: list[bytes] = []
        while chunk := packed.read(CHUNK):
            self._budget -= len(chunk)
            self._archive_budget -= len(chunk)
            if self._budget < 0:
                raise self._limits.over(
                    "unpacked_bytes",
                    "Unpacked, the files are larger than {limit:,.1f} MB.",
                    "Remove documents that are not candidates of any query, load the data set in "
                    "parts, or allow more with {variable}.",
                    name,
                )
            if self._archive_budget < 0:
                raise self._limits.over(
                    "unpacked_ratio",
                    "Unpacked, the archive is more than {limit:,} times as large.",
                    "Check its content, which repeats the same bytes. Allow more with {variable}.",
                    name,
                )
            chunks.append(chunk)
        content = b"".join(chunks)
        refuse_long_lines(content, name, self._limits)
        return content


def _safe_name(entry: zipfile.ZipInfo, archive: str) -> str:
    name = entry.filename
    if not entry.flag_bits & _UTF8_NAME:
        # Archives made on a Chinese Windows store names in GBK without a flag; zipfile then
        # reads them as cp437.
        try:
            name = name.encode("cp437").decode("gb18030")
        except UnicodeError:
            name = entry.filename
    name = name.replace("\\", "/")
    if name.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in name.split("/"):
        raise LimitError(
            "The zip archive contains a path outside the archive: {name!r}.",
            remedy="Create the archive again from a folder, with names relative to it.",
            file=archive,
            name=name,
        )
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise LimitError(
            "The zip archive contains a link: {name!r}.",
            remedy="Add the file itself to the archive, not a link to it.",
            file=archive,
            name=name,
        )
    return name


def _refuse_workspace(names: Sequence[str], archive: str) -> None:
    """Raise FormatError for a workspace file, which contains whole data sets with their runs."""
    markers = {"manifest.json", "settings.json"}
    parts = set(names) - markers
    if markers <= set(names) and all(name.startswith(("datasets/", "runs/")) for name in parts):
        raise FormatError(
            "This is a workspace file, not the files of one data set.",
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
            remedy="Save its table as CSV (UTF-8) and load the CSV file.",
            file=archive,
        )


def _workbook(name: str) -> FormatError:
    return FormatError(
        "This is an Excel workbook in an old or binary format.",
        remedy="Save it as .xlsx, or the sheet as CSV (UTF-8), and load the new file.",
        file=name,
    )


def _nested(name: str) -> LimitError:
    return LimitError(
        "This is an archive inside an archive.",
        remedy="Unpack the outer archive and load its content.",
        file=name,
    )
