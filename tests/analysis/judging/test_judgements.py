from dataclasses import replace

import numpy as np
import pandas as pd

from rankdash.core.data.judgements import Judgements
from tests.results import results, several

ROWS = [("q1", "d1", 3.0, ""), ("q1", "d2", np.nan, "timeout"), ("q2", "d1", 0.0, "")]


def made(rows, scale=(0, 3)) -> Judgements:
    columns = ["query_id", "doc_id", "grade", "error"]
    return Judgements("Judge A", scale, pd.DataFrame(rows, columns=columns))


PAIR = ("q1", "d1")
CASES = {
    "pairs without a grade are no labels": lambda: made(ROWS),
    # The absence of an error can be written in several ways.
    **several(
        "no error is {!r}",
        lambda none: made([(*PAIR, 1, none), ("q1", "d2", None, "unreadable")]),
        (None, np.nan, ""),
    ),
    "no pairs": lambda: made([]),
    "a pair twice": lambda: made([*ROWS, ("q1", "d2", 1.0, "")]),
    "beyond the scale": lambda: made([(*PAIR, 4.0, "")]),
    "infinite": lambda: made([(*PAIR, float("inf"), "")]),
    "neither a grade nor an error": lambda: made([*ROWS, ("q2", "d2", np.nan, "")]),
    "both": lambda: made([(*PAIR, 2.0, "timeout")]),
    **{
        f"a scale of {scale}": lambda scale=scale: made(ROWS, scale)
        for scale in ((3, 0), (1, 1), (0, float("inf")), (float("nan"), 3))
    },
}


def told(found: Judgements) -> tuple[object, ...]:
    assert found.table["grade"].dtype == np.float64
    return len(found), found.failed, found.table, "labels", found.graded


def test_grades_are_taken_or_broken_promises_are_named(approved) -> None:
    approved("analysis/judgements", results(CASES, told))


def test_the_id_is_that_of_the_content_which_nothing_outside_changes() -> None:
    table = pd.DataFrame(ROWS, columns=["query_id", "doc_id", "grade", "error"])
    found = Judgements("Judge A", (0, 3), table)
    table.loc[0, "grade"] = 1.0
    assert found.table["grade"].iloc[0] == 3.0
    assert found.id == made(ROWS).id == made(ROWS[::-1]).id
    others = [replace(found, **{name: value}) for name, value in
              {"name": "Judge B", "scale": (0, 4), "model": "gpt-4o"}.items()]  # fmt: skip
    others.append(made([*ROWS[:2], ("q2", "d1", 1.0, "")]))
    assert found.id not in [each.id for each in others]
