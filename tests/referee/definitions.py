"""Metrics of one query, by their definitions; a list is the labels of its documents, best first,
None for a document without a label."""

import math
from collections.abc import Callable, Sequence

from tests.referee.rules import Rules

Listed = Sequence[float | None]
K = 10
BINARY = ("mrr", "map", "recall", "precision", "hit")
NAMES = ("ndcg", *BINARY, "judged")


def value(name: str, listed: Listed, known: Sequence[float], rules: Rules, k: int = K) -> float:
    """Return the value of a metric; NaN: excluded from the mean. known: the labels of all labelled
    documents of the query."""
    if name == "judged":
        shown = listed[:k]
        return sum(label is not None for label in shown) / len(shown) if shown else math.nan
    counts = rules.threshold if name in BINARY else 1e-12
    relevant = sum(label >= counts for label in known)
    if not relevant:
        return 0.0 if rules.empty_counts else math.nan
    if rules.judged_only:
        listed = [label for label in listed if label is not None]
    if name == "ndcg":
        ideal = sorted((max(label, 0.0) for label in known), reverse=True)
        return discounted(listed, k) / discounted(ideal, k)
    hits = [label is not None and label >= counts for label in listed[:k]]
    return _BINARY[name](hits, relevant, k)


def discounted(listed: Listed, k: int) -> float:
    """Return Σ rel_i / log2(i + 1)."""
    return math.fsum(
        max(label or 0.0, 0.0) / math.log2(rank + 1)
        for rank, label in enumerate(listed[:k], start=1)
    )


def _mrr(hits: list[bool], relevant: int, k: int) -> float:
    return 1 / (hits.index(True) + 1) if any(hits) else 0.0


def _map(hits: list[bool], relevant: int, k: int) -> float:
    found = [sum(hits[:rank]) / rank for rank, hit in enumerate(hits, start=1) if hit]
    return math.fsum(found) / relevant


_BINARY: dict[str, Callable[[list[bool], int, int], float]] = {
    "mrr": _mrr,
    "map": _map,
    "recall": lambda hits, relevant, k: sum(hits) / relevant,
    "precision": lambda hits, relevant, k: sum(hits) / k,
    "hit": lambda hits, relevant, k: float(any(hits)),
}


def best(listed: Listed) -> list[float | None]:
    """Return the same documents in the order of their labels, unlabelled ones last."""
    return sorted(listed, key=lambda label: -math.inf if label is None else label, reverse=True)
