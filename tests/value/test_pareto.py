"""Which options no other beats."""

from hypothesis import given
from hypothesis import strategies as st

from rankdash.value.pareto import pareto


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8))
def test_on_the_front_is_what_no_other_beats(points: list[tuple[int, int]]):
    costs, qualities = zip(*points, strict=True)
    front = pareto(costs, qualities)
    for (cost, quality), on in zip(points, front, strict=True):
        beaten = any(c <= cost and q >= quality and (c < cost or q > quality) for c, q in points)
        assert on == (not beaten)


def test_an_unknown_cost_is_never_on_the_front():
    assert list(pareto([float("nan"), 1.0], [0.9, 0.5])) == [False, True]


def test_what_has_no_cost_or_no_quality_that_is_known_is_not_on_the_front():
    nan = float("nan")
    assert pareto([1.0, nan, 0.5, 2.0], [0.5, 0.9, nan, 0.4]).tolist() == [
        True, False, False, False
    ]  # fmt: skip


def test_cheaper_or_better_is_enough_and_as_good_at_the_same_cost_beats_nothing():
    assert pareto([1.0, 2.0, 1.0, 1.0], [0.5, 0.5, 0.4, 0.5]).tolist() == [True, False, False, True]
    assert pareto([1.0, 2.0], [0.5, 0.6]).tolist() == [True, True]
    assert pareto([], []).tolist() == []
