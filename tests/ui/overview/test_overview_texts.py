"""Texts of the parts of Overview: the verdict with its facts, reasons and kinds of queries."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.ranking import Run
from rankdash.core.study.study import Study
from rankdash.features.overview import page as overview_page
from rankdash.features.overview import page_leaderboard, page_verdict
from rankdash.kit.widgets import address, view
from tests.approved import table
from tests.ui.parts import LANGUAGES, component, dataset_of, drawn, run_of, said, send, study_of

QUERIES, DOCS = 24, 4
ORDER = [f"d{d}" for d in range(DOCS)]


def data(queries: int = QUERIES):
    """Return queries with the relevant document at rank 1 to 4. topic: two large groups and a small
    one. difficulty: a user's column with the name of a derived one."""
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
    """Return a study of a run that moves some relevant documents up, at most to rank 1."""
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

    return draw


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_overview_says_of_a_system(approved, language):
    cases = {}
    for name, study in STUDIES.items():
        cases[name] = said(strip(study), language)
    parts = {
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
    kinds = partial(overview_page.kinds, BETTER, "better")
    corrected = replace(BETTER, statistics=StatisticsSettings(correction="none"))
    cases |= {
        "kinds of queries": said(kinds, language, segment="topic"),
        "that are not corrected": said(
            partial(overview_page.kinds, corrected, "better"), language, segment="topic"
        ),
        "own ones with a derived name": said(kinds, language, segment="difficulty"),
    }
    approved(f"ui/overview.{language}", table(cases))


def test_reasons_are_sorted_by_what_they_add_and_a_click_opens_the_queries_of_one(monkeypatch):
    went = []
    monkeypatch.setattr(view, "go", lambda page: went.append((page, address.one("reason"))))
    app = drawn(partial(overview_page.reasons, moved("both", 4, every=3), "both"))
    rows = component(app, "reasons")["rows"]
    adds = [float(row["adds"].replace("−", "-")) for row in rows]
    assert adds == sorted(adds, reverse=True) and adds[0] > 0
    for event in ("gone", None, {"code": 1}, [rows[0]["code"]]):
        send(app, "reasons", event)
    assert went == []
    send(app, "reasons", rows[0]["code"])
    assert went == [("queries", rows[0]["code"])]


def test_kinds_open_with_the_one_whose_groups_differ_most_and_none_has_one_group():
    """Changes depend on topic and not on difficulty; all queries are in one script."""
    lists = {
        f"q{q}": [f"d{q % DOCS}", *(doc for doc in ORDER if doc != f"d{q % DOCS}")]
        if q > 10
        else ORDER
        for q in range(QUERIES)
    }
    study = study_of(DATA, run_of(DATA, "some", lists))
    app = drawn(partial(overview_page.kinds, study, "some"))
    (picker,) = app.selectbox
    assert picker.options == ["topic", "difficulty"]
    assert picker.value == "topic"


def test_the_excluded_queries_of_each_system_stand_beside_it():
    some = pd.Series(["done"] * (QUERIES - 1) + ["failed"])
    study = moved("failed once", 1, rows={"state": some.to_numpy()})
    app = drawn(partial(overview_page.definitions, study, ["ndcg@10"]))
    excluded = app.dataframe[-1].value.set_index("system")
    assert excluded["failed"].to_dict() == {"First stage": 0, "failed once": 1}
    assert excluded["not run"].to_dict() == {"First stage": 0, "failed once": 0}


def board(study: Study, in_focus: str = "") -> AppTest:
    return drawn(partial(page_leaderboard.draw, study, in_focus))


def test_the_leaderboard_has_a_row_for_every_run_and_numbers_for_those_that_are_compared():
    name = "<i>better</i>"
    study = study_of(DATA, *(run for each in (moved(name, 4), WORSE) for run in runs_of(each)))
    app = board(replace(study, challengers=(name,)), name)
    data = component(app, "leaderboard")
    rows = {row["name"]: row for row in data["rows"]}
    assert [row["name"] for row in data["rows"]] == [name, "First stage", "worse"]
    assert data["focus"] == name and data["words"]["hidden"] == "1 run is not shown"
    # No reranker has a latency or a price.
    titles = [each["title"] for each in data["columns"]]
    assert titles == ["System", "Verdict", "NDCG@10", "Change", "Helped / hurt"]
    verdict, mean, change, counts = rows[name]["cells"]
    assert (verdict[0], mean[0], change[0], counts[0]) == ("better", "1.000", "+0.360", "18 / 0")
    value, low, high, colour, hollow, words = change[4]
    assert data["axis"]["zero"] < low < value < high and (colour, hollow) == ("better", False)
    assert words == "+0.248 … +0.454"
    assert rows["worse"]["cells"] is None and data["baseline"] == "first-stage"
    # Without labels only the choice of systems is shown.
    app = drawn(partial(page_leaderboard.draw_choice, replace(study, challengers=(name,))))
    rows = component(app, "leaderboard")["rows"]
    assert [row["cells"] for row in rows] == [[], [], None]


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
        # Events that no row sends.
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
