"""Names that tell things apart."""

from __future__ import annotations

import itertools
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping

from rankdash.core.base.html import CONTROL

# A start that so many titles share, of at most so many words, says nothing of any one of them.
_COMMON_START = 4
_LONGEST_START = 5
_MOST_LINES = 5
# Columns of the narrowest place that titles are cut to.
_NARROW = 16


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters without those of `CONTROL`, the last an ellipsis where something
    was cut."""
    text = CONTROL.sub("", text)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def middle(text: str, width: int) -> str:
    """At most `width` columns of one line (a Chinese character takes two), cut in the middle: ids
    and names of systems often differ only at the end. What ends in an ellipsis is the opening of a
    text, and is cut at its end. Characters of `CONTROL` are dropped."""
    line = " ".join(CONTROL.sub("", text).split())
    if fits(line, width):
        return line
    if line.endswith("…"):
        return f"{_head(line, width - 1).rstrip()}…"
    tail = _head(line[::-1], (width - 1) // 2)[::-1]
    head = _head(line, width - 1 - columns(tail))
    return f"{head.rstrip()}…{tail.lstrip()}"


def fits(text: str, width: int) -> bool:
    """Whether `middle` leaves the text whole."""
    line = " ".join(text.split())
    # No character takes less than a column.
    return len(line) <= width and columns(line) <= width


def lines(text: str, width: int) -> list[str]:
    """The whole text on lines of at most `width` columns, broken at blanks where there are any.
    More than `_MOST_LINES` are cut in the middle."""
    rest, found = middle(text, _MOST_LINES * width), []
    while not fits(rest, width):
        head = _head(rest, width)
        blank = head.rfind(" ")
        head = head[:blank] if blank > 0 else head
        found.append(head)
        rest = rest[len(head) :].lstrip()
    return [*found, rest]


def columns(text: str) -> int:
    """How wide a text is, in Latin letters: a Chinese character takes two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def _head(text: str, width: int) -> str:
    """The longest start of the text that takes at most `width` columns."""
    if text.isascii():
        return text[: max(width, 0)]
    ends = itertools.accumulate(columns(each) for each in text[: max(width, 0)])
    return text[: sum(1 for end in ends if end <= width)]


def free(name: str, taken: Collection[str]) -> str:
    """The name itself, or with the first number that nobody has: "BM25 (2)"."""
    numbered = (name, *(f"{name} ({n})" for n in range(2, len(taken) + 3)))
    return next(each for each in numbered if each not in taken)


def distinct(labels: Mapping[str, str]) -> dict[str, str]:
    """option → label without characters of `CONTROL`, numbered where two are alike: a widget finds
    the chosen option by its label, so one of two equal ones could never be chosen."""
    result: dict[str, str] = {}
    for option, label in labels.items():
        result[option] = free(CONTROL.sub("", label), result.values())
    return result


def distinguishing(titles: Mapping[str, str], width: int = _NARROW) -> dict[str, str]:
    """option → its title; one of more than `width` columns without the first of the words that many
    titles begin with, so that what is left when it is cut short tells one from another ("What is
    (are) X ?", "What is (are) Y ?" …).

    The opening of a text, which ends in an ellipsis, is no title, and stays as it is."""
    words = {option: title.split() for option, title in titles.items() if not title.endswith("…")}
    starts = Counter(
        tuple(parts[:length])
        for parts in words.values()
        for length in range(1, min(len(parts), _LONGEST_START + 1))
    )
    result = dict(titles)
    for option, parts in words.items():
        shared = max(
            (
                length
                for length in range(1, min(len(parts), _LONGEST_START + 1))
                if starts[tuple(parts[:length])] >= _COMMON_START
            ),
            default=0,
        )
        cut = (("… " if start else "") + " ".join(parts[start:]) for start in range(shared + 1))
        *longer, shortest = cut
        result[option] = next((each for each in longer if fits(each, width)), shortest)
    return result
