"""The sample data set: what its NOTICE.md promises, read from the files as they are shipped."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "assets" / "samples" / "helpcentre"
RUN_COLUMNS = ["query_id", "q0", "doc_id", "rank", "score", "tag"]


def rows(name: str) -> list[dict]:
    with (FOLDER / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def read_run(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, sep=" ", names=RUN_COLUMNS, dtype={"query_id": str, "doc_id": str})


@pytest.fixture(scope="module")
def corpus() -> pd.DataFrame:
    return pd.DataFrame(rows("corpus.jsonl"))


@pytest.fixture(scope="module")
def queries() -> pd.DataFrame:
    return pd.json_normalize(rows("queries.jsonl"))


@pytest.fixture(scope="module")
def qrels() -> pd.DataFrame:
    frame = pd.read_csv(FOLDER / "qrels.tsv", sep="\t", dtype={"query-id": str, "corpus-id": str})
    return frame.set_axis(["query_id", "doc_id", "label"], axis=1)


@pytest.fixture(scope="module")
def run() -> pd.DataFrame:
    return read_run(FOLDER / "initial.trec")


def is_chinese(texts: pd.Series) -> pd.Series:
    return texts.str.contains(r"[\u4e00-\u9fff]", regex=True)


def test_passages_are_many_distinct_and_short(corpus):
    assert len(corpus) >= 300
    assert corpus["_id"].is_unique
    assert not (corpus["title"].duplicated() | corpus["text"].duplicated()).any()
    english = corpus[~is_chinese(corpus["text"])]
    assert english["text"].str.split().str.len().between(30, 90).all()


def test_passages_are_not_one_template_filled_in(corpus):
    """No two share most of their three-word phrases."""
    words = corpus.loc[~is_chinese(corpus["text"]), "text"].str.lower().str.findall(r"\w+")
    phrases = [set(zip(w, w[1:], w[2:], strict=False)) for w in words]
    closest = max(
        len(one & other) / len(one | other)
        for place, one in enumerate(phrases)
        for other in phrases[:place]
    )
    assert closest < 0.3


def test_queries_have_a_type_and_a_language(queries):
    assert len(queries) >= 60
    assert queries["_id"].is_unique
    assert queries["text"].is_unique
    sizes = queries["metadata.type"].value_counts()
    assert {"how-to", "policy", "troubleshooting", "exact code", "everyday words"} <= set(
        sizes.index
    )
    assert sizes.min() >= 4
    chinese = is_chinese(queries["text"])
    assert (queries["metadata.language"] == chinese.map({True: "zh", False: "en"})).all()


def test_labels_are_grades_of_known_pairs(corpus, queries, qrels):
    assert len(qrels) >= 900
    assert not qrels.duplicated(["query_id", "doc_id"]).any()
    assert set(qrels["label"]) == {0, 1, 2, 3}
    assert set(qrels["query_id"]) == set(queries["_id"])
    assert set(qrels["doc_id"]) <= set(corpus["_id"])
    assert qrels.groupby("query_id").size().min() >= 10
    assert (qrels["label"] == 0).groupby(qrels["query_id"]).any().all(), (
        "every query has a judged 0"
    )


def test_a_few_queries_have_no_answer(queries, qrels):
    best = qrels.groupby("query_id")["label"].max()
    unanswered = set(best[best <= 1].index)
    assert unanswered == set(queries.loc[queries["metadata.type"] == "no answer", "_id"])
    assert (best == 0).sum() in (2, 3)
    assert (best == 1).sum() >= 2


def test_chinese_queries_are_answered_in_chinese(corpus, queries, qrels):
    passages = set(corpus.loc[is_chinese(corpus["text"]), "_id"])
    asked = queries[(queries["metadata.language"] == "zh")]
    assert len(passages) >= 20
    assert len(asked) >= 6
    answers = qrels[(qrels["label"] == 3) & qrels["query_id"].isin(asked["_id"])]
    assert set(answers["doc_id"]) <= passages
    assert set(answers["query_id"]) == set(asked.loc[asked["metadata.type"] != "no answer", "_id"])
    english = qrels[~qrels["query_id"].isin(asked["_id"]) & qrels["doc_id"].isin(passages)]
    assert (english["label"] == 0).all()


def test_the_run_ranks_up_to_fifty_known_passages_without_ties(corpus, queries, run):
    assert set(run["query_id"]) == set(queries["_id"])
    assert set(run["doc_id"]) <= set(corpus["_id"])
    assert not run.duplicated(["query_id", "doc_id"]).any()
    assert set(run["tag"]) == {"bm25"}
    by_query = run.groupby("query_id")
    assert by_query.size().max() == 50
    assert (by_query.size() == 50).sum() > len(queries) / 2
    assert (by_query["score"].diff().dropna() < 0).all()
    assert (run["rank"] == by_query.cumcount() + 1).all()


def test_the_first_stage_top_ten_is_judged(qrels, run):
    top = run[run["rank"] <= 10]
    judged = top.merge(qrels, on=["query_id", "doc_id"], how="left")
    assert judged["label"].notna().all()


def test_codes_are_told_apart(queries, qrels):
    """The same error code on another model is judged, and is not relevant."""
    asked = queries.set_index("text")["_id"]
    labels = qrels.set_index(["query_id", "doc_id"])["label"]
    assert labels[asked["KV-310 E07"], "tec-003"] == 3
    assert labels[asked["KV-310 E07"], "tec-001"] == labels[asked["KV-310 E07"], "tec-008"] == 0
    assert labels[asked["EM-450 shows E07"], "tec-008"] == 3
    assert labels[asked["EM-450 shows E07"], "tec-003"] == 0


def test_the_notice_makes_the_run(tmp_path, monkeypatch, run):
    """The snippet in NOTICE.md, run on the files, gives the run that is shipped."""
    pytest.importorskip("bm25s")
    notice = (FOLDER / "NOTICE.md").read_text(encoding="utf-8")
    snippet = re.search(r"```python\n(.*?)```", notice, re.DOTALL).group(1)
    copy = tmp_path / FOLDER.relative_to(ROOT)
    shutil.copytree(FOLDER, copy)
    (copy / "initial.trec").unlink()
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, "NOTICE.md", "exec"), {})
    made = read_run(copy / "initial.trec")
    columns = ["query_id", "rank", "doc_id"]
    top, made_top = (frame.loc[frame["rank"] <= 10, columns] for frame in (run, made))
    pd.testing.assert_frame_equal(made_top, top)
    pairs = [set(frame[["query_id", "doc_id"]].itertuples(index=False)) for frame in (run, made)]
    assert pairs[0] == pairs[1]


def test_the_notice_counts_what_is_there(corpus, queries, qrels):
    notice = (FOLDER / "NOTICE.md").read_text(encoding="utf-8")
    chinese = int(is_chinese(corpus["text"]).sum())
    assert f"{len(corpus)} passages: {len(corpus) - chinese} in English" in notice
    assert f"{chinese} in simplified Chinese" in notice
    assert f"{len(queries)} queries" in notice
    assert f"{len(qrels):,} labels" in notice
    table = dict(re.findall(r"^\| ([a-z -]+) \| (\d+) \|", notice, re.MULTILINE))
    assert {name: int(count) for name, count in table.items()} == dict(
        queries["metadata.type"].value_counts()
    )
