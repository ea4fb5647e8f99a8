"""Several files of one data set: joined by id, each thing settled once and told."""

import json

import pytest

from rankdash.errors import DataError
from rankdash.readers import BaselineNeeded, MappingNeeded, Source, read, sources_from_path

CORPUS = (
    '{"_id": "d1", "title": "Returns", "text": "Bring it back"}\n'
    '{"_id": "d2", "title": "", "text": "Open hours"}\n'
    '{"_id": "d3", "title": "Shipping", "text": "By post", "metadata": {"url": "http://x"}}\n'
)
QUERIES = (
    '{"_id": "1", "text": "return a gift", '
    '"metadata": {"type": ["HOW", "WHAT"], "query": "gift"}}\n'
    '{"_id": "2", "text": "open on sunday", "metadata": {}}\n'
    '{"_id": "9", "text": "asked in training only"}\n'
)
QRELS = "query-id\tcorpus-id\tscore\n1\td1\t2\n1\td2\t0\n2\td2\t1\n"
RUN = "1 Q0 d2 1 3.0 x\n1 Q0 d1 2 2.0 x\n2 Q0 d3 1 1.0 x\n"
RERANKED = "1 Q0 d1 1 0.9 x\n1 Q0 d2 2 0.1 x\n2 Q0 d2 1 0.5 x\n"

BEIR = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "qrels/test.tsv": QRELS}


def assert_beir(parsed):
    assert parsed.queries["query_id"].tolist() == ["1", "2"]
    assert parsed.queries["text"].tolist() == ["return a gift", "open on sunday"]
    assert parsed.queries["type"].tolist() == ["HOW; WHAT", None]
    assert parsed.documents["title"].tolist() == ["Returns", "", "Shipping"]
    assert parsed.documents["text"].tolist() == ["Bring it back", "Open hours", "By post"]
    assert list(parsed.qrels.itertuples(index=False, name=None)) == [
        ("1", "d1", 2.0),
        ("1", "d2", 0.0),
        ("2", "d2", 1.0),
    ]


def test_a_beir_folder(tmp_path):
    (tmp_path / "shop" / "qrels").mkdir(parents=True)
    for name, text in BEIR.items():
        (tmp_path / "shop" / name).write_text(text)

    parsed = read(sources_from_path(tmp_path / "shop"))

    assert_beir(parsed)
    assert parsed.name == "shop"
    assert list(parsed.formats) == sorted(BEIR)


@pytest.mark.parametrize("top", ["", "shop/"])
def test_a_beir_zip(zipped, parse, top):
    packed = zipped({top + name: text.encode() for name, text in BEIR.items()})

    parsed = parse({"shop.zip": packed})

    assert_beir(parsed)
    assert parsed.name == "shop"


@pytest.mark.parametrize(
    "qrels",
    [
        QRELS,
        QRELS.split("\n", 1)[1],
        QRELS.split("\n", 1)[1].replace("\t", ","),
        "1 0 d1 2\n1 0 d2 0\n2 0 d2 1\n",
    ],
    ids=["header", "no header", "commas, no header", "trec"],
)
def test_beir_files_dropped_together_with_any_kind_of_qrels(parse, qrels):
    assert_beir(parse({"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "qrels.tsv": qrels}))


def test_queries_and_corpus_are_told_apart_by_their_ids_and_not_by_their_names(parse):
    without_titles = "\n".join(
        json.dumps({"_id": row["_id"], "text": row["text"]})
        for row in map(json.loads, CORPUS.splitlines())
    )

    parsed = parse({"queries.jsonl": without_titles, "corpus.jsonl": QUERIES, "qrels": QRELS})

    assert parsed.queries["text"].tolist() == ["return a gift", "open on sunday"]
    assert parsed.documents["text"].tolist() == ["Bring it back", "Open hours", "By post"]


def test_numeric_ids_on_both_sides_are_told_apart(parse):
    corpus = "\n".join(json.dumps({"_id": str(i), "text": f"passage {i}"}) for i in range(50))
    queries = "\n".join(json.dumps({"_id": str(i), "text": f"question {i}"}) for i in range(10))
    qrels = "\n".join(f"{i}\t{40 - i}\t1" for i in range(10))

    parsed = parse({"a": corpus, "b": queries, "c": qrels})

    assert parsed.queries["text"].tolist() == [f"question {i}" for i in range(10)]
    assert len(parsed.documents) == 50


def test_tables_with_other_names_and_without_a_header(parse):
    parsed = parse(
        {
            "queries.tsv": "q1\treturn a gift\nq2\topen on sunday\n",
            "collection.tsv": "d1\tBring it back\nd2\tOpen hours\n",
            "qrels": "q1 0 d1 1\nq2 0 d2 1\n",
        }
    )

    assert parsed.queries["text"].tolist() == ["return a gift", "open on sunday"]
    assert parsed.documents["text"].tolist() == ["Bring it back", "Open hours"]


def test_a_table_of_texts_that_nothing_tells_apart_needs_a_person(parse):
    with pytest.raises(MappingNeeded):
        parse({"a": "id,text\n1,x\n", "b": "id,text\n1,y\n"})


@pytest.mark.parametrize("side", ["queries", "documents"])
def test_a_table_of_texts_is_the_side_that_is_missing(parse, side):
    known = {
        "queries": "doc_id,document\nd1,Bring it back\n",
        "documents": "query_id,query\nq1,return a gift\n",
    }[side]

    with_table = parse(
        {"known": known, "table": "id,text\nx1,some words\n", "qrels": "q1 0 d1 1\nx1 0 x1 1\n"}
    )

    found = with_table.queries if side == "queries" else with_table.documents
    key = "query_id" if side == "queries" else "doc_id"
    assert found.set_index(key)["text"].dropna().to_dict()["x1"] == "some words"


def test_queries_as_ids_of_another_file(parse):
    queries = "query_id,query\nalpha,return a gift\nbeta,opening hours\n"
    rows = "query,document,label\nalpha,bring it back,1\nbeta,never on sundays,1\n"

    parsed = parse({"queries": queries, "rows": rows})

    assert parsed.queries["text"].tolist() == ["return a gift", "opening hours"]
    assert parsed.qrels["query_id"].tolist() == ["alpha", "beta"]


def test_one_file_is_a_source_of_its_own_name(tmp_path):
    (tmp_path / "labels.txt").write_text("1 0 d1 1\n")

    (source,) = sources_from_path(tmp_path / "labels.txt")

    assert (source.name, source.origin) == ("labels.txt", "")
    assert read([source]).name == "labels"


def test_queries_with_neither_labels_nor_candidates_are_left_aside_and_counted(parse, found):
    finding = found(parse(BEIR), "idle_queries")

    assert (finding.count, finding.examples) == (1, ("9",))


def test_of_several_splits_test_is_taken_and_told(parse, found):
    splits = {
        **BEIR,
        "qrels/train.tsv": "query-id\tcorpus-id\tscore\n9\td3\t1\n",
        "qrels/dev.tsv": "query-id\tcorpus-id\tscore\n9\td3\t1\n",
    }

    parsed = parse(splits)

    assert_beir(parsed)
    finding = found(parsed, "one_split")
    assert finding.params["taken"] == "qrels/test.tsv"
    assert finding.params["others"] == "qrels/train.tsv, qrels/dev.tsv"


@pytest.mark.parametrize(
    ("better", "worse"),
    [("test", "dev"), ("dev", "validation"), ("validation", "train"), ("eval", "train")],
)
def test_the_better_split_is_taken_whichever_comes_first(parse, found, better, worse):
    for names in ((better, worse), (worse, better)):
        parsed = parse({f"{name}.tsv": f"1 0 {name} 1\n" for name in names})
        assert parsed.qrels["doc_id"].tolist() == [better]
        assert found(parsed, "one_split").count == 1


def test_rows_with_texts_are_no_split_of_the_labels_whatever_their_name(parse, codes):
    head = "query_id,query,doc_id,document,label\n"

    parsed = parse({"test.csv": head + "1,a,d1,one,1\n", "train.csv": head + "2,b,d2,two,1\n"})

    assert parsed.qrels["doc_id"].tolist() == ["d1", "d2"]
    assert "one_split" not in codes(parsed)


def test_labels_in_several_files_that_are_no_splits_are_joined(parse, codes):
    parsed = parse({**BEIR, "more.tsv": "query-id\tcorpus-id\tscore\n9\td3\t1\n"})

    assert len(parsed.qrels) == 4
    assert "one_split" not in codes(parsed)


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (["initial.trec", "rerank_bm25_title.trec"], "initial"),
        (["rerank_minilm.trec", "run_bm25.txt"], "run_bm25"),
        (["a_rerank.trec", "first_stage.trec"], "first_stage"),
        (["monot5.trec", "baseline.trec.gz"], "baseline"),
        (["b.trec", "a.trec"], "b"),
        # The surest name wins.
        (["first_stage.trec", "initial.trec"], "initial"),
        (["candidates.trec", "first_stage.trec"], "first_stage"),
        (["baseline.trec", "candidates.trec"], "candidates"),
        (["retrieved.trec", "baseline.trec"], "baseline"),
        (["bm25.trec", "retrieved.trec"], "retrieved"),
        (["dense.trec", "bm25.trec"], "bm25"),
        # What was reranked is none, whatever it was made from.
        (["bm25_reranked.trec", "bm25.trec"], "bm25"),
        (["bm25_reranked.trec", "dense.trec"], "dense"),
        (["bm25_re-ranked.trec", "minilm_rerank.trec"], "bm25_re-ranked"),
        (["初排_重排.trec", "dense.trec"], "dense"),
    ],
)
def test_which_run_is_the_first_stage(parse, names, first, found):
    parsed = parse({**BEIR, **dict(zip(names, [RUN, RERANKED], strict=True))})

    assert first not in parsed.rankings
    assert len(parsed.rankings) == 1
    assert found(parsed, "first_stage").params["name"] == first
    expected = ["d2", "d1"] if names[0].split(".")[0] == first else ["d1", "d2"]
    assert parsed.candidates.documents_of("1")[0] == expected


@pytest.mark.parametrize(
    ("names", "severity"),
    [
        (["bm25.trec"], "note"),
        (["bm25.trec", "dense.trec"], "note"),
        (["bm25.trec", "bm25_title.trec"], "warning"),
        (["dense.trec", "splade.trec"], "warning"),
        (["dense.trec", "dense_reranked.trec"], "note"),
    ],
)
def test_where_another_run_could_be_the_first_stage_there_is_a_warning(
    parse, names, severity, found
):
    parsed = parse({**BEIR, **dict.fromkeys(names, RUN)})

    finding = found(parsed, "first_stage")
    assert (finding.params["name"], finding.severity) == (names[0].split(".")[0], severity)


OPEN = ["system_a.trec", "system_b.trec", "system_c.trec", "system_d.trec"]


@pytest.mark.parametrize("names", [OPEN, OPEN[:2], ["bm25.trec", "bm25_title.trec"]])
def test_where_no_name_says_which_run_is_the_search_of_today_a_person_is_asked(parse, names):
    files = {**BEIR, **dict.fromkeys(names, RUN)}
    with pytest.raises(BaselineNeeded) as asked:
        parse(files, ask=True)
    assert asked.value.rankings == [name.removesuffix(".trec") for name in names]
    for chosen in asked.value.rankings:
        parsed = parse(files, ask=True, first_stage=chosen)
        assert parsed.candidates_name == chosen
        assert {*parsed.rankings, chosen} == {*asked.value.rankings}


@pytest.mark.parametrize(
    ("names", "called"),
    [
        (["bm25.trec", "dense.trec"], "bm25"),
        (["dense.trec", "dense_reranked.trec"], "dense"),
        (["today.trec"], "today"),
        (["baseline.trec", "new.trec"], "baseline"),
        # These names only say that it is the first stage.
        (["initial.trec", "new.trec"], ""),
        (["first_stage.trec"], ""),
    ],
)
def test_a_run_keeps_the_name_of_its_file_and_nobody_is_asked_where_it_is_clear(
    parse, names, called
):
    parsed = parse({**BEIR, **dict.fromkeys(names, RUN)}, ask=True)
    assert (parsed.candidates_name, parsed.open_choice) == (called, ())


def test_scores_beside_the_rows_have_no_name_of_a_file(parse):
    rows = "query_id,doc_id,label,bm25_score\nq1,d1,1,2\nq1,d2,0,1\n"
    assert parse({"rows.csv": rows}, ask=True).candidates_name == ""


@pytest.mark.parametrize("wanted", ["reranked", "reranked.trec", "reranked.trec.gz"])
def test_the_first_stage_can_be_named(parse, wanted):
    files = {**BEIR, "initial.trec": RUN, "reranked.trec": RERANKED}

    parsed = parse(files, first_stage=wanted)

    assert parsed.candidates.documents_of("1")[0] == ["d1", "d2"]
    assert list(parsed.rankings) == ["initial"]


def test_a_first_stage_inside_a_named_archive(parse, zipped):
    packed = zipped({"x.trec": RERANKED.encode()})

    parsed = parse({**BEIR, "initial.trec": RUN, "runs.zip": packed}, first_stage="runs.zip")

    assert list(parsed.rankings) == ["initial"]


def test_a_first_stage_that_is_not_there_is_refused_with_the_names_there_are(parse):
    with pytest.raises(DataError, match=r"No ranking is called 'dense'.*initial"):
        parse({**BEIR, "initial.trec": RUN}, first_stage="dense")


def test_rankings_only_without_any_text(parse):
    parsed = parse({"qrels": "1 0 d1 1\n", "a.trec": RUN, "b.trec": RERANKED})

    assert parsed.queries["text"].isna().all()
    assert parsed.documents["text"].isna().all()
    assert list(parsed.rankings) == ["b"]


def test_rows_and_a_run_together(parse):
    rows = "query_id,query,doc_id,document,label\n1,gift,d1,Bring it,2\n1,gift,d2,Open,0\n"

    parsed = parse({"rows.csv": rows, "run.trec": RUN})

    assert parsed.candidates.documents_of("1")[0] == ["d2", "d1"]
    assert parsed.documents["doc_id"].tolist() == ["d1", "d2", "d3"]


def test_ids_are_made_from_texts_and_the_same_text_is_the_same_id(parse, found):
    rows = "query,document,label\nred,x,1\nblue,y,0\nred,y,1\n"

    parsed = parse({"a": rows, "b": "query,document,label\ngreen,x,1\nblue,z,1\n"})

    assert dict(zip(parsed.queries["query_id"], parsed.queries["text"], strict=True)) == {
        "q1": "red",
        "q2": "blue",
        "q3": "green",
    }
    assert parsed.documents["doc_id"].tolist() == ["d1", "d2", "d3"]
    assert found(parsed, "made_query_id").examples[0] == "q1: red"


def test_made_ids_never_meet_ids_of_another_file(parse):
    parsed = parse(
        {
            "a": "query_id,query,doc_id,document,label\nq1,own,d1,text,1\nq2,own,d1,text,0\n",
            "b": "query,document,label\nother,words,1\n",
        }
    )

    assert dict(zip(parsed.queries["query_id"], parsed.queries["text"], strict=True)) == {
        "q1": "own",
        "q2": "own",
        "q3": "other",
    }


def test_a_ranking_made_elsewhere_from_made_ids_finds_its_queries_again(parse):
    rows = "query,document,label\nred,x,1\nred,y,0\nblue,y,1\n"

    parsed = parse({"rows": rows, "run": "q1 Q0 d2 1 2.0 x\nq1 Q0 d1 2 1.0 x\nq2 Q0 d2 1 1 x\n"})

    assert parsed.queries["query_id"].tolist() == ["q1", "q2"]
    assert parsed.candidates.documents_of("q1")[0] == ["d2", "d1"]


def test_texts_that_another_file_lists_get_its_ids(parse):
    rows = "query,document,label\nreturn a gift,Bring it back,1\nreturn a gift,New text,0\n"

    parsed = parse({"corpus": CORPUS, "queries.jsonl": QUERIES, "rows": rows, "run": RUN})

    assert set(parsed.qrels.itertuples(index=False, name=None)) == {
        ("1", "d1", 1.0),
        ("1", "d4", 0.0),
    }


def test_a_text_that_is_listed_under_two_ids_gets_the_first(parse):
    queries = "query_id,query\nalpha,a gift\nbeta,a gift\n"

    parsed = parse({"queries": queries, "rows": "query,document,label\na gift,bring it,1\n"})

    assert parsed.qrels["query_id"].tolist() == ["alpha"]


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        (["alpha", "beta", "words"], ["alpha", "beta", "words"]),
        (["alpha", "words"], ["d1", "d2"]),  # Not more than half of them are ids.
        (["alpha", "beta", "alpha one"], ["alpha", "beta", "alpha one"]),
    ],
)
def test_a_column_is_of_ids_where_more_than_half_of_it_are_known(parse, rows, ids):
    corpus = (
        '{"_id": "alpha", "title": "", "text": "alpha one"}\n'
        '{"_id": "beta", "title": "", "text": "2"}'
    )
    lines = "".join(f"gift,{text},1\n" for text in rows)

    parsed = parse({"corpus": corpus, "rows": "query,document,label\n" + lines})

    assert parsed.qrels["doc_id"].tolist() == ids


def test_words_that_are_ids_and_texts_of_another_file_are_texts(parse):
    corpus = (
        '{"_id": "one", "title": "", "text": "two"}\n{"_id": "two", "title": "", "text": "one"}'
    )

    parsed = parse({"corpus": corpus, "rows": "query,document,label\ngift,one,1\n"})

    assert parsed.qrels["doc_id"].tolist() == ["two"]


def test_a_column_of_texts_that_holds_ids_of_another_file_is_read_as_ids(parse, found):
    corpus = (
        '{"_id": "alpha", "title": "", "text": "one"}\n{"_id": "beta", "title": "", "text": "2"}'
    )
    rows = "query,document,label\ngift,alpha,1\ngift,beta,0\n"

    parsed = parse({"corpus": corpus, "rows": rows})

    assert parsed.qrels["doc_id"].tolist() == ["alpha", "beta"]
    assert parsed.documents["text"].tolist() == ["one", "2"]
    assert found(parsed, "texts_are_ids").file == "rows"


@pytest.mark.parametrize(
    ("conflict", "label"), [("highest", 3.0), ("lowest", 0.0), ("mean", 4 / 3)]
)
def test_labels_that_disagree_are_settled_by_the_rule_and_counted(parse, found, conflict, label):
    qrels = "1 0 d1 1\n1 0 d2 1\n1 0 d1 3\n1 0 d1 0\n2 0 d1 1\n"

    parsed = parse({"q.txt": qrels}, conflict=conflict)

    assert parsed.qrels["label"].tolist() == [label, 1.0, 1.0]
    finding = found(parsed, "conflicting_labels")
    assert (finding.count, finding.params["rule"], finding.line) == (1, conflict, 1)
    assert finding.examples == ("1, d1: 1 (q.txt, line 1); 3 (q.txt, line 3); 0 (q.txt, line 4)",)


@pytest.mark.parametrize("labels", [(1, 2), (2, 1), (1, 2, 1), (2, 1, 1), (1, 1, 2)])
def test_labels_that_disagree_are_found_in_whatever_order_they_stand(parse, labels):
    qrels = "".join(f"1 0 d1 {label}\n" for label in labels)

    assert parse({"a": qrels}, conflict="highest").qrels["label"].tolist() == [2.0]
    with pytest.raises(DataError, match="labelled more than once"):
        parse({"a": qrels}, conflict="refuse")


def test_labels_that_disagree_can_be_refused_by_file_and_line(parse):
    with pytest.raises(DataError, match=r"different labels: 1\..*1, d1: 1 .*; 2 ") as refused:
        parse({"a": "1 0 d2 1\n1 0 d1 1\n", "b": "1 0 d1 2\n"}, conflict="refuse")
    assert (refused.value.file, refused.value.line) == ("a", 2)


def test_equal_labels_are_no_conflict_to_refuse(parse):
    parsed = parse({"a": "1 0 d1 1\n1 0 d1 1\n"}, conflict="refuse")

    assert parsed.qrels["label"].tolist() == [1.0]


def test_an_unknown_rule_is_refused(parse):
    with pytest.raises(DataError, match=r"no rule 'newest'.*highest, lowest, mean, refuse"):
        parse({"a": "1 0 d1 1\n"}, conflict="newest")


def test_the_same_label_twice_is_counted_and_kept_once(parse, found, codes):
    parsed = parse({"a": "1 0 d1 1\n1 0 d1 1\n", "b": "1 0 d1 1\n1 0 d2 0\n"})

    assert parsed.qrels["label"].tolist() == [1.0, 0.0]
    assert found(parsed, "duplicate_labels").count == 2
    assert "conflicting_labels" not in codes(parsed)


def test_an_id_with_two_texts_keeps_the_first_and_is_told(parse, found):
    rows = "query_id,query,document,label\n1,red,a text,1\n1,blue,b text,0\n1,green,c text,0\n"

    parsed = parse({"x": rows})

    assert parsed.queries["text"].tolist() == ["red"]
    finding = found(parsed, "texts_differ")
    assert (finding.count, finding.line, finding.examples) == (1, 2, ("1",))


def test_an_id_listed_twice_in_a_corpus_is_refused_when_the_texts_differ(parse, found):
    corpus = CORPUS + '{"_id": "d1", "title": "Returns", "text": "Other"}\n' + CORPUS

    parsed = parse({**BEIR, "corpus.jsonl": corpus})

    assert parsed.documents["text"].tolist() == ["Bring it back", "Open hours", "By post"]
    assert found(parsed, "repeated_id").line == 4
    assert found(parsed, "repeated_rows").count == 3


def test_two_files_with_other_texts_for_an_id_are_told(parse, found):
    other = '{"_id": "d1", "title": "Returns", "text": "Something else"}\n'

    parsed = parse({**BEIR, "more_corpus.jsonl": other})

    assert parsed.documents["text"].iloc[0] == "Bring it back"
    assert found(parsed, "texts_differ").examples == ("d1",)


def test_first_stage_scores_in_two_files_of_rows_are_one_ranking(parse):
    header = "query,document,label,bm25\n"

    parsed = parse({"a": header + "x,one,1,5\n", "b": header + "y,two,1,4\n"})

    assert list(parsed.candidates.query_ids) == ["q1", "q2"]
    assert parsed.rankings == {}


def test_no_files_and_two_files_of_one_name_are_refused(parse):
    with pytest.raises(DataError, match="No files were given"):
        read([])
    with pytest.raises(DataError, match="Two files are called 'a'"):
        read([Source("a", b"1 0 d1 1\n"), Source("a", b"1 0 d2 1\n")])


def test_paths_that_lead_nowhere_are_refused_in_words(tmp_path):
    with pytest.raises(DataError, match="There is no file or folder"):
        sources_from_path(tmp_path / "nothing")
    with pytest.raises(DataError, match="holds no files"):
        sources_from_path(tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        Source.from_path(tmp_path)


BEIR_FILES = {
    "corpus.jsonl": '{"_id": "d1", "text": "one"}\n{"_id": "d2", "text": "two"}',
    "queries.jsonl": '{"_id": "q1", "text": "a"}',
}
LABELS = "q1 0 d1 1\n"
RANKING = "q1 Q0 d1 1 2.5 x\nq1 Q0 d2 2 1.5 x\n"


@pytest.mark.parametrize(
    ("names", "name"),
    [
        (("qrels.tsv", "run.trec"), "My data set"),
        (("test.tsv", "bm25_top100.trec"), "My data set"),
        (("qrels.tsv", "rerank_minilm.trec"), "My data set"),
        (("medquad.qrels", "initial.trec"), "medquad"),
        (("qrels_medquad_test.txt", "run.trec"), "qrels_medquad_test"),
        (("test_qrels_2024.txt", "medquad.trec"), "My data set"),
        (("检索评测.tsv", "run.trec"), "检索评测"),
    ],
)
def test_loose_files_are_called_by_a_telling_name_or_none(parse, names, name):
    labels, ranking = names

    assert parse({**BEIR_FILES, labels: LABELS, ranking: RANKING}).name == name


def test_the_name_of_the_labels_goes_before_that_of_the_texts(parse):
    texts = {
        "clinic.jsonl": BEIR_FILES["corpus.jsonl"],
        "queries.jsonl": BEIR_FILES["queries.jsonl"],
    }

    assert parse({**texts, "medquad.qrels": LABELS}).name == "medquad"
    assert parse({**texts, "qrels.tsv": LABELS}).name == "clinic"


def test_of_several_archives_none_is_the_data_set(parse, zipped):
    """One gives the texts, the other the labels, which say what it is."""
    texts = zipped({name: BEIR_FILES[name].encode() for name in ("corpus.jsonl", "queries.jsonl")})
    labels = LABELS.encode()
    assert parse({"a.zip": texts, "b.zip": zipped({"medquad.qrels": labels})}).name == "medquad"
    assert parse({"clinic.zip": texts, "b.zip": zipped({"qrels": labels})}).name == "clinic"


def test_two_rankings_of_one_stem_keep_both_their_names(parse):
    parsed = parse({"q": LABELS, "initial.trec": RANKING, "a.trec": RANKING, "a.txt": RANKING})

    assert set(parsed.rankings) == {"a", "a.txt"}


def test_where_no_query_is_labelled_or_ranked_none_is_left_aside(parse, codes):
    parsed = parse(BEIR_FILES)

    assert parsed.queries["query_id"].tolist() == ["q1"]
    assert "idle_queries" not in codes(parsed)


def test_the_folder_in_front_of_all_names_is_the_name(parse):
    files = {f"shop/{name}": data for name, data in BEIR_FILES.items()}

    assert parse({**files, "shop/qrels/test.tsv": LABELS}).name == "shop"


def test_another_first_stage_is_offered_in_words_that_can_be_followed(parse, found):
    parsed = parse({"q": LABELS, "initial.trec": RANKING, "other.trec": RANKING})

    remedy = found(parsed, "first_stage").remedy
    assert remedy == (
        "To start from another ranking, load the files again and choose it under First-stage "
        "ranking; on the command line: rerank --first-stage NAME."
    )


@pytest.mark.parametrize(
    ("pairs", "systems"),
    [
        ("q2,d1 q3,d1", 1),  # Of four lists two are of q2, and d1 is in both.
        ("q2,d1 q3,d1 q4,d1", 0),
        ("q2,d9", 0),  # The rest of a list that was cut.
    ],
)
def test_two_files_of_first_stage_scores_are_two_systems_where_they_rank_the_same(
    parse, pairs, systems
):
    """Half of the lists of the same queries, and a document in both lists of one."""

    def rows(listed):
        cells = (pair.replace(",", f",text,{at},").split(",") for at, pair in enumerate(listed))
        lines = (f"{query},{text},{doc},{score},1.5" for query, text, score, doc in cells)
        return "query_id,query,doc_id,label,first_stage_score\n" + "\n".join(lines)

    parsed = parse({"a.csv": rows(["q1,d1", "q2,d1"]), "b.csv": rows(pairs.split())})

    assert len(parsed.rankings) == systems
    assert len(parsed.candidates.query_ids) == (2 if systems else 2 + pairs.count("q") - 1)


@pytest.mark.parametrize(
    ("query", "document", "starts"),
    [("query", "document", False), ("query", "doc_id", True), ("query_id", "document", True)],
)
def test_a_system_is_started_from_where_texts_to_make_a_first_stage_of_are_not_there(
    parse, query, document, starts
):
    text = (
        f"{query},{document},label,pred_scores_a\nsome words,a text,1,2.5\nsome words,b c,0,1.5\n"
    )
    parsed = parse({"x.csv": text})
    assert (parsed.candidates is not None, len(parsed.rankings)) == (starts, 0 if starts else 1)


def test_a_document_that_only_a_pair_speaks_of_is_listed_without_a_text(parse):
    files = {
        "queries.csv": "query_id,query\nq1,some words\n",
        "corpus.csv": "doc_id,document\nd1,a text\n",
        "pairs.csv": "query_id,doc_id\nq1,d1\nq1,d9\n",
        "qrels": "q1 0 d1 1\n",
    }
    parsed = parse(files)
    assert parsed.documents["doc_id"].tolist() == ["d1", "d9"]
    assert parsed.documents["text"].isna().tolist() == [False, True]
    assert parsed.pairs.to_numpy().tolist() == [["q1", "d1"], ["q1", "d9"]]


@pytest.mark.parametrize(("wanted", "name"), [("b.zip", "inside"), ("b.run", "b"), ("b", "b")])
def test_the_name_of_an_archive_is_no_name_of_a_file_beside_it(parse, found, zipped, wanted, name):
    files = {"q": LABELS, "b.trec": RANKING, "b.zip": zipped({"inside.trec": RANKING.encode()})}
    assert found(parse(files, first_stage=wanted), "first_stage").params["name"] == name


def test_where_there_is_one_ranking_nobody_is_told_how_to_choose_another(parse, found):
    alone = found(parse({"q": LABELS, "initial.trec": RANKING}), "first_stage")
    assert (alone.text, alone.remedy) == ("initial is the first-stage ranking.", "")
    two = found(parse({"q": LABELS, "initial.trec": RANKING, "b.trec": RANKING}), "first_stage")
    assert two.remedy.startswith("To start from another ranking")


@pytest.mark.parametrize(
    ("names", "chosen", "severity"),
    [
        (("first.csv", "other.csv"), "first", "note"),
        (("other.csv", "first.csv"), "first", "note"),
        (("a.csv", "b.csv"), "a", "warning"),
    ],
)
def test_of_two_first_stages_beside_labels_the_one_called_so_is_taken(
    parse, found, names, chosen, severity
):
    text = "query_id,query,doc_id,label,first_stage_score\nq1,text,d1,1,1.5\nq1,text,d2,0,1.2\n"
    note = found(parse(dict.fromkeys(names, text)), "first_stage")
    assert (note.params["name"], note.severity) == (chosen, severity)


ROWS = "query_id,query,doc_id,document,label,score\nq1,gift,d1,a,1,2\nq1,gift,d2,b,0,1\n"


@pytest.mark.parametrize(
    ("columns", "values", "systems"),
    [
        ("cohere_score,jina_score", "1,7 3,5", {"two/cohere_score": "d2", "two/jina_score": "d1"}),
        ("cohere,jina", "0.1,0.7 0.3,0.5", {"two/cohere": "d2", "two/jina": "d1"}),
        ("cohere_score", "1 3", {"two": "d2"}),
        ("cohere", "0.1 0.3", {"two": "d2"}),
        ("pred_scores_a,jina_score", "1,7 3,5", {"two": "d2"}),
        ("page,year", "1,2024 2,2025", {}),
        ("cohere_score", "high low", {}),
    ],
)
def test_a_file_of_ids_and_scores_is_a_system_for_each_column(parse, columns, values, systems):
    cells = zip(("d1", "d2"), values.split(), strict=True)
    scores = f"query_id,doc_id,{columns}\n" + "".join(f"q1,{doc},{of}\n" for doc, of in cells)

    found = parse({"rows.csv": ROWS, "two.csv": scores}).rankings

    assert {name: each.documents_of("q1")[0][0] for name, each in found.items()} == systems


@pytest.mark.parametrize(("run", "told"), [("q1", False), ("q9", True)])
def test_ids_that_one_of_several_files_speaks_of_are_no_strangers(parse, codes, run, told):
    files = {
        "queries.csv": "query_id,query\nq1,return a gift\n",
        "qrels": "q9 0 d1 1\n",
        "run": f"{run} Q0 d1 1 2.5 x\n",
    }
    assert ("ids_match_nothing" in codes(parse(files))) == told


@pytest.mark.parametrize(("name", "labels"), [("qrels/test.tsv", 3), ("qrels/grades.tsv", 1)])
def test_whole_scores_of_a_split_are_labels_also_beside_labels(parse, name, labels):
    scored = "query_id\tdoc_id\tscore\nq1\td2\t2\nq1\td3\t1\n"

    assert len(parse({"surely": "q1 0 d1 1\n", name: scored}).qrels) == labels


@pytest.mark.parametrize("first", ["how to return", "q1"])
def test_without_a_header_two_ids_and_a_number_are_labels_and_a_text_is_asked_about(parse, first):
    rows = {"x": f"{first},d1,1\n{first},d2,0\n"}
    if first == "q1":
        assert parse(rows).qrels["label"].tolist() == [1, 0]
    else:
        with pytest.raises(MappingNeeded):
            parse(rows)


def test_without_a_header_a_label_that_cannot_be_read_is_refused_by_line(parse, found):
    parsed = parse({"x": "1,11,1\n1,12,x\n2,13,0\n"})

    assert parsed.qrels["doc_id"].tolist() == ["11", "13"]
    assert found(parsed, "bad_label").line == 2


@pytest.mark.parametrize("labelled", [True, False])
def test_an_id_is_made_for_a_text_where_labels_give_the_text_too(parse, labelled):
    """The labels of q1 have no text; whether it is the text that becomes q1 nothing says."""
    files = {"qrels": "q1 0 d1 1\n", "run.csv": "query,doc_id,score\nreturn a gift,d1,2.5\n"}
    if labelled:
        rows = "query,document,label\nreturn a gift,Bring it back,1\n"
        parsed = parse({"rows.csv": rows, **files})
        assert parsed.queries["query_id"].tolist() == ["q1"]
    else:
        with pytest.raises(DataError, match="such as 'q1'"):
            parse(files)


def test_a_pair_is_a_repeat_or_a_contradiction_and_never_both(parse, found):
    labels = "q1 0 d1 1\nq1 0 d2 1\nq1 0 d1 1\nq1 0 d2 0\nq1 0 d1 1\n"
    parsed = parse({"qrels": labels, "run.trec": RANKING})
    same, other = found(parsed, "duplicate_labels"), found(parsed, "conflicting_labels")
    assert (same.count, same.line, same.examples) == (2, 3, (
        "q1, d1: 1 (qrels, line 3)", "q1, d1: 1 (qrels, line 5)"
    ))  # fmt: skip
    assert other.examples == ("q1, d2: 1 (qrels, line 2); 0 (qrels, line 4)",)
