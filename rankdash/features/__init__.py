"""Features: one folder per page, which can be removed.

The report and its zip file list functions of other features by address, one per line. To remove a
feature, delete its lines.
"""

from importlib import import_module
from typing import Any


def offered(address: str) -> Any:
    """Return a feature's function or value by its address, such as "latency.report:draw"."""
    module, _, name = address.partition(":")
    return getattr(import_module(f"{__name__}.{module}"), name)
