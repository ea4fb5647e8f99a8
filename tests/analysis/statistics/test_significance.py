"""Tests and corrections agree with their references; sizes come from paired variances."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankdash.analysis.statistics.significance import (
    corrected,
    effect_size,
    paired_t_p,
    wilcoxon_p,
)

P_VALUES = st.lists(st.floats(0.0001, 1.0), min_size=1, max_size=8)


@pytest.fixture
def differences() -> np.ndarray:
    return np.random.default_rng(4).normal(0.03, 0.2, 60)


def test_p_values_agree_with_scipy(differences):
    before = np.random.default_rng(8).random(60)
    assert paired_t_p(differences) == pytest.approx(
        stats.ttest_rel(before + differences, before).pvalue
    )
    assert wilcoxon_p(differences) == pytest.approx(stats.wilcoxon(differences).pvalue)
    assert paired_t_p(np.zeros(30)) == wilcoxon_p(np.zeros(30)) == 1.0
    assert effect_size(differences) == pytest.approx(differences.mean() / differences.std(ddof=1))
    assert math.isnan(effect_size(np.full(5, 0.2)))


@pytest.mark.parametrize("test", [paired_t_p, wilcoxon_p])
def test_a_true_null_is_rejected_as_often_as_promised(test):
    """1,000 sets of 60 queries, a third of them unchanged, the others as often up as down: three
    standard errors around 5 % are 2.9 % to 7.1 %."""
    rng = np.random.default_rng(6)
    size = rng.beta(1, 4, (1000, 60)) * rng.choice([-1.0, 1.0], (1000, 60))
    sets = np.where(rng.random((1000, 60)) < 0.3, 0.0, size)
    rejected = np.mean([test(one) <= 0.05 for one in sets])
    assert 0.029 <= rejected <= 0.071


@pytest.mark.parametrize("test", [paired_t_p, wilcoxon_p])
def test_differences_that_are_all_alike_but_for_rounding_give_no_warning(test):
    alike = np.full(40, 0.1) + np.array([0, 1e-16] * 20)
    assert test(alike) < 1e-6
    assert math.isnan(effect_size(alike))


@given(P_VALUES)
def test_a_correction_never_helps_and_keeps_the_order(p_values):
    for method in ("holm", "bh"):
        result = corrected(p_values, method)
        assert all(0 <= new <= 1 and new >= old for new, old in zip(result, p_values, strict=True))
        order = np.argsort(p_values, kind="stable")
        assert all(np.diff(np.array(result)[order]) >= -1e-15)


@given(P_VALUES)
def test_benjamini_hochberg_is_never_stricter_than_holm(p_values):
    pairs = zip(corrected(p_values, "bh"), corrected(p_values, "holm"), strict=True)
    assert all(bh <= holm + 1e-12 for bh, holm in pairs)


@pytest.mark.parametrize(("method", "by_hand"), [("holm", [0.03, 0.06, 0.06]),
                                                 ("bh", [0.03, 0.04, 0.04])])  # fmt: skip
def test_trap_13_corrections_by_hand_without_what_could_not_be_compared(method, by_hand):
    assert corrected([0.01, 0.04, 0.03], method) == pytest.approx(by_hand)
    with_gap = corrected([0.01, math.nan, 0.04, 0.03], method)
    assert with_gap == pytest.approx([by_hand[0], math.nan, *by_hand[1:]], nan_ok=True)
