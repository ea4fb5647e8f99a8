"""Reversed labels on the page Data: put right by a button with all that belongs to them, undone."""

from dataclasses import replace
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from rankdash.analysis.labels.check import CheckReport
from rankdash.findings import Finding
from rankdash.loading import load
from rankdash.readers import Source, reversed_note
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.notes import Notes
from rankdash.ui.labels import label_direction
from tests.readers.join.test_reversed_labels import CRANQREL, FOUND, NOTE, RIGHT
from tests.sets import ROOT
from tests.stored import keep_rows
from tests.ui.parts import drawn

OTHER = FOUND.replace("bm25", "other")


@pytest.fixture
def cranfield(workspace) -> str:
    files = {"cranqrel": CRANQREL, "bm25.run": FOUND, "other.run": OTHER}
    found = load([Source(name, text.encode()) for name, text in files.items()], name="Cranfield")
    stored = workspace.save_dataset(found.dataset, report_json=found.report.to_json())
    for run in found.runs:
        workspace.save_run(run)
    Notes(workspace).keep(stored, "2", (), "odd")
    Corrections(workspace).correct(stored, ("3", "31"), 1.0, "Ann")
    return stored


@pytest.fixture
def page(app: AppTest, cranfield: str) -> AppTest:
    app.query_params["lang"] = "en"
    app.query_params["data"] = cranfield
    app.run()
    return app.switch_page(str(ROOT / "pages" / "data.py")).run()


def click(page: AppTest, label: str) -> None:
    next(button for button in page.button if button.label == label).click().run()
    assert not page.exception


def buttons(page: AppTest) -> set[str]:
    return {button.label for button in page.button}


def labels(workspace, dataset_id: str) -> dict[str, float]:
    own = workspace.dataset(dataset_id).qrels.query("query_id == '1'")
    return dict(zip(own["doc_id"], own["label"], strict=True))


def test_labels_are_reversed_and_put_back_with_runs_notes_and_corrections(
    page, cranfield, workspace
):
    box = next(box for box in page.selectbox if box.label == "Grade that means not relevant")
    assert box.options == ["4", "5 (no document has it)"]
    assert box.value == 5, "labels below 0 say already what is not relevant"
    assert "Undo the reversal" not in buttons(page)
    click(page, "Reverse the labels")

    first, made = workspace.datasets()
    assert (first.id, first.name, made.name) == (
        cranfield,
        "Cranfield",
        "Cranfield, labels reversed",
    )
    assert page.query_params["data"] == made.id
    assert labels(workspace, made.id) == RIGHT
    assert CheckReport.from_json(workspace.check_report(made.id)).reversed_at == 5
    assert NOTE in [caption.value for caption in page.caption]
    assert [run.name for run in workspace.runs(made.id)] == ["other"]
    assert [note.text for note in Notes(workspace).all(made.id)] == ["odd"]
    assert [(each.pair, each.label) for each in Corrections(workspace).all(made.id)] == [
        (("3", "31"), 4.0)
    ]
    assert "Reverse the labels" not in buttons(page)

    click(page, "Undo the reversal")
    assert page.query_params["data"] == cranfield
    assert [run.name for run in workspace.runs(cranfield)] == ["other"]
    assert [row.name for row in workspace.datasets()] == ["Cranfield", "Cranfield, labels reversed"]
    assert "Reverse the labels" in buttons(page)


def test_the_reversal_is_undone_after_the_first_data_set_was_deleted(page, cranfield, workspace):
    click(page, "Reverse the labels")
    workspace.delete_dataset(cranfield)
    page.run()
    click(page, "Undo the reversal")

    assert page.query_params["data"] == cranfield
    assert {row.name for row in workspace.datasets() if row.id == cranfield} == {"Cranfield"}
    assert CheckReport.from_json(workspace.check_report(cranfield)).reversed_at is None


def test_the_highest_grade_may_mean_not_relevant(page, workspace):
    next(box for box in page.selectbox if box.label == "Grade that means not relevant").set_value(
        4
    ).run()
    click(page, "Reverse the labels")
    made = workspace.datasets()[1].id
    assert labels(workspace, made) == {"184": 3, "29": 3, "31": 2, "12": 1, "486": -1, "51": 0}


def test_a_scale_that_reaches_5_holds_its_own_worst_grade(app, workspace):
    worst = "".join(f"{query} 77 5\n" for query in range(1, 7))
    last = "".join(f"{query} Q0 77 7 1 bm25\n" for query in range(1, 7))
    files = {"qrels": CRANQREL + worst, "bm25.run": FOUND + last}
    found = load([Source(name, text.encode()) for name, text in files.items()])
    stored = workspace.save_dataset(found.dataset, report_json=found.report.to_json())
    app.query_params["data"] = stored
    app.run()
    page = app.switch_page(str(ROOT / "pages" / "data.py")).run()
    box = next(box for box in page.selectbox if box.label == "Grade that means not relevant")
    assert (box.options, box.value) == (["5", "6 (no document has it)"], 5)
    click(page, "Reverse the labels")
    made = workspace.datasets()[1].id
    assert labels(workspace, made) == {**RIGHT, "77": 0}


def test_labels_that_are_right_are_not_offered_to_be_reversed(app, stored):
    app.query_params["data"] = stored
    app.run()
    app.switch_page(str(ROOT / "pages" / "data.py")).run()
    assert not {"Reverse the labels", "Undo the reversal"} & buttons(app)


@pytest.mark.parametrize(
    ("grades", "corrected", "offered"),
    [
        ((-1.0, 1.0, 4.0), (), ["4", "*5 (no document has it)"]),
        ((1.0, 4.0), (), ["*4", "5 (no document has it)"]),
        ((0.0, 4.0), (), ["*4", "5 (no document has it)"]),
        ((-1.0, 4.9), (), ["4.9", "*5.9 (no document has it)"]),
        ((-1.0, 5.0), (), ["*5", "6 (no document has it)"]),
        ((-1.0, 4.0), (5.0, None), ["*5", "6 (no document has it)"]),
        ((-2.0, -1.0), (None,), ["0", "*1 (no document has it)"]),
    ],
)
def test_which_grade_means_not_relevant(workspace, grades, corrected, offered):
    rows = "".join(f"q,find,d{n},text,{grade:g},{9 - n}\n" for n, grade in enumerate(grades))
    dataset_id = keep_rows(workspace, "query_id,query,doc_id,document,label,score\n" + rows, "Shop")
    for n, label in enumerate(corrected):
        Corrections(workspace).correct(dataset_id, ("q", f"d{n}"), label, "")
    report = CheckReport.from_json(workspace.check_report(dataset_id))
    box = drawn(
        partial(label_direction.draw, dataset_id, report), "en", ["labels.one_is_best"]
    ).selectbox[0]
    chosen = [f"*{each}" if at == box.index else each for at, each in enumerate(box.options)]
    assert chosen == offered


SUSPECTED = Finding("warning", "label_direction", "Labels may be reversed.", {"best": "1"})


@pytest.mark.parametrize(
    ("findings", "read_only", "parts"),
    [
        ([SUSPECTED], False, ["markdown", "selectbox", "html", "button"]),
        ([SUSPECTED], True, []),
        ([], False, ["checkbox"]),
        ([SUSPECTED, reversed_note(5.0)], False, ["caption", "button"]),
        ([reversed_note(5.0)], True, ["caption"]),
    ],
)
def test_a_reversal_is_offered_or_undone_where_writing_is_allowed(
    stored, workspace, monkeypatch, findings, read_only, parts
):
    monkeypatch.setattr(label_direction, "read_only", lambda: read_only)
    report = CheckReport.from_json(workspace.check_report(stored))
    app = drawn(partial(label_direction.draw, stored, replace(report, findings=tuple(findings))))
    kinds = ("caption", "markdown", "checkbox", "selectbox", "html", "button")
    assert [kind for kind in kinds for _each in app.get(kind)] == parts
