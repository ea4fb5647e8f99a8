"""A rerank service from the page: a key is typed, mistyped, asked for again, written nowhere."""

import re

import pytest
from playwright.sync_api import expect

from tests.rerankers.loopback import running

pytestmark = pytest.mark.thorough

RUN_MS = 900_000
KEY, WRONG = "sk-typed-by-hand-4711", "sk-mistyped-0815"
FIELD = "Key of the service, where it asks for one"


@pytest.fixture
def app(app_of_test):
    return app_of_test


def authorizations(server) -> set[str | None]:
    """What the requests had as their Authorization."""
    return {headers.get("Authorization") for _path, headers, _body in server.seen}


def files_with(folder, text: str) -> list:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "worker.log" for path in files)
    return [path for path in files if text.encode() in path.read_bytes()]


def walk_to(page, name: str) -> None:
    """With the Tab key from where the focus is."""
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


def test_a_service_with_a_typed_key_ranks_and_the_key_is_nowhere(visit, app):
    with running(key=KEY) as server:
        visit.open()
        visit.go("Run")
        visit.choose_reranker("Rerank service")
        visit.sees("Key of the service (COHERE_API_KEY)")
        visit.page.get_by_role("button", name="Start 1 run").click()
        visit.sees("Rerank service: No key yet. Type it, or tick that no key is needed.")

        put(visit, "Base URL", server.url)
        put(visit, FIELD, WRONG)
        visit.sees(re.compile(r"about 16\d calls to 127\.0\.0\.1"))
        visit.page.get_by_role("button", name="Start 1 run").click()
        visit.sees(re.compile(r"refused the request \(401\): invalid api token: Bearer •••"))

        expect(visit.page.get_by_label(FIELD, exact=True)).to_have_count(2)
        # It has left the form with the end of its run.
        expect(visit.page.get_by_label(FIELD, exact=True).first).to_have_value("")
        put(visit, FIELD, KEY)
        visit.page.get_by_role("button", name="Resume").click()
        visit.sees("p50 and p95: milliseconds for one query", timeout=RUN_MS)
        expect(visit.page.get_by_text("refused the request")).to_have_count(0)
    assert len(server.seen) > 168
    assert authorizations(server) == {f"Bearer {WRONG}", f"Bearer {KEY}"}
    assert files_with(app.home, KEY) == files_with(app.home, WRONG) == []


def test_a_key_is_in_the_very_next_press_of_a_button(visit):
    with running() as server:
        visit.open("run")
        visit.choose_reranker("Rerank service")
        put(visit, "Base URL", server.url)
        field = visit.page.get_by_label(FIELD, exact=True)
        field.focus()
        visit.page.keyboard.insert_text(KEY)
        # As fast as no hand is: nothing has been drawn again since the key was pasted.
        walk_to(visit.page, "Start 1 run")
        visit.page.keyboard.press("Enter")
        visit.sees("p50 and p95: milliseconds for one query", timeout=RUN_MS)
        expect(field).to_have_value("")
    assert authorizations(server) == {f"Bearer {KEY}"}
