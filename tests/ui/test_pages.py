"""Every page, in every language, with and without data: it draws, and it says what it should."""

import ast
import re
from pathlib import Path

import pytest
from streamlit.proto.Metric_pb2 import Metric as MetricProto

from rankdash.ui.overview import overview_causes
from rankdash.ui.sidebar import view
from rankdash.ui.state import address, samples, server
from tests.stored import keep_lists, keep_rows, keep_sample

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))


def texts(app) -> str:
    kinds = (app.title, app.subheader, app.caption, app.markdown, app.info, app.error, app.success)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def htmls(app) -> list[str]:
    return [str(each.value) for each in app.get("html")]


def leaderboard(app) -> str:
    [body] = [each for each in htmls(app) if "rd-board" in each]
    return body


def in_address(app, name: str) -> list[str]:
    value = app.query_params[name]
    return [value] if isinstance(value, str) else list(value)


def open_page(app, name: str, **params: str | list[str]):
    for key, value in params.items():
        app.query_params[key] = value
    if name != "overview":
        app.switch_page(str(ROOT / "pages" / f"{name}.py"))
    app.run()
    assert not app.exception
    return app


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_draws_without_data_and_points_to_the_next_step(app, name, language):
    open_page(app, name, lang=language)
    assert app.title
    assert not app.error


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_draws_with_data_and_a_run(app, stored, name, language):
    open_page(app, name, lang=language)
    assert app.title
    assert not app.error


def test_an_empty_workspace_offers_to_import_one(app, workspace):
    open_page(app, "data")
    assert "Export or import the workspace" in [each.label for each in app.expander]


def test_overview_compares_by_query_and_counts_the_failed_one_apart(app, stored):
    said = texts(open_page(app, "overview"))
    # Relevant documents stand at ranks 1 to 4, four times each; the run puts them first and fails
    # on one.
    assert {*said.splitlines()} >= {
        "**better**: 11 helped · 4 same (±0.005) · 0 hurt, of 15 queries · 1 excluded (failed)",
        "Choose a row to see its queries. 1 query is excluded on both sides and counts neither "
        "for nor against: failed (1).",
    }


def test_a_chosen_reason_opens_the_queries_that_it_explains(app, stored, monkeypatch):
    went = []
    monkeypatch.setattr(overview_causes, "reasons", lambda *_: "idle")
    monkeypatch.setattr(view, "go", lambda page: went.append((page, address.one("reason"))))
    open_page(app, "overview")
    assert {*went} == {("queries", "idle")}


def test_queries_say_why_a_failed_query_has_no_comparison(app, stored):
    said = texts(open_page(app, "queries", q="q15"))
    assert {*said.splitlines()} >= {r"**NDCG@10: no comparison** · failed · no \*luck\*"}


def test_a_choice_in_the_address_is_what_the_page_shows(app, stored):
    open_page(app, "overview", metric="mrr", k="3")
    assert "MRR@3" in texts(app)
    assert app.session_state["address.choices"]["k"] == ["3"]


def test_what_is_chosen_is_written_into_the_address(app, stored):
    open_page(app, "overview")
    app.selectbox(key="address.metric").select("map").run()
    assert in_address(app, "metric") == ["map"]
    assert in_address(app, "data") == [stored]


def test_a_rule_that_is_not_the_default_is_in_the_address_and_in_force(app, stored):
    app.session_state["overview.definitions"] = True
    open_page(app, "overview", judged_only="True", level="0.9")
    assert in_address(app, "judged_only") == ["True"]
    rules = app.dataframe[-2].value.set_index("setting")["current value"]
    assert rules["Condensed lists (judged documents only)"] == "yes"
    assert rules["Confidence"] == "0.9"
    assert "90% interval" in leaderboard(app)


def test_the_verdict_is_a_sentence_with_its_interval_and_what_was_left_out(app, stored):
    said = texts(open_page(app, "overview"))
    assert {*said.splitlines()} >= {
        "better is better than First stage: NDCG@10 rises by 52.8%, from 0.654 to 1.000 (+0.346) "
        "over 15 queries, and with 95% confidence the true gain is between +0.191 and +0.472.",
        "p 0.0010 · 100% of the potential gain realised · 1 excluded (failed) · minimum detectable "
        "change 0.177",
    }
    assert "nan" not in said.lower()


def test_the_verdict_has_its_caveats_and_the_leaderboard_below_it(app, stored):
    open_page(app, "overview")
    [listed] = [each for each in htmls(app) if "rd-caveats" in each]
    assert re.findall("<li>(.*?)</li>", listed) == [
        "Proven better on MRR@10 and MAP@10.",
    ]
    [best, baseline] = re.findall("<tr.*?</tr>", leaderboard(app).partition("<tbody>")[2])
    assert "class='rd-focus'" in best
    assert "better · 1 query failed" in best
    assert "class='rd-focus'" not in baseline
    assert ">baseline · before reranking<" in baseline


def test_the_best_challenger_is_in_focus_until_another_is_chosen(app, stored, workspace):
    """The fixture's run is the best; this one leaves the order as it is."""
    lists = [(f"q{q}", [f"d{d}" for d in range(4)], [4.0, 3.0, 2.0, 1.0]) for q in range(16)]
    same = keep_lists(workspace, stored, lists, "<i>same</i> **as** before")
    best = next(row.id for row in workspace.runs(stored) if row.id != same.id)
    open_page(app, "overview")
    assert app.session_state["address.choices"]["vs"] == [best]
    assert in_address(app, "vs") == [best]
    assert "&lt;i&gt;same&lt;/i&gt; **as** before" in leaderboard(app)
    assert "<i>" not in "".join(htmls(app))
    app.session_state["address.choices"]["vs"] = [same.id]
    app.run()
    assert any("are as good as the same" in line or "score the same" in line
               for line in texts(app).splitlines())  # fmt: skip
    focused = re.search("<tr class='rd-focus'>.*?</tr>", leaderboard(app)).group()
    assert "before" in focused


def test_the_chart_follows_the_choice_of_latency_or_price(app, workspace):
    samples.open_sample(workspace, "en")
    open_page(app, "overview")
    assert app.button_group(key="address.trade").value == "p95"
    app.button_group(key="address.trade").set_value("cost").run()
    assert not app.exception
    assert in_address(app, "trade") == ["cost"]


def test_without_a_latency_or_a_price_there_is_no_chart_of_them(app, stored):
    open_page(app, "overview")
    assert not [each for each in app.button_group if each.key == "address.trade"]
    said = texts(app)
    assert "No price is known." not in said
    assert r"Not in the chart\: better \(price\: unknown\)\." not in said
    assert "Leaderboard" in said


def test_with_fewer_than_five_pairs_there_is_a_plain_sentence_and_no_number(app, workspace):
    rows = "query_id,query,doc_id,document,label,score\n" + "".join(
        f"q{q},text {q},d{d},document {d},{int(d == 1)},{2 - d}\n"
        for q in range(3)
        for d in range(2)
    )
    best = [(f"q{q}", ["d1", "d0"], [2.0, 1.0]) for q in range(3)]
    keep_lists(workspace, keep_rows(workspace, rows, "Few"), best, "turned")
    said = texts(open_page(app, "overview"))
    assert {*said.splitlines()} >= {
        "Too few queries to compare turned with First stage: 3, where at least 6 are needed. Label "
        "more queries."
    }
    assert "nan" not in said.lower()


@pytest.mark.parametrize("part", ["table", "segments", "unjudged", "targets", "definitions"])
def test_every_folded_part_draws_when_opened(app, stored, part):
    app.session_state[f"overview.{part}"] = True
    open_page(app, "overview")
    assert not app.error
    shown = len(app.dataframe) + len(app.get("html"))
    app.session_state[f"overview.{part}"] = False
    app.run()
    assert shown > len(app.dataframe) + len(app.get("html"))


def test_a_library_error_is_said_in_words_and_not_as_a_traceback(app, stored, monkeypatch):
    from rankdash.errors import StoreError

    open_page(app, "run")
    said = []
    monkeypatch.setattr("streamlit.error", lambda text, **_: said.append(text))
    assert server.on_script_error(StoreError("The disk {name!r} is full.", name="*x*"))
    assert server.on_script_error(ZeroDivisionError("secret"))
    assert said[0].startswith("The disk")
    assert "secret" not in said[1]


@pytest.mark.parametrize("name", PAGES)
def test_pages_stay_thin(name):
    assert len((ROOT / "pages" / f"{name}.py").read_text().splitlines()) < 150


def test_nothing_renders_raw_html_or_remote_icons():
    for path in [*(ROOT / "rankdash" / "ui").glob("*.py"), *(ROOT / "pages").glob("*.py")]:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword):
                assert node.arg != "unsafe_allow_html", path


def test_a_run_that_appears_after_a_visit_is_compared(app, stored, workspace):
    run = workspace.run(workspace.runs(stored)[0].id)
    workspace.delete_run(run.id)
    open_page(app, "overview")
    assert {*texts(app).splitlines()} >= {
        "There is only the baseline so far. Run a reranker to see what it changes."
    }
    workspace.save_run(run)
    app.run()
    assert {*texts(app).splitlines()} >= {
        "**better**: 11 helped · 4 same (±0.005) · 0 hurt, of 15 queries · 1 excluded (failed)"
    }


def test_a_change_of_nothing_points_nowhere(app, stored):
    open_page(app, "overview")
    arrows = {card.label: (card.delta, card.proto.direction) for card in app.metric}
    assert arrows["Judged@10"] == ("0 percentage points", MetricProto.NONE)
    assert arrows["NDCG@10"][1] == MetricProto.UP


def test_the_sample_is_called_one(app, workspace):
    keep_sample(workspace)
    [shown] = open_page(app, "overview").selectbox(key="address.data").options
    assert shown == "Help centre (sample)"
