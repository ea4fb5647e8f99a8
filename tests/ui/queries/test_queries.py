"""The Queries page: filters and the open query live in the address, and the detail says why."""

import io
import re
from dataclasses import replace
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest

from rankdash.ranking.ranking import Ranking, Reading
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.ui.queries import query_list_file
from tests.stored import keep_lists, keep_rows
from tests.ui.test_pages import in_address, open_page, texts

FILTERS = ("outcome", "reason", "segment", "text", "state", "delta", "share")


def listed(app):
    return app.dataframe[0].value


def press(app, label: str) -> None:
    next(button for button in app.button if button.label == label).click().run()
    assert not app.exception


def cards(app) -> str:
    return "".join(element.proto.body for element in app.get("html"))


def test_a_link_shows_the_queries_it_names_in_its_order(app, stored):
    open_page(app, "queries", outcome="helped", segment="kind=b", sort="helped", text="RETURN 1")
    assert list(listed(app)["query"]) == [f"how to return {n}" for n in (11, 10, 14, 13)]
    assert "4 of 16 queries listed" in texts(app)
    assert app.subheader[0].value == "how to return 11", "the first of them"


def test_filters_are_written_into_the_address_and_cleared_from_it(app, stored):
    open_page(app, "queries")
    assert len(listed(app)) == 16
    assert not set(FILTERS) & set(app.query_params)
    app.multiselect(key="address.outcome").select("same").run()
    app.slider(key="address.delta").set_value((0.0, 0.2)).run()
    app.text_input(key="address.text").set_value("q12").run()
    assert in_address(app, "outcome") == ["same"]
    assert in_address(app, "delta") == ["0..0.2"]
    assert in_address(app, "text") == ["q12"]
    assert list(listed(app)["query"]) == ["how to return 12"]
    press(app, "Clear filters")
    assert len(listed(app)) == 16
    assert not set(FILTERS) & set(app.query_params)
    assert app.subheader[0].value == "how to return 12", "the query that was open stays open"


def test_what_a_link_cannot_mean_filters_nothing(app, stored):
    open_page(
        app,
        "queries",
        delta="nan..x",
        share="7",
        reason="nonsense",
        segment="kind=zzz",
        sort="disagreement",
        q="nobody",
    )
    assert len(listed(app)) == 16
    assert not {"delta", "share", "reason", "segment", "sort"} & set(app.query_params)


def test_no_query_left_says_so(app, stored):
    open_page(app, "queries", text="nothing like it")
    assert "No query matches these filters." in texts(app)
    press(app, "Clear filters")
    assert len(listed(app)) == 16


def test_next_and_previous_follow_the_order_of_the_list(app, stored):
    open_page(app, "queries", sort="helped")
    order = list(listed(app)["query"])
    press(app, "Next")
    press(app, "Next")
    press(app, "Previous")
    assert app.subheader[0].value == order[1]
    assert "2 of 16" in texts(app)
    assert in_address(app, "q") == [f"q{order[1].rpartition(' ')[2]}"]


def test_the_strip_says_values_ceiling_and_share_of_the_headroom(app, stored):
    assert {*texts(open_page(app, "queries", q="q3")).splitlines()} >= {
        "**NDCG@10 0.431 → 1.000** · +0.569 helped ▲ · best possible 1.000 · 100% of the "
        "potential gain realised",
        "Judged@10 100% → 100% · query q3",
    }
    assert {*texts(open_page(app, "queries", q="q0")).splitlines()} >= {
        "**NDCG@10 1.000 → 1.000** · 0.000 same = · best possible 1.000 · the baseline is "
        "already the best possible"
    }


def bar(picture: str) -> tuple[float, float]:
    """Where the bar of a picture begins and ends."""
    found = re.search(r"rect x='([\d.]+)' y='4' width='([\d.]+)'", unquote(picture))
    start, wide = map(float, found.groups())
    return start, start + wide


def test_bars_share_one_axis_and_point_the_way_of_the_change(app, stored):
    open_page(app, "queries", sort="given")
    shown = listed(app).set_index("query")["bar"]
    (middle, most), (_, less), none = (bar(shown[f"how to return {n}"]) for n in (3, 1, 0))
    assert most > less > middle
    assert none == (middle, middle)
    assert (most - middle) / (less - middle) == pytest.approx(0.569 / 0.369, rel=0.05)
    assert shown.isna().sum() == 1, "a failed query has no bar"
    app.selectbox(key="address.base").select_index(1).run()
    turned = listed(app).set_index("query")["bar"]
    start, end = bar(turned["how to return 3"])
    assert start < end == pytest.approx(middle, abs=0.2)


@pytest.fixture
def read_run(workspace, stored) -> str:
    """A second run, that read part of its documents and turns every list around."""
    lists = [(f"q{q}", [f"d{d}" for d in (3, 2, 1, 0)], [4.0, 3.0, 2.0, 1.0]) for q in range(16)]
    run = run_from_ranking("reader", stored, Ranking.from_lists(lists), "reader.trec")
    full = np.full(64, 1840, dtype=np.int32)
    full[1::4] = -1
    read = np.full(64, 512, dtype=np.int32)
    read[2::4] = full[2::4] = -1
    return workspace.save_run(replace(run, reading=Reading(read, full)))


def test_cards_say_rank_move_grade_score_and_what_the_model_saw(app, read_run):
    open_page(app, "queries", q="q3", vs=read_run)
    said = cards(app)
    assert said.count("the model saw 512 of 1,840 tokens") == 2
    assert said.count("the model read 512 tokens") == 1
    first = said.split("<div class='rd-card")[1]
    assert "document d3" in first
    assert "▲3 First stage 4" in first
    assert "= better 1" in first
    assert "1 of 1" in first
    assert "score of reader 4" in first
    app.button_group(key="address.cards").set_value("first-stage").run()
    assert "document d0" in cards(app).split("<div class='rd-card")[1]
    assert "tokens" not in cards(app), "what another system read is not said here"
    assert in_address(app, "cards") == ["first-stage"]


def test_a_relevant_document_below_the_cutoff_has_its_card_after_the_others(app, read_run):
    open_page(app, "queries", q="q3", vs=read_run, k="2", cards="first-stage")
    found = cards(app)
    places = [
        found.index(part) for part in ("document d0", "document d1", "further down", "document d3")
    ]
    assert places == sorted(places)
    assert "document d2" not in found
    press(app, "Show 2 more")
    assert "document d2" in cards(app)
    assert "further down" not in cards(app)


def test_another_order_begins_with_its_first_query(app, stored):
    open_page(app, "queries", q="q12")
    app.selectbox(key="address.sort").select("helped").run()
    assert app.subheader[0].value == listed(app)["query"].iloc[0]
    assert "1 of 16" in texts(app)


def test_a_link_may_order_by_any_column_and_the_steps_follow(app, stored):
    open_page(app, "queries", sort="-text")
    order = list(listed(app)["query"])
    assert order == sorted(order, reverse=True)
    assert app.selectbox(key="address.sort").value == "-text"
    press(app, "Next")
    assert app.subheader[0].value == order[1]


def test_the_state_is_shown_where_some_query_is_not_ok(app, stored):
    open_page(app, "queries")
    shown = listed(app).set_index("query")["state"]
    assert "state" in app.dataframe[0].proto.column_order
    assert shown["how to return 15"] == "failed"
    assert set(shown.drop("how to return 15")) == {""}
    app.multiselect(key="address.outcome").select("helped").run()
    assert "state" not in app.dataframe[0].proto.column_order


def test_disagreement_is_an_order_where_there_is_more_than_one_reranker(app, read_run):
    open_page(app, "queries", sort="disagreement")
    spread = listed(app)["spread"]
    assert spread.is_monotonic_decreasing
    assert spread.iloc[0] > 0


def test_hostile_documents_are_shown_as_text(app, workspace):
    hostile = "<img src=x onerror=alert(1)> ![p](http://evil.invalid/a.png) <mark>return</mark>"
    rows = "query_id,query,doc_id,document,label,score\n" + "".join(
        f"q{q},return,d{d},{hostile} {d},{int(d == 1)},{2 - d}\n"
        for q in range(6)
        for d in range(2)
    )
    best = [(f"q{q}", ["d1", "d0"], [2.0, 1.0]) for q in range(6)]
    keep_lists(workspace, keep_rows(workspace, rows, "H"), best, "r")
    open_page(app, "queries")
    shown = re.findall(r"<p>(.*?)</p>", cards(app))
    safe = (
        "&lt;img src=x onerror=alert(1)&gt; ![p](http://evil.invalid/a.png) "
        "&lt;mark&gt;<mark>return</mark>&lt;/mark&gt;"
    )
    assert shown == [f"{safe} 1", f"{safe} 0"]
    assert "<img" not in cards(app)


def test_a_query_without_a_result_is_no_fall_of_its_documents(app, read_run):
    said = texts(open_page(app, "queries", q="q15"))
    assert "better has no result here." in said
    lists = next(each for each in app.button_group if each.label == "Documents in the order of")
    assert lists.options == ["First stage", "reader"]
    drawn = str(app.get("plotly_chart")[-1].proto)
    assert "better" not in drawn


def test_what_has_no_value_is_a_dash_in_every_language(app, stored):
    open_page(app, "queries", lang="zh", q="q15")
    assert app.dataframe[0].proto.placeholder == "–"
    assert "列出 16 条查询中的 16 条" in texts(app)


def test_the_list_as_csv_is_what_the_filters_leave_in_english(app, stored):
    open_page(app, "queries", outcome="helped", sort="helped", lang="zh")
    assert "CSV" in next(
        each.label for each in app.get("download_button") if each.proto.id.endswith("queries.csv")
    )
    table = pd.DataFrame(
        {
            "query_id": ["q1", "q15"],
            "text": ["怎么退货", "=1+1"],
            "before": [0.5, 0.25],
            "after": [1.0, 0.5],
            "delta": [0.5, 0.25],
            "reason": ["rescued", "mixed"],
            "state": "ok",
        }
    )
    marks = pd.DataFrame({"query_id": ["q15"], "tags": ["=1+1"], "note": ["n"]})
    written = query_list_file.as_csv(table, marks, ("First stage", "=better"))
    read = pd.read_csv(io.BytesIO(written))
    assert {name: values.tolist() for name, values in read.fillna("").items()} == {
        "query_id": ["q1", "q15"],
        "text": ["怎么退货", "'=1+1"],
        "baseline": ["First stage"] * 2,
        "challenger": ["'=better"] * 2,
        "before": [0.5, 0.25],
        "after": [1.0, 0.5],
        "delta": [0.5, 0.25],
        "reason": ["rescued", "mixed"],
        "state": ["ok"] * 2,
        "tags": ["", "'=1+1"],
        "note": ["", "n"],
    }
    assert list(read.columns)[:7] == [
        *("query_id", "text", "baseline", "challenger", "before", "after", "delta"),
    ]


def test_the_line_under_the_title_says_when_only_judged_documents_count(app, stored):
    app.session_state["sidebar.rules"] = True
    open_page(app, "queries")

    def under_the_title() -> list[str]:
        line = next(each for each in texts(app).splitlines() if each.startswith("Shop · "))
        return line.split(" · ")[1:-1]

    plain = ["First stage → better", "NDCG@10", "16 queries"]
    assert under_the_title() == plain
    rule = next(
        each for each in app.selectbox if each.label == "Condensed lists (judged documents only)"
    )
    rule.select_index(rule.options.index("yes")).run()
    assert under_the_title() == [
        *plain[:2],
        "**condensed lists (judged documents only)**",
        plain[2],
    ]


@pytest.mark.parametrize(("field", "value"), [("share", "7"), ("tag", "gone"), ("state", "odd")])
def test_a_filter_of_a_link_that_is_not_to_be_had_is_said(app, stored, field, value):
    open_page(app, "queries", **{field: value})
    assert any(f"“{value}”" in each.value for each in app.warning)
