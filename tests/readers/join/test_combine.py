"""Several files of one data set: joined by id, with each conflict resolved once and reported."""

import json

import pytest

from rankdash.core.base.errors import DataError
from rankdash.core.readers import Source, read, sources_from_path
from tests.readers.reading import parse, shown, zipped
from tests.results import results

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
BARE = QRELS.split("\n", 1)[1]
RUN = "1 Q0 d2 1 3.0 x\n1 Q0 d1 2 2.0 x\n2 Q0 d3 1 1.0 x\n"
RERANKED = "1 Q0 d1 1 0.9 x\n1 Q0 d2 2 0.1 x\n2 Q0 d2 1 0.5 x\n"
BEIR = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "qrels/test.tsv": QRELS}
TEXTS = {name: BEIR[name] for name in ("corpus.jsonl", "queries.jsonl")}
OTHER_SPLIT = "query-id\tcorpus-id\tscore\n9\td3\t1\n"
TEXT_ROWS = "query_id,query,doc_id,document,label\n"
LABELS = "q1 0 d1 1\n"
RANKING = "q1 Q0 d1 1 2.5 x\nq1 Q0 d2 2 1.5 x\n"
TWO = (
    '{"_id": "alpha", "title": "", "text": "alpha one"}\n{"_id": "beta", "title": "", "text": "2"}'
)
ROWS = "query_id,query,doc_id,document,label,score\nq1,gift,d1,a,1,2\nq1,gift,d2,b,0,1\n"


@pytest.mark.parametrize("top", ["", "shop/"])
def test_a_folder_and_a_zip_are_read_as_files_dropped_together(tmp_path, top):
    (tmp_path / "shop" / "qrels").mkdir(parents=True)
    for name, text in BEIR.items():
        (tmp_path / "shop" / name).write_text(text)
    packed = zipped({top + name: text.encode() for name, text in BEIR.items()})
    dropped = parse(BEIR)
    for parsed in (read(sources_from_path(tmp_path / "shop")), parse({"shop.zip": packed})):
        for table in ("queries", "documents", "qrels", "pairs"):
            assert getattr(parsed, table).equals(getattr(dropped, table))
        assert parsed.name == "shop"
        assert len(parsed.formats) == 3


def test_files_are_joined_by_their_ids(approved):
    untitled = "\n".join(
        json.dumps({"_id": row["_id"], "text": row["text"]})
        for row in map(json.loads, CORPUS.splitlines())
    )
    side = {"table": "id,text\nx1,some words\n", "qrels": "q1 0 d1 1\nx1 0 x1 1\n"}
    run = "query,doc_id,score\nreturn a gift,d1,2.5\n"
    cases = {
        "BEIR: labels below a header": BEIR,
        "BEIR: labels without one": {**TEXTS, "qrels.tsv": BARE},
        "queries and corpus are told apart by ids, not by names": {
            "queries.jsonl": untitled, "corpus.jsonl": QUERIES, "qrels": QRELS
        },
        "ids that are numbers on both sides are told apart": {
            "a": "\n".join(f'{{"_id": "{i}", "text": "passage {i}"}}' for i in range(9)),
            "b": "\n".join(f'{{"_id": "{i}", "text": "question {i}"}}' for i in range(3)),
            "c": "\n".join(f"{i}\t{8 - i}\t1" for i in range(3)),
        },
        "tables with other names and without a header": {
            "queries.tsv": "q1\treturn a gift\nq2\topen on sunday\n",
            "collection.tsv": "d1\tBring it back\nd2\tOpen hours\n",
            "qrels": "q1 0 d1 1\nq2 0 d2 1\n",
        },
        "beside documents a table is of queries": {"d": "doc_id,document\nd1,Bring it\n", **side},
        "beside queries a table is of documents": {"q": "query_id,query\nq1,a gift\n", **side},
        "queries may be ids of another file": {
            "queries": "query_id,query\nalpha,return a gift\nbeta,opening hours\n",
            "rows": "query,document,label\nalpha,bring it back,1\nbeta,never on sundays,1\n",
        },
        "a document that only a pair speaks of has no text": {
            "queries.csv": "query_id,query\nq1,some words\n",
            "corpus.csv": "doc_id,document\nd1,a text\n",
            "pairs.csv": "query_id,doc_id\nq1,d1\nq1,d9\n",
            "qrels": LABELS,
        },
        "an id is made of each text": {
            "a": "query,document,label\nred,x,1\nblue,y,0\nred,y,1\n",
            "b": "query,document,label\ngreen,x,1\nblue,z,1\n",
        },
        "made ids never meet ids of another file": {
            "a": TEXT_ROWS + "q1,own,d1,text,1\nq2,own,d1,text,0\n",
            "b": "query,document,label\nother,words,1\n",
        },
        "a ranking made of made ids finds its queries again": {
            "rows": "query,document,label\nred,x,1\nred,y,0\nblue,y,1\n",
            "run": "q1 Q0 d2 1 2.0 x\nq1 Q0 d1 2 1.0 x\nq2 Q0 d2 1 1 x\n",
        },
        "texts that another file lists get its ids": {
            **TEXTS,
            "rows": "query,document,label\nreturn a gift,Bring it back,1\nreturn a gift,New,0\n",
            "run": RUN,
        },
        "a text under two ids gets the first": {
            "queries": "query_id,query\nalpha,a gift\nbeta,a gift\n",
            "rows": "query,document,label\na gift,bring it,1\n",
        },
        **{
            f"of {words.replace(' ', ', ').replace('_', ' ')} {known} are known ids": {
                "corpus": TWO,
                "rows": "query,document,label\n"
                + "".join(f"gift,{word.replace('_', ' ')},1\n" for word in words.split()),
            }
            for words, known in (
                ("alpha beta", "all"),
                ("alpha beta words", "more than half"),
                ("alpha words", "half, which is not enough,"),
                ("alpha beta alpha_one", "two, and the third is a text of one, and all"),
            )
        },
        "words that are both ids and texts of another file are texts": {
            "corpus": TWO.replace("alpha one", "beta").replace('"2"', '"alpha"'),
            "rows": "query,document,label\ngift,alpha,1\n",
        },
        "an id is made for a text where labels give the text too": {
            "rows.csv": "query,document,label\nreturn a gift,Bring it back,1\n",
            "qrels": LABELS, "run.csv": run,
        },
        "no id is made for one of which nothing says whether it is in the labels": {
            "qrels": LABELS, "run.csv": run
        },
        "without a header a text is asked about": {"x": "how to return,d1,1\nhow to,d2,0\n"},
        "one of several files speaks of the ids": {
            "queries.csv": "query_id,query\nq1,return a gift\n",
            "qrels": "q9 0 d1 1\n", "run": "q1 Q0 d1 1 2.5 x\n",
        },
        "none of the files speaks of the ids": {
            "queries.csv": "query_id,query\nq1,return a gift\n",
            "qrels": "q9 0 d1 1\n", "run": "q9 Q0 d1 1 2.5 x\n",
        },
    }  # fmt: skip
    approved("readers/joined.en", shown(cases))


def test_what_files_say_twice_is_settled_by_a_rule_and_told(approved):
    labels = {"q.txt": "1 0 d1 1\n1 0 d2 1\n1 0 d1 3\n1 0 d1 0\n2 0 d1 1\n"}
    twice = {"a": "1 0 d2 1\n1 0 d1 1\n", "b": "1 0 d1 2\n"}
    again = '{"_id": "d1", "title": "Returns", "text": "Other"}\n'
    scored = "query_id\tdoc_id\tscore\nq1\td2\t2\nq1\td3\t1\n"
    first = "query,document,label,bm25\n"
    splits = {f"qrels/{name}.tsv": OTHER_SPLIT for name in ("train", "dev")}
    cases = {
        **{
            f"different labels, {rule}": (labels, {"conflict": rule})
            for rule in ("highest", "lowest", "mean")
        },
        **{
            f"labels {labels} of a pair, {rule}": (
                {"a": "".join(f"1 0 d1 {label}\n" for label in labels.split())}, {"conflict": rule}
            )
            for labels in ("1 2", "2 1", "1 2 1", "2 1 1", "1 1 2")
            for rule in ("highest", "refuse")
        },
        "different labels in two files, refused": (twice, {"conflict": "refuse"}),
        "equal labels are no conflict": ({"a": "1 0 d1 1\n1 0 d1 1\n"}, {"conflict": "refuse"}),
        "an unknown rule": ({"a": "1 0 d1 1\n"}, {"conflict": "newest"}),
        "the same label three times in two files": {
            "a": "1 0 d1 1\n1 0 d1 1\n", "b": "1 0 d1 1\n1 0 d2 0\n"
        },
        "one pair is a repeat and the other a contradiction": {
            "qrels": "q1 0 d1 1\nq1 0 d2 1\nq1 0 d1 1\nq1 0 d2 0\nq1 0 d1 1\n",
            "run.trec": RANKING,
        },
        "an id with three texts": {
            "x": "query_id,query,document,label\n1,red,a b,1\n1,blue,b c,0\n1,green,c d,0\n"
        },
        "an id with another text below it, and three rows again": {
            **BEIR, "corpus.jsonl": CORPUS + again + CORPUS
        },
        "ids with another text elsewhere are told, five of them by name": {
            "a": "query_id,query\n" + "".join(f"q{n},x\n" for n in range(7)),
            "b": "query_id,query\n" + "".join(f"q{n},y\n" for n in range(7)),
        },
        "an id of the other kind": {
            "a": "query_id,query\n1,x\n", "b": "doc_id,document\n1,y\n", "c": "1 0 1 1\n"
        },
        **{
            f"ids that {name} do not speak of": {
                "texts.csv": "query_id,query\nx,a\ny,b\n", "docs.csv": "doc_id,document\nz,c\n",
                name: text,
            }
            for name, text in (
                ("labels", "q1 0 d1 1\nq2 0 d2 0\n"), ("rankings", "q9 Q0 d9 1 1 x\n"),
            )
        },
        "one id that is spoken of is enough": {
            "one.csv": "query_id,query\nx,a\n", "two.csv": "query_id,query\nq1,b\n",
            "labels": "q1 0 d1 1\n",
        },
        "also if only a pair speaks of it": {
            "one.csv": "query_id,query\nx,a\n", "labels": "q1 0 d1 1\n",
            "pairs.csv": "query_id,doc_id\nx,d1\n",
        },
        "a file of texts and labels speaks for itself": {
            "both.csv": "query_id,query,doc_id,label\nx,a,d1,1\n", "run": "q9 Q0 d9 1 1 x\n"
        },
        "of several splits test is taken": {**BEIR, **splits},
        **{
            f"of {better} and {worse} {better} is taken, {order}": {
                f"{name}.tsv": f"1 0 {name} 1\n"
                for name in ((better, worse) if order == "first" else (worse, better))
            }
            for better, worse in (
                ("test", "dev"), ("dev", "validation"), ("validation", "train"), ("eval", "train")
            )
            for order in ("first", "last")
        },
        "rows with texts are no splits": {
            "test.csv": TEXT_ROWS + "1,a,d1,one,1\n", "train.csv": TEXT_ROWS + "2,b,d2,two,1\n"
        },
        "whole scores of a split are labels also beside labels": {
            "surely": LABELS, "qrels/test.tsv": scored
        },
        "whole scores beside labels are scores elsewhere": {
            "surely": LABELS, "qrels/grades.tsv": scored
        },
        "first-stage scores in two files of rows are one ranking": {
            "a": first + "x,one,1,5\n", "b": first + "y,two,1,4\n"
        },
    }  # fmt: skip
    approved("readers/settled.en", shown(cases))


# The most specific name wins, and a reranked run is not the first stage, even if its name contains
# a retriever's. A single run is the first stage under each of these names.
NAMES = (
    *("initial rerank_bm25_title", "rerank_minilm run_bm25", "a_rerank first_stage"),
    *("monot5 baseline", "b a", "first_stage initial", "candidates first_stage"),
    *("baseline candidates", "retrieved baseline", "bm25 retrieved", "dense bm25", "bm25 dense"),
    *("bm25 bm25_title", "dense splade", "bm25_reranked bm25", "bm25_reranked dense"),
    *("bm25_re-ranked minilm_rerank", "初排_重排 dense", "bm25", "today", "first_stage"),
)


def test_what_rerankers_start_from_is_found_asked_or_chosen(approved):
    def runs(names: str, ask: bool = True, first_stage: str | None = None):
        files = {**BEIR, **dict.fromkeys([f"{name}.trec" for name in names.split()], RUN)}
        return files, {"ask": ask, "first_stage": first_stage}

    def lists(listed: str) -> str:
        cells = (pair.split(",") for pair in listed.split())
        lines = (f"{query},text,{doc},{at},1.5" for at, (query, doc) in enumerate(cells))
        return "query_id,query,doc_id,label,first_stage_score\n" + "\n".join(lines)

    def scores(columns: str, values: str) -> dict[str, str]:
        cells = zip(("d1", "d2"), values.split(), strict=True)
        text = f"query_id,doc_id,{columns}\n" + "".join(f"q1,{doc},{of}\n" for doc, of in cells)
        return {"rows.csv": ROWS, "two.csv": text}

    named = {**BEIR, "initial.trec": RUN, "reranked.trec": RERANKED}
    archive = {"q": LABELS, "b.trec": RANKING, "b.zip": zipped({"inside.trec": RANKING.encode()})}
    beside = "query_id,query,doc_id,label,first_stage_score\nq1,text,d1,1,1.5\nq1,text,d2,0,1.2\n"
    texts = ",label,pred_scores_a\nsome words,a text,1,2.5\nsome words,b c,0,1.5\n"
    cases = {
        **{
            f"runs called {names}": {
                "x.csv": TEXT_ROWS + "1,gift,d1,a,1\n1,gift,d2,b,0\n",
                **{f"{name}.trec": (RUN, RERANKED)[at] for at, name in enumerate(names.split())},
            }
            for names in NAMES
        },
        **{
            f"{chosen} is chosen where no name says which": runs(
                "bm25 system_b bm25_title", first_stage=chosen
            )
            for chosen in ("system_b", "bm25_title")
        },
        "scores beside the rows have no name": (
            {"rows.csv": "query_id,doc_id,label,bm25_score\nq1,d1,1,2\nq1,d2,0,1\n"},
            {"ask": True},
        ),
        **{
            f"chosen as {name}": (named, {"first_stage": name})
            for name in ("reranked", "reranked.trec", "reranked.trec.gz", "dense")
        },
        **{
            f"chosen as {name}, beside an archive b.zip": (archive, {"first_stage": name})
            for name in ("b.zip", "b.run", "b")
        },
        "two rankings of one stem keep both their names": {
            "q": LABELS, "initial.trec": RANKING, "a.trec": RANKING, "a.txt": RANKING
        },
        **{
            f"of {' and '.join(names)} with scores beside labels": dict.fromkeys(names, beside)
            for names in (
                ("first.csv", "other.csv"), ("other.csv", "first.csv"), ("a.csv", "b.csv")
            )
        },
        **{
            f"two files of scores, the other of {pairs}: {why}": {
                "a.csv": lists("q1,d1 q2,d1"), "b.csv": lists(pairs)
            }
            for pairs, why in (
                ("q2,d1 q3,d1", "half of the lists are of the same queries, so two systems"),
                ("q2,d1 q3,d1 q4,d1", "less than half are, so one"),
                ("q2,d9", "the rest of a list that was cut"),
            )
        },
        "a system is no first stage where texts can make one": {"x.csv": f"query,document{texts}"},
        "a system is one where documents have no texts": {"x.csv": f"query,doc_id{texts}"},
        "a system is one where queries have no texts": {"x.csv": f"query_id,document{texts}"},
        **{
            f"a file of ids and {columns} of {values}": scores(columns, values)
            for columns, values in (
                ("cohere_score,jina_score", "1,7 3,5"), ("cohere,jina", "0.1,0.7 0.3,0.5"),
                ("cohere_score", "1 3"), ("cohere", "0.1 0.3"),
                ("pred_scores_a,jina_score", "1,7 3,5"), ("page,year", "1,2024 2,2025"),
                ("cohere_score", "high low"),
            )
        },
    }  # fmt: skip
    approved("readers/first_stage.en", shown(cases))


def test_files_are_called_by_a_telling_name_or_none(approved):
    others = ("run.trec", "bm25_top100.trec", "rerank_minilm.trec", "initial.trec", "medquad.trec")
    labels = ("qrels.tsv", "test.tsv", "medquad.qrels", "qrels_medquad_test.txt", "检索评测.tsv")
    files = [f"corpus.jsonl queries.jsonl qrels.tsv {name}" for name in others]
    files += [
        f"corpus.jsonl queries.jsonl {name} run.trec" for name in (*labels, "test_qrels_2024.txt")
    ]
    # The name of the labels takes precedence over the texts' name, and a folder over both.
    files += [f"clinic.jsonl queries.jsonl {name}" for name in ("medquad.qrels", "qrels.tsv")]
    files += ["shop/corpus.jsonl shop/queries.jsonl shop/qrels/test.tsv"]
    contents = (CORPUS, QUERIES, QRELS, RUN)
    cases = {names: parse(dict(zip(names.split(), contents, strict=False))).name for names in files}
    # No single archive is the data set: one contains the texts, the other the labels.
    texts = zipped({name: text.encode() for name, text in TEXTS.items()})
    for name, qrels in (("a", "medquad.qrels"), ("clinic", "qrels")):
        archives = {f"{name}.zip": texts, "b.zip": zipped({qrels: LABELS.encode()})}
        cases[f"{name}.zip beside {qrels} in b.zip"] = parse(archives).name
    approved("readers/names", results(cases))


def test_no_files_two_of_one_name_and_paths_that_lead_nowhere_are_refused(tmp_path):
    with pytest.raises(DataError, match="No files were provided"):
        read([])
    with pytest.raises(DataError, match="Two files have the name 'a'"):
        read([Source("a", b"1 0 d1 1\n"), Source("a", b"1 0 d2 1\n")])
    with pytest.raises(DataError, match="There is no file or folder"):
        sources_from_path(tmp_path / "nothing")
    with pytest.raises(DataError, match="contains no files"):
        sources_from_path(tmp_path)
    with pytest.raises(DataError, match="cannot be read"):
        Source.from_path(tmp_path)


JUDGED = "q1 0 d1 1\nq2 0 d2 1\n"


def test_the_side_of_a_table_is_told_by_its_ids_then_its_name_then_what_is_missing(approved):
    documents = {"d.csv": "doc_id,document\nd1,words\n"}
    queries = {"q.csv": "query_id,query\nq1,words\n"}
    again = "d1,One,words\nd1,One,words\nd1,Two,words\nd1,One,more\nd2,One,words\nd3,,a\nd4,,b\n"

    def table(name: str, ids: str, beside: dict[str, str]) -> dict[str, str]:
        rows = "".join(f"{identity},words of {identity}\n" for identity in ids.split())
        return {name: f"id,text\n{rows}", "qrels": JUDGED, **beside}

    cases = {
        **{
            f"{name} with {ids}": table(name, ids, {})
            for name, ids in (
                ("passages.csv", "q1 q2"), ("questions.csv", "d1 d2"), ("questions.csv", "x y"),
                ("passages.csv", "x y"), ("questions.csv", "q1 d1"), ("passages.csv", "q1 d1"),
                ("passages.csv", "q1 q2 d1"),
            )
        },
        "documents are there": table("table.csv", "x", documents),
        "queries are there": table("table.csv", "x", queries),
        "neither is": table("table.csv", "x", {}),
        "both are": table("table.csv", "x", documents | queries),
        "an id that comes again": {"docs.csv": f"doc_id,title,document\n{again}", "qrels": JUDGED},
    }  # fmt: skip
    approved("readers/sides.en", shown(cases))
