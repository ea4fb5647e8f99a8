"""Messages about broken files: for every format the error, its place, and the remedy. The table
must contain every format. Exceptions of a library for odd content become errors with the file and
the reason, too.
"""

import decimal
from collections.abc import Sequence
from functools import cache, partial

import pyarrow as pa
import pytest

from rankdash.app.command import main
from rankdash.core.base.errors import (
    DataError,
    Finding,
    FormatError,
    LimitError,
    Phrase,
    RefusedFilesError,
)
from rankdash.core.base.i18n import error_text, finding_text, gettext, speaking, where_text
from rankdash.core.readers import FORMATS, MappingNeeded
from rankdash.core.readers.loading import examine
from rankdash.core.readers.parse import limits
from tests.approved import table
from tests.readers.reading import Case, Files, parse, sources, zipped
from tests.readers.samples import (
    BOOK,
    DETAIL,
    EXAMPLES,
    HUB,
    JUDGED,
    JUDGMENT,
    LETOR,
    MTEB,
    PRODUCTS,
    RANX_QRELS,
    RRE,
    WANDS,
    arrow,
    csv,
    lines,
    parquet,
    shape,
)


def without(rows: list[dict[str, object]], name: str) -> list[dict[str, object]]:
    return [{key: value for key, value in row.items() if key != name} for row in rows]


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
QRELS = "q1 0 d1 1\nq1 0 d2 0\nq2 0 d2 1\nq2 0 d1 0\n"
RUN = "q1 Q0 d1 1 2.0 a\nq1 Q0 d2 2 1.0 a\nq2 Q0 d1 1 2.0 a\nq2 Q0 d2 2 1.0 a\n"
DOCS = (
    "<DOC>\n<DOCNO> d1 </DOCNO>\n<TEXT>press F2</TEXT>\n</DOC>\n"
    "<DOC>\n<DOCNO> d2 </DOCNO>\n<TEXT>cook rice</TEXT>\n</DOC>\n"
)
TOPICS = "<top>\n<num> q1\n<title> how to boot\n</top>\n<top>\n<num> q2\n<title> cook\n</top>\n"
BEIR = {
    "set/corpus.jsonl": lines([{"_id": f"d{n}", "title": "T", "text": f"t {n}"} for n in (1, 2)]),
    "set/queries.jsonl": lines([{"_id": f"q{n}", "text": f"query {n}"} for n in (1, 2)]),
    "set/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td2\t1\n",
}
NESTED = [
    {"query": "how to boot", "docs": ["press F2", "cook rice"], "true_scores": [1, 0]},
    {"query": "cook", "docs": ["press F2", "cook rice"], "true_scores": [0, 1]},
]
RANK_LLM = [
    {
        "query": {"text": text, "qid": query},
        "candidates": [
            {"docid": doc, "score": score, "doc": {"segment": segment}}
            for doc, score, segment in (("d1", 2.5, "press F2"), ("d2", 1.5, "cook rice"))
        ],
    }
    for query, text in (("q1", "how to boot"), ("q2", "cook"))
]
SCORES = {"q1": {"d1": 0.9, "d2": 0.5}, "q2": {"d1": 0.25, "d2": 0.75}}
PREDICTIONS = {
    "mteb_model_meta": {"model_name": "m", "revision": "r"}, "default": {"test": SCORES}
}  # fmt: skip
SEARCH_RESULTS = {"model_name": "m", "reranker_name": "NoReranker", "search_results": SCORES}
RANK_EVAL = {
    "requests": [
        {
            "id": query,
            "request": {"query": {"match": {"body": text}}},
            "ratings": [
                {"_index": "help", "_id": doc, "rating": rating}
                for doc, rating in (("d1", first), ("d2", 1 - first))
            ],
        }
        for query, text, first in (("q1", "how to boot", 1), ("q2", "cook", 0))
    ]
}
RANK_EVAL_ANSWER = {
    "metric_score": 0.5,
    "details": {
        query: {
            "unrated_docs": [],
            "hits": [
                {"hit": {"_index": "help", "_id": doc, "_score": score}, "rating": rating}
                for doc, score, rating in (("d1", 2.5, first), ("d2", 1.5, 1 - first))
            ],
        }
        for query, first in (("q1", 1), ("q2", 0))
    },
    "failures": {},
}
RERANKED = [
    {
        "query": query,
        "documents": ["press F2", "cook rice"],
        "labels": labels,
        "results": [{"index": 1, "relevance_score": 0.7}, {"index": 0, "relevance_score": 0.3}],
    }
    for query, labels in (("how to boot", [1, 0]), ("cook", [0, 1]))
]
OF_ROWS = {
    "CSV": csv, "TSV": partial(csv, sep="\t"), "JSON": shape, "JSON lines": lines,
    "Parquet": parquet, "Arrow": arrow,
}  # fmt: skip
FILES: dict[str, Files] = {
    **{name: {"a": write(ROWS)} for name, write in OF_ROWS.items()},
    "JSON, nested": {"a": shape(NESTED)},
    "TREC runs and qrels": {"qrels": QRELS, "run": RUN},
    "TREC documents and topics": {"docs": DOCS, "topics": TOPICS, "qrels": QRELS},
    "BEIR": BEIR,
    "MTEB reranking": {"a": shape(MTEB)},
    "Hugging Face folders": HUB,
    "Quepid": {"book": BOOK},
    "Quepid, case": {"case": DETAIL},
    "WANDS": WANDS,
    "ESCI": {"e": parquet(EXAMPLES), "p": parquet(PRODUCTS)},
    "OpenSearch judgments": {"j": shape(JUDGMENT)},
    "RRE": {"r": shape(RRE)},
    "ranx": {"q": shape(RANX_QRELS)},
    "LETOR (SVMlight)": {"l": LETOR},
    "rank_llm": {"r.jsonl": lines(RANK_LLM), "qrels": QRELS},
    "MTEB predictions": {"p.json": shape(PREDICTIONS), "qrels": QRELS},
    "FlagEmbedding": {"s.json": shape(SEARCH_RESULTS), "qrels": QRELS},
    "Elasticsearch _rank_eval": {
        "request.json": shape(RANK_EVAL),
        "answer.json": shape(RANK_EVAL_ANSWER),
    },
    "rerank APIs": {"r.jsonl": lines(RERANKED)},
}
GOOD = {name: {each.name: each.data for each in sources(of)} for name, of in FILES.items()}

COLUMN, WORD, IDS, CUT = "missing column", "unknown label word", "ids match nothing", "cut short"
QRELS_OF_HUB = "set/qrels/test-00000-of-00001.parquet"
SHARD = "set/corpus/corpus-00001-of-00002.parquet"
LABEL = WANDS["WANDS/label.csv"]
UNKNOWN = [{**row, "product_id": f"Z{row['product_id']}"} for row in PRODUCTS]
WOW = {**ROWS[1], "label": "Wow"}


def of_hub(*scores: str, doc: str = "d") -> Files:
    rows = [
        {"query-id": "q1", "corpus-id": f"{doc}{n}", "score": score}
        for n, score in enumerate(scores, 1)
    ]
    return {**HUB, QRELS_OF_HUB: parquet(rows)}


def of_esci(examples: list[dict[str, object]], products: object = PRODUCTS) -> Files:
    return {"e": parquet(examples), "p": parquet(products)}


# Format → fault of its files → the files, or the replaced text and its replacement. Another ranking
# of a set is added to its intact files if `IDS` is missing; if `CUT` is, the first file ends too
# early.
BROKEN: dict[str, dict[str, Files | tuple[str, str]]] = {
    **{
        name: {
            COLUMN: {"a": write(without(ROWS, "label"))},
            WORD: {"a": write([ROWS[0], WOW, *ROWS[2:]])},
        }
        for name, write in OF_ROWS.items()
    },
    "JSON, nested": {
        COLUMN: {"a": shape(without(NESTED, "true_scores"))},
        "no documents": {"a": shape(without(NESTED, "docs"))},
        "lists differ in length": ("0,\n   1", "1"),
        WORD: ("1,\n   0", '1,\n   "Wow"'),
    },
    "TREC runs and qrels": {
        COLUMN: (QRELS, "q1 d1\nq1 d2\n"),
        "score that is none": ("2 1.0 a\nq2", "2 much a\nq2"),
        WORD: ("d2 0", "d2 Wow"),
        "nothing but unknown words": (
            QRELS, QRELS.replace("1\n", "Wow\n").replace("0\n", "Meh\n")
        ),
        CUT: (RUN, RUN[:-14]),
    },
    "TREC documents and topics": {COLUMN: ("DOCNO", "NO"), WORD: ("d2 0", "d2 Wow")},
    "BEIR": {
        COLUMN: (BEIR["set/qrels/test.tsv"], "query-id\tcorpus-id\nq1\td1\nq2\td2\n"),
        "no ids": {**BEIR, "set/corpus.jsonl": lines([{"text": "a"}, {"text": "b"}])},
        WORD: ("d2\t0", "d2\tWow"),
        IDS: ("\td", "\tx"),
    },
    "MTEB reranking": {
        COLUMN: {"a": shape(without(MTEB, "positive"))},
        "no query": {"a": shape(without(MTEB, "query"))},
        "entry without documents": {
            "a": shape([*MTEB, {"query": "x", "positive": [], "negative": []}])
        },
        CUT: {"a": lines(MTEB)[:-9]},
    },
    "Hugging Face folders": {
        COLUMN: {**HUB, QRELS_OF_HUB: parquet([{"query-id": "q1", "corpus-id": "d1"}])},
        WORD: of_hub("1", "Wow", "0"),
        IDS: of_hub("1", doc="z"),
        CUT: {**HUB, SHARD: HUB[SHARD][:-9]},
        "a file of several is not there": {name: HUB[name] for name in HUB if name != SHARD},
    },
    "Quepid": {
        COLUMN: ("docid", "thing"),
        WORD: ("11,3,2", "11,Wow,2"),
        CUT: {"book": BOOK + 'rambo,"99'},
    },
    "Quepid, case": {
        COLUMN: ("Doc ID", "Thing"),
        "rank that is none": ("11,1,", "11,first,"),
        WORD: ("Star Wars,3", "Star Wars,Wow"),
        CUT: (DETAIL, DETAIL[:-16]),
    },
    "WANDS": {
        COLUMN: ("product_id\tlabel", "product_id\tthing"),
        "no documents": ("product_id\tlabel", "thing\tlabel"),
        WORD: ("Partial", "Wow"),
        IDS: (LABEL, "id\tquery_id\tproduct_id\tlabel\n0\tx0\ty0\tExact\n"),
        CUT: (LABEL, LABEL[:-9]),
    },
    "ESCI": {
        COLUMN: of_esci(without(EXAMPLES, "esci_label")),
        "no documents": of_esci(without(EXAMPLES, "product_id")),
        WORD: of_esci([*EXAMPLES, {**EXAMPLES[0], "query_id": 10, "esci_label": "X"}]),
        IDS: of_esci(EXAMPLES, UNKNOWN),
    },
    "OpenSearch judgments": {
        COLUMN: ('"rating"', '"thing"'),
        "entry without ratings": {
            "j": shape({**JUDGMENT, "judgmentRatings": [JUDGED[0], {"query": "x", "ratings": []}]})
        },
        WORD: ('"0.000"', '"Wow"'),
    },
    "RRE": {
        COLUMN: ("relevant_documents", "thing"),
        "gain that is missing": ('"gain": 2', '"thing": 2'),
        WORD: ('"gain": 2', '"gain": "Wow"'),
    },
    "ranx": {COLUMN: ('"doc_c": 2', ""), WORD: ('"doc_b": 0', '"doc_b": "Wow"')},
    "rank_llm": {
        COLUMN: {"r.jsonl": lines(RANK_LLM).replace(b"docid", b"doc"), "qrels": QRELS},
        "object without a known text": {
            "r.jsonl": lines(RANK_LLM).replace(b"segment", b"inhalt"), "qrels": QRELS
        },
        WORD: ("d2 0", "d2 Wow"),
    },
    "MTEB predictions": {
        COLUMN: ('"test"', '"test": [1], "other"'),
        "several subsets": ('"default"', '"en": {"test": {}}, "de"'),
        "score that is none": ("0.5", "NaN"),
        WORD: ("d2 0", "d2 Wow"),
    },
    "FlagEmbedding": {
        COLUMN: ('"search_results"', '"search_results": {"q1": [1]}, "other"'),
        "score that is a text": ("0.5", '"high"'),
        WORD: ("d2 0", "d2 Wow"),
    },
    "Elasticsearch _rank_eval": {
        COLUMN: ('"_id": "d2",\n     "rating"', '"rating"'),
        "no query id": ('"id": "q1"', '"id": null'),
        "one id in two indices": ('"_index": "help",\n     "_id": "d2"', '"_id": "d1"'),
        "answer without its request": {"answer.json": shape(RANK_EVAL_ANSWER)},
        WORD: ('"rating": 0', '"rating": "Wow"'),
    },
    "rerank APIs": {
        COLUMN: ('"index": 0, ', ""),
        "index that is too high": ('"index": 0', '"index": 7'),
        "indexes that count from 1": {
            "r.jsonl": lines(RERANKED).replace(b'"index": 1', b'"index": 2').replace(
                b'"index": 0', b'"index": 1'
            )
        },
        "index that occurs twice": ('"index": 0', '"index": 1'),
        "index that is a text": ('"index": 0', '"index": "0"'),
        "score that is none": ("0.3", "Infinity"),
        "score that is missing": (', "relevance_score": 0.3', ""),
        "text of another document": ('"index": 0', '"index": 0, "document": {"text": "cook"}'),
        "response without a request": {"r.json": shape({"results": RERANKED[0]["results"]})},
        "request without a response": {
            "r.jsonl": lines([
                *({key: RERANKED[0][key] for key in keys}
                  for keys in (("query", "documents"), ("results",), ("query", "documents")))
            ])
        },
        "object without a known text": ('"press F2"', '{"inhalt": "press F2"}'),
        WORD: ("[1, 0]", '[1, "Wow"]'),
    },
    "LETOR (SVMlight)": {
        COLUMN: {"l": LETOR.replace("qid:10 ", "").replace("qid:11 ", "")},
        WORD: ("2 qid:10", "Wow qid:10"),
        CUT: {"l": LETOR + "0 qid:1"},
    },
}  # fmt: skip
BROKEN["CSV"][CUT] = {"a": GOOD["CSV"]["a"] + b'q3,"an open'}
BROKEN["TSV"][CUT] = {"a": GOOD["TSV"]["a"] + b"q3\tan open"}


def broken(of: str, fault: str) -> Files:
    """Return the files of a format with a fault."""
    how, files = BROKEN[of].get(fault), GOOD[of]
    if isinstance(how, tuple):
        old, new = (text.encode() for text in how)
        name = next(name for name, data in files.items() if old in data)
        return {**files, name: files[name].replace(old, new)}
    first = next(iter(files))
    usual = {**files, "run": ELSEWHERE} if fault == IDS else {**files, first: files[first][:-9]}
    return how or usual


# Other messages about files, not specific to a format.
CORPUS = '{"_id": "d1", "text": "a b"}\n{"_id": "d1", "text": "c d"}\n{"_id": "d1", "text": "a b"}'
HEAD = "query_id,query,doc_id,document,label"
SAID: dict[str, Case] = {
    "two texts of an id, a row again, a query that nobody labelled": {
        "corpus.jsonl": CORPUS, "qrels": "q1 0 d1 1\n", "run": "q1 Q0 d1 1 2 x\n",
        "queries.jsonl": lines([{"_id": f"q{n}", "text": "a"} for n in (1, 2)]),
    },
    "labels again and others, other texts, two runs": {
        "a.csv": f"{HEAD}\nq1,a b,d1,c d,1\nq1,a b,d1,c d,1\nq1,x y,d1,c d,2\n",
        "b.csv": f"{HEAD}\nq2,a b ,d1,e f,1\n",
        "one.run": RUN, "other.run": RUN,
    },
    "columns of several meanings": {
        "a": "query,document,label,grade,kind,url,score\na b,c d,1,2,x,u,2\na b,e f,0,0,x,v,\n"
    },
    "ranks and scores": {
        "a": f"{HEAD},rank,score\nq1,a,d1,b,1,2,1\nq1,a,d2,c,,3,2\nq1,a,d3,d,1,5,3\n"
    },
    **{
        f"annotators, {rule}": (
            {"a": "query,document,label_1,label_2\na,b c,1,0\na,c d,0,1\nd,e f,1,1\n"},
            {"annotators": rule},
        )
        for rule in ("majority", "mean")
    },
    "a label beside annotators": {"a": f"{HEAD},label_1,label_2\nq,a,d,b,1,1,0\nq,a,e,c,0,0,0\n"},
    "annotators of one mind": {"a": "query,document,label_1,label_2\na,b c,1,1\na,c d,1,1\n"},
    "a label that nobody can tell": {"a": f"{HEAD}\nq,a,d,b,1\nq,a,e,c,cannot tell\n"},
    "words as labels": {"a": f"{HEAD}\nq,a,d,b,Exact\nq,a,e,c,Irrelevant\n"},
    "words as labels, as a person said": (
        {"a": f"{HEAD}\nq,a,d,b,Exact\nq,a,e,c,Irrelevant\n"},
        {"words": {"a": {"Exact": 1.0, "Irrelevant": 0.0}}, "columns": {"label": "label"}},
    ),
    "ranks with gaps, and a document twice": {"qrels": QRELS, "run": RUN.replace("d2 2", "d1 4")},
    "papers and prose in an archive": {
        "x.zip": zipped(
            {"a.csv": csv(ROWS), "README.md": b"# it", "notes.txt": b"Dear all,\nyes.\n"}
        )
    },
    "several files that cannot be used": {
        "good.csv": csv(ROWS), "cut.json": '[{"query": "a",\n "document": ',
        "set.zip": b"PK\x03\x04 and no more", "words.csv": "query,document,label\na,b,abc\n",
        "letter.txt": "Dear all,\nplease find attached the labels.\n",
    },
    "markup of no known form": {"page.html": "\n \n\t<html>\n <body>"},
    "drawn labels": {"a": "query_id,doc_id,label,draw,probability\nq1,d1,2,1,0.25\n"},
    "two splits": {"test.tsv": QRELS, "train.tsv": QRELS},
    "blanks around ids": {"a": "query_id,doc_id,label\nq1 ,d1,1\nq1,d2,0\n"},
    "queries that differ by blanks": {"a": "query,document,label\na b ,c d,1\na b,e f,0\n"},
    "keys that stand twice, lists beside the longest": {
        "a": '{"x": [{"query": "a", "document": "b c", "label": 1, "label": 0}, {"query": "b", '
        '"document": "\\ud83d e", "label": 1}], "y": [{"query": "c"}]}'
    },
    "lists that no reader knows": {
        "a": '{"query": ["a", "b"], "documents": [["c"], ["e"]], "labels": [[1], [0]], "k": ["x"]}'
    },
    "another encoding": {"a": "query,document,label\n如何退货,寄回来即可,1\n".encode("gb18030")},
    "quotation marks that do not match": {"a": 'query\tdocument\tlabel\n"a b\tc d\t1\n'},
    "texts of unknown ids": {
        "corpus": '{"_id": "alpha", "text": "a b"}', "rows": "query,document,label\na,alpha,1\n"
    },
}  # fmt: skip


# Findings of readers without a file. Labels without anything else are not a fault of a file.
_OF_NO_FILE, _USUAL = ("texts_differ", "queries_alike"), ("columns", "format", "no_first_stage")


@cache
def examined() -> dict[str, DataError | Sequence[Finding]]:
    """Return the findings or the error of each case."""
    cases = {
        f"{of}: {fault}": broken(of, fault)
        for of, own in BROKEN.items()
        for fault in dict.fromkeys((*own, IDS, CUT))
    }
    found: dict[str, DataError | Sequence[Finding]] = {}
    for name, case in (cases | SAID).items():
        files, chosen = case if isinstance(case, tuple) else (case, {})
        try:
            found[name] = examine(sources(files), **chosen).report.findings
        except DataError as problem:
            found[name] = problem
    return found


def told(found: DataError | Sequence[Finding], said: set[str]) -> str:
    """Return the readers' messages: each error, warning and unusual note with place and remedy; a
    long remedy only once."""
    if isinstance(found, DataError):
        for each in getattr(found, "errors", [found]):
            # A library's description of a fault depends on its version.
            if not isinstance(each.params.get("problem", Phrase("")), Phrase):
                each.params["problem"] = "<reason>"
        return f"error: {_once(error_text(found), said)}\n"
    lines = [
        f"{each.severity}: {where_text(each) or 'all files'}: {finding_text(each)} "
        + _once(gettext(each.remedy, **each.params) if each.remedy else "", said)
        for each in found
        if each.file or each.severity == "error" or each.code in _OF_NO_FILE
        if each.code not in _USUAL
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _once(text: str, said: set[str]) -> str:
    if len(text) > 200 and text in said:
        return f"{text[:60]}…"
    said.add(text)
    return text


# The files of these formats, whole and broken, are in `formats/test_exports.py`.
EXPORTS = {"Releval", "OpenSearch experiments", "UBI", "OpenInference spans", "AutoRAG"}


def test_no_format_and_no_fault_is_missing_from_the_table():
    assert {name.split(",")[0] for name in GOOD} == set(FORMATS) - EXPORTS
    assert GOOD.keys() == BROKEN.keys()
    lacking = {(of, fault) for of in GOOD for fault in (COLUMN, WORD) if fault not in BROKEN[of]}
    # The labels of MTEB are positions of documents in the file, not values.
    assert lacking == {("MTEB reranking", WORD)}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_broken_file_is_answered_with_file_line_and_remedy(approved, language):
    said: set[str] = set()
    with speaking(language):
        lines = {name: told(found, said) for name, found in examined().items()}
    approved(f"readers/broken.{language}", table(lines))


# Without texts and without a ranking nothing can be compared; this is the only message.
LABELS_ALONE = ("Quepid", "OpenSearch judgments", "RRE", "ranx", "LETOR (SVMlight)")


@pytest.mark.parametrize("of", GOOD)
def test_whole_files_have_no_errors_and_of_a_zip_that_is_cut_short_nothing_is_kept(of):
    whole = zipped(GOOD[of])
    for files in (GOOD[of], {"set.zip": whole}):
        errors = [error.code for error in examine(sources(files)).report.errors]
        assert errors == (["no_first_stage"] if of in LABELS_ALONE else [])
    for kept in (0.5, 0.95):
        with pytest.raises(DataError, match="is damaged or truncated") as refused:
            examine(sources({"set.zip": whole[: int(kept * len(whole))]}))
        assert refused.value.where == "set.zip" and refused.value.remedy


def test_of_several_refused_files_each_is_named_by_command(tmp_path, capsys):
    cut = SAID["several files that cannot be used"]["cut.json"]
    unnamed = {"unnamed.csv": "query,document,what\na,b,1\n"}
    with pytest.raises(FormatError, match="Invalid JSON") as refused:
        parse({"good.csv": csv(ROWS), "cut.json": cut})
    assert not isinstance(refused.value, RefusedFilesError), "one has its own error"
    with pytest.raises(FormatError, match="Invalid JSON"):
        parse({**unnamed, "cut.json": cut})
    with pytest.raises(MappingNeeded):
        parse(unnamed)  # A question waits until the other files can be used.

    for name, content in (("qrels", "q1 0 d1 1\n"), ("a.json", cut), ("b.json", cut)):
        (tmp_path / name).write_text(content)
    files = [str(tmp_path / name) for name in ("qrels", "a.json", "b.json")]
    assert main(["evaluate", *files]) == 2
    said = capsys.readouterr().err
    assert "a.json, line 1:" in said and "b.json, line 1:" in said


# Columns of six rows that a library cannot read, or only in part.
PLAIN = {"query": [*"aaabbb"], "document": [f"d{row}" for row in range(6)], "label": [0, 1] * 3}


def numbers(value: int, kind: pa.DataType, stored: pa.DataType | None = None) -> pa.Array:
    return pa.array([value] * 6, type=stored or pa.int64()).view(kind)


def broken_text(rows: int = 6) -> pa.Array:
    stored = pa.array([b"\xff\xfe\xc3"] * rows, type=pa.binary())
    return pa.Array.from_buffers(pa.string(), rows, stored.buffers())


def in_lists(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(range(7), type=pa.int32()), values)


ODD = {
    "text": broken_text(),
    "text by number": pa.DictionaryArray.from_arrays(pa.array([0] * 6, pa.int32()), broken_text(1)),
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
    "decimal": pa.array([decimal.Decimal("1e37")] * 6, type=pa.decimal128(38, 0)),
    "bytes": pa.array([b"\xff\x00"] * 6),
    "interval": pa.array([(1, 2, 3)] * 6, type=pa.month_day_nano_interval()),
}
# Parquet has no such values.
LACKING = {"Arrow": set(), "Parquet": {"seconds", "seconds in lists", "interval"}}


@pytest.mark.parametrize("field", ["extra", *PLAIN])
@pytest.mark.parametrize("of", LACKING)
def test_odd_columns_are_read_or_refused_by_name(of, field):
    for odd in ODD.keys() - LACKING[of]:
        try:
            parse({"odd.bin": OF_ROWS[of](pa.table({**PLAIN, field: ODD[odd]}))})
        except DataError as error:
            assert (error.file, error.params.get("column", field)) == ("odd.bin", field), odd
            error_text(error).encode()
        else:
            assert odd != "microseconds"


@pytest.mark.parametrize(
    ("raised", "expected", "reason"),
    [
        (MemoryError(), LimitError, "not enough memory"),
        (KeyError("x"), FormatError, "('x')"),
        (RecursionError("too deep\nreally"), FormatError, "(too deep)"),
        (ValueError(), FormatError, "(ValueError)"),
        (TypeError("\ud800" + "x" * 900), FormatError, "(?" + "x" * 299 + ")"),
    ],
)
def test_anything_raised_becomes_an_error_with_file_and_reason(raised, expected, reason):
    with pytest.raises(expected) as seen, limits.reading("a.csv"):
        raise raised
    assert (seen.value.file, seen.value.__cause__) == ("a.csv", raised)
    assert reason in seen.value.message and seen.value.remedy


def test_what_files_do_only_together_names_them(monkeypatch):
    monkeypatch.setattr("rankdash.core.readers.files.combine", lambda *_files, **_settings: 1 // 0)
    with pytest.raises(FormatError, match="division") as seen:
        parse({f"{n}.csv": csv(ROWS) for n in range(4)})
    assert seen.value.file == "0.csv, 1.csv, 2.csv, …"
