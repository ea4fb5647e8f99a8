"""The start of a process of our own, in less processor time."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager


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
