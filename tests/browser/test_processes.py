"""Two servers behind one address in a browser: a session, a run, and a server that is killed while
a page is open. tests/cli covers the requests through the front."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from rankdash.core.workspace import Workspace
from tests.stored import keep_sample

from .conftest import ROOT, RUN_MS, App

pytestmark = pytest.mark.thorough


@pytest.fixture
def app(tmp_path: Path):
    home = tmp_path / "home"
    keep_sample(Workspace(home))
    with subprocess.Popen(
        [
            *(sys.executable, "-m", "rankdash", "serve", "--processes", "2", "--port", "0"),
            *("--no-browser", "--home", str(home)),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        line = next(each for each in server.stdout if "rankdash is at" in each)
        yield App(line.split()[3], home, server)
        server.terminate()
        assert server.wait() == 0


def servers(app: App) -> set[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(app.process.pid)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {int(line.split()[0]) for line in listed.stdout.splitlines() if " serve " in line}


def test_a_session_and_a_run_outlive_every_server(app, visit):
    visit.open("run")
    visit.until(lambda: len(servers(app)) == 2)
    visit.choose_reranker("BM25")
    visit.page.get_by_role("button", name="Start 1 run").click()
    expect(visit.page.get_by_role("button", name="Compare on Overview")).to_be_visible(
        timeout=RUN_MS
    )
    for pid in servers(app):
        os.kill(pid, signal.SIGKILL)
        # A server that is ending does not answer requests.
        visit.until(lambda pid=pid: pid not in servers(app))
        # The first server may not have restarted yet, and the page waits for it.
        visit.open("overview")
        visit.sees(re.compile("BM25"))
