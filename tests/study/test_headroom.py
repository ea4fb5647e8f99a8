"""Whose documents the ceiling is of: no system of a comparison scores above its own."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.reasons.headroom import SHARES
from rankdash.dataset import Dataset
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.headroom import systems_adding_documents
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, systems_of

QUERIES = [f"q{n}" for n in range(8)]
CANDIDATES = [f"d{n}" for n in range(6)]
# What the first stage never finds.
OTHERS = [f"x{n}" for n in range(6)]
RELEVANT = ("d5", "x0", "x5")


def ranking(docs: list[str], queries: list[str] = QUERIES) -> Ranking:
    scores = np.arange(len(docs), 0, -1.0)
    return Ranking.from_lists((query, docs, scores) for query in queries)


def dataset() -> Dataset:
    docs = [*CANDIDATES, *OTHERS]
    return Dataset(
        "set",
        pd.DataFrame({"query_id": QUERIES, "text": QUERIES}),
        pd.DataFrame({"doc_id": docs, "title": docs, "text": docs}),
        pd.DataFrame(
            [(query, doc, 1.0) for query in QUERIES for doc in RELEVANT],
            columns=["query_id", "doc_id", "label"],
        ),
        ranking(CANDIDATES),
    )


LISTS = {
    "reranked": [*CANDIDATES[3:], *CANDIDATES[:3]],
    "other": CANDIDATES[::-1],
    "dense": ["x0", "d5", *OTHERS[1:4]],
    "sparse": ["x5", *CANDIDATES[:2]],
}


def study_of(*names: str, baseline: str = FIRST_STAGE, **depths: int | None) -> Study:
    data = dataset()
    known = {*names, baseline} - {FIRST_STAGE}
    runs = {
        name: replace(
            run_from_ranking(name, data.id, ranking(LISTS[name]), f"{name}.trec"),
            id=name,
            depth=depths.get(name),
        )
        for name in sorted(known)
    }
    return Study(data, systems_of(data, runs.values()), baseline, names)


def no_query_passes_its_ceiling(study: Study) -> None:
    for system in study.challengers:
        found = study.headroom(system)
        rows = found.queries
        assert (rows[["to_win", "retriever"]] >= -1e-9).all(axis=None)
        assert (rows["baseline"] <= rows["ceiling"] + 1e-9).all()
        assert rows[list(SHARES)].sum(axis=1).to_numpy() == pytest.approx(rows["perfect"])
        assert found.share_won is None or found.share_won <= 1


def test_a_reranker_of_the_candidates_keeps_their_ceiling_beside_one_with_its_own():
    study = study_of("reranked", "dense")
    assert systems_adding_documents(study) == ["dense"]
    assert [study.headroom(system).pool for system in study.challengers] == [False, True]
    alone = study_of("reranked")
    assert systems_adding_documents(alone) == []
    assert study.headroom("reranked").ceiling == alone.headroom("reranked").ceiling
    no_query_passes_its_ceiling(study)


def test_documents_of_a_query_without_a_label_add_none():
    """Nothing is lost or won on it, so the ceiling stays that of the candidates."""
    own = study_of("reranked")
    data = own.dataset
    labels = data.qrels[data.qrels["query_id"] != "q7"]
    fewer = Dataset(data.name, data.queries, data.documents, labels, data.candidates)
    lists = [(query, LISTS["reranked"], np.arange(6, 0, -1.0)) for query in QUERIES[:-1]]
    beside = Ranking.from_lists([*lists, ("q7", LISTS["dense"], np.arange(5, 0, -1.0))])
    run = run_from_ranking("beside", fewer.id, beside, "beside.trec")
    study = Study(fewer, systems_of(fewer, [run]), FIRST_STAGE, (run.id,))
    assert systems_adding_documents(study) == []
    assert not study.headroom(run.id).pool
    labelled = Study(data, systems_of(data, [run]), FIRST_STAGE, (run.id,))
    assert systems_adding_documents(labelled) == [run.id]


def test_a_baseline_with_documents_of_its_own_needs_the_pool_for_every_challenger():
    study = study_of("reranked", "sparse", baseline="dense")
    assert [study.headroom(system).pool for system in study.challengers] == [True, True]
    no_query_passes_its_ceiling(study)


def test_the_pool_is_that_of_all_systems_and_of_no_other():
    pair, three = study_of("dense"), study_of("dense", "sparse")
    assert pair.headroom("dense").recall_ceiling == pytest.approx(2 / 3)
    assert three.headroom("dense").recall_ceiling == 1
    assert three.headroom("dense").retriever == pytest.approx(0)
    assert three.headroom("dense").ceiling == three.headroom("sparse").ceiling
    for study in (pair, three):
        no_query_passes_its_ceiling(study)


@pytest.mark.parametrize("spec", ["precision", "f1", "recall", "ndcg", "map", "mrr@3", "hit@1"])
def test_the_ceiling_holds_for_metrics_of_whole_lists_too(spec):
    found = study_of("dense", "sparse", baseline="reranked")
    no_query_passes_its_ceiling(
        Study.on(
            spec,
            dataset=found.dataset,
            systems=found.systems,
            baseline=found.baseline,
            challengers=found.challengers,
        )
    )


@pytest.mark.parametrize(
    ("depths", "reach"),
    [((3,), 3), ((6,), None), ((None,), None), ((3, 2), 3), ((3, 4), 4), ((3, None), None)],
)
def test_the_ceiling_is_as_deep_as_the_deeper_of_both_sides(depths, reach):
    given = dict(zip(("reranked", "other"), depths, strict=False))
    study = study_of("reranked", baseline=[FIRST_STAGE, "other"][len(given) - 1], **given)
    assert study.headroom("reranked").depth == reach
