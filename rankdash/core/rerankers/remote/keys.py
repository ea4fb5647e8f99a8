"""Keys of services: read from the environment or handed over in memory, and never written down.

A run's settings hold the *name* of a variable. The key itself lives in the environment of the
process, or in `given`, which holds what someone typed for one run for as long as that run goes.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import quote, urlsplit

from rankdash.core.base.allowed import address_of, is_loopback, may_read_key
from rankdash.core.base.errors import SettingError, UnavailableError
from rankdash.core.base.text import MARK, redact

# A variable that belongs to a service by its name is sent to that service alone. Whoever may type a
# base URL into a shared dashboard could otherwise have its keys sent to their own server.
HOMES: Mapping[str, str] = MappingProxyType(
    {
        "COHERE_API_KEY": "https://api.cohere.com",
        "CO_API_KEY": "https://api.cohere.com",
        "JINA_API_KEY": "https://api.jina.ai",
        "VOYAGE_API_KEY": "https://api.voyageai.com",
        "MXBAI_API_KEY": "https://api.mixedbread.com",
        "OPENAI_API_KEY": "https://api.openai.com",
        "ANTHROPIC_API_KEY": "https://api.anthropic.com",
        "MISTRAL_API_KEY": "https://api.mistral.ai",
        "OPENROUTER_API_KEY": "https://openrouter.ai",
        "NVIDIA_API_KEY": "https://ai.api.nvidia.com",
    }
)

# Two names of one key: rankdash's and that of the service's own library.
_OTHER_NAMES = {"COHERE_API_KEY": "CO_API_KEY", "CO_API_KEY": "COHERE_API_KEY"}

# The variable of a key → the one that says where its service listens instead.
_ADDRESSES = {"OPENAI_API_KEY": "OPENAI_BASE_URL"}

# Anything else in the environment of a server is none of a service's business.
_NAME = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")

# In place of the name of a variable: the service asks for no key.
NO_KEY = "none"

_SHORTEST = 4
# So much of a key in a row is a part of it and no chance: its head, where a service cut its text.
_PART = 6
_given: ContextVar[Mapping[str, str] | None] = ContextVar("given", default=None)


class Key:
    """A secret that does not show itself: not printed, not formatted, not pickled."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"Key({MARK})"

    def __reduce__(self) -> str:
        raise TypeError

    @property
    def header(self) -> str:
        """The value of an Authorization header."""
        return f"Bearer {self._value}"

    def redact(self, text: str) -> str:
        """The text without the key, without parts of it, and without what looks like another one.

        Give it the whole text and cut after: half a key is harder to recognise.
        """
        return redact(self._without_parts(self.redact_whole(text)))

    def redact_whole(self, text: str) -> str:
        """The text without the key, also where it is encoded for a URL, JSON or HTML. Quick, for a
        text of any length."""
        if len(self._value) < _SHORTEST:
            return text
        quoted = json.dumps(self._value)[1:-1]
        forms = {self._value, quote(self._value), quote(self._value, safe=""), quoted}
        forms |= {quoted.replace("/", "\\/"), html.escape(self._value)}
        # The longest first: a shorter one may be a part of it.
        for form in sorted(forms, key=len, reverse=True):
            text = text.replace(form, MARK)
        return text

    def _without_parts(self, text: str) -> str:
        parts = {self._value[at : at + _PART] for at in range(len(self._value) - _PART + 1)}
        shown: list[str] = []
        end = 0
        for at in range(len(text)):
            if text[at : at + _PART] in parts:
                if at >= end:
                    shown.append(MARK)
                end = at + _PART
            elif at >= end:
                shown.append(text[at])
        return "".join(shown)


@dataclass(frozen=True)
class Place:
    """Where a run looks for its key.

    variable: the name of the environment variable; "" where no key is needed.
    base_url: where the key would be sent.
    """

    variable: str
    base_url: str

    def find(self) -> Key | None:
        """The key; None where none is needed.

        Raises UnavailableError where it is missing, and SettingError for one that cannot be sent.
        """
        if not self.variable:
            return None
        typed = _given.get() or {}
        value = next((typed[name].strip() for name in self._names if name in typed), "")
        value = value or _variable(self.set_variable)
        if not value and self.withheld:
            raise UnavailableError(
                "The key of the service is missing: this server does not let its visitors use the "
                "one in {variable}.",
                remedy="Type a key of your own into the form, or ask whoever starts the server to "
                "allow it: --allow-key {variable}, or RANKDASH_KEYS.",
                variable=self.withheld,
            )
        if not value and not self.allowed and any(map(_variable, self._names)):
            raise UnavailableError(
                "The key of the service is missing: the one in {variable} is sent to {home} only.",
                remedy="Set another environment variable, such as RACK_API_KEY, before rankdash "
                "starts, and give its name: key_variable=RACK_API_KEY. Where the service asks for "
                "no key, give key_variable=none.",
                variable=self.variable,
                home=usual_address(self.variable),
            )
        if not value:
            raise UnavailableError(
                "The key of the service is missing.",
                remedy="Type it into the form, or set the environment variable {variable} before "
                "rankdash starts. A typed key is never stored, so each run and each "
                "resume needs it again. If the service needs no key, tick that in the "
                "form, or give key_variable=none.",
                variable=self.variable,
            )
        # Such a header is refused later, by a message that quotes it.
        if not (value.isascii() and value.isprintable()):
            raise SettingError(
                "The key has a character that cannot be sent, such as a line break.",
                remedy="Copy it again.",
            )
        return Key(value)

    @property
    def in_environment(self) -> bool:
        """Whether the environment of this process has the key, for this base URL."""
        return bool(self.set_variable)

    @property
    def set_variable(self) -> str:
        """The variable of this process that has the key; "" where none has, or may be used."""
        names = self._names if self.allowed else ()
        return next((name for name in names if _variable(name) and may_read_key(name)), "")

    @property
    def withheld(self) -> str:
        """The variable of this process that has the key, where it is not for visitors; else ""."""
        names = self._names if self.allowed and not self.set_variable else ()
        return next((name for name in names if _variable(name)), "")

    @property
    def host(self) -> str:
        """The host that is asked, and that the key is sent to, with its port."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    @property
    def on_loopback(self) -> bool:
        """Whether the service runs on the machine that asks it."""
        return is_loopback(urlsplit(self.base_url).hostname or "")

    @property
    def address(self) -> str | None:
        """Return and raise what `rankdash.core.base.allowed.address_of` does for the base URL."""
        return address_of(self.base_url, own=_variable(_ADDRESSES.get(self.variable, "")))

    @property
    def allowed(self) -> bool:
        """Whether a key that is kept under the variable's name may be sent to the base URL: to the
        service itself, and where the environment says that it listens instead."""
        known = HOMES.get(self.variable, "")
        homes = (known, usual_address(self.variable)) if known else ()
        return not known or any(_same_place(self.base_url, home) for home in homes)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.variable, _OTHER_NAMES.get(self.variable, ""))))


def usual_address(variable: str) -> str:
    """Where the service of a key listens: as the environment says, such as OPENAI_BASE_URL, or the
    service's own address. variable: one of `HOMES`."""
    return _variable(_ADDRESSES.get(variable, "")) or HOMES[variable]


def place(named: str, base_url: str, usual: str) -> Place:
    """Where the key for `base_url` is looked for.

    named: the variable that the user named; "" for the usual one, and NO_KEY where the service asks
    for no key. usual: the variable of the service.

    Raises SettingError where `named` cannot be the name of a key.
    """
    named = named.strip()
    if named == NO_KEY:
        return Place("", base_url)
    if named and not _NAME.fullmatch(named):
        raise SettingError(
            "The name of a variable with a key is written in capitals and ends in _API_KEY.",
            remedy="Give the name of an environment variable, such as COHERE_API_KEY, never the "
            "key itself; none where the service asks for no key.",
        )
    return Place(named or usual, base_url)


@contextmanager
def given(keys: Mapping[str, str]) -> Iterator[None]:
    """Inside the block, `Place.find` knows these keys: variable → key."""
    before = _given.set(dict(keys))
    try:
        yield
    finally:
        _given.reset(before)


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()


def _same_place(base_url: str, home: str) -> bool:
    """Whether two URLs name the same scheme, host and port."""
    here, there = urlsplit(base_url), urlsplit(home)
    return (here.scheme, here.netloc) == (there.scheme, there.netloc)
