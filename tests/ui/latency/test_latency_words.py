"""Times beside each other, cut texts, throughput and the machine, in words."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest

from rankdash.ui.latency import latency_readout, latency_view, throughput_view, tokens_view

STUDY = SimpleNamespace(name=str.upper)


def timed(p50: float, **more: object) -> SimpleNamespace:
    return SimpleNamespace(summary=SimpleNamespace(p50=p50), **more)


def test_the_others_are_compared_with_the_fastest_system(paper, monkeypatch):
    drawn, asked = paper(latency_view), []
    monkeypatch.setattr(latency_view.latency, "ratio", lambda _s, first, each: asked.append(
        (first, each)) or (None if each == "c" else 2.0))  # fmt: skip
    monkeypatch.setattr(latency_view, "_ratio_in_words", lambda _s, first, each, _r: each + first)
    latency_view.compared(STUDY, {"a": timed(9.0), "b": timed(3.0), "c": timed(5.0)})
    assert asked == [("b", "a"), ("b", "c")]
    assert drawn.of("markdown") == ["ab"] and len(drawn.of("caption")) == 1
    latency_view.compared(STUDY, {"a": timed(9.0)})
    assert len(drawn.drawn) == 2


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0%"), (0.004, "0.4%"), (0.094, "9.4%"), (0.2, "20%"), (1.0, "100%")],
)
def test_a_small_share_of_pairs_that_are_cut_is_no_nothing(share, said):
    assert tokens_view._share(share) == said


def test_lengths_end_where_the_next_ones_begin(paper):
    table = pd.DataFrame({"start": [0, 128], "stop": [128, math.inf], "whole": 1, "cut": 0})
    drawn = paper(tokens_view)
    tokens_view._length_table(table)
    [shown] = drawn.of("dataframe")
    assert shown["to"].iloc[0] == 127 and math.isnan(shown["to"].iloc[1])


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ([], "**A**: at no measured level is p95 within 500 ms."),
        ([(1, 10.0, 501.0)], "**A**: at no measured level is p95 within 500 ms."),
        ([(1, 10.0, 100.0), (4, 30.0, 500.0), (8, 50.0, 501.0)], "**A** serves **30 queries/s** "
         "within 500 ms (concurrency 4, p95 500 ms)."),
    ],
)  # fmt: skip
def test_the_throughput_is_the_most_within_the_target(levels, said):
    found = [SimpleNamespace(in_flight=n, queries_per_second=rate, p95_ms=p95, failed=0, queries=9)
             for n, rate, p95 in levels]  # fmt: skip
    measured = SimpleNamespace(system="a", levels=found)
    assert throughput_view._best_in_words(STUDY, measured, 500.0) == said


@pytest.mark.parametrize(
    ("server", "queue", "said"),
    [
        (None, math.nan, []),
        (math.nan, 1.0, []),
        (20.0, math.nan, ["of a call, 20 ms in the model and 5.5 ms on the network"]),
        (20.0, 3.5, ["of a call, 20 ms in the model and 5.5 ms on the network",
                     "3.5 ms in the service's queue"]),
    ],
)  # fmt: skip
def test_the_parts_of_a_call_are_said_where_the_service_told_them(monkeypatch, server, queue, said):
    parts = None if server is None else SimpleNamespace(server=server, rest=5.5, queue=queue)
    monkeypatch.setattr(latency_readout, "call_parts", lambda _run: parts)
    assert latency_readout._of_calls(SimpleNamespace(run=None)) == said


@pytest.mark.parametrize(
    ("p95", "start"),
    [(None, "**A** answers half of 12 queries within 5.5 ms, 4 documents each. p95 needs at "),
     (9.5, "**A** answers 95% of queries within **9.5 ms** (")],
)  # fmt: skip
def test_few_queries_tell_the_median_and_no_p95(p95, start):
    summary = SimpleNamespace(n=12, p50=5.5, p95=p95, p95_interval=(1.0, 12.0))
    times = SimpleNamespace(summary=summary, documents=(4, 4))
    assert latency_readout._answers("A", times, 500.0, 0.95).startswith(start)


def test_the_conditions_of_a_run_are_those_it_recorded():
    run = SimpleNamespace(measured=None, machine={"cpu": "x", "threads": 4})
    assert latency_readout._conditions(SimpleNamespace(run=run)) == {"cpu": "x", "threads": "4"}
    run.measured = SimpleNamespace(threads=2, cpu_per_wall=1.5, load_start=0.5, load_end=2.0)
    found = latency_readout._conditions(SimpleNamespace(run=run))
    assert found["load average, start → end"] == "0.5 → 2.0"
    assert found["processor seconds a second"] == "1.50"
