"""The join of a ranking with labels of which some were changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.core.data import ragged
from rankdash.core.data.coded import alike, arrow_text
from rankdash.core.data.ragged import Flags, Integers
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics.conventions import Conventions
from rankdash.core.metrics.judged import Judged, judge

_Rows = tuple[Integers, tuple[npt.NDArray[Any], ...]]


def judge_again(
    before: Judged,
    ranking: Ranking,
    labels: Mapping[str, Any],
    queries: Collection[str],
    conventions: Conventions,
) -> Judged:
    """What `judge` makes of labels that differ from those of `before` for some queries alone, for
    which alone the ranking is joined with them anew.

    before: of the same ranking, under the same conventions. labels: query_id and doc_id as `Coded`,
    label. Raises as `judge`.
    """
    texts = labels["query_id"].texts
    if not alike(texts).equals(arrow_text(before.query_ids)):
        # A query has its first label, or lost its last one.
        return judge(ranking, labels, conventions)
    changed = np.array([query in queries for query in before.query_ids], dtype=bool)
    rows = np.flatnonzero(changed[labels["query_id"].codes])
    own = judge(
        ranking.only(queries),
        {
            "query_id": labels["query_id"].taken(rows),
            "doc_id": labels["doc_id"].taken(rows),
            "label": np.asarray(labels["label"])[rows],
        },
        conventions,
    )
    at = np.flatnonzero(changed)
    labelled, found = _labelled(before), _labelled(own)
    for place, row in enumerate(at.tolist()):
        start, length = int(before.starts[row]), int(before.lengths[row])
        there = int(own.starts[place])
        labelled[start : start + length] = found[there : there + length]
    size = before.pool_size.copy()
    size[at] = own.pool_size
    query, (rank, judged_rank, label) = _spliced(_positions(before), _positions(own), at, len(size))
    owner, (pool_label,) = _spliced(_pool(before), _pool(own), at, len(size))
    return replace(
        before,
        query=query,
        rank=rank,
        judged_rank=judged_rank,
        label=label,
        judged_rows=np.flatnonzero(labelled),
        pool_label=pool_label,
        pool_offsets=ragged.offsets_from(np.bincount(owner, minlength=len(size))),
        pool_size=size,
    )


def _labelled(judged: Judged) -> Flags:
    """(N,) whether a ranked row has a label."""
    found = np.zeros(judged.ranked, dtype=bool)
    found[judged.judged_rows] = True
    return found


def _positions(judged: Judged) -> _Rows:
    return judged.query, (judged.rank, judged.judged_rank, judged.label)


def _pool(judged: Judged) -> _Rows:
    return ragged.owners(judged.pool_offsets), (judged.pool_label,)


def _spliced(before: _Rows, own: _Rows, at: Integers, size: int) -> _Rows:
    """Rows of `size` queries, with those of the queries at some places replaced by others, whose
    queries are numbered from 0. A side: (R,) the query of each row, and columns (R,)."""
    kept = np.ones(size, dtype=bool)
    kept[at] = False
    rows = kept[before[0]]
    query = np.append(before[0][rows], at[own[0]])
    order = ragged.sort_codes(query, size)
    columns = zip(before[1], own[1], strict=True)
    return query[order], tuple(np.append(one[rows], other)[order] for one, other in columns)
