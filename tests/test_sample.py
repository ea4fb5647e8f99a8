"""The sample data sets: what each NOTICE.md promises, read from the files as they are shipped."""

import json
import re
import shlex
import shutil
from dataclasses import dataclass
from functools import cached_property
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
RUN_COLUMNS = ["query_id", "q0", "doc_id", "rank", "score", "tag"]


@dataclass(frozen=True)
class Sample:
    """A sample, and what its NOTICE.md calls its parts. counted: of passages, their lengths,
    queries and labels. runs: before the table of runs. least: passages and queries. alike: the
    largest share of three words (characters) that two passages have in common."""

    folder: Path
    type: str
    no_answer: str
    counted: tuple[str, str, str, str]
    runs: str
    least: tuple[int, int]
    alike: float

    def rows(self, name: str) -> pd.DataFrame:
        lines = (self.folder / name).read_text(encoding="utf-8").splitlines()
        return pd.json_normalize([json.loads(line) for line in lines])

    @cached_property
    def corpus(self) -> pd.DataFrame:
        return self.rows("corpus.jsonl")

    @cached_property
    def queries(self) -> pd.DataFrame:
        return self.rows("queries.jsonl")

    @cached_property
    def qrels(self) -> pd.DataFrame:
        ids = {"query-id": str, "corpus-id": str}
        frame = pd.read_csv(self.folder / "qrels.tsv", sep="\t", dtype=ids)
        return frame.set_axis(["query_id", "doc_id", "label"], axis=1)

    @cached_property
    def first(self) -> pd.DataFrame:
        return read_run(self.folder / "initial.trec")

    @cached_property
    def notice(self) -> str:
        return (self.folder / "NOTICE.md").read_text(encoding="utf-8")

    @cached_property
    def words(self) -> list[list[str]]:
        pattern = r"." if self.folder.name.endswith("zh") else r"\w+"
        return [re.findall(pattern, text.lower()) for text in self.corpus["text"]]

    def commands(self, folder: Path) -> list[list[str]]:
        """The commands of the NOTICE, as arguments, writing into a folder."""
        block = re.search(r"```bash\n(.*?)```", self.notice, re.DOTALL).group(1)
        lines = [shlex.split(line)[1:] for line in block.splitlines()]
        made = {name for line in lines for name in line if re.fullmatch(r"\w+\.trec", name)}
        return [
            [str(folder / word) if word in made else word.replace("assets/", f"{ROOT}/assets/")
             for word in line]
            for line in lines
        ]  # fmt: skip


EVERY = {
    "en": Sample(
        SAMPLES["en"],
        "metadata.type",
        "no answer",
        ("{} passages in English", "({} to {} words)", "{} queries", "{:,} labels"),
        "## How the runs are made",
        (400, 160),
        0.3,
    ),
    "zh": Sample(
        SAMPLES["zh"],
        "metadata.类型",
        "无答案",
        ("{} 个段落，正文", "正文 {} 至 {} 字", "{} 条查询", "{:,} 个标注"),
        "## 附带的运行",
        (200, 80),
        0.4,
    ),
}


def read_run(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, sep=" ", names=RUN_COLUMNS, dtype={"query_id": str, "doc_id": str})


@pytest.fixture(scope="module", params=EVERY)
def language(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def sample(language: str) -> Sample:
    return EVERY[language]


@pytest.fixture(scope="module")
def shipped(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Name → run, as they are in a workspace into which the sample was opened."""
    workspace = Workspace(tmp_path_factory.mktemp("shipped"))
    sharing.bring_in(workspace, runs_of(sample.folder), "the sample")
    (row,) = workspace.datasets()
    assert row.source == "sample"
    assert sharing.datasets_in(runs_of(sample.folder)) == [row.id]
    # The files of the folder, read anew, are this very data set.
    assert load(sources_from_path(sample.folder)).dataset.id == row.id
    return {each.name: workspace.run(each.id) for each in workspace.runs()}


def test_passages_and_queries_are_many_and_distinct(sample):
    assert (len(sample.corpus), len(sample.queries)) >= sample.least
    for frame, columns in ((sample.corpus, ["_id", "title", "text"]), (sample.queries, ["_id"])):
        assert all(frame[column].is_unique for column in columns)
    assert sample.queries["text"].is_unique
    assert all(len(words) >= 30 for words in sample.words)


def test_passages_are_not_one_template_filled_in(sample):
    phrases = [set(zip(w, w[1:], w[2:], strict=False)) for w in sample.words]
    closest = max(
        len(one & other) / len(one | other)
        for place, one in enumerate(phrases)
        for other in phrases[:place]
    )
    assert closest < sample.alike


def test_the_texts_are_in_their_language(language, sample):
    texts = pd.concat([sample.corpus["title"], sample.corpus["text"], sample.queries["text"]])
    chinese = texts.str.contains(r"[\u4e00-\u9fff]", regex=True)
    assert chinese.mean() > 0.9 if language == "zh" else not chinese.any()


def test_labels_are_grades_of_known_pairs(sample):
    qrels = sample.qrels
    assert not qrels.duplicated(["query_id", "doc_id"]).any()
    assert set(qrels["label"]) == {0, 1, 2, 3}
    assert set(qrels["query_id"]) == set(sample.queries["_id"])
    assert set(qrels["doc_id"]) <= set(sample.corpus["_id"])
    assert qrels.groupby("query_id").size().min() >= 10
    judged_0 = (qrels["label"] == 0).groupby(qrels["query_id"]).any()
    assert judged_0.all()


def test_a_few_queries_have_no_answer(sample):
    best = sample.qrels.groupby("query_id")["label"].max()
    queries = sample.queries
    assert set(best[best <= 1].index) == set(
        queries.loc[queries[sample.type] == sample.no_answer, "_id"]
    )
    assert min((best == 0).sum(), (best == 1).sum()) >= 2


def test_the_first_stage_ranks_up_to_fifty_known_passages_without_ties(sample):
    run = sample.first
    assert set(run["query_id"]) == set(sample.queries["_id"])
    assert set(run["doc_id"]) <= set(sample.corpus["_id"])
    assert not run.duplicated(["query_id", "doc_id"]).any()
    by_query = run.groupby("query_id")
    assert by_query.size().max() == 50
    assert (by_query.size() == 50).sum() > len(sample.queries) / 2
    assert (by_query["score"].diff().dropna() < 0).all()
    assert (run["rank"] == by_query.cumcount() + 1).all()


def test_the_top_ten_of_every_system_is_judged(sample, shipped):
    for ranked in (sample.first, *(each.ranking.frame() for each in shipped.values())):
        top = ranked[ranked["rank"] <= 10]
        judged = top.merge(sample.qrels, on=["query_id", "doc_id"], how="left")
        assert judged["label"].notna().all()


@pytest.mark.parametrize(
    ("language", "answers"),
    [
        ("en", {"KV-300 E07": "tec-001", "KV-310 E07": "tec-003", "KV-420 E07": "tec-027",
                "EM-450 shows E07": "tec-008"}),
        ("zh", {"R20 Pro E03": "rob-002"}),
        ("zh", {"RC-50 E1": "kit-002"}),
    ],
    indirect=["language"],
)  # fmt: skip
def test_the_same_code_on_another_model_is_judged_not_relevant(language, sample, answers):
    asked = sample.queries.set_index("text")["_id"]
    labels = sample.qrels.set_index(["query_id", "doc_id"])["label"]
    others = {"R20 Pro E03": ["rob-001", "rob-003"], "RC-50 E1": ["kit-001", "kit-011"]}
    for query, answer in answers.items():
        assert labels[asked[query], answer] == 3
        wrong = others.get(query, [each for each in answers.values() if each != answer])
        given = [labels.get((asked[query], each)) for each in wrong]
        assert 0 in given
        assert not {1, 2, 3} & set(given)


def test_the_notice_names_the_runs_in_their_order(sample, shipped):
    listed = sample.notice.partition(sample.runs)[2]
    assert list(shipped) == re.findall(r"^\| (.+?) \| [^-]", listed, re.MULTILINE)[1:]


def test_the_notice_counts_what_is_there(sample):
    passages, lengths, queries, labels = sample.counted
    assert passages.format(len(sample.corpus)) in sample.notice
    words = sample.corpus["text"].str
    long = words.split().str.len() if "words" in lengths else words.len()
    assert lengths.format(long.min(), long.max()) in sample.notice
    assert queries.format(len(sample.queries)) in sample.notice
    assert labels.format(len(sample.qrels)) in sample.notice
    table = dict(re.findall(r"^\| ([^|]+) \| (\d+) \|", sample.notice, re.MULTILINE))
    counts = dict(sample.queries[sample.type].value_counts())
    assert {name: int(count) for name, count in table.items() if name in counts} == counts


def test_the_notice_makes_the_first_stage_to_the_byte(sample, tmp_path, monkeypatch):
    """The snippet in NOTICE.md, run on the files, gives the run that is shipped."""
    snippet = re.search(r"```python\n(.*?)```", sample.notice, re.DOTALL).group(1)
    copy = tmp_path / sample.folder.relative_to(ROOT)
    shutil.copytree(sample.folder, copy)
    (copy / "initial.trec").unlink()
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, "NOTICE.md", "exec"), {})
    assert (copy / "initial.trec").read_bytes() == (sample.folder / "initial.trec").read_bytes()


def test_the_notice_makes_the_fused_run_to_the_byte(sample, tmp_path, shipped):
    """From the first stage and the run of the bi-encoder as it is shipped."""
    encoder, *_others = shipped.values()
    (fuse,) = [each for each in sample.commands(tmp_path) if each[0] == "fuse"]
    Path(fuse[fuse.index("--out") - 1]).write_bytes(run_bytes(encoder.ranking, "bi-encoder"))
    assert main(fuse) == 0
    (fused,) = [run for name, run in shipped.items() if "RRF" in name]
    assert Path(fuse[-1]).read_bytes() == run_bytes(fused.ranking, "fusion-rrf")


@pytest.mark.parametrize("language", ["en"], indirect=True)
def test_the_notice_makes_the_run_that_is_worse_to_the_byte(sample, tmp_path, shipped):
    *_others, unstemmed = sample.commands(tmp_path)
    assert main(unstemmed) == 0
    kept = shipped["BM25 without stemming"].ranking
    assert (tmp_path / "unstemmed.trec").read_bytes() == run_bytes(kept, "bm25")


@pytest.mark.model
@pytest.mark.parametrize(
    ("language", "place", "name"),
    [("en", 0, "bge-small"), ("en", 1, "MiniLM cross-encoder")],
    indirect=["language"],
)
def test_the_notice_makes_the_scores_of_the_models(sample, tmp_path, shipped, place, name):
    """Of the first queries: the scores of one do not depend on the others."""
    folder = tmp_path / sample.folder.name
    shutil.copytree(sample.folder, folder)
    lines = (folder / "initial.trec").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "initial.trec").write_text("".join(lines[:60]), encoding="utf-8")
    command = [
        word.replace(str(sample.folder), str(folder)) for word in sample.commands(tmp_path)[place]
    ]
    assert main(command) == 0
    made = read_run(Path(command[-1])).set_index(["query_id", "doc_id"])["score"]
    kept = shipped[name].ranking.frame().set_index(["query_id", "doc_id"])["score"]
    assert made.index.get_level_values("query_id").nunique() >= 2
    assert np.abs(made - kept[made.index]).max() < 1e-4


def test_a_shipped_workspace_file_holds_finished_runs(sample, shipped):
    assert runs_of(sample.folder).stat().st_size < 3e6
    assert len(shipped) >= 3
    for run in shipped.values():
        assert run.shipped
        assert run.created
        assert not run.left_out
        assert "failed" not in set(run.queries["state"])
    timed = [each for each in shipped.values() if each.queries["latency_ms"].notna().any()]
    assert timed
    assert all(each.machine["cpu"] and each.measured is not None for each in timed)
