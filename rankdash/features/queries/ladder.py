"""One query: where each of its documents stands in several rankings, and where it should."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rankdash.core.data.arrays import Floats
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions
from rankdash.core.study.reasons.contributions import of_query

Flags = npt.NDArray[np.bool_]

FAR = 3
"""A document that moves this many ranks has moved far."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """D documents of one query in S rankings.

    systems:  (S,) ids, the baseline first.
    doc_ids:  (D,) object array: every document that a ranking has, by rank in the second system
              (in the first where there is no other), then by rank in the first.
    ranks:    (D, S) float, from 1; NaN where a ranking lacks the document.
    label:    (D,) NaN where there is none.
    relevant: (D,) whether the label reaches the threshold.
    ideal:    (D,) the rank it has where the candidates are ordered by label; NaN where that leaves
              it out, because it is no candidate or its label is not above 0.
    k:        the cutoff.
    """

    systems: tuple[str, ...]
    doc_ids: npt.NDArray[np.object_]
    ranks: Floats
    label: Floats
    relevant: Flags
    ideal: Floats
    k: int

    def __len__(self) -> int:
        return len(self.doc_ids)

    def column(self, system: str) -> Floats:
        """(D,) the ranks of one system."""
        ranks: Floats = self.ranks[:, self.systems.index(system)]
        return ranks

    @property
    def inside(self) -> Flags:
        """(D, S) whether the document is among the first k."""
        return self.ranks <= self.k

    @property
    def crosses(self) -> Flags:
        """(D, S) whether it is among the first k here, and not in the baseline, or the reverse."""
        crosses: Flags = self.inside != self.inside[:, :1]
        return crosses

    @property
    def near(self) -> Flags:
        """(D,) relevant, or among the first k of some system."""
        return self.relevant | self.inside.any(axis=1)

    @property
    def telling(self) -> Flags:
        """(D,) relevant; or, from the baseline to the second system, crossing k or moving `FAR`
        ranks among the first k."""
        pair = self.in_focus
        far = np.abs(self.ranks[:, pair] - self.ranks[:, 0]) >= FAR
        telling: Flags = self.relevant | self.crosses[:, pair] | (far & self.inside[:, pair])
        return telling

    @property
    def in_focus(self) -> int:
        """The column that is compared with the first: the second where there is one."""
        return min(1, len(self.systems) - 1)

    def picked(self, rows: Flags | npt.NDArray[np.int64]) -> Ladder:
        """Some of the documents, or all in another order. rows: flags or indices."""
        return replace(
            self,
            doc_ids=self.doc_ids[rows],
            ranks=self.ranks[rows],
            label=self.label[rows],
            relevant=self.relevant[rows],
            ideal=self.ideal[rows],
        )


def ladder(
    rankings: Mapping[str, Ranking],
    candidates: Ranking,
    labels: Mapping[str, float],
    query_id: str,
    k: int,
    conventions: Conventions | None = None,
) -> Ladder:
    """Where the documents of one query stand.

    rankings: system id → ranking, the baseline first; at least one. Their ties are settled as the
        conventions say, so that ranks are those of the metrics.
    candidates: the ranking of the first stage, for the ideal order.
    labels: document id → label, of this query.
    """
    conventions = conventions or Conventions()
    if conventions.negative == "unjudged":
        labels = {doc: label for doc, label in labels.items() if label >= 0}
    placements = [
        {doc: place for place, doc in enumerate(_order(ranking, query_id, conventions), start=1)}
        for ranking in rankings.values()
    ]
    doc_ids = list(dict.fromkeys(doc for ranks in placements for doc in ranks))
    ranks = np.array(
        [[ranks.get(doc, np.nan) for ranks in placements] for doc in doc_ids], dtype=np.float64
    ).reshape(len(doc_ids), len(placements))
    best = _ideal(_order(candidates, query_id, conventions), labels)
    label = np.array([labels.get(doc, np.nan) for doc in doc_ids], dtype=np.float64)
    made = Ladder(
        systems=tuple(rankings),
        doc_ids=np.array(doc_ids, dtype=object),
        ranks=ranks,
        label=label,
        relevant=label >= conventions.threshold,
        ideal=np.array([best.get(doc, np.nan) for doc in doc_ids], dtype=np.float64),
        k=k,
    )
    order = np.lexsort((made.ranks[:, 0], made.ranks[:, made.in_focus]))
    return made.picked(order)


def _ideal(candidates: list[str], labels: Mapping[str, float]) -> dict[str, int]:
    """Document id → rank among the candidates that have a label above 0, the highest first; equal
    ones stay in their order."""
    worth = [doc for doc in candidates if labels.get(doc, 0.0) > 0]
    worth.sort(key=lambda doc: -labels[doc])
    return {doc: place for place, doc in enumerate(worth, start=1)}


def _order(ranking: Ranking, query_id: str, conventions: Conventions) -> list[str]:
    """The documents of the query, best first, with ties settled as the metrics settle them."""
    query_ranking = of_query(ranking, query_id)
    settled = query_ranking.settled(
        conventions.order_rule(query_ranking.ties), conventions.score_precision
    )
    return list(settled.doc_ids[settled.docs])
