"""A sample of the queries of a log with known probabilities, so that means over all searches can be
estimated from it.

The queries are split into three strata by frequency, each with about a third of the searches: head,
torso and tail. Within a stratum, the probability of a query is proportional to its frequency, up to
1: a search has the same chance as any other search of its stratum. The queries are sampled
systematically along a random order (Madow 1949). Queries are counted in files on disk, so that
memory does not grow with the log.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from rankdash.core.base.errors import DataError
from rankdash.core.base.rules import SEED
from rankdash.core.data.arrays import Floats, Integers
from rankdash.core.readers.logs import Searches

STRATA = ("head", "torso", "tail")
_PARTS, BUFFERED_ROWS = 64, 1_000_000
_ID_DIGITS = 12
# A stratum needs two queries for an interval.
_FEWEST = 2


class Stratum(NamedTuple):
    """A stratum of the queries of a log.

    queries, searches: their numbers in the log. sampled: the number of sampled queries.
    rate: the probability that a query is sampled, per search; at most 1 for each query.
    """

    name: str
    queries: int
    searches: float
    sampled: int
    rate: float


@dataclass(frozen=True, eq=False)
class LogSample:
    """Sampled queries of a log.

    table: query_id, text, frequency (searches in the log), stratum, probability (of the query to be
        sampled); by stratum, then by frequency, descending. An id is a hash of the text, so that
        the same query has the same id in every sample.
    strata: with at least one query, the most frequent first.
    """

    table: pd.DataFrame
    strata: tuple[Stratum, ...]

    @property
    def queries(self) -> int:
        """The number of distinct queries in the log."""
        return sum(each.queries for each in self.strata)

    @property
    def searches(self) -> float:
        """The number of searches in the log."""
        return sum(each.searches for each in self.strata)


def sample_log(pieces: Iterable[Searches], queries: int, seed: int = SEED) -> LogSample:
    """Sample `queries` queries of a log, or all if it has fewer. Equal queries after removing
    spaces at the ends, and repeated ones inside, are one query.

    Raises DataError if the log contains no query or `queries` is below 6.
    """
    if queries < _FEWEST * len(STRATA):
        raise DataError(
            "A sample of a log needs at least {fewest} queries.",
            remedy="Use at least 50: intervals of fewer queries are wide.",
            fewest=_FEWEST * len(STRATA),
        )
    with tempfile.TemporaryDirectory(prefix="rankdash-") as folder:
        counted = _Counted(Path(folder), seed)
        for piece in pieces:
            counted.add(piece)
        levels, sizes = counted.levels()
        if not len(levels):
            raise DataError(
                "The log contains no query.",
                remedy="Provide a text with one query per line, a table with a column query, or "
                "JSON lines with user_query.",
            )
        owners = _stratum_of(levels, sizes)
        strata = _allocated(levels, sizes, owners, queries)
        table = pd.concat(list(_sampled(counted, levels, owners, strata, seed)))
    table["place"] = table["stratum"].map({name: at for at, name in enumerate(STRATA)})
    table = table.sort_values(["place", "frequency", "text"], ascending=[True, False, True])
    numbers = table["stratum"].value_counts()
    return LogSample(
        table.drop(columns="place").reset_index(drop=True),
        tuple(each._replace(sampled=int(numbers.get(each.name, 0))) for each in strata.values()),
    )


class _Counted:
    """The queries of a log with their counts. Many are written to files, each with the queries of a
    range of hashes, so that memory is needed for one file at a time."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._key = f"{seed % 10**16:016d}"
        self._buffer: list[Any] = []
        self._writers: dict[int, Any] = {}

    def add(self, piece: Searches) -> None:
        table = _summed(pc.utf8_trim_whitespace(piece.queries), pa.array(piece.counts))
        texts = pc.replace_substring_regex(table["text"], r"\s+", " ")
        filled = pc.greater(pc.binary_length(texts), 0)
        table = pa.table({"text": texts, "count": table["count"]}).filter(filled)
        hashes = pd.util.hash_array(
            table["text"].to_numpy(zero_copy_only=False), hash_key=self._key, categorize=False
        )
        self._buffer.append(table.append_column("hash", pa.array(hashes)))
        if self._writers or sum(map(len, self._buffer)) > BUFFERED_ROWS:
            self._flush()

    def _flush(self) -> None:
        """Write the queries of the buffer to the files of their hashes."""
        table = pa.concat_tables(self._buffer)
        self._buffer.clear()
        parts = (table["hash"].to_numpy() >> np.uint64(58)).astype(np.int64)
        table = table.take(pa.array(np.argsort(parts, kind="stable"))).combine_chunks()
        ends = np.cumsum(np.bincount(parts, minlength=_PARTS)).tolist()
        for part, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if part not in self._writers:
                path = str(self._folder / str(part))
                self._writers[part] = pa.ipc.new_stream(path, table.schema)
            self._writers[part].write_table(table.slice(start, end - start))

    def levels(self) -> tuple[Floats, Integers]:
        """Return the distinct frequencies, ascending, and the number of queries with each."""
        for writer in self._writers.values():
            writer.close()
        levels: Floats = np.zeros(0)
        sizes: Integers = np.zeros(0, dtype=np.int64)
        for _texts, counts in self.parts():
            more, numbers = np.unique(counts, return_counts=True)
            levels, at = np.unique(np.append(levels, more), return_inverse=True)
            sizes = np.bincount(at, np.append(sizes, numbers), len(levels)).astype(np.int64)
        return levels, sizes

    def parts(self) -> Iterator[tuple[Any, Floats]]:
        """Yield texts and frequencies, in the random order of their hashes."""
        if self._buffer:
            yield _in_order(pa.concat_tables(self._buffer))
        for part in self._writers:
            with pa.ipc.open_stream(str(self._folder / str(part))) as stream:
                yield _in_order(stream.read_all())


def _in_order(table: Any) -> tuple[Any, Floats]:
    """Return texts and frequencies of the distinct queries, by hash."""
    summed = table.group_by("text").aggregate([("count", "sum"), ("hash", "min")])
    summed = summed.sort_by([("hash_min", "ascending"), ("text", "ascending")])
    return summed["text"], summed["count_sum"].to_numpy()


def _summed(texts: Any, counts: Any) -> Any:
    table = pa.table({"text": texts, "count": counts}).group_by("text").aggregate(
        [("count", "sum")]
    )  # fmt: skip
    return table.rename_columns(["text", "count"])


def _stratum_of(levels: Floats, sizes: Integers) -> Integers:
    """Return the place in `STRATA` of each frequency: the third of the searches, from the most
    frequent query down, that contains the middle of its searches. Queries searched once are the
    tail."""
    searches = (levels * sizes)[::-1]
    middles = (np.cumsum(searches) - searches / 2)[::-1] / searches.sum()
    places: Integers = np.minimum((middles * len(STRATA)).astype(np.int64), len(STRATA) - 1)
    places[levels <= 1] = len(STRATA) - 1
    return places


def _allocated(
    levels: Floats, sizes: Integers, owners: Integers, queries: int
) -> dict[int, Stratum]:
    """Return place → stratum, the sample divided in proportion to searches. A stratum that needs
    more queries than it has leaves the rest to the others."""
    present = np.unique(owners)
    members = {int(place): owners == place for place in present}
    size = {place: int(sizes[rows].sum()) for place, rows in members.items()}
    searches = {place: float(levels[rows] @ sizes[rows]) for place, rows in members.items()}
    due = dict.fromkeys(size, 0)
    rest, free = min(queries, sum(size.values())), set(size)
    while free:
        total = sum(searches[place] for place in free)
        shares = {place: rest * searches[place] / total for place in free}
        full = {place for place in free if shares[place] >= size[place]}
        if not full:
            due |= _rounded(shares, rest)
            break
        due |= {place: size[place] for place in full}
        rest, free = rest - sum(size[place] for place in full), free - full
    for place in due:
        lacking = min(_FEWEST, size[place]) - due[place]
        if lacking > 0:
            due[place] += lacking
            due[max(due, key=lambda each: due[each])] -= lacking
    return {
        place: Stratum(
            STRATA[place], size[place], searches[place], 0, _rate(levels[rows], sizes[rows], n)
        )
        for place, rows in members.items()
        for n in (due[place],)
    }


def _rounded(shares: dict[int, float], total: int) -> dict[int, int]:
    """Return whole numbers with this sum, by the largest remainders."""
    whole = {place: math.floor(share) for place, share in shares.items()}
    order = sorted(shares, key=lambda place: whole[place] - shares[place])
    for place in order[: total - sum(whole.values())]:
        whole[place] += 1
    return whole


def _rate(levels: Floats, sizes: Integers, due: int) -> float:
    """Return the probability per search with which `due` queries of a stratum are sampled."""
    rest, searches = due, float(levels @ sizes)
    if due >= int(sizes.sum()):
        return math.inf
    for level, size in zip(levels[::-1].tolist(), sizes[::-1].tolist(), strict=True):
        if rest * level < searches:
            break
        rest, searches = rest - size, searches - size * level
    return rest / searches


def _sampled(
    counted: _Counted,
    levels: Floats,
    owners: Integers,
    strata: dict[int, Stratum],
    seed: int,
) -> Iterator[pd.DataFrame]:
    """Yield the sampled queries of each part: those with probability 1, and the others at equal
    steps of the added probabilities, from a random start."""
    starts = np.random.default_rng(seed % 2**63).random(len(STRATA))
    added = dict(zip(range(len(STRATA)), starts.tolist(), strict=True))
    for texts, counts in counted.parts():
        places = owners[np.searchsorted(levels, counts)]
        for place, stratum in strata.items():
            rows = np.flatnonzero(places == place)
            if not len(rows):
                continue
            frequency = counts[rows]
            probability = np.minimum(stratum.rate * frequency, 1.0)
            sure = probability >= 1
            steps = added[place] + np.cumsum(np.where(sure, 0.0, probability))
            before = np.append(added[place], steps[:-1])
            added[place] = float(steps[-1])
            chosen = sure | (np.floor(steps) > np.floor(before))
            if not chosen.any():
                continue
            found = pc.take(texts, pa.array(rows[chosen])).to_pylist()
            yield pd.DataFrame(
                {
                    "query_id": [id_of(text) for text in found],
                    "text": found,
                    "frequency": frequency[chosen],
                    "stratum": stratum.name,
                    "probability": probability[chosen],
                }
            )


def id_of(text: str) -> str:
    """Return the id of a query of a log: a hash of its text."""
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]
