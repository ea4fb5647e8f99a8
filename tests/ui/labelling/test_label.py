"""Actions on the page Label: keys, names, notes, pauses, and replaced plans."""

import inspect
import io
import json

import numpy as np
import pandas as pd
import pytest

from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.notes import Corrections, LabelPlans
from rankdash.features.label import page as label_page
from rankdash.features.label import page_plan
from rankdash.kit.widgets.labels import plan as labels_plan
from rankdash.kit.widgets.labels import unjudged
from tests.approved import masked
from tests.stored import keep_lists
from tests.ui.labelling.test_label_texts import CHANGING, GRADES, add_judge
from tests.ui.labelling.two_rankings import DOCS, QUERIES, begin, pairs, take_in, two_rankings
from tests.ui.lives import lives, play
from tests.ui.page_text import page_text
from tests.ui.parts import component
from tests.ui.sessions import page, said, whole
from tests.ui.test_page_texts import opened

HOSTILE = "<script>alert(1)</script> **bold** :red[x]"
ANN = {"labelling.name": "Ann"}


@pytest.fixture
def unlabelled(workspace, monkeypatch):
    monkeypatch.setattr(label_page, "UNREAD_SECONDS", 0.0)
    monkeypatch.setattr(page_plan.secrets, "randbits", lambda _bits: 7)
    return two_rankings(workspace, text=f"{HOSTILE} question")


def key_of(app, name):
    """Return a button of the present card, by the first part of its name."""
    [found] = [each for each in app.button if str(each.key).startswith(f"labelling.{name}")]
    return found


def press(app, name):
    key_of(app, name).click().run()
    assert not app.exception


class Acts:
    """Acts on the page Label, and in other windows."""

    def __init__(self, workspace, dataset_id, patch):
        self.workspace, self.data, self.patch, self.app = workspace, dataset_id, patch, None

    def open(self, who=""):
        self.app = page("label", chosen={"data": self.data}, state={"labelling.name": who})
        return self.app

    def begin(self, *changes):
        """Begin a plan with other settings; "while KEY": this key is clicked before it is shown."""
        changes, _, key = " ".join(changes).partition("while ")
        pairs = (each.split("=") for each in changes.split())
        key = key and key_of(self.app, key)
        plain = ("metric", "mode")
        made = {name: text if name in plain else json.loads(text) for name, text in pairs}
        begin(self.workspace, self.data, **made)
        return key.click().run() if key else None

    def give(self, who, label, *places):
        """Label documents of the plan in another window, by their positions in its order."""
        asked = pairs(self.data)
        given = {asked[int(place)]: float(label) for place in places or ("0",)}
        for pair, grade in given.items():
            Corrections(self.workspace).correct(self.data, pair, grade, who)

    def elsewhere(self, what):
        """Reserve in another window one document, none, or the last one without a label."""
        plan, asked = labels_plan.current(self.data).kept.id, pairs(self.data)
        if what == "last":
            take_in(self.workspace, self.data, "Ann", dict.fromkeys(asked[:-1], 0.0))
        wanted = {"last": asked[-1:], "second": asked[1:2], "none": []}[what]
        taken = LabelPlans(self.workspace).take(plan, wanted, "another window")
        assert taken == (wanted[0] if wanted else None)

    def impatient(self):
        self.patch.setattr(label_page, "UNREAD_SECONDS", 1e9)

    def patient(self):
        self.patch.setattr(label_page, "UNREAD_SECONDS", 0.0)

    def another(self):
        """Open the form of another plan."""
        self.app.session_state[f"label.another.{labels_plan.current(self.data).kept.id}"] = True

    def file(self):
        """Return the labels, notes and draws of the file."""
        if not labels_plan.current(self.data):
            return "no plan"
        written = io.BytesIO(unjudged.table_bytes(self.data))
        table = pd.read_csv(written, keep_default_na=False, dtype=str)
        table["probability"] = table["probability"].str[:8]
        return table.drop(columns=["query_id", "query", "document", "time"], errors="ignore").tail(
            3
        )

    def plan(self):
        found = labels_plan.current(self.data)
        if not found:
            return "none"
        told = {**found.settings.__dict__, "known": int(np.isfinite(found.plan.known).sum())}
        return told | {"drawn": len(found.plan.order), "resumed": [*found.resumed]}


MASKED = CHANGING | {"seconds": r"[\d.]+(?= s per label)"}


@pytest.mark.parametrize("life", lives("label"))
def test_a_life_of_the_page(life, approved, workspace, unlabelled, monkeypatch):
    acts = Acts(workspace, unlabelled, monkeypatch)

    def highlighted():
        keys = acts.app.button if acts.app else []
        return [each.label for each in keys if each.proto.type == "primary"]

    every = {name: getattr(acts, name) for name in dir(acts) if name[0] != "_"}
    facts = {"file": acts.file, "plan": acts.plan, "highlighted": highlighted}
    approved(life, play(life, every, facts, lambda text: masked(text, **MASKED)))


def test_a_card_tells_no_system_rank_or_score(workspace, unlabelled):
    begin(workspace, unlabelled)
    label = page("label", chosen={"data": unlabelled}, state=ANN)
    [found] = [str(each.value) for each in label.get("html") if "rd-query" in str(each.value)]
    shown = found.partition("</style>")[2]
    assert "T" in shown and "&lt;script&gt;" in shown and "<script>" not in shown
    for told in ("turned", "first stage", "First stage", "rank", "score", "initial"):
        assert told not in shown
    # The names of the keys are in the page's source.
    assert not any("d1" in str(each.key) or "q1" in str(each.key) for each in label.button)


def test_the_refusal_of_a_key_is_not_drawn_by_its_callback(workspace, unlabelled, monkeypatch):
    begin(workspace, unlabelled)
    app, drawn = page("label", chosen={"data": unlabelled}, state=ANN), []
    in_callback = lambda: any("call_callback" in each.function for each in inspect.stack())  # noqa: E731
    monkeypatch.setattr(label_page.st, "toast", lambda *_a, **_k: drawn.append(in_callback()))
    press(app, "unseen.2")
    assert drawn == [False]


def test_a_key_after_the_data_set_was_deleted_does_no_harm(workspace, unlabelled):
    begin(workspace, unlabelled)
    app = opened("label", unlabelled)
    app.text_input(key="labelling.who").set_value("Ann").run()
    key = key_of(app, "grade.1")
    workspace.delete_dataset(unlabelled)
    key.click().run()
    assert not app.exception and not [each for each in app.button if "grade" in str(each.key)]


def test_with_all_labels_there_are_means(workspace, unlabelled):
    begin(workspace, unlabelled)
    take_in(workspace, unlabelled, "Ann", dict.fromkeys(pairs(unlabelled), 0.0))
    assert labels_plan.current(unlabelled).complete
    assert component(opened("overview", unlabelled), "leaderboard")["rows"]


def test_beside_means_of_labels_that_came_with_the_data_there_is_no_estimate(workspace):
    """With a few open documents the estimate of a plan would contradict the verdict by means."""
    rows = [
        f"q{query}\tq{query}d{doc}\t{int(doc < 3)}\n"
        for query in range(QUERIES)
        for doc in range(DOCS)
    ]
    data = two_rankings(workspace, labels="".join(rows[2:]))
    begin(workspace, data)
    estimate = labels_plan.current(data).status.estimates[0]
    for name in ("overview", "queries", "report"):
        shown = page_text(opened(name, data))
        assert f"{estimate.known} of {estimate.pairs} labels" in shown
        assert "too early" not in shown and "Continue labelling" not in shown


def test_a_judge_is_the_guess_of_a_plan_and_is_never_shown_beside_a_document(workspace, unlabelled):
    add_judge(workspace, unlabelled, "Other scale", top=3)
    judge_id = add_judge(workspace, unlabelled, "Judge **A**")
    app = page("label", chosen={"data": unlabelled}, state=ANN)
    app.selectbox(key="labelling.judge.1").set_value(judge_id).run()
    press(app, "start")
    labelling = labels_plan.current(unlabelled)
    name, grades = labelling.judge
    assert (name, labelling.settings.judge) == ("Judge **A**", judge_id)
    places = [map(int, doc.removeprefix("q").split("d")) for doc in labelling.plan.pool.doc_ids]
    assert grades.tolist() == [GRADES[query * DOCS + doc] for query, doc in places]
    assert "Judge" not in said(app)
    # The human labels equal the grades, so the judge reduces the number of labels needed.
    order = labelling.plan.order[:100].tolist()
    given = {labelling.pair(place): float(grades[place]) for place in order}
    take_in(workspace, unlabelled, "Ann", given)
    app.run()
    saved = labels_plan.current(unlabelled).status.saved
    assert saved > 0 and f"The judge Judge **A** has saved about {saved} labels" in said(app)
    StoredJudges(workspace).delete(judge_id)
    app.run()
    assert labels_plan.current(unlabelled).judge is None


def test_the_best_system_is_set_against_the_baseline_to_begin_with(workspace, stored):
    [row] = workspace.runs(stored)
    worst = [
        (f"q{q}", [f"d{d}" for d in range(4) if d != q % 4], [3.0, 2.0, 1.0]) for q in range(16)
    ]
    workspace.save_run(run_from_ranking("worst", stored, Ranking.from_lists(worst), "worst.trec"))
    app = page("label", chosen={"data": stored})
    assert app.selectbox(key="labelling.baseline").value == "first-stage"
    assert app.multiselect(key="labelling.challengers.first-stage").value == [row.id]


def test_without_labels_the_leader_is_by_the_judge(workspace):
    data = two_rankings(workspace)
    [turned] = workspace.runs(data)
    docs, scores = range(DOCS), [float(DOCS - d) for d in range(DOCS)]
    lists = [(f"q{q}", [f"q{q}d{d}" for d in docs], scores) for q in range(QUERIES)]
    keep_lists(workspace, data, lists, "newest")
    last = [(f"q{q}", f"q{q}d{d}", float(d == DOCS - 1)) for q in range(QUERIES) for d in docs]
    grades = pd.DataFrame(last, columns=["query_id", "doc_id", "grade"]).assign(error="")
    StoredJudges(workspace).add(data, "Judge", "", 1, grades)
    app = page("label", chosen={"data": data})
    assert app.multiselect(key="labelling.challengers.first-stage").value == [turned.id]


@pytest.mark.parametrize(
    ("chosen", "metric"),
    [({}, "dcg@5"), ({"k": "10"}, "dcg@10"), ({"metric": "rbp", "k": "3"}, "rbp@3"),
     ({"metric": "ndcg", "k": "all"}, "dcg@5")],
)  # fmt: skip
def test_a_plan_has_the_cutoff_that_the_user_chose_or_five(workspace, unlabelled, chosen, metric):
    whole("label", data=unlabelled, **chosen).button(key="labelling.start").click().run()
    assert labels_plan.current(unlabelled).settings.metric == metric


def test_after_all_labels_within_a_cutoff_the_means_have_this_cutoff(workspace, unlabelled):
    assert opened("overview", unlabelled).select_slider[0].value == "10"
    begin(workspace, unlabelled, metric="dcg@5")
    take_in(workspace, unlabelled, "Ann", dict.fromkeys(pairs(unlabelled), 0.0))
    assert opened("overview", unlabelled).select_slider[0].value == "5"
    assert whole("overview", data=unlabelled, k="3").select_slider[0].value == "3"
