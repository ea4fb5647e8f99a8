"""Where files that are given to a server lie until they are read: a folder of its own, which goes
when the server ends, or with the next start where it was killed."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from pathlib import Path

from rankdash.core.base import held_folder

_PREFIX = "rankdash-"
# Nothing else writes a file of this name.
_MARK = "rankdash-uploads"

_lock = threading.Lock()
_own: list[Path] = []


def folder() -> Path:
    """The folder of this process. Raises OSError where it cannot be made."""
    with _lock:
        # Temporary folders are emptied now and then.
        if not _own or not _own[-1].is_dir():
            made = Path(tempfile.mkdtemp(prefix=_PREFIX))
            atexit.register(shutil.rmtree, made, ignore_errors=True)
            held_folder.hold(made, _MARK)
            _own.append(made)
        return _own[-1]


def sweep() -> None:
    """Remove the folders of processes that were killed, where the system can tell."""
    held_folder.sweep(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"), _MARK)
