"""What one interaction with the Queries page costs the server, in processor time.

    python tests/benchmarks/queries.py

A stored set of 10,000 queries with 100 candidates each, half of them judged, and four runs. Each
interaction is done a few times with a new value, and the median is what counts. Goals: the list
with its filters 300 ms, opening a query 150 ms, both with the whole page drawn again. Exits with 1
where a median misses its goal.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable

from large_set import ROOT, freeze, store
from streamlit.testing.v1 import AppTest

LIST_MS, OPEN_MS = 300, 150
RUNS = {"small model": 0.8, "large model": 1.2, "fusion": 1.0, "distilled": 0.7}


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ["RANKDASH_HOME"] = home
        store(RUNS, judged=0.5)
        freeze()
        app = AppTest.from_file(str(ROOT / "rankdash" / "ui" / "main.py"), default_timeout=120)

        def cost(act: Callable[[], object]) -> float:
            started = time.process_time()
            act()
            spent = time.process_time() - started
            if app.exception:
                raise SystemExit(str(app.exception))
            return 1000 * spent

        app.run()
        page = str(ROOT / "pages" / "queries.py")
        print(f"first visit, everything cold: {cost(lambda: app.switch_page(page).run()):,.0f} ms")
        measured = {"a rerun that changes nothing": (LIST_MS, [cost(app.run) for _ in range(5)])}
        for goal, found in ((OPEN_MS, opening(app)), (LIST_MS, filtering(app))):
            for name, acts in found.items():
                measured[name] = (goal, [cost(act) for act in acts])
    missed = []
    for name, (goal, spent) in measured.items():
        median = statistics.median(spent)
        print(f"{name}: {median:,.0f} ms (highest {max(spent):,.0f}, goal {goal})")
        if median > goal:
            missed.append(name)
    if missed:
        raise SystemExit(f"over the goal: {', '.join(missed)}")
    print("all within their goals")


def opening(app: AppTest) -> dict[str, list[Callable[[], object]]]:
    def button(label: str) -> None:
        next(each for each in app.button if each.label == label).click().run()

    return {
        "next query": [lambda: button("Next")] * 9,
        "previous query": [lambda: button("Previous")] * 5,
    }


def filtering(app: AppTest) -> dict[str, list[Callable[[], object]]]:
    """Name → doing it, with a value that was not shown before each time."""

    def choose(name: str, values: list[str]) -> None:
        app.multiselect(key=f"address.{name}").set_value(values).run()

    reasons = ["buried", "rescued", "mixed", "idle"]
    return {
        "order": [
            lambda name=name: app.selectbox(key="address.sort").select(name).run()
            for name in ("helped", "changed", "headroom", "lowest", "disagreement", "given")
        ],
        "text": [
            lambda text=text: app.text_input(key="address.text").set_value(text).run()
            for text in ("model", "rank", "time 1", "no such text", "")
        ],
        "reason": [lambda reason=reason: choose("reason", [reason]) for reason in [*reasons]]
        + [lambda: choose("reason", [])],
        "kind of query": [lambda kind=kind: choose("segment", [f"kind={kind}"]) for kind in "abc"]
        + [lambda: choose("segment", [])],
        "range of change": [
            lambda high=high: app.slider(key="address.delta").set_value((-0.1, high)).run()
            for high in (0.0, 0.2, 0.4, 0.5)
        ],
    }


if __name__ == "__main__":
    main()
