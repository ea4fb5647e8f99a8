"""Runs on a Ray cluster of this machine; `benchmarks/ray_run.py` kills actors and raylets."""

import os
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from threading import Event, Thread

import pytest

from rankdash.core import rerankers
from rankdash.core.base.errors import UnavailableError
from rankdash.core.rerankers import create, get
from rankdash.core.runs import jobs
from rankdash.core.runs.jobs import JobRequest, Timing
from rankdash.core.runs.on_ray.cluster import VARIABLE, Actors
from rankdash.core.runs.on_ray.reranker import on_ray
from rankdash.core.runs.plan import random_order
from rankdash.core.runs.runner import rerank
from rankdash.core.runs.worker import Attempt
from rankdash.core.workspace.jobs.queue import Owner, Queue

pytest.importorskip("ray")
pytestmark = pytest.mark.thorough

PLUGIN = Path(__file__).with_name("ray_plugin.py")
ROOT = PLUGIN.parents[2]
HOST = """
import sys
from rankdash.core.runs.on_ray import cluster
cluster.connect("ray")
import ray
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
cluster.disconnect()
"""
TWO = Actors(2, 1)
ONE = Timing(sample=1)


@pytest.fixture(scope="module")
def address():
    """A cluster of two CPUs and no GPU, in a separate process."""
    # With a token, Ray would write one to the home folder.
    unlike = {"RAY_AUTH_MODE": "disabled", "OMP_NUM_THREADS": ""}
    host = subprocess.Popen(
        [sys.executable, "-c", HOST],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env={**os.environ, **unlike},
    )
    with host:
        yield host.stdout.readline().strip()
        host.stdin.close()


@pytest.fixture(autouse=True)
def hashing(monkeypatch):
    monkeypatch.setenv(rerankers.PLUGINS_VARIABLE, str(PLUGIN))
    rerankers.add_plugins([])
    yield
    monkeypatch.undo()
    rerankers.add_plugins([])


def scored(dataset, address=None, actors=TWO, **settings):
    """Return a run of the hashing reranker: on the cluster, or in this process without address."""
    kind, made = get("hashing"), create("hashing", settings)
    with nullcontext(made) if address is None else on_ray(made, kind, address, actors) as ready:
        return rerank(dataset, ready, capabilities=kind.capabilities, timing=ONE)


def same(first, second):
    return first.ranking.frame().equals(second.ranking.frame())


def test_two_actors_rank_as_one_process_does(make_dataset, address, tmp_path):
    dataset, log = make_dataset(queries=40), tmp_path / "pids"
    run, alone = scored(dataset, address, log=str(log)), scored(dataset, log=str(log))
    assert same(run, alone) and run.id == alone.id
    here = str(os.getpid())
    assert len(set(log.read_text().split()) - {here}) == 2
    assert run.machine["ray_actors"] == 2 and run.machine["node"]
    # One query is timed separately; the others share the time of both actors.
    assert run.measured.serial_queries == 1
    assert run.measured.pairs == 39 * 5
    assert not run.measured.contended


def test_a_query_that_kills_three_actors_fails_alone(make_dataset, address, tmp_path):
    dataset, log = make_dataset(queries=9), tmp_path / "pids"
    # Not the query that is timed separately.
    poison = random_order(dataset.queries["query_id"], ONE.seed)[-1]
    run = scored(dataset, address, poison=f"ask {poison}", log=str(log))
    queries = run.queries.set_index("query_id")
    assert list(queries.index[queries["state"] == "failed"]) == [poison]
    reason = queries.loc[poison, "reason"]
    assert "Actors that died while scoring the query: 3, the last on " in reason
    whole = scored(dataset).ranking
    for query in set(queries.index) - {poison}:
        assert run.ranking.documents_of(query)[0] == whole.documents_of(query)[0]


def test_a_job_of_a_workspace_is_run_by_the_cluster(workspace, make_dataset, address, monkeypatch):
    dataset = make_dataset(queries=40)
    workspace.save_dataset(dataset)
    monkeypatch.setenv(VARIABLE, address)
    wish = JobRequest(dataset.id, "hashing", {}, timing=Timing(latency="never"), actors=TWO)
    job_id, owner = jobs.submit(workspace, wish), Owner()
    Attempt(workspace, owner, Queue(workspace).claim(owner), Event()).run()
    run = workspace.run(job_id)
    assert same(run, scored(dataset)) and run.machine["ray_actors"] == 2


@pytest.mark.parametrize(
    ("actors", "words"),
    [
        (Actors(gpus=0.5), "The Ray cluster has no GPU."),
        (Actors(9, 1), "resources for 2 actors with 1 CPUs and 0 GPUs each, not for 9"),
        (Actors(1, 64), "resources for 0 actors with 64 CPUs"),
    ],
)
def test_what_the_cluster_does_not_have_is_said(make_dataset, address, actors, words):
    with pytest.raises(UnavailableError, match=words):
        scored(make_dataset(), address, actors)


def test_a_model_that_is_not_on_a_machine_of_the_cluster_is_said(make_dataset, address, tmp_path):
    kind = get("cross-encoder")
    made = create(kind.name, {"model": str(tmp_path)})
    with (
        on_ray(made, kind, address, Actors(1, 1)) as ready,
        pytest.raises(UnavailableError, match="a machine of the Ray cluster: The "),
    ):
        rerank(make_dataset(), ready, capabilities=kind.capabilities)


@pytest.mark.parametrize("client", ["", "ray://"])
@pytest.mark.parametrize("hangs_up", [True, False])
def test_an_address_that_takes_calls_and_is_no_cluster_is_said(client, hangs_up):
    """A closed connection is reported immediately, even if the machine is busy."""
    code = "import sys; from rankdash.core.runs.on_ray import cluster; "
    code += f"cluster.ANSWER_SECONDS = {600.0 if hangs_up else 1.0}; cluster.connect(sys.argv[1])"
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"{client}127.0.0.1:{server.getsockname()[1]}"
        if hangs_up:
            Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        command = [sys.executable, "-c", code, address]
        said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stderr
    assert f"The Ray cluster at {address} does not answer: " in said
    assert ("no answer within 1 s." in said) != hangs_up
