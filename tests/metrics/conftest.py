"""Fixtures for small evaluations: labels in rank order are the input, values the output."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, evaluate, judge


def _tables(lists, unranked):
    run, labels = [], []
    for query, ranked in lists.items():
        for place, label in enumerate(ranked):
            run.append((query, f"{query}-d{place}", float(-place)))
            if label is not None:
                labels.append((query, f"{query}-d{place}", float(label)))
    for query, pool in unranked.items():
        labels += [(query, f"{query}-u{place}", float(label)) for place, label in enumerate(pool)]
    return (
        pd.DataFrame(run, columns=["query_id", "doc_id", "score"]),
        pd.DataFrame(labels, columns=["query_id", "doc_id", "label"]),
    )


@pytest.fixture(scope="session")
def tables() -> Callable:
    """(lists: query → labels in rank order, None for unlabelled; unranked: query → labels of
    documents that were not ranked) → run frame, qrels frame."""
    return lambda lists, unranked=None: _tables(lists, unranked or {})


@pytest.fixture(scope="session")
def evaluation_of() -> Callable:
    """(lists, specs, unranked=…, left_out=…, any convention) → Evaluation."""

    def evaluation_of(lists, specs, unranked=None, left_out=None, **settings):
        run, qrels = _tables(lists, unranked or {})
        conventions = Conventions(**settings)
        ranking = Ranking.from_columns(run["query_id"], run["doc_id"], run["score"])
        judged = judge(ranking, qrels, conventions)
        return evaluate(judged, specs, conventions, left_out or {})

    return evaluation_of


@pytest.fixture(scope="session")
def values_of(evaluation_of) -> Callable:
    """(specs, labels in rank order, labels not ranked, any convention) → (specs,) values of one
    query."""

    def values_of(specs, labels, unranked=(), **settings):
        return evaluation_of({"q": labels}, specs, {"q": unranked}, **settings).values[0]

    return values_of


@pytest.fixture(scope="session")
def value_of(values_of) -> Callable:
    """The same for one spec."""
    return lambda spec, *lists, **settings: float(values_of([spec], *lists, **settings)[0])


@pytest.fixture(scope="session")
def generated_set() -> Callable:
    """(seed, tied=…, fractional=…) → run frame, qrels frame, rows shuffled.

    Lists of 1 to 60 documents, queries in only one of the two, queries without a relevant document,
    ids beyond ASCII; `tied` rounds the scores and adds pairs that differ only in double precision.
    """

    def generated_set(seed, *, tied=False, fractional=False):
        rng = np.random.default_rng(seed)
        names = np.array([*(f"d{n}" for n in range(90)), "Z", "é", "中", "𝒳", "a b", "007", "7"])
        run, labels = [], []
        for number in range(60):
            query = f"q{number}"
            if number < 55:
                docs = rng.permutation(names)[: rng.integers(1, 60)]
                scores = rng.normal(size=len(docs))
                if tied:
                    scores = np.round(scores, 1) + rng.choice([0, 1e-9], size=len(docs))
                run += zip([query] * len(docs), docs, scores, strict=True)
            if number >= 5:
                docs = rng.permutation(names)[: rng.integers(1, 50)]
                grades = rng.integers(0, 4, len(docs)) * (number % 11 > 0)
                values = grades * 0.5 if fractional else grades
                labels += zip([query] * len(docs), docs, values, strict=True)
        run_frame = pd.DataFrame(run, columns=["query_id", "doc_id", "score"])
        qrels = pd.DataFrame(labels, columns=["query_id", "doc_id", "label"])
        return (
            run_frame.sample(frac=1, random_state=seed).reset_index(drop=True),
            qrels.sample(frac=1, random_state=seed).reset_index(drop=True),
        )

    return generated_set
