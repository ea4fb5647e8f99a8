"""The page Label as a person uses it: keys, names, notes, pauses, and plans that are replaced."""

import inspect
import io

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.labelling.answers import labels_table
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.store.jobs.judges import StoredJudges
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.label_plans import LabelPlans
from rankdash.ui.labelling import label_files, label_keys, plan_form
from rankdash.ui.state import label_plan
from tests.ui.labelling.test_label_texts import GRADES, add_judge
from tests.ui.labelling.two_rankings import DOCS, begin, pairs, take_in, two_rankings
from tests.ui.sessions import page, said
from tests.ui.test_page_texts import opened

HOSTILE = "<script>alert(1)</script> **bold** :red[x]"
ANN = {"labelling.name": "Ann"}


@pytest.fixture
def unlabelled(workspace, monkeypatch):
    monkeypatch.setattr(label_keys, "UNREAD_SECONDS", 0.0)
    monkeypatch.setattr(plan_form.secrets, "randbits", lambda _bits: 7)
    return two_rankings(workspace, text=f"{HOSTILE} question")


@pytest.fixture
def label(workspace, unlabelled):
    """The page with a plan begun by Ann, whose keys count at once."""
    begin(workspace, unlabelled)
    return page("label", chosen={"data": unlabelled}, state=ANN)


def key_of(app, name):
    """A key of the card that is shown, by the first part of its name."""
    [found] = [each for each in app.button if str(each.key).startswith(f"labelling.{name}")]
    return found


def press(app, *names):
    for name in names:
        key_of(app, name).click().run()
        assert not app.exception
    return app


def card(app):
    [found] = [str(each.value) for each in app.get("html") if "rd-query" in str(each.value)]
    return found.partition("</style>")[2]


def call(app, who):
    """Another person sits down at the window."""
    return app.text_input(key="labelling.who").set_value(who).run()


def highlighted(app):
    return [each.label for each in app.button if each.proto.type == "primary"]


def in_force(dataset_id):
    """Person → label, of those that count."""
    latest = label_plan.current(dataset_id).answered.latest
    return dict(zip(latest["rater"], latest["label"], strict=True))


def test_a_card_tells_no_system_rank_or_score(label):
    shown = card(label)
    assert "T" in shown and "&lt;script&gt;" in shown and "<script>" not in shown
    for told in ("turned", "first stage", "First stage", "rank", "score", "initial"):
        assert told not in shown
    # The names of the keys are in the page's source.
    assert not any("d1" in str(each.key) or "q1" in str(each.key) for each in label.button)


def test_keys_save_labels_and_back_takes_them_back_one_by_one(label, workspace, unlabelled):
    cards, layer = [], Corrections(workspace)
    for key, kept in (("grade.1", 1.0), ("grade.0", 0.0), ("unsure", None)):
        cards.append(card(label))
        press(label, key)
        assert card(label) != cards[-1]
        assert (layer.log(unlabelled)[-1].label, layer.log(unlabelled)[-1].who) == (kept, "Ann")
    found = label_plan.current(unlabelled)
    assert found.answered.cannot_tell.nonzero()[0].tolist() == [found.plan.order[2]]
    table = labels_table(found.plan, found.answered).sort_values("draw")
    assert table["label"].tolist() == [1.0, 0.0, "cannot tell"]
    assert (table["draw"].tolist(), table["rater"].tolist()) == ([1, 2, 3], ["Ann"] * 3)
    np.testing.assert_allclose(table["probability"], found.plan.probabilities[:3], rtol=1e-12)
    # A reload is another window.
    again = page("label", chosen={"data": unlabelled}, state=ANN)
    for shown, was in zip(reversed(cards), ([], ["not relevant"], ["relevant"]), strict=True):
        press(again, "back")
        assert card(again) == shown and highlighted(again) == was
        # The card that is shown again is in nobody else's hands.
        found = label_plan.current(unlabelled)
        pair = found.pair(int(found.plan.order[cards.index(shown)]))
        assert LabelPlans(workspace).take(found.kept.id, [pair], "another window") is None
    assert layer.all(unlabelled) == []
    call(again, "Bo")
    assert card(again) == cards[0] and not highlighted(again)


@pytest.mark.parametrize(
    ("steps", "labels"),
    [
        # Ann's keys; others label the same document elsewhere.
        ("Bo=1 grade.0 back", {"Bo": 1}),
        ("grade.1 Bo=0 back", {"Bo": 0}),
        ("grade.1 Bo=0 back grade.1", {"Ann": 1, "Bo": 0}),
        ("grade.1 Bo=0 Ann=0 back", {"Ann": 1, "Bo": 0}),
        ("grade.1 Bo=0 Ann=0 back back", {"Bo": 0}),
        # A window that was left open: a second opinion.
        ("Bo=0 grade.1", {"Ann": 1, "Bo": 0}),
    ],
)
def test_back_takes_ones_own_last_label_back_and_no_other(
    label, workspace, unlabelled, steps, labels
):
    [first, *_] = pairs(unlabelled)
    for step in steps.split():
        who, _, grade = step.partition("=")
        if grade:
            Corrections(workspace).correct(unlabelled, first, float(grade), who)
            continue
        press(label, who)
    assert in_force(unlabelled) == labels
    place = label_plan.current(unlabelled).plan.order[0]
    mean = sum(labels.values()) / len(labels)
    assert label_plan.current(unlabelled).answered.labels[place] == mean


def test_keys_that_cannot_count_save_nothing_and_say_why(label, workspace, unlabelled, monkeypatch):
    first = card(label)

    def refused(key):
        press(label, key)
        assert Corrections(workspace).log(unlabelled) == [] and card(label) == first
        return [each.value for each in label.toast]

    assert refused("unseen.2") == ["Not saved: 2 is not a grade. The grades are 0 to 1."]
    with monkeypatch.context() as patch:
        patch.setattr(label_keys, "UNREAD_SECONDS", 1e9)
        assert refused("grade.1") == [
            "Not saved: the key came before the document could be read. Press it again."
        ]
        # A callback must draw nothing.
        drawn = []
        patch.setattr(label_keys.st, "toast", lambda *_a, **_k: drawn.append(in_callback()))
        press(label, "grade.1")
        assert drawn == [False]
    press(label, "grade.1")
    assert not label.toast and len(Corrections(workspace).log(unlabelled)) == 1


def in_callback():
    return any("call_callback" in frame.function for frame in inspect.stack())


def test_a_name_is_asked_for_in_each_window(workspace, unlabelled):
    begin(workspace, unlabelled)
    app = page("label", chosen={"data": unlabelled})
    for name in ("", "**<b>Eve</b>**"):
        assert not [each for each in app.button if "grade" in str(each.key)]
        call(app, name)
    press(app, "grade.1")
    assert not any("<b>Eve" in str(each.value) for each in app.get("html"))
    other = page("label", chosen={"data": unlabelled})
    assert not [each for each in other.button if "grade" in str(each.key)]
    press(other, "same", "grade.1")
    assert [each.who for each in Corrections(workspace).log(unlabelled)] == ["**<b>Eve</b>**"] * 2


def note_field(app):
    [found] = [each for each in app.text_input if str(each.key).startswith("labelling.note.")]
    return found


def test_a_note_comes_back_with_its_document_and_is_in_the_file(label, workspace, unlabelled):
    first, name = card(label), note_field(label).key
    note_field(label).set_value("two  questions, = one answer").run()
    # Another field: the one that was typed in would take the keys.
    assert note_field(label).key != name
    press(label, "grade.1")
    assert note_field(label).value == ""
    press(label, "back")
    assert card(label) == first and note_field(label).value == "two questions, = one answer"
    call(label, "Bo")
    assert note_field(label).value == ""
    note_field(label).set_value("=no idea").run()
    press(label, "unsure")
    table = pd.read_csv(io.BytesIO(label_files.table_bytes(unlabelled)))
    assert list(table.columns)[:3] == ["query_id", "doc_id", "label"]
    assert table["label"].tolist() == ["cannot tell"]
    assert table["note"].tolist() == ["Ann: two questions, = one answer; Bo: =no idea"]
    # The file has what was labelled after its button was drawn, and notes without a label.
    take_in(workspace, unlabelled, "Bo", {pairs(unlabelled)[5]: 1.0})
    note_field(label).set_value("odd").run()
    table = pd.read_csv(io.BytesIO(label_files.table_bytes(unlabelled)))
    assert table["label"].fillna("").tolist() == ["cannot tell", "1.0", ""]


def test_a_pause_hides_the_card_frees_it_for_others_and_counts_for_no_label(
    label, workspace, unlabelled
):
    press(label, "grade.1")
    shown = card(label)
    press(label, "pause")
    assert not [each for each in label.get("html") if "rd-query" in str(each.value)]
    found, plans = label_plan.current(unlabelled), LabelPlans(workspace)
    second = pairs(unlabelled)[1]
    assert plans.take(found.kept.id, [second], "another window") == second
    plans.take(found.kept.id, [], "another window")
    press(label, "continue")
    assert card(label) == shown
    assert list(label_plan.current(unlabelled).resumed) == ["Ann"]


def test_the_last_document_is_labelled_once_another_window_lets_go_of_it(
    label, workspace, unlabelled
):
    plan, [*others, last] = label_plan.current(unlabelled).kept.id, pairs(unlabelled)
    take_in(workspace, unlabelled, "Ann", dict.fromkeys(others, 0.0))
    LabelPlans(workspace).take(plan, [last], "another window")
    label.run()
    LabelPlans(workspace).take(plan, [], "another window")
    press(label, "again", "grade.0")
    assert label_plan.current(unlabelled).complete
    assert opened("overview", unlabelled).metric, "with all labels there are means"


# Plans.


def begin_again(app, dataset_id, **chosen):
    """Open the form of a new plan, choose there, and begin."""
    app.session_state[f"label.another.{label_plan.current(dataset_id).kept.id}"] = True
    app.run()
    for key, value in chosen.items():
        fields = (*app.text_area, *app.selectbox, *app.radio)
        [field] = [each for each in fields if str(each.key).startswith(f"labelling.{key}")]
        field.set_value(value).run()
    press(app, "start")
    assert not [each for each in app.button if each.key == "labelling.start"]
    return label_plan.current(dataset_id)


def test_a_plan_is_begun_and_the_next_one_offers_what_the_last_had(workspace, unlabelled):
    app = page("label", chosen={"data": unlabelled}, state=ANN)
    press(app, "start")
    [run] = workspace.runs(unlabelled)
    plans = LabelPlans(workspace)
    first = plans.newest(unlabelled).settings
    assert (first["systems"], first["metric"], first["seed"]) == (["first-stage", run.id],
                                                                  "dcg@10", 7)  # fmt: skip
    settings = {**first, "systems": (run.id, "first-stage"), "metric": "precision@5"}
    settings |= {"mode": "random", "double": 0.2}
    plans.begin(unlabelled, settings, "read first")
    app.run()
    begin_again(app, unlabelled, top=3)
    found = plans.newest(unlabelled)
    changed = {"top": 3.0, "before": 1.0, "systems": [run.id, "first-stage"]}
    assert (found.guidelines, found.settings) == ("read first", settings | changed)


def test_a_changed_scale_is_asked_about_and_labels_on_it_count(label, workspace, unlabelled):
    press(label, "grade.1", "grade.0")
    found = begin_again(label, unlabelled, top=3)
    assert (found.settings.top, found.settings.before, found.settings.keep) == (3.0, 1.0, True)
    assert np.nansum(found.plan.known) == 1.0 and np.isfinite(found.plan.known).sum() == 2
    press(label, "grade.3", "grade.1")
    found = begin_again(label, unlabelled, top=1)
    # The 3 is on no scale up to 1: its document is drawn again.
    assert np.isfinite(found.plan.known).sum() == 3 and len(found.plan.order) == 141
    assert len(begin_again(label, unlabelled, top=2, keep=False).plan.order) == 144
    assert len(Corrections(workspace).all(unlabelled)) == 4


def test_a_key_for_a_plan_that_was_replaced_is_not_stored_and_that_is_said(
    label, workspace, unlabelled
):
    key = key_of(label, "grade.1")
    begin(workspace, unlabelled, top=3.0)
    key.click().run()
    assert not label.exception and Corrections(workspace).log(unlabelled) == []
    assert any("A new labelling plan was started" in each.value for each in label.warning)
    press(label, "grade.3")
    assert not label.warning and Corrections(workspace).log(unlabelled)[0].label == 3.0


def test_a_key_after_the_data_set_was_deleted_does_no_harm(workspace, unlabelled):
    begin(workspace, unlabelled)
    app = opened("label", unlabelled)
    call(app, "Ann")
    key = key_of(app, "grade.1")
    workspace.delete_dataset(unlabelled)
    key.click().run()
    assert not app.exception and not [each for each in app.button if "grade" in str(each.key)]


def test_all_documents_of_a_query_come_one_after_the_other(workspace, unlabelled):
    begin(workspace, unlabelled, mode="query")
    [*first, _, other] = pairs(unlabelled)[: DOCS + 1]
    take_in(workspace, unlabelled, "Ann", dict.fromkeys(first, 0.0))
    app = page("label", chosen={"data": unlabelled}, state=ANN)
    assert "document 12 of 12" in card(app)
    assert sum("rd-table" in str(each.value) for each in app.get("html")) == 1
    press(app, "grade.0")
    assert "document 1 of 12" in card(app) and other[0] != first[0][0]
    assert not any("rd-table" in str(each.value) for each in app.get("html"))


def test_a_judge_is_the_guess_of_a_plan_and_is_never_shown_beside_a_document(workspace, unlabelled):
    add_judge(workspace, unlabelled, "Other scale", top=3)
    judge_id = add_judge(workspace, unlabelled, "Judge **A**")
    app = page("label", chosen={"data": unlabelled}, state=ANN)
    app.selectbox(key="labelling.judge.1").set_value(judge_id).run()
    press(app, "start")
    labelling = label_plan.current(unlabelled)
    name, grades = labelling.judge
    assert (name, labelling.settings.judge) == ("Judge **A**", judge_id)
    places = [map(int, doc.removeprefix("q").split("d")) for doc in labelling.plan.pool.doc_ids]
    assert grades.tolist() == [GRADES[query * DOCS + doc] for query, doc in places]
    assert "Judge" not in said(app)
    # People label as the judge did, so that it saves labels.
    order = labelling.plan.order[:100].tolist()
    given = {labelling.pair(place): float(grades[place]) for place in order}
    take_in(workspace, unlabelled, "Ann", given)
    app.run()
    saved = label_plan.current(unlabelled).status.saved
    assert saved > 0 and f"The judge Judge **A** has saved about {saved} labels so far" in said(app)
    StoredJudges(workspace).delete(judge_id)
    app.run()
    assert label_plan.current(unlabelled).judge is None


def test_the_best_system_is_set_against_the_baseline_to_begin_with(workspace, stored):
    [row] = workspace.runs(stored)
    worst = [
        (f"q{q}", [f"d{d}" for d in range(4) if d != q % 4], [3.0, 2.0, 1.0]) for q in range(16)
    ]
    workspace.save_run(run_from_ranking("worst", stored, Ranking.from_lists(worst), "worst.trec"))
    app = page("label", chosen={"data": stored})
    assert app.selectbox(key="labelling.baseline").value == "first-stage"
    assert app.multiselect(key="labelling.challengers.first-stage").value == [row.id]
