"""Uploaded files: on disk as long as they are needed, and not in the server's memory."""

import copy
import errno
import gc
from pathlib import Path

import pytest
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFile
from streamlit.testing.v1 import AppTest

from rankdash.kit.widgets import uploader

LARGE = bytes(range(250)) * 8_000
GIVEN = [("a.csv", LARGE, "text/plain"), ("b.csv", b"small", "text/plain")]


def page() -> None:
    import streamlit as st

    from rankdash.kit.widgets import uploader

    field = f"a.files.{st.session_state.get('generation', 0)}"
    st.session_state["found"] = uploader.uploader("Files", field, accept_multiple_files=True)


@pytest.fixture
def app() -> AppTest:
    return AppTest.from_function(page, default_timeout=300).run()


@pytest.fixture
def managers(monkeypatch) -> list[MemoryUploadedFileManager]:
    """The file managers that replace the browser's server."""
    found = []
    add = MemoryUploadedFileManager.add_file

    def noted(self, session_id, file):
        found.append(self)
        add(self, session_id, file)

    monkeypatch.setattr(MemoryUploadedFileManager, "add_file", noted)
    return found


def give(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upload files as a browser does: the bytes once, and their names at each rerun."""
    app.file_uploader[0].set_value(GIVEN).run()
    monkeypatch.setattr(AppTest, "_register_uploaded_files", lambda *_given: None)


def test_large_files_are_on_disk_and_no_longer_in_memory(app, managers, monkeypatch):
    give(app, monkeypatch)
    held = [len(file.data) for file in managers[-1].file_storage.popitem()[1].values()]
    assert held == [len(b"small")]
    for _ in range(2):
        large, small = app.session_state["found"]
        assert (large.name, large.data) == ("a.csv", LARGE) and large.on_disk
        assert (small.name, small.data) == ("b.csv", b"small") and not small.on_disk
        app.run()


def test_streamlit_copies_no_large_file(app, monkeypatch):
    copied = []

    def noted(self, _memo):
        copied.append((self.name, len(self.getvalue())))
        return copy.copy(self)

    monkeypatch.setattr(UploadedFile, "__deepcopy__", noted, raising=False)
    give(app, monkeypatch)
    assert copied[:2] == [("a.csv", 0), ("b.csv", 5)]


def test_the_disk_is_free_when_nothing_holds_the_file(app, monkeypatch):
    give(app, monkeypatch)
    large = app.session_state["found"][0]
    path = large.content
    app.session_state["generation"] = 1
    app.run().run()
    assert app.session_state["found"] == ()
    assert path.read_bytes() == LARGE, "who reads it needs it"
    del large
    gc.collect()
    assert not path.exists()


def test_where_the_disk_is_full_a_file_stays_in_memory(app, monkeypatch):
    def full(**_settings):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(uploader.tempfile, "NamedTemporaryFile", full)
    give(app, monkeypatch)
    large, _small = app.session_state["found"]
    assert large.content == LARGE


def test_a_file_that_is_taken_out_again_is_gone(app, monkeypatch):
    app.file_uploader[0].set_value(GIVEN).run()
    path = app.session_state["found"][0].content
    assert isinstance(path, Path)
    app.file_uploader[0].set_value(GIVEN[1:]).run().run()
    assert [each.name for each in app.session_state["found"]] == ["b.csv"]
    gc.collect()
    assert not path.exists()
