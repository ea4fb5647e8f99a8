"""Shared parts of the kinds that call another machine: settings, keys, addresses, estimates.

A run's settings contain the *name* of a variable, never a key. The key is in the environment of the
process or, if a user typed it for a run, in memory (`given_keys`) until the run ends.
"""

from __future__ import annotations

import html
import json
import math
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from rankdash.core.base.allowed import address_of, is_loopback, may_read_key
from rankdash.core.base.errors import SettingError, UnavailableError
from rankdash.core.base.rules import Settings, SettingSpec, described_by, settings_of
from rankdash.core.base.text import MARK, redact

# The key in a variable of this list is sent only to its service. Otherwise any visitor of a shared
# dashboard could enter a base URL and have the key sent to their own server.
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

# Two names of the same key: rankdash's, and the one used by the service's own library.
_OTHER_NAMES = {"COHERE_API_KEY": "CO_API_KEY", "CO_API_KEY": "COHERE_API_KEY"}

# Variable of a key → variable of an alternative address of its service.
_ADDRESSES = {"OPENAI_API_KEY": "OPENAI_BASE_URL"}

# Other variables in the environment of a server must not be sent to a service.
_NAME = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")
SEARCH_NAME = re.compile(r"\A(?:SEARCH_[A-Z0-9_]+|[A-Z][A-Z0-9_]*_API_KEY)")
"""Permitted variables of the keys of a search engine."""

# Replaces the name of a variable if the service needs no key.
NO_KEY = "none"

_SHORTEST = 4
# This many consecutive characters of a key count as a part of it, not as coincidence: a service may
# have truncated its text within the key.
_PART = 6
_typed_keys: ContextVar[Mapping[str, str] | None] = ContextVar("typed_keys", default=None)


class Key:
    """Secret that is not printed, formatted or pickled."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"Key({MARK})"

    def __reduce__(self) -> str:
        raise TypeError

    @property
    def header(self) -> str:
        """Value of an Authorization header."""
        return self.after("Bearer ")

    def after(self, prefix: str) -> str:
        """Return the value of a header: the prefix and the key."""
        return f"{prefix}{self._value}"

    def redact(self, text: str) -> str:
        """Return the text without the key, its parts, and texts that look like another key.

        Pass the whole text and truncate afterwards: half a key is harder to recognize.
        """
        return redact(self._without_parts(self.redact_whole(text)))

    def redact_whole(self, text: str, shortest: int = 0) -> str:
        """Return the text without the key, also if it is encoded for a URL, JSON or HTML. Fast for
        texts of any length. shortest: a shorter key is not replaced, because it may be a word."""
        if len(self._value) < max(_SHORTEST, shortest):
            return text
        quoted = json.dumps(self._value)[1:-1]
        forms = {self._value, quote(self._value), quote(self._value, safe=""), quoted}
        forms |= {quoted.replace("/", "\\/"), html.escape(self._value)}
        # The longest first, because a shorter form may be a part of it.
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
    """Variable of a run's key, and the service that receives the key.

    variable: the name of the environment variable; "" if no key is needed.
    base_url: the service that the key is sent to.
    """

    variable: str
    base_url: str

    def find(self) -> Key | None:
        """Return the key; None if none is needed.

        Raises UnavailableError if it is missing, and SettingError if it cannot be sent.
        """
        if not self.variable:
            return None
        typed = _typed_keys.get() or {}
        value = next((typed[name].strip() for name in self._names if name in typed), "")
        value = value or _variable(self.set_variable)
        if not value and self.withheld:
            raise UnavailableError(
                "The key of the service is missing: this server does not allow visitors to use "
                "the key in {variable}.",
                remedy="Enter your own key, or ask the server administrator to allow this one: "
                "--allow-key {variable}, or RANKDASH_KEYS.",
                variable=self.withheld,
            )
        if not value and not self.allowed and any(map(_variable, self._names)):
            raise UnavailableError(
                "The key of the service is missing: the key in {variable} is sent only to {home}.",
                remedy="Set another environment variable, such as RACK_API_KEY, before you start "
                "rankdash, and pass its name: key_variable=RACK_API_KEY. If the service "
                "needs no key, pass key_variable=none.",
                variable=self.variable,
                home=usual_address(self.variable),
            )
        if not value:
            raise UnavailableError(
                "The key of the service is missing.",
                remedy="Enter the key in the form, or set the environment variable {variable} "
                "before you start rankdash. A key entered in the form is never stored, so "
                "each run and each resume needs it again. If the service needs no key, "
                "select that in the form, or pass key_variable=none.",
                variable=self.variable,
            )
        # The HTTP client would refuse such a header with a message that quotes it.
        if not (value.isascii() and value.isprintable()):
            raise SettingError(
                "The key has a character that cannot be sent, such as a line break.",
                remedy="Copy it again.",
            )
        return Key(value)

    @property
    def in_environment(self) -> bool:
        """True if the environment of this process has the key, for this base URL."""
        return bool(self.set_variable)

    @property
    def set_variable(self) -> str:
        """Variable of this process with a key that may be used, or ""."""
        names = self._names if self.allowed else ()
        return next((name for name in names if _variable(name) and may_read_key(name)), "")

    @property
    def withheld(self) -> str:
        """Variable of this process with a key that visitors may not use, or ""."""
        names = self._names if self.allowed and not self.set_variable else ()
        return next((name for name in names if _variable(name)), "")

    @property
    def host(self) -> str:
        """Host, with its port, that receives the requests and the key."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    @property
    def on_loopback(self) -> bool:
        """True if the service runs on the machine that calls it."""
        return is_loopback(urlsplit(self.base_url).hostname or "")

    @property
    def address(self) -> str | None:
        """Result of `rankdash.core.base.allowed.address_of` for the base URL, including its
        errors."""
        return address_of(self.base_url, configured=_variable(_ADDRESSES.get(self.variable, "")))

    @property
    def allowed(self) -> bool:
        """True if the key in this variable may be sent to the base URL: to the service itself, and
        to the alternative address from the environment."""
        home_address = HOMES.get(self.variable, "")
        homes = (home_address, usual_address(self.variable)) if home_address else ()
        return not home_address or any(_same_place(self.base_url, home) for home in homes)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.variable, _OTHER_NAMES.get(self.variable, ""))))


def usual_address(variable: str) -> str:
    """Return the default address of a key's service: from the environment, such as OPENAI_BASE_URL,
    or the service's public address. variable: one of `HOMES`."""
    return _variable(_ADDRESSES.get(variable, "")) or HOMES[variable]


def place(named: str, base_url: str, usual: str) -> Place:
    """Return the place of the key for `base_url`.

    named: the variable that the user entered; "" for the usual one, and NO_KEY if the service needs
        no key. usual: the variable of the service.

    Raises SettingError if `named` is not a valid name.
    """
    named = named.strip()
    if named == NO_KEY:
        return Place("", base_url)
    if named and not _NAME.fullmatch(named):
        raise SettingError(
            "The name of a key variable must be in capitals and end in _API_KEY.",
            remedy="Enter the name of an environment variable, such as COHERE_API_KEY, never the "
            "key itself; enter none if the service needs no key.",
        )
    return Place(named or usual, base_url)


@contextmanager
def given_keys(keys: Mapping[str, str]) -> Iterator[None]:
    """Provide keys, variable → key, to `Place.find` inside the block."""
    before = _typed_keys.set(dict(keys))
    try:
        yield
    finally:
        _typed_keys.reset(before)


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()


def _same_place(base_url: str, home: str) -> bool:
    """Return whether two URLs have the same scheme, host and port."""
    here, there = urlsplit(base_url), urlsplit(home)
    return (here.scheme, here.netloc) == (there.scheme, there.netloc)


_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


def _sent(default: float, title: str, help_text: str, within: tuple[float, float]) -> Any:
    spec = SettingSpec("", default, title, help_text, within=within, advanced=True)
    return described_by(spec)


@dataclass(frozen=True)
class Policy(Settings):
    """Rules for sending requests to a service. None of them changes a score.

    connect_s, read_s: per attempt. total_s: without the wait for the query's turn in the rate
        limit.
    """

    concurrency: int = _sent(
        4, "Concurrent requests", "How many requests are sent concurrently.", (1, 64)
    )
    per_minute: float = _sent(
        0.0,
        "Requests per minute",
        "At most this many requests per minute, evenly spread; 0 for no limit.",
        (0, 1_000_000),
    )
    connect_s: float = _sent(5.0, "Connect timeout (s)", "Time limit for a connection.", (0.1, 600))
    read_s: float = _sent(
        30.0,
        "Read timeout (s)",
        "Time limit for an answer. A query that takes longer fails, and this limit counts as its "
        "minimum latency.",
        (0.1, 3600),
    )
    total_s: float = _sent(
        120.0, "Query timeout (s)", "The time limit of a query, retries included.", (0.1, 36_000)
    )
    retries: int = _sent(
        4,
        "Retries",
        "Number of retries if the service is busy or the connection is lost.",
        (0, 20),
    )

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Policy:
        """Return the policy in the settings of a kind that includes `SENDING`."""
        return cls(**{each.name: settings[each.name] for each in settings_of(Policy)})


def price(name: str, title: str, help_text: str = "0 if not known.") -> SettingSpec:
    """Return the setting of a price in dollars."""
    return SettingSpec(name, 0.0, title, help_text, within=(0, 1_000_000), advanced=True)


SENDING: tuple[SettingSpec, ...] = (
    SettingSpec(
        "key_variable",
        "",
        "Key variable",
        "The name of the environment variable that contains the key, never the key itself. Empty: "
        "the usual variable of the service. none: the service needs no key.",
        advanced=True,
    ),
    *settings_of(Policy),
)


@dataclass(frozen=True)
class Clock:
    """Time source, replaceable in tests. `now` is monotonic, in seconds."""

    now: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random


class Budget:
    """Remaining time of one query. Not shared between queries."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._clock = clock
        self._end = clock.now() + seconds

    def extend(self, seconds: float) -> None:
        self._end += seconds

    @property
    def left(self) -> float:
        return self._end - self._clock.now()


def concurrently(
    function: Callable[[_Item], _Answer], items: Sequence[_Item], at_once: int
) -> list[_Answer]:
    """Apply `function` to every item with up to `at_once` threads; return the results in order.
    After an error, no more items are started."""
    if len(items) < 2 or at_once < 2:
        return [function(item) for item in items]
    pool = ThreadPoolExecutor(min(at_once, len(items)), thread_name_prefix="rerank")
    try:
        return list(pool.map(function, items))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def check_url(base_url: str) -> str:
    """Return the base URL without a slash at its end.

    Raises SettingError if it is not an HTTP URL, or contains a user, a password or a query, which
    would be stored with the run.
    """
    url = base_url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        port_is_fine = False
    if not port_is_fine or parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingError(
            "The base URL must begin with https:// or http:// and contain a host.",
            remedy="For example https://api.cohere.com or http://127.0.0.1:8080.",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise SettingError(
            "The base URL must not contain a user, a password or a query.",
            remedy="Enter the key in its own field, or set it in the environment.",
        )
    return url


# Estimate of calls, tokens and dollars before a run.

# Rules of thumb for byte-pair vocabularies: four characters of an alphabet per token, and three
# tokens per four Chinese characters. Accurate to about a third, enough for an estimate.
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_IDEOGRAPH = 0.75
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")


@dataclass(frozen=True)
class Estimate:
    """Estimated cost. calls: requests to the service. tokens_in, tokens_out: tokens that its model
    reads and writes, approximately.

    dollars: at the prices in the settings; NaN without prices.
    """

    calls: int
    tokens_in: float
    tokens_out: float = 0.0
    dollars: float = math.nan

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate for `factor` times the work."""
        return Estimate(
            math.ceil(self.calls * factor),
            self.tokens_in * factor,
            self.tokens_out * factor,
            self.dollars * factor,
        )

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.calls + other.calls,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.dollars + other.dollars,
        )


def text_tokens(text: str) -> float:
    """Return the approximate number of tokens of a text."""
    ideographs = sum(1 for _ in _IDEOGRAPHS.finditer(text))
    return (len(text) - ideographs) / _CHARACTERS_PER_TOKEN + ideographs * _TOKENS_PER_IDEOGRAPH


def dig(answer: Any, path: tuple[str, ...]) -> Any:
    """Return the value at `path` in an answer, or None."""
    for key in path:
        if not isinstance(answer, dict):
            return None
        answer = answer.get(key)
    return answer
