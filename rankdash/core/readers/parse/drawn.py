"""Labels that say in which draw they came and how likely it was, as `rankdash label` and the page
Label write them: columns draw and probability beside the label."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import Finding
from rankdash.core.data.arrays import objects
from rankdash.core.readers.parse.columns import plain
from rankdash.core.readers.parse.table import Table
from rankdash.core.readers.parse.values import numbers

_COLUMNS = ("draw", "probability")
_CANNOT_TELL = ("cannottell", "无法判断")


def cannot_tell(texts: object) -> npt.NDArray[np.bool_]:
    """(N,) whether a label says that it cannot be told. texts: Arrow text."""
    codes, unique = pd.factorize(objects(texts))
    said = np.array([plain(text) in _CANNOT_TELL for text in unique], dtype=bool)
    return np.append(said, False)[codes]


def _plain_names(table: Table) -> dict[str, str]:
    return {plain(name): name for name in reversed(table.columns)}


def names_draws(table: Table) -> bool:
    """Whether the table has the columns that say in which draw a label came."""
    return _plain_names(table).keys() >= set(_COLUMNS)


def draws_of(table: Table, labelled: pd.DataFrame) -> pd.DataFrame | None:
    """query_id, doc_id, cannot_tell, draw (from 1) and probability of rows with a label; NaN where
    it did not come by a draw. None where none did.

    table: one that names draws. labelled: query_id, doc_id and cannot_tell of rows of the table,
        under their places in it.
    """
    names = _plain_names(table)
    found = labelled.assign(
        **{name: numbers(table.arrow(names[name]))[labelled.index.to_numpy()] for name in _COLUMNS}
    )
    return found.reset_index(drop=True) if found["draw"].notna().any() else None


def drawn_finding(file: str, draws: pd.DataFrame) -> Finding:
    """That a mean over these labels is not what the systems are worth."""
    count = int(draws["draw"].notna().sum())
    return Finding(
        "warning",
        "labels_drawn",
        "Labels that came by draws with a known probability: {count}. While "
        "documents lack a label, a mean counts them as not relevant and is not an estimate.",
        {"count": count},
        "Until all are labelled, use the estimated difference of a sum over documents, such as "
        "dcg@10.",
        file,
        count=count,
    )
