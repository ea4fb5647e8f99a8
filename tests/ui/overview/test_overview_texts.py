"""What the parts of Overview say: the verdict with its facts, cards, reasons and kinds."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
import streamlit as st
from streamlit.proto.Metric_pb2 import Metric
from streamlit.testing.v1 import AppTest

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.ranking import Run
from rankdash.core.study.study import Study
from rankdash.features.overview import page as overview_page
from rankdash.features.overview import page_leaderboard, page_verdict
from tests.approved import table
from tests.ui.parts import LANGUAGES, component, dataset_of, drawn, run_of, said, send, study_of

QUERIES, DOCS = 24, 4
ORDER = [f"d{d}" for d in range(DOCS)]


def data(queries: int = QUERIES):
    """The relevant document of each query is at rank 1 to 4. topic: of two large groups and a small
    one. difficulty: a column of one's own, with the name of one that is derived."""
    return dataset_of(
        "query_id,query,doc_id,document,label,score,topic,difficulty\n"
        + "".join(
            f"q{q},how to return {q},{doc},document {doc},{int(d == q % DOCS)},{DOCS - d},"
            f"{'abc'[(q > 10) + (q > 21)]},{'xy'[q % 2]}\n"
            for q in range(queries)
            for d, doc in enumerate(ORDER)
        )
    )


DATA = data()


def moved(name: str, up: int, every: int = 1, lacking: str = "", **fields: object) -> Study:
    """The study of a run that moves the relevant document of some queries up, at most to rank 1."""
    lists = {}
    for q in range(QUERIES):
        docs, at = [*ORDER], q % DOCS
        to = min(max(at - up, 0), DOCS - 1) if q % every == 0 else at
        docs.insert(to, docs.pop(at))
        lists[f"q{q}"] = [doc for doc in docs if doc != lacking]
    made = run_of(DATA, name, lists)
    rows = made.queries.assign(**fields.pop("rows", {}))
    return study_of(DATA, replace(made, queries=rows), **fields)


def runs_of(study: Study) -> list[Run]:
    return [run for each in study.challengers if (run := study.run(each)) is not None]


BETTER, SAME, WORSE = moved("better", 4), moved("same", 0), moved("worse", -1)
STUDIES = {
    "better": BETTER,
    "the same": SAME,
    "worse": WORSE,
    "few changes": moved("few", 1, every=6),
    "a list of its own": moved("own", 4, lacking="d3"),
    "a small gain": moved("small", 1, statistics=StatisticsSettings(worthwhile=0.5)),
    "another level": moved("better", 4, statistics=StatisticsSettings(level=0.9)),
    "every query failed": moved("failed", 4, rows={"state": "failed", "reason": "why"}),
}


def strip(study: Study) -> Callable[[], None]:
    def draw() -> None:
        (system,) = study.challengers
        page_verdict.draw(study, system)
        page_verdict.cards(study, system)

    return draw


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_overview_says_of_a_system(approved, language):
    cases = {}
    for name, study in STUDIES.items():
        cases[name] = said(strip(study), language)
    parts = {
        "the baseline alone": partial(
            page_verdict.cards, replace(BETTER, challengers=()), BETTER.baseline
        ),
        "where quality is lost": partial(overview_page.headroom, BETTER),
        "nothing to split": partial(overview_page.headroom, STUDIES["every query failed"]),
        "reasons": partial(overview_page.reasons, WORSE, "worse"),
        "no reasons": partial(overview_page.reasons, replace(BETTER, metric="judged"), "better"),
        "systems": partial(overview_page.systems_table, BETTER),
        "cutoffs": partial(overview_page.cutoffs, BETTER),
        "a metric of the whole list": partial(
            overview_page.cutoffs, replace(BETTER, metric="bpref")
        ),
    }
    cases |= {name: said(draw, language) for name, draw in parts.items()}
    kinds = partial(overview_page.segments, BETTER, "better")
    corrected = replace(BETTER, statistics=StatisticsSettings(correction="none"))
    cases |= {
        "kinds of queries": said(kinds, language, segment="topic"),
        "that are not corrected": said(
            partial(overview_page.segments, corrected, "better"), language, segment="topic"
        ),
        "derived ones": said(kinds, language, segment="relevant_documents"),
        "own ones with a derived name": said(kinds, language, segment="difficulty"),
    }
    approved(f"ui/overview.{language}", table(cases))


@pytest.mark.parametrize(
    ("study", "colour", "points"),
    [
        (BETTER, Metric.BLUE, Metric.UP),
        (WORSE, Metric.ORANGE, Metric.DOWN),
        (STUDIES["few changes"], Metric.GRAY, Metric.UP),
        # Proven, and too small to matter.
        (STUDIES["a small gain"], Metric.BLUE, Metric.UP),
        (SAME, Metric.GRAY, Metric.NONE),
    ],
)
def test_a_proven_change_has_a_colour_and_another_is_grey(study, colour, points):
    app = drawn(partial(page_verdict.cards, study, study.challengers[0]))
    card = next(each for each in app.metric if each.label == "NDCG@10")
    assert (card.proto.color, card.proto.direction) == (colour, points)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (0.125, "+12 percentage points"),
        (-0.126, "-13 percentage points"),
        (0.01, "+1 percentage point"),
        (0.004, "0 percentage points"),
        (-0.004, "0 percentage points"),
    ],
)
def test_a_change_of_a_share_is_in_whole_points_and_none_has_no_sign(change, said):
    assert page_verdict.percent_change(change) == said


@pytest.mark.parametrize(("rows", "place"), [([], None), ([1], 1), ([0, 1], 0), ([2], None)])
def test_the_row_of_a_reason_that_is_selected_opens_its_queries(monkeypatch, rows, place):
    monkeypatch.setattr(st, "dataframe", lambda *_a, **_k: {"selection": {"rows": rows}})
    chosen = []
    drawn(lambda: chosen.append(overview_page.reasons(BETTER, "better")))
    counts = list(BETTER.reason_counts("better").index)
    assert chosen == [None if place is None else counts[place]]


def test_the_excluded_queries_of_each_system_stand_beside_it():
    some = pd.Series(["done"] * (QUERIES - 1) + ["failed"])
    study = moved("failed once", 1, rows={"state": some.to_numpy()})
    app = drawn(partial(overview_page.definitions, study, ["ndcg@10"]))
    excluded = app.dataframe[-1].value.set_index("system")
    assert excluded["failed"].to_dict() == {"First stage": 0, "failed once": 1}
    assert excluded["not run"].to_dict() == {"First stage": 0, "failed once": 0}


def board(study: Study, in_focus: str = "", **address: str) -> AppTest:
    return drawn(partial(page_leaderboard.draw, study, in_focus), **address)


def test_the_leaderboard_has_a_row_for_every_run_and_numbers_for_those_that_are_compared():
    name = "<i>better</i>"
    study = study_of(DATA, *(run for each in (moved(name, 4), WORSE) for run in runs_of(each)))
    app = board(replace(study, challengers=(name,)), name)
    data = component(app, "leaderboard")
    rows = {row["name"]: row for row in data["rows"]}
    assert [row["name"] for row in data["rows"]] == [name, "First stage", "worse"]
    assert data["focus"] == name and data["words"]["hidden"] == "1 run is not shown"
    # Neither latency nor price is known of a reranker.
    titles = [each["title"] for each in data["columns"]]
    assert titles == ["System", "Verdict", "NDCG@10", "Change", "Helped / hurt"]
    verdict, mean, change, counts = rows[name]["cells"]
    assert (verdict[0], mean[0], change[0], counts[0]) == ("better", "1.000", "+0.360", "18 / 0")
    value, low, high, colour, hollow, words = change[4]
    assert data["axis"]["zero"] < low < value < high and (colour, hollow) == ("better", False)
    assert words == "+0.248 … +0.454"
    assert rows["worse"]["cells"] == [] and not rows["First stage"]["ticked"]


def test_what_is_not_proven_is_hollow_and_the_minimum_that_a_user_set_is_marked():
    data = component(board(STUDIES["few changes"]), "leaderboard")
    assert data["rows"][0]["cells"][2][4][3:5] == ["grey", True]
    assert data["axis"]["threshold"] is None
    data = component(board(STUDIES["a small gain"]), "leaderboard")
    assert data["axis"]["threshold"] > data["rows"][0]["cells"][2][4][0]


@pytest.mark.parametrize(
    ("event", "chosen"),
    [
        ({"systems": ["worse", "better", "first-stage", 7]}, {"system": ["better", "worse"]}),
        ({"systems": []}, {"system": []}),
        ({"focus": "better"}, {"vs": ["better"]}),
        # What no row sends.
        ({"focus": "first-stage"}, {}),
        ({"focus": ["better"], "systems": {"better": 1}}, {}),
        ("better", {}),
    ],
)
def test_a_tick_compares_a_system_and_a_click_on_a_row_shows_it(event, chosen):
    study = study_of(DATA, *runs_of(BETTER), *runs_of(WORSE))
    app = send(board(study), "leaderboard", event)
    made = "address.choices" in app.session_state
    assert (app.session_state["address.choices"] if made else {}) == chosen
