from functools import partial

from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers import Corpus, Request, create
from rankdash.core.rerankers.kinds.precomputed import Precomputed, run_from_ranking
from tests.results import results

RANKING = Ranking.from_columns(["q1", "q1", "q2"], ["a", "b", "a"], [2.5, -1.0, 7.0])


def test_what_a_ranking_of_a_file_is_as_a_reranker_and_as_a_run(approved):
    """Every ranked query is done, and no value is invented."""
    reranker = Precomputed(RANKING)
    reranker.prepare(Corpus([], []))
    run = run_from_ranking("mine", "data1", RANKING, "mine.trec")
    cases = {
        "a document that is not listed": reranker.score([Request("q1", "", list("bna"), [""] * 3)]),
        "a query that is not listed": reranker.score([Request("q9", "", ["a"], [""])]),
        "made from settings": partial(create, "precomputed"),
        "a run": (run.name, run.dataset_id, run.reranker, run.settings, run.excluded),
        "its queries": run.queries,
    }
    approved("rerankers/precomputed", results(cases))
    assert run.ranking is RANKING


def test_the_id_of_a_run_names_data_set_name_and_content():
    def of(name="x", data="d", docs=("ab", "c"), scores=(2.0, 1.0), file="f"):
        ranking = Ranking.from_columns(["q", "q"], list(docs), list(scores))
        return run_from_ranking(name, data, ranking, file).id

    assert of() == of(file="copy.trec")
    # Different ids with the same concatenation are different contents.
    others = [of("y"), of(data="e"), of(scores=(2.0, 1.5)), of(docs=("a", "bc"))]
    assert len({of(), *others}) == 5
