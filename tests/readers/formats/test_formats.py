"""The same rows in every format, plain and packed, read the same."""

import csv
import gzip
import io
import json
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rankdash.core.base.errors import FormatError
from rankdash.core.readers import Source, read
from tests.readers.reading import lines_of, parse, shown, zipped
from tests.readers.samples import SAME


@pytest.mark.parametrize("name", SAME)
def test_every_format_is_told_and_says_the_same_plain_and_packed(name):
    content = SAME[name]
    packings = {
        "data": content,
        "misleading.parquet.csv": content,
        "data.gz": gzip.compress(content),
        "folder.zip": zipped({"folder/data": content}),
        "gz.zip": zipped({"data.gz": gzip.compress(content)}),
    }
    for file, data in packings.items():
        parsed = parse({file: data})
        [told] = parsed.formats.values()
        assert told.split(", ")[0] == name.split(", ")[0]
        assert [*lines_of(parsed)][1:4] == [
            "007 'return a gift' | d1 = 2, d2 = 0",
            "8 '退货' | d1 = 0.5",
            "documents: d1 'Bring it back'; d2 'Open hours'",
        ]
        assert parsed.candidates is None
        pairs = set(parsed.pairs.itertuples(index=False, name=None))
        assert pairs == {("007", "d1"), ("007", "d2"), ("8", "d1")}


def test_what_is_no_data_file_is_refused_with_its_name_and_a_remedy(approved):
    contents = {
        "nothing": b"",
        "blanks": b"  \n\n ",
        "a byte-order mark": b"\xef\xbb\xbf",
        "a header": b"query,document,label\n",
        "an empty list": b"[]",
        "binary data": b"\x00\x00\x02\x03" * 40,
        "rows too short": b"query,document,label\na,b\nc,d\n",
        "PDF": b"%PDF-1.7 ...",
        "a picture": b"\x89PNG\r\n\x1a\n",
        "pickle": b"\x80\x04\x95\x10",
        "SQLite": b"SQLite format 3\x00",
        "a page": b"\n<html><body>a, b</body></html>",
        "a letter": b"Dear all,\nplease find attached the labels.\nYours\n",
        "a number of 5,000 digits": b'{"query": 1' + b"9" * 5000 + b"}",
        "JSON that goes on": b'[{"query": "a"}] trailing',
        "JSON without a comma": b'[{"query": "a"} {"query": "b"}]',
    }
    cases = {name: {"upload.csv": content} for name, content in contents.items()}
    approved("readers/no_data.en", shown(cases))


Text = tuple[str, str, float]
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(str.strip)
FIELDS = ("query", "document", "label")


def separated(separator: str, line_end: str) -> Callable[[list[Text]], str]:
    def write(rows: list[Text]) -> str:
        written = io.StringIO(newline="")
        table = csv.writer(
            written, delimiter=separator, lineterminator=line_end, quoting=csv.QUOTE_ALL
        )
        table.writerows([FIELDS, *rows])
        return written.getvalue()

    return write


def records(rows: list[Text]) -> list[dict[str, object]]:
    return [dict(zip(FIELDS, row, strict=True)) for row in rows]


OF_TEXTS: list[Callable[[list[Text]], str]] = [
    *(separated(each, end) for each in ",;\t|" for end in ("\n", "\r\n")),
    lambda rows: json.dumps(records(rows), indent=2),
    lambda rows: json.dumps(records(rows), ensure_ascii=False),
    lambda rows: "\n".join(map(json.dumps, records(rows))),
]


@given(
    st.lists(st.tuples(texts, texts, st.floats(-5, 5)), min_size=1, max_size=8),
    st.sampled_from(OF_TEXTS),
)
@example([('"', ",;\t|", 1), ("a\r", "\nb", 0)], OF_TEXTS[0])
@example([("\ufeff", "\x00", 1)], OF_TEXTS[0])
def test_any_text_comes_back_as_it_was(rows, write):
    parsed = read([Source("x", write(rows).encode())])

    # A column with only tokens such as "q1" contains ids, and then there is no text.
    queries, documents = (
        dict(zip(table[key], table["text"].where(table["text"].notna(), table[key]), strict=True))
        for table, key in ((parsed.queries, "query_id"), (parsed.documents, "doc_id"))
    )
    assert list(queries.values()) == list(dict.fromkeys(row[0] for row in rows))
    assert list(documents.values()) == list(dict.fromkeys(row[1] for row in rows))
    best = {}
    for query, document, label in rows:
        best[query, document] = max(label, best.get((query, document), label))
    labels = parsed.qrels.itertuples(index=False, name=None)
    assert {(queries[q], documents[d]): label for q, d, label in labels} == best


ids = st.text('aZ09_-./é文"\\', min_size=1, max_size=8)
Labels = dict[tuple[str, str], int]


def ranx(labels: Labels) -> str:
    queries = dict.fromkeys(query for query, _ in labels)
    own = {q: {doc: labels[q, doc] for of, doc in labels if of == q} for q in queries}
    return json.dumps(own, indent=1)


def each(line: str) -> Callable[[Labels], str]:
    """Return a function that writes a line for each label."""
    return lambda labels: "".join(
        line.format(query=query, doc=doc, label=label) for (query, doc), label in labels.items()
    )


OF_IDS = [
    *map(each, ("{query} 0 {doc} {label}\n", "{query}\t0\t{doc}\t{label}\r\n")),
    each("{label} qid:{query} 1:{label} # {doc}\n"),
    ranx,
]


@settings(max_examples=50)
@given(
    st.dictionaries(st.tuples(ids.map("q{}".format), ids.map("d{}".format)), st.integers(0, 4),
                    min_size=1, max_size=9),
    st.sampled_from(OF_IDS),
)  # fmt: skip
def test_any_ids_and_labels_come_back_as_they_were(labels, write):
    rows = read([Source("x", write(labels).encode())]).qrels.itertuples(index=False, name=None)
    assert {(query, doc): label for query, doc, label in rows} == labels


@settings(max_examples=50)
@given(
    st.dictionaries(st.tuples(ids, ids), st.floats(-1e6, 1e6), min_size=1),
    st.sampled_from([" ", "\t", "  "]),
)
def test_any_run_comes_back_as_it_was(scores, separator):
    lines = [separator.join([q, "Q0", doc, "1", repr(of), "x"]) for (q, doc), of in scores.items()]
    query, doc = next(iter(scores))
    qrels = Source("q", f"{query} 0 {doc} 1".encode())
    frame = read([qrels, Source("run", "\n".join(lines).encode())]).candidates.frame()
    found = zip(frame["query_id"], frame["doc_id"], frame["score"], strict=True)
    assert {(query, doc): score for query, doc, score in found} == scores


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused_in_words(data):
    try:
        read([Source("x", data)])
    except FormatError as refused:
        assert str(refused).startswith("x")
