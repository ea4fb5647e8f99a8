"""Small files beside the data, such as price lists, profiles and plans.

Whatever is wrong with one is a `DataError` with the file, the line if it is known, and what to do.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rankdash.core.base.errors import DataError, Phrase, RankdashError

# The parser takes a time that grows with the square of a line.
_LONGEST_TOML_LINE = 2_000
_LONGEST_REASON = 300
_AT_LINE = re.compile(r"\bline (\d{1,9})\b")
_DIGITS = re.compile("integer string conversion|int too large")
# A whole pair, or a half of one, as JSON spells them; anything else behind a backslash.
_ESCAPED = re.compile(
    r"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


@contextmanager
def guarded(
    file: str, template: str, remedy: str, *, line: int | None = None, **params: Any
) -> Iterator[None]:
    """Around everything that reads the file and makes something of its content.

    template, remedy, params: of the DataError for whatever is raised inside, with {reason} for what
    that was. line: where it happens, if the content does not say it.

    What rankdash raises itself passes, with the name of the file if it has none.
    """
    try:
        yield
    except DataError as problem:
        problem.file = problem.file or file
        raise
    except OSError:
        raise
    except RankdashError as problem:
        raise DataError(
            problem.template, remedy=problem.remedy, file=file, line=line, **problem.params
        ) from problem
    except Exception as problem:
        at = _AT_LINE.search(str(problem))
        raise DataError(
            template,
            remedy=remedy,
            file=file,
            line=line or (int(at[1]) if at else None),
            reason=_reason(problem),
            **params,
        ) from problem


def _reason(problem: Exception) -> str:
    if isinstance(problem, RecursionError):
        return Phrase("lists inside lists, too deep")
    if _DIGITS.search(str(problem)):
        return Phrase("a number of too many digits")
    if isinstance(problem, KeyError):
        return Phrase("it has no {name}", name=_printable(str(problem.args[0])))
    return said_by(problem).rstrip(".")


def said_by(problem: Exception) -> str:
    """What was raised, in a line. What a library quotes of a file may be no text that can be stored
    or printed."""
    lines = str(problem).strip().splitlines()
    return _printable(lines[0] if lines else type(problem).__name__)


def _printable(text: str) -> str:
    return text[:_LONGEST_REASON].encode("utf-8", "replace").decode()


def text_of(content: bytes) -> str:
    """The text of a file in UTF-8, also behind a byte order mark. Raises ValueError."""
    return content.decode("utf-8-sig")


def from_json(text: str) -> Any:
    """The value of JSON text, halves of characters replaced. Raises ValueError, RecursionError."""
    return json.loads(whole_characters(text)[0])


def from_toml(text: str) -> dict[str, Any]:
    """The content of TOML text. Raises ValueError, RecursionError."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST_TOML_LINE:
            raise ValueError(f"line {number} has more than {_LONGEST_TOML_LINE} characters")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        end = f"line {len(lines)}, the end of the file"
        raise ValueError(str(problem).replace("end of document", end)) from problem


def from_json_or_toml(text: str) -> Any:
    """The content of text in one of the two. A list in brackets is TOML: [[prices]]."""
    return from_json(text) if text.lstrip().startswith("{") else from_toml(text)


def whole_characters(text: str) -> tuple[str, int]:
    """The JSON text with U+FFFD for each half of a surrogate pair, which JSON can spell and no
    encoding can store; and how many there were. Every place in it stays where it was."""
    if not _HALF_PAIR.search(text):
        return text, 0
    count = 0

    def whole_or_not(found: re.Match[str]) -> str:
        nonlocal count
        if found[2] is None:
            return found[0]
        count += 1
        return "\\ufffd"

    return _ESCAPED.sub(whole_or_not, text), count
