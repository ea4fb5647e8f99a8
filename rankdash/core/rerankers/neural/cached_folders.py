"""Folders in the cache that are made from models: whole or not there, and with the files that were
written to them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

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
        given = os.environ.get(variable, "")
        if given:
            return (Path(given).expanduser() / below).absolute()
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


def is_whole(folder: Path, found: Mapping[str, str] | None = None) -> bool:
    """Return whether a finished folder has all its files as they were written.

    found: the hashes of its files if they are known; otherwise they are read (about 0.1 s per
        100 MB).
    """
    try:
        written = json.loads((folder / _HASHES).read_text(encoding="utf-8")).items()
        found = hashes_of(folder, dict(written)) if found is None else found
        return all(found.get(name) == each for name, each in written)
    except (OSError, ValueError, AttributeError):
        return False


def hashes_of(folder: Path, names: Collection[str] | None = None) -> dict[str, str]:
    """Return the SHA-256 of the files in a folder, by their names below it. names: of those that
    are asked for; all if None."""
    files = sorted(folder.rglob("*")) if names is None else [folder / name for name in names]
    found = {}
    for path in files:
        if names is not None or path.is_file():
            with path.open("rb") as file:
                own = hashlib.file_digest(file, "sha256").hexdigest()
            found[path.relative_to(folder).as_posix()] = own
    return found
