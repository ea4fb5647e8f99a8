"""The folders of a workspace: one a saved thing, named by its row, swept when no row names it."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Collection, Iterable
from pathlib import Path

from rankdash.store.failures import in_words

KINDS = ("datasets", "runs", "jobs")

# A folder without a row is either left over from a crash or being filled right now by another
# process, which writes its row last. Nothing takes this long to write.
SWEEP_AFTER_SECONDS = 15 * 60


def new_folder(root: Path, kind: str, name: str) -> Path:
    """An empty folder that no other save will use, so a delete can never take a newer copy."""
    folder = root / kind / f"{name}-{uuid.uuid4().hex[:8]}"
    with in_words(folder):
        folder.mkdir(parents=True)
    return folder


def remove(root: Path, folders: Iterable[str]) -> None:
    """Delete folders that no row names any more; what resists now is swept later."""
    for folder in folders:
        shutil.rmtree(root / folder, ignore_errors=True)


def abandoned(root: Path) -> list[str]:
    """Folders untouched for so long that a save in progress can be ruled out."""
    limit = time.time() - SWEEP_AFTER_SECONDS
    found = []
    for kind in KINDS:
        with in_words(root / kind):
            (root / kind).mkdir(parents=True, exist_ok=True)
            for folder in (root / kind).iterdir():
                try:
                    old = folder.stat().st_mtime < limit
                except FileNotFoundError:
                    continue
                if old:
                    found.append(relative(root, folder))
    return found


def sweep(root: Path, candidates: Iterable[str], named: Collection[str]) -> None:
    remove(root, (folder for folder in candidates if folder not in named))


def relative(root: Path, folder: Path) -> str:
    """The folder as rows name it: "datasets/0123abcd-…", the same on every system."""
    return folder.relative_to(root).as_posix()
