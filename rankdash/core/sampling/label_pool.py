"""The pairs of query and document that rankings show within a depth: what there is to label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.data.arrays import Floats, Integers, owners, places
from rankdash.core.data.ranking import Ranking


@dataclass(frozen=True, eq=False)
class LabelPool:
    """N pairs of Q queries that all of S systems answer, by query.

    systems: their names. query_ids: (Q,) object array of str. query: (N,) index of the query.
    doc_ids: (N,) object array of str. ranks: (S, N) float64, the rank in each system from 1; inf
    where it is beyond the depth. excluded: the queries that some systems lack.
    """

    systems: tuple[str, ...]
    query_ids: npt.NDArray[np.object_]
    query: Integers
    doc_ids: npt.NDArray[np.object_]
    ranks: Floats
    excluded: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.query)

    @cached_property
    def index(self) -> pd.MultiIndex:
        """(N,) query id and document id of each pair, to look pairs up by."""
        return pd.MultiIndex.from_arrays([self.query_ids[self.query], self.doc_ids])

    def aligned(self, table: pd.DataFrame, column: str = "label") -> Floats:
        """(N,) a value of each pair; NaN where the table has none.

        table: query_id, doc_id and the column, one row a pair; other pairs are ignored.
        """
        keyed = pd.Series(
            table[column].to_numpy(dtype=np.float64),
            index=pd.MultiIndex.from_frame(table[["query_id", "doc_id"]]),
        )
        return keyed.reindex(self.index).to_numpy(dtype=np.float64)


def pool_of(rankings: Mapping[str, Ranking], depth: int, *, fewest: int = 2) -> LabelPool:
    """The pool of the first `depth` of each ranking, as in TREC pooling.

    rankings: name → ranking, ties settled. fewest: how many there must be.

    Raises DataError where there are fewer, or where they share no query.
    """
    if len(rankings) < fewest:
        raise DataError(
            "Labels settle a question between two rankings; given: {count}.",
            remedy="Give at least two rankings of the same queries.",
            count=len(rankings),
        )
    lists = list(rankings.values())
    queries = pd.Index(lists[0].query_ids, dtype=object)
    for ranking in lists[1:]:
        queries = queries[queries.isin(ranking.query_ids)]
    if not len(queries):
        raise DataError(
            "The rankings have no query in common.",
            remedy="Give rankings of the same queries, with the same query ids.",
        )
    everyone = dict.fromkeys(query for ranking in lists for query in ranking.query_ids)
    documents = pd.Index(pd.unique(np.concatenate([each.doc_ids for each in lists])))
    found = [_within(each, queries, documents, depth) for each in lists]
    pairs, at = np.unique(np.concatenate([codes for codes, _ in found]), return_inverse=True)
    ranks = np.full((len(lists), len(pairs)), np.inf)
    start = 0
    for system, (codes, rank) in enumerate(found):
        ranks[system, at[start : start + len(codes)]] = rank
        start += len(codes)
    query, document = np.divmod(pairs, len(documents))
    shared = set(queries)
    return LabelPool(
        systems=tuple(rankings),
        query_ids=queries.to_numpy(dtype=object),
        query=query,
        doc_ids=documents.to_numpy(dtype=object)[document],
        ranks=ranks,
        excluded=tuple(query for query in everyone if query not in shared),
    )


def _within(
    ranking: Ranking, queries: pd.Index, documents: pd.Index, depth: int
) -> tuple[Integers, Integers]:
    """A number for each shared query and document within the depth, and its rank."""
    query = queries.get_indexer(pd.Index(ranking.query_ids, dtype=object))
    document = documents.get_indexer(pd.Index(ranking.doc_ids, dtype=object))
    rank = places(ranking.offsets)
    owner = query[owners(ranking.offsets)]
    inside = (rank <= depth) & (owner >= 0)
    codes = owner[inside].astype(np.int64) * len(documents) + document[ranking.docs[inside]]
    return codes, rank[inside]


# A guess of each gain before it is labelled: it lowers how many labels are needed and never
# changes what they say, whatever the guess is worth.
#
# Pairs are in groups, such as one for each grade of a judge. The guess for a group is the mean
# gain of the labels drawn from it so far, with two pseudo-labels at the value that the group
# starts from.

PSEUDO_LABELS = 2.0
_RANK_BANDS = (1.0, 3.0, 10.0)


@dataclass(frozen=True, eq=False)
class Guess:
    """groups: (N,) the group of each pair of the pool, from 0. start: (G,) the gain, from 0 to 1,
    that each group starts from."""

    groups: Integers
    start: Floats

    @classmethod
    def from_ranks(cls, pool: LabelPool) -> Self:
        """Groups by the best rank in any system; all start from 0."""
        best = pool.ranks.min(axis=0)
        return cls(
            np.searchsorted(np.array(_RANK_BANDS), best).astype(np.int64),
            np.zeros(len(_RANK_BANDS) + 1),
        )

    @classmethod
    def from_gains(cls, gains: Floats) -> Self:
        """A group for each gain that a judge's grades stand for, and one for what it did not grade.

        gains: (N,) from 0 to 1; NaN where the judge has no grade.
        """
        values, groups = np.unique(np.where(np.isnan(gains), -1.0, gains), return_inverse=True)
        return cls(groups.astype(np.int64), np.maximum(values, 0.0))
