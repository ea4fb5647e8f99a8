"""The lines that a system has on the page Latency: which facts, and when each is said."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from rankdash.ui.latency import latency_readout


def times(measured: dict | None = None, load_ms: float = math.nan, **changes) -> SimpleNamespace:
    usual = {"p50": 10.0, "p95": 40.0, "p99": None, "mean": 15.0, "deviation": 5.0, "n": 40,
             "p95_interval": (30.0, 60.0)}  # fmt: skip
    known = {"contended": False, "pairs_per_second": math.nan, "index_seconds": 0.0, "threads": 2,
             "cpu_per_wall": 1.0}  # fmt: skip
    return SimpleNamespace(
        summary=SimpleNamespace(**(usual | changes)), documents=(10, 10),
        run=SimpleNamespace(
            load_ms=load_ms,
            measured=None if measured is None else SimpleNamespace(**(known | measured)),
        ),
        ordered=np.arange(40.0), apart=SimpleNamespace(timed_out=0),
    )  # fmt: skip


@pytest.fixture
def said(paper, monkeypatch):
    """The badges and the facts of a system; met: how it does on the target."""

    def of(given, met="meets", where="", parts=""):
        found = met and SimpleNamespace(kind=met, within=38, n=40)
        monkeypatch.setattr(latency_readout, "on_target", lambda *_a, **_k: found)
        monkeypatch.setattr(latency_readout, "where_measured", lambda _run: where)
        monkeypatch.setattr(latency_readout, "left_out_of_times", lambda *_a: parts)
        monkeypatch.setattr(latency_readout, "call_parts", lambda _run: None)
        drawn = paper(latency_readout)
        latency_readout._one("A", given, 50.0, 0.95)
        [caption] = drawn.of("caption")
        first, *lines = caption.split("  \n")
        return drawn.of("badge"), first.split(" · "), lines

    return of


MEAN = "mean 15 ms, standard deviation 5 ms"


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        (times(), ["no p99: needs 1,000 queries", MEAN]),
        (times(p99=45.0), ["p99 45 ms", MEAN]),
        (times(deviation=math.nan), ["no p99: needs 1,000 queries", "mean 15 ms"]),
        (times(load_ms=2000.0), ["no p99: needs 1,000 queries", MEAN,
                                 "cold start 2.0 s, not included"]),
        (times({}), ["no p99: needs 1,000 queries", MEAN]),
        (times({"pairs_per_second": 20.0}), ["no p99: needs 1,000 queries", MEAN,
                                             "20 pairs/s over the whole run"]),
        (times({"pairs_per_second": 20.0, "index_seconds": 1.0}), [
            "no p99: needs 1,000 queries", MEAN,
            "20 pairs/s over the whole run, preparation included"]),
    ],
)  # fmt: skip
def test_the_facts_of_a_system_are_those_it_measured(said, given, facts):
    assert said(given) == (["meets 50 ms"], ["38 of 40 within the target", *facts], [])
    badges, first, _lines = said(given, met=None)
    assert badges == [] and first == facts


def test_a_busy_machine_is_a_badge_and_a_share_of_its_threads(said):
    badges, _facts, lines = said(times({"contended": True}))
    assert badges == ["meets 50 ms", "on a busy machine"]
    assert lines == [
        "The machine was busy: scoring had 50% of its 2 threads. On an idle machine these times "
        "may be shorter."
    ]


def test_where_it_was_measured_and_what_is_not_in_the_times_is_said_last(said):
    _badges, _facts, lines = said(times(), where="from a file", parts="2 queries")
    assert lines == ["These times are from a file.", "Not included: 2 queries."]


@pytest.mark.parametrize(
    ("server", "queue", "facts"),
    [
        (None, math.nan, []),
        (math.nan, 1.0, []),
        (30.0, math.nan, ["of a call, 30 ms in the model and 10 ms on the network"]),
        (30.0, 2.0, ["of a call, 30 ms in the model and 10 ms on the network",
                     "2 ms in the service's queue"]),
    ],
)  # fmt: skip
def test_the_parts_of_a_call_are_said_as_far_as_they_are_known(monkeypatch, server, queue, facts):
    parts = server and SimpleNamespace(server=server, rest=10.0, queue=queue)
    monkeypatch.setattr(latency_readout, "call_parts", lambda _run: parts)
    assert latency_readout._of_calls(times()) == facts


@pytest.mark.parametrize(("found", "said_of"), [({}, ["A", "B"]), ({"a": 1}, ["B"]),
                                                ({"a": 1, "b": 2}, [])])  # fmt: skip
def test_each_chosen_system_without_a_latency_says_why(paper, monkeypatch, found, said_of):
    monkeypatch.setattr(latency_readout, "_why_not", lambda _study, system: f"{system} was not.")
    study = SimpleNamespace(chosen=("a", "b"), name=str.upper)
    drawn = paper(latency_readout)
    latency_readout.not_timed(study, found)
    assert drawn.of("caption") == [
        f"**{name}** has no latency: {name.lower()} was not." for name in said_of
    ]
