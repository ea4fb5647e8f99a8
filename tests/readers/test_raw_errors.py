"""What a library raises on odd content is an error with the file and the reason."""

import decimal

import pyarrow as pa
import pytest

from rankdash.errors import DataError, FormatError, LimitError
from rankdash.i18n import error_text
from rankdash.readers.parse.faults import told
from tests.readers.reading import parse
from tests.readers.samples import arrow, parquet

ROWS = 6
COLUMNS = {
    "query": pa.array([f"q{row // 3}" for row in range(ROWS)]),
    "document": pa.array([f"d{row}" for row in range(ROWS)]),
    "label": pa.array([row % 2 for row in range(ROWS)]),
}


def numbers(value: int, kind: pa.DataType, stored: pa.DataType | None = None) -> pa.Array:
    return pa.array([value] * ROWS, type=stored or pa.int64()).view(kind)


def broken_text(offsets: int = ROWS) -> pa.Array:
    stored = pa.array([b"\xff\xfe\xc3"] * offsets, type=pa.binary())
    return pa.Array.from_buffers(pa.string(), offsets, stored.buffers())


def in_lists(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(ROWS + 1), type=pa.int32()), values)


ODD = {
    "text": broken_text(),
    "text by number": pa.DictionaryArray.from_arrays(
        pa.array([0] * ROWS, type=pa.int32()), broken_text(1)
    ),
    "text in lists": in_lists(broken_text()),
    "seconds": numbers(2**62, pa.timestamp("s")),
    "microseconds": numbers(2**62, pa.timestamp("us")),
    "nanoseconds": numbers(2**62 + 1, pa.timestamp("ns")),
    "long ago": numbers(-(2**62), pa.timestamp("us", "UTC")),
    "seconds in lists": in_lists(numbers(2**62, pa.timestamp("s"))),
    "zone": numbers(1, pa.timestamp("us", "Mars/Olympus")),
    "offset": numbers(1, pa.timestamp("us", "+99:99")),
    "day": numbers(2**31 - 1, pa.date32(), pa.int32()),
    "day in ms": numbers(2**62, pa.date64()),
    "time": numbers(2**62, pa.time64("us")),
    "duration": numbers(2**62, pa.duration("s")),
    "decimal": pa.array([decimal.Decimal("1e37")] * ROWS, type=pa.decimal128(38, 0)),
    "bytes": pa.array([b"\xff\x00"] * ROWS),
    "interval": pa.array([(1, 2, 3)] * ROWS, type=pa.month_day_nano_interval()),
}


# Parquet has no such values.
NO_PARQUET = {"seconds", "seconds in lists", "interval"}


@pytest.mark.parametrize("field", ["extra", "query", "document", "label"])
@pytest.mark.parametrize(("write", "lacks"), [(arrow, set()), (parquet, NO_PARQUET)])
def test_odd_columns_are_read_or_refused_by_name(write, lacks, field):
    for odd in ODD.keys() - lacks:
        try:
            parse({"odd.bin": write(pa.table({**COLUMNS, field: ODD[odd]}))})
        except DataError as error:
            assert (error.file, error.params.get("column", field)) == ("odd.bin", field), odd
            error_text(error).encode()
        else:
            assert odd != "microseconds"


@pytest.mark.parametrize(
    ("raised", "expected", "said"),
    [
        (MemoryError(), LimitError, "more memory than there is"),
        (KeyError("x"), FormatError, "('x')"),
        (RecursionError("too deep\nreally"), FormatError, "(too deep)"),
        (ValueError(), FormatError, "(ValueError)"),
        (TypeError("\ud800" + "x" * 900), FormatError, "(?" + "x" * 299 + ")"),
    ],
)
def test_anything_raised_becomes_an_error_with_file_and_reason(raised, expected, said):
    with pytest.raises(expected) as seen, told("a.csv"):
        raise raised
    assert (seen.value.file, seen.value.__cause__) == ("a.csv", raised)
    assert said in seen.value.message and seen.value.remedy


def test_what_files_do_only_together_names_them(monkeypatch):
    def fails(*_args: object, **_settings: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("rankdash.readers.files.combine", fails)
    files = {f"{n}.csv": "query,document,label\na,b,1\n" for n in range(4)}
    with pytest.raises(FormatError, match="by zero") as seen:
        parse(files)
    assert seen.value.file == "0.csv, 1.csv, 2.csv, …"
