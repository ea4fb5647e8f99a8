"""Rules on the margin that skip reranking: loss, savings, and expected effect on other queries."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.statistics.inference import intervals
from rankdash.core.study.labelling import TOLERANCE
from rankdash.features.policy.skipping import (
    FEWEST,
    FOLDS,
    Skipping,
    rule_within,
    rules_on,
    saving,
)
from tests.results import results

SETTINGS = StatisticsSettings(resamples=1000)


def made(delta: np.ndarray, margin: np.ndarray) -> tuple[pd.DataFrame, "pd.Series[float]"]:
    ids = [f"q{place}" for place in range(len(delta))]
    pairs = pd.DataFrame(
        {"query_id": ids, "before": 0.4, "after": 0.4 + delta, "delta": delta, "state": "paired"}
    )
    return pairs, pd.Series(margin, index=ids)


def skipping(
    pairs: pd.DataFrame,
    margin: "pd.Series[float]",
    settings: StatisticsSettings,
    tolerance: float = TOLERANCE,
) -> Skipping:
    return rule_within(rules_on(pairs, margin, settings), tolerance)


def telling(n: int = 400, seed: int = 1) -> tuple[pd.DataFrame, "pd.Series[float]"]:
    """Return data in which reranking helps at margins below 0.5, and changes nothing above."""
    rng = np.random.default_rng(seed)
    margin = rng.random(n)
    gain = np.where(margin < 0.5, 0.3, 0.0) + rng.normal(0, 0.02, n)
    return made(gain, margin)


def silent(n: int = 400, seed: int = 2) -> tuple[pd.DataFrame, "pd.Series[float]"]:
    rng = np.random.default_rng(seed)
    return made(rng.normal(0.1, 0.2, n), rng.random(n))


def test_the_mixed_system_is_the_mean_of_what_each_query_was_given():
    pairs, margin = telling(60)
    found = skipping(pairs, margin, SETTINGS)
    gap = margin.to_numpy()
    assert math.isinf(found.curve["threshold"].iloc[0])
    for row in found.curve.itertuples():
        skipped = gap >= row.threshold
        mixed = np.where(skipped, pairs["before"], pairs["after"]).mean()
        assert row.skipped == skipped.sum()
        assert row.share == pytest.approx(skipped.mean())
        assert row.mean == pytest.approx(mixed)
        assert row.change == pytest.approx(mixed - pairs["after"].mean())
        assert row.low <= row.change + 1e-9
        assert row.change <= row.high + 1e-9
        assert row.random == pytest.approx(-row.share * pairs["delta"].mean())
    last = found.curve.iloc[-1]
    assert last["share"] == 1
    assert last["mean"] == pytest.approx(found.first_stage)
    assert found.curve["share"].is_monotonic_increasing


@pytest.mark.parametrize("tolerance", [0.01, 0.02, 0.05, 0.1])
def test_twice_the_tolerance_allows_a_rule_that_skips_more(tolerance):
    """The gain falls steadily with the margin: each rule loses a little more than the last one."""
    margin = np.arange(400) / 400
    found, twice = (
        skipping(*made(0.3 * (1 - margin), margin), SETTINGS, tolerance=times * tolerance)
        for times in (1, 2)
    )
    good = found.curve[found.curve["low"] >= -found.tolerance]
    assert found.rule.share == good["share"].max() < twice.rule.share
    assert found.held_out.share < twice.held_out.share


def test_a_loss_of_just_the_tolerance_is_within_it():
    pairs, margin = made(np.full(40, 0.3), np.arange(40.0))
    found = skipping(pairs, margin, SETTINGS, tolerance=3 / 7 * (1 - 1e-15))
    assert found.tolerance < 0.3
    assert found.rule.share == found.held_out.share == 1
    assert found.holds


def test_a_rule_holds_where_the_lower_end_of_its_change_is_within_the_tolerance():
    found = replace(skipping(*telling(), SETTINGS), tolerance=0.1)
    for low, holds in ((-0.1, True), (-0.1001, False)):
        held_out = replace(found.held_out, change=-0.01, low=low, high=0.02)
        assert replace(found, held_out=held_out).holds is holds
    assert not replace(found, held_out=None).holds


def test_a_margin_that_says_nothing_is_not_said_to_help():
    helps = [skipping(*silent(seed=seed), SETTINGS).margin_helps for seed in range(20)]
    assert sum(helps) <= 3
    found = skipping(*silent(), SETTINGS)
    away = (found.curve["change"] - found.curve["random"]).abs()
    assert away.max() < 0.03
    assert found.advantage == pytest.approx(
        sum(found.curve["change"] - found.curve["random"]) / len(found.curve), abs=1e-9
    )


@pytest.mark.parametrize(("tolerance", "seed"), [(0, 7), (0.02, 7), (0.1, 20), (0.8, 7)])
@pytest.mark.parametrize("drawn", [telling, silent])
def test_each_query_gets_the_last_rule_that_is_safe_on_the_queries_of_other_folds(
    drawn, seed, tolerance
):
    pairs, margin = drawn(200)
    settings = replace(SETTINGS, seed=seed)
    found = skipping(pairs, margin, settings, tolerance)
    folds = np.random.default_rng(seed).permutation(200) % FOLDS
    gap, delta = margin.to_numpy(), pairs["delta"].to_numpy()
    skips = gap[:, None] >= found.curve["threshold"].to_numpy()
    lost = -delta[:, None] * skips
    skipped = np.zeros(200, dtype=bool)
    for fold in range(FOLDS):
        low, _ = intervals(lost[folds != fold], settings)
        skipped |= (folds == fold) & skips[:, np.flatnonzero(low >= -found.tolerance)[-1]]
    assert found.held_out.share == skipped.mean()
    assert found.held_out.change == pytest.approx(-(delta * skipped).mean())


@pytest.mark.parametrize(("helped", "helps"), [(5, False), (7, True)])
def test_a_margin_is_a_guide_where_its_p_is_significant_too(helped, helps):
    """The queries with the smallest margins gain and the others do not change: with few of them the
    interval is above 0 although chance can explain it."""
    delta = np.zeros(60)
    delta[:helped] = 1.0
    found = skipping(*made(delta, np.arange(60.0)), SETTINGS)
    assert found.advantage_low > 0
    assert found.margin_helps is helps
    assert (found.advantage_p <= 0.05) is helps
    looser = skipping(*made(delta, np.arange(60.0)), StatisticsSettings(resamples=1000, level=0.9))
    assert looser.margin_helps


def test_twenty_queries_are_enough_for_a_rule_of_at_most_forty():
    found = [skipping(*telling(FEWEST, seed=seed), SETTINGS) for seed in range(8)]
    assert FEWEST == 20
    assert all(each.held_out is not None for each in found)
    assert sum(each.rule is not None for each in found) >= 5
    for n in (20, 40, 41, 100):
        pairs, margin = made(np.full(n, 0.1), np.random.default_rng(0).permutation(n) / n)
        skipped = rules_on(pairs, margin, SETTINGS).curve["skipped"].to_numpy()
        assert len(skipped) == min(n, 40) + 1
        assert (skipped[0], skipped[1], skipped[-1]) == (0, -(-n // 40), n)
        assert np.ptp(np.diff(skipped)) <= 1


def gaining(mean: float) -> tuple[pd.DataFrame, "pd.Series[float]"]:
    rng = np.random.default_rng(4)
    return made(rng.normal(mean, 0.02, 200), rng.random(200))


def with_gaps() -> tuple[pd.DataFrame, "pd.Series[float]"]:
    """Return ten queries without a margin, and ten without a pair."""
    pairs, margin = telling(60)
    margin.iloc[:10] = math.nan
    pairs.loc[50:, ["after", "delta"]] = math.nan
    return pairs, margin


def run_rows(*latencies: float, state: str = "done", pairs: float = 10.0) -> pd.DataFrame:
    """Return rows of a run; the last query has another state."""
    frame = pd.DataFrame({"latency_ms": latencies, "pairs": pairs, "state": "done"})
    frame.insert(0, "query_id", [f"q{place}" for place in range(len(latencies))])
    frame.loc[len(frame) - 1, "state"] = state
    return frame


# The first and the third query are skipped.
MARGIN = pd.Series([0.9, 0.1, 0.8, 0.2, 0.9], index=["q0", "q1", "q2", "q3", "q4"])
NAN = math.nan
SKIPPED = {
    "reranking does harm": lambda: gaining(-0.1),
    "nothing can be skipped": lambda: gaining(0.3),
    "without a margin a query is reranked, without a pair not counted": with_gaps,
    **{f"{n} queries": lambda n=n: telling(n) for n in (0, 1, 4, FEWEST - 1)},
    "margins that are all alike": lambda: made(np.full(50, 0.1), np.full(50, 0.25)),
    # Significantly worse than chance: the queries that gain have the largest margins.
    "a margin that tells": telling,
    "no guide": lambda: made(np.repeat([0.0, 1.0], [53, 7]), np.arange(60.0)),
}
SAVED = {
    "of four": lambda: run_rows(1.0, 2.0, 3.0, 4.0),
    "of five": lambda: run_rows(1.0, 2.0, 3.0, 4.0, 9.0),
    "without documents": lambda: run_rows(1.0, 2.0, 3.0, 4.0, pairs=0.0),
    "a failed query is no call": lambda: run_rows(NAN, NAN, 3.0, 4.0, 9.0, state="failed"),
    "nothing measured": lambda: run_rows(NAN, NAN, NAN, NAN),
    "a query that was not asked for is no call": lambda: run_rows(1.0, 2.0, 3.0, state="skipped"),
}


def chosen(case: tuple[pd.DataFrame, "pd.Series[float]"]) -> dict[str, object]:
    found = skipping(*case, SETTINGS)
    names = ("n", "no_margin", "rule", "held_out", "holds", "margin_helps")
    return {name: getattr(found, name) for name in names} | {
        "skipped": found.curve["skipped"].iloc[[0, -1]].tolist() if len(found.curve) else [],
        "rules": len(found.curve),
    }


def test_what_may_be_skipped_and_what_that_saves(approved):
    approved("analysis/skipping", results(SKIPPED, chosen))
    approved("analysis/saving", results(SAVED, lambda rows: saving(rows, MARGIN, 0.5)))
