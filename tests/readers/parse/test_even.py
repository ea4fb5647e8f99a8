"""Text that Arrow may split: only what splits into the same fields line by line without it."""

import pyarrow as pa
import pytest

from rankdash.readers.parse.even import even_columns, has_empty


def split(text: str, delimiter: str = ",", width: int = 2) -> list[list[str]] | None:
    columns = even_columns(text.encode(), delimiter, width, range(width))
    return None if columns is None else [column.to_pylist() for column in columns.values()]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a,b\nc,d\n", [["a", "c"], ["b", "d"]]),
        ("a,b\nc,d", [["a", "c"], ["b", "d"]]),
        ("a,b\r\nc,d\r\n", [["a", "c"], ["b", "d"]]),
        # Neither numbers nor words for nothing, nor quotation marks, nor blanks are read.
        ('007,NaN\n"a,b"\n', [["007", '"a'], ["NaN", 'b"']]),
        ("007,1.50\n8,true\n", [["007", "8"], ["1.50", "true"]]),
        ("1,2024-01-01\n2,\n", [["1", "2"], ["2024-01-01", ""]]),
        (" a ,\n,退货\n", [[" a ", ""], ["", "退货"]]),
        # Other text is left to who reads it line by line: fewer fields, more, blank lines, and the
        # line ends of old and mixed files.
        *((text, None) for text in ("a,b\nc\n", "a,b\nc,d,e\n", "a,b\n\nc,d\n", "\na,b\n",
                                    "a,b\n\n", "a,b\rc,d\r", "a,b\r\nc,d\r")),
    ],
)  # fmt: skip
def test_even_text_is_split_into_what_is_written(text, columns):
    assert split(text) == columns


def test_one_field_a_line_and_a_sign_that_is_not_ascii_are_left_too():
    assert split("a\nb\n", ",", 1) is None
    assert split("a，b\n", "，") is None
    assert split("a\tb\tc\n", "\t", 3) == [["a"], ["b"], ["c"]]


def test_only_wanted_columns_are_kept_and_an_empty_cell_of_any_refuses_the_text():
    found = even_columns(b"a,b,c\nd,,f\n", ",", 3, (2, 0))
    assert {place: column.to_pylist() for place, column in found.items()} == {
        2: ["c", "f"],
        0: ["a", "d"],
    }
    assert even_columns(b"a,b,c\nd,,f\n", ",", 3, (2, 0), filled=True) is None
    assert even_columns(b"a,b,c\nd,e,f\n", ",", 3, (2,), filled=True)[2].to_pylist() == ["c", "f"]


def test_text_of_many_blocks_is_one_column_and_its_last_blank_line_is_seen():
    lines = b"".join(b"q%d,%0600d\n" % (place, place) for place in range(20_000))
    found = even_columns(lines, ",", 2, (0,))
    assert found[0].to_pylist() == [f"q{place}" for place in range(20_000)]
    assert even_columns(lines + b"\n", ",", 2, (0,)) is None
    assert even_columns(lines + b"q\n", ",", 2, (0,)) is None


def test_an_empty_cell_is_found_wherever_it_stands_in_a_slice():
    cells = pa.array(["", "a", "b", ""])
    assert [has_empty(cells.slice(*each)) for each in ((1, 2), (0, 2), (2, 2), (1, 0))] == [
        False, True, True, False
    ]  # fmt: skip


def test_columns_of_numbers_are_numbers_only_where_every_cell_is_one():
    def read(text: bytes):
        found = even_columns(text, ",", 2, (0, 1), numeric=(1,))
        return found[0].to_pylist(), found[1].to_pylist()

    assert read(b"a,1\nb,0.1\n") == (["a", "b"], [1.0, 0.1])
    assert read(b"a,1\nb,1_0\n") == (["a", "b"], ["1", "1_0"])
    # The first blocks fit into small numbers, the last one not.
    lines = b"".join(b"q%0999d,%d\n" % (place, place) for place in range(20_000))
    assert read(lines + b"q,0.1\n")[1] == [*map(float, range(20_000)), 0.1]
    assert read(lines + b"q,x\n")[1] == [*map(str, range(20_000)), "x"]


def test_text_with_what_is_barred_is_left():
    assert even_columns(b"a,b\nc,d\n", ",", 2, (0,), barred=(b",d",)) is None
    assert even_columns(b"a,b\nc,d\n", ",", 2, (0,), barred=(b"b,",)) is not None
    assert even_columns("a,b\n退,d\n".encode(), ",", 2, (0,), ascii_only=True) is None
