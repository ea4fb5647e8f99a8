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
    def of(name="x", data="d", docs=("ab", "c"), scores=(2.0, 1.0), file="f"):
        ranking = Ranking.from_columns(["q", "q"], list(docs), list(scores))
        return run_from_ranking(name, data, ranking, file).id

    assert of() == of(file="copy.trec")
    # Ids that run together differently are different content.
    others = [of("y"), of(data="e"), of(scores=(2.0, 1.5)), of(docs=("a", "bc"))]
    assert len({of(), *others}) == 5
