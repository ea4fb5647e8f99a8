"""Answers of engines that cannot be installed here, in the form that their documentation shows.

The presets read them. The documents are from the sample; `source` is the page.
"""

import json
import math
from pathlib import Path

import pytest

from rankdash.core.search.endpoint import presets

RECORDED = {
    file.stem: json.loads(file.read_text("utf-8"))
    for file in sorted((Path(__file__).parent / "recorded").glob("*.json"))
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_preset_reads_the_documented_answer(name):
    recorded, endpoint = RECORDED[name], presets()[name]
    hits, repeats = endpoint.read(recorded["answer"], 10)
    read = [
        [doc, title, text, None if math.isnan(score) else score] for doc, title, text, score in hits
    ]
    assert read == recorded["hits"]
    assert repeats == 0
    assert not endpoint.incomplete(recorded["answer"])
    assert recorded["source"].startswith("https://")


@pytest.mark.parametrize("name", [name for name, each in RECORDED.items() if "partial" in each])
def test_an_answer_that_is_documented_as_incomplete_is_recognized(name):
    assert presets()[name].incomplete(RECORDED[name]["partial"])


@pytest.mark.parametrize("name", RECORDED)
def test_a_documented_answer_without_hits_is_not_an_error(name):
    def emptied(value):
        if isinstance(value, dict):
            return {key: emptied(each) for key, each in value.items()}
        return [] if isinstance(value, list) else value

    assert presets()[name].read(emptied(RECORDED[name]["answer"]), 10) == ((), 0)
