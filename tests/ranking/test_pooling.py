"""The documents of several rankings, whatever their order."""

import numpy as np
import pytest

from rankdash.ranking.pooling import adds_documents, pooled
from rankdash.ranking.ranking import Ranking


def ranking(**lists: str) -> Ranking:
    return Ranking.from_lists(
        (query, list(docs), [float(-place) for place in range(len(docs))])
        for query, docs in lists.items()
    )


def contents(found: Ranking) -> dict[str, list[str]]:
    return {query: sorted(found.documents_of(query)[0]) for query in found.query_ids}


def test_a_pool_holds_each_document_of_a_query_once():
    found = pooled([ranking(q="ab", r="a"), ranking(s="c", q="cb")])
    assert contents(found) == {"q": ["a", "b", "c"], "r": ["a"], "s": ["c"]}
    assert len(found) == 5
    assert not found.tied.any()
    assert list(found.frame()["rank"]) == [1, 2, 3, 1, 1]


def test_a_pool_of_nothing_is_empty():
    assert len(pooled([Ranking.from_lists([]), Ranking.from_lists([])])) == 0


@pytest.mark.parametrize(
    ("lists", "adds"),
    [
        ({"q": "ba", "r": "c"}, False),
        ({"q": "a"}, False),
        ({"q": "abx", "r": "c"}, True),
        ({"q": "abc", "r": "c"}, True),
        ({"r": "c", "q": "ba"}, False),
        ({"r": "b", "q": "a"}, True),
        ({"other": "xyz"}, False),
        ({"labelled": "a"}, True),
        ({}, False),
    ],
    ids=[
        "reordered",
        "shorter",
        "unknown",
        "of another query",
        "other order",
        "other order, more",
        "unlabelled",
        "unranked",
        "none",
    ],
)
def test_documents_are_added_where_the_candidates_of_a_query_lack_them(lists, adds):
    queries = np.array(["q", "r", "labelled"], dtype=object)
    assert adds_documents(ranking(**lists), ranking(q="ab", r="c"), queries) is adds


def test_anything_adds_to_no_candidates():
    queries = np.array(["q"], dtype=object)
    assert adds_documents(ranking(q="a"), Ranking.from_lists([]), queries)
