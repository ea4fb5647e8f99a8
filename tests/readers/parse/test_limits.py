"""Every limit has its own message, which names the file, the limit and a remedy."""

import io

import pandas as pd
import pytest

from rankdash.errors import LimitError
from rankdash.readers import ReadLimits, Source, sources_from_path
from rankdash.readers.parse.table import (
    refuse_many_bytes,
    refuse_many_columns,
    refuse_many_rows,
)
from tests.readers.formats.test_tools import arrow, parquet
from tests.readers.reading import limits, shown

CSV = "query,document,label\n" + "".join(f"a,b{i},1\n" for i in range(30))
JSONL = "\n".join(f'{{"query": "a", "document": "b{i}", "label": 1}}' for i in range(30))
QRELS = "".join(f"q1 0 d{i} 1\n" for i in range(30))
ROWS = [{"query": "a", "document": f"b{i}", "label": 1} for i in range(30)]
CONTENTS = {
    "csv": CSV,
    "jsonl": JSONL,
    "json": "[" + JSONL.replace("\n", ",") + "]",
    "trec": QRELS,
    "trec, uneven": QRELS + "\n",
    "parquet": parquet(ROWS),
    "arrow": arrow(ROWS),
    "nested": '{"query": "a", "docs": [' + ",".join(f'"d{i}"' for i in range(30)) + "]}",
}
LONG = "long" * 30
WIDE = {f"c{i}": "x" for i in range(20)}
REPEATED = [{"query": "a" * 1000, "document": "b", "label": 1}] * 5000


def test_what_is_beyond_a_limit_is_refused(approved):
    size = len(CSV.encode())
    cases = {
        **{
            f"more rows, {name}": ({name: content}, limits(rows=29))
            for name, content in CONTENTS.items()
        },
        **{
            f"a field too long, {name}": ({name: content}, limits(field_chars=100))
            for name, content in (
                ("csv", f'query,document,label\na,b,1\n"x\ny",{LONG},1\n'),
                ("jsonl", f'{{"query": "a", "document": "b"}}\n\n{{"query": "{LONG}"}}'),
                ("json", f'[\n{{"query": "a"}},\n{{"query": "{LONG}"}}]'),
                ("trec", f"q1 0 d1 1\nq1 0 {LONG} 1\n"),
                ("parquet", parquet([ROWS[0], {**ROWS[1], "query": LONG}])),
                ("arrow", arrow([ROWS[0], {**ROWS[1], "query": LONG}])),
            )
        },
        **{
            f"more columns, {name}": ({name: content}, limits(columns=10))
            for name, content in (
                ("csv", ",".join(WIDE) + "\n" + ",".join(WIDE.values())),
                ("jsonl", "\n".join(f'{{"k{i}": 1}}' for i in range(20))),
                ("parquet", parquet([WIDE])),
                ("arrow", arrow([WIDE])),
            )
        },
        "a file as large as allowed": ({"x.csv": CSV}, limits(file_bytes=size)),
        "a byte more": ({"x.csv": CSV}, limits(file_bytes=size - 1)),
        "a file that unpacks to too much": (
            {"x": parquet(REPEATED)}, limits(unpacked_bytes=1_000_000)
        ),
    }  # fmt: skip
    approved("readers/limits.en", shown(cases))


@pytest.mark.parametrize("name", [name for name in CONTENTS if name != "nested"])
def test_as_many_rows_as_allowed_are_read(parse, name):
    assert len(parse({name: CONTENTS[name]}, limits=ReadLimits(rows=30)).qrels) == 30


def test_a_document_longer_than_the_csv_modules_own_limit_is_read(parse):
    text = "word " * 100_000
    parsed = parse({"x": f"query,document,label\na,{text},1\n"})
    assert parsed.documents["text"].tolist() == [text]


def test_file_size_is_checked_before_the_file_is_read(tmp_path, monkeypatch):
    file = tmp_path / "large.csv"
    file.write_text(CSV)
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda path: pytest.fail("it was read"))
    with pytest.raises(LimitError, match=r"large\.csv"):
        Source.from_path(file, limits=ReadLimits(file_bytes=100))


def test_as_many_files_as_allowed_are_taken_from_a_folder(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.csv").write_text(CSV)
    assert len(sources_from_path(tmp_path, limits=ReadLimits(files=3))) == 3
    with pytest.raises(LimitError, match="more than 2 files"):
        sources_from_path(tmp_path, limits=ReadLimits(files=2))


@pytest.mark.parametrize(
    ("refuse", "limit"),
    [
        (refuse_many_rows, "rows"),
        (refuse_many_columns, "columns"),
        (refuse_many_bytes, "unpacked_bytes"),
    ],
)
def test_as_much_as_allowed_is_accepted_and_one_more_is_not(refuse, limit):
    limits = ReadLimits(**{limit: 7})
    refuse(7, "x", limits)
    with pytest.raises(LimitError) as refused:
        refuse(8, "x", limits)
    assert refused.value.file == "x"


def test_a_parquet_file_that_says_itself_that_it_is_too_large_is_not_unpacked(parse, monkeypatch):
    plain = io.BytesIO()
    pd.DataFrame(REPEATED).to_parquet(plain, compression="zstd", use_dictionary=False)
    monkeypatch.setattr(
        "pyarrow.parquet.ParquetFile.iter_batches", lambda *_a, **_k: pytest.fail("unpacked")
    )
    with pytest.raises(LimitError, match="larger than") as refused:
        parse({"x": plain.getvalue()}, limits=ReadLimits(unpacked_bytes=1_000_000))
    assert "RANKDASH_MAX_UNPACKED_BYTES" in str(refused.value)
