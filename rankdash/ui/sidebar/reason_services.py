"""Why each query changed, cached by what it depends on."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from rankdash.analysis.reasons import reasons as analysis
from rankdash.analysis.reasons.contributions import Split, split
from rankdash.analysis.reasons.statements import Statement, statements
from rankdash.analysis.unjudged.unjudged import System
from rankdash.metrics import Conventions, parse_measure
from rankdash.ui.sidebar.sidebar import View
from rankdash.ui.state import services


def reason_of(view: View, challenger: str) -> pd.Series[str]:
    """query_id → one of `reasons.CODES`, for every evaluated query."""
    table = reasons_of(view, challenger)
    return table["reason"]


def reasons_of(view: View, challenger: str) -> pd.DataFrame:
    """`reasons.reasons` of the chosen metric, index query_id."""
    return _reasons(
        view.dataset_id,
        (view.baseline, challenger),
        view.spec,
        view.conventions,
        view.statistics.tie_band,
    )


@st.cache_resource(max_entries=services.SYSTEM_LIMIT, show_spinner=False)
def _reasons(
    dataset_id: str,
    pair: tuple[str, str],
    spec: str,
    conventions: Conventions,
    tie_band: float,
) -> pd.DataFrame:
    before, after = (_system(dataset_id, each, conventions) for each in pair)
    reading = None if pair[1] == services.FIRST_STAGE else services.run(pair[1]).reading
    table = analysis.reasons(
        before, after, parse_measure(spec), conventions, tie_band=tie_band, reading=reading
    )
    return table.set_index("query_id")


def _system(dataset_id: str, system_id: str, conventions: Conventions) -> System:
    return System(
        services.ranking(dataset_id, system_id),
        services.judged(dataset_id, system_id, conventions),
        services.left_out(system_id),
    )


def split_of(view: View, challenger: str, query_id: str) -> Split:
    """The change of one query, document by document."""
    pair = (view.baseline, challenger)
    return _split(view.dataset_id, pair, view.spec, view.conventions, query_id)


def statements_of(view: View, challenger: str, query_id: str) -> tuple[Statement, ...]:
    """The same in at most three statements."""
    found = split_of(view, challenger, query_id)
    return statements(found, labels_of(view, query_id), _rules(view.dataset_id, view.conventions))


def labels_of(view: View, query_id: str) -> pd.DataFrame:
    """The labels of one query: query_id, doc_id, label."""
    return _labels(view.dataset_id, query_id)


@st.cache_resource(max_entries=64, show_spinner=False)
def _split(
    dataset_id: str, pair: tuple[str, str], spec: str, conventions: Conventions, query_id: str
) -> Split:
    before, after = (services.ranking(dataset_id, each) for each in pair)
    return split(
        before,
        after,
        _labels(dataset_id, query_id),
        query_id,
        parse_measure(spec),
        _rules(dataset_id, conventions),
        {**services.left_out(pair[0]), **services.left_out(pair[1])},
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def _labels(dataset_id: str, query_id: str) -> pd.DataFrame:
    qrels = services.dataset(dataset_id).qrels
    return qrels[qrels["query_id"] == query_id]


def _rules(dataset_id: str, conventions: Conventions) -> Conventions:
    """The conventions, with the highest label of the data set where ERR looks for it."""
    highest = services.positive_labels(dataset_id)[-1:]
    if not highest or conventions.err_top_label is not None:
        return conventions
    return replace(conventions, err_top_label=highest[0])
