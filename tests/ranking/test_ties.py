import numpy as np

from rankdash.ranking.build import text_array
from rankdash.ranking.ties import descending_ids, stored_scores


def test_ids_compare_by_their_bytes():
    ids = ["a", "Z", "é", "z", "中", "𝒳", "10", "9", "﹏"]
    place = descending_ids(text_array(ids))
    by_bytes = sorted(ids, key=lambda text: text.encode(), reverse=True)
    assert [by_bytes[at] for at in place] == ids


def test_scores_beyond_single_precision_are_rounded_and_may_be_infinite():
    scores = np.array([1.0, 1 + 1e-9, 1e300])
    assert list(stored_scores(scores, "float32")) == [1.0, 1.0, np.inf]
    assert stored_scores(scores, "float64") is scores
