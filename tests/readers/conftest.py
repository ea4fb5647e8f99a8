"""Reading as a test calls it, and what it looks for in what was read."""

from collections.abc import Callable, Mapping

import pytest

from rankdash.readers import Parsed, read
from tests.readers import reading


@pytest.fixture
def parse() -> Callable[..., Parsed]:
    """`parse({"name": content}, **options)`; content is text or bytes."""

    def parse(contents: reading.Files, **options: object) -> Parsed:
        return read(reading.sources(contents), **options)

    return parse


@pytest.fixture
def zipped() -> Callable[[Mapping[str, bytes]], bytes]:
    return reading.zipped
