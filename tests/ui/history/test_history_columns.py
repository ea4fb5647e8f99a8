"""The table of the history, cell by cell, and what differs between the records of two runs."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from rankdash.analysis.statistics.history import APART
from rankdash.study.systems import FIRST_STAGE
from rankdash.ui.history import history_pair, history_run, history_table, history_view
from rankdash.ui.state import address


def row(system: str, **changes: object) -> dict[str, object]:
    return {
        "system": system, "on_line": True, "answered": 4, "mean": 0.5, "mean_low": 0.4,
        "mean_high": 0.6, "delta": 0.1, "delta_low": 0.05, "delta_high": 0.15, "missing": 0,
        "p_corrected": 0.01, "verdict": "better",
    } | changes  # fmt: skip


def run(name: str, **changes: object) -> SimpleNamespace:
    usual = {"id": name, "p50_ms": 5.0, "p95_ms": 9.0, "queries_failed": 2, "reranker": "bm25",
             "depth": None, "created": "2026-11-01T10:00:00+00:00", "settings": {"k": 1},
             "queries_done": 13, "queries_skipped": 1}  # fmt: skip
    return SimpleNamespace(**(usual | changes))


@pytest.fixture
def past(monkeypatch):
    monkeypatch.setattr(
        history_table.run_records, "record",
        lambda _id: SimpleNamespace(remarks=lambda: iter(["machine was busy"]), machine={"cpu": 1}),
    )  # fmt: skip
    systems = {FIRST_STAGE: "First", "a": "A", "b": "B" * 50, "c": "C"}
    rows = [
        row(FIRST_STAGE), row("a"), row("b", on_line=False, verdict=APART),
        row("c", missing=2, p_corrected=math.nan),
    ]  # fmt: skip
    study = SimpleNamespace(
        baseline=FIRST_STAGE, name=systems.get, measure=SimpleNamespace(title="NDCG@10"),
        statistics=SimpleNamespace(level=0.9, corrects=lambda n: n > 1), stored_id="shop",
        systems={each: SimpleNamespace(name=name) for each, name in systems.items()},
    )  # fmt: skip
    trend = SimpleNamespace(frame=pd.DataFrame(rows), queries=15, comparisons=1)
    runs = (run("a"), run("b"), run("c", reranker="gone", depth=5, settings={}))
    notes = {"a": SimpleNamespace(text="why")}
    return history_view.Past(study, runs, trend, notes, "a")


LISTED = ["c", "b", "a", FIRST_STAGE]


def test_each_system_has_a_row_and_what_is_not_compared_has_no_change(past):
    table, config = history_table._columns(past, LISTED)
    found = {name: table[name].astype(object).where(table[name].notna(), None).tolist()
             for name in table}  # fmt: skip
    assert found["number"] == [3, 2, 1, None]
    assert found["role"] == [None, None, "pinned", "current"]
    # On the line all have its queries; another has those that it answered.
    assert found["queries"] == [15, 4, 15, 15]
    assert found["change"] == [0.1, None, 0.1, None]
    assert [each == "–" for each in found["change_interval"]] == [False, True, False, True]
    assert found["p"] == [None, 0.01, 0.01, 0.01]
    assert found["verdict"][1] == "not compared" and found["verdict"][2] != "not compared"
    assert found["note"] == [None, None, "why", None]
    assert found["p95"] == [9.0, 9.0, 9.0, None]
    assert found["failed"] == [2, 2, 2, None]
    assert found["reranker"] == ["gone", "BM25", "BM25", None]
    assert found["remarks"] == [
        "machine was busy; 2 queries without documents count 0", "machine was busy",
        "machine was busy", None,
    ]  # fmt: skip
    assert found["settings"] == [None, "k=1", "k=1", None]
    assert found["made"][3] is None and found["made"][0]
    assert len(found["name"][1]) == history_table._NAME_COLUMNS and "…" in found["name"][1]
    assert set(config) == set(found)
    assert config["interval"]["label"] == "90% interval of the mean"


@pytest.mark.parametrize("comparisons", [1, 2])
def test_a_p_is_called_corrected_where_it_is(past, comparisons):
    past.trend.comparisons = comparisons
    _table, config = history_table._columns(past, LISTED)
    assert config["p"]["label"] == history_table.p_title(comparisons > 1)


@pytest.mark.parametrize(("count", "high"), [(1, 3 * 35 + 3), (13, 15 * 35 + 3), (14, 15 * 35 + 3)])
def test_the_table_is_as_high_as_its_rows_up_to_fourteen(
    paper, session, monkeypatch, past, count, high
):
    frame = pd.DataFrame({"change": [0.1], "p95": [9.0]})
    monkeypatch.setattr(history_table, "_columns", lambda *_a: (frame, {}))
    drawn = {}
    monkeypatch.setattr(
        history_table.pickers, "show",
        lambda _d, _k, value, *_a: lambda *_b, **more: drawn.update(more, value=value),
    )  # fmt: skip
    runs = tuple(run(f"r{n}") for n in range(count))
    address.take_over({"runs": ["gone", FIRST_STAGE, "r0"]})
    made = history_view.Past(past.study, runs, past.trend, {}, None)
    assert history_table.draw(made) == [FIRST_STAGE, "r0"]
    assert drawn["height"] == high
    # Newest first, and the first stage below all of them.
    assert drawn["value"]["selection"]["rows"] == [count - 1, count]
    assert address.lost() == {"runs": "gone"}


def test_a_run_is_recorded_with_all_that_may_differ_and_the_first_stage_with_nothing(past):
    settings, machine, made = history_pair._recorded(past, run("c", depth=5, p95_ms=9.5))
    assert settings == ("settings", {"reranker": "BM25", "depth": "5", "k": 1})
    assert machine == ("machine", {"cpu": 1})
    assert {name: made[1][name] for name in ("done", "failed", "not run", "p95 ms")} == {
        "done": 13, "failed": 2, "not run": 1, "p95 ms": "9.5"
    }  # fmt: skip
    assert history_pair._recorded(past, run("a"))[0][1]["depth"] == "all"
    nothing = history_pair._recorded(past, None)
    assert nothing == [("settings", {}), ("machine", {}), ("run", {})]


@pytest.mark.parametrize("asked", [True, False])
def test_the_first_of_the_chosen_is_the_baseline_of_the_others(paper, session, monkeypatch, asked):
    went = []
    monkeypatch.setattr(history_pair.view, "go", went.append)
    paper(history_pair).answers["button"] = asked
    history_pair.to_overview(["b", "a", "c"])
    assert went == ["overview"] * asked
    if asked:
        assert address.one("base") == "b" and address.several("system") == ["a", "c"]


@pytest.mark.parametrize("done", [True, False])
def test_what_is_pinned_is_compared_with_once_it_is_stored(session, monkeypatch, done):
    address.choose("base", "old")
    monkeypatch.setattr(history_run.action_errors, "attempt", lambda _place, _change: done)
    history_run._pin("new")
    assert address.one("base") == ("new" if done else "old")
    history_run._unpin("shop")
    assert address.one("base") == (None if done else "old")


@pytest.mark.parametrize(("seconds", "drawn_at"), [(0.5, []), (0.51, [0.5])])
def test_a_bar_is_drawn_where_evaluating_takes_its_time(paper, monkeypatch, seconds, drawn_at):
    times = iter([0.0, 0.0, seconds])
    monkeypatch.setattr(history_view.time, "monotonic", lambda: next(times))
    evaluated = []
    monkeypatch.setattr(
        history_view.study_history, "evaluation", lambda _study, system: evaluated.append(system)
    )
    drawn = paper(history_view)
    history_view._evaluate(SimpleNamespace(systems=["a", "b"]))
    assert evaluated == ["a", "b"]
    assert drawn.of("progress") == drawn_at
