"""Page names in any upper and lower case lead to the page, with an unchanged query string."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from rankdash.app.server import PageCase
from rankdash.core.base.shipped import PAGES


@pytest.fixture
def client():
    """A client of a server that returns the requested address as text."""

    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(request.url).removeprefix("http://testserver"))

    app = Starlette(routes=[Route("/{path:path}", answer)], middleware=[Middleware(PageCase)])
    return TestClient(app)


@pytest.mark.parametrize("name", sorted(page.stem for page in PAGES.glob("*.py")))
def test_a_page_is_found_in_any_case(client, name):
    for written in (name.title(), name.upper(), name):
        assert client.get(f"/{written}").text == f"/{name}"
        assert client.get(f"/base/{written}").text == f"/base/{name}"


def test_the_address_keeps_what_it_contains(client):
    assert (
        client.get("/Data/?data=aB&q=%E5%A6%82&text=a%26b").text
        == "/data?data=aB&q=%E5%A6%82&text=a%26b"
    )
    assert client.get("/DATA?price=x%3DY").text == "/data?price=x%3DY"


@pytest.mark.parametrize("path", ["/", "/Nothing", "/static/Data.js", "/_stcore/health", "/Data/x"])
def test_other_addresses_pass(client, path):
    assert client.get(path).text == path
