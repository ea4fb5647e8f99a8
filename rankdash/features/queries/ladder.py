"""The ranks of one query's documents in several rankings and in the ideal order."""

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
"""The number of ranks from which a move is a far one."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """D documents of one query in S rankings.

    systems:  (S,) ids, the baseline first.
    doc_ids:  (D,) object array: every document that a ranking has, by rank in the second system
              (in the first one if there is no other), then by rank in the first.
    ranks:    (D, S) float, from 1; NaN if a ranking lacks the document.
    label:    (D,) NaN if there is none.
    relevant: (D,) whether the label reaches the threshold.
    ideal:    (D,) the rank if the candidates are sorted by label; NaN for a document that is not a
              candidate or has no label above 0.
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
        """Return the ranks of one system, (D,)."""
        ranks: Floats = self.ranks[:, self.systems.index(system)]
        return ranks

    @property
    def inside(self) -> Flags:
        """Flags of documents among the first k, (D, S)."""
        return self.ranks <= self.k

    @property
    def crosses(self) -> Flags:
        """Flags of documents that are among the first k here and not in the baseline, or the
        reverse, (D, S)."""
        crosses: Flags = self.inside != self.inside[:, :1]
        return crosses

    @property
    def near(self) -> Flags:
        """Flags of documents that are relevant, or among the first k of some system, (D,)."""
        return self.relevant | self.inside.any(axis=1)

    @property
    def telling(self) -> Flags:
        """Flags of documents worth showing, (D,): relevant; or crossing k, or moving at least `FAR`
        ranks within the first k, from the baseline to the second system."""
        pair = self.in_focus
        far = np.abs(self.ranks[:, pair] - self.ranks[:, 0]) >= FAR
        telling: Flags = self.relevant | self.crosses[:, pair] | (far & self.inside[:, pair])
        return telling

    @property
    def in_focus(self) -> int:
        """The column that is compared with the first one: the second if there is one."""
        return min(1, len(self.systems) - 1)

    def picked(self, rows: Flags | npt.NDArray[np.int64]) -> Ladder:
        """Return a ladder with some of the documents, or with all in another order. rows: flags or
        indices."""
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
    """Return the ranks of the documents of one query.

    rankings: system id → ranking, the baseline first; at least one. The conventions resolve ties,
        so that ranks are the same as in the metrics.
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
    unordered = Ladder(
        systems=tuple(rankings),
        doc_ids=np.array(doc_ids, dtype=object),
        ranks=ranks,
        label=label,
        relevant=label >= conventions.threshold,
        ideal=np.array([best.get(doc, np.nan) for doc in doc_ids], dtype=np.float64),
        k=k,
    )
    order = np.lexsort((unordered.ranks[:, 0], unordered.ranks[:, unordered.in_focus]))
    return unordered.picked(order)


def _ideal(candidates: list[str], labels: Mapping[str, float]) -> dict[str, int]:
    """Return document id → rank among the candidates with a label above 0, the highest label first;
    candidates with equal labels stay in their order."""
    worth = [doc for doc in candidates if labels.get(doc, 0.0) > 0]
    worth.sort(key=lambda doc: -labels[doc])
    return {doc: place for place, doc in enumerate(worth, start=1)}


def _order(ranking: Ranking, query_id: str, conventions: Conventions) -> list[str]:
    """Return the documents of the query, best first, with ties resolved as in the metrics."""
    query_ranking = of_query(ranking, query_id)
    resolved = query_ranking.with_ties(
        conventions.order_rule(query_ranking.ties), conventions.score_precision
    )
    return list(resolved.doc_ids[resolved.docs])
