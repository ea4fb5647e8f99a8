import sys
from types import SimpleNamespace

import numpy as np

from rankdash.rerankers import Capabilities
from rankdash.runs.machine import machine, threads_of


def test_threads_are_those_that_scoring_keeps_busy(monkeypatch):
    """A graphics card or another machine leaves the processor idle, which is no contention."""

    def threads(reranker=None, **capabilities):
        return threads_of(reranker, Capabilities(**capabilities))

    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert threads() == 1
    assert threads(across_queries=True) == machine()["threads"] >= 1
    assert threads(needs_network=True, across_queries=True) == 0
    for told in (7, 0):
        assert threads(SimpleNamespace(threads=told), across_queries=True) == told
    card = SimpleNamespace(
        cuda=SimpleNamespace(is_initialized=lambda: True), get_num_threads=lambda: 4
    )
    monkeypatch.setitem(sys.modules, "torch", card)
    assert threads(across_queries=True) == 0


def test_the_machine_is_described():
    described = machine()
    assert described["cpu"]
    assert described["logical_cpus"] >= described["threads"] >= 1
    assert described["python"] == ".".join(map(str, sys.version_info[:3]))
    assert described["numpy"] == np.__version__
    assert described["os"]
