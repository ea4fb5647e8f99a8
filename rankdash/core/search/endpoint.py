"""Description of a search engine's URL: the request for a query, and the paths to the hits in the
answer.

An endpoint is JSON that a user edits. Its texts contain the placeholders {query}, {k} and {vector},
which are replaced in the parsed JSON: a query can never change the structure of a request. Paths
are JMESPath.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import jmespath
from jmespath.exceptions import JMESPathError

from rankdash.core.base.errors import DataError, Phrase, UnavailableError
from rankdash.core.base.files import from_json, guarded, said_by
from rankdash.core.base.shipped import ASSETS
from rankdash.core.base.text import redact
from rankdash.core.data.ranking import digest
from rankdash.core.rerankers.remote.connection import SEARCH_NAME, Key, Place

PRESETS = ASSETS / "search"
SHORTEST_KEY = 8
"""Characters of the shortest key that is removed from hits. A shorter one may be a word."""

# psycopg reads %% as a percent sign. Only with a parameter is it certain that the server refuses a
# text of several statements.
_PARAMETER = re.compile(r"(?<!%)(?:%%)*%\((query|k|vector)\)s")
_PLACEHOLDER = re.compile(r"\{(query|k|vector)\}")
_HOST = re.compile(r"[\w.:-]+", re.ASCII)
# Names of headers that contain a key.
_KEY_PARAMETER = re.compile(r"(?:key|token|secret|password|auth|signature)$", re.IGNORECASE)
_SECRET = re.compile(r"auth|cookie|key|token|secret|password|credential", re.IGNORECASE)
_HEADER = re.compile(r"[A-Za-z0-9-]+")
_READS = re.compile(r"\s*(select|with)\b", re.IGNORECASE)
_PATHS = ("hits", "id", "title", "text", "score", "partial")
_TEXTS = ("name", "kind", "method", "url", "sql", *_PATHS, "vector")
_FIELDS = (*_TEXTS, "headers", "params", "body", "password")
# The usual columns of a row of PostgreSQL.
_COLUMNS = {"hits": "@", **{name: name for name in ("id", "title", "text", "score")}}


class Hit(NamedTuple):
    """A document in an answer. text: None if the answer has none. score: NaN if it has none."""

    doc_id: str
    title: str
    text: str | None
    score: float


class Secret(NamedTuple):
    """A value that contains a key: the name of its environment variable, and a text before it."""

    variable: str
    prefix: str = ""


class Request(NamedTuple):
    """An HTTP request. target: path and query string. body: a value for JSON; None for none."""

    method: str
    target: str
    body: Any


def address_of(url: str) -> str:
    """Return the address of the endpoint with this URL. Raises ValueError if it is not a URL."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] + parts.path


def key_of(secret: Secret, origin: str) -> Key:
    """Return a key for the search engine at `origin`. Raises the errors of `Place.find`."""
    try:
        key = Place(secret.variable, origin).find()
    except UnavailableError as missing:
        if "key_variable" not in missing.remedy:
            raise
        raise UnavailableError(
            missing.template,
            remedy="Enter the key, or set another variable that the endpoint names, such as "
            "SEARCH_KEY, before you start rankdash. If the engine needs no key, delete the key "
            "from the endpoint.",
            **missing.params,
        ) from missing
    assert key is not None  # noqa: S101 - the variable has a name
    return key


class UnreadableError(ValueError):
    """An answer without readable hits. The message names the path."""


@dataclass(frozen=True)
class Endpoint:
    """A search engine's URL, and how to use it.

    name: display name. kind: "http" or "postgres". method: "GET" or "POST".
    url: of the search; for PostgreSQL postgresql://USER@HOST:PORT/DATABASE.
    headers: name → text or `Secret`. password: of PostgreSQL.
    params: of the query string. body: for JSON; None for none. sql: with the parameters %(query)s,
        %(k)s and %(vector)s.
    hits: path to the list of hits; "" if the other paths lead to one list for each column. Rows of
        PostgreSQL have the columns id, title, text and score by default.
    id, title, text, score: paths in a hit; "" if there is none.
    partial: path in the answer that is true if the answer is incomplete; "" if there is none.
    vector: the packaged bi-encoder that embeds the query for {vector}; "" without vectors.
    """

    written: Mapping[str, Any] = field(repr=False)
    name: str = ""
    kind: Literal["http", "postgres"] = "http"
    method: str = "POST"
    url: str = ""
    headers: Mapping[str, str | Secret] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    sql: str = ""
    hits: str = ""
    id: str = ""
    title: str = ""
    text: str = ""
    score: str = ""
    partial: str = ""
    vector: str = ""
    password: Secret | None = None

    @classmethod
    def of(cls, source: Mapping[str, Any] | str, file: str = "") -> Endpoint:
        """Read an endpoint from JSON text, or its parsed form. file: its name, for messages.

        Raises DataError, with the field and a remedy, if it is invalid.
        """
        with guarded(
            file,
            "The endpoint is not valid JSON: {reason}.",
            "Start from a preset: rankdash fetch --preset elasticsearch.",
        ):
            parsed = from_json(source) if isinstance(source, str) else json.loads(_json(source))
            if not isinstance(parsed, dict):
                raise DataError(
                    "An endpoint is a JSON object.",
                    remedy="Start from a preset: rankdash fetch --preset elasticsearch.",
                )
            return _checked(parsed)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object that the user wrote. It contains no key."""
        return json.loads(_json(self.written))  # type: ignore[no-any-return]

    @cached_property
    def request_hash(self) -> str:
        """A hash of the request and its interpretation; the name is not part of it."""
        unnamed = {name: value for name, value in self.written.items() if name != "name"}
        return digest([_json(unnamed, sort_keys=True).encode("utf-8", "replace")])

    @property
    def host(self) -> str:
        """Host, with its port if it is in the URL."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def address(self) -> str:
        """Host and path of the URL, without parameters, which may be secret."""
        return address_of(self.url)

    @property
    def origin(self) -> str:
        """Scheme and host of the URL."""
        return f"{urlsplit(self.url).scheme}://{self.host}"

    @property
    def secrets(self) -> dict[str, Secret]:
        """Keys by the name of the header; the key of PostgreSQL is "password"."""
        found = {name: value for name, value in self.headers.items() if isinstance(value, Secret)}
        return found if self.password is None else {**found, "password": self.password}

    @property
    def places(self) -> tuple[Place, ...]:
        """The variable of each key, with the service that receives it."""
        names = dict.fromkeys(secret.variable for secret in self.secrets.values())
        return tuple(Place(name, self.origin) for name in names)

    def request(self, query: str, depth: int, vector: list[float] | None = None) -> Request:
        """Return the HTTP request for a query."""
        values = {"query": query, "k": depth, "vector": vector}
        parts = urlsplit(self.url)
        path, search = (
            _PLACEHOLDER.sub(lambda match: quote(_text(values[match[1]]), safe=""), part)
            for part in (parts.path, parts.query)
        )
        params = {name: _filled(value, values) for name, value in self.params.items()}
        encoded = urlencode(
            {
                name: value if isinstance(value, str) else _json(value)
                for name, value in params.items()
            }
        )
        search = "&".join(filter(None, (search, encoded)))
        return Request(
            self.method,
            (path or "/") + (f"?{search}" if search else ""),
            None if self.body is None else _filled(self.body, values),
        )

    def incomplete(self, answer: Any) -> str:
        """Return the reason why an answer is incomplete, or ""."""
        try:
            partial = bool(self.partial and _path(self.partial).search(answer))
        except ValueError:
            return ""
        return "partial answer" if partial else ""

    def read(self, answer: Any, depth: int) -> tuple[tuple[Hit, ...], int]:
        """Return at most `depth` hits of an answer in its order, and the number of repeated
        documents, of which only the first is used. Raises UnreadableError."""
        hits: dict[str, Hit] = {}
        repeats = 0
        for number, (doc_id, title, text, score) in enumerate(self._rows(answer), 1):
            if len(hits) == depth:
                break
            hit = Hit(
                _id(doc_id, number, self.id),
                _plain(title, number, self.title) or "",
                _plain(text, number, self.text),
                _number(score),
            )
            repeats += hit.doc_id in hits
            hits.setdefault(hit.doc_id, hit)
        return tuple(hits.values()), repeats

    def _rows(self, answer: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Yield the id, title, text and score of each hit."""
        paths = (self.id, self.title, self.text, self.score)
        if not self.hits:
            columns = [_found(path, answer) if path else None for path in paths]
            ids = columns[0]
            if not isinstance(ids, list):
                raise UnreadableError(f"the answer has no list at {self.id}")
            for path, column in zip(paths, columns, strict=True):
                if column is not None and not (
                    isinstance(column, list) and len(column) == len(ids)
                ):
                    raise UnreadableError(f"the list at {path} has another length")
            for place in range(len(ids)):
                id_, title, text, score = (each and each[place] for each in columns)
                yield id_, title, text, score
            return
        hits = _found(self.hits, answer)
        if not isinstance(hits, list):
            raise UnreadableError(f"the answer has no list at {self.hits}")
        for hit in hits:
            id_, title, text, score = (_found(path, hit) if path else None for path in paths)
            yield id_, title, text, score


@cache
def presets() -> Mapping[str, Endpoint]:
    """Return name → template of an endpoint, from `assets/search`."""
    return {
        file.stem: Endpoint.of(file.read_text(encoding="utf-8"), file.name)
        for file in sorted(PRESETS.glob("*.json"))
    }


# Placeholders and paths.


def _json(value: Any, *, sort_keys: bool = False) -> str:
    return json.dumps(value, sort_keys=sort_keys, ensure_ascii=False, allow_nan=False)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Return JSON with the placeholders replaced. A text that is only a placeholder becomes the
    value itself, so {k} becomes a number and {vector} a list."""
    if isinstance(value, dict):
        return {name: _filled(each, values) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, values) for each in value]
    if not isinstance(value, str):
        return value
    only = _PLACEHOLDER.fullmatch(value)
    return values[only[1]] if only else _PLACEHOLDER.sub(lambda m: _text(values[m[1]]), value)


@cache
def _path(path: str) -> Any:
    return jmespath.compile(path)


def _found(path: str, value: Any) -> Any:
    try:
        return _path(path).search(value)
    except ValueError as problem:  # JMESPathError, or a step of 0
        raise UnreadableError(f"the path {path} does not fit: {said_by(problem)}") from problem


def _id(value: Any, number: int, path: str) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or value == "":
        raise UnreadableError(f"hit {number} has no id at {path}")
    if isinstance(value, (dict, list, bool)):
        raise UnreadableError(f"the id of hit {number} at {path} is not a text or a number")
    return _whole(str(value))


def _plain(value: Any, number: int, path: str) -> str | None:
    """Return a text; a list of texts is joined."""
    if isinstance(value, dict):
        deeper = next(iter(value), "")
        raise UnreadableError(
            f"hit {number} has an object at {path}; use a deeper path, such as {path}.{deeper}"
        )
    if isinstance(value, list):
        return " ".join(filter(None, (_plain(each, number, path) for each in value)))
    return None if value is None else _whole(_text(value))


def _whole(text: str) -> str:
    """Return a text with "?" for halves of surrogate pairs, which JSON can escape."""
    return text.encode("utf-8", "replace").decode()


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    return float(value) if math.isfinite(value) else math.nan


# Validation.


def _refuse(template: str, remedy: str, **params: Any) -> DataError:
    return DataError(template, remedy=remedy, **params)


def _checked(written: dict[str, Any]) -> Endpoint:
    for name in written:
        if name not in _FIELDS:
            raise _refuse(
                "An endpoint has no field {field}.",
                "Use these fields: {fields}.",
                field=name,
                fields=", ".join(_FIELDS),
            )
    usual = _COLUMNS if written.get("kind") == "postgres" else {}
    texts = {**usual, **{name: written[name] for name in _TEXTS if name in written}}
    for name, value in texts.items():
        _require(isinstance(value, str), name, Phrase("a text"))
    for name in ("headers", "params"):
        _require(isinstance(written.get(name, {}), dict), name, Phrase("an object"))
    kind = texts.get("kind", "http")
    _require(kind in ("http", "postgres"), "kind", Phrase("http or postgres"))
    method = texts.get("method", "POST" if "body" in written else "GET")
    _require(method in ("GET", "POST"), "method", Phrase("GET or POST"))
    headers = {name: _header(name, value) for name, value in written.get("headers", {}).items()}
    password = None
    if "password" in written:
        password = _secret("password", written["password"])
    endpoint = Endpoint(
        written,
        **{**texts, "method": method},
        headers=headers,
        params=written.get("params", {}),
        body=written.get("body"),
        password=password,
    )
    _check_url(endpoint)
    _check_paths(endpoint)
    _check_placeholders(endpoint)
    # A key in a URL, a parameter or a body would be stored.
    if redact(text := _json(written)) != text:
        raise _refuse(
            "The endpoint contains a text that looks like a key.",
            'Put the key into an environment variable, and name it in a header: {{"env": '
            '"SEARCH_KEY"}}.',
        )
    return endpoint


def _require(condition: bool, name: str, what: Phrase) -> None:
    if not condition:
        raise _refuse(
            "The field {field} of the endpoint must be {what}.",
            "Start from a preset: rankdash fetch --preset elasticsearch.",
            field=name,
            what=what,
        )


def _secret(name: str, value: Any) -> Secret:
    if isinstance(value, dict) and set(value) <= {"env", "prefix"} and "env" in value:
        variable, prefix = value["env"], value.get("prefix", "")
        if isinstance(variable, str) and SEARCH_NAME.fullmatch(variable):
            _require(
                isinstance(prefix, str) and prefix.isascii() and len(prefix) <= 20,
                f"{name}.prefix",
                Phrase("a short text"),
            )
            return Secret(variable, prefix)
        raise _refuse(
            "The endpoint names the variable {variable}, which is not permitted.",
            "Use a variable that begins with SEARCH_ or ends in _API_KEY.",
            variable=variable,
        )
    raise _refuse(
        "The value of {field} would be stored with the endpoint.",
        'Put the key into an environment variable, and name it: {{"env": "SEARCH_KEY"}}.',
        field=name,
    )


def _header(name: str, value: Any) -> str | Secret:
    _require(bool(_HEADER.fullmatch(name)), "headers", Phrase("an object of header names"))
    refused = name.lower() in ("host", "content-length", "transfer-encoding", "connection")
    _require(not refused, f"headers.{name}", Phrase("absent, because the client sets it"))
    if isinstance(value, dict) or _SECRET.search(name):
        return _secret(name, value)
    plain = isinstance(value, str) and value.isascii() and value.isprintable()
    _require(plain, f"headers.{name}", Phrase("a text in one line"))
    return str(value)


def _check_url(endpoint: Endpoint) -> None:
    http = endpoint.kind == "http"
    try:
        parts = urlsplit(endpoint.url)
        valid = parts.port is None or parts.port > 0
    except ValueError:
        valid = False
    if valid:
        valid = bool(parts.hostname and _HOST.fullmatch(parts.hostname))
        valid &= parts.scheme in (("http", "https") if http else ("postgres", "postgresql"))
        valid &= not parts.password and not parts.fragment
        valid &= not parts.username if http else not parts.query and len(parts.path) > 1
        valid &= endpoint.url.isprintable() and not set(" \\") & set(endpoint.url)
        valid &= parts.netloc.count("@") < 2
    if not valid:
        raise _refuse(
            "The URL of the endpoint is not valid: {url}.",
            "Enter http://HOST:PORT/PATH or https://HOST/PATH, without a user or a password."
            if http
            else "Enter postgresql://USER@HOST:PORT/DATABASE, without a password or parameters.",
            url=redact(re.sub(r"//[^/]*@", "//", endpoint.url)),
        )
    parameters = [*parse_qsl(parts.query), *endpoint.params.items()]
    for name, value in parameters:
        if (
            _KEY_PARAMETER.search(name)
            and len(str(value)) >= SHORTEST_KEY
            and "{" not in str(value)
        ):
            raise _refuse(
                "The value of {field} would be stored with the endpoint.",
                'Send a key in a header, which names its variable: {{"env": "SEARCH_KEY"}}.',
                field=name,
            )


def _check_paths(endpoint: Endpoint) -> None:
    for name in _PATHS:
        path = getattr(endpoint, name)
        try:
            if path:
                _path(path)
        except JMESPathError as problem:
            raise _refuse(
                "The path {field} of the endpoint is not valid: {reason}",
                "Enter a JMESPath, such as hits.hits or _source.title.",
                field=name,
                reason=said_by(problem),
            ) from problem
    if not endpoint.id:
        raise _refuse(
            "The endpoint has no path to the id of a hit.",
            "Add the field id, such as _id; the field hits has the path to the list of hits.",
        )
    if endpoint.kind == "postgres":
        tls = {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}
        only_tls = all(name == "sslmode" and each in tls for name, each in endpoint.params.items())
        _require(only_tls, "params", Phrase("an object with only sslmode"))
    if endpoint.kind == "postgres" and not _READS.match(endpoint.sql):
        raise _refuse(
            "The field sql of the endpoint must be one SELECT.",
            "Start from a preset: rankdash fetch --preset postgres.",
        )


def _check_placeholders(endpoint: Endpoint) -> None:
    if endpoint.kind == "postgres":
        used = set(_PARAMETER.findall(endpoint.sql))
    else:
        requested = [*urlsplit(endpoint.url)[2:4], *endpoint.params.values(), endpoint.body]
        used = set(_PLACEHOLDER.findall(_json(requested)))
    if not used & {"query", "vector"}:
        raise _refuse(
            "The endpoint does not use the query.",
            "Put {placeholder} at the place of the query.",
            placeholder="%(query)s" if endpoint.kind == "postgres" else "{query}",
        )
    if ("vector" in used) != bool(endpoint.vector):
        raise _refuse(
            "The placeholder of the vector and the field vector of the endpoint belong together.",
            "Use both or neither. The field vector names a packaged bi-encoder, such as "
            "packaged/bge-small-en-v1.5.",
        )
