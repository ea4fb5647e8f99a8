"""The content of a file is counted before it is parsed, for any size of the chunks."""

import gzip
import json
import tracemalloc

import pytest

from rankdash.core.base.errors import DataError, LimitError
from rankdash.core.readers import ReadLimits
from rankdash.core.readers.parse import unpack
from rankdash.core.readers.parse.limits import limit_set, variable
from rankdash.core.readers.parse.source import Decoded
from tests.readers.reading import parse

MEGABYTE = 1_000_000
SMALL = ReadLimits(
    rows=20, line_bytes=100, json_values=40, json_depth=5, field_chars=10, unpacked_ratio=3
)


@pytest.fixture(params=[1, 3, 7, 1 << 20])
def cut(request, monkeypatch) -> int:
    """Read files in chunks of this number of bytes."""
    monkeypatch.setattr(unpack, "CHUNK", request.param)
    return request.param


def lines(content: str) -> None:
    unpack.refuse_long_lines(content.encode(), "x", SMALL)


def values(content: str | bytes) -> None:
    unpack.refuse_vast_json(Decoded(content, "utf-8"), "x", SMALL)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_as_many_rows_as_allowed_and_a_header_pass_and_one_more_does_not(cut, end):
    lines("a,b" + end + f"1,2{end}" * 20)
    with pytest.raises(LimitError, match="more than 20 rows") as refused:
        lines("a,b" + end + f"1,2{end}" * 21)
    assert "RANKDASH_MAX_ROWS" in str(refused.value)


def test_line_breaks_within_quotation_marks_are_no_rows(cut):
    many = 'a,b\n1,"x\ny"\n' + "1,2\n" * 18
    lines(many)
    lines(many + '1,"' + "\n" * 15 + '"\n')
    lines(many + '1,"' + "\n" * 15)
    for more in ('1,"2"\n', '1,"2\n3"\n1,2\n'):
        with pytest.raises(LimitError, match="more than 20 rows"):
            lines(many + more * 3)
    # Only the reader knows the meaning of marks after a backslash.
    lines(many + '1,"\\""\n' * 9)


def test_a_line_as_long_as_allowed_passes_and_a_byte_more_does_not(monkeypatch):
    monkeypatch.setattr(unpack, "CHUNK", 10)
    for end in ("", "\n", "\r"):
        lines("a,b\n" + "x" * 100 + end + "1,2\n" * bool(end))
        with pytest.raises(LimitError, match=r"longer than 0\.0 MB") as refused:
            lines("a,b\n" + "x" * 101 + end)
        assert "RANKDASH_MAX_LINE_BYTES" in str(refused.value)
        assert refused.value.line == 2


def test_json_may_be_one_line_and_what_is_no_table_has_as_many_as_it_likes(cut):
    lines(" [" + "1," * 100)
    for start in ("<DOC>\n", "[\n", "\ufeff {\n", "PAR1") if cut > 3 else ():
        lines(start + "x\n" * 50)


def test_values_are_counted_outside_of_texts(cut):
    values('["' + ",[{" * 3 + '"' + ", 1" * 39 + "]")
    values(r'["\",,,", "\\\\", "\\"' + ", 1" * 37 + "]")
    with pytest.raises(LimitError, match="more than 40 values") as refused:
        values(r'["\\", ",,"' + ", 1" * 39 + "]")
    assert "RANKDASH_MAX_JSON_VALUES" in str(refused.value)
    values("[" + '"宝",' * 39 + '"贝,,,,,"]')


def test_lists_may_stand_as_deep_as_allowed_and_no_deeper(cut):
    values('[[[[["[[[["]]], {"a": {"b": []}}]]')
    for closed in ("", "]" * 6):
        with pytest.raises(LimitError, match="more than 5 levels") as refused:
            values("\n[[{\n[[[" + closed)
        assert (refused.value.line, refused.value.file) == (3, "x")
        assert "RANKDASH_MAX_JSON_DEPTH" in str(refused.value)


def test_a_text_far_longer_than_a_field_is_refused_with_its_line(cut):
    values('["a",\n"' + "x" * 120 + '"' + " " * 300 + ', "b"]')
    for content in ('["a",\n"' + "x" * 122, '["a",\n"' + "x" * 122 + '", "b"]'):
        with pytest.raises(LimitError, match="longer than 10 characters") as refused:
            values(content)
        assert (refused.value.line, refused.value.file) == (2, "x")
        assert "RANKDASH_MAX_FIELD_CHARS" in str(refused.value)


@pytest.mark.parametrize(
    ("start", "part", "times", "end", "match"),
    [
        (b"query,document,label\n", b"a,b,1\n", 8, b"", "1,000,000 rows"),
        (b"[", b'{"a":1},', 6, b'{"a":1}]', "values"),
        (b'{"data":[', b"[],", 16, b"1]}", "values"),
        (b"", b"[", 48, b"", "100 levels"),
        (b'query,document,label\n"a","', b"x ", 24, b'",1\n', "A line is longer"),
        (b'query,document,label\na,"', b"x" * 30 + b"\n", 1, b"", "A field has more than"),
        (b'{"query":"', b"x", 48, b"", "A text in the JSON"),
    ],
    ids=["rows", "json_rows", "json_lists", "json_deep", "line", "field", "json_text"],
)
def test_a_bomb_takes_no_more_memory_than_what_it_unpacks_to(start, part, times, end, match):
    content = start + part * times * MEGABYTE + end
    packed = gzip.compress(content, 1)
    size = len(content)
    del content
    limits = ReadLimits(rows=MEGABYTE, json_values=5 * MEGABYTE)
    tracemalloc.start()
    with pytest.raises(LimitError, match=match) as refused:
        parse({"x.gz": packed}, limits=limits)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused.value.file == "x.gz" and "RANKDASH_MAX_" in str(refused.value)
    assert peak < 2 * size + 60 * MEGABYTE


def test_an_archive_of_the_same_bytes_again_and_again_is_refused():
    row = {"query": "a", "document": "b" * 900_000, "label": 1}
    content = "\n".join([json.dumps(row)] * 60).encode()
    packed = gzip.compress(content)
    times = len(content) // len(packed)
    assert len(parse({"x.gz": packed}, limits=ReadLimits(unpacked_ratio=times + 1)).qrels) == 1
    # The ratio of small files is not limited.
    small = gzip.compress(b"query,document,label\n" + b"a,b,1\n" * 500_000)
    assert len(parse({"x.gz": small}).qrels) == 1
    with pytest.raises(LimitError, match=f"more than {times:,} times as large") as refused:
        parse({"x.gz": packed}, limits=ReadLimits(unpacked_ratio=times))
    assert "RANKDASH_MAX_UNPACKED_RATIO" in str(refused.value)


@pytest.mark.parametrize("limit", ["rows", "files", "line_bytes", "memory_bytes", "json_depth"])
def test_whoever_starts_rankdash_sets_a_limit(monkeypatch, limit):
    usual = getattr(ReadLimits(), limit)
    monkeypatch.setenv(variable(limit), " 1_234 ")
    assert variable(limit) == f"RANKDASH_MAX_{limit.upper()}"
    assert (getattr(ReadLimits(), limit), limit_set(limit, 5)) == (1234, 1234)
    assert getattr(ReadLimits(**{limit: 7}), limit) == 7
    monkeypatch.setenv(variable(limit), "")
    assert getattr(ReadLimits(), limit) == usual


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "1e9", "٣", "9" * 40, "_"])
def test_a_limit_that_is_no_number_is_said_with_its_variable(monkeypatch, text):
    monkeypatch.setenv("RANKDASH_MAX_ROWS", text)
    with pytest.raises(DataError, match="RANKDASH_MAX_ROWS must be a whole number") as refused:
        parse({"x.csv": "query,document,label\na,b,1\n"})
    assert "20,000,000" in refused.value.remedy.format(**refused.value.params)
