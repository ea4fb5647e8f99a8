"""Which parts stand on a page, in which order and with what: each page is played by itself, with
its parts told by name and nothing drawn."""

import ast
import importlib
import runpy
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from rankdash.study.systems import FIRST_STAGE

PAGES = Path(__file__).parents[2] / "pages"


class EndOfPageError(Exception):
    """In place of the end of a page."""


def study(*challengers: str, **more: Any) -> SimpleNamespace:
    return SimpleNamespace(
        challengers=challengers,
        baseline=FIRST_STAGE,
        cutoff=10,
        specs=("ndcg@10",),
        name=lambda system: f"the {system}",
        **{"judge": None, "stored_id": "d", **more},
    )


def parts_of(page: str) -> list[tuple[Any, str]]:
    """What of rankdash's interface and studies a page uses: the module and the name in it."""
    found, modules = [], {}
    tree = ast.parse((PAGES / f"{page}.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.startswith(
            ("rankdash.ui", "rankdash.study")
        ):
            for each in node.names:
                try:
                    modules[each.name] = importlib.import_module(f"{node.module}.{each.name}")
                except ModuleNotFoundError:
                    found.append((importlib.import_module(node.module), each.name))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) in modules:
            found.append((modules[node.value.id], node.attr))
    return found


# Imported before any test puts something in place: a module would keep it for ever.
PARTS = {page.stem: parts_of(page.stem) for page in PAGES.glob("*.py")}


@pytest.fixture
def play(monkeypatch, paper):
    """Plays a page where its parts give what is told, by "module.name"; returns each part that was
    called, with what it was given, and what the page itself said. A folded part counts as open."""

    def played(page: str, **gives: Any) -> tuple[list[str], dict[str, tuple], Any]:
        order, given = [], {}

        def part(module: Any, name: str) -> Any:
            called = f"{module.__name__.rpartition('.')[2]}.{name}"

            def call(*arguments: Any, **settings: Any) -> Any:
                if called == "cache.shared":
                    return arguments[0](*arguments[1:], **settings)
                if called == "estimate_strip.above_means":
                    return gives.get("estimate_strip__above_means", True)
                if called == "stored.damage":
                    return gives.get("stored__damage")
                order.append(called)
                given[called] = (*arguments, *settings.values())
                if called == "lazy_expander.fold":
                    order[-1] = f"fold {arguments[1]}"
                    drawn.drawn.append(("fold", arguments[0], settings))
                    arguments[3]()
                found = gives.get(called.replace(".", "__"))
                if isinstance(found, Exception):
                    raise found
                return found

            return call

        def stop() -> None:
            raise EndOfPageError

        drawn = paper()
        drawn.stop = stop
        drawn.fragment = lambda part: part
        monkeypatch.setitem(sys.modules, "streamlit", drawn)
        for module, name in PARTS[page]:
            monkeypatch.setattr(module, name, part(module, name))
        try:
            runpy.run_path(str(PAGES / f"{page}.py"))
        except EndOfPageError:
            order.append("end")
        return order, given, drawn

    return played


NOTHING_YET = {"view__nothing_yet": EndOfPageError(), "view__needs_challenger": EndOfPageError()}


def test_cost_shows_the_system_in_focus_or_the_calculator_for_before_any_run(play):
    alone, both = study(), study("a")
    order, given, _drawn = play("cost", view__study=both, view__in_focus="a")
    assert order == ["view.study", "view.caption", "view.in_focus", "cost_view.draw"]
    assert given["cost_view.draw"] == (both, "a")
    order, given, _drawn = play("cost", view__study=alone)
    assert order[2:] == ["view.only_baseline", "cost_roi.before_any_run"]
    assert given["view.only_baseline"] == (alone, "cost")


UPLOAD, BY_NAME = ["uploads.upload_panel"], ["uploads.asking", "fold data.by_name"]
OWN = ["open_by_name.draw"]
SHARE = ["fold data.share", "sharing_files.draw"]
LABELS = ["fold data.labels", "new_labels.draw"]
WELCOME = ["empty_page.preview", "uploads.sample_buttons"]
LISTED, SAMPLES = ["dataset_list.draw"], ["uploads.sample_buttons"]


@pytest.mark.parametrize(
    ("rows", "chosen", "shown_only", "asking", "parts"),
    [
        ([], None, False, False, [*WELCOME, *UPLOAD, *BY_NAME, *OWN, *SHARE]),
        ([], None, False, True, [*WELCOME, *UPLOAD, "uploads.asking", *SHARE]),
        ([], None, True, False, []),
        (["x"], "x", False, False,
         [*UPLOAD, *BY_NAME, *OWN, "check_view.draw", *LABELS, *LISTED, *SAMPLES, *SHARE]),
        (["x"], "x", False, True,
         [*UPLOAD, "uploads.asking", "check_view.draw", *LABELS, *LISTED, *SAMPLES, *SHARE]),
        (["x"], None, False, False, [*UPLOAD, *BY_NAME, *OWN, *LISTED, *SAMPLES, *SHARE]),
        (["x"], "x", True, False, ["check_view.draw", *LISTED, *SHARE]),
    ],
)  # fmt: skip
def test_data_offers_what_can_be_done_with_what_is_there(
    play, rows, chosen, shown_only, asking, parts
):
    stored = [SimpleNamespace(id=each) for each in rows]
    order, given, drawn = play(
        "data",
        server__workspace=SimpleNamespace(datasets=lambda: stored),
        server__read_only=shown_only,
        uploads__asking=asking,
        address__one=chosen,
    )
    unsaid = ("server.workspace", "server.read_only", "address.one")
    assert [each for each in order if each not in unsaid] == parts
    assert drawn.of("info") == ["This workspace holds no data set."] * (shown_only and not rows)
    assert len(drawn.of("write")) == (not shown_only and not rows)
    share = "Export the workspace" if shown_only else "Export or import the workspace"
    assert drawn.of("fold")[-1:] == [share] * bool(parts)
    if not shown_only:
        # The samples that are there already are not offered again.
        assert given["uploads.sample_buttons"] == (({"x"}, False) if rows else ((), True))
    if chosen and not shown_only:
        assert given["new_labels.draw"] == ("x",)


@pytest.mark.parametrize(("blocked", "said"), [("x", True), ("y", False), (None, False)])
def test_data_leaves_out_of_the_check_what_the_upload_of_the_same_set_said(play, blocked, said):
    _order, given, _drawn = play(
        "data",
        server__workspace=SimpleNamespace(datasets=lambda: [SimpleNamespace(id="x")]),
        server__read_only=False,
        uploads__upload_panel=blocked,
        address__one="x",
    )
    assert given["check_view.draw"] == ("x", said)


@pytest.mark.parametrize(
    ("chosen", "parts", "said"),
    [
        ([], [], ["Select a run to pin it or to write a note, and two to compare them."]),
        (["a"], ["history_run.draw"], []),
        (["a", "b"], ["history_pair.draw"], []),
        (["a", "b", "c"], ["history_pair.to_overview"], ["Select two to see how they differ."]),
    ],
)
def test_history_says_what_the_selected_runs_are_good_for(play, monkeypatch, chosen, parts, said):
    past = SimpleNamespace(runs=["a", "b", "c"])
    monkeypatch.setattr("dataclasses.replace", lambda of, **changed: (of, changed))
    order, given, drawn = play(
        "history", view__study="study", history_view__past=past, history_table__draw=chosen
    )
    assert order == [
        *("view.study", "history_view.past", "view.caption", "history_view.chart"),
        *("history_view.rests_on", "history_view.looks", "history_table.draw", *parts),
    ]  # fmt: skip
    # Whatever is compared elsewhere, this page is about all runs.
    assert given["view.caption"] == (("study", {"challengers": ()}), ["3 runs"])
    assert drawn.of("caption") == said
    if parts == ["history_run.draw"]:
        assert given["history_run.draw"] == (past, "a")
    if parts == ["history_pair.draw"]:
        assert given["history_pair.draw"] == (past, ["a", "b"])


def test_history_without_a_run_ends_with_the_way_to_one(play):
    order, given, _drawn = play("history", **NOTHING_YET)
    assert order == ["view.study", "history_view.past", "view.nothing_yet", "end"]
    assert given["view.nothing_yet"][0] == "history"
    assert given["view.nothing_yet"][1] == "No run yet"
    assert given["view.nothing_yet"][-1] == "run"


def test_latency_without_times_says_whose_are_not_measured_and_ends(play):
    order, given, _drawn = play("latency", view__study=study("a"), latency__timed=[], **NOTHING_YET)
    assert order[2:] == [
        "latency.timed", "latency_readout.not_timed", "view.nothing_yet", "end"
    ]  # fmt: skip
    assert given["view.nothing_yet"][:2] == ("latency", "No latency measured yet")
    assert given["view.nothing_yet"][-1] == "run"


def test_latency_holds_every_part_against_the_same_target(play):
    one, found = study("a"), ["a"]
    order, given, drawn = play(
        "latency", view__study=one, latency__timed=found, latency_readout__target=50.0
    )
    assert order[3:] == [
        *("latency_readout.target", "latency_readout.measure_again", "latency_readout.draw"),
        *("latency_readout.not_timed", "latency_view.spread"),
        *("fold latency.numbers", "latency_readout.numbers"),
        *("fold latency.machines", "latency_readout.machines", "throughput_view.draw"),
        *("tokens_view.draw", "latency_view.growth"),
    ]  # fmt: skip
    assert drawn.of("fold") == ["All numbers as a table", "The machine, its load, and versions"]
    for part in ("latency_readout.draw", "latency_view.spread"):
        assert given[part] == (one, found, 50.0)
    for part in ("latency_readout.not_timed", "latency_readout.numbers", "latency_view.growth"):
        assert given[part] == (one, found)
    assert given["latency_readout.measure_again"] == (one,)
    assert given["throughput_view.draw"] == (one, 50.0)


ALWAYS = ["verdict_strip.cards", "overview_charts.systems", "overview_charts.cutoffs",
          "fold overview.table", "overview_charts.systems_table"]  # fmt: skip
LAST = ["fold overview.targets", "targets_view.draw", "fold overview.definitions",
        "overview_charts.definitions"]  # fmt: skip


def test_overview_of_the_baseline_alone_shows_its_own_numbers(play):
    one = study()
    order, given, drawn = play("overview", view__study=one, view__in_focus=FIRST_STAGE)
    assert order[3:] == ["view.only_baseline", *ALWAYS, *LAST]
    assert given["view.only_baseline"] == (one, "overview")
    assert given["verdict_strip.cards"] == (one, FIRST_STAGE)
    assert drawn.of("subheader", "page_link") == []


@pytest.mark.parametrize(
    ("picked", "reason", "query", "to_queries"),
    [(None, None, [], []), ("q7", None, ["view.open_query"], []),
     ("", None, ["view.open_query"], []), (None, "idle", [], ["address.choose", "view.go"])],
)  # fmt: skip
def test_overview_opens_the_query_or_the_reason_that_is_chosen(
    play, picked, reason, query, to_queries
):
    one = study("a", "b")
    order, given, _drawn = play(
        "overview",
        view__study=one,
        view__in_focus="b",
        overview_charts__changes=picked,
        overview_causes__reasons=reason,
    )
    assert order[3:] == [
        *("not_compared.draw", "verdict_strip.draw", "leaderboard_view.draw", *ALWAYS),
        *("overview_charts.changes", "view.page", *query),
        *("overview_causes.headroom", "overview_causes.reasons", *to_queries),
        *("fold overview.segments", "overview_causes.segments", "fold overview.unjudged"),
        *("unjudged_view.draw", *LAST),
    ]  # fmt: skip
    for part in ("verdict_strip.draw", "leaderboard_view.draw", "verdict_strip.cards",
                 "overview_charts.changes", "overview_causes.reasons",
                 "overview_causes.segments"):  # fmt: skip
        assert given[part] == (one, "b")
    assert given["not_compared.draw"] == (one,)
    assert given["overview_charts.definitions"] == (one, one.specs)
    if query:
        assert given["view.open_query"] == (picked,)
    if to_queries:
        assert given["address.choose"] == ("reason", "idle")
        assert given["view.go"] == ("queries",)


def test_overview_begins_with_the_verdict_of_a_judge_where_one_is_chosen(play):
    one = study("a", "b", judge="a judge")
    labelled = study("a", "b", judge="a judge", labelling="under way")
    order, given, _drawn = play(
        "overview", view__study=one, view__in_focus="b", label_plan__under_way=labelled
    )
    at = order.index("judged_verdict.draw")
    assert order[at - 1 : at + 2 : 2] == ["label_plan.under_way", "verdict_strip.draw"]
    assert given["judged_verdict.draw"] == (labelled, "b")


@pytest.mark.parametrize(
    ("page", "parts"),
    [
        ("overview", ["view.study", "view.caption", "view.in_focus", "end"]),
        (
            "queries",
            ["view.study", "view.caption", "view.needs_challenger", "label_plan.sampled", "end"],
        ),
        (
            "report",
            ["view.study", "view.caption", "view.needs_challenger", "label_plan.sampled", "end"],
        ),
        ("history", ["view.study", "history_view.past", "end"]),
        ("cost", ["view.study", "view.caption", "label_plan.sampled", "cost_roi.before_any_run"]),
    ],
)
def test_a_page_shows_no_mean_of_some_of_the_labels(play, page, parts):
    order, _given, _drawn = play(
        page,
        view__study=study("a", dataset_id="d"),
        history_view__past=SimpleNamespace(runs=["a"]),
        estimate_strip__above_means=False,
    )
    assert order == parts


@pytest.mark.parametrize("page", ["queries", "report", "cost"])
def test_a_page_of_sampled_labels_is_drawn_from_their_estimate(play, page):
    estimated, labelling = study("b"), object()
    _order, given, _drawn = play(
        page,
        view__study=study("a"),
        label_plan__sampled=labelling,
        label_plan__estimated=estimated,
        estimate_strip__above_means=False,
    )
    drawn = {
        "queries": ("labelled_queries.draw", labelling),
        "report": ("report_view.draw", estimated),
        "cost": ("cost_view.draw", estimated),
    }
    part, what = drawn[page]
    assert what in given[part]


def queries_page(play, kept, opened, sort=None):
    table = pd.DataFrame({"query_id": ["q1", "q2", "q3"], "text": ["one", "two", "three"]})
    listing = SimpleNamespace(table=table, positions={"q1": 0, "q2": 2, "q3": 1}, reach=0.5)
    return play(
        "queries",
        view__study=study("a"),
        view__in_focus="a",
        queries__listing=listing,
        queries__others=["b"],
        query_notes__marks="marks",
        query_notes__tags="tags",
        query_list__titles="titles",
        query_list__height=99,
        view__again=study("a"),
        query_filters__draw=("wanted", sort, nullcontext()),
        query_list__rows=SimpleNamespace(ids=kept, frame=f"{len(kept)} rows"),
        query_list__opened=opened,
        query_panes__draw=(nullcontext(), nullcontext()),
    )


@pytest.mark.parametrize("sort", ["hurt", "text"])
def test_queries_lists_what_is_left_and_opens_one(play, sort):
    order, given, _drawn = queries_page(play, ["q1", "q2"], "q2", sort)
    assert order[-11:] == [
        *("query_list.steps", "query_export.button", "query_list_file.download"),
        *("query_list.height", "query_panes.draw", "query_list.draw"),
        *("query_detail.draw", "query_panes.show"),
        *("address.publish", "sharing_link.follow", "pickers.shown"),
    ]  # fmt: skip
    assert given["view.tally_line"][1] == "a"
    assert given["query_filters.left_line"] == (2, 3)
    assert given["query_filters.draw"][1:] == ("tags", "Judged@10", "titles", {"b": "the b"})
    assert given["query_list.titles"] == (f"the {FIRST_STAGE}", "the a")
    rows = given["query_list.steps"][0]
    assert (rows.ids, given["query_list.steps"][1]) == (["q1", "q2"], "q2")
    assert given["query_list.rows"][1:] == ("a", "wanted", sort, "marks")
    assert given["query_list_file.download"][2:] == ("2 rows", "marks")
    assert given["query_panes.draw"] == ("q2", 99)
    assert given["query_list.draw"] == (rows, sort, "titles", "q2")
    # The row of the open query, wherever the table has it.
    assert given["query_detail.draw"][2]["query_id"] == "q3"
    assert given["query_panes.show"] == ("q2",)


def test_queries_with_none_left_say_how_many_there_are_and_open_none(play):
    order, given, _drawn = queries_page(play, [], None)
    assert order[-4] == "query_list.opened"
    assert order[-3:] == ["address.publish", "sharing_link.follow", "pickers.shown"]
    assert given["query_filters.left_line"] == (0, 3)


def test_rank_shifts_end_where_no_query_has_both_rankings(play):
    order, given, _drawn = play(
        "rank_shifts",
        view__study=study("a"),
        view__in_focus="a",
        shifts_view__moves=SimpleNamespace(query_ids=[]),
        shifts_view__pair_line="A → B",
        view__nothing_yet=EndOfPageError(),
    )
    assert order[-1] == "end"
    assert given["view.nothing_yet"] == (
        "rank_shifts", "No query in common", "A → B: no query has both rankings.", "run"
    )  # fmt: skip


@pytest.mark.parametrize("relevant", [0, 1])
def test_rank_shifts_of_a_single_query_show_every_part(play, relevant):
    """That of relevant documents only where there are any."""
    one = study("a")
    order, given, drawn = play(
        "rank_shifts",
        view__study=study("a"),
        label_plan__without_sampled=one,
        view__in_focus="a",
        shifts_view__moves=SimpleNamespace(query_ids=["q1"]),
        shifts_view__flow=SimpleNamespace(total=relevant),
    )
    assert order[6:] == [
        *("shifts_view.destinations", "shifts_view.sizes", "agreement_view.draw"),
        *("fold shifts.by_query", "shifts_view.by_query", "shifts_view.flow"),
        *("fold shifts.farthest", "shifts_view.farthest") * relevant,
        "skipping_view.draw",
    ]  # fmt: skip
    for part in ("moves", "destinations", "sizes", "by_query", "flow", *["farthest"] * relevant):
        assert given[f"shifts_view.{part}"] == (one, "a")
    assert drawn.of("fold") == [
        "Query by query, the most reordered first",
        *["Relevant documents that moved farthest"] * relevant,
    ]


@pytest.mark.parametrize("page", ["queries", "rank_shifts", "report"])
def test_pages_that_compare_end_without_a_challenger(play, page):
    one = study()
    order, given, _drawn = play(
        page, view__study=one, label_plan__without_sampled=one, **NOTHING_YET
    )
    assert order[-3:] == ["view.caption", "view.needs_challenger", "end"]
    assert given["view.study"] == (page,)
    assert given["view.needs_challenger"] == (one, page)


def test_report_of_a_comparison_is_drawn(play):
    one = study("a")
    order, given, _drawn = play("report", view__study=one)
    assert order[-1] == "report_view.draw" and given["report_view.draw"] == (one,)


@pytest.mark.parametrize(
    ("shown_only", "parts"),
    [
        (False, ["run_form.draw", "job_list.draw", "combine_form.draw", "run_list.draw",
                 "cache_panel.draw"]),
        (True, ["run_list.draw"]),
    ],
)  # fmt: skip
def test_run_that_is_only_shown_lists_runs_and_starts_none(play, shown_only, parts):
    order, given, _drawn = play("run", address__one="shop", server__read_only=shown_only)
    assert [each for each in order if each.endswith("draw")] == parts
    for part in parts[:4]:
        assert given[part] == ("shop",)


def test_run_without_a_data_set_points_to_one(play):
    order, given, _drawn = play("run", **NOTHING_YET)
    assert order == ["address.one", "view.nothing_yet", "end"]
    assert given["view.nothing_yet"][:2] == ("run", "No data set yet")
    assert given["view.nothing_yet"][-1] == "data"
