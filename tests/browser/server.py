"""The dashboard as started by `streamlit run app.py`, in a process that has already imported it,
because imports take the most time of a start."""

import functools
import importlib
import inspect
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from streamlit.components.v2 import manifest_scanner
from streamlit.web import cli

from rankdash.app.server import IMPORTED_BEFORE

for _module in IMPORTED_BEFORE:
    importlib.import_module(_module)
# Each start would search these again: all installed packages, and the files of all modules.
manifest_scanner.scan_component_manifests = functools.cache(
    manifest_scanner.scan_component_manifests
)
manifest_scanner.scan_component_manifests()
inspect.stack()


def serve(app: Path, port: int, environment: Mapping[str, str], log: Path) -> None:
    """Serve until the process is ended. log: the file for the server's output."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(app.parent)
    with log.open("wb") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    sys.argv = ["streamlit", "run", str(app), f"--server.port={port}", "--server.headless=true"]
    cli.main()
