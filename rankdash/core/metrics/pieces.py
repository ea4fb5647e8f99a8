"""`Judged` of pieces that share no query: on the disk, and in memory one at a time."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.core.metrics.judged import Judged

_NO_IDS: npt.NDArray[np.object_] = np.zeros(0, dtype=object)


class JudgedPieces:
    """Pieces of several rankings, by name; each has the same queries in the pieces of all.

    They lie in a file without a name, in the folder that TMPDIR names, which goes with this object.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this object
        weakref.finalize(self, self._file.close)
        self._ids: list[npt.NDArray[np.object_]] = []
        # What is no array of each piece, and where its arrays lie.
        self._pieces: dict[str, list[tuple[Judged, dict[str, int]]]] = {}
        self._highest = 0.0

    def add(self, judged: dict[str, Judged]) -> None:
        """The next piece of every ranking. Raises OSError where there is no room."""
        for name, each in judged.items():
            places = {}
            for field, values in _arrays(each).items():
                places[field] = self._file.seek(0, os.SEEK_END)
                np.save(self._file, values, allow_pickle=False)
            nothing: dict[str, Any] = dict.fromkeys(["query_ids", *places], _NO_IDS)
            self._pieces.setdefault(name, []).append((replace(each, **nothing), places))
            self._highest = max(self._highest, float(each.pool_label.max(initial=0.0)))
        self._ids.append(each.query_ids)

    def query_ids(self) -> npt.NDArray[np.object_]:
        """(Q,) of all pieces, one after the other."""
        return np.concatenate([_NO_IDS, *self._ids])

    def read(self, name: str) -> Iterator[Judged]:
        """The pieces of one of them. Each knows the highest label of all."""
        for ids, (piece, places) in zip(self._ids, self._pieces[name], strict=True):
            arrays: dict[str, Any] = {}
            for field, place in places.items():
                self._file.seek(place)
                arrays[field] = np.load(self._file, allow_pickle=False)
            yield replace(piece, query_ids=ids, highest=self._highest, **arrays)


def _arrays(judged: Judged) -> dict[str, npt.NDArray[Any]]:
    """All but the ids of queries, which are objects."""
    return {
        name: value
        for name, value in vars(judged).items()
        if isinstance(value, np.ndarray)
        and name in Judged.__dataclass_fields__
        and name != "query_ids"
    }
