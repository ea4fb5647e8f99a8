"""The log (`-wal`) that SQLite keeps beside a database, and whether all that was stored in it can
still be read.

SQLite reads the log of a killed process up to the first frame whose checksum does not fit, and
drops the others without an error. How many frames were committed is in the index of the log
(`-shm`), which a killed process leaves too. Formats: https://sqlite.org/walformat.html
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

_HEADER, _FRAME_HEADER, _INDEX = 32, 24, 48
_MAGIC = 0x377F0683
"""In big-endian words; without the last bit the words are little-endian."""
# To close a file drops the locks that SQLite has on it in the same process.
_READ = f"import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read(2 * {_INDEX}))"

_Words = np.ndarray[Any, np.dtype[np.uint32]]


def is_damaged(file: Path) -> bool:
    """Return whether changes that were committed to the log of a database cannot be read. False
    without a log or without an index. Raises OSError if the log cannot be read."""
    # Twice: another process may begin the log anew while it is read.
    return _is_damaged(file) and _is_damaged(file)


def _is_damaged(file: Path) -> bool:
    log = file.with_name(f"{file.name}-wal")
    if not log.exists() or not log.stat().st_size:
        return False
    # The index first: another process may add to the log meanwhile.
    committed, salts = _index(file.with_name(f"{file.name}-shm"))
    if not committed:
        return False
    try:
        content = log.read_bytes()
    except FileNotFoundError:
        return False
    first = content[:_HEADER].ljust(_HEADER, b"\0")
    header = np.frombuffer(first, ">u4")
    order = ">u4" if header[0] & 1 else "<u4"
    if header[0] | 1 != _MAGIC or not _follows(np.frombuffer(first, order)[:6], header[6:]):
        return True
    if first[16:24] != salts:
        # The log begins anew: what was in it is in the database.
        return False
    size = _FRAME_HEADER + int(header[2])
    if len(content) < _HEADER + committed * size:
        return True
    frames = np.frombuffer(content, np.uint8, committed * size, _HEADER).reshape(committed, size)
    fields = frames[:, :_FRAME_HEADER].copy().view(">u4")
    words = np.hstack([frames[:, :8], frames[:, _FRAME_HEADER:]]).view(order)
    before = np.vstack([header[6:], fields[:-1, 4:]])
    read = (fields[:, 2:4] == header[4:6]) & (_checksums(words, before) == fields[:, 4:])
    return not bool(read.all())


def _index(index: Path) -> tuple[int, bytes]:
    """Return the number of committed frames, and the salts of their log; 0 if it is not known."""
    command = [sys.executable, "-ISc", _READ, str(index)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        # Python lies where this user may not start it.
        return 0, b""
    one, other = done.stdout[:_INDEX], done.stdout[_INDEX:]
    words = np.frombuffer(one, np.uint32)
    if len(one) < _INDEX or one != other or not _follows(words[:10], words[10:]):
        return 0, b""
    return int(words[4]), one[32:40]


def _follows(words: _Words, stored: _Words) -> bool:
    """Return whether the stored checksums are those of the words, with nothing before."""
    return bool((_checksums(words[None], np.zeros((1, 2), np.uint32)) == stored).all())


def _checksums(words: _Words, before: _Words) -> _Words:
    """Return the two checksums of each row of 32-bit words that follows the checksums `before`.

    SQLite adds up in turn; that is a sum of the words with Fibonacci numbers as weights.
    """
    count = words.shape[1]
    weights = [0, 1]
    while len(weights) < count + 2:
        weights.append((weights[-1] + weights[-2]) & 0xFFFFFFFF)
    falling = np.array(weights[::-1], np.uint32)
    terms = np.hstack([before[:, 1:], words]).astype(np.uint32)
    terms[:, 1] += before[:, 0]
    return terms @ np.stack([falling[1:], falling[:-1]], axis=1)
