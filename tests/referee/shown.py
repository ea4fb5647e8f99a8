"""Comparison of a figure on a page with the number that it should show."""

import math
import re
from collections.abc import Sequence

_NUMBER = re.compile(r"[-+]?[$]?(\d[\d,]*(?:\.\d+)?)")


def number(text: str) -> tuple[float, float]:
    """Return (number, half a unit of its last digit); the middle for "<0.0001"; NaN for a dash."""
    found = _NUMBER.search(text)
    if found is None:
        assert text == "–", text
        return math.nan, 0.0
    digits = found.group(1).replace(",", "")
    decimals = len(digits.partition(".")[2])
    value = float(digits) * (-1 if found.group().startswith("-") else 1)
    if text.startswith("<"):
        return value / 2, value / 2
    share = 100 if text[found.end() : found.end() + 1] == "%" else 1
    return value / share, 0.5 * 10**-decimals / share


def assert_shows(text: str, expected: float, slack: float = 0.0) -> None:
    """Check that the text is the number, rounded. slack: the sampling error."""
    shown, half = number(text)
    if math.isnan(expected):
        assert math.isnan(shown), (text, expected)
    else:
        assert abs(shown - expected) <= half + slack + 1e-9, (text, expected, slack)


def assert_ends(text: str, ranges: Sequence[tuple[float, float]]) -> None:
    """Check that the text is an interval with each end in its range; "no spread" if it has no
    width, and a dash if there is none."""
    if any(math.isnan(end) for each in ranges for end in each):
        assert text == "–", (text, ranges)
        return
    ends = text.split(" … ")
    if len({end for each in ranges for end in each}) == 1:
        assert text == "no spread", (text, ranges)
        return
    assert len(ends) == 2, text
    for end, (low, high) in zip(ends, ranges, strict=True):
        assert_within(end, low, high)


def assert_within(text: str, low: float, high: float) -> None:
    """Check that the text is a number of this range, rounded."""
    shown, half = number(text)
    assert low - half - 1e-9 <= shown <= high + half + 1e-9, (text, low, high)
