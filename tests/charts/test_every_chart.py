"""Properties of every chart: no HTML from the data, and no style that depends on a theme."""

import json
import re
from collections.abc import Iterator
from typing import Any

import plotly.graph_objects as go

from rankdash.kit.drawing import style
from tests.charts.examples import figures_of

# The largest number of marks that a page draws smoothly as SVG.
MOST_MARKS = 2000
COLOUR = re.compile(r"#[0-9A-Fa-f]{6}|rgba?\([^)]*\)")
BLUE, VERMILION = "#0072B2", "#D55E00"
GAIN = re.compile("helped|risen|moved up|proven gain|contributes more|better than now")
LOSS = re.compile("hurt|fallen|moved down|proven loss|contributes less|worse than now")
COLOURED = {"deltas", "ladder", "margins", "group_changes", "tornado", "transitions", "waterfall"}
# Charts that show the direction by arrows in cells, or by bars above or below 0.
BY_PLACE = ("transitions", "deltas: hostile, 1")
ALLOWED_TAGS = ("<b>", "</b>", "<br>", "<extra></extra>")
USUAL = re.compile("hostile|ladder|grades")
"""The names of examples with many elements."""
Figures = dict[str, go.Figure]


def strings(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from strings(item, f"{path}.{name}")
    elif hasattr(value, "__iter__"):
        for item in value:
            yield from strings(item, path)


def test_better_is_blue_and_worse_is_vermilion_and_they_differ_in_more(figures: Figures):
    seen = set()
    for name, figure in figures.items():
        looks: dict[str, set[str]] = {BLUE: set(), VERMILION: set()}
        for trace in figure.data:
            drawn = trace.to_plotly_json()
            colours = {text for _, text in strings(drawn)}
            for named, own, other in ((GAIN, BLUE, VERMILION), (LOSS, VERMILION, BLUE)):
                found = named.search(trace.name or "") and colours & {own, other}
                if found and trace.x is not None and len(trace.x):
                    assert other not in colours, (name, trace.name)
                    seen.add((name.partition(":")[0], own))
                    marker = drawn.get("marker", {})
                    symbol = str(marker.get("symbol")).removesuffix("-open")
                    looks[own].add(
                        f"{marker.get('pattern', {}).get('shape')} {symbol} {drawn.get('line')}"
                    )
        assert name.startswith(BY_PLACE) or not looks[BLUE] & looks[VERMILION], (name, looks)
    assert seen == {(chart, colour) for chart in COLOURED for colour in (BLUE, VERMILION)}


def test_plotly_knows_every_value_and_keeps_it(figures: Figures):
    for name in filter(USUAL.search, figures):
        figure = figures[name]
        # Charts are made without plotly's own checks, which raise an error for unknown values.
        drawn = json.loads(figure.to_json())
        assert drawn["layout"].pop("template") == {}
        drawn["layout"] = {key: each for key, each in drawn["layout"].items() if each != []}
        checked = json.loads(go.Figure(drawn).to_json())
        del checked["layout"]["template"]
        assert checked == drawn, name


def test_no_tag_from_the_data_is_drawn(figures: Figures):
    for name, figure in figures.items():
        # Plotly draws customdata only if a template refers to it.
        drawn = strings(figure.to_plotly_json())
        texts = [(path, text) for path, text in drawn if ".customdata" not in path]
        assert any("&lt;" in text for _, text in texts) or "hostile" not in name, name
        for path, text in texts:
            for tag in ALLOWED_TAGS:
                text = text.replace(tag, "")
            assert "<" not in text, (name, path, text)
        assert not any("customdata" in (trace.hovertemplate or "") for trace in figure.data)


def test_nothing_is_left_to_a_theme(figures: Figures):
    ink = style.INKS["light"]
    for figure in figures.values():
        layout = figure.layout
        assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0,0,0,0)"
        assert layout.font.color == layout.hoverlabel.font.color == ink.text
        assert layout.font.family == style.FONT
        assert layout.hoverlabel.bgcolor == ink.hover
        assert "layout" not in layout.template.to_plotly_json()
        for axis in (*figure.select_xaxes(), *figure.select_yaxes()):
            assert axis.tickfont.color in (ink.text, ink.muted)
            assert axis.zerolinecolor == ink.line
            assert axis.automargin or _is_inside(figure, axis)


def _is_inside(figure: go.Figure, axis: Any) -> bool:
    """Return whether the labels of an axis cannot reach the edge of the figure: it has none, or
    another panel is below it."""
    if axis.tickvals is not None and not len(axis.tickvals):
        return True
    below = figure.layout[axis.anchor.replace("y", "yaxis")].domain[0]
    return bool(axis.plotly_name.startswith("xaxis") and below > 0.1)


def test_inks_differ_in_colours_alone():
    """So a test of one ink covers the shapes and texts of the other."""
    light, dark = (figures_of(ink) for ink in style.INKS.values())
    for name, figure in light.items():
        one, other = figure.to_json(), dark[name].to_json()
        assert one != other
        assert COLOUR.sub("", one) == COLOUR.sub("", other), name
        assert style.INKS["dark"].text not in one
        assert style.INKS["light"].text not in other


def test_the_number_of_marks_is_bounded(figures: Figures):
    for name, figure in figures.items():
        marks = sum(len(trace.x) for trace in figure.data if trace.x is not None)
        assert ("hostile" in name) <= marks <= MOST_MARKS, name
