"""The page Rank shifts: each answer on both sides of its threshold, and its choices."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import streamlit as st

from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study.study import Study
from rankdash.features.rank_shifts import page as rank_shifts_page
from rankdash.kit.widgets import address, view
from tests.approved import table
from tests.stored import keep_lists
from tests.ui.parts import LANGUAGES, dataset_of, drawn, said, study_of, unlike
from tests.ui.test_pages import open_page, texts

HEAD = "query_id,query,doc_id,document,label,score\n"


def ranked(name: str, data, lists: dict[str, list[str]], **fields: object) -> Run:
    rows = ((query, docs, np.arange(len(docs), 0.0, -1.0)) for query, docs in lists.items())
    return replace(run_from_ranking(name, data.id, Ranking.from_lists(rows), name), **fields)


def labelled(label: str, other: str, **fields: object) -> Study:
    """Return three queries whose four documents a run reverses; the fourth is in one ranking only,
    and a relevant document of the first query in none. label: of the first document. other: of the
    others."""
    rows = [
        f"q{q},find {q},d{d},text {d},{label if d == 0 else other},{9 - d}"
        for q in range(4)
        for d in range(4)
    ]
    rows += [f"q0,find 0,x,text x,{label},"] if label == "1" else []
    data = dataset_of(HEAD + "\n".join(rows))
    lists = {f"q{q}": ["d3", "d2", "d1", "d0"] for q in range(3)}
    return study_of(data, ranked("turned", data, lists, **fields), cutoff=1)


def went(study: Study, *parts: str) -> Callable[[], None]:
    def draw() -> None:
        for part in ("destinations", *parts):
            getattr(rank_shifts_page, part)(study, study.challengers[0])
        rank_shifts_page.draw_agreement(study, study.challengers[0])

    return draw


STUDY = labelled("1", "0")
LABELS = {
    "all documents": (STUDY, {"documents": "all"}),
    "a cell of the link": (STUDY, {"cell": ["1", "4–5"]}),
    "a cell that no document is in": (STUDY, {"cell": ["4–5", "1"]}),
    "a run of some depth": (labelled("1", "0", depth=2), {}),
    "no label names one": (labelled("0", "0"), {"documents": "relevant"}),
    "no labels": (labelled("", ""), {"documents": "relevant"}),
}
OPEN = ("shifts.counts",)


@pytest.mark.parametrize("language", LANGUAGES)
def test_where_documents_went(approved, language):
    every = went(STUDY, "sizes", "by_query", "farthest")
    usual = said(went(STUDY), language, OPEN)
    cases = {"every part": said(every, language, OPEN)} | {
        name: unlike(usual, said(went(study), language, OPEN, **given))
        for name, (study, given) in LABELS.items()
    }
    approved(f"ui/rank_shifts.{language}", table(cases))


@pytest.mark.parametrize(("cutoff", "depth"), [(3, 3), (None, 10)])
def test_flows_are_at_the_cutoff_or_at_ten(cutoff, depth):
    assert rank_shifts_page.depth(replace(STUDY, cutoff=cutoff)) == depth


@pytest.mark.parametrize(
    ("given", "cell", "lost"),
    [
        (["1", "4–5"], ["1", "4–5"], None),
        # A cell goes from the rank before to the rank after.
        (["unranked", "1"], [], "unranked → 1"),
        (["1", "gone"], [], "1 → gone"),
        (["1"], [], "1"),
        ([], [], None),
    ],
)
def test_the_cell_of_a_link_is_open_where_the_table_has_it(given, cell, lost):
    found = []

    def draw() -> None:
        rank_shifts_page.destinations(STUDY, STUDY.challengers[0])
        found.append((address.several("cell"), address.lost().get("cell")))

    drawn(draw, cell=given)
    assert found == [(cell, lost)]


@pytest.mark.parametrize(("rows", "opened"), [([], []), ([2, 0], ["q2"])])
def test_the_first_row_that_is_selected_opens_its_query(monkeypatch, rows, opened):
    went: list[str] = []
    monkeypatch.setattr(st, "dataframe", lambda *_a, **_k: {"selection": {"rows": rows}})
    monkeypatch.setattr(view, "open_query", went.append)
    for part in (rank_shifts_page.by_query, rank_shifts_page.farthest):
        drawn(partial(part, STUDY, STUDY.challengers[0]))
    assert went == opened * 2


@pytest.mark.parametrize(("count", "cut"), [(1000, False), (1001, True)])
def test_of_many_documents_those_that_moved_farthest_either_way_are_listed(count, cut):
    """The first of a query falls by as many ranks as there are others, which rise by one."""
    rows = [f"q0,a,d{d},text {d},1,{2000 - d}" for d in range(count)]
    data = dataset_of(HEAD + "\n".join(rows))
    run = ranked("run", data, {"q0": [*(f"d{d}" for d in range(1, count)), "d0"]})
    study = study_of(data, run)
    app = drawn(partial(rank_shifts_page.farthest, study, study.challengers[0]))
    up = app.dataframe[0].value["up"]
    assert len(up) == 1000 and up.is_monotonic_increasing
    assert (up.iloc[0], up.iloc[-1]) == (1 - count, 1)
    assert bool(app.caption) is cut


def test_rankings_without_a_common_query_have_no_shifts(app, stored, workspace):
    ids = [
        keep_lists(workspace, stored, [(query, ["d1", "d0"], [2.0, 1.0])], query).id
        for query in ("q1", "q2")
    ]
    words = texts(open_page(app, "rank_shifts", base=ids[0], system=ids[1]))
    assert "No query in common" in words.splitlines()
