"""Writing and appending to files so that everything reported as written is on the disk.

A whole file is written under a temporary name next to its target and renamed, so that the previous
file stays until the new one is complete. Appended entries end with a line break: each is complete
or absent.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import sys
import tomllib
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

from rankdash.core.base.errors import DataError, Phrase, RankdashError

if sys.platform != "win32":
    import fcntl

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""The error numbers of a full disk."""

_CHUNK = 1 << 16


class _Counted(io.FileIO):
    """A file that continues when the disk is full, and then only counts the bytes that do not fit.

    full: the first error that reported a full disk.
    """

    full: OSError | None = None

    def write(self, content: Any) -> int:
        if self.full is None:
            try:
                return super().write(content)
            except OSError as problem:
                if problem.errno not in FULL:
                    raise
                self.full, self._size = problem, os.fstat(self.fileno()).st_size
        self.seek(memoryview(content).nbytes, os.SEEK_CUR)
        self._size = max(self._size, self.tell())
        return memoryview(content).nbytes

    def refuse_full(self, target: Path) -> None:
        """Raise DataError if some of the content did not fit."""
        if self.full is not None:
            raise _no_room(target, self._size) from self.full


def write(target: Path, content: bytes) -> None:
    """Write a whole file. Raises the errors of `replacing`."""
    with replacing(target) as stream:
        stream.write(content)


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """Yield a stream whose content replaces `target` when the block ends without an error. A pipe
    or a device is written to directly, and so is a file in a folder that is not writable.

    Raises DataError with the room that is needed if the disk is full, OSError if nothing can be
    written.
    """
    # The file that a link points to, not the link.
    place = target.resolve()
    renaming = place.is_file() or not place.exists()
    renaming = renaming and os.access(place.parent, os.W_OK | os.X_OK)
    try:
        if not renaming:
            with place.open("wb") as itself:
                yield itself
                if place.is_file():
                    _sync(itself)
            return
        counted: list[_Counted] = []

        def opened(part: Path) -> BinaryIO:
            counted.append(_Counted(part, "wb"))
            return io.BufferedWriter(counted[0])

        with completed(place, opened) as stream:
            yield stream
            stream.flush()
            counted[0].refuse_full(target)
            if place.exists():
                shutil.copymode(place, counted[0].name)
    except OSError as problem:
        if problem.errno in FULL:
            raise _no_room(target) from problem
        if problem.filename == str(place):
            problem.filename = str(target)
        raise


@contextmanager
def completed(
    place: Path, opened: Callable[[Path], BinaryIO] = lambda part: part.open("w+b")
) -> Iterator[BinaryIO]:
    """Yield a stream whose content is at `place` once all of it is on the disk, when the block ends
    without an error. opened: opens the temporary file. Raises OSError."""
    part = place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}")
    try:
        with opened(part) as stream:
            yield stream
            _sync(stream)
        part.replace(place)
    except OSError as problem:
        if problem.filename == str(part):
            problem.filename = str(place)
        raise
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def create(target: Path, content: bytes) -> None:
    """Write `content`, which ends with a line break, to a new file; remove the file after an error.

    Raises FileExistsError if the file already exists, and the errors of `append`.
    """
    target.open("xb").close()
    try:
        append(target, [content])
    except BaseException:
        target.unlink()
        raise


def append(target: Path, entries: Sequence[bytes]) -> None:
    """Append entries, each of which ends with a line break; they are on the disk when this returns.
    An incomplete last line, left by a program that died, is removed first.

    Raises DataError if the disk is full, and OSError. The entries that fit are then complete, and
    the others are not in the file at all.
    """
    with target.open("a+b", buffering=0) as stream:
        if sys.platform != "win32":
            # A line that another program is writing at this moment is not an incomplete line.
            with suppress(OSError):
                fcntl.flock(stream, fcntl.LOCK_EX)
        whole, content, written = _whole_lines(stream), memoryview(b"".join(entries)), 0
        try:
            stream.truncate(whole)
            while written < len(content):
                written += stream.write(content[written:]) or 0
            _sync(stream)
        except OSError as problem:
            # If syncing failed, it is unknown which of the written entries are on the disk.
            ends = accumulate(map(len, entries), initial=0) if written < len(content) else [0]
            fitting = max(end for end in ends if end <= written)
            with suppress(OSError):
                stream.truncate(whole + fitting)
            if problem.errno in FULL:
                raise _no_room(target, len(content) - fitting) from problem
            problem.filename = str(target)
            raise


def _whole_lines(stream: BinaryIO) -> int:
    """Return the length of a file up to the end of its last complete line."""
    end = stream.seek(0, os.SEEK_END)
    while end:
        begin = max(end - _CHUNK, 0)
        stream.seek(begin)
        at = stream.read(end - begin).rfind(b"\n")
        if at >= 0:
            return begin + at + 1
        end = begin
    return 0


def _sync(stream: BinaryIO) -> None:
    """Wait until the content of a file is on the disk."""
    try:
        stream.flush()
        os.fsync(stream.fileno())
    except OSError as problem:
        problem.filename = problem.filename or str(stream.name)
        raise


def _no_room(target: Path, needed: int = 0) -> DataError:
    free = shutil.disk_usage(target.resolve().parent).free
    return DataError(
        "Not enough disk space to write the file: {needed} MB are needed, {free} MB are free."
        if needed
        else "Not enough disk space to write the file: {free} MB are free.",
        remedy="Free some space, or write the file to another disk.",
        file=str(target),
        # Rounded up.
        needed=f"{-(-needed // 100_000) / 10:,.1f}",
        free=f"{free / 1e6:,.1f}",
    )


# Small files next to the data, such as price lists, profiles and plans.
#
# Any problem in one is a `DataError` with the file, the line if it is known, and a remedy.

# The parsing time grows with the square of a line's length.
_LONGEST_TOML_LINE = 2_000
_LONGEST_REASON = 300
_AT_LINE = re.compile(r"\bline (\d{1,9})\b")
_DIGITS = re.compile("integer string conversion|int too large")
# A whole surrogate pair, or half of one, as JSON escapes it; any other escape.
_ESCAPED = re.compile(
    r"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


@contextmanager
def guarded(
    file: str, template: str, remedy: str, *, line: int | None = None, **params: Any
) -> Iterator[None]:
    """Turn errors of reading and interpreting a file inside the block into DataErrors.

    template, remedy, params: of the DataError; {reason} is filled with the original error.
    line: the line of the error, if the original error does not name it.

    Errors of rankdash pass, with the name of the file added if they have none.
    """
    try:
        yield
    except DataError as problem:
        problem.file = problem.file or file
        raise
    except OSError:
        raise
    except RankdashError as problem:
        raise DataError(
            problem.template, remedy=problem.remedy, file=file, line=line, **problem.params
        ) from problem
    except Exception as problem:
        at = _AT_LINE.search(str(problem))
        raise DataError(
            template,
            remedy=remedy,
            file=file,
            line=line or (int(at[1]) if at else None),
            reason=_reason(problem),
            **params,
        ) from problem


def _reason(problem: Exception) -> str:
    if isinstance(problem, RecursionError):
        return Phrase("nested too deeply")
    if _DIGITS.search(str(problem)):
        return Phrase("a number with too many digits")
    if isinstance(problem, KeyError):
        return Phrase("{name} is missing", name=_printable(str(problem.args[0])))
    return said_by(problem).rstrip(".")


def said_by(problem: Exception) -> str:
    """Return the message of an error in one line. Quotes of a file in it may contain characters
    that cannot be stored or printed; they are replaced."""
    lines = str(problem).strip().splitlines()
    return _printable(lines[0] if lines else type(problem).__name__)


def _printable(text: str) -> str:
    return text[:_LONGEST_REASON].encode("utf-8", "replace").decode()


def text_of(content: bytes) -> str:
    """Return the text of a file in UTF-8, without a byte order mark. Raises ValueError."""
    return content.decode("utf-8-sig")


def from_json(text: str) -> Any:
    """Return the value of JSON text, with halves of surrogate pairs replaced. Raises ValueError,
    RecursionError."""
    return json.loads(whole_characters(text)[0])


def from_toml(text: str) -> dict[str, Any]:
    """Return the content of TOML text. Raises ValueError, RecursionError."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST_TOML_LINE:
            raise ValueError(f"line {number} has more than {_LONGEST_TOML_LINE} characters")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        end = f"line {len(lines)}, the end of the file"
        raise ValueError(str(problem).replace("end of document", end)) from problem


def from_json_or_toml(text: str) -> Any:
    """Return the content of JSON or TOML text. A list in brackets is TOML: [[prices]]."""
    return from_json(text) if text.lstrip().startswith("{") else from_toml(text)


def whole_characters(text: str) -> tuple[str, int]:
    """Return JSON text with U+FFFD for each half of a surrogate pair, which JSON can escape and no
    encoding can store, and the number of replacements. Positions in the text do not change."""
    if not _HALF_PAIR.search(text):
        return text, 0
    count = 0

    def whole_or_not(match: re.Match[str]) -> str:
        nonlocal count
        if match[2] is None:
            return match[0]
        count += 1
        return "\\ufffd"

    return _ESCAPED.sub(whole_or_not, text), count


@contextmanager
def locked(file: Path) -> Iterator[bool]:
    """Lock a file, which is made if it does not exist, until the block or the process ends. Yield
    whether it was free; True on Windows, without a lock. Raises OSError."""
    with file.open("ab") as stream:
        if sys.platform != "win32":
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
        yield True


# Temporary folders of a process: locked until it ends, then removed by the next process.


def hold(folder: Path, mark: str) -> int | None:
    """Lock a new file `mark` in a folder that this process made. Return its descriptor; None on
    Windows. The lock ends when the descriptor is closed or the process ends.

    mark: the name of a file that only rankdash writes. Raises OSError if it cannot be written.
    """
    if sys.platform == "win32":
        return None
    # Renamed after it is locked: a sweep at this moment must not find it unlocked.
    part = folder / f"{mark}.new"
    descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        part.rename(folder / mark)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def sweep(folders: Iterable[Path], mark: str) -> None:
    """Remove the folders of this user whose file `mark` is not locked. Do nothing on Windows."""
    if sys.platform == "win32":
        return
    for folder in folders:
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / mark).open("r+b") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
