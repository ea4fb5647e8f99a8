"""Labels and scores in two files are not exchanged."""

import json

import pytest

from rankdash.core.base.errors import FormatError
from rankdash.core.readers import Source, read

LABELS = {"q1": {"d1": 5, "d2": 3}, "q2": {"d1": 1, "d4": 2}}
SCORES = {"q1": {"d3": 9, "d1": 8, "d2": 7}, "q2": {"d1": 9, "d4": 8, "d5": 5}}


def sources(**files):
    return [Source(f"{name}.json", json.dumps(files[name]).encode()) for name in files]


@pytest.mark.parametrize("name", ["run", "my_run_bm25", "Run-2"])
def test_different_whole_numbers_in_a_file_named_run_are_scores(name):
    tables = read(sources(**{"qrels": LABELS, name: SCORES}))
    assert len(tables.qrels) == 4 and sorted(tables.qrels["label"]) == [1, 2, 3, 5]
    assert tables.candidates is not None
    ranked = tables.candidates.frame()
    assert ranked["doc_id"].tolist()[:3] == ["d3", "d1", "d2"]


def test_a_list_of_scores_in_its_own_file_is_not_read_as_labels():
    with pytest.raises(FormatError, match=r"y_score.json"):
        read(sources(y_true=[[10, 0, 0, 1, 5]], y_score=[[0.1, 0.2, 0.3, 4, 70]]))
