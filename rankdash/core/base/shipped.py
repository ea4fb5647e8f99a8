"""Finds the files that come with rankdash: beside the package in a clone, inside it when installed.

The wheel has them in a folder `dashboard`, laid out as the top of the repository (pyproject.toml).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
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
