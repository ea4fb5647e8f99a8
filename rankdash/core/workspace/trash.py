"""What was swept or replaced, kept in trash/<time>-<token>/, deleted after 30 days."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rankdash.core.workspace.failures import in_words

FOLDER = "trash"
EMPTY_AFTER = timedelta(days=30)

_NAME = re.compile(r"(?P<time>\d{8}T\d{6}Z)-[0-9a-f]{8}")
_TIME = "%Y%m%dT%H%M%SZ"


def is_own(name: str) -> bool:
    """Whether a folder in the trash has a name that rankdash gives."""
    return _NAME.fullmatch(name) is not None


def to_trash(root: Path, paths: Iterable[Path]) -> Path:
    """Move files and folders of the workspace to the trash; returns where they lie there.

    Raises OSError where one cannot be moved: those before it were.
    """
    place = root / FOLDER / f"{datetime.now(UTC).strftime(_TIME)}-{uuid.uuid4().hex[:8]}"
    for path in paths:
        target = place / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Another process may have moved it.
        with suppress(FileNotFoundError):
            path.rename(target)
    return place


def empty_trash(root: Path) -> None:
    """Delete what was moved to the trash longer than 30 days ago."""
    if not (root / FOLDER).is_dir():
        return
    with in_words(root):
        places = sorted((root / FOLDER).iterdir())
    for place in places:
        if place.is_symlink() or not place.is_dir():
            continue
        match = _NAME.fullmatch(place.name)
        # By the name: the times of files are changed by copying them.
        if match and _moved(match["time"]) < datetime.now(UTC) - EMPTY_AFTER:
            shutil.rmtree(place, ignore_errors=True)


def _moved(told: str) -> datetime:
    try:
        return datetime.strptime(told, _TIME).replace(tzinfo=UTC)
    except ValueError:
        # No date of ours: it stays.
        return datetime.now(UTC)
