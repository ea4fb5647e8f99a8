"""Whose loss it is: the parts sum to what is lost, and each boundary from both sides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.analysis.reasons.fault import FAULTS, MOST, fault
from rankdash.analysis.statistics.pairs import TIE_BAND

VALUES = st.floats(0, 1)


@pytest.mark.parametrize(
    ("value", "condensed", "best", "perfect", "code"),
    [
        (0.2, 0.2, 0.4, 1.0, "retriever"),
        (0.2, 0.2, 0.8, 1.0, "reranker"),
        (0.2, 0.9, 1.0, 1.0, "labels"),
        (0.2, 0.5, 0.7, 1.0, "mixed"),
        (1.0, 1.0, 1.0, 1.0, "none"),
        (0.0, 0.0, 0.0, 1.0, "retriever"),
    ],
)
def test_the_part_that_makes_most_of_the_loss_has_the_fault(value, condensed, best, perfect, code):
    found = fault(value, condensed, best, perfect)
    assert found.code == code
    assert sum(found.parts.values()) == pytest.approx(found.lost) == pytest.approx(perfect - value)


@pytest.mark.parametrize(
    ("best", "code"), [(0.5, "mixed"), (0.51, "reranker"), (0.49, "retriever")]
)
def test_exactly_half_is_not_most(best, code):
    assert MOST == 0.5
    assert fault(0.0, 0.0, best, 1.0).code == code


@pytest.mark.parametrize(("condensed", "code"), [(0.5, "mixed"), (0.51, "labels")])
def test_exactly_half_by_labels_is_not_most(condensed, code):
    assert fault(0.0, condensed, 1.0, 1.0).code == code


@pytest.mark.parametrize(("value", "code"), [(0.95, "none"), (0.949, "reranker")])
def test_a_loss_of_exactly_the_tie_band_is_none(value, code):
    assert fault(value, value, 1.0, 1.0, tie_band=0.05).code == code


@pytest.mark.parametrize(("lost", "code"), [(TIE_BAND, "none"), (TIE_BAND + 1e-4, "reranker")])
def test_the_tie_band_is_that_of_verdicts_unless_another_is_given(lost, code):
    assert fault(1 - lost, 1 - lost, 1.0, 1.0).code == code


@pytest.mark.parametrize("perfect", [0.5, 0.8])
def test_a_value_above_the_perfect_one_lost_nothing(perfect):
    found = fault(0.8, 0.9, 0.9, perfect)
    assert (found.code, found.lost, set(found.parts.values())) == ("none", 0.0, {0.0})


def test_a_list_without_its_unlabelled_documents_is_no_better_than_the_best_order():
    """A list may be reranked less deep than it is long."""
    found = fault(0.2, 0.9, 0.6, 1.0)
    assert found.parts == pytest.approx({"retriever": 0.4, "labels": 0.4, "reranker": 0.0})


@given(VALUES, VALUES, VALUES, VALUES)
def test_whatever_the_numbers_parts_are_no_debts_and_sum_to_the_loss(
    value, condensed, best, perfect
):
    found = fault(value, condensed, best, perfect)
    assert found.code in FAULTS
    assert min(found.parts.values()) >= 0
    assert sum(found.parts.values()) == pytest.approx(found.lost)
