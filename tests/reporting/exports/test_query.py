"""One query as a file: it is complete, contains no markup from data, and fetches nothing."""

import base64
import hashlib
import json
import re
from dataclasses import replace

import pandas as pd
import plotly.graph_objects as go
import pytest

from rankdash.core.base.i18n import speaking
from rankdash.core.data.dataset import Dataset
from rankdash.core.workspace.notes import Correction, Note
from rankdash.features.queries import report_query
from rankdash.features.queries.report_query import Card, Document, QueryPage, page_html
from rankdash.kit.drawing.draw import Chart
from rankdash.kit.html.html_page import PageTable
from tests.approved import table
from tests.reporting.exports.test_exports import study_of
from tests.reporting.reading import Read
from tests.study.builders import changed

HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>"
    "![p](http://evil.invalid/a.png)\"'><b> \u202egnp.exe"
)


def chart(text: str) -> Chart:
    def figure(ink: str) -> go.Figure:
        data = [{"type": "bar", "x": [1], "y": [text], "name": ink}]
        return go.Figure(data=data, layout={"height": 120})

    return Chart(figure("light"), figure("dark"), f"alt {text}")


def page(text: str = "plain") -> QueryPage:
    one = PageTable(("document",), [(text,)])
    return QueryPage(
        query=text, language="en", facts=[text, "2 labels corrected"],
        values=PageTable(("system", text), [(text, "0.5"), ("A", "0.7")], frozenset({1})),
        lists=[(text, [Card("d1", 1, text, True, text, (text,))]), ("none", [])],
        documents=[Document("d1", text, f"{text} " * 200, text)],
        made=PageTable(("rule", "current value"), [(text, text)]),
        versions=text, reason=text, because=text, sentences=[text, text], waterfall=chart(text),
        contributions=one, ladder=chart(text), places=one, tags=[text], note=text, corrections=one,
        definitions=[text],
    )  # fmt: skip


BARE = replace(
    page(), reason="", sentences=(), waterfall=None, contributions=None, ladder=None, places=None,
    tags=(), note="", corrections=None, lists=[("A", [])],
)  # fmt: skip


@pytest.fixture(scope="module")
def hostile() -> Read:
    return Read(page_html(page(HOSTILE)))


def test_text_from_the_data_makes_no_element_and_no_attribute(hostile):
    plain = Read(page_html(page()))
    assert [(tag, {*attrs}) for tag, attrs in hostile.elements] == [
        (tag, {*attrs}) for tag, attrs in plain.elements
    ]
    assert not [attrs for _, attrs in hostile.elements if any(n.startswith("on") for n in attrs)]
    assert "\u202e" not in hostile.text() and "onerror=window.hacked=2" in hostile.text()


def test_only_scripts_named_by_their_hash_may_run_and_nothing_may_be_fetched(hostile):
    [policy] = [
        str(attrs["content"])
        for attrs in hostile.all("meta")
        if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    data, *running = hostile.scripts
    digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()) for each in running]
    assert set(rules["script-src"].split()) == {f"'sha256-{each.decode()}'" for each in digests}
    kinds = [attrs.get("type") for attrs in hostile.all("script")]
    assert kinds == ["application/json", None, None]
    for tag in ("link", "iframe", "img", "object", "base", "form"):
        assert hostile.all(tag) == []
    assert all("src" not in attrs for _, attrs in hostile.elements)
    assert all(str(attrs.get("href", "#")).startswith("#") for _, attrs in hostile.elements)
    drawn = json.loads(data)
    assert [set(each) for each in drawn] == [{"light", "dark"}] * 2
    assert drawn[0]["light"]["data"][0]["y"] == [HOSTILE]
    assert json.loads(Read(page_html(BARE)).scripts[0]) == []


def test_links_to_whole_texts_lead_somewhere():
    read = Read(page_html(page()))
    links = {str(attrs["href"])[1:] for attrs in read.all("a")}
    assert links and links <= {attrs["id"] for _, attrs in read.elements if "id" in attrs}
    assert re.search(r"(plain ){199}", read.text())


@pytest.mark.parametrize(
    ("length", "shown"), [(180, "x" * 180), (181, "x" * 179 + "…")], ids=["fits", "cut"]
)
def test_a_card_shows_the_beginning_of_its_document_and_leads_to_the_rest(length, shown):
    document = Document("d1", "", "x" * length, "")
    made = page_html(
        replace(page(), documents=[document], lists=[("A", [Card("d1", 2, "", False, "")])])
    )
    (card,) = re.findall(r'<div class="card">(.*?)</div>', made)
    assert re.findall(r">([^<>]+)<", card) == ["2", " ", "d1", " · ", shown]
    assert 'href="#text-0"' in card


def far() -> Dataset:
    """Return a data set with a relevant document that is in no ranking."""
    data = study_of().dataset
    lost = pd.DataFrame([("q1", "far", 1.0)], columns=["query_id", "doc_id", "label"])
    texts = [("far", "Far away", "<b>never</b> ranked")]
    documents = pd.DataFrame(texts, columns=["doc_id", "title", "text"])
    return changed(
        data,
        documents=pd.concat([data.documents, documents], ignore_index=True),
        qrels=pd.concat([data.qrels, lost], ignore_index=True),
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_file_says_what_a_query_scored_why_and_what_was_noted(language, approved):
    study = study_of()
    noted = replace(study, notes={"q1": Note("q1", ("odd",), "ask <Ann>", "")})
    corrected = [Correction("q1", "d1", None, "Ann", "2026-11-21T06:14:49+00:00")]
    missed = replace(study, dataset=far(), dataset_id="with a document that no ranking holds")
    (challenger,) = study.challengers
    with speaking(language):
        files = {
            "noted and corrected": report_query.html(
                noted, challenger, "q1", corrected, {"d1": 1.0}
            ).decode(),
            "not retrieved, a cutoff of 3": report_query.html(
                replace(missed, cutoff=3), challenger, "q1"
            ).decode(),
            "failed": report_query.html(study, challenger, "q3").decode(),
            "all of it": page_html(page()),
            "nothing of it": page_html(BARE),
        }
    assert "&lt;b&gt;never&lt;/b&gt; ranked" in files["not retrieved, a cutoff of 3"]
    said = {
        name: re.sub(r"(plain ){9,}", "plain … ", Read(each).written())
        for name, each in files.items()
    }
    approved(f"exports/query.{language}", table(said))
