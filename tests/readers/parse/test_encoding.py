"""Encodings: found, told where they were guessed, refused by line where none fits."""

import codecs
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankdash.errors import FormatError
from rankdash.readers import Source, read
from rankdash.readers.parse.encoding import decode

TEXT = "query,document,label\n如何退货,把商品寄回来即可，七天之内,1\n营业时间,星期天休息,0\n"
QUERIES = ["如何退货", "营业时间"]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "gb18030", "gbk", "gb2312", "utf-16", "utf-32"]
)
def test_chinese_in_every_encoding(parse, encoding):
    assert parse({"x": TEXT.encode(encoding)}).queries["text"].tolist() == QUERIES


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_every_byte_order_mark(parse, mark, encoding):
    assert parse({"x": mark + TEXT.encode(encoding)}).queries["text"].tolist() == QUERIES


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark(parse, encoding, found):
    parsed = parse({"x": "query,document,label\na gift,bring it,1\n".encode(encoding)})

    assert parsed.queries["text"].tolist() == ["a gift"]
    assert found(parsed, "encoding").params["encoding"] == encoding.upper()


def test_a_byte_order_mark_is_no_part_of_the_first_column_name(parse):
    parsed = parse({"x": b"\xef\xbb\xbfquery_id,query,document,label\n007,a,b,1\n"})

    assert parsed.queries["query_id"].tolist() == ["007"]


@pytest.mark.parametrize("start", ['[{"query": "a", "document": "b", "label": 1}]', "q1 0 d1 1\n"])
def test_a_byte_order_mark_before_json_and_trec(parse, start):
    assert len(parse({"x": b"\xef\xbb\xbf" + start.encode()}).qrels) == 1


def test_a_guessed_encoding_is_told_with_an_example(parse, found):
    finding = found(parse({"x": TEXT.encode("gb18030")}), "encoding")

    assert finding.text == "The file is not UTF-8; it is read as GB18030."
    assert finding.examples[0] == "如何退货,把商品寄回来即可，七天之内,1"


def test_one_bad_byte_in_utf8_is_refused_by_its_line_and_not_read_as_another_encoding(parse):
    data = TEXT.encode().replace("休".encode(), b"\xbc\x91")

    with pytest.raises(FormatError, match="cannot be read") as refused:
        parse({"x.csv": data})
    assert (refused.value.file, refused.value.line) == ("x.csv", 3)
    assert "UTF-8" in refused.value.remedy


def test_western_text_is_not_taken_for_chinese(parse):
    data = "query,document,label\nfeng shui,b,1\ncafé près d'ici,déjà vu,1\n".encode("cp1252")

    with pytest.raises(FormatError) as refused:
        parse({"x": data})
    assert refused.value.line == 3


def test_a_utf16_file_cut_in_the_middle_of_a_character(parse):
    with pytest.raises(FormatError):
        parse({"x": codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le")[:-1]})


@given(
    st.text(st.sampled_from("的一是了我不人在他有这个上们来到时大地为子中你说生国年着"), min_size=4)
)
def test_common_chinese_in_gb18030_comes_back(text):
    # A few words, such as 联通, are the same bytes as some UTF-8; a whole sentence is not.
    text += "是什么意思"
    data = f"query,document,label\n{text},{text},1\n".encode("gb18030")

    assert read([Source("x", data)]).queries["text"].tolist() == [text]


@pytest.mark.parametrize(
    ("sample", "encoding"),
    [
        (b"a\0" * 20, "utf-16-le"),
        (b"\0a" * 20, "utf-16-be"),
        (b"a\0" * 19 + b"\0\0", "utf-16-le"),
        (b"a\0" * 18 + b"\0\0" * 2, None),
        (b"\0a" * 19 + b"\0\0", "utf-16-be"),
        (b"\0a" * 18 + b"\0\0" * 2, None),
        (b"a\0bb", "utf-16-le"),
        (b"a\0bbb" * 2, "utf-8"),
        # Four good characters of UTF-8 for a bad byte make broken UTF-8. The second byte of 丂 is
        # that of @.
        ("é".encode() * 3 + "丂".encode("gb18030"), "gb18030"),
        ("é".encode() * 4 + "丂".encode("gb18030"), None),
        # Half of the second bytes are high in Chinese.
        ("的丂".encode("gb18030"), "gb18030"),
        ("的丂丂".encode("gb18030"), None),
        # More than a third of controls are no text.
        (b"\0ab", "utf-8"),
        (b"\0a", None),
        (b"\t\n\x1b", "utf-8"),
    ],
)
def test_an_encoding_is_told_by_its_bytes(sample, encoding):
    """UTF-16 by zeros: more than a fifth of all bytes, and of the bytes between a twentieth of
    that at most."""
    if encoding is None:
        with pytest.raises(FormatError):
            decode(sample, "x")
    else:
        assert decode(sample, "x").encoding == encoding


@pytest.mark.parametrize("places", [0, 1])
def test_noise_is_refused_without_much_more_memory_than_it_takes(places):
    # Behind a few lines of text too, which then are not its first bytes.
    noise = b"a,b\n" * places + np.random.default_rng(5).bytes(4_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=r"neither UTF-8, UTF-16 nor GB18030") as refused:
            decode(noise, "noise.csv")
        _now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert refused.value.line == 1 + places
    assert most < 3 * len(noise)
