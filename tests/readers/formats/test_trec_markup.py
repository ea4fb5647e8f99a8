"""Documents and topics of TREC as they are distributed: tags left open, entities, XML."""

import pytest

from rankdash.core.readers.formats import trec_markup
from rankdash.core.readers.parse.limits import ReadLimits
from tests.readers.reading import shown
from tests.results import results

DOCUMENTS = """<DOC>
<DOCNO> FT911-3 </DOCNO>
<PROFILE>_AN-BEOA7AAIFT</PROFILE>
<HEADLINE>
FT  14 MAY 91 / Contigas plans
</HEADLINE>
<TEXT>
Contigas &amp; sons <P>said "a < b" &lt;ok&gt;
<!-- <TEXT> of the
printer --></TEXT>
<PUB>The Financial Times</PUB>
</DOC>
<doc><docno>2<title>left open<text>crime <B>bold</B> text
<DOC>
<TEXT>has no number</TEXT>
</DOC>
<DOC><DOCNO>W1</DOCNO><DOCHDR>http 200</DOCHDR>
<html><head><title>Web</title></head><body>Hello<script>x=1</script></body></html></DOC>
"""
TOPICS = """
<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations.

<narr> Narrative:
A relevant document names one.
</top>
<top>
<head> Tipster Topic Description
<num> Number:  051
<dom> Domain:  International Economics
<title> Topic:  Airbus Subsidies
<top><num>Number: 201 <desc> Description: only described </top>
"""
COVID = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topics [<!ENTITY lol "ha"><!ENTITY file SYSTEM "file:///etc/passwd">]>
<topics task="COVIDSEARCH2020">
  <topic number="1">
    <query>coronavirus origin</query>
    <question>what is the origin of it</question>
    <narrative>seeking what &lol; &file; is known</narrative>
  </topic>
  <topic number="2"><question>how long &lol; &file;</question></topic>
  <topic number="03">plain <![CDATA[text & <more>]]></topic>
</topics>
"""


def test_documents_and_topics_are_read_as_they_are_written(approved):
    docs, closed = {"docs": DOCUMENTS}, "<doc><docno>1</docno>a</doc>\n<doc><docno>2</docno>b"
    cases = {
        "open tags, entities and comments": {**docs, "qrels": "301 0 FT911-3 1\n"},
        "a topic asks by its title, its number has no zeros before it": {
            **docs, "topics": TOPICS, "qrels": "301 0 2 1\n51 0 W1 1\n201 0 2 1\n"
        },
        "no entity of the file is expanded or fetched": {
            **docs, "topics": COVID, "qrels": "1 0 2 1\n2 0 W1 1\n03 0 2 1\n"
        },
        "two that are closed": {"docs": f"{closed}</doc>", "qrels": "1 0 1 1\n"},
        "the last is cut": {"docs": closed, "qrels": "1 0 1 1\n"},
        "none is closed": {
            "docs": "<doc><docno>1<text>a\n<doc><docno>2<text>b", "qrels": "1 0 1 1\n"
        },
        "other markup": {"page": "\n\n<html><body>a</body></html>"},
    }  # fmt: skip
    approved("readers/trec_markup.en", shown(cases))


def table(text: str):
    return trec_markup.read(text, "file", ReadLimits())


def test_a_document_and_a_topic_have_their_own_parts(approved):
    texts = (
        "<doc><docno>1<hl>Head</hl><lp>First.</lp><text>Second.</text></doc>",
        "<doc><docno>1</docno><docid>99</docid>All of it.</doc>",
        *("<doc id=7><text>x</text></doc>", "<doc num=8 number=9>x</doc>"),
        *("<doc id=7><docno>1</docno>x</doc>", "<doc><docno>1</docno></doc>"),
        "<doc><docno>1</docno><text>a<br>b</p>c</text></doc>",
        "<doc><docno>1</docno><text>in</text> out</doc>",
        "<doc><docno>1</docno><title>Topic: <b>T</b></title><style>b{}</style>x</doc>",
        "<doc><docno>1</docno>a<![CDATA[<b> & ]]>c<!-- d -->e</doc>",
        "out <doc><docno>1</docno>a</doc> side",
        # A topic has a number and a question.
        "<top><num>Number: 0051<desc>Description: What?</top>",
        *("<top><num>0051<title>Title: a  b<desc>c</top>", "<top><num>Topic: 000</top>"),
        "<topic number='7'><question>How?</question><query>short</query></topic>",
        "<topic id='x7'>all of it<narr>no</narr></topic>",
        # The number in an element takes precedence over an attribute.
        "<topic id='9'><num>7<title>c</topic>",
    )
    begins = (" \n<DOC>", "<xml><topic number='1'>", "<docs>", "<html>", "a <doc>")
    cases: dict[str, object] = {
        f"begins as its own: {text!r}": trec_markup.matches(text) for text in begins
    }
    cases |= {text: table(text).frame for text in texts}
    approved("readers/trec_parts", results(cases))


def test_lines_are_those_of_the_file_behind_comments_and_cdata():
    first = "<doc><docno>1</docno><!-- a\nb -->\n<![CDATA[x\ny]]></doc>"
    text = f"{first}\n<doc><docno>2</docno>z</doc>"
    assert list(table(text).lines) == [1, 5]
    open_ended = "<doc><docno>1</docno>a <!-- b\nc</doc>"
    assert table(open_ended).frame.iloc[0, 2].startswith("a <!-- b")


@pytest.mark.parametrize("piece", ["<a ", "<![x ", "<!--", "<![CDATA[", "</", "&#"])
def test_markup_that_never_ends_is_text_and_takes_no_time(piece):
    # Without this, the parser would search the rest of the file at each: hours for these.
    assert len(table(f"<doc><docno>1</docno><text>{piece * 60_000}")) == 1
