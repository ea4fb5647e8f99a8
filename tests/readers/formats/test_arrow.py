"""Arrow files and streams: read alike however they are packed, refused before they are unpacked."""

import io
import struct
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankdash.errors import FormatError, LimitError
from rankdash.readers import ReadLimits

KINDS = {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}
ROWS = 12
# What was taken from one is given back to it, maybe after the test.
POOLS: list[pa.MemoryPool] = []
PLAIN = {
    "query": [f"query {row // 4}" for row in range(ROWS)],
    "document": [f"text {row}" for row in range(ROWS)],
    "label": [str(row % 3) for row in range(ROWS)],
}


def packed(table: pa.Table, kind: str = "file", compression: str | None = None) -> bytes:
    """In batches of 5 rows."""
    out = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with KINDS[kind](out, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=5)
    return out.getvalue()


def parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, dictionary_pagesize_limit=1 << 24)
    return out.getvalue()


def repeated(text: str, rows: int) -> dict[str, pa.Array]:
    """A text that stands once in the file and in each of so many rows of the table."""
    once, data = pa.array([text]), text.encode()
    view = struct.pack("<i4sii", len(data), data[:4], 0, 0)
    if len(data) <= 12:
        view = struct.pack("<i12s", len(data), data)
    coded = pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int8), once)
    return {
        "dictionary": coded,
        "run ends": pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), once),
        "views": pa.Array.from_buffers(
            pa.string_view(), rows, [None, pa.py_buffer(view * rows), pa.py_buffer(data)]
        ),
        "lists": pa.ListArray.from_arrays(pa.array([0, rows], pa.int32()), coded),
    }


@pytest.fixture
def pool() -> Iterator[pa.MemoryPool]:
    """Counts what Arrow takes during the test."""
    before = pa.default_memory_pool()
    own = pa.proxy_memory_pool(before)
    POOLS.append(own)
    pa.set_memory_pool(own)
    yield own
    pa.set_memory_pool(before)


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_packing_is_read_as_the_same_rows(parse, kind, compression):
    table = pa.table(PLAIN)
    coded = table.set_column(0, "query", table["query"].dictionary_encode())
    expected = parse({"a": packed(table)})
    found = parse({"a": packed(coded, kind, compression)})
    assert found.qrels.equals(expected.qrels) and len(found.qrels) == ROWS
    assert found.documents.equals(expected.documents)


@pytest.mark.parametrize("how", ["dictionary", "run ends", "views"])
def test_texts_that_stand_once_are_read_as_those_of_each_row(parse, how):
    columns = {**PLAIN, "query": repeated("same", ROWS)[how]}
    found = parse({"a": packed(pa.table(columns))})
    assert found.queries["text"].tolist() == ["same"]
    assert len(found.qrels) == ROWS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_batch_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(
    parse, pool, kind, compression
):
    numbers = np.zeros(1_000_000, dtype=np.int64)
    batch = pa.record_batch([numbers, numbers], names=["query", "label"])
    out = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with KINDS[kind](out, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    content, before = out.getvalue(), pool.max_memory()
    del batch, out

    with pytest.raises(LimitError, match=r"larger than 15\.0 MB") as refused:
        parse({"a": content}, limits=ReadLimits(unpacked_bytes=15_000_000))
    assert refused.value.file == "a"
    with pytest.raises(LimitError, match="more than 999,999 rows"):
        parse({"a": content}, limits=ReadLimits(rows=999_999))
    assert pool.max_memory() - before < 1_000_000


@pytest.mark.parametrize(
    ("how", "write"),
    [
        *((how, packed) for how in ("dictionary", "run ends", "views", "lists")),
        *((how, parquet) for how in ("dictionary", "views")),
    ],
)
def test_a_text_that_would_be_repeated_too_often_is_refused_before_it_is(parse, pool, how, write):
    column = repeated("x" * 10_000, 5_000)[how]
    content, before = write(pa.table({"query": column})), pool.max_memory()
    with pytest.raises(LimitError, match=r"larger than 40\.0 MB"):
        parse({"a": content}, limits=ReadLimits(unpacked_bytes=40_000_000))
    assert pool.max_memory() - before < 5_000_000


@pytest.mark.parametrize("write", [packed, parquet])
def test_lists_of_too_many_values_are_refused_before_they_are_made(parse, write):
    lists = pa.array([{"a": list(range(50))}, {"a": list(range(49))}])
    table = pa.table({"query": ["a", "b"], "more": lists})
    with pytest.raises(LimitError, match="lists of the file hold more than 100 values"):
        parse({"a": write(table)}, limits=ReadLimits(json_values=100))


@pytest.mark.parametrize("at", [-1, -30, 300])
def test_a_file_that_is_cut_is_refused(parse, at):
    with pytest.raises(FormatError, match="damaged or cut short"):
        parse({"a": packed(pa.table(PLAIN))[:at]})


def test_a_file_that_lacks_batches_which_its_end_names_is_refused(parse):
    whole = packed(pa.table(PLAIN))
    *_, last = pa.ipc.MessageReader.open_stream(pa.py_buffer(whole).slice(8))
    ends = whole.rindex(b"\xff\xff\xff\xff\0\0\0\0")
    with pytest.raises(FormatError, match="2 of 3 batches are there"):
        parse({"a": whole[: ends - last.serialize().size] + whole[ends:]})
