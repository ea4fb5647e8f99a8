"""Values that a reader cannot use or has to choose cause a warning with the file and the cells."""

import csv
import io
import json
import re

from tests.readers import samples
from tests.readers.reading import repacked, shown

HEAD = ("query", "document", "label")
ROWS = [("how to", "text a", 1), ("how to", "text b", 0), ("what is", "text a", 1)]
IDS = [("q1", "12", 1), ("q1", "13", 0), ("q2", "12", 1)]
IDS_HEAD = ("query_id", "doc_id", "label")


def workbook(*rows, hidden=()) -> bytes:
    return samples.workbook(Labels=rows, **dict.fromkeys(hidden, ()))


def with_saved(data: bytes, cell: str, kind: str, value: str) -> bytes:
    """Return the workbook with the value that a spreadsheet program stores with the formula."""
    saved = rf'<c r="{cell}"{kind}>\1<v>{value}</v></c>'.encode()
    formula = rf'<c r="{cell}"[^>]*>(<f>.*?</f>)<v.*?</c>'.encode()
    return repacked(data, lambda _part, own: re.sub(formula, saved, own))


def separated(*rows) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def test_what_is_lost_or_chosen_is_named(approved):
    sum_of = workbook(HEAD, *ROWS, ("what is", "text b", "=1+1"))
    formulas = [(query, document, "=1+1") for query, document, _ in ROWS]
    good = '{"query": "a", "document": "x", "label": 1, "label": 1}'
    twice = '{"query": "a", "document": "y", "label": 1, "label": 0}'
    entry = {"query": "how to", "docs": ["x y", "y z"], "labels": [1, 0], "relevance": [1, 2]}
    records = [dict(zip(HEAD, row, strict=True)) for row in ROWS]
    mapping = {"a": {"query": "query", "document": "document", "label": "grade"}}

    def beside(name: str, values) -> list[tuple[object, ...]]:
        return [(*HEAD, name), *((*row, value) for row, value in zip(ROWS, values, strict=True))]

    cases = {
        "a formula without a saved value": {"a.xlsx": sum_of},
        **{
            f"a saved value {value!r}{kind}": {"a.xlsx": with_saved(sum_of, "C5", kind, value)}
            for kind, value in (("", "2"), (' t="b"', "1"), (' t="str"', ""))
        },
        **{
            f"{error} is neither a text nor an id": {
                "a.xlsx": workbook(HEAD, *ROWS, ("what is", error, 1))
            }
            for error in ("#N/A", "#REF!", "#DIV/0!")
        },
        "all labels are formulas": {"a.xlsx": workbook(HEAD, *formulas)},
        "hidden sheets": {"a.xlsx": workbook(HEAD, *ROWS, hidden=["hidden notes", "hidden old"])},
        **{
            f"labels beside {name}, {write.__name__}": {"a": write(*beside(name, (1, 2, None)))}
            for name in ("label", "relevance", "grade")
            for write in (separated, workbook)
        },
        "equal labels are no others": {"a": separated(*beside("relevance", (1, 0, 1)))},
        "other columns are none": {"a": separated(*beside("kind", "xyz"))},
        "two lists of labels": {"a": json.dumps([entry])},
        "a person who chose is not warned": (
            {"a": separated(*beside("grade", (0, 1, 0)))}, {"mapping": mapping}
        ),
        "blanks around the ids of texts": {
            "labels.csv": separated(IDS_HEAD, *IDS),
            "queries.csv": separated(("id", "text"), (" q1", "how to"), ("q2", "what is")),
            "corpus.csv": separated(("id", "text"), ("12", "some text"), ("13 ", "more")),
        },
        **{
            f"the blank {blank!a} behind one id, {write.__name__}": {
                "a": write(IDS_HEAD, ("q1", f"12{blank}", 1), *IDS[1:]), "run": "q1 Q0 12 1 9 x\n"
            }
            for blank in (" ", "\u00a0", "\t", "\u3000")
            for write in (separated, workbook)
        },
        "texts keep their blanks": {
            "a": separated(HEAD, ("how to ", "text a ", 1), ("how to", " text b", 0))
        },
        "a key that a line has twice": {"a": f"{good}\n{twice}"},
        "a key that an entry has twice": {"a": f"[{good},\n {twice}]"},
        "a query that an object has twice": {
            "a": '{"q1": {"retrieved": ["d1"], "relevant": ["d1"]}, "q1": {"retrieved": ["d2"]}}'
        },
        "lists of rows beside the longest": {
            "a": json.dumps({"train": records, "test": records[:1]})
        },
    }  # fmt: skip
    approved("readers/losses.en", shown(cases))
