"""The states of the Queries page, and its list and its queries as files."""

import io

import pandas as pd

from rankdash.core.workspace.notes import Notes
from rankdash.features.queries import page_list
from rankdash.kit.widgets import pickers, view
from tests.ui.parts import component, drawn
from tests.ui.test_pages import open_page


def test_a_query_without_a_comparison_has_its_state_in_place_of_a_change(app, stored):
    open_page(app, "queries")
    data = component(app, "query_list")
    failed = next(row for row in data["rows"] if row[0] == "q15")
    assert failed[1:5] == ["how to return 15", 431, None, "–"]
    assert data["words"]["said"][failed[6]] == "failed"


def test_the_list_as_csv_is_in_english_and_runs_no_formula():
    table = pd.DataFrame(
        {
            "query_id": ["q1", "q15"],
            "text": ["怎么退货", "=1+1"],
            "before": [0.5, 0.25],
            "after": [1.0, 0.5],
            "delta": [0.5, 0.25],
            "reason": ["rescued", "mixed"],
            "fault": ["none", "reranker"],
            "state": "ok",
        }
    )
    marks = pd.DataFrame({"query_id": ["q15"], "tags": ["=1+1"], "note": ["n"]})
    written = page_list.as_csv(table, marks, ("First stage", "=better"))
    expected = table.assign(text=["怎么退货", "'=1+1"], tags=["", "'=1+1"], note=["", "n"])
    expected.insert(2, "baseline", "First stage")
    expected.insert(3, "challenger", "'=better")
    read = pd.read_csv(io.BytesIO(written)).fillna("")
    pd.testing.assert_frame_equal(read, expected, check_dtype=False)


def test_a_saved_query_says_what_its_reason_rests_on(workspace, stored):
    made = []
    Notes(workspace).store(stored, "q3", ["odd"], "look here")

    def save() -> None:
        pickers.restore()
        study = view.study("queries")
        made.append(page_list.export_html(study, study.challengers[0], "q3", "en").decode())

    drawn(save, data=stored, system=workspace.runs(stored)[0].id)
    assert "<strong>relevant moved up</strong> · Relevant documents moved up." in made[0]
    assert "The document: “document 3”, label 1." in made[0]
    assert "look here" in made[0]
