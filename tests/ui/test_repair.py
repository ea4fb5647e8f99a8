"""A workspace whose database is gone: every page says so and shows what there is, a button repairs
it, and a workspace that is only shown offers none."""

from pathlib import Path

import pytest
import streamlit as st

from rankdash.store.notes.notes import Notes
from rankdash.ui.state import server
from rankdash.ui.widgets.text import markdown_safe
from tests.ui.test_sharing import EVERY, go

FOUND = "- Found: 1 data set, 1 run, 0 notes, 0 label corrections."


def missing(file: Path) -> str:
    """What is said of a database that is not there."""
    return markdown_safe(
        f"The database of the workspace {file.parent} is missing. Nothing in it is deleted, and it "
        "is open for reading only. To repair it, close other programs that use it and run: "
        "rankdash workspace repair",
        600,
    )


class Hand:
    """The worker, without a process."""

    def ensure(self):
        pass

    def stop(self):
        pass


@pytest.fixture
def broken(workspace, stored, monkeypatch):
    Notes(workspace).keep(stored, "q1", ["odd"], "look *here*")
    for copy in (workspace.root / "backups").glob("*"):
        copy.unlink()
    file = workspace.database.file
    file.rename(file.with_name("elsewhere"))
    server.workspace.cache_clear()
    st.cache_resource.clear()
    monkeypatch.setattr(server, "WorkerProcess", lambda workspace: Hand())
    return file


@pytest.mark.parametrize("page", EVERY)
def test_every_page_says_what_is_wrong_and_shows_what_there_is(app, broken, page):
    go(app, page)
    assert not app.exception
    (said,) = [str(each.value) for each in app.error]
    assert said.splitlines() == [missing(broken), "", FOUND]
    assert [each.label for each in app.button].count("Repair workspace") == 1


def test_the_button_repairs_and_says_what_came_back(app, broken, stored):
    app.run()
    app.button(key="repair").click().run()
    assert not app.error
    (said,) = [each.value.splitlines() for each in app.success]
    assert said[:3] == ["The workspace is repaired.", "", FOUND]
    assert not server.read_only()
    assert [row.id for row in server.workspace().datasets()] == [stored]
    app.run()
    assert not app.success


def test_the_message_is_said_in_chinese(app, broken):
    app.query_params["lang"] = "zh"
    app.run()
    (said,) = [str(each.value) for each in app.error]
    folder = markdown_safe(str(broken.parent), 600)
    assert said.startswith(f"工作区 {folder} 的数据库不见了。")
    assert said.splitlines()[2] == "- 已找到：1 个数据集、1 次运行、0 条备注、0 条标注更正。"


def test_what_is_only_shown_offers_no_repair(app, broken, monkeypatch):
    monkeypatch.setenv("RANKDASH_READ_ONLY", "1")
    app.run()
    assert [str(each.value).splitlines()[2] for each in app.error] == [FOUND]
    assert "Repair workspace" not in [each.label for each in app.button]
