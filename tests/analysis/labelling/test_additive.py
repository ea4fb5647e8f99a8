import numpy as np
import pytest

from rankdash.analysis.labelling.additive import Additive
from rankdash.analysis.labelling.draws import LabelPlan
from rankdash.analysis.labelling.estimate import estimate
from rankdash.errors import DataError, SpecError
from rankdash.metrics import Conventions, evaluate, judge
from tests.analysis.labelling.robot import real_pool
from tests.sets import SAMPLE, loaded


@pytest.mark.parametrize("spec", ["dcg@10", "dcg_exp@3", "precision@5", "rbp@10", "rbp(0.95)@7"])
def test_with_all_labels_the_difference_is_that_of_evaluate(spec: str) -> None:
    pool, labels = real_pool(SAMPLE.name, "by_title")
    found = loaded(SAMPLE.name)
    metric = Additive.of(spec, top=found.dataset.top_grade, threshold=2.0)
    (told,) = estimate(LabelPlan.make(pool, metric, seed=1), labels)
    conventions = Conventions(no_relevant="count", threshold=2.0)
    rankings = (found.dataset.candidates, found.runs[0].ranking)
    means = [
        evaluate(judge(each, found.dataset.qrels, conventions), [metric.measure], conventions)
        for each in rankings
    ]
    assert len(means[0].query_ids) == told.queries
    assert told.state == "complete"
    assert told.difference == pytest.approx(
        means[1].mean(metric.measure.spec) - means[0].mean(metric.measure.spec), abs=1e-12
    )
    assert told.low == told.high == told.difference


@pytest.mark.parametrize("spec", ["ndcg@10", "map", "recall@10", "mrr@10", "dcg", "rbp(0.9)"])
def test_other_metrics_are_refused(spec: str) -> None:
    with pytest.raises(SpecError, match="cannot be estimated from some of the labels"):
        Additive.of(spec, top=1)


@pytest.mark.parametrize(("spec", "top"), [("dcg@10", 0.0), ("dcg@10", np.nan), ("rbp@5", 0.5)])
def test_a_scale_without_a_relevant_label_is_refused(spec: str, top: float) -> None:
    with pytest.raises(SpecError, match="highest label of the scale"):
        Additive.of(spec, top=top)


def test_gains_are_from_0_to_1_and_missing_labels_stay_missing() -> None:
    labels = np.array([-1.0, 0.0, 1.0, 1.5, 3.0, np.nan])
    graded = Additive.of("dcg@10", top=3).gains(labels)
    assert graded[:5] == pytest.approx([0, 0, 1 / 3, 0.5, 1])
    assert np.isnan(graded[5])
    exponential = Additive.of("dcg_exp@10", top=3).gains(labels)
    assert exponential[:5] == pytest.approx([0, 0, 1 / 7, (2**1.5 - 1) / 7, 1])
    binary = Additive.of("precision@10", top=3, threshold=1.5).gains(labels)
    assert binary[:5].tolist() == [0, 0, 0, 1, 1]
    assert np.isnan(binary[5])


def test_a_label_above_the_scale_is_refused() -> None:
    with pytest.raises(DataError, match="A label is 4, above the top of the scale, which is 3"):
        Additive.of("dcg@10", top=3).gains(np.array([1.0, 4.0]))


def test_what_is_beyond_the_cutoff_weighs_nothing() -> None:
    metric = Additive.of("precision@4", top=1)
    assert metric.weights(np.array([1.0, 4.0, 5.0, np.inf])).tolist() == [0.25, 0.25, 0, 0]
