import math

import pytest

from rankdash.ranking.measured import Measured, meets


@pytest.mark.parametrize(
    ("seconds", "cpu_seconds", "threads", "contended"),
    [
        # From a second on, latencies included.
        ((1.0, 0.0), (1.0, 0.0), 2, True),
        ((0.5, 0.5), (0.5, 0.5), 2, True),
        ((0.5, 0.25), (0.5, 0.25), 2, False),
        ((0.5, 0.49), (0.0, 0.0), 2, False),
        # Below seven tenths of the threads, whatever kept them busy.
        ((1.0, 1.0), (2.0, 0.75), 2, True),
        ((1.0, 1.0), (2.0, 0.8), 2, False),
        ((1.0, 1.0), (0.75, 2.0), 2, True),
        # Work that is done elsewhere keeps no thread of this machine busy.
        ((1.0, 1.0), (0.0, 0.0), 0, False),
    ],
)
def test_a_run_is_contended_where_its_threads_were_not_kept_busy(
    seconds, cpu_seconds, threads, contended
):
    measured = Measured(
        seconds=seconds[0],
        serial_seconds=seconds[1],
        cpu_seconds=cpu_seconds[0],
        serial_cpu_seconds=cpu_seconds[1],
        threads=threads,
    )
    assert measured.contended is contended


@pytest.mark.parametrize(("share", "illiterate"), [(0.1, False), (0.1001, True), (math.nan, False)])
def test_a_model_is_illiterate_above_a_tenth_of_unknown_tokens(share, illiterate):
    assert Measured(unknown_tokens=share).illiterate is illiterate


def test_what_was_not_measured_has_no_throughput():
    found = Measured(pairs=4, computed_tokens=20.0, seconds=2.0)
    assert (found.pairs_per_second, found.tokens_per_second) == (2.0, 10.0)
    # All came from the cache, or nothing was timed.
    assert math.isnan(Measured(pairs=0, seconds=2.0).pairs_per_second)
    assert math.isnan(Measured(pairs=4, computed_tokens=20.0).pairs_per_second)
    assert math.isnan(Measured(pairs=4, computed_tokens=20.0).tokens_per_second)
    assert math.isnan(Measured().cpu_per_wall)


@pytest.mark.parametrize(
    ("taken", "within"),
    [(499.9, True), (500.0, True), (500.0 + 1e-10, True), (500.001, False), (math.inf, False)],
)
def test_exactly_the_limit_is_within_it_and_the_last_digit_of_a_sum_decides_nothing(taken, within):
    assert meets(taken, 500.0) is within


def test_nothing_is_beyond_a_limit_that_nobody_set_and_what_was_not_measured_meets_none():
    assert meets(1e9, math.inf)
    assert meets(0.0, 0.0), "what costs nothing is within a budget of nothing"
    assert not meets(math.nan, 500.0)


def test_less_than_a_second_is_a_time_too():
    found = Measured(pairs=1, computed_tokens=3.0, seconds=0.5, cpu_seconds=0.25)
    assert (found.pairs_per_second, found.tokens_per_second) == (2.0, 6.0)
    assert found.cpu_per_wall == 0.5
    latencies = Measured(serial_seconds=0.5, serial_cpu_seconds=0.25, cpu_seconds=0.5)
    assert latencies.cpu_per_wall == 1.5


def test_what_a_run_of_an_older_version_does_not_tell():
    found = Measured()
    assert (found.repeats, found.without_text, found.throughput) == (1, "exclude", ())
    assert math.isnan(found.unknown_tokens) and not found.illiterate and not found.contended
