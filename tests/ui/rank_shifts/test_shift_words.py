"""Rank shifts without its widgets: which answer is given, and which cell is open."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from rankdash.ui.rank_shifts import shifts_view, skipping_readout, skipping_view
from rankdash.ui.state import address

STUDY = SimpleNamespace(
    measure=SimpleNamespace(title="NDCG@10"),
    statistics=SimpleNamespace(level=0.95, seed=42),
    name=str.upper,
)
GAPS = pd.Series([0.1, 0.4, 0.9])
EVEN = pd.Series([0.25, 0.25, 0.25])


def rule(share: float = 0.4, **changes: object) -> SimpleNamespace:
    usual = {
        "rule": SimpleNamespace(share=share, threshold=0.5),
        "held_out": SimpleNamespace(change=-0.01, low=-0.015, high=0.002, share=0.38),
        "n": 100,
        "tolerance": 0.02,
        "reranked": 0.8,
        "first_stage": 0.7,
        "holds": True,
        "margin_helps": True,
    }
    return SimpleNamespace(**(usual | changes))


@pytest.mark.parametrize(
    ("found", "gaps", "verdict", "kind", "start"),
    [
        (rule(rule=None, n=skipping_readout.FEWEST - 1), GAPS, "better", "info",
         "Too few queries to choose a rule: "),
        (rule(rule=None, n=skipping_readout.FEWEST), EVEN, "better", "info",
         "The first stage's scores are evenly spaced"),
        (rule(rule=None), GAPS, "unproven", "info", "**No safe rule, and no proven gain.**"),
        (rule(rule=None), GAPS, "worse", "info", "**No safe rule, and no proven gain.**"),
        (rule(rule=None), GAPS, "better", "info", "**Rerank everything.**"),
        (rule(held_out=None), GAPS, "small", "info", "**Rerank everything.**"),
        (rule(holds=False), GAPS, "better", "warning", "**No safe rule.** Skipping 40% of"),
        (rule(1.0), GAPS, "better", "warning", "**The gain of RUN is within the acceptable loss"),
        (rule(1.0), GAPS, "unproven", "warning", "**No query needs RUN.**"),
        (rule(), GAPS, "better", "success", "**40% of the queries can skip reranking**: those"),
        (rule(margin_helps=False), GAPS, "better", "info",
         "**40% of the queries can skip reranking, but the margin is not proven"),
    ],
)  # fmt: skip
def test_when_reranking_can_be_skipped(paper, monkeypatch, found, gaps, verdict, kind, start):
    monkeypatch.setattr(skipping_readout.ranks, "first_stage_kind", lambda *_a: verdict)
    drawn = paper(skipping_readout)
    skipping_readout.readout(STUDY, "run", found, gaps)
    [(shown, text, _settings), *rest] = drawn.drawn
    assert (shown, text[: len(start)]) == (kind, start)
    assert len(rest) == (found.rule is not None and found.held_out is not None)
    if not found.margin_helps:
        # At random as large a share of the whole gain of 0.1 is lost.
        assert text.endswith("picked at random would change it by -0.040.")
    if rest:
        assert rest[0][1].endswith("which skipped 38% of the held-out queries.")


@pytest.mark.parametrize(
    ("saved", "price", "said"),
    [
        ({"n": 0}, 2.0, []),
        ({}, None, ["Saves **40%** of the calls. Its latency was not measured."]),
        ({"pairs": 0.35}, None, ["Saves **40%** of the calls and 35% of the query–document pairs. "
         "Its latency was not measured."]),
        ({"timed": 3}, None, ["Saves **40%** of the calls. Reranking takes 10 → **6 ms** on "
         "average and 20 → 12 ms at p95, over 3 timed queries."]),
        ({}, 2.0, ["Saves **40%** of the calls. Its latency was not measured. 1,000 searches cost "
         "1.2000 instead of 2.0000."]),
        ({}, 0.0, ["Saves **40%** of the calls. Its latency was not measured. 1,000 searches cost "
         "0.0000 instead of 0.0000."]),
    ],
)  # fmt: skip
def test_what_skipping_saves(paper, monkeypatch, saved, price, said):
    usual = {"n": 10, "share": 0.4, "pairs": math.nan, "timed": 0, "mean_before": 10.0,
             "mean_after": 6.0, "p95_before": 20.0, "p95_after": 12.0}  # fmt: skip
    monkeypatch.setattr(skipping_readout, "saving", lambda *_a: SimpleNamespace(**(usual | saved)))
    # Of the study, where a run that was made of others has their latencies in sum.
    study = SimpleNamespace(run=lambda _id: SimpleNamespace(queries=None))
    drawn = paper(skipping_readout)
    skipping_readout.savings(study, "run", GAPS, 0.5, price)
    assert [each.replace(".0 ms", " ms").replace("6.0 ms", "6 ms")
            for each in drawn.of("markdown")] == said  # fmt: skip


TABLE = pd.DataFrame(1, index=["1", "2–3"], columns=["1", "2–3", "4–10"])


@pytest.mark.parametrize(
    ("given", "cell", "lost"),
    [
        (["1", "4–10"], ("1", "4–10"), {}),
        # From rank before to rank after, not the other way.
        (["4–10", "1"], None, {"cell": "4–10 → 1"}),
        (["1", "gone"], None, {"cell": "1 → gone"}),
        (["1"], None, {"cell": "1"}),
        ([], None, {}),
    ],
)
def test_the_cell_of_a_link_is_open_where_the_table_has_it(session, given, cell, lost):
    address.take_over({"cell": given} if given else {})
    assert shifts_view._cell(TABLE) == cell
    assert address.several("cell") == list(cell or ())
    assert address.lost() == lost


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [(0, 0, []), (1, 0, ["1 query has only one of the two rankings and is excluded."]),
     (1, 2, ["3 queries have only one of the two rankings and are excluded."])],
)  # fmt: skip
def test_queries_with_one_ranking_are_counted_on_both_sides(paper, before, after, said):
    drawn = paper(shifts_view)
    shifts_view._left_out(SimpleNamespace(only_before=before, only_after=after))
    assert drawn.of("caption") == said


@pytest.mark.parametrize(("rows", "cut"), [(1000, False), (1001, True)])
def test_of_many_documents_those_that_moved_farthest_either_way_are_listed(
    paper, monkeypatch, rows, cut
):
    table = pd.DataFrame({"up": np.arange(rows) - 400})
    shown, chosen = [], []

    def frame(rows_chosen):
        chosen.append(rows_chosen)
        return table.iloc[::-1]

    found = SimpleNamespace(
        relevant=np.array([True, True, True, False]), in_both=np.array([True, True, False, True]),
        up=np.array([1, 0, 2, 3]), frame=frame,
    )  # fmt: skip
    monkeypatch.setattr(shifts_view, "moves", lambda *_a: found)
    monkeypatch.setattr(shifts_view, "_document_table", lambda _s, part, *_a: shown.append(part))
    drawn = paper(shifts_view)
    shifts_view.farthest(STUDY, "run")
    # Relevant, in both rankings, and moved.
    assert chosen[0].tolist() == [True, False, False, False]
    [listed] = shown
    assert len(listed) == 1000 and listed["up"].is_monotonic_increasing
    assert (listed["up"].iloc[0], listed["up"].iloc[-1]) == (-400, rows - 401)
    assert bool(drawn.of("caption")) is cut


@pytest.mark.parametrize(("rows", "picked"), [([], None), ([1, 0], 1)])
def test_the_first_row_that_is_selected_is_picked(monkeypatch, rows, picked):
    event = {"selection": {"rows": rows}}
    monkeypatch.setattr(shifts_view, "st", SimpleNamespace(dataframe=lambda *_a, **_k: event))
    assert shifts_view._picked(pd.DataFrame({"a": [1, 2]}), "key", {}, "alt") == picked


def test_the_first_stage_cannot_be_skipped_to(paper):
    drawn = paper(skipping_view)
    skipping_view.draw(STUDY, skipping_view.FIRST_STAGE)
    assert drawn.of("info") == [
        "Where reranking is skipped, the first stage is shown. Choose a reranker."
    ]


def test_thresholds_begin_with_skipping_nothing(paper):
    same = dict.fromkeys(("mean", "change", "low", "high", "random"), 0.0)
    curve = pd.DataFrame({"threshold": [np.inf, 0.5], "skipped": [0, 3], "share": [0, 0.3], **same})
    drawn = paper(skipping_view)
    skipping_view._threshold_table(SimpleNamespace(curve=curve))
    [table] = drawn.of("dataframe")
    first, second = table.data["margin from"]
    assert math.isnan(first) and second == 0.5
