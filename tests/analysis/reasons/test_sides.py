import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, judge, parse_measure
from rankdash.core.study.reasons.main_document import Side, given_rows, joined
from rankdash.core.study.unjudged.system_bounds import RankedLabels
from tests.lists import ranking as ranking_of

# In the order of rising scores: row 0 of the input is the last of the list.
RANKING = Ranking.from_columns(["q", "q", "q"], ["a", "b", "c"], [1.0, 2.0, 2.0])


def test_a_row_of_a_ranking_that_is_settled_again_is_found_by_its_document():
    again = RANKING.with_ties("trec_eval", "float64")
    found = given_rows(again, RANKING)
    assert RANKING.doc_ids[RANKING.docs[found]].tolist() == again.doc_ids[again.docs].tolist()
    assert RANKING.given.tolist() != list(range(3))
    assert given_rows(RANKING, RANKING).tolist() == np.arange(3).tolist()


# Lists of queries that may be missing; one query has no labels.
LISTS = st.dictionaries(
    st.sampled_from("pqru"), st.lists(st.sampled_from("abcdef"), unique=True), max_size=4
)


def side(lists: dict[str, list[str]], labels: pd.DataFrame) -> Side:
    ranking = ranking_of(**lists)
    return Side(
        RankedLabels(ranking, judge(ranking, labels)), parse_measure("ndcg@3"), Conventions()
    )


@settings(max_examples=40)
@given(LISTS, LISTS, st.lists(st.integers(0, 2), min_size=18, max_size=18))
def test_two_rankings_join_alike_whichever_was_joined_first(before, after, grades):
    pairs = [(query, doc) for query in "pqr" for doc in "abcdef"]
    labels = pd.DataFrame(pairs, columns=["query_id", "doc_id"]).assign(label=grades)
    ours, theirs = side(before, labels), side(after, labels)
    joined(ours, theirs)
    mirrored = joined(theirs, ours)
    # These are joined for the first time.
    alone = joined(side(after, labels), side(before, labels))
    for found, expected in zip(mirrored, alone, strict=True):
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()
    ids = [
        [(query, doc) for query, docs in lists.items() for doc in docs] for lists in (after, before)
    ]
    for (query, doc), at in zip(ids[1], mirrored[0].tolist(), strict=True):
        labelled = query in "pqr" and (query, doc) in ids[0]
        assert at == (ids[0].index((query, doc)) if labelled else -1)
