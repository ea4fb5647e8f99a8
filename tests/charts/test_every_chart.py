"""What holds for every chart: nothing from the data is drawn as HTML, nothing left to a theme."""

import json
import re
from collections.abc import Callable, Iterator

import plotly.graph_objects as go

from rankdash.charts import style

# The mean number of marks that a page draws smoothly as SVG.
MOST_MARKS = 2000
COLOUR = re.compile(r"#[0-9A-Fa-f]{6}|rgba?\([^)]*\)")
BLUE, VERMILION = "#0072B2", "#D55E00"
GAIN = re.compile("helped|risen|moved up|proven gain|counts for more|better than now")
LOSS = re.compile("hurt|fallen|moved down|proven loss|counts for less|worse than now")
COLOURED = ("deltas", "ladder", "margins", "segments", "tornado", "transitions", "waterfall")
ALLOWED_TAGS = ("<b>", "</b>", "<br>", "<extra></extra>")


def strings(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from strings(item, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item, path)


def drawn_strings(figure: go.Figure) -> Iterator[tuple[str, str]]:
    """Every text of the figure but customdata, which plotly does not draw unless asked."""
    for path, text in strings(figure.to_plotly_json()):
        if ".customdata" not in path:
            yield path, text
    for trace in figure.data:
        for name in ("text", "hovertext"):
            for text in trace[name] if trace[name] is not None else ():
                yield name, str(text)


def test_better_is_blue_and_worse_is_vermilion(figures: dict[str, go.Figure]):
    seen = set()
    for name, figure in figures.items():
        for trace in figure.data:
            colours = {text for _, text in strings(trace.to_plotly_json())}
            for named, own, other in ((GAIN, BLUE, VERMILION), (LOSS, VERMILION, BLUE)):
                if named.search(trace.name or "") and colours & {own, other}:
                    assert other not in colours, (name, trace.name)
                    seen.add((name.partition(",")[0], own))
    assert seen == {(chart, colour) for chart in COLOURED for colour in (BLUE, VERMILION)}


def test_plotly_knows_every_value_and_keeps_it(figures: dict[str, go.Figure]):
    for name, figure in figures.items():
        # Charts are made without plotly's own checks, which raise for a value it does not know.
        drawn = json.loads(figure.to_json())
        assert drawn["layout"].pop("template") == {}
        checked = json.loads(go.Figure(drawn).to_json())
        del checked["layout"]["template"]
        assert checked == drawn, name


def test_no_tag_from_the_data_is_drawn(figures: dict[str, go.Figure]):
    for name, figure in figures.items():
        texts = list(drawn_strings(figure))
        assert any("&lt;" in text for _, text in texts) or name == "systems, alone"
        for path, text in texts:
            for tag in ALLOWED_TAGS:
                text = text.replace(tag, "")
            assert "<" not in text, (name, path, text)


def test_hover_shows_escaped_text_and_never_the_raw_ids(figures: dict[str, go.Figure]):
    for figure in figures.values():
        assert not any("customdata" in (trace.hovertemplate or "") for trace in figure.data)


def test_nothing_is_left_to_a_theme(figures: dict[str, go.Figure], ink: style.Ink):
    for figure in figures.values():
        layout = figure.layout
        assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0,0,0,0)"
        assert layout.font.color == ink.text
        assert layout.font.family == style.FONT
        assert layout.hoverlabel.bgcolor == ink.hover
        assert layout.hoverlabel.font.color == ink.text
        assert "layout" not in layout.template.to_plotly_json()
        for axis in (*figure.select_xaxes(), *figure.select_yaxes()):
            assert axis.tickfont.color in (ink.text, ink.muted)
            assert axis.zerolinecolor == ink.line
            assert axis.automargin


def test_inks_differ_in_colours_alone(drawn_in: Callable[[style.Ink], dict[str, go.Figure]]):
    """Of all else what is seen in one ink is true of the other."""
    light, dark = (drawn_in(ink) for ink in style.INKS.values())
    assert light.keys() == dark.keys()
    for name, figure in light.items():
        one, other = figure.to_json(), dark[name].to_json()
        assert one != other
        assert COLOUR.sub("", one) == COLOUR.sub("", other), name
        assert style.INKS["dark"].text not in one
        assert style.INKS["light"].text not in other


def test_the_number_of_marks_is_bounded(figures: dict[str, go.Figure]):
    for name, figure in figures.items():
        marks = sum(len(trace.x) for trace in figure.data if trace.x is not None)
        assert 0 < marks <= MOST_MARKS, name
