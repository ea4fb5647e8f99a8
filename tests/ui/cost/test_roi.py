"""The calculator before any run: the published example to the cent, typed quality, four ways."""

import pytest
from streamlit.testing.v1 import AppTest

from rankdash.store import Workspace
from rankdash.ui.sidebar.view import PAGES
from tests.stored import keep_rows
from tests.surfaces.reading import Page
from tests.ui.cost.test_recorded import ROWS


@pytest.fixture
def opened(workspace: Workspace, app: AppTest):
    """The Cost page of a data set without a run."""

    def on(**params: str) -> AppTest:
        app.query_params["data"] = keep_rows(workspace, ROWS, "Shop")
        for name, value in params.items():
            app.query_params[name] = value
        app.switch_page(str(PAGES / "cost.py")).run()
        assert not app.exception
        return app

    return on


def read(app: AppTest) -> tuple[list[str], dict[str, list[str]]]:
    """The results of the four steps; and way → its cells."""
    steps, ways = [
        Page(body).tables[""][0]
        for body in (str(each.value) for each in app.get("html"))
        if "class='rd-table'" in body
    ]
    return [row[2] for row in steps[1:]], {row[0]: row[1:] for row in ways[1:]}


def examples(app: AppTest) -> bool:
    """Whether the calculation is marked as an example."""
    return any("Example values" in each.value for each in app.markdown)


def test_the_published_example_needs_no_run(opened):
    app = opened()
    steps, ways = read(app)
    assert steps == ["20.8333%", "$208.33", "$100.00", "108.33%"]
    assert examples(app)
    assert list(ways.values()) == [
        ["0.72", "0 ms", "$0.00", "–", "–", "–", "–"],
        ["0.87", "300 ms", "$1.00", "$208.33", "$100.00", "108.33%", "0.792"],
        ["0.87", "–", "$2.82", "$208.33", "$282.00", "loses money", "0.923"],
        ["0.87", "–", "$2.02", "$208.33", "$201.64", "3.32%", "0.865"],
    ]
    assert list(ways) == ["No reranker", "Cross-encoder", "LLM pointwise", "LLM listwise"]
    [rests_on] = [each.value for each in app.caption if each.value.startswith("No reranker: ")]
    assert [line.partition(":")[0] for line in rests_on.split("  \n")] == list(ways)


def test_typed_numbers_take_the_place_of_the_example(opened):
    app = opened()
    app.number_input(key="cost.quality_before").set_value(0.5).run()
    app.number_input(key="cost.quality_after").set_value(0.6).run()
    app.number_input(key="cost.thousand.any.USD").set_value(2.0).run()
    app.select_slider(key="cost.searches_per_day").set_value(1000.0).run()
    assert examples(app)
    app.select_slider(key="cost.value_per_search").set_value(0.02).run()
    assert not examples(app)
    app.select_slider(key="cost.value_per_search").set_value(0.01).run()
    assert not examples(app)
    steps, ways = read(app)
    assert steps == ["20.0000%", "$2.00", "$2.00", "0.00%"]
    assert ways["Cross-encoder"][:6] == ["0.60", "300 ms", "$1.00", "$2.00", "$1.00", "100.00%"]
    for field, value in {
        "quality_before": "0.5",
        "quality_after": "0.6",
        "thousand": "any=2",
    }.items():
        assert app.query_params[field] in (value, [value])
    again = opened(quality_before="0.5", quality_after="0.6")
    assert read(again)[0][0] == "20.0000%"


def test_what_cannot_be_reckoned_says_why(opened):
    app = opened(quality_before="0")
    assert any("value is 0" in each.value for each in app.info)
