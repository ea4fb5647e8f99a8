"""Rankings beside labels, a data set or each other: each under its name, by the same ids."""

import zipfile
from pathlib import Path

import pandas as pd
import pytest

from rankdash.dataset import Dataset
from rankdash.errors import DataError
from rankdash.ranking.ranking import Ranking
from rankdash.readers import Source, read_beside

LABELS = "q1 0 a 1\nq1 0 b 0\nq2 0 c 2\n"
BM25 = "q1 Q0 b 1 2 bm25\nq1 Q0 a 2 1 bm25\nq2 Q0 c 1 3 bm25\n"
DENSE = "q1 Q0 a 1 2 dense\nq2 Q0 x 1 3 dense\n"
OF_BM25, OF_DENSE = {"q1": ["b", "a"], "q2": ["c"]}, {"q1": ["a"], "q2": ["x"]}


@pytest.fixture
def write(tmp_path):
    """`write({"name": (file, text)})`: name → where the file is."""

    def write(contents: dict[str, tuple[str, str]]) -> dict[str, Path]:
        files = {name: tmp_path / file for name, (file, _) in contents.items()}
        for name, (_, text) in contents.items():
            files[name].parent.mkdir(exist_ok=True)
            files[name].write_text(text)
        return files

    return write


def lists(ranking: Ranking) -> dict[str, list[str]]:
    return {query: ranking.documents_of(query)[0] for query in ranking.query_ids}


def ranked(joined) -> dict[str, dict[str, list[str]]]:
    return {name: lists(each.ranking) for name, each in joined.rankings.items()}


QRELS = [Source("qrels", LABELS.encode())]
BOTH = {"one": ("one.run", BM25), "two": ("two.run", DENSE)}


def test_each_file_is_a_ranking_beside_labels_or_others(write):
    files = write(BOTH)
    joined = read_beside(QRELS, files)
    assert ranked(joined) == ranked(read_beside((), files)) == {"one": OF_BM25, "two": OF_DENSE}
    assert {name: (each.path, each.by_text) for name, each in joined.rankings.items()} == {
        name: (file, False) for name, file in files.items()
    }
    rows = joined.parsed(conflict="highest").qrels.to_numpy().tolist()
    assert rows == [["q1", "a", 1.0], ["q1", "b", 0.0], ["q2", "c", 2.0]]
    # The first may be what the data set starts from.
    for start, candidates in ((True, OF_BM25), (False, None)):
        found = read_beside(QRELS, files, start=start).parsed(conflict="highest").candidates
        assert (None if found is None else lists(found)) == candidates


@pytest.mark.parametrize(
    ("qrels", "name", "text", "found", "labels"),
    [
        # Further scores are called by their column.
        (LABELS, "one.csv", "query_id,doc_id,cohere_score,jina_score\nq1,a,0.2,0.9\nq1,b,0.7,0.1\n",
         {"mine": ["b", "a"], "mine/jina_score": ["a", "b"]}, {"a": 1, "b": 0, "c": 2}),
        # Labels in the file of a ranking do not count.
        (LABELS, "one.csv", "query_id,doc_id,label,score\nq1,a,0,9\nq1,b,5,8\n",
         {"mine": ["a", "b"]}, {"a": 1, "b": 0, "c": 2}),
        # A file of the data set may be its own ranking.
        ("query_id,doc_id,label,score\nq1,a,0,8\nq1,b,5,9\n", "again.csv", "",
         {"mine": ["b", "a"]}, {"a": 0, "b": 5}),
    ],
)  # fmt: skip
def test_of_a_file_the_rankings_count_and_not_the_labels(write, qrels, name, text, found, labels):
    joined = read_beside([Source("labels", qrels.encode())], write({"mine": (name, text or qrels)}))
    assert {name: each["q1"] for name, each in ranked(joined).items()} == found
    rows = joined.parsed(conflict="highest").qrels
    assert dict(zip(rows["doc_id"], rows["label"], strict=True)) == labels


def test_queries_and_documents_told_by_their_text_are_those_of_the_labels(write):
    labels = "query,document,label\nhow to boot,press F2,1\nhow to boot,cook rice,0\n"
    text = "query,document,score\nhow to boot,cook rice,2\nhow to boot,press F2,1\n"
    joined = read_beside([Source("x.csv", labels.encode())], write({"one": ("one.csv", text)}))
    found, parsed = joined.rankings["one"], joined.parsed(conflict="highest")
    texts = dict(zip(parsed.documents["doc_id"], parsed.documents["text"], strict=True))
    ((query, docs),) = lists(found.ranking).items()
    assert [texts[doc] for doc in docs] == ["cook rice", "press F2"]
    assert (query, found.by_text) == (parsed.queries["query_id"].iloc[0], True)


def test_rankings_of_a_data_set_are_read_beside_its_tables(write):
    data = Dataset(
        "set",
        pd.DataFrame({"query_id": ["q1"], "text": ["how to boot"]}),
        pd.DataFrame({"doc_id": ["a", "b"], "title": "", "text": ["press F2", None]}),
        pd.DataFrame({"query_id": ["q1"], "doc_id": ["a"], "label": [1.0]}),
        Ranking.from_lists([("q1", ["a", "b"], [2.0, 1.0])]),
    )
    by_text = ("one.csv", "query,doc_id,score\nhow to boot,b,1\n")
    joined = read_beside(data, write({"ids": ("one.run", BM25[:34]), "texts": by_text}))
    assert ranked(joined) == {"ids": {"q1": ["b", "a"]}, "texts": {"q1": ["b"]}}
    assert [each.by_text for each in joined.rankings.values()] == [False, True]


def test_a_ranking_that_gives_another_text_to_an_id_is_told(write):
    labels = [Source("x.csv", b"query_id,query,doc_id,label\nq1,how to boot,a,1\n")]
    ranked = "query_id,query,doc_id,score\nq1,how to cook,a,1\n"
    joined = read_beside(labels, write({"one": ("one.csv", ranked)}))
    codes = [finding.code for finding in joined.parsed(conflict="highest").findings]
    assert "texts_differ" in codes


def test_an_archive_has_a_ranking_of_its_name_and_others_below_it(write, tmp_path):
    with zipfile.ZipFile(tmp_path / "runs.zip", "w") as packed:
        packed.writestr("bm25.run", BM25)
        packed.writestr("dense.run", DENSE)
    files = {"all": tmp_path / "runs.zip", **write({"all/dense": ("other.run", BM25)})}
    # A name that a file was given stays that file's.
    names = {name: each["q1"] for name, each in ranked(read_beside(QRELS, files)).items()}
    assert names == {"all": ["b", "a"], "all/dense (2)": ["a"], "all/dense": ["b", "a"]}


def test_files_of_the_same_name_are_told_apart_in_what_is_said_of_them(write):
    broken = BM25 + "q2 Q0 d\n"
    files = write({"one": ("x/run.txt", broken), "two": ("y/run.txt", broken + "q2 Q0 e\n")})
    findings = read_beside(QRELS, files).findings
    told = [finding.file for finding in findings if finding.severity != "note"]
    assert told == ["run.txt", "y/run.txt (run)"]


def test_files_that_cannot_be_used_are_named(write):
    with pytest.raises(DataError) as caught:
        read_beside(QRELS, write({"one": ("one.run", "q1 Q0\n"), "two": ("two.bin", "")}))
    assert "one.run" in str(caught.value) and "two.bin" in str(caught.value)
    files = write({"one": ("more.qrels", LABELS)})
    with pytest.raises(DataError, match="holds no ranking") as caught:
        read_beside((), files)
    assert caught.value.file == str(files["one"])
