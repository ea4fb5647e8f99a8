"""What a judge's grades let expect of a change, learned from people's labels.

People's labels say what a grade is worth on documents that the challenger ranks higher, that the
baseline ranks higher, and that neither does. Each document of a query then gets a label drawn from
what people said of such documents, several times, and the mean of the changes is what to expect. So
a judge that grades too high, or in favour of one system, follows people's changes as well as its
grades allow. A missing grade is one more grade: documents on which the judge fails may be relevant
more or less often than others, and their query keeps what its other grades let expect.

What people said of a query is never used for that query (each is left out in turn, as in
cross-prediction-powered inference: Zrnic and Candès 2024). So the expected changes err on people's
queries as they do on all others, and may be corrected as any other judge's (`corrected.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from pandas.util import hash_array

from rankdash.core.data.ragged import Flags, Floats, Integers
from rankdash.core.sampling.label_pool import LabelPool

# Labels of a query, drawn so many times: with 64, real sets give the same to 1 %.
_DRAWS = 16
_ORDERS = 64
# A group of documents starts from what was said of the group that it is a part of.
_PSEUDO_LABELS = 2.0
# Neighbouring grades with fewer labelled documents than this are one.
_FEWEST_LABELS = 5
# More different labels than these are taken to the nearest of as many.
_MOST_LABELS = 16


def expected_changes(
    pool: LabelPool, grades: Floats, labels: Floats, changes: Callable[[Floats], Floats]
) -> Floats:
    """Return (Q,) the change to expect of each query; NaN if the judge graded nothing of it, and if
    no draw has a value.

    pool: N pairs of Q queries of the baseline and the challenger, in this order. grades: (N,) by
    the judge, NaN where there is none. labels: (N,) by people, NaN where there is none. changes:
    from (N,) labels to (Q,) changes by the metric, NaN where a query has no value.
    """
    labelled, graded = ~np.isnan(labels), ~np.isnan(grades)
    answered = np.bincount(pool.query, graded, len(pool.query_ids)) > 0
    known = labelled & answered[pool.query]
    if not known.any():
        return np.full(len(pool.query_ids), np.nan)
    values, label = _few_values(labels[known])
    before, after = pool.ranks
    cell = _levels(grades, known) * 3 + 1 + (after < before) - (after > before)
    # Pairs of the same kind share a row, of the same query where people labelled it.
    own = np.where(np.isin(pool.query, pool.query[labelled]), pool.query, -1)
    first, row = _distinct(own, cell)
    shares = _shares(own[first], cell[first], row[known], label, len(values))
    bounds = np.cumsum(shares, axis=1)[:, :-1].T
    drawn = []
    for place in _places(pool):
        which = np.zeros(len(pool), dtype=np.int64)
        for bound in bounds:
            which += place > bound[row]
        drawn.append(changes(values[which]))
    count = np.where(answered, (~np.isnan(drawn)).sum(axis=0), 0)
    expected: Floats = np.full(len(count), np.nan)
    np.divide(np.nansum(drawn, axis=0), count, out=expected, where=count > 0)
    return expected


def _shares(own: Integers, cell: Integers, row: Integers, label: Integers, size: int) -> Floats:
    """(R, L) how often people gave each label, of L, to pairs like those of each row, without those
    of its own query.

    own, cell: (R,) the row's query, -1 for those that people did not label, and its kind. row,
    label: (K,) of each labelled pair.
    """
    shares = np.full((len(own), size), 1 / size)
    for group in (np.zeros_like(cell), cell // 3, cell):
        counts = _counts(group[row], label, int(group.max()) + 1, size)[group]
        _, same = _distinct(own, group)
        counts = counts - _counts(same[row], label, int(same.max()) + 1, size)[same]
        shares = (counts + _PSEUDO_LABELS * shares) / (
            counts.sum(axis=1, keepdims=True) + _PSEUDO_LABELS
        )
    return shares


def _distinct(own: Integers, group: Integers) -> tuple[Integers, Integers]:
    """Where each combination of the two stands first, and (N,) which combination each has."""
    codes = (own + 1) * (group.max() + 1) + group
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    return first, which


def _counts(group: Integers, label: Integers, groups: int, size: int) -> Floats:
    """(G, L) how often each label is in each group."""
    found: Floats = np.bincount(group * size + label, minlength=groups * size).astype(np.float64)
    return found.reshape(groups, size)


def _few_values(labels: Floats) -> tuple[Floats, Integers]:
    """At most `_MOST_LABELS` values, ascending, and (K,) which of them is nearest to each label."""
    values, label = np.unique(labels, return_inverse=True)
    if len(values) > _MOST_LABELS:
        values = np.unique(np.quantile(labels, np.linspace(0, 1, _MOST_LABELS)))
        label = np.searchsorted((values[1:] + values[:-1]) / 2, labels)
    return values, label.astype(np.int64)


def _levels(grades: Floats, known: Flags) -> Integers:
    """Return (N,) the judge's grades as numbers from 0: neighbours are taken together from the
    highest to the lowest until people labelled enough of each. A missing grade has the number after
    the last, however few are labelled: what is not known of it is what is known of all."""
    missing = np.isnan(grades)
    used, place = np.unique(-grades[~missing], return_inverse=True)
    labelled = np.bincount(place[known[~missing]], minlength=len(used))
    level = np.zeros(len(used), dtype=np.int64)
    current = count = 0
    for at, more in enumerate(labelled):
        level[at] = current
        count += int(more)
        if count >= _FEWEST_LABELS:
            current, count = current + 1, 0
    # What is left at the end is too little for a level of its own.
    level = np.minimum(level, max(current - 1, 0))
    found = np.full(len(grades), max(current, 1))
    found[~missing] = level[place]
    return found


def _places(pool: LabelPool) -> Iterator[Floats]:
    """For each draw (N,) numbers from 0 to 1: spread evenly over the draws of each pair, and in no
    step with those of other pairs. They depend on the ids of the pair alone, so that the order of
    systems and queries changes nothing."""
    orders = np.tile(np.arange(_DRAWS) / _DRAWS, (_ORDERS, 1))
    steps = np.random.default_rng(0).permuted(orders, axis=1).T
    query, doc = (hash_array(ids, categorize=False) for ids in (pool.query_ids, pool.doc_ids))
    codes = query[pool.query] + doc
    order, shift = codes % _ORDERS, codes / 2.0**64
    for step in steps:
        yield (step[order] + shift) % 1
