"""Excel workbooks: sheets are tables, ids stay as they are, and lines are those of Excel."""

import io
import zipfile

import pytest

from rankdash.errors import FormatError, LimitError
from rankdash.readers import ReadLimits
from rankdash.readers.formats.workbook import read

openpyxl = pytest.importorskip("openpyxl")

HEAD = ("query_id", "query", "doc_id", "document", "label", "rank")
ROWS = [
    ("007", "return a gift", "d1", "Bring it back\nwithin a month", 2, 1),
    ("007", "return a gift", "d2", "Open hours", 0, 2),
    (8, "退货", "d1", "Bring it back\nwithin a month", 0.5, None),
]


def workbook(**sheets) -> bytes:
    """A sheet for each list of rows, in this order."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
        if title.startswith("hidden"):
            sheet.sheet_state = "hidden"
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


@pytest.mark.parametrize("name", ["labels.xlsx", "labels.csv"])
def test_a_workbook_is_read_as_what_it_holds(parse, name):
    parsed = parse({name: workbook(Sheet1=[HEAD, *ROWS])})

    assert parsed.formats == {name: "Excel, rows with texts"}
    assert list(parsed.qrels.itertuples(index=False, name=None)) == [
        ("007", "d1", 2.0),
        ("007", "d2", 0.0),
        ("8", "d1", 0.5),
    ]
    assert parsed.documents["text"].tolist() == ["Bring it back\nwithin a month", "Open hours"]
    assert parsed.candidates.documents_of("007")[0] == ["d1", "d2"]


def test_columns_of_one_name_are_all_there():
    content = workbook(Sheet1=[("rating", None, "rating", "rating"), (1, 2, 3, 4)])

    [table] = read(content, "a.xlsx", ReadLimits())

    assert list(table.frame.columns) == ["rating", "column 2", "rating (2)", "rating (2) (2)"]
    assert table.frame.iloc[0].tolist() == ["1", "2", "3", "4"]


def test_sheets_are_the_files_of_a_data_set(parse):
    packed = workbook(
        queries=[("query_id", "query"), ("1", "return a gift")],
        documents=[("doc_id", "document"), ("d1", "Bring it back"), ("d2", "Open hours")],
        labels=[("query_id", "doc_id", "label"), ("1", "d1", 1), ("1", "d2", 0)],
        hidden_notes=[("a", "b"), ("c", "d")],
        empty=[],
    )

    parsed = parse({"set.xlsx": packed})

    assert list(parsed.formats) == ["set.xlsx/queries", "set.xlsx/documents", "set.xlsx/labels"]
    assert parsed.name == "set"
    assert parsed.queries["text"].tolist() == ["return a gift"]
    assert parsed.qrels["label"].tolist() == [1.0, 0.0]


def test_lines_are_the_numbers_of_the_rows_also_behind_empty_ones(parse, found):
    rows = [HEAD, *ROWS[:2], (), ("9", "x", "d1", "y", "?", 1), ("9", "x", "d2", "z", 1, 2)]

    parsed = parse({"x.xlsx": workbook(Sheet=rows)})

    assert found(parsed, "bad_label").line == 5


def test_annotators_fill_in_words_and_truth_values(parse):
    rows = [("query", "document", "relevant"), ("a", "x", True), ("a", "y", False)]

    assert parse({"x.xlsx": workbook(Sheet=rows)}).qrels["label"].tolist() == [1.0, 0.0]


def test_a_workbook_in_a_zip(parse, zipped):
    packed = zipped({"labels.xlsx": workbook(Sheet=[HEAD, *ROWS])})

    assert list(parse({"set.zip": packed}).formats) == ["set.zip/labels.xlsx"]


def test_a_workbook_that_is_cut_or_empty_is_refused(parse):
    whole = workbook(Sheet=[HEAD, *ROWS])
    for data, reason in (
        (whole[: len(whole) // 2], "damaged or cut short"),
        (workbook(Sheet=[HEAD]), "holds no rows below a header"),
    ):
        with pytest.raises(FormatError, match=reason) as refused:
            parse({"x.xlsx": data})
        assert refused.value.file == "x.xlsx" and refused.value.remedy


def test_the_limits_hold_for_workbooks(parse):
    rows = [HEAD, *ROWS]
    for limits, reason in (
        (ReadLimits(rows=2), "more than 2 rows"),
        (ReadLimits(columns=3), "more than 3 columns"),
        (ReadLimits(field_chars=10), "A field has"),
        (ReadLimits(unpacked_bytes=1_000), "Unpacked, the files are larger"),
    ):
        with pytest.raises(LimitError, match=reason):
            parse({"x.xlsx": workbook(Sheet=rows)}, limits=limits)


def test_a_cell_far_outside_costs_no_memory_and_is_refused(parse):
    source = zipfile.ZipFile(io.BytesIO(workbook(Sheet=[HEAD, *ROWS])))
    far = b'<row r="1048576"><c r="XFD1048576" t="n"><v>1</v></c></row></sheetData>'
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as copy:
        for entry in source.namelist():
            data = source.read(entry)
            if "sheet1" in entry:
                data = data.replace(b"</sheetData>", far)
            copy.writestr(entry, data)

    with pytest.raises(LimitError, match="columns"):
        parse({"x.xlsx": written.getvalue()})


@pytest.mark.parametrize("formula", ["", "<f>1+1</f>"])
@pytest.mark.parametrize("row", [1_048_577, 10**9, 10**400])
def test_a_row_below_the_last_of_a_sheet_is_refused_without_those_between(parse, row, formula):
    source = zipfile.ZipFile(io.BytesIO(workbook(Sheet1=[HEAD, *ROWS])))
    far = f'<row r="{row}"><c r="A{row}">{formula}<v>1</v></c></row></sheetData>'.encode()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as copy:
        for entry in source.namelist():
            copy.writestr(entry, source.read(entry).replace(b"</sheetData>", far))

    with pytest.raises(FormatError, match="damaged or cut short"):
        parse({"x.xlsx": written.getvalue()})


@pytest.mark.parametrize(("rows", "name"), [(1, "x.xlsx"), (2, "x.xlsx/labels")])
def test_a_sheet_with_a_header_alone_is_no_table(parse, rows, name):
    labels = [("query", "document", "label"), ("a", "b", 1)]
    more = [("query", "document", "label"), ("c", "d", 0)][:rows]

    parsed = parse({"x.xlsx": workbook(labels=labels, more=more)})

    assert next(iter(parsed.formats)) == name
    assert len(parsed.qrels) == rows


@pytest.mark.parametrize(("limit", "most"), [("rows", 4), ("columns", 3), ("field_chars", 8)])
def test_as_much_of_a_workbook_as_allowed_is_read(limit, most):
    rows = [("query", "document", "label"), ("abcdefgh", "x", 1), ("a", "y", 0), ("b", "x", 1)]
    (table,) = read(workbook(Sheet=rows), "x", ReadLimits(**{limit: most}))
    assert table.lines.tolist() == [2, 3, 4]
    with pytest.raises(LimitError):
        read(workbook(Sheet=rows), "x", ReadLimits(**{limit: most - 1}))


def test_a_row_that_is_wider_than_the_header_is_refused_and_a_narrower_one_filled():
    rows = [("query", "document", "label"), ("a", "x", 1, "more"), ("b",), (None, "y", 0, None)]
    (table,) = read(workbook(Sheet=rows), "x", ReadLimits())
    assert table.frame.to_numpy().tolist() == [["b", None, None], [None, "y", "0"]]
    assert (table.lines.tolist(), table.refusals.count) == ([3, 4], 1)
