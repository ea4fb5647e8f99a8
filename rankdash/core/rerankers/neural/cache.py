"""What is derived from models and cached on disk: folders of models, and embeddings.

A folder is whole or not there, and has the files that were written to it.
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
from collections import OrderedDict
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

# In a folder that is being written, and in one that was: nothing else writes files of these names.
# Without a suffix they are not among the files that a model is known by.
_UNFINISHED, _HASHES = "rankdash-unfinished", "rankdash-hashes"
_TOKEN = re.compile(r".+\.[0-9a-f]{8}")


def cache_folder() -> Path:
    """Return where what is derived from models is kept: `RANKDASH_CACHE`, or "cache" in
    `RANKDASH_HOME`, or the user's cache directory."""
    for variable, below in (("RANKDASH_CACHE", "."), ("RANKDASH_HOME", "cache")):
        configured = os.environ.get(variable, "")
        if configured:
            return (Path(configured).expanduser() / below).absolute()
    return Path(platformdirs.user_cache_dir("rankdash", False))


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """Yield a new folder beside `target` for `finish`, which is removed at the end if it is still
    there. Those of killed processes are removed first. Raises OSError if it cannot be made."""
    beside = target.parent.glob("*") if target.parent.is_dir() else ()
    base_files.sweep([each for each in beside if _TOKEN.fullmatch(each.name)], _UNFINISHED)
    made = target.with_name(f"{target.name}.{uuid.uuid4().hex[:8]}")
    made.mkdir(parents=True)
    held = None
    try:
        held = base_files.hold(made, _UNFINISHED)
        yield made
    finally:
        if held is not None:
            os.close(held)
        shutil.rmtree(made, ignore_errors=True)


def finish(made: Path, target: Path) -> None:
    """Let a folder of `unfinished` appear as `target`, unless another process was faster. A folder
    that was there and has changed is replaced. Raises OSError if that is impossible."""
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
    """Return whether a folder was finished. It may have changed since."""
    return (folder / _HASHES).is_file()


def is_whole(folder: Path, hashes: Mapping[str, str] | None = None) -> bool:
    """Return whether a finished folder has all its files as they were written.

    hashes: the hashes of its files if they are known; otherwise they are read (about 0.1 s per
        100 MB).
    """
    try:
        written = json.loads((folder / _HASHES).read_text(encoding="utf-8")).items()
        hashes = hashes_of(folder, dict(written)) if hashes is None else hashes
        return all(hashes.get(name) == each for name, each in written)
    except (OSError, ValueError, AttributeError):
        return False


def hashes_of(folder: Path, names: Collection[str] | None = None) -> dict[str, str]:
    """Return the SHA-256 of the files in a folder, by their names below it. names: of those that
    are asked for; all if None."""
    files = sorted(folder.rglob("*")) if names is None else [folder / name for name in names]
    hashes = {}
    for path in files:
        if names is not None or path.is_file():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            hashes[path.relative_to(folder).as_posix()] = digest
    return hashes


# Embeddings of documents on disk, so that a data set is encoded once for each model.
#
# One folder a model (a fingerprint of weights, precision, length and prompt), in it files of
# safetensors, which hold numbers only: (n, 32) text hashes, (n, d) vectors, (n,) token counts. A
# file that is broken is left out, and what it held is computed again.

Vector = npt.NDArray[np.float32]
T = TypeVar("T")

LIMIT_BYTES = 1 << 30
_MANY_FILES = 16
_FOLDER = re.compile(r"[0-9a-f]{32}")
_FILE = re.compile(r"[0-9a-f]{32}\.(safetensors|part)")


@dataclass(frozen=True)
class Encoded:
    """The embedding of a text or of its tokens. full: its tokens, uncut; -1 = unknown."""

    vector: Vector
    full: int


class Embeddings:
    """The embeddings of one model. Several processes may add to the same folder."""

    def __init__(self, root: Path, fingerprint: str, limit_bytes: int = LIMIT_BYTES) -> None:
        self._root = root
        self._folder = root / fingerprint[:32]
        self._limit = limit_bytes
        self._known: dict[bytes, Encoded] = {}
        self._read()

    def __contains__(self, text: str) -> bool:
        return _key(text) in self._known

    def of(self, text: str) -> Encoded:
        """What `add` was given for the text. Raises KeyError where it was not."""
        return self._known[_key(text)]

    def add(self, texts: Sequence[str], embeddings: Sequence[Encoded]) -> None:
        """Keep embeddings, in memory for certain and on disk where that works."""
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
                held = load_file(path)
                keys = [bytes(key) for key in held["keys"]]
                entries = zip(keys, held["vectors"], held["full"], strict=True)
                self._known.update(
                    {key: Encoded(vector, int(full)) for key, vector, full in entries}
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

        widths = {len(embedding.vector) for embedding in entries.values()}
        if len(widths) != 1:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        name = uuid.uuid4().hex
        making = self._folder / f"{name}.part"
        arrays: dict[str, npt.NDArray[Any]] = {
            "keys": np.array([list(key) for key in entries], dtype=np.uint8),
            "vectors": np.stack([embedding.vector for embedding in entries.values()]).astype(
                np.float32
            ),
            "full": np.array([embedding.full for embedding in entries.values()], dtype=np.int64),
        }
        try:
            save_file(arrays, making)
            making.replace(self._folder / f"{name}.safetensors")
        except SafetensorError as error:
            # Such as a full disk, in the words of its library.
            raise OSError(str(error)) from error
        finally:
            making.unlink(missing_ok=True)
        self._make_room()

    def _make_room(self) -> None:
        """Delete the models used longest ago until all together are under the limit. The folder
        may be one of a person, with other things in it: those are neither counted nor deleted."""
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
                # What came in since it was looked at stays, and the folder with it.
                folder.rmdir()
            del sizes[folder]


class Recent(Generic[T]):
    """What was made of the texts used last, up to a size in all. Threads may share it.

    size: of what was made of a text, in the unit of `limit`.
    """

    def __init__(self, limit: int, size: Callable[[T], int]) -> None:
        self._limit, self._size, self._total = limit, size, 0
        self._held: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, texts: Iterable[str]) -> dict[str, T]:
        """Those of `texts` that are there."""
        with self._lock:
            cached = {text: self._held[text] for text in texts if text in self._held}
            for text in cached:
                self._held.move_to_end(text)
        return cached

    def add(self, fresh: Mapping[str, T]) -> None:
        with self._lock:
            for text, made in fresh.items():
                if text not in self._held:
                    self._held[text] = made
                    self._total += self._size(made)
            while self._total > self._limit:
                self._total -= self._size(self._held.popitem(last=False)[1])


def _is_own(file: Path) -> bool:
    """Whether it has the name of a file that is written here."""
    return _FILE.fullmatch(file.name) is not None


# A document is looked up for each query that it is a candidate of.
@lru_cache(maxsize=8192)
def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8")).digest()
