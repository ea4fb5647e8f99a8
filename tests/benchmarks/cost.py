"""Processor time of the server for one move of a slider on the Cost page.

    python tests/benchmarks/cost.py

A stored set of 10,000 queries with 100 candidates each and three runs, with all parts of the page
folded, then with each part open in turn; a slider is moved to new values and the median is shown.
The browser redraws one fragment; here the whole page runs, including sidebar and caption, so this
is an upper limit for a user's action. Goal: at most 100 ms.
"""

from __future__ import annotations

from page_costs import Act, page_on_large_set
from streamlit.testing.v1 import AppTest

GOAL_MS = 100
PARTS = ("swings", "map", "depth", "units", "scenarios", "simple", "assumptions")
VALUES = (1e3, 2e3, 3e3, 5e3, 1e4, 2e4, 3e4)


def main() -> None:
    with page_on_large_set(
        "cost", {"small model": 0.8, "large model": 1.2, "other model": 1.0}
    ) as meter:
        meter.measure("folded", GOAL_MS, *(_move(meter.app, value) for value in VALUES))
        meter.app.session_state["cost.parts"] = True
        meter.app.run()
        for part in PARTS:
            meter.app.radio(key="address.part").set_value(part).run()
            meter.measure(part, GOAL_MS, *(_move(meter.app, value) for value in VALUES))
    meter.judge()


def _move(app: AppTest, value: float) -> Act:
    return lambda: app.select_slider(key="cost.searches_per_day").set_value(value).run()


if __name__ == "__main__":
    main()
