"""A judge's grades, kept apart from people's labels."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError


@dataclass(frozen=True, eq=False)
class Judgements:
    """What one judge said of pairs of query and document. No pair of it is ever a label.

    name: how the person calls the judge. scale: the lowest and the highest grade. table: one row
    for each pair: query_id and doc_id (str), grade (float64; NaN where there is none) and error
    (str: why there is none; "" where there is one); kind (str: of the error, one of
    `features.judge.judge.NO_GRADE`; "" where unknown) may be left out. model: what it is
    made of; "" where unknown.

    Raises DataError for a scale without a width, a pair that is listed twice, a grade outside of
    the scale, and a pair with neither a grade nor an error, or with both.
    """

    name: str
    scale: tuple[float, float]
    table: pd.DataFrame
    model: str = ""

    def __post_init__(self) -> None:
        low, high = self.scale
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise DataError(
                "The scale of the judge {judge!r} goes from {low} to {high}.",
                remedy="Give a lowest grade that is below the highest one, such as 0 and 3.",
                judge=self.name,
                low=f"{low:g}",
                high=f"{high:g}",
            )
        table = pd.DataFrame(
            {
                "query_id": self.table["query_id"].to_numpy(dtype=object),
                "doc_id": self.table["doc_id"].to_numpy(dtype=object),
                "grade": self.table["grade"].to_numpy(dtype=np.float64),
                "error": self.table["error"].fillna("").to_numpy(dtype=object),
            }
        )
        table["kind"] = self.table["kind"].to_numpy(dtype=object) if "kind" in self.table else ""
        grade, failed = table["grade"], table["error"] != ""
        self._refuse(
            table[table.duplicated(["query_id", "doc_id"])],
            "The judge {judge!r} has two rows for the document {doc!r} of the query {query!r}.",
            "Keep one row for each pair.",
        )
        self._refuse(
            table[(grade < low) | (grade > high)],
            "The judge {judge!r} gave {grade} to the document {doc!r} of the query {query!r}, "
            "outside of its scale from {low} to {high}.",
            "Give the scale that the judge was asked to use.",
        )
        self._refuse(
            table[grade.isna() & ~failed],
            "The judge {judge!r} has neither a grade nor an error for the document {doc!r} of the "
            "query {query!r}.",
            "Give a grade, or say why there is none.",
        )
        self._refuse(
            table[grade.notna() & failed],
            "The judge {judge!r} has both a grade and an error for the document {doc!r} of the "
            "query {query!r}.",
            "Keep one of them.",
        )
        object.__setattr__(self, "table", table)

    def _refuse(self, rows: pd.DataFrame, template: str, remedy: str) -> None:
        """Raise a DataError about the first of the rows, if there is one."""
        if not len(rows):
            return
        query, doc, grade = rows.iloc[0][["query_id", "doc_id", "grade"]]
        low, high = self.scale
        raise DataError(
            template,
            remedy=remedy,
            judge=self.name,
            query=query,
            doc=doc,
            grade=f"{grade:g}",
            low=f"{low:g}",
            high=f"{high:g}",
        )

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def id(self) -> str:
        """A hash of the content, whatever the order of the rows."""
        rows = pd.util.hash_pandas_object(self.table, index=False).to_numpy(dtype=np.uint64)
        content = (np.sort(rows).tobytes(), repr((self.name, self.scale, self.model)).encode())
        return hashlib.sha256(b"".join(content)).hexdigest()[:16]

    @cached_property
    def graded(self) -> pd.DataFrame:
        """query_id, doc_id and label (the grade) of the pairs with one, in the form of labels, so
        that metrics can be evaluated with them."""
        rows = self.table[self.table["grade"].notna()].rename(columns={"grade": "label"})
        return rows[["query_id", "doc_id", "label"]].reset_index(drop=True)

    @property
    def failed(self) -> int:
        """How many pairs have no grade."""
        return len(self.table) - len(self.graded)
