"""Notes, tags and corrected labels, as the pages show them."""

import io
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.testing.v1 import AppTest

from rankdash.core.readers import Source, read
from rankdash.core.workspace.notes import Corrections, Notes
from rankdash.features.queries import page as queries_page
from rankdash.features.queries import page_why
from rankdash.features.queries import study as queries_study
from rankdash.kit.widgets import pickers, view
from rankdash.kit.widgets import stored as widgets_stored
from rankdash.kit.widgets.labels import corrections as labels_corrections
from tests.stored import keep_lists, keep_rows
from tests.ui.parts import component, drawn, send

QUERY = "q5"


def opened(dataset_id: str, query: str = QUERY, **params: str) -> AppTest:
    """Draw the notes of a query, and below them the table of all notes."""

    def draw() -> None:
        pickers.restore()
        study = view.study("queries")
        view.caption(study)
        page_why.draw_notes(study, query)
        st.dataframe(page_why.marks(study))

    return drawn(draw, data=dataset_id, **params)


def graded(dataset_id: str, query: str) -> AppTest:
    """Draw a query of a data set with its grades."""

    def draw() -> None:
        pickers.restore()
        study = view.study("queries")
        rows = queries_study.listing(study, study.challengers[0])
        queries_page.draw(study, study.challengers[0], rows.row(query))

    runs = widgets_stored.workspace().runs(dataset_id)
    return drawn(draw, data=dataset_id, system=[each.id for each in runs])


def reading(app: AppTest) -> dict[str, Any]:
    data = component(app, "reading")
    documents = (doc for doc, _title, _snippet in data["docs"])
    return data | {"given": dict(zip(documents, data["given"], strict=True))}


def test_every_document_gets_a_grade_from_0_to_one_above_the_top(workspace):
    rows = [
        {"query": QUERY, "document": f"text {doc}", "label": 3 - doc, "score": -doc}
        for doc in range(2)
    ]
    dataset_id = keep_rows(workspace, rows, "Positive labels")
    query, first = workspace.dataset(dataset_id).qrels.iloc[0][["query_id", "doc_id"]]
    docs = [*workspace.dataset(dataset_id).documents["doc_id"]]
    keep_lists(workspace, dataset_id, [(query, docs[::-1], [2.0, 1.0])], "run")
    app = graded(dataset_id, query)
    data = reading(app)
    assert data["grades"] == ["0", "1", "2", "3", "4", "?"] and data["effect"] == ""
    assert data["names"]["2"] == ["■■□", "2 of 3"]
    pending, corrections = [], Corrections(workspace)
    for number, (grade, label) in enumerate(
        [("4", 4.0), ("?", None), ("0", 0.0), ("3", "as uploaded"), ("5", "as uploaded")], start=1
    ):
        # Earlier grades are sent again until they are confirmed, and are not stored again.
        pending.append([number, query, first, grade])
        send(app, "reading", {"pending": pending})
        found = {each.pair: each.label for each in corrections.all(dataset_id)}
        assert found.get((query, first), "as uploaded") == label
        data = reading(app)
        assert data["heard"] == number and data["grades"][-2:] == ["4", "?"]
        if grade != "5":
            assert data["given"][first] == grade
    assert len(corrections.log(dataset_id)) == 4
    send(app, "reading", {"pending": [[9, query, first, "0"]]})
    assert reading(app)["effect"] == "This query 0.913 → 1.000 · mean 0.913 → 1.000"


def test_a_workspace_that_is_only_shown_has_no_grades(stored, workspace, only_shown):
    only_shown()
    app = graded(stored, QUERY)
    assert reading(app)["grades"] == []
    send(app, "reading", {"pending": [[1, QUERY, "d1", "0"]]})
    assert not Corrections(workspace).all(stored)


def test_files_hold_the_corrected_labels_and_run_no_formula(app, stored):
    store = widgets_stored.workspace()
    corrections = Corrections(store)
    corrections.correct(stored, (QUERY, "d1"), None, "=cmd()")
    corrections.correct(stored, (QUERY, "d3"), 1.0, "")
    Notes(store).store(stored, QUERY, ["@tag"], "=1+1")
    made = pd.read_csv(io.BytesIO(labels_corrections.corrections_csv(stored)), dtype=str)
    assert made["who"].fillna("").tolist() == ["", "'=cmd()"]
    assert made["corrected"].fillna("").tolist() == ["1.0", ""]
    assert made["uploaded"].tolist() == ["0.0", "1.0"]
    notes = pd.read_csv(io.BytesIO(labels_corrections.notes_csv(stored)), dtype=str)
    assert notes.loc[0, "note"] == "'=1+1"
    assert notes.loc[0, "tags"] == "'@tag"
    assert notes.loc[0, "query"] == "how to return 5"
    lines = (
        labels_corrections.corrected_qrels(stored, corrections.layer(stored)).decode().split("\n")
    )
    own = [line.split() for line in lines if line.startswith("q5 ")]
    assert {(doc, label) for _q, _0, doc, label in own} == {("d0", "0"), ("d2", "0"), ("d3", "1")}
    assert len(lines) == 16 * 4 - 1 + 1
    # The readers read the exported labels back.
    again = read([Source("qrels.tsv", "\n".join(lines).encode())]).qrels
    assert len(again) == 16 * 4 - 1


def test_a_correction_reads_nothing_from_the_disk_again(stored, monkeypatch):
    store, reads = widgets_stored.workspace(), []
    whole = type(store).dataset
    monkeypatch.setattr(
        type(store), "dataset", lambda self, name: reads.append(name) or whole(self, name)
    )
    base = widgets_stored.dataset(stored)
    for label in (0.0, None, 0.0):
        Corrections(store).correct(stored, (QUERY, "d1"), label, "")
        layer = Corrections(store).layer(stored)
        corrected = widgets_stored.dataset(widgets_stored.with_corrections(stored, layer.revision))
        assert corrected.candidates is base.candidates
    assert reads == [stored]
