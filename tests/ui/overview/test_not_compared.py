"""Overview: runs that the comparison leaves out are announced, and added by one click."""

from streamlit.testing.v1 import AppTest

from tests.ui.test_links import address_of, opened, shop  # noqa: F401 - a fixture

BUTTON = "overview.add"


def announced(app: AppTest) -> list[str]:
    return [str(each.value) for each in app.caption if "not shown" in str(each.value)]


def compared(app: AppTest) -> list[str]:
    return list(app.multiselect(key="address.system").value)


def test_runs_that_are_not_shown_are_announced_until_they_are_added(shop, workspace):  # noqa: F811
    runs = {row.name: row.id for row in workspace.runs(shop["data"])}
    app = opened("overview", {**shop, "system": runs["top"]})
    assert announced(app) == ["2 runs are not shown"]
    app.button(key=BUTTON).click().run()
    assert not app.exception
    assert set(compared(app)) == set(runs.values())
    assert announced(app) == []
    # A link shows the same.
    assert compared(opened("overview", address_of(app))) == compared(app)


def test_the_baseline_is_shown_and_a_comparison_of_all_runs_announces_nothing(shop, workspace):  # noqa: F811
    runs = {row.name: row.id for row in workspace.runs(shop["data"])}
    assert announced(opened("overview", shop)) == []
    app = opened("overview", {**shop, "base": runs["low"], "system": runs["top"]})
    assert announced(app) == ["1 run is not shown"]


def test_in_chinese(shop, workspace):  # noqa: F811
    runs = {row.name: row.id for row in workspace.runs(shop["data"])}
    app = opened("overview", {**shop, "system": runs["top"], "lang": "zh"})
    assert "2 次运行未显示" in [str(each.value) for each in app.caption]
