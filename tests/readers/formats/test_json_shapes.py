"""Where one shape of JSON ends and the next begins."""

import json

import pytest

from rankdash.errors import FormatError
from rankdash.readers.formats import collection, json_layouts, nested, ranx
from rankdash.readers.parse.limits import ReadLimits


def entries(*records: dict) -> dict[str, str]:
    return {"x.json": json.dumps(records)}


def labels(parsed) -> dict[str, float]:
    """Document (its text, where it has one) → label."""
    texts = parsed.documents.set_index("doc_id")["text"].dropna()
    pairs = zip(parsed.qrels["doc_id"], parsed.qrels["label"], strict=True)
    return {texts.get(doc, doc): label for doc, label in pairs}


@pytest.mark.parametrize(
    ("grades", "are"),
    [
        ([100, 0], True),
        ([101, 0], False),
        ([-100, 0], True),
        (list(range(12)), True),
        (list(range(13)), False),
        ([], False),
    ],
)
def test_up_to_twelve_numbers_of_at_most_a_hundred_are_grades(grades, are):
    assert json_layouts.matches([[0, 1], grades]) == are


@pytest.mark.parametrize(
    ("name", "text", "side"),
    [("pos", "NOUN", False), ("positive", "a text", True), ("pos", ["a text"], True)],
)
def test_a_word_under_pos_is_no_document(name, text, side):
    assert nested.holds_lists([{"query": "a gift", name: text}]) == side


@pytest.mark.parametrize(("scores", "systems"), [([1, 2, None], ["x"]), (["x"] * 3, [])])
def test_a_list_with_a_score_for_each_document_is_a_system(parse, scores, systems):
    entry = {"query": "a gift", "docs": ["a", "b", "c"], "labels": [1, 0, 0]}
    parsed = parse(entries({**entry, "minilm_scores": scores}))
    assert list(parsed.rankings) == systems


@pytest.mark.parametrize("key", ["id", "query_id"])
def test_a_query_given_as_an_object_has_its_own_id(parse, key):
    parsed = parse(
        entries({"query": {key: 7, "text": "gift"}, "docs": ["a", "b"], "labels": [1, 0]})
    )
    assert parsed.queries.iloc[0].to_dict() == {"query_id": "7", "text": "gift"}


@pytest.mark.parametrize(
    ("retrieved", "relevant", "found"),
    [
        (["d3", "d1"], [0, 2], {"d3": 0, "d1": 2}),
        ([3, 1], [0, 0], {"3": 0, "1": 0}),
        ([3, 1], [1, 7], {"1": 1, "7": 1}),
        (["d3", "d1"], "d9", {"d9": 1}),
        (["two words", "word"], ["word"], {"word": 1}),
    ],
    ids=["grades", "grades beside numbers", "numbers as ids", "an id alone", "texts"],
)
def test_what_is_relevant_are_grades_ids_or_texts(parse, retrieved, relevant, found):
    parsed = parse(entries({"query": "a gift", "retrieved": retrieved, "relevant": relevant}))
    assert labels(parsed) == found


def test_a_list_that_was_reranked_is_a_ranking_best_first(parse):
    entry = {"query": "a gift", "retrieved": ["d1", "d2"], "reranked": ["d2", "d1"]}
    parsed = parse(entries({**entry, "relevant": ["d1"]}))
    (system,) = parsed.rankings.values()
    (query,) = system.query_ids
    assert parsed.candidates.documents_of(query)[0] == ["d1", "d2"]
    assert system.documents_of(query)[0] == ["d2", "d1"]


@pytest.mark.parametrize("given", [[1], [1, 0]])
def test_grades_that_are_not_one_for_each_retrieved_document_are_refused(parse, found, given):
    good = {"query": "a", "retrieved": ["d1", "d2"], "relevance": [0, 1]}
    other = {"query": "b", "retrieved": ["d1", "d2"], "relevance": given}
    parsed = parse(entries(good, good | {"query": "c"}, other))
    assert len(parsed.qrels) == (6 if len(given) == 2 else 4)
    if len(given) == 1:
        assert found(parsed, "not_paired").count == 1


@pytest.mark.parametrize(
    ("document", "matches"),
    [
        ({"q": {"a": 1, "b": 2, "c": "x"}}, True),
        ({"q": {"a": 1, "b": "x"}}, False),
        ({"q": {"a": True, "b": 1}}, False),
        ({"q": {"a": 1, "label": 1}}, False),
        ({"q": {"a": 1, "b": 1, "label": 1}}, True),
    ],
)
def test_more_than_half_of_ranx_are_numbers_and_less_than_half_names(document, matches):
    assert ranx.matches(document) == matches


@pytest.mark.parametrize(
    ("values", "are"),
    [
        ([1.0, 1.0, 0.0, 0.0], True),
        ([1.0, 1.0, 0.0], False),
        ([2, 1, 0], True),
        ([0.5, 0.5], False),
        (list(range(12)), True),
        (list(range(13)), False),
    ],
)
def test_grades_are_whole_and_few_and_repeat_where_they_have_a_point(values, are):
    table = ranx.read(json.dumps({"q": dict(enumerate(values))}), "x", ReadLimits())
    assert table.format == ("ranx qrels" if are else "ranx run")


DATA = {"queries": {"q1": "a gift"}, "corpus": {"d1": "words", "d2": "more"}}


def test_a_whole_data_set_says_once_what_is_relevant():
    relevant = {"relevant_docs": {"q1": ["d1"]}}
    assert collection.matches({**DATA, **relevant})
    assert not collection.matches({**DATA, **relevant, "qrels": {"q1": ["d2"]}})
    assert not collection.matches(relevant)
    assert not collection.matches({**DATA, "relevant_docs": {"q1": "d1"}})


def test_a_grade_that_is_left_empty_is_none(parse, found):
    data = {**DATA, "relevant_docs": {"q1": {"d1": 1, "d2": ""}}}
    parsed = parse({"x.json": json.dumps(data)})
    assert labels(parsed) == {"words": 1}
    assert found(parsed, "no_label").count == 1


@pytest.mark.parametrize(("label", "read"), [([1], True), ([2, 1], False)])
def test_several_labels_of_one_document_are_none(parse, label, read):
    rows = entries({"query": "a gift", "document": "some words", "label": label})
    if read:
        assert parse(rows).qrels["label"].tolist() == [1]
    else:
        with pytest.raises(FormatError, match="It holds: query, document, label"):
            parse(rows)


def test_metadata_takes_no_value_of_the_entry_away(parse):
    entry = {"query": "a", "document": "b", "label": 1, "lang": "en"}
    parsed = parse(entries({**entry, "metadata": {"lang": "de", "kind": "faq"}}))
    assert parsed.queries.iloc[0].to_dict() == {
        "query_id": "q1",
        "text": "a",
        "lang": "en",
        "metadata lang": "de",
        "kind": "faq",
    }


def test_of_several_lists_in_an_object_the_longest_holds_the_rows(parse):
    rows = [{"query": "a", "document": text, "label": 1} for text in ("b", "c")]
    parsed = parse({"x.json": json.dumps({"authors": [{"name": "n"}], "rows": rows})})
    assert len(parsed.qrels) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"query": "a" "b"}]', "(not readable from line 1, column 16 on)."),
        ('[{"query": "a"\n "b"}]', "(not readable from line 2, column 2 on)."),
    ],
)
def test_a_break_is_told_by_its_line_and_column(parse, text, said):
    with pytest.raises(FormatError) as refused:
        parse({"x.json": text})
    assert f"breaks in the entry that begins here {said} Nothing was read" in str(refused.value)
    assert refused.value.line == 1


def test_where_one_document_is_more_than_a_token_all_are_texts(parse):
    entry = {"query": "a gift", "retrieved": ["two words", "word"], "relevant": ["word"]}
    parsed = parse(entries(entry))
    assert parsed.documents["text"].tolist() == ["two words", "word"]
    tokens = parse(entries({**entry, "retrieved": ["words", "word"]}))
    assert set(tokens.documents["doc_id"]) == {"words", "word"}
    assert tokens.documents["text"].isna().all()


def rank_llm(document: object) -> dict[str, str]:
    """A line of rank_llm's JSON lines for each of two queries."""
    lines = [
        {
            "query": {"text": "a gift", "qid": "31"},
            "candidates": [
                {"docid": "d9", "score": 9.5, "doc": document},
                {"docid": "d1", "score": 8.25, "doc": {"contents": "more words"}},
            ],
        },
        {
            "query": {"text": "a shop", "qid": 32},
            "candidates": [{"docid": "d2", "score": 1.5, "doc": {"text": "hours"}}],
        },
    ]
    return {"x.jsonl": "\n".join(map(json.dumps, lines)), "q.qrels": "31 0 d1 1\n32 0 d2 2\n"}


@pytest.mark.parametrize("name", ["segment", "text", "contents", "content", "body", "passage"])
def test_lines_of_rank_llm_keep_the_ids_texts_and_order(parse, name):
    parsed = parse(rank_llm({name: "some words", "title": "A title", "url": "u"}))

    assert parsed.queries.to_dict("list") == {
        "query_id": ["31", "32"],
        "text": ["a gift", "a shop"],
    }
    rows = parsed.documents.set_index("doc_id")
    assert rows["text"].to_dict() == {"d9": "some words", "d1": "more words", "d2": "hours"}
    assert rows["title"]["d9"] == "A title"
    assert parsed.candidates.documents_of("31")[0] == ["d9", "d1"]
    assert parsed.qrels["doc_id"].tolist() == ["d1", "d2"]


def test_a_document_whose_text_has_no_known_name_is_refused_not_read_as_json(parse, found):
    parsed = parse(rank_llm({"inhalt": "some words", "url": "u"}))

    assert found(parsed, "no_text").examples == ("{'text': 'a gift', 'qid': '31'}",)
    assert not parsed.documents["text"].dropna().str.contains("{", regex=False).any()
