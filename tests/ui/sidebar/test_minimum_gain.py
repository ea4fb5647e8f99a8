"""The minimum practically relevant gain: none unless a user sets it, and 15 % with one click."""

import pytest

from rankdash.study.systems import FIRST_STAGE
from rankdash.ui.state import address
from tests.stored import keep_lists

FIELD = "address.worthwhile"


@pytest.fixture
def slight(app, stored, workspace):
    """The app on a gain of a fifth: the relevant document of three in four queries is one rank
    higher."""
    orders = ((0, 1, 2, 3), (1, 0, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2))
    lists = [(f"q{q}", [f"d{d}" for d in orders[q % 4]], [4.0, 3.0, 2.0, 1.0]) for q in range(16)]
    run = keep_lists(workspace, stored, lists, "slight")
    app.query_params["data"], app.query_params["base"] = stored, FIRST_STAGE
    app.query_params["system"] = run.id
    app.session_state["sidebar.statistics"] = True
    return app


def verdict(app) -> str:
    return next(str(each.value) for each in app.main.markdown if "is better than" in each.value)


def preset(app):
    return [each for each in app.button if each.label == "Set 15% (rule of thumb)"]


def test_without_a_choice_there_is_no_minimum_and_one_click_sets_the_common_one(slight):
    app = slight.run()
    assert not app.exception
    assert app.selectbox(key=FIELD).value == "auto"
    assert "only by" not in verdict(app) and "15%" not in verdict(app)
    assert "worthwhile" not in app.query_params
    preset(app)[0].click().run()
    assert not app.exception
    assert app.selectbox(key=FIELD).value == "0.15"
    assert app.query_params["worthwhile"] == "0.15"
    assert not preset(app)
    app.selectbox(key=FIELD).set_value("0.5").run()
    assert "only by" in verdict(app) and "50% (set by the user)" in verdict(app)


@pytest.mark.parametrize(
    ("written", "chosen"),
    [(None, "auto"), ("0.15", "0.15"), ("0", "0"), ("auto", "auto"), ("much", "auto")],
)
def test_a_link_of_before_opens_and_what_it_does_not_name_is_not_set(slight, written, chosen):
    """15 % was the default and was not written into a link: without it nothing was chosen."""
    if written is not None:
        slight.query_params["worthwhile"] = written
    app = slight.run()
    assert not app.exception
    assert app.selectbox(key=FIELD).value == chosen
    assert bool(preset(app)) is (chosen == "auto")
    assert address.FIELDS["worthwhile"] == "auto"
