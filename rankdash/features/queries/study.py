"""The queries of a study: their table, and one query with its labels, texts and documents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.data.ranking import group_rows, text_array
from rankdash.core.metrics import Conventions, evaluate
from rankdash.core.study.cache import Key, part
from rankdash.core.study.latency import timed_by
from rankdash.core.study.reasons.contributions import Split, Statement, split, statements
from rankdash.core.study.reasons.reasons import LABELS_SAY_TOO_LITTLE, PARTS, Fault, faults
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.queries.filters import Filters, order_of, passing, query_table, valued
from rankdash.features.queries.ladder import Ladder, ladder

# If a metric has no cutoff, this many documents are listed.
WHOLE_LIST_SHOWN = 20
_MOST_VALUES = 50


@dataclass(frozen=True)
class Text:
    """Title and text of a document; `body` is None if the data has no text for it."""

    title: str
    body: str | None

    @property
    def whole(self) -> str:
        return f"{self.title} {self.body or ''}".strip()


@dataclass(frozen=True)
class Listed:
    """A document in the list of a system. score, read (tokens that the model read) and full (all
    tokens) are None if unknown."""

    doc_id: str
    score: float | None
    read: int | None
    full: int | None


def table(study: Study, challenger: str) -> pd.DataFrame:
    """Return one row per query, as from `query_table`, with judged_before and judged_after,
    latency_ms of the challenger, spread (highest minus lowest value among several challengers; NaN
    with one), the `value_column` of each of `others`, and, if they exist, reason, ceiling, perfect,
    to_win and fault."""

    def make() -> pd.DataFrame:
        rows, faulty = _rows(study, challenger), query_faults(study, challenger)
        if faulty.empty:
            return rows
        return rows.assign(fault=faulty["fault"].reindex(rows["query_id"]).to_numpy())

    return study.once(table_key("query table", study, challenger), make)


def _rows(study: Study, challenger: str) -> pd.DataFrame:
    """Return the rows of `table` without the faults."""

    def make() -> pd.DataFrame:
        judged = study.spec_of("judged")
        extra = {
            "judged_before": by_query(study, study.baseline, judged),
            "judged_after": by_query(study, challenger, judged),
            "spread": _spread(study),
            "latency_ms": _latencies(study, challenger),
            **{
                value_column(system): by_query(study, system, study.spec)
                for system in others(study, challenger)
            },
        }
        why = study.reasons(challenger)
        if why is not None:
            extra["reason"] = why["reason"]
        room = study.headroom(challenger)
        if room is not None:
            each = room.queries.set_index("query_id")
            extra |= {name: each[name] for name in ("ceiling", "perfect", "to_win")}
        return query_table(
            study.dataset.queries, study.pairs(challenger), study.statistics.tie_band, extra
        )

    return study.once(table_key("query rows", study, challenger), make)


def others(study: Study, challenger: str) -> tuple[str, ...]:
    """Return the challengers except the one shown."""
    return tuple(system for system in study.challengers if system != challenger)


def value_column(system: str) -> str:
    """Return the column name of a challenger's values in `table`."""
    return f"value {system}"


@dataclass(frozen=True, eq=False)
class Listing:
    """The list of queries of one comparison.

    table: from `table`. segments: column → its values, for columns that are useful as a filter.
        positions: query id → row. reach: the largest actual or possible change of any query.
        highest: the highest possible value of the metric, or the highest actual value if the metric
        has no limit. valued: the columns to sort by. occurring: column → the values of outcome,
        reason, fault and state that occur, the most frequent first.
    """

    table: pd.DataFrame
    segments: Mapping[str, tuple[str, ...]]
    positions: Mapping[str, int]
    reach: float
    highest: float
    valued: frozenset[str]
    occurring: Mapping[str, tuple[str, ...]]
    _orders: dict[str, npt.NDArray[np.intp]] = field(default_factory=dict, init=False, repr=False)

    def kept(
        self,
        filters: Filters,
        tags: Mapping[str, tuple[str, ...]],
        order: str,
        also: str | None = None,
    ) -> pd.DataFrame:
        """Return the rows that pass every filter, sorted by `order` (see `order_of`). also: the id
        of a query that is always included."""
        if order not in self._orders:
            self._orders[order] = order_of(self.table, order)
        rows = self._orders[order]
        listed = passing(self.table, filters, tags)
        if also is not None and also in self.positions:
            listed[self.positions[also]] = True
        return self.table.iloc[rows[listed[rows]]]

    def row(self, query_id: str) -> pd.Series:
        """Return the row of a query."""
        return self.table.iloc[self.positions[query_id]]


def listing(study: Study, challenger: str) -> Listing:
    def make() -> Listing:
        rows = table(study, challenger)
        values = {
            column: tuple(sorted(rows[column].dropna().unique()))
            for column in study.dataset.segments
        }
        room = rows["ceiling"] - rows["before"] if "ceiling" in rows else rows["size"]
        columns = ["before", "after", *map(value_column, others(study, challenger))]
        top, seen = study.measure.metric.range[1], rows[columns].to_numpy().ravel()
        return Listing(
            table=rows,
            segments={name: each for name, each in values.items() if 1 < len(each) <= _MOST_VALUES},
            positions={query: place for place, query in enumerate(rows["query_id"])},
            reach=float(np.nanmax([*rows["size"], *room, 0.0])),
            highest=top if np.isfinite(top) else float(np.nanmax([*seen, 0.0])),
            valued=valued(rows),
            occurring={
                column: tuple(map(str, rows[column].value_counts().index))
                for column in ("outcome", "reason", "fault", "state")
                if column in rows
            },
        )

    return study.once(table_key("listing", study, challenger), make)


def table_key(part: str, study: Study, challenger: str) -> Key:
    """Return a cache key for everything that `table` depends on."""
    # The spread depends on all challengers, the latency on one of them.
    compared_with = (study.baseline, timed_by(study, challenger), study.challengers)
    rules = (study.spec, study.conventions, study.statistics.tie_band)
    return (part, study.dataset_id, *compared_with, *rules)


def compared(study: Study, challenger: str) -> pd.DataFrame:
    """Return the rows of `table` that have a change."""
    rows = table(study, challenger)
    changed: pd.DataFrame = rows[rows["delta"].notna()]
    return changed


def by_query(study: Study, system: str, spec: str) -> pd.Series:
    """Return the values of one metric by query id."""
    evaluation = (
        study.evaluations[system] if spec in study.specs else study.evaluate(system, (spec,))
    )
    return pd.Series(evaluation.column(spec), index=evaluation.query_ids)


def _spread(study: Study) -> pd.Series:
    if len(study.challengers) < 2:
        return pd.Series(dtype=np.float64)
    values = pd.DataFrame({name: by_query(study, name, study.spec) for name in study.challengers})
    return values.max(axis=1) - values.min(axis=1)


def _latencies(study: Study, system: str) -> pd.Series:
    run = study.run(system)
    if run is None:
        return pd.Series(dtype=np.float64)
    return pd.Series(run.queries["latency_ms"].to_numpy(), index=run.queries["query_id"])


@part("labels", "baseline", "metric", "conventions")
def bounds(study: Study, challenger: str) -> Mapping[str, tuple[float, float]]:
    """Return query id → lowest and highest change under any labels for the unlabelled documents.
    Only for metrics that measure quality."""

    intervals = study.unjudged_change(challenger).bounds.queries
    ends = zip(intervals["lowest"], intervals["highest"], strict=True)
    return dict(zip(intervals["query_id"], ends, strict=True))


# Labels.


def labels(study: Study, query_id: str) -> pd.DataFrame:
    """Return the labels of one query: query_id, doc_id, label."""
    positions, offsets, order = _label_rows(study)
    qrels = study.dataset.qrels
    position = positions.get(query_id)
    if position is None:
        return qrels.iloc[:0]
    rows = slice(offsets[position], offsets[position + 1])
    return qrels.iloc[rows if order is None else order[rows]]


@part("labels")
def _label_rows(
    study: Study,
) -> tuple[dict[str, int], npt.NDArray[np.int64], npt.NDArray[np.int64] | None]:
    """Return query id → position, offsets of the labels of each query, and the rows in that order
    (None if the table already has this order)."""
    groups = group_rows(text_array(study.dataset.qrels["query_id"]))
    ids = groups.ids.to_pylist()
    return {query: place for place, query in enumerate(ids)}, groups.offsets, groups.rows


def label_of(study: Study, query_id: str) -> dict[str, float]:
    """Return document id → label of the query."""
    query_labels = labels(study, query_id)
    return dict(zip(query_labels["doc_id"], query_labels["label"].astype(float), strict=True))


# Why one query changed.


def change(study: Study, challenger: str, query_id: str) -> Split:
    """Return the change of one query, document by document. Only if `study.has_reasons`."""
    return split(
        study.ranking(study.baseline),
        study.ranking(challenger),
        labels(study, query_id),
        query_id,
        study.measure,
        _conventions(study),
        {**study.excluded(study.baseline), **study.excluded(challenger)},
    )


def change_statements(study: Study, query_split: Split) -> tuple[Statement, ...]:
    """Summarise a change in at most three statements. query_split: from `change`."""
    return statements(query_split, labels(study, query_split.query_id), _conventions(study))


@dataclass(frozen=True)
class Missed:
    """A relevant document that a system's list lacks. system, rank: the baseline if it ranks the
    document, else the first stage, else the system that ranks it highest, and the rank there; None
    and 0 if no system ranks it."""

    doc_id: str
    system: str | None = None
    rank: int = 0


@dataclass(frozen=True)
class Blame:
    """The fault of a query that a challenger does not rank perfectly.

    relevant: how many relevant documents its labels name. missed: the relevant documents that the
    challenger's list lacks. unlabelled: how many documents without a label the challenger ranks
    above one that counts, within the cutoff.
    """

    fault: Fault
    relevant: int
    missed: tuple[Missed, ...]
    unlabelled: int


def blame(
    study: Study, challenger: str, query_split: Split, missed: Iterable[Missed]
) -> Blame | None:
    """Return the fault of a query; None if the challenger has no value for the query, or the metric
    cannot be split.

    query_split: the query's change. missed: as from `missed`.
    """
    query_id = query_split.query_id
    faulty = query_faults(study, challenger)
    if query_id not in faulty.index:
        return None
    threshold = study.conventions.threshold
    relevant = sum(label >= threshold for label in label_of(study, query_id).values())
    row = faulty.loc[[query_id]].iloc[0]
    return Blame(Fault.of(row), relevant, tuple(missed), int(row["unlabelled"]))


def query_faults(study: Study, challenger: str) -> pd.DataFrame:
    """Return the faults of the queries that have one, as from `faults`, NaN if the labels are
    not sufficient; and unlabelled, as in `Blame`. Index: query_id."""
    return study.once(
        table_key("faults", study, challenger),
        lambda: _query_faults(study, challenger, _rows(study, challenger)),
    )


def _query_faults(study: Study, challenger: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the faults without the cache. rows: as from `_rows`."""
    if not {"perfect", "reason"} <= {*rows}:
        return pd.DataFrame(columns=["fault", "lost", *PARTS, "unlabelled"])
    rows = rows.set_index("query_id")
    little = rows["reason"].isin(["no_relevant_label", "nothing_judged"])
    unknown = pd.DataFrame({"fault": LABELS_SAY_TOO_LITTLE.code}, rows.index[little])
    rows = rows[rows["delta"].notna() & (rows["reason"] != "failed") & ~little]
    unlabelled = _unlabelled(study, challenger).reindex(rows.index)
    # The change is known document by document only if both systems have a list.
    above = unlabelled["unlabelled"].fillna(0).where(rows["reason"] != "missing", 0)
    parts = faults(
        rows["after"].to_numpy(),
        unlabelled["condensed"].where(above > 0, rows["after"]).to_numpy(),
        rows["ceiling"].to_numpy(),
        rows["perfect"].to_numpy(),
        study.statistics.tie_band,
    )
    parts["unlabelled"] = above.to_numpy(dtype=np.int64)
    return pd.concat([parts.set_index(rows.index), unknown]).fillna({"unlabelled": 0})


def _unlabelled(study: Study, system: str) -> pd.DataFrame:
    """Return how many documents without a label a system ranks above a document that counts, within
    the cutoff (unlabelled); and the value of its list without them (condensed). Index: query_id."""
    judged, measure = study.judged(system), study.measure
    rules = replace(_conventions(study), judged_only=True)
    condensed = evaluate(judged, [measure], rules, study.excluded(system))
    least = rules.threshold if measure.metric.binary else np.nextafter(0.0, 1.0)
    counts = judged.label >= least
    depth = np.zeros(len(judged.query_ids), dtype=np.int64)
    # By rank: the lowest one is written last.
    depth[judged.query[counts]] = judged.rank[counts] - 1
    if measure.k is not None:
        depth = np.minimum(depth, measure.k)
    above = depth - judged.judged_within(depth)
    return pd.DataFrame(
        {
            "unlabelled": 0 if study.conventions.judged_only else above,
            "condensed": pd.Series(condensed.values[:, 0], condensed.query_ids),
        },
        index=judged.query_ids,
    )


def missed(study: Study, challenger: str, query_id: str, query_ladder: Ladder) -> list[Missed]:
    """Return the relevant documents of a query that the challenger's list lacks, the highest label
    first; if it has no list, those that no ranking has.

    query_ladder: as from `ladder_of`. Its systems and the first stage are searched.
    """
    labels = label_of(study, query_id)
    lists = {system: ranks_of(query_ladder, system) for system in query_ladder.systems}
    if FIRST_STAGE not in lists:
        first = {FIRST_STAGE: study.dataset.candidates}
        candidates = ladder(
            first, first[FIRST_STAGE], labels, query_id, query_ladder.k, study.conventions
        )
        lists[FIRST_STAGE] = ranks_of(candidates, FIRST_STAGE)
    lacking = []
    for doc, label in sorted(labels.items(), key=lambda item: -item[1]):
        places = {system: ranks[doc] for system, ranks in lists.items() if doc in ranks}
        present = challenger in places or (places and challenger not in lists)
        if label >= study.conventions.threshold and not present:
            highest = min(places, key=places.__getitem__, default=None)
            preferred = (each for each in (study.baseline, FIRST_STAGE) if each in places)
            system = next(preferred, highest)
            lacking.append(Missed(doc, system, 0 if system is None else places[system]))
    return lacking


def ranks_of(query_ladder: Ladder, system: str) -> dict[str, int]:
    """Return the rank of each document that a system ranks; nothing if it has no result."""
    if system not in query_ladder.systems:
        return {}
    ranks = zip(query_ladder.doc_ids, query_ladder.column(system), strict=True)
    return {doc: int(rank) for doc, rank in ranks if not math.isnan(rank)}


def _conventions(study: Study) -> Conventions:
    """Return the conventions, with the highest label of the data set as the top of the scale."""
    highest = study.dataset.label_values[-1:]
    if study.conventions.err_top_label is not None or not highest or highest[0] <= 0:
        return study.conventions
    return replace(study.conventions, err_top_label=highest[0])


# Documents of one query.


def depth_shown(study: Study) -> int:
    """Return how many documents of a list are shown."""
    return study.cutoff or WHOLE_LIST_SHOWN


def ladder_of(study: Study, challenger: str, query_id: str) -> Ladder:
    """Return the ranks of the documents of the query in the baseline, the challenger in focus, then
    the others. Systems without a result for the query are omitted, because no document fell
    there."""
    order = dict.fromkeys((study.baseline, challenger, *study.challengers))
    rankings = {system: study.ranking(system) for system in order}
    ranked = {
        system: ranking for system, ranking in rankings.items() if query_id in ranking.positions
    }
    return ladder(
        ranked or rankings,
        study.dataset.candidates,
        label_of(study, query_id),
        query_id,
        depth_shown(study),
        study.conventions,
    )


def listed(study: Study, system: str, query_id: str, docs: Iterable[str]) -> list[Listed]:
    """Return score and tokens of some documents of a query in the list of a system."""
    ranking, run = study.ranking(system), study.run(system)
    position = ranking.positions.get(query_id)
    if position is None:
        return [Listed(doc, None, None, None) for doc in docs]
    start, stop = ranking.offsets[position], ranking.offsets[position + 1]
    rows = {
        doc: start + place for place, doc in enumerate(ranking.doc_ids[ranking.docs[start:stop]])
    }
    reading = None if run is None else run.reading
    result = []
    for doc in docs:
        row = rows[doc]
        score = float(ranking.scores[row])
        read, full = (-1, -1) if reading is None else (reading.read[row], reading.full[row])
        result.append(
            Listed(
                doc,
                score if math.isfinite(score) else None,
                int(read) if read >= 0 else None,
                int(full) if full >= 0 else None,
            )
        )
    return result


def texts(study: Study, doc_ids: Iterable[str]) -> dict[str, Text]:
    """Return document id → its title and text."""
    ids, places = list(doc_ids), study.dataset.document_places
    rows = study.dataset.documents.iloc[[places[doc] for doc in ids]]
    return {
        doc: Text(title, body if isinstance(body, str) and body else None)
        for doc, title, body in zip(
            ids, rows["title"].to_list(), rows["text"].to_list(), strict=True
        )
    }
