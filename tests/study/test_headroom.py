"""Which documents a system could order: no system of a comparison scores above its ceiling."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.reasons.headroom import SHARES
from rankdash.dataset import Dataset
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers.kinds.precomputed import run_from_ranking
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


UPLOADED = ("dense", "sparse")


def study_of(*names: str, baseline: str = FIRST_STAGE, **depths: int | None) -> Study:
    """Dense and sparse are uploaded; the others are reranks of the candidates."""
    data = dataset()
    known = {*names, baseline} - {FIRST_STAGE}
    runs = {
        name: replace(
            run_from_ranking(name, data.id, ranking(LISTS[name]), f"{name}.trec"),
            id=name,
            reranker="precomputed" if name in UPLOADED else "cross-encoder",
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
        assert rows[list(SHARES)].sum(axis=1).to_numpy() == pytest.approx(rows["perfect"])
        assert found.share_won is None or found.share_won <= 1


def test_a_reranker_could_order_the_candidates_and_an_uploaded_run_its_own_list():
    """Relevant are d5, x0 and x5: the candidates hold one, dense two, sparse one."""
    study = study_of("reranked", "dense", "sparse")
    splits = {system: study.headroom(system) for system in study.challengers}
    assert {system: split.own for system, split in splits.items()} == {
        "reranked": False,
        "dense": True,
        "sparse": True,
    }
    recall = {system: split.recall_ceiling for system, split in splits.items()}
    assert recall == pytest.approx({"reranked": 1 / 3, "dense": 2 / 3, "sparse": 1 / 3})
    no_query_passes_its_ceiling(study)


def test_an_uploaded_run_without_a_relevant_document_loses_all_of_it_by_retrieval():
    """The other systems rank relevant documents, which this one could not order."""
    study = study_of("dense", "sparse")
    data = study.dataset
    qrels = pd.DataFrame(
        [(query, "d5", 1.0) for query in QUERIES], columns=["query_id", "doc_id", "label"]
    )
    only = Dataset("set", data.queries, data.documents, qrels, data.candidates)
    split = Study(only, study.systems, "dense", ("sparse",)).headroom("sparse")
    assert (split.ceiling, split.to_win) == (0, 0)
    assert split.retriever == split.perfect == 1
    assert split.share_won is None


@pytest.mark.parametrize("others", [(), ("dense",), ("sparse", "other", "dense")])
@pytest.mark.parametrize("baseline", [FIRST_STAGE, "dense"])
@pytest.mark.parametrize("system", ["reranked", "sparse"])
def test_what_a_system_could_order_does_not_depend_on_the_others(system, baseline, others):
    alone = study_of(system).headroom(system)
    study = study_of(system, *(each for each in others if each not in (system, baseline)),
                     baseline=baseline)  # fmt: skip
    found = study.headroom(system)
    for name in ("own", "depth", "ceiling", "perfect", "retriever", "to_win", "recall_ceiling"):
        assert getattr(found, name) == getattr(alone, name)
    no_query_passes_its_ceiling(study)


@pytest.mark.parametrize(
    ("docs", "queries", "own"),
    [
        (CANDIDATES[::-1], QUERIES, False),
        # A run that lacks a query could order the candidates of the others.
        (CANDIDATES[::-1], QUERIES[:5], False),
        (CANDIDATES[:4], QUERIES, True),
        ([*CANDIDATES, "x0"], QUERIES, True),
        (["x0", *CANDIDATES[:5]], QUERIES, True),
    ],
)
def test_a_list_is_called_the_runs_own_where_it_differs_from_the_candidates(docs, queries, own):
    study = study_of("dense")
    run = run_from_ranking("run", study.dataset.id, ranking(docs, queries), "run.trec")
    study = Study(study.dataset, systems_of(study.dataset, [run]), FIRST_STAGE, (run.id,))
    assert study.headroom(run.id).own is own


def test_a_fused_run_could_order_its_own_list():
    study = study_of("dense")
    fused = replace(study.run("dense"), id="fused", name="fused", reranker="fusion")
    both = Study(
        study.dataset, systems_of(study.dataset, [fused]), FIRST_STAGE, ("fused",)
    ).headroom("fused")
    assert both.own
    assert both.ceiling == study.headroom("dense").ceiling


@pytest.mark.parametrize("spec", ["precision", "f1", "recall", "ndcg", "map", "mrr@3", "hit@1"])
def test_the_ceiling_holds_for_metrics_of_whole_lists_too(spec):
    for baseline, *names in (("reranked", "dense", "sparse"), ("sparse", "dense", "reranked")):
        found = study_of(*names, baseline=baseline)
        no_query_passes_its_ceiling(
            Study.on(
                spec,
                dataset=found.dataset,
                systems=found.systems,
                baseline=found.baseline,
                challengers=found.challengers,
            )
        )


@pytest.mark.parametrize(("depth", "reach"), [(3, 3), (6, None), (None, None)])
@pytest.mark.parametrize("baseline", [FIRST_STAGE, "other"])
def test_the_ceiling_is_as_deep_as_the_reranker_went(depth, reach, baseline):
    study = study_of("reranked", baseline=baseline, reranked=depth, other=4)
    assert study.headroom("reranked").depth == reach
