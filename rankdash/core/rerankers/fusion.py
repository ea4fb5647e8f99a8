"""Fusion of several rankings of the same queries. It reads no text, so it costs no scoring.

Reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009, who recommend k = 60.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rankdash.core.base.errors import SettingError
from rankdash.core.base.rules import Settings, SettingSpec, described_by, settings_of
from rankdash.core.data.arrays import (
    Flags,
    Floats,
    Integers,
    arrow_text,
    offsets_from,
    owners,
    places,
    sort_codes,
)
from rankdash.core.data.ranking import Groups, Ranking, order_rows

# Sums that differ only by rounding are ties.
_DIGITS = 12


@dataclass(frozen=True)
class Fusion(Settings):
    """Method of fusion. weights: one per ranking, above 0; () for 1 each.

    Raises SettingError for an invalid value.
    """

    method: str = described_by(
        SettingSpec(
            "",
            "rrf",
            "Method",
            "Ranks: a document gets 1 / (k + rank) from every ranking. Scores: the scores of each "
            "query are first rescaled, and documents without a score count as the lowest.",
            choices={
                "rrf": "Ranks (reciprocal rank fusion)",
                "minmax": "Scores, from 0 to 1",
                "z": "Scores, in standard deviations",
            },
        )
    )
    weights: tuple[float, ...] = ()
    k: float = described_by(
        SettingSpec(
            "", 60.0, "k", "Larger values reduce the weight of the top ranks.", within=(0, math.inf)
        )
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for weight in self.weights:
            if not (math.isfinite(weight) and weight > 0):
                raise SettingError(
                    "A weight must be a number above 0, not {weight}.", weight=weight
                )


FUSION_SETTINGS: tuple[SettingSpec, ...] = settings_of(Fusion)


def fuse(rankings: Sequence[Ranking], how: Fusion) -> Ranking:
    """Return one ranking of the queries that all rankings contain, in the order of the first.

    A query's documents are the union of its lists. A list adds nothing to a document that it does
    not contain. "rrf" uses ranks only, including ranks of documents without a score (below the
    depth of a run). "minmax" and "z" use scores: 0 is the lowest score of the query in that list,
    so a document that is missing or has no score counts as the lowest, and a list of equal scores
    adds nothing. "z" counts in (population) standard deviations above the lowest. Equal sums follow
    the order of the first ranking, then the second …

    Raises SettingError for fewer than two rankings or a wrong number of weights.
    """
    if len(rankings) < 2:
        raise SettingError("At least two runs are needed to fuse.")
    weights = how.weights or (1.0,) * len(rankings)
    if len(weights) != len(rankings):
        raise SettingError(
            "There are {weights} weights for {rankings} rankings.",
            remedy="Provide one weight per ranking, or none.",
            weights=len(weights),
            rankings=len(rankings),
        )
    joined = Joined.of(rankings)
    return joined.ranked(joined.points(how), weights)


@dataclass(frozen=True, eq=False)
class Joined:
    """The documents of R rankings, for the queries that all of them contain. N documents in all.

    query_ids: (Q,) in the order of the first ranking. documents: Arrow text. offsets: (Q + 1,).
    docs: (N,) by query, each in the order of its first appearance: first ranking, then second …
    rows: for each ranking, (flags of its rows of these queries, the document at each of them).
    """

    rankings: tuple[Ranking, ...]
    query_ids: npt.NDArray[np.object_]
    documents: Any
    offsets: Integers
    docs: Integers
    rows: tuple[tuple[Flags, Integers], ...]

    @classmethod
    def of(cls, rankings: Sequence[Ranking]) -> Joined:
        """Join rankings, at least one."""
        others = [set(ranking.query_ids) for ranking in rankings[1:]]
        queries = [query for query in rankings[0].query_ids if all(query in ids for ids in others)]
        codes, doc_ids = pd.factorize(np.concatenate([each.doc_ids for each in rankings]))
        number = {query: place for place, query in enumerate(queries)}
        keys, flags, start = [], [], 0
        for ranking in rankings:
            shared = codes[start : start + len(ranking.documents)].astype(np.int64)
            start += len(ranking.documents)
            query = np.array([number.get(name, -1) for name in ranking.query_ids], dtype=np.int64)
            query = query[owners(ranking.offsets)]
            selected = query >= 0
            keys.append((query * max(len(doc_ids), 1) + shared[ranking.docs])[selected])
            flags.append(selected)
        # By first appearance, which is the order of ties.
        row, pairs = pd.factorize(np.concatenate(keys))
        owner, docs = np.divmod(pairs, max(len(doc_ids), 1))
        grouped = sort_codes(owner, len(queries))
        place = np.empty(len(grouped), dtype=np.int64)
        place[grouped] = np.arange(len(grouped))
        ends = np.cumsum([len(each) for each in keys])[:-1]
        return cls(
            rankings=tuple(rankings),
            query_ids=np.array(queries, dtype=object),
            documents=arrow_text(doc_ids),
            offsets=offsets_from(np.bincount(owner, minlength=len(queries))),
            docs=docs[grouped],
            rows=tuple(zip(flags, np.split(place[row], ends), strict=True)),
        )

    def points(self, how: Fusion) -> Floats:
        """Return what each ranking adds to each document, unweighted, shape (R, N)."""
        points = np.zeros((len(self.rankings), len(self.docs)))
        for each, ranking, (selected, at) in zip(points, self.rankings, self.rows, strict=True):
            each[at] = _points(ranking, how)[selected]
        return points

    def ranked(self, points: Floats, weights: Sequence[float]) -> Ranking:
        """Return the ranking by the weighted sum of points, with `given` = the index in `docs`."""
        sums = np.zeros(len(self.docs))
        for each, weight in zip(points, weights, strict=True):
            sums += weight * each
        groups = Groups(None, self.offsets, None)
        ordered = order_rows(groups, _rounded(sums), None, "stable")
        return Ranking(
            query_ids=self.query_ids,
            documents=self.documents,
            offsets=self.offsets,
            docs=self.docs[ordered.rows].astype(np.int32),
            scores=ordered.scores,
            tied=ordered.tied,
            ties="stable",
            given=ordered.rows.astype(np.int32),
        )


def _points(ranking: Ranking, how: Fusion) -> Floats:
    """Return what each row of a ranking adds to its document, unweighted, shape (N,)."""
    if how.method == "rrf":
        return 1.0 / (how.k + places(ranking.offsets).astype(np.float64))
    scored = np.isfinite(ranking.scores)
    owner, size = owners(ranking.offsets)[scored], len(ranking.query_ids)
    scores = ranking.scores[scored]
    lowest, highest = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(lowest, owner, scores)
    np.maximum.at(highest, owner, scores)
    above = scores - lowest[owner]
    unit = (highest - lowest) if how.method == "minmax" else _deviation(above, owner, size)
    points = np.zeros(len(ranking))
    unit = np.where(highest > lowest, unit, np.inf)
    points[scored] = above / unit[owner]
    return points


def _deviation(values: Floats, owner: Integers, size: int) -> Floats:
    """Return the population standard deviation of the values of each owner, shape (size,)."""
    count = np.maximum(np.bincount(owner, minlength=size), 1)
    mean = np.bincount(owner, weights=values, minlength=size) / count
    squares = np.bincount(owner, weights=(values - mean[owner]) ** 2, minlength=size)
    return np.sqrt(squares / count).astype(np.float64)


def _rounded(values: Floats) -> Floats:
    """Round to `_DIGITS` significant digits."""
    mantissa, exponent = np.frexp(values)
    rounded: Floats = np.ldexp(np.round(mantissa, _DIGITS), exponent)
    return rounded
