"""Corrected, imported and missing labels, as the pages show them."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import streamlit as st

from rankdash.core.data.dataset import Dataset
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.workspace.notes import Corrections, Notes
from rankdash.kit.widgets import address
from rankdash.kit.widgets import stored as widgets_stored
from rankdash.kit.widgets.labels import corrections as labels_corrections
from rankdash.kit.widgets.labels import unjudged as labels_unjudged
from tests.approved import table
from tests.stored import keep_lists, keep_rows
from tests.ui.parts import LANGUAGES, dataset_of, run_of, said, study_of

HEAD = "query_id,query,doc_id,document,label,score\n"
MADE = "2026-11-01T10:00:00+00:00"


# Conclusions that missing labels prevent.


def unjudged(labels: str, before: str, after: str, metric: str = "precision", **fields) -> Callable:
    """Return one query. labels: of documents a to d, "-" for none. before, after: their order."""
    rows = "".join(
        f"q,find,{doc},text,{label.replace('-', '')},{9 - before.index(doc)}\n"
        for doc, label in zip("abcd", labels, strict=True)
    )
    data = dataset_of(HEAD + rows + "other,x,a,text,1,1\n")
    run = run_of(data, "run", {"q": [*(after or "a")], "other": ["a"]})
    if not after:
        run = replace(run, queries=run.queries.assign(state="failed"))
    return partial(labels_unjudged.draw, study_of(data, run, metric=metric, cutoff=2, **fields))


OPEN = {
    "no missing label": unjudged("1100", "cabd", "abcd"),
    "settled already": unjudged("11-0", "cdab", "abcd", "ndcg"),
    "one label settles it": unjudged("10-0", "cdab", "abcd"),
    "two do": unjudged("10--", "cdab", "abcd"),
    "no difference": unjudged("1--0", "bacd", "cabd"),
    "every query failed": unjudged("1-00", "abcd", ""),
    "bounds of the metric": unjudged("1-00", "cbad", "abcd", "bpref"),
    "nothing is compared": unjudged("1-00", "cbad", "abcd", challengers=()),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_how_far_missing_labels_can_move_a_change(approved, workspace, language):
    def open_as(order: str, part: Callable) -> str:
        def draw() -> None:
            st.session_state.setdefault("unjudged.order", order)
            part()

        return said(draw, language)

    cases = {name: open_as("largest", part) for name, part in OPEN.items()}
    cases["in the order of draws"] = open_as("drawn", OPEN["one label settles it"])
    approved(f"ui/unjudged.{language}", table(cases))


# Corrections.


def deep_shop(workspace) -> str:
    """Return the id of a data set with one query with 30 documents, reversed in the run "turned".
    Labels: of the last document, and of one that is in no ranking."""
    rows = "".join(f"q1,how to,d{n},Returns {n},{'1' * (n == 29)},{30 - n}\n" for n in range(30))
    rows += "q1,how to,x,Text of x,0,\nq2,,d0,Returns 0,1,1\n"
    dataset_id = keep_rows(workspace, HEAD + rows, "Shop")
    turned = [f"d{n}" for n in range(29, -1, -1)]
    keep_lists(workspace, dataset_id, [("q1", turned, [*range(30, 0, -1)])], "turned")
    return dataset_id


shop = pytest.fixture(deep_shop, name="shop")


def study(dataset_id: str, cutoff: int | None = None) -> Study:
    systems = widgets_stored.systems(dataset_id)
    others = tuple(each for each in systems if each != FIRST_STAGE)
    data = widgets_stored.dataset(dataset_id)
    return Study(data, systems, FIRST_STAGE, others, dataset_id=dataset_id, cutoff=cutoff)


@pytest.mark.parametrize("language", LANGUAGES)
def test_corrections_are_listed_with_their_files(approved, workspace, shop, monkeypatch, language):
    blank = keep_rows(workspace, HEAD + "q 1,a,d 1,text,1,1\n", "Blanks")
    Notes(workspace).store(blank, "q 1", (), "a note")
    parts = {
        "of the data set": lambda: labels_corrections.draw(shop),
        "of a query": lambda: labels_corrections.draw(shop, "q1"),
        "of a query without any": lambda: labels_corrections.draw(shop, "q3"),
        "files": lambda: labels_corrections.exports(shop),
        "notes alone": lambda: labels_corrections.exports(blank),
    }
    cases = {"no files": said(parts["files"], language)}
    for pair, label in ((("q1", "d29"), None), (("q1", "d0"), 0.5), (("q2", "d0"), 0.0)):
        Corrections(workspace).correct(shop, pair, label, "Ann <b>")
    cases |= {name: said(draw, language) for name, draw in parts.items()}
    Corrections(workspace).correct(blank, ("q 1", "d 1"), 0.0, "")
    cases["ids with blanks"] = said(parts["notes alone"], language)
    monkeypatch.setattr(labels_corrections, "read_only", lambda: True)
    cases["read-only"] = said(parts["of a query"], language)
    moments = r"(?<=\| )[^|\n]*\d\d:\d\d[^|\n]*$"
    approved(f"ui/corrections.{language}", re.sub(f"(?m){moments}", "<moment>", table(cases)))


# Imported labels.


def keep(dataset_id: str, made: Dataset, name: str, corrected: Callable = float) -> None:
    for field in ("base", "system", "vs", "metric"):
        address.choose(field, "x")
    labels_corrections.keep_beside(dataset_id, made, (), name=name, corrected=corrected)


def doubled(old: Dataset) -> Dataset:
    labels = old.qrels.assign(label=old.qrels["label"] * 2)
    return Dataset(old.name, old.queries, old.documents, labels, old.candidates)


def test_runs_notes_and_corrections_go_along_once_under_a_free_name(workspace, stored, session):
    notes, corrections = Notes(workspace), Corrections(workspace)
    for query in ("q1", "q2"):
        notes.store(stored, query, ("t",), "x")
    # The uploaded label of q1 is 1 for d1 only; in the new set it is 2.
    for doc, label in (("d1", None), ("d2", 1.0), ("d3", 0.0)):
        corrections.correct(stored, ("q1", doc), label, "")
    made = doubled(workspace.dataset(stored))
    keep(stored, made, "Shop", lambda label: 2 * label)
    first, new = workspace.datasets()
    assert (first.id, first.name, new.name) == (stored, "Shop", "Shop (2)")
    found = [address.one(field) for field in ("data", "base", "system", "vs", "metric")]
    assert found == [new.id, None, None, None, "x"]
    (run,) = workspace.runs(new.id)
    assert (run.name, run.dataset_id) == ("better", new.id)
    assert run.id != workspace.runs(stored)[0].id
    # A label that equals the new one is not a correction.
    kept = {(each.doc_id, each.label) for each in corrections.all(new.id)}
    assert kept == {("d1", None), ("d2", 2.0)}
    assert [note.query_id for note in notes.all(new.id)] == ["q1", "q2"]
    notes.store(new.id, "q1", (), "own")
    corrections.withdraw(new.id, [("q1", "d2")])
    keep(stored, made, "Another", lambda label: 2 * label)
    assert [row.name for row in workspace.datasets()] == ["Shop", "Shop (2)"]
    assert len(workspace.runs(new.id)) == len(workspace.runs(stored)) == 1
    # Later changes in the new data set are not overwritten.
    assert notes.of(new.id, "q1").text == "own"
    assert [each.doc_id for each in corrections.all(new.id)] == ["d1"]


def test_a_data_set_that_is_the_same_is_opened_as_it_is(workspace, stored, session):
    keep(stored, workspace.dataset(stored), "Other")
    assert [row.name for row in workspace.datasets()] == ["Shop"]
    assert len(workspace.runs(stored)) == 1
    assert address.one("data") == stored
