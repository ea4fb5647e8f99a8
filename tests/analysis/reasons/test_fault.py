"""The stage that causes a loss: the parts sum to the loss, and each boundary from both sides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.core.base.rules import TIE_BAND
from rankdash.core.study.reasons.reasons import FAULTS, MOST, fault
from tests.results import results

VALUES = st.floats(0, 1)
# value, condensed, best and perfect.
CASES = {
    "most is not among the candidates": (0.2, 0.2, 0.4, 1.0),
    "most is in another order": (0.2, 0.2, 0.8, 1.0),
    "most is not labelled": (0.2, 0.9, 1.0, 1.0),
    "no part is most": (0.2, 0.5, 0.7, 1.0),
    "nothing is lost": (1.0, 1.0, 1.0, 1.0),
    "nothing relevant was retrieved": (0.0, 0.0, 0.0, 1.0),
    "exactly half by the retriever": (0.0, 0.0, 0.5, 1.0),
    "less by the retriever": (0.0, 0.0, 0.51, 1.0),
    "more by the retriever": (0.0, 0.0, 0.49, 1.0),
    "exactly half by labels": (0.0, 0.5, 1.0, 1.0),
    "more by labels": (0.0, 0.51, 1.0, 1.0),
    "a tie band": (1 - TIE_BAND, 1 - TIE_BAND, 1.0, 1.0),
    "more than a tie band": (1 - TIE_BAND - 1e-4, 1 - TIE_BAND - 1e-4, 1.0, 1.0),
    "above the perfect value": (0.8, 0.9, 0.9, 0.5),
    "at the perfect value": (0.8, 0.9, 0.9, 0.8),
    # A list may be reranked less deep than it is long.
    "condensed, better than the best order": (0.2, 0.9, 0.6, 1.0),
}


def test_the_part_that_makes_most_of_the_loss_has_the_fault(approved):
    assert MOST == 0.5
    wide = {
        f"{value} with a band of 0.05": fault(value, value, 1.0, 1.0, tie_band=0.05)
        for value in (0.95, 0.949)
    }
    approved("analysis/fault", results({name: fault(*each) for name, each in CASES.items()} | wide))


@given(VALUES, VALUES, VALUES, VALUES)
def test_whatever_the_numbers_parts_are_no_debts_and_sum_to_the_loss(
    value, condensed, best, perfect
):
    found = fault(value, condensed, best, perfect)
    assert found.code in FAULTS
    assert min(found.parts.values()) >= 0
    assert sum(found.parts.values()) == pytest.approx(found.lost)
    assert found.lost == pytest.approx(max(perfect - value, 0))
