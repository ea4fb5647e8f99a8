import numpy as np
import pandas as pd
import pytest

from rankdash.core.sampling.bias_corrected import correct, ranked_judges
from rankdash.core.sampling.rater_agreement import agreement
from tests.analysis.judging.test_agreement import judged

LABELS = pd.DataFrame(
    [(f"q{n}", "d", float(n % 4)) for n in range(20)], columns=["query_id", "doc_id", "label"]
)


def made(name: str, noise: float, off: int):
    """Return a judge: human changes plus noise, and the first `off` pairs graded wrong."""
    rng = np.random.default_rng(3)
    people = rng.normal(0.1, 0.4, 220)
    judge = people + noise * np.random.default_rng(4).normal(0, 0.4, 220)
    people[20:] = np.nan
    rows = [
        (query, doc, 3 - label if at < off else label)
        for at, (query, doc, label) in enumerate(LABELS.itertuples(index=False))
    ]
    agreed = agreement(judged(rows, name=name), LABELS, threshold=1)
    return correct(people, judge, level=0.95), agreed


def test_the_judge_that_saves_most_comes_first_whatever_its_kappa() -> None:
    judges = {"agrees": made("agrees", 2.0, 1), "saves": made("saves", 0.3, 9)}
    none = correct(np.full(30, np.nan), np.zeros(30), level=0.95), judges["saves"][1]
    table = ranked_judges({"none": none} | judges)
    assert table["judge"].tolist() == ["saves", "agrees", "none"]
    assert np.isnan(table["saved"].iloc[2])
    assert ranked_judges({}).empty
    table = table[:2]
    assert table["kappa"].is_monotonic_increasing
    assert table["saved"].is_monotonic_decreasing
    for row in table.itertuples():
        correction, agreed = judges[row.judge]
        assert row.kappa == agreed.unweighted.kappa
        assert row.over + row.under == pytest.approx(1 - agreed.unweighted.agree)
        assert row.worth == pytest.approx((row.people_error / row.error) ** 2)
        assert row.saved == pytest.approx(20 * (row.worth - 1))
        assert (row.low, row.corrected, row.high) == (
            correction.corrected.low,
            correction.corrected.mean,
            correction.corrected.high,
        )
        assert (row.people_queries, row.others, row.pairs) == (20, 200, 20)
