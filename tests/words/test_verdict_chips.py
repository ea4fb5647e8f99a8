"""A verdict has one word, whatever tells it."""

import math
from typing import get_args

import pytest

from rankdash.analysis.statistics.verdict import TITLES, Kind
from rankdash.i18n import speaking
from rankdash.words.verdict_chips import chip, p_value


@pytest.mark.parametrize("kind", get_args(Kind))
def test_pages_say_the_word_of_commands_and_tables(kind):
    assert chip(kind) == TITLES[kind]
    with speaking("zh"):
        assert chip(kind) != TITLES[kind], "it is translated"


def test_what_others_are_compared_with_has_a_word_too():
    assert chip("baseline") == "baseline"


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (1.0, "1.0000"),
        (0.000_051, "0.0001"),
        (0.000_049, "<0.0001"),
        (5.1e-33, "<0.0001"),
        (math.nan, "–"),
    ],
)
def test_a_p_is_never_zero_and_has_no_exponent(p, said):
    assert p_value(p) == said
