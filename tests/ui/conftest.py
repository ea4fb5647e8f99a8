"""A separate workspace for each test, with a small data set and one finished run."""

import atexit
import functools
import importlib
import pkgutil
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import rankdash
from rankdash.core.base.shipped import INTERFACE
from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.workspace import Workspace
from rankdash.kit.widgets import component, dialogs, redraw
from rankdash.kit.widgets import stored as widgets_stored
from tests.stored import keep_rows

ROOT = Path(__file__).parents[2]

ROWS = "query_id,query,doc_id,document,label,score,kind\n" + "".join(
    f"q{q},how to return {q},d{d},document {d},{int(d == q % 4)},{4 - d},{'ab'[q > 7]}\n"
    for q in range(16)
    for d in range(4)
)


def lists_at(place: int, queries: int = 16) -> list[tuple[str, list[str], list[float]]]:
    """Return the lists of a run of `ROWS`: the relevant document of each query is at the index
    `place`."""
    found = []
    for q in range(queries):
        order = [f"d{d}" for d in range(4) if d != q % 4]
        order.insert(place, f"d{q % 4}")
        found.append((f"q{q}", order, [4.0, 3.0, 2.0, 1.0]))
    return found


@pytest.fixture(autouse=True)
def no_window(monkeypatch):
    """Draw every part of a page, because tests have no window to scroll."""

    def when_seen(study, key, title, height, draw, *of):
        if title:
            st.header(title, anchor=False)
        draw(study)

    monkeypatch.setattr(component, "when_seen", when_seen)


@functools.cache
def _empty() -> Path:
    """Return an empty workspace to copy, because creating one takes ten times as long."""
    folder = Path(tempfile.mkdtemp(prefix="rankdash-empty-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Workspace(folder)
    return folder


@contextmanager
def opened_at(folder: Path) -> Iterator[Workspace]:
    """Yield the workspace of a folder, opened as on the server, read by one connection per page."""

    def forget() -> None:
        widgets_stored.worker.cache_clear()
        widgets_stored.workspace.cache_clear()
        st.cache_resource.clear()

    if not folder.is_dir() or not any(folder.iterdir()):
        shutil.copytree(_empty(), folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKDASH_HOME", str(folder))
        forget()
        made = widgets_stored.workspace()
        with made.database.held_open():
            yield made
        if widgets_stored.worker.cache_info().currsize:
            widgets_stored.worker().stop()
        forget()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with opened_at(tmp_path) as made:
        yield made


@pytest.fixture
def stored(workspace: Workspace) -> str:
    """Store a data set with one run, "better", which ranks every relevant document first and fails
    on q15. Return the id of the data set."""
    dataset_id = keep_rows(workspace, ROWS, "Shop")
    best = Ranking.from_lists(lists_at(0, 15))
    run = run_from_ranking("better", dataset_id, best, "better.trec")
    failed = run.queries.iloc[[0]].assign(query_id="q15", state="failed", reason="no *luck*")
    queries = pd.concat([run.queries, failed], ignore_index=True)
    workspace.save_run(replace(run, queries=queries))
    return dataset_id


@pytest.fixture(autouse=True)
def _every_app_starts_quickly(quick_starts: None) -> None:
    pass


@pytest.fixture
def app(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    # Small files are read within one rerun, however busy the machine is.
    monkeypatch.setattr("rankdash.features.data.page_upload.AT_ONCE_SECONDS", float("inf"))
    return AppTest.from_file(str(INTERFACE), default_timeout=300)


class Hand:
    """A replacement for the worker, without a process.

    keys: job → the API keys passed to it. asked: number of calls to continue.
    """

    def __init__(self) -> None:
        self.keys: dict[str, dict[str, str]] = {}
        self.asked = 0

    def ensure(self) -> None:
        self.asked += 1

    def hand_over(self, job_id: str, keys: dict[str, str]) -> None:
        self.keys[job_id] = dict(keys)

    def stop(self) -> None:
        pass


@pytest.fixture
def hand(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Hand:
    """A worker that is never started."""
    made = Hand()
    monkeypatch.setattr(widgets_stored, "WorkerProcess", lambda _workspace: made)
    return made


@pytest.fixture
def unfolded(app: AppTest, hand: Hand, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """The app with all expanders open; no worker processes the queue."""

    def fold(title: str, key: str, icon: str, draw: Callable[[], None]) -> None:
        with st.expander(title, icon=icon, expanded=True):
            draw()

    # Otherwise a module that is imported later would contain this `fold` in all later tests.
    for found in pkgutil.walk_packages(rankdash.__path__, "rankdash."):
        if ".page_" in found.name:
            importlib.import_module(found.name)
    for module in [each for name, each in sys.modules.items() if name.startswith("rankdash.")]:
        if getattr(module, "fold", None) is redraw.fold:
            monkeypatch.setattr(module, "fold", fold)
    app.session_state["labelling.name"] = "Ann"
    return app


@pytest.fixture
def run_form(app: AppTest, stored: str, hand: Hand) -> AppTest:
    """The page Run with BM25 selected; no worker processes the started jobs."""
    app.query_params["data"] = stored
    app.switch_page(str(ROOT / "pages" / "run.py")).run()
    app.multiselect(key="run.rerankers").set_value(["bm25"]).run()
    return app


@pytest.fixture
def sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletion without the dialog for confirmation."""
    monkeypatch.setattr(dialogs, "delete", lambda _title, _said, apply: (apply(), st.rerun()))


class Paper:
    """A replacement for Streamlit in a module: it records the drawn elements in order."""

    column_config = st.column_config

    def __init__(self) -> None:
        self.drawn: list[tuple[str, Any, dict[str, Any]]] = []
        self.answers: dict[str, Any] = {"button": False, "file_uploader": None}

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        def draw(first: Any = None, *_more: Any, **settings: Any) -> Any:
            self.drawn.append((kind, first, settings))
            return self.answers.get(kind, self)

        return draw

    def columns(self, spec: int | list[int], **_settings: Any) -> list["Paper"]:
        return [self] * (spec if isinstance(spec, int) else len(spec))

    def __enter__(self) -> "Paper":
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def __getitem__(self, _selected: str) -> Any:
        return {"rows": []}

    def __call__(self, part: Any) -> Any:
        return part  # the function of a fragment or a dialog

    def of(self, *kinds: str) -> list[Any]:
        """Return the recorded elements of some kinds, such as "caption"."""
        return [first for kind, first, _settings in self.drawn if kind in kinds]


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Paper]:
    """Replace Streamlit in modules by one `Paper` until the end of the test."""

    def on(*modules: Any) -> Paper:
        made = Paper()
        for module in modules:
            monkeypatch.setattr(module, "st", made)
        return made

    return on


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The session state as a plain dictionary, for functions that draw nothing."""
    kept: dict[str, Any] = {}
    monkeypatch.setattr(st, "session_state", kept)
    return kept


@pytest.fixture
def only_shown(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that opens the workspace read-only."""

    def reopened() -> None:
        monkeypatch.setenv("RANKDASH_READ_ONLY", "1")
        widgets_stored.workspace.cache_clear()
        st.cache_resource.clear()

    return reopened
