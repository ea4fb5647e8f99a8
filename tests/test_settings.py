"""A setting is parsed, refused and named in one way, whoever declares it."""

import math

import pytest

from rankdash.analysis.statistics.settings import STATISTICS_SETTINGS, StatisticsSettings
from rankdash.errors import DataError, SpecError
from rankdash.i18n import error_text, speaking
from rankdash.metrics import CONVENTION_SETTINGS, Conventions
from rankdash.value.assumptions import ASSUMPTIONS, Assumptions

EVERY = {each.name: each for each in (*CONVENTION_SETTINGS, *STATISTICS_SETTINGS, *ASSUMPTIONS)}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("ties", "trec", "trec"), ("threshold", "2", 2.0), ("judged_only", "True", True),
        ("err_top_label", "3.5", 3.5), ("resamples", "1000", 1000), ("elasticity", "0.25", 0.25),
    ],
)  # fmt: skip
def test_a_text_becomes_the_value_that_it_stands_for(name, text, value):
    parsed = EVERY[name].parse(text)
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ties", "TREC"), ("threshold", "0"), ("threshold", "nan"), ("threshold", "inf"),
        ("judged_only", "perhaps"), ("resamples", "many"), ("seed", "-1"),
    ],
)  # fmt: skip
def test_a_text_that_stands_for_no_value_is_refused_by_name(name, text):
    with pytest.raises(SpecError, match=name):
        EVERY[name].parse(text)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Conventions, {"threshold": True}), (Conventions, {"judged_only": "yes"}),
        (Conventions, {"err_top_label": math.inf}), (StatisticsSettings, {"level": "high"}),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_refused(kind, given):
    with pytest.raises(SpecError, match=next(iter(given))):
        kind(**given)


def test_a_limit_is_told_to_its_last_digit():
    StatisticsSettings(seed=2**63 - 1)
    with pytest.raises(SpecError) as refused:
        StatisticsSettings(seed=2**63)
    assert str(refused.value) == (
        "seed must be between 0 and 9,223,372,036,854,775,807, not 9223372036854775808."
    )


def test_the_nearest_choice_is_named_where_one_is_near():
    with pytest.raises(SpecError, match="Did you mean 'sign-flip'"):
        StatisticsSettings(test="sign_flip")
    with pytest.raises(SpecError) as caught:
        StatisticsSettings(test="anova")
    assert "Did you mean" not in str(caught.value)


def test_what_is_possible_is_said_in_chinese_too():
    with pytest.raises(SpecError) as caught, speaking("zh"):
        Conventions(threshold=0)
    with speaking("zh"):
        assert error_text(caught.value) == "threshold 必须是大于 0 的数，不能是 0。"


def test_an_assumption_is_refused_by_its_title():
    with pytest.raises(DataError, match=r"Searches a day cannot be -1.*0 to 10,000,000,000"):
        Assumptions(searches_per_day=-1)
