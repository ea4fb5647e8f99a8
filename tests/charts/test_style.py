"""Properties of all charts: contrast, escaping, marks that differ in more than colour."""

import copy
import json
import math
from dataclasses import replace
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import plotly.graph_objects as go
import pytest

from rankdash.kit.drawing import draw, style
from rankdash.kit.drawing.draw import mark_image
from tests.approved import table
from tests.results import shown


def luminance(colour: str) -> float:
    """Return the relative luminance by WCAG 2.2."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_measured_as_wcag_does():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


def test_text_can_be_read_and_marks_be_seen_before_the_grid(ink: style.Ink):
    for text in (ink.text, ink.muted):
        assert min(contrast(text, behind) for behind in (ink.background, ink.hover)) >= 4.5
    for colour in (style.BETTER, style.WORSE, style.FIRST_STAGE, *style.SYSTEMS, ink.line):
        assert contrast(colour, ink.background) >= 3.0, colour
    assert 1.0 < contrast(ink.grid, ink.background) < 2.0


def test_sixteen_systems_and_a_baseline_differ_without_colour():
    places = {f"s{place}": place for place in range(1, 17)}
    marks = style.marks({"baseline": 0, **places}, "baseline")
    assert len({mark.symbol for mark in marks.values()}) == 17
    first = [mark for name, mark in marks.items() if places.get(name, 0) < 9]
    assert len({mark.dash for mark in first}) == len({mark.colour for mark in first}) == 9
    assert marks["baseline"].colour == style.FIRST_STAGE
    pictures = {mark_image(replace(mark, colour="#000000")) for mark in marks.values()}
    assert len(pictures) == 17
    for picture in pictures:
        ElementTree.fromstring(unquote(picture.removeprefix("data:image/svg+xml,")))


def test_a_system_that_is_not_drawn_takes_no_mark_from_the_others():
    whole, few = {"first": 0, "a": 1, "b": 2}, {"first": 0, "b": 2}
    assert style.marks(few, "first")["b"] == style.marks(whole, "a")["b"]


def test_numbers_and_names_are_written_as_short_as_they_tell(approved):
    numbers = [0.0412, -0.0412, 0.0, -0.0, -0.0004, -0.0001, -0.0006, 1.0, math.nan]
    names = {"short": 10, "exactly 10": 10, "NIHSeniorHealth_0000042_Sec9": 13, "a  b\n c": 10}
    names |= {"<b>": 10, "a & b": 10, "a\u202eb\x1b": 10, "急性淋巴细胞白血病": 10, "": 10}
    # Texts are truncated at their end, and never within an escape.
    names |= {
        "Two types of hypoglycemia can occur in peo…": 20,
        "又名《离岛大夫日志》是一部电视…": 10,
    }
    names |= {"<<<<<<<<<<": 5}
    ends = [(-0.1, 0.2), (math.nan, 0.2), (-0.1, math.nan)]
    chances = [0.04, 0.0001, 0.000_099, 5.1e-33, math.nan]
    rows = {
        "numbers, changes": [(each, style.number(each), style.signed(each)) for each in numbers],
        "names": [(style.short(*each),) for each in names.items()],
        "queries": [(style.queries(n),) for n in (1, 2, 1204)],
        "ticks": [(highest, style.ticks(highest)) for highest in (999.0, 1000.0)],
        "intervals": [(*each, draw.span(*each)) for each in ends],
        "chances": [(p, draw.chance(p)) for p in chances],
        "p": [(draw.p_text(corrected, "x"),) for corrected in (True, False)],
    }
    approved(
        "charts/style", table({name: "\n".join(map(shown, each)) for name, each in rows.items()})
    )


def test_axes_marks_and_heights_have_room_for_what_is_drawn(approved):
    ink, endless = style.INKS["light"], -math.inf
    # Equal values also have a margin.
    values = [([1.0, 3.0], endless), ([1.0, 1.0], endless), ([0.1, 2.1], 0.0), ([], 0.0)]
    values += [([0.1, math.nan, 2.1], endless), ([math.nan], endless)]
    ms = [[1.0, 100.0], [10.0, 10.0], [0.0, 1.0], [10.0, math.nan]]
    axes = [((0.0, 1.0), False), ((0.0, 3.0), False), ((0.0, 1.5), True), ((0.1, 1.2), True)]
    blends = [("#FF0000", 0.0), ("#FF0000", 1.0), ("#000000", 0.2), ("#000000", 0.5)]

    def height(entries: int, **more: object) -> int:
        traces = [{"type": "scatter", "x": [0], "y": [0], "name": "n"} | more] * entries
        return style.finish(traces, ink, 100).layout.height

    whiskers = draw.whiskers([0.1, 0.2, math.nan], [0.3, math.nan, 0.5], [0, 1, 2], "#000000")
    keys = draw.keys("{level}", "p ≤ {p:g}", 0.95, "#000000")
    targets = [draw.target_line(500.0, ink, axis) for axis in ("x", "y2")]
    rows = {
        "reach": [(*each, style.reach(each[0], 0.1, 0.05, each[1])) for each in values],
        "reach of milliseconds": [(each, [*draw.reach(each, 0.1)]) for each in ms],
        "ticks of milliseconds": [
            (
                *ends,
                short,
                [float(tick) for tick in draw.log_axis(ends, short=short)["tickvals"]],
            )
            for ends, short in axes
        ],
        "blended with white": [
            (*each, style.blended(each[0], "#FFFFFF", each[1])) for each in blends
        ],
        "faded": [(style.faded("#FF8000", 0.25),)],
        "heights by entries of the legend": [(n, height(n)) for n in (1, 2)],
        "a legend that is hidden": [(height(9, showlegend=False),)],
        "whiskers where both ends are known": [
            (list(each["x"]), list(each["y"])) for each in whiskers
        ],
        "keys": [(each["name"],) for each in keys],
        "targets": [sorted(f"{name}={value}" for name, value in each.items()) for each in targets],
    }
    assert draw.whiskers([math.nan], [1.0], [0], "#000000") == []
    approved(
        "charts/axes", table({name: "\n".join(map(shown, each)) for name, each in rows.items()})
    )


def test_a_name_under_the_pointer_is_whole_and_escaped():
    name = "<b>" + "cross-encoder " * 6 + "final</b>"
    assert "<br>" in style.whole(name)
    assert "<b>" not in style.whole(name)
    assert style.whole(name).replace("<br>", " ") == style.short(name, 500)


def test_the_baseline_takes_no_ones_place():
    marks = style.marks_in_order(["base", "a", "b"], "base")
    alone = style.marks_in_order(["a", "b"])
    assert (marks["a"], marks["b"]) == (alone["a"], alone["b"])
    assert marks["base"].colour == style.FIRST_STAGE
    assert marks["a"].colour == style.SYSTEMS[0]


def test_a_figure_that_is_only_sent_is_the_one_whose_parts_are_looked_at():
    def drawn() -> go.Figure:
        points = draw.scatter(np.arange(3.0), [0.25, None, 1.0], "markers", name="a", hover="xyz")
        return style.finish([points], style.INKS["dark"], 200, xaxis=style.axis("x", range=[0, 3]))

    sent, seen = drawn(), drawn()
    assert seen.data[0].name == "a"
    assert seen.layout.xaxis.title.text == "x"
    assert json.loads(sent.to_json()) == json.loads(seen.to_json())
    changed = copy.deepcopy(drawn()).update_layout(height=700)
    assert changed.to_dict()["layout"]["height"] == 700
    assert sent.update_layout(height=700).to_dict()["layout"]["height"] == 700
    assert sent.data[0].x.tolist() == [0, 1, 2]
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = drawn().nothing_like_it


def test_a_figure_is_sent_again_as_it_was_whatever_was_done_to_what_was_sent():
    points = draw.scatter(np.arange(3.0), [0.25, None, 1.0], "markers", name="a", hover="xyz")
    figure = style.finish([points], style.INKS["dark"], 200)
    first = figure.to_dict()
    wanted = json.dumps(first)
    first["layout"]["height"] = 700
    first["data"][0]["name"] = "b"
    first["data"].append({})
    assert json.dumps(figure.to_dict()) == wanted
    figure.data[0].name = "c"
    assert figure.to_dict()["data"][0]["name"] == "c"
