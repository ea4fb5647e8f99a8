"""`evaluate`: labels and rankings from files, scored under stated conventions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rankdash.cli.rankings import Files, Rules, study_of
from rankdash.metrics import Conventions, Evaluation, Measure
from rankdash.readers import Conflict
from rankdash.study.study import Study


@dataclass(frozen=True, eq=False)
class Results:
    """What was found, and what of the arguments is written with it.

    measures: as typed → measure. conflict: which of several labels of a pair was kept.
    """

    qrels: str
    measures: Mapping[str, Measure]
    conflict: Conflict
    study: Study

    @property
    def conventions(self) -> Conventions:
        return self.study.conventions

    @cached_property
    def systems(self) -> dict[str, Evaluation]:
        """Name → evaluation."""
        found = self.study.evaluations
        return {name: found[system] for system, name in self.study.names.items()}


def evaluate_files(
    qrels: str, runs: Sequence[str], measures: Mapping[str, Measure], rules: Rules
) -> Results:
    """Read and score. What the readers find odd goes to standard error.

    Raises DataError where a file cannot be used, or ranks none of the labelled queries.
    """
    first, *others = (measure.spec for measure in measures.values())
    files = Files(qrels=qrels, baseline=runs[0], challengers=runs[1:])
    return Results(qrels, measures, rules.conflict, study_of(files, rules, first, others))
