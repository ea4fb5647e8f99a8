"""A rerank service from the page: a key is entered, mistyped, entered again, and never stored."""

import re

import pytest
from playwright.sync_api import expect

from tests.rerankers.loopback import running

from .conftest import RUN_MS

pytestmark = pytest.mark.thorough

KEY, WRONG = "sk-typed-by-hand-4711", "sk-mistyped-0815"
FIELD = "Key of the service, if it needs one"


def files_with(folder, text: str) -> list:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "worker.log" for path in files)
    return [path for path in files if text.encode() in path.read_bytes()]


def walk_to(page, name: str) -> None:
    """Move the focus with the Tab key."""
    button = page.get_by_role("button", name=name)
    for _press in range(20):
        page.keyboard.press("Tab")
        if button.evaluate("element => element === document.activeElement"):
            return
    pytest.fail(f"The Tab key does not lead to {name}")


def put(visit, label: str, value: str) -> None:
    field = visit.page.get_by_label(label, exact=True).last
    field.fill(value)
    field.press("Enter")
    expect(field).to_have_value(value)
    visit.settle()


def test_a_key_is_pasted_mistyped_asked_for_again_and_written_nowhere(visit, app):
    page = visit.page
    with running(key=KEY) as server:
        visit.open("run")
        visit.choose_reranker("Rerank service")
        visit.sees("Key of the service (COHERE_API_KEY)")
        put(visit, "Base URL", server.url)
        page.get_by_label(FIELD, exact=True).focus()
        page.keyboard.insert_text(WRONG)
        # The button is pressed before the page is redrawn after the key was pasted.
        walk_to(page, "Start 1 run")
        page.keyboard.press("Enter")
        visit.sees(re.compile(r"refused the request \(401\): invalid api token: Bearer •••"))

        expect(page.get_by_label(FIELD, exact=True)).to_have_count(2)
        # The key was removed from the form at the end of its run.
        expect(page.get_by_label(FIELD, exact=True).first).to_have_value("")
        put(visit, FIELD, KEY)
        page.get_by_role("button", name="Resume").click()
        visit.sees("p50 and p95: milliseconds for one query", timeout=RUN_MS)
        expect(page.get_by_text("refused the request")).to_have_count(0)
    assert len(server.seen) > 168
    sent = {headers.get("Authorization") for _path, headers, _body in server.seen}
    assert sent == {f"Bearer {WRONG}", f"Bearer {KEY}"}
    assert files_with(app.home, KEY) == files_with(app.home, WRONG) == []
