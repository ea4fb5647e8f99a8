"""A provider for ir_measures: the metrics of rankdash by the names of ir_measures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from rankdash.core.base.errors import SpecError, UnavailableError
from rankdash.core.base.rules import Conventions
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics.evaluation import evaluate
from rankdash.core.metrics.judged import judge
from rankdash.core.metrics.specs import parse_metrics

NAME = "rankdash"


def ir_measures_provider(conventions: Conventions | None = None) -> Any:
    """Return a provider of ir_measures, and register it as "rankdash".

    conventions: None for the dashboard's defaults, which exclude queries without a relevant
        document; `Conventions.trec_eval()` for the values of the other providers. The relevance
        threshold of a measure, such as 2 in P(rel=2)@5, replaces the one of the conventions.

    The provider supports every measure of ir_measures that `evaluate` accepts by the same name. A
    query without a value is omitted from the values and from their mean. ERR uses the highest label
    of the conventions or of the labels, while other providers use 4.

    Raises UnavailableError if ir_measures is not installed.
    """
    try:
        import ir_measures
        from ir_measures import providers
        from ir_measures.util import QrelsConverter, RunConverter
    except ImportError as error:
        raise UnavailableError(
            "The package ir_measures is not installed.",
            remedy="Install it: pip install ir_measures.",
        ) from error
    rules = conventions or Conventions()

    class Evaluator(providers.Evaluator):  # type: ignore[misc]
        """Scores runs for measures and labels."""

        def __init__(self, measures: Iterable[Any], qrels: Any) -> None:
            labels = QrelsConverter(qrels).as_pd_dataframe()
            self._labels = labels.rename(columns={"relevance": "label"})
            super().__init__([*measures], set(labels["query_id"]))

        def iter_calc(self, run: Any) -> Iterator[Any]:
            """Yield each value of each query."""
            rows = RunConverter(run).as_pd_dataframe()
            ranking = Ranking.from_columns(
                rows["query_id"], rows["doc_id"], rows["score"], ties="trec"
            )
            for measure in self.measures:
                metrics = parse_metrics(str(measure))
                threshold = metrics.threshold
                used = rules if threshold is None else replace(rules, threshold=threshold)
                shown = ranking.with_ties(used.order_rule("trec"), used.score_precision)
                found = evaluate(judge(shown, self._labels, used), metrics.specs, used)
                for query, value in zip(found.query_ids, found.values[:, 0], strict=True):
                    if not np.isnan(value):
                        yield ir_measures.Metric(query, measure, float(value))

    class Provider(providers.Provider):  # type: ignore[misc]
        """The metrics of rankdash."""

        NAME = NAME

        def _evaluator(self, measures: Iterable[Any], qrels: Any) -> Evaluator:
            return Evaluator(measures, qrels)

        def supports(self, measure: Any) -> bool:
            """Return whether rankdash has the measure."""
            try:
                parse_metrics(str(measure))
            except SpecError:
                return False
            return True

    return providers.register(Provider())
