"""The page Rank shifts: each answer on both sides of its threshold, and its choices."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import streamlit as st

from rankdash.core.base.i18n import speaking
from rankdash.core.data.ranking import Ranking, Run
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study import study as evaluating
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.rank_shifts import page as rank_shifts_page
from rankdash.features.rank_shifts import page_skipping
from rankdash.features.rank_shifts import study as rank_shifts_study
from rankdash.kit.widgets import address, view
from tests.approved import table
from tests.stored import keep_lists
from tests.ui.parts import LANGUAGES, dataset_of, drawn, said, study_of, unlike
from tests.ui.test_pages import open_page, texts

HEAD = "query_id,query,doc_id,document,label,score\n"


def ranked(name: str, data, lists: dict[str, list[str]], **fields: object) -> Run:
    rows = ((query, docs, np.arange(len(docs), 0.0, -1.0)) for query, docs in lists.items())
    return replace(run_from_ranking(name, data.id, Ranking.from_lists(rows), name), **fields)


def moved(places: list[tuple[int, int]], docs: int = 12, k: int = 20) -> Study:
    """Return one relevant document per query, at a rank before and after "turned". The first query
    has the largest score margin."""
    rows, lists = [], {}
    for q, (before, after) in enumerate(places):
        documents = [f"d{d}" for d in range(docs)]
        right = documents.pop(before - 1)
        rows += [
            f"q{q},find {q},d{d},text {d},{int(d == before - 1)},{50 - d * d if d else 200 - 4 * q}"
            for d in range(docs)
        ]
        documents.insert(after - 1, right)
        lists[f"q{q}"] = documents
    data = dataset_of(HEAD + "\n".join(rows))
    return study_of(data, ranked("turned", data, lists), cutoff=k)


def decided(queries: int = 60) -> Study:
    """Return a study whose first stage is right on every other query, with a large margin there.
    "better" is right on all, and took 10 ms on each."""
    docs, rows, lists = 6, [], {}
    for q in range(queries):
        sure = q % 2 == 0
        right = 0 if sure else docs - 1
        scores = [100.0 if sure else 50.1 + q / 100, *(50.0 - 10 * d for d in range(docs - 1))]
        rows += [f"q{q},find {q},d{d},text {d},{int(d == right)},{scores[d]}" for d in range(docs)]
        lists[f"q{q}"] = [f"d{d}" for d in (right, *(d for d in range(docs) if d != right))]
    data = dataset_of(HEAD + "\n".join(rows))
    run = ranked("better", data, lists)
    timed = run.queries.assign(latency_ms=10.0, pairs=float(docs))
    return study_of(data, replace(run, queries=timed), cutoff=3)


def failed(study: Study) -> Study:
    """Return the study with a run that failed on all queries."""
    run = study.run(study.challengers[0])
    lost = replace(run, queries=run.queries.assign(state="failed", reason="why"))
    return study_of(study.dataset, lost, cutoff=study.cutoff)


SURE = decided()
UNPROVEN = moved([(2, 1)] * 10 + [(1, 2)] * 10)
PROVEN = moved([(2, 1)] * 20)
GAPS = pd.Series([0.1, 0.4, 0.9])
FOUND = rank_shifts_study.skipping(SURE, SURE.challengers[0], "first", 3, 0.01)
RULE = replace(FOUND.rule, share=0.4, threshold=0.5)
HELD_OUT = replace(FOUND.held_out, share=0.38, change=-0.01, low=-0.015, high=0.002)
FITS = replace(FOUND, n=100, tolerance=0.02, reranked=0.8, first_stage=0.7, rule=RULE,
               held_out=HELD_OUT)  # fmt: skip


def readout(study: Study = SURE, gaps: pd.Series = GAPS, **changes: object) -> Callable[[], None]:
    found = replace(FITS, **changes)
    return partial(page_skipping.readout, study, study.challengers[0], found, gaps)


def skipped(study: Study) -> Callable[[], None]:
    return partial(page_skipping.draw, study, study.challengers[-1])


def savings(price: float | None = None, state: str = "done", pairs=np.nan, ms=np.nan):
    """Return savings over ten queries, four of them with a margin above the rule's threshold."""
    data = dataset_of(HEAD + "".join(f"q{q},a,d0,text,1,1\n" for q in range(10)))
    run = ranked("run", data, {f"q{q}": ["d0"] for q in range(10)})
    rows = run.queries.assign(state=state, pairs=pairs, latency_ms=ms)
    study = study_of(data, replace(run, queries=rows))
    gaps = pd.Series(np.arange(10) / 10, index=[f"q{q}" for q in range(10)])
    return partial(page_skipping.savings, study, study.challengers[0], gaps, 0.6, price)


TENTH = np.arange(10)
READOUTS = {
    "19 queries are too few": readout(rule=None, n=19),
    "20 evenly spaced ones": readout(gaps=GAPS * 0, rule=None, n=20),
    "no rule, and a gain that is not proven": readout(UNPROVEN, rule=None),
    "no rule, and a proven gain": readout(PROVEN, rule=None),
    "nothing held out": readout(held_out=None),
    "a rule that does not hold": readout(held_out=replace(HELD_OUT, low=-0.021)),
    "a rule that just holds": readout(held_out=replace(HELD_OUT, low=-0.02)),
    "every query, and a proven gain": readout(PROVEN, rule=replace(RULE, share=1.0)),
    "every query, and none": readout(UNPROVEN, rule=replace(RULE, share=1.0)),
    # Skipping the same number of random queries loses an equal share of the whole gain of 0.1.
    "a margin that does not help": readout(advantage_low=0.0),
    "0.4% are not nothing": readout(rule=replace(RULE, share=0.004)),
    "9.4% with a digit": readout(rule=replace(RULE, share=0.094)),
    "9.5% without": readout(rule=replace(RULE, share=0.095)),
    "90.5% without": readout(rule=replace(RULE, share=0.905)),
    "90.6% with a digit": readout(rule=replace(RULE, share=0.906)),
    "99.9% are not all": readout(rule=replace(RULE, share=0.999)),
    "no query was asked for": savings(2.0, state="failed"),
    "calls": savings(),
    "calls and pairs": savings(pairs=np.where(TENTH < 6, 13.0, 10.0)),
    "six timed queries": savings(ms=np.where(TENTH > 3, 10.0, np.nan)),
    "a price": savings(2.0),
    "a price of nothing": savings(0.0),
}
WHOLE = {
    "with a price": (skipped(SURE), {"paid": "2"}),
    "15 queries": (skipped(decided(15)), {}),
    "lists too short for the margin": (skipped(replace(SURE, cutoff=20)), {"margin": "edge"}),
    "rerank everything": (skipped(PROVEN), {}),
    "no proven gain": (skipped(UNPROVEN), {}),
    "a gain within the loss": (skipped(moved([(12, 11)] * 20)), {"loss": "0.05"}),
    "no gain": (skipped(moved([(12, 11), (11, 12)] * 10)), {"loss": "0.05"}),
    "the first stage itself": (partial(page_skipping.draw, SURE, FIRST_STAGE), {}),
    "every query failed": (skipped(failed(SURE)), {}),
}


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
        if not study.dataset.labelled_queries:
            page_skipping.draw(study, study.challengers[0])

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
def test_when_reranking_can_be_skipped(approved, language):
    cases = {name: said(part, language) for name, part in READOUTS.items()}
    usual = said(skipped(SURE), language)
    opened = said(skipped(SURE), language, ["shifts.thresholds", "shifts.near"])
    cases |= {"a sure first stage": usual, "its tables": unlike(usual, opened)} | {
        name: unlike(usual, said(part, language, **given)) for name, (part, given) in WHOLE.items()
    }
    approved(f"ui/skipping.{language}", table(cases))


@pytest.mark.parametrize("language", LANGUAGES)
def test_where_documents_went(approved, language):
    every = went(STUDY, "sizes", "by_query", "farthest")
    usual = said(went(STUDY), language, OPEN)
    cases = {"every part": said(every, language, OPEN)} | {
        name: unlike(usual, said(went(study), language, OPEN, **given))
        for name, (study, given) in LABELS.items()
    }
    approved(f"ui/rank_shifts.{language}", table(cases))


@pytest.mark.parametrize(
    ("typed", "amount"),
    [("0", 0.0), ("1.5", 1.5), ("1e9", 1e9), ("1000000001", None), ("-0.01", None),
     ("nan", None), ("inf", None), ("words", None), ("", None), (None, None)],
)  # fmt: skip
def test_a_price_is_from_nothing_to_a_thousand_million(typed, amount):
    assert page_skipping.amount(typed) == amount


@pytest.mark.parametrize(("cutoff", "depth"), [(3, 3), (None, 10)])
def test_margins_and_flows_are_at_the_cutoff_or_at_ten(cutoff, depth):
    assert rank_shifts_page.depth(replace(SURE, cutoff=cutoff)) == depth
    with speaking("en"):
        words = page_skipping.margin_words(depth)
    assert words == {
        "first": "gap between ranks 1 and 2",
        "edge": f"gap between ranks {depth} and {depth + 1}",
    }


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


@pytest.mark.parametrize(
    ("family", "others"), [("metric", set()), ("all", {"mrr@10", "recall@10"})]
)
def test_the_chosen_metric_alone_is_evaluated_unless_all_are_corrected_together(
    app, stored, monkeypatch, family, others
):
    evaluated: set[str] = set()
    made = evaluating.evaluate

    def noted(judged, specs, *given):
        evaluated.update(specs)
        return made(judged, specs, *given)

    monkeypatch.setattr(evaluating, "evaluate", noted)
    open_page(app, "rank_shifts", family=family)
    assert evaluated >= {"ndcg@10", *others}
    assert others or evaluated == {"ndcg@10"}
