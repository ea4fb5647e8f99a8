"""Documents that a system could order: no system of a comparison scores above its ceiling."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rankdash.core.base.errors import DataError
from rankdash.core.data.ranking import Run
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study import costs, pricing
from rankdash.core.study.headroom import SHARES
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, Money, systems_of
from rankdash.core.words import verdicts
from tests.study.builders import changed, data_of, keeping, ranking, study_on

QUERIES = [f"q{n}" for n in range(8)]
CANDIDATES = [f"d{n}" for n in range(6)]
# Documents that the first stage does not retrieve.
OTHERS = [f"x{n}" for n in range(6)]
LABELS = {query: dict.fromkeys(("d5", "x0", "x5"), 1.0) for query in QUERIES}
DATA = data_of(dict.fromkeys(QUERIES, CANDIDATES), LABELS, [*CANDIDATES, *OTHERS])
LISTS = {
    "reranked": [*CANDIDATES[3:], *CANDIDATES[:3]],
    "other": CANDIDATES[::-1],
    "dense": ["x0", "d5", *OTHERS[1:4]],
    "sparse": ["x5", *CANDIDATES[:2]],
}


def made(name: str, docs: Sequence[str], queries: Sequence[str] = QUERIES, **more: object) -> Run:
    run = run_from_ranking(name, DATA.id, ranking(dict.fromkeys(queries, docs)), f"{name}.trec")
    return replace(run, id=name, **more)


def study_of(*names: str, baseline: str = FIRST_STAGE, **depths: int | None) -> Study:
    """Return a study; dense and sparse are uploaded, the others are reranks of the candidates."""
    runs = [
        made(name, LISTS[name], depth=depths.get(name),
             reranker="precomputed" if name in ("dense", "sparse") else "cross-encoder")
        for name in sorted({*names, baseline} - {FIRST_STAGE})
    ]  # fmt: skip
    return Study(DATA, systems_of(DATA, runs), baseline, names)


def test_an_uploaded_run_without_a_relevant_document_loses_all_of_it_by_retrieval():
    """The other systems rank relevant documents, which this one could not order."""
    study = study_of("dense", "sparse")
    qrels = DATA.qrels[DATA.qrels["doc_id"] == "d5"]
    only = replace(study, dataset=changed(DATA, qrels=qrels), baseline="dense",
                   challengers=("sparse",))  # fmt: skip
    split = only.headroom("sparse")
    assert (split.ceiling, split.to_win) == (0, 0)
    assert split.retriever == split.perfect == 1
    assert split.share_won is None


@pytest.mark.parametrize("baseline", [FIRST_STAGE, "dense"])
@pytest.mark.parametrize(("system", "recall"), [("reranked", 1 / 3), ("sparse", 1 / 3)])
def test_the_ceiling_of_a_system_does_not_depend_on_the_others(system, recall, baseline):
    """Relevant are d5, x0 and x5: the candidates have one, dense two, sparse one."""
    alone = study_of(system).headroom(system)
    found = study_of(system, "other", baseline=baseline).headroom(system)
    for name in ("own", "depth", "ceiling", "perfect", "retriever", "to_win", "recall_ceiling"):
        assert getattr(found, name) == getattr(alone, name)
    assert found.recall_ceiling == pytest.approx(recall)
    assert found.queries[list(SHARES)].sum(axis=1).to_numpy() == pytest.approx(
        found.queries["perfect"]
    )


@pytest.mark.parametrize(
    ("docs", "queries", "kind", "own"),
    [
        (CANDIDATES[::-1], QUERIES, "precomputed", False),
        # A run that lacks a query could order the candidates of the others.
        (CANDIDATES[::-1], QUERIES[:5], "precomputed", False),
        (CANDIDATES[:4], QUERIES, "precomputed", True),
        ([*CANDIDATES, "x0"], QUERIES, "precomputed", True),
        (["x0", *CANDIDATES[:5]], QUERIES, "precomputed", True),
        (LISTS["dense"], QUERIES, "fusion", True),
        (LISTS["dense"], QUERIES, "cross-encoder", False),
    ],
)
def test_a_list_is_the_runs_own_if_it_differs_from_the_candidates(docs, queries, kind, own):
    found = study_on(DATA, made("run", docs, queries, reranker=kind)).headroom("run")
    assert found.own is own
    assert kind != "fusion" or found.ceiling == study_of("dense").headroom("dense").ceiling


@pytest.mark.parametrize(("depth", "reach"), [(3, 3), (6, None), (None, None)])
def test_the_ceiling_is_as_deep_as_the_reranker_went(depth, reach):
    study = study_of("reranked", baseline="other", reranked=depth, other=4)
    assert study.headroom("reranked").depth == reach


SOURCED = {"candidates": "vectors", "candidates_id": "vectors"}


@pytest.mark.parametrize("baseline", [FIRST_STAGE, "vectors"])
@pytest.mark.parametrize("depth", [None, 2, 4, 9])
def test_a_retrieval_and_a_run_over_its_candidates_have_the_limits_of_its_list(depth, baseline):
    """The retrieval ranks x0 and d5 first: two of three relevant documents."""
    deep = depth or 5
    docs = [*LISTS["dense"][:deep][::-1], *LISTS["dense"][deep:]]
    runs = (
        made("vectors", LISTS["dense"], reranker="retrieval"),
        made("again", docs, depth=depth, reranker="cross-encoder", settings=SOURCED),
    )
    challengers = tuple(each.id for each in runs if each.id != baseline)
    study = study_on(DATA, *runs, baseline=baseline, challengers=challengers)
    uploaded = study_of("dense").headroom("dense")
    for challenger in challengers:
        split = study.headroom(challenger)
        assert split.own
        assert split.ceiling == uploaded.ceiling
        assert split.recall_ceiling == pytest.approx(2 / 3)
        assert (split.queries["to_win"] >= 0).all()
        assert sum(getattr(split, share) for share in SHARES) == pytest.approx(split.perfect)
    assert study.headroom("again").depth == (depth if depth in (2, 4) else None)


def test_a_short_depth_over_a_retrieval_of_the_same_documents_counts_its_order():
    """d5 is the last of the candidates, and the first of the retrieval."""
    runs = (
        made("vectors", CANDIDATES[::-1], reranker="retrieval"),
        made("again", CANDIDATES[::-1], depth=2, reranker="cross-encoder", settings=SOURCED),
    )
    study = study_on(DATA, *runs)
    assert study.headroom("again").recall_ceiling == pytest.approx(1 / 3)
    assert not study.headroom("vectors").own
    notes = verdicts.notes(study)
    assert any("candidates of again down to rank 2" in each for each in notes)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (made("vectors", CANDIDATES, reranker="retrieval"), "is a retrieval"),
        (made("again", CANDIDATES, reranker="bm25", settings=SOURCED), "candidates of vectors"),
    ],
)
def test_depths_are_only_for_runs_over_the_first_stage(run, reason):
    with pytest.raises(DataError, match=reason):
        costs.depths(study_on(DATA, run), run.id)
    assert costs.depths(study_on(DATA, made("run", CANDIDATES)), "run") is not None


def test_a_retrieval_has_no_price_of_a_reranker():
    made_here = made("vectors", CANDIDATES, reranker="retrieval", machine={"cpu": "x"})
    study = study_on(DATA, made_here, money=Money(example=True))
    found = pricing.bill(study, "vectors")
    assert (found.price, found.lack) == (None, "price")


def test_each_of_two_depths_in_one_comparison_has_a_ceiling_of_its_own():
    depths = {"reranked": 5, "other": 6}
    both = replace(study_of(*depths, **depths), cache=keeping())
    for name in depths:
        assert both.headroom(name).ceiling == study_of(name, **depths).headroom(name).ceiling
