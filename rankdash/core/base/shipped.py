"""The files that come with rankdash: beside the package in a clone, inside it when installed; and
the start of its processes.

The wheel has them in a folder `dashboard`, laid out as the top of the repository (pyproject.toml).
"""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_PACKAGE = Path(__file__).parents[2]
_INSTALLED = _PACKAGE / "dashboard"
_HOME = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent

# Streamlit reads the settings in `.streamlit/config.toml` beside it, whatever the current folder.
APP = _HOME / "app.py"
PAGES = _HOME / "pages"
ASSETS = _HOME / "assets"
SAMPLES: Mapping[str, Path] = {
    "en": ASSETS / "samples" / "helpcentre",
    "zh": ASSETS / "samples" / "helpcentre_zh",
}
"""Language → the folder of its sample: queries, documents, labels and a first stage."""

FRONT_VARIABLE = "_RANKDASH_FRONT"
"""Tells one of several servers the address at which browsers reach all, as host:port."""

FIRST_VARIABLE = "_RANKDASH_FIRST"
"""Set for the one of several servers that says that address."""

INTERFACE = _PACKAGE / "app" / "frame.py"
WORKER = "rankdash.app.worker"
"""The module that a worker process runs."""


def runs_of(sample: Path) -> Path:
    """The workspace file beside the folder of a sample: its data set and the runs shipped with
    it."""
    return sample.with_name(f"{sample.name}.rankdash.zip")


def python_path() -> str:
    """PYTHONPATH for a child process, so that it finds the package where this one did, whatever the
    current folder is."""
    return os.pathsep.join(filter(None, (str(_PACKAGE.parent), os.environ.get("PYTHONPATH", ""))))


# The start of a process of our own, in less processor time.


@contextmanager
def starting() -> Iterator[None]:
    """What is imported inside is imported in less time; in a process of its own, because it is for
    all of the process."""
    # NumPy's threads else spin for a while each time that they have nothing to do, first at once.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    # What is imported stays: it need not be looked through for garbage, now or at the end.
    gc.disable()
    atexit.register(gc.freeze)
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
