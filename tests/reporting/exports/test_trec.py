"""trec_eval reads a written run as the same ranking as rankdash."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.base.errors import DataError
from rankdash.core.data.ranking import Ranking
from rankdash.kit.html import tables
from rankdash.kit.html.tables import falling, qrels_bytes, run_bytes, write_run
from tests.lists import ranking

SCORES = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40)


@given(SCORES, st.integers(0, 5))
def test_scores_strictly_fall_in_single_precision(scores: list[float], unscored: int):
    given_scores = np.array(sorted(scores, reverse=True) + [np.nan] * unscored)
    fallen = falling(given_scores)
    written = np.array([float(repr(score)) for score in fallen.tolist()], dtype=np.float32)
    assert np.isfinite(written).all()
    assert (np.diff(written.astype(np.float64)) < 0).all()


def test_scores_that_fall_are_kept_and_ties_move_down_by_as_little_as_can_be():
    assert falling(np.array([2.5, 0.25, -3.0])).tolist() == [2.5, 0.25, -3.0]
    # Scores outside of single precision are replaced by ranks from the end.
    assert falling(np.array([1e300, 1.0, np.nan])).tolist() == [3.0, 2.0, 1.0]
    fallen = falling(np.array([1.0, 1.0, 1.0, 0.5]))
    assert fallen[0] == 1.0 > fallen[1] > fallen[2] > 0.999
    assert fallen[3] == 0.5


def test_a_run_has_the_order_of_the_ranking_its_scores_and_its_name_in_one_word(tmp_path: Path):
    scores = [2 / 3, 1 / 3 + 1e-12, 1e-300]
    made = Ranking.from_lists([("q2", ["b", "a", "c"], scores), ("q1", ["a"], [0.25])])
    write_run(made, tmp_path / "x.trec", " my\nmodel ")
    rows = [line.split() for line in (tmp_path / "x.trec").read_text().splitlines()]
    assert [(row[0], row[2], row[3]) for row in rows] == [
        ("q2", "b", "1"), ("q2", "a", "2"), ("q2", "c", "3"), ("q1", "a", "1")
    ]  # fmt: skip
    assert [float(row[4]) for row in rows] == [*scores, 0.25]
    assert {row[5] for row in rows} == {"my-model"}
    assert run_bytes(ranking(q="d"), " ").endswith(b" rankdash\n")


def test_labels_are_whole_numbers_where_they_are_and_else_written_to_the_last_digit():
    qrels = pd.DataFrame({"query_id": "q", "doc_id": list("abc"), "label": [1.0, -1.0, 2 / 3]})
    assert qrels_bytes(qrels) == f"q 0 a 1\nq 0 b -1\nq 0 c {2 / 3:.17g}\n".encode()
    for name in ("query_id", "doc_id"):
        with pytest.raises(DataError, match="contains blanks"):
            qrels_bytes(qrels.assign(**{name: "a b"}))


def test_what_is_broken_off_leaves_what_was_there(tmp_path: Path, monkeypatch):
    def broken(scores: np.ndarray) -> np.ndarray:
        if scores[0] == 2.0:
            raise OSError("no room")
        return falling(scores)

    monkeypatch.setattr(tables, "falling", broken)
    path = tmp_path / "x.trec"
    path.write_text("before")
    with pytest.raises(OSError, match="no room"):
        write_run(Ranking.from_lists([("q", ["d"], [1.0]), ("r", ["d"], [2.0])]), path, "x")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"x.trec": "before"}


@pytest.mark.parametrize(
    ("query", "doc"), [("q 1", "d"), ("q", "d\t1"), ("q", "d\n"), ("", "d"), ("q", "")]
)
def test_an_id_with_a_blank_is_refused_and_nothing_is_written(tmp_path: Path, query: str, doc: str):
    path = tmp_path / "x.trec"
    path.write_text("before")
    with pytest.raises(DataError, match="contains blanks"):
        write_run(Ranking.from_lists([(query, [doc], [1.0])]), path, "x")
    assert path.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["x.trec"]
