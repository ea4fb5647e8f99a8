"""Runs on a Ray cluster of this machine: real actors, killed for real."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from rankdash import rerankers
from rankdash.errors import SettingError, UnavailableError
from rankdash.rerankers import create, get, plugins
from rankdash.runs import jobs
from rankdash.runs.jobs import JobRequest, Timing, WorkerProcess
from rankdash.runs.on_ray.reranker import on_ray
from rankdash.runs.on_ray.settings import VARIABLE, Actors
from rankdash.runs.plan import drawn
from rankdash.runs.runner import rerank
from rankdash.store.jobs.job_batches import read_parts

pytest.importorskip("ray")
pytestmark = pytest.mark.thorough

PLUGIN = Path(__file__).with_name("ray_plugin.py")
ROOT = PLUGIN.parents[2]
SAMPLE = ROOT / "assets" / "samples" / "helpcentre"
HOST = """
import sys
from rankdash.runs.on_ray import cluster
cluster.connect("ray")
import ray
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
cluster.disconnect()
"""
TWO = Actors(2, 1)
NEVER, ONE = Timing(latency="never"), Timing(sample=1)
ENDPOINT = {"dialect": "tei", "base_url": "http://127.0.0.1:9", "key_variable": "none"}


@pytest.fixture(scope="module")
def address():
    """A cluster of two CPUs and no GPU, in a process of its own."""
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
    monkeypatch.setenv(plugins.VARIABLE, str(PLUGIN))
    rerankers.add_plugins([])
    yield
    monkeypatch.undo()
    rerankers.add_plugins([])


def scored(dataset, address=None, actors=TWO, on_batch=lambda results: None, **settings):
    """A run of the hashing reranker: on the cluster, or without an address in this process."""
    kind, made = get("hashing"), create("hashing", settings)
    with nullcontext(made) if address is None else on_ray(made, kind, address, actors) as ready:
        return rerank(dataset, ready, capabilities=kind.capabilities, timing=ONE, on_batch=on_batch)


def same(first, second):
    return first.ranking.frame().equals(second.ranking.frame())


def test_two_actors_rank_as_one_process_does(make_dataset, address, tmp_path):
    dataset, log = make_dataset(queries=40), tmp_path / "pids"
    run, alone = scored(dataset, address, log=str(log)), scored(dataset, log=str(log))
    assert same(run, alone) and run.id == alone.id
    here = str(os.getpid())
    assert len(set(log.read_text().split()) - {here}) == 2
    assert run.machine["ray_actors"] == 2 and run.machine["node"]
    # One query is timed alone; the others share the time of both actors.
    assert run.measured.serial_queries == 1
    assert run.measured.pairs == 39 * 5
    assert not run.measured.contended


def test_what_a_killed_actor_had_is_scored_by_another(make_dataset, address, tmp_path):
    dataset, log = make_dataset(queries=40), tmp_path / "pids"
    killed = []

    def kill(results):
        if not killed:
            killed.append(int(log.read_text().split()[0]))
            os.kill(killed[0], signal.SIGKILL)

    run = scored(dataset, address, on_batch=kill, ms=60, log=str(log))
    assert killed
    assert set(run.queries["state"]) == {"done"}
    assert same(run, scored(dataset))


def test_a_query_that_kills_three_actors_fails_alone(make_dataset, address, tmp_path):
    dataset, log = make_dataset(queries=9), tmp_path / "pids"
    # Not the query that is timed alone.
    poison = drawn(dataset.queries["query_id"], ONE.seed)[-1]
    run = scored(dataset, address, poison=f"ask {poison}", log=str(log))
    queries = run.queries.set_index("query_id")
    assert list(queries.index[queries["state"] == "failed"]) == [poison]
    reason = queries.loc[poison, "reason"]
    assert "Actors that died while they scored it: 3, the last on " in reason
    whole = scored(dataset).ranking
    for query in set(queries.index) - {poison}:
        assert run.ranking.documents_of(query)[0] == whole.documents_of(query)[0]


def test_a_driver_that_is_killed_goes_on_where_it_stopped(
    workspace, make_dataset, address, monkeypatch, wait_until, tmp_path
):
    dataset = make_dataset(queries=40)
    workspace.save_dataset(dataset)
    settings = {"ms": 60, "log": str(tmp_path / "pids")}
    request = JobRequest(dataset.id, "hashing", settings, timing=NEVER, actors=TWO)
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(SettingError, match="may use no Ray cluster"):
        jobs.submit(workspace, request)
    monkeypatch.setenv(VARIABLE, address)
    with pytest.raises(SettingError, match="computes nothing here"):
        jobs.submit(workspace, replace(request, reranker="endpoint", settings=ENDPOINT))
    job_id = jobs.submit(workspace, request)

    def row():
        (found,) = jobs.list(workspace)
        return found

    first, second = WorkerProcess(workspace), WorkerProcess(workspace)
    try:
        first.ensure()
        wait_until(lambda: row().done or row().state not in jobs.LIVE)
        os.kill(first.pid, signal.SIGKILL)
        wait_until(lambda: first.pid is None)
        first.stop()
        kept = len(read_parts(workspace, job_id))
        assert row().state == "interrupted" and 0 < kept < 40
        jobs.resume(workspace, job_id)
        second.ensure()
        wait_until(lambda: row().state not in jobs.LIVE)
    finally:
        first.stop()
        second.stop()
    assert row().state == "done", row().message
    run = workspace.run(job_id)
    assert same(run, scored(dataset))
    # What was stored before the kill was not scored again.
    assert run.measured.pairs + run.measured.cached_pairs <= (40 - kept) * 5


@pytest.mark.parametrize(
    ("actors", "words"),
    [
        (Actors(gpus=0.5), "The Ray cluster has no GPU."),
        (Actors(9, 1), "room for 2 actors of 1 CPUs and 0 GPUs, not for 9"),
        (Actors(1, 64), "room for 0 actors of 64 CPUs"),
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


def test_another_version_of_ray_is_said(address):
    code = f"""
import ray
ray.__version__ = "1.2.3"
from rankdash.runs.on_ray import cluster
cluster.connect({address!r})
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    last = said.stderr.strip().splitlines()[-1]
    assert re.search(r"runs Ray 2\.\d+\.\d+ and Python 3[\d.]+; here are Ray 1\.2\.3 and", last)


def connected(address, seconds):
    """What is said of an address, where it may take so long to answer."""
    code = f"""
import sys
from rankdash.runs.on_ray import cluster
cluster.ANSWER_SECONDS = {seconds}
cluster.connect(sys.argv[1])
"""
    command = [sys.executable, "-c", code, address]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stderr


@pytest.mark.parametrize("client", ["", "ray://"])
def test_an_address_that_takes_calls_and_says_nothing_is_given_up(client):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"{client}127.0.0.1:{silent.getsockname()[1]}"
        said = connected(address, 1.0)
    assert f"The Ray cluster at {address} does not answer: no answer within 1 s." in said


@pytest.mark.parametrize("client", ["", "ray://"])
def test_an_address_that_hangs_up_is_said(client):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"{client}127.0.0.1:{server.getsockname()[1]}"
        hanging_up = Thread(target=lambda: server.accept()[0].close())
        hanging_up.start()
        # However busy the machine, it is not the time that ends it.
        said = connected(address, 600.0)
        hanging_up.join()
    assert f"The Ray cluster at {address} does not answer: " in said
    assert "no answer within" not in said


def test_a_command_whose_raylet_dies_says_so(tmp_path, wait_until):
    """Ray ends the process that a run is started from, at once."""
    log, target = tmp_path / "pids", tmp_path / "out.trec"
    options = ["--set=ms=200", f"--set=log={log}", "--on=ray", "--actors=1", "--actor-cpus=1"]
    command = [sys.executable, "-m", "rankdash", "rerank", "--data", str(SAMPLE), "--plugin"]
    command += [str(PLUGIN), "--reranker=hashing", *options, "--out", str(target)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        wait_until(lambda: process.poll() is not None or (log.exists() and log.read_text()))
        assert process.poll() is None
        # The actor's own parent.
        raylet = int(Path(f"/proc/{log.read_text().split()[-1]}/stat").read_text().split()[3])
        os.kill(raylet, signal.SIGKILL)
        said = process.stderr.read().splitlines()
    assert process.returncode == 2
    assert said[-1].startswith("error: The Ray cluster at ray is gone.")
    assert not target.exists()
