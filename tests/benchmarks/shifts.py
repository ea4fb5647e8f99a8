"""Processor time of the server for one interaction with the page on rank shifts.

    python tests/benchmarks/shifts.py

A stored set of 10,000 queries with 100 candidates each and two runs. Goals for a rerun of the whole
page: 100 ms if every number is cached, 400 ms if the number is new. Exits with 1 if a median misses
its goal.
"""

from __future__ import annotations

from page_costs import Act, page_on_large_set
from streamlit.testing.v1 import AppTest

CACHED_MS, NEW_MS = 100, 400
RUNS = {"small model": 0.8, "large model": 1.2}


def main() -> None:
    with page_on_large_set("rank_shifts", RUNS, rules=True) as meter:
        meter.measure("a rerun that changes nothing", CACHED_MS, *[meter.app.run] * 5)
        for name, acts in new_numbers(meter.app).items():
            meter.measure(name, NEW_MS, *acts)
        for name in meter.app.segmented_control(key="address.vs").options:
            choose(meter.app, "vs", name)()
        for name, acts in cached_numbers(meter.app).items():
            meter.measure(name, CACHED_MS, *acts)
    meter.judge()


def choose(app: AppTest, name: str, value: str) -> Act:
    def act() -> None:
        control = app.segmented_control(key=f"address.{name}")
        assert value in control.options, f"{value} is none of {control.options}"
        control.set_value(value).run()

    return act


def new_numbers(app: AppTest) -> dict[str, list[Act]]:
    """Return interactions with numbers that are not cached yet."""
    # The best system is shown by default.
    other = app.segmented_control(key="address.vs").options[list(RUNS).index("small model")]
    return {
        "the other system": [choose(app, "vs", other)],
        "the other margin": [choose(app, "margin", "gap between ranks 10 and 11")],
        "a tolerance": [choose(app, "loss", each) for each in ("2%", "5%", "0%")],
        "cutoff k": [
            lambda k=k: app.select_slider(key="address.k").set_value(k).run()
            for k in ("5", "20", "3")
        ],
        "relevant from": [
            lambda grade=grade: app.selectbox(key="address.threshold").select(grade).run()
            for grade in ("2", "3")
        ],
        "by query, opened": [lambda: _open(app, "by_query")],
    }


def cached_numbers(app: AppTest) -> dict[str, list[Act]]:
    """Return interactions with cached numbers."""
    first, second = app.segmented_control(key="address.vs").options
    return {
        "back and forth between systems": [
            choose(app, "vs", name) for name in (first, second, first)
        ],
        "all documents": [choose(app, "documents", each) for each in ("All documents",)],
    }


def _open(app: AppTest, part: str) -> None:
    app.session_state[f"shifts.{part}"] = True
    app.run()
    app.session_state[f"shifts.{part}"] = False


if __name__ == "__main__":
    main()
