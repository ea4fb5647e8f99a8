"""Two servers behind one address, as a browser meets them: a session, a run, and a server that is
killed under a page. What passes through the front has tests in tests/cli."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from rankdash.store import Workspace
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


def cookie(visit) -> str:
    found = {each["name"]: each["value"] for each in visit.page.context.cookies()}
    return found["rankdash_process"]


def children(pid: int) -> dict[int, str]:
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(pid)], capture_output=True, text=True, check=True
    )
    rows = (line.split(maxsplit=1) for line in listed.stdout.splitlines())
    return {int(child): said for child, said in rows}


def test_a_session_and_a_run_outlive_a_server(app, visit):
    visit.open("run")
    own = cookie(visit)
    visit.until(lambda: sum(" serve " in said for said in children(app.process.pid).values()) == 2)
    visit.choose_reranker("BM25")
    visit.page.get_by_role("button", name="Start 1 run").click()
    expect(visit.page.get_by_role("button", name="Compare on Overview")).to_be_visible(
        timeout=RUN_MS
    )
    assert sum("-m rankdash.runs " in said for said in children(app.process.pid).values()) == 1
    assert cookie(visit) == own
    servers = {pid: said for pid, said in children(app.process.pid).items() if " serve " in said}
    for pid in servers:
        os.kill(pid, signal.SIGKILL)
        # What is asked of a server in the moment of its end has no answer.
        visit.until(lambda pid=pid: pid not in children(app.process.pid))
        # While the second is killed, the first may not be there again: the page waits for it.
        visit.open("overview")
        visit.sees(re.compile("BM25"))
    # Both are there again, under other numbers.
    visit.until(
        lambda: (
            sum(
                " serve " in said and pid not in servers
                for pid, said in children(app.process.pid).items()
            )
            == 2
        )
    )
