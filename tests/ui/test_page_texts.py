"""The text of every page in both languages; in English also read-only, with one system, and without
labels."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from rankdash.core.base.shipped import PAGES
from rankdash.core.data.measured import Measured
from rankdash.core.workspace import Workspace
from rankdash.features.data import page as data_page
from rankdash.features.data import page_upload
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets import stored, view
from tests.approved import table
from tests.stored import keep_lists, keep_rows
from tests.ui.conftest import ROWS, lists_at, opened_at
from tests.ui.page_text import page_text
from tests.ui.parts import LANGUAGES, unlike
from tests.ui.sessions import whole

# Values that differ between runs and between machines.
CHANGING = {
    "moment": r"[A-Z][a-z]{2} \d+, \d{4}, [\d:]+\s[AP]M(?: UTC)?"
    r"|\d{4}年\d+月\d+日 ?(?:UTC)? ?[\d:]+",
    "day": r"[A-Z][a-z]{2} \d+, \d{4}|\d{4}年\d+月\d+日|\d{4}-\d\d-\d\d",
    "id": r"\b[0-9a-f]{16}\b",
}  # fmt: skip


def with_runs(workspace: Workspace, rows: str, name: str) -> str:
    """Store a data set with two equally good runs, one of them timed, and a run that lacks a
    query."""
    dataset_id = keep_rows(workspace, rows, name)
    keep_lists(workspace, dataset_id, lists_at(0, 15), "better")
    tied = keep_lists(workspace, dataset_id, lists_at(0), "as good")
    times = tied.queries.assign(latency_ms=np.arange(10.0, 26.0), pairs=4.0)
    measured = Measured(pairs=64, seconds=0.5)
    workspace.save_run(
        replace(tied, id=f"timed {name}", name="timed", queries=times, measured=measured)
    )
    return dataset_id


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Iterator[dict[str, str]]:
    """Yield state → its data set."""
    unlabelled = re.sub(r"(?m),\d,(?=\d,[ab]$)", ",,", ROWS)
    with opened_at(tmp_path_factory.mktemp("home")) as workspace:
        yield {
            "as usual": with_runs(workspace, ROWS, "Usual"),
            "one system": keep_rows(workspace, ROWS.replace("how", "what"), "One system"),
            "no labels": with_runs(workspace, unlabelled, "No labels"),
        }


def opened(page: str, dataset_id: str, language: str = "en") -> AppTest:
    # The other rerankers need packages, and the page shows which are installed.
    return whole(page, {"run.rerankers": ["bm25"]}, lang=language, data=dataset_id)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("page", sorted(path.stem for path in PAGES.glob("*.py")))
def test_a_page_says(approved, found, monkeypatch, page, language):
    def text(dataset_id: str, read_only: bool = False) -> str:
        monkeypatch.setenv("RANKDASH_READ_ONLY", "1" if read_only else "")
        stored.workspace.cache_clear()
        shown = page_text(opened(page, dataset_id, language), charts=False)
        for name, pattern in CHANGING.items():
            shown = re.sub(pattern, f"<{name}>", shown)
        return shown

    usual = text(found["as usual"])
    cases = {"as usual": usual}
    if language == "en":
        cases["read-only"] = unlike(usual, text(found["as usual"], True))
        cases |= {name: unlike(usual, text(found[name])) for name in ("one system", "no labels")}
    approved(f"whole/{page}.{language}", table(cases))


@pytest.mark.parametrize(("picked", "went"), [(None, []), ("q7", ["q7"]), ("", [""])])
def test_overview_opens_the_query_whose_change_is_picked(found, monkeypatch, picked, went):
    """Also the one whose id is empty."""
    queries: list[str] = []
    points = [] if picked is None else [{"customdata": [picked, 1]}]
    event = {"selection": {"points": points}}
    monkeypatch.setattr(widgets_charts, "show", lambda *_, **_settings: event)
    monkeypatch.setattr(view, "open_query", queries.append)
    opened("overview", found["as usual"])
    assert queries == went


@pytest.mark.parametrize("same", [True, False])
def test_data_leaves_out_of_the_check_what_the_upload_of_the_same_set_said(
    found, monkeypatch, same
):
    dataset_id, drawn = found["as usual"], []
    said = dataset_id if same else "other"
    monkeypatch.setattr(page_upload, "upload_panel", lambda: (said, False))
    monkeypatch.setattr(data_page, "draw", lambda *given, **named: drawn.append((given, named)))
    opened("data", dataset_id)
    [(given, named)] = drawn
    assert (*given, *named.values()) == (dataset_id, same)
    # The report of the previous files is not shown for new files.
    monkeypatch.setattr(page_upload, "upload_panel", lambda: (None, True))
    opened("data", dataset_id)
    assert len(drawn) == 1
