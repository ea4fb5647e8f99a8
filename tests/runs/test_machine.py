import math
import os
import platform
import sys

import numpy as np
import pytest

from rankdash.core.rerankers import Capabilities
from rankdash.core.runs.concurrency import load_average, machine, threads_of
from tests.runs.stub import Stub


def threads(told=None, **capabilities):
    model = Stub()
    model.threads = told
    return threads_of(model, Capabilities(**capabilities))


def test_threads_are_those_that_scoring_keeps_busy(monkeypatch):
    """Another machine's work leaves the processor idle, which is not contention."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert threads() == 1
    assert threads(across_queries=True) == machine()["threads"] >= 1
    assert threads(needs_network=True, across_queries=True) == 0
    assert [threads(told, across_queries=True) for told in (7, 0)] == [7, 0]


@pytest.mark.model
def test_threads_are_as_many_as_pytorch_was_given_and_none_where_a_card_computes(monkeypatch):
    import torch

    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert threads(across_queries=True) == machine()["threads"] == 3
    assert threads() == 1
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert threads(across_queries=True) == 0


def test_the_machine_is_described():
    described = machine()
    assert described["cpu"]
    assert described["logical_cpus"] >= described["threads"] >= 1
    assert described["python"] == ".".join(map(str, sys.version_info[:3]))
    assert described["numpy"] == np.__version__
    assert described["os"]


def test_the_load_is_that_of_the_last_minute(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (1.5, 2.5, 3.5))
    assert load_average() == 1.5

    def untold():
        raise OSError

    monkeypatch.setattr(os, "getloadavg", untold)
    assert math.isnan(load_average())


def test_the_processor_is_the_first_that_the_system_names(monkeypatch, tmp_path):
    place = tmp_path / "cpuinfo"
    monkeypatch.setattr("rankdash.core.rerankers.neural.runtimes.Path", lambda _name: place)
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "arch")
    assert machine()["cpu"] == "arch"
    for told, cpu in (
        ("", "arch"),
        ("model name\t: A @ 2: fast\nmodel name\t: B\n", "A @ 2: fast"),
    ):
        place.write_text(f"processor\t: 0\n{told}")
        assert machine()["cpu"] == cpu
