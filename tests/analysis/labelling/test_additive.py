import numpy as np
import pytest

from rankdash.core.metrics import Conventions, evaluate, judge
from rankdash.core.sampling.estimate import estimate
from rankdash.core.sampling.label_plan import Additive, LabelPlan
from tests.analysis.labelling.pools import real_pool
from tests.results import results, several
from tests.sets import SAMPLE, loaded


@pytest.mark.parametrize("spec", ["dcg@10", "dcg_exp@3", "precision@5", "rbp(0.95)@7"])
def test_with_all_labels_the_difference_is_that_of_evaluate(spec: str) -> None:
    pool, labels = real_pool(SAMPLE.name)
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


LABELS, RANKS = np.array([-1.0, 0.0, 1.0, 1.5, 3.0, np.nan]), np.array([1.0, 4.0, 5.0, np.inf])
CASES = {
    **several(
        "{} up to {}",
        lambda spec, top: Additive.of(spec, top=top).measure.spec,
        (("ndcg@10", 1), ("map", 1), ("recall@10", 1), ("mrr@10", 1), ("dcg", 1), ("rbp(0.9)", 1),
         ("dcg@10", 0.0), ("dcg@10", np.nan), ("rbp@5", 0.5), ("rbp@5", 1.0)),
    ),
    **several(
        "gains of {} from {}",
        lambda spec, threshold: Additive.of(spec, top=3, threshold=threshold).gains(LABELS),
        (("dcg@10", 1.0), ("dcg_exp@10", 1.0), ("precision@10", 1.5)),
    ),
    "a label above the scale": lambda: Additive.of("dcg@10", top=3).gains(np.array([1.0, 4.0])),
    "weights up to the cutoff": lambda: Additive.of("precision@4", top=1).weights(RANKS),
}  # fmt: skip


def test_what_a_label_is_worth_and_which_metrics_are_sums(approved) -> None:
    approved("analysis/additive", results(CASES))
