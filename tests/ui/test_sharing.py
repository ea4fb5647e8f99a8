"""Fields of links, and pages of a read-only workspace, which have no button that writes."""

import hashlib
import re
import runpy
import subprocess
import sys

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from rankdash.core.base.errors import StoreError
from rankdash.core.value import assumptions
from rankdash.core.value.assumptions import Assumptions
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.jobs.queue import Queue
from rankdash.core.workspace.notes import Corrections, Notes, Pins, RunNotes
from rankdash.kit.widgets import stored as widgets_stored
from rankdash.kit.widgets.view import PAGES

EVERY = sorted(page.stem for page in PAGES.glob("*.py"))


def go(app: AppTest, page: str, **params: str) -> AppTest:
    for name, value in params.items():
        app.query_params[name] = value
    return app.switch_page(str(PAGES / f"{page}.py")).run()


def test_no_field_of_the_address_waits_for_its_page():
    fresh = "from rankdash.kit.widgets import address, settings_form\n"
    fresh += "import importlib, pkgutil, rankdash; before = dict(address.FIELDS)\n"
    fresh += "for each in pkgutil.walk_packages(rankdash.__path__, 'rankdash.'):\n"
    fresh += "    if '.page_' in each.name: importlib.import_module(each.name)\n"
    fresh += "assert address.FIELDS == before, set(address.FIELDS.items()) ^ set(before.items())"
    done = subprocess.run([sys.executable, "-c", fresh], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]


@pytest.fixture
def read_only(workspace, stored, monkeypatch):
    """A workspace with one row of each kind, opened read-only."""
    run_id = workspace.runs(stored)[0].id
    Notes(workspace).store(stored, "q1", ["odd"], "look *here*")
    Corrections(workspace).correct(stored, ("q1", "d0"), 1.0, "Ann")
    RunNotes(workspace).store(run_id, "why it was made")
    Pins(workspace).pin(run_id)
    workspace.set_setting("scenarios", assumptions.write_scenarios({"careful": Assumptions()}))
    Queue(workspace).submit(
        dataset_id=stored, name="waits", reranker="bm25", settings={}, depth=None, sample=None,
        seed=0,
    )  # fmt: skip
    monkeypatch.setenv("RANKDASH_READ_ONLY", "1")
    widgets_stored.workspace.cache_clear()
    st.cache_resource.clear()
    return widgets_stored.workspace()


def bytes_of(root):
    return {
        str(file): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }


# Labels of buttons that do not write to the workspace, and patterns of the other buttons.
HARMLESS = {
    "Previous", "Next", "Restore the defaults", "Apply", "Use it", "Compare on Overview",
}  # fmt: skip
WRITING = (
    "^(Save|Delete|Rename|Import|Undo|Start|Unpin|Set the limit|Clear|Resume|Remove|"
    "Pin as baseline|Open the sample)$|Add|Run"
)


def test_a_walk_through_every_page_leaves_every_byte_as_it_was(unfolded, read_only):
    app, before = unfolded, bytes_of(read_only.root)
    parts = iter(("scenarios", "prices", "swings"))
    for page in (*EVERY, "cost", "cost"):
        go(app, page, part=next(parts) if page == "cost" else "swings")
        assert not app.exception, page
        assert not app.error, page
        assert any("Read only" in each.value for each in app.caption), page
        labels = {each.label for each in app.button} - HARMLESS
        assert not any(re.search(WRITING, each) for each in labels), page
        assert len(app.file_uploader) == 0 or page == "report"
    assert bytes_of(read_only.root) == before
    assert widgets_stored.worker.cache_info().currsize == 0
    with pytest.raises(StoreError, match="reading only"):
        widgets_stored.worker()


@pytest.mark.parametrize(("arguments", "read_only"), [([], False), (["--read-only"], True)])
def test_the_start_command_can_say_so(workspace, monkeypatch, arguments, read_only):
    monkeypatch.setenv("RANKDASH_READ_ONLY", "")
    monkeypatch.setattr("sys.argv", ["app.py", *arguments])
    runpy.run_path(str(PAGES.parent / "app.py"))
    assert Workspace.open(workspace.root).read_only is read_only
