"""Reversed labels on the page Data: put right by a button with all that belongs to them, undone."""

from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from rankdash.analysis.labels.check import CheckReport
from rankdash.loading import load
from rankdash.readers import Source
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.notes import Notes
from rankdash.ui.labels import label_direction
from tests.readers.join.test_reversed_labels import CRANQREL, FOUND, NOTE, RIGHT
from tests.sets import ROOT

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
    ("grades", "corrected", "offered", "chosen"),
    [
        ((-1.0, 1.0, 4.0), (), (4.0, 5.0), 1),
        ((1.0, 4.0), (), (4.0, 5.0), 0),
        ((0.0, 4.0), (), (4.0, 5.0), 0),
        ((-1.0, 4.9), (), (4.9, 5.9), 1),
        ((-1.0, 5.0), (), (5.0, 6.0), 0),
        ((-1.0, 4.0), (5.0, None), (5.0, 6.0), 0),
        ((-2.0, -1.0), (None,), (0.0, 1.0), 1),
    ],
)
def test_which_grade_means_not_relevant(paper, monkeypatch, grades, corrected, offered, chosen):
    drawn = paper(label_direction)
    asked = []

    def selectbox(_title, options, index, format_func, **_settings):
        asked.append((options, index, [format_func(each) for each in options]))
        return options[index]

    drawn.selectbox = selectbox
    found = SimpleNamespace(all=lambda _id: [SimpleNamespace(label=each) for each in corrected])
    monkeypatch.setattr(label_direction, "Corrections", lambda _store: found)
    monkeypatch.setattr(label_direction, "workspace", lambda: None)
    kept = SimpleNamespace(label_values=list(grades))
    monkeypatch.setattr(label_direction.stored, "dataset", lambda _id: kept)
    bars = [SimpleNamespace(low=each, high=each, count=1) for each in grades]
    label_direction._offer("shop", SimpleNamespace(label_histogram=bars))
    ((options, index, shown),) = asked
    assert (options, index) == (offered, chosen)
    assert shown[0] == f"{offered[0]:g}" and shown[1].endswith("(no document has it)")


@pytest.mark.parametrize(
    ("at", "suspected", "only_shown", "parts"),
    [
        (None, True, False, ["offer"]),
        (None, True, True, []),
        (None, False, False, ["checkbox"]),
        (5.0, True, False, ["caption", "button"]),
        (5.0, False, True, ["caption"]),
    ],
)
def test_a_reversal_is_offered_or_undone_where_writing_is_allowed(
    paper, monkeypatch, at, suspected, only_shown, parts
):
    drawn = paper(label_direction)
    monkeypatch.setattr(label_direction, "read_only", lambda: only_shown)
    monkeypatch.setattr(
        label_direction, "_offer", lambda *_a: drawn.drawn.append(("offer", None, {}))
    )
    drawn.answers["checkbox"] = False
    report = SimpleNamespace(reversed_at=at, suspected_best=suspected, labels=3)
    label_direction.draw("shop", report)
    kinds = [kind for kind, _first, _settings in drawn.drawn]
    assert [kind for kind in kinds if kind != "container"] == parts
