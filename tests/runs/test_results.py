"""What came of a query, in numbers that are known or are none."""

import math

import numpy as np
import pytest

from rankdash.runs.results import QueryResult, _reading


def counts(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


@pytest.mark.parametrize(
    ("read", "full", "tokens", "truncated"),
    [
        ((3, 4), (3, 4), 7, 0),
        ((3, 4), (3, 9), 7, 1),
        ((3, 0), (9, 9), 3, 2),
        ((3, -1), (9, 9), math.nan, math.nan),
        ((3, 4), (9, -1), 7, math.nan),
        ((), (), math.nan, math.nan),
    ],
)
def test_tokens_of_which_some_are_unknown_have_no_sum(read, full, tokens, truncated):
    found = QueryResult("q", "done", read=counts(*read), full=counts(*full))
    assert [found.tokens, found.truncated] == pytest.approx([tokens, truncated], nan_ok=True)


def test_a_reading_of_some_queries_is_one():
    known, unknown = counts(2, 3), counts(-1)
    assert _reading([unknown, known], [unknown, known]).read.tolist() == [-1, 2, 3]
    assert _reading([unknown, unknown], [unknown, unknown]) is None
