"""What one move of a slider on the Cost page costs the server, in processor time.

    python tests/benchmarks/cost.py

A stored set of 10,000 queries with 100 candidates each and three runs, each part of the page open
in turn; a slider is moved to new values and the median is shown. The browser redraws one fragment;
here the whole page runs, sidebar and caption included, so this is more than a person causes.
Goal: at most 100 ms.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time

from large_set import ROOT, freeze, store
from streamlit.testing.v1 import AppTest

GOAL_MS = 100
PARTS = ("swings", "map", "options", "depth", "units", "scenarios", "simple", "assumptions")
VALUES = (0.35, 0.4, 0.45, 0.55, 0.6, 0.65, 0.7)


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ["RANKDASH_HOME"] = home
        store({"small model": 0.8, "large model": 1.2, "other model": 1.0})
        freeze()
        app = AppTest.from_file(str(ROOT / "rankdash" / "ui" / "main.py"), default_timeout=180)
        app.run()
        app.switch_page(str(ROOT / "pages" / "cost.py")).run()
        missed = []
        for part in PARTS:
            app.radio(key="address.part").set_value(part)
            first = _spent(app)
            moves = []
            for value in VALUES:
                app.slider(key="cost.elasticity").set_value(value)
                moves.append(_spent(app))
            median = statistics.median(moves)
            print(f"{part}: {median:,.0f} ms (highest {max(moves):,.0f}; when opened {first:,.0f})")
            if median > GOAL_MS:
                missed.append(part)
        if missed:
            raise SystemExit(f"over the goal of {GOAL_MS} ms: {', '.join(missed)}")
        print(f"all within {GOAL_MS} ms")


def _spent(app: AppTest) -> float:
    started = time.process_time()
    app.run()
    spent = time.process_time() - started
    if app.exception:
        raise SystemExit(str(app.exception))
    return 1000 * spent


if __name__ == "__main__":
    main()
