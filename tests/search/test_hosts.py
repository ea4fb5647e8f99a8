"""Hosts that get a request, and texts that contain a key."""

import logging
import math
import socket
import sys
from contextlib import nullcontext
from decimal import Decimal

import psycopg
import pytest

from rankdash.core.base import allowed
from rankdash.core.base.errors import DataError, RankdashError, SettingError, UnavailableError
from rankdash.core.rerankers.remote.connection import Policy
from rankdash.core.search.endpoint import Endpoint
from rankdash.core.search.fetching import fetch, trial
from tests.rerankers.loopback import SEARCH, engine_at
from tests.search.test_fetching import SharedClock
from tests.test_allowed import PRIVATE

KEY = "a-secret-key-0123456789"
TRICKS = [
    *PRIVATE, "localhost.", "127.0.0.1.", "127.1", "0177.0.0.1", "017700000001", "0x7f000001",
    "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]",
    "metadata.google.internal",
    "8.8.8.8@127.0.0.1", "8.8.8.8:80@127.0.0.1", "127.0.0.1#@8.8.8.8", "127.0.0.1\\@8.8.8.8",
    "127.0.0.1%00.example", "①②⑦.⓪.⓪.①", "127。0。0。1", "{query}", "8.8.8.8,127.0.0.1", "",
]  # fmt: skip


def http(origin: str, **fields: object) -> Endpoint:
    return Endpoint.of(engine_at(origin, **{"headers": {"X-Key": {"env": "SEARCH_KEY"}}, **fields}))


def postgres(netloc: str, **fields: object) -> Endpoint:
    sql = "SELECT id FROM docs WHERE text ~ %(query)s LIMIT %(k)s"
    password = {"password": {"env": "SEARCH_KEY"}}
    url = f"postgresql://reader@{netloc}/search"
    return Endpoint.of({"kind": "postgres", "url": url, "sql": sql, **password, **fields})


@pytest.fixture
def shared(monkeypatch):
    """A server that others reach, whose visitors may use the key."""
    monkeypatch.setenv(allowed.SHARED, allowed.YES)
    monkeypatch.setenv(allowed.KEYS, "SEARCH_KEY")
    monkeypatch.setenv("SEARCH_KEY", KEY)


@pytest.fixture
def connected(monkeypatch):
    """The addresses of all connections, none of which succeeds."""
    found: list[object] = []

    def refuse(address, *_arguments, **_named):
        found.append(address)
        raise ConnectionRefusedError

    def refuse_libpq(**parameters):
        found.append(parameters)
        raise psycopg.OperationalError("refused")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(psycopg, "connect", refuse_libpq)
    return found


@pytest.fixture
def names(monkeypatch):
    """Set the answers of the name service, one for each lookup; the last one repeats."""

    def set_answers(*answers: list[str]):
        rest = list(answers)

        def look_up(host, *_arguments, **_named):
            addresses = rest.pop(0) if len(rest) > 1 else rest[0]
            return [(0, 0, 0, "", (each, 0)) for each in addresses]

        monkeypatch.setattr(socket, "getaddrinfo", look_up)

    return set_answers


@pytest.mark.parametrize("host", TRICKS)
@pytest.mark.parametrize("send", [fetch, trial])
def test_no_private_address_gets_a_request(shared, connected, monkeypatch, host, send):
    if host in ("metadata.google.internal", "localhost."):
        private = [(0, 0, 0, "", ("169.254.169.254", 0))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_named: private)
    query = {"q": "a"} if send is fetch else "a"
    for make in (lambda: http(f"http://{host}:8080"), lambda: postgres(host)):
        with pytest.raises(RankdashError) as refused:
            if (result := send(make(), query, 10, Policy())) and result.error:
                raise result.error
        assert isinstance(refused.value, (DataError, SettingError, UnavailableError))
    assert connected == []


def test_a_list_of_hosts_allows_no_other(shared, connected, monkeypatch):
    monkeypatch.setenv(allowed.SERVICES, "search.example")
    for endpoint in (http("https://8.8.8.8"), postgres("8.8.8.8"), http("http://a.search.example")):
        with pytest.raises(SettingError, match="not allowed to contact"):
            fetch(endpoint, {"q": "a"}, 10, Policy())
    assert connected == []


def test_the_checked_address_is_the_contacted_one(shared, connected, names):
    names(["8.8.8.8"], ["127.0.0.1"])
    with pytest.raises(UnavailableError, match="cannot be reached"):
        fetch(http("http://open.example:8080"), {"q": "a"}, 10, Policy(retries=0))
    names(["8.8.4.4"], ["127.0.0.1"])
    with pytest.raises(UnavailableError, match="cannot be reached"):
        fetch(postgres("open.example"), {"q": "a"}, 10, Policy(retries=0))
    assert connected[0] == ("8.8.8.8", 8080)
    assert (connected[1]["host"], connected[1]["hostaddr"]) == ("open.example", "8.8.4.4")
    names(["8.8.8.8", "10.0.0.1"])
    for endpoint in (http("http://both.example"), postgres("both.example")):
        with pytest.raises(SettingError, match="its address is private"):
            fetch(endpoint, {"q": "a"}, 10, Policy(retries=0))
    assert len(connected) == 2


def test_postgresql_reads_only_and_uses_no_files_of_the_server(shared, connected, names):
    names(["8.8.8.8"])
    endpoint = postgres("open.example:6000", params={"sslmode": "verify-full"})
    with pytest.raises(UnavailableError, match="cannot be reached"):
        fetch(endpoint, {"q": "a"}, 10, Policy(retries=0, read_s=3))
    sent = connected[0]
    assert (sent["port"], sent["user"], sent["dbname"]) == (6000, "reader", "search")
    assert (sent["password"], sent["sslmode"]) == (KEY, "verify-full")
    assert sent["passfile"] == "/dev/null" and sent["sslcertmode"] == "disable"
    assert "default_transaction_read_only=on" in sent["options"]
    assert "statement_timeout=3000" in sent["options"]


def test_a_visitors_postgresql_gets_no_credential_of_the_environment(
    shared, connected, monkeypatch, names
):
    for name in ("PASSWORD", "USER", "SSLKEY", "SSLCERT"):
        monkeypatch.setenv(f"PG{name}", f"operator-{name}")
    names(["127.0.0.1"])
    monkeypatch.setenv(allowed.SERVICES, "open.example")
    fields = {"kind": "postgres", "sql": "SELECT id FROM docs WHERE text ~ %(query)s"}
    endpoint = Endpoint.of({**fields, "url": "postgresql://reader@open.example:1/search"})
    with pytest.raises(UnavailableError, match="cannot be reached"):
        fetch(endpoint, {"q": "a"}, 10, Policy(retries=0))
    sent = connected[0] | {"hostaddr": "127.0.0.1"}
    del sent["row_factory"]
    conninfo = psycopg.conninfo.make_conninfo(**sent)
    attempt = psycopg.pq.PGconn.connect_start(conninfo.encode())
    used = {option.keyword: option.val for option in attempt.info}
    attempt.finish()
    assert used[b"user"] == b"reader"
    assert not any(value and b"operator" in value for value in used.values())
    anonymous = Endpoint.of({**fields, "url": "postgresql://open.example:1/search"})
    with pytest.raises(DataError, match="has no user"):
        fetch(anonymous, {"q": "a"}, 10, Policy(retries=0))
    assert len(connected) == 1


@pytest.mark.parametrize(
    "reason",
    [
        f"no password {KEY} for user reader",
        'password authentication failed for user "reader"',
        'role "reader" is not permitted to log in',
        'database "search" does not exist',
        'pg_hba.conf rejects connection for host "127.0.0.1"',
    ],
)
def test_postgresql_is_not_contacted_again_after_a_wrong_password(monkeypatch, reason):
    attempts = []

    def refuse(**parameters):
        attempts.append(parameters)
        raise psycopg.OperationalError(f"FATAL:  {reason}")

    monkeypatch.setattr(psycopg, "connect", refuse)
    monkeypatch.setenv("SEARCH_KEY", KEY)
    queries = {str(number): "a" for number in range(30)}
    with pytest.raises(UnavailableError, match="refuses the requests: FATAL") as refused:
        fetch(postgres("127.0.0.1"), queries, 10, Policy(concurrency=1))
    assert len(attempts) == 1
    assert KEY not in str(refused.value)


class Rows:
    """A connection to a database that answers each query with these rows."""

    closed = False

    def __init__(self, *rows: dict[str, object]) -> None:
        self.rows = rows

    def transaction(self):
        return nullcontext()

    def cursor(self):
        return nullcontext(self)

    def execute(self, *_arguments):
        pass

    def fetchall(self):
        return self.rows

    def close(self):
        pass


@pytest.mark.parametrize(
    "reason",
    [
        "sorry, too many clients already",
        "the database system is starting up",
        'too many connections for role "reader"',
        "remaining connection slots are reserved for roles with the SUPERUSER attribute",
    ],
)
def test_a_temporary_refusal_of_postgresql_is_retried(monkeypatch, reason):
    monkeypatch.setenv("SEARCH_KEY", KEY)
    results = [psycopg.OperationalError(f"FATAL:  {reason}"), Rows({"id": "a"})]

    def connect(**_parameters):
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(psycopg, "connect", connect)
    (answer,) = fetch(postgres("127.0.0.1"), {"q": "a"}, 10, Policy(), clock=SharedClock())
    assert (answer.state, [hit.doc_id for hit in answer.hits]) == ("done", ["a"])


def test_numbers_of_postgresql_may_be_infinite(monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", KEY)
    values = [Decimal(each) for each in ("Infinity", "-Infinity", "NaN", "2.0")]
    rows = Rows(*({"id": Decimal(at), "score": value} for at, value in enumerate(values)))
    monkeypatch.setattr(psycopg, "connect", lambda **_parameters: rows)
    (answer,) = fetch(postgres("127.0.0.1"), {"q": "a"}, 10, Policy())
    assert [hit.doc_id for hit in answer.hits] == ["0", "1", "2", "3"]
    assert [math.isfinite(hit.score) for hit in answer.hits] == [False, False, False, True]


def test_postgresql_needs_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setenv("SEARCH_KEY", KEY)
    with pytest.raises(UnavailableError, match=r"pip install 'rankdash\[postgres\]'"):
        fetch(postgres("127.0.0.1"), {"q": "a"}, 10, Policy())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(server, monkeypatch, status):
    monkeypatch.setenv("SEARCH_KEY", KEY)
    target = f"{server.url}/elsewhere"
    server.fault_of = lambda body: {"status": status, "headers": {"Location": target}}
    with pytest.raises(UnavailableError, match="the redirect to http"):
        fetch(http(server.url), {"q": "a"}, 10, Policy())
    assert [path for path, _, _ in server.seen] == [SEARCH]


def test_the_key_is_in_the_request_and_nowhere_else(server, monkeypatch, caplog, tmp_path):
    """The engine repeats the headers in an error, in a text and in an id."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("SEARCH_KEY", KEY)
    server.documents = {KEY: f"a {KEY}", "b": "a"}
    message = f"bad key {KEY}, or {KEY[:12]}"
    server.fault_of = lambda body: (
        {"status": 500, "text": {"message": message}} if body["size"] == 9 else {}
    )
    endpoint, journal = http(server.url), tmp_path / "journal"
    policy = Policy(retries=0)
    answers = fetch(endpoint, {"1": "a"}, 10, policy, journal=journal)
    answers += fetch(endpoint, {"1": "a"}, 9, policy, journal=tmp_path / "other")
    assert [each.state for each in answers] == ["done", "failed"]
    shown = [trial(endpoint, "a", depth, policy) for depth in (10, 9)]
    written = [repr(endpoint), str(endpoint.as_dict()), repr(answers), repr(shown)]
    written += [(tmp_path / "other").read_text(), journal.read_text(), caplog.text]
    for text in written:
        assert KEY not in text
        assert KEY[:12] not in text
    assert all(headers["X-Key"] == KEY for _, headers, _ in server.seen)


def test_a_key_of_the_environment_needs_permission_on_a_shared_server(
    shared, connected, monkeypatch, names
):
    monkeypatch.setenv(allowed.KEYS, "OTHER_API_KEY")
    names(["8.8.8.8"])
    for endpoint in (http("http://open.example"), postgres("open.example")):
        with pytest.raises(UnavailableError, match="--allow-key SEARCH_KEY"):
            fetch(endpoint, {"q": "a"}, 10, Policy())
    assert connected == []
