"""From a search URL and queries without labels to two first stages, in a real browser."""

from playwright.sync_api import expect

from tests.rerankers.loopback import SEARCH, running

from .conftest import RUN_MS

QUERIES = [f"how to return {number}" for number in range(12)]
EVIL = "return <img src='http://evil.example/x.png'> ![x](http://evil.example/y.png) **bold**"


def enter(visit, label: str, text: str) -> None:
    field = visit.page.get_by_role("textbox", name=label, exact=True)
    field.fill(text)
    field.press("Control+Enter")
    visit.settle()


def test_two_first_stages_are_fetched_with_a_few_clicks(visit, app):
    page = visit.page
    with running() as server:
        server.documents = {f"d{n}": f"how to return {n} {'x' * n}" for n in range(12)}
        server.documents["evil"] = EVIL
        visit.open("data")
        page.get_by_text("Start from a search URL").click()
        visit.settle()
        enter(visit, "Queries, one per line", "\n".join(QUERIES))
        enter(visit, "Search URL", server.url + SEARCH)
        page.get_by_text("No key needed", exact=True).click()
        visit.settle()
        page.get_by_role("button", name="Test").click()
        visit.sees("13 hits")
        # Nothing was stored, and a text of the engine is neither HTML nor Markdown.
        assert len(server.seen) == 1
        assert page.locator("img[src*='evil.example']").count() == 0
        page.get_by_role("button", name="Fetch 12 queries").click()
        visit.sees("Elasticsearch is ready: 12 queries and 13 documents.")
        assert len(server.seen) == 13

        page.get_by_test_id("stMain").get_by_role("link", name="Run a reranker").click()
        visit.settle()
        page.get_by_text("Fetch from a search engine").click()
        visit.settle()
        expect(page.get_by_role("textbox", name="Search URL", exact=True)).to_have_value(
            server.url + SEARCH
        )
        page.get_by_role("button", name="Fetch", exact=True).click()
        visit.sees("Done: Elasticsearch · docs/_search · top 100.", timeout=RUN_MS)
        assert len(server.seen) == 25
    visit.go("Label")
    visit.sees("Elasticsearch · docs/_search · top 100", timeout=RUN_MS)
    assert page.locator("img[src*='evil.example']").count() == 0
