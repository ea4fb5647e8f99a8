"""Excel workbooks: sheets are tables, ids stay as they are, and lines are those of Excel."""

import io
import zipfile

from tests.readers.reading import shown, zipped
from tests.readers.samples import workbook

HEAD = ("query_id", "query", "doc_id", "document", "label", "rank")
ROWS = [
    ("007", "return a gift", "d1", "Bring it back\nwithin a month", 2, 1),
    ("007", "return a gift", "d2", "Open hours", 0, 2),
    (8, "退货", "d1", "Bring it back\nwithin a month", 0.5, None),
]


def changed(packed: bytes, last: str) -> bytes:
    """The workbook with one more row at the end of its sheet."""
    with zipfile.ZipFile(io.BytesIO(packed)) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    return zipped(
        parts | {sheet: parts[sheet].replace(b"</sheetData>", f"{last}</sheetData>".encode())}
    )


def test_a_workbook_is_read_as_the_tables_it_holds(approved):
    whole = workbook(Sheet=[HEAD, *ROWS])
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
                Sheet=[HEAD, *ROWS[:2], (), ("9", "x", "d1", "y", "?", 1), ("9", "x", "d2", "z", 1)]
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
