"""What a person meets who drops a broken file: for every format what is said, where, and what to
do about it. No format may be missing from the table.
"""

import copy
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import pytest

from rankdash.errors import DataError
from rankdash.loading import examine
from rankdash.readers import FORMATS, Source
from tests.readers.formats.test_tools import arrow, parquet

Files = dict[str, bytes]


@dataclass(frozen=True)
class Broken:
    """One broken example: what is wrong with it, its files, and what is said of it.

    where: the file, and the line where one can be told. said and remedy: in part.
    kept: the rest of the file is used, and the message is a warning.
    """

    of: str
    fault: str
    files: Files
    where: str
    said: str
    remedy: str
    kept: bool = False


def text(value: object) -> bytes:
    """JSON, a line each for what is inside."""
    return json.dumps(value, indent=1).encode()


def lines(rows: list[dict[str, object]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def zipped(files: Files) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return written.getvalue()


def changed(value: object, change: Callable[[object], object]) -> bytes:
    other = copy.deepcopy(value)
    change(other)
    return text(other)


NAMES = ("query_id", "query", "doc_id", "document", "label")
ROWS = [
    dict(zip(NAMES, row, strict=True))
    for row in (
        ("q1", "how to boot", "d1", "press F2", "1"),
        ("q1", "how to boot", "d2", "cook rice", "0"),
        ("q2", "cook", "d2", "cook rice", "1"),
        ("q2", "cook", "d1", "press F2", "0"),
    )
]
ELSEWHERE = b"x1 Q0 d1 1 3.0 other\nx2 Q0 d2 1 2.0 other\n"
QRELS = b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d2 1\nq2 0 d1 0\n"
RUN = b"q1 Q0 d1 1 2.0 a\nq1 Q0 d2 2 1.0 a\nq2 Q0 d1 1 2.0 a\nq2 Q0 d2 2 1.0 a\n"
DOCS = (
    b"<DOC>\n<DOCNO> d1 </DOCNO>\n<TEXT>press F2</TEXT>\n</DOC>\n"
    b"<DOC>\n<DOCNO> d2 </DOCNO>\n<TEXT>cook rice</TEXT>\n</DOC>\n"
)
TOPICS = b"<top>\n<num> q1\n<title> how to boot\n</top>\n<top>\n<num> q2\n<title> cook\n</top>\n"
BEIR = {
    "set/corpus.jsonl": lines([{"_id": f"d{n}", "title": "T", "text": f"t {n}"} for n in (1, 2)]),
    "set/queries.jsonl": lines([{"_id": f"q{n}", "text": f"query {n}"} for n in (1, 2)]),
    "set/qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td2\t1\n",
}
HUB = {
    "corpus/corpus-00000-of-00002.parquet": parquet([{"_id": "d1", "title": "A", "text": "a"}]),
    "corpus/corpus-00001-of-00002.parquet": parquet([{"_id": "d2", "title": "B", "text": "b"}]),
    "queries/queries-00000-of-00001.parquet": parquet([{"_id": "q1", "text": "what"}]),
    "qrels/test-00000-of-00001.parquet": parquet(
        [{"query-id": "q1", "corpus-id": f"d{n}", "score": str(n - 1)} for n in (1, 2)]
    ),
}
MTEB = [
    {"query": "how to boot", "positive": ["press F2", "use usb"], "negative": ["cook rice"]},
    {"query": "cook", "positive": ["cook rice"], "negative": ["press F2"]},
]
NESTED = [
    {"query": "how to boot", "docs": ["press F2", "cook rice"], "true_scores": [1, 0]},
    {"query": "cook", "docs": ["press F2", "cook rice"], "true_scores": [0, 1]},
]
BOOK = b"query,docid,alice@example.com,Bob\nstar wars,11,3,2\nstar wars,18,0,0\nrambo,75,3,3\n"
CASE = (
    b"Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating,overview\n"
    b"OSC,Movies,8,star wars,11,1,Star Wars,3,far away\n"
    b"OSC,Movies,8,star wars,18,2,Empire,0,Ice\n"
    b"OSC,Movies,8,rambo,75,1,Rambo,2,Jungle\n"
)
WANDS = {
    "query.csv": b"query_id\tquery\tquery_class\n0\tsalon chair\tChairs\n1\tsmart table\tTables\n",
    "product.csv": b"product_id\tproduct_name\tproduct_class\tproduct_description\n"
    b"0\tsolid wood bed\tBeds\ta bed\n1\tchair\tChairs\t\n",
    "label.csv": b"id\tquery_id\tproduct_id\tlabel\n0\t0\t0\tIrrelevant\n1\t0\t1\tExact\n"
    b"2\t1\t1\tPartial\n",
}
ESCI = [
    {"query": query, "query_id": n, "product_id": product, "product_locale": "us", "esci_label": e}
    for query, n, product, e in (
        ("fan", 7, "B0", "I"),
        ("fan", 7, "B1", "E"),
        ("lamp", 9, "B1", "S"),
        ("lamp", 9, "B0", "C"),
    )
]
PRODUCTS = [
    {"product_id": each, "product_title": f"A {each}", "product_locale": "us"}
    for each in ("B0", "B1")
]
OPENSEARCH = {
    "judgmentRatings": [
        {
            "query": "red dress",
            "ratings": [{"docId": "a", "rating": "3.000"}, {"docId": "b", "rating": "0.000"}],
        },
        {"query": "laptop", "ratings": [{"docId": "c", "rating": "1.000"}]},
    ]
}
RRE = {
    "id_field": "id",
    "query_groups": [
        {
            "name": "brand",
            "queries": [{"placeholders": {"$query": "fender"}}],
            "relevant_documents": {"1": {"gain": 3}, "2": {"gain": 2}},
        },
        {
            "name": "colour",
            "queries": [{"placeholders": {"$query": "white bass"}}],
            "relevant_documents": {"7": {"gain": 1}},
        },
    ],
}
RANX = {"q_1": {"doc_a": 1, "doc_b": 0, "doc_d": 1}, "q_2": {"doc_c": 2}}
LETOR = (
    b"2 qid:10 1:0.031 2:0.5 #docid = GX029\n0 qid:10 1:0.9 2:0.7 #docid = GX030\n"
    b"1 qid:11 1:0.4 2:0.1 #docid = GX029\n"
)

GOOD: dict[str, Files] = {
    "CSV": {"a": pd.DataFrame(ROWS).to_csv(index=False).encode()},
    "TSV": {"a": pd.DataFrame(ROWS).to_csv(index=False, sep="\t").encode()},
    "JSON": {"a": text(ROWS)},
    "JSON, nested": {"a": text(NESTED)},
    "JSON lines": {"a": lines(ROWS)},
    "Parquet": {"a": parquet(ROWS)},
    "Arrow": {"a": arrow(ROWS)},
    "TREC runs and qrels": {"qrels": QRELS, "run": RUN},
    "TREC documents and topics": {"docs": DOCS, "topics": TOPICS, "qrels": QRELS},
    "BEIR": BEIR,
    "MTEB reranking": {"a": text(MTEB)},
    "Hugging Face folders": HUB,
    "Quepid": {"book": BOOK},
    "Quepid, case": {"case": CASE},
    "WANDS": WANDS,
    "ESCI": {"e": parquet(ESCI), "p": parquet(PRODUCTS)},
    "OpenSearch judgments": {"j": text(OPENSEARCH)},
    "RRE": {"r": text(RRE)},
    "ranx": {"q": text(RANX)},
    "LETOR (SVMlight)": {"l": LETOR},
}

COLUMN, WORD, IDS, CUT = "missing column", "unknown label word", "ids match nothing", "cut short"
FAULTS = (COLUMN, WORD, IDS, CUT)
# What is said in several places.
NAME_IT = "rename them: query (or query_id), document (or doc_id), label"
NO_WORD = "the label is neither a number nor a known word: 1"
NUMBERS = "Write labels as numbers, higher is better."
ALIKE = "write the ids alike"
AGAIN = "Copy or download the file again"
NO_IDS = "add columns query_id and doc_id"
SAME_SET = "Check that the files belong to the same data set"
NO_QUERY = "Queries of the ranking"


def no_column(of: str, field: str, where: str, files: Files) -> Broken:
    return Broken(of, COLUMN, files, where, f"No column is recognised as {field}", NAME_IT)


def unknown_word(of: str, where: str, files: Files) -> Broken:
    return Broken(of, WORD, files, where, NO_WORD, NUMBERS, kept=True)


def foreign_run(of: str, files: Files, remedy: str) -> Broken:
    """The files with a ranking of other queries."""
    return Broken(of, IDS, {**files, "run": ELSEWHERE}, "", NO_QUERY, remedy)


def of_rows(of: str, write: Callable[[list[dict[str, object]]], bytes], line: int) -> list[Broken]:
    """The examples of a format of rows; `line`: of the second row."""
    unlabelled = [{key: row[key] for key in NAMES[:4]} for row in ROWS]
    worded = [{**row, "label": "Wow" if row is ROWS[1] else row["label"]} for row in ROWS]
    return [
        no_column(of, "label", "a", {"a": write(unlabelled)}),
        unknown_word(of, f"a, line {line}", {"a": write(worded)}),
        foreign_run(of, GOOD[of], ALIKE),
    ]


def changed_row(row: dict[str, object], **values: object) -> dict[str, object]:
    return {**row, **values}


def without(rows: list[dict[str, object]], *names: str) -> list[dict[str, object]]:
    return [{key: value for key, value in row.items() if key not in names} for row in rows]


def replaced(files: Files, name: str, old: bytes, new: bytes) -> Files:
    assert old in files[name]
    return {**files, name: files[name].replace(old, new)}


EXAMPLES = [
    *of_rows("CSV", lambda rows: pd.DataFrame(rows).to_csv(index=False).encode(), 3),
    Broken(
        "CSV",
        CUT,
        {"a": GOOD["CSV"]["a"] + b'q3,"an open'},
        "a, line 6",
        "The quotation marks of the row that begins here do not match",
        "Close every quotation mark",
    ),
    *of_rows("TSV", lambda rows: pd.DataFrame(rows).to_csv(index=False, sep="\t").encode(), 3),
    Broken(
        "TSV",
        CUT,
        {"a": GOOD["TSV"]["a"] + b"q3\tan open"},
        "a, line 6",
        "another number of fields than the rest: 1",
        "Look for a missing separator",
        kept=True,
    ),
    *of_rows("JSON", text, 9),
    Broken("JSON", CUT, {"a": GOOD["JSON"]["a"][:-9]}, "a, line 23", "The JSON breaks", AGAIN),
    *of_rows("JSON lines", lines, 2),
    Broken(
        "JSON lines", CUT, {"a": GOOD["JSON lines"]["a"][:-9]}, "a, line 4", "JSON breaks", AGAIN
    ),
    *of_rows("Parquet", parquet, 2),
    Broken("Parquet", CUT, {"a": GOOD["Parquet"]["a"][:-9]}, "a", "is damaged or cut short", AGAIN),
    *of_rows("Arrow", arrow, 2),
    Broken("Arrow", CUT, {"a": GOOD["Arrow"]["a"][:-9]}, "a", "is damaged or cut short", AGAIN),
    no_column("JSON, nested", "label", "a", {"a": text(without(NESTED, "true_scores"))}),
    Broken(
        "JSON, nested",
        COLUMN,
        {"a": text(without(NESTED, "docs"))},
        "a",
        "its shape is not known. It holds: query, true_scores.",
        "Write an entry for each query",
    ),
    Broken(
        "JSON, nested",
        "lists differ in length",
        {"a": changed(NESTED, lambda entries: entries[1].update(true_scores=[1]))},
        "a, line 13",
        "lists of documents, labels and scores differ in length: 1",
        "Write one label and one score for each document.",
        kept=True,
    ),
    unknown_word(
        "JSON, nested",
        "a, line 2",
        {"a": changed(NESTED, lambda entries: entries[0].update(true_scores=[1, "Wow"]))},
    ),
    foreign_run("JSON, nested", {"a": text(NESTED)}, NO_IDS),
    Broken("JSON, nested", CUT, {"a": text(NESTED)[:-9]}, "a, line 13", "The JSON breaks", AGAIN),
    Broken(
        "TREC runs and qrels",
        COLUMN,
        {"qrels": b"q1 d1\nq1 d2\n", "run": RUN},
        "qrels",
        "The form of the file is not known.",
        "A CSV file needs a first line with column names.",
    ),
    Broken(
        "TREC runs and qrels",
        "score that is none",
        {"qrels": QRELS, "run": RUN.replace(b"2 1.0", b"2 much", 1)},
        "run, line 2",
        "the score is not a finite number: 1",
        "Give the row a number with a decimal point",
        kept=True,
    ),
    unknown_word(
        "TREC runs and qrels",
        "qrels, line 2",
        {"qrels": QRELS.replace(b"d2 0", b"d2 Wow"), "run": RUN},
    ),
    Broken(
        "TREC runs and qrels",
        "nothing but unknown words",
        {"qrels": QRELS.replace(b" 1\n", b" Wow\n").replace(b" 0\n", b" Meh\n"), "run": RUN},
        "qrels, line 1",
        "Rows that cannot be used: 4 of 4",
        NUMBERS,
    ),
    foreign_run("TREC runs and qrels", {"qrels": QRELS}, ALIKE),
    Broken(
        "TREC runs and qrels",
        CUT,
        {"qrels": QRELS, "run": RUN[:-14]},
        "run, line 4",
        "another number of fields than the rest: 1",
        "Look for a missing separator",
        kept=True,
    ),
    Broken(
        "TREC documents and topics",
        COLUMN,
        {"docs": DOCS.replace(b"DOCNO", b"NO"), "topics": TOPICS, "qrels": QRELS},
        "docs, line 1",
        "Documents or topics excluded because they have no number: 2 (lines 1, 5)",
        "Write the number as <DOCNO>",
    ),
    unknown_word(
        "TREC documents and topics",
        "qrels, line 2",
        {"docs": DOCS, "topics": TOPICS, "qrels": QRELS.replace(b"d2 0", b"d2 Wow")},
    ),
    foreign_run("TREC documents and topics", GOOD["TREC documents and topics"], ALIKE),
    Broken(
        "TREC documents and topics",
        CUT,
        {"docs": DOCS[:-9], "topics": TOPICS, "qrels": QRELS},
        "docs, line 5",
        "The last entry is not closed, though others are",
        AGAIN,
        kept=True,
    ),
    Broken(
        "BEIR",
        COLUMN,
        {**BEIR, "set/qrels/test.tsv": b"query-id\tcorpus-id\nq1\td1\nq2\td2\n"},
        "set/qrels/test.tsv",
        "No column is recognised as label. The columns are: query-id, corpus-id.",
        NAME_IT,
    ),
    Broken(
        "BEIR",
        COLUMN,
        {**BEIR, "set/corpus.jsonl": lines([{"text": "a"}, {"text": "b"}])},
        "set/corpus.jsonl",
        "No column is recognised as query or document. The columns are: text.",
        NAME_IT,
    ),
    unknown_word(
        "BEIR",
        "set/qrels/test.tsv, line 3",
        replaced(BEIR, "set/qrels/test.tsv", b"d2\t0", b"d2\tWow"),
    ),
    Broken(
        "BEIR",
        IDS,
        replaced(BEIR, "set/qrels/test.tsv", b"\td", b"\tx"),
        "set/qrels/test.tsv, line 2",
        "Ids of set/corpus.jsonl that occur in the labels or rankings: none of 2",
        SAME_SET,
        kept=True,
    ),
    Broken(
        "BEIR",
        CUT,
        {**BEIR, "set/corpus.jsonl": BEIR["set/corpus.jsonl"][:-7]},
        "set/corpus.jsonl, line 2",
        "The JSON breaks in the entry that begins here",
        AGAIN,
    ),
    Broken(
        "MTEB reranking",
        COLUMN,
        {"a": text(without(MTEB, "positive"))},
        "a, line 2",
        "list documents that are not relevant (negative), but no relevant ones",
        "List the relevant documents of each query under positive.",
    ),
    no_column("MTEB reranking", "query", "a", {"a": text(without(MTEB, "query"))}),
    Broken(
        "MTEB reranking",
        "entry without documents",
        {"a": text([*MTEB, {"query": "x", "positive": [], "negative": []}])},
        "a, line 21",
        "Entries excluded because they list no documents: 1",
        "List the documents that were judged for the query",
        kept=True,
    ),
    foreign_run("MTEB reranking", {"a": text(MTEB)}, NO_IDS),
    Broken("MTEB reranking", CUT, {"a": lines(MTEB)[:-9]}, "a, line 2", "The JSON breaks", AGAIN),
    no_column(
        "Hugging Face folders",
        "label",
        "qrels/test-00000-of-00001.parquet",
        {
            **HUB,
            "qrels/test-00000-of-00001.parquet": parquet([{"query-id": "q1", "corpus-id": "d1"}]),
        },
    ),
    unknown_word(
        "Hugging Face folders",
        "qrels/test-00000-of-00001.parquet, line 2",
        {
            **HUB,
            "qrels/test-00000-of-00001.parquet": parquet(
                [
                    {"query-id": "q1", "corpus-id": f"d{n}", "score": score}
                    for n, score in ((1, "1"), (2, "Wow"), (3, "0"))
                ]
            ),
        },
    ),
    Broken(
        "Hugging Face folders",
        IDS,
        {
            **HUB,
            "qrels/test-00000-of-00001.parquet": parquet(
                [{"query-id": "q1", "corpus-id": "z1", "score": 1}]
            ),
        },
        "qrels/test-00000-of-00001.parquet, line 1",
        "Ids of corpus/corpus-00000-of-00002.parquet that occur in the labels or rankings: none of "
        "2",
        SAME_SET,
        kept=True,
    ),
    Broken(
        "Hugging Face folders",
        CUT,
        {
            **HUB,
            "corpus/corpus-00001-of-00002.parquet": HUB["corpus/corpus-00001-of-00002.parquet"][
                :-9
            ],
        },
        "corpus/corpus-00001-of-00002.parquet",
        "is damaged or cut short",
        AGAIN,
    ),
    Broken(
        "Hugging Face folders",
        "a file of several is not there",
        {name: data for name, data in HUB.items() if "00001-of-00002" not in name},
        "corpus/corpus-00000-of-00002.parquet",
        "Files of this table that are not there: 1 of 2.",
        "Load all files whose names differ only in the number",
        kept=True,
    ),
    no_column("Quepid", "document", "book", {"book": BOOK.replace(b"docid", b"thing")}),
    unknown_word("Quepid", "book, line 2", {"book": BOOK.replace(b"11,3,2", b"11,Wow,2")}),
    foreign_run("Quepid", {"book": BOOK}, NO_IDS),
    Broken(
        "Quepid",
        CUT,
        {"book": BOOK + b'rambo,"99'},
        "book, line 5",
        "The quotation marks of the row that begins here do not match",
        "Close every quotation mark",
    ),
    Broken(
        "Quepid, case",
        COLUMN,
        {"case": CASE.replace(b"Doc ID", b"Thing")},
        "case",
        "This export of Quepid has no column Doc ID.",
        "Export the case again as Detail",
    ),
    Broken(
        "Quepid, case",
        "rank that is none",
        {"case": CASE.replace(b"11,1,", b"11,first,")},
        "case, line 2",
        "the rank is not a whole number: 1",
        "Count the ranks of a query 1, 2, 3",
        kept=True,
    ),
    unknown_word(
        "Quepid, case", "case, line 2", {"case": CASE.replace(b"Star Wars,3", b"Star Wars,Wow")}
    ),
    foreign_run("Quepid, case", {"case": CASE}, NO_IDS),
    Broken(
        "Quepid, case",
        CUT,
        {"case": CASE[:-16]},
        "case, line 4",
        "another number of fields than the rest: 1",
        "Look for a missing separator",
        kept=True,
    ),
    no_column("WANDS", "label", "label.csv", replaced(WANDS, "label.csv", b"label", b"thing")),
    no_column(
        "WANDS", "document", "label.csv", replaced(WANDS, "label.csv", b"product_id", b"thing")
    ),
    unknown_word("WANDS", "label.csv, line 4", replaced(WANDS, "label.csv", b"Partial", b"Wow")),
    Broken(
        "WANDS",
        IDS,
        {**WANDS, "label.csv": b"id\tquery_id\tproduct_id\tlabel\n0\tx0\ty0\tExact\n"},
        "label.csv, line 2",
        "Ids of query.csv that occur in the labels or rankings: none of 2",
        SAME_SET,
        kept=True,
    ),
    Broken(
        "WANDS",
        CUT,
        {**WANDS, "label.csv": WANDS["label.csv"][:-9]},
        "label.csv, line 4",
        "another number of fields than the rest: 1",
        "Look for a missing separator",
        kept=True,
    ),
    no_column(
        "ESCI", "label", "e", {"e": parquet(without(ESCI, "esci_label")), "p": parquet(PRODUCTS)}
    ),
    no_column(
        "ESCI", "document", "e", {"e": parquet(without(ESCI, "product_id")), "p": parquet(PRODUCTS)}
    ),
    unknown_word(
        "ESCI",
        "e, line 5",
        {
            "e": parquet([*ESCI, changed_row(ESCI[0], query_id=10, esci_label="X")]),
            "p": parquet(PRODUCTS),
        },
    ),
    Broken(
        "ESCI",
        IDS,
        {
            "e": parquet(ESCI),
            "p": parquet(
                [changed_row(row, product_id=f"Z{row['product_id']}") for row in PRODUCTS]
            ),
        },
        "e, line 1",
        "Ids of p that occur in the labels or rankings: none of 2",
        SAME_SET,
        kept=True,
    ),
    Broken(
        "ESCI",
        CUT,
        {"e": parquet(ESCI)[:-9], "p": parquet(PRODUCTS)},
        "e",
        "is damaged or cut short",
        AGAIN,
    ),
    Broken(
        "OpenSearch judgments",
        COLUMN,
        {"j": text(OPENSEARCH).replace(b'"rating"', b'"thing"')},
        "j, line 6",
        "Rows that cannot be used: 3 of 3, so nothing was read. Rows excluded because the label "
        "is empty",
        "Label the row.",
    ),
    Broken(
        "OpenSearch judgments",
        "entry without ratings",
        {"j": changed(OPENSEARCH, lambda j: j["judgmentRatings"][1].update(ratings=[]))},
        "j, line 16",
        "Entries excluded because they list no documents: 1",
        "List the documents that were judged for the query",
        kept=True,
    ),
    unknown_word(
        "OpenSearch judgments", "j, line 10", {"j": text(OPENSEARCH).replace(b'"0.000"', b'"Wow"')}
    ),
    foreign_run("OpenSearch judgments", {"j": text(OPENSEARCH)}, NO_IDS),
    Broken(
        "OpenSearch judgments",
        CUT,
        {"j": text(OPENSEARCH)[:-9]},
        "j, line 1",
        "(not readable from line 23, column ",
        AGAIN,
    ),
    Broken(
        "RRE",
        COLUMN,
        {"r": text({"query_groups": without(RRE["query_groups"], "relevant_documents")})},
        "r, line 3",
        "Entries excluded because they list no documents: 2",
        "List the documents that were judged for the query",
    ),
    Broken(
        "RRE",
        "gain that is missing",
        {"r": text(RRE).replace(b'"gain": 2', b'"thing": 2')},
        "r, line 17",
        "the label is empty: 1",
        "Label the row.",
        kept=True,
    ),
    unknown_word("RRE", "r, line 17", {"r": text(RRE).replace(b'"gain": 2', b'"gain": "Wow"')}),
    foreign_run("RRE", {"r": text(RRE)}, NO_IDS),
    Broken("RRE", CUT, {"r": text(RRE)[:-9]}, "r, line 1", "The JSON breaks in the entry", AGAIN),
    Broken(
        "ranx",
        COLUMN,
        {"q": text({**RANX, "q_3": {}})},
        "q, line 10",
        "Entries excluded because they list no documents: 1",
        "List the documents that were judged for the query",
        kept=True,
    ),
    unknown_word(
        "ranx", "q, line 4", {"q": text({**RANX, "q_1": {**RANX["q_1"], "doc_b": "Wow"}})}
    ),
    foreign_run("ranx", {"q": text(RANX)}, ALIKE),
    Broken(
        "ranx",
        CUT,
        {"q": text(RANX)[:-9]},
        "q, line 1",
        "(not readable from line 8, column ",
        AGAIN,
    ),
    Broken(
        "LETOR (SVMlight)",
        COLUMN,
        {"l": LETOR.replace(b"qid:10 ", b"").replace(b"qid:11 ", b"")},
        "l, line 1",
        "Lines excluded because they are not a label, a query and numbered features: 3",
        "Write each like this line: 2 qid:10 1:0.5 2:3 # docid.",
    ),
    unknown_word("LETOR (SVMlight)", "l, line 1", {"l": LETOR.replace(b"2 qid:10", b"Wow qid:10")}),
    foreign_run("LETOR (SVMlight)", {"l": LETOR}, SAME_SET),
    Broken(
        "LETOR (SVMlight)",
        CUT,
        {"l": LETOR + b"0 qid:1"},
        "l, line 4",
        "Lines excluded because they are not a label, a query and numbered features: 1",
        "Write each like this line",
        kept=True,
    ),
]


def sources(files: Files) -> list[Source]:
    return [Source(name, data) for name, data in files.items()]


def test_no_format_and_no_fault_is_missing_from_the_table():
    assert {name.split(",")[0] for name in GOOD} == set(FORMATS)
    seen = {(example.of, example.fault) for example in EXAMPLES}
    # The labels of MTEB are where a document stands, not what is written there.
    none = {("MTEB reranking", WORD)}
    assert {(of, fault) for of in GOOD for fault in FAULTS} - seen == none


# Without texts and without a ranking there is nothing to compare: that is said, and nothing else.
LABELS_ALONE = ("Quepid", "OpenSearch judgments", "RRE", "ranx", "LETOR (SVMlight)")


def _assert_whole(of, files):
    errors = [error.code for error in examine(files).report.errors]
    assert errors == (["no_first_stage"] if of in LABELS_ALONE else [])


@pytest.mark.parametrize("of", GOOD)
def test_the_whole_files_have_no_errors_but_that_labels_alone_start_nothing(of):
    _assert_whole(of, sources(GOOD[of]))


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=[f"{example.of}: {example.fault}" for example in EXAMPLES]
)
def test_a_broken_file_is_answered_with_file_line_and_remedy(example):
    try:
        report = examine(sources(example.files)).report
    except DataError as problem:
        said = [(problem.where, problem.message, problem.remedy, "error")]
    else:
        said = [
            (found.where, found.text, found.remedy.format(**found.params), found.severity)
            for found in report.findings
        ]
    fitting = [each for each in said if example.said in each[1]]
    assert fitting, said
    (where, _, remedy, severity) = fitting[0]
    assert where == example.where
    assert example.remedy in remedy
    assert severity == ("warning" if example.kept else "error")


@pytest.mark.parametrize("of", GOOD)
@pytest.mark.parametrize("kept", [0.5, 0.95])
def test_a_zip_that_is_cut_short_keeps_nothing_of_any_format(of, kept):
    whole = zipped(GOOD[of])
    _assert_whole(of, [Source("set.zip", whole)])
    with pytest.raises(DataError) as refused:
        examine([Source("set.zip", whole[: int(kept * len(whole))])])
    assert refused.value.where == "set.zip"
    assert "is damaged or cut short" in refused.value.message and AGAIN in refused.value.remedy
