"""Processor time of the server for one interaction with the Queries page.

    python tests/benchmarks/queries.py

A stored set of 10,000 queries with 100 candidates each, half of them judged, and four runs. Each
interaction is done a few times with a new value, and the median counts. Goals: the list with its
filters 300 ms, opening a query 60 ms, both as a browser requests them: a filter reruns the filters,
the list and the query, a step only the list and the query. Exits with 1 if a median misses its
goal.
"""

from __future__ import annotations

from page_costs import Act, in_fragment, page_on_large_set
from streamlit.testing.v1 import AppTest

LIST_MS, OPEN_MS = 300, 60
RUNS = {"small model": 0.8, "large model": 1.2, "fusion": 1.0, "distilled": 0.7}


def main() -> None:
    with page_on_large_set("queries", RUNS, judged=0.5) as meter:
        meter.measure("a rerun that changes nothing", LIST_MS, *[meter.app.run] * 5)
        for place, goal, acts_of in ((0, LIST_MS, filtering), (1, OPEN_MS, opening)):
            meter.app.run()
            with in_fragment(meter.app, place):
                for name, acts in acts_of(meter.app).items():
                    meter.measure(name, goal, *acts)
    meter.judge()


def opening(app: AppTest) -> dict[str, list[Act]]:
    def button(label: str) -> None:
        next(each for each in app.button if each.label == label).click().run()

    return {
        "next query": [lambda: button("Next")] * 9,
        "previous query": [lambda: button("Previous")] * 5,
    }


def filtering(app: AppTest) -> dict[str, list[Act]]:
    """Return name → actions, each with a value that was not shown before."""

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
