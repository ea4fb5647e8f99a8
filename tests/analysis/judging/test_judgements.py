from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.judging.judgements import Judgements
from rankdash.errors import DataError

ROWS = [("q1", "d1", 3.0, ""), ("q1", "d2", np.nan, "timeout"), ("q2", "d1", 0.0, "")]


def made(rows, scale=(0, 3)) -> Judgements:
    columns = ["query_id", "doc_id", "grade", "error"]
    return Judgements("Judge A", scale, pd.DataFrame(rows, columns=columns))


def test_pairs_without_a_grade_are_no_labels() -> None:
    found = made(ROWS)
    assert len(found) == 3
    assert found.failed == 1
    assert found.graded.to_dict("list") == {
        "query_id": ["q1", "q2"],
        "doc_id": ["d1", "d1"],
        "label": [3.0, 0.0],
    }


def test_what_is_changed_outside_changes_nothing_within() -> None:
    table = pd.DataFrame(ROWS, columns=["query_id", "doc_id", "grade", "error"])
    found = Judgements("Judge A", (0, 3), table)
    table.loc[0, "grade"] = 1.0
    assert found.table["grade"].iloc[0] == 3.0


@pytest.mark.parametrize("none", [None, np.nan, ""])
def test_no_error_may_be_written_in_several_ways(none) -> None:
    found = made([("q1", "d1", 1, none), ("q1", "d2", None, "unreadable")])
    assert found.table["error"].tolist() == ["", "unreadable"]
    assert found.table["grade"].dtype == np.float64


def test_the_id_is_that_of_the_content() -> None:
    found = made(ROWS)
    assert made(ROWS[::-1]).id == found.id
    assert made(ROWS, scale=(0, 4)).id != found.id
    assert made([*ROWS[:2], ("q2", "d1", 1.0, "")]).id != found.id
    assert Judgements("Judge B", (0, 3), found.table).id != found.id
    assert replace(found, model="gpt-4o").id != found.id


def test_no_pairs_at_all() -> None:
    found = made([])
    assert len(found) == len(found.graded) == found.failed == 0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [*ROWS, ("q1", "d2", 1.0, "")],
            "The judge 'Judge A' has two rows for the document 'd2' of the query 'q1'. "
            "Keep one row for each pair.",
        ),
        (
            [("q1", "d1", 4.0, "")],
            "The judge 'Judge A' gave 4 to the document 'd1' of the query 'q1', outside of its "
            "scale from 0 to 3. Give the scale that the judge was asked to use.",
        ),
        (
            [("q1", "d1", float("inf"), "")],
            "The judge 'Judge A' gave inf to the document 'd1' of the query 'q1', outside of its "
            "scale from 0 to 3. Give the scale that the judge was asked to use.",
        ),
        (
            [*ROWS, ("q2", "d2", np.nan, "")],
            "The judge 'Judge A' has neither a grade nor an error for the document 'd2' of the "
            "query 'q2'. Give a grade, or say why there is none.",
        ),
        (
            [("q1", "d1", 2.0, "timeout")],
            "The judge 'Judge A' has both a grade and an error for the document 'd1' of the query "
            "'q1'. Keep one of them.",
        ),
    ],
)
def test_broken_promises_are_named(rows, said: str) -> None:
    with pytest.raises(DataError) as raised:
        made(rows)
    assert str(raised.value) == said


@pytest.mark.parametrize("scale", [(3, 0), (1, 1), (0, float("inf")), (float("nan"), 3)])
def test_a_scale_has_a_width(scale) -> None:
    with pytest.raises(DataError, match="scale of the judge 'Judge A'"):
        made(ROWS, scale)
