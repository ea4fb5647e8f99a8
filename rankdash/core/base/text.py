"""Shortening, comparing and cleaning texts for display."""

from __future__ import annotations

import html
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

# The opening words that at least this many titles share, up to this many words, are dropped.
_COMMON_START = 4
_LONGEST_START = 5
_MOST_LINES = 5
# The width in columns of the narrowest place that shows titles.
_NARROW = 16


def shortened(text: str, limit: int) -> str:
    """Return at most `limit` characters, without characters of `CONTROL`; the last is an ellipsis
    if the text was truncated."""
    text = CONTROL.sub("", text)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def middle(text: str, width: int) -> str:
    """Return one line of at most `width` columns (a Chinese character takes two), truncated in the
    middle, because ids and names of systems often differ only at the end. A text that already ends
    in an ellipsis is truncated at its end. Characters of `CONTROL` are dropped."""
    line = " ".join(CONTROL.sub("", text).split())
    if fits(line, width):
        return line
    if line.endswith("…"):
        return f"{_head(line, width - 1).rstrip()}…"
    tail = _head(line[::-1], (width - 1) // 2)[::-1]
    head = _head(line, width - 1 - columns(tail))
    return f"{head.rstrip()}…{tail.lstrip()}"


def fits(text: str, width: int) -> bool:
    """Return whether `middle` returns the text complete."""
    line = " ".join(text.split())
    # Each character takes at least one column.
    return len(line) <= width and columns(line) <= width


def lines(text: str, width: int) -> list[str]:
    """Return the text on lines of at most `width` columns, broken at blanks if possible. A text of
    more than `_MOST_LINES` lines is truncated in the middle."""
    rest, wrapped = middle(text, _MOST_LINES * width), []
    while not fits(rest, width):
        head = _head(rest, width)
        blank = head.rfind(" ")
        head = head[:blank] if blank > 0 else head
        wrapped.append(head)
        rest = rest[len(head) :].lstrip()
    return [*wrapped, rest]


def columns(text: str) -> int:
    """Return the width of a text in Latin letters; a Chinese character takes two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def _head(text: str, width: int) -> str:
    """Return the longest start of the text that takes at most `width` columns."""
    if text.isascii():
        return text[: max(width, 0)]
    ends = itertools.accumulate(columns(each) for each in text[: max(width, 0)])
    return text[: sum(1 for end in ends if end <= width)]


def free(name: str, taken: Collection[str]) -> str:
    """Return the name, or the name with the first unused number: "BM25 (2)"."""
    numbered = (name, *(f"{name} ({n})" for n in range(2, len(taken) + 3)))
    return next(each for each in numbered if each not in taken)


def distinct(labels: Mapping[str, str]) -> dict[str, str]:
    """Return option → label without characters of `CONTROL`, numbered if two labels are equal: a
    widget finds the chosen option by its label, so one of two equal ones could never be chosen."""
    result: dict[str, str] = {}
    for option, label in labels.items():
        result[option] = free(CONTROL.sub("", label), result.values())
    return result


def distinguishing(titles: Mapping[str, str], width: int = _NARROW) -> dict[str, str]:
    """Return option → title; titles of more than `width` columns without the opening words that
    many titles share, so that they still differ when they are truncated ("What is (are) X ?", "What
    is (are) Y ?" …).

    A text that ends in an ellipsis is the opening of a longer text, not a title, and stays as it
    is.
    """
    words = {option: title.split() for option, title in titles.items() if not title.endswith("…")}
    starts = Counter(itertools.chain.from_iterable(map(_starts, words.values())))
    result = dict(titles)
    for option, parts in words.items():
        common = (len(start) for start in _starts(parts) if starts[start] >= _COMMON_START)
        shared = max(common, default=0)
        cut = (("… " if start else "") + " ".join(parts[start:]) for start in range(shared + 1))
        *longer, shortest = cut
        result[option] = next((each for each in longer if fits(each, width)), shortest)
    return result


def _starts(words: list[str]) -> list[tuple[str, ...]]:
    most = min(len(words), _LONGEST_START + 1)
    return [tuple(words[:length]) for length in range(1, most)]


# Text of the user's data for HTML.

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters except tab and line feed, and characters that change the direction of writing,
with which a text could be shown in a misleading order."""

_CHANGED = re.compile(f"{CONTROL.pattern[:-1]}&<>\"']")


def html_safe(text: str) -> str:
    """Return the text escaped for HTML, so that nothing in it is markup."""
    # Most texts need no change.
    if not _CHANGED.search(text):
        return text
    return html.escape(CONTROL.sub("", text), quote=True)


def notebook_html(page: str) -> str:
    """Return HTML for a notebook, in which MathJax renders no text and no character changes the
    writing direction."""
    plain = "".join(each if each.isprintable() or each == "\n" else " " for each in page)
    return f'<div class="tex2jax_ignore mathjax_ignore">{plain}</div>'


# The language of texts, detected from their letters.

# The number of texts to look at; the first letter after the Latin ones.
_READ = 200
_AFTER_LATIN = "\u0250"
_SCRIPTS = {
    "han": re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"),
    "kana": re.compile("[\u3040-\u30ff]"),
    "hangul": re.compile("[\uac00-\ud7af]"),
}
# Japanese contains at least this share of kana.
_KANA = 0.1


def language_of(texts: Iterable[str]) -> str:
    """Return the language of the first texts by their letters: "zh", "ja" or "ko"; "latin" if most
    letters are Latin, or there are none; "other" for the rest."""
    letters = [each for each in "".join(islice(texts, _READ)) if each.isalpha()]
    if 2 * sum(each < _AFTER_LATIN for each in letters) >= len(letters):
        return "latin"
    shares = {
        name: sum(bool(script.match(each)) for each in letters) / len(letters)
        for name, script in _SCRIPTS.items()
    }
    if shares["kana"] >= _KANA:
        return "ja"
    if 2 * shares["han"] > 1:
        return "zh"
    return "ko" if 2 * shares["hangul"] > 1 else "other"


# Tables for a spreadsheet, in which no cell runs as a formula.
#
# Spreadsheets run a cell that begins with one of = + - @ (or a tab or line break) as a formula, and
# texts and ids come from untrusted files. In CSV such a cell, unless it is a number, therefore gets
# an apostrophe in front, and a cell that begins with apostrophes before such a character gets one
# more, so that the change can be undone exactly.

_STARTS_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WAS_DEFUSED = re.compile(r"'+[=+\-@\t\r\n＝＋－＠]")


def defused(cell: str) -> str:
    """Return the text as a cell that no spreadsheet runs as a formula. A number stays as it is."""
    runs = _STARTS_FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if runs else cell


def restored(cell: str) -> str:
    """Return the text that was passed to `defused`."""
    return cell[1:] if _WAS_DEFUSED.match(cell) else cell


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """Return a frame as CSV in UTF-8 with a byte order mark, which spreadsheets need; cells and
    headings that would run as formulas are defused."""
    # Imported here because the command line, which only writes single cells, needs neither.
    import numpy as np
    import pandas as pd

    safe = frame.rename(columns=defused)
    for place in range(frame.shape[1]):
        # By position: two columns may have one name.
        column = frame.iloc[:, place]
        if not pd.api.types.is_numeric_dtype(column):
            cells = [defused(cell) if isinstance(cell, str) else cell for cell in column]
            safe.isetitem(place, np.array(cells, dtype=object))
    return safe.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig", "replace")


# Credentials in messages of other programs, recognised by their form and hidden.
#
# A service may answer with the headers of the request. Its answer is stored as the reason of a
# failure, and no credential may be stored with it.

MARK = "•••"

_VALUE = r"""(?P<value>[^\s"'\\,;<>(){}\[\]&]+)"""
# A header or a field with its value, also in JSON, with escaped quotes, or in a form.
_NAMED = re.compile(
    r"""(?xi)
    (?P<before>
        (?: (?P<header>authorization)
          | x-[a-z-]{0,40}(?:key|token) | (?:api|access|auth)[-_\ ]?(?:key|token)
        )
        (?:\ (?:provided|given|used))?
        \\*["']?\s*(?:[:=]|%3A|%3D)(?:\s|%20|\+)*\\*["']?
        (?P<scheme>(?:bearer|basic|token)(?:\s|%20|\+)+)?
    )"""
    + _VALUE
)
_BEARER = re.compile(rf"(?i)(?P<before>\bbearer(?:\s|%20|\+)+){_VALUE}")
# The prefixes of keys of well-known services, with a digit later; a key of OpenAI may be truncated
# early.
_KEY = re.compile(r"(?<![A-Za-z])(?:jina_|nvapi-|hf_|gsk_|xai-|pa-|mxb_|ze_|AIza)[\w-]{6,}")
_KEY_OF_OPENAI = re.compile(r"(?<![A-Za-z])sk-[\w.*-]*[\w*]")
_DIGIT = re.compile(r"\d")
# Words that follow in a sentence about credentials.
_PROSE = re.compile(
    r"(?i)(?:tokens?|auth|authentication|authorization|scheme|headers?|credentials?|keys?|type|is|"
    r"was|are|not|must|missing|required|invalid|expected|format|error)[.:!?]*"
)
_LIKE_A_KEY = re.compile(r"\d|[a-z][A-Z]|\w[-_+/=~*.]\w|.{16}")


def redact(text: str) -> str:
    """Return the text with `MARK` in place of everything that looks like a credential."""

    def named(match: re.Match[str]) -> str:
        sure = match["header"] and match["scheme"]
        hidden = bearer(match) if sure or _LIKE_A_KEY.search(match["value"]) else match[0]
        return hidden if not match["value"].startswith(("http:", "https:")) else match[0]

    def bearer(match: re.Match[str]) -> str:
        prose = _PROSE.fullmatch(match["value"])
        return match[0] if prose else match["before"] + MARK

    def key(match: re.Match[str]) -> str:
        return MARK if _DIGIT.search(match[0]) else match[0]

    text = _KEY.sub(key, _BEARER.sub(bearer, _NAMED.sub(named, text)))
    return _KEY_OF_OPENAI.sub(MARK, text)
