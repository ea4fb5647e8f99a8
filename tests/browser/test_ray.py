"""Runs of the page on the Ray cluster that whoever started the server allowed."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import expect

from rankdash.rerankers import plugins
from rankdash.runs import jobs
from rankdash.runs.on_ray.settings import LOCAL, VARIABLE
from rankdash.store import Workspace

from .conftest import free_port
from .test_journeys import RUN_MS, start_run

pytestmark = pytest.mark.thorough

PLUGIN = Path(__file__).parents[1] / "runs" / "ray_plugin.py"
NAMED = re.compile("Score (with Ray|on the Ray cluster)")


@pytest.fixture
def app(app_of_test):
    return app_of_test


@pytest.fixture
def hashing(tmp_path, monkeypatch):
    """A reranker whose scores are not kept from run to run."""
    plugin = tmp_path / "hashing.py"
    plugin.write_text(PLUGIN.read_text().replace('return "hashing"', 'return ""'))
    monkeypatch.setenv(plugins.VARIABLE, str(plugin))


@pytest.fixture
def silent_address(monkeypatch):
    monkeypatch.setenv(VARIABLE, f"ray://127.0.0.1:{free_port()}")


@pytest.fixture
def this_machine(monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv(VARIABLE, LOCAL)
    # With a token, Ray would write one to the home folder.
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")


def test_a_cluster_that_cannot_be_had_is_said_with_a_remedy(silent_address, hashing, visit):
    visit.open("run")
    visit.choose_reranker("Hashing")
    visit.sees(NAMED).click()
    visit.settle()
    start_run(visit)
    if find_spec("ray") is None:
        visit.sees('Ray is not installed. Install it: pip install "rankdash[ray]"', timeout=RUN_MS)
    else:
        visit.sees("does not answer", timeout=RUN_MS)
        visit.sees("Check the address")
    # The same run goes on without it.
    expect(visit.page.get_by_role("button", name="Resume")).to_be_visible()


def test_a_run_with_ray_is_the_run_without(this_machine, hashing, app, visit):
    workspace = Workspace.open(app.home)

    def ended(number):
        rows = jobs.list(workspace)
        return len(rows) == number and all(row.state not in jobs.LIVE for row in rows)

    visit.open("run")
    visit.choose_reranker("Hashing")
    start_run(visit)
    visit.until(lambda: ended(1))
    visit.sees(NAMED).click()
    visit.settle()
    for label in ("Actors", "CPUs of an actor"):
        visit.page.get_by_label(label, exact=True).fill("1")
    start_run(visit)
    visit.until(lambda: ended(2))
    rows = sorted(jobs.list(workspace), key=lambda row: row.created)
    assert [row.error for row in rows] == [None, None]
    alone, on_ray = (workspace.run(row.id) for row in rows)
    assert "ray_actors" not in alone.machine and on_ray.machine["ray_actors"] == 1
    assert len(on_ray.ranking) and on_ray.ranking.frame().equals(alone.ranking.frame())
    expect(visit.page.get_by_role("button", name="Compare on Overview")).to_be_visible()
