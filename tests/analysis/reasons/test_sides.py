import numpy as np

from rankdash.analysis.reasons.sides import given_rows
from rankdash.ranking.ranking import Ranking

# Written by rising score: row 0 of what was given is the last of the list.
RANKING = Ranking.from_columns(["q", "q", "q"], ["a", "b", "c"], [1.0, 2.0, 2.0])


def test_a_row_of_a_ranking_that_is_settled_again_is_found_by_its_document():
    again = RANKING.settled("trec_eval", "float64")
    found = given_rows(again, RANKING)
    assert RANKING.doc_ids[RANKING.docs[found]].tolist() == again.doc_ids[again.docs].tolist()
    assert RANKING.given.tolist() != list(range(3))
    assert given_rows(RANKING, RANKING).tolist() == np.arange(3).tolist()
