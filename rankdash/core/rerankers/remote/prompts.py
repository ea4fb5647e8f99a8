"""Prompts that enclose queries and documents in marks, so that a model does not read them as
instructions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rankdash.core.base.errors import SettingError

_SHIPPED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SYSTEM: str = _SHIPPED["system"]
POINTWISE: str = _SHIPPED["pointwise"]
LISTWISE: str = _SHIPPED["listwise"]
PAIRWISE: str = _SHIPPED["pairwise"]
QUESTIONS: Mapping[str, str] = _SHIPPED["questions"]
"""Kind of answer → the question for it."""
AGAIN: str = _SHIPPED["again"]
"""Text appended to a judge's prompt after an unreadable answer."""
JUDGE: Mapping[str, Mapping[str, Any]] = _SHIPPED["judge"]
"""Name of a judge's template → its prompt, and the highest grade of its scale, from 0."""

_PLACE = re.compile(r"\{([a-z_]+)\}")

# rankdash's marks, and the marks of chat models for turns and reasoning: a server that parses the
# latter in a document would treat the following text as a message.
_MARKS = re.compile(
    r"<(?=\s*(?:/\s*)?(?:document|query|guidelines|think|thinking|s|start_of_turn|end_of_turn)\b|\|)"
    r"|\[(?=/?INST\])",
    re.IGNORECASE,
)
_HARMLESS = {"<": "&lt;", "[": "&#91;"}

_THOUGHT = re.compile(r"<(/)?think(?:ing)?>", re.IGNORECASE)


def check(template: str, places: Sequence[str], optional: Sequence[str] = ()) -> None:
    """Raise SettingError if a prompt lacks a required placeholder or contains an unknown one."""
    every = (*places, *optional)
    used = set(_PLACE.findall(template))
    for name in places:
        if name not in used:
            raise SettingError(
                "The prompt must contain {place}.",
                remedy="Placeholders of this prompt: {places}.",
                place=f"{{{name}}}",
                places=_listed(every),
            )
    unknown = sorted(used.difference(every))
    if unknown:
        raise SettingError(
            "The prompt contains an unknown placeholder: {place}.",
            remedy="Placeholders of this prompt: {places}.",
            place=f"{{{unknown[0]}}}",
            places=_listed(every),
        )


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return the template with its placeholders filled in one pass: placeholders within values are
    not replaced."""
    return _PLACE.sub(lambda match: values[match[1]], template)


def query(text: str) -> str:
    """Return a query between its marks."""
    return f"<query>\n{_as_data(text)}\n</query>"


def document(text: str, name: str = "") -> str:
    """Return a document between its marks, with a name if there are several."""
    start = f'<document id="{name}">' if name else "<document>"
    return f"{start}\n{_as_data(text)}\n</document>"


def guidelines(text: str) -> str:
    """Return the annotation guidelines between their marks, or ""."""
    if not text.strip():
        return ""
    return (
        "Go by these guidelines when you grade:\n"
        f"<guidelines>\n{_as_data(text.strip())}\n</guidelines>"
    )


def cut(text: str, characters: int) -> str:
    """Return the first `characters` characters of a text; the whole text if this is 0."""
    return text[:characters] if characters else text


def without_thoughts(text: str) -> str:
    """Return the answer of a model without its reasoning; "" if the reasoning does not end."""
    spoken: list[str] = []
    at, thinking = 0, False
    for mark in _THOUGHT.finditer(text):
        if not thinking:
            spoken.append(text[at : mark.start()])
            if mark[1]:
                # Before an end mark without a start mark, all text is reasoning.
                spoken.clear()
        at, thinking = mark.end(), not mark[1]
    if not thinking:
        spoken.append(text[at:])
    return "".join(spoken).strip()


def _as_data(text: str) -> str:
    return _MARKS.sub(lambda match: _HARMLESS[match[0]], text)


def _listed(places: Sequence[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in places)
