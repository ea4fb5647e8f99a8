"""The features: a folder for each page, which can be cut out.

A surface that shows what other features draw (the report, its zip file) lists their functions by
address, one line each, so that no line of it depends on a feature that is cut out.
"""

from importlib import import_module
from typing import Any


def offered(address: str) -> Any:
    """Return what a feature offers at an address, such as "latency.report:draw"."""
    module, _, name = address.partition(":")
    return getattr(import_module(f"{__name__}.{module}"), name)
