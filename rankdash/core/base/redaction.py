"""Credentials in what other programs say, recognised without knowing them, and hidden.

A service may answer with the headers of the request. What it says is kept as the reason of a
failure, and no credential may be kept with it.
"""

from __future__ import annotations

import re

MARK = "•••"

_VALUE = r"""(?P<value>[^\s"'\\,;<>(){}\[\]&]+)"""
# A header or a field with its value, also as JSON, quoted once more, or as a form.
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
# As the best-known services begin their keys, with a digit later; one of OpenAI may be cut soon.
_KEY = re.compile(r"(?<![A-Za-z])(?:jina_|nvapi-|hf_|gsk_|xai-|pa-|mxb_|ze_|AIza)[\w-]{6,}")
_KEY_OF_OPENAI = re.compile(r"(?<![A-Za-z])sk-[\w.*-]*[\w*]")
_DIGIT = re.compile(r"\d")
# What stands there in a sentence about credentials.
_PROSE = re.compile(
    r"(?i)(?:tokens?|auth|authentication|authorization|scheme|headers?|credentials?|keys?|type|is|"
    r"was|are|not|must|missing|required|invalid|expected|format|error)[.:!?]*"
)
_LIKE_A_KEY = re.compile(r"\d|[a-z][A-Z]|\w[-_+/=~*.]\w|.{16}")


def redact(text: str) -> str:
    """The text with `MARK` in place of whatever looks like a credential."""

    def named(found: re.Match[str]) -> str:
        sure = found["header"] and found["scheme"]
        hidden = bearer(found) if sure or _LIKE_A_KEY.search(found["value"]) else found[0]
        return hidden if not found["value"].startswith(("http:", "https:")) else found[0]

    def bearer(found: re.Match[str]) -> str:
        prose = _PROSE.fullmatch(found["value"])
        return found[0] if prose else found["before"] + MARK

    def key(found: re.Match[str]) -> str:
        return MARK if _DIGIT.search(found[0]) else found[0]

    text = _KEY.sub(key, _BEARER.sub(bearer, _NAMED.sub(named, text)))
    return _KEY_OF_OPENAI.sub(MARK, text)
