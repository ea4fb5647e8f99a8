"""`Judged` of the whole, from those of pieces that share no query."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.metrics.judged import Judged
from rankdash.ranking.ragged import Integers, offsets_from, owners, rearranged


def join_judged(pieces: Sequence[Judged], order: Integers) -> Judged:
    """The pieces as one: at least one, all joined with labels under the same conventions.

    order: (Q,) the places of their queries, laid end to end, in the order that is wanted. Ranked
        rows stay where they are, one piece's after another's, so that `starts` need not ascend.
    """
    sizes = offsets_from(np.array([len(each.query_ids) for each in pieces]))
    rows = offsets_from(np.array([each.ranked for each in pieces]))

    def joined(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(each, name) for each in pieces])

    def moved(name: str, by: Integers) -> Integers:
        shifts = zip(pieces, by.tolist(), strict=False)
        return np.concatenate([getattr(each, name) + shift for each, shift in shifts])

    hits = np.bincount(moved("query", sizes), minlength=len(order))
    offsets, positions = rearranged(hits, order)
    labels = np.concatenate([np.diff(each.pool_offsets) for each in pieces])
    pool_offsets, pool = rearranged(labels, order)
    return Judged(
        query_ids=joined("query_ids")[order],
        present=joined("present")[order],
        lengths=joined("lengths")[order],
        starts=moved("starts", rows)[order],
        tied=joined("tied")[order],
        query=owners(offsets),
        rank=joined("rank")[positions],
        judged_rank=joined("judged_rank")[positions],
        label=joined("label")[positions],
        judged_rows=moved("judged_rows", rows),
        ranked=int(rows[-1]),
        pool_label=joined("pool_label")[pool],
        pool_offsets=pool_offsets,
        pool_size=joined("pool_size")[order],
        unlabelled=tuple(chain.from_iterable(each.unlabelled for each in pieces)),
        joining=pieces[0].joining,
    )
