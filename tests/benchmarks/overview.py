"""Processor time of the server for one interaction with the Overview.

    python tests/benchmarks/overview.py

A stored set of 10,000 queries with 100 candidates each and two runs. Each interaction is done a
few times with a new value, so that its result is not cached; the median counts, next to a rerun
that changes nothing. Results cached per metric, such as an opened section, are measured with
another metric each time, which is chosen beforehand and not counted. The conventions of the sidebar
are open only if one of them is changed. Exits with 1 if a median misses the goal.
"""

from __future__ import annotations

from page_costs import Act, page_on_large_set
from streamlit.testing.v1 import AppTest

NOTHING_MS, CHANGED_MS = 40, 150
FOLDS = tuple(f"overview.{name}" for name in ("table", "unjudged", "targets", "definitions"))
METRICS = ("mrr", "map", "recall", "ndcg_exp", "precision")


def main() -> None:
    with page_on_large_set("", {"small model": 0.8, "large model": 1.2}) as meter:
        app = meter.app
        app.session_state["sidebar.settings"] = True
        app.run()
        meter.measure("a rerun that changes nothing", NOTHING_MS, *[app.run] * 5)
        for name, acts in interactions(app).items():
            meter.measure(name, CHANGED_MS, *acts)
        meter.measure("relevant from", CHANGED_MS, *relevant_from(app))
        app.session_state["sidebar.settings"] = False
        for name, act in once_a_metric(app).items():
            for metric in METRICS:
                for fold in FOLDS:
                    app.session_state[fold] = False
                app.selectbox(key="address.metric").select(metric).run()
                meter.measure(name, CHANGED_MS, act)
    meter.judge()


def interactions(app: AppTest) -> dict[str, list[Act]]:
    """Return name → actions, each with a value that was not shown before."""
    return {
        "cutoff k": [
            lambda k=k: app.select_slider(key="address.k").set_value(k).run()
            for k in ("5", "20", "3", "50", "15")
        ],
        "metric": [
            lambda name=name: app.selectbox(key="address.metric").select(name).run()
            for name in METRICS
        ],
        "baseline": [
            lambda name=name: app.selectbox(key="address.base").select(name).run()
            for name in app.selectbox(key="address.base").options[1:]
        ],
    }


def relevant_from(app: AppTest) -> list[Act]:
    return [
        lambda grade=grade: app.selectbox(key="address.threshold").select(grade).run()
        for grade in ("2", "3")
    ]


def once_a_metric(app: AppTest) -> dict[str, Act]:
    """Return name → action, which costs time only once per metric."""

    def look_at_another() -> None:
        choices = app.session_state["address.choices"]
        others = [each for each in choices["system"] if [each] != choices["vs"]]
        # The effect of a click on its row in the leaderboard.
        choices["vs"] = others[:1]
        app.run()

    def open_fold(key: str) -> None:
        app.session_state[key] = True
        app.run()

    return {
        "challenger looked at": look_at_another,
        **{f"opening {key}": lambda key=key: open_fold(key) for key in FOLDS},
    }


if __name__ == "__main__":
    main()
