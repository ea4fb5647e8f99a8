"""Reversed labels on the page Data: a button corrects them and all derived data, and undoes it."""

from dataclasses import replace
from functools import partial

import pytest

from rankdash.core.base.errors import Finding
from rankdash.core.readers import Source, reversed_note
from rankdash.core.readers.checks.check import CheckReport
from rankdash.core.readers.loading import load
from rankdash.core.workspace.notes import Corrections
from rankdash.kit.widgets import address
from rankdash.kit.widgets import stored as widgets_stored
from rankdash.kit.widgets.labels import unjudged
from tests.readers.join.test_reversed_labels import CRANQREL, FOUND, NOTE, RIGHT
from tests.stored import keep_rows
from tests.ui.sessions import part, press


@pytest.fixture
def cranfield(workspace) -> str:
    files = {"cranqrel": CRANQREL, "bm25.run": FOUND, "other.run": FOUND.replace("bm25", "other")}
    found = load([Source(name, text.encode()) for name, text in files.items()], name="Cranfield")
    dataset_id = workspace.save_dataset(found.dataset, report_json=found.report.to_json())
    for run in found.runs:
        workspace.save_run(run)
    Corrections(workspace).correct(dataset_id, ("3", "31"), 1.0, "Ann")
    return dataset_id


def opened(dataset_id):
    """Draw the part of the page for the chosen data set, by default this one."""

    def draw():
        unjudged.draw_direction(
            address.one("data"), widgets_stored.check_report(address.one("data"))
        )
        return address.one("data")

    return part(draw, chosen={"data": dataset_id})


@pytest.mark.parametrize("deleted", [False, True])
def test_labels_are_reversed_and_put_back_with_what_belongs_to_them(cranfield, workspace, deleted):
    app = press(opened(cranfield), "Reverse the labels")
    first, made = workspace.datasets()
    assert (first.name, made.name) == ("Cranfield", "Cranfield, labels reversed")
    assert app.session_state["found"] == made.id != cranfield
    own = workspace.dataset(made.id).qrels.query("query_id == '1'")
    assert dict(zip(own["doc_id"], own["label"], strict=True)) == RIGHT
    assert widgets_stored.check_report(made.id).reversed_at == 5
    assert [each.value for each in app.caption] == [NOTE]
    assert [run.name for run in workspace.runs(made.id)] == ["other"]
    assert [each.label for each in Corrections(workspace).all(made.id)] == [4.0]
    if deleted:
        workspace.delete_dataset(cranfield)
    press(app, "Undo the reversal")
    assert app.session_state["found"] == cranfield
    assert [run.name for run in workspace.runs(cranfield)] == ["other"]
    assert {row.name for row in workspace.datasets()} == {"Cranfield", "Cranfield, labels reversed"}
    assert widgets_stored.check_report(cranfield).reversed_at is None
    assert [each.label for each in app.button] == ["Reverse the labels"]


@pytest.mark.parametrize(
    ("grades", "corrected", "offered"),
    [
        ((-1.0, 1.0, 4.0), (), ["4", "*5 (not used by any label)"]),
        ((1.0, 4.0), (), ["*4", "5 (not used by any label)"]),
        ((0.0, 4.0), (), ["*4", "5 (not used by any label)"]),
        ((-1.0, 4.9), (), ["4.9", "*5.9 (not used by any label)"]),
        ((-1.0, 5.0), (), ["*5", "6 (not used by any label)"]),
        ((-1.0, 4.0), (5.0, None), ["*5", "6 (not used by any label)"]),
        ((-2.0, -1.0), (None,), ["0", "*1 (not used by any label)"]),
    ],
)
def test_which_grade_means_not_relevant(workspace, grades, corrected, offered):
    rows = "".join(f"q,find,d{n},text,{grade:g},{9 - n}\n" for n, grade in enumerate(grades))
    dataset_id = keep_rows(workspace, "query_id,query,doc_id,document,label,score\n" + rows, "Shop")
    for n, label in enumerate(corrected):
        Corrections(workspace).correct(dataset_id, ("q", f"d{n}"), label, "")
    report = widgets_stored.check_report(dataset_id)
    app = part(unjudged.draw_direction, dataset_id, report, state={"labels.one_is_best": True})
    box = app.selectbox[0]
    assert offered == [
        f"*{each}" if at == box.index else each for at, each in enumerate(box.options)
    ]
    if not corrected:
        # The other choice is applied too.
        other = 1 - box.index
        box.set_value(max(0.0, *grades) + other).run()
        press(app, "Reverse the labels")
        [_old, made] = workspace.datasets()
        worst = max(0.0, *grades) + other
        made = workspace.dataset(made.id).qrels["label"].tolist()
        assert made == pytest.approx([g if g < 0 else worst - g for g in grades])


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
    monkeypatch.setattr(unjudged, "read_only", lambda: read_only)
    report = CheckReport.from_json(workspace.check_report(stored))
    app = part(partial(unjudged.draw_direction, stored, replace(report, findings=tuple(findings))))
    kinds = ("caption", "markdown", "checkbox", "selectbox", "html", "button")
    assert [kind for kind in kinds for _each in app.get(kind)] == parts
