import math

from rankdash.core.data.measured import Measured, meets
from tests.results import results


def busy(seconds, cpu_seconds, threads) -> Measured:
    """Return measurements. The first value is of the whole run, the second of the latencies."""
    whole, serial = seconds
    cpu, serial_cpu = cpu_seconds
    return Measured(seconds=whole, serial_seconds=serial, cpu_seconds=cpu,
                    serial_cpu_seconds=serial_cpu, threads=threads)  # fmt: skip


RUNS = {
    # One second or more, latencies included.
    "a second": busy((1.0, 0.0), (1.0, 0.0), 2),
    "a second in two parts": busy((0.5, 0.5), (0.5, 0.5), 2),
    "three quarters": busy((0.5, 0.25), (0.5, 0.25), 2),
    "less than a second, idle": busy((0.5, 0.49), (0.0, 0.0), 2),
    # Below seven tenths of the threads, by any part of the run.
    "less than seven tenths": busy((1.0, 1.0), (2.0, 0.75), 2),
    "seven tenths": busy((1.0, 1.0), (2.0, 0.8), 2),
    "less, by latencies": busy((1.0, 1.0), (0.75, 2.0), 2),
    # Work on another machine uses no thread of this one.
    "elsewhere": busy((1.0, 1.0), (0.0, 0.0), 0),
    **{f"{share} of tokens unknown": Measured(unknown_tokens=share)
       for share in (0.1, 0.1001, math.nan)},
    "two seconds": Measured(pairs=4, computed_tokens=20.0, seconds=2.0),
    # All scores came from the cache, or nothing was timed.
    "no pairs": Measured(pairs=0, seconds=2.0),
    "no seconds": Measured(pairs=4, computed_tokens=20.0),
    "less than a second is a time too": Measured(
        pairs=1, computed_tokens=3.0, seconds=0.5, cpu_seconds=0.25
    ),
    "latencies": Measured(serial_seconds=0.5, serial_cpu_seconds=0.25, cpu_seconds=0.5),
    "of an older version": Measured(),
}  # fmt: skip
# The last digit of a sum decides nothing; what costs nothing is within a budget of nothing.
LIMITS = ((499.9, 500.0), (500.0, 500.0), (500.0 + 1e-10, 500.0), (500.001, 500.0),
          (math.inf, 500.0), (1e9, math.inf), (0.0, 0.0), (math.nan, 500.0))  # fmt: skip


def test_what_a_run_measured_says_of_it(approved):
    names = ("contended", "illiterate", "pairs_per_second", "tokens_per_second", "cpu_per_wall",
             "repeats", "without_text", "throughput", "unknown_tokens")  # fmt: skip
    runs = results(RUNS, lambda run: {name: getattr(run, name) for name in names})
    limits = {f"{taken} of {limit}": meets(taken, limit) for taken, limit in LIMITS}
    approved("ranking/measured", f"{runs}\n{results(limits)}")
