"""Every command line of the README and the docs runs, on a small cut of the sample."""

import json
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from rankdash.loading import load
from rankdash.readers import sources_from_path
from rankdash.store.workspace import HOME_VARIABLE, Workspace
from tests.documented import DOCS, README, ROOT, assumptions, commands, plugin

SAMPLE = ROOT / "assets" / "samples" / "helpcentre"
QUERIES, DEPTH = 12, 20
# What stands for the reader's own in a command → what it is here.
PLACES = {"FOLDER": "folder", "FILE": "everything.zip", "NAME": "folder"}


def here(argument: str) -> str:
    """An argument of the docs as it is given here; files inside a folder too."""
    first, slash, rest = argument.partition("/")
    return PLACES.get(first, first) + slash + rest


def cut(name: str, keep: set[str]) -> str:
    """The lines of a file of the sample that speak of some queries, its heading included; of a
    ranking the first documents of each."""
    lines = (SAMPLE / name).read_text(encoding="utf-8").splitlines(keepends=True)
    if name == "initial.trec":
        lines = [line for line in lines if int(line.split()[3]) <= DEPTH]
    if name == "queries.jsonl":
        return "".join(line for line in lines if json.loads(line)["_id"] in keep)
    return "".join(line for line in lines if line.split()[0] in keep | {"query-id"})


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_plugin_stays: None) -> Path:
    """A folder with all that the commands read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    queries = (SAMPLE / "queries.jsonl").read_text(encoding="utf-8").splitlines()[:QUERIES]
    keep = {json.loads(line)["_id"] for line in queries}
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("queries.jsonl", "qrels.tsv", "initial.trec"):
        (folder / name).write_text(cut(name, keep), encoding="utf-8")
    (folder / "corpus.jsonl").write_bytes((SAMPLE / "corpus.jsonl").read_bytes())
    Path("qrels.tsv").write_text(cut("qrels.tsv", keep), encoding="utf-8")
    initial = cut("initial.trec", keep)
    labels = [line.split() for line in cut("qrels.tsv", keep).splitlines()[1:]]
    ideal = "".join(f"{query} Q0 {doc} 1 {label} ideal\n" for query, doc, label in labels)
    # What a build brings to the gate; all else is in the folder, or an earlier command writes it.
    Path("main.trec").write_text(initial, encoding="utf-8")
    Path("branch.trec").write_text(ideal, encoding="utf-8")
    # Two rankings, and the grades that a judge gave.
    Path("initial.trec").write_text(initial, encoding="utf-8")
    Path("minilm.trec").write_text(ideal, encoding="utf-8")
    grades = "".join(f"{query},{doc},{label}\n" for query, doc, label in labels)
    Path("grades.csv").write_text(f"query_id,doc_id,grade\n{grades}", encoding="utf-8")
    timings = [{"query_id": query, "latency_ms": 80.0} for query in sorted(keep)]
    Path("branch.json").write_text(json.dumps(timings))
    Path("assumptions.toml").write_text(assumptions(), encoding="utf-8")
    loaded = load(sources_from_path(folder), name=folder.name)
    Workspace.open().save_dataset(loaded.dataset, report_json=loaded.report.to_json())
    Path("shortest.py").write_text(plugin())
    return tmp_path


@pytest.mark.model
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_command_runs(run, files):
    # The server would not end, and a judge is a service.
    told = [
        line
        for line in commands(README, *sorted(DOCS.glob("*.md")))
        if line[0] != "serve" and line[:2] != ["judge", "run"]
    ]
    assert len(told) >= 8
    for line in told:
        arguments = [here(each) for each in line]
        done = run(*arguments)
        assert done.code == 0, (shlex.join(arguments), done.err)
        for flag, value in pairwise(arguments):
            if flag == "--out":
                assert Path(value).stat().st_size, shlex.join(arguments)
