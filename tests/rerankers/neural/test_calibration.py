"""Which runtime is chosen, for how long, and how far an approximate one agrees."""

import json

import numpy as np
import pytest
from scipy import stats

from rankdash.rerankers.neural import calibration
from rankdash.rerankers.neural.calibration import Calibration, choose
from rankdash.rerankers.neural.fidelity import rank_correlation
from rankdash.rerankers.neural.known_models import KnownModel


@pytest.mark.parametrize(
    ("runtime", "taken", "choice"),
    [
        ("torch", 0.7, "torch"),
        ("torch", 0.71, "onnx"),
        ("openvino", 0.9, "openvino"),
        ("openvino", 0.91, "onnx"),
    ],
)
def test_another_runtime_is_chosen_where_it_is_faster_by_its_margin(runtime, taken, choice):
    assert choose({"onnx": 1.0, runtime: taken}) == choice
    assert choose({runtime: taken}) == runtime


def test_what_was_measured_counts_on_the_machine_that_it_was_measured_on(tmp_path):
    measured = Calibration("torch", {"onnx": 1.0, "torch": 0.5})
    calibration.keep(tmp_path, measured)
    assert calibration.kept(tmp_path) == measured
    file = tmp_path / calibration._FILE
    told = json.loads(file.read_text())
    file.write_text(json.dumps({**told, "machine": {**told["machine"], "threads": 999}}))
    assert calibration.kept(tmp_path) is None


def test_equal_scores_share_their_mean_rank():
    one, other = np.array([1.0, 1, 2, 3, 3, 3]), np.array([1.0, 2, 2, 5, 4, 6])
    assert rank_correlation(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)
    assert rank_correlation(np.ones(3), np.ones(3)) == 1.0
    assert rank_correlation(np.ones(3), np.arange(3.0)) == 0.0


@pytest.mark.parametrize(
    ("languages", "read"),
    [
        (("en",), {"latin"}),
        (("zh",), {"zh"}),
        (("zh", "en"), {"latin", "zh"}),
        (("multi",), {"latin", "zh", "ja"}),
    ],
)
def test_a_model_reads_its_languages_and_one_of_many_reads_all(languages, read):
    model = KnownModel("m", languages, 1, 512, "", "")
    assert {code for code in ("latin", "zh", "ja") if model.reads(code)} == read
