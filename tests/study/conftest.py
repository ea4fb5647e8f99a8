from datetime import datetime

import pytest

from rankdash.words import prices


@pytest.fixture(autouse=True)
def _one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices get old, approved texts do not."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 11, 27, tzinfo=tz)

    monkeypatch.setattr(prices, "datetime", Clock)
