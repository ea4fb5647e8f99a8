"""Weights of queries: the number of searches that each sampled query of a log represents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.data.arrays import Flags, Floats, Integers

FREQUENCY, STRATUM, PROBABILITY = "frequency", "stratum", "probability"
"""Columns of a table of queries: the searches of a query in the log, the stratum of the sample, and
the probability that the query is sampled."""
COLUMNS = (FREQUENCY, STRATUM, PROBABILITY)
PER_QUERY, PER_SEARCH = "per query", "per search"


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of Q queries.

    searches: (Q,) the number of searches that a query represents, frequency / probability; above 0.
    strata: (Q,) the stratum of each query, as a code; all 0 without strata.
    """

    searches: Floats
    strata: Integers

    def taken(self, rows: Integers | Flags) -> Weights:
        """Return the weights of some queries, by their places or a mask."""
        return Weights(self.searches[rows], self.strata[rows])

    @property
    def equal(self) -> bool:
        """True if all queries have one weight and one stratum, so that weights change nothing."""
        return not len(self.searches) or bool(
            np.ptp(self.strata) == 0 and np.ptp(self.searches) <= 1e-12 * self.searches.max()
        )

    @property
    def effective(self) -> float:
        """Effective number of queries, (Σ w)² / Σ w² (Kish 1965): the number of equally weighted
        queries with the same sampling error; 0 without any query."""
        if not len(self.searches):
            return 0.0
        shares = self.searches / self.searches.max()
        return float(shares.sum() ** 2 / (shares @ shares))

    def mean(self, values: Floats) -> float:
        """Return the weighted mean of (Q,) values without NaN; NaN without any value."""
        known = ~np.isnan(values)
        if not known.any():
            return float("nan")
        searches, present = self.searches[known], values[known]
        if np.ptp(searches) <= 1e-12 * searches.max():
            return float(present.mean())
        return float(searches @ present / searches.sum())


def is_number_column(queries: pd.DataFrame, column: str) -> bool:
    """Return whether a column of queries contains frequencies or probabilities: it has such a name
    and no other values than numbers. It is then not a segment."""
    if column not in (FREQUENCY, PROBABILITY) or column not in queries:
        return False
    filled = queries[column].replace("", None).dropna()
    return bool(len(filled) and pd.to_numeric(filled, errors="coerce").notna().all())


def weights_of(queries: pd.DataFrame, query_ids: npt.NDArray[np.object_]) -> Weights:
    """Return the weights of queries. queries: the table of a data set. query_ids: (Q,).

    Raises DataError if the table has no frequencies, or a query has no valid one.
    """
    if FREQUENCY not in queries:
        raise DataError(
            "Means per search need the frequency of each query, and this data set has no column "
            "frequency.",
            remedy="Load a table of queries with the columns query_id and frequency, as written by "
            "rankdash sample-log, or use the weights “per query”.",
        )
    table = queries.set_index("query_id").reindex(query_ids)
    frequency = _positive(table, FREQUENCY, most=np.inf)
    searches = frequency
    if PROBABILITY in table and not _blank(table[PROBABILITY]).all():
        searches = frequency / _positive(table, PROBABILITY, most=1.0)
    strata = np.zeros(len(table), dtype=np.int64)
    if STRATUM in table:
        # Codes of all queries, so that they are the same for any selection of queries.
        names = pd.Index(sorted(queries[STRATUM].fillna("").unique()))
        strata = names.get_indexer(table[STRATUM].fillna("")).astype(np.int64)
    return Weights(searches, strata)


def _blank(column: pd.Series[str]) -> pd.Series[bool]:
    return column.isna() | (column == "")


def _positive(table: pd.DataFrame, column: str, most: float) -> Floats:
    """Return the numbers of a column. Raises DataError for a number that is missing, not above 0,
    or above `most`."""
    numbers = pd.to_numeric(table[column], errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(~((numbers > 0) & (numbers <= most) & np.isfinite(numbers)))
    if len(wrong):
        raise DataError(
            "Means per search need a valid {column} of each labelled query. Queries without one: "
            "{count} of {all}, such as {query!r}.",
            remedy="Add the numbers to the table of queries, or use the weights “per query”.",
            column=column,
            count=len(wrong),
            all=len(table),
            query=str(table.index[wrong[0]]),
        )
    return numbers
