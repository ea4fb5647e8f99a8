import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from rankdash.core.sampling.rater_agreement import cohen_kappa

RNG = np.random.default_rng(4)


@pytest.mark.parametrize(("grades", "n"), [(2, 3), (4, 40), (7, 1_000)])
def test_kappa_is_that_of_scikit_learn(grades: int, n: int) -> None:
    first = RNG.integers(0, grades, n).astype(float)
    second = np.where(RNG.random(n) < 0.6, first, RNG.integers(0, grades, n))
    for ours, theirs in (("unweighted", None), ("quadratic", "quadratic")):
        expected = cohen_kappa_score(first.astype(int), second.astype(int), weights=theirs)
        assert cohen_kappa(first, second, ours).kappa == pytest.approx(expected, abs=1e-12)
    assert np.isnan(cohen_kappa(np.zeros(0), np.zeros(0)).kappa)
    same = cohen_kappa(np.ones(5), np.ones(5))
    assert np.isnan(same.kappa) and same.agree == 1


def test_the_interval_of_a_published_table() -> None:
    # Fleiss, Cohen and Everitt 1969, table 1: 200 diagnoses, three categories.
    table = np.array([[106, 10, 4], [22, 28, 10], [2, 12, 6]])
    first, second = (np.repeat(each.ravel(), table.ravel()) for each in np.indices((3, 3)))
    found = cohen_kappa(first.astype(float), second.astype(float))
    assert found.kappa == pytest.approx(0.429, abs=5e-4)
    assert (found.high - found.low) / (2 * 1.959964) == pytest.approx(0.002885**0.5, abs=5e-5)
    assert found.table.tolist() == table.tolist()
    assert found.agree == pytest.approx(0.70)


def test_no_interval_reaches_beyond_what_a_kappa_can_be() -> None:
    first, second = np.array([0.0, 1, 0, 1, 2, 2]), np.array([0.0, 1, 1, 0, 2, 1])
    found = cohen_kappa(first, second, clusters=np.array([0, 0, 0, 1, 1, 1]))
    assert (found.low, found.high) == (-1.0, 1.0)
