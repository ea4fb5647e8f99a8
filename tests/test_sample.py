"""The sample data sets: the statements of each NOTICE.md, checked with the shipped files."""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rankdash.app.command import main
from rankdash.core.base.shipped import SAMPLES, runs_of
from rankdash.core.data.ranking import Run
from rankdash.core.readers import sources_from_path
from rankdash.core.readers.loading import load
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import archive, import_workspace
from rankdash.kit.html.tables import run_bytes

ROOT = Path(__file__).parents[1]
RUN_COLUMNS = ["query_id", "q0", "doc_id", "rank", "score", "tag"]


@dataclass(frozen=True)
class Sample:
    """A sample, with the words of its NOTICE.md. counted: for passages, their lengths, queries and
    labels. runs: before the table of runs."""

    folder: Path
    type: str
    counted: tuple[str, str, str, str]
    runs: str

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
        """Return the commands of the NOTICE, as arguments, with outputs in a folder."""
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
        ("{} passages in English", "({} to {} words)", "{} queries", "{:,} labels"),
        "## How the runs are made",
    ),
    "zh": Sample(
        SAMPLES["zh"],
        "metadata.类型",
        ("{} 个段落，正文", "正文 {} 至 {} 字", "{} 条查询", "{:,} 个标注"),
        "## 附带的运行",
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
    """Name → run, as in a workspace after opening the sample."""
    workspace = Workspace(tmp_path_factory.mktemp("shipped"))
    import_workspace.bring_in(workspace, runs_of(sample.folder), "the sample")
    (row,) = workspace.datasets()
    assert row.source == "sample"
    assert archive.datasets_in(runs_of(sample.folder)) == [row.id]
    # The files of the folder give exactly this data set.
    assert load(sources_from_path(sample.folder)).dataset.id == row.id
    return {each.name: workspace.run(each.id) for each in workspace.runs()}


# The query about a code → its answer, and passages on the same code of another model.
CODES = {
    "en": {
        query: (answer, [each for each in ("tec-001", "tec-003", "tec-027", "tec-008")
                         if each != answer])
        for query, answer in (("KV-300 E07", "tec-001"), ("KV-310 E07", "tec-003"),
                              ("KV-420 E07", "tec-027"), ("EM-450 shows E07", "tec-008"))
    },
    "zh": {
        "R20 Pro E03": ("rob-002", ["rob-001", "rob-003"]),
        "RC-50 E1": ("kit-002", ["kit-001", "kit-011"]),
    },
}  # fmt: skip


def figures(language: str, sample: Sample, shipped: dict[str, Run]) -> Iterator[str]:
    """Yield statistics of the texts, the labels and the rankings."""
    corpus, queries, qrels, run = sample.corpus, sample.queries, sample.qrels, sample.first
    for name, column in (("_id", corpus), ("title", corpus), ("text", corpus), ("_id", queries),
                         ("text", queries)):  # fmt: skip
        yield f"{name}: {len(column)}, repeated: {column[name].duplicated().sum()}"
    yield f"shortest passage: {min(map(len, sample.words))} words"
    phrases = [set(zip(w, w[1:], w[2:], strict=False)) for w in sample.words]
    closest = max(
        len(one & other) / len(one | other)
        for place, one in enumerate(phrases)
        for other in phrases[:place]
    )
    yield f"most that two passages have in common, of three words: {closest:.3f}"
    texts = pd.concat([corpus["title"], corpus["text"], queries["text"]])
    chinese = texts.str.contains(r"[\u4e00-\u9fff]", regex=True)
    yield f"texts with Chinese characters: {chinese.mean():.1%}"
    pairs, own = ["query_id", "doc_id"], {*queries["_id"]}
    for name, frame in (("labels", qrels), ("first stage", run)):
        strangers = {*frame["query_id"]} ^ own | {*frame["doc_id"]} - {*corpus["_id"]}
        yield (
            f"{name}: pairs repeated {frame.duplicated(pairs).sum()}, unknown ids {len(strangers)}"
        )
    grades = qrels.groupby("query_id")["label"]
    yield f"labels by grade: {qrels['label'].value_counts().sort_index().to_dict()}"
    yield f"fewest labels of a query: {grades.size().min()}, lowest up to {grades.min().max()}"
    best = queries["_id"].map(grades.max())
    for kind, of_kind in best.groupby(queries[sample.type]):
        yield f"{kind}: best labels of its queries {of_kind.value_counts().sort_index().to_dict()}"
    ranked = run.groupby("query_id")
    ordered = (ranked["score"].diff().dropna() < 0).all()
    counted = (run["rank"] == ranked.cumcount() + 1).all()
    full = (ranked.size() == 50).sum()
    yield f"first stage: ranks counted {counted}, without ties {ordered}"
    yield f"documents of a query: up to {ranked.size().max()}, of {full} queries 50"
    for name, each in {"": run, **{n: r.ranking.frame() for n, r in shipped.items()}}.items():
        top = each[each["rank"] <= 10].merge(qrels, on=pairs, how="left")
        yield f"top 10 of {name or 'the first stage'} without a label: {top['label'].isna().sum()}"
    labels, asked = qrels.set_index(pairs)["label"], queries.set_index("text")["_id"]
    for query, (answer, others) in CODES[language].items():
        wrong = [int(labels.get((asked[query], each), -1)) for each in others]
        yield f"{query}: {answer} {labels[asked[query], answer]}, of other models {wrong}"


def test_texts_labels_and_rankings(language, sample, shipped, approved):
    """The NOTICE states: no text from a template, and no relevant code of another model."""
    approved(f"samples/{language}", "\n".join(figures(language, sample, shipped)))


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


def test_the_notice_makes_the_runs_without_a_model_to_the_byte(sample, tmp_path, shipped):
    """The fused one is made from the first stage and the shipped run of the bi-encoder."""
    encoder, *_others = shipped.values()
    fuse, *others = [each for each in sample.commands(tmp_path) if "bm25" in each or "fuse" in each]
    Path(fuse[fuse.index("--out") - 1]).write_bytes(run_bytes(encoder.ranking, "bi-encoder"))
    names = [name for name in shipped if "RRF" in name or "stemming" in name]
    for command, name in zip([fuse, *others], names, strict=True):
        assert main(command) == 0
        tag = "fusion-rrf" if command == fuse else "bm25"
        assert Path(command[-1]).read_bytes() == run_bytes(shipped[name].ranking, tag)


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
        assert not run.excluded
        assert "failed" not in set(run.queries["state"])
    timed = [each for each in shipped.values() if each.queries["latency_ms"].notna().any()]
    assert timed
    assert all(each.machine["cpu"] and each.measured is not None for each in timed)
