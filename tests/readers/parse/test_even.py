"""Text that Arrow may split: only what splits into the same fields line by line without it."""

from functools import partial

import pyarrow as pa

from rankdash.readers.parse.even import even_columns, has_empty
from tests.results import results


def split(text: str, delimiter: str = ",", width: int = 2, wanted: tuple[int, ...] = (), **options):
    columns = even_columns(text.encode(), delimiter, width, wanted or range(width), **options)
    return "left" if columns is None else repr([each.to_pylist() for each in columns.values()])


def test_even_text_is_split_into_what_is_written_and_other_text_is_left(approved):
    texts = (
        *("a,b\nc,d\n", "a,b\nc,d", "a,b\r\nc,d\r\n"),
        # Neither numbers nor words for nothing, nor quotation marks, nor blanks are read.
        *('007,NaN\n"a,b"\n', "007,1.50\n8,true\n", "1,2024-01-01\n2,\n", " a ,\n,退货\n"),
        # Fewer fields, more, blank lines, and the line ends of old and mixed files.
        *("a,b\nc\n", "a,b\nc,d,e\n", "a,b\n\nc,d\n", "\na,b\n", "a,b\n\n", "a,b\rc,d\r"),
        "a,b\r\nc,d\r",
    )
    three, numeric = {"width": 3, "wanted": (2, 0)}, {"numeric": (1,)}
    cases = {
        **{repr(text): partial(split, text) for text in texts},
        "one field": partial(split, "a\nb\n", width=1),
        "a separator that is not ASCII": partial(split, "a，b\n", "，"),
        "tabs": partial(split, "a\tb\tc\n", "\t", 3),
        "wanted columns": partial(split, "a,b,c\nd,,f\n", **three),
        "an empty cell of any": partial(split, "a,b,c\nd,,f\n", **three, filled=True),
        "no empty cell": partial(split, "a,b,c\nd,e,f\n", **three, filled=True),
        "numbers": partial(split, "a,1\nb,0.1\n", **numeric),
        "a cell that is not a number": partial(split, "a,1\nb,1_0\n", **numeric),
        "what is barred": partial(split, "a,b\nc,d\n", barred=(b",d",)),
        "what is barred is not there": partial(split, "a,b\nc,d\n", barred=(b"b,",)),
        "not ASCII": partial(split, "a,b\n退,d\n", ascii_only=True),
    }
    approved("readers/even", results(cases))


def test_text_of_many_blocks_is_one_column_and_its_last_line_is_seen():
    lines = b"".join(b"q%0999d,%d\n" % (place, place) for place in range(20_000))

    def read(last: bytes) -> list[object] | None:
        found = even_columns(lines + last, ",", 2, (0, 1), numeric=(1,))
        return found and found[1].to_pylist()

    # The first blocks fit into small numbers, the last one not.
    assert read(b"q,0.1\n") == [*map(float, range(20_000)), 0.1]
    assert read(b"q,x\n") == [*map(str, range(20_000)), "x"]
    assert read(b"\n") is read(b"q\n") is None


def test_an_empty_cell_is_found_wherever_it_stands_in_a_slice():
    cells = pa.array(["", "a", "b", ""])
    assert [has_empty(cells.slice(*each)) for each in ((1, 2), (0, 2), (2, 2), (1, 0))] == [
        False, True, True, False
    ]  # fmt: skip
