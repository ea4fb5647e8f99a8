"""What `rerank --on` says without a cluster; runs on one are tested under runs."""

import socket
import sys
from importlib.machinery import ModuleSpec
from threading import Event, Thread
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from rankdash import __version__
from rankdash.cli.main import main
from rankdash.rerankers import Corpus, create, get
from rankdash.runs.on_ray import cluster
from rankdash.runs.on_ray.actor import Loaded
from rankdash.runs.on_ray.reranker import OnRay
from rankdash.runs.on_ray.settings import Actors
from tests.sets import SAMPLE


@pytest.fixture
def on(capfd, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", sys)

    def command(address, *arguments, reranker="bm25"):
        target = tmp_path / "out.trec"
        data = ("--data", str(SAMPLE), "--reranker", reranker, "-o", str(target), "--on", address)
        assert main(["rerank", *data, *arguments]) == 2 and not target.exists()
        return capfd.readouterr().err

    return command


def test_what_fits_no_cluster_is_refused(on, monkeypatch):
    settings = ("dialect=tei", "base_url=http://127.0.0.1:9", "key_variable=none")
    said = on("ray", *(f"--set={each}" for each in settings), reranker="endpoint")
    assert "'endpoint' computes nothing here that a cluster could do" in said
    for address in ("head", "http://head:1", "head:0", "head:70000", "a b:1"):
        assert f"{address!r} is no address of a Ray cluster" in on(address)
    monkeypatch.setitem(sys.modules, "ray", None)
    for address in ("ray", "ray://127.0.0.1:10001"):
        assert 'Install it: pip install "rankdash[ray]"' in on(address)


def test_an_address_where_nothing_listens_is_said(on):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    for each in (address, f"ray://{address}"):
        assert f"The Ray cluster at {each} does not answer: " in on(each)


def test_a_name_that_takes_long_to_be_looked_up_is_given_up(on, monkeypatch):
    found = Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_asked, **_also: found.wait(60) and [])
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 0.2)
    said = on("head:6379")
    found.set()
    assert "The Ray cluster at head:6379 does not answer: no answer within 0 s." in said


OTHER = """Version mismatch: The cluster was started with:
    Ray: 2.60.0
    Python: 3.11.7
This process on Ray Client was started with:
    Ray: 2.59.0
    Python: 3.11.2
"""
UNREADABLE = """Initialization failure from server:
Traceback (most recent call last):
  File "server/proxier.py", line 765, in Datapath
AttributeError: 'JobConfig' object has no attribute '_new'
"""


def raising(text):
    def call(*arguments, **also):
        raise RuntimeError(text)

    return call


@pytest.mark.parametrize(
    ("by_client", "words"),
    [
        (OTHER, "runs Ray 2.60.0 and Python 3.11.7; here are Ray 2.59.0 and Python 3.11.2."),
        ("", "cannot be used: AttributeError: 'JobConfig' object has no attribute '_new'."),
    ],
)
def test_another_version_that_reads_no_settings_of_this_one_is_said(
    on, monkeypatch, by_client, words
):
    stub = SimpleNamespace(connect=raising(by_client))
    ray = SimpleNamespace(init=raising(UNREADABLE), __spec__=ModuleSpec("ray", None))
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.util", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "ray.util.client", SimpleNamespace(RayAPIStub=lambda: stub))

    def answer():
        with server.accept()[0] as link:
            link.sendall(b".")

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"ray://127.0.0.1:{server.getsockname()[1]}"
        answering = Thread(target=answer, daemon=True)
        answering.start()
        said = on(address)
        answering.join()
    assert f"The Ray cluster at {address} {words}" in said


def test_the_machine_that_is_named_is_the_one_where_latencies_were_measured(monkeypatch):
    ray = MagicMock(__version__="2", get=lambda told: told, wait=lambda given, **_: (given, []))
    ray.exceptions.RayError = RuntimeError
    actor = ray.remote().options().remote()
    actor.place.remote.return_value = ("first", __version__)
    actor.load.remote.return_value = Loaded("", {"node": "first", "cpu": "fast"})
    actor.details.remote.return_value = {"node": "second", "cpu": "slow", "rank_agreement": 0.9}
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(cluster, "connect", lambda _address: None)
    monkeypatch.setattr(cluster, "room", lambda *_: cluster.Room(1, 1, 0.0))
    made = OnRay(create("bm25"), get("bm25"), "head:6379", Actors())
    made.prepare(Corpus([], []))
    told = made.details()
    assert (told["node"], told["cpu"], told["rank_agreement"]) == ("first", "fast", 0.9)
