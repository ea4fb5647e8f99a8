"""Batches of token ids: rows of like length together, to a budget of tokens, scattered back.

Pure: knows neither models nor texts. What makes the usual loop slow is padding, so rows are sorted
by their exact length in tokens, whichever query they belong to, and equal rows are computed once
(they then also get equal scores, to the last bit).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Outputs = npt.NDArray[np.float32]
Forward = Callable[[Ids, Ids, Ids], Outputs]

# A batch ends early, at a fraction of its budget, rather than waste more than this on padding.
_WASTE = 0.02
_SMALLEST_BATCH = 0.25


@dataclass(frozen=True)
class Frame:
    """How a model frames its input: special tokens before, between and after the texts.

    types: the token type of each of the five parts (before, first text, between, second text,
        after); of the first, second and last where a model reads one text.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    types: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many tokens it adds."""
        return len(self.before) + len(self.between) + len(self.after)

    def around(self, texts: Sequence[Ids]) -> tuple[Ids, Ids]:
        """Token ids and token types of one text, or of two read together."""
        parts: list[npt.ArrayLike] = [self.before, texts[0]]
        if len(texts) == 2:
            parts += [self.between, texts[1]]
        parts.append(self.after)
        arrays = [np.asarray(part, dtype=np.int64) for part in parts]
        types = np.repeat(np.array(self.types, dtype=np.int64), [len(part) for part in arrays])
        return np.concatenate(arrays), types


@dataclass(frozen=True)
class Batching:
    """How rows become batches: budget, rounding and limit as `plan` takes them.

    padding: the token id that fills up short rows; the mask is 0 there.
    """

    budget: int
    padding: int
    rounding: int = 1
    limit: int | None = None


@dataclass(frozen=True)
class BatchPlan:
    """Batches as positions of rows, the longest first; `widths` is how long each is padded to."""

    batches: tuple[npt.NDArray[np.intp], ...]
    widths: tuple[int, ...]

    @property
    def slots(self) -> int:
        """Tokens computed, padding included."""
        return sum(len(rows) * width for rows, width in zip(self.batches, self.widths, strict=True))


def plan(
    lengths: npt.NDArray[np.int64], budget: int, rounding: int = 1, limit: int | None = None
) -> BatchPlan:
    """Every row in one batch, with rows of like length.

    budget: how many tokens, padding included, a batch may hold; a longer row is a batch of its own.
    rounding: lengths are padded to a multiple of this, for engines that prepare themselves for
        each shape; never beyond `limit`, the longest row that the model reads.
    """
    batches: list[npt.NDArray[np.intp]] = []
    widths: list[int] = []
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        width = -(-int(lengths[order[start]]) // rounding) * rounding
        if limit is not None:
            width = max(min(width, limit), int(lengths[order[start]]))
        stop = start + 1
        real = int(lengths[order[start]])
        while stop < len(order) and width * (stop - start + 1) <= budget:
            real += int(lengths[order[stop]])
            slots = width * (stop - start + 1)
            if slots > real * (1 + _WASTE) and slots >= budget * _SMALLEST_BATCH:
                break
            stop += 1
        batches.append(order[start:stop])
        widths.append(width)
        start = stop
    return BatchPlan(tuple(batches), tuple(widths))


def compute(rows: Sequence[Ids], types: Sequence[Ids], forward: Forward, how: Batching) -> Outputs:
    """What `forward` gives for each row: (rows, …) float32, in the order of the rows.

    rows, types: token ids and token types of each row.
    forward: (token ids, mask, token types), each (batch, width) int64, to (batch, …).
    """
    found, distinct = _distinct(rows, types)
    results: Outputs | None = None
    for places, given in _forwarded(rows, types, distinct, forward, how):
        if results is None:
            results = np.empty((len(distinct), *given.shape[1:]), dtype=np.float32)
        results[places] = given
    return np.zeros(0, dtype=np.float32) if results is None else results[found]


def compute_each(
    rows: Sequence[Ids], types: Sequence[Ids], forward: Forward, how: Batching
) -> list[Outputs]:
    """As `compute`, for a model with an output for each token: (tokens of the row, …) float32 for
    each row, without those of the padding. Equal rows share one array.

    forward: to (batch, width, …).
    """
    found, distinct = _distinct(rows, types)
    results: list[Outputs] = [np.zeros(0, dtype=np.float32)] * len(distinct)
    for places, given in _forwarded(rows, types, distinct, forward, how):
        for place, values in zip(places, given, strict=True):
            results[place] = values[: len(rows[distinct[place]])].copy()
    return [results[place] for place in found]


def _distinct(
    rows: Sequence[Ids], types: Sequence[Ids]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """For each row the number of its equal, and the first row of each number."""
    first: dict[bytes, int] = {}
    keys = (row.tobytes() + kinds.tobytes() for row, kinds in zip(rows, types, strict=True))
    found = np.array([first.setdefault(key, len(first)) for key in keys], dtype=np.intp)
    _, distinct = np.unique(found, return_index=True)
    return found, distinct


def _forwarded(
    rows: Sequence[Ids],
    types: Sequence[Ids],
    chosen: npt.NDArray[np.intp],
    forward: Forward,
    how: Batching,
) -> Iterator[tuple[npt.NDArray[np.intp], Outputs]]:
    """Batch by batch: which of the chosen rows, and what `forward` gives for them."""
    lengths = np.array([len(rows[row]) for row in chosen], dtype=np.int64)
    batches = plan(lengths, how.budget, how.rounding, how.limit)
    for places, width in zip(batches.batches, batches.widths, strict=True):
        ids = np.full((len(places), width), how.padding, dtype=np.int64)
        mask, kinds = np.zeros_like(ids), np.zeros_like(ids)
        for line, row in enumerate(chosen[places]):
            size = len(rows[row])
            ids[line, :size], kinds[line, :size], mask[line, :size] = rows[row], types[row], 1
        yield places, forward(ids, mask, kinds)
