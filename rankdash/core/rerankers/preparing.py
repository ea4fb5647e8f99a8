"""What a reranker is busy with while it is prepared, for whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Step = Literal["loading", "converting", "exporting", "choosing", "warming"]
"""Loading the model; once for each model, converting packaged weights, exporting it to ONNX and
choosing its runtime; scoring a first query for nothing."""

_tell: ContextVar[Callable[[Step], object]] = ContextVar("tell", default=lambda step: None)


@contextmanager
def telling(tell: Callable[[Step], object]) -> Iterator[None]:
    """`tell` is called with each step that begins inside."""
    before = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(before)


def begin(step: Step) -> None:
    """Tell whoever listens that a step begins."""
    _tell.get()(step)
