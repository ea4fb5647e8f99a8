"""A part of a page in a separate app, with a study that needs no workspace."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.testing.v1 import AppTest

from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.readers import Source
from rankdash.core.readers.loading import load
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, systems_of
from tests.ui.page_text import page_text

LANGUAGES = ("en", "zh")


def _app(draw, language):
    import streamlit as st

    from rankdash.core.base.i18n import speaking
    from rankdash.core.base.shipped import PAGES
    from rankdash.kit.widgets import pickers

    with speaking(language):
        pickers.restore()
        # Links lead to pages that the app knows.
        st.navigation([st.Page(page) for page in PAGES.glob("*.py")], position="hidden")
        draw()


def drawn(
    draw: Callable[[], object],
    language: str = "en",
    unfolded: Iterable[str] = (),
    **params: str | Sequence[str],
) -> AppTest:
    """Run an app that draws one part. unfolded: keys of the open expanders. params: fields of the
    address."""
    app = AppTest.from_function(_app, default_timeout=300, args=(draw, language))
    for name, value in params.items():
        app.query_params[name] = value
    for key in unfolded:
        app.session_state[key] = True
    app.run()
    assert not app.exception, app.exception
    return app


def said(draw: Callable[[], object], *given: Any, **params: str | Sequence[str]) -> str:
    """Return the text of a part (see `drawn`). Charts have one line: they are tested elsewhere."""
    return page_text(drawn(draw, *given, **params), charts=False)


def component(app: AppTest, name: str) -> Any:
    """Return the data that a component shows: its texts and its rows."""
    return json.loads(_component(app, name).json)


def send(app: AppTest, name: str, event: Any) -> AppTest:
    """Return the app after a component has sent an event, as the browser does."""
    states = app._tree.get_widget_states()
    widget = states.widgets.add()
    widget.id = _make_trigger_id(_component(app, name).id, "events")
    widget.json_trigger_value = json.dumps([{"event": "event", "value": event}])
    app._tree.get_widget_states = lambda: states
    app.run()
    assert not app.exception, app.exception
    return app


def _component(app: AppTest, name: str) -> Any:
    shown = [each.proto for each in app.get("bidi_component")]
    return next(each for each in shown if each.component_name == f"rankdash.{name}")


def unlike(usual: str, text: str) -> str:
    """Return the lines that only the usual text contains, then those that only `text` contains."""
    before, now = usual.split("\n"), text.split("\n")
    gone = [f"- {line}" for line in before if line not in now]
    return "\n".join([*gone, *(line for line in now if line not in before)])


def dataset_of(rows: str, name: str = "Shop") -> Dataset:
    """Return a data set. rows: CSV with its header."""
    return load([Source("rows.csv", rows.encode())], name=name).dataset


def run_of(dataset: Dataset, name: str, lists: Mapping[str, Sequence[str]]) -> Run:
    """Return a run with its lists: query → its documents. Its id is its name."""
    ranked = ((query, docs, [*range(len(docs), 0, -1)]) for query, docs in lists.items())
    made = run_from_ranking(name, dataset.id, Ranking.from_lists(ranked), name)
    return replace(made, id=name)


def study_of(dataset: Dataset, *runs: Run, **fields: Any) -> Study:
    """Return a study of the first stage and all runs."""
    usual = {"baseline": FIRST_STAGE, "challengers": tuple(run.id for run in runs)}
    return Study(dataset, systems_of(dataset, runs), **(usual | fields))
