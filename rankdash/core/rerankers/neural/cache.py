"""Disk cache of data derived from models: folders of models, and embeddings.

A folder appears only when complete; a changed one is detected by the hashes of its files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import threading
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import platformdirs

from rankdash.core.base import files as base_files

# Marker files of an unfinished and of a finished folder; no other code writes these names. They
# have no suffix, so the hash that identifies a model ignores them.
_UNFINISHED, _HASHES = "rankdash-unfinished", "rankdash-hashes"
_TOKEN = re.compile(r".+\.[0-9a-f]{8}")


def cache_folder() -> Path:
    """Return the cache folder: `RANKDASH_CACHE`, or "cache" in `RANKDASH_HOME`, or the user's cache
    directory."""
    for variable, below in (("RANKDASH_CACHE", "."), ("RANKDASH_HOME", "cache")):
        configured = os.environ.get(variable, "")
        if configured:
            return (Path(configured).expanduser() / below).absolute()
    return Path(platformdirs.user_cache_dir("rankdash", False))


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """Yield a new folder next to `target` for `finish`; remove it at the end if it still exists.
    Folders of killed processes are removed first. Raises OSError if it cannot be created."""
    beside = target.parent.glob("*") if target.parent.is_dir() else ()
    base_files.sweep([each for each in beside if _TOKEN.fullmatch(each.name)], _UNFINISHED)
    folder = target.with_name(f"{target.name}.{uuid.uuid4().hex[:8]}")
    folder.mkdir(parents=True)
    marker = None
    try:
        marker = base_files.hold(folder, _UNFINISHED)
        yield folder
    finally:
        if marker is not None:
            os.close(marker)
        shutil.rmtree(folder, ignore_errors=True)


def finish(made: Path, target: Path) -> None:
    """Rename a folder of `unfinished` to `target`, unless another process has finished it first. A
    changed `target` is replaced. Raises OSError on failure."""
    hashes = {name: each for name, each in hashes_of(made).items() if name != _UNFINISHED}
    (made / _HASHES).write_text(json.dumps(hashes), encoding="utf-8")
    if is_whole(target):
        return
    if is_finished(target):
        shutil.rmtree(target)
    try:
        made.rename(target)
    except OSError:
        if not is_whole(target):
            raise
    else:
        (target / _UNFINISHED).unlink(missing_ok=True)


def is_finished(folder: Path) -> bool:
    """Return whether a folder was finished, even if its files have changed since."""
    return (folder / _HASHES).is_file()


def is_whole(folder: Path, hashes: Mapping[str, str] | None = None) -> bool:
    """Return whether a finished folder contains all its files unchanged.

    hashes: the hashes of its files if they are known; otherwise they are computed (about 0.1 s per
        100 MB).
    """
    try:
        written = json.loads((folder / _HASHES).read_text(encoding="utf-8")).items()
        hashes = hashes_of(folder, dict(written)) if hashes is None else hashes
        return all(hashes.get(name) == each for name, each in written)
    except (OSError, ValueError, AttributeError):
        return False


def hashes_of(folder: Path, names: Collection[str] | None = None) -> dict[str, str]:
    """Return the SHA-256 of the files in a folder, by path relative to it. names: files to hash;
    all if None."""
    files = sorted(folder.rglob("*")) if names is None else [folder / name for name in names]
    hashes = {}
    for path in files:
        if names is not None or path.is_file():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            hashes[path.relative_to(folder).as_posix()] = digest
    return hashes


# Embeddings of documents on disk, so that a data set is encoded once per model.
# One folder per model (a fingerprint of weights, precision, length, prompt and windows) contains
# safetensors files, which store numbers only: (n, 32) text hashes, (n, d) vectors, (n,) token
# counts. The windows of a text are consecutive rows. Broken files are deleted and their embeddings
# computed again.

Vector = npt.NDArray[np.float32]
T = TypeVar("T")

LIMIT_BYTES = 1 << 30
_MANY_FILES = 16
_FOLDER = re.compile(r"[0-9a-f]{32}")
_FILE = re.compile(r"[0-9a-f]{32}\.(safetensors|part)")


@dataclass(frozen=True)
class Encoded:
    """Embeddings of the windows of a text, or of its tokens, (n, d); one window without windows.
    full: number of tokens before truncation, or of all windows; -1 = unknown."""

    vector: Vector
    full: int


class Embeddings:
    """Embeddings of one model. Several processes may add to the same folder."""

    def __init__(self, root: Path, fingerprint: str, limit_bytes: int = LIMIT_BYTES) -> None:
        self._root = root
        self._folder = root / fingerprint[:32]
        self._limit = limit_bytes
        self._known: dict[bytes, Encoded] = {}
        self._read()

    def __contains__(self, text: str) -> bool:
        return _key(text) in self._known

    def of(self, text: str) -> Encoded:
        """Return the embedding of a text. Raises KeyError if it was not added."""
        return self._known[_key(text)]

    def add(self, texts: Sequence[str], embeddings: Sequence[Encoded]) -> None:
        """Store embeddings in memory, and on disk if it can be written."""
        fresh = {_key(text): embedding for text, embedding in zip(texts, embeddings, strict=True)}
        self._known.update(fresh)
        with contextlib.suppress(OSError):
            self._write(fresh)

    def _read(self) -> None:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        files = sorted(each for each in self._folder.glob("*.safetensors") if _is_own(each))
        for path in files:
            try:
                arrays = load_file(path)
                keys = [bytes(key) for key in arrays["keys"]]
                rows = zip(keys, arrays["vectors"], arrays["full"], strict=True)
                fulls = {key: int(full) for key, _, full in rows}
                ends = np.cumsum(list(Counter(keys).values()))
                vectors = np.split(arrays["vectors"], ends[:-1])
                self._known.update(
                    {
                        key: Encoded(each, fulls[key])
                        for key, each in zip(fulls, vectors, strict=True)
                    }
                )
            except (OSError, SafetensorError, KeyError, ValueError, TypeError):
                with contextlib.suppress(OSError):
                    path.unlink()
        with contextlib.suppress(OSError):
            if files:
                self._folder.touch()
            if len(files) > _MANY_FILES:
                self._write(self._known)
                for path in files:
                    path.unlink(missing_ok=True)

    def _write(self, entries: dict[bytes, Encoded]) -> None:
        from safetensors import SafetensorError
        from safetensors.numpy import save_file

        widths = {embedding.vector.shape[1] for embedding in entries.values()}
        if len(widths) != 1:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        name = uuid.uuid4().hex
        partial = self._folder / f"{name}.part"
        vectors = [embedding.vector for embedding in entries.values()]
        counts = [len(each) for each in vectors]
        keys = np.array([list(key) for key in entries], dtype=np.uint8)
        arrays: dict[str, npt.NDArray[Any]] = {
            "keys": np.repeat(keys, counts, axis=0),
            "vectors": np.concatenate(vectors).astype(np.float32),
            "full": np.repeat([embedding.full for embedding in entries.values()], counts),
        }
        try:
            save_file(arrays, partial)
            partial.replace(self._folder / f"{name}.safetensors")
        except SafetensorError as error:
            # For example a full disk, reported in the library's own words.
            raise OSError(str(error)) from error
        finally:
            partial.unlink(missing_ok=True)
        self._make_room()

    def _make_room(self) -> None:
        """Delete the least recently used models until the total size is within the limit. The user
        may have other files in this folder; they are neither counted nor deleted."""
        folders = [
            path
            for path in self._root.iterdir()
            if _FOLDER.fullmatch(path.name)
            and path.is_dir()
            and not path.is_symlink()
            and all(map(_is_own, path.iterdir()))
        ]
        sizes = {
            folder: sum(file.stat().st_size for file in folder.iterdir()) for folder in folders
        }
        for folder in sorted(folders, key=lambda path: path.stat().st_mtime):
            if sum(sizes.values()) <= self._limit:
                return
            with contextlib.suppress(OSError):
                for file in filter(_is_own, list(folder.iterdir())):
                    file.unlink()
                # A file added after the check stays, and so does the folder.
                folder.rmdir()
            del sizes[folder]


class Recent(Generic[T]):
    """Least-recently-used cache of values by text, limited by total size. Thread-safe.

    size: returns the size of a value, in the unit of `limit`.
    """

    def __init__(self, limit: int, size: Callable[[T], int]) -> None:
        self._limit, self._size, self._total = limit, size, 0
        self._held: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, texts: Iterable[str]) -> dict[str, T]:
        """Return the cached values of `texts`."""
        with self._lock:
            cached = {text: self._held[text] for text in texts if text in self._held}
            for text in cached:
                self._held.move_to_end(text)
        return cached

    def add(self, fresh: Mapping[str, T]) -> None:
        with self._lock:
            for text, value in fresh.items():
                if text not in self._held:
                    self._held[text] = value
                    self._total += self._size(value)
            while self._total > self._limit:
                self._total -= self._size(self._held.popitem(last=False)[1])


def _is_own(file: Path) -> bool:
    """Return whether the file name matches the files that this module writes."""
    return _FILE.fullmatch(file.name) is not None


# A document is looked up for each query with it as a candidate.
@lru_cache(maxsize=8192)
def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8")).digest()
