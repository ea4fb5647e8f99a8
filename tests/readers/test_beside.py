"""Rankings beside labels, a data set or each other: each under its name, by the same ids."""

import zipfile

import pandas as pd
import pytest

from rankdash.dataset import Dataset
from rankdash.errors import DataError
from rankdash.ranking.ranking import Ranking
from rankdash.readers import Source, read_beside

LABELS = "q1 0 a 1\nq1 0 b 0\nq2 0 c 2\n"
BM25 = "q1 Q0 b 1 2 bm25\nq1 Q0 a 2 1 bm25\nq2 Q0 c 1 3 bm25\n"
DENSE = "q1 Q0 a 1 2 dense\nq2 Q0 x 1 3 dense\n"


@pytest.fixture
def write(tmp_path):
    def write(name: str, text: str):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return file

    return write


def source(name: str, text: str) -> Source:
    return Source(name, text.encode())


def lists(ranking: Ranking) -> dict[str, list[str]]:
    return {query: ranking.documents_of(query)[0] for query in ranking.query_ids}


def test_each_file_is_a_ranking_beside_the_labels(write):
    files = {"one": write("one.run", BM25), "two": write("two.run", DENSE)}
    joined = read_beside([source("qrels", LABELS)], files)
    assert {name: lists(each.ranking) for name, each in joined.rankings.items()} == {
        "one": {"q1": ["b", "a"], "q2": ["c"]},
        "two": {"q1": ["a"], "q2": ["x"]},
    }
    assert {name: (each.path, each.by_text) for name, each in joined.rankings.items()} == {
        name: (file, False) for name, file in files.items()
    }
    parsed = joined.parsed(conflict="highest")
    assert parsed.qrels.to_numpy().tolist() == [
        ["q1", "a", 1.0],
        ["q1", "b", 0.0],
        ["q2", "c", 2.0],
    ]


def test_further_scores_of_a_file_are_called_by_its_name_and_their_column(write):
    rows = "query_id,doc_id,cohere_score,jina_score\nq1,a,0.2,0.9\nq1,b,0.7,0.1\n"
    joined = read_beside([source("qrels", LABELS)], {"mine": write("file.csv", rows)})
    assert {name: lists(each.ranking) for name, each in joined.rankings.items()} == {
        "mine": {"q1": ["b", "a"]},
        "mine/jina_score": {"q1": ["a", "b"]},
    }


def test_the_first_ranking_may_be_what_the_data_set_starts_from(write):
    files = {"one": write("one.run", BM25), "two": write("two.run", DENSE)}
    for start, candidates in ((True, {"q1": ["b", "a"], "q2": ["c"]}), (False, None)):
        joined = read_beside([source("qrels", LABELS)], files, start=start)
        found = joined.parsed(conflict="highest").candidates
        assert (None if found is None else lists(found)) == candidates


def test_labels_in_the_file_of_a_ranking_do_not_count(write):
    ranked = "query_id,doc_id,label,score\nq1,a,0,9\nq1,b,5,8\n"
    joined = read_beside([source("qrels", LABELS)], {"one": write("one.csv", ranked)})
    assert lists(joined.rankings["one"].ranking) == {"q1": ["a", "b"]}
    labels = joined.parsed(conflict="highest").qrels
    assert dict(zip(labels["doc_id"], labels["label"], strict=True)) == {"a": 1, "b": 0, "c": 2}


def test_a_file_of_the_data_set_may_be_its_own_ranking(write):
    both = "query_id,doc_id,label,score\nq1,a,0,8\nq1,b,5,9\n"
    joined = read_beside([source("both.csv", both)], {"own": write("again.csv", both)})
    assert lists(joined.rankings["own"].ranking) == {"q1": ["b", "a"]}
    labels = joined.parsed(conflict="highest").qrels
    assert dict(zip(labels["doc_id"], labels["label"], strict=True)) == {"a": 0, "b": 5}


def test_queries_and_documents_told_by_their_text_are_those_of_the_labels(write):
    labels = "query,document,label\nhow to boot,press F2,1\nhow to boot,cook rice,0\n"
    ranked = "query,document,score\nhow to boot,cook rice,2\nhow to boot,press F2,1\n"
    joined = read_beside([source("labels.csv", labels)], {"one": write("one.csv", ranked)})
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
    joined = read_beside(data, {"one": write("one.run", "q1 Q0 b 1 2 x\nq1 Q0 a 2 1 x\n")})
    assert lists(joined.rankings["one"].ranking) == {"q1": ["b", "a"]}
    by_text = read_beside(data, {"one": write("one.csv", "query,doc_id,score\nhow to boot,b,1\n")})
    assert lists(by_text.rankings["one"].ranking) == {"q1": ["b"]}
    assert by_text.rankings["one"].by_text


def test_an_archive_has_a_ranking_of_its_name_and_others_below_it(write, tmp_path):
    with zipfile.ZipFile(tmp_path / "runs.zip", "w") as packed:
        packed.writestr("bm25.run", BM25)
        packed.writestr("dense.run", DENSE)
    joined = read_beside(
        [source("qrels", LABELS)],
        {"all": tmp_path / "runs.zip", "all/dense": write("other.run", BM25)},
    )
    names = {name: lists(each.ranking)["q1"] for name, each in joined.rankings.items()}
    # A name that a file was given stays that file's.
    assert names == {"all": ["b", "a"], "all/dense (2)": ["a"], "all/dense": ["b", "a"]}


def test_files_of_the_same_name_are_told_apart_in_what_is_said_of_them(write):
    broken = BM25 + "q2 Q0 d\n"
    files = {"one": write("x/run.txt", broken), "two": write("y/run.txt", broken + "q2 Q0 e\n")}
    joined = read_beside([source("qrels", LABELS)], files)
    told = [finding.file for finding in joined.findings if finding.severity != "note"]
    assert told == ["run.txt", "y/run.txt (run)"]


def test_all_files_that_cannot_be_read_are_named_at_once(write):
    files = {"one": write("one.run", "q1 Q0\n"), "two": write("two.bin", "")}
    with pytest.raises(DataError) as caught:
        read_beside([source("qrels", LABELS)], files)
    assert "one.run" in str(caught.value) and "two.bin" in str(caught.value)


def test_a_file_without_scores_or_ranks_is_no_ranking(write):
    file = write("more.qrels", LABELS)
    with pytest.raises(DataError, match="holds no ranking") as caught:
        read_beside((), {"one": file})
    assert caught.value.file == str(file)


def test_rankings_may_be_held_against_each_other_alone(write):
    joined = read_beside((), {"one": write("one.run", BM25), "two": write("two.run", DENSE)})
    assert [lists(each.ranking)["q1"] for each in joined.rankings.values()] == [["b", "a"], ["a"]]
