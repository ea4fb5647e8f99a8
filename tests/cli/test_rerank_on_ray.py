"""Messages of `rerank --on` without a cluster; tests/runs covers runs on one."""

import platform
import socket
import sys
from threading import Event, Thread
from types import ModuleType

import pytest

from rankdash.app.command import main
from rankdash.core import rerankers
from rankdash.core.rerankers import Corpus, add_plugins, create, get
from rankdash.core.runs.on_ray import cluster
from rankdash.core.runs.on_ray.cluster import Actors
from rankdash.core.runs.on_ray.reranker import OnRay, Scorer
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
    assert "'endpoint' does not compute locally, so a cluster cannot help" in said
    for address in ("head", "http://head:1", "head:0", "head:70000", "a b:1"):
        assert f"{address!r} is not a Ray cluster address" in on(address)
    monkeypatch.setitem(sys.modules, "ray", None)
    for address in ("ray", "ray://127.0.0.1:10001"):
        assert 'Install it: pip install "rankdash[ray]"' in on(address)


def test_where_nothing_listens_or_a_name_is_looked_up_for_too_long_is_said(on, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    for each in (address, f"ray://{address}"):
        assert f"The Ray cluster at {each} does not answer: " in on(each)
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
UNREADABLE = "AttributeError: 'JobConfig' object has no attribute '_new'"


@pytest.mark.parametrize(
    ("by_client", "words"),
    [
        (
            OTHER,
            "runs Ray 2.60.0 and Python 3.11.7; this machine has Ray 2.59.0 and Python 3.11.2.",
        ),
        ("", f"cannot be used: {UNREADABLE}."),
    ],
)
def test_another_version_that_reads_no_settings_of_this_one_is_said(
    on, monkeypatch, tmp_path, by_client, words
):
    """With modules of Ray that cannot connect."""
    folder = tmp_path / "modules" / "ray" / "util"
    folder.mkdir(parents=True)
    fails = "(*_, **__):\n        raise RuntimeError"
    failed = (
        f"Initialization failure from server:\nTraceback (most recent call last):\n{UNREADABLE}\n"
    )
    (folder.parent / "__init__.py").write_text(f"def init{fails}({failed!r})\n")
    (folder / "__init__.py").touch()
    (folder / "client.py").write_text(f"class RayAPIStub:\n    def connect{fails}({by_client!r})\n")
    monkeypatch.syspath_prepend(folder.parents[1])
    for name in ("ray", "ray.util", "ray.util.client"):
        monkeypatch.setitem(sys.modules, name, None)
        del sys.modules[name]

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


class Here:
    """Ray's handle of a class, or of a method of an actor, that runs in this process."""

    def __init__(self, own):
        self.own = own

    def options(self, **_):
        return self

    def remote(self, *given):
        made = self.own(*given)
        return Here(made) if isinstance(made, Scorer) else made

    def __getattr__(self, name):
        return Here(getattr(self.own, name))


COUNTING = """
from rankdash.core.rerankers import Capabilities, RerankerKind

class Counting:
    name, settings, looks = "counting", {}, 0
    def prepare(self, corpus): pass
    def fingerprint(self): return "counting"
    def score(self, requests): return []
    def details(self):
        self.looks += 1
        return {f"look {self.looks}": self.looks}

KIND = RerankerKind("counting", "Counting", "Counts.", (), Capabilities(), lambda _: Counting())
"""


@pytest.mark.usefixtures("no_plugin_stays")
def test_the_machine_that_is_named_is_the_one_where_latencies_were_measured(monkeypatch, tmp_path):
    (plugin := tmp_path / "counting.py").write_text(COUNTING)
    monkeypatch.setenv(rerankers.PLUGINS_VARIABLE, str(plugin))
    add_plugins([])
    nodes = iter(["first", "first", "second"])
    monkeypatch.setattr(platform, "node", lambda: next(nodes))
    ray = ModuleType("ray")
    ray.__version__, ray.exceptions, ray.remote = "2", ModuleType("exceptions"), Here
    ray.exceptions.RayError = RuntimeError
    ray.get = ray.put = lambda told: told
    ray.wait = lambda given, **_: (given, [])
    ray.nodes = lambda: [{"Alive": True, "Resources": {"CPU": 1}}]
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(cluster, "connect", lambda _address: None)
    made = OnRay(create("counting"), get("counting"), "head:6379", Actors())
    made.prepare(Corpus([], []))
    told = made.details()
    assert told["node"] == "first"
    assert (told["look 1"], told["look 2"], told["ray_actors"]) == (1, 2, 1)
