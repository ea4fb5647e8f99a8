"""CSV, TSV and relatives: separators, quotes, line breaks, headers, true line numbers."""

import csv
from functools import partial

import pyarrow as pa
import pytest

from rankdash.core.base.errors import LimitError
from rankdash.core.readers import ReadLimits
from rankdash.core.readers.formats import delimited
from rankdash.core.readers.formats.delimited import sniff
from rankdash.core.readers.parse.table import even_columns, has_empty
from tests.readers.reading import limits, shown
from tests.results import results

HEAD = "query,document,label\n"


def test_text_is_read_field_by_field_and_line_by_line(approved):
    words = ["NA", "nan", "null", "None", "N/A", "TRUE", "1e5", "-inf"]
    hostile = (
        '=cmd()|<script>alert(1)</script> {0.__class__} %s $(rm -rf) \\u0000 "" ![x](http://x)'
    )
    three = HEAD + "a,b,1\nc,d,1\ne,f\n"
    cases = {
        "a tab-separated file named csv": {
            "labels.csv": "query\tdocument\tlabel\nred, blue\tone, two\t1\n"
        },
        "commas, quotes and line breaks inside fields": {
            "x": HEAD.replace("\n", "\r\n")
            + '"a, ""b""","line one\r\nline two\nline three",1\r\nc,d,0\r\n'
        },
        "quoted separators of another kind": {
            "x": "query;document;label\n"
            + "".join(f'"a;b;c;{i}";"x,y,z,{i}";{i % 2}\n' for i in range(4))
        },
        "lines are physical, also behind quoted line breaks": {
            "x": HEAD  # 1
            + '"one\ntwo\nthree","a",1\n'  # 2-4
            "\n"  # 5
            "q,b,bad\n"  # 6
            '"q","x\ny",1\n'  # 7-8
            "q,c\n"  # 9
            "q,d,nan\n"  # 10
            "q,e,1\nq,f,1\nq,g,1\nq,h,1\n"
        },
        "an open quotation mark": {"x": HEAD + 'a,b,1\nc,"d,1\n' + "e,f,1\n" * 50},
        "quotes escaped by a backslash": {"x": HEAD + '"say \\"hi\\", now","b",1\n'},
        "marks in tab-separated text are plain characters": {
            "x": 'query\tdocument\tlabel\n"quoted" start\ta 5" screen\t1\n"open\tb\t0\n'
        },
        "words that elsewhere mean missing": {
            "x": HEAD + "".join(f"{word},{word},1\n" for word in words)
        },
        "Excel's hint is no row and shifts no line": {
            "x": "sep=;\r\nquery;document;label\r\na;b;1\r\nc;d;x\r\na;c;0\r\n"
        },
        "separators of a spreadsheet that trail are no fields": {"x": HEAD + "a,b,1,,\nc,d,0,,\n"},
        "but where one is filled": {"x": HEAD + "a,b,1,,\nc,d,0,,z\ne,f,0\n"},
        "one column too many": {"x": HEAD + "a,b,1\nc,d,e,0\nf,g,0\n"},
        "most rows are bad": {"x": HEAD + "a,b,?\nc,d,?\ne,f,?\ng,h,1\n"},
        "every refused row is accounted for": {"x": HEAD + "a,b,\na,c,\n,d,1\na,e,1\na,f,0\n"},
        "labels without a header": {"x": "q1,d1,1\nq1,d2,0\nq2,d1,2\n"},
        "texts without one": {"x": "how to return,bring it,1\nopen on sunday,no we are not,0\n"},
        "texts without one, as told": (
            {"x": "how to return,bring it,1\nopen on sunday,no we are not,0\n"},
            {"mapping": {"x": {"query": "column 1", "document": "column 2", "label": "column 3"}}},
        ),
        "columns of one name and of none": {
            "x": "query,document,label,kind,kind,\na,b,1,x,y,z\n"
        },
        **{
            f"names win over what looks like labels, {separator}": {
                "x.csv": "\n".join(
                    [f"query{separator}document", *(f"q {i}{separator}doc {i}" for i in range(30))]
                )
            }
            for separator in ",;|"
        },
        "refused rows count as rows: as many as allowed": ({"x": three}, limits(rows=3)),
        "and one more": ({"x": three}, limits(rows=2)),
        "text that would run elsewhere": {
            "x": "query_id,query,doc_id,document,label\n"
            + "q1,{},d1,text,1\n".format('"' + hostile.replace('"', '""') + '"')
        },
        "braces in names and rows": {"{name}.csv": HEAD + '"{0},x,1\n'},
    }  # fmt: skip
    approved("readers/delimited.en", shown(cases))


def test_a_field_that_does_not_end_is_read_no_further_than_a_field_may_be_long():
    limit_elsewhere = csv.field_size_limit()
    limits = ReadLimits(field_chars=40)
    text = 'query,label\na,1\n"b' + "words\n" * 50
    with pytest.raises(LimitError, match="more than 40 characters") as refused:
        delimited.read(text, ",", "x", limits)
    assert refused.value.line == 3
    # A quotation mark that can be a plain character is a plain character.
    table = delimited.read(text.replace(",", "\t").replace("s\n", "s\t0\n"), "\t", "x", limits)
    assert (len(table), table.frame["query"][1]) == (51, '"bwords')
    assert csv.field_size_limit() == limit_elsewhere


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_file_larger_than_a_block_is_read_whole_and_in_order(end):
    """The text is longer, and has more rows, than one block."""
    queries = [f"q{n}{end}{'words ' * 5}" for n in range(50_003)]
    text = end.join(["query,label", *(f'"{query}",{n}' for n, query in enumerate(queries))])
    table = delimited.read(text, ",", "x", ReadLimits())
    assert table.frame["query"].tolist() == queries
    assert table.frame["label"].tolist() == [str(n) for n in range(len(queries))]
    assert table.lines.tolist() == [2 * n for n in range(1, len(queries) + 1)]


def test_which_character_separates_and_by_which_line_a_row_is_called(approved):
    tables = (
        *("query,label\na,1\nb,2\n", "query,label\na,1\n\nb,2\n", 'query,label\n"a\nb",1\nb,2\n'),
        *("q1,d1,1\nq1,d2,0\nq2,d3,1\n", "sep=,\nquery,label\na,1\n"),
        # A first row like the others is not a header: numbers below a number, a unique id.
        *("a,2024\nb,2023\n", "a,2024\n", "d1,some text\nd2,x y\nd3,z\n"),
        *("d1,some text\nd1,x y\nd3,z\n", 'q1,"d1",1\nq1,d2,0\nq2\n'),
    )
    texts = (
        *("one,two", "query,label", "one;two\nthree;four", "one two\nthree four"),
        *("query label\nthree four", "\n\r\none;two\nthree;four", "a_b-c.d\na_b-c.d"),
        # Known names take precedence, then rows of equal width, then more columns.
        *("query|label,x,y\na|b,1,2\nc|d,3,4", "a|b,c\nd|e,f\ng|h", "a|b,c,d\ne|f,g,h"),
        # Without names, seven tenths of the rows need as many fields; two names are sufficient.
        *("one thing,another\n" * n + "nothing\n" * (10 - n) for n in (7, 6)),
        *(f"query;{name}\n" + "nothing\n" * 9 for name in ("label", "words")),
        # In a truncated sample only whole rows count.
        "one;two\nthree;four\n" + "x" * 300_000 + ";five\n",
        "one;two\nthree;four\nfive\n",
        *(
            f"query{each}document\na query; and | more{each}a passage"
            for each in ",\t^~@\x1f\x01¦，"
        ),
    )
    cases = {repr(text)[:200]: repr(sniff(text)) for text in texts}
    for text in tables:
        table = delimited.read(text, ",", "x", ReadLimits())
        cases[f"rows of {text!r}"] = f"lines {table.lines.tolist()}, names {table.names}"
    approved("readers/separators", results(cases))


# Arrow splits a text only if the result equals a split of each line without it.
def split(text: str, delimiter: str = ",", width: int = 2, wanted: tuple[int, ...] = (), **options):
    columns = even_columns(text.encode(), delimiter, width, wanted or range(width), **options)
    return "left" if columns is None else repr([each.to_pylist() for each in columns.values()])


def test_even_text_is_split_into_what_is_written_and_other_text_is_left(approved):
    texts = (
        *("a,b\nc,d\n", "a,b\nc,d", "a,b\r\nc,d\r\n"),
        # Numbers, empty words, quotation marks and blanks are not converted.
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

    # The first blocks fit into small numbers, the last one does not.
    assert read(b"q,0.1\n") == [*map(float, range(20_000)), 0.1]
    assert read(b"q,x\n") == [*map(str, range(20_000)), "x"]
    assert read(b"\n") is read(b"q\n") is None


def test_an_empty_cell_is_found_wherever_it_stands_in_a_slice():
    cells = pa.array(["", "a", "b", ""])
    assert [has_empty(cells.slice(*each)) for each in ((1, 2), (0, 2), (2, 2), (1, 0))] == [
        False, True, True, False
    ]  # fmt: skip
