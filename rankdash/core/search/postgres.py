"""PostgreSQL as a search engine: one SELECT with bound parameters, in a read-only transaction."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from rankdash.core.base.allowed import is_shared
from rankdash.core.base.errors import DataError, UnavailableError
from rankdash.core.rerankers.base import first_line
from rankdash.core.rerankers.remote.client import Exchange, Outcome, Reply
from rankdash.core.rerankers.remote.connection import Budget, Clock, Key, Place, Policy
from rankdash.core.search.endpoint import SHORTEST_KEY, Endpoint, key_of

if TYPE_CHECKING:
    import psycopg

# libpq has the parameter sslcertmode since version 16.
_LIBPQ_16 = 160_000
_PORT = 5432
_CREDENTIALS = ("sslcert", "sslkey", "sslpassword")
_UNAUTHORIZED = 401
# Other refusals, such as "the database system is starting up", are temporary.
_DENIED = re.compile(
    r'password|authentication failed|pg_hba|permission denied|role "|database "|no such user'
)


class Postgres(Exchange):
    """Connections to a PostgreSQL server, one for each thread."""

    def __init__(self, endpoint: Endpoint, policy: Policy, clock: Clock) -> None:
        """Prepare the connections. Raises UnavailableError if psycopg or the password is missing,
        SettingError for a host that is not allowed, and DataError if a visitor's URL has no
        user."""
        super().__init__(endpoint.host, policy, clock)
        self._psycopg = _library()
        self._endpoint = endpoint
        secret = endpoint.password
        self._key = None if secret is None else key_of(secret, endpoint.origin)
        self._parameters = self._parameters_of(endpoint, self._key)
        self._own = threading.local()
        self._opened: list[psycopg.Connection[dict[str, Any]]] = []

    def _parameters_of(self, endpoint: Endpoint, key: Key | None) -> dict[str, Any]:
        parts = urlsplit(endpoint.url)
        # libpq connects to the checked address.
        address = Place("", endpoint.origin).address
        read_ms = int(self._policy.read_s * 1000)
        parameters = {
            "host": parts.hostname,
            "port": parts.port or _PORT,
            "dbname": unquote(parts.path[1:]),
            "user": unquote(parts.username or "") or None,
            "hostaddr": address,
            "password": None if key is None else key.after(""),
            "connect_timeout": max(int(self._policy.connect_s), 2),
            "options": f"-c statement_timeout={read_ms} -c default_transaction_read_only=on",
            **endpoint.params,
        }
        if is_shared():
            if parameters["user"] is None:
                raise DataError(
                    "The URL of the endpoint has no user: {address}.",
                    remedy="Enter postgresql://USER@HOST:PORT/DATABASE.",
                    address=endpoint.address,
                )
            # The files and variables of the server's own user are not for visitors. libpq reads
            # a variable, such as PGPASSWORD, for each parameter that is absent.
            parameters |= {"passfile": os.devnull, "gssencmode": "disable"}
            parameters |= dict.fromkeys(_CREDENTIALS, "") | {
                "password": parameters["password"] or ""
            }
            if self._psycopg.pq.version() >= _LIBPQ_16:
                parameters["sslcertmode"] = "disable"
        return {name: value for name, value in parameters.items() if value is not None}

    def ask(self, query: str, depth: int, vector: list[float] | None) -> Reply:
        """Return the rows as a list of objects. Raises GoneError."""
        values = {"query": query, "k": depth, "vector": None if vector is None else str(vector)}
        budget = self.budget()
        return self.exchange(self._attempt(values, budget), budget)[0]

    def close(self) -> None:
        """Close all connections."""
        for connection in self._opened:
            with suppress(self._psycopg.Error):
                connection.close()

    def redact(self, text: str) -> str:
        """Return a text without the password, unless it may be a word."""
        return text if self._key is None else self._key.redact_whole(text, SHORTEST_KEY)

    def shown(self, body: bytes, limit: int) -> str:
        """Return the start of an answer without the password."""
        text = body.decode("utf-8", "replace")[:limit]
        return text if self._key is None else self._key.redact(text)

    def _attempt(self, values: dict[str, Any], budget: Budget) -> Callable[[], Outcome]:
        errors = self._psycopg.errors

        def attempt() -> Outcome:
            seconds = min(self._policy.read_s, max(budget.left, 0.01))
            try:
                with (
                    _ended_after(self._connection(), seconds) as connection,
                    connection.transaction(),
                    connection.cursor() as cursor,
                ):
                    cursor.execute(self._endpoint.sql, values)
                    rows = [_row(row) for row in cursor.fetchall()]
            except errors.QueryCanceled:
                return Outcome(0, error=f"time-out: no answer within {seconds:.3g} s")
            except self._psycopg.OperationalError as error:
                return self._lost(error)
            except (self._psycopg.Error, UnicodeError) as error:
                reason = self._reason(error)
                return Outcome(0, error=reason, refused=True, message=reason)
            body = json.dumps(rows, ensure_ascii=False, default=str).encode("utf-8", "replace")
            return Outcome(200, rows, body=body, connect_s=self._own.opening)

        return attempt

    def _connection(self) -> psycopg.Connection[dict[str, Any]]:
        connection: psycopg.Connection[dict[str, Any]] | None
        connection = getattr(self._own, "connection", None)
        start, self._own.opening = self._clock.now(), 0.0
        if connection is None or connection.closed:
            connection = self._psycopg.connect(
                **self._parameters, row_factory=self._psycopg.rows.dict_row
            )
            connection.read_only = True
            self._own.connection = connection
            self._opened.append(connection)
            self._own.opening = self._clock.now() - start
        return connection

    def _lost(self, error: psycopg.OperationalError) -> Outcome:
        connection = getattr(self._own, "connection", None)
        reason = self._reason(error)
        if connection is not None:
            with suppress(self._psycopg.Error):
                connection.close()
            self._own.connection = None
            return Outcome.lost(reason)
        fatal = str(error).partition("FATAL")[2]
        if _DENIED.search(fatal) and "too many connections" not in fatal:
            # No further request can succeed, as with this status of HTTP.
            return Outcome(_UNAUTHORIZED, error=reason, refused=True, message=reason)
        return Outcome.unreachable(reason)

    def _reason(self, error: Exception) -> str:
        text = first_line(error)
        return (text if self._key is None else self._key.redact(text))[:300]


def _library() -> Any:
    try:
        import psycopg
    except ImportError as missing:
        raise UnavailableError(
            "PostgreSQL needs the package psycopg, which is not installed.",
            remedy="Install it: pip install 'rankdash[postgres]'.",
        ) from missing
    return psycopg


@contextmanager
def _ended_after(
    connection: psycopg.Connection[dict[str, Any]], seconds: float
) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """Yield the connection, and shut down its socket if the server does not stop the statement in
    time."""

    def end() -> None:
        with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as copy:
            copy.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds + 1, end)
    timer.start()
    try:
        yield connection
    finally:
        timer.cancel()


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as JSON has it: numbers are int or float, and other values are texts."""
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if isinstance(value, Decimal):
        whole = value.is_finite() and value == value.to_integral_value()
        return int(value) if whole else float(value)
    if isinstance(value, list):
        return [_value(each) for each in value]
    plain = value is None or isinstance(value, (bool, int, float, str, dict))
    return value if plain else str(value)
