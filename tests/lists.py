"""Short notations for rankings, labels and evaluations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import STATES, Conventions, Evaluation, parse_measure


def ranking(**lists: Sequence[str]) -> Ranking:
    """Return a ranking: q="ab" ranks a before b for q. Scores fall by 1."""
    return Ranking.from_lists(
        (query, list(docs), [-float(place) for place in range(len(docs))])
        for query, docs in lists.items()
    )


def qrels(**labels: Mapping[str, float]) -> pd.DataFrame:
    rows = [(query, doc, label) for query, own in labels.items() for doc, label in own.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])


def evaluation(rows: Mapping[str, Sequence[float | str]], specs: Sequence[str]) -> Evaluation:
    """Return an evaluation. rows: query id → for each spec a value, or a state without one. The
    value of the state "missing" is 0."""
    states = [
        [each if isinstance(each, str) else "scored" for each in row] for row in rows.values()
    ]
    values = [
        [0.0 if each == "missing" else math.nan if isinstance(each, str) else each for each in row]
        for row in rows.values()
    ]
    shape = len(rows), len(specs)
    codes = [[STATES.index(state) for state in row] for row in states]
    return Evaluation(
        query_ids=np.array(list(rows), dtype=object),
        values=np.array(values, dtype=np.float64).reshape(shape),
        states=np.array([row[0] for row in states], dtype=object),
        cell_states=np.array(codes, dtype=np.int8).reshape(shape),
        measures=tuple(map(parse_measure, specs)),
        conventions=Conventions(),
        counts={},
    )
