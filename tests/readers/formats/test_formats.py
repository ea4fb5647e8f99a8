"""The same rows in every format, plain and packed, read the same."""

import pytest

from rankdash.errors import FormatError

FORMATS = [
    "csv",
    "tsv",
    "semicolon",
    "jsonl",
    "json",
    "wrapped",
    "nested",
    "nested_lines",
    "parquet",
]


def assert_same_rows(parsed):
    assert dict(zip(parsed.queries["query_id"], parsed.queries["text"], strict=True)) == {
        "007": "return a gift",
        "8": "退货",
    }
    assert dict(zip(parsed.documents["doc_id"], parsed.documents["text"], strict=True)) == {
        "d1": "Bring it back",
        "d2": "Open hours",
    }
    assert set(parsed.qrels.itertuples(index=False, name=None)) == {
        ("007", "d1", 2.0),
        ("007", "d2", 0.0),
        ("8", "d1", 0.5),
    }
    assert parsed.candidates is None
    assert set(parsed.pairs.itertuples(index=False, name=None)) == {
        ("007", "d1"),
        ("007", "d2"),
        ("8", "d1"),
    }


@pytest.mark.parametrize("format_name", FORMATS)
def test_plain(parse, files, format_name):
    assert_same_rows(parse({"data": files[format_name]}))


@pytest.mark.parametrize("format_name", FORMATS)
def test_the_name_says_nothing(parse, files, format_name):
    assert_same_rows(parse({"misleading.parquet.csv": files[format_name]}))


@pytest.mark.parametrize("format_name", FORMATS)
def test_in_gz(parse, files, gz, format_name):
    assert_same_rows(parse({"data.gz": gz(files[format_name])}))


@pytest.mark.parametrize("format_name", FORMATS)
def test_in_zip(parse, files, zipped, format_name):
    assert_same_rows(parse({"data.zip": zipped({"folder/data": files[format_name]})}))


@pytest.mark.parametrize("format_name", FORMATS)
def test_gz_in_zip(parse, files, gz, zipped, format_name):
    assert_same_rows(parse({"data.zip": zipped({"data.gz": gz(files[format_name])})}))


@pytest.mark.parametrize("format_name", FORMATS)
def test_the_format_is_told_in_words(parse, files, format_name):
    (described,) = parse({"data": files[format_name]}).formats.values()
    words = {"csv": "CSV", "tsv": "TSV", "semicolon": "CSV (;)", "parquet": "Parquet"}
    assert words.get(format_name, "JSON") in described


@pytest.mark.parametrize("format_name", FORMATS)
def test_cut_in_the_middle_is_refused_as_a_whole_or_loses_no_row_in_silence(
    parse, files, format_name
):
    data = files[format_name]
    if format_name in ("csv", "tsv", "semicolon"):
        # Text cut inside a row is a row with too few fields.
        cut = data[: data.rindex(b"Bring")]
        parsed = parse({"data": cut})
        (refused,) = [f for f in parsed.findings if f.code == "field_count"]
        assert refused.line == 4
        assert len(parsed.qrels) == 2
    else:
        with pytest.raises(FormatError, match="data"):
            parse({"data": data[:-10]})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"  \n\n ", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"query,document,label\n", "no rows"),
        (b"[]", "no rows"),
        (b"\x00\x00\x02\x03" * 40, "binary data"),
        (b"query,document,label\na,b\nc,d\n", "Rows that cannot be used: 2 of 2,"),
        (b"%PDF-1.7 ...", "PDF"),
        (b"\x89PNG\r\n\x1a\n", "picture"),
        (b"\x80\x04\x95\x10", "pickle"),
        (b"SQLite format 3\x00", "SQLite"),
        (b"\n<html><body>a, b</body></html>", "line 2: The file is markup, but of no known form"),
        (b"Dear all,\nplease find attached the labels.\nYours\n", "form of the file"),
        (b'{"query": 1' + b"9" * 5000 + b"}", "JSON breaks"),
        (b'[1, "a", {}]', "its shape is not known"),
        (b'["a", "b"]', "its shape is not known"),
        (b'[{"query": "a"}] trailing', "follows the end"),
        (b'[{"query": "a"} {"query": "b"}]', "comma"),
    ],
)
def test_what_is_no_data_file_is_refused_with_its_name_and_a_remedy(parse, data, reason):
    with pytest.raises(FormatError, match=reason) as refused:
        parse({"upload.csv": data})
    assert refused.value.file == "upload.csv"
    assert refused.value.remedy


def test_text_that_would_run_elsewhere_is_only_text(parse):
    hostile = (
        '=cmd()|<script>alert(1)</script> {0.__class__} %s $(rm -rf) \\u0000 "" ![x](http://x)'
    )
    row = "q1,{},d1,text,1\n".format('"' + hostile.replace('"', '""') + '"')
    parsed = parse({"x": "query_id,query,doc_id,document,label\n" + row})

    assert parsed.queries["text"].tolist() == [hostile]


def test_braces_in_file_names_and_rows_do_not_break_messages(parse):
    with pytest.raises(FormatError) as refused:
        parse({"{name}.csv": 'query,document,label\n"{0},x,1\n'})
    assert str(refused.value) == (
        "{name}.csv, line 2: The quotation marks of the row that begins here do not match "
        "(unexpected end of data). Close every quotation mark, and write a mark inside a quoted "
        'text as "".'
    )
