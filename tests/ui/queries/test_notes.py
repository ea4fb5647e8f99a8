"""Notes, tags and corrected labels, as the pages show them."""

import io

import pandas as pd
import streamlit as st
from streamlit.testing.v1 import AppTest

from rankdash.core.readers import Source, read
from rankdash.core.workspace.notes import Corrections, Notes
from rankdash.features.queries import page_why
from rankdash.kit.widgets import pickers, view
from rankdash.kit.widgets import stored as widgets_stored
from rankdash.kit.widgets.labels import corrections as labels_corrections
from tests.stored import keep_lists, keep_rows
from tests.ui.parts import drawn

QUERY = "q5"


def opened(dataset_id: str, query: str = QUERY, **params: str) -> AppTest:
    """The remarks and the labels of a query, and below them the marks of all."""

    def draw() -> None:
        pickers.restore()
        study = view.study("queries")
        view.caption(study)
        page_why.draw_notes(study, query)
        st.dataframe(page_why.marks(study))

    return drawn(draw, data=dataset_id, **params)


def widget(kind, label):
    return next(each for each in kind if each.label == label)


def test_grade_0_to_the_top_can_be_given_whatever_labels_were_uploaded(workspace):
    rows = [
        {"query": QUERY, "document": f"text {doc}", "label": 3, "score": -doc} for doc in range(2)
    ]
    dataset_id = keep_rows(workspace, rows, "Positive labels")
    data = workspace.dataset(dataset_id)
    query, doc = data.qrels.iloc[0][["query_id", "doc_id"]]
    keep_lists(workspace, dataset_id, [(query, [*data.documents["doc_id"]], [2.0, 1.0])], "run")
    app = opened(dataset_id, query)
    widget(app.selectbox, "Correct the label of").set_value(doc).run()
    label = widget(app.button_group, "Label")
    assert list(label.options) == ["not judged", "0", "1", "2", "3"]
    label.set_value("2").run()
    [made] = Corrections(workspace).all(dataset_id)
    assert (made.pair, made.label) == ((query, doc), 2.0)


def test_files_hold_the_corrected_labels_and_run_no_formula(app, stored):
    store = widgets_stored.workspace()
    corrections = Corrections(store)
    corrections.correct(stored, (QUERY, "d1"), None, "=cmd()")
    corrections.correct(stored, (QUERY, "d3"), 1.0, "")
    Notes(store).keep(stored, QUERY, ["@tag"], "=1+1")
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
    # What was exported is what the readers read back.
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
