"""`Source`: one file as it was given, where files on disk become sources, and bytes become text."""

from __future__ import annotations

import codecs
import re
import sys
from dataclasses import dataclass
from functools import cached_property
from io import SEEK_END, BytesIO
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from rankdash.core.base.errors import DataError, Finding, FormatError, LimitError, Phrase
from rankdash.core.readers.parse.limits import MEGABYTE, ReadLimits

# As a path: standard input.
_STANDARD = "-"

# Papers that travel with a data set. They are set aside by name, and only beside other files.
_PAPERS = re.compile(
    r"((licen[cs]e|copying|notice|readme|citation|changelog)([-_. ].*)?$|\.|__macosx$"
    # What the `datasets` library writes beside its tables.
    r"|(dataset_infos?|dataset_dict|state)\.json$)",
    re.IGNORECASE,
)
# What is larger stays on disk until it is read.
_LARGE = 1 << 20
_HEAD = 1 << 18


@dataclass(frozen=True)
class Source:
    """The content of one file.

    name:   as the user knows it, with `/` between folders; unique among the files of one call.
    content: the bytes, or the file that holds them.
    origin: the folder or archive it came with, else "".
    notes:  what was noticed on its way here.
    """

    name: str
    content: bytes | Path
    origin: str = ""
    notes: tuple[Finding, ...] = ()

    @property
    def data(self) -> bytes:
        """All bytes; those of a file are read each time. Raises DataError where they cannot be."""
        with self.open() as file:
            return file.read()

    @property
    def on_disk(self) -> bool:
        return isinstance(self.content, Path)

    @cached_property
    def head(self) -> bytes:
        """The first quarter of a megabyte."""
        with self.open() as file:
            return file.read(_HEAD)

    @property
    def size(self) -> int:
        """In bytes."""
        with self.open() as file:
            return file.seek(0, SEEK_END)

    def open(self) -> BinaryIO:
        """The bytes as a file, at its start. Raises DataError where it cannot be read."""
        if isinstance(self.content, bytes):
            return BytesIO(self.content)
        try:
            return self.content.open("rb")
        except OSError as problem:
            raise _unreadable(self.content, problem) from problem

    @classmethod
    def from_path(cls, path: Path, *, limits: ReadLimits | None = None) -> Source:
        """Read one file, or standard input where the path is "-". Raises DataError where it cannot
        be read, LimitError before reading one that is too large."""
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
        """Whether both hold the same bytes."""
        if self.content is other.content:
            return True
        return self.size == other.size and self.head == other.head and self.data == other.data

    @property
    def is_readme(self) -> bool:
        """A licence, a readme, a hidden file: it travels with the data and is none."""
        return any(_PAPERS.match(part) for part in PurePosixPath(self.name).parts)


def name_of(path: Path) -> str:
    """What a file is called that `Source.from_path` reads."""
    return "stdin" if str(path) == _STANDARD else path.name


def stem_of(name: str) -> str:
    """The name without folders and without its endings: `runs/bm25.trec.gz` is `bm25`."""
    path = PurePosixPath(name)
    if path.suffix.lower() in (".gz", ".zip"):
        path = PurePosixPath(path.stem)
    return path.stem


def sources_from_path(path: Path, *, limits: ReadLimits | None = None) -> list[Source]:
    """A file as one source, a folder as all files below it, in the order of their names.

    Names are relative to the folder. Raises DataError where nothing can be read there, LimitError
    where there are too many files or one is too large.
    """
    limits = limits or ReadLimits()
    if path.is_file() or str(path) == _STANDARD:
        return [Source.from_path(path, limits=limits)]
    if not path.is_dir():
        raise DataError(
            "There is no file or folder {path}.",
            remedy="Check the path for a typing mistake.",
            path=str(path),
        )
    files = (file for file in path.rglob("*") if file.is_file())
    paths = sorted(islice(files, limits.files + 1))
    if len(paths) > limits.files:
        raise too_many_files(path.name, limits)
    if not paths:
        raise DataError(
            "The folder {path} holds no files.",
            remedy="Name the folder that holds the queries, the documents and the labels.",
            path=str(path),
        )
    origin = path.resolve().name
    contents = ((file, Source.from_path(file, limits=limits).content) for file in paths)
    return [Source(file.relative_to(path).as_posix(), each, origin) for file, each in contents]


def refuse_large(name: str, size: int, limits: ReadLimits) -> None:
    """Raises LimitError where a file of `size` bytes is more than is accepted."""
    if size > limits.file_bytes:
        raise limits.over(
            "file_bytes",
            "The file has {size:,.1f} MB; at most {limit:,.1f} MB are accepted.",
            "Remove documents that are no query's candidate, store it as Parquet, or allow more "
            "with {variable}.",
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
        remedy="Check that it exists and that you may read it.",
        file=str(path),
        problem=problem.strerror or type(problem).__name__,
    )


# Bytes to text: UTF-8, UTF-16 and UTF-32 (with a mark, or UTF-16 without), GB18030.

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY = (
    (b"%PDF-", Phrase("a PDF document")),
    *((magic, Phrase("a picture")) for magic in (b"\x89PNG", b"\xff\xd8\xff", b"GIF89a")),
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
# A file of broken UTF-8 has a few bad bytes among many good characters; a file in another
# encoding has hardly any good ones, since a random pair of high bytes is rarely valid UTF-8.
_GOOD_PER_BAD = 4
# Bytes before and after the first bad one, which say that.
_AROUND = 1 << 23
_PIECE = 1 << 20
# In Chinese text the second byte of a GB18030 pair is mostly a high one. In western text read as
# GB18030 it is a plain letter.
_HIGH_SECOND_BYTES = 0.5


@dataclass(frozen=True)
class Decoded:
    """content: without a byte-order mark; bytes where all are ASCII, of which no text need be made
    to read them. encoding: the codec's name. guessed: nothing in the file says that it is this
    encoding."""

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
        """More than any reader looks at to know its form; all where that is blank."""
        start = self.content[:_START]
        text = start if isinstance(start, str) else start.decode("ascii")
        return self.text if text.isspace() else text


def decode(data: bytes, file: str) -> Decoded:
    """Read `data` as text.

    Raises FormatError where it is a known binary format, or text in an encoding that is not read;
    then with the line of the first bad byte.
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
        # In this order: noise is no GB18030 from its first bytes on.
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
    """UTF-16 of mostly ASCII has a zero in every second byte."""
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
    # `wide` characters hold `pairs` high bytes: two each where the second byte is high too.
    return wide > 0 and pairs / wide - 1 >= _HIGH_SECOND_BYTES


def _controls(sample: str) -> bool:
    """Whether characters that no text holds are common: more than a few may be stray."""
    controls = sum(1 for char in sample if char == "\0" or "\x02" <= char < "\t")
    return controls > len(sample) / 3


def _binary(file: str, kind: Phrase) -> FormatError:
    return FormatError(
        "This is {kind}, not a data file that rankdash reads.",
        remedy="Load CSV, TSV, JSON, JSONL, Parquet or TREC files, plain or as .gz or .zip.",
        file=file,
        kind=kind,
    )


def _undecodable(data: bytes, bad: int, encoding: str, file: str) -> FormatError:
    """bad: where the first byte stands that cannot be read."""
    if encoding.startswith(("utf-16", "utf-32")):
        breaks = data[:bad].decode(encoding, errors="ignore").count("\n")
    else:
        # In these no other character holds that byte.
        breaks = data.count(b"\n", 0, bad)
    return FormatError(
        "A character cannot be read: the text is neither UTF-8, UTF-16 nor GB18030.",
        remedy="Save the file as UTF-8 and load it again.",
        file=file,
        line=breaks + 1,
    )
