"""The list of finished runs: its rows, what is offered for the chosen ones, and what that does."""

import math
from types import SimpleNamespace

import pytest

from rankdash.ui.run import run_list
from rankdash.ui.state import address


def run(name: str, **changes: object) -> SimpleNamespace:
    usual = {
        "id": name, "name": name.upper(), "reranker": "bm25", "depth": None, "queries_done": 15,
        "queries_failed": 1, "p50_ms": 5.0, "p95_ms": 9.0, "pairs_per_second": 10.4,
        "load_ms": 2500.0, "created": f"2026-11-0{'abc'.index(name) + 1}T10:00:00+00:00",
        "settings": {"k": 1}, "dataset_id": "shop",
    }  # fmt: skip
    return SimpleNamespace(**(usual | changes))


@pytest.fixture
def shop(monkeypatch):
    """The page of runs over a workspace with some; what was done to it."""
    done = []

    def of(*rows, notes=None, pinned=None, remarks=(), runtimes=(), shown_only=False):
        store = SimpleNamespace(
            runs=lambda _id: rows,
            damaged_runs=lambda _id: {},
            rename_run=lambda *given: done.append(given),
            delete_run=lambda each: done.append(("delete", each)),
        )
        record = SimpleNamespace(remarks=lambda: remarks, runtimes=runtimes)
        for module in (run_list, run_list.stored):
            monkeypatch.setattr(module, "workspace", lambda: store)
        monkeypatch.setattr(run_list, "_study", lambda _id: None)
        monkeypatch.setattr(run_list, "read_only", lambda: shown_only)
        monkeypatch.setattr(run_list, "RunNotes",
                            lambda _s: SimpleNamespace(all=lambda _id: notes or {}))  # fmt: skip
        monkeypatch.setattr(run_list, "Pins",
                            lambda _s: SimpleNamespace(of=lambda _id: pinned))  # fmt: skip
        monkeypatch.setattr(run_list.run_records, "record", lambda _id: record)
        monkeypatch.setattr(run_list.run_details, "draw", lambda each: done.append(("open", each)))
        return done

    return of


def test_a_run_has_a_row_with_what_it_recorded(shop):
    rows = [run("a"), run("b", depth=5, pairs_per_second=None, load_ms=math.nan)]
    shop(*rows, remarks=("machine was busy", "int8"), runtimes=(("first_", "onnx"), ("", "torch")))
    first, second = run_list._table("shop", rows).to_dict("records")
    assert first == {
        "name": "A", "reranker": "BM25", "depth": "all", "done": 15, "failed": 1, "p50 ms": 5.0,
        "p95 ms": 9.0, "pairs/s": 10.0, "remarks": "machine was busy; int8",
        "runtime": "onnx → torch", "start s": 2.5, "made (UTC)": "Nov 1, 2026, 10:00:00\u202fAM",
        "settings": "k=1",
    }  # fmt: skip
    assert second["depth"] == "5"
    assert math.isnan(second["pairs/s"]) and math.isnan(second["start s"])


def test_a_run_without_remarks_has_none(shop):
    shop(run("a"))
    [row] = run_list._table("shop", [run("a", pairs_per_second=0.2)]).to_dict("records")
    assert (row["remarks"], row["runtime"], row["pairs/s"]) == (None, None, None)


@pytest.mark.parametrize(
    ("notes", "pinned", "columns"),
    [
        ({}, None, {}),
        ({}, "gone", {}),
        ({}, "b", {"baseline": {1: "pinned"}}),
        ({"a": SimpleNamespace(text="why")}, None, {"note": {0: "why"}}),
    ],
)
def test_a_pin_and_notes_take_room_where_there_are_any(shop, notes, pinned, columns):
    rows = [run("a"), run("b")]
    shop(*rows, notes=notes, pinned=pinned)
    table = run_list._table("shop", rows)
    found = {name: table[name].dropna().to_dict() for name in ("baseline", "note") if name in table}
    assert found == columns


@pytest.mark.parametrize(("shown_only", "states", "said"), [
    (True, ["running"], "No run yet"),
    (False, [], "None yet: choose a reranker above and start."),
    (False, ["failed", "done"], "None yet: choose a reranker above and start."),
    (False, ["running", "queued"], "None is finished yet."),
    (False, ["failed", "queued"], "None is finished yet."),
])  # fmt: skip
def test_without_a_run_the_list_says_what_to_do_where_something_can_be_done(
    paper, shop, monkeypatch, shown_only, states, said
):
    shop(shown_only=shown_only)
    rows = {"shop": [SimpleNamespace(state=state) for state in states]}
    monkeypatch.setattr(run_list.jobs, "list", lambda _store, dataset_id: rows[dataset_id])
    drawn = paper(run_list)
    run_list.draw("shop")
    assert drawn.of("caption") == [said] and not drawn.of("button", "dataframe")


@pytest.mark.parametrize(
    ("chosen", "shown_only", "disabled", "opened"),
    [
        ([], False, {"Compare on Overview": True, "Rename": True, "Delete": True}, []),
        ([0], False, {"Compare on Overview": False, "Rename": False, "Delete": False},
         [("open", "c")]),
        ([1], True, {"Compare on Overview": False}, [("open", "b")]),
        ([0, 2], False, {"Compare on Overview": False, "Rename": True, "Delete": False}, []),
        # A row that is gone since the click.
        ([3], False, {"Compare on Overview": True, "Rename": True, "Delete": True}, []),
        ([2, 3], False, {"Compare on Overview": False, "Rename": False, "Delete": False},
         [("open", "a")]),
    ],
)  # fmt: skip
def test_what_can_be_done_with_the_chosen_runs_newest_first(
    paper, shop, chosen, shown_only, disabled, opened
):
    done = shop(run("b"), run("a"), run("c"), shown_only=shown_only)
    drawn = paper(run_list)
    drawn.answers["dataframe"] = {"selection": {"rows": chosen}}
    run_list.draw("shop")
    [table] = drawn.of("dataframe")
    assert getattr(table, "data", table)["name"].tolist() == ["C", "B", "A"]
    assert {label: each["disabled"] for kind, label, each in drawn.drawn
            if kind == "button"} == disabled  # fmt: skip
    assert done == opened


def test_the_chosen_runs_are_compared_on_overview(paper, session, monkeypatch, shop):
    shop(run("a"), run("b"), shown_only=True)
    went = []
    monkeypatch.setattr(run_list.view, "go", went.append)
    drawn = paper(run_list)
    drawn.answers |= {"dataframe": {"selection": {"rows": [0, 1]}}, "button": True}
    run_list.draw("shop")
    assert (address.several("system"), went) == (["b", "a"], ["overview"])


def test_a_run_keeps_its_own_name_and_gets_no_other_ones(paper, monkeypatch, shop):
    done, names = shop(), []
    rows = [run("a"), run("b")]
    monkeypatch.setattr(run_list.dialogs, "rename", lambda _title, old, apply: names.append(
        (old, apply)))  # fmt: skip
    paper(run_list).answers["button"] = True
    run_list._rename(rows[:1], rows)
    [(old, apply)] = names
    assert old == "A"
    apply("A")
    apply("B")
    assert done == [("a", "A"), ("a", "B (2)")]


def test_runs_are_deleted_once_that_is_confirmed_and_are_no_news_then(paper, monkeypatch, shop):
    done, asked, known = shop(), [], []
    monkeypatch.setattr(run_list.dialogs, "delete", lambda *given: asked.append(given))
    monkeypatch.setattr(run_list.deleted, "by_this_session", known.extend)
    paper(run_list).answers["button"] = True
    run_list._offer_delete([run("a"), run("b")])
    [(title, lines, apply)] = asked
    assert (title, lines) == (
        "Delete these runs?", ["A, B will be deleted permanently."]
    )  # fmt: skip
    assert done == []
    apply()
    assert done == [("delete", "a"), ("delete", "b")] and known == ["a", "b"]
