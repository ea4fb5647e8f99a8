import math
import re

from hypothesis import given
from hypothesis import strategies as st

from rankdash.kit.drawing.style import BETTER, FIRST_STAGE, WORSE
from rankdash.kit.html.interval import (
    common_axis,
    interval_html,
    parts_html,
    rows_html,
    share,
    tally_html,
)

_FINITE = st.floats(-1e6, 1e6)


def _drawn(value: float, low: float, high: float, *, proven: bool = True, **named: float) -> str:
    return interval_html(value, low, high, (-1.0, 1.0), "change 0.1", proven=proven, **named)


def test_a_proven_gain_is_filled_and_a_loss_has_the_other_colour():
    assert f"border:5px solid {BETTER}" in _drawn(0.5, 0.1, 0.9)
    assert f"border:5px solid {WORSE}" in _drawn(-0.5, -0.9, -0.1)
    unproven = _drawn(0.5, -0.1, 0.9, proven=False)
    assert f"border:2px solid {FIRST_STAGE}" in unproven
    assert BETTER not in unproven


def test_zero_is_marked_and_a_threshold_only_if_there_is_one():
    assert "left:50.00%;top:0" in _drawn(0.5, 0.1, 0.9)
    assert "dashed" not in _drawn(0.5, 0.1, 0.9)
    assert "left:60.00%;top:0;height:100%;border-left:1px dashed" in _drawn(
        0.5, 0.1, 0.9, threshold=0.2
    )


def test_its_words_are_safe_and_for_screen_readers():
    shown = interval_html(0.1, 0.0, 0.2, (0, 1), '<b> & "you"', proven=True)
    assert 'role="img" aria-label="&lt;b&gt; &amp; &quot;you&quot;"' in shown


def test_without_an_interval_there_is_the_dot_alone_and_without_a_value_none():
    assert "border-top:2px" not in _drawn(0.5, math.nan, math.nan)
    assert "border-radius" not in _drawn(math.nan, math.nan, math.nan)


@given(st.lists(_FINITE), _FINITE, _FINITE)
def test_every_place_is_on_the_axis(values: list[float], low: float, high: float):
    axis = common_axis(values)
    assert axis[0] < axis[1]
    assert all(0 < share(each, axis) < 1 for each in (*values, 0.0))
    shown = interval_html(0.0, low, high, axis, "", proven=True)
    assert all(0 <= float(each) <= 100 for each in re.findall(r"(-?[\d.]+)%", shown))


def test_a_bar_of_counts_has_a_part_for_each_count_above_0():
    shown = tally_html(3, 0, 1, "3 helped, 0 same, 1 hurt")
    assert re.findall(r"flex:(\d+).*?solid (#\w+)", shown) == [("3", BETTER), ("1", WORSE)]
    assert 'aria-label="3 helped, 0 same, 1 hurt"' in shown


def test_a_bar_of_parts_names_each_part_and_leaves_out_empty_ones():
    shown = parts_html([(3, "<b>half"), (2, ""), (0, "none"), (1, "all")], "6 labels")
    assert re.findall(r"flex:(\d+)", shown) == ["3", "2", "1"]
    assert re.findall(r"</span>([^<]+)</span>", shown) == ["&lt;b&gt;half", "all"]


def test_a_row_has_its_title_its_picture_and_its_numbers_as_text():
    shown = rows_html([("<i>people", "<span>picture</span>", "0.1 & more")])
    assert "<b>&lt;i&gt;people</b>" in shown
    assert "<span>picture</span>" in shown and "0.1 &amp; more" in shown
