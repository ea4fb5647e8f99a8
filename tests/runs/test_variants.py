"""A grid of settings is every combination once, each value in the type of its setting."""

from functools import partial

from rankdash.rerankers import SettingSpec
from rankdash.runs.variants import DEPTH, MOST_VARIANTS, variants
from tests.results import results

SPECS = (
    SettingSpec("runtime", "auto", "Runtime", "", choices=("auto", "onnx", "torch-bf16")),
    SettingSpec("max_length", 0, "Longest text", "", within=(0, 4096)),
    SettingSpec("b", 0.75, "b", "", within=(0, 1)),
)
USUAL = {"runtime": "auto", "max_length": 0, "b": 0.75}


def test_every_combination_the_last_setting_fastest():
    varied = {"runtime": ["onnx", "torch-bf16"], "max_length": ["128", 256]}
    found = variants(SPECS, USUAL, None, varied)
    assert [each.differs for each in found] == [
        (("runtime", runtime), ("max_length", length))
        for runtime in ("onnx", "torch-bf16")
        for length in (128, 256)
    ]
    assert all(each.settings["b"] == 0.75 and each.depth is None for each in found)
    assert found[3].settings == {"runtime": "torch-bf16", "max_length": 256, "b": 0.75}
    (only,) = variants(SPECS, USUAL, 20, {})
    assert (only.settings, only.depth, only.differs) == (USUAL, 20, ())
    # A value that is written twice runs once, and depth is not a setting.
    deep = variants(SPECS, USUAL, 50, {DEPTH: ["5", 20], "b": ["0.5", 0.5, "0.50"]})
    assert [(each.depth, each.settings) for each in deep] == [
        (5, USUAL | {"b": 0.5}), (20, USUAL | {"b": 0.5}),
    ]  # fmt: skip
    most = variants(SPECS, USUAL, None, {"max_length": list(range(1, MOST_VARIANTS + 1))})
    assert len(most) == MOST_VARIANTS == 24


WRONG = [{"colour": ["red"]}, {"b": []}, {"b": [2]}, {DEPTH: [0]}, {"max_length": ["long"]}]
WRONG += [{"max_length": list(range(MOST_VARIANTS + 1))}]


def test_what_cannot_be_run_is_refused_in_words(approved):
    cases = {f"{each}"[:40]: partial(variants, SPECS, USUAL, None, each) for each in WRONG}
    approved("runs/variants", results(cases))
