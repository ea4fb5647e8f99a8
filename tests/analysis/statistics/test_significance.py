"""Tests and corrections agree with their references; sizes are computed from paired variances."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankdash.core.statistics.inference import corrected, effect_size, paired_t_p, wilcoxon_p

P_VALUES = st.lists(st.floats(0.0001, 1.0), min_size=1, max_size=8)


def test_p_values_agree_with_scipy():
    differences = np.random.default_rng(4).normal(0.03, 0.2, 60)
    before = np.random.default_rng(8).random(60)
    assert paired_t_p(differences) == pytest.approx(
        stats.ttest_rel(before + differences, before).pvalue
    )
    assert wilcoxon_p(differences) == pytest.approx(stats.wilcoxon(differences).pvalue)
    assert paired_t_p(np.zeros(30)) == wilcoxon_p(np.zeros(30)) == 1.0
    assert effect_size(differences) == pytest.approx(differences.mean() / differences.std(ddof=1))
    assert math.isnan(effect_size(np.full(5, 0.2)))
    alike = np.full(40, 0.1) + np.array([0, 1e-16] * 20)
    assert paired_t_p(alike) < 1e-6 and wilcoxon_p(alike) < 1e-6
    assert math.isnan(effect_size(alike))


@given(P_VALUES)
def test_a_correction_never_helps_keeps_the_order_and_holm_is_the_stricter(p_values):
    order = np.argsort(p_values, kind="stable")
    bh, holm = (np.array(corrected(p_values, method)) for method in ("bh", "holm"))
    assert (np.array(p_values) <= bh).all() and (bh <= holm + 1e-12).all() and (holm <= 1).all()
    for found in (bh, holm):
        assert (np.diff(found[order]) >= -1e-15).all()


@pytest.mark.parametrize(("method", "by_hand"), [("holm", [0.03, 0.06, 0.06]),
                                                 ("bh", [0.03, 0.04, 0.04])])  # fmt: skip
def test_trap_13_corrections_by_hand_without_what_could_not_be_compared(method, by_hand):
    assert corrected([0.01, 0.04, 0.03], method) == pytest.approx(by_hand)
    with_gap = corrected([0.01, math.nan, 0.04, 0.03], method)
    assert with_gap == pytest.approx([by_hand[0], math.nan, *by_hand[1:]], nan_ok=True)
