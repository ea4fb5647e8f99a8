"""All settings are parsed, refused and named in the same way."""

import math

import pytest

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.base.i18n import error_text, speaking
from rankdash.core.base.rules import STATISTICS_SETTINGS, StatisticsSettings
from rankdash.core.metrics import CONVENTION_SETTINGS, Conventions
from rankdash.core.value.assumptions import ASSUMPTIONS, Assumptions

EVERY = {each.name: each for each in (*CONVENTION_SETTINGS, *STATISTICS_SETTINGS, *ASSUMPTIONS)}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("ties", "trec", "trec"), ("threshold", "2", 2.0), ("judged_only", "True", True),
        ("err_top_label", "3.5", 3.5), ("resamples", "1000", 1000), ("elasticity", "0.25", 0.25),
        ("seed", "9007199254740993", 2**53 + 1),
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
        ("seed", "7.5"),
    ],
)  # fmt: skip
def test_a_text_that_stands_for_no_value_is_refused_by_name(name, text):
    with pytest.raises(SpecError, match=name):
        EVERY[name].parse(text)


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        # A value of a wrong type, a limit to its last digit, the nearest choice if there is one.
        (Conventions, {"threshold": True}, "threshold"),
        (Conventions, {"judged_only": "yes"}, "judged_only"),
        (Conventions, {"err_top_label": math.inf}, "err_top_label"),
        (StatisticsSettings, {"level": "high"}, "level"),
        (StatisticsSettings, {"seed": 2**63},
         r"^seed must be a whole number between 0 and 9,223,372,036,854,775,807, not \d{19}\.$"),
        (StatisticsSettings, {"test": "sign_flip"}, "Did you mean 'sign-flip'"),
        (StatisticsSettings, {"test": "anova"}, "^((?!Did you mean).)*$"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_refused(kind, given, said):
    with pytest.raises(SpecError, match=said):
        kind(**given)
    assert StatisticsSettings(seed=2**63 - 1).seed == 2**63 - 1


def test_what_is_possible_is_said_in_chinese_too():
    with pytest.raises(SpecError) as caught, speaking("zh"):
        Conventions(threshold=0)
    with speaking("zh"):
        assert error_text(caught.value) == "threshold 必须是大于 0 的数，不能是 0。"


def test_an_assumption_is_refused_by_its_title():
    with pytest.raises(DataError, match=r"Searches per day cannot be -1.*0 to 10,000,000,000"):
        Assumptions(searches_per_day=-1)
