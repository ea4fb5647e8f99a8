"""No text of a workspace file is rendered as markup on a page, with any part open, or in a file for
download."""

import csv
import io
import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
import streamlit as st
from markdown_it import MarkdownIt
from streamlit.delta_generator import DeltaGenerator

from rankdash.app import server
from rankdash.core.base.errors import StoreError
from rankdash.core.workspace import Workspace
from rankdash.features.report import charts_images
from rankdash.kit.widgets import address
from tests.marked import Markup, fill, rows_marked, written
from tests.ui.conftest import opened_at
from tests.ui.test_sharing import EVERY, go

MARKUP = Markup("http://127.0.0.1:9")
TURNED = r"[\x07\u202e]"
# Characters that CommonMark, GFM and Streamlit turn into elements unless they are escaped:
# addresses by a word joiner, other texts by backslashes.
RENDERED = {
    "html": rf"<img src=http|{TURNED}",
    "plotly_chart": rf"<img src=http|{TURNED}",
    # A component shows its data as text.
    "bidi_component": TURNED,
    # Escapes, such as the word joiner, would be visible.
    "selectbox": rf"{TURNED}|\u2060",
    "multiselect": rf"{TURNED}|\u2060",
}
MARKDOWN = rf"http://127|(?<!\\)\]\(|(?<!\\)<img|:red\[|:material/bug|\$\\href|{TURNED}"
# Fields shown without Markdown, and editable fields, which show the stored text.
PLAIN = {"id", "element_id", "alt", "default", "value", "data", "placeholder"}


@pytest.fixture(scope="module", params=["rows", pytest.param("files", marks=pytest.mark.thorough)])
def home(request, tmp_path_factory):
    """A workspace with markup in its rows or, in a minute, in all its files."""
    folder = tmp_path_factory.mktemp("marked")
    if request.param == "files":
        fill(folder / "home", folder / "scratch", MARKUP)
    else:
        rows_marked(written(Workspace(folder / "home"), MARKUP), MARKUP)
    return folder / "home"


@pytest.fixture
def workspace(home, tmp_path):
    with opened_at(shutil.copytree(home, tmp_path / "home")) as copied:
        yield copied


@pytest.fixture
def unfolded(unfolded):
    unfolded.session_state["labelling.name"] = MARKUP.short("annotator")
    return unfolded


def texts(message: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield (field, text) of all texts of a message to the browser."""
    for each, value in message.ListFields():
        values = value if each.is_repeated else [value]
        for one in values:
            if each.type == each.TYPE_STRING:
                yield each.name, one
            elif hasattr(one, "ListFields"):
                yield from texts(one, each.name)


def rendered(app) -> list[tuple[str, str, str]]:
    """Return (kind of element, field, text) of the texts that a browser would render as markup."""
    found = []
    for node in nodes(app):
        proto = getattr(node, "proto", None)
        for field, text in texts(proto) if hasattr(proto, "ListFields") else ():
            if node.type == "bidi_component":
                text = "\n".join(shown_by(json.loads(text))) if field == "json" else ""
            if field == "columns":
                text = " ".join(each.get("help") or "" for each in json.loads(text).values())
            # The choices of a list are plain text, but its label is Markdown.
            own = RENDERED.get(node.type, MARKDOWN) if field not in ("label", "help") else MARKDOWN
            # A page within the page.
            if node.type == "iframe":
                found += [("iframe", field, each) for each in live("page.html", text)]
            elif field not in PLAIN and re.search(own, text, re.IGNORECASE):
                found.append((node.type, field, text))
    return found


def shown_by(data: Any) -> Iterator[str]:
    """Yield the texts of a component's data, without the ids of queries and documents."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for name, each in data.items():
            if name in ("docs", "rows"):
                each = [row[1:] if isinstance(row, list) else row for row in each]
            if name != "query":
                yield from shown_by(each)
    elif isinstance(data, list):
        for each in data:
            yield from shown_by(each)


def nodes(app):
    """Return all elements of a page and its sidebar, and their containers."""
    return [each for block in (app.main, app.sidebar) for each in below(block)]


def below(block):
    for each in block.children.values():
        yield each
        yield from below(each) if hasattr(each, "children") else ()


@pytest.fixture
def offered(monkeypatch):
    """Return name → content of the files that a page offers."""
    files = {}

    def noted(button):
        def offer(*arguments, **settings):
            place = [each for each in arguments if not isinstance(each, DeltaGenerator)]
            given = dict(zip(("label", "data", "file_name"), place, strict=False)) | settings
            if not given.get("disabled"):
                files[given["file_name"]] = given["data"]
            return button(*arguments, **settings)

        return offer

    for owner in (DeltaGenerator, st):
        monkeypatch.setattr(owner, "download_button", noted(owner.download_button))
    monkeypatch.setattr(charts_images, "drawn", lambda _figures: {})
    return files


@pytest.mark.parametrize("page", EVERY)
def test_neither_a_page_nor_its_files_render_a_text(unfolded, workspace, offered, page):
    prices = json.loads(workspace.setting("prices"))["prices"]
    for name, chosen in {"judge_shown": "judge", "price": f"service={prices[0]['key']}"}.items():
        unfolded.query_params[name] = chosen
    go(unfolded, page)
    assert not unfolded.exception
    assert rendered(unfolded) == []
    sent = json.dumps([text for node in nodes(unfolded) for _field, text in texts(node.proto)])
    assert MARKUP.url in sent
    files = {name: data() if callable(data) else data for name, data in offered.items()}
    assert {name: found for name, data in files.items() if (found := live(name, data))} == {}
    assert files or page not in ("data", "report", "queries", "cost", "label")


def live(name: str, content: bytes | str) -> list[str]:
    """Return the parts of a file that run as a formula or are a picture or a link."""
    content = content.encode() if isinstance(content, str) else content
    if name.endswith(".zip") and not name.endswith(".rankdash.zip"):
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            return [each for own in packed.namelist() for each in live(own, packed.read(own))]
    kind = name.rpartition(".")[2]
    if kind not in ("csv", "html", "md", "tex"):
        return []
    text = content.decode("utf-8-sig")
    if kind == "csv":
        return [
            cell
            for row in csv.reader(io.StringIO(text))
            for cell in row
            if re.match(r"[=@\t\r]|[+-](?![\d.]+(e[+-]?\d+)?$)", cell)
        ]
    if kind == "tex":
        return [line for line in text.splitlines() if line[:1] != "%" and "\\href" in line]
    parser = Fetches()
    parser.feed(text if kind == "html" else MarkdownIt().enable("table").render(text))
    return parser.found


class Fetches(HTMLParser):
    """The elements of an HTML page that fetch or link to an address in a text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = [name for name, value in attrs if MARKUP.url in (value or "")]
        if not {*said} <= {"title", "aria-label", "data-title"}:
            self.found.append(self.get_starttag_text() or tag)


@pytest.mark.parametrize("page", ("overview", "queries", "cost"))
def test_a_page_renders_no_part_of_a_link(unfolded, page):
    go(unfolded, page, **{name: MARKUP.text(name) for name in address.FIELDS if name != "data"})
    assert not unfolded.exception
    assert rendered(unfolded) == []


def test_what_ends_a_page_is_said_without_markup(monkeypatch):
    said = []
    monkeypatch.setattr(st, "error", lambda text, **_settings: said.append(text))
    assert server.on_script_error(StoreError("There is no {name!r}.", name=MARKUP.text("name")))
    (text,) = said
    assert "There is no" in text
    assert re.search(MARKDOWN, text) is None
    assert server.on_script_error(ZeroDivisionError("secret"))
    assert "secret" not in said[-1]
