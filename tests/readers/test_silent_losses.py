"""What a reader cannot use or has to choose is a warning that names the file and the cells."""

import csv
import io
import json
import re
import zipfile

import pytest

from rankdash.errors import FormatError

openpyxl = pytest.importorskip("openpyxl")

HEAD = ("query", "document", "label")
ROWS = [("how to", "text a", 1), ("how to", "text b", 0), ("what is", "text a", 1)]


def workbook(*rows, hidden=()) -> bytes:
    book = openpyxl.Workbook()
    book.active.title = "Labels"
    for row in rows:
        book.active.append(row)
    for title in hidden:
        book.create_sheet(title).sheet_state = "hidden"
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


def with_saved(data: bytes, cell: str, kind: str, value: str) -> bytes:
    """The workbook with the value that a spreadsheet program saves beside the formula."""
    source, written = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(written, "w") as copy:
        for name in source.namelist():
            content = source.read(name).decode()
            saved = rf'<c r="{cell}"{kind}>\1<v>{value}</v></c>'
            copy.writestr(
                name, re.sub(rf'<c r="{cell}"[^>]*>(<f>.*?</f>)<v.*?</c>', saved, content)
            )
    return written.getvalue()


def separated(*rows) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def test_a_formula_without_a_saved_value_is_named_by_its_cell(parse, found):
    parsed = parse({"a.xlsx": workbook(HEAD, *ROWS, ("what is", "text b", "=1+1"))})

    assert parsed.qrels["label"].tolist() == [1, 0, 1]
    warned = found(parsed, "cells_without_value")
    assert (warned.severity, warned.file, warned.line) == ("warning", "a.xlsx", 5)
    assert (warned.params["sheet"], warned.params["cells"]) == ("Labels", "C5")
    assert warned.examples == ("C5: =1+1",)


@pytest.mark.parametrize(
    ("kind", "value", "label"), [("", "2", 2), (' t="b"', "1", 1), (' t="str"', "", None)]
)
def test_a_saved_value_of_a_formula_is_its_value(parse, codes, kind, value, label):
    data = workbook(HEAD, *ROWS, ("what is", "text b", "=1+1"))

    parsed = parse({"a.xlsx": with_saved(data, "C5", kind, value)})

    assert parsed.qrels["label"].tolist() == [1, 0, 1, *([] if label is None else [label])]
    assert "cells_without_value" not in codes(parsed)


@pytest.mark.parametrize("error", ["#N/A", "#REF!", "#DIV/0!"])
def test_an_error_of_a_spreadsheet_is_neither_a_text_nor_an_id(parse, found, error):
    parsed = parse({"a.xlsx": workbook(HEAD, *ROWS, ("what is", error, 1))})

    assert error not in set(parsed.documents["text"])
    assert found(parsed, "cells_without_value").params["cells"] == "B5"
    assert found(parsed, "no_document").line == 5


def test_where_all_labels_are_formulas_the_refusal_says_so(parse):
    rows = [(query, document, "=1+1") for query, document, _ in ROWS]

    with pytest.raises(FormatError, match=r"formula without a saved value.*3 \(C2, C3, C4\)"):
        parse({"a.xlsx": workbook(HEAD, *rows)})


def test_hidden_sheets_are_named(parse, found):
    parsed = parse({"a.xlsx": workbook(HEAD, *ROWS, hidden=["Notes", "Old"])})

    assert found(parsed, "hidden_sheets").params["sheets"] == "Notes, Old"


SECOND = [("label", "label (2)"), ("relevance", "relevance"), ("grade", "grade")]


@pytest.mark.parametrize("write", [separated, workbook])
@pytest.mark.parametrize(("name", "said"), SECOND)
def test_of_two_columns_of_labels_the_rows_in_which_they_differ_are_named(
    parse, found, write, name, said
):
    rows = [(*row, other) for row, other in zip(ROWS, (1, 2, None), strict=True)]

    parsed = parse({"a": write((*HEAD, name), *rows)})

    assert parsed.qrels["label"].tolist() == [1, 0, 1]
    warned = found(parsed, "several_labels")
    assert (warned.severity, warned.line, warned.count) == ("warning", 3, 1)
    assert (warned.params["column"], warned.params["others"]) == ("label", said)


@pytest.mark.parametrize("other", ["relevance", "kind"])
def test_equal_labels_and_other_columns_are_no_other_labels(parse, codes, other):
    values = ["x", "y", "z"] if other == "kind" else [1, 0, 1]
    rows = [(*row, value) for row, value in zip(ROWS, values, strict=True)]
    assert "several_labels" not in codes(parse({"a": separated((*HEAD, other), *rows)}))


def test_of_two_lists_of_labels_the_rows_in_which_they_differ_are_counted(parse, found):
    entry = {"query": "how to", "docs": ["x y", "y z"], "labels": [1, 0], "relevance": [1, 2]}
    parsed = parse({"a": json.dumps([entry])})
    assert parsed.qrels["label"].tolist() == [1, 0]
    assert found(parsed, "several_labels").params["others"] == "relevance"


def test_a_person_who_chose_the_labels_is_not_warned_of_the_others(parse, codes):
    rows = [(*row, 1 - row[2]) for row in ROWS]
    mapping = {"query": "query", "document": "document", "label": "grade"}

    parsed = parse({"a": separated((*HEAD, "grade"), *rows)}, mapping={"a": mapping})

    assert parsed.qrels["label"].tolist() == [0, 1, 0]
    assert "several_labels" not in codes(parsed)


IDS = [("q1", "12", 1), ("q1", "13", 0), ("q2", "12", 1)]


@pytest.mark.parametrize("blanks", [" ", "\u00a0", "\t", "\u3000"])
@pytest.mark.parametrize("write", [separated, workbook])
@pytest.mark.parametrize("head", [("query_id", "doc_id", "label"), ("query", "doc", "label")])
def test_blanks_around_one_id_change_no_other(parse, found, write, head, blanks):
    odd = [("q1", f"12{blanks}", 1), *IDS[1:]]

    parsed = parse({"a": write(head, *odd), "b.run": "q1 Q0 12 1 9 x\nq2 Q0 12 1 8 x\n"})

    assert list(parsed.qrels.itertuples(index=False, name=None)) == IDS
    assert set(parsed.documents["doc_id"]) == {"12", "13"}
    warned = found(parsed, "blanks_around_ids")
    assert (warned.severity, warned.file, warned.line, warned.count) == ("warning", "a", 2, 1)
    assert warned.params["column"] == head[1]
    assert warned.examples == (repr(f"12{blanks}"),)


def test_blanks_around_the_ids_of_texts_are_removed_too(parse, found):
    files = {
        "labels.csv": separated(("query_id", "doc_id", "label"), *IDS),
        "queries.csv": separated(("id", "text"), (" q1", "how to"), ("q2", "what is")),
        "corpus.csv": separated(("id", "text"), ("12", "some text"), ("13 ", "more")),
    }
    parsed = parse(files)
    assert parsed.queries.to_numpy().tolist() == [["q1", "how to"], ["q2", "what is"]]
    assert parsed.documents["text"].tolist() == ["some text", "more"]
    warned = [each.file for each in parsed.findings if each.code == "blanks_around_ids"]
    assert sorted(warned) == ["corpus.csv", "queries.csv"]


def test_texts_keep_their_blanks_and_queries_that_differ_by_them_alone_are_named(parse, found):
    rows = [("how to ", "text a ", 1), ("how to", " text b", 0)]
    parsed = parse({"a": separated(HEAD, *rows)})
    assert parsed.queries["text"].tolist() == ["how to ", "how to"]
    assert parsed.documents["text"].tolist() == ["text a ", " text b"]
    assert found(parsed, "queries_alike").examples == ("q2: 'how to'",)


@pytest.mark.parametrize("lines", [True, False])
def test_a_key_that_an_entry_has_twice_is_named(parse, found, lines):
    good = '{"query": "a", "document": "x", "label": 1, "label": 1}'
    twice = '{"query": "a", "document": "y", "label": 1, "label": 0}'
    text = f"{good}\n{twice}" if lines else f"[{good},\n {twice}]"

    parsed = parse({"a": text})

    assert parsed.qrels["label"].tolist() == [1, 0]
    warned = found(parsed, "repeated_keys")
    assert (warned.severity, warned.file, warned.line) == ("warning", "a", 2)
    assert warned.params["keys"] == "label"


def test_a_query_that_an_object_has_twice_is_named(parse, found):
    text = '{"q1": {"retrieved": ["d1"], "relevant": ["d1"]}, "q1": {"retrieved": ["d2"]}}'
    assert found(parse({"a": text}), "repeated_keys").params["keys"] == "q1"


def test_lists_of_rows_beside_the_longest_are_named(parse, found):
    rows = [dict(zip(HEAD, row, strict=True)) for row in ROWS]
    parsed = parse({"a": json.dumps({"train": rows, "test": rows[:1]})})
    assert found(parsed, "lists_not_read").params["lists"] == "test 1"
