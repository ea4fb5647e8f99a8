"""Encodings: detected, reported if guessed, refused by line if none fits."""

import codecs
import tracemalloc
from functools import partial

import numpy as np
import pytest

from rankdash.core.base.errors import FormatError
from rankdash.core.readers.parse.source import decode
from tests.readers.reading import shown
from tests.results import results

TEXT = "query,document,label\n如何退货,把商品寄回来即可，七天之内,1\n营业时间,星期天休息,0\n"


def test_every_encoding_is_found_told_where_it_was_guessed_and_refused_by_line(approved):
    western = "query,document,label\nfeng shui,b,1\ncafé près d'ici,déjà vu,1\n"
    plain = "query,document,label\na gift,bring it,1\n"
    cut = codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le")[:-1]
    contents = {
        **{
            encoding: TEXT.encode(encoding)
            for encoding in ("utf-8", "utf-8-sig", "gb18030", "gbk", "gb2312", "utf-16", "utf-32")
        },
        **{
            f"{encoding} behind its mark": mark + TEXT.encode(encoding)
            for mark, encoding in (
                (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
                (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
            )
        },
        **{f"{name} without a mark": plain.encode(name) for name in ("utf-16-le", "utf-16-be")},
        "a mark before a name, JSON and TREC": b"\xef\xbb\xbf" + plain.encode(),
        "a mark before JSON": b'\xef\xbb\xbf[{"query": "a", "document": "b", "label": 1}]',
        "a mark before TREC": b"\xef\xbb\xbfq1 0 d1 1\n",
        "one bad byte is not read as another encoding": TEXT.encode().replace(
            "休".encode(), b"\xbc\x91"
        ),
        "western text is not taken for Chinese": western.encode("cp1252"),
        "UTF-16 cut in the middle of a character": cut,
    }  # fmt: skip
    approved("readers/encodings.en", shown({name: {"x": data} for name, data in contents.items()}))


def test_an_encoding_is_told_by_its_bytes(approved):
    samples = (
        # UTF-16 is detected by zeros: more than a fifth of all bytes, with at most a twentieth of
        # them at the other positions.
        *(b"a\0" * 20, b"\0a" * 20, b"a\0" * 19 + b"\0\0", b"a\0" * 18 + b"\0\0" * 2),
        *(b"\0a" * 19 + b"\0\0", b"\0a" * 18 + b"\0\0" * 2, b"a\0bb", b"a\0bbb" * 2),
        # Four good characters of UTF-8 for a bad byte make broken UTF-8. The second byte of 丂 is
        # the byte of @.
        *("é".encode() * good + "丂".encode("gb18030") for good in (3, 4)),
        # In Chinese half of the second bytes are high.
        *(text.encode("gb18030") for text in ("的丂", "的丂丂")),
        # With more than a third of control characters it is not a text.
        *(b"\0ab", b"\0a", b"\t\n\x1b"),
    )
    cases = {repr(each): partial(decode, each, "x") for each in samples}
    approved("readers/bytes", results(cases, lambda found: found.encoding))


@pytest.mark.parametrize("places", [0, 1])
def test_noise_is_refused_without_much_more_memory_than_it_takes(places):
    # Also after a few lines of text, with noise after the first bytes.
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
