"""The documents of several rankings, in any order."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankdash.core.data.overlap import adds_documents, places_of, pooled
from rankdash.core.data.ranking import Ranking
from tests.lists import ranking


def contents(found: Ranking) -> dict[str, list[str]]:
    return {query: sorted(found.documents_of(query)[0]) for query in found.query_ids}


def test_a_pool_holds_each_document_of_a_query_once():
    found = pooled([ranking(q="ab", r="a"), ranking(s="c", q="cb")])
    assert contents(found) == {"q": ["a", "b", "c"], "r": ["a"], "s": ["c"]}
    assert len(found) == 5
    assert not found.tied.any()
    assert list(found.frame()["rank"]) == [1, 2, 3, 1, 1]
    nothing = Ranking.from_lists([])
    assert len(pooled([nothing, nothing])) == 0
    assert adds_documents(ranking(q="a"), nothing, np.array(["q"], dtype=object))


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
)
def test_documents_are_added_where_the_candidates_of_a_query_lack_them(lists, adds):
    queries = np.array(["q", "r", "labelled"], dtype=object)
    assert adds_documents(ranking(**lists), ranking(q="ab", r="c"), queries) is adds


LISTS = st.lists(st.lists(st.integers(0, 7), max_size=8, unique=True), max_size=6)


@given(LISTS, st.sets(st.tuples(st.integers(0, 5), st.integers(0, 7))), st.booleans())
@example([[1, 0], [2]], {(0, 0), (0, 1), (1, 2)}, True)
@example([[1, 0, 3], [2]], {(1, 2), (0, 3)}, False)
@example([], set(), True)
def test_pairs_are_found_where_they_stand_in_any_order(lists, pairs, ascending):
    lists = [own for own in lists if own]
    found_in = ranking(**{f"q{at}": "".join(map(str, own)) for at, own in enumerate(lists)})
    codes = {int(doc): code for code, doc in enumerate(found_in.documents.to_pylist())}
    asked = sorted((at, codes[doc]) for at, doc in pairs if at < len(lists) and doc in codes)
    asked = asked if ascending else asked[::-1]
    rows, found = places_of(
        found_in, *(np.array([pair[part] for pair in asked], dtype=np.int64) for part in (0, 1))
    )
    stands = {
        (at, int(found_in.docs[row])): row
        for at in range(len(lists))
        for row in range(*found_in.offsets[at : at + 2].tolist())
    }
    expected = [(stands[pair], place) for place, pair in enumerate(asked) if pair in stands]
    assert list(zip(rows.tolist(), found.tolist(), strict=True)) == expected
