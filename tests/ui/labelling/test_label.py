"""The page Label as a person uses it: from two rankings without labels to a verdict."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from rankdash.analysis.labelling.answers import labels_table
from rankdash.loading import load
from rankdash.readers import Source
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.label_plans import LabelPlans
from rankdash.ui.labelling import label_card, label_files, plan_form
from rankdash.ui.labels import label_plan

ROOT = Path(__file__).parents[3]
QUERIES, DOCS = 12, 12
HOSTILE = "<script>alert(1)</script> **bold** :red[x]"


def _run(order) -> bytes:
    return "".join(
        f"q{query} Q0 q{query}d{doc} {rank} {50 - rank} s\n"
        for query in range(QUERIES)
        for rank, doc in enumerate(order, start=1)
    ).encode()


@pytest.fixture
def unlabelled(workspace) -> str:
    """Two rankings of twelve queries without a label, the second the first turned around."""
    files = {
        "queries.jsonl": "".join(
            json.dumps({"_id": f"q{n}", "text": f"question {n}"}) + "\n" for n in range(QUERIES)
        ).encode(),
        "corpus.jsonl": "".join(
            json.dumps({"_id": f"q{n}d{doc}", "title": f"T{doc}", "text": f"{HOSTILE} question"})
            + "\n"
            for n in range(QUERIES)
            for doc in range(DOCS)
        ).encode(),
        "initial.trec": _run(range(DOCS)),
        "turned.trec": _run([*reversed(range(DOCS))]),
    }
    loaded = load([Source(name, content) for name, content in files.items()], name="Two")
    workspace.save_dataset(loaded.dataset, report_json=loaded.report.to_json())
    for run in loaded.runs:
        workspace.save_run(run)
    return loaded.dataset.id


def opened(app, page: str, dataset_id: str, lang: str = "en"):
    app.query_params["data"], app.query_params["lang"] = dataset_id, lang
    app.switch_page(str(ROOT / "pages" / f"{page}.py")).run()
    assert not app.exception
    return app


@pytest.fixture
def label(app, unlabelled, monkeypatch):
    """The page with a plan begun by Ann, whose keys count at once."""
    monkeypatch.setattr(label_card, "_UNREAD_SECONDS", 0.0)
    monkeypatch.setattr(plan_form.secrets, "randbits", lambda _bits: 7)
    opened(app, "label", unlabelled)
    app.button(key="labelling.start").click().run()
    app.text_input(key="labelling.who").set_value("Ann").run()
    assert not app.exception
    return app


def press(app, key: str):
    """A key of the card that is shown, by the first part of its name."""
    [found] = [each for each in app.button if str(each.key).startswith(f"labelling.{key}.")]
    found.click().run()
    assert not app.exception
    return app


def card(app) -> str:
    [found] = [str(each.value) for each in app.get("html") if "rd-query" in str(each.value)]
    return found.partition("</style>")[2]


def strip(app) -> str:
    return next(str(each.value) for each in app.main.markdown if "turned" in str(each.value))


@pytest.mark.parametrize(
    "page", ["overview", "queries", "rank_shifts", "latency", "cost", "report", "history"]
)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_page_opens_without_labels(app, unlabelled, page, lang):
    opened(app, page, unlabelled, lang)
    assert not app.error


@pytest.mark.parametrize("page", ["overview", "queries", "report", "history", "cost"])
def test_pages_of_numbers_say_that_there_are_no_labels(app, unlabelled, page):
    opened(app, page, unlabelled)
    assert "No labels yet" in [each.value for each in app.subheader]


def test_overview_leads_to_the_page_and_shows_no_mean(app, unlabelled):
    opened(app, "overview", unlabelled)
    assert [each.value for each in app.subheader] == ["No labels yet"]
    assert not app.metric


def test_a_card_tells_no_system_rank_or_score(label):
    shown = card(label)
    assert "question" in shown and "T" in shown
    assert "&lt;script&gt;" in shown and "<script>" not in shown
    for told in ("turned", "first stage", "First stage", "rank", "score", "initial"):
        assert told not in shown
    # The names of the keys are in the page's source.
    assert not any("d1" in str(each.key) or "q1" in str(each.key) for each in label.button)


def test_a_key_saves_the_label_at_once_and_brings_the_next_document(label, workspace, unlabelled):
    first = card(label)
    press(label, "grade.1")
    [kept] = Corrections(workspace).log(unlabelled)
    assert (kept.label, kept.who) == (1.0, "Ann")
    assert card(label) != first


def test_back_takes_the_label_back_and_shows_its_document(label, workspace, unlabelled):
    first = card(label)
    press(label, "grade.1")
    press(label, "back")
    assert card(label) == first
    assert Corrections(workspace).all(unlabelled) == []
    press(label, "grade.0")
    [kept] = Corrections(workspace).all(unlabelled)
    assert kept.label == 0.0
    assert card(label) != first


def test_back_leaves_what_somebody_else_said(label, workspace, unlabelled):
    first = card(label)
    pair = label_plan.current(unlabelled).plan.order[0]
    where = label_plan.current(unlabelled).pair(int(pair))
    Corrections(workspace).correct(unlabelled, where, 1.0, "Bo")
    press(label, "grade.0")
    assert first != card(label)
    press(label, "back")
    [kept] = Corrections(workspace).all(unlabelled)
    assert (kept.label, kept.who) == (1.0, "Bo")


def test_back_takes_ones_own_label_back_also_where_another_came_after(label, workspace, unlabelled):
    press(label, "grade.1")
    [own] = Corrections(workspace).log(unlabelled)
    Corrections(workspace).correct(unlabelled, own.pair, 0.0, "Bo")
    label.run()
    press(label, "back")
    [kept] = Corrections(workspace).all(unlabelled)
    assert (kept.label, kept.who) == (0.0, "Bo")
    press(label, "grade.1")
    answered = label_plan.current(unlabelled).answered.latest
    assert dict(zip(answered["rater"], answered["label"], strict=True)) == {"Ann": 1.0, "Bo": 0.0}


def test_a_card_that_is_shown_again_is_in_nobody_elses_hands(label, workspace, unlabelled):
    press(label, "grade.1")
    press(label, "back")
    found = label_plan.current(unlabelled)
    first = found.pair(int(found.plan.order[0]))
    assert LabelPlans(workspace).take(found.kept.id, [first], "another window") is None


def test_back_works_after_a_reload(label, workspace, unlabelled):
    first = card(label)
    press(label, "grade.1")
    again = opened(AppTest.from_file(label._script_path, default_timeout=300), "label", unlabelled)
    again.button(key="labelling.same").click().run()
    assert card(again) != first
    press(again, "back")
    assert card(again) == first


def test_a_key_for_a_document_that_nobody_can_have_read_counts_for_none(
    label, workspace, unlabelled, monkeypatch
):
    monkeypatch.setattr(label_card, "_UNREAD_SECONDS", 1e9)
    first = card(label)
    press(label, "grade.1")
    assert Corrections(workspace).log(unlabelled) == []
    assert card(label) == first


def test_no_name_is_taken_over_from_another_window(label, workspace, unlabelled):
    del label.session_state["labelling.name"]
    label.run()
    assert not [each for each in label.button if "grade" in str(each.key)]
    [same] = [each for each in label.button if each.key == "labelling.same"]
    assert same.label == "Continue as Ann"
    same.click().run()
    press(label, "grade.1")
    assert Corrections(workspace).log(unlabelled)[0].who == "Ann"


def test_labels_that_wait_for_an_open_document_are_said(label, workspace, unlabelled):
    found = label_plan.current(unlabelled)
    for place in found.plan.order[1:4].tolist():
        Corrections(workspace).correct(unlabelled, found.pair(place), 1.0, "Bo")
    label.run()
    assert any("3 labels wait for documents" in each.value for each in label.caption)


def test_cannot_tell_is_no_label(label, workspace, unlabelled):
    press(label, "unsure")
    [kept] = Corrections(workspace).log(unlabelled)
    assert kept.label is None
    found = label_plan.current(unlabelled)
    assert found.answered.cannot_tell.nonzero()[0].tolist() == [found.plan.order[0]]


def test_from_no_labels_to_a_verdict(label, workspace, unlabelled):
    """The first documents of the first ranking are relevant, so turning it around is worse."""
    assert "too early to say, with 0 of 144 labels" in strip(label)
    found = label_plan.current(unlabelled)
    for place in found.plan.order[:60].tolist():
        query, doc = found.pair(place)
        Corrections(workspace).correct(
            unlabelled, (query, doc), float(int(doc.partition("d")[2]) < 3), "Ann"
        )
    label.run()
    said = strip(label)
    assert "turned is worse than First stage" in said
    assert "estimated from 60 of 144 labels; settled" in said
    estimate = label_plan.current(unlabelled).status.estimates[0]
    assert estimate.high < 0 and f"{estimate.difference:+.4f}"[1:] in said
    # Overview says the same, and no mean of labels that are there in part.
    overview = opened(label, "overview", unlabelled)
    assert overview.title[0].value == "Overview"
    assert strip(overview) == said
    assert not overview.metric


def test_with_all_labels_overview_compares(label, workspace, unlabelled):
    found = label_plan.current(unlabelled)
    for place in found.plan.order.tolist():
        query, doc = found.pair(place)
        Corrections(workspace).correct(
            unlabelled, (query, doc), float(int(doc.partition("d")[2]) < 3), "Ann"
        )
    label.run()
    assert "from all 144 labels that can make a difference" in strip(label)
    assert any(
        "No document is left for you. Labelled by you: 144." in e.value for e in label.success
    )
    assert opened(label, "overview", unlabelled).metric


def test_the_file_has_every_label_with_its_draw_and_probability(label, workspace, unlabelled):
    press(press(press(label, "grade.1"), "unsure"), "grade.0")
    found = label_plan.current(unlabelled)
    table = labels_table(found.plan, found.answered).sort_values("draw")
    assert table["label"].tolist() == [1.0, 0.0]
    assert table["draw"].tolist() == [1, 3]
    chances = found.plan.probabilities[[0, 2]]
    np.testing.assert_allclose(table["probability"], chances, rtol=1e-12)
    assert table["rater"].tolist() == ["Ann"] * 2
    assert pd.to_datetime(table["time"]).is_monotonic_increasing


def test_the_file_holds_what_was_labelled_after_its_button_was_drawn(label, workspace, unlabelled):
    press(label, "grade.1")
    assert len(label_files.table_bytes(unlabelled).splitlines()) == 2
    found = label_plan.current(unlabelled)
    Corrections(workspace).correct(unlabelled, found.pair(int(found.plan.order[5])), 1.0, "Bo")
    assert len(label_files.table_bytes(unlabelled).splitlines()) == 3


def test_a_new_question_begins_with_the_labels_that_are_there(label, workspace, unlabelled):
    press(label, "grade.1")
    before = LabelPlans(workspace).newest(unlabelled)
    plan = label_plan.current(unlabelled).settings
    LabelPlans(workspace).begin(
        unlabelled, {**before.settings, "metric": "rbp@10", "seed": plan.seed + 1}, ""
    )
    label.run()
    found = label_plan.current(unlabelled)
    assert found.kept.id != before.id
    assert np.isfinite(found.plan.known).sum() == 1
    assert found.status.estimates[0].known == 1


def test_one_ranking_is_not_enough_and_a_deleted_one_ends_the_plan(
    app, label, workspace, unlabelled
):
    [run] = workspace.runs(unlabelled)
    workspace.delete_run(run.id)
    label.run()
    assert any("There is one ranking only." in each.value for each in label.info)


def test_a_name_with_markup_stays_text(label, workspace, unlabelled):
    label.text_input(key="labelling.who").set_value("**<b>Eve</b>**").run()
    press(label, "grade.1")
    label.run()
    assert not any("<b>Eve" in str(each.value) for each in label.get("html"))
    [kept] = Corrections(workspace).log(unlabelled)
    assert kept.who == "**<b>Eve</b>**"


def test_nothing_is_labelled_without_a_name(app, unlabelled):
    opened(app, "label", unlabelled)
    app.button(key="labelling.start").click().run()
    app.text_input(key="labelling.who").set_value("").run()
    assert not [each for each in app.button if "grade" in str(each.key)]
