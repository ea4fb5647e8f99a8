"""Sharing: a link says what it asked for in vain, a file goes out and in, read-only offers nothing
that writes."""

import hashlib
import re
import runpy
import subprocess
import sys
from urllib.parse import parse_qs, urlsplit

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from rankdash import sharing
from rankdash.errors import StoreError
from rankdash.store import Workspace
from rankdash.store.jobs.queue import Queue
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.notes import Notes
from rankdash.store.notes.pins import Pins
from rankdash.store.notes.run_notes import RunNotes
from rankdash.ui.data import sharing_files
from rankdash.ui.sidebar.view import PAGES
from rankdash.ui.state import server
from rankdash.value.assumptions import Assumptions

EVERY = sorted(page.stem for page in PAGES.glob("*.py"))


def said(app: AppTest) -> str:
    kinds = (app.warning, app.caption, app.markdown, app.info, app.success, app.error)
    return "\n".join(str(each.value) for kind in kinds for each in kind)


def warnings(app: AppTest) -> list[str]:
    return [str(each.value) for each in app.warning]


def not_here(what: str) -> str:
    return f"This link refers to things that are not here; defaults are shown for: {what}."


def go(app: AppTest, page: str, **params: str) -> AppTest:
    for name, value in params.items():
        app.query_params[name] = value
    return app.switch_page(str(PAGES / f"{page}.py")).run()


@pytest.fixture
def run_id(workspace, stored):
    return workspace.runs(stored)[0].id


def test_an_unknown_data_set_is_said_once_and_its_runs_not_at_all(app, stored):
    app.query_params["data"], app.query_params["base"] = "f" * 16, "0" * 16
    app.run()
    (warning,) = warnings(app)
    assert "not in this workspace; Shop is shown" in warning
    assert "Import" in warning
    # The next page has been told no such thing: its link is empty.
    app.query_params.clear()
    app.switch_page(str(PAGES / "data.py")).run()
    assert warnings(app) == []


# Page, link, warning. Text is escaped, and an address is broken by a word joiner.
LINKS = [
    (
        "overview",
        {"base": "f" * 16, "system": "f" * 16, "metric": "magic", "k": "99999999", "level": "lots"},
        "Baseline “ffffffffffffffff” · Systems to compare “ffffffffffffffff” · Metric “magic” · "
        "Cutoff k “99999999” · Confidence “lots”",
    ),
    (
        "overview",
        {"metric": "[x](http://y.z) <b>", "k": "-1"},
        "Metric “\\[x\\]\\(http\\:\u2060\\/\\/y\\.z\\) \\<b\\>” · Cutoff k “\\-1”",
    ),
    ("queries", {"q": "q99", "delta": "x"}, "Change “x” · query “q99”"),
    (
        "cost",
        {"price": "{run}=nothing", "elasticity": "nan", "traffic_share": "7", "setup_cost": "-1",
         "searches_per_day": "<script>"},
        r"Searches a day “\<script\>” · Share of the traffic that the test set represents “7” · "
        r"Value gained for each 1% of quality “nan” · One-off cost “\-1” · Prices “nothing”",
    ),
    (
        "cost",
        {"elasticity": "1e999", "currency": "XXX", "also": "nothing"},
        "Currency “XXX” · Value gained for each 1% of quality “1e999” · Prices “nothing”",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("page", "link", "words"), LINKS)
def test_values_that_cannot_be_are_said_and_fall_back(app, stored, run_id, page, link, words):
    given = {name: value.format(run=run_id) for name, value in link.items()}
    go(app, page, data=stored, **given)
    assert not app.exception and warnings(app) == [not_here(words)]


def test_a_good_link_says_nothing_and_is_offered_again(app, stored, run_id):
    wanted = {
        "data": stored, "base": run_id, "system": "first-stage", "metric": "mrr", "k": "3",
        "elasticity": "0.25", "monthly_cost": "400", "per": "year", "currency": "EUR",
        "price": "first-stage=own",
    }  # fmt: skip
    for name, value in wanted.items():
        app.query_params[name] = value
    go(app, "cost")
    assert warnings(app) == []
    app.session_state["sharing.link"] = True
    app.run()
    found = parse_qs(urlsplit(app.code[-1].value).query)
    assert {name: found[name] for name in wanted} == {n: [value] for n, value in wanted.items()}
    # What is at its default is not in it.
    assert "setup_cost" not in found and "part" not in found
    # It stays in the link of other pages.
    go(app, "overview")
    assert app.query_params["elasticity"] in ("0.25", ["0.25"])


def test_no_field_of_the_address_waits_for_its_page():
    fresh = "from rankdash.ui.state import address\n"
    fresh += "from rankdash.ui.sidebar import comparison_settings; before = dict(address.FIELDS)\n"
    fresh += "import importlib, pkgutil, rankdash.ui as ui\n"
    fresh += "for each in pkgutil.walk_packages(ui.__path__, 'rankdash.ui.'):\n"
    fresh += "    if each.name != 'rankdash.ui.main': importlib.import_module(each.name)\n"
    fresh += "assert address.FIELDS == before, set(address.FIELDS.items()) ^ set(before.items())"
    done = subprocess.run([sys.executable, "-c", fresh], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]


def test_a_broken_file_is_refused_and_an_import_says_what_it_did_and_what_stays(
    app, stored, workspace
):
    content = sharing_files.exported([stored])
    workspace.rename_dataset(stored, "*Mine*")
    app.session_state["data.share"] = True
    go(app, "data")
    for file, told in ((b"no zip", "This is no workspace file"), (content, "All of it is in this")):
        key = next(each for each in app.file_uploader if "workspace file" in each.label)
        key.set_value(("shop.rankdash.zip", file, "application/zip")).run()
        next(each for each in app.button if each.key == "sharing.import").click().run()
        assert not app.exception and told in said(app)
        assert len(workspace.datasets()) == 1
    assert "The data set Shop is called" in said(app)
    assert "*Mine*" not in said(app)


def test_a_workspace_file_among_the_uploads_is_told_where_to_go(app, stored):
    go(app, "data")
    uploader = next(each for each in app.file_uploader if "Labelled queries" in each.label)
    content = sharing_files.exported([stored])
    uploader.set_value(("x.rankdash.zip", content, "application/zip")).run()
    assert app.info[0].value.replace("\\", "") == (
        "x.rankdash.zip is a workspace file. Import it at the end of this page, under *Export or "
        "import the workspace*."
    )
    assert not any("Read " in each.label for each in app.button)


@pytest.fixture
def read_only(workspace, stored, monkeypatch):
    """The workspace with something of everything, opened for reading only."""
    run_id = workspace.runs(stored)[0].id
    Notes(workspace).keep(stored, "q1", ["odd"], "look *here*")
    Corrections(workspace).correct(stored, ("q1", "d0"), 1.0, "Ann")
    RunNotes(workspace).keep(run_id, "why it was made")
    Pins(workspace).pin(run_id)
    workspace.set_setting("scenarios", sharing.write_scenarios({"careful": Assumptions()}))
    Queue(workspace).submit(
        dataset_id=stored, name="waits", reranker="bm25", settings={}, depth=None, sample=None,
        seed=0,
    )  # fmt: skip
    monkeypatch.setenv("RANKDASH_READ_ONLY", "1")
    server.workspace.cache_clear()
    st.cache_resource.clear()
    return server.workspace()


def bytes_of(root):
    return {
        str(file): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }


# Words on buttons that change nothing that is stored, and on those that do.
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
    assert server.worker.cache_info().currsize == 0
    with pytest.raises(StoreError, match="reading only"):
        server.worker()


@pytest.mark.parametrize(("arguments", "read_only"), [([], False), (["--read-only"], True)])
def test_the_start_command_can_say_so(workspace, monkeypatch, arguments, read_only):
    monkeypatch.setenv("RANKDASH_READ_ONLY", "")
    monkeypatch.setattr("sys.argv", ["app.py", *arguments])
    runpy.run_path(str(PAGES.parent / "app.py"))
    assert Workspace.open(workspace.root).read_only is read_only


def test_what_is_damaged_is_named_before_the_export(app, stored, workspace):
    [row] = workspace.runs(stored)
    (file,) = workspace.root.glob(f"runs/{row.id}-*/queries.parquet")
    content = file.read_bytes()
    file.write_bytes(content[:9] + bytes([content[9] ^ 4]) + content[10:])
    app.session_state["data.share"] = True
    go(app, "data")
    assert f"Damaged, and not in the file: {row.name}." in warnings(app)
