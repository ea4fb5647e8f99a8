"""The files that come with rankdash (next to the package in a clone, inside it when installed), and
helpers to start its processes.

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

# Streamlit reads the settings in `.streamlit/config.toml` next to it, from any current folder.
APP = _HOME / "app.py"
PAGES = _HOME / "pages"
ASSETS = _HOME / "assets"
SAMPLES: Mapping[str, Path] = {
    "en": ASSETS / "samples" / "helpcentre",
    "zh": ASSETS / "samples" / "helpcentre_zh",
}
"""Language → the folder of its sample: queries, documents, labels and a first stage."""

FRONT_VARIABLE = "_RANKDASH_FRONT"
"""The environment variable with the address, as host:port, at which browsers reach a group of
servers."""

FIRST_VARIABLE = "_RANKDASH_FIRST"
"""The environment variable that is set for the one server of a group that prints the address."""

INTERFACE = _PACKAGE / "app" / "frame.py"
WORKER = "rankdash.app.worker"
"""The module that a worker process runs."""


def runs_of(sample: Path) -> Path:
    """Return the workspace file next to the folder of a sample: its data set and the runs shipped
    with it."""
    return sample.with_name(f"{sample.name}.rankdash.zip")


def python_path() -> str:
    """Return a PYTHONPATH for a child process with which it finds the package from any current
    folder."""
    return os.pathsep.join(filter(None, (str(_PACKAGE.parent), os.environ.get("PYTHONPATH", ""))))


# Starting rankdash's own processes in less processor time.


@contextmanager
def starting() -> Iterator[None]:
    """Speed up the imports inside the block. Use it only in a separate process, because it changes
    settings of the whole process."""
    # By default, NumPy's threads spin for a while whenever they are idle, for the first time on
    # import.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    # Imported modules stay: the garbage collector need not traverse them, now or at exit.
    gc.disable()
    atexit.register(gc.freeze)
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
