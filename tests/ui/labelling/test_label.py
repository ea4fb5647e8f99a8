"""The page Label as a person uses it: from two rankings without labels to a verdict."""

import functools
import inspect
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from rankdash.analysis.labelling.answers import labels_table
from rankdash.loading import Loaded, load
from rankdash.ranking.ranking import Ranking
from rankdash.readers import Source
from rankdash.reporting import report
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.store.jobs.judges import StoredJudges
from rankdash.store.jobs.leases import Owner
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.label_plans import LabelPlans
from rankdash.ui.labelling import label_files, label_keys, plan_form
from rankdash.ui.report import report_view
from rankdash.ui.state import label_plan, server

ROOT = Path(__file__).parents[3]
QUERIES, DOCS = 12, 12
HOSTILE = "<script>alert(1)</script> **bold** :red[x]"


def _run(order, queries=range(QUERIES)) -> bytes:
    return "".join(
        f"q{query} Q0 q{query}d{doc} {rank} {50 - rank} s\n"
        for query in queries
        for rank, doc in enumerate(order, start=1)
    ).encode()


@pytest.fixture
def unlabelled(workspace) -> str:
    """Two rankings of twelve queries without a label, the second the first turned around."""
    return kept(workspace, _run([*reversed(range(DOCS))]))


def kept(workspace, second: bytes, *, text: str = f"{HOSTILE} question", title: str = "T") -> str:
    """The id of a data set without labels. second: the ranking beside the first stage."""
    loaded = _loaded(second, text, title)
    workspace.save_dataset(loaded.dataset, report_json=loaded.report.to_json())
    for run in loaded.runs:
        workspace.save_run(run)
    return loaded.dataset.id


@functools.cache
def _loaded(second: bytes, text: str, title: str) -> Loaded:
    files = {
        "queries.jsonl": "".join(
            json.dumps({"_id": f"q{n}", "text": f"question {n}"}) + "\n" for n in range(2 * QUERIES)
        ).encode(),
        "corpus.jsonl": "".join(
            json.dumps({"_id": f"q{n}d{doc}", "title": title and f"{title}{doc}", "text": text})
            + "\n"
            for n in range(2 * QUERIES)
            for doc in range(DOCS)
        ).encode(),
        "initial.trec": _run(range(DOCS)),
        "turned.trec": second,
    }
    return load([Source(name, content) for name, content in files.items()], name="Two")


def opened(app, page: str, dataset_id: str, lang: str = "en"):
    app.query_params["data"], app.query_params["lang"] = dataset_id, lang
    app.switch_page(str(ROOT / "pages" / f"{page}.py")).run()
    assert not app.exception
    return app


@pytest.fixture
def label(app, unlabelled, monkeypatch):
    """The page with a plan begun by Ann, whose keys count at once."""
    monkeypatch.setattr(label_keys, "UNREAD_SECONDS", 0.0)
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


def answer(app, workspace, dataset_id: str, count: int) -> None:
    """Label the first documents as Ann does: those at the top of the first ranking are relevant."""
    found = label_plan.current(dataset_id)
    for query, doc in map(found.pair, found.plan.order[:count].tolist()):
        relevant = float(int(doc.partition("d")[2]) < 3)
        Corrections(workspace).correct(dataset_id, (query, doc), relevant, "Ann")
    app.run()


def in_force(dataset_id: str) -> dict[str, float]:
    """Person → label, of those that count."""
    latest = label_plan.current(dataset_id).answered.latest
    return dict(zip(latest["rater"], latest["label"], strict=True))


def card(app) -> str:
    [found] = [str(each.value) for each in app.get("html") if "rd-query" in str(each.value)]
    return found.partition("</style>")[2]


def strip(app) -> str:
    return next(str(each.value) for each in app.main.markdown if "turned" in str(each.value))


@pytest.mark.parametrize("timed", [False, True])
def test_latency_is_offered_where_it_was_measured(app, workspace, timed):
    loaded = _loaded(_run([*reversed(range(DOCS))]), "text", "T")
    workspace.save_dataset(loaded.dataset, report_json=loaded.report.to_json())
    for run in loaded.runs:
        queries = run.queries.assign(latency_ms=5.0) if timed else run.queries
        workspace.save_run(replace(run, queries=queries))
    opened(app, "overview", loaded.dataset.id)
    offered = [each.proto.label for each in app.main.get("page_link")]
    assert "how far the systems agree, and which documents moved" in offered
    assert ("how long each system takes" in offered) is timed


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


def test_back_takes_labels_back_shows_their_documents_and_says_what_they_were(
    label, workspace, unlabelled
):
    cards = []
    for grade in (1, 0):
        cards.append(card(label))
        press(label, f"grade.{grade}")
    for shown, grade in zip(reversed(cards), (0, 1), strict=True):
        press(label, "back")
        assert card(label) == shown
        was = [each.label for each in label.button if each.proto.type == "primary"]
        assert was == [("not relevant", "relevant")[grade]]
    assert Corrections(workspace).all(unlabelled) == []
    press(label, "grade.1")
    assert [each.label for each in Corrections(workspace).all(unlabelled)] == [1.0]
    assert card(label) == cards[1]
    assert not [each for each in label.button if each.proto.type == "primary"]


def test_what_was_gone_back_to_is_of_its_data_set_and_its_person(label, workspace, unlabelled):
    press(label, "grade.1")
    press(label, "back")
    first = card(label)
    label.text_input(key="labelling.who").set_value("Bo").run()
    assert card(label) == first
    assert not [each for each in label.button if each.proto.type == "primary"]
    other = kept(workspace, _run([*reversed(range(DOCS))], range(3)), text="other")
    opened(label, "label", other)
    label.button(key="labelling.start").click().run()
    assert not label.exception
    assert "other" in card(label)


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
    assert in_force(unlabelled) == {"Ann": 1.0, "Bo": 0.0}


def test_back_leaves_an_earlier_answer_of_ones_own_in_force(label, workspace, unlabelled):
    """As from another window; each press takes one back."""
    press(label, "grade.1")
    [own] = Corrections(workspace).log(unlabelled)
    for grade, who in ((0.0, "Bo"), (0.0, "Ann")):
        Corrections(workspace).correct(unlabelled, own.pair, grade, who)
    label.run()
    press(label, "back")
    assert in_force(unlabelled) == {"Ann": 1.0, "Bo": 0.0}
    press(label, "back")
    assert in_force(unlabelled) == {"Bo": 0.0}


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
    monkeypatch.setattr(label_keys, "UNREAD_SECONDS", 1e9)
    first = card(label)
    press(label, "grade.1")
    assert Corrections(workspace).log(unlabelled) == []
    assert card(label) == first
    # A dropped key is said.
    assert [each.value for each in label.toast] == [
        "Not saved: the key came before the document could be read. Press it again."
    ]


def test_a_digit_that_is_no_grade_is_answered_and_saves_nothing(label, workspace, unlabelled):
    first = card(label)
    press(label, "unseen.2")
    assert Corrections(workspace).log(unlabelled) == [] and card(label) == first
    assert [each.value for each in label.toast] == [
        "Not saved: 2 is not a grade. The grades are 0 to 1."
    ]
    # Once: the next key says nothing of it.
    press(label, "grade.1")
    assert not label.toast and len(Corrections(workspace).log(unlabelled)) == 1


def test_a_refused_key_draws_nothing_in_its_callback(label, monkeypatch):
    monkeypatch.setattr(label_keys, "UNREAD_SECONDS", 1e9)
    drawn = []
    monkeypatch.setattr(label_keys.st, "toast", lambda *_a, **_k: drawn.append(in_callback()))
    press(label, "grade.1")
    assert drawn == [False]


def in_callback() -> bool:
    return any("call_callback" in frame.function for frame in inspect.stack())


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
    (before,) = label.main.get("progress")
    assert before.proto.text == "The first interval comes after about 50 labels."
    answer(label, workspace, unlabelled, 60)
    (after,) = label.main.get("progress")
    # How many labels there are is in the sentence of the estimate, and nowhere else.
    assert after.proto.value == 100 and "60" not in after.proto.text
    said = strip(label)
    assert "is valid however often you look" in said
    assert "turned is worse than First stage" in said
    assert "estimated from 60 of 144 labels; conclusive after" in said
    estimate = label_plan.current(unlabelled).status.estimates[0]
    assert estimate.high < 0 and f"{estimate.difference:+.4f}"[1:] in said
    # Overview says the same, and no mean of labels that are there in part.
    overview = opened(label, "overview", unlabelled)
    assert overview.title[0].value == "Overview"
    assert strip(overview) == said
    assert not overview.metric


def test_with_all_labels_overview_compares(label, workspace, unlabelled):
    answer(label, workspace, unlabelled, QUERIES * DOCS)
    assert "from all 144 labels that can change the result" in strip(label)
    assert any(
        "No document is left for you. Labelled by you: 144." in e.value for e in label.success
    )
    assert opened(label, "overview", unlabelled).metric


def test_the_file_has_every_label_with_its_draw_and_probability(label, workspace, unlabelled):
    press(press(press(label, "grade.1"), "unsure"), "grade.0")
    found = label_plan.current(unlabelled)
    table = labels_table(found.plan, found.answered).sort_values("draw")
    assert table["label"].tolist() == [1.0, "cannot tell", 0.0]
    assert table["draw"].tolist() == [1, 2, 3]
    chances = found.plan.probabilities[:3]
    np.testing.assert_allclose(table["probability"], chances, rtol=1e-12)
    assert table["rater"].tolist() == ["Ann"] * 3
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


def begin_again(app, dataset_id, **chosen):
    """Open the form of a new plan, choose there, and begin."""
    plan = label_plan.current(dataset_id).kept.id
    app.session_state[f"label.another.{plan}"] = True
    app.run()
    for key, value in chosen.items():
        if key == "guidelines":
            app.text_area(key="labelling.guidelines").set_value(value)
        elif key == "keep":
            [found] = [each for each in app.radio if str(each.key).startswith("labelling.keep")]
            found.set_value(value)
        else:
            app.selectbox(key=f"labelling.{key}").set_value(value)
        app.run()
    app.button(key="labelling.start").click().run()
    assert not app.exception
    assert not [each for each in app.button if each.key == "labelling.start"]
    return app


def note_field(app):
    [found] = [each for each in app.text_input if str(each.key).startswith("labelling.note.")]
    return found


def test_a_note_is_kept_with_its_document_and_comes_back_with_it(label, workspace, unlabelled):
    first = card(label)
    name = note_field(label).key
    note_field(label).set_value("two  questions, = one answer").run()
    # Another field: the one that was typed in would take the keys.
    assert note_field(label).key != name
    assert note_field(label).value == "two questions, = one answer"
    press(label, "grade.1")
    assert note_field(label).value == ""
    press(label, "back")
    assert card(label) == first and note_field(label).value == "two questions, = one answer"
    label.text_input(key="labelling.who").set_value("Bo").run()
    assert note_field(label).value == ""


def test_notes_are_in_the_file_also_of_documents_without_a_label(label, workspace, unlabelled):
    note_field(label).set_value("=good").run()
    press(label, "grade.1")
    note_field(label).set_value("no idea").run()
    press(label, "unsure")
    table = pd.read_csv(io.BytesIO(label_files.table_bytes(unlabelled)))
    said = dict(zip(table["note"], table["label"], strict=True))
    assert said == {"Ann: =good": "1.0", "Ann: no idea": "cannot tell"}
    assert list(table.columns)[:3] == ["query_id", "doc_id", "label"]


def test_a_pause_hides_the_card_frees_it_for_others_and_counts_for_no_label(
    label, workspace, unlabelled
):
    press(label, "grade.1")
    shown = card(label)
    press(label, "pause")
    assert not [each for each in label.get("html") if "rd-query" in str(each.value)]
    found = label_plan.current(unlabelled)
    second = found.pair(int(found.plan.order[1]))
    assert LabelPlans(workspace).take(found.kept.id, [second], "another window") == second
    LabelPlans(workspace).take(found.kept.id, [], "another window")
    label.button(key="labelling.continue").click().run()
    assert card(label) == shown
    assert list(label_plan.current(unlabelled).resumed) == ["Ann"]


def test_guidelines_show_lists_and_emphasis_and_nothing_that_loads(label, unlabelled):
    text = (
        "# What counts\n- **direct** answers\n- <img src=x onerror=alert(1)>\n"
        "![x](http://evil.example/x.png) [link](http://evil.example) http://evil.example :red[r]"
    )
    begin_again(label, unlabelled, guidelines=text)
    [shown] = [str(each.value) for each in label.markdown if "What counts" in str(each.value)]
    assert "#### What counts" in shown and "- **direct** answers" in shown
    assert "\\<img src\\=x" in shown and "\\!\\[x\\](http" in shown and "\\:red\\[r" in shown
    # An address is a link in Markdown wherever it stands as such.
    assert "://" not in shown and ":\N{WORD JOINER}" not in shown.replace("\\:\N{WORD JOINER}", "")


def test_a_changed_scale_is_asked_about_and_recorded(label, workspace, unlabelled):
    press(press(label, "grade.1"), "grade.0")
    begin_again(label, unlabelled, top=3)
    found = label_plan.current(unlabelled)
    assert (found.settings.top, found.settings.before, found.settings.keep) == (3.0, 1.0, True)
    assert np.nansum(found.plan.known) == 1.0 and np.isfinite(found.plan.known).sum() == 2
    assert any("changed from 0–1 to 0–3" in each.value for each in label.caption)
    words = [each.label for each in label.button if ".grade." in str(each.key)]
    assert words == ["not relevant", "slightly relevant", "relevant", "highly relevant"]
    press(press(label, "grade.3"), "grade.1")
    begin_again(label, unlabelled, top=1)
    found = label_plan.current(unlabelled)
    # The 3 is on no scale up to 1: its document is drawn again.
    assert np.isfinite(found.plan.known).sum() == 3 and len(found.plan.order) == 141
    begin_again(label, unlabelled, top=2, keep=False)
    assert len(label_plan.current(unlabelled).plan.order) == 144
    assert len(Corrections(workspace).all(unlabelled)) == 4


def test_a_label_above_the_scale_from_elsewhere_is_said_and_not_counted(
    label, workspace, unlabelled
):
    found = label_plan.current(unlabelled)
    first = found.pair(int(found.plan.order[0]))
    Corrections(workspace).correct(unlabelled, first, 3.0, "Bo")
    label.run()
    assert any("1 label is above the highest grade" in each.value for each in label.caption)
    assert label_plan.current(unlabelled).answered.raters.sum() == 0


def test_a_key_for_a_plan_that_was_replaced_is_not_stored_and_that_is_said(
    label, workspace, unlabelled
):
    kept = LabelPlans(workspace).newest(unlabelled)
    [key] = [each for each in label.button if "grade.1" in str(each.key)]
    LabelPlans(workspace).begin(unlabelled, {**kept.settings, "top": 3.0}, "")
    key.click().run()
    assert not label.exception
    assert Corrections(workspace).log(unlabelled) == []
    assert any("A new labelling plan was started" in each.value for each in label.warning)
    press(label, "grade.3")
    assert not label.warning
    assert Corrections(workspace).log(unlabelled)[0].label == 3.0


def test_a_data_set_that_was_deleted_meanwhile_is_said(label, workspace, unlabelled):
    [key] = [each for each in label.button if "grade.1" in str(each.key)]
    workspace.delete_dataset(unlabelled)
    key.click().run()
    assert not label.exception
    assert not [each for each in label.button if "grade" in str(each.key)]


def test_people_are_those_of_the_last_key(label, unlabelled):
    label.session_state["label.people"] = True
    label.run()
    assert any("Nobody has labelled yet." in each.value for each in label.caption)
    press(label, "grade.1")
    [table] = [str(each.value) for each in label.get("html") if "rd-table" in str(each.value)]
    assert "<td class='rd-short'>Ann</td><td class='rd-short'>1</td>" in table


def test_documents_open_elsewhere_are_not_called_done(label, workspace, unlabelled):
    found = label_plan.current(unlabelled)
    pairs = [found.pair(place) for place in found.plan.order.tolist()]
    for pair in pairs[:-1]:
        Corrections(workspace).correct(unlabelled, pair, 0.0, "Ann")
    LabelPlans(workspace).take(found.kept.id, pairs[-1:], "another window")
    label.run()
    assert any("open in other windows" in each.value for each in label.info)
    LabelPlans(workspace).take(found.kept.id, [], "another window")
    label.button(key="labelling.again").click().run()
    press(label, "grade.0")
    assert label_plan.current(unlabelled).complete


def test_all_documents_of_a_query_come_one_after_the_other(label, unlabelled):
    begin_again(label, unlabelled, mode="query")
    seen = []
    for place in range(1, 13):
        assert f"document {place} of 12" in card(label)
        seen.append(query_of(label))
        press(label, "grade.0")
        if place < 12:
            assert so_far(label) == ["0"] * place
    assert len(set(seen)) == 1 and not so_far(label)
    assert "document 1 of 12" in card(label)
    assert query_of(label) not in seen


def so_far(app) -> list[str]:
    """The labels in the list of this query's."""
    tables = [str(each.value) for each in app.get("html") if "rd-table" in str(each.value)]
    return re.findall(r"<td class='rd-short'>(\d)</td></tr>", "".join(tables))


def query_of(app) -> str:
    return card(app).partition("class='rd-query'>")[2].partition("<")[0]


def test_systems_are_named_in_the_language_of_the_reader(label, unlabelled):
    assert "against First stage" in strip(label)
    assert "与初排相比" in strip(opened(label, "label", unlabelled, "zh"))


def test_the_form_says_what_there_is_to_label_before_it_is_begun(app, workspace, unlabelled):
    opened(app, "label", unlabelled)
    assert any("144 documents can change the result." in each.value for each in app.caption)
    app.number_input(key="labelling.depth").set_value(3).run()
    assert any("72 documents can change the result." in each.value for each in app.caption)
    app.multiselect(key="labelling.challengers.first-stage").set_value([]).run()
    assert not [each for each in app.button if each.key == "labelling.start"]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (_run(range(DOCS), range(QUERIES, 2 * QUERIES)), "The rankings have no query in common"),
        (_run(range(DOCS)), "The rankings are the same within the first 10 of every query"),
    ],
)
def test_rankings_that_no_label_can_tell_apart_are_refused_in_words(app, workspace, second, said):
    opened(app, "label", kept(workspace, second))
    assert any(said in each.value for each in app.error)
    assert not [each for each in app.button if each.key == "labelling.start"]


def test_queries_that_one_ranking_lacks_are_said_before_and_while_labelling(app, workspace):
    found = kept(workspace, _run([*reversed(range(DOCS))], range(10, 2 * QUERIES)))
    opened(app, "label", found)
    facts = "24 documents can change the result. 22 queries are not in every ranking"
    assert any(facts in each.value for each in app.caption)
    app.button(key="labelling.start").click().run()
    assert any("22 queries are not in every ranking" in each.value for each in app.caption)
    assert any("the result comes with the last label" in each.value for each in app.caption)


@pytest.mark.parametrize(
    ("title", "shown"), [("T", "(no text)"), ("", "(no title and no text; its id is q")]
)
def test_documents_without_a_text_are_said_and_can_be_labelled(app, workspace, title, shown):
    found = kept(workspace, _run([*reversed(range(DOCS))]), text=" ", title=title)
    opened(app, "label", found)
    said = "144 of them have neither title nor text"
    assert any(said in each.value for each in app.caption) == (not title)
    app.button(key="labelling.start").click().run()
    app.text_input(key="labelling.who").set_value("Ann").run()
    assert shown in card(app)


@pytest.mark.parametrize("begun", [False, True])
def test_a_read_only_workspace_shows_the_plan_and_takes_no_label(
    app, workspace, unlabelled, monkeypatch, begun
):
    if begun:
        opened(app, "label", unlabelled)
        app.button(key="labelling.start").click().run()
    monkeypatch.setenv("RANKDASH_READ_ONLY", "1")
    server.workspace.cache_clear()
    opened(app, "label", unlabelled)
    assert any("This workspace is read-only" in each.value for each in app.caption)
    assert not app.button and not app.text_input and not app.error
    assert bool([each for each in app.main.markdown if "turned" in str(each.value)]) == begun


@pytest.mark.parametrize("changes", [{"top": 7.0}, {"metric": "ndcg@10"}, {"mode": "other"}])
def test_a_plan_that_this_version_cannot_follow_has_ended(label, workspace, unlabelled, changes):
    press(label, "grade.1")
    last = LabelPlans(workspace).newest(unlabelled)
    LabelPlans(workspace).begin(unlabelled, {**last.settings, **changes}, "")
    label.run()
    assert not label.exception
    assert any("The last labelling plan has ended" in each.value for each in label.info)
    assert any("1 has a label." in each.value for each in label.caption)
    assert [each for each in label.button if each.key == "labelling.start"]


def test_labels_of_an_hour_ago_and_a_window_left_open_lose_nothing(label, workspace, unlabelled):
    """Another person labels the document that was left open; the key then is a second opinion."""
    found = label_plan.current(unlabelled)
    first = found.pair(int(found.plan.order[0]))
    LabelPlans(workspace).take(found.kept.id, [first], "another", gone=lambda _owner: True)
    Corrections(workspace).correct(unlabelled, first, 0.0, "Bo")
    press(label, "grade.1")
    assert in_force(unlabelled) == {"Ann": 1.0, "Bo": 0.0}
    assert label_plan.current(unlabelled).answered.labels[found.plan.order[0]] == 0.5


def test_the_form_of_another_plan_offers_what_the_last_one_had(label, workspace, unlabelled):
    last = LabelPlans(workspace).newest(unlabelled)
    baseline, run = last.settings["systems"]
    settings = {
        **last.settings,
        "systems": (run, baseline),
        "metric": "precision@5",
        "mode": "random",
        "double": 0.2,
    }
    LabelPlans(workspace).begin(unlabelled, settings, "read first")
    label.run()
    begin_again(label, unlabelled, top=3)
    found = LabelPlans(workspace).newest(unlabelled)
    assert found.guidelines == "read first"
    changed = {
        "top": 3.0,
        "before": 1.0,
        "seed": found.settings["seed"],
        "systems": [run, baseline],
    }
    assert found.settings == settings | changed


# That no rank foretells.
GRADES = (np.random.default_rng(3).random(QUERIES * DOCS) < 0.4).astype(float).tolist()


def _judge(workspace, dataset_id, name, top=3, *, graded=True):
    """A judge that gave every pair of the first ten of both rankings the grade of its document."""
    judges, owner = StoredJudges(workspace), Owner()
    pairs = [(f"q{query}", f"q{query}d{doc}") for query in range(QUERIES) for doc in range(DOCS)]
    judge_id = judges.submit(
        dataset_id=dataset_id, name=name, model="tiny", template="t", settings={"top": top},
        top=top, systems=["a", "b"], depth=10, pairs=pairs,
    )  # fmt: skip
    if graded:
        judges.claim(owner)
        said = {"reason": "secret reason", "error": "", "kind": "", "answers": "[]"}
        judges.keep(
            judge_id,
            owner,
            [
                {**said, "query_id": query, "doc_id": doc, "grade": float(GRADES[n])}
                for n, (query, doc) in enumerate(pairs)
            ],
            {},
        )
        judges.finish(judge_id, owner, "done")
    return judge_id


def test_a_judge_is_the_guess_of_a_plan_and_is_never_shown_beside_a_document(
    app, unlabelled, workspace, monkeypatch
):
    monkeypatch.setattr(label_keys, "UNREAD_SECONDS", 0.0)
    monkeypatch.setattr(plan_form.secrets, "randbits", lambda _bits: 7)
    _judge(workspace, unlabelled, "Other scale", top=3)
    judge_id = _judge(workspace, unlabelled, "Judge **A**", top=1)
    _judge(workspace, unlabelled, "Not run", top=1, graded=False)
    opened(app, "label", unlabelled)
    (choice,) = [each for each in app.selectbox if each.label == "Judge"]
    assert [each.partition(" · ")[0] for each in choice.options] == ["none", "Judge **A**"]
    choice.set_value(judge_id).run()
    app.button(key="labelling.start").click().run()
    app.text_input(key="labelling.who").set_value("Ann").run()
    labelling = label_plan.current(unlabelled)
    assert labelling.settings.judge == judge_id
    name, grades = labelling.judge
    assert (name, set(grades)) == ("Judge **A**", {0.0, 1.0})
    places = [map(int, doc.removeprefix("q").split("d")) for doc in labelling.plan.pool.doc_ids]
    assert grades.tolist() == [GRADES[query * DOCS + doc] for query, doc in places]
    drawn = " ".join(str(each.value) for kind in ("markdown", "caption", "text") for each in
                     getattr(app, kind))  # fmt: skip
    assert "secret reason" not in drawn
    assert "Judge" not in drawn
    # People label as the judge did, so that it saves labels.
    order = labelling.plan.order
    for place in order[:100].tolist():
        pair = labelling.pair(place)
        Corrections(workspace).correct(unlabelled, pair, float(grades[place]), "Ann")
    app.run()
    assert not app.exception
    found = label_plan.current(unlabelled).status
    assert found.saved > 0
    said = " ".join(each.value for each in app.caption)
    assert f"The judge Judge \\*\\*A\\*\\* has saved about {found.saved} labels so far" in said
    StoredJudges(workspace).delete(judge_id)
    app.run()
    assert label_plan.current(unlabelled).judge is None


def test_a_judge_of_another_scale_is_named_by_it(app, unlabelled, workspace):
    hint = "the highest grade is that of the judge: 3."
    opened(app, "label", unlabelled)
    assert not [each for each in app.caption if hint in each.value]
    _judge(workspace, unlabelled, "Graded", top=3)
    app.run()
    assert not app.exception
    assert [each for each in app.caption if hint in each.value]
    assert not [each for each in app.selectbox if each.label == "Judge"]


@pytest.fixture
def conclusive(label, workspace, unlabelled):
    """The page with 60 of the 144 labels, which are conclusive."""
    answer(label, workspace, unlabelled, 60)
    return label


def texts(app) -> str:
    return " ".join(
        str(each.value) for kind in ("markdown", "caption") for each in app.main.get(kind)
    )


def links(app) -> list[str]:
    return [each.proto.label for each in app.main.get("page_link")]


def test_a_conclusive_result_leads_to_the_verdict_and_the_report(conclusive):
    assert {"See the verdict", "Make the report"} <= {*links(conclusive)}
    assert "more labels do not take it back" in texts(conclusive)
    conclusive.button(key="labelling.on").click().run()
    assert "more labels do not take it back" not in texts(conclusive)
    # Who labels on has the next document.
    assert card(conclusive)


def test_before_the_start_the_page_says_how_many_labels_and_why_these(app, unlabelled):
    opened(app, "label", unlabelled)
    assert "At most 144 labels, about 24 min at 10 seconds each." in texts(app)
    assert "those more often whose ranks differ most" in texts(app)


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("weight", "half of the plans were conclusive after 177 to 423 labels"),
        ("random", "half of the plans were conclusive after 299 to 898 labels"),
        ("query", "At most 1,600 labels"),
    ],
)
def test_the_forecast_is_what_was_measured(app, workspace, mode, said):
    queries = range(160)
    files = {
        "queries.jsonl": "".join(f'{{"_id": "q{n}", "text": "a"}}\n' for n in queries).encode(),
        "initial.trec": _run(range(10), queries),
        "turned.trec": _run([*reversed(range(10))], queries),
    }
    loaded = load([Source(name, content) for name, content in files.items()], name="Large")
    workspace.save_dataset(loaded.dataset, report_json=loaded.report.to_json())
    for run in loaded.runs:
        workspace.save_run(run)
    opened(app, "label", loaded.dataset.id)
    if mode != "weight":
        app.selectbox(key="labelling.mode").set_value(mode).run()
    assert said in texts(app)
    if mode == "weight":
        assert "nine in ten after 256 to 684" in texts(app)
        assert "can take all 1,600." in texts(app)


def test_what_is_fully_labelled_says_so_and_leads_to_overview(app, stored):
    opened(app, "label", stored)
    assert [each.value for each in app.main.success] == [
        "All documents that can change the result have a label."
    ]
    assert "Overview" in links(app)
    assert not [each for each in app.button if each.key == "labelling.start"]


def test_the_best_system_is_set_against_the_baseline_to_begin_with(app, workspace, stored):
    [row] = workspace.runs(stored)
    worst = [
        (f"q{q}", [f"d{d}" for d in range(4) if d != q % 4], [3.0, 2.0, 1.0]) for q in range(16)
    ]
    workspace.save_run(run_from_ranking("worst", stored, Ranking.from_lists(worst), "worst.trec"))
    opened(app, "label", stored)
    assert app.selectbox(key="labelling.baseline").value == "first-stage"
    assert app.multiselect(key="labelling.challengers.first-stage").value == [row.id]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("page", ["overview", "queries", "cost", "report", "history"])
def test_every_page_shows_the_estimate_of_sampled_labels_and_no_mean(
    conclusive, unlabelled, page, lang
):
    opened(conclusive, page, unlabelled, lang)
    shown = texts(conclusive)
    assert ("Relative to First stage: " in shown) == (lang == "en")
    assert ("**下一步：** 停止" in shown) == (lang == "zh")
    assert not conclusive.metric
    if lang == "en":
        ways = {"overview": "See the verdict", "cost": "Cost & ROI", "report": "Make the report"}
        offered = {*links(conclusive)}
        # A page does not lead to itself.
        assert {*ways.values()} - {ways.get(page)} <= offered and "Label on" in offered
        assert ways.get(page) not in offered
        assert "Next step" in shown
        assert "means, counts of queries and rank shifts" in shown
        assert "The result is by DCG@10, a sum over documents" in shown


@pytest.mark.parametrize("page", ["overview", "queries", "rank_shifts", "cost", "report"])
def test_the_head_of_a_page_names_the_metric_of_the_result(conclusive, unlabelled, page):
    opened(conclusive, page, unlabelled)
    [head] = [each.value for each in conclusive.main.caption if each.value.startswith("Two · ")]
    assert head.split(" · ")[2] == "DCG@10"
    assert [each.value for each in conclusive.sidebar.caption if "in use" in each.value] == [
        "Not in use: the labels are a sample, and the result is by DCG@10."
    ]


def test_data_counts_the_labels_that_were_given_and_calls_them_a_sample(conclusive, unlabelled):
    opened(conclusive, "data", unlabelled)
    said = "60 labels, a sample of the 144 documents that can change the result"
    shown = texts(conclusive)
    assert said in shown and f"**{said}**" in shown
    assert "12 with labels" in shown
    assert "See the verdict" in links(conclusive)
    assert not conclusive.main.error and not conclusive.main.warning and not conclusive.main.info
    # To reverse labels is offered for those of files.
    assert not [each for each in conclusive.checkbox if each.key == "labels.one_is_best"]


def test_the_report_counts_the_labels_that_were_given(conclusive, unlabelled, monkeypatch):
    made = []
    monkeypatch.setattr(report_view, "partial", lambda _html, *of: made.append(of) or b"")
    opened(conclusive, "report", unlabelled)
    page = report.html(*made[-1]).decode()
    assert "60 labels, a sample of the 144 documents that can change the result" in page
    assert "There are no labels yet" not in page and "No labels yet" not in page
    [queries] = re.findall(r"Queries with labels</td>\s*<td[^>]*>(\d+)<", page)
    assert queries == "12"


def test_no_verdict_is_offered_before_there_is_one(label, unlabelled):
    press(label, "grade.1")
    opened(label, "overview", unlabelled)
    assert "See the verdict" not in links(label)
    opened(label, "report", unlabelled)
    assert "See the verdict" not in links(label) and "Label documents" in links(label)


def test_cost_and_report_say_once_that_it_does_not_pay_and_report_the_estimate_alone(
    conclusive, unlabelled
):
    opened(conclusive, "cost", unlabelled)
    assert texts(conclusive).count("does not pay at any price") == 1
    assert "estimated from 60 labels. Prices and assumptions" in texts(conclusive)
    opened(conclusive, "report", unlabelled)
    shown = texts(conclusive)
    assert "does not pay at any price" in shown and "Does not pay off." in shown
    assert "Break-even only" not in shown
    enabled = " ".join(str(each.key) for each in conclusive.checkbox if not each.disabled)
    assert "section.decision" in enabled
    for section in ("verdict", "systems", "queries", "reasons"):
        assert f"section.{section}" not in enabled


def test_queries_lists_the_labelled_ones(conclusive, unlabelled):
    opened(conclusive, "queries", unlabelled)
    (table,) = [each.value for each in conclusive.main.dataframe]
    assert table["labelled documents"].sum() == 60
    assert (table["documents that can change the result"] == DOCS).all()


def test_rank_shifts_counts_all_documents_while_labels_are_a_sample(conclusive, unlabelled):
    opened(conclusive, "rank_shifts", unlabelled)
    shown = texts(conclusive)
    assert "There are no complete labels, so all documents are counted" in shown
    assert "relevant documents, **" not in shown
