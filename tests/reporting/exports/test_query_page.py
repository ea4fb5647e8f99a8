"""One query as a file: all of it is there, none of it is markup, nothing of it is fetched."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import plotly.graph_objects as go
import pytest

from rankdash.i18n import speaking
from rankdash.reporting.exports.query_page import Card, Document, QueryPage, html
from rankdash.reporting.html_page import Chart, PageTable

HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>"
    "![p](http://evil.invalid/a.png)\"'><b> \u202egnp.exe"
)


HEADINGS = {
    "Why it changed": "为何变化",
    "Where its documents went": "文档去向",
    "Tags and note": "标签与备注",
    "Corrected labels": "已更正的标注",
}


class Read(HTMLParser):
    """The elements of a page with their attributes, and the text a reader sees."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.inside = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] += data
        elif self.inside != "style":
            self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]


def chart(text: str) -> Chart:
    def figure(ink: str) -> go.Figure:
        return go.Figure(
            data=[{"type": "bar", "x": [1], "y": [text], "name": ink}], layout={"height": 120}
        )

    return Chart(figure("light"), figure("dark"), f"alt {text}")


def page(text: str = "plain") -> QueryPage:
    return QueryPage(
        query=text,
        language="en",
        facts=[text, "2 labels corrected"],
        values=PageTable(("system", text), [(text, "0.5"), ("A", "0.7")], frozenset({1})),
        lists=[(text, [Card("d1", 1, text, True, text, (text,))]), ("none", [])],
        documents=[Document("d1", text, f"{text} " * 200, text)],
        made=PageTable(("rule", "current value"), [(text, text)]),
        versions=text,
        reason=text,
        because=text,
        sentences=[text, text],
        waterfall=chart(text),
        contributions=PageTable(("document",), [(text,)]),
        ladder=chart(text),
        places=PageTable(("document",), [(text,)]),
        tags=[text],
        note=text,
        corrections=PageTable(("document",), [(text,)]),
        definitions=[text],
    )


@pytest.fixture(scope="module")
def hostile() -> Read:
    return Read(html(page(HOSTILE)))


def test_text_from_the_data_makes_no_element_and_no_attribute(hostile):
    plain = Read(html(page()))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert [set(attrs) for _, attrs in hostile.elements] == [
        set(attrs) for _, attrs in plain.elements
    ]
    assert not [attrs for _, attrs in hostile.elements if any(n.startswith("on") for n in attrs)]
    assert "\u202e" not in "".join(hostile.texts)
    assert "onerror=window.hacked=2" in "".join(hostile.texts)


@pytest.mark.parametrize(
    ("length", "shown"), [(180, "x" * 180), (181, "x" * 179 + "…")], ids=["fits", "cut"]
)
def test_a_card_shows_the_beginning_of_its_document_and_leads_to_the_rest(length, shown):
    document = Document("d1", "", "x" * length, "")
    made = html(
        replace(page(), documents=[document], lists=[("A", [Card("d1", 2, "", False, "")])])
    )
    (card,) = re.findall(r'<div class="card">(.*?)</div>', made)
    assert re.findall(r">([^<>]+)<", card) == ["2", " ", "d1", " · ", shown]
    assert 'href="#text-0"' in card
    nothing = html(replace(page(), lists=[("A", [])]))
    assert "This system has no document for the query." in nothing
    assert "This system has no document for the query." not in made


def test_only_scripts_named_by_their_hash_may_run_and_nothing_may_be_fetched(hostile):
    [policy] = [
        str(attrs["content"])
        for attrs in hostile.all("meta")
        if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in rules["script-src"]
    assert rules["img-src"] == "data:"
    data, *running = hostile.scripts
    hashes = {
        f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'"
        for each in running
    }
    assert set(rules["script-src"].split()) == hashes
    assert len(running) == 2
    assert [attrs.get("type") for attrs in hostile.all("script")] == [
        "application/json",
        None,
        None,
    ]
    for tag in ("link", "iframe", "img", "object", "base", "form"):
        assert hostile.all(tag) == []
    assert all("src" not in attrs for _, attrs in hostile.elements)
    assert all(str(attrs.get("href", "#")).startswith("#") for _, attrs in hostile.elements)
    drawn = json.loads(data)
    assert [set(each) for each in drawn] == [{"light", "dark"}] * 2
    assert drawn[0]["light"]["data"][0]["y"] == [HOSTILE]


def test_everything_is_said_in_the_language_in_force():
    with speaking("zh"):
        said = "\n".join(Read(html(page())).texts)
    for english, chinese in HEADINGS.items():
        assert english not in said
        assert chinese in said


def test_what_is_not_there_has_no_heading():
    bare = replace(
        page(), reason="", sentences=(), waterfall=None, contributions=None, ladder=None,
        places=None, tags=(), note="", corrections=None,
    )  # fmt: skip
    read = Read(html(bare))
    said = "\n".join(read.texts)
    for heading in HEADINGS:
        assert heading not in said
    assert json.loads(read.scripts[0]) == []


def test_links_to_whole_texts_lead_somewhere():
    read = Read(html(page()))
    targets = {attrs["id"] for _, attrs in read.elements if "id" in attrs}
    links = [str(attrs["href"])[1:] for attrs in read.all("a")]
    assert links
    assert set(links) <= targets
    assert re.search(r"(plain ){199}", "".join(read.texts))
