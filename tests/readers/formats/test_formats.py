"""The same rows in every format, plain and packed, read the same."""

import gzip

import pytest

from tests.readers.reading import lines_of, shown
from tests.readers.samples import SAME


@pytest.mark.parametrize("name", SAME)
def test_every_format_is_told_and_says_the_same_plain_and_packed(parse, zipped, name):
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
