"""Streamlit's static files are compressed, and the page requests the scripts of elements early."""

import gzip
import re

import pyarrow as pa
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_handler

from rankdash.app import static_files
from rankdash.app.static_files import ELEMENTS, FOLDER, StaticFiles

SCRIPT = next((FOLDER / "static" / "js").glob("index.*.js"))
PATH = f"/static/js/{SCRIPT.name}"
INDEX = (FOLDER / "index.html").read_text(encoding="utf-8")


@pytest.fixture
def client():
    files = create_streamlit_static_handler(str(FOLDER), None)
    # Another page with the same length.
    other = HTMLResponse("x" * len(INDEX.encode()))
    return TestClient(
        Starlette(
            routes=[Route("/media/report.html", lambda _request: other), Mount("/", files)],
            middleware=[Middleware(StaticFiles)],
        )
    )


def raw(client, path, encoding, method="GET", **headers):
    headers = {"Accept-Encoding": encoding, **headers}
    with client.stream(method, path, headers=headers) as answer:
        return answer, b"".join(answer.iter_raw())


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("GZIP;q=0.8, br;q=0", "gzip"),
        ("br;q=x, gzip", "gzip"),
        ("identity", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("path", [PATH, "/", "/queries"])
def test_a_file_comes_in_the_best_encoding_that_the_browser_knows(client, path, accepted, encoding):
    answer, body = raw(client, path, accepted)
    assert answer.status_code == 200
    assert answer.headers.get("content-encoding") == encoding
    assert answer.headers["vary"] == "Accept-Encoding"
    assert int(answer.headers["content-length"]) == len(body)
    if encoding == "gzip":
        body = gzip.decompress(body)
    elif encoding == "br":
        body = pa.input_stream(pa.BufferReader(body), compression="brotli").read()
    if path == PATH:
        assert body == SCRIPT.read_bytes()
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"].startswith("text/javascript")
    else:
        before, after = INDEX.split("</head>")
        page = body.decode()
        assert page.startswith(before) and page.endswith(f"</head>{after}")
        assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", [PATH, "/"])
def test_what_the_browser_has_is_not_sent_again_and_head_has_the_same_length(client, path):
    answer, body = raw(client, path, "br")
    head, _nothing = raw(client, path, "br", "HEAD")
    assert int(head.headers["content-length"]) == len(body)
    assert head.headers["etag"] == answer.headers["etag"]
    again, body = raw(client, path, "br", **{"If-None-Match": f'"a", W/{answer.headers["etag"]}'})
    assert (again.status_code, body) == (304, b"")
    # The ETag differs between encodings.
    other, _body = raw(client, path, "gzip", **{"If-None-Match": answer.headers["etag"]})
    assert other.status_code == 200


def test_ranges_are_of_the_file_itself(client):
    answer, body = raw(client, PATH, "br", Range="bytes=10-19")
    assert answer.status_code == 206
    assert body == SCRIPT.read_bytes()[10:20]
    assert "content-encoding" not in answer.headers


def test_no_other_file_is_changed(client):
    assert client.get("/media/report.html").text == "x" * len(INDEX.encode())
    font = next((FOLDER / "static" / "media").glob("*.woff2"))
    answer, body = raw(client, f"/static/media/{font.name}", "br")
    assert body == font.read_bytes()
    assert "content-encoding" not in answer.headers
    assert client.get("/static/js/missing.js").text == client.get("/").text
    assert client.post(PATH).status_code == 405


def test_below_a_path_the_files_are_compressed_too(client, monkeypatch):
    monkeypatch.setattr(static_files.st, "get_option", lambda _name: "/rankdash/")
    app = Starlette(
        routes=[Mount("/rankdash", create_streamlit_static_handler(str(FOLDER), "rankdash"))],
        middleware=[Middleware(StaticFiles)],
    )
    answer = TestClient(app).get(f"/rankdash{PATH}", headers={"Accept-Encoding": "br"})
    assert answer.headers["content-encoding"] == "br"


def test_the_page_requests_the_scripts_of_elements_and_what_they_import(client):
    page = client.get("/").text
    named = re.findall(r'href="\./static/js/([\w.-]+)"', page)
    assert len(named) == len(set(named))
    for element in ELEMENTS:
        assert any(name.startswith(f"{element}.") for name in named), element
    for name in named:
        source = (FOLDER / "static" / "js" / name).read_text(encoding="utf-8")
        for imported in re.findall(r'from"\./([\w.-]+\.js)"', source):
            assert imported in page
