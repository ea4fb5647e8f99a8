"""Parquet and Arrow: types become text without loss; damaged or too large files are refused before
they are unpacked. Excel workbooks: sheets are tables, and ids do not change."""

import io
import struct
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from rankdash.core.base.errors import LimitError
from rankdash.core.readers import ReadLimits
from tests.readers.reading import parse, repacked, shown, zipped
from tests.readers.samples import arrow, parquet, workbook

ROWS = 12
# Memory is returned to the pool that provided it, maybe after the test.
POOLS: list[pa.MemoryPool] = []
PLAIN = {
    "query": [f"query {row // 4}" for row in range(ROWS)],
    "document": [f"text {row}" for row in range(ROWS)],
    "label": [str(row % 3) for row in range(ROWS)],
}


def packed(table: pa.Table, *, stream: bool = False, compression: str | None = None) -> bytes:
    return arrow(table, stream=stream, compression=compression, most=5)


def large(table: pa.Table) -> bytes:
    return parquet(table, dictionary_pagesize_limit=1 << 24)


def repeated(text: str, rows: int) -> dict[str, pa.Array]:
    """Return a text stored once in the file and used in each of `rows` rows of the table."""
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
    """The pool of all memory that Arrow allocates during the test."""
    before = pa.default_memory_pool()
    own = pa.proxy_memory_pool(before)
    POOLS.append(own)
    pa.set_memory_pool(own)
    yield own
    pa.set_memory_pool(before)


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("stream", [False, True])
def test_every_packing_is_read_as_the_same_rows(stream, compression):
    table = pa.table(PLAIN)
    coded = table.set_column(0, "query", table["query"].dictionary_encode())
    expected = parse({"a": packed(table)})
    found = parse({"a": packed(coded, stream=stream, compression=compression)})
    assert found.qrels.equals(expected.qrels) and len(found.qrels) == ROWS
    assert found.documents.equals(expected.documents)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_batch_that_unpacks_to_too_much_is_refused_before(pool, stream, compression):
    numbers = np.zeros(1_000_000, dtype=np.int64)
    table = pa.table({"query": numbers, "label": numbers})
    content, before = arrow(table, stream=stream, compression=compression), pool.max_memory()
    del table

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
        *((how, large) for how in ("dictionary", "views")),
    ],
)
def test_a_text_that_would_be_repeated_too_often_is_refused_before_it_is(pool, how, write):
    column = repeated("x" * 10_000, 5_000)[how]
    content, before = write(pa.table({"query": column})), pool.max_memory()
    with pytest.raises(LimitError, match=r"larger than 40\.0 MB"):
        parse({"a": content}, limits=ReadLimits(unpacked_bytes=40_000_000))
    assert pool.max_memory() - before < 5_000_000


@pytest.mark.parametrize("write", [packed, parquet])
def test_lists_of_too_many_values_are_refused_before_they_are_made(write):
    lists = pa.array([{"a": list(range(50))}, {"a": list(range(49))}])
    table = pa.table({"query": ["a", "b"], "more": lists})
    with pytest.raises(LimitError, match="lists of the file contain more than 100 values"):
        parse({"a": write(table)}, limits=ReadLimits(json_values=100))


def written(**columns: object) -> bytes:
    out = io.BytesIO()
    pd.DataFrame(columns).to_parquet(out)
    return out.getvalue()


def test_columns_of_every_type_become_text_and_damage_is_refused(approved):
    whole = packed(pa.table(PLAIN))
    *_, last = pa.ipc.MessageReader.open_stream(pa.py_buffer(whole).slice(8))
    ends = whole.rindex(b"\xff\xff\xff\xff\0\0\0\0")
    many = written(query=["a"] * 500, document=["b"] * 500, label=[1] * 500)
    once = {how: column for how, column in repeated("same", ROWS).items() if how != "lists"}
    tables = {
        **{
            f"a text that stands once in the file, {how}": packed(
                pa.table({**PLAIN, "query": column})
            )
            for how, column in once.items()
        },
        **{
            f"whole numbers up to {largest} in a column of floats": written(
                query_id=["q"] * 2, doc_id=[largest, 1.0], score=[0.1 + 2**-50, 0.5], label=[1, 0]
            )
            for largest in (2.0**53 - 1, 2.0**53, 1.5)
        },
        "whole numbers as ids, also in a column of floats": written(
            query_id=pd.array([1, 2**60, 3]), doc_id=[1.0, 2.0, float("nan")], label=[0.5, 1, 2]
        ),
        "missing labels are told by the number of their row": written(
            query=[*"aaaa"], document=[*"wxyz"], label=[1, None, 0, float("inf")]
        ),
        "categories, booleans and bytes": written(
            query=pd.Categorical(["a", "a"]), document=[b"one", "二".encode()], label=[True, False]
        ),
        "lists in cells are entries": written(
            query=["a"], docs=[["x", "y"]], true_scores=[[1, 0]], pred_scores=[[0.1, 0.2]]
        ),
        **{f"Parquet, cut at {cut}": many[:cut] for cut in (10, 200, -5)},
        **{f"Arrow, cut at {cut}": whole[:cut] for cut in (-1, -30, 300)},
        "batches that the end names are not there": (
            whole[: ends - last.serialize().size] + whole[ends:]
        ),
        "an empty table": written(query=[], document=[], label=[]),
        "two columns of one name": parquet(
            pa.table([["a"], ["b"], [1]], names=["query", "query", "label"])
        ),
    }
    approved("readers/parquet.en", shown({name: {"x": data} for name, data in tables.items()}))


HEAD = ("query_id", "query", "doc_id", "document", "label", "rank")
GIFT = [
    ("007", "return a gift", "d1", "Bring it back\nwithin a month", 2, 1),
    ("007", "return a gift", "d2", "Open hours", 0, 2),
    (8, "退货", "d1", "Bring it back\nwithin a month", 0.5, None),
]


def changed(packed: bytes, last: str) -> bytes:
    """Return the workbook with one more row at the end of its sheet."""
    end = f"{last}</sheetData>".encode()
    return repacked(packed, lambda _part, own: own.replace(b"</sheetData>", end))


def test_a_workbook_is_read_as_the_tables_it_holds(approved):
    whole = workbook(Sheet=[HEAD, *GIFT])
    short, pair = ("query", "document", "label"), [("c", "d", 0), ("e", "f", 1)]
    cases = {
        "ids and texts stay as they are": {"labels.xlsx": whole},
        "whatever its name": {"labels.csv": whole},
        "sheets are files": {
            "set.xlsx": workbook(
                queries=[("query_id", "query"), ("1", "return a gift")],
                documents=[("doc_id", "document"), ("d1", "Bring it back"), ("d2", "Open hours")],
                labels=[("query_id", "doc_id", "label"), ("1", "d1", 1), ("1", "d2", 0)],
                hidden_notes=[("a", "b"), ("c", "d")],
                empty=[],
            )
        },
        "lines are rows, also behind empty ones": {
            "x.xlsx": workbook(
                Sheet=[HEAD, *GIFT[:2], (), ("9", "x", "d1", "y", "?", 1), ("9", "x", "d2", "z", 1)]
            )
        },
        "truth values": {
            "x.xlsx": workbook(Sheet=[short, ("a", "x", True), ("a", "y", False)])
        },
        "columns of one name are all there": {
            "x.xlsx": workbook(Sheet=[("rating", None, "rating", "rating"), (1, 2, 3, 4)])
        },
        "a row wider than the header is refused and a narrower one filled": {
            "x.xlsx": workbook(
                Sheet=[short, ("a", "x", 1, "more"), ("b",), ("b", "y", 0, None), (*pair[0],)]
            )
        },
        "in a zip": {"set.zip": zipped({"labels.xlsx": whole})},
        "cut": {"x.xlsx": whole[: len(whole) // 2]},
        "a header alone": {"x.xlsx": workbook(Sheet=[HEAD])},
        "a header alone beside a table": {"x.xlsx": workbook(labels=[short, *pair], more=[short])},
        "two tables": {"x.xlsx": workbook(labels=[short, pair[0]], more=[short, pair[1]])},
        "a cell far outside costs no memory": {
            "x.xlsx": changed(
                whole, '<row r="99999"><c r="XFD99999" t="n"><v>1</v></c></row>'
            )
        },
        **{
            f"row 10^{len(str(row)) - 1}, below the last of a sheet{formula}": {
                "x.xlsx": changed(
                    whole, f'<row r="{row}"><c r="A{row}">{formula}<v>1</v></c></row>'
                )
            }
            for formula in ("", "<f>1+1</f>")
            for row in (1_048_577, 10**9, 10**400)
        },
    }  # fmt: skip
    approved("readers/workbook.en", shown(cases))
