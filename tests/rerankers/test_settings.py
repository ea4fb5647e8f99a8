import math

import pytest

from rankdash.errors import SettingError
from rankdash.rerankers import create, get, kinds
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
    ("given", "said"),
    [
        ({"batchsize": 1}, "Did you mean 'batch_size'?"),
        ({"batch_size": 0}, "1 to 512"),
        ({"batch_size": "1.5"}, "whole number"),
        ({"batch_size": True}, "whole number"),
        ({"batch_size": "many"}, "1 to 512"),
        ({"scale": -1}, "at least 0"),
        ({"scale": "nan"}, "must be a number"),
        ({"scale": "inf"}, "must be a number"),
        ({"dtype": "float23"}, "Did you mean 'float32'?"),
        ({"model": "  "}, "must not be empty"),
        ({"fast": "perhaps"}, "true or false"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_is_possible(given, said):
    with pytest.raises(SettingError) as caught:
        parse_settings(SPECS, given)
    assert said in str(caught.value)
    assert next(iter(given)) in str(caught.value)


@pytest.mark.parametrize(
    ("within", "good", "bad", "ends", "said"),
    [
        ((1, 512), (1, 512), (0, 513), (1, 512), "1 to 512"),
        ((0, math.inf), (0, 10**9), (-1,), (0, None), "at least 0"),
        ((0, 2**20), (2**20,), (-1,), (0, 2**20), "0 to 1048576"),
        (None, (-5, 0, 5), (), (None, None), ""),
    ],
)
def test_a_range_holds_both_its_ends(within, good, bad, ends, said):
    spec = SettingSpec("n", 1, "N", "", within=within)
    assert (spec.minimum, spec.maximum, spec.range) == (*ends, said)
    assert [spec.parse(value) for value in good] == list(good)
    for value in bad:
        with pytest.raises(SettingError, match=f"out of range: {value}. Possible: {said}"):
            spec.parse(value)
    with pytest.raises(SettingError) as refused:
        spec.parse("x")
    assert ("Possible" in str(refused.value)) == bool(said)


def test_the_nearest_name_is_looked_for_in_any_case_and_there_may_be_none():
    assert nearest(" BATCH ", ["scale", "batch_size"]) == "batch_size"
    assert nearest("x", ["scale"]) == "scale"
    assert nearest("x", []) == ""
    with pytest.raises(SettingError, match="This reranker has no settings"):
        parse_settings((), {"x": 1})
    with pytest.raises(SettingError, match="Settings: k1, b, method, language"):
        create("bm25", {"batch_size": 4})


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
