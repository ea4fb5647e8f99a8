import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.errors import UnavailableError
from rankdash.rerankers import Request, Scored
from rankdash.rerankers.neural.shared import answer_each, checked, readable


def requests(*names):
    return [Request(name, name, ["d"], ["text"]) for name in names]


def test_only_the_query_that_breaks_the_model_fails():
    def together(asked):
        if any(request.query == "bad" for request in asked):
            raise RuntimeError("\nout of memory\nand a long trace")
        return [Scored(np.ones(1)) for _ in asked]

    first, bad, last = answer_each(requests("one", "bad", "two"), together)
    assert first.error == last.error == ""
    assert bad.error == "out of memory"
    assert np.isnan(bad.scores).all()


def test_an_error_that_is_ours_is_not_taken_for_a_failed_query():
    def together(asked):
        raise UnavailableError("gone")

    with pytest.raises(UnavailableError):
        answer_each(requests("one", "two"), together)


def test_one_score_that_is_not_finite_fails_the_query_and_is_never_zero():
    scored = checked(np.array([1.0, np.inf, 2.0]), None, None, 0.5)
    assert "1 of 3" in scored.error
    assert np.isnan(scored.scores).all()


@given(st.text(st.characters(blacklist_categories=())))
def test_readable_text_can_be_encoded_and_keeps_its_length(text):
    assert len(readable(text)) == len(text)
    readable(text).encode("utf-8")
