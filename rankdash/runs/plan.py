"""What a run will score: which queries, how deep, and why the others are left out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from rankdash.dataset import Dataset
from rankdash.errors import SettingError

NO_CANDIDATES = "no candidates"
NOT_SAMPLED = "not in the sample"


@dataclass(frozen=True)
class Plan:
    """documents: query id → its candidates to rerank, best first, in the order of the data set.

    skipped: query id → why it is not scored.
    """

    documents: dict[str, list[str]]
    skipped: dict[str, str]

    @property
    def pairs(self) -> int:
        return sum(len(docs) for docs in self.documents.values())


def sample_queries(dataset: Dataset, size: int, seed: int) -> tuple[str, ...]:
    """`size` queries drawn at random, without replacement, from those that have candidates.

    The draw is the start of a permutation by NumPy's default generator (PCG64) of the ids in
    alphabetical order, so a larger sample with the same seed contains the smaller one, and the
    order of the files changes nothing. Fewer come back where there are fewer.

    Raises SettingError where `size` is under 1.
    """
    if size < 1:
        raise SettingError(
            "A sample needs at least 1 query, not {size}.",
            remedy="Leave the sample out to take all queries.",
            size=size,
        )
    counts = np.diff(dataset.candidates.offsets)
    ids = sorted(dataset.candidates.query_ids[counts > 0])
    order = np.random.default_rng(seed).permutation(len(ids))[:size]
    return tuple(ids[place] for place in order)


def plan(
    dataset: Dataset, depth: int | None = None, query_ids: Collection[str] | None = None
) -> Plan:
    """Plan to rerank the first `depth` candidates (None: all) of `query_ids` (None: all queries).

    Raises SettingError where the depth is under 1 or a query is not in the data set.
    """
    if depth is not None and depth < 1:
        raise SettingError(
            "The depth must be at least 1, not {depth}.",
            remedy="Leave it out to rerank all candidates.",
            depth=depth,
        )
    known = list(dataset.queries["query_id"])
    wanted = set(known if query_ids is None else query_ids)
    unknown = sorted(wanted.difference(known))
    if unknown:
        raise SettingError("The data set has no query {query!r}.", query=unknown[0])
    documents: dict[str, list[str]] = {}
    skipped: dict[str, str] = {}
    for query in known:
        docs = dataset.candidates.documents_of(query)[0][:depth]
        if not docs:
            skipped[query] = NO_CANDIDATES
        elif query not in wanted:
            skipped[query] = NOT_SAMPLED
        else:
            documents[query] = docs
    return Plan(documents, skipped)
