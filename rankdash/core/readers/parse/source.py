"""`Source`: one file as it was given, and where files on disk become sources."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cached_property
from io import SEEK_END, BytesIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from rankdash.core.base.errors import DataError, Finding, LimitError
from rankdash.core.readers.parse.limits import MEGABYTE, ReadLimits, variable

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
    def stem(self) -> str:
        """The name without folders and without its endings: `runs/bm25.trec.gz` is `bm25`."""
        return stem_of(self.name)

    @property
    def is_readme(self) -> bool:
        """A licence, a readme, a hidden file: it travels with the data and is none."""
        return any(_PAPERS.match(part) for part in PurePosixPath(self.name).parts)


def name_of(path: Path) -> str:
    """What a file is called that `Source.from_path` reads."""
    return "stdin" if str(path) == _STANDARD else path.name


def stem_of(name: str) -> str:
    """As `Source.stem`, for a name."""
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
    found: list[Path] = []
    for file in path.rglob("*"):
        if file.is_file():
            found.append(file)
            if len(found) > limits.files:
                raise too_many_files(path.name, limits)
    if not found:
        raise DataError(
            "The folder {path} holds no files.",
            remedy="Name the folder that holds the queries, the documents and the labels.",
            path=str(path),
        )
    origin = path.resolve().name
    return [
        Source(
            file.relative_to(path).as_posix(),
            Source.from_path(file, limits=limits).content,
            origin,
        )
        for file in sorted(found)
    ]


def refuse_large(name: str, size: int, limits: ReadLimits) -> None:
    """Raises LimitError where a file of `size` bytes is more than is accepted."""
    if size > limits.file_bytes:
        raise LimitError(
            "The file has {size:,.1f} MB; at most {limit:,.1f} MB are accepted.",
            remedy="Remove documents that are no query's candidate, store it as Parquet, or allow "
            "more with {variable}.",
            file=name,
            size=size / MEGABYTE,
            limit=limits.file_bytes / MEGABYTE,
            variable=variable("file_bytes"),
        )


def too_many_files(name: str, limits: ReadLimits) -> LimitError:
    return LimitError(
        "There are more than {limit:,} files.",
        remedy="Keep only the files of one data set: queries, documents, labels and rankings. Or "
        "allow more with {variable}.",
        file=name,
        limit=limits.files,
        variable=variable("files"),
    )


def _unreadable(path: Path, problem: OSError) -> DataError:
    return DataError(
        "The file cannot be read: {problem}.",
        remedy="Check that it exists and that you may read it.",
        file=str(path),
        problem=problem.strerror or type(problem).__name__,
    )
