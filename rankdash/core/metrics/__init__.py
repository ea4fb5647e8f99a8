"""Metrics of rankings, by reference definitions under explicit conventions.

judged = judge(ranking, qrels, conventions)        # once per ranking
evaluation = evaluate(judged, ["ndcg@10", "mrr@10"], conventions)
evaluation.mean("ndcg@10")
"""

from rankdash.core.base.rules import CONVENTION_SETTINGS, Conventions
from rankdash.core.metrics.engine import Measure, MetricDefinition, Parameter
from rankdash.core.metrics.evaluation import STATES, Evaluation, evaluate, judge_again
from rankdash.core.metrics.judged import Judged, judge, judge_list, match
from rankdash.core.metrics.specs import (
    MetricList,
    one_threshold,
    parse_measure,
    parse_metrics,
    registry,
)

__all__ = [
    "CONVENTION_SETTINGS",
    "STATES",
    "Conventions",
    "Evaluation",
    "Judged",
    "Measure",
    "MetricDefinition",
    "MetricList",
    "Parameter",
    "evaluate",
    "judge",
    "judge_again",
    "judge_list",
    "match",
    "one_threshold",
    "parse_measure",
    "parse_metrics",
    "registry",
]
