"""The ladder: ranks as the metrics count them, the ideal order, important documents."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, evaluate, judge
from rankdash.core.study.headroom import limits
from rankdash.features.queries.ladder import FAR, Ladder, ladder
from tests.results import results, several, shown

LABELS = {"a": 3.0, "b": 1.0, "x": 0.0}


def ranking(docs: str, scores: list[float] | None = None, query: str = "q") -> Ranking:
    own = scores or [float(-place) for place in range(len(docs))]
    return Ranking.from_lists([("other", ["z", "a"], [2.0, 1.0]), (query, list(docs), own)])


def made(before: str, *after: str, k: int = 2, labels=LABELS, **conventions) -> Ladder:
    rankings = {str(place): ranking(docs) for place, docs in enumerate((before, *after))}
    return ladder(rankings, ranking(before), labels, "q", k, Conventions(**conventions))


TIED, CLOSE = ranking("abx", [1.0, 1.0, 1.0]), ranking("abx", [1.0, 1.0 - 1e-9, 0.0])


def settled(one: Ranking, **rules) -> Ladder:
    return ladder({"one": one}, one, LABELS, "q", 2, Conventions(**rules))


CASES = {
    "three systems": lambda: made("xab", "bzax", "ab"),
    "what the second system did, not the third": lambda: made("xab", "xab", "bax", labels={}),
    "alone": lambda: made("xab", labels={}),
    # z is not a candidate.
    "the ideal, highest first": lambda: made(
        "xbac", "zabc", labels={**LABELS, "z": 2.0, "c": 3.0}
    ),
    "a query that nobody ranked": lambda: ladder(
        {"one": TIED, "two": TIED}, TIED, {}, "nobody", 10
    ),
    **several("ties by {}", lambda ties: settled(TIED, ties=ties), ("as_ranked", "trec")),
    **{f"ties in {precision}": lambda precision=precision: settled(
        CLOSE, ties="trec", score_precision=precision
    ) for precision in ("float64", "float32")},
    "a negative label": lambda: made("ab", "ab", labels={"a": -1.0, "b": 0.0}),
    "a negative label is none": lambda: made(
        "ab", "ab", labels={"a": -1.0, "b": 0.0}, negative="unjudged"
    ),
    # From 5 to 2 is far, from 5 to 3 is not.
    "three ranks": lambda: made("cdefgh", "cgdefh", k=5, labels={}),
    "two ranks": lambda: made("cdefgh", "cdgefh", k=5, labels={}),
}  # fmt: skip


def told(found: Ladder) -> str:
    columns = {name: getattr(found, name) for name in (
        "doc_ids", "label", "relevant", "telling", "near", "ideal", "ranks", "crosses", "inside",
    )}  # fmt: skip
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return "\n  ".join([f"in focus: {found.in_focus}, {len(found)} documents", *map(shown, rows)])


def test_where_each_document_stands_in_every_system(approved):
    approved("analysis/ladder", results(CASES, told))


docs = st.permutations(list("abcdefghij")).map("".join)


@given(docs, docs, st.integers(1, 6))
def test_telling_documents_are_relevant_cross_k_or_move_far_near_the_top(before, after, k):
    found = made(before, after, k=k)
    for place, doc in enumerate(found.doc_ids):
        was, now = before.index(doc) + 1, after.index(doc) + 1
        crosses = (was <= k) != (now <= k)
        far = abs(was - now) >= FAR and now <= k
        assert found.telling[place] == (LABELS.get(doc, 0) >= 1 or crosses or far)
        assert found.near[place] == (LABELS.get(doc, 0) >= 1 or min(was, now) <= k)


@given(docs, st.dictionaries(st.sampled_from("abcdefghijyz"), st.integers(-1, 3), min_size=1))
def test_the_ideal_column_reaches_the_ceiling_of_the_headroom(before, labels):
    found = made(before, before, labels=labels)
    order = found.doc_ids[np.argsort(found.ideal)][: int((~np.isnan(found.ideal)).sum())]
    qrels = pd.DataFrame(
        [("q", doc, float(label)) for doc, label in labels.items()],
        columns=["query_id", "doc_id", "label"],
    )

    ceiling = limits(judge(ranking(before), qrels), "ndcg@5", Conventions()).ceiling[0]
    if len(order):
        rest = [doc for doc in before if doc not in set(order)]
        best = evaluate(judge(ranking("".join([*order, *rest])), qrels), ["ndcg@5"])
        assert abs(best.values[0, 0] - ceiling) < 1e-12
