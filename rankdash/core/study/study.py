"""`Study`: a data set, the systems compared on it, and the rules; all numbers follow from it.

A number is worked out when it is first asked for, and kept in the cache that was passed in, under
what it depends on. A query that failed, was not run or has no value for another reason on one side
leaves both sides of that pair and is counted; it is never a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from rankdash.core.base.errors import SpecError
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking, Run, adds_documents
from rankdash.core.metrics import (
    Conventions,
    Evaluation,
    Judged,
    Measure,
    evaluate,
    judge,
    judge_again,
)
from rankdash.core.metrics import parse_measure as parse
from rankdash.core.statistics.alignment import paired
from rankdash.core.statistics.comparison import Comparison, compare, mean_intervals
from rankdash.core.study.cache import Cache, Key, Made, part
from rankdash.core.study.groups import DERIVED_SEGMENTS, by_segment, of_texts, of_values
from rankdash.core.study.headroom import Headroom, best_of_all, limits_of, pool_of
from rankdash.core.study.headroom import headroom as split_headroom
from rankdash.core.study.reasons.contributions import splits
from rankdash.core.study.reasons.reasons import counted, reasons
from rankdash.core.study.systems import FIRST_STAGE, Money, System
from rankdash.core.study.unjudged.system_bounds import (
    RankedLabels,
    UnjudgedComparison,
    bounds_table,
)

# What a metric alone does not need, and takes as long to load as to score a million rows.
if TYPE_CHECKING:
    from rankdash.core.data.dataset import Judgements
    from rankdash.core.readers.checks.check import CheckReport
    from rankdash.core.sampling.status import LabelStatus
    from rankdash.core.value.targets import Goals
    from rankdash.core.workspace.notes import Note

METRICS = ("ndcg", "mrr", "map", "recall", "precision", "hit", "judged")
"""Evaluated beside the metric that was chosen, at the same cutoff."""

CUTOFFS = (1, 3, 5, 10, 20, 50, 100)
_CURVES = ["system", "k", "mean", "low", "high", "n"]
"""Where a metric is shown by cutoff."""


@dataclass(frozen=True, eq=False)
class Study:
    """One comparison.

    systems: id → system, those of baseline and challengers among them. metric: its name, such as
    "ndcg". cutoff: its k, None for the whole list. others: specs that are evaluated beside it; None
    for `METRICS` at the same cutoff. check: what reading the data set noticed, where that is known.
    money: None where nothing is known of prices. notes: query id → what an analyst remarked.
    goals: the profile of targets that was chosen; None where none was.
    corrections: how many labels of the data set were corrected by hand. labelling: what labels say
    that were sampled; None where they came otherwise, or all that the metric looks at are there.
    judge: whose grades are set beside people's labels (see `rankdash.core.study.judged`).
    cache: where parts are shared with other studies; None: nowhere. dataset_id: the id under which
    they are kept there; where a revision of corrected labels follows ("<id>+<revision>"), what does
    not depend on labels is kept under the id alone. The ids of systems are those of their runs.

    Raises SpecError where a system is not known, is compared with itself, or the metric does not
    exist.
    """

    dataset: Dataset
    systems: Mapping[str, System]
    baseline: str
    challengers: tuple[str, ...]
    metric: str = "ndcg"
    cutoff: int | None = 10
    others: tuple[str, ...] | None = None
    conventions: Conventions = field(default_factory=Conventions)
    statistics: StatisticsSettings = field(default_factory=StatisticsSettings)
    check: CheckReport | None = None
    money: Money | None = None
    notes: Mapping[str, Note] = field(default_factory=dict)
    goals: Goals | None = None
    corrections: int = 0
    labelling: LabelStatus | None = None
    judge: Judgements | None = None
    dataset_id: str = ""
    cache: Cache | None = field(default=None, repr=False)
    _parts: dict[Key, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for system in self.chosen:
            if system not in self.systems:
                raise SpecError(
                    "There is no system {system!r}.",
                    remedy="Possible: {systems}.",
                    system=system,
                    systems=", ".join(self.systems),
                )
        if len(set(self.chosen)) < len(self.chosen):
            raise SpecError(
                "A system cannot be compared with itself.",
                remedy="Name each system once.",
            )
        parse(self.spec)

    @classmethod
    def on(cls, spec: str, **fields: Any) -> Self:
        """A study of a metric with its cutoff, such as "ndcg@10"; fields: the others."""
        measure = parse(spec)
        metric = measure.spec if measure.k is None else replace(measure, k=None).spec
        return cls(metric=metric, cutoff=measure.k, **fields)

    # What is compared, and its names.

    @property
    def chosen(self) -> tuple[str, ...]:
        """The baseline, then the challengers."""
        return (self.baseline, *self.challengers)

    @property
    def names(self) -> dict[str, str]:
        """id → name of the chosen systems, in their order."""
        return {system: self.systems[system].name for system in self.chosen}

    def name(self, system: str) -> str:
        """The system's name, as it was typed: never markup."""
        return self.systems[system].name

    @property
    def places(self) -> dict[str, int]:
        """id → number of each chosen system among all systems of the data set."""
        return {system: self.systems[system].place for system in self.chosen}

    def run(self, system: str) -> Run | None:
        """None for a system without one. One made of others has their latencies in sum."""
        load = self.systems[system].load
        if load is None:
            return None
        from rankdash.core.runs.combining import part_ids, with_times_of

        run = self.once(("run", system), load)
        parts = [self.run(each) for each in part_ids(run) if each in self.systems]
        if not parts or len(parts) < len(part_ids(run)):
            return run
        timed = [part for part in parts if part is not None]
        return self.once(("times of parts", system), lambda: with_times_of(run, timed))

    def ranking(self, system: str) -> Ranking:
        run = self.run(system)
        if run is not None:
            return run.ranking
        ranking = self.systems[system].ranking
        return self.dataset.candidates if ranking is None else ranking

    def excluded(self, system: str) -> Mapping[str, str]:
        """Query id → "failed" or "skipped", where the system has no result."""
        run = self.run(system)
        return {} if run is None else run.left_out

    def failures(self, system: str) -> pd.DataFrame:
        """query_id and reason of every query that failed."""
        run = self.run(system)
        if run is None:
            return pd.DataFrame({"query_id": [], "reason": []}, dtype="str")
        rows = run.queries[run.queries["state"] == "failed"]
        return rows[["query_id", "reason"]].reset_index(drop=True)

    # Metrics.

    @property
    def spec(self) -> str:
        return self.spec_of(self.metric)

    @cached_property
    def measure(self) -> Measure:
        return parse(self.spec)

    def spec_of(self, metric: str) -> str:
        """A metric at the chosen cutoff, as far as it has one."""
        measure = parse(metric)
        if self.cutoff is None or not measure.metric.has_cutoff:
            return measure.spec
        return replace(measure, k=self.cutoff).spec

    @cached_property
    def specs(self) -> tuple[str, ...]:
        """The chosen metric first, then the others."""
        others = map(self.spec_of, METRICS) if self.others is None else self.others
        return tuple(dict.fromkeys([self.spec, *others]))

    @property
    def titles(self) -> dict[str, str]:
        """Spec → title, such as "NDCG@10"."""
        return {spec: parse(spec).title for spec in self.specs}

    @property
    def measures_quality(self) -> bool:
        """Whether the metric says how good a ranking is, and not only what is labelled."""
        return bool(self.measure.metric.measures_quality)

    @property
    def has_reasons(self) -> bool:
        """Whether the metric is a sum over documents, so that a change has reasons."""
        return splits(self.measure)

    @cached_property
    def _plain(self) -> Self:
        """This study, under the default threshold where the metric reads grades as they are: what
        no threshold changes is then worked out once for all."""
        usual = replace(self.conventions, threshold=Conventions().threshold)
        graded = not self.measure.metric.binary and usual != self.conventions
        return replace(self, conventions=usual) if graded else self

    # Numbers.

    @part("labels", "order", limit="judged")
    def judged(self, system: str) -> Judged:
        """The ranking joined with the labels; with corrected ones anew for their queries alone."""
        data, ranking, rules = self.dataset, self.ranking(system), self.conventions
        if not self.corrected or data.before is None:
            return judge(ranking, data.labels, rules)
        before = replace(self, dataset=data.before, dataset_id=self.stored_id).judged(system)
        return judge_again(before, ranking, data.labels, data.changed, rules)

    def of_judged(self, system: str, make: Callable[[Judged], Made]) -> Made:
        """What `make` makes, query by query, of a ranking joined with the labels: an evaluation,
        ceilings, or counts."""
        return make(self.judged(system))

    def of_pool(self, make: Callable[[Judged], Made]) -> Made:
        """The same of every document that a chosen system ranks."""
        return make(pool_of(self))

    @part("labels")
    def adds_documents(self, system: str) -> bool:
        """Whether a run ranks documents for labelled queries that the first stage did not find."""
        run = self.run(system)
        if run is None:
            return False
        queries = self.judged(FIRST_STAGE).query_ids
        return adds_documents(run.ranking, self.dataset.candidates, queries)

    @part("labels")
    def lacks_documents(self, system: str) -> bool:
        """Whether a system lacks candidates of the labelled queries that it ranks."""
        judged = self.judged(system)
        queries = judged.query_ids[judged.present]
        return adds_documents(self.dataset.candidates, self.ranking(system), queries)

    @part(alone=True)
    def evaluate(self, system: str, specs: tuple[str, ...]) -> Evaluation:
        """Per-query values of any metrics, in the order given."""
        ordered = tuple(sorted(specs))
        evaluation = self._evaluated(system, ordered)
        return evaluation if ordered == specs else evaluation.in_order(specs)

    @part("labels", "conventions")
    def _evaluated(self, system: str, specs: tuple[str, ...]) -> Evaluation:
        rules, excluded = self.conventions, self.excluded(system)
        return self.of_judged(system, lambda judged: evaluate(judged, [*specs], rules, excluded))

    @cached_property
    def evaluations(self) -> dict[str, Evaluation]:
        """System → its values of `specs`, query by query."""
        return {system: self.evaluate(system, self.specs) for system in self.chosen}

    @cached_property
    def comparison(self) -> Comparison:
        """The baseline against every challenger on every metric of `specs`."""
        # In an order that is the same whichever of them is chosen, and made once for all.
        return self._compared(tuple(sorted(self.specs))).in_order(self.specs)

    @part("labels", "chosen", "conventions", "statistics")
    def _compared(self, specs: tuple[str, ...]) -> Comparison:
        return compare(
            {system: self.evaluate(system, specs) for system in self.chosen},
            self.baseline,
            self.statistics,
            best=best_of_all(self, specs),
            # Which of them lead is asked next, and only of what is chosen now.
            rivals=(self.spec,),
        )

    def mean(self, system: str) -> tuple[float, float, float]:
        """Mean and interval of the chosen metric."""
        row = self.comparison.row(system, self.spec)
        return float(row["mean"]), float(row["mean_low"]), float(row["mean_high"])

    @property
    def curves(self) -> pd.DataFrame:
        """system, k, mean, low, high, n: the metric by cutoff, up to the first cutoff that reaches
        the end of the system's longest list; no rows if the metric has no cutoff."""
        if not self.measure.metric.has_cutoff:
            return pd.DataFrame(columns=_CURVES)
        ends = {system: int(self.judged(system).lengths.max(initial=1)) for system in self.chosen}
        longest = max(ends.values())
        cutoffs = {min(k, longest) for k in (*CUTOFFS, self.cutoff or CUTOFFS[-1])}
        last = {
            system: min(k for k in cutoffs if k >= end or k == longest)
            for system, end in ends.items()
        }
        at = {replace(self.measure, k=k).spec: k for k in sorted(cutoffs)}
        return self._plain._curves(tuple(at.items()), tuple(last.items()))

    @part("labels", "chosen", "conventions", "statistics")
    def _curves(
        self, at: tuple[tuple[str, int], ...], last: tuple[tuple[str, int], ...]
    ) -> pd.DataFrame:
        """at: spec → its cutoff. last: system → the last cutoff that it has a row for."""
        cutoff = dict(at)
        evaluations = {system: self.evaluate(system, tuple(cutoff)) for system in self.chosen}
        frame = mean_intervals(evaluations, self.baseline, self.statistics)
        frame["k"] = frame["metric"].map(cutoff)
        return frame.loc[frame["k"] <= frame["system"].map(dict(last)), _CURVES]

    def pairs(self, challenger: str, spec: str | None = None) -> pd.DataFrame:
        """query_id, before, after, delta, state of every query of either side, as from
        `pairs.paired`. spec: another metric than the chosen one."""
        return self.pairs_of(self.baseline, challenger, self.spec if spec is None else spec)

    @part("labels", "conventions")
    def pairs_of(self, before: str, after: str, spec: str) -> pd.DataFrame:
        """The same of any two systems and any metric."""
        specs = self.specs if spec in self.specs else (spec,)
        return paired(self.evaluate(before, specs), self.evaluate(after, specs), spec)

    def reasons(self, challenger: str) -> pd.DataFrame | None:
        """Why each query changed, index query_id, as from `reasons.reasons`; None where the metric
        cannot be split by document."""
        return self._plain._reasons(challenger) if self.has_reasons else None

    @part("labels", "baseline", "metric", "conventions", "tie band")
    def _reasons(self, challenger: str) -> pd.DataFrame:
        run = self.run(challenger)
        return reasons(
            self.ranked_labels(self.baseline),
            self.ranked_labels(challenger),
            self.measure,
            self.conventions,
            tie_band=self.statistics.tie_band,
            reading=None if run is None else run.reading,
        ).set_index("query_id")

    @part("labels", "baseline", "metric", "conventions", "tie band")
    def reason_counts(self, challenger: str) -> pd.DataFrame | None:
        """Reasons of the queries that the mean change counts, how many each has and what they add
        to it, as from `reasons.counted`."""
        reasons = self.reasons(challenger)
        return None if reasons is None else counted(reasons["reason"], self.pairs(challenger))

    @part("labels", "baseline", "metric", "conventions")
    def headroom(self, challenger: str) -> Headroom | None:
        """How the best value splits into lost by the retriever, still to win and won; None for a
        metric that describes labels.

        The ceiling is the best order of what the challenger could order (see `limits_of`).
        """
        if not self.measures_quality:
            return None
        sides = self.evaluations[self.baseline], self.evaluations[challenger]
        return split_headroom(*sides, limits_of(self, challenger))

    # Groups of queries.

    @property
    def corrected(self) -> bool:
        """Whether corrected labels are in force."""
        return self.dataset_id != self.stored_id

    @property
    def segments(self) -> tuple[str, ...]:
        """Columns of the data set, then the groups that rankdash works out itself."""
        columns = self.dataset.segments
        return (*columns, *(each.name for each in DERIVED_SEGMENTS if each.name not in columns))

    @part("labels", "baseline", "metric", "conventions", "statistics")
    def segment(self, challenger: str, segment: str) -> pd.DataFrame:
        """The change in each group of queries, as from `by_segment`: groups that rankdash works out
        in their natural order, others the largest first."""
        provided = segment in self.dataset.segments
        order = next((each.values for each in DERIVED_SEGMENTS if each.name == segment), ())
        return by_segment(
            self.pairs(challenger),
            self.grouping(segment),
            self.statistics,
            order=() if provided else order,
            possible=self.measure.changes,
        )

    def grouping(self, segment: str) -> pd.Series:
        """The group of each query, index query id."""
        provided = segment in self.dataset.segments
        columns = self.dataset.queries if provided else self._derived(segment)
        return pd.Series(columns[segment].to_numpy(dtype=object), index=columns["query_id"])

    def _derived(self, segment: str) -> pd.DataFrame:
        """The table that has a column of groups which rankdash works out itself."""
        table = self._groups_of_texts()
        return table if segment in table else self._groups_of_values()

    @part("texts")
    def _groups_of_texts(self) -> pd.DataFrame:
        return of_texts(self.dataset)

    @part("labels", "baseline", "metric", "conventions")
    def _groups_of_values(self) -> pd.DataFrame:
        return of_values(self.dataset, self.evaluations[self.baseline], self.spec)

    # Documents without a label.

    def ranked_labels(self, system: str) -> RankedLabels:
        return RankedLabels(self.ranking(system), self.judged(system), self.excluded(system))

    @property
    def unjudged(self) -> pd.DataFrame:
        """What documents without a label leave open for each system, as from `bounds_table`."""
        return self._bounds()

    @part("labels", "chosen", "metric", "conventions")
    def _bounds(self) -> pd.DataFrame:
        ranked = {system: self.ranked_labels(system) for system in self.chosen}
        return bounds_table(ranked, [self.spec], self.conventions)

    @part("labels", "baseline", "metric", "conventions")
    def unjudged_change(self, challenger: str) -> UnjudgedComparison:
        """What they leave open between the baseline and a challenger."""
        sides = self.ranked_labels(self.baseline), self.ranked_labels(challenger)
        return UnjudgedComparison(*sides, self.spec, self.conventions)

    # Where parts are kept.

    @property
    def stored_id(self) -> str:
        """The same whatever labels were corrected: what notes and corrections are stored under."""
        return self.dataset_id.partition("+")[0]

    def once(self, key: Key, make: Callable[[], Made], *, alone: bool = False) -> Made:
        """What `make` makes, kept by this study, and by the cache unless `alone`: for what depends
        on more than a key holds, such as prices."""
        if key not in self._parts:
            self._parts[key] = make() if alone else self.shared(key, make)
        made: Made = self._parts[key]
        return made

    def shared(self, key: Key, make: Callable[[], Made]) -> Made:
        """What `make` makes, kept by the cache alone: for what is large and wanted once."""
        return make() if self.cache is None else self.cache(key, make)
