import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from rankdash.core.data import arrays, ranking
from rankdash.core.data.arrays import Coded


def groups_as_dict(groups, size):
    rows = groups.arrange(np.arange(size))
    spans = zip(groups.offsets[:-1], groups.offsets[1:], strict=True)
    return {
        name: list(rows[a:b]) for name, (a, b) in zip(groups.ids.to_pylist(), spans, strict=True)
    }


@pytest.mark.parametrize("order", ["together", "mixed", "together at first"])
def test_rows_are_grouped_in_order_of_first_appearance(order):
    ids = np.repeat([f"q{n}" for n in range(700)], 10)
    if order == "mixed":
        ids = np.random.default_rng(0).permutation(ids)
    if order == "together at first":
        ids = np.concatenate([ids, ["q0"]])
    expected = {}
    for row, name in enumerate(ids):
        expected.setdefault(str(name), []).append(row)
    found = groups_as_dict(ranking.group_rows(ranking.text_array(ids)), len(ids))
    assert found == expected
    assert list(found) == list(expected)


@pytest.mark.parametrize("ids", [["b", "b", "a", "c", "c"], ["b", "a", "b", "c", "a"]])
def test_codes_are_grouped_as_the_ids_that_they_stand_for(ids):
    """Rows that are already grouped need no separate sort order."""
    texts = ranking.text_array(ids)
    by_text, by_code = ranking.group_rows(texts), ranking.group_rows(Coded.of(texts))
    found = [groups_as_dict(groups, len(ids)) for groups in (by_text, by_code)]
    assert (
        found[0] == found[1] == {each: list(np.flatnonzero(np.array(ids) == each)) for each in ids}
    )
    assert (by_code.rows is None) == (ids == sorted(ids, key=list("bac").index))
    assert ranking.coded(ids).codes.tolist() == Coded.of(texts).codes.tolist()
    known = Coded.of(texts)
    assert ranking.coded(known) is known


def test_ids_are_text_in_one_array_whatever_they_came_as():
    for ids in (["007", "7"], pd.Series(["007", "7"]), np.array(["007", "7"], dtype=object)):
        assert ranking.text_array(ids).to_pylist() == ["007", "7"]
    assert ranking.text_array(pd.Series([7, 8])).to_pylist() == ["7", "8"]
    pieces = pd.concat([pd.Series(["b"], dtype="str"), pd.Series(["a", None], dtype="str")])
    assert ranking.text_array(pieces).equals(
        pa.array(["b", "a", None], ranking.text_array(pieces).type)
    )


@pytest.mark.parametrize("count", [1, 7, 39, 40, 99])
def test_the_best_of_many_are_the_first_of_all_in_order(count):
    scores = np.random.default_rng(3).integers(0, 30, 40).astype(float)
    order = sorted(range(40), key=lambda place: (-scores[place], place))
    assert arrays.best_places(scores, count).tolist() == order[:count]


def test_ids_compare_by_their_bytes():
    ids = ["a", "Z", "é", "z", "中", "𝒳", "10", "9", "﹏"]
    place = arrays.descending_ids(ranking.text_array(ids))
    by_bytes = sorted(ids, key=lambda text: text.encode(), reverse=True)
    assert [by_bytes[at] for at in place] == ids


def test_scores_beyond_single_precision_are_rounded_and_may_be_infinite():
    scores = np.array([1.0, 1 + 1e-9, 1e300])
    assert list(ranking.stored_scores(scores, "float32")) == [1.0, 1.0, np.inf]
    assert ranking.stored_scores(scores, "float64") is scores
