"""Measurements of the page benchmarks: a page on the large set, processor time by interaction.

A rerun is measured as in a server. Streamlit's AppTest compiles the app's scripts for each rerun,
which a server does once, and makes a tree of the elements, which a browser does: here the scripts
are cached, and only the script's run is measured, including the packing of its messages.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from large_set import ROOT, freeze, store
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner import ScriptRunner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test, local_script_runner

from rankdash.core.base.shipped import INTERFACE

Act = Callable[[], object]
_SCRIPTS = ScriptCache()
_spent: list[float] = []


def as_in_a_server() -> None:
    """Cache scripts, and add the seconds of processor time of each run of a script to `_spent`."""
    app_test.ScriptCache = local_script_runner.ScriptCache = lambda: _SCRIPTS
    run, send = ScriptRunner._run_script, ScriptRunner._enqueue_forward_msg

    def timed(self: ScriptRunner, *given: object) -> None:
        started = time.process_time()
        try:
            run(self, *given)
        finally:
            _spent.append(time.process_time() - started)

    def packed(self: ScriptRunner, message: ForwardMsg) -> None:
        message.SerializeToString()
        send(self, message)

    ScriptRunner._run_script, ScriptRunner._enqueue_forward_msg = timed, packed


class Meter:
    """A meter that runs interactions and stores their costs."""

    def __init__(self, app: AppTest) -> None:
        self.app = app
        self._spent: dict[str, tuple[int, list[float]]] = {}

    def cost(self, act: Act) -> float:
        """Return milliseconds of processor time; exit if the page failed."""
        _spent.clear()
        act()
        if self.app.exception:
            raise SystemExit(str(self.app.exception))
        return 1000 * sum(_spent)

    def measure(self, name: str, goal_ms: int, *acts: Act) -> None:
        self._spent.setdefault(name, (goal_ms, []))[1].extend(self.cost(act) for act in acts)

    def judge(self) -> None:
        """Print the medians; exit with 1 if one misses its goal."""
        missed = []
        for name, (goal, spent) in self._spent.items():
            median = statistics.median(spent)
            print(f"{name}: {median:,.0f} ms (highest {max(spent):,.0f}, goal {goal})")
            if median > goal:
                missed.append(name)
        if missed:
            raise SystemExit(f"over the goal: {', '.join(missed)}")
        print("all within their goals")


@contextmanager
def in_fragment(app: AppTest, place: int = 0) -> Iterator[None]:
    """Rerun only a fragment of the page within the context, by default the first one, as a browser
    requests it. Streamlit's AppTest reruns the whole page each time."""
    whole = local_script_runner.RerunData
    fragment = list(app._fragment_storage._fragments)[place]
    local_script_runner.RerunData = partial(whole, fragment_id=fragment)
    try:
        yield
    finally:
        local_script_runner.RerunData = whole


@contextmanager
def page_on_large_set(
    page: str,
    runs: Mapping[str, float],
    *,
    judged: float = 1.0,
    prepare: Act = lambda: None,
    rules: bool = False,
) -> Iterator[Meter]:
    """A page, opened once, over the large set with `runs` (see `large_set.store`).

    page: file name in pages/; "" for the start page. prepare: called when everything is stored.
    rules: whether the rules of the sidebar are open.
    """
    with tempfile.TemporaryDirectory() as home:
        os.environ["RANKDASH_HOME"] = home
        store(runs, judged=judged)
        prepare()
        freeze()
        as_in_a_server()
        app = AppTest.from_file(str(INTERFACE), default_timeout=180)
        app.session_state["sidebar.settings"] = rules
        meter = Meter(app)
        if page:
            app.run()
            app.switch_page(str(ROOT / "pages" / f"{page}.py"))
        print(f"first visit, everything cold: {meter.cost(app.run):,.0f} ms")
        yield meter
