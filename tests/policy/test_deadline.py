"""Quality with a deadline: equal to a recomputation query by query, from timed queries only."""

import math
from dataclasses import replace

import numpy as np
import pytest

import rankdash
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import evaluate, judge
from rankdash.core.runs.combining import KIND
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.policy.deadline import Deadline, deadline
from tests.policy.conftest import real
from tests.study.builders import small, study_on, timed, together, without


def recomputed(study: Study, system: str, ms: float) -> tuple[float, float]:
    """Return the mean and the share of queries over the deadline, from lists mixed query by
    query."""
    run, first = study.run(system), study.dataset.candidates
    latency = run.queries.set_index("query_id")["latency_ms"].dropna()
    order = {query: first if latency[query] > ms else run.ranking for query in latency.index}
    lists = ((query, each.documents_of(query)[0]) for query, each in order.items())
    mixed = Ranking.from_lists((query, docs, -np.arange(len(docs))) for query, docs in lists)
    found = evaluate(judge(mixed, study.dataset.qrels), [study.spec]).wide()
    values = found.loc[found["state"] == "scored", study.spec]
    return values.mean(), np.mean([order[query] is first for query in values.index])


def check(study: Study, system: str) -> Deadline:
    """Check 50 deadlines, among them latencies themselves; return the result."""
    found = deadline(study, system)
    known = np.sort(found.latency[np.isfinite(found.latency)])
    limits = [*np.quantile(known, np.linspace(0, 1, 25), method="lower"),
              *np.linspace(0, 1.1 * known[-1], 25)]  # fmt: skip
    rows = found.rows(np.array(limits))
    for ms, mean, fallback in zip(limits, rows["mean"], rows["fallback"], strict=True):
        assert (mean, fallback) == pytest.approx(recomputed(study, system, ms))
    return found


@pytest.mark.parametrize("language", ["en", "zh"])
def test_quality_equals_a_recomputation_on_the_samples(shipped, language):
    study = shipped(language)
    fused = [each for each in study.challengers if study.run(each).reranker == KIND]
    for system in (study.challengers[0], *fused):
        found = check(study, system)
        assert found.timed + found.untimed == study.pairs_of(
            FIRST_STAGE, system, study.spec
        )["delta"].notna().sum()  # fmt: skip


def test_quality_equals_a_recomputation_on_a_real_set():
    study = real("medquad", lambda data: rankdash.rerank(data, "bm25"))
    assert check(study, *study.challengers).timed


LISTS = {query: list("abcd") for query in "pqrs"}
TURNED = {query: list("dcba") for query in "pqrs"}


def four(*ms: float) -> Study:
    """Return a study in which reranking lifts the one relevant document from rank 4 to 1, with the
    latency of each query."""
    study = small(LISTS, TURNED, labels={query: {"d": 1} for query in "pqrs"}, others=())
    run = timed(study.run(study.challengers[0]), ms)
    return study_on(study.dataset, run, metric="mrr", others=())


def test_a_query_over_the_deadline_has_the_value_of_the_first_stage():
    study = four(10, 20, 30, 40)
    found = deadline(study, *study.challengers)
    assert found.table["ms"].tolist() == [0, 10, 20, 30, 40]
    assert found.table["fallback"].tolist() == [1, 0.75, 0.5, 0.25, 0]
    assert found.table["mean"].tolist() == [0.25, 0.4375, 0.625, 0.8125, 1]
    assert found.table["change"].tolist() == [-0.75, -0.5625, -0.375, -0.1875, 0]
    assert found.at(20).tolist() == [1, 1, 0.25, 0.25]
    assert found.values[:, 2].tolist() == found.at(20).tolist()


def test_only_timed_queries_with_a_value_count():
    study = four(10, math.nan, 30, 40)
    run = without(study.run(study.challengers[0]), "s")
    study = study_on(study.dataset, run, metric="mrr", others=())
    found = deadline(study, *study.challengers)
    assert (found.timed, found.untimed) == (2, 1)
    assert np.isnan(found.at(20)).tolist() == [False, True, False, True]
    assert found.rows(np.array([20.0]))[["mean", "fallback"]].to_numpy().tolist() == [[0.625, 0.5]]


def test_without_a_latency_there_is_no_deadline():
    study = four(*[math.nan] * 4)
    assert deadline(study, *study.challengers) is None
    assert deadline(study, FIRST_STAGE) is None


def test_a_fused_run_has_the_summed_latencies_of_its_parts():
    study = four(10, 20, 30, 40)
    one = study.run(study.challengers[0])
    other = replace(timed(one, [1.0, 2, 3, math.nan]), id="other", name="other")
    both = together(study.dataset, one, other, first_stage=True)
    found = deadline(study_on(study.dataset, one, other, both), both.id)
    assert np.nan_to_num(found.latency).tolist() == [11, 22, 33, 0]
    assert found.untimed == 1
