"""`Source`: the content of one file; reading files from disk, and decoding bytes as text."""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from io import SEEK_END, BytesIO
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from rankdash.core.base.errors import DataError, Finding, FormatError, LimitError, Phrase
from rankdash.core.base.files import guarded
from rankdash.core.readers.parse.limits import MEGABYTE, ReadLimits

# The path for standard input.
_STANDARD = "-"

# Names of licences, notices and hidden files. They are skipped, unless there are no other files.
_PAPERS = re.compile(
    r"((licen[cs]e|copying|notice|readme|citation|changelog)([-_. ].*)?$|\.|__macosx$"
    # Metadata files of the library `datasets`.
    r"|(dataset_infos?|dataset_dict|state)\.json$"
    # Files that `rankdash fetch` writes next to the data.
    r"|fetch\.json$|.*\.timings\.(json|csv)$)",
    re.IGNORECASE,
)
# Larger files stay on disk until they are read.
_LARGE = 1 << 20
_HEAD = 1 << 18


_UNNAMED_INDEX = re.compile(r"__index_level_[0-9]+__")
_CONVERT = "Use one type in each column, and text for ids."


def _by_text(members: Mapping[Any, Any]) -> dict[str, Any]:
    """Return text of an id → member, with numbers of Python. Raises DataError if two ids have the
    same text."""
    by_text: dict[str, Any] = {}
    for identity, member in members.items():
        name = str(identity)
        if name in by_text:
            raise DataError(
                "Two ids have the same text {name!r}.",
                remedy="Use either texts or numbers as ids.",
                name=name,
            )
        inner = isinstance(member, Mapping)
        by_text[name] = _by_text(member) if inner else getattr(member, "item", lambda v=member: v)()
    return by_text


@dataclass(frozen=True)
class Source:
    """The content of one file.

    name:   the name for the user, with `/` between folders; unique among the files of one call.
    content: the bytes, or the file that contains them.
    origin: the folder or archive that contained it, else "".
    notes:  findings from downloading it.
    """

    name: str
    content: bytes | Path
    origin: str = ""
    notes: tuple[Finding, ...] = ()

    @property
    def data(self) -> bytes:
        """The content in bytes, read from disk each time. Raises DataError if it cannot be read."""
        with self.open() as file:
            return file.read()

    @property
    def on_disk(self) -> bool:
        return isinstance(self.content, Path)

    @cached_property
    def head(self) -> bytes:
        """The first 256 KiB of the content."""
        with self.open() as file:
            return file.read(_HEAD)

    @property
    def size(self) -> int:
        """The size in bytes."""
        with self.open() as file:
            return file.seek(0, SEEK_END)

    def open(self) -> BinaryIO:
        """Open the content as a binary file. Raises DataError if it cannot be read."""
        if isinstance(self.content, bytes):
            return BytesIO(self.content)
        try:
            return self.content.open("rb")
        except OSError as problem:
            raise _unreadable(self.content, problem) from problem

    @classmethod
    def from_path(cls, path: Path, *, limits: ReadLimits | None = None) -> Source:
        """Read one file, or standard input if the path is "-". Raises DataError if it cannot be
        read, and LimitError, without reading it, if it is too large."""
        limits = limits or ReadLimits()
        if str(path) == _STANDARD:
            return cls._from_standard_input(limits)
        try:
            size = path.stat().st_size
            refuse_large(path.name, size, limits)
            large = size > _LARGE and path.is_file()
            return cls(path.name, path if large else path.read_bytes())
        except OSError as problem:
            raise _unreadable(path, problem) from problem

    @classmethod
    def of_table(cls, table: object, name: str) -> Source:
        """Return a table in memory as a file.

        table: an object with `__arrow_c_stream__`, such as a data frame of pandas or polars;
            columns as a dictionary of lists; or labels or a run as a dictionary of dictionaries,
            query → document → number.

        Raises DataError if the values cannot be converted.
        """
        import pyarrow as pa

        with guarded(name, "The table cannot be converted to Arrow: {reason}.", _CONVERT):
            if isinstance(table, Mapping) and any(isinstance(v, Mapping) for v in table.values()):
                pairs = _by_text(table)
                return cls(name, json.dumps(pairs, ensure_ascii=False).encode("utf-8", "replace"))
            if isinstance(table, Mapping):
                columns = pa.table({str(name): list(cells) for name, cells in table.items()})
            else:
                columns = pa.RecordBatchReader.from_stream(table).read_all()
            # The index of a pandas frame, unless it has a name.
            unnamed = [each for each in columns.column_names if _UNNAMED_INDEX.fullmatch(each)]
            columns = columns.drop_columns(unnamed)
            out = pa.BufferOutputStream()
            with pa.ipc.new_stream(out, columns.schema) as stream:
                stream.write_table(columns)
            return cls(name, out.getvalue().to_pybytes())

    @classmethod
    def _from_standard_input(cls, limits: ReadLimits) -> Source:
        data = sys.stdin.buffer.read(limits.file_bytes + 1)
        name = name_of(Path(_STANDARD))
        refuse_large(name, len(data), limits)
        if not data:
            raise DataError(
                "Standard input is empty.",
                remedy="Pipe a file into the command, and write - for one file only.",
                file=name,
            )
        return cls(name, data)

    def same_as(self, other: Source) -> bool:
        """Return whether both have the same content."""
        if self.content is other.content:
            return True
        return self.size == other.size and self.head == other.head and self.data == other.data

    @property
    def is_readme(self) -> bool:
        """True for licences, readmes and hidden files, which accompany the data."""
        return any(_PAPERS.match(part) for part in PurePosixPath(self.name).parts)


def name_of(path: Path) -> str:
    """Return the name that `Source.from_path` gives to a file."""
    return "stdin" if str(path) == _STANDARD else path.name


def stem_of(name: str) -> str:
    """Return the name without folders and suffixes: `bm25` for `runs/bm25.trec.gz`."""
    path = PurePosixPath(name)
    if path.suffix.lower() in (".gz", ".zip"):
        path = PurePosixPath(path.stem)
    return path.stem


def sources_from_path(path: Path, *, limits: ReadLimits | None = None) -> list[Source]:
    """Return the source of a file, or the sources of all files in a folder and its subfolders, in
    the order of their names.

    Names are relative to the folder. Raises DataError if nothing can be read, LimitError if there
    are too many files or one is too large.
    """
    limits = limits or ReadLimits()
    if path.is_file() or str(path) == _STANDARD:
        return [Source.from_path(path, limits=limits)]
    if not path.is_dir():
        raise DataError(
            "There is no file or folder {path}.",
            remedy="Check the spelling of the path.",
            path=str(path),
        )
    files = (file for file in path.rglob("*") if file.is_file())
    paths = sorted(islice(files, limits.files + 1))
    if len(paths) > limits.files:
        raise too_many_files(path.name, limits)
    if not paths:
        raise DataError(
            "The folder {path} contains no files.",
            remedy="Enter the folder that contains the queries, the documents and the labels.",
            path=str(path),
        )
    origin = path.resolve().name
    contents = ((file, Source.from_path(file, limits=limits).content) for file in paths)
    return [Source(file.relative_to(path).as_posix(), each, origin) for file, each in contents]


def refuse_large(name: str, size: int, limits: ReadLimits) -> None:
    """Raise LimitError if a file of `size` bytes exceeds the limit."""
    if size > limits.file_bytes:
        raise limits.over(
            "file_bytes",
            "The file has {size:,.1f} MB; at most {limit:,.1f} MB are accepted.",
            "Remove documents that are not candidates of any query, store the file as Parquet, or "
            "allow more with {variable}.",
            name,
            size=size / MEGABYTE,
        )


def too_many_files(name: str, limits: ReadLimits) -> LimitError:
    return limits.over(
        "files",
        "There are more than {limit:,} files.",
        "Keep only the files of one data set: queries, documents, labels and rankings. Or allow "
        "more with {variable}.",
        name,
    )


def _unreadable(path: Path, problem: OSError) -> DataError:
    return DataError(
        "The file cannot be read: {problem}.",
        remedy="Check that the file exists and that you have permission to read it.",
        file=str(path),
        problem=problem.strerror or type(problem).__name__,
    )


# Decoding: UTF-8, UTF-16 and UTF-32 (with a mark, or UTF-16 without), GB18030.

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY = (
    (b"%PDF-", Phrase("a PDF document")),
    *((magic, Phrase("an image")) for magic in (b"\x89PNG", b"\xff\xd8\xff", b"GIF89a")),
    (b"SQLite format 3", Phrase("an SQLite database")),
    (b"\xd0\xcf\x11\xe0", Phrase("an old Excel or Word file")),
    (b"7z\xbc\xaf\x27\x1c", Phrase("a 7z archive")),
    (b"Rar!\x1a\x07", Phrase("a RAR archive")),
    (b"BZh9", Phrase("a bzip2 archive")),
    (b"\xfd7zXZ", Phrase("an xz archive")),
    (b"\x28\xb5\x2f\xfd", Phrase("a Zstandard archive")),
    (b"\x93NUMPY", Phrase("a NumPy file")),
    *(
        (bytes((0x80, protocol)), Phrase("a Python pickle, which rankdash never opens"))
        for protocol in (2, 3, 4, 5)
    ),
    (b"ARROW1", Phrase("an Arrow file")),
)
_SAMPLE = 4096
_START = (1 << 18) + 1
# Damaged UTF-8 has a few invalid bytes among many valid characters; a file in another encoding has
# hardly any valid ones, because a random pair of high bytes is rarely valid UTF-8.
_GOOD_PER_BAD = 4
# Number of bytes examined for this before and after the first invalid byte.
_AROUND = 1 << 23
_PIECE = 1 << 20
# In Chinese text the second byte of a GB18030 pair is mostly a high one. In western text read as
# GB18030 it is a plain letter.
_HIGH_SECOND_BYTES = 0.5


@dataclass(frozen=True)
class Decoded:
    """Decoded text.

    content: without a byte-order mark; bytes if all are ASCII, so that readers can use them
    directly. encoding: the name of the codec. guessed: True if the file does not declare it."""

    content: str | bytes
    encoding: str
    guessed: bool = False

    @cached_property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else self.content.decode("ascii")

    @cached_property
    def utf8(self) -> bytes:
        return self.content.encode() if isinstance(self.content, str) else self.content

    @cached_property
    def start(self) -> str:
        """The beginning of the text, for format detection; the whole text if that is blank."""
        start = self.content[:_START]
        text = start if isinstance(start, str) else start.decode("ascii")
        return self.text if text.isspace() else text


def decode(data: bytes, file: str) -> Decoded:
    """Decode `data` as text.

    Raises FormatError if it is a known binary format, or, with the line of the first invalid byte,
    if the encoding is not supported.
    """
    for magic, kind in _BINARY:
        if data.startswith(magic):
            raise _binary(file, kind)
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return Decoded(_strictly(data[len(mark) :], encoding, file), encoding)
    sixteen = _unmarked_utf16(data[:_SAMPLE])
    if sixteen:
        return Decoded(_strictly(data, sixteen, file), sixteen, guessed=True)
    try:
        text = data if data.isascii() else data.decode("utf-8")
    except UnicodeDecodeError as problem:
        # In this order, because noise is rejected as GB18030 at its first bytes.
        around = data[max(0, problem.start - _AROUND) : problem.start + _AROUND]
        if not _like_gb18030(data) or _mostly_utf8(around):
            raise _undecodable(data, problem.start, "utf-8", file) from problem
        return Decoded(_strictly(data, "gb18030", file), "gb18030", guessed=True)
    decoded = Decoded(text, "utf-8")
    if _controls(decoded.start[:_SAMPLE]):
        raise _binary(file, Phrase("binary data"))
    return decoded


def _strictly(data: bytes, encoding: str, file: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as problem:
        raise _undecodable(data, problem.start, encoding, file) from problem


def _unmarked_utf16(sample: bytes) -> str | None:
    """Detect UTF-16 without a mark: in mostly ASCII text, every second byte is zero."""
    if len(sample) < 4:
        return None
    first, second = sample[::2].count(0), sample[1::2].count(0)
    for few, many, encoding in ((first, second, "utf-16-le"), (second, first, "utf-16-be")):
        if many > len(sample) / 5 and few <= many / 20:
            return encoding
    return None


def _mostly_utf8(data: bytes) -> bool:
    text = data.decode("utf-8", errors="replace")
    bad = text.count("�")
    good = len(text) - len(_ascii_only(text)) - bad
    return good >= _GOOD_PER_BAD * bad


def _ascii_only(text: str) -> str:
    return text.encode("ascii", errors="ignore").decode("ascii")


def _like_gb18030(data: bytes) -> bool:
    decoder = codecs.getincrementaldecoder("gb18030")()
    pairs = wide = 0
    for start in range(0, max(len(data), 1), _PIECE):
        piece = data[start : start + _PIECE]
        try:
            text = decoder.decode(piece, final=start + _PIECE >= len(data))
        except UnicodeDecodeError:
            return False
        if start == 0 and _controls(text[:_SAMPLE]):
            return False
        pairs += len(piece.translate(None, delete=bytes(range(0x80))))
        wide += len(text) - len(_ascii_only(text))
    # `wide` characters contain `pairs` high bytes: two each if the second byte is high too.
    return wide > 0 and pairs / wide - 1 >= _HIGH_SECOND_BYTES


def _controls(sample: str) -> bool:
    """Return whether control characters are more than a third of a sample."""
    controls = sum(1 for char in sample if char == "\0" or "\x02" <= char < "\t")
    return controls > len(sample) / 3


def _binary(file: str, kind: Phrase) -> FormatError:
    return FormatError(
        "This is {kind}, not a supported data file.",
        remedy="Load CSV, TSV, JSON, JSONL, Parquet or TREC files, plain or as .gz or .zip.",
        file=file,
        kind=kind,
    )


def _undecodable(data: bytes, bad: int, encoding: str, file: str) -> FormatError:
    """Return the error for an invalid byte. bad: its position."""
    if encoding.startswith(("utf-16", "utf-32")):
        breaks = data[:bad].decode(encoding, errors="ignore").count("\n")
    else:
        # In these encodings, no other character contains that byte.
        breaks = data.count(b"\n", 0, bad)
    return FormatError(
        "A character cannot be read: the text is neither UTF-8, UTF-16 nor GB18030.",
        remedy="Save the file as UTF-8 and load it again.",
        file=file,
        line=breaks + 1,
    )
