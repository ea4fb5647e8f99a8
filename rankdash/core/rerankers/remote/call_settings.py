"""What the kinds that call another machine share: settings, addresses, doing several at once."""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from rankdash.core.base.errors import SettingError
from rankdash.core.rerankers.settings import SettingSpec

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")

# How requests are sent. None of these changes a score.
SENDING = (
    SettingSpec(
        "key_variable",
        "",
        "Variable of the key",
        "The name of the environment variable that holds the key, never the key itself. Empty: "
        "the usual variable of the service. none: the service needs no key.",
        advanced=True,
    ),
    SettingSpec(
        "concurrency",
        4,
        "Concurrent requests",
        "How many requests are sent concurrently.",
        within=(1, 64),
        advanced=True,
    ),
    SettingSpec(
        "per_minute",
        0.0,
        "Requests per minute",
        "At most this many requests per minute, evenly spread; 0 for no limit.",
        within=(0, 1_000_000),
        advanced=True,
    ),
    SettingSpec(
        "connect_s",
        5.0,
        "Time to connect, s",
        "How long to wait for a connection.",
        within=(0.1, 600),
        advanced=True,
    ),
    SettingSpec(
        "read_s",
        30.0,
        "Time to answer, s",
        "How long to wait for an answer. A query that takes longer fails, and its time counts as "
        "at least so long.",
        within=(0.1, 3600),
        advanced=True,
    ),
    SettingSpec(
        "total_s",
        120.0,
        "Time for a query, s",
        "The time limit of a query, retries included.",
        within=(0.1, 36_000),
        advanced=True,
    ),
    SettingSpec(
        "retries",
        4,
        "Further attempts",
        "How often a request is sent again when the service is busy or the connection is cut.",
        within=(0, 20),
        advanced=True,
    ),
)


@dataclass(frozen=True)
class Policy:
    """How a service is treated.

    per_minute: requests that may leave in a minute, evenly spread; 0 for no limit.
    connect_s, read_s: how long one attempt waits for a connection, and for the next bytes.
    total_s: how long a query may take with its retries, its share of the rate limit apart.
    retries: further attempts after the first.
    """

    concurrency: int = 4
    per_minute: float = 0.0
    connect_s: float = 5.0
    read_s: float = 30.0
    total_s: float = 120.0
    retries: int = 4


@dataclass(frozen=True)
class Clock:
    """Time, so that tests need not wait for it. `now` is monotonic, in seconds."""

    now: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random


class Budget:
    """The time that a query has left. Not for several queries at once."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._clock = clock
        self._end = clock.now() + seconds

    def extend(self, seconds: float) -> None:
        self._end += seconds

    @property
    def left(self) -> float:
        return self._end - self._clock.now()


def policy(settings: Mapping[str, Any]) -> Policy:
    """How requests are sent, from complete settings of a kind that has `SENDING`."""
    return Policy(**{name: settings[name] for name in Policy.__dataclass_fields__})


def each(
    function: Callable[[_Item], _Answer], items: Sequence[_Item], at_once: int
) -> list[_Answer]:
    """`function` of every item, in order, so many at once. After an error no more are begun."""
    if len(items) < 2 or at_once < 2:
        return [function(item) for item in items]
    pool = ThreadPoolExecutor(min(at_once, len(items)), thread_name_prefix="rerank")
    try:
        return list(pool.map(function, items))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def check_url(base_url: str) -> str:
    """The base URL without a slash at its end.

    Raises SettingError where it is not one of HTTP, or holds a user, a password or a query, which
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
            "The base URL must begin with https:// or http:// and name a host.",
            remedy="For example https://api.cohere.com or http://127.0.0.1:8080.",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise SettingError(
            "The base URL must not hold a user, a password or a query.",
            remedy="A key goes into its own field or into the environment.",
        )
    return url


# What a run would ask of a service, before it does: calls, tokens, dollars.

# Rules of thumb for byte-pair vocabularies: four characters of an alphabet to a token, and three
# tokens to four Chinese characters. Right within about a third, which is what an estimate is for.
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_IDEOGRAPH = 0.75
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")


@dataclass(frozen=True)
class Estimate:
    """calls: requests to the service. tokens_in, tokens_out: read and written by its model, about.

    dollars: at the prices in the settings; NaN where there are none.
    """

    calls: int
    tokens_in: float
    tokens_out: float = 0.0
    dollars: float = math.nan

    def scaled(self, factor: float) -> Estimate:
        """The estimate for `factor` times the work."""
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
    """About how many tokens a text has."""
    ideographs = sum(1 for _ in _IDEOGRAPHS.finditer(text))
    return (len(text) - ideographs) / _CHARACTERS_PER_TOKEN + ideographs * _TOKENS_PER_IDEOGRAPH
