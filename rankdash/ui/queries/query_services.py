"""What the Queries page asks for, cached by what it depends on; one query costs a look-up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from rankdash.analysis.ranks.ladder import Ladder, ladder
from rankdash.metrics import Conventions, Evaluation
from rankdash.ranking.build import group_rows, text_array
from rankdash.study.query_table import query_table
from rankdash.ui.overview import verdict_strip
from rankdash.ui.sidebar import comparison, reason_services
from rankdash.ui.sidebar.sidebar import View
from rankdash.ui.state import services

# Where a metric looks at the whole list, a list of cards still needs an end.
WHOLE_LIST_SHOWN = 20
_MOST_VALUES = 50


@dataclass(frozen=True, eq=False)
class Rows:
    """The list of queries of one comparison.

    table: from `query_table`. segments: column → its values, of those that are worth a filter.
    positions: query id → row. reach: the largest change, or change that is possible, of any query.
    """

    table: pd.DataFrame
    segments: Mapping[str, tuple[str, ...]]
    positions: Mapping[str, int]
    reach: float


@dataclass(frozen=True)
class Text:
    """A document in words; `body` is None where the data has no text for it."""

    title: str
    body: str | None

    @property
    def whole(self) -> str:
        return f"{self.title} {self.body or ''}".strip()


def rows(view: View, challenger: str) -> Rows:
    run = view.systems[challenger].run
    return _rows(
        view,
        challenger,
        (
            view.dataset_id,
            (view.baseline, challenger, *view.challengers),
            comparison.specs(view),
            view.conventions,
            view.statistics.tie_band,
            run.depth if run else None,
        ),
    )


@st.cache_resource(max_entries=services.SYSTEM_LIMIT, show_spinner=False)
def _rows(_view: View, _challenger: str, key: tuple[object, ...]) -> Rows:
    # Streamlit leaves arguments with a leading underscore out of the key, which says what counts.
    view, challenger = _view, _challenger
    data = services.dataset(view.dataset_id)
    found = comparison.evaluations(view)
    judged = view.spec_of("judged")
    known = {
        "judged_before": by_query(found[view.baseline], judged),
        "judged_after": by_query(found[challenger], judged),
        "spread": _spread(view, found),
        "latency_ms": _latencies(challenger),
        "reason": reason_services.reason_of(view, challenger),
    }
    split = verdict_strip.headroom(view, challenger)
    if split is not None:
        limits = split.queries.set_index("query_id")
        known |= {"ceiling": limits["ceiling"], "to_win": limits["to_win"]}
    pairs = comparison.pairs_of(view, challenger)
    table = query_table(data.queries, pairs, view.statistics.tie_band, known)
    values = {column: tuple(sorted(table[column].dropna().unique())) for column in data.segments}
    room = table["ceiling"] - table["before"] if split is not None else table["size"]
    reach = float(np.nanmax([*table["size"], *room, 0.0]))
    return Rows(
        table=table,
        segments={name: each for name, each in values.items() if 1 < len(each) <= _MOST_VALUES},
        positions={query: place for place, query in enumerate(table["query_id"])},
        reach=reach,
    )


def by_query(found: Evaluation, spec: str) -> pd.Series:
    """The values of one metric by query id."""
    return pd.Series(found.column(spec), index=found.query_ids)


def _spread(view: View, found: Mapping[str, Evaluation]) -> pd.Series:
    """Highest less lowest value among the rerankers; nothing where there is but one."""
    if len(view.challengers) < 2:
        return pd.Series(dtype=np.float64)
    values = pd.DataFrame({name: by_query(found[name], view.spec) for name in view.challengers})
    return values.max(axis=1) - values.min(axis=1)


def _latencies(system_id: str) -> pd.Series:
    if system_id == services.FIRST_STAGE:
        return pd.Series(dtype=np.float64)
    queries = services.run(system_id).queries
    return pd.Series(queries["latency_ms"].to_numpy(), index=queries["query_id"])


def bounds_of(view: View, challenger: str) -> Mapping[str, tuple[float, float]]:
    """Query id → lowest and highest change under any labels for what nobody judged; only where
    the metric measures quality."""
    pair = (view.baseline, challenger)
    return _bounds(view.dataset_id, pair, view.spec, view.conventions)


@st.cache_resource(max_entries=services.SYSTEM_LIMIT, show_spinner=False)
def _bounds(
    dataset_id: str, pair: tuple[str, str], spec: str, conventions: Conventions
) -> Mapping[str, tuple[float, float]]:
    found = services.unjudged_comparison(dataset_id, *pair, spec, conventions).bounds().queries
    ends = zip(found["lowest"], found["highest"], strict=True)
    return dict(zip(found["query_id"], ends, strict=True))


def cutoff(view: View) -> int:
    """How far down the list is looked."""
    return view.cutoff or WHOLE_LIST_SHOWN


def ladder_of(view: View, challenger: str, query_id: str) -> Ladder:
    """Where the documents of the query stand: the baseline, the challenger that is looked at, then
    the others, of those that rank the query: no document fell where a system has no result."""
    order = dict.fromkeys((view.baseline, challenger, *view.challengers))
    rankings = {system: services.ranking(view.dataset_id, system) for system in order}
    ranked = {
        system: ranking for system, ranking in rankings.items() if query_id in ranking.positions
    }
    return ladder(
        ranked or rankings,
        services.dataset(view.dataset_id).candidates,
        labels_of(view.dataset_id, query_id),
        query_id,
        cutoff(view),
        view.conventions,
    )


def labels_of(dataset_id: str, query_id: str) -> dict[str, float]:
    """Document id → label of the query."""
    positions, offsets, order = _label_rows(dataset_id)
    found = positions.get(query_id)
    if found is None:
        return {}
    rows = slice(offsets[found], offsets[found + 1])
    own = services.dataset(dataset_id).qrels.iloc[rows if order is None else order[rows]]
    return dict(zip(own["doc_id"], own["label"], strict=True))


@st.cache_resource(max_entries=6, show_spinner=False)
def _label_rows(
    dataset_id: str,
) -> tuple[dict[str, int], npt.NDArray[np.int64], npt.NDArray[np.int64] | None]:
    """Where the labels of each query are: query id → place, offsets, and the rows in that order
    (None where they stand so already)."""
    groups = group_rows(text_array(services.dataset(dataset_id).qrels["query_id"]))
    ids = groups.ids.to_pylist()
    return {query: place for place, query in enumerate(ids)}, groups.offsets, groups.rows


def texts_of(view: View, doc_ids: Iterable[str]) -> dict[str, Text]:
    """Document id → its title and text."""
    ids = list(doc_ids)
    places = _document_rows(view.stored_id)
    documents = services.dataset(view.stored_id).documents.iloc[[places[doc] for doc in ids]]
    titles, bodies = documents["title"].to_list(), documents["text"].to_list()
    return {
        doc: Text(title, body if isinstance(body, str) and body else None)
        for doc, title, body in zip(ids, titles, bodies, strict=True)
    }


@st.cache_resource(max_entries=6, show_spinner=False)
def _document_rows(dataset_id: str) -> dict[str, int]:
    documents = services.dataset(dataset_id).documents["doc_id"]
    return {doc: place for place, doc in enumerate(documents)}


@dataclass(frozen=True)
class Shown:
    """One document in the list of one system. score, read and full are None where there are none:
    tokens that the model read, and tokens that there were."""

    doc_id: str
    score: float | None
    read: int | None
    full: int | None


def list_of(view: View, system_id: str, query_id: str, docs: Iterable[str]) -> list[Shown]:
    """What a system says of some of the documents of a query."""
    ranking = services.ranking(view.dataset_id, system_id)
    found = ranking.positions.get(query_id)
    if found is None:
        return [Shown(doc, None, None, None) for doc in docs]
    start, stop = ranking.offsets[found], ranking.offsets[found + 1]
    rows = {
        doc: start + place for place, doc in enumerate(ranking.doc_ids[ranking.docs[start:stop]])
    }
    reading = None if system_id == services.FIRST_STAGE else services.run(system_id).reading
    result = []
    for doc in docs:
        row = rows[doc]
        score = float(ranking.scores[row])
        read, full = (-1, -1) if reading is None else (reading.read[row], reading.full[row])
        result.append(
            Shown(
                doc,
                score if math.isfinite(score) else None,
                int(read) if read >= 0 else None,
                int(full) if full >= 0 else None,
            )
        )
    return result


def tags(marks: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Query id → its tags, from the marks of `query_notes`."""
    return {
        query: tuple(own.split(", "))
        for query, own in zip(marks["query_id"], marks["tags"], strict=True)
        if own
    }
