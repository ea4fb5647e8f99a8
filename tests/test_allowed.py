"""Limits of a server that others reach, and the names that it accepts."""

import socket

import pytest

from rankdash.core.base import allowed
from rankdash.core.base.errors import SettingError, UnavailableError
from rankdash.core.rerankers.remote import connection
from rankdash.core.rerankers.remote.client import Client
from rankdash.core.rerankers.remote.connection import Clock, Place, Policy
from rankdash.core.runs.on_ray.reranker import Scorer

PRIVATE = [
    "127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
    "0.0.0.0", "100.64.0.1", "[::1]", "[fd00::1]", "[fe80::1]", "[::ffff:10.0.0.1]",
    "[::ffff:127.0.0.1]", "localhost", "224.0.0.1", "2130706433", "0x7f.1", "[2002:a00:1::]",
    "[64:ff9b::a00:1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::808:808]", "[fec0::1]", "[feff::1]",
    "[::10.0.0.1]", "[::8.8.8.8]", "[::ffff:0:10.0.0.1]", "[2001:0:808:808::f5ff:fffe]",
    "[ff02::1]", "[5f00::1]", "[2001:db8::1]", "[fe80::5efe:808:808]",
]  # fmt: skip


@pytest.fixture
def shared(monkeypatch):
    """Return a function that simulates a server that others reach, with these lists."""

    def with_lists(keys="", services=""):
        monkeypatch.setenv(allowed.SHARED, allowed.YES)
        monkeypatch.setenv(allowed.KEYS, keys)
        monkeypatch.setenv(allowed.SERVICES, services)

    return with_lists


@pytest.fixture
def names(monkeypatch):
    """Host → its addresses, in place of the name service."""

    def lead(**found):
        known = {host.replace("_", "."): where for host, where in found.items()}

        def ask(host, _port):
            if host not in known:
                raise socket.gaierror("unknown")
            return [(0, 0, 0, "", (each, 0)) for each in known[host]]

        monkeypatch.setattr(socket, "getaddrinfo", ask)

    return lead


@pytest.mark.parametrize("host", PRIVATE)
def test_a_private_address_is_asked_from_this_machine_alone(shared, monkeypatch, host):
    monkeypatch.delenv(allowed.SHARED, raising=False)
    assert allowed.address_of(f"http://{host}:8080/v1") is None
    shared()
    with pytest.raises(SettingError, match="private"):
        allowed.address_of(f"http://{host}:8080/v1")


def test_a_name_is_judged_by_all_of_its_addresses(shared, names):
    shared()
    names(
        open_example=["8.8.8.8", "2606:4700::1111"],
        both_example=["8.8.8.8", "10.0.0.1"],
    )
    assert allowed.address_of("https://open.example/v1") == "8.8.8.8"
    with pytest.raises(SettingError, match=r"both\.example: its address is private"):
        allowed.address_of("https://both.example/v1")
    with pytest.raises(UnavailableError, match=r"gone\.example was not found"):
        allowed.address_of("https://gone.example/v1")


def test_public_addresses_and_those_of_the_environment_are_asked(shared, monkeypatch):
    shared()
    for address in (
        "8.8.8.8",
        "2606:4700::1111",
        "64:ff9b::808:808",
        "::ffff:8.8.8.8",
        "2002:808:808::1",
    ):
        host = f"[{address}]" if ":" in address else address
        assert allowed.address_of(f"https://{host}/v1") == address
    monkeypatch.setenv("OPENAI_BASE_URL", "http://10.0.0.7:8000/v1")
    assert Place("OPENAI_API_KEY", "http://10.0.0.7:8000/v1").address is None
    with pytest.raises(SettingError):
        _ = Place("OPENAI_API_KEY", "http://10.0.0.8:8000/v1").address


def test_a_list_holds_alone(shared, names):
    shared(services="tei.internal, API.example")
    names()
    assert allowed.address_of("http://tei.internal:8080") is None
    assert allowed.address_of("https://api.example") is None
    for url in ("https://8.8.8.8", "http://other.internal", "https://api.example@8.8.8.8/"):
        with pytest.raises(SettingError, match="not allowed to contact"):
            allowed.address_of(url)
    shared(services="*")
    assert allowed.address_of("http://10.0.0.1") is None


def test_a_key_is_for_visitors_where_it_is_listed(shared, monkeypatch):
    place = Place("RACK_API_KEY", "https://8.8.8.8")
    monkeypatch.setenv("RACK_API_KEY", "secret")
    assert place.set_variable == "RACK_API_KEY"
    shared()
    assert (place.set_variable, place.in_environment) == ("", False)
    with pytest.raises(UnavailableError, match=r"does not allow visitors.*--allow-key RACK_API"):
        place.find()
    with connection.given_keys({"RACK_API_KEY": "typed"}):
        assert place.find().header == "Bearer typed"
    shared(keys="COHERE_API_KEY rack_api_key")
    assert place.find().header == "Bearer secret"
    # The other name of a key needs to be listed too.
    monkeypatch.setenv("CO_API_KEY", "secret")
    assert Place("COHERE_API_KEY", "https://api.cohere.com").set_variable == ""
    shared(keys="CO_API_KEY")
    assert Place("COHERE_API_KEY", "https://api.cohere.com").set_variable == "CO_API_KEY"


def test_an_actor_on_another_machine_knows_what_visitors_may_use(shared, monkeypatch):
    assert allowed.environment() == {}
    shared(keys="COHERE_API_KEY")
    environment = allowed.environment()
    monkeypatch.delenv(allowed.SHARED)
    monkeypatch.delenv(allowed.KEYS)
    assert allowed.hub_token() is None
    Scorer("bm25", (), environment)
    assert allowed.hub_token() is False
    assert allowed.may_read_key("COHERE_API_KEY") and not allowed.may_read_key("RACK_API_KEY")


def test_a_host_that_may_not_be_asked_gets_no_request(shared, server):
    shared()
    with pytest.raises(SettingError, match="private"):
        Client(Place("", server.url), Policy(), Clock())
    assert server.seen == []


def test_a_service_is_reached_at_the_address_that_was_judged_under_its_own_name(
    monkeypatch, server
):
    monkeypatch.setattr(connection, "address_of", lambda _url, configured: "127.0.0.1")
    port = server.server_address[1]
    # A second lookup of the name would fail.
    client = Client(Place("", f"http://rerank.invalid:{port}"), Policy(), Clock())
    body = {"query": "a", "texts": ["a", "b"]}
    reply = client.post("/rerank", body, client.budget(), lambda _answer: {})
    assert reply.error == ""
    ((path, headers, _body),) = server.seen
    sent = {name.lower(): value for name, value in headers.items()}
    assert (path, sent["host"]) == ("/rerank", f"rerank.invalid:{port}")
