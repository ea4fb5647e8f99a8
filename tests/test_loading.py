"""`load`: from files to a data set, on real data and on every trap met in real files."""

import numpy as np
import pytest

from rankdash.analysis.labels.check import check
from rankdash.dataset import Dataset
from rankdash.errors import DataError, FormatError, SettingError
from rankdash.loading import examine, load
from rankdash.metrics import Conventions, evaluate, judge, parse_measure
from rankdash.readers import Source, sources_from_path
from tests.sets import SETS


def loaded(contents: dict[str, str | bytes], **options: object):
    return load(
        [
            Source(name, data.encode() if isinstance(data, str) else data)
            for name, data in contents.items()
        ],
        **options,
    )


def codes(report) -> set[str]:
    return {finding.code for finding in report.findings}


def finding(report, code: str):
    (found,) = [finding for finding in report.findings if finding.code == code]
    return found


def runs_of(queries: int, documents: int = 10, prefix: str = "") -> str:
    """A run in which document i of each query has rank i."""
    return "".join(
        f"{prefix}{q} Q0 d{q}-{i} {i} {documents - i}.5 x\n"
        for q in range(1, queries + 1)
        for i in range(1, documents + 1)
    )


def qrels_of(queries: int, label_of: dict[int, object], prefix: str = "") -> str:
    """Labels of document i of each query."""
    return "".join(
        f"{prefix}{q} 0 d{q}-{i} {label}\n"
        for q in range(1, queries + 1)
        for i, label in label_of.items()
    )


# Set → queries, documents, labels, its own columns, the first document of the first query, its
# rerankings, warnings, how many pairs have each label, and the mean NDCG@10 of the first stage by
# the conventions of trec_eval.
KNOWN = {
    "helpcentre": (
        *((168, 435, 4421), ["type"], "ord-013", [], ["no_relevant"]),
        *([(0, 3782), (1, 333), (2, 151), (3, 155)], 0.6506),
    ),
    "medquad": (
        *((60, 2523, 377), ["focus_category", "type"], "GHR_0000738_Sec1", ["rerank_minilm"]),
        *(["mostly_unjudged"], [(0, 161), (1, 111), (2, 55), (3, 50)], 0.3119),
    ),
    "cmrc_zh": (
        *((200, 6562, 201), [], "DEV_0-p2", ["rerank_bm25_title", "rerank_minilm"]),
        *([], [(1, 201)], 0.7869),
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_a_whole_set_loads_from_its_folder(name):
    sizes, columns, first, runs, warnings, labels, ndcg = KNOWN[name]
    result = load(sources_from_path(SETS[name]))
    data, report = result.dataset, result.report

    assert (data.name, data.first_stage) == (name, "given")
    assert (len(data.queries), len(data.documents), len(data.qrels)) == sizes
    assert sorted(data.segments) == columns
    assert data.candidates.documents_of(data.queries["query_id"].iloc[0])[0][0] == first
    assert [(run.name, run.reranker) for run in result.runs] == [
        (run, "precomputed") for run in runs
    ]
    assert report.errors == ()
    assert [warning.code for warning in report.warnings] == warnings
    assert [(bar.low, bar.count) for bar in report.label_histogram] == labels
    papers = [each.name for each in SETS[name].iterdir() if each.suffix in (".md", ".txt")]
    assert sorted(f.file for f in report.notes if f.code == "paper") == sorted(papers)

    conventions = Conventions.trec_eval()
    judged = judge(data.candidates, data.qrels, conventions)
    evaluation = evaluate(judged, [parse_measure("ndcg@10")], conventions)
    assert evaluation.mean("ndcg@10") == pytest.approx(ndcg, abs=0.0001)


@pytest.mark.parametrize("name", SETS)
def test_the_same_folder_read_twice_is_the_same_data_set_and_the_same_runs(name):
    first, second = (load(sources_from_path(SETS[name])) for _ in range(2))

    assert first.dataset.id == second.dataset.id
    assert [run.id for run in first.runs] == [run.id for run in second.runs]


def test_trap_labels_whose_1_means_best():
    labels = {1: 1, 2: 1, 3: 2, 5: 3, 8: 4, 10: 4}

    report = loaded({"q": qrels_of(8, labels), "run": runs_of(8)}).report

    assert "1 seems to be the best grade" in finding(report, "label_direction").text
    assert finding(report, "label_direction").severity == "warning"
    turned = {rank: 5 - label for rank, label in labels.items()}
    assert "label_direction" not in codes(
        loaded({"q": qrels_of(8, turned), "run": runs_of(8)}).report
    )


def test_trap_grades_from_1_to_4_make_everything_relevant():
    report = loaded({"q": qrels_of(8, {1: 4, 5: 2, 9: 1}), "run": runs_of(8)}).report

    assert finding(report, "all_relevant").text == (
        "The lowest label is 1, so every labelled document counts as relevant for metrics with a "
        "threshold of 1."
    )


def test_trap_one_negative_label_a_query():
    result = loaded({"q": qrels_of(3, {1: 2, 2: -1, 3: 0}), "run": runs_of(3)})

    assert result.dataset.qrels["label"].min() == -1.0
    assert finding(result.report, "negative_labels").count == 3


def test_trap_topic_numbers_that_match_nothing():
    with pytest.raises(DataError) as refused:
        loaded({"qrels": qrels_of(3, {1: 1}, prefix="q"), "run": runs_of(3)})

    assert str(refused.value) == (
        "Queries of the ranking first stage that have a label: none of 3. The ranking has '1', the "
        "labels have 'q1'. They differ only in what stands before the number: write the ids alike "
        "in all files."
    )


def test_trap_topic_numbers_that_match_the_wrong_query():
    shifted = "".join(f"{q + 1} 0 d{q}-1 1\n" for q in range(1, 6))

    report = loaded({"qrels": shifted, "run": runs_of(6)}).report

    assert finding(report, "pairs_match_nothing").remedy == (
        "Check the query numbers: they may be shifted in one of the files."
    )


def test_trap_70_percent_of_the_scores_tied():
    rows = [f"1 Q0 d{i:02} {i} {1.0 if i > 3 else 9 - i} x" for i in range(1, 11)]

    result = loaded({"q": "1 0 d01 1\n", "run": "\n".join(rows)})

    ties = finding(result.report, "ties")
    assert (ties.severity, ties.params["rows"], ties.params["all"]) == ("warning", 7, 10)
    assert result.dataset.candidates.documents_of("1")[0][:4] == ["d01", "d02", "d03", "d10"]


def test_trap_a_pair_labelled_twice_with_different_grades():
    qrels = "1 0 d1-1 1\n1 0 d1-1 3\n"

    assert loaded({"q": qrels, "run": runs_of(1)}).dataset.qrels["label"].tolist() == [3.0]
    lowest = loaded({"q": qrels, "run": runs_of(1)}, conflict="lowest")
    assert lowest.dataset.qrels["label"].tolist() == [1.0]
    assert finding(lowest.report, "conflicting_labels").params["rule"] == "lowest"
    with pytest.raises(DataError, match="different labels"):
        loaded({"q": qrels, "run": runs_of(1)}, conflict="refuse")


def test_trap_queries_with_no_relevant_document():
    qrels = qrels_of(2, {1: 1}) + "3 0 d3-1 0\n3 0 d3-2 -1\n"

    report = loaded({"q": qrels, "run": runs_of(3)}).report

    found = finding(report, "no_relevant")
    assert (found.count, found.examples) == (1, ("3",))


def test_trap_runs_lacking_judged_queries_and_holding_unjudged_ones():
    result = loaded({"q": qrels_of(5, {1: 1}), "run": runs_of(7).replace("\n3 ", "\nx3 ")})

    report = result.report
    assert finding(report, "labelled_not_ranked").params["labelled_example"] == "3"
    assert finding(report, "ranked_not_labelled").count == 3
    assert finding(report, "queries_without_candidates").examples == ("3",)
    assert report.candidates_per_query.low == 0
    assert len(result.dataset.queries) == 8


def test_trap_lists_shorter_than_k():
    report = loaded({"q": qrels_of(2, {1: 1, 2: 0}), "run": runs_of(2, documents=3)}).report

    assert report.judged_at_10 == pytest.approx(2 / 3)
    assert report.candidates_per_query.high == 3


def test_trap_lists_stored_worst_first():
    lines = runs_of(1).splitlines()

    result = loaded({"q": "1 0 d1-1 1\n", "run": "\n".join(reversed(lines))})

    assert result.dataset.candidates.documents_of("1")[0][0] == "d1-1"


def test_trap_tab_separated_files_named_csv():
    result = loaded({"set.csv": "query\tdocument\tlabel\na, b\tc, d\t1\n"})

    assert result.dataset.queries["text"].tolist() == ["a, b"]
    assert result.dataset.name == "set"


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["Exact", "Partial", "Irrelevant"], [2, 1, 0]),
        (["E", "S", "C", "I"], [3, 2, 1, 0]),
        (["4-Excellent", "2-Related"], [4, 2]),
        (["100", "10", "1", "0"], [100, 10, 1, 0]),
    ],
)
def test_trap_labels_as_words_or_as_powers_of_ten(words, values):
    rows = "".join(f"query,text {i},{word}\n" for i, word in enumerate(words))

    result = loaded({"x": "query,document,label\n" + rows})

    assert result.dataset.qrels["label"].tolist() == values


@pytest.mark.parametrize(
    "content",
    [
        "query_id,doc_id,label\n007,0012,1\n7,12,0\n",
        '[{"query_id": "007", "doc_id": "0012", "label": 1}, '
        '{"query_id": 7, "doc_id": 12, "label": 0}]',
        "007 0 0012 1\n7 0 12 0\n",
    ],
)
def test_trap_ids_that_are_digits_stay_strings(content):
    data = loaded({"x": content}, retrieval="rows").dataset

    assert data.queries["query_id"].tolist() == ["007", "7"]
    assert data.documents["doc_id"].tolist() == ["0012", "12"]


def test_trap_commas_quotes_and_line_breaks_inside_csv_fields():
    text = 'query,document,label\n"a, ""b""\nc","d\r\n,e",1\n'

    data = loaded({"x": text}).dataset

    assert data.queries["text"].tolist() == ['a, "b"\nc']
    assert data.documents["text"].tolist() == ["d\r\n,e"]


def test_trap_a_byte_order_mark():
    data = loaded({"x": b"\xef\xbb\xbfquery,document,label\na,b,1\n"}).dataset

    assert data.queries["text"].tolist() == ["a"]


@pytest.mark.parametrize("encoding", ["gbk", "gb18030"])
def test_trap_chinese_in_gbk_and_gb18030(encoding):
    text = "查询,文档,相关性\n怎么退货,把商品寄回来,1\n怎么退货,营业时间是九点,0\n"

    data = loaded({"x": text.encode(encoding)}).dataset

    assert data.queries["text"].tolist() == ["怎么退货"]


def test_trap_half_a_label_is_not_floored():
    result = loaded({"x": "query,document,label\na,b,0.5\na,c,0\n"})

    assert result.dataset.qrels["label"].tolist() == [0.5, 0.0]
    assert "none_relevant" in codes(result.report)
    assert finding(result.report, "fractional_labels").count == 1


def test_a_missing_first_stage_is_made_by_bm25_over_each_querys_own_documents():
    rows = (
        "query,document,label\n"
        "return a gift,We are open on sunday,0\n"
        "return a gift,How to return a gift you got,2\n"
        "opening hours,We are open on sunday,1\n"
    )

    result = loaded({"x": rows})

    assert result.dataset.first_stage == "bm25"
    assert result.dataset.candidates.documents_of("q1")[0] == ["d2", "d1"]
    assert result.dataset.candidates.documents_of("q2")[0] == ["d1"]
    assert "BM25" in finding(result.report, "made_first_stage").text


CORPUS = {
    "c": '{"_id": "a", "title": "Gift", "text": "return"}\n{"_id": "b", "title": "", "text": "x"}\n'
    '{"_id": "c", "title": "", "text": "a gift of a gift"}',
    "q": '{"_id": "1", "text": "gift"}',
    "qrels": "1\tb\t1\n1\ta\t0\n",
}


def test_beside_a_corpus_bm25_retrieves_from_all_documents():
    result = loaded(CORPUS)

    assert result.dataset.first_stage == "corpus-bm25"
    assert set(result.dataset.candidates.documents_of("1")[0]) == {"a", "c"}
    told = finding(result.report, "made_first_stage")
    # What shares no word with the query is not found.
    assert (told.severity, told.params) == ("warning", {"depth": 2, "documents": 3})
    assert "BM25 retrieved up to 2 of all 3 documents for each query." in told.text
    one = loaded(CORPUS, retrieved=1)
    assert finding(one.report, "made_first_stage").params == {"depth": 1, "documents": 3}
    only = one.dataset.candidates
    assert only.documents_of("1")[0] == result.dataset.candidates.documents_of("1")[0][:1]


def test_bm25_orders_the_labelled_documents_of_a_corpus_where_asked_to():
    result = loaded(CORPUS, retrieval="listed")

    assert result.dataset.first_stage == "bm25"
    assert result.dataset.candidates.documents_of("1")[0] == ["a", "b"]
    assert "that they list for each query" in finding(result.report, "made_first_stage").text


@pytest.mark.parametrize(
    ("labels", "more", "made"),
    [
        # Good and bad documents are a query's candidates; good ones alone, answers among others.
        ([1, 0], {}, ("bm25", ["1", "2"])),
        ([1, 1], {}, ("corpus-bm25", ["1", "2", "3"])),
        ([1, 0], {"corpus": "doc_id,document\n9,gift\n"}, ("corpus-bm25", ["9", "1", "2", "3"])),
    ],
)
def test_rows_are_candidates_where_they_list_bad_documents_too_and_no_corpus_is_beside(
    labels, more, made
):
    lines = [f"q,gift,1,gift one two,{labels[0]}", f"q,gift,2,gift one two three,{labels[1]}"]
    lines += ["r,two,3,gift one two three four,1"]
    rows = "\n".join(["query_id,query,doc_id,document,label", *lines])

    data = loaded({"rows": rows, **more}).dataset

    assert (data.first_stage, data.candidates.documents_of("q")[0]) == made


def test_where_no_query_shares_a_word_with_any_document_the_listed_ones_are_left():
    other = CORPUS | {"q": '{"_id": "1", "text": "cadeau"}'}

    assert loaded(other).dataset.first_stage == "bm25"
    assert loaded(other).dataset.candidates.documents_of("1")[0] == ["b", "a"]


LABELS = "query_id,doc_id,label\n1,d3,1\n1,d1,0\n1,d2,0\n"


def test_the_order_of_the_rows_is_a_first_stage_only_where_asked_for():
    with pytest.raises(DataError, match=r"neither a first-stage ranking nor texts .*--retrieval"):
        loaded({"x": LABELS})

    result = loaded({"x": LABELS}, retrieval="rows")

    assert result.dataset.first_stage == "rows"
    assert result.dataset.candidates.documents_of("1")[0] == ["d3", "d1", "d2"]
    assert finding(result.report, "order_of_the_file").severity == "warning"


@pytest.mark.parametrize("texts", [False, True])
def test_a_score_of_a_reranker_is_the_first_stage_only_where_none_can_be_made(texts):
    rows = [{"query_id": "1", "doc_id": f"d{d}", "label": d, "rerank_score": 9 - d} for d in (0, 1)]
    if texts:
        rows = [row | {"query": "gift", "document": f"gift {row['doc_id']}"} for row in rows]
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]

    result = loaded({"x.csv": "\n".join(lines)})

    if texts:
        assert result.dataset.first_stage == "bm25"
        assert [run.name for run in result.runs] == ["x"]
    else:
        assert result.dataset.first_stage == "given" and not result.runs
        assert result.dataset.candidates.documents_of("1")[0] == ["d0", "d1"]
        assert finding(result.report, "first_stage").text == "x is the first-stage ranking."


def test_without_a_first_stage_the_check_report_is_still_whole():
    report = examine([Source("x", LABELS.encode())]).report

    assert [error.code for error in report.errors] == ["no_first_stage"]
    assert report.labels == 3


@pytest.mark.parametrize("how", ["bm25", "listed"])
def test_nothing_is_retrieved_where_there_are_no_texts(how):
    with pytest.raises(DataError, match="neither a first-stage ranking nor texts"):
        loaded({"x": LABELS}, retrieval=how)


def test_no_first_stage_is_made_beside_one_that_is_given():
    files = {"q": qrels_of(2, {1: 1}), "run": runs_of(2)}

    with pytest.raises(DataError, match="give a first-stage ranking, so none is made"):
        loaded(files, retrieval="rows")


def test_a_query_gets_at_least_one_document():
    with pytest.raises(SettingError, match="At least 1 document"):
        loaded(CORPUS, retrieved=0)


def test_rankings_only():
    files = {"q": qrels_of(2, {1: 1}), "a.trec": runs_of(2), "b.trec": runs_of(2)}

    result = loaded(files, name="mine")

    assert result.dataset.name == "mine"
    assert [run.name for run in result.runs] == ["b"]
    assert result.runs[0].dataset_id == result.dataset.id
    assert "no_texts" in codes(result.report)


MIXED_UP = "".join(
    f"{q} 0 d{q}-{i} {label}\n"
    for q, i, label in [(1, 9, 3), (7, 1, 0), (2, 3, 0.5), (1, 1, 1), (2, 44, -1), (5, 2, 2)]
)


@pytest.mark.parametrize(
    "files",
    [
        {"q": qrels_of(9, {1: 3, 4: 1, 9: 0}), "a.trec": runs_of(9)},
        # The best label is the lowest; one query has one grade, another two labels below 0.
        {
            "q": qrels_of(9, {1: 1, 2: 1, 5: 2, 9: 3}) + "10 0 d10-2 1\n1 0 d1-7 -1\n",
            "a.trec": runs_of(11),
            "b.trec": runs_of(7, documents=14),
        },
        {"q": MIXED_UP, "a.trec": runs_of(3), "b.trec": runs_of(6, documents=2)},
        {"q": qrels_of(3, {1: 1}, prefix="q"), "a.trec": runs_of(3)},
        {"q": qrels_of(3, {77: 1}), "a.trec": runs_of(3)},
        {"a.trec": runs_of(3), "b.trec": runs_of(4)},
    ],
)
def test_labels_and_rankings_alone_are_checked_without_tables_as_with_them(files, monkeypatch):
    made = []
    of_labels = Dataset.of_labels

    def noted(name, labels, candidates, make, **also):
        return of_labels(name, labels, candidates, lambda: made.append(name) or make(), **also)

    monkeypatch.setattr(Dataset, "of_labels", noted)
    result = examine([Source(name, text.encode()) for name, text in files.items()])
    data = result.dataset
    assert made == []

    with_tables = Dataset("same", data.queries, data.documents, data.qrels, data.candidates)
    assert made == [data.name]
    of_reading = [each for each in result.report.findings if each.file]
    again = check(with_tables, of_reading, result.rankings)

    assert again.to_json() == result.report.to_json()
    assert with_tables == data


def test_files_without_labels_open_with_a_note():
    report = examine([Source("run", runs_of(2).encode())]).report

    assert not report.errors
    assert "no_labels" in [note.code for note in report.notes]
    assert loaded({"run": runs_of(2)}).dataset.labelled_queries == 0


def test_queries_and_documents_that_nothing_joins_are_refused():
    files = {"c": '{"_id": "1", "title": "", "text": "a"}', "q": "query_id,query\n1,b\n"}

    with pytest.raises(DataError, match="give no query any document"):
        loaded(files)


def test_a_precomputed_ranking_of_other_documents_is_refused_by_name():
    files = {"q": qrels_of(2, {1: 1}), "initial": runs_of(2), "other": runs_of(2).replace("d", "D")}

    with pytest.raises(
        DataError, match="Documents of the ranking other that have a label: none of"
    ) as refused:
        loaded(files)
    assert "upper and lower case" in refused.value.remedy


def test_rows_without_ids_beside_a_ranking_of_ids_are_refused_with_what_is_missing():
    rows = "query,document,label\nreturn a gift,bring it back,1\n"

    with pytest.raises(DataError, match="that have a label: none of 3") as refused:
        loaded({"rows.csv": rows, "run": runs_of(3)})
    assert "add columns query_id and doc_id" in refused.value.remedy


def test_one_broken_file_among_good_ones_keeps_nothing():
    with pytest.raises(FormatError) as refused:
        loaded({"q": qrels_of(2, {1: 1}), "run": runs_of(2), "docs": '{"_id": "d1-1", "text": "x'})
    assert refused.value.file == "docs"


def test_scores_are_kept_to_the_last_digit():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=50)
    run = "".join(f"1 Q0 d{i} 1 {score!r} x\n" for i, score in enumerate(scores.tolist()))

    data = loaded({"q": "1 0 d1 1\n", "run": run}).dataset

    assert data.candidates.scores.tolist() == sorted(scores.tolist(), reverse=True)


def test_the_order_of_the_file_says_nothing_about_the_direction_of_labels():
    rows = "".join(f"q{q} 0 d{q}-{i} {i // 2}\n" for q in range(9) for i in range(6))

    report = loaded({"qrels": rows}, retrieval="rows").report

    assert "order_of_the_file" in codes(report)
    assert "label_direction" not in codes(report)


def test_ties_of_the_order_that_rankdash_made_ask_nothing_of_the_user():
    rows = ["query,document,label", "gift,same text,1", "gift,other words,0"]

    result = loaded({"x.csv": "\n".join(rows)})

    assert result.dataset.first_stage == "bm25"
    ties = finding(result.report, "ties")
    assert (ties.severity, ties.remedy) == ("note", "")
