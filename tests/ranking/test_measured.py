import pytest

from rankdash.ranking.measured import Measured


@pytest.mark.parametrize(
    ("seconds", "cpu_seconds", "threads", "contended"),
    [
        # From a second on, latencies included.
        ((1.0, 0.0), (1.0, 0.0), 2, True),
        ((0.5, 0.5), (0.5, 0.5), 2, True),
        ((0.5, 0.25), (0.5, 0.25), 2, False),
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
