"""The list of queries and the documents of one: filters worth having, and who stands where."""

import numpy as np
import pandas as pd
import pytest

from rankdash.dataset import Dataset
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study import queries
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, systems_of

QUERIES = [f"q{n:02}" for n in range(60)]
DOCS = ["a", "b", "c"]


def study_of(challengers: int, segments: int | None = None) -> Study:
    """Every challenger turns the lists by one more. segments: how many values the column "kind"
    has; None for no such column."""
    texts = pd.DataFrame({"query_id": QUERIES, "text": QUERIES})
    if segments is not None:
        texts["kind"] = [f"kind {place % segments}" for place in range(len(QUERIES))]
    scores = np.arange(len(DOCS), 0, -1.0)
    data = Dataset(
        "set",
        texts,
        pd.DataFrame({"doc_id": DOCS, "title": DOCS, "text": DOCS}),
        pd.DataFrame({"query_id": QUERIES, "doc_id": "a", "label": 1.0}),
        Ranking.from_lists((query, DOCS, scores) for query in QUERIES),
    )
    runs = []
    for by in range(1, challengers + 1):
        turned = [*DOCS[by % 3 :], *DOCS[: by % 3]]
        ranking = Ranking.from_lists((query, turned, scores) for query in QUERIES)
        runs.append(run_from_ranking(f"by {by}", data.id, ranking, f"{by}.trec"))
    return Study(data, systems_of(data, runs), FIRST_STAGE, tuple(run.id for run in runs))


@pytest.mark.parametrize(("values", "offered"), [(1, False), (2, True), (50, True), (51, False)])
def test_a_segment_is_a_filter_where_its_values_tell_queries_apart(values, offered):
    study = study_of(1, values)
    segments = queries.listing(study, study.challengers[0]).segments
    expected = {"kind": tuple(sorted(f"kind {place}" for place in range(values)))}
    assert segments == (expected if offered else {})


@pytest.mark.parametrize(("focus", "order"), [(0, [0, 1, 2]), (1, [1, 0, 2]), (2, [2, 0, 1])])
def test_the_system_in_focus_stands_beside_the_baseline(focus, order):
    study = study_of(3)
    ladder = queries.ladder_of(study, study.challengers[focus], "q00")
    assert ladder.systems == (FIRST_STAGE, *(study.challengers[place] for place in order))
