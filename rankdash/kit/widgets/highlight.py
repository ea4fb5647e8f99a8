"""The words of a query marked in the text of a document, as HTML that is escaped here.

The rule, which needs no dictionary and no model:

- Words written with blanks: each word of the query counts, short everyday words aside (unless the
  query has no others). A word of the text is marked when it is the same, or when both are the
  same less a common English ending: "returning" marks "return", "returns" and "returned". What is
  left of a word has at least four letters; a shorter word is marked only where it stands alone,
  with or without a plural s.
- Text without blanks (Chinese, Japanese kana): question words and particles split the query into
  pieces; then the longest stretch of two or more characters that a piece and the text have in
  common is marked, from left to right. A single character is marked only where a piece has no
  other.

It shows what a reader would look for. It is not why a model scored the document as it did.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rankdash.kit.widgets.text import html_safe

Spans = list[tuple[int, int]]

_UNSPACED = "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNSPACED += "\U00020000-\U0003fffd"
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_WORD = re.compile(rf"[^\W_{_UNSPACED}]+")
_ENDINGS = (
    "ations", "ation", "ments", "ment", "ness", "ings", "ing", "ions", "ion", "ies", "ied", "ive",
    "ers", "er", "ed", "es", "ly", "al", "s", "y", "e",
)  # fmt: skip
_SHORTEST_STEM = 4
_LONGEST_PIECE = 12
_EVERYDAY = frozenset(
    """a an and any are as at be been but by can could do does did for from had has have how i if in
    into is it its me my no not of on or our should so than that the their them then there these
    they this those to was we were what when where which who whom whose why will with would you
    your""".split()  # noqa: SIM905 - forty quoted words are no list to read
)
_PARTICLES = re.compile(
    "什么|怎么样|怎么|怎样|如何|哪些|哪个|哪里|为什么|为何|多少|是否|能否|可以|可否|以及|或者"
    "|还是|有没有|[的了是在和与及或吗呢吧啊么有之为被把从对于也都就请问几哪谁]"
)


@dataclass(frozen=True)
class QueryTerms:
    """What is looked for. words: written in full; stems: the same less their endings; pieces:
    stretches of text without blanks."""

    words: frozenset[str]
    stems: frozenset[str]
    pieces: frozenset[str]


def terms(query: str) -> QueryTerms:
    """What to look for, from the text of a query."""
    text = _plain(query)
    words = _WORD.findall(text)
    content = [word for word in words if word not in _EVERYDAY] or words
    pieces = [
        piece for run in _UNSPACED_RUN.findall(text) for piece in _PARTICLES.split(run) if piece
    ]
    stretches = {
        piece[start : start + size]
        for piece in pieces
        for size in range(2, min(len(piece), _LONGEST_PIECE) + 1)
        for start in range(len(piece) - size + 1)
    }
    return QueryTerms(
        words=frozenset(content),
        stems=frozenset(stem for word in content if (stem := _stem(word))),
        pieces=frozenset(stretches | {piece for piece in pieces if len(piece) == 1}),
    )


def spans(text: str, wanted: QueryTerms) -> Spans:
    """Where the text is to be marked: (start, end), in order, never overlapping."""
    plain = _plain(text)
    found = [
        (match.start(), match.end())
        for match in _WORD.finditer(plain)
        if _is_wanted(match.group(), wanted)
    ]
    if wanted.pieces:
        for run in _UNSPACED_RUN.finditer(plain):
            found += _stretches(plain, run.start(), run.end(), wanted.pieces)
    return sorted(found)


def snippet(text: str, marked: Spans, length: int) -> tuple[int, int]:
    """The part of the text, about `length` characters, in which most of the marks stand."""
    if len(text) <= length:
        return 0, len(text)
    words = [text[start:end].lower() for start, end in marked]
    # How often each word stands among the marks from one on, as far as the part reaches.
    inside: Counter[str] = Counter()
    best, most, reached = 0, -1, 0
    for place, (start, _) in enumerate(marked):
        while reached < len(marked) and marked[reached][1] <= start + length * 3 // 4:
            inside[words[reached]] += 1
            reached += 1
        if len(inside) > most:
            best, most = start, len(inside)
        if reached == place:
            reached += 1
        elif inside[words[place]] == 1:
            del inside[words[place]]
        else:
            inside[words[place]] -= 1
    start = min(max(0, best - length // 4), len(text) - length)
    # Not in the middle of a word where there is a blank near.
    blank = text.find(" ", start, start + 20) if start else -1
    start = blank + 1 if blank >= 0 else start
    return start, min(len(text), start + length)


def marked_html(text: str, marked: Spans, start: int = 0, end: int | None = None) -> str:
    """Part of the text with its marks, safe as HTML."""
    end = len(text) if end is None else end
    parts, at = [], start
    for first, last in marked:
        if last <= start or first >= end:
            continue
        first, last = max(first, start), min(last, end)
        parts += [html_safe(text[at:first]), f"<mark>{html_safe(text[first:last])}</mark>"]
        at = last
    return "".join([*parts, html_safe(text[at:end])])


def _plain(text: str) -> str:
    """Lower case, full-width letters as usual ones; as long as the text, so that places hold."""
    if text.isascii():
        return text.lower()
    return "".join(map(_folded, text))


def _folded(character: str) -> str:
    if character < "\u0080":
        return character.lower()
    folded = unicodedata.normalize("NFKC", character).lower()
    return folded if len(folded) == 1 else character


# The documents of a query share most of their words.
@lru_cache(maxsize=2**14)
def _stem(word: str) -> str:
    """The word less its ending; "" where too little is left to go by."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            stem = word[: -len(ending)]
            # "stopped" is "stop", "studying" is "studies".
            doubled = stem[-1] == stem[-2] or stem[-1] in "yie"
            return _without_y(stem[:-1] if doubled and len(stem) > _SHORTEST_STEM else stem)
    return _without_y(word) if len(word) >= _SHORTEST_STEM else ""


def _without_y(stem: str) -> str:
    """ "copy" as in "copies"."""
    return f"{stem[:-1]}i" if stem.endswith("y") else stem


def _is_wanted(word: str, wanted: QueryTerms) -> bool:
    if word in wanted.words or (word.endswith("s") and word[:-1] in wanted.words):
        return True
    return _stem(word) in wanted.stems


def _stretches(
    text: str, start: int, end: int, pieces: frozenset[str]
) -> Sequence[tuple[int, int]]:
    found = []
    while start < end:
        longest = next(
            (
                size
                for size in range(min(_LONGEST_PIECE, end - start), 0, -1)
                if text[start : start + size] in pieces
            ),
            0,
        )
        if longest:
            found.append((start, start + longest))
        start += longest or 1
    return found
