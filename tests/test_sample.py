"""The sample data set: what its NOTICE.md promises, read from the files as they are shipped."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rankdash import sharing
from rankdash.cli.main import main
from rankdash.loading import load
from rankdash.ranking.ranking import Run
from rankdash.readers import sources_from_path
from rankdash.reporting.exports.trec import run_bytes
from rankdash.shipped import SAMPLES, runs_of
from rankdash.store import Workspace

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "assets" / "samples" / "helpcentre"
RUN_COLUMNS = ["query_id", "q0", "doc_id", "rank", "score", "tag"]
FUSED, UNSTEMMED = "First stage + bge-small (RRF)", "BM25 without stemming"


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


@pytest.fixture(scope="module")
def notice() -> str:
    return (FOLDER / "NOTICE.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Name → run, as they are in a workspace into which the sample was opened."""
    workspace = Workspace(tmp_path_factory.mktemp("shipped"))
    sharing.bring_in(workspace, runs_of(FOLDER), "the sample")
    return {row.name: workspace.run(row.id) for row in workspace.runs()}


def commands(notice: str, folder: Path) -> list[list[str]]:
    """The commands of the NOTICE, as arguments, writing into a folder."""
    block = re.search(r"```bash\n(.*?)```", notice, re.DOTALL).group(1)
    lines = [shlex.split(line)[1:] for line in block.splitlines()]
    made = {name for line in lines for name in line if re.fullmatch(r"\w+\.trec", name)}
    return [
        [str(folder / word) if word in made else word.replace("assets/", f"{ROOT}/assets/")
         for word in line]
        for line in lines
    ]  # fmt: skip


def test_passages_are_many_distinct_and_short(corpus):
    assert len(corpus) >= 400
    assert corpus["_id"].is_unique
    assert not (corpus["title"].duplicated() | corpus["text"].duplicated()).any()
    assert corpus["text"].str.split().str.len().between(30, 90).all()


def test_passages_are_not_one_template_filled_in(corpus):
    """No two share most of their three-word phrases."""
    words = corpus["text"].str.lower().str.findall(r"\w+")
    phrases = [set(zip(w, w[1:], w[2:], strict=False)) for w in words]
    closest = max(
        len(one & other) / len(one | other)
        for place, one in enumerate(phrases)
        for other in phrases[:place]
    )
    assert closest < 0.3


def test_the_sample_is_in_english_only(corpus, queries):
    texts = pd.concat([corpus["title"], corpus["text"], queries["text"]])
    assert not texts.str.contains(r"[\u4e00-\u9fff]", regex=True).any()


def test_queries_are_enough_and_have_a_type(queries):
    assert len(queries) >= 160
    assert queries["_id"].is_unique
    assert queries["text"].is_unique
    assert queries["metadata.type"].value_counts().min() >= 10


def test_labels_are_grades_of_known_pairs(corpus, queries, qrels):
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
    assert (best == 0).sum() >= 2
    assert (best == 1).sum() >= 2


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


def test_the_top_ten_of_every_system_is_judged(qrels, run, shipped):
    for ranked in (run, *(each.ranking.frame() for each in shipped.values())):
        top = ranked[ranked["rank"] <= 10]
        judged = top.merge(qrels, on=["query_id", "doc_id"], how="left")
        assert judged["label"].notna().all()


def test_the_notice_names_the_runs_in_their_order(notice, shipped):
    listed = notice.partition("## How the runs are made")[2]
    assert list(shipped) == re.findall(r"^\| (.+?) \| [^-]", listed, re.MULTILINE)[1:]


def test_codes_are_told_apart(queries, qrels):
    """The same error code on another model is judged, and is not relevant."""
    asked = queries.set_index("text")["_id"]
    labels = qrels.set_index(["query_id", "doc_id"])["label"]
    models = {
        "KV-300 E07": "tec-001",
        "KV-310 E07": "tec-003",
        "KV-420 E07": "tec-027",
        "EM-450 shows E07": "tec-008",
    }
    for query, answer in models.items():
        assert labels[asked[query], answer] == 3
        others = [labels.get((asked[query], other)) for other in models.values() if other != answer]
        assert 0 in others
        assert not {1, 2, 3} & set(others)


def test_the_notice_makes_the_first_stage_to_the_byte(tmp_path, monkeypatch, notice):
    """The snippet in NOTICE.md, run on the files, gives the run that is shipped."""
    pytest.importorskip("bm25s")
    snippet = re.search(r"```python\n(.*?)```", notice, re.DOTALL).group(1)
    copy = tmp_path / FOLDER.relative_to(ROOT)
    shutil.copytree(FOLDER, copy)
    (copy / "initial.trec").unlink()
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, "NOTICE.md", "exec"), {})
    assert (copy / "initial.trec").read_bytes() == (FOLDER / "initial.trec").read_bytes()


def test_the_notice_makes_the_fused_run_to_the_byte(tmp_path, notice, shipped):
    """From the first stage and the run of the bi-encoder as it is shipped."""
    _encoder, _cross, fuse, _unstemmed = commands(notice, tmp_path)
    (tmp_path / "bge.trec").write_bytes(run_bytes(shipped["bge-small"].ranking, "bi-encoder"))
    assert main(fuse) == 0
    made = (tmp_path / "fused.trec").read_bytes()
    assert made == run_bytes(shipped[FUSED].ranking, "fusion-rrf")


def test_the_notice_makes_the_run_that_is_worse_to_the_byte(tmp_path, notice, shipped):
    pytest.importorskip("bm25s")
    *_others, unstemmed = commands(notice, tmp_path)
    assert main(unstemmed) == 0
    made = (tmp_path / "unstemmed.trec").read_bytes()
    assert made == run_bytes(shipped[UNSTEMMED].ranking, "bm25")


@pytest.mark.model
@pytest.mark.parametrize(("place", "name"), [(0, "bge-small"), (1, "MiniLM cross-encoder")])
def test_the_notice_makes_the_scores_of_the_models(tmp_path, notice, shipped, place, name):
    """Of the first queries: the scores of one do not depend on the others."""
    folder = tmp_path / FOLDER.name
    shutil.copytree(FOLDER, folder)
    first = (FOLDER / "initial.trec").read_text(encoding="utf-8").splitlines(keepends=True)[:200]
    (folder / "initial.trec").write_text("".join(first), encoding="utf-8")
    command = [word.replace(str(FOLDER), str(folder)) for word in commands(notice, tmp_path)[place]]
    assert main(command) == 0
    made = read_run(Path(command[-1])).set_index(["query_id", "doc_id"])["score"]
    kept = shipped[name].ranking.frame().set_index(["query_id", "doc_id"])["score"]
    assert made.index.get_level_values("query_id").nunique() >= 4
    assert np.abs(made - kept[made.index]).max() < 1e-4


@pytest.mark.parametrize("sample", [each for each in SAMPLES.values() if each.is_dir()])
def test_a_shipped_workspace_file_holds_the_sample_and_finished_runs(tmp_path, sample):
    assert runs_of(sample).stat().st_size < 3e6
    workspace = Workspace(tmp_path)
    sharing.bring_in(workspace, runs_of(sample), "the sample")
    (row,) = workspace.datasets()
    assert row.source == "sample"
    assert sharing.datasets_in(runs_of(sample)) == [row.id]
    # The files of the folder, read anew, are this very data set.
    assert load(sources_from_path(sample)).dataset.id == row.id
    runs = [workspace.run(each.id) for each in workspace.runs()]
    assert len(runs) >= 3
    for each in runs:
        assert each.shipped
        assert "failed" not in set(each.queries["state"])
        assert each.created
    timed = [each for each in runs if each.queries["latency_ms"].notna().any()]
    assert timed
    assert all(each.machine["cpu"] and each.measured is not None for each in timed)


def test_the_notice_counts_what_is_there(corpus, queries, qrels, notice):
    assert f"{len(corpus)} passages in English" in notice
    lengths = corpus["text"].str.split().str.len()
    assert f"({lengths.min()} to {lengths.max()} words)" in notice
    assert f"{len(queries)} queries" in notice
    assert f"{len(qrels):,} labels" in notice
    table = dict(re.findall(r"^\| ([a-z -]+) \| (\d+) \|", notice, re.MULTILINE))
    assert {name: int(count) for name, count in table.items()} == dict(
        queries["metadata.type"].value_counts()
    )
