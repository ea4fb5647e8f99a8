"""The grades of an LLM judge, separate from human labels."""

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
    """The grades of one judge for query–document pairs. They are never used as labels.

    name: the display name of the judge. scale: the lowest and the highest grade. table: one row
    per pair: query_id and doc_id (str), grade (float64; NaN if missing), error (str: the reason for
    a missing grade, else "") and optionally kind (str: the kind of error, one of
    `features.judge.judge.NO_GRADE`; "" if unknown). model: the model of the judge; "" if unknown.

    Raises DataError if the scale is empty, a pair is listed twice, a grade is outside the scale, or
    a pair has neither a grade nor an error, or both.
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
                remedy="The lowest grade must be below the highest, such as 0 and 3.",
                judge=self.name,
                low=f"{low:g}",
                high=f"{high:g}",
            )
        columns = {name: self.table[name].to_numpy(dtype=object) for name in ("query_id", "doc_id")}
        grades = self.table["grade"].to_numpy(dtype=np.float64)
        errors = self.table["error"].fillna("").to_numpy(dtype=object)
        table = pd.DataFrame({**columns, "grade": grades, "error": errors})
        table["kind"] = self.table["kind"].to_numpy(dtype=object) if "kind" in self.table else ""
        grade, failed = table["grade"], table["error"] != ""
        for rows, template, remedy in (
            (
                table[table.duplicated(["query_id", "doc_id"])],
                "The judge {judge!r} has two rows for the document {doc!r} of the query {query!r}.",
                "Keep one row per pair.",
            ),
            (
                table[(grade < low) | (grade > high)],
                "The judge {judge!r} graded the document {doc!r} of the query {query!r} with "
                "{grade}, outside its scale from {low} to {high}.",
                "Enter the scale from the judge's instructions.",
            ),
            (
                table[grade.isna() & ~failed],
                "The judge {judge!r} has neither a grade nor an error for the document {doc!r} of "
                "the query {query!r}.",
                "Provide a grade or an error.",
            ),
            (
                table[grade.notna() & failed],
                "The judge {judge!r} has both a grade and an error for the document {doc!r} of the "
                "query {query!r}.",
                "Keep either the grade or the error.",
            ),
        ):
            if len(rows):
                query, doc, judge_grade = rows.iloc[0][["query_id", "doc_id", "grade"]]
                raise DataError(
                    template,
                    remedy=remedy,
                    judge=self.name,
                    query=query,
                    doc=doc,
                    grade=f"{judge_grade:g}",
                    low=f"{low:g}",
                    high=f"{high:g}",
                )
        object.__setattr__(self, "table", table)

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def id(self) -> str:
        """A hash of the content that does not depend on the order of the rows."""
        rows = pd.util.hash_pandas_object(self.table, index=False).to_numpy(dtype=np.uint64)
        content = (np.sort(rows).tobytes(), repr((self.name, self.scale, self.model)).encode())
        return hashlib.sha256(b"".join(content)).hexdigest()[:16]

    @cached_property
    def graded(self) -> pd.DataFrame:
        """The graded pairs as a table of labels (query_id, doc_id, label), so that metrics can be
        evaluated with them."""
        rows = self.table[self.table["grade"].notna()].rename(columns={"grade": "label"})
        return rows[["query_id", "doc_id", "label"]].reset_index(drop=True)

    @property
    def failed(self) -> int:
        """The number of pairs without a grade."""
        return len(self.table) - len(self.graded)
