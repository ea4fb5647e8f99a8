"""The check report in words."""

from types import SimpleNamespace

import pytest

from rankdash.analysis.labels.check import FIRST_STAGE, RankingCheck
from rankdash.findings import Finding
from rankdash.ui.data import check_view


@pytest.mark.parametrize(
    ("severity", "remedy", "shown"),
    [("error", "", True), ("warning", "", True), ("note", "", False), ("note", "Add texts.", True)],
)
def test_a_note_is_shown_with_the_warnings_where_something_can_be_done(severity, remedy, shown):
    assert check_view._actionable(SimpleNamespace(severity=severity, remedy=remedy)) is shown


@pytest.mark.parametrize(
    ("low", "high", "said"), [(5, 5, "the same for every query"), (4, 5, "4 to 5")]
)
def test_a_spread_is_said_where_there_is_one(low, high, said):
    assert check_view._range_of(SimpleNamespace(low=low, high=high)) == said
    assert check_view._range_of(None) == ""


@pytest.mark.parametrize(
    ("warnings", "said"),
    [(0, "No warnings."), (1, "1 warning: check it before you trust the numbers."),
     (2, "2 warnings: check them before you trust the numbers.")],
)  # fmt: skip
def test_warnings_are_counted(warnings, said):
    assert check_view._summary(SimpleNamespace(warnings=[None] * warnings)) == said


def finding(severity="warning", remedy="", **more: object) -> Finding:
    return Finding(severity, "code", f"A {severity}.", {}, remedy, **more)


def test_findings_are_in_two_tables_without_what_blocks_reranking(paper):
    drawn = paper(check_view)
    blocks = finding("error", "Add texts.")
    shown = [finding(), finding("note", "Do it.", examples=("x" * 300,)), finding("note")]
    report = SimpleNamespace(findings=[blocks, *shown], blocks_reranking=blocks)
    check_view._findings(report)
    above, below = drawn.of("html")
    assert (above.count("<tr>"), below.count("<tr>")) == (3, 2)
    assert "⚠ warning" in above and "Do it." in above and "Add texts." not in above
    assert "ℹ note" in below and drawn.of("expander") == ["1 note on how it was read"]
    assert "x" * 190 in above and "x" * 201 not in above
    assert drawn.of("caption") == []


def test_of_no_finding_nothing_is_drawn(paper):
    drawn = paper(check_view)
    check_view._findings(SimpleNamespace(findings=[], blocks_reranking=None))
    assert (drawn.of("caption"), drawn.of("html"), drawn.of("expander")) == (["Nothing."], [], [])


@pytest.mark.parametrize("known", [False, True])
def test_the_cards_of_a_data_set(paper, known):
    drawn = paper(check_view)
    spread = SimpleNamespace(low=3, median=4.0, high=9)
    check_view._counts(
        SimpleNamespace(
            queries=1234,
            labelled_queries=1,
            documents=56,
            document_chars=spread if known else None,
            candidates_per_query=spread if known else None,
            judged_at_10=0.25,
        )
    )
    values = [(first, more) for kind, first, more in drawn.drawn if kind == "metric"]
    assert [first for first, _more in values] == [
        "Queries",
        "Documents",
        "Median candidates",
        "Judged@10 of the first stage",
    ]
    assert drawn.of("caption") == [
        "1 with labels",
        "4 characters at the median" if known else "no text",
        "3 to 9" if known else "",
        "share of its top ten that has a label",
    ]


@pytest.mark.parametrize("labels", [0, 3])
def test_labels_have_a_chart_where_there_are_any(paper, monkeypatch, labels):
    drawn, charts = paper(check_view), []
    monkeypatch.setattr(check_view.plotly_chart, "draw", lambda _made, key: charts.append(key))
    check_view._labels(SimpleNamespace(labels=labels, label_histogram=[]), 0)
    assert drawn.of("markdown") == [f"**{labels} labels**"]
    assert charts == (["check.labels"] if labels else [])


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("said", [False, True])
def test_what_blocks_reranking_is_said_once(paper, monkeypatch, blocked, said):
    drawn = paper(check_view)
    found = finding("error", "Add texts.") if blocked else None
    report = SimpleNamespace(blocks_reranking=found, warnings=[])
    row = SimpleNamespace(id="shop", name="Shop")
    monkeypatch.setattr(check_view, "workspace", lambda: SimpleNamespace(datasets=lambda: [row]))
    read = SimpleNamespace(in_force=str, check_report=lambda _id: report)
    monkeypatch.setattr(check_view, "stored", read)
    monkeypatch.setattr(check_view.label_plan, "sampled", lambda _id: None)
    monkeypatch.setattr(check_view.label_direction, "draw", lambda *_a: None)
    monkeypatch.setattr(check_view.lights_view, "draw", lambda *_a: None)
    for name in ("_counts", "_findings", "_labels", "_rankings", "_systems"):
        monkeypatch.setattr(check_view, name, lambda *_a: None)
    check_view.draw("shop", blocking_said=said)
    assert drawn.of("warning") == (["A error. Add texts."] if blocked and not said else [])
    assert drawn.of("subheader") == ["Check report: Shop"]


def test_systems_that_came_with_the_files_are_named_and_compared(paper, monkeypatch):
    drawn = paper(check_view)
    kinds = {"a": "precomputed", "b": "bm25", "c": "precomputed"}
    runs = [SimpleNamespace(id=i, name=i.upper(), reranker=kind) for i, kind in kinds.items()]
    monkeypatch.setattr(check_view, "workspace", lambda: SimpleNamespace(runs=lambda _id: runs))
    monkeypatch.setattr(check_view.view, "page", lambda name: name)
    monkeypatch.setattr(check_view.address, "offered", lambda: {"data": "shop"})
    check_view._systems("shop")
    assert drawn.of("caption") == ["2 systems came with the files: A, C."]
    (link,) = [settings for kind, _first, settings in drawn.drawn if kind == "page_link"]
    assert link["query_params"] == {"data": "shop", "system": ["a", "c"]}
    del runs[0], runs[1]
    check_view._systems("shop")
    assert len(drawn.of("page_link")) == 1


@pytest.mark.parametrize(
    ("how", "called", "name"),
    [("given", "", "First stage"), ("given", "BM25 of the shop", "BM25 of the shop"),
     ("corpus-bm25", "", "First stage (BM25)"),
     ("rows", "", "First stage (order of the rows)")],
)  # fmt: skip
def test_a_first_stage_made_here_is_listed_as_that(paper, monkeypatch, how, called, name):
    drawn = paper(check_view)
    data = SimpleNamespace(first_stage=how, candidates_name=called)
    monkeypatch.setattr(check_view.stored, "dataset", {"set": data}.__getitem__)
    rows = [RankingCheck(each, 2, 6, 0.5, 0, 0) for each in (FIRST_STAGE, "mini")]
    check_view._rankings("set", SimpleNamespace(rankings=rows))
    [(listed, more)] = [each[1:] for each in drawn.drawn if each[0] == "dataframe"]
    assert list(listed["ranking"]) == [name, "mini"] and more["placeholder"] == "–"
    assert drawn.of("markdown") == ["**Rankings**"]
