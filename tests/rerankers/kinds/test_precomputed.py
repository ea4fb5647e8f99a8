import numpy as np
import pytest

from rankdash.errors import UnavailableError
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers import Corpus, Request, create
from rankdash.rerankers.kinds.precomputed import Precomputed, run_from_ranking

RANKING = Ranking.from_columns(["q1", "q1", "q2"], ["a", "b", "a"], [2.5, -1.0, 7.0])


def test_scores_follow_the_request_and_unlisted_documents_are_not_scored():
    reranker = Precomputed(RANKING)
    reranker.prepare(Corpus([], []))
    request = Request("q1", "text", ["b", "new", "a"], ["", "", ""])
    scored = reranker.score([request])[0]
    np.testing.assert_array_equal(scored.scores, [-1.0, np.nan, 2.5])
    assert scored.error == ""


def test_a_query_that_the_file_does_not_rank_fails():
    scored = Precomputed(RANKING).score([Request("q9", "text", ["a"], [""])])[0]
    assert np.isnan(scored.scores).all()
    assert "does not contain this query" in scored.error


def test_it_is_not_made_from_settings():
    with pytest.raises(UnavailableError, match="TREC run"):
        create("precomputed")


def test_a_run_of_a_file_has_every_ranked_query_done_and_nothing_invented():
    run = run_from_ranking("mine", "data1", RANKING, "mine.trec")
    assert run.reranker == "precomputed"
    assert run.settings == {"file": "mine.trec"}
    assert run.queries["query_id"].tolist() == ["q1", "q2"]
    assert set(run.queries["state"]) == {"done"}
    assert run.queries["pairs"].tolist() == [2, 1]
    for unknown in ("latency_ms", "index_ms", "tokens", "truncated"):
        assert run.queries[unknown].isna().all()
    assert run.left_out == {}
    assert run.ranking is RANKING


def test_the_id_of_a_run_names_data_set_name_and_content():
    run = run_from_ranking("mine", "data1", RANKING, "mine.trec")
    same = Ranking.from_columns(["q1", "q1", "q2"], ["a", "b", "a"], [2.5, -1.0, 7.0])
    other = Ranking.from_columns(["q1", "q1", "q2"], ["a", "b", "a"], [2.5, -1.5, 7.0])
    assert run.id == run_from_ranking("mine", "data1", same, "copy.trec").id
    ids = {
        run.id,
        run_from_ranking("theirs", "data1", RANKING, "mine.trec").id,
        run_from_ranking("mine", "data2", RANKING, "mine.trec").id,
        run_from_ranking("mine", "data1", other, "mine.trec").id,
    }
    assert len(ids) == 4


def test_ids_that_run_together_differently_are_different_content():
    one = Ranking.from_columns(["q", "q"], ["ab", "c"], [2.0, 1.0])
    two = Ranking.from_columns(["q", "q"], ["a", "bc"], [2.0, 1.0])
    assert run_from_ranking("x", "d", one, "f").id != run_from_ranking("x", "d", two, "f").id
