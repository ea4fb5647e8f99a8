"""Lives of whole pages: links, exported and imported files, and changes in another window."""

import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import streamlit as st

from rankdash.app import sidebar
from rankdash.core.base.errors import StoreError
from rankdash.core.data.ranking import Ranking, Reading
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.workspace.database import files_of
from rankdash.core.workspace.notes import Corrections, Notes, Pins
from rankdash.features.data import page_list, page_upload
from rankdash.kit.widgets import address as widgets_address
from rankdash.kit.widgets import language
from rankdash.kit.widgets import stored as widgets_stored
from rankdash.kit.widgets.text import markdown_safe
from rankdash.kit.widgets.view import PAGES
from tests.approved import masked
from tests.stored import keep_rows
from tests.ui.conftest import ROWS, lists_at
from tests.ui.lives import lives, play
from tests.ui.parts import send
from tests.ui.sessions import whole

CHANGING = {
    "moment": r"\b[A-Z][a-z]{2} \d+, \d{4}, [\d:]+\s[AP]M",
    "digest": r"(?<=-)[0-9a-f]{8}\b",
}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(9)


class Ids:
    """Name → id of present and deleted data sets and runs."""

    def __init__(self, workspace):
        self.workspace, self.found = workspace, {}

    @property
    def all(self):
        now = widgets_stored.workspace()
        rows = (*now.datasets(), *now.runs())
        self.found |= {row.name: row.id for row in rows}
        return self.found

    def address(self, given):
        """Return fields such as "base={better}", each with one or more values."""
        found = {}
        for name, _, value in (each.partition("=") for each in given if "=" in each):
            found.setdefault(name, []).append(value.format_map(self.all))
        return found

    def mask(self, text):
        for folder in (str(self.workspace.root), markdown_safe(str(self.workspace.root), 600)):
            text = text.replace(folder, "HOME")
        for name, each in self.all.items():
            text = text.replace(each, f"<{name}>")
        return masked(text, **CHANGING)


class Acts:
    """Acts in one window, and in other windows or processes."""

    def __init__(self, workspace, dataset_id, patch, only_shown):
        self.workspace, self.patch, self.read_only = workspace, patch, only_shown
        self.data, self.app, self.windows, self.asked = dataset_id, None, [], []
        self.ids, self.files = Ids(workspace), {"logo.png": PNG}

    def open(self, page, *given):
        """Open a page in a new window: fields of its link, and keys of open expanders."""
        state = {each: True for each in given if "=" not in each}
        self.app = whole(page, state, **{"lang": "en", "data": self.data} | self.ids.address(given))
        self.windows.append(self.app)
        return self.app

    def window(self, number):
        """Return to a window without a rerun."""
        self.app = self.windows[int(number)]
        return self.app

    def go(self, page, *given):
        """Open another page in the same window."""
        self.app.query_params.update(self.ids.address(given))
        return self.app.switch_page(str(PAGES / f"{page}.py")).run()

    def bare(self, page):
        """Open another page with an empty address."""
        self.app.query_params.clear()
        return self.go(page)

    def choose(self, field, name):
        self.app.selectbox(key=f"address.{field}").set_value(self.ids.all[name])

    def tick(self, *names):
        """Select exactly these systems in the leaderboard."""
        send(self.app, "leaderboard", {"systems": [self.ids.all[name] for name in names]})

    def file(self, name, content):
        self.files[name] = content

    def upload(self, label, name):
        field = next(each for each in self.app.file_uploader if label in each.label)
        content = self.files[name]
        field.set_value((name, content if isinstance(content, bytes) else content.encode(), ""))

    def uncheck(self):
        """Clear all checkboxes in one run."""
        for box in self.app.checkbox:
            if not box.disabled:
                box.uncheck()

    def export(self, name):
        self.files[name] = page_list.exported([self.data])

    def runs(self, *given):
        """Store runs with the relevant documents at an index: "name=0"; the newest last."""
        for at, (name, place) in enumerate((each.split("=") for each in given), start=1):
            run = run_from_ranking(name, self.data, Ranking.from_lists(lists_at(int(place))), name)
            self.workspace.save_run(replace(run, created=f"2030-01-0{at}T10:00:00+00:00"))

    def timed(self, name):
        """Store a run with latencies, tokens and lengths, on as many documents for each query."""
        run = self.workspace.run(self.ids.all[name])
        queries = run.queries.assign(latency_ms=np.arange(10.0, 26.0), pairs=4.0, tokens=100.0)
        read = np.full(len(run.ranking), 25, dtype=np.int32)
        own = {"id": "f" * 16, "name": "timed", "queries": queries}
        self.workspace.save_run(replace(run, **own, reading=Reading(read, read + 5)))

    def another(self, name):
        keep_rows(self.workspace, ROWS.replace("how", name), name)

    def rename(self, old, new):
        kind = "run" if old in [row.name for row in self.workspace.runs()] else "dataset"
        getattr(self.workspace, f"rename_{kind}")(self.ids.all[old], new)

    def delete(self, *names):
        for name in names:
            is_run = name in [row.name for row in self.workspace.runs()]
            kind = "run" if is_run else "dataset"
            getattr(self.workspace, f"delete_{kind}")(self.ids.all[name])

    def choices(self, text):
        """Set all choices that belong to a data set, and a metric, as if made in this window."""
        made = {name: [text] for name in widgets_address.OF_A_DATA_SET} | {"metric": ["map"]}
        self.app.session_state["address.choices"] |= made
        return self.app

    def pin(self, name):
        Pins(self.workspace).pin(self.ids.all[name])

    def correct(self, doc, label):
        Corrections(self.workspace).correct(self.data, ("q5", doc), float(label), "")

    def note(self, text):
        Notes(self.workspace).store(self.data, "q1", ["odd"], text)

    def again(self):
        """Rerun the page."""

    def full(self):
        """Make the removal of a pin fail because the disk is full."""
        self.patch.setattr(Pins, "unpin", refused)

    def free(self):
        self.patch.setattr(Pins, "unpin", UNPIN)

    def damage(self, kind, name):
        """Change a byte of a file of the data set or of the first run."""
        [folder, *_] = sorted((self.workspace.root / kind).glob("*"))
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:9] + bytes([content[9] ^ 1]) + content[10:])
        widgets_stored.workspace.cache_clear()

    def lose(self):
        """Move the database away and delete its backups and its SQLite side files."""
        file = self.workspace.database.file
        for copy in (*(self.workspace.root / "backups").glob("*"), *files_of(file)[1:]):
            copy.unlink(missing_ok=True)
        file.rename(file.with_name("elsewhere"))
        widgets_stored.workspace.cache_clear()
        st.cache_resource.clear()

    def user(self, *claims):
        """Set the user who is logged in, by the claims of a provider."""
        claims = dict(each.split("=") for each in claims)
        self.patch.setattr(language.st, "user", {"is_logged_in": bool(claims), **claims})

    def authlib(self, is_there):
        self.patch.setitem(sys.modules, "authlib", sys if is_there == "yes" else None)


UNPIN = Pins.unpin


def refused(*_given):
    raise StoreError("No room.")


@pytest.mark.parametrize("life", lives("pages"))
def test_a_life_of_a_page(life, approved, workspace, stored, only_shown, sure, hand, monkeypatch):
    acts = Acts(workspace, stored, monkeypatch, only_shown)
    monkeypatch.setattr(page_upload, "AT_ONCE_SECONDS", float("inf"))
    for name in ("login", "logout"):
        monkeypatch.setattr(sidebar.st, name, partial(acts.asked.append, name))

    def chosen():
        found = acts.app.session_state["address.choices"] if acts.app else {}
        return {name: found[name] for name in found if name not in ("data", "lang")}

    def linked():
        found = acts.app.query_params if acts.app else {}
        return {name: found[name] for name in found if name not in ("data", "lang")}

    def primary():
        buttons = acts.app.button if acts.app else []
        return [each.label for each in buttons if each.proto.type == "primary"]

    def kept():
        now = widgets_stored.workspace()
        notes = [f"{each.text} by {each.who}" for each in Notes(now).all(stored)]
        labels = [
            f"{each.doc_id} {each.label} by {each.who}" for each in Corrections(now).all(stored)
        ]
        rows = [row.name for row in (*now.datasets(), *now.runs())]
        return [*rows, *notes, *labels, f"pin: {Pins(now).of(stored)}"]

    every = {name: getattr(acts, name) for name in dir(acts) if name[0] != "_"}
    facts = {
        "address": linked,
        "primary": primary,
        "stored": kept,
        "asked": lambda: acts.asked,
    }
    if "elsewhere" in life:
        facts["choices"] = chosen
    approved(life, play(life, every, facts, acts.ids.mask, sidebar=True))
