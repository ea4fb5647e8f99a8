"""A rerank service from the page: a key is typed, mistyped, asked for again, written nowhere."""

import re

import pytest
from playwright.sync_api import expect

from tests.rerankers.loopback import running

pytestmark = pytest.mark.browser

KEY, WRONG = "sk-typed-by-hand-4711", "sk-mistyped-0815"
FIELD = "Key of the service, where it asks for one"


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
        expect(visit.page.get_by_role("button", name="Start 1 run")).to_be_disabled()

        put(visit, "Base URL", server.url)
        put(visit, FIELD, WRONG)
        visit.sees(re.compile(r"about 7\d calls to 127\.0\.0\.1"))
        visit.page.get_by_role("button", name="Start 1 run").click()
        visit.sees(re.compile(r"refused the request \(401\): invalid api token: Bearer •••"))

        expect(visit.page.get_by_label(FIELD, exact=True)).to_have_count(2)
        put(visit, FIELD, KEY)
        visit.page.get_by_role("button", name="Resume").click()
        visit.sees("p50 and p95: milliseconds for one query")
        expect(visit.page.get_by_text("refused the request")).to_have_count(0)
    assert len(server.seen) > 74
    files = [path for path in app.home.rglob("*") if path.is_file()]
    assert any(path.name == "worker.log" for path in files)
    for secret in (KEY, WRONG):
        assert not [path for path in files if secret.encode() in path.read_bytes()]
