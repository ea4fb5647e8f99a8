"""TREC's documents and topics as they are written: tags left open, entities, XML."""

import gzip

import pytest

from rankdash.cli import main
from rankdash.errors import FormatError
from rankdash.loading import load
from rankdash.readers import Source

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


def loaded(**files: str):
    return load([Source(name, text.encode()) for name, text in files.items()])


def queries(data) -> dict[str, str]:
    return dict(zip(data.queries["query_id"], data.queries["text"], strict=True))


def test_documents_with_open_tags_entities_and_comments():
    found = loaded(docs=DOCUMENTS, topics=TOPICS, qrels="301 0 FT911-3 1\n301 0 2 0\n51 0 W1 1\n")

    rows = found.dataset.documents.fillna("").to_dict("records")
    assert [(row["doc_id"], row["title"], " ".join(row["text"].split())) for row in rows] == [
        ("FT911-3", "FT 14 MAY 91 / Contigas plans", 'Contigas & sons said "a < b" <ok>'),
        ("2", "left open", "crime bold text"),
        ("W1", "Web", "Hello"),
    ]
    [lacking] = [each for each in found.report.findings if each.code == "no_number"]
    assert (lacking.where, lacking.count) == ("docs, line 14", 1)
    assert found.dataset.first_stage == "corpus-bm25"


def test_a_topic_asks_by_its_title_and_its_number_has_no_zeros_before_it():
    found = loaded(docs=DOCUMENTS, topics=TOPICS, qrels="301 0 2 1\n51 0 W1 1\n201 0 2 1\n")
    assert queries(found.dataset) == {
        "301": "International Organized Crime",
        "51": "Airbus Subsidies",
        "201": "only described",
    }
    assert found.dataset.segments == []


def test_xml_topics_and_no_entity_of_the_file_is_expanded_or_fetched():
    found = loaded(docs=DOCUMENTS, topics=COVID, qrels="1 0 2 1\n2 0 W1 1\n03 0 2 1\n")
    assert queries(found.dataset) == {
        "1": "coronavirus origin",
        "2": "how long &lol; &file;",
        "03": "plain text & <more>",
    }


def test_packed_files_give_the_same_data_set_by_command(tmp_path, capsys):
    files = {"docs": DOCUMENTS, "topics": TOPICS, "qrels": "301 0 FT911-3 1\n301 0 2 0\n"}
    for name, text in files.items():
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    packed = load([Source(each.name, each.read_bytes()) for each in sorted(tmp_path.iterdir())])

    assert packed.dataset.id == loaded(**files).dataset.id
    assert main(["check", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    for each in ("TREC documents, documents", "TREC topics, queries", "TREC qrels"):
        kind, _comma, holds = each.partition(", ")
        assert f"Read as: {kind}" in said and holds in said


def test_other_markup_is_refused_with_its_line_and_what_it_begins_with():
    with pytest.raises(FormatError) as refused:
        loaded(page="\n\n<html><body>a</body></html>")
    assert (refused.value.line, refused.value.file) == (3, "page")
    assert "it begins with <html><body>" in refused.value.message


@pytest.mark.parametrize("piece", ["<a ", "<![x ", "<!--", "<![CDATA[", "</", "&#"])
def test_markup_that_never_ends_is_text_and_takes_no_time(piece):
    # The parser alone would look through the rest of the file at each: hours for these.
    text = f"<doc><docno>1</docno><text>{piece * 60_000}"
    found = loaded(docs=text, queries="query_id,query\n7,what\n", qrels="7 0 1 1\n")
    assert len(found.dataset.documents) == 1
