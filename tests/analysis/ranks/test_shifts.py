"""Moves of documents between two rankings, counted, against a plain reading of both lists."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.analysis.ranks.ladder import ladder
from rankdash.analysis.ranks.shifts import moves, pair, settled
from rankdash.analysis.ranks.transitions import (
    BINS,
    STEPS,
    UNRANKED,
    flow,
    move_sizes,
    transitions,
    went,
)
from rankdash.metrics import Conventions, judge
from rankdash.ranking.ranking import Ranking

QUERIES = ["a", "b", "c"]
DOCS = [f"d{place}" for place in range(30)]


def made(lists: dict[str, list[str]], ties: str = "stable") -> Ranking:
    rows = [
        (query, doc, float(-place))
        for query, docs in lists.items()
        for place, doc in enumerate(docs)
    ]
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return Ranking.from_columns(*map(list, columns), ties=ties)


def labels(relevant: dict[str, list[str]]) -> pd.DataFrame:
    rows = [(query, doc, 1.0) for query, docs in relevant.items() for doc in docs]
    rows += [(query, "never", 0.0) for query in QUERIES]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])


def moved(before: Ranking, after: Ranking, qrels: pd.DataFrame, conventions=None):
    rules = conventions or Conventions()
    paired = pair(*(settled(each, rules) for each in (before, after)))
    return moves(paired, *(judge(each, qrels, rules) for each in (before, after)), rules.threshold)


lists = st.dictionaries(
    st.sampled_from(QUERIES), st.lists(st.sampled_from(DOCS), unique=True, min_size=1), min_size=1
)


@given(lists, lists, st.dictionaries(st.sampled_from(QUERIES), st.sets(st.sampled_from(DOCS))))
def test_every_document_of_a_shared_query_is_there_once_with_its_ranks(one, other, relevant):
    before, after = made(one), made(other)
    qrels = labels({query: sorted(docs) for query, docs in relevant.items()})
    found = moved(before, after, qrels)
    frame = found.frame(np.ones(len(found.query), dtype=bool))
    shared = [query for query in before.query_ids if query in other]
    assert list(found.query_ids) == shared
    assert found.only_before == len(one) - len(shared)
    assert found.only_after == len(other) - len(shared)
    missing = came = went_out = 0
    for query in shared:
        own = frame[frame["query_id"] == query].sort_values("doc_id", ignore_index=True)
        of_query = qrels[qrels["query_id"] == query]
        given = dict(zip(of_query["doc_id"], of_query["label"], strict=True))
        wanted = ladder({"before": before, "after": after}, before, given, query, k=5)
        wanted = wanted.picked(np.argsort(wanted.doc_ids))
        crosses, inside = wanted.crosses[:, 1], wanted.inside[:, 1]
        assert list(own["doc_id"]) == list(wanted.doc_ids)
        np.testing.assert_array_equal(own["before"], wanted.column("before"))
        np.testing.assert_array_equal(own["after"], wanted.column("after"))
        assert list(own["relevant"]) == list(wanted.relevant)
        came += int((crosses & inside & wanted.relevant).sum())
        went_out += int((crosses & ~inside & wanted.relevant).sum())
        missing += len(relevant.get(query, set()) - set(own["doc_id"]))
    assert found.unranked == missing
    way = flow(found, 5)
    assert (way.entered, way.left) == (came, went_out)


@given(lists, lists, st.dictionaries(st.sampled_from(QUERIES), st.sets(st.sampled_from(DOCS))))
def test_counts_add_up(one, other, relevant):
    qrels = labels({query: sorted(docs) for query, docs in relevant.items()})
    found = moved(made(one), made(other), qrels)
    for relevant_only, total in ((False, len(found.query)), (True, int(found.relevant.sum()))):
        table = transitions(found, relevant_only=relevant_only)
        assert table.to_numpy().sum() == total
        for start, ends in table.iterrows():
            for end, count in ends.items():
                assert went(found, start, end, relevant_only=relevant_only).sum() == count
    sizes = move_sizes(found)
    both = found.in_both
    assert sizes["relevant"].sum() == (both & found.relevant).sum()
    assert sizes["other"].sum() == (both & ~found.relevant).sum()
    for k in (1, 3, 10):
        way = flow(found, k)
        assert way.bands["entered"].sum() == way.entered
        assert way.bands["left"].sum() == way.left
        assert way.total == found.relevant.sum() + found.unranked


def test_a_known_change_is_counted_where_it_belongs():
    before = made({"a": DOCS[:25], "b": ["x", "y"]})
    # d0 falls from 1 to 3, d1 rises from 2 to 1, d21 from 22 to 2; d24 goes, "new" comes at 4.
    after = made({"a": ["d1", "d21", "d0", "new", *DOCS[2:21], *DOCS[22:24]], "b": ["y", "x"]})
    found = moved(before, after, labels({"a": ["d0", "d21", "new", "nowhere"], "b": []}))
    table = transitions(found, relevant_only=True)
    assert table.to_numpy().sum() == 3
    assert table.loc["1", "2–3"] == table.loc["> 20", "2–3"] == table.loc[UNRANKED, "4–5"] == 1
    assert UNRANKED not in table.columns
    everything = transitions(found, relevant_only=False)
    assert everything.loc["> 20", UNRANKED] == 1
    assert everything.loc["1", "2–3"] == 2
    assert list(everything.index) == [*BINS, UNRANKED]
    sizes = move_sizes(found).set_index("step")
    assert list(sizes.index) == list(STEPS)
    assert sizes.loc["−2…−1", "relevant"] == 1
    assert sizes.loc["11…20", "relevant"] == 1
    assert sizes.loc["1…2", "relevant_share"] == 0
    assert sizes["relevant_share"].sum() == pytest.approx(1)
    assert sizes.loc["−2…−1", ["relevant_share", "other"]].tolist() == [1 / 2, 22]
    assert sizes.loc[["−2…−1", "1…2"], "other_share"].tolist() == [22 / 24, 2 / 24]
    # What came and what went moved no number of ranks.
    assert found.up[~found.in_both].tolist() == [0, 0]


def test_bins_of_ranks_and_of_steps_start_and_end_where_their_names_say():
    same = made({"a": DOCS[:25]})
    still = moved(same, same, labels({}))
    assert still.frame(still.in_both)["up"].tolist() == [0] * 25
    table = transitions(still, relevant_only=False)
    assert table.to_numpy().diagonal().tolist() == [1, 2, 2, 5, 10, 5]
    # The document at rank 23 of 45 rises or falls so far, all others by one at the most.
    docs = [f"d{place}" for place in range(1, 46)]
    names = {1: "1…2", 2: "1…2", 3: "3…5", 5: "3…5", 6: "6…10", 10: "6…10", 11: "11…20"}
    names |= {20: "11…20", 21: "21…", -1: "−2…−1", -2: "−2…−1", -3: "−5…−3", -5: "−5…−3"}
    names |= {-6: "−10…−6", -10: "−10…−6", -11: "−20…−11", -20: "−20…−11", -21: "−21…", 0: "0"}
    for up, name in names.items():
        others = [doc for doc in docs if doc != "d23"]
        after = [*others[: 22 - up], "d23", *others[22 - up :]]
        found = moved(made({"a": docs}), made({"a": after}), labels({"a": ["d23"]}))
        sizes = move_sizes(found).set_index("step")["relevant"]
        assert sizes[sizes > 0].to_dict() == {name: 1}


def test_relevant_documents_come_from_and_go_to_their_bands():
    before = made({"a": ["d0", "d1", "d2", "d3", "d4", "d5", "d6"]})
    after = made({"a": ["d6", "d0", "new", "d1", "d2", "d3", "d4"]})
    found = moved(before, after, labels({"a": ["d0", "d1", "d6", "new", "d4", "nowhere"]}))
    way = flow(found, 2)
    assert (way.before, way.after, way.stayed) == (2, 2, 1)
    assert (way.entered, way.left, way.outside, way.unranked) == (1, 1, 2, 1)
    bands = way.bands.set_index("band")
    assert list(bands.index) == ["3–4", "5–10", "> 10", UNRANKED]
    assert bands.loc["5–10", "entered"] == 1
    assert bands.loc["3–4", "left"] == 1
    assert flow(found, 3).bands.set_index("band").loc[UNRANKED, "entered"] == 1


def test_bands_below_k_end_at_twice_and_at_five_times_k():
    before = made({"a": DOCS[:12]})
    comes = {"d3": "3–4", "d4": "5–10", "d9": "5–10", "d10": "> 10"}
    for doc, band in comes.items():
        after = made({"a": [doc, *(each for each in DOCS[:12] if each != doc)]})
        came, went = (
            flow(moved(*sides, labels({"a": [doc]})), 2).bands.set_index("band")
            for sides in ((before, after), (after, before))
        )
        assert came["entered"][came["entered"] > 0].to_dict() == {band: 1}
        assert went["left"][went["left"] > 0].to_dict() == {band: 1}
    of_one = flow(moved(before, before, labels({})), 1).bands["band"]
    assert of_one.tolist() == ["2", "3–5", "> 5", UNRANKED]


def test_a_failed_query_moves_nothing():
    before, after = made({"a": DOCS[:3], "failed": DOCS[:3]}), made({"a": DOCS[:3]})
    found = moved(before, after, labels({"a": ["d0"], "failed": ["d1"]}))
    assert found.only_before == 1
    assert transitions(found, relevant_only=False).to_numpy().sum() == 3
    assert found.unranked == 0


def test_rankings_without_a_shared_query_have_no_moves():
    found = moved(made({"a": ["d0"]}), made({"b": ["d0"]}), labels({"a": ["d0"]}))
    assert len(found.query) == 0
    assert transitions(found, relevant_only=False).to_numpy().sum() == 0
    assert move_sizes(found)["relevant_share"].isna().all()
    assert flow(found, 10).total == 0


def test_ranks_follow_the_tie_rule_and_the_threshold_in_force():
    rows = (["q", "q"], ["d1", "d2"], [1.0, 1.0])
    before, after = Ranking.from_columns(*rows), made({"q": ["d1", "d2"]})
    qrels = pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["d1", "d2"], "label": [1.0, 2.0]})
    assert moved(before, after, qrels).up.tolist() == [0, 0]
    trec = moved(before, after, qrels, Conventions(ties="trec", threshold=2))
    assert dict(zip(trec.names[trec.docs], trec.up, strict=True)) == {"d1": 1, "d2": -1}
    assert dict(zip(trec.names[trec.docs], trec.relevant, strict=True)) == {"d1": False, "d2": True}


def test_documents_come_by_query_and_rank_before_and_newcomers_last():
    paired = pair(made({"a": ["d1", "d2"], "b": ["d3"]}), made({"b": ["d4", "d3"], "a": ["d2"]}))
    assert paired.row_before.tolist() == [0, 1, 2, -1]
    assert paired.offsets.tolist() == [0, 2, 4]
    assert paired.in_both.tolist() == [False, True, True, False]
