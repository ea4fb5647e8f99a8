import math

import pytest

from rankdash.rerankers import get, kinds
from rankdash.rerankers.settings import SettingSpec, nearest, parse_settings

SPECS = (
    SettingSpec("batch_size", 32, "Batch size", "", within=(1, 512)),
    SettingSpec("scale", 1.0, "Scale", "", within=(0, math.inf)),
    SettingSpec("dtype", "float32", "Precision", "", choices=("float32", "bfloat16")),
    SettingSpec("model", "small", "Model", "", required=True),
    SettingSpec("fast", False, "Fast", ""),
    SettingSpec("prompt", "", "Prompt", ""),
)
USUAL = {spec.name: spec.default for spec in SPECS}


@pytest.mark.parametrize(
    ("given", "parsed"),
    [
        ({}, {}),
        ({"scale": 2}, {"scale": 2.0}),
        ({"batch_size": "16", "scale": "1e-1"}, {"batch_size": 16, "scale": 0.1}),
        # A free text keeps its blanks and a name loses them.
        ({"dtype": " bfloat16 ", "model": " tiny "}, {"dtype": "bfloat16", "model": "tiny"}),
        ({"prompt": "query: "}, {"prompt": "query: "}),
        *(({"fast": text}, {"fast": True}) for text in ("yes", "TRUE", "on", "1")),
        *(({"fast": text}, {"fast": False}) for text in (" No ", "off", "0")),
    ],
)
def test_defaults_fill_what_is_not_given_and_texts_become_typed_values(given, parsed):
    found = parse_settings(SPECS, given)
    assert found == USUAL | parsed
    assert all(type(found[spec.name]) is spec.type for spec in SPECS)


@pytest.mark.parametrize(
    ("within", "ends", "said"),
    [
        ((1, 512), (1, 512), "1 to 512"),
        ((0, math.inf), (0, None), "at least 0"),
        (None, (None, None), ""),
    ],
)
def test_a_range_holds_both_its_ends(within, ends, said):
    """What is beyond them: `test_refused.py`."""
    spec = SettingSpec("n", 1, "N", "", within=within)
    assert (spec.minimum, spec.maximum, spec.range) == (*ends, said)
    for value in ends:
        assert value is None or spec.parse(value) == value


def test_the_nearest_name_is_looked_for_in_any_case_and_there_may_be_none():
    assert nearest(" BATCH ", ["scale", "batch_size"]) == "batch_size"
    assert (nearest("x", ["scale"]), nearest("x", [])) == ("scale", "")


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_every_kind_describes_itself_and_accepts_its_own_defaults(kind):
    # A cascade is described anew whenever there are other kinds to choose from.
    assert get(kind.name.upper()) is get(kind.name)
    assert get(kind.name).name == kind.name
    assert kind.title and kind.meaning
    for spec in kind.settings:
        assert spec.title and spec.help
        assert type(spec.default) is spec.type
        assert spec.parse(spec.default) == spec.default
        assert spec.parse(str(spec.default)) == spec.default
