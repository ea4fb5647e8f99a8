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

CSV = "query,document,label\n" + "".join(f"a,b{i},1\n" for i in range(30))
JSONL = "\n".join(f'{{"query": "a", "document": "b{i}", "label": 1}}' for i in range(30))
QRELS = "".join(f"q1 0 d{i} 1\n" for i in range(30))


def parquet(frame: pd.DataFrame) -> bytes:
    written = io.BytesIO()
    frame.to_parquet(written)
    return written.getvalue()


FRAME = pd.DataFrame({"query": ["a"] * 30, "document": [f"b{i}" for i in range(30)], "label": 1})
CONTENTS = {
    "csv": CSV,
    "jsonl": JSONL,
    "json": "[" + JSONL.replace("\n", ",") + "]",
    "trec": QRELS,
    "trec, uneven": QRELS + "\n",
    "parquet": parquet(FRAME),
    "nested": '{"query": "a", "docs": [' + ",".join(f'"d{i}"' for i in range(30)) + "]}",
}


@pytest.mark.parametrize("name", CONTENTS)
def test_rows(parse, name):
    with pytest.raises(LimitError, match="more than 29 rows") as refused:
        parse({name: CONTENTS[name]}, limits=ReadLimits(rows=29))
    assert refused.value.file == name
    assert "sample" in refused.value.remedy


@pytest.mark.parametrize("name", [name for name in CONTENTS if name != "nested"])
def test_as_many_rows_as_allowed_are_read(parse, name):
    assert len(parse({name: CONTENTS[name]}, limits=ReadLimits(rows=30)).qrels) == 30


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("csv", f'query,document,label\na,b,1\n"x\ny",{"long" * 30},1\n', 3),
        ("jsonl", '{"query": "a", "document": "b"}\n\n{"query": "' + "long" * 30 + '"}', 3),
        ("json", '[\n{"query": "a"},\n{"query": "' + "long" * 30 + '"}]', 3),
        ("trec", f"q1 0 d1 1\nq1 0 {'long' * 30} 1\n", 2),
        ("parquet", parquet(FRAME.assign(query=["a", "long" * 30] + ["a"] * 28)), 2),
    ],
)
def test_field_length(parse, name, content, line):
    with pytest.raises(LimitError, match="more than 100 characters") as refused:
        parse({name: content}, limits=ReadLimits(field_chars=100))
    assert (refused.value.file, refused.value.line) == (name, line)


def test_a_document_longer_than_the_csv_modules_own_limit_is_read(parse):
    text = "word " * 100_000

    parsed = parse({"x": f"query,document,label\na,{text},1\n"})

    assert parsed.documents["text"].tolist() == [text]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("csv", ",".join(f"c{i}" for i in range(20)) + "\n" + ",".join("x" * 20)),
        ("jsonl", "\n".join(f'{{"k{i}": 1}}' for i in range(20))),
        ("parquet", parquet(pd.DataFrame({f"c{i}": [1] for i in range(20)}))),
    ],
)
def test_columns(parse, name, content):
    with pytest.raises(LimitError, match="more than 10 columns"):
        parse({name: content}, limits=ReadLimits(columns=10))


def test_file_size(parse):
    with pytest.raises(LimitError, match=r"has 0.0 MB; at most 0.0 MB") as refused:
        parse({"x.csv": CSV}, limits=ReadLimits(file_bytes=100))
    assert refused.value.file == "x.csv"


def test_a_file_of_the_largest_size_is_accepted_and_a_byte_more_is_not(parse):
    size = len(CSV.encode())
    assert len(parse({"x.csv": CSV}, limits=ReadLimits(file_bytes=size)).qrels) == 30
    with pytest.raises(LimitError):
        parse({"x.csv": CSV}, limits=ReadLimits(file_bytes=size - 1))


def test_file_size_is_checked_before_the_file_is_read(tmp_path, monkeypatch):
    file = tmp_path / "large.csv"
    file.write_text(CSV)
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda path: pytest.fail("it was read"))

    with pytest.raises(LimitError, match=r"large\.csv"):
        Source.from_path(file, limits=ReadLimits(file_bytes=100))


def test_files_in_a_folder(tmp_path):
    for i in range(5):
        (tmp_path / f"{i}.csv").write_text(CSV)

    with pytest.raises(LimitError, match="more than 4 files"):
        sources_from_path(tmp_path, limits=ReadLimits(files=4))


def test_a_parquet_file_that_unpacks_to_too_much(parse):
    frame = pd.DataFrame({"query": ["a" * 1000] * 5000, "document": "b", "label": 1})

    with pytest.raises(LimitError, match=r"Unpacked, the table is larger than 1\.0 MB"):
        parse({"x": parquet(frame)}, limits=ReadLimits(unpacked_bytes=1_000_000))


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


def test_as_many_files_as_allowed_are_taken_from_a_folder(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.csv").write_text(CSV)

    assert len(sources_from_path(tmp_path, limits=ReadLimits(files=3))) == 3


def test_a_parquet_file_that_says_itself_that_it_is_too_large_is_not_unpacked(parse, monkeypatch):
    frame = pd.DataFrame({"query": ["a" * 1000] * 5000, "document": "b", "label": 1})
    plain = io.BytesIO()
    frame.to_parquet(plain, compression="zstd", use_dictionary=False)
    monkeypatch.setattr(
        "pyarrow.parquet.ParquetFile.iter_batches", lambda *_a, **_k: pytest.fail("unpacked")
    )
    with pytest.raises(LimitError, match="larger than") as refused:
        parse({"x": plain.getvalue()}, limits=ReadLimits(unpacked_bytes=1_000_000))
    assert "RANKDASH_MAX_UNPACKED_BYTES" in str(refused.value)
