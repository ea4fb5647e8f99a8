"""A written run says to trec_eval exactly what the ranking says here."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.errors import DataError
from rankdash.ranking.ranking import Ranking
from rankdash.reporting.exports.trec import falling, write_run

SCORES = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40)


@given(SCORES, st.integers(0, 5))
def test_scores_strictly_fall_in_single_precision(scores: list[float], unscored: int):
    given_scores = np.array(sorted(scores, reverse=True) + [np.nan] * unscored)
    fallen = falling(given_scores)
    written = np.array([float(repr(score)) for score in fallen.tolist()], dtype=np.float32)
    assert np.isfinite(written).all()
    assert (np.diff(written.astype(np.float64)) < 0).all()


def test_scores_that_fall_already_are_kept():
    assert falling(np.array([2.5, 0.25, -3.0])).tolist() == [2.5, 0.25, -3.0]


def test_scores_are_written_in_double_precision(tmp_path: Path):
    scores = [2 / 3, 1 / 3 + 1e-12, 1e-300]
    path = tmp_path / "x.trec"
    write_run(Ranking.from_lists([("q", ["a", "b", "c"], scores)]), path, "fused")
    assert [float(line.split()[4]) for line in path.read_text().splitlines()] == scores


def test_ties_move_down_by_as_little_as_can_be():
    fallen = falling(np.array([1.0, 1.0, 1.0, 0.5]))
    assert fallen[0] == 1.0 > fallen[1] > fallen[2] > 0.999
    assert fallen[3] == 0.5


def test_a_run_read_back_has_the_same_order(tmp_path: Path):
    ranking = Ranking.from_lists(
        [("q2", ["b", "a", "c"], [1.0, 1.0, float("nan")]), ("q1", ["a"], [0.25])]
    )
    path = tmp_path / "x.trec"
    write_run(ranking, path, "my model")
    rows = [line.split() for line in path.read_text().splitlines()]
    assert [(row[0], row[2], row[3]) for row in rows] == [
        ("q2", "b", "1"),
        ("q2", "a", "2"),
        ("q2", "c", "3"),
        ("q1", "a", "1"),
    ]
    assert {row[5] for row in rows} == {"my-model"}
    again = Ranking.from_columns(
        [row[0] for row in rows], [row[2] for row in rows], [float(row[4]) for row in rows],
        ties="trec",
    )  # fmt: skip
    assert again.documents_of("q2")[0] == ["b", "a", "c"]
    assert not again.tied.any()


@pytest.mark.parametrize(("query", "doc"), [("q 1", "d"), ("q", "d\t1"), ("q", "d\n")])
def test_an_id_with_a_blank_is_refused_and_nothing_is_written(tmp_path: Path, query: str, doc: str):
    path = tmp_path / "x.trec"
    path.write_text("before")
    with pytest.raises(DataError, match="without blanks"):
        write_run(Ranking.from_lists([(query, [doc], [1.0])]), path, "x")
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["x.trec"]
