"""A new name stands wherever the thing is named, in the other windows too."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.sets import ROOT
from tests.ui.test_sharing import go, said


@pytest.fixture
def window(workspace, stored, quick_starts):
    """Opens a page in a session of its own."""

    def opened(page):
        app = AppTest.from_file(str(ROOT / "rankdash" / "ui" / "main.py"), default_timeout=300)
        return go(app.run(), page)

    return opened


@pytest.mark.parametrize("page", ["overview", "queries", "report", "history", "data", "run"])
def test_a_renamed_data_set_has_its_name_in_every_window(window, workspace, stored, page):
    open_before = window(page)
    workspace.rename_dataset(stored, "Boutique")
    for app in (open_before.run(), window(page)):
        assert not app.exception
        inputs = [str(each.value) for each in app.text_input]
        shown = said(app) + str([each.options for each in app.selectbox]) + str(inputs)
        assert "Boutique" in shown
        assert "Shop" not in shown


def test_a_renamed_run_has_its_name_in_every_window(window, workspace, stored):
    open_before = window("overview")
    (row,) = workspace.runs(stored)
    workspace.rename_run(row.id, "sharper")
    for app in (open_before.run(), window("overview")):
        assert not app.exception
        assert "sharper" in said(app) and "better →" not in said(app)
