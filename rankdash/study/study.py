"""What a report or an export is about: a comparison with everything that can be asked of it.

Every number is worked out when it is first asked for and kept, so that a report and all exports of
one subject rest on the same computation. A query that failed, was not run or has no value for
another reason on one side leaves both sides of that pair and is counted; it is never a zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from rankdash.analysis.labels.check import CheckReport
from rankdash.analysis.labels.query_groups import DERIVED_SEGMENTS, by_segment, derive
from rankdash.analysis.reasons.contributions import Split, split, splits
from rankdash.analysis.reasons.headroom import Headroom, limits
from rankdash.analysis.reasons.headroom import headroom as split_headroom
from rankdash.analysis.reasons.reasons import counted, reasons
from rankdash.analysis.reasons.statements import Statement, statements
from rankdash.analysis.statistics.comparison import (
    Comparison,
    StatisticsSettings,
    compare,
    mean_intervals,
)
from rankdash.analysis.statistics.pairs import paired
from rankdash.analysis.unjudged.unjudged import System as RankedLabels
from rankdash.dataset import Dataset
from rankdash.errors import SpecError
from rankdash.metrics import Conventions, Evaluation, Judged, Measure, evaluate, judge
from rankdash.metrics import parse_measure as parse
from rankdash.ranking.ranking import Ranking, Run
from rankdash.runs.timing import LatencySummary, summarize
from rankdash.store.notes.notes import Note
from rankdash.study.query_table import query_table
from rankdash.study.systems import FIRST_STAGE, Money, System

METRICS = ("ndcg", "mrr", "map", "recall", "precision", "hit", "judged")
"""Evaluated beside the metric that was chosen, at the same cutoff."""

CUTOFFS = (1, 3, 5, 10, 20, 50, 100)
"""Where a metric is shown against k."""

_Made = TypeVar("_Made")


@dataclass(frozen=True, eq=False)
class Subject:
    """A data set, the systems compared on it, and the rules.

    systems: id → system, those of baseline and challengers among them. metric: its name, such as
    "ndcg". cutoff: its k, None for the whole list. check: what reading the data set noticed, where
    that is known. money: None where nothing is known of prices. notes: query id → what an analyst
    remarked. corrections: how many labels of the data set were corrected by hand.

    Raises SpecError where a system is not known, is compared with itself, or the metric does not
    exist.
    """

    dataset: Dataset
    systems: Mapping[str, System]
    baseline: str
    challengers: tuple[str, ...]
    metric: str = "ndcg"
    cutoff: int | None = 10
    conventions: Conventions = field(default_factory=Conventions)
    statistics: StatisticsSettings = field(default_factory=StatisticsSettings)
    check: CheckReport | None = None
    money: Money | None = None
    notes: Mapping[str, Note] = field(default_factory=dict)
    corrections: int = 0
    _kept: dict[tuple[str, ...], Any] = field(default_factory=dict, init=False, repr=False)

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

    @property
    def chosen(self) -> tuple[str, ...]:
        """The baseline, then the challengers."""
        return (self.baseline, *self.challengers)

    @property
    def names(self) -> dict[str, str]:
        """id → name of the chosen systems, in their order."""
        return {system: self.systems[system].name for system in self.chosen}

    def name(self, system: str) -> str:
        return self.systems[system].name

    def run(self, system: str) -> Run | None:
        """None for the first stage."""
        return self.systems[system].run

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

    @property
    def specs(self) -> tuple[str, ...]:
        """The chosen metric first, then `METRICS`."""
        return tuple(dict.fromkeys([self.spec, *map(self.spec_of, METRICS)]))

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
    def texts(self) -> dict[str, str]:
        """Query id → its text, or the id where there is none."""
        found = self.dataset.query_text()
        return {query: text or query for query, text in zip(found.index, found, strict=True)}

    @cached_property
    def documents(self) -> dict[str, tuple[str, str]]:
        """Document id → its title and its text, "" where the data has none."""
        table = self.dataset.documents
        rows = zip(table["doc_id"], table["title"], table["text"].fillna(""), strict=True)
        return {doc: (title, text) for doc, title, text in rows}

    def ranking(self, system: str) -> Ranking:
        run = self.run(system)
        return self.dataset.candidates if run is None else run.ranking

    def left_out(self, system: str) -> Mapping[str, str]:
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

    def judged(self, system: str) -> Judged:
        """The ranking joined with the labels."""
        return self.once(
            ("judged", system),
            lambda: judge(self.ranking(system), self.dataset.qrels, self.conventions),
        )

    def evaluate(self, system: str, specs: tuple[str, ...]) -> Evaluation:
        """Other metrics than those of `specs`."""
        return self.once(
            ("evaluate", system, *specs),
            lambda: evaluate(
                self.judged(system), list(specs), self.conventions, self.left_out(system)
            ),
        )

    @cached_property
    def evaluations(self) -> dict[str, Evaluation]:
        """System → its values of `specs`, query by query."""
        return {system: self.evaluate(system, self.specs) for system in self.chosen}

    @cached_property
    def comparison(self) -> Comparison:
        """The baseline against every challenger on every metric of `specs`."""
        return compare(self.evaluations, self.baseline, self.statistics)

    @cached_property
    def curves(self) -> pd.DataFrame:
        """system, k, mean, low, high, n: the metric against its cutoff; no rows where it has
        none."""
        columns = ["system", "k", "mean", "low", "high", "n"]
        if not self.measure.metric.has_cutoff:
            return pd.DataFrame(columns=columns)
        at = {
            replace(self.measure, k=k).spec: k
            for k in sorted({*CUTOFFS, self.cutoff or CUTOFFS[-1]})
        }
        found = {system: self.evaluate(system, tuple(at)) for system in self.chosen}
        frame = mean_intervals(found, self.baseline, self.statistics)
        frame["k"] = [at[spec] for spec in frame["metric"]]
        return frame[columns]

    def pairs(self, challenger: str, spec: str | None = None) -> pd.DataFrame:
        """query_id, before, after, delta, state of every query of either side, as from
        `compare.paired`. spec: another metric than the chosen one."""
        wanted = self.spec if spec is None else spec
        specs = self.specs if wanted in self.specs else (wanted,)
        return self.once(
            ("pairs", challenger, wanted),
            lambda: paired(
                self.evaluate(self.baseline, specs), self.evaluate(challenger, specs), wanted
            ),
        )

    def reasons(self, challenger: str) -> pd.DataFrame | None:
        """Why each query changed, index query_id, as from `reasons.reasons`; None where the metric
        cannot be split by document."""
        if not self.has_reasons:
            return None
        run = self.run(challenger)
        return self.once(
            ("reasons", challenger),
            lambda: reasons(
                self._labelled(self.baseline),
                self._labelled(challenger),
                self.measure,
                self.conventions,
                tie_band=self.statistics.tie_band,
                reading=None if run is None else run.reading,
            ).set_index("query_id"),
        )

    def reason_counts(self, challenger: str) -> pd.DataFrame | None:
        """Index: the reasons that occur, in the order of `reasons.CODES`. queries; mean, of their
        changes (NaN where there is none); adds, to the mean change of all that have one."""
        found = self.reasons(challenger)
        return None if found is None else counted(found["reason"], self.pairs(challenger))

    def headroom(self, challenger: str) -> Headroom | None:
        """Lost by the retriever, still to win, won; None for a metric that describes labels."""
        if not self.measures_quality:
            return None
        run = self.run(challenger)
        depth = None if run is None else run.depth
        return self.once(
            ("headroom", challenger),
            lambda: split_headroom(
                self.evaluations[self.baseline],
                self.evaluations[challenger],
                limits(self.judged(FIRST_STAGE), self.measure, self.conventions, depth),
            ),
        )

    def queries(self, challenger: str) -> pd.DataFrame:
        """One row per query, as from `query_table`, with judged_before and judged_after, latency_ms
        of the challenger, and, where they exist, reason, ceiling, to_win and spread (highest less
        lowest value among several challengers)."""
        return self.once(("queries", challenger), lambda: self._queries(challenger))

    def _queries(self, challenger: str) -> pd.DataFrame:
        judged = self.spec_of("judged")
        known = {
            "judged_before": self._by_query(self.baseline, judged),
            "judged_after": self._by_query(challenger, judged),
            "latency_ms": self._latencies(challenger),
        }
        if len(self.challengers) > 1:
            values = pd.DataFrame(
                {name: self._by_query(name, self.spec) for name in self.challengers}
            )
            known["spread"] = values.max(axis=1) - values.min(axis=1)
        why = self.reasons(challenger)
        if why is not None:
            known["reason"] = why["reason"]
        room = self.headroom(challenger)
        if room is not None:
            each = room.queries.set_index("query_id")
            known |= {"ceiling": each["ceiling"], "to_win": each["to_win"]}
        return query_table(
            self.dataset.queries, self.pairs(challenger), self.statistics.tie_band, known
        )

    def paired_queries(self, challenger: str) -> pd.DataFrame:
        """The rows of `queries` that have a change."""
        table = self.queries(challenger)
        found: pd.DataFrame = table[table["delta"].notna()]
        return found

    @property
    def segments(self) -> tuple[str, ...]:
        """Columns of the data set, then the segments that rankdash works out itself."""
        given = self.dataset.segments
        return (*given, *(each.name for each in DERIVED_SEGMENTS if each.name not in given))

    def segment(self, challenger: str, segment: str) -> pd.DataFrame:
        """The change in each group of queries, as from `by_segment`."""
        return self.once(
            ("segment", challenger, segment), lambda: self._segment(challenger, segment)
        )

    def _segment(self, challenger: str, segment: str) -> pd.DataFrame:
        given = segment in self.dataset.segments
        columns = self.dataset.queries if given else self._derived
        order = next((each.values for each in DERIVED_SEGMENTS if each.name == segment), ())
        return by_segment(
            self.pairs(challenger),
            pd.Series(columns[segment].to_numpy(dtype=object), index=columns["query_id"]),
            order=() if given else order,
            tie_band=self.statistics.tie_band,
            level=self.statistics.level,
            seed=self.statistics.seed,
            correction=self.statistics.correction,
        )

    @cached_property
    def _derived(self) -> pd.DataFrame:
        return derive(self.dataset, self.evaluations[self.baseline], self.spec)

    def latency(self, system: str) -> LatencySummary | None:
        """None for the first stage, which adds no waiting, and where nothing was measured."""
        run = self.run(system)
        if run is None:
            return None
        found = self.once(("latency", system), lambda: summarize(run.queries))
        return found if found.n else None

    def split(self, challenger: str, query_id: str) -> Split:
        """The change of one query, document by document; only where `has_reasons`."""
        return split(
            self.ranking(self.baseline),
            self.ranking(challenger),
            self.labels(query_id),
            query_id,
            self.measure,
            self._rules,
            {**self.left_out(self.baseline), **self.left_out(challenger)},
        )

    def statements(self, challenger: str, query_id: str) -> tuple[Statement, ...]:
        """The same in at most three statements."""
        return statements(self.split(challenger, query_id), self.labels(query_id), self._rules)

    def labels(self, query_id: str) -> pd.DataFrame:
        """The labels of one query: query_id, doc_id, label."""
        rows = self._label_rows.get(query_id, [])
        found: pd.DataFrame = self.dataset.qrels.take(rows)
        return found

    @cached_property
    def _label_rows(self) -> dict[str, Any]:
        groups = self.dataset.qrels.groupby("query_id", sort=False).indices
        return {str(query): rows for query, rows in groups.items()}

    @cached_property
    def _rules(self) -> Conventions:
        """The conventions, with the highest label of the data set where ERR looks for it."""
        labels = self.dataset.qrels["label"]
        highest = labels[labels > 0].max()
        if self.conventions.err_top_label is not None or not highest > 0:
            return self.conventions
        return replace(self.conventions, err_top_label=float(highest))

    def _labelled(self, system: str) -> RankedLabels:
        return RankedLabels(self.ranking(system), self.judged(system), self.left_out(system))

    def _by_query(self, system: str, spec: str) -> pd.Series:
        found = self.evaluations[system]
        return pd.Series(found.column(spec), index=found.query_ids)

    def _latencies(self, system: str) -> pd.Series:
        run = self.run(system)
        if run is None:
            return pd.Series(dtype=np.float64)
        return pd.Series(run.queries["latency_ms"].to_numpy(), index=run.queries["query_id"])

    def once(self, key: tuple[str, ...], make: Callable[[], _Made]) -> _Made:
        """What `make` makes, kept under the key, so that everything written of this subject shares
        it."""
        if key not in self._kept:
            self._kept[key] = make()
        kept: _Made = self._kept[key]
        return kept
