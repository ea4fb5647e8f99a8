"""The comparison of texts in English and in Chinese with the approved ones."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from rankdash.core.base.i18n import speaking
from tests.approved import table


def _lines(said: object) -> str:
    if isinstance(said, list):
        said = "\n".join(map(_lines, said))
    elif isinstance(said, tuple):
        said = " | ".join(map(str, said)).rstrip(" |")
    return str(said) or "(nothing)"


@pytest.fixture(params=["en", "zh"])
def texts(
    request: pytest.FixtureRequest, approved: Callable[[str, str], None]
) -> Iterator[Callable[[str, Mapping[str, object]], None]]:
    """Return a function that compares cases, each with its reason, in the present language. A list
    has one line per item, and a tuple is a row."""

    def compare(topic: str, cases: Mapping[str, object]) -> None:
        said = table({name: _lines(each) for name, each in cases.items()})
        approved(f"words/{topic}.{request.param}", said)

    with speaking(request.param):
        yield compare
