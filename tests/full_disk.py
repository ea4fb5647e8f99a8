"""A full disk, simulated for this process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def room_for(size: int) -> Iterator[Callable[[], None]]:
    """Limit the size of each file to `size` bytes inside the block, as on a full disk, until the
    yielded function is called."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def make_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield make_room
    finally:
        make_room()
