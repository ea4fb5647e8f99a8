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
from tests.sets import ROOT

SAMPLE = ROOT / "assets" / "samples" / "helpcentre"


@pytest.fixture
def on(capfd, tmp_path):
    def command(*arguments, reranker="bm25"):
        target = tmp_path / "out.trec"
        data = ("--data", str(SAMPLE), "--reranker", reranker, "-o", str(target))
        assert main(["rerank", *data, *arguments]) == 2 and not target.exists()
        return capfd.readouterr().err

    return command


def test_without_ray_the_extra_is_named(on, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    for address in ("ray", "ray://127.0.0.1:10001"):
        assert 'Install it: pip install "rankdash[ray]"' in on("--on", address)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--actors", "2"), "Give its address too: --on ray"),
        (("--on", "ray", "--actors", "0"), "number must be between 1 and 10,000, not 0"),
        (("--on", "ray", "--actor-gpus", "-1"), "gpus must be between 0 and 64, not -1.0"),
        (("--on", "ray", "--clients", "2"), "measured on one machine, not on a cluster"),
        (("--on", "ray", "--shard", "1/2"), "scored by one machine, and not by a cluster"),
    ],
)
def test_what_does_not_fit_a_cluster_is_refused(on, arguments, words):
    assert words in on(*arguments)


def test_a_service_is_not_run_on_a_cluster(on):
    settings = ("dialect=tei", "base_url=http://127.0.0.1:9", "key_variable=none")
    said = on("--on", "ray", *(f"--set={each}" for each in settings), reranker="endpoint")
    assert "'endpoint' computes nothing here that a cluster could do" in said


@pytest.mark.parametrize("address", ["head", "http://head:1", "head:0", "head:70000", "a b:1"])
def test_what_is_no_address_of_a_cluster_is_refused(on, monkeypatch, address):
    monkeypatch.setitem(sys.modules, "ray", sys)
    assert f"{address!r} is no address of a Ray cluster" in on("--on", address)


def test_an_address_where_nothing_listens_is_said(on, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", sys)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    for each in (address, f"ray://{address}"):
        assert f"The Ray cluster at {each} does not answer: " in on("--on", each)


def test_a_name_that_takes_long_to_be_looked_up_is_given_up(on, monkeypatch):
    found = Event()

    def look_up(*asked, **also):
        found.wait(60)
        return []

    monkeypatch.setitem(sys.modules, "ray", sys)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 0.2)
    said = on("--on", "head:6379")
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


def answer(server):
    with server.accept()[0] as link:
        link.sendall(b".")


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
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"ray://127.0.0.1:{server.getsockname()[1]}"
        answering = Thread(target=answer, args=(server,), daemon=True)
        answering.start()
        said = on("--on", address)
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
