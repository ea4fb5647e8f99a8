"""The data set of the page benchmarks: 10,000 queries with 100 candidates each, and its runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
QUERIES, CANDIDATES, DOCUMENTS = 10_000, 100, 50_000
WORDS = (
    "model",
    "order",
    "rank",
    "query",
    "label",
    "metric",
    "search",
    "passage",
    "answer",
    "time",
)


def store(
    runs: Mapping[str, float],
    *,
    judged: float = 1.0,
    queries: int = QUERIES,
    candidates: int = CANDIDATES,
    documents: int = DOCUMENTS,
    words: int = 120,
) -> str:
    """Store the data set and its runs and return its id: grades 0 to 3, about 8 % of the candidates
    relevant. runs: name → weight of the labels in its scores. judged: share of the candidates with
    a label. words: number of words of a document."""
    from rankdash.core.data.dataset import Dataset
    from rankdash.core.data.ranking import Ranking
    from rankdash.core.readers.checks.check import check
    from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
    from rankdash.core.workspace import Workspace

    rng = np.random.default_rng(0)
    query_ids = np.array([f"q{i}" for i in range(queries)], dtype=object)
    doc_ids = np.array([f"d{i}" for i in range(documents)], dtype=object)
    picked = np.argsort(rng.random((queries, candidates * 2)), axis=1)[:, :candidates]
    codes = (picked + rng.integers(0, documents, size=(queries, 1))) % documents
    labels = rng.choice([0, 1, 2, 3], p=[0.92, 0.04, 0.02, 0.02], size=codes.shape)
    rows = np.repeat(query_ids, candidates)
    flat = doc_ids[codes.ravel()]

    def ranking(signal: float) -> Ranking:
        scores = rng.normal(size=codes.shape) + signal * labels
        return Ranking.from_columns(rows, flat, scores.ravel())

    def texts(count: int, words: int) -> list[str]:
        picks = rng.integers(0, len(WORDS), size=(count, words))
        return [" ".join(WORDS[word] for word in row) for row in picks]

    first = ranking(0.5)
    kept = rng.random(len(rows)) < judged
    qrels = pd.DataFrame({"query_id": rows, "doc_id": flat, "label": labels.ravel()})[kept]
    dataset = Dataset(
        "large",
        pd.DataFrame(
            {
                "query_id": query_ids,
                "text": [f"{text} {n}" for n, text in enumerate(texts(queries, 6))],
                "kind": rng.choice(list("abc"), queries),
            }
        ),
        pd.DataFrame({"doc_id": doc_ids, "title": "", "text": texts(documents, words)}),
        qrels,
        first,
    )
    workspace = Workspace.open()
    report = check(dataset, (), {})
    workspace.save_dataset(dataset, report_json=report.to_json())
    for name, signal in runs.items():
        workspace.save_run(run_from_ranking(name, dataset.id, ranking(signal), name))
    return dataset.id


def freeze() -> None:
    """Prepare the process as a server does when it starts."""
    from rankdash.app.server import prepare

    prepare()
