"""Markup in every text of a workspace and in answers of services: no page or saved file renders it
or fetches its addresses."""

from http.server import BaseHTTPRequestHandler

import pytest
from playwright.sync_api import Page, expect

from rankdash.core.workspace import Workspace
from rankdash.kit.widgets.view import PAGES
from tests.loopback import serving as answering
from tests.marked import TURNED, Markup, fill

from .conftest import PATIENCE_MS, new_page, serving, visiting

pytestmark = pytest.mark.thorough

# The name and address of a page, and the labels of the buttons that save a file of it, in turn.
SAVES = {
    "report": ("report", "Make the report and save it"),
    "queries": ("queries", "Download", "Save this query as a file"),
    "judge": ("judge?judge_shown=judge",),
    "overview": ("",),
}
EVERY = sorted(page.stem for page in PAGES.glob("*.py"))
# Elements that only markup creates: with the address, formulas with it, coloured text and icons,
# also in the shadow DOM of components.
_EVERY = """const every = (root) => [...root.querySelectorAll("*")].flatMap((each) =>
  [each, ...(each.shadowRoot ? every(each.shadowRoot) : [])]);"""
_SHOWN = f"""() => {{ {_EVERY}
  return [document.body, ...every(document).filter((each) => each.matches(".root"))]
    .map((each) => each.innerText).join("\\n") }}"""
_RENDERED = (
    f"(url) => {{ {_EVERY} return "
    + """every(document).filter((each) =>
  [...each.attributes].some((one) => /^(src|href|srcset|action|data|style)$/.test(one.name)
    && one.value.includes(url))
  || each.matches(".katex") && each.textContent.includes(url)
  || each.matches("span") && ["hot", "bug_report"].includes(each.textContent)
).map((each) => each.outerHTML.slice(0, 300)) }"""
)
_UNFOLD = """() => document.querySelectorAll("details:not([open]) > summary")
  .forEach((each) => each.click())"""


@pytest.fixture(scope="module")
def asked():
    """The address that is in every text, and the requests to it, which must be empty."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def handle_one_request(self):
            heard.append(self.rfile.readline().decode(errors="replace"))
            self.close_connection = True

    with answering(Handler) as url:
        yield url, heard


@pytest.fixture(scope="module")
def marked(tmp_path_factory, asked) -> tuple[Workspace, Markup]:
    folder, markup = tmp_path_factory.mktemp("marked"), Markup(asked[0])
    return fill(folder / "home", folder / "scratch", markup), markup


@pytest.fixture(scope="module")
def visit(browser, marked):
    with serving(marked[0].root) as app, visiting(browser, app) as opened:
        yield opened


def rendered(page: Page, markup: Markup) -> list[str]:
    """Return the elements made from markup, and the lines in reversed direction."""
    found = page.evaluate(_RENDERED, markup.url)
    shown = page.evaluate(_SHOWN)
    return found + [line for line in shown.splitlines() if TURNED in line]


@pytest.mark.parametrize("name", EVERY)
def test_no_text_of_a_page_or_its_file_is_rendered(browser, visit, marked, asked, name, tmp_path):
    _workspace, markup = marked
    path, *buttons = SAVES.get(name, (name,))
    visit.open(path)
    assert rendered(visit.page, markup) == []
    visit.page.evaluate(_UNFOLD)
    visit.settle()
    assert rendered(visit.page, markup) == []
    assert markup.url.partition("//")[2] in visit.page.content()
    if buttons:
        *menus, save = buttons
        for menu in menus:
            visit.page.get_by_role("button", name=menu, exact=True).click()
        with visit.page.expect_download(timeout=PATIENCE_MS) as waiting:
            visit.page.get_by_role("button", name=save, exact=True).click()
        file = tmp_path / "saved.html"
        waiting.value.save_as(file)
        visit.settle()
        assert rendered(visit.page, markup) == []
        page = new_page(browser)
        page.goto(file.as_uri())
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert rendered(page, markup) == []
        page.context.close()
    assert asked[1] == []
