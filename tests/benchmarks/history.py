"""Processor time of the server for the page on the history of a data set.

    python tests/benchmarks/history.py

A stored set of 10,000 queries with 100 candidates each and thirty runs. The first visit reads every
run once, and shows its progress; its cost is printed with the memory it still uses. Goals for a
rerun of the whole page: 300 ms if every number is cached, one second for another metric or cutoff
of all thirty. Exits with 1 if a median misses its goal.
"""

from __future__ import annotations

import resource

from page_costs import Act, page_on_large_set
from streamlit.testing.v1 import AppTest

CACHED_MS, NEW_MS = 300, 1000
RUNS = {f"run {n}": 0.5 + n / 40 for n in range(30)}


def metric(app: AppTest, name: str) -> Act:
    return lambda: app.selectbox(key="address.metric").select(name).run()


def cutoff(app: AppTest, k: str) -> Act:
    return lambda: app.select_slider(key="address.k").set_value(k).run()


def main() -> None:
    with page_on_large_set("history", RUNS) as meter:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"highest memory so far, the making of the set included: {peak:,.0f} MB")
        app = meter.app
        meter.measure("a rerun that changes nothing", CACHED_MS, *[app.run] * 5)
        meter.measure("another metric", NEW_MS, *[metric(app, name) for name in ("mrr", "map")])
        meter.measure("another cutoff", NEW_MS, *[cutoff(app, k) for k in ("5", "20")])
        meter.measure("a cutoff shown before", CACHED_MS, *[cutoff(app, k) for k in ("5", "20")])
    meter.judge()


if __name__ == "__main__":
    main()
