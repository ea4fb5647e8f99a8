"""What History says beside its chart and its table, and when it says it."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from rankdash.runs.combining import KIND as FUSION
from rankdash.study import history as study_history
from rankdash.study.systems import FIRST_STAGE
from rankdash.ui.history import history_pair, history_run, history_table, history_view
from rankdash.ui.runs.run_records import Record
from rankdash.ui.state import address


def trend(**changes: object) -> SimpleNamespace:
    usual = {"queries": 15, "fullest": 16, "apart": 0, "comparisons": 3}
    return SimpleNamespace(**(usual | changes))


def run(
    name: str, p95_ms: float = math.nan, failed: int = 0, reranker: str = "bm25"
) -> SimpleNamespace:
    return SimpleNamespace(
        id=name, p50_ms=1.0, p95_ms=p95_ms, queries_failed=failed, reranker=reranker,
        created="2026-11-01T10:00:00+00:00",
    )  # fmt: skip


def past(found: SimpleNamespace, **study: object) -> SimpleNamespace:
    usual = {
        "baseline": FIRST_STAGE,
        "name": str.upper,
        "statistics": SimpleNamespace(correction="none", level=0.95),
    }
    return SimpleNamespace(trend=found, study=SimpleNamespace(**(usual | study)), runs=(), notes={})


@pytest.mark.parametrize(
    ("queries", "fullest", "said"),
    [
        (0, 16, "No query was answered by every run on the line, so nothing is compared."),
        (15, 16, "The means, changes and tests use the same 15 of 16 queries for every run on the "
         "line: those that all of them answered."),
        (16, 16, "The means, changes and tests use the same 16 queries for every run."),
        (1, 1, "The means, changes and tests use the same 1 query for every run."),
    ],
)  # fmt: skip
def test_what_the_line_rests_on(queries, fullest, said):
    assert history_view._shared(trend(queries=queries, fullest=fullest)) == said


CHOICE = "pick_one"


@pytest.mark.parametrize(
    ("machines", "apart", "line", "said", "offered"),
    [
        ({"a": "one", "b": "one"}, 0, None, "", False),
        ({"a": "one", "b": "two"}, 0, None, " The times come from 2 kinds of machine and cannot be "
         "compared across them.", False),
        ({"a": "one", "b": "two"}, 1, None, " 1 run answered too few of them and is listed "
         "separately, with its own number of queries; it is not compared. The times come from 2 "
         "kinds of machine and cannot be compared across them.", True),
        ({"a": "one", "b": "one"}, 0, "every", "", True),
    ],
)  # fmt: skip
def test_times_of_other_machines_and_runs_apart_are_said(
    paper, session, monkeypatch, machines, apart, line, said, offered
):
    # The third was not timed, and the fourth is a sum: their machines say nothing.
    made = past(trend(queries=16, apart=apart))
    made.runs = (run("a", 1.0), run("b", 2.0), run("c"), run("d", 3.0, reranker=FUSION))
    machines = {**machines, "c": "three", "d": "four"}
    monkeypatch.setattr(
        history_view.run_records, "record",
        lambda each: SimpleNamespace(machine={"cpu": machines[each]}),
    )  # fmt: skip
    asked = []
    monkeypatch.setattr(history_view.pickers, "pick_one", lambda *_a, **_k: asked.append(1))
    address.settle(history_view.LINE, line)
    drawn = paper(history_view)
    history_view.rests_on(made)
    assert drawn.of("caption") == [
        f"The means, changes and tests use the same 16 queries for every run.{said}"
    ]
    assert bool(asked) is offered


@pytest.mark.parametrize(
    ("comparisons", "queries", "correction", "said", "kind"),
    [
        (1, 15, "none", None, None),
        (2, 0, "none", None, None),
        (2, 15, "none", "The p values below are not corrected.", "warning"),
        (2, 15, "holm", "The p values below are corrected for all 2 (Holm).", "info"),
        (2, 15, "bh", "The p values below are corrected for all 2 (Benjamini–Hochberg).", "info"),
    ],
)
def test_comparisons_are_counted_from_the_second_on(
    paper, comparisons, queries, correction, said, kind
):
    made = past(
        trend(comparisons=comparisons, queries=queries),
        statistics=SimpleNamespace(correction=correction, level=0.9),
    )
    drawn = paper(history_view)
    history_view.looks(made)
    told = [(each, text) for each, text, _settings in drawn.drawn if each != "button"]
    if said is None:
        assert drawn.drawn == []
    else:
        [(found, text)] = told
        assert (found, text.endswith(said)) == (kind, True)
        assert text.startswith(f"**{comparisons} systems were compared with FIRST")
        assert "about 0.2 would on average" in text
        assert bool(drawn.of("button")) is (kind == "warning")


@pytest.mark.parametrize(
    ("baseline", "pinned", "lines"),
    [
        ("a", None, {"a": "A (baseline)", FIRST_STAGE: "FIRST-STAGE"}),
        ("a", "a", {"a": "A (pinned baseline)", FIRST_STAGE: "FIRST-STAGE"}),
        ("a", "b", {"a": "A (baseline)", "b": "B (pinned)", FIRST_STAGE: "FIRST-STAGE"}),
        ("a", "gone", {"a": "A (baseline)", FIRST_STAGE: "FIRST-STAGE"}),
        (FIRST_STAGE, None, {FIRST_STAGE: "FIRST-STAGE (baseline)"}),
    ],
)
def test_the_lines_across_are_the_baseline_the_pinned_run_and_the_first_stage(
    baseline, pinned, lines
):
    made = past(trend(), baseline=baseline, systems={"a": 1, "b": 2, FIRST_STAGE: 0})
    made.pinned, made.name = pinned, str.upper
    assert history_view._lines(made) == lines
    assert history_table._role(made, baseline) == ("pinned" if baseline == pinned else "current")
    assert history_table._role(made, "other") is None


@pytest.mark.parametrize(("on_line", "n"), [(True, 15), (False, 4)])
def test_a_point_on_the_line_counts_the_queries_of_the_line_and_another_its_own(on_line, n):
    row = {"on_line": on_line, "answered": 4, "mean": 0.5, "mean_low": 0.4, "mean_high": 0.7}
    made = past(trend())
    made.row, made.name, made.number = (lambda _id: row), str.upper, (lambda _id: 3)
    made.notes, made.p95_ms = {"b": SimpleNamespace(text="why")}, (lambda each: each.p95_ms)
    point = history_view._point(made, run("a", 2.0, failed=1), 1)
    assert (point.n, point.compared, point.number, point.series) == (n, on_line, 3, 1)
    assert (point.mean, point.low, point.high) == (0.5, 0.4, 0.7)
    assert (point.p95_ms, point.failed, point.note, point.day) == (2.0, 1, "", "Nov 1")
    assert history_view._point(made, run("b"), None).note == "why"


def test_the_p95_of_a_fused_run_is_that_of_its_parts(monkeypatch):
    monkeypatch.setattr(study_history, "quantiles_ms", lambda *_given: (5.0, 7.0))
    made = history_view.Past(None, (), None, {}, None)
    assert made.p95_ms(run("a", 3.0)) == 3.0
    assert made.p95_ms(run("a", 3.0, reranker=FUSION)) == 7.0


def test_runs_are_numbered_from_1_and_a_system_has_its_own_row():
    frame = pd.DataFrame({"system": [FIRST_STAGE, "b", "a"], "mean": [0.1, 0.2, 0.3]})
    found = SimpleNamespace(frame=frame)
    made = history_view.Past(past(found).study, (run("a"), run("b")), found, {}, None)
    assert [made.number(each) for each in ("a", "b", FIRST_STAGE)] == [1, 2, 0]
    assert [made.row(each)["mean"] for each in ("a", "b", FIRST_STAGE)] == [0.3, 0.2, 0.1]


@pytest.mark.parametrize(("missing", "remarks"), [(0, []), (1, ["1 query without documents counts "
                          "0"]), (2, ["2 queries without documents count 0"])])  # fmt: skip
def test_queries_without_documents_are_remarked(missing, remarks):
    assert history_table._remarks(None, pd.Series({"missing": missing})) == remarks


def settings(**values: object) -> list[tuple[str, dict[str, object]]]:
    return [("settings", values.get("settings", {})), ("machine", {}),
            ("run", values.get("run", {}))]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "rows", "alike"),
    [
        ({"settings": {"k": 1}}, {"settings": {"k": 1}}, [], True),
        ({"settings": {"k": 1}}, {"settings": {"k": 2}}, [("settings", "k", "1", "2")], False),
        # What is set to nothing on one side and missing on the other is no difference.
        ({"settings": {"k": ""}}, {"settings": {}}, [], True),
        ({"settings": {"k": 0}}, {"settings": {}}, [("settings", "k", "0", None)], False),
        ({"run": {"done": 1}}, {"run": {"done": 2}}, [("run", "done", "1", "2")], True),
    ],
)
def test_two_runs_differ_in_what_either_has_set(paper, monkeypatch, before, after, rows, alike):
    told = {"a": settings(**before), "b": settings(**after)}
    monkeypatch.setattr(history_pair, "_recorded", lambda _past, each: told[each.id])
    drawn = paper(history_pair)
    made = SimpleNamespace(runs=(run("a"), run("b")), name=str.upper)
    history_pair._differences(made, "a", "b")
    assert [tuple(row) for table in drawn.of("dataframe")
            for row in table.where(table.notna(), None).to_numpy()] == rows  # fmt: skip
    assert drawn.of("caption") == (
        ["No difference in their recorded settings and machine."] if alike else []
    )


@pytest.mark.parametrize(
    ("systems", "p", "said"),
    [(2, 0.01, False), (3, 0.01, True), (3, math.nan, False)],
)
def test_a_pair_that_was_picked_among_others_has_its_p_corrected(
    paper, monkeypatch, systems, p, said
):
    row = pd.Series({"p": p})
    found = SimpleNamespace(
        verdict=lambda *_a: SimpleNamespace(kind="better"),
        row=lambda *_a: row,
        left_out=lambda *_a: {},
    )
    study = SimpleNamespace(spec="ndcg@10", systems=dict.fromkeys(range(systems)))
    monkeypatch.setattr(history_pair, "replace",
                        lambda _study, **_changes: SimpleNamespace(comparison=found))  # fmt: skip
    monkeypatch.setattr(history_pair, "sentence", lambda _verdict: "It is.")
    monkeypatch.setattr(history_pair, "_facts", lambda *_a: ["a fact"])
    monkeypatch.setattr(history_pair, "_differences", lambda *_a: None)
    drawn = paper(history_pair, history_pair.badges)
    history_pair.draw(SimpleNamespace(study=study, name=str.upper), ["a", "b"])
    captions = drawn.of("caption")
    assert captions[0] == "a fact"
    assert captions[1:] == (
        ["This p counts one comparison. The pair was picked among 3 systems: corrected for all 3 "
         "possible pairs it is 0.0300 (Bonferroni)."] if said else []
    )  # fmt: skip
    assert "**B** against **A**" in drawn.of("markdown")


@pytest.mark.parametrize(
    ("system", "shown_only", "answered", "buttons", "noted"),
    [
        ("run", False, 3, ["Pin as baseline"], True),
        ("run", False, 0, [], True),
        ("pin", False, 3, ["Unpin"], True),
        (FIRST_STAGE, False, 3, [], False),
        ("run", True, 3, [], True),
        (FIRST_STAGE, True, 3, [], False),
    ],
)
def test_a_run_that_answered_is_pinned_or_unpinned_and_has_a_note(
    paper, monkeypatch, system, shown_only, answered, buttons, noted
):
    notes = []
    monkeypatch.setattr(history_run, "read_only", lambda: shown_only)
    monkeypatch.setattr(history_run.run_note, "draw", notes.append)
    monkeypatch.setattr(history_run.action_errors, "refused", lambda _place: None)
    monkeypatch.setattr(history_run, "record", lambda _id: Record({}, None))
    made = SimpleNamespace(
        name=str.upper, pinned="pin", row=lambda _id: {"answered": answered},
        study=SimpleNamespace(stored_id="shop"),
    )  # fmt: skip
    drawn = paper(history_run)
    history_run.draw(made, system)
    assert drawn.of("button") == buttons
    assert notes == ([system] if noted else [])
