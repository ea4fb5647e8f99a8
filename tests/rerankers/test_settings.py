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
)


def test_defaults_fill_what_is_not_given():
    assert parse_settings(SPECS, {"scale": 2}) == {
        "batch_size": 32,
        "scale": 2.0,
        "dtype": "float32",
        "model": "small",
        "fast": False,
    }


def test_texts_of_a_command_line_become_typed_values():
    given = {"batch_size": "16", "scale": "1e-1", "dtype": " bfloat16 ", "fast": "yes"}
    parsed = parse_settings(SPECS, given)
    assert parsed["batch_size"] == 16 and type(parsed["batch_size"]) is int
    assert parsed["scale"] == 0.1
    assert parsed["dtype"] == "bfloat16"
    assert parsed["fast"] is True


def test_a_free_text_keeps_its_blanks_and_a_name_loses_them():
    specs = (SettingSpec("prompt", "", "Prompt", ""), SPECS[3])
    parsed = parse_settings(specs, {"prompt": "query: ", "model": " tiny "})
    assert parsed == {"prompt": "query: ", "model": "tiny"}


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


def test_a_large_limit_is_written_as_one_types_it():
    with pytest.raises(SettingError, match=r"Possible: 0 to 1048576\."):
        parse_settings([SettingSpec("n", 0, "N", "", within=(0, 2**20))], {"n": -1})


@pytest.mark.parametrize(
    ("within", "good", "bad", "ends", "said"),
    [
        ((1, 512), (1, 512), (0, 513), (1, 512), "1 to 512"),
        ((0, math.inf), (0, 10**9), (-1,), (0, None), "at least 0"),
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


def test_a_number_without_a_range_is_refused_without_one():
    with pytest.raises(SettingError) as refused:
        SettingSpec("n", 1, "N", "").parse("x")
    assert "Possible" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("TRUE", True), ("on", True), ("1", True), (" No ", False), ("off", False), ("0", False)],
)
def test_words_for_true_and_false(text, value):
    assert SPECS[4].parse(text) is value


def test_the_nearest_name_is_looked_for_in_any_case_and_there_may_be_none():
    assert nearest(" BATCH ", ["scale", "batch_size"]) == "batch_size"
    assert nearest("x", ["scale"]) == "scale"
    assert nearest("x", []) == ""
    with pytest.raises(SettingError, match="This reranker has no settings"):
        parse_settings((), {"x": 1})


def test_an_unknown_kind_names_the_nearest():
    with pytest.raises(SettingError, match="Did you mean 'bm25'"):
        create("bm52")


def test_a_setting_of_another_kind_is_refused():
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
