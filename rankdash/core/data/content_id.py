"""The id of a data set: a hash of its content, in whatever order its rows are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.compute as pc

from rankdash.core.data.build import group_rows, text_array
from rankdash.core.data.coded import Coded, arrow_integers
from rankdash.core.data.ragged import Integers, owners, rearranged, sort_pairs
from rankdash.core.data.ranking import Ranking, digest
from rankdash.core.data.ties import descending_ids


def content_id(
    queries: pd.DataFrame, documents: pd.DataFrame, labels: Mapping[str, Any], ranked: Ranking
) -> str:
    """Of the tables of a `Dataset`; labels as its property has them, ranked: its candidates. Of a
    million candidates it takes a quarter of a second."""
    ids = text_array(ranked.query_ids)
    # The columns of each table, and the order of its rows. A column: values, and the codes that
    # stand for them, None where it has a value a row.
    tables: tuple[tuple[dict[str, tuple[Any, Any]], Integers], ...] = (
        _by_id(queries, "query_id"),
        _by_id(documents, "doc_id"),
        (
            {
                "query_id": (labels["query_id"].texts, labels["query_id"].codes),
                "doc_id": (labels["doc_id"].texts, labels["doc_id"].codes),
                "label": (labels["label"], None),
            },
            _by_ids(labels["query_id"], labels["doc_id"]),
        ),
        (
            {
                "query_id": (ids, owners(ranked.offsets)),
                "doc_id": (ranked.documents, ranked.docs),
                "score": (ranked.scores, None),
            },
            rearranged(np.diff(ranked.offsets), np.argsort(_places(ids)))[1],
        ),
    )
    return digest(
        part
        for columns, order in tables
        for name, (values, codes) in columns.items()
        for part in (name.encode(), *_content(values, order if codes is None else codes[order]))
    )


def _places(ids: Any) -> Integers:
    """(N,) the place of each of distinct ids, Arrow text, when they ascend."""
    return len(ids) - 1 - descending_ids(ids)


def _by_id(frame: pd.DataFrame, key: str) -> tuple[dict[str, tuple[Any, Any]], Integers]:
    """The columns of a table of texts, and its rows in the order of their ids."""
    columns = {str(name): (text_array(values), None) for name, values in frame.items()}
    return columns, np.argsort(_places(columns[key][0]))


def _by_ids(queries: Coded, documents: Coded) -> Integers:
    """The rows of pairs in the order of their ids."""
    groups = group_rows(queries)
    places = _places(documents.texts)[groups.arrange(documents.codes)]
    bounds = len(queries.texts), len(documents.texts)
    within = sort_pairs(owners(groups.offsets), places, bounds)[1]
    by_query = np.argsort(_places(queries.texts))
    order = within[rearranged(np.diff(groups.offsets), by_query)[1]]
    return order if groups.rows is None else groups.rows[order]


def _content(values: Any, rows: Integers) -> tuple[bytes | memoryview, ...]:
    """The bytes of some rows: numbers as they are, of texts, from Arrow, the lengths in characters,
    which are missing, and the characters in UTF-8."""

    def plain(numbers: npt.NDArray[Any]) -> memoryview:
        return numbers[rows].view(np.uint8).data

    if isinstance(values, np.ndarray):
        return (plain(values),)
    texts = values.fill_null("")
    size = int(pc.binary_length(texts).to_numpy()[rows].sum())
    return (
        plain(pc.utf8_length(texts).to_numpy().astype(np.int64)),
        plain(values.is_null().to_numpy(zero_copy_only=False)),
        # Texts lie there end to end: as a million strings they would take a second to join.
        memoryview(texts.take(arrow_integers(rows)).buffers()[2])[:size] if size else b"",
    )
