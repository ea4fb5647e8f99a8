"""Choice of a runtime, duration of its measurement, and agreement of approximate runtimes."""

import json
import math
from datetime import date

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from rankdash.core.rerankers.catalogue import KnownModel
from rankdash.core.rerankers.neural import runtimes
from rankdash.core.rerankers.neural.open_model import rank_correlation
from rankdash.core.rerankers.neural.runtimes import Calibration, choose
from tests.results import results, several


def test_another_runtime_is_chosen_where_it_is_faster_by_its_margin(approved):
    taken = [
        *({"onnx": 1.0, "torch": 0.7}, {"onnx": 1.0, "torch": 0.71}, {"torch": 0.71}),
        *({"onnx": 1.0, "openvino": 0.9}, {"onnx": 1.0, "openvino": 0.91}, {"openvino": 0.91}),
        {"onnx": 1.0, "torch": 0.6, "openvino": 0.5},
        {"onnx": 1.0, "openvino": math.inf},
    ]
    approved("rerankers/runtimes", results(several("{0}", choose, taken)))


def test_what_was_measured_counts_on_its_machine_if_it_can_be_read_and_no_half_is_kept(tmp_path):
    measured = Calibration("torch", {"onnx": 1.0, "torch": 0.5})
    runtimes.keep_calibration(tmp_path, measured)
    assert runtimes.kept_calibration(tmp_path) == measured
    file = tmp_path / "calibration.json"
    told = json.loads(file.read_text())
    elsewhere = json.dumps({**told, "machine": {**told["machine"], "threads": 999}})
    for text in (elsewhere, "", "[]", "{}", "null", '{"machine": 1}'):
        file.write_text(text)
        assert runtimes.kept_calibration(tmp_path) is None, text
    assert runtimes.kept_calibration(tmp_path / "gone") is None
    # A folder that is not writable.
    file.unlink()
    file.mkdir()
    for folder in (tmp_path, tmp_path / "gone"):
        runtimes.keep_calibration(folder, measured)
    assert list(tmp_path.iterdir()) == [file]


class Timed:
    """A runtime that takes `seconds` for two batches, by a clock that it moves; the first batches
    take longer."""

    budget = 1024

    def __init__(self, times, seconds, rounding=1):
        self.times, self.seconds, self.rounding, self.shapes = times, seconds, rounding, []

    def forward(self, ids, mask, types):
        self.times[0] += self.seconds / 2 if len(self.shapes) > 1 else 100.0
        self.shapes.append(ids.shape)
        assert not types.any()
        return np.zeros((len(ids), 1), dtype=np.float32)


@pytest.mark.parametrize(
    ("taken", "choice", "seconds", "rounds"),
    [
        *((1.0, "torch", *limit) for limit in [(0.0, 1), (3.0, 1), (3.1, 2), (6.0, 2)]),
        # A clear result needs no more measurements.
        *((far, "torch", 1000.0, 3) for far in (0.5, 1.0, 1.3)),
        *((far, "onnx", 1000.0, 3) for far in (1.5, 2.0, 9.0)),
        *((near, "torch", 1000.0, 50) for near in (1.35, 1.375)),
        *((near, "onnx", 1000.0, 50) for near in (1.4375, 1.45)),
        (1.4375, "onnx", 31.0, 10),
    ],
)
def test_runtimes_are_timed_in_turns_until_it_is_clear_and_the_first_batch_does_not_count(
    taken, choice, seconds, rounds
):
    times = [0.0]
    onnx, torch = Timed(times, 2.0), Timed(times, taken)
    found = runtimes.calibrate(
        {"onnx": onnx, "torch": torch}, 512, seconds=seconds, clock=lambda: times[0]
    )
    assert found.choice == choice
    assert found.seconds == pytest.approx({"onnx": 2.0, "torch": taken})
    assert onnx.shapes == torch.shapes == [(1, 8), (1, 120)] * (1 + rounds)


def test_rows_to_time_are_no_longer_than_a_model_reads_rounded_and_one_runtime_needs_none():
    times = [0.0]
    both = {"onnx": Timed(times, 1.0), "openvino": Timed(times, 1.0, rounding=16)}
    assert runtimes.calibrate(both, 64, seconds=0, clock=lambda: times[0]).choice == "onnx"
    assert set(both["onnx"].shapes) == {(1, 8), (1, 64)}
    runtimes.calibrate(both, 512, seconds=0, clock=lambda: times[0])
    assert set(both["openvino"].shapes) == {(1, 16), (1, 64), (1, 128)}
    alone = {"torch": Timed(times, 1.0)}
    assert runtimes.calibrate(alone, 64) == Calibration("torch", {})
    assert alone["torch"].shapes == []


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-2, 2)), min_size=2, max_size=20))
@example([(1, 1), (1, 2), (2, 2), (3, 5), (3, 4), (3, 6)])
def test_an_approximate_runtime_agrees_by_the_correlation_of_ranks(pairs):
    one, other = np.array(pairs, dtype=float).T
    equal = [len(set(values)) == 1 for values in (one, other)]
    ranks = [stats.rankdata(values) for values in (one, other)]
    expected = float(all(equal)) if any(equal) else np.corrcoef(*ranks)[0, 1]
    assert rank_correlation(one, other) == pytest.approx(expected)


def test_a_model_reads_its_languages_and_one_of_many_reads_all():
    read = [
        [
            code
            for code in ("latin", "zh", "ja")
            if KnownModel(id="m", languages=each, seen_on=date(2026, 1, 1), source="x").reads(code)
        ]
        for each in (("en",), ("zh",), ("zh", "en"), ("multi",))
    ]
    assert read == [["latin"], ["zh"], ["latin", "zh"], ["latin", "zh", "ja"]]
