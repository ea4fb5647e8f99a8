"""Where studies share what they worked out: passed in, so that pages reuse each other's."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

Made = TypeVar("Made")
Key = tuple[Hashable, ...]
"""What is kept (its first element) and everything that it depends on, by content ids: an entry is
never stale."""


class Cache(Protocol):
    """What `make` makes, made once for a key."""

    def __call__(self, key: Key, make: Callable[[], Made]) -> Made: ...
