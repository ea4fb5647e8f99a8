"""Waiting times of many simultaneous users; their browsers talk to the server.

    python tests/benchmarks/users.py                          40 users for a minute
    python tests/benchmarks/users.py --users 12 --processes 2 as `rankdash serve --processes 2`
    python tests/benchmarks/users.py --run                    while a model scores the sample
    python tests/benchmarks/users.py --sessions 1000          memory over many sessions

Each user opens Overview and then changes something every 1 to 3 s, on Overview (a cutoff, a metric)
or on Queries (the next query), and switches between the pages now and then. A quarter are on
the large set (10,000 queries with 100 candidates each), the rest on the sample. A wait is from a
click to the end of its rerun, by the clock, which includes other programs on the machine; the
processor time of the server and its children per wait does not. Exits with 1 above a goal: of the
median and the 95th percentile of the waits, and of the slowest first page; with a run, only of the
median of the waits.

With --sessions each user opens Overview, changes a cutoff or a metric, opens Queries, and leaves; a
quarter are on the large set. Exits with 1 if the memory of the server and its children has grown by
more than a tenth since the first third of the sessions.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from large_set import ROOT, store
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

MEDIAN, P95, FIRST = 0.5, 2.0, 3.0
MEDIAN_WITH_RUN = 1.0
GROWTH, AT_ONCE, SHOWN_EVERY = 1.1, 3, 100
# Each length embeds all documents again, so that a run is active during the whole measurement.
LENGTHS = (256, 224, 192, 160, 128, 96)
PAUSE = (1.0, 3.0)
PATIENCE_SECONDS = 300
STAY = 0.8
CUTOFFS, METRICS = ("1", "3", "5", "20"), ("MAP", "MRR", "Recall")


@dataclass
class Waits:
    """Seconds of all users."""

    first: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)


class User:
    """A browser: the page's messages that it received, and its messages to the server."""

    def __init__(self, socket: ClientConnection, query: str) -> None:
        self._socket = socket
        self._query = query
        self._page = ""
        self.pages: dict[str, str] = {}
        self.widgets: dict[str, tuple[str, str]] = {}

    async def rerun(
        self, *changed: WidgetState, page: str | None = None, fragment: str = ""
    ) -> float:
        """Return the seconds from the click to the end of the rerun."""
        if page is not None:
            self.widgets.clear()
        message = BackMsg()
        wanted = message.rerun_script
        wanted.query_string, wanted.page_script_hash = self._query, page or self._page
        wanted.fragment_id = fragment
        wanted.widget_states.widgets.extend(changed)
        wanted.context_info.timezone, wanted.context_info.locale = "UTC", "en"
        started = time.perf_counter()
        await self._socket.send(message.SerializeToString())
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not self._ended(ForwardMsg.FromString(bytes(await self._socket.recv()))):
                pass
        return time.perf_counter() - started

    def _ended(self, told: ForwardMsg) -> bool:
        kind = told.WhichOneof("type")
        if kind == "page_info_changed":
            self._query = told.page_info_changed.query_string
        elif kind == "new_session":
            self._page = told.new_session.page_script_hash
        elif kind == "navigation":
            self._page = told.navigation.page_script_hash
            self.pages = {
                page.url_pathname: page.page_script_hash for page in told.navigation.app_pages
            }
        elif kind == "delta" and told.delta.WhichOneof("type") == "new_element":
            element = told.delta.new_element
            if element.WhichOneof("type") == "exception":
                raise SystemExit(element.exception.message)
            drawn = getattr(element, str(element.WhichOneof("type")))
            if getattr(drawn, "id", "") and getattr(drawn, "label", ""):
                self.widgets[drawn.label] = drawn.id, told.delta.fragment_id
        return kind == "script_finished" and told.script_finished in (
            ForwardMsg.FINISHED_SUCCESSFULLY,
            ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
        )

    async def click(self, label: str, **value: object) -> float:
        """Change the first widget with a name that begins with `label`; return the seconds of the
        rerun, of its fragment if it has one. Without such a widget, rerun the page."""
        found = next((name for name in self.widgets if name.startswith(label)), None)
        if found is None:
            return await self.rerun()
        key, fragment = self.widgets[found]
        state = WidgetState(id=key)
        for name, given in value.items():
            if isinstance(given, list):
                getattr(state, name).data.extend(given)
            else:
                setattr(state, name, given)
        return await self.rerun(state, fragment=fragment)


@asynccontextmanager
async def browser(url: str, data: str) -> AsyncIterator[User]:
    # The process that has the session, if there are several.
    answer = await asyncio.to_thread(urllib.request.urlopen, url)
    cookies = answer.headers.get_all("Set-Cookie") or []
    headers = {"Cookie": "; ".join(each.partition(";")[0] for each in cookies)}
    async with connect(
        f"ws{url.removeprefix('http')}/_stcore/stream",
        subprotocols=["streamlit"],
        additional_headers=headers,
        max_size=None,
        ping_timeout=None,
    ) as socket:
        yield User(socket, f"data={data}&lang=en")


async def user(url: str, waits: Waits, data: str, seed: int, start: float, stop: float) -> None:
    draw = random.Random(seed)
    await asyncio.sleep(start)
    async with browser(url, data) as here:
        waits.first.append(await here.rerun())
        page = ""
        while time.monotonic() < stop:
            await asyncio.sleep(draw.uniform(*PAUSE))
            if draw.random() > STAY:
                page = "" if page else "queries"
                waits.later.append(await here.rerun(page=here.pages[page]))
            elif page:
                waits.later.append(await here.click("Next", trigger_value=True))
            else:
                waits.later.append(await change(here, draw))


async def change(here: User, draw: random.Random) -> float:
    """Choose another cutoff or metric; return the seconds of the rerun."""
    if draw.random() < 0.5:
        return await here.click("Cutoff", string_array_value=[draw.choice(CUTOFFS)])
    return await here.click("Metric", string_value=draw.choice(METRICS))


async def guests(url: str, numbers: range, data: tuple[str, str]) -> None:
    """Run sessions one after another, a few in parallel."""
    waiting = list(numbers)

    async def chair() -> None:
        while waiting:
            number = waiting.pop()
            async with browser(url, data[0] if number % 4 == 0 else data[1]) as here:
                await here.rerun()
                await change(here, random.Random(number))
                await here.rerun(page=here.pages["queries"])

    async with asyncio.TaskGroup() as group:
        for _each in range(AT_ONCE):
            group.create_task(chair())


async def all_users(url: str, count: int, data: tuple[str, str], seconds: float) -> Waits:
    """Return the waits of `count` users. data: the ids of the large set and of the sample."""
    waits = Waits()
    stop = time.monotonic() + seconds
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            own = data[0] if number % 4 == 0 else data[1]
            # Users arrive one after the other.
            group.create_task(user(url, waits, own, number, number * 10 / count, stop))
    return waits


def filled() -> tuple[str, str]:
    """Store the large set and the sample in the environment's workspace; return their ids."""
    from rankdash.core.workspace import Workspace
    from rankdash.features.data.page_samples import open_sample

    sample = open_sample(Workspace.open(), "en")
    store({"better": 0.9, "other": 0.4})
    (large,) = {row.id for row in Workspace.open().datasets()} - {sample}
    return large, sample


def queue_runs(dataset_id: str) -> None:
    """Queue runs of the sample with the packaged model, for the worker of a server that starts
    afterwards."""
    from rankdash.core.runs import jobs
    from rankdash.core.workspace import Workspace

    workspace = Workspace.open()
    for length in LENGTHS:
        wish = jobs.JobRequest(dataset_id, "bi-encoder", {"max_length": length}, f"run {length}")
        jobs.submit(workspace, wish)


def wait_until_scoring() -> None:
    from rankdash.core.runs import jobs
    from rankdash.core.workspace import Workspace

    workspace = Workspace.open()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not any(job.stage == "scoring" for job in jobs.list(workspace)):
        if time.monotonic() > deadline:
            raise SystemExit("no worker has begun")
        time.sleep(0.2)


def scored() -> tuple[int, bool]:
    """Return the number of scored pairs of all runs, and whether a run is not done."""
    from rankdash.core.runs import jobs
    from rankdash.core.workspace import Workspace

    found = jobs.list(Workspace.open())
    pairs = sum(job.pairs_done for job in found)
    return pairs, any(job.state in jobs.LIVE for job in found)


@contextmanager
def served(processes: int) -> Iterator[tuple[str, int]]:
    """Run a server on the workspace of the environment; yield its address and process id."""
    several = [] if processes == 1 else ["--processes", str(processes)]
    command = [sys.executable, "-m", "rankdash", "serve", "--no-browser", "--port", "0", *several]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = next(each for each in server.stdout if "rankdash is at" in each)
        yield line.split()[3].rstrip("/"), server.pid
    finally:
        server.terminate()
        server.wait()


def used(pid: int) -> tuple[float, float]:
    """Return processor seconds and resident MB of a process and all its descendants."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid=,ppid=,cputimes=,rss="], capture_output=True, text=True, check=True
    )
    rows = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    mine = {pid}
    while more := {each for each, parent, *_ in rows if parent in mine} - mine:
        mine |= more
    own = [row for row in rows if row[0] in mine]
    return float(sum(row[2] for row in own)), sum(row[3] for row in own) * 1024 / 1e6


def shown(name: str, values: list[float], *shares: int) -> list[float]:
    """Print and return the percentiles."""
    cut = statistics.quantiles(values, n=100, method="inclusive")
    found = [cut[share - 1] if share < 100 else max(values) for share in shares]
    told = ", ".join(f"p{share} {value:.2f} s" for share, value in zip(shares, found, strict=True))
    print(f"{name}: {len(values)}, {told}")
    return found


def memory(url: str, pid: int, data: tuple[str, str], count: int) -> None:
    """Run sessions that come and go; exit with 1 if the server's memory grows without limit."""
    held = []
    for first in range(0, count, SHOWN_EVERY):
        numbers = range(first, min(first + SHOWN_EVERY, count))
        asyncio.run(guests(url, numbers, data))
        spent, now = used(pid)
        held.append(now)
        print(f"{numbers.stop} sessions: {now:.0f} MB, {spent:.0f} s", flush=True)
    settled = held[len(held) // 3]
    if held[-1] > GROWTH * settled:
        sys.exit(f"grown from {settled:.0f} to {held[-1]:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--sessions", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["RANKDASH_HOME"] = home
        data = filled()
        if arguments.run:
            queue_runs(data[1])
        with served(arguments.processes) as (url, pid):
            if arguments.sessions:
                memory(url, pid, data, arguments.sessions)
                return
            if arguments.run:
                wait_until_scoring()
            (before, _), (pairs, _) = used(pid), scored()
            waits = asyncio.run(all_users(url, arguments.users, data, arguments.seconds))
            after, held = used(pid)
            at_end, live = scored()
    print(f"{arguments.users} users, {arguments.processes} processes, {held:.0f} MB")
    (first,) = shown("first pages", waits.first, 100)
    median, high = shown("changes", waits.later, 50, 95)
    count = len(waits.first) + len(waits.later)
    print(f"processor time: {1000 * (after - before) / count:.0f} ms a wait")
    if arguments.run:
        print(
            f"{at_end - pairs:,} pairs scored meanwhile{'' if live else '; the runs ended before'}"
        )
        if median > MEDIAN_WITH_RUN:
            sys.exit(f"above the goal with a run: median {MEDIAN_WITH_RUN} s")
    elif median > MEDIAN or high > P95 or first > FIRST:
        sys.exit(f"above a goal: median {MEDIAN} s, p95 {P95} s, first page {FIRST} s")


if __name__ == "__main__":
    main()
