"""Comparisons in which every query has its relevant documents first, or last."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from rankdash.dataset import Dataset
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, systems_of

DOCS = [f"d{place}" for place in range(6)]

Best = Callable[[int], bool]
"""Whether the query of this number has its relevant documents first."""


def best_or_worst(
    n: int, metric: str, first: Best, *runs: Best, relevant: int = 1, **more: object
) -> Study:
    """n queries of six documents, the first stage and a run for each of `runs`."""
    ids = [f"q{at}" for at in range(n)]
    scores = np.arange(len(DOCS), 0, -1.0)
    labels = [(query, doc, 1.0) for query in ids for doc in DOCS[-relevant:]]

    def ranking(best: Best) -> Ranking:
        return Ranking.from_lists(
            (query, DOCS[::-1] if best(at) else DOCS, scores) for at, query in enumerate(ids)
        )

    data = Dataset(
        "set",
        pd.DataFrame({"query_id": ids, "text": ids}),
        pd.DataFrame({"doc_id": DOCS, "title": DOCS, "text": DOCS}),
        pd.DataFrame(labels, columns=["query_id", "doc_id", "label"]),
        ranking(first),
    )
    names = ["run", *(f"run {place}" for place in range(2, len(runs) + 1))]
    made = [
        run_from_ranking(name, data.id, ranking(best), f"{name}.trec")
        for name, best in zip(names, runs, strict=False)
    ]
    return Study.on(
        metric,
        dataset=data,
        systems=systems_of(data, made),
        baseline=FIRST_STAGE,
        challengers=tuple(run.id for run in made),
        **more,
    )
