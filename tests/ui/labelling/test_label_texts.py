"""Texts of the page Label: the form of a plan, a plan at each stage, and the other pages while the
labels are a sample."""

import re

import numpy as np
import pandas as pd
import pytest

from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.notes import LabelPlans
from rankdash.features.report import page as report_page
from rankdash.features.report import report as report_report
from rankdash.kit.widgets import stored
from rankdash.kit.widgets.labels import plan
from tests.approved import masked, table
from tests.ui.conftest import opened_at
from tests.ui.labelling.two_rankings import (
    DOCS,
    QUERIES,
    answer,
    begin,
    pairs,
    take_in,
    trec,
    two_rankings,
)
from tests.ui.page_text import page_text
from tests.ui.parts import LANGUAGES, unlike
from tests.ui.sessions import page
from tests.ui.test_page_texts import opened

TURNED = [*reversed(range(DOCS))]
# Grades that do not depend on the rank.
GRADES = (np.random.default_rng(3).random(QUERIES * DOCS) < 0.4).astype(float).tolist()
CHANGING = {
    "moment": r"[A-Z][a-z]{2} \d+, \d{4}, [\d:]+\s[AP]M|\d{4}年\d+月\d+日 ?[\d:]+",
    "id": r"\b[0-9a-f]{16}\b",
}


def add_judge(workspace, dataset_id, name, top=1):
    """Store a judge with a grade for each pair."""
    rows = [(f"q{query}", f"q{query}d{doc}") for query in range(QUERIES) for doc in range(DOCS)]
    grades = pd.DataFrame(rows, columns=["query_id", "doc_id"]).assign(grade=GRADES, error="")
    return StoredJudges(workspace).add(dataset_id, name, "tiny", top, grades)


class Told:
    """Texts of the page for Ann: the first case in each language, then the differences from it."""

    def __init__(self, why, dataset_id):
        self.texts = {lang: {why: self._text(lang, dataset_id)} for lang in LANGUAGES}
        self._usual = why

    def add(self, why, dataset_id, **state):
        texts = self.texts["en"]
        texts[why] = unlike(texts[self._usual], self._text("en", dataset_id, **state))

    def _text(self, lang, dataset_id, another=False, **state):
        usual = {"labelling.name": "Ann", "label.people": True, "label.files": True}
        if found := plan.current(dataset_id):
            usual[f"label.another.{found.kept.id}"] = another
        app = page("label", lang=lang, chosen={"data": dataset_id}, state=usual | state)
        return masked(page_text(app), **CHANGING)


def test_the_form_of_a_plan(workspace, approved):
    usual = two_rankings(workspace)
    told = Told("the form", usual)
    for why, changed in {
        "the rankings are the same": {"second": trec(range(DOCS))},
        "they have no query in common": {"second": trec(TURNED, range(QUERIES, 2 * QUERIES))},
        "they share two queries": {"second": trec(TURNED, range(10, 2 * QUERIES))},
        "no text": {"text": " "},
        "neither text nor title": {"text": " ", "title": ""},
    }.items():
        told.add(why, two_rankings(workspace, **{"text": why} | changed))
    graded = (
        f"q{query}\tq{query}d{doc}\t{int(doc >= 9)}\n"
        for query in range(QUERIES)
        for doc in range(DOCS)
    )
    told.add("all labels are there", two_rankings(workspace, labels="".join(graded)))
    told.add("the first three", usual, **{"labelling.depth.5": 3})
    told.add("nothing to compare", usual, **{"labelling.challengers.first-stage": []})
    large = two_rankings(workspace, queries=160, docs=10)
    for mode in ("weight", "random", "query"):
        told.add(f"many documents: {mode}", large, **{"labelling.mode": mode})
    guess = {"labelling.judge.1": add_judge(workspace, large, "Judge B")}
    for mode in ("weight", "random"):
        told.add(f"many documents, a judge: {mode}", large, **guess, **{"labelling.mode": mode})
    add_judge(workspace, usual, "Of another scale", top=3)
    told.add("a judge of another scale", usual)
    add_judge(workspace, usual, "Judge **A**")
    told.add("a judge", usual)
    for lang, texts in told.texts.items():
        approved(f"ui/label_form.{lang}", table(texts))


def test_a_plan_at_each_of_its_stages(workspace, approved, only_shown):
    data, plans = two_rankings(workspace), LabelPlans(workspace)
    begin(workspace, data)
    told = Told("begun", data)

    def give(who, label, *given):
        take_in(workspace, data, who, dict.fromkeys(given, label))

    told.add("without a name", data, **{"labelling.name": ""})
    told.add("paused", data, **{"labelling.paused": True})
    asked = pairs(data)
    give("Bo", 1.0, *asked[1:4])
    told.add("three labels wait for the open document", data)
    give("Ann", 0.0, *asked[:2])
    give("Bo", 3.0, asked[4])
    told.add("two people disagree, one label is above the scale", data)
    settings = {**plans.newest(data).settings, "top": 3.0, "before": 1.0}
    guidelines = "# What counts\n- **direct** <img src=x>\n![x](http://evil.example/x.png) :red[r]"
    plans.begin(data, settings, guidelines)
    for place, (ann, bo) in enumerate(((0.0, 1.0), (1.0, 1.0), (2.0, 3.0), (3.0, 1.0))):
        give("Ann", ann, pairs(data)[place])
        give("Bo", bo, pairs(data)[place])
    told.add("another scale on which labels count, guidelines", data)
    plans.begin(data, {**settings, "keep": False, "metric": "precision@5", "double": 0.2}, "")
    told.add("labels do not count; the form of another plan", data, another=True)
    begin(workspace, data, mode="query", keep=False)
    give("Ann", 1.0, *pairs(data)[:2])
    told.add("query by query", data)
    begin(workspace, data, keep=False)
    answer(workspace, data, 60)
    told.add("conclusive", data)
    told.add("who labels on", data, **{"labelling.goes_on": plans.newest(data).id})
    give("Ann", 0.0, *pairs(data)[60:-1])
    plans.take(plans.newest(data).id, pairs(data)[-1:], "another window")
    told.add("the last document is open elsewhere", data)
    give("Ann", 0.0, pairs(data)[-1])
    told.add("all labels", data)
    plans.begin(data, {**settings, "mode": "other"}, "")
    told.add("a plan of another version", data)
    lacking = two_rankings(workspace, trec(TURNED, range(10, 2 * QUERIES)), text=" ", title="")
    begin(workspace, lacking)
    told.add("two queries in common, no texts", lacking)
    begin(workspace, data)
    only_shown()
    told.add("read-only", data)
    for lang, texts in told.texts.items():
        approved(f"ui/label.{lang}", table(texts))


# Pages while the labels are a sample.


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """The id of a data set with 60 of the 144 labels, which are conclusive."""
    with opened_at(tmp_path_factory.mktemp("home")) as workspace:
        data = two_rankings(workspace)
        begin(workspace, data)
        answer(workspace, data, 60)
        yield data


def shown(name, data, lang="en"):
    [run] = stored.workspace().runs(data)
    usual = {"base": "first-stage", "system": run.id, "vs": run.id, "metric": "ndcg", "k": "10"}
    text = page_text(page(name, lang=lang, chosen={"data": data} | usual), charts=False)
    if name != "queries":
        # Tables and expanders are part of the texts of whole pages.
        text = re.sub(r"(?m)^ .*\n", "", text)
    return masked(text, **CHANGING)


@pytest.mark.parametrize(
    ("lang", "pages"),
    [
        (
            "en",
            ("overview", "queries", "rank_shifts", "cost", "policy", "report", "history", "data"),
        ),
        ("zh", ("overview",)),
    ],
)
def test_pages_show_the_estimate_and_no_mean(sampled, approved, lang, pages):
    """Only the differences of each page from the page without labels."""
    bare = two_rankings(stored.workspace(), text=f"no plan, {lang}")
    found = {name: unlike(shown(name, bare, lang), shown(name, sampled, lang)) for name in pages}
    begin(stored.workspace(), bare)
    answer(stored.workspace(), bare, 1)
    early, conclusive = shown("history", bare, lang), shown("history", sampled, lang)
    found["history while it is too early"] = unlike(conclusive, early)
    approved(f"ui/sampled.{lang}", table(found))


def test_the_sidebar_and_the_report_name_the_sample(sampled, monkeypatch):
    sidebar = [each.value for each in opened("overview", sampled).sidebar.caption]
    assert "Not used: the labels are a sample, so the result is in DCG@10." in sidebar
    made = []
    monkeypatch.setattr(report_page, "partial", lambda _html, *of: made.append(of) or b"")
    shown("report", sampled)
    text = report_report.html(*made[-1]).decode()
    assert "60 labels, a sample of the 144 documents that can change the result" in text
    assert "There are no labels yet" not in text and "No labels yet" not in text
    assert re.findall(r"Queries with labels</td>\s*<td[^>]*>(\d+)<", text) == ["12"]
