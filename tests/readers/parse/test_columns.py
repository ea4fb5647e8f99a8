"""Which column is which: known names, values, a guess, and a person's mapping."""

import pandas as pd
import pytest

from rankdash.errors import DataError, FormatError
from rankdash.readers import FIELDS, MappingNeeded
from rankdash.readers.parse.columns import (
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

ROW = "some query,some passage,1"


@pytest.mark.parametrize(
    "header",
    [
        "query,document,label",
        "Query,Passage,Relevance",
        "QUERY TEXT,Doc_Text,grade",
        "question,answer,rating",
        "search_term,product_description,gold label",
        "query,text,rel",
        "q,doc,judgement",
        "查询,文档,标签",
        "问题,答案,相关性",
        "搜索词,商品描述,是否相关",
        "检索词,段落,评分",
    ],
)
def test_names_are_recognised(parse, header):
    parsed = parse({"x": f"{header}\n{ROW}\n"})

    assert parsed.queries["text"].tolist() == ["some query"]
    assert parsed.documents["text"].tolist() == ["some passage"]
    assert parsed.qrels["label"].tolist() == [1.0]


@pytest.mark.parametrize(
    "header",
    [
        "query_id,doc_id,label",
        "qid,did,rel",
        "topic,docno,relevance",
        "Query-ID,Corpus-ID,score",
        "问题编号,文档编号,相关度",
        "query,document,label",
    ],
)
def test_ids_are_recognised_by_name_or_by_what_they_hold(parse, header):
    parsed = parse({"x": f"{header}\n007,d-1,1\n8,d-2,0\n"})

    assert parsed.qrels["query_id"].tolist() == ["007", "8"]
    assert parsed.qrels["doc_id"].tolist() == ["d-1", "d-2"]
    assert parsed.queries["text"].isna().all()


def test_what_a_column_holds_and_not_its_name_is_told(parse, found):
    parsed = parse({"x": "query,doc_id,label\nq1,d1,1\nq2,d1,0\n"})

    assert found(parsed, "read_as").params == {"column": "query", "field": "query_id"}
    assert parsed.qrels["query_id"].tolist() == ["q1", "q2"]


def test_titles(parse):
    parsed = parse({"x": "query,product_title,product_description,label\na,Lamp,A red lamp,1\n"})
    assert parsed.documents[["title", "text"]].values.tolist() == [["Lamp", "A red lamp"]]

    parsed = parse({"x": "query,product_title,label\na,A lamp,1\n"})
    assert parsed.documents["text"].tolist() == ["A lamp"]


def test_a_score_with_few_whole_steps_is_a_label(parse):
    parsed = parse({"x": "query,document,score\na,b,2\na,c,0\n"})

    assert parsed.qrels["label"].tolist() == [2.0, 0.0]
    assert parsed.candidates is None


def test_a_score_with_many_steps_is_the_first_stage(parse):
    rows = "".join(f"a,text {i},{i / 7}\n" for i in range(20))

    parsed = parse({"x": "query,document,score\n" + rows, "q": "7 0 doc3 1\n"})

    assert parsed.candidates.documents_of("q1")[0][0] == "d20"
    assert len(parsed.qrels) == 1


@pytest.mark.parametrize(("steps", "labels"), [(12, True), (13, False)])
def test_up_to_twelve_whole_steps_are_labels(parse, steps, labels):
    rows = "".join(f"a,text {step},{step}\n" for step in range(steps))

    parsed = parse({"x": "query,document,score\n" + rows})

    assert (len(parsed.qrels), parsed.candidates is None) == (12 * labels, labels)


def test_the_title_of_a_trec_topic_is_the_query(parse):
    topics = "topic,title,narrative\n401,foreign minorities,Any document that …\n"

    parsed = parse({"topics": topics, "q": "401 0 d1 1\n"})

    assert parsed.queries.iloc[0].to_dict() == {
        "query_id": "401",
        "text": "foreign minorities",
        "narrative": "Any document that …",
    }


def test_id_and_text_belong_to_the_side_that_the_other_columns_speak_of(parse):
    files = {"q": "7 0 d1 1\n", "x": "query_id,text\n7,a gift\n"}
    assert parse(files).queries["text"].tolist() == ["a gift"]

    files = {"q": "7 0 d1 1\n", "x": "doc_id,text\nd1,bring it\n"}
    assert parse(files).documents["text"].tolist() == ["bring it"]

    files = {"q": "7 0 d1 1\n", "x": "id,question\n7,a gift\n"}
    assert parse(files).queries["text"].tolist() == ["a gift"]


def test_a_score_beside_a_label_is_the_first_stage(parse):
    parsed = parse({"x": "query,document,score,label\na,b,2,0\na,c,5,1\n"})

    assert parsed.candidates.documents_of("q1")[0] == ["d2", "d1"]
    assert parsed.qrels["label"].tolist() == [0.0, 1.0]


def test_a_rank_alone_orders_best_first(parse):
    parsed = parse({"x": "query,document,rank,label\na,b,3,0\na,c,1,1\na,d,2,0\n"})

    assert parsed.candidates.documents_of("q1")[0] == ["d2", "d3", "d1"]


@pytest.mark.parametrize("rank", ["first", "1.5"])
def test_a_rank_that_is_no_whole_number_is_refused(parse, found, rank):
    parsed = parse({"x": f"query,document,rank,label\na,b,{rank},0\na,c,1,1\n"})

    assert found(parsed, "bad_rank").line == 2


def test_predictions_are_a_system_of_their_own(parse):
    parsed = parse({"x": "query,document,label,bm25_score,pred_score\na,b,1,1,9\na,c,0,2,3\n"})

    assert parsed.candidates.documents_of("q1")[0] == ["d2", "d1"]
    assert parsed.rankings["x/pred_score"].documents_of("q1")[0] == ["d1", "d2"]


def test_further_query_columns_are_segments_and_others_are_left_aside(parse, found):
    text = (
        "query,document,label,type,url,weather\n"
        "a,b,1,how,u1,\na,c,0,how,u2,\nd,b,0,,u1,\nd,e,1,what,u3,\n"
    )

    parsed = parse({"x": text})

    assert list(parsed.queries.columns) == ["query_id", "text", "type"]
    assert parsed.queries["type"].tolist() == ["how", "what"]
    assert found(parsed, "ignored_columns").params["columns"] == "url"


def test_unknown_columns_ask_for_a_mapping_with_the_best_guess(parse):
    text = "intent_query,my_passage_body,verdict,lang\n" + "".join(
        f"how do I return {i},a rather long passage about returns {i},{i % 3},en\n"
        for i in range(9)
    )

    with pytest.raises(MappingNeeded) as needed:
        parse({"x.csv": text})

    assert needed.value.file == "x.csv"
    assert needed.value.columns == ["intent_query", "my_passage_body", "verdict", "lang"]
    assert tuple(needed.value.guess) == FIELDS
    assert {field: column for field, column in needed.value.guess.items() if column} == {
        "query": "intent_query",
        "document": "my_passage_body",
        "label": "verdict",
    }
    assert needed.value.preview["lang"].tolist() == ["en"] * 5
    assert "x.csv" in str(needed.value)
    assert "rename" in needed.value.remedy


def test_the_guess_goes_by_values_where_names_say_nothing(parse):
    text = "a,b,c\n" + "".join(
        f"a much longer text that is surely the document {i},short query {i},{i % 2}\n"
        for i in range(9)
    )

    with pytest.raises(MappingNeeded) as needed:
        parse({"x": text})

    guess = needed.value.guess
    assert (guess["document"], guess["query"], guess["label"]) == ("a", "b", "c")


def test_a_mapping_reads_the_file_as_told(parse):
    text = "a,b,c,d\nshort,long text,1,7\nshort,other text,0,9\n"
    mapping = {"x": {"query": "a", "document": "b", "label": "c", "score": "d"}}

    parsed = parse({"x": text}, mapping=mapping)

    assert parsed.queries["text"].tolist() == ["short"]
    assert parsed.candidates.documents_of("q1")[0] == ["d2", "d1"]


def test_a_mapping_overrides_known_names(parse):
    text = "query,document,label,real_label\na,b,1,0\na,c,0,1\n"
    mapping = {"x": {"query": "query", "document": "document", "label": "real_label"}}

    assert parse({"x": text}, mapping=mapping).qrels["label"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"x": {"query": "nope", "document": "b"}}, "no column 'nope'.*a, b, c"),
        ({"x": {"queries": "a"}}, "no field 'queries'.*query_id, query"),
        ({"y": {"query": "a"}}, "'y'.*not among the files.*x"),
        ({"x": {}}, "gives no queries"),
        ({"x": {"query": "a", "label": "c"}}, "gives no documents"),
        ({"x": {"document": "a", "label": "c"}}, "gives no queries"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(parse, mapping, message):
    with pytest.raises(DataError, match=message):
        parse({"x": "a,b,c\nd,e,1\n"}, mapping=mapping)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("query,document,colour\na,b,red\n", "label"),
        ("query,colour,label\na,b,1\n", "document"),
        ("document,colour,label\na,b,1\n", "query"),
        ("id,text\n1,b\n", "query"),
    ],
)
def test_what_is_missing_is_named(parse, text, missing):
    with pytest.raises(MappingNeeded, match=f"recognised as {missing}"):
        parse({"x": text})


def test_the_mapping_error_is_a_format_error_for_those_who_cannot_ask(parse):
    with pytest.raises(FormatError):
        parse({"x": "a,b\nc,d\n"})


def test_the_score_of_beir_labels_is_no_doubt(parse, codes):
    parsed = parse(
        {
            "qrels.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\n",
            "run": "q1 Q0 d1 1 2.5 x\n",
        }
    )

    assert parsed.qrels["label"].tolist() == [1]
    assert "read_as" not in codes(parsed)


def test_a_doubt_about_a_column_says_how_to_settle_it(parse, found):
    parsed = parse({"x.csv": "query_id,document,score\nq1,a,1\nq1,b,0\n"})

    assert found(parsed, "read_as").remedy == (
        "If it is something else, rename the column, for example to label, first_stage_score, "
        "query or document, and load the file again."
    )


@pytest.mark.parametrize(
    ("cells", "label"),
    [(["2", "long words"], None), (["2", "0", "long words"], "relevance_note")],
)
def test_more_than_half_of_the_cells_of_a_label_can_be_read(cells, label):
    frame = pd.DataFrame({"query": "gift", "document": "text", "relevance_note": cells})
    assert guess(frame)["label"] == label


@pytest.mark.parametrize(("numbers", "document"), [(18, "a"), (19, None)])
def test_a_column_of_more_than_nine_tenths_of_numbers_is_no_text(numbers, document):
    cells = [f"{n}.5" for n in range(numbers)] + ["words"] * (20 - numbers)
    assert guess(pd.DataFrame({"a": cells}))["document"] == document


@pytest.mark.parametrize(
    ("ids", "queries", "of_the_query"),
    [
        (["1", "1", "2"], ["gift", "gift", "parcel"], True),
        (["1", "2", "3"], ["gift", "gift", "parcel"], False),
        (["1", "1", "2"], ["gift", "parcel", "parcel"], False),
        (["1", "1", None], ["gift", "gift", "parcel"], False),
    ],
    ids=["shared", "one a row", "beside two queries", "missing"],
)
def test_an_id_that_rows_of_one_query_share_is_that_of_the_query(ids, queries, of_the_query):
    frame = pd.DataFrame({"id": ids, "query": queries, "document": "text", "label": "1"})
    assert ("query_id" in fields_of(frame)) == of_the_query


@pytest.mark.parametrize(
    ("first", "second", "segment"),
    [("web", "", ["web", None]), ("web", "mail", ["web", "mail"]), ("", "", [])],
)
def test_a_column_that_some_query_fills_in_is_a_segment(parse, first, second, segment):
    rows = f"query,document,label,channel\na,b,1,{first}\nc,d,0,{second}\n"

    assert list(parse({"x": rows}).queries.get("channel", [])) == segment


def test_a_number_of_the_row_is_no_segment_also_where_each_query_has_one_row(parse, found):
    parsed = parse({"x": "id,query_id,query,document,label\n7,q1,a,b,1\n8,q2,c,d,0\n"})

    assert list(parsed.queries.columns) == ["query_id", "text"]
    assert found(parsed, "ignored_columns").params["columns"] == "id"


def cells(**columns: str) -> pd.DataFrame:
    """A row for each word of a column; a bar stands for a blank."""
    return pd.DataFrame(
        {name: [cell.replace("|", " ") for cell in text.split()] for name, text in columns.items()}
    )


TEXT = "a|gift another|gift"


@pytest.mark.parametrize(
    ("frame", "fields"),
    [
        # A score beside a rank or a label is a system's, beside such a score it is a label.
        (cells(query_id="q q", doc_id="a b", rank="1 2", score="1 0"), "rank score"),
        (cells(query_id="q q", doc_id="a b", label="1 0", score="1 0"), "label score"),
        (cells(query_id="q q", doc_id="a b", bm25="2.5 2", score="0.5 0.25"), "score label"),
        (cells(query_id="q q", corpus_id="a b", score="0.5 0.25"), "label"),
        (cells(query_id="q q", doc_id="a b", score="0.5 0.25"), "score"),
        (cells(query_id="q q", doc_id="a b", score="1 0"), "label"),
    ],
)
def test_what_a_score_is_follows_from_what_stands_beside_it(frame, fields):
    assert list(fields_of(frame))[2:] == fields.split()


@pytest.mark.parametrize(
    ("frame", "fields"),
    [
        (cells(query=TEXT, text=TEXT), {"query": "query", "document": "text"}),
        (cells(query_id="q r", text=TEXT), {"query_id": "query_id", "query": "text"}),
        (cells(doc_id="a b", text=TEXT), {"doc_id": "doc_id", "document": "text"}),
        (cells(query_id="q r", doc_id="a b", text=TEXT),
         {"query_id": "query_id", "doc_id": "doc_id", "document": "text"}),
        (cells(query=TEXT, document=TEXT, text=TEXT), {"query": "query", "document": "document"}),
        (cells(id="7 8", query=TEXT), {"query_id": "id", "query": "query"}),
        (cells(id="7 8", document=TEXT), {"doc_id": "id", "document": "document"}),
        (cells(id="7 8", title=TEXT), {"doc_id": "id", "title": "title"}),
        (cells(id="7 8", query=TEXT, document=TEXT), {"query": "query", "document": "document"}),
        (cells(id="7 8", query=TEXT, text=TEXT), {"query": "query", "document": "text"}),
        (cells(id="7 8", text=TEXT), {}),
        (cells(title=TEXT), {"document": "title"}),
        (cells(query_id="q r", title=TEXT), {"query_id": "query_id", "query": "title"}),
        (cells(query=TEXT, title=TEXT), {"query": "query", "document": "title"}),
        (cells(query_id="q r", query=TEXT, title=TEXT),
         {"query_id": "query_id", "query": "query", "document": "title"}),
        # Ids alone, of both sides: a table of queries alone holds their texts, however short.
        (cells(query="q1 q2", document="d1 d2"), {"query_id": "query", "doc_id": "document"}),
        (cells(query="q1 q2"), {"query": "query"}),
        (cells(query_id="q r", query="q1 q2", doc_id="d e", document="d1 d2"),
         {"query_id": "query_id", "query": "query", "doc_id": "doc_id", "document": "document"}),
    ],
)  # fmt: skip
def test_an_id_a_text_and_a_title_are_of_the_side_that_is_spoken_of(frame, fields):
    assert fields_of(frame) == fields


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


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (("ID", "Text", "url"), ("ID", "Text")),
        (("id", "ID", "texts"), ("id", "texts")),
        (("id", "body"), None),
        (("no", "text"), None),
    ],
)
def test_a_table_of_ids_and_texts_is_told_by_both_names(columns, found):
    assert id_and_text(pd.DataFrame(columns=list(columns))) == found


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (cells(query="q1 q2", document="d1 d2", label="1 0"),
         [("query", "query_id"), ("document", "doc_id")]),
        (cells(query_id="q q", document=TEXT, score="1 0"), [("score", "label")]),
        (cells(query_id="q q", document=TEXT, score="0.5 1"), [("score", "score")]),
        (cells(query_id="q q", corpus_id="a b", score="1 0"), []),
        (cells(query_id="q q", document=TEXT, grade="1 0"), []),
    ],
)  # fmt: skip
def test_what_values_and_not_names_decided_is_doubted(frame, told):
    assert doubts(fields_of(frame), frame) == told


@pytest.mark.parametrize(
    ("frame", "guessed"),
    [
        # Where a side has its ids, a column of words is no text of it.
        (cells(query_id="q r", doc_id="d e", label="1 0", note=TEXT),
         {"query_id": "query_id", "doc_id": "doc_id", "label": "label"}),
        (cells(query_id="q r", label="1 0", note=TEXT),
         {"query_id": "query_id", "document": "note", "label": "label"}),
        (cells(doc_id="d e", label="1 0", note=TEXT),
         {"query": "note", "doc_id": "doc_id", "label": "label"}),
    ],
)  # fmt: skip
def test_words_are_guessed_to_be_of_a_side_that_has_nothing_else(frame, guessed):
    assert {field: column for field, column in guess(frame).items() if column} == guessed


@pytest.mark.parametrize(
    ("score", "systems"),
    [({}, {"x/pred_a", "x/pred_scores_b"}), ({"score": "pred_scores_b"}, {"x/pred_a"})],
)
def test_a_column_that_is_the_first_stage_is_no_system_beside_the_others(parse, score, systems):
    text = "query,document,label,pred_a,pred_scores_b\nx y,a b,1,2.5,1.5\nx y,c d,0,1.5,2.5\n"
    chosen = {"query": "query", "document": "document", "label": "label", "reranked": "pred_a"}
    parsed = parse({"x.csv": text}, mapping={"x.csv": chosen | score})
    assert set(parsed.rankings) == systems
    assert (parsed.candidates is not None) == bool(score)
