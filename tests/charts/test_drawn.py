"""Charts in a real browser: no text is truncated or overlaps another, and no link is from data."""

import re

import plotly.graph_objects as go
import plotly.offline
import pytest
from playwright.sync_api import Browser, Page, expect

from rankdash.kit.drawing.frontier import PHONE_STYLE
from tests.charts.test_every_chart import USUAL

# Widths of a phone, of half a page and of a whole one.
WIDTHS = [pytest.param(each, marks=pytest.mark.thorough) for each in (400, 600)] + [1220]

BOXES = """
() => {
  const frame = document.querySelector('.main-svg').getBoundingClientRect();
  const box = node => {
    const b = node.getBoundingClientRect();
    return {text: node.textContent, left: b.left, right: b.right, top: b.top, bottom: b.bottom};
  };
  const texts = [...document.querySelectorAll('.js-plotly-plot svg text')].filter(
    node => node.textContent.trim() && node.getBoundingClientRect().width > 0);
  const drag = document.querySelector('.nsewdrag').getBoundingClientRect();
  const legend = document.querySelector('.legend');
  return {
    frame: {left: frame.left, right: frame.right, top: frame.top, bottom: frame.bottom},
    plot: {top: drag.top, bottom: drag.bottom, left: drag.left, right: drag.right},
    legend: legend ? box(legend) : null,
    texts: texts.map(box),
    legend_scrolls: !!document.querySelector('.legend .scrollbar')?.getBoundingClientRect().height,
    ticks: texts.filter(node => node.closest('.xtick, .ytick, .y2tick')).map(box),
    links: document.querySelectorAll('.js-plotly-plot a[href]:not(.modebar-btn)').length,
  };
}
"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Page:
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    # Only an action that hangs takes this long, however busy the machine is.
    page.set_default_timeout(300_000)
    page.set_content("<div id='chart'></div>")
    page.add_script_tag(content=plotly.offline.get_plotlyjs())
    page.add_style_tag(content=PHONE_STYLE)
    return page


def draw(page: Page, figure: go.Figure, width: int) -> dict:
    page.set_viewport_size({"width": width + 80, "height": 900})
    sized = go.Figure(figure).update_layout(width=width).to_json()
    page.evaluate(
        "async text => { const figure = JSON.parse(text);"
        " await Plotly.react('chart', figure.data, figure.layout); }",
        sized,
    )
    return page.evaluate(BOXES)


def inside(box: dict, frame: dict) -> bool:
    return (
        box["left"] >= frame["left"] - 1
        and box["right"] <= frame["right"] + 1
        and box["top"] >= frame["top"] - 1
        and box["bottom"] <= frame["bottom"] + 1
    )


def overlap(one: dict, other: dict) -> bool:
    return (
        min(one["right"], other["right"]) - max(one["left"], other["left"]) > 1
        and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > 3
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_are_whole_and_apart(page: Page, figures: dict[str, go.Figure], width: int):
    for name, figure in figures.items():
        # A page draws several columns only if it is at least 600 pixels wide.
        if not USUAL.search(name) or (name.endswith("several columns") and width < 600):
            continue
        found = draw(page, figure, width)
        assert found["texts"], name
        for text in found["texts"]:
            assert inside(text, found["frame"]), (name, width, text)
        for place, one in enumerate(found["texts"]):
            for other in found["texts"][place + 1 :]:
                assert not overlap(one, other), (name, width, one, other)
        # A chart of one system has no legend.
        assert not (found["legend"] and overlap(found["legend"], found["plot"])), (name, width)
        assert not found["legend_scrolls"], (name, width)


def test_data_makes_no_links_even_on_hover(page: Page, figures: dict[str, go.Figure]):
    hovered = 0
    for name in filter(USUAL.search, figures):
        assert draw(page, figures[name], 900)["links"] == 0, name
        hostile = page.evaluate(
            """() => document.getElementById('chart').data.flatMap((trace, curveNumber) =>
              [...(trace.hovertext || [])].flatMap((text, pointNumber) =>
                text.includes('&lt;a') ? [[{curveNumber, pointNumber},
                  (trace.xaxis || 'x') + (trace.yaxis || 'y')]] : [])).slice(0, 2)"""
        )
        for point in hostile:
            page.evaluate("([point, plot]) => Plotly.Fx.hover('chart', [point], plot)", point)
            expect(page.locator(".hoverlayer text").first).to_contain_text(re.compile(r"<a\s*href"))
            assert page.locator(".hoverlayer a").count() == 0
            page.evaluate("Plotly.Fx.unhover('chart')")
            hovered += 1
    assert hovered >= 4
