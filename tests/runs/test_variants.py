"""A grid of settings is every combination once, each value in the type of its setting."""

from functools import partial

from rankdash.core.rerankers import SettingSpec
from rankdash.core.runs.plan import DEPTH, MOST_VARIANTS, variants
from tests.results import results

SPECS = (
    SettingSpec("runtime", "auto", "Runtime", "", choices=("auto", "onnx", "torch-bf16")),
    SettingSpec("max_length", 0, "Longest text", "", within=(0, 4096)),
    SettingSpec("b", 0.75, "b", "", within=(0, 1)),
)
USUAL = {"runtime": "auto", "max_length": 0, "b": 0.75}

RIGHT = [
    (None, {"runtime": ["onnx", "torch-bf16"], "max_length": ["128", 256]}),
    (20, {}),
    # A value that is written twice runs once, and depth is not a setting.
    (50, {DEPTH: ["5", 20], "b": ["0.5", 0.5, "0.50"]}),
]
WRONG = [{"colour": ["red"]}, {"b": []}, {"b": [2]}, {DEPTH: [0]}, {"max_length": ["long"]}]
WRONG += [{"max_length": list(range(MOST_VARIANTS + 1))}]


def test_combinations_and_what_cannot_be_run_are_as_approved(approved):
    """The last setting changes fastest."""
    wishes = RIGHT + [(None, each) for each in WRONG]
    cases = {f"{each}"[:40]: partial(variants, SPECS, USUAL, *each) for each in wishes}
    approved("runs/variants", results(cases, lambda found: "\n".join(map(repr, found))))
    assert len(variants(SPECS, USUAL, None, {"max_length": list(range(MOST_VARIANTS))})) == 24
