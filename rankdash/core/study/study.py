"""`Study`: a data set, the systems compared on it, and the rules; the source of all numbers.

Numbers are computed on first access and stored in the cache that is passed in; the key has all
dependencies. A query that failed, was not run or has no value for another reason in one system is
excluded from both sides of the pair and counted by reason; it is never scored as 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pandas as pd

from rankdash.core.base.errors import SpecError
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.base.text import html_safe, notebook_html
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.overlap import adds_documents
from rankdash.core.data.ranking import RETRIEVAL, Ranking, Run
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
from rankdash.core.statistics.anytime import AnytimeSettings
from rankdash.core.statistics.comparison import Comparison, compare, mean_intervals
from rankdash.core.statistics.verdict import is_in_sample
from rankdash.core.statistics.weighted import refuse_unweighted
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

# Not needed for metrics, and as slow to import as scoring a million rows.
if TYPE_CHECKING:
    from rankdash.core.data.judgements import Judgements
    from rankdash.core.readers.checks.check import CheckReport
    from rankdash.core.runs.combining import Tuned
    from rankdash.core.sampling.status import LabelStatus
    from rankdash.core.value.targets import Goals
    from rankdash.core.workspace.notes import Note

METRICS = ("ndcg", "mrr", "map", "recall", "precision", "hit", "judged")
"""The other metrics that are evaluated, at the same cutoff as the chosen one."""

CUTOFFS = (1, 3, 5, 10, 20, 50, 100)
"""The cutoffs of `Study.curves`."""

_CURVES = ["system", "k", "mean", "low", "high", "n"]


@dataclass(frozen=True, eq=False)
class Study:
    """A comparison of systems on a data set.

    systems: id → system, at least the baseline and the challengers; their ids are the ids of their
    runs. metric: its name, such as "ndcg". cutoff: its k, None for the whole list. others: specs of
    the other metrics; None for `METRICS` at the same cutoff. check: the findings about the data
    set, if known. money: prices and assumptions, if known. notes: query id → an analyst's note.
    goals: the chosen profile of targets; None without.
    corrections: the number of labels corrected by hand. labelling: the estimates from sampled
    labels; None if labels were not sampled, or all labels that the metric needs exist.
    judge: an LLM judge that is compared with the human labels (see `rankdash.core.study.judged`).
    cache: shares parts with other studies; None: not shared. dataset_id: the id in the keys of the
    cache, "<id>+<revision>" if labels were corrected; parts that do not depend on labels use
    "<id>" only.

    Raises SpecError if a system is unknown or compared with itself, or if the metric does not
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

    has_rankings: ClassVar[bool] = True
    """False if the rankings were read in pieces, and only their labelled documents are stored."""

    def __post_init__(self) -> None:
        for system in self.chosen:
            if system not in self.systems:
                raise SpecError(
                    "Unknown system {system!r}.",
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
        if self.conventions.weighted and self.judge is not None:
            raise SpecError(
                "Grades of an LLM judge have no means per search.",
                remedy="Use the weights “per query”, or human labels only.",
            )

    @classmethod
    def on(cls, spec: str, **fields: Any) -> Self:
        """Create a study of a metric with its cutoff, such as "ndcg@10". fields: the other
        fields."""
        measure = parse(spec)
        metric = measure.spec if measure.k is None else replace(measure, k=None).spec
        return cls(metric=metric, cutoff=measure.k, **fields)

    # The compared systems and their names.

    @property
    def chosen(self) -> tuple[str, ...]:
        """The baseline, then the challengers."""
        return (self.baseline, *self.challengers)

    def _repr_html_(self) -> str:
        """Show the verdicts and the leaderboard in a notebook."""
        from rankdash.core.study.labelling import only_estimates
        from rankdash.core.study.leaderboard import standings

        if only_estimates(self):
            return notebook_html("<p>The labels are a sample: see Study.labelling.</p>")
        compared, names = self.comparison, self.names
        verdicts = (compared.verdict(each, self.measure, names) for each in self.challengers)
        sentences = "".join(f"<p>{html_safe(verdict.sentence)}</p>" for verdict in verdicts)
        rows = [
            {
                "system": self.name(row.system),
                self.measure.title: row.mean,
                "low": row.low,
                "high": row.high,
                "change": row.delta,
                "verdict": row.kind,
                "p95 (ms)": row.p95,
                "queries": row.n,
            }
            for row in standings(self)
        ]
        table = pd.DataFrame(rows).to_html(index=False, na_rep="–", float_format="{:.4f}".format)
        return notebook_html(f"{sentences}{table}")

    @property
    def names(self) -> dict[str, str]:
        """id → name of the chosen systems, in their order."""
        return {system: self.systems[system].name for system in self.chosen}

    def name(self, system: str) -> str:
        """Return the system's name as the user entered it, not escaped."""
        return self.systems[system].name

    @property
    def places(self) -> dict[str, int]:
        """id → number of each chosen system among all systems of the data set."""
        return {system: self.systems[system].place for system in self.chosen}

    def timed_run(self, system: str) -> Run | None:
        """Return the run of a system, or its measurements as a run, for a first stage that was
        fetched; None without any."""
        run, timings = self.run(system), self.dataset.timings
        if run is not None or system != FIRST_STAGE or timings is None:
            return run
        data = self.dataset
        return Run(system, self.name(system), data.id, data.candidates, RETRIEVAL, timings)

    def run(self, system: str) -> Run | None:
        """Return the run of a system; None if it has none. A fused run has the summed latencies of
        its parts."""
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
        """Return query id → "failed" or "skipped", for queries without a result."""
        run = self.run(system)
        return self.systems[system].lost if run is None else run.excluded

    def stopped(self, system: str) -> bool:
        """Return whether the run of a system was stopped by its result."""
        run = self.run(system)
        return run is not None and run.stopped is not None

    def rules(self, *systems: str) -> StatisticsSettings:
        """Return the settings of intervals and tests of values of these systems: anytime-valid if a
        run was stopped by its result."""
        stopped = any(map(self.stopped, systems))
        return AnytimeSettings.of(self.statistics) if stopped else self.statistics

    def require_weights(self) -> None:
        """Raise DataError or SpecError if means are per search and cannot be computed: a query has
        no frequency, a run was stopped by its result, or the interval or the test has no weighted
        version."""
        if self.conventions.weighted:
            weights = self.dataset.weights(self.dataset.labels["query_id"].objects())
            refuse_unweighted(self.rules(*self.chosen), weights, tested=True)

    def failures(self, system: str) -> pd.DataFrame:
        """Return query_id and reason of every failed query."""
        run = self.run(system)
        if run is None:
            return pd.DataFrame({"query_id": [], "reason": []}, dtype="str")
        rows = run.queries[run.queries["state"] == "failed"]
        return rows[["query_id", "reason"]].reset_index(drop=True)

    def tuned(self, system: str) -> Tuned | None:
        """Return the record that the weights of a system were tuned on this data set; None without
        one."""
        run = self.run(system)
        if run is None:
            return None
        from rankdash.core.runs.combining import tuned

        return tuned(run, self._part)

    def unknown_tokens(self, system: str) -> float:
        """Return the share of tokens that are unknown to the model of a system, or to one of its
        parts; NaN if it was not recorded."""
        run = self.run(system)
        if run is None:
            return math.nan
        from rankdash.core.runs.combining import unknown_tokens

        return unknown_tokens(run, self._part)

    def churn(self, system: str) -> float:
        """Return the churn of the engine behind a system; NaN if it was not measured."""
        run = self.run(system)
        if run is None:
            return math.nan
        from rankdash.core.runs.combining import churn

        return churn(run, self._part)

    def _part(self, system: str) -> Run | None:
        """Return the run of a part of a fused run, if it is one of the systems."""
        return self.run(system) if system in self.systems else None

    # Metrics.

    @property
    def spec(self) -> str:
        return self.spec_of(self.metric)

    @cached_property
    def measure(self) -> Measure:
        return parse(self.spec)

    def spec_of(self, metric: str) -> str:
        """Return a metric at the chosen cutoff, or without a cutoff if it has none."""
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
        """Spec → title of its mean, such as "NDCG@10"."""
        return {spec: self.titled(parse(spec)) for spec in self.specs}

    @property
    def title(self) -> str:
        """The title of the mean of the metric."""
        return self.titled(self.measure)

    def titled(self, measure: Measure) -> str:
        """Return the title of the mean of a metric, "NDCG@10 per search" if means are per
        search."""
        title = measure.title
        return _("{metric} per search", metric=title) if self.conventions.weighted else title

    @property
    def measures_quality(self) -> bool:
        """True if the metric measures quality, and not only which documents are labelled."""
        return bool(self.measure.metric.measures_quality)

    @property
    def has_reasons(self) -> bool:
        """True if the metric is a sum over documents, so that changes have reasons."""
        return splits(self.measure)

    @cached_property
    def _plain(self) -> Self:
        """This study, with the default relevance threshold if the metric uses grades: results that
        do not depend on the threshold are then computed once."""
        usual = replace(self.conventions, threshold=Conventions().threshold)
        graded = not self.measure.metric.binary and usual != self.conventions
        return replace(self, conventions=usual) if graded else self

    # Numbers.

    @part("labels", "order", limit="judged")
    def judged(self, system: str) -> Judged:
        """Return the ranking joined with the labels. If labels were corrected, only their queries
        are joined again."""
        data, ranking, rules = self.dataset, self.ranking(system), self.conventions
        if not self.corrected or data.before is None:
            return judge(ranking, data.labels, rules)
        before = replace(self, dataset=data.before, dataset_id=self.stored_id).judged(system)
        return judge_again(before, ranking, data.labels, data.changed, rules)

    def of_judged(self, system: str, make: Callable[[Judged], Made]) -> Made:
        """Return the result of `make` for a system's ranking joined with the labels, such as an
        evaluation. `make` must compute each query separately."""
        return make(self.judged(system))

    def of_pool(self, make: Callable[[Judged], Made]) -> Made:
        """Return the result of `make` for all documents that a chosen system ranks, joined with the
        labels."""
        return make(pool_of(self))

    @part("labels")
    def adds_documents(self, system: str) -> bool:
        """Return whether a run ranks documents of labelled queries that the first stage lacks."""
        run = self.run(system)
        if run is None:
            return False
        queries = self.judged(FIRST_STAGE).query_ids
        return adds_documents(run.ranking, self.dataset.candidates, queries)

    @part("labels")
    def lacks_documents(self, system: str) -> bool:
        """Return whether a system lacks candidates of the labelled queries that it ranks."""
        judged = self.judged(system)
        queries = judged.query_ids[judged.present]
        return adds_documents(self.dataset.candidates, self.ranking(system), queries)

    @part(alone=True)
    def evaluate(self, system: str, specs: tuple[str, ...]) -> Evaluation:
        """Return the values per query of any metrics, in the order of `specs`."""
        ordered = tuple(sorted(specs))
        evaluation = self._evaluated(system, ordered)
        return evaluation if ordered == specs else evaluation.in_order(specs)

    @part("labels", "conventions")
    def _evaluated(self, system: str, specs: tuple[str, ...]) -> Evaluation:
        rules, excluded = self.conventions, self.excluded(system)
        values = self.of_judged(system, lambda judged: evaluate(judged, specs, rules, excluded))
        tuned = self.tuned(system) is not None
        weights = self.dataset.weights(values.query_ids) if rules.weighted else None
        return replace(values, tuned=tuned, stopped=self.stopped(system), weights=weights)

    @cached_property
    def evaluations(self) -> dict[str, Evaluation]:
        """System → its values of `specs` per query."""
        return {system: self.evaluate(system, self.specs) for system in self.chosen}

    @cached_property
    def comparison(self) -> Comparison:
        """The baseline against every challenger on every metric of `specs`."""
        # Sorted, so that the key does not depend on which metric is chosen.
        return self._compared(tuple(sorted(self.specs))).in_order(self.specs)

    @part("labels", "chosen", "conventions", "statistics")
    def _compared(self, specs: tuple[str, ...]) -> Comparison:
        return compare(
            {system: self.evaluate(system, specs) for system in self.chosen},
            self.baseline,
            self.statistics,
            best=best_of_all(self, specs),
            # The leaders are needed for the chosen metric only.
            rivals=(self.spec,),
        )

    def mean(self, system: str) -> tuple[float, float, float]:
        """Return mean and interval of the chosen metric."""
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
        """Return `curves`. at: spec → its cutoff. last: system → the cutoff of its last row."""
        cutoff = dict(at)
        evaluations = {system: self.evaluate(system, tuple(cutoff)) for system in self.chosen}
        frame = mean_intervals(evaluations, self.baseline, self.statistics)
        frame["k"] = frame["metric"].map(cutoff)
        return frame.loc[frame["k"] <= frame["system"].map(dict(last)), _CURVES]

    def pairs(self, challenger: str, spec: str | None = None) -> pd.DataFrame:
        """Return query_id, before, after, delta, state of every query of either side, as from
        `paired`. spec: the metric; the chosen one by default."""
        return self.pairs_of(self.baseline, challenger, self.spec if spec is None else spec)

    @part("labels", "conventions")
    def pairs_of(self, before: str, after: str, spec: str) -> pd.DataFrame:
        """Return the same for any two systems and any metric."""
        specs = self.specs if spec in self.specs else (spec,)
        return paired(self.evaluate(before, specs), self.evaluate(after, specs), spec)

    def reasons(self, challenger: str) -> pd.DataFrame | None:
        """Return the reason of each query's change, index query_id, as from `reasons.reasons`; None
        if the metric is not a sum over documents."""
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
        """Return the number of queries for each reason and their part of the mean change, as from
        `reasons.counted`."""
        reasons = self.reasons(challenger)
        return None if reasons is None else counted(reasons["reason"], self.pairs(challenger))

    @part("labels", "baseline", "metric", "conventions")
    def headroom(self, challenger: str) -> Headroom | None:
        """Return the split of the perfect value: lost by the retriever, potential gain left and
        realised; None for a metric that does not measure quality.

        The ceiling is the best order of the documents that the challenger could order (see
        `limits_of`).
        """
        if not self.measures_quality:
            return None
        sides = self.evaluations[self.baseline], self.evaluations[challenger]
        return split_headroom(*sides, limits_of(self, challenger))

    # Groups of queries.

    @property
    def corrected(self) -> bool:
        """True if the labels include corrections."""
        return self.dataset_id != self.stored_id

    @property
    def segments(self) -> tuple[str, ...]:
        """Columns of the data set, then the segments that rankdash derives."""
        columns = self.dataset.segments
        return (*columns, *(each.name for each in DERIVED_SEGMENTS if each.name not in columns))

    @part("labels", "baseline", "metric", "conventions", "statistics")
    def segment(self, challenger: str, segment: str) -> pd.DataFrame:
        """Return the change in each group of queries, as from `by_segment`: derived segments in
        their natural order, others by size, descending. In-sample changes have no p."""
        provided = segment in self.dataset.segments
        order = next((each.values for each in DERIVED_SEGMENTS if each.name == segment), ())
        table = by_segment(
            self.pairs(challenger),
            self.grouping(segment),
            self.rules(self.baseline, challenger),
            order=() if provided else order,
            possible=self.measure.changes,
        )
        tuned = self.evaluations[self.baseline].tuned, self.evaluations[challenger].tuned
        ends = zip(table["low"], table["high"], strict=True)
        table.loc[[is_in_sample(tuned, *each) for each in ends], ["p", "p_corrected"]] = math.nan
        return table

    def grouping(self, segment: str) -> pd.Series:
        """Return the group of each query, index query id."""
        provided = segment in self.dataset.segments
        columns = self.dataset.queries if provided else self._derived(segment)
        return pd.Series(columns[segment].to_numpy(dtype=object), index=columns["query_id"])

    def _derived(self, segment: str) -> pd.DataFrame:
        """Return the table that has the column of a derived segment."""
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
        judged = self.judged(system)
        weighted = self.conventions.weighted
        weights = self.dataset.weights(judged.query_ids) if weighted else None
        return RankedLabels(self.ranking(system), judged, self.excluded(system), weights)

    @property
    def unjudged(self) -> pd.DataFrame:
        """The bounds for each system due to unlabelled documents, as from `bounds_table`."""
        return self._bounds()

    @part("labels", "chosen", "metric", "conventions")
    def _bounds(self) -> pd.DataFrame:
        ranked = {system: self.ranked_labels(system) for system in self.chosen}
        return bounds_table(ranked, [self.spec], self.conventions)

    @part("labels", "baseline", "metric", "conventions")
    def unjudged_change(self, challenger: str) -> UnjudgedComparison:
        """Return the bounds of the change due to unlabelled documents."""
        sides = self.ranked_labels(self.baseline), self.ranked_labels(challenger)
        return UnjudgedComparison(*sides, self.spec, self.conventions)

    # Caching of parts.

    @property
    def stored_id(self) -> str:
        """The id of the data set without the revision of its labels, used for notes and
        corrections."""
        return self.dataset_id.partition("+")[0]

    def once(self, key: Key, make: Callable[[], Made], *, alone: bool = False) -> Made:
        """Return the result of `make`, stored by this study, and by the cache unless `alone`, which
        is for results that depend on more than the key, such as prices."""
        if key not in self._parts:
            self._parts[key] = make() if alone else self.shared(key, make)
        result: Made = self._parts[key]
        return result

    def shared(self, key: Key, make: Callable[[], Made]) -> Made:
        """Return the result of `make`, stored by the cache only: for large results needed once."""
        return make() if self.cache is None else self.cache(key, make)
