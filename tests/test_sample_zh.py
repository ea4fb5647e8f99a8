"""The Chinese sample: what its NOTICE.md promises, read from the files as they are shipped."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from rankdash import sharing
from rankdash.cli.main import main
from rankdash.ranking.ranking import Run
from rankdash.reporting.exports.trec import run_bytes
from rankdash.shipped import SAMPLES, runs_of
from rankdash.store import Workspace

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "assets" / "samples" / "helpcentre_zh"
NOTICE = (FOLDER / "NOTICE.md").read_text(encoding="utf-8")


def rows(name: str) -> pd.DataFrame:
    with (FOLDER / name).open(encoding="utf-8") as file:
        return pd.json_normalize([json.loads(line) for line in file])


@pytest.fixture(scope="module")
def corpus() -> pd.DataFrame:
    return rows("corpus.jsonl")


@pytest.fixture(scope="module")
def queries() -> pd.DataFrame:
    return rows("queries.jsonl")


@pytest.fixture(scope="module")
def qrels() -> pd.DataFrame:
    frame = pd.read_csv(FOLDER / "qrels.tsv", sep="\t", dtype={"query-id": str, "corpus-id": str})
    return frame.set_axis(["query", "doc", "label"], axis=1)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory) -> dict[str, Run]:
    """Name → run, from the workspace file."""
    workspace = Workspace(tmp_path_factory.mktemp("home"))
    file = runs_of(SAMPLES["zh"])
    sharing.bring_in(workspace, file, file.name)
    runs = [workspace.run(row.id) for row in workspace.runs()]
    return {run.name: run for run in runs}


def test_texts_are_chinese_distinct_and_many(corpus, queries):
    assert len(corpus) >= 200
    assert len(queries) >= 80
    for column in (corpus["_id"], corpus["title"], corpus["text"], queries["_id"], queries["text"]):
        assert column.is_unique
    assert corpus["text"].str.count(r"[\u4e00-\u9fff]").min() > 30


def test_passages_are_not_one_template_filled_in(corpus):
    """No two share most of their three-character phrases."""
    phrases = [{text[at : at + 3] for at in range(len(text) - 2)} for text in corpus["text"]]
    closest = max(
        len(one & other) / len(one | other)
        for place, one in enumerate(phrases)
        for other in phrases[:place]
    )
    assert closest < 0.4


def test_the_notice_counts_what_is_there(corpus, queries, qrels):
    assert f"{len(corpus)} 个段落，正文" in NOTICE
    lengths = corpus["text"].str.len()
    assert f"正文 {lengths.min()} 至 {lengths.max()} 字" in NOTICE
    assert f"{len(queries)} 条查询" in NOTICE
    assert f"{len(qrels):,} 个标注" in NOTICE
    table = dict(re.findall(r"^\| (\S+) \| (\d+) \|", NOTICE, re.MULTILINE))
    assert {name: int(count) for name, count in table.items()} == dict(
        queries["metadata.类型"].value_counts()
    )


def test_labels_are_grades_of_known_pairs(corpus, queries, qrels):
    assert not qrels.duplicated(["query", "doc"]).any()
    assert set(qrels["label"]) == {0, 1, 2, 3}
    assert set(qrels["query"]) == set(queries["_id"])
    assert set(qrels["doc"]) <= set(corpus["_id"])
    assert (qrels["label"] == 0).groupby(qrels["query"]).any().all(), "every query has a judged 0"


def test_a_few_queries_have_no_answer(queries, qrels):
    best = qrels.groupby("query")["label"].max()
    asked = queries.loc[queries["metadata.类型"] == "无答案", "_id"]
    assert sorted(best[asked]) == [0, 0, 0, 1, 1]
    assert (best.drop(asked) == 3).all()


def test_the_same_code_on_another_model_is_judged_not_relevant(queries, qrels):
    asked = queries.set_index("text")["_id"]
    labels = qrels.set_index(["query", "doc"])["label"]
    assert labels[asked["R20 Pro E03"], "rob-002"] == 3
    assert labels[asked["R20 Pro E03"], "rob-001"] == labels[asked["R20 Pro E03"], "rob-003"] == 0
    assert labels[asked["RC-50 E1"], "kit-002"] == 3
    assert labels[asked["RC-50 E1"], "kit-001"] == labels[asked["RC-50 E1"], "kit-011"] == 0


def test_the_notice_makes_the_first_stage_byte_for_byte(tmp_path, monkeypatch):
    snippet = re.search(r"```python\n(.*?)```", NOTICE, re.DOTALL).group(1)
    copy = tmp_path / FOLDER.relative_to(ROOT)
    shutil.copytree(FOLDER, copy)
    (copy / "initial.trec").unlink()
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, "NOTICE.md", "exec"), {})
    assert (copy / "initial.trec").read_bytes() == (FOLDER / "initial.trec").read_bytes()


def test_the_notice_names_the_runs_in_their_order(shipped):
    listed = NOTICE.partition("## 附带的运行")[2]
    assert list(shipped) == re.findall(r"^\| (.+?) \| [^-]", listed, re.MULTILINE)[1:]
    assert all(run.shipped for run in shipped.values())
    assert all(not run.left_out for run in shipped.values())


def test_the_fused_run_is_made_byte_for_byte(shipped, tmp_path):
    """By the command of NOTICE.md, from the first stage and the run before it."""
    encoder, fused, _english = shipped.values()
    (tmp_path / "e5.trec").write_bytes(run_bytes(encoder.ranking, "bi-encoder"))
    made = tmp_path / "fused.trec"
    parts = [str(FOLDER / "initial.trec"), str(tmp_path / "e5.trec")]
    assert main(["fuse", "--run", *parts, "--out", str(made)]) == 0
    assert made.read_bytes() == run_bytes(fused.ranking, "fusion-rrf")


def test_the_top_ten_of_every_system_is_judged(shipped, qrels):
    judged = set(zip(qrels["query"], qrels["doc"], strict=True))
    rankings = [run.ranking for run in shipped.values()]
    for ranking in rankings:
        top = {
            (query, doc)
            for query in ranking.query_ids
            for doc in list(ranking.documents_of(query)[0])[:10]
        }
        assert top <= judged
