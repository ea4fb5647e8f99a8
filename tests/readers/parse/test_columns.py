"""Meanings of columns: by known names, by values, by a guess, and by the user's mapping."""

import pandas as pd
import pytest

from rankdash.core.base.errors import FormatError
from rankdash.core.readers import FIELDS, MappingNeeded
from rankdash.core.readers.parse.columns import (
    doubts,
    fields_of,
    guess,
    id_and_text,
    is_id,
    known,
    names_a_value,
    recognise,
    systems_in,
)
from tests.readers.reading import parse, shown
from tests.results import results

TEXT_HEADS = (
    *("query,document,label", "Query,Passage,Relevance", "QUERY TEXT,Doc_Text,grade"),
    *("question,answer,rating", "search_term,product_description,gold label", "query,text,rel"),
    *("q,doc,judgement", "查询,文档,标签", "问题,答案,相关性", "搜索词,商品描述,是否相关"),
    "检索词,段落,评分",
)
ID_HEADS = (
    *("query_id,doc_id,label", "qid,did,rel", "topic,docno,relevance", "Query-ID,Corpus-ID,score"),
    *("问题编号,文档编号,相关度", "query,document,label"),
)


def test_what_each_column_is_read_as(approved):
    def mapped(**fields: str):
        return {"x": "a,b,c,d\nshort,long text,1,7\nshort,other text,0,9\n"}, {
            "mapping": {"x": fields}
        }

    qrels = {"q": "7 0 d1 1\n"}
    unknown = "intent_query,my_passage_body,verdict,lang\n" + "".join(
        f"how do I return {i},a rather long passage about returns {i},{i % 3},en\n"
        for i in range(9)
    )
    values = "a,b,c\n" + "".join(
        f"a much longer text that is surely the document {i},short query {i},{i % 2}\n"
        for i in range(9)
    )
    systems = "query,document,label,pred_a,pred_scores_b\nx y,a b,1,2.5,1.5\nx y,c d,0,1.5,2.5\n"
    chosen = {"query": "query", "document": "document", "label": "label", "reranked": "pred_a"}
    cases = {
        **{
            f"{head} above {rows.split()[0]}": {"x": f"{head}\n{rows}\n"}
            for heads, rows in (
                (TEXT_HEADS, "some query,some passage,1"), (ID_HEADS, "007,d-1,1\n8,d-2,0")
            )
            for head in heads
        },
        "a title beside a text": {
            "x": "query,product_title,product_description,label\na,Lamp,A red lamp,1\n"
        },
        "a title alone": {"x": "query,product_title,label\na,A lamp,1\n"},
        "the title of a TREC topic is the query": {
            "topics": "topic,title,narrative\n401,foreign minorities,Any document that …\n",
            "q": "401 0 d1 1\n",
        },
        "id and text beside query_id": {**qrels, "x": "query_id,text\n7,a gift\n"},
        "id and text beside doc_id": {**qrels, "x": "doc_id,text\nd1,bring it\n"},
        "id beside a question": {**qrels, "x": "id,question\n7,a gift\n"},
        "many steps are a first stage": {
            "x": "query,document,score\n" + "".join(f"a,text {i},{i / 7}\n" for i in range(5)),
            "q": "7 0 doc3 1\n",
        },
        **{
            f"{steps} whole steps are {'labels' if steps == 12 else 'scores'}": {
                "x": "query,document,score\n" + "".join(f"a,text {n},{n}\n" for n in range(steps))
            }
            for steps in (12, 13)
        },
        "a rank alone orders best first": {
            "x": "query,document,rank,label\na,b,3,0\na,c,1,1\na,d,2,0\n"
        },
        "predictions are a system of their own": {
            "x": "query,document,label,bm25_score,pred_score\na,b,1,1,9\na,c,0,2,3\n"
        },
        "further columns of a query are kinds": {
            "x": "query,document,label,type,url,weather\n"
            "a,b,1,how,u1,\na,c,0,how,u2,\nd,b,0,,u1,\nd,e,1,what,u3,\n"
        },
        **{
            f"a kind of {first or 'nothing'} and {second or 'nothing'}": {
                "x": f"query,document,label,channel\na,b,1,{first}\nc,d,0,{second}\n"
            }
            for first, second in (("web", ""), ("web", "mail"), ("", ""))
        },
        "a number of the row is no kind": {
            "x": "id,query_id,query,document,label\n7,q1,a,b,1\n8,q2,c,d,0\n"
        },
        "unknown names are asked for": {"x.csv": unknown},
        "values are guessed by where names say nothing": {"x": values},
        **{
            f"{missing} is missing": {"x": text}
            for missing, text in (
                ("a label", "query,document,colour\na,b,red\n"),
                ("a document", "query,colour,label\na,b,1\n"),
                ("a query", "document,colour,label\na,b,1\n"),
                ("a side", "id,text\n1,b\n"),
            )
        },
        "a mapping reads the file as told": mapped(query="a", document="b", label="c", score="d"),
        "a mapping overrides known names": (
            {"x": "query,document,label,real_label\na,b,1,0\na,c,0,1\n"},
            {"mapping": {"x": {"query": "query", "document": "document", "label": "real_label"}}},
        ),
        "a mapping to a column that is not there": mapped(query="nope", document="b"),
        "a mapping of a field that is none": mapped(queries="a"),
        "a mapping of nothing": mapped(),
        "a mapping without documents": mapped(query="a", label="c"),
        "a mapping without queries": mapped(document="a", label="c"),
        "a mapping of another file": ({"x": "a,b\nd,e\n"}, {"mapping": {"y": {"query": "a"}}}),
        "one system chosen of two": ({"x.csv": systems}, {"mapping": {"x.csv": chosen}}),
        "the other chosen as first stage": (
            {"x.csv": systems}, {"mapping": {"x.csv": chosen | {"score": "pred_scores_b"}}}
        ),
    }  # fmt: skip
    approved("readers/columns.en", shown(cases))


def test_who_is_asked_for_columns_sees_the_first_rows_and_what_to_do():
    """Also as an error of a format, without a user who can choose."""
    with pytest.raises(FormatError) as needed:
        parse({"x.csv": "wer,was,lang\n" + "q,a long passage,en\n" * 9})
    assert isinstance(needed.value, MappingNeeded)
    assert tuple(needed.value.guess) == FIELDS
    assert needed.value.preview["lang"].tolist() == ["en"] * 5
    assert "x.csv" in str(needed.value) and "rename" in needed.value.remedy


def cells(**columns: str) -> pd.DataFrame:
    """Return a row for each word of a column; a bar is replaced by a space."""
    return pd.DataFrame(
        {name: [cell.replace("|", " ") for cell in text.split()] for name, text in columns.items()}
    )


TEXT = "a|gift another|gift"


def test_what_a_column_is_by_its_name_and_its_cells(approved):
    ids, queries, docs = {"id": "7 8"}, {"query_id": "q r"}, {"doc_id": "d e"}
    texts = {name: {name: TEXT} for name in ("query", "document", "text", "title", "note")}
    query, document, text, title, note = texts.values()
    pairs, label, sides = {"query_id": "q q", "doc_id": "a b"}, {"label": "1 0"}, queries | docs
    tokens = {"query": "q1 q2", "document": "d1 d2"}
    frames = [
        # The named side.
        *(query | text, queries | text, docs | text, sides | text, query | document | text),
        *(ids | query, ids | document, ids | title, ids | query | document, ids | query | text),
        *(ids | text, title, queries | title, query | title, queries | query | title),
        # Only ids, of both sides. In a table of queries only, the values are texts, however short.
        *(tokens, {"query": "q1 q2"}, sides | tokens, tokens | label),
        # Next to a rank or a label, a score is a system's; next to such a score it is a label.
        *(pairs | {"rank": "1 2", "score": "1 0"}, pairs | label | {"score": "1 0"}),
        pairs | {"bm25": "2.5 2", "score": "0.5 0.25"},
        {"query_id": "q q", "corpus_id": "a b", "score": "0.5 0.25"},
        {"query_id": "q q", "corpus_id": "a b", "score": "1 0"},
        *(pairs | {"score": score} for score in ("0.5 0.25", "1 0")),
        # A decision by values, not by names, is marked as uncertain.
        *({"query_id": "q q"} | document | {"score": score} for score in ("1 0", "0.5 1")),
        {"query_id": "q q"} | document | {"grade": "1 0"},
        # An id that rows of one query share is the query's.
        *(
            {"id": own, "query": of, "document": "t t t", "label": "1 1 1"}
            for own, of in (("1 1 2", "g g p"), ("1 2 3", "g g p"), ("1 1 2", "g p p"))
        ),
        # More than half of the labels can be read.
        {"query": "gift gift", "document": "text text", "relevance_note": "2 long|words"},
        {"query": "g g g", "document": "t t t", "relevance_note": "2 0 long|words"},
        # A column with more than nine tenths of numbers is not a text.
        *({"a": " ".join(["1.5"] * n + ["words"] * (20 - n))} for n in (18, 19)),
        # If a side has ids, a column of words is not its text.
        *(sides | label | note, queries | label | note, docs | label | note),
        # Tables of ids and texts.
        *({"ID": "1", "Text": "a", "url": "u"}, {"id": "1", "ID": "1", "texts": "a"}),
        *({"id": "1", "body": "a"}, {"no": "1", "text": "a"}),
    ]
    cases = {}
    for columns in frames:
        frame = cells(**columns)
        known_fields, guessed = fields_of(frame), guess(frame)
        cases["; ".join(f"{name}: {text}" for name, text in columns.items())] = {
            "read": known_fields, "doubts": doubts(known_fields, frame),
            "guess": {field: column for field, column in guessed.items() if column},
            "id and text": id_and_text(frame),
        }  # fmt: skip
    missing = {"id": ["1", "1", None], "query": [*"ggp"], "document": "t", "label": "1"}
    cases["an id that is missing"] = fields_of(pd.DataFrame(missing))
    approved("readers/fields", results(cases))


def test_what_names_alone_say():
    assert recognise(["Query-ID ", "qid", "Ｑｕｅｒｙ", "x"]) == {
        "query_id": "Query-ID ", "query": "Ｑｕｅｒｙ"
    }  # fmt: skip
    assert systems_in(["pred_score", "bm25_score", "minilm_rerank_score", "重排分数"]) == [
        "pred_score", "minilm_rerank_score", "重排分数"
    ]  # fmt: skip
    assert known(["query", "Score", "id", "text", "weather"]) == 4
    named = ["score", "grade", "rank", "bm25", "pred_score_x", "query", "id"]
    assert [names_a_value(name) for name in named] == [True] * 5 + [False] * 2
    assert [is_id(name) for name in ("ID", "编号", "qid", "")] == [True, True, False, False]
