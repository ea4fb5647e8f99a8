"""Text from the data on its way into HTML."""

from __future__ import annotations

import html
import re

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but tab and line feed, and those that turn the direction of writing, which
could make a text lie."""

_CHANGED = re.compile(f"{CONTROL.pattern[:-1]}&<>\"']")


def html_safe(text: str) -> str:
    """`text` for a place that renders HTML; nothing in it is markup there."""
    # Most words of a text stay as they are.
    if not _CHANGED.search(text):
        return text
    return html.escape(CONTROL.sub("", text), quote=True)
