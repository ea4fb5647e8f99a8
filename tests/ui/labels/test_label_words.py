"""Labels without their widgets: what is offered for correction, undone and carried over."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from rankdash.store.notes.corrections import Correction
from rankdash.ui.labels import corrections_form, corrections_list, successor, unjudged_view


def correction(query: str = "q1", doc: str = "d1", label: float | None = 1.0) -> Correction:
    return Correction(query, doc, label, "", "2026-11-01T10:00:00+00:00")


@pytest.mark.parametrize(
    ("low", "high", "delta", "pool", "said", "files"),
    [
        (0.1, 0.1, 0.1, 3, "**RUN**: no missing label can alter the change of +0.100.", 0),
        (0.1, 0.3, 0.1, 0, "**RUN**: with all labels complete, the change of +0.100 could be "
         "anywhere from +0.100 to +0.300. 2 labels may be enough to settle which is ahead.", 0),
        (math.nan, math.nan, math.nan, 3, "**RUN**: no query can be compared.", 0),
        (-0.1, 0.3, 0.1, 3, "**RUN**: with all labels complete, the change of +0.100 could be "
         "anywhere from -0.100 to +0.300. 2 labels may be enough to settle which is ahead.", 2),
        (-0.1, 0.3, 0.1, 0, "**RUN**: with all labels complete, the change of +0.100 could be "
         "anywhere from -0.100 to +0.300. 2 labels may be enough to settle which is ahead.", 0),
    ],
)  # fmt: skip
def test_how_far_missing_labels_can_move_a_change(paper, low, high, delta, pool, said, files):
    settled = SimpleNamespace(
        bounds=lambda: SimpleNamespace(lowest=low, highest=high, delta=delta),
        labels_to_settle=lambda: 2, pool=[None] * pool,
    )  # fmt: skip
    study = SimpleNamespace(
        unjudged_change=lambda _system: settled, baseline="base", spec="ndcg@10",
        dataset=SimpleNamespace(name="Shop"),
    )  # fmt: skip
    drawn = paper(unjudged_view)
    unjudged_view._difference(study, "run", {"run": "RUN", "base": "BASE"})
    assert drawn.of("markdown") == [said]
    assert len(drawn.of("download_button")) == files


@pytest.mark.parametrize(("label", "option"), [(None, "unjudged"), (0.0, "0"), (0.1, "0.1"),
                                               (2.0, "2")])  # fmt: skip
def test_a_label_of_0_is_an_option_and_no_label_another(label, option):
    found = corrections_form._option(label)
    assert found == option or float(found) == label
    assert (found == "unjudged") is (label is None)


def test_documents_to_correct_are_those_near_the_top_then_the_judged_then_the_corrected(
    monkeypatch,
):
    ranked = {"run": [f"r{n}" for n in range(30)], "base": ["r0", "b1"]}
    study = SimpleNamespace(
        cutoff=None, challengers=("run",), baseline="base", chosen=("base", "run"),
        dataset_id="shop", stored_id="shop", name=str.upper,
        ranking=lambda system: SimpleNamespace(documents_of=lambda _q: (ranked[system], None)),
    )  # fmt: skip
    monkeypatch.setattr(corrections_form.stored, "uploaded_labels", lambda *_a: {"j": 1.0, "b1": 0})
    monkeypatch.setattr(corrections_form, "_corrections", lambda *_a: [correction(doc="c")])
    found = corrections_form._documents(study, "q1")
    assert found == [*(f"r{n}" for n in range(20)), "b1", "j", "c"]
    deep = SimpleNamespace(**{**vars(study), "cutoff": 25})
    assert len(corrections_form._documents(deep, "q1")) == 28
    assert corrections_form._ranks(study, "q1", "b1") == ["BASE: rank 2", "RUN: not ranked"]
    assert corrections_form._ranks(study, "q1", "r0") == ["BASE: rank 1", "RUN: rank 1"]


@pytest.mark.parametrize(
    ("chosen", "withdrawn", "corrected"),
    [
        ("1", [("q1", "d1")], []),
        ("0", [], [0.0]),
        ("unjudged", [], [None]),
    ],
)
def test_a_label_put_back_to_the_uploaded_one_is_no_correction(
    paper, monkeypatch, session, chosen, withdrawn, corrected
):
    took, put, heard = [], [], {}
    layer = SimpleNamespace(
        withdraw=lambda _id, pairs: took.extend(pairs),
        correct=lambda _id, _pair, label, _who: put.append(label),
        all=lambda _id: [correction(query="other", label=0.0)],
    )
    store = SimpleNamespace(setting=lambda _name: "me")
    monkeypatch.setattr(corrections_form, "workspace", lambda: store)
    monkeypatch.setattr(corrections_form, "Corrections", lambda _store: layer)
    monkeypatch.setattr(corrections_form.person, "name", lambda: "")
    monkeypatch.setattr(corrections_form, "_ranks", lambda *_a: [])
    labels = SimpleNamespace(grades=(0.0, 1.0))
    monkeypatch.setattr(corrections_form.stored, "dataset", lambda _id: labels)
    monkeypatch.setattr(corrections_form.stored, "uploaded_labels", lambda *_a: {"d1": 1.0})
    monkeypatch.setattr(corrections_list, "forget_undone", lambda: None)

    def show(draw, key, value, changed, options=()):
        heard.update(key=key, value=value, changed=changed)
        return lambda *_a, **_k: None

    monkeypatch.setattr(corrections_form.pickers, "show", show)
    drawn = paper(corrections_form)
    drawn.session_state = session
    corrections_form.label(SimpleNamespace(stored_id="shop"), "q1", "d1")
    # That of another query is not this one's.
    assert heard["value"] == "1"
    assert drawn.of("caption") == ["as uploaded: 1"]
    session[heard["key"]] = chosen
    heard["changed"]()
    assert (took, put) == (withdrawn, corrected)
    # A label that was corrected is shown as corrected.
    for label, shown in ((0.0, "0"), (None, "unjudged")):
        layer.all = lambda _id, label=label: [correction(label=label)]
        corrections_form.label(SimpleNamespace(stored_id="shop"), "q1", "d1")
        assert heard["value"] == shown


@pytest.mark.parametrize(
    ("query", "shown_only", "listed", "buttons"),
    [
        (None, False, 2, True),
        ("q1", False, 1, True),
        ("q3", False, 0, True),
        ("q1", True, 1, False),
    ],
)
def test_corrections_of_one_query_are_listed_at_it_and_all_at_the_data_set(
    paper, session, monkeypatch, query, shown_only, listed, buttons
):
    rows = [correction("q1"), correction("q2")]
    monkeypatch.setattr(corrections_list, "workspace", lambda: None)
    monkeypatch.setattr(
        corrections_list, "Corrections", lambda _s: SimpleNamespace(all=lambda _id: rows)
    )
    monkeypatch.setattr(corrections_list, "read_only", lambda: shown_only)
    tables = []
    monkeypatch.setattr(corrections_list, "_table", lambda _id, found, place: tables.append(
        (len(found), place)))  # fmt: skip
    session[corrections_list._UNDONE] = {("shop", query): [rows[0]], ("other", query): rows}
    drawn = paper(corrections_list)
    drawn.session_state = session
    corrections_list.draw("shop", query)
    assert tables == ([(listed, "data" if query is None else "query")] if listed else [])
    assert drawn.of("caption") == (["1 correction undone."] if buttons else [])
    assert drawn.of("button") == (["Put back"] if buttons else [])


def test_what_was_undone_is_put_back_once(session, monkeypatch):
    done = []
    layer = SimpleNamespace(
        withdraw=lambda _id, pairs: done.append(("withdraw", pairs)),
        restore=lambda _id, rows: done.append(("restore", list(rows))),
    )
    monkeypatch.setattr(corrections_list, "workspace", lambda: None)
    monkeypatch.setattr(corrections_list, "Corrections", lambda _store: layer)
    row = correction()
    corrections_list._undo("shop", "q1", [row])
    assert session[corrections_list._UNDONE] == {("shop", "q1"): [row]}
    corrections_list._restore("shop", "q1", [row])
    assert session[corrections_list._UNDONE] == {}
    assert done == [("withdraw", [row.pair]), ("restore", [row])]


def test_notes_and_corrections_go_over_to_a_successor_that_has_none(monkeypatch):
    kept, restored = [], []

    def note(query: str) -> SimpleNamespace:
        return SimpleNamespace(query_id=query, tags=("t",), text="x")

    there = {"old": [note("q1"), note("q2")], "new": [note("q2")]}
    notes = SimpleNamespace(all=there.get, keep=lambda *given: kept.append(given))
    rows = [correction(doc="same", label=1.0), correction(doc="other", label=0.0),
            correction(doc="gone", label=None)]  # fmt: skip
    count = {"new": 0}
    corrections = SimpleNamespace(
        layer=lambda _id: SimpleNamespace(count=count["new"]), all=lambda _id: rows,
        restore=lambda _id, found: restored.extend(found),
    )  # fmt: skip
    monkeypatch.setattr(successor, "workspace", lambda: None)
    monkeypatch.setattr(successor, "Notes", lambda _store: notes)
    monkeypatch.setattr(successor, "Corrections", lambda _store: corrections)
    monkeypatch.setattr(
        successor.stored, "uploaded_labels", lambda *_a: {"same": 2.0, "other": 2.0, "gone": 1.0}
    )
    successor._carry_remarks("old", "new", lambda label: 2 * label)
    assert kept == [("new", "q1", ("t",), "x")]
    # What the new labels say already is no correction; what was taken back stays so.
    assert [(each.doc_id, each.label) for each in restored] == [("other", 0.0), ("gone", None)]
    count["new"] = 1
    successor._carry_remarks("old", "new", float)
    assert len(restored) == 2


def test_an_origin_tells_runs_apart_by_what_made_them_and_when():
    row = SimpleNamespace(reranker="bm25", created="2026", name="A")
    assert successor._origin(row) == ("bm25", "2026", "A")
    assert successor._carried(correction(label=None), lambda _label: 3.0).label is None
    assert successor._carried(correction(label=1.0), lambda _label: 3.0).label == 3.0


def test_bounds_are_named_by_how_sure_they_are(paper):
    kinds = ["tight", "outer", "range"]
    bounds = pd.DataFrame({"system": list("abc"), "kind": kinds, "highest": [0.5, 0.6, 1.0]})
    bounds = bounds.assign(judged=0.5, unjudged=1, value=0.4, lowest=0.3)
    study = SimpleNamespace(unjudged=bounds, names={"a": "A", "b": "B", "c": "C"}, challengers=())
    drawn = paper(unjudged_view)
    unjudged_view.draw(study)
    [table] = drawn.of("dataframe")
    assert table["bounds"].tolist() == ["exact", "safe, maybe wide", "range of the metric"]
    assert table["lowest possible"].tolist() == [0.3] * 3
    assert table["highest possible"].tolist() == [0.5, 0.6, 1.0]


@pytest.fixture
def shop(monkeypatch):
    """Names and uploaded labels of a data set."""
    data = SimpleNamespace(
        document_names=({"d1": "Returns"}, {}), query_names={"q1": "how to"}, name="Shop",
        ids_with_blanks=False,
    )  # fmt: skip
    monkeypatch.setattr(corrections_list.stored, "dataset", lambda _id: data)
    monkeypatch.setattr(corrections_list.stored, "uploaded_labels", lambda *_a: {"d1": 0.0})
    monkeypatch.setattr(corrections_list, "workspace", lambda: None)
    monkeypatch.setattr(corrections_list, "read_only", lambda: False)
    return data


@pytest.mark.parametrize(
    ("place", "names"), [("data", {"query": ["how to", "q2"]}), ("query", {})]
)  # fmt: skip
def test_a_correction_is_a_row_with_its_label_before_and_after(paper, shop, place, names):
    rows = [correction("q1", "d1", 1.0), correction("q2", "d2", None)]
    drawn = paper(corrections_list)
    corrections_list._table("shop", rows, place)
    [table] = drawn.of("dataframe")
    assert {each: table[each].tolist() for each in table if each in ("query", "document",
            "uploaded", "corrected")} == names | {
        "document": ["Returns", "d2"], "uploaded": ["0", "not judged"],
        "corrected": ["1", "not judged"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("place", "chosen", "some", "query"),
    [("data", [], [], None), ("query", [1], [1], "q1"), ("data", [0, 1, 2], [0, 1], None)],
)
def test_the_chosen_corrections_or_all_are_undone(paper, shop, place, chosen, some, query):
    rows = [correction("q1", "d1"), correction("q1", "d2")]
    drawn = paper(corrections_list)
    drawn.answers["dataframe"] = {"selection": {"rows": chosen}}
    corrections_list._table("shop", rows, place)
    offered = {label: each for kind, label, each in drawn.drawn if kind == "button"}
    picked = [rows[at] for at in some]
    assert offered["Undo the chosen"]["args"] == ("shop", query, picked)
    assert offered["Undo all"]["args"] == ("shop", query, rows)
    assert [each["disabled"] for each in offered.values()] == [not picked, False]


@pytest.mark.parametrize(("count", "said"), [(3, []), (4, ["The latest 3 are shown."])])
def test_the_latest_corrections_are_shown_and_all_are_undone(paper, shop, monkeypatch, count, said):
    monkeypatch.setattr(corrections_list, "_MOST_SHOWN", 3)
    rows = [correction("q1", f"d{at}") for at in range(count)]
    drawn = paper(corrections_list)
    corrections_list._table("shop", rows, "data")
    assert drawn.of("caption") == said
    assert len(drawn.of("dataframe")[0]) == 3
    [_some, everything] = [each for kind, _label, each in drawn.drawn if kind == "button"]
    assert len(everything["args"][2]) == count


def test_corrections_that_are_only_shown_cannot_be_undone(paper, shop, monkeypatch):
    monkeypatch.setattr(corrections_list, "read_only", lambda: True)
    drawn = paper(corrections_list)
    corrections_list._table("shop", [correction()], "data")
    assert drawn.of("dataframe") and not drawn.of("button")


@pytest.mark.parametrize(
    ("count", "notes", "blanks", "files"),
    [
        (0, [], False, {}),
        (0, ["a note"], False, {"Notes (CSV)": False}),
        (1, [], False, {"Corrections (CSV)": False, "Corrected labels (TREC)": False}),
        (1, ["a note"], True,
         {"Corrections (CSV)": False, "Corrected labels (TREC)": True, "Notes (CSV)": False}),
    ],
)  # fmt: skip
def test_files_are_offered_of_what_there_is_and_can_be_written(
    paper, shop, monkeypatch, count, notes, blanks, files
):
    shop.ids_with_blanks = blanks
    layer = SimpleNamespace(count=count, revision=1)
    monkeypatch.setattr(
        corrections_list, "Corrections", lambda _s: SimpleNamespace(layer=lambda _id: layer)
    )
    monkeypatch.setattr(
        corrections_list, "Notes", lambda _s: SimpleNamespace(all=lambda _id: notes)
    )
    drawn = paper(corrections_list)
    corrections_list.exports("shop")
    made = [each for each in drawn.drawn if each[0] == "download_button"]
    assert {label: each["disabled"] for _kind, label, each in made} == files
    assert all(bool(each["help"]) is each["disabled"] for _kind, _label, each in made)
    types = {label: each["mime"] for _kind, label, each in made}
    assert all((kind == "text/csv") is ("CSV" in label) for label, kind in types.items())
