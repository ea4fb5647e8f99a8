"""The input of a comparison, read from its files by plain code."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

Labels = dict[str, dict[str, float]]
Lists = dict[str, list[tuple[str, float]]]
"""Query → its documents with their scores, best first."""


def labels(file: Path) -> Labels:
    found: Labels = {}
    for line in file.read_text().splitlines()[1:]:
        query, document, label = line.split("\t")
        found.setdefault(query, {})[document] = float(label)
    return found


def queries(file: Path) -> dict[str, dict[str, object]]:
    """Return query → its text and the other columns that group it: values of one word each."""
    rows = (json.loads(line) for line in file.read_text().splitlines())
    return {row["_id"]: {"text": row["text"], **row.get("metadata", {})} for row in rows}


def ranking(file: Path, *, single: bool) -> Lists:
    """Return lists by descending score, then by descending document id. single: ties are detected
    in single precision."""
    found: Lists = {}
    for line in file.read_text().splitlines():
        query, _q0, document, _rank, score, _tag = line.split()
        found.setdefault(query, []).append((document, rounded(float(score), single)))
    return {query: by_id(rows) for query, rows in found.items()}


def by_id(rows: list[tuple[str, float]]) -> list[tuple[str, float]]:
    return sorted(sorted(rows, reverse=True), key=lambda row: -row[1])


def rounded(score: float, single: bool) -> float:
    return float(np.float32(score)) if single else score


def reciprocal_rank_fusion(one: Lists, other: Lists, *, by_trec: bool) -> Lists:
    """Return Σ 1 / (60 + rank) (Cormack et al. 2009). Ties are broken by the first ranking, or with
    `by_trec` by descending document ids, over scores in single precision."""
    found: Lists = {}
    for query in one:
        places: dict[str, float] = {}
        for rows in (one[query], other[query]):
            for rank, (document, _score) in enumerate(rows, start=1):
                places[document] = places.get(document, 0.0) + 1 / (60 + rank)
        fused = [(each, rounded(round(score, 15), by_trec)) for each, score in places.items()]
        found[query] = by_id(fused) if by_trec else sorted(fused, key=lambda row: -row[1])
    return found


def latencies(file: Path) -> list[float]:
    """Return the milliseconds of the timed queries, ascending."""
    rows: list[Mapping[str, float | None]] = json.loads(file.read_text())
    return sorted(row["latency_ms"] for row in rows if row["latency_ms"] is not None)
