"""Comparisons in which every query has its relevant documents first, or last."""

from collections.abc import Callable

from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, systems_of
from tests.study.builders import data_of, ranking

DOCS = [f"d{place}" for place in range(6)]

Best = Callable[[int], bool]
"""Query number → true if its relevant documents are first."""


def best_or_worst(
    n: int, metric: str, first: Best, *runs: Best, relevant: int = 1, **more: object
) -> Study:
    """Return n queries of six documents, the first stage and a run for each of `runs`."""
    ids = [f"q{at}" for at in range(n)]
    lists, *others = (
        {query: DOCS[::-1] if best(at) else DOCS for at, query in enumerate(ids)}
        for best in (first, *runs)
    )
    data = data_of(lists, dict.fromkeys(ids, dict.fromkeys(DOCS[-relevant:], 1.0)), DOCS)
    names = ["run", *(f"run {place}" for place in range(2, len(runs) + 1))]
    made = [
        run_from_ranking(name, data.id, ranking(each), f"{name}.trec")
        for name, each in zip(names, others, strict=False)
    ]
    return Study.on(
        metric,
        dataset=data,
        systems=systems_of(data, made),
        baseline=FIRST_STAGE,
        challengers=tuple(run.id for run in made),
        **more,
    )
