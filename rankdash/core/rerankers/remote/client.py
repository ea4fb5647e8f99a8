"""HTTP client of every service: timeouts, retries, rate limits, and error messages.

Answers of a service are not trusted: their size is limited, a redirect is not followed (it would
forward the key), and error texts are truncated only after the key is redacted.
"""

from __future__ import annotations

import json
import logging
import math
import re
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any, NoReturn
from urllib.parse import urlsplit

import httpx2 as httpx

from rankdash.core.base.errors import UnavailableError
from rankdash.core.base.text import redact
from rankdash.core.rerankers.base import Call
from rankdash.core.rerankers.remote.connection import Budget, Clock, Key, Place, Policy

# A longer pause requested by a service is shortened to this.
LONGEST_PAUSE_SECONDS = 60.0
LARGEST_ANSWER_BYTES = 32_000_000

# httpx2 logs every request at INFO, which the worker's log includes.
logging.getLogger("httpx2").setLevel(logging.WARNING)

# Consecutive requests, retries included, without a connection or quota after which the service
# counts as gone.
_GONE_AFTER = 5
_TOO_MANY = 429
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_BACKOFF_SECONDS = 20.0
_TEXT_LIMIT = 300
_MOST_DIGITS = 300
_LOOKED_AT = 20_000
_LOCAL = ("127.0.0.1", "localhost", "[::1]", "::1")
# TEI returns 424 if its model process failed.
_RETRY = (408, 409, 424, 425, _TOO_MANY)
_TAG = re.compile(r"<(?P<end>/)?(?P<name>script|style)?[^<>]*>", re.IGNORECASE)
_MANY = re.compile(r"batch.?size|too many|too large|payload|number of (documents|texts)", re.I)
_LONG = re.compile(r"context.?length|max_model_len|too long|maximum .{0,30}(length|tokens)", re.I)
# Headers with the service's processing time in milliseconds; the first group that is present is
# used.
_SERVER_TIME = (
    ("x-tokenization-time", "x-inference-time"),
    ("openai-processing-ms",),
    ("x-envoy-upstream-service-time",),
)
_QUEUE_TIME = (("x-queue-time",),)


@dataclass(frozen=True)
class Reply:
    """Result of a request.

    answer: the parsed JSON; None without an answer.
    error: reason for a missing answer, or "".
    too_large: whether a request with fewer documents might succeed.
    refused: whether the service refused the request for a reason that may apply to all requests.
    body: the content of the last response; b"" without one.
    """

    answer: Any
    call: Call
    error: str = ""
    too_large: bool = False
    refused: bool = False
    body: bytes = b""


class Gate:
    """Rate limiter: blocks requests while the service demands a pause, and limits their rate."""

    def __init__(self, per_minute: float, clock: Clock) -> None:
        self._spacing = 60.0 / per_minute if per_minute > 0 else 0.0
        self._clock = clock
        self._lock = threading.Lock()
        self._opens = -math.inf
        self._next = -math.inf

    def close(self, seconds: float) -> None:
        """Block all requests for some seconds."""
        with self._lock:
            self._opens = max(self._opens, self._clock.now() + seconds)

    def enter(self) -> float:
        """Wait until a request may be sent; return the seconds waited."""
        waited = 0.0
        while True:
            with self._lock:
                now = self._clock.now()
                turn = max(self._opens, self._next)
                if turn <= now:
                    self._next = now + self._spacing
                    return waited
            self._clock.sleep(turn - now)
            waited += turn - now


@dataclass(frozen=True)
class Outcome:
    """Result of one attempt.

    status: HTTP status; 0 without an answer.
    pause: seconds that the service demands before the next attempt; 0 if it names no time; None if
        a retry is pointless.
    shared: whether the pause applies to all requests.
    gone: whether the service may be down, or unavailable for this key.
    absent: whether no connection was possible.
    refused, body: as in `Reply`. message: the message of the service, for a refused request.
    connect_s: seconds spent on opening a connection.
    """

    status: int
    answer: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    pause: float | None = None
    shared: bool = False
    too_large: bool = False
    gone: bool = False
    absent: bool = False
    refused: bool = False
    body: bytes = b""
    message: str = ""
    connect_s: float = 0.0

    @classmethod
    def unreachable(cls, reason: str) -> Outcome:
        """Return the result if no connection can be opened."""
        error = f"there is no connection ({reason})"
        return cls(0, error=error, pause=0.0, gone=True, absent=True)

    @classmethod
    def lost(cls, reason: str) -> Outcome:
        """Return the result if an open connection ends."""
        return cls(0, error=f"the connection was lost ({reason})", pause=0.0, gone=True)


class _Opening:
    """Time that a request takes to open a connection; `httpx` calls it with each step."""

    def __init__(self, clock: Clock) -> None:
        self.seconds = 0.0
        self._clock, self._start = clock, 0.0

    def __call__(self, step: str, _details: object) -> None:
        if step == "connection.connect_tcp.started":
            self._start = self._clock.now()
        elif step in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self.seconds = self._clock.now() - self._start


def complete(answer: Any) -> str:
    """Return "": every answer is complete."""
    return ""


class GoneError(UnavailableError):
    """Error for a service that is unreachable or fails repeatedly. call: the last call."""

    def __init__(self, template: str, *, remedy: str, call: Call, host: str) -> None:
        super().__init__(template, remedy=remedy, host=host, reason=call.error.rstrip("."))
        self.call = call


@dataclass(frozen=True)
class _Way:
    """Route to a service: its base URL, and the headers and extensions that preserve its host name
    if the URL contains the resolved address."""

    base: str
    headers: Mapping[str, str] = field(default_factory=dict)
    extensions: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def to(cls, place: Place) -> _Way:
        address, parts = place.address, urlsplit(place.base_url)
        if address is None:
            return cls(place.base_url)
        host = f"[{address}]" if ":" in address else address
        netloc = host if parts.port is None else f"{host}:{parts.port}"
        return cls(
            parts._replace(netloc=netloc).geturl(),
            {"Host": place.host},
            {"sni_hostname": parts.hostname},
        )


class Exchange:
    """Requests to one service: their rate, retries and failures in a row. Thread-safe."""

    def __init__(self, host: str, policy: Policy, clock: Clock) -> None:
        self._host, self._policy, self._clock = host, policy, clock
        self._gate = Gate(policy.per_minute, clock)
        self._lock = threading.Lock()
        self._answered = False
        self._gone = 0

    def budget(self) -> Budget:
        """Return a new time budget for one query."""
        return Budget(self._policy.total_s, self._clock)

    def exchange(
        self,
        attempt: Callable[[], Outcome],
        budget: Budget,
        billed: Callable[[Any], Mapping[str, float]] = lambda answer: {},
    ) -> tuple[Reply, Outcome]:
        """Call `attempt` until it succeeds or a retry is pointless; return the reply and the last
        outcome. Raises GoneError if the service fails repeatedly."""
        budget.extend(self._gate.enter())
        start, waited, attempts = self._clock.now(), 0.0, 1
        outcome = attempt()
        refused, connecting = int(outcome.status == _TOO_MANY), outcome.connect_s
        while outcome.pause is not None and attempts <= self._policy.retries:
            pause = self._pause(outcome, attempts)
            if pause >= budget.left:
                break
            if outcome.shared:
                self._gate.close(pause)
            else:
                self._clock.sleep(pause)
                waited += pause
            waited += self._gate.enter()
            attempts += 1
            outcome = attempt()
            refused += outcome.status == _TOO_MANY
            connecting += outcome.connect_s
        error = outcome.error and self._in_words(outcome, attempts)
        call = Call(
            start=start,
            end=self._clock.now(),
            attempts=attempts,
            retry_wait_s=waited,
            status=outcome.status,
            billed=dict(billed(outcome.answer)) if outcome.answer is not None else {},
            server_ms=_milliseconds(outcome.headers, _SERVER_TIME),
            queue_ms=_milliseconds(outcome.headers, _QUEUE_TIME),
            error=error,
            refused=refused,
            connect_s=connecting,
        )
        if not outcome.refused:
            self._keep_count(outcome, call)
        reply = Reply(outcome.answer, call, error, outcome.too_large, outcome.refused, outcome.body)
        return reply, outcome

    def _pause(self, outcome: Outcome, attempts: int) -> float:
        """Return the seconds until the next attempt: as the service demands, else exponential
        backoff."""
        if outcome.pause:
            requested = min(outcome.pause, LONGEST_PAUSE_SECONDS)
            return requested + requested * self._clock.jitter() / 10
        backoff = min(_FIRST_PAUSE_SECONDS * 2.0 ** (attempts - 1), _LONGEST_BACKOFF_SECONDS)
        return backoff * (1 + self._clock.jitter()) / 2

    def _keep_count(self, outcome: Outcome, call: Call) -> None:
        with self._lock:
            if outcome.answer is not None:
                self._answered, self._gone = True, 0
                return
            self._gone = self._gone + 1 if outcome.gone else 0
            # An error may be specific to the first request, especially in a resumed run.
            is_gone = self._gone >= _GONE_AFTER or (outcome.absent and not self._answered)
        if is_gone:
            raise GoneError(
                "The service at {host} fails repeatedly: {reason}."
                if outcome.status
                else "The service at {host} cannot be reached: {reason}.",
                remedy="Check your quota at the service, or lower concurrent requests or requests "
                "per minute under More settings; resume continues from here."
                if outcome.status == _TOO_MANY
                else "Check that the service is running and that the base URL is correct; resume "
                "continues from here.",
                call=call,
                host=self._host,
            )

    def _in_words(self, outcome: Outcome, attempts: int) -> str:
        if attempts == 1:
            return outcome.error
        return f"{outcome.error} (after {attempts} attempts)"


class Client(Exchange):
    """Client that exchanges JSON with one service. Thread-safe."""

    def __init__(
        self,
        place: Place,
        policy: Policy,
        clock: Clock,
        more: Mapping[str, str | tuple[str, Key]] = MappingProxyType({}),
    ) -> None:
        """Open the client. more: further headers, each a text, or a prefix and a key.

        Raises UnavailableError if a key is missing, and SettingError for a host that is not
        allowed.
        """
        super().__init__(urlsplit(place.base_url).netloc, policy, clock)
        self._base, self._variable = place.base_url, place.variable
        self._to = _Way.to(place)
        key = place.find()
        self._keys = [each[1] for each in more.values() if not isinstance(each, str)]
        self._keys += [] if key is None else [key]
        headers = httpx.Headers({"Content-Type": "application/json", "Accept": "application/json"})
        if key is not None:
            headers["Authorization"] = key.header
        for name, value in more.items():
            headers[name] = value if isinstance(value, str) else value[1].after(value[0])
        self._http = httpx.Client(
            headers=headers,
            follow_redirects=False,
            # Use the machine's proxies and certificates, except for requests to itself.
            trust_env=urlsplit(self._base).hostname not in _LOCAL,
            limits=httpx.Limits(
                max_connections=policy.concurrency, max_keepalive_connections=policy.concurrency
            ),
        )
        weakref.finalize(self, self._http.close)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def redact(self, text: str) -> str:
        """Return a text of the service without the keys, safe to truncate and store."""
        for key in self._keys:
            text = key.redact(text)
        return text if self._keys else redact(text)

    def redact_whole(self, text: str, shortest: int = 0) -> str:
        """Return a text without the complete keys of at least `shortest` characters. Fast for texts
        of any length."""
        for key in self._keys:
            text = key.redact_whole(text, shortest)
        return text

    def shown(self, body: bytes, limit: int) -> str:
        """Return the start of a response without the keys, for display."""
        text = self.redact_whole(body.decode("utf-8", "replace"))
        return self.redact(text[:_LOOKED_AT])[:limit]

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        budget: Budget,
        billed: Callable[[Any], Mapping[str, float]],
    ) -> Reply:
        """Send a JSON body by POST, with retries. billed: reads the billed units from an answer.

        Raises UnavailableError if no further query can succeed.
        """
        reply, outcome = self._send("POST", path, body, budget, complete, billed)
        if reply.refused:
            self._refuse(outcome.status, outcome.message)
        return reply

    def send(
        self,
        method: str,
        path: str,
        body: Any,
        budget: Budget,
        incomplete: Callable[[Any], str] = complete,
    ) -> Reply:
        """Send a request, with retries. A refused request is an ordinary reply with an error.

        body: a value for JSON; None for none. incomplete: returns the reason why an answer is not
            complete, so that the request is retried, or "".

        Raises GoneError if the service fails repeatedly.
        """
        return self._send(method, path, body, budget, incomplete, lambda answer: {})[0]

    def _send(
        self,
        method: str,
        path: str,
        body: Any,
        budget: Budget,
        incomplete: Callable[[Any], str],
        billed: Callable[[Any], Mapping[str, float]],
    ) -> tuple[Reply, Outcome]:
        # JSON cannot encode half of a surrogate pair, so it becomes "?".
        content = b""
        if body is not None:
            text = json.dumps(body, ensure_ascii=False, allow_nan=False)
            content = text.encode("utf-8", "replace")

        def attempt() -> Outcome:
            outcome = self._attempt(method, path, content, budget)
            reason = "" if outcome.answer is None else incomplete(outcome.answer)
            return replace(outcome, answer=None, error=reason, pause=0.0) if reason else outcome

        return self.exchange(attempt, budget, billed)

    def _attempt(self, method: str, path: str, content: bytes, budget: Budget) -> Outcome:
        remaining = max(budget.left, 0.01)
        read = min(self._policy.read_s, remaining)
        limits = httpx.Timeout(read, connect=min(self._policy.connect_s, remaining))
        opening = _Opening(self._clock)
        try:
            with self._http.stream(
                method,
                self._to.base + path,
                content=content,
                timeout=limits,
                headers=self._to.headers,
                extensions={**self._to.extensions, "trace": opening},
            ) as response:
                body = _read(response, budget)
        except (httpx.ConnectTimeout, httpx.ConnectError) as error:
            return Outcome.unreachable(self.redact(str(error)))
        except httpx.TimeoutException:
            return Outcome(0, error=f"time-out: no answer within {read:.3g} s")
        except httpx.DecodingError as error:
            return Outcome(
                0, error=f"the answer cannot be decompressed ({self.redact(str(error))})", pause=0.0
            )
        except httpx.TransportError as error:
            return Outcome.lost(self.redact(str(error)))
        if body is None and budget.left <= 0:
            return Outcome(0, error="time-out: query time limit reached")
        if body is None:
            return Outcome(0, error="the answer is too long")
        outcome = self._judge(response.status_code, response.headers, body)
        return replace(outcome, body=body, connect_s=opening.seconds)

    def _judge(self, status: int, headers: Mapping[str, str], body: bytes) -> Outcome:
        fields = {name.lower(): value for name, value in headers.items()}
        if 200 <= status < 300:
            try:
                return Outcome(status, json.loads(body, parse_int=_whole), fields)
            except (ValueError, RecursionError):
                error = f"the answer is not JSON: {self._clean(body)}"
                return Outcome(status, headers=fields, error=error, pause=0.0)
        if 300 <= status < 400:
            target = self.redact(fields.get("location", ""))[:_TEXT_LIMIT]
            reason = f"the redirect to {target or 'an unknown address'} is not followed"
            return Outcome(status, headers=fields, error=reason, refused=True, message=reason)
        message = self._clean(body)
        error = f"the service returned {status}"
        if message:
            error = f"the service answered {status}: {message}"
        too_large = status == 413 or (status in (400, 422) and bool(_MANY.search(message)))
        if status in _RETRY or status >= 500:
            delay = _retry_after(fields)
            return Outcome(
                status,
                headers=fields,
                error=error,
                pause=delay or 0.0,
                shared=delay is not None or status == _TOO_MANY,
                gone=status >= 500 or status == _TOO_MANY,
            )
        own_fault = too_large or (status in (400, 422) and bool(_LONG.search(message)))
        refused = not own_fault and (status in (401, 403, 404) or not self._answered)
        return Outcome(
            status,
            headers=fields,
            error=error,
            too_large=too_large,
            refused=refused,
            message=message,
        )

    def _refuse(self, status: int, message: str) -> NoReturn:
        named = self._variable or "…_API_KEY"
        remedy = {
            401: "Check the key: {variable} in the environment, or the key you entered.",
            403: "Check the key and its permissions: {variable}, or the key you entered.",
            404: "Check the service, the base URL and the name of the model.",
        }.get(status, "Check the service, the base URL and the settings.")
        raise UnavailableError(
            "The service at {host} refused the request ({status}): {said}.",
            remedy=remedy,
            host=urlsplit(self._base).netloc,
            status=status,
            said=message.rstrip(".") or "no reason given",
            variable=named,
        )

    def _clean(self, body: bytes) -> str:
        """Return the truncated message of an error response. The key is redacted before each
        truncation, because a part of it might not be recognized."""
        text = self.redact_whole(body.decode("utf-8", "replace"))
        return self.redact(_said(text[:_LOOKED_AT]))[:_TEXT_LIMIT]


def _read(response: httpx.Response, budget: Budget) -> bytes | None:
    """Return the body; None if it is too long or takes longer than the query's time limit."""
    parts: list[bytes] = []
    size = 0
    for part in response.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > LARGEST_ANSWER_BYTES or budget.left <= 0:
            return None
    return b"".join(parts)


def _whole(digits: str) -> float:
    """Return an integer of an answer; infinity if it has more digits than any score or count."""
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


def _said(text: str) -> str:
    """Return the message of an error response: from its JSON, or its text without markup."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    for _ in range(3):
        if isinstance(answer, list) and answer:
            answer = answer[0]
        elif isinstance(answer, dict):
            named = (answer.get(name) for name in ("message", "error", "detail", "msg", "errors"))
            answer = next((value for value in named if value), None)
    text = answer if isinstance(answer, str) else _without_markup(text)
    return " ".join(text.split())


def _without_markup(text: str) -> str:
    """Return the text between tags, without scripts and styles."""
    shown: list[str] = []
    at, within = 0, ""
    for tag in _TAG.finditer(text):
        name = (tag["name"] or "").lower()
        if within and not (tag["end"] and name == within):
            continue
        if not within:
            shown.append(text[at : tag.start()])
        at, within = tag.end(), "" if tag["end"] else name
    if not within:
        shown.append(text[at:])
    return " ".join(shown)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a service demands to wait; None if it names no time."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    moment = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)


def _milliseconds(headers: Mapping[str, str], groups: tuple[tuple[str, ...], ...]) -> float:
    """Return the service's time from the headers of a group; NaN without any."""
    for group in groups:
        try:
            durations = [float(headers[name]) for name in group if name in headers]
        except ValueError:
            continue
        if durations and all(math.isfinite(value) for value in durations):
            return sum(durations)
    return math.nan
