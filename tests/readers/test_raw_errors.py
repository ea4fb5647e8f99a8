"""What a library raises on odd content is an error with the file and the reason."""

import decimal
import io
import struct
import zipfile

import pyarrow as pa
import pytest

from rankdash.errors import DataError, FormatError, LimitError
from rankdash.i18n import error_text
from rankdash.readers.parse.faults import told
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


def accepted_or_told(parse, name: str, content: bytes | str) -> DataError | None:
    """The error, with the file, in words that can be written down; None where all was read."""
    try:
        parse({name: content})
    except DataError as error:
        assert error.file.startswith(name) and error.remedy
        error_text(error).encode()
        return error
    return None


# Parquet has no such values.
NO_PARQUET = {"seconds", "seconds in lists", "interval"}


@pytest.mark.parametrize("field", ["extra", "query", "document", "label"])
@pytest.mark.parametrize(("write", "lacks"), [(arrow, set()), (parquet, NO_PARQUET)])
def test_odd_columns_are_read_or_refused_by_name(parse, write, lacks, field):
    for odd in ODD.keys() - lacks:
        error = accepted_or_told(parse, "odd.bin", write(pa.table({**COLUMNS, field: ODD[odd]})))
        assert error is None or error.params.get("column", field) == field, odd
        if odd == "microseconds":
            assert "out of range" in str(error) and "leave it out" in error.remedy


def archive(*places: tuple[int, int, bytes], name: str = "a.csv") -> bytes:
    """A zip of one file; (offset in its directory entry, in its own header, bytes): -1 for none."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, "query,document,label\na,b,1\n")
    content = bytearray(packed.getvalue())
    directory = content.rindex(b"PK\x01\x02")
    for entry, header, value in places:
        for start in (directory + entry if entry >= 0 else -1, header):
            if start >= 0:
                content[start : start + len(value)] = value
    return bytes(content)


def number(value: int) -> bytes:
    return struct.pack("<H", value)


METHODS = (1, 6, 9, 12, 14, 93, 97, 99, 65535)
NAMES = (b"\0\0\0\0\0", b"\xff\xfe\xfd.c", b"\xc3(\xa0\xa1.", b"\xed\xa0\x80\xed\xb0")


def test_versions_methods_flags_and_names_of_zip(parse):
    for version in (20, 45, 63, 64, 100, 255):
        error = accepted_or_told(parse, "odd.zip", archive((6, 4, number(version))))
        assert (error is None) == (version <= 63)
    for content in (
        *(archive((*at, number(way))) for way in METHODS for at in ((10, 8), (10, -1), (-1, 8))),
        *(archive((8, 6, number(1 << bit))) for bit in range(16)),
        *(archive((46, 30, name), (8, 6, number(flag))) for name in NAMES for flag in (0, 0x800)),
        *(archive(name=name) for name in ("a\0.csv", "\x1b[31m.csv", "a" * 5000, "a//b")),
    ):
        accepted_or_told(parse, "odd.zip", content)


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


def test_an_error_of_rankdash_passes_as_it_is():
    problem = DataError("No.", file="b.csv")
    with pytest.raises(DataError) as seen, told("a.csv"):
        raise problem
    assert seen.value is problem


def test_what_files_do_only_together_names_them(parse, monkeypatch):
    def fails(*_args: object, **_settings: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("rankdash.readers.files.combine", fails)
    files = {f"{n}.csv": "query,document,label\na,b,1\n" for n in range(4)}
    with pytest.raises(FormatError, match="by zero") as seen:
        parse(files)
    assert seen.value.file == "0.csv, 1.csv, 2.csv, …"
