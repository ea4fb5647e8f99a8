"""A picture for the head of a report: known by its content, and never one that can hold scripts."""

from __future__ import annotations

import base64

from rankdash.core.base.errors import DataError

LARGEST = 500_000
"""Bytes."""

_STARTS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def data_uri(content: bytes) -> str:
    """The picture as an address that holds all of it.

    Raises DataError where it is too large, or neither PNG, JPEG, GIF nor WebP. SVG is refused: it
    can hold scripts.
    """
    if len(content) > LARGEST:
        raise DataError(
            "The logo has {size:,} bytes; at most {most:,} are taken.",
            remedy="Make it smaller.",
            size=len(content),
            most=LARGEST,
        )
    kind = next((name for start, name in _STARTS.items() if content.startswith(start)), None)
    if kind is None and content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        kind = "image/webp"
    if kind is None:
        raise DataError(
            "The logo is no picture that a report can hold.",
            remedy="Give a PNG, JPEG, GIF or WebP file.",
        )
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
