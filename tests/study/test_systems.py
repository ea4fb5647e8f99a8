"""What the systems of a study are called, and by which number."""

import pandas as pd
import pytest

from rankdash.dataset import Dataset
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.systems import FIRST_STAGE, System, numbered, systems_of, unused

RANKING = Ranking.from_lists([("q", ["a", "b"], [2.0, 1.0])])


def dataset(first_stage: str = "") -> Dataset:
    return Dataset(
        "set",
        pd.DataFrame({"query_id": ["q"], "text": ["q"]}),
        pd.DataFrame({"doc_id": ["a", "b"], "title": "", "text": "text"}),
        pd.DataFrame({"query_id": ["q"], "doc_id": ["a"], "label": [1.0]}),
        RANKING,
        **({"first_stage": first_stage} if first_stage else {}),
    )


@pytest.mark.parametrize(
    ("taken", "free"),
    [
        ([], "BM25"),
        (["bm25"], "BM25"),
        (["BM25"], "BM25 (2)"),
        (["BM25", "BM25 (2)"], "BM25 (3)"),
        (["BM25", "BM25 (3)"], "BM25 (2)"),
        (["BM25 (2)"], "BM25"),
    ],
)
def test_a_name_that_another_has_gets_the_first_free_number(taken, free):
    assert unused("BM25", taken) == free


def test_systems_of_one_name_are_told_apart_and_keep_their_places():
    given = [System(str(place), name) for place, name in enumerate(["x", "y", "x", "x (2)", "x"])]
    found = numbered(given)
    assert [each.name for each in found.values()] == ["x", "y", "x (2)", "x (2) (2)", "x (3)"]
    assert [each.place for each in found.values()] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("first_stage", "given", "name"),
    [
        ("", None, "First stage"),
        ("bm25", None, "First stage (BM25, listed documents only)"),
        ("corpus-bm25", None, "First stage (BM25)"),
        ("rows", None, "First stage (order of the rows)"),
        ("bm25", "Our search", "Our search"),
        ("", "Our search", "Our search"),
    ],
)
def test_the_first_stage_is_called_what_the_file_says_or_how_it_was_made(first_stage, given, name):
    data = dataset(first_stage)
    run = run_from_ranking(name, data.id, RANKING, "run.trec")
    found = systems_of(data, [run], given)
    assert [(each.id, each.name, each.place) for each in found.values()] == [
        (FIRST_STAGE, name, 0),
        (run.id, f"{name} (2)", 1),
    ]
    assert found[FIRST_STAGE].load is None
    assert found[run.id].load() is run
