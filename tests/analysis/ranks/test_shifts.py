"""Moves of documents between two rankings, counted, against a plain comparison of both lists."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, judge
from rankdash.features.queries.ladder import ladder
from rankdash.features.rank_shifts.shifts import (
    BINS,
    STEPS,
    UNRANKED,
    flow,
    move_sizes,
    moves,
    pair,
    transitions,
    went,
    with_ties,
)
from tests.lists import ranking
from tests.results import results, shown

QUERIES = ["a", "b", "c"]
DOCS = [f"d{place}" for place in range(30)]


def made(lists: dict[str, list[str]]) -> Ranking:
    return ranking(**lists)


def labels(relevant: dict[str, list[str]]) -> pd.DataFrame:
    rows = [(query, doc, 1.0) for query, docs in relevant.items() for doc in docs]
    rows += [(query, "never", 0.0) for query in QUERIES]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])


def moved(before: Ranking, after: Ranking, qrels: pd.DataFrame, conventions=None):
    rules = conventions or Conventions()
    paired = pair(*(with_ties(each, rules) for each in (before, after)))
    return moves(paired, *(judge(each, qrels, rules) for each in (before, after)), rules.threshold)


lists = st.dictionaries(
    st.sampled_from(QUERIES), st.lists(st.sampled_from(DOCS), unique=True, min_size=1), min_size=1
)


@settings(max_examples=50)
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


@settings(max_examples=40)
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


# d0 falls from 1 to 3, d1 rises from 2 to 1, d21 from 22 to 2; d24 leaves, "new" enters at 4.
BEFORE = made({"a": DOCS[:25], "b": ["x", "y"]})
AFTER = made({"a": ["d1", "d21", "d0", "new", *DOCS[2:21], *DOCS[22:24]], "b": ["y", "x"]})
KNOWN = labels({"a": ["d0", "d21", "new", "nowhere"], "b": []})
SEVEN = made({"a": ["d0", "d1", "d2", "d3", "d4", "d5", "d6"]})
OTHERS = made({"a": ["d6", "d0", "new", "d1", "d2", "d3", "d4"]})
SIX = labels({"a": ["d0", "d1", "d6", "new", "d4", "nowhere"]})
THREE, TWO = made({"a": DOCS[:3], "failed": DOCS[:3]}), made({"a": DOCS[:3]})
COUNTED = {
    "a known change": lambda: (moved(BEFORE, AFTER, KNOWN), 10),
    "nothing moves": lambda: (moved(TWO, TWO, labels({"a": ["d0"]})), 1),
    "from and to their bands": lambda: (moved(SEVEN, OTHERS, SIX), 2),
    "a larger k": lambda: (moved(SEVEN, OTHERS, SIX), 3),
    "a failed query": lambda: (moved(THREE, TWO, labels({"a": ["d0"], "failed": ["d1"]})), 2),
    "no query in common": lambda: (
        moved(made({"a": ["d0"]}), made({"b": ["d0"]}), labels({"a": ["d0"]})),
        10,
    ),
}


def told(case) -> str:
    found, k = case
    tables = [transitions(found, relevant_only=each).stack() for each in (True, False)]
    sizes, way = move_sizes(found), flow(found, k)
    assert set(transitions(found, relevant_only=False).index) <= {*BINS, UNRANKED}
    assert list(sizes["step"]) == list(STEPS)
    numbers = {name: getattr(way, name) for name in (
        "before", "after", "stayed", "entered", "left", "outside", "unranked", "total",
    )}  # fmt: skip
    parts = {
        "relevant": {f"{a}→{b}": n for (a, b), n in tables[0].items() if n},
        "all": {f"{a}→{b}": n for (a, b), n in tables[1].items() if n},
        "steps": sizes[(sizes["relevant"] > 0) | (sizes["other"] > 0)],
        "flow": numbers, "bands": way.bands, "up of those in one": found.up[~found.in_both],
        "only": (found.only_before, found.only_after, found.unranked),
    }  # fmt: skip
    return "\n".join(f"  {name}: {shown(part)}" for name, part in parts.items())


def test_moves_are_counted_where_they_belong(approved):
    approved("analysis/moves", results(COUNTED, told))


def test_bins_of_ranks_and_of_steps_start_and_end_where_their_names_say():
    same = made({"a": DOCS[:25]})
    table = transitions(moved(same, same, labels({})), relevant_only=False)
    assert table.to_numpy().diagonal().tolist() == [1, 2, 2, 5, 10, 5]
    # The document at rank 23 of 45 moves by the distance, all others by at most one.
    docs = [f"d{place}" for place in range(1, 46)]
    names = {0: "0", 1: "1…2", 2: "1…2", 3: "3…5", 5: "3…5", 6: "6…10", 10: "6…10", 11: "11…20"}
    names |= {20: "11…20", 21: "21…", -1: "−2…−1", -2: "−2…−1", -3: "−5…−3", -5: "−5…−3"}
    names |= {-6: "−10…−6", -10: "−10…−6", -11: "−20…−11", -20: "−20…−11", -21: "−21…"}
    for up, name in names.items():
        others = [doc for doc in docs if doc != "d23"]
        after = [*others[: 22 - up], "d23", *others[22 - up :]]
        found = moved(made({"a": docs}), made({"a": after}), labels({"a": ["d23"]}))
        sizes = move_sizes(found).set_index("step")["relevant"]
        assert sizes[sizes > 0].to_dict() == {name: 1}
    # Bands below k end at twice and at five times k.
    before = made({"a": DOCS[:12]})
    for doc, band in {"d3": "3–4", "d4": "5–10", "d9": "5–10", "d10": "> 10"}.items():
        after = made({"a": [doc, *(each for each in DOCS[:12] if each != doc)]})
        for sides, way in (((before, after), "entered"), ((after, before), "left")):
            bands = flow(moved(*sides, labels({"a": [doc]})), 2).bands.set_index("band")[way]
            assert bands[bands > 0].to_dict() == {band: 1}
