"""How far an approximate runtime ranks as an exact one does, on queries of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rankdash.core.rerankers.base import Request, Scores

_QUERIES = 12
_DOCUMENTS = 10


@dataclass
class Sample:
    """Some of the pairs scored, with their scores: of the first queries, documents spread over the
    candidates."""

    kept: list[tuple[Request, Scores]] = field(default_factory=list)

    def add(self, request: Request, scores: Scores) -> None:
        """Remember some documents of a request, unless there are enough or it is known."""
        size = len(request.doc_ids)
        known = any(request.query_id == kept.query_id for kept, _ in self.kept)
        if len(self.kept) >= _QUERIES or size < 2 or known or not np.isfinite(scores).all():
            return
        places = np.unique(np.linspace(0, size - 1, min(size, _DOCUMENTS)).astype(int))
        self.kept.append((request.part(places), scores[places]))

    def measure(self, exact: Callable[[Request], Scores]) -> dict[str, object]:
        """The mean over queries of Spearman's rank correlation with exact scores, and on how many
        pairs; nothing where no pair was remembered."""
        found = [rank_correlation(scores, exact(request)) for request, scores in self.kept]
        if not found:
            return {}
        pairs = sum(len(request.doc_ids) for request, _ in self.kept)
        return {"rank_agreement": round(float(np.mean(found)), 4), "agreement_pairs": pairs}


def rank_correlation(first: Scores, second: Scores) -> float:
    """Spearman's rank correlation, equal scores at their mean rank; 1 where all are equal in
    both."""
    ranks = [_ranks(first), _ranks(second)]
    spread = [float(np.std(rank)) for rank in ranks]
    if min(spread) == 0:
        return float(spread[0] == spread[1])
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(scores: Scores) -> Scores:
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    found: Scores = (ends - (counts - 1) / 2)[places]
    return found
