"""Every command line of the README and the docs runs, on a small part of the sample."""

import json
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from rankdash.core.readers import sources_from_path
from rankdash.core.readers.loading import load
from rankdash.core.workspace.workspace import HOME_VARIABLE, Workspace
from tests.cli.sessions import cut
from tests.documented import DOCS, README, assumptions, commands, plugin

# Placeholder in a command → its value in this test.
PLACES = {"FOLDER": "folder", "FILE": "everything.zip", "NAME": "folder"}


def here(argument: str) -> str:
    """Return an argument of the docs with its placeholder replaced, also in a folder's path."""
    first, slash, rest = argument.partition("/")
    return PLACES.get(first, first) + slash + rest


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_plugin_stays: None) -> Path:
    """A folder with all files that the commands read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    sample = {name: text for name, text in cut("en").items() if "/" not in name}
    # Models take the most time: the beginning of a document is enough.
    docs = [json.loads(line) for line in sample["corpus.jsonl"].splitlines()]
    sample["corpus.jsonl"] = "".join(f"{json.dumps(d | {'text': d['text'][:99]})}\n" for d in docs)
    labels = [line.split() for line in sample["qrels.tsv"].splitlines()[1:]]
    ideal = "".join(f"{query} Q0 {doc} 1 {label} ideal\n" for query, doc, label in labels)
    grades = "".join(f"{query},{doc},{label}\n" for query, doc, label in labels)
    timings = [{"query_id": query, "latency_ms": 80.0} for query in sorted({q for q, *_ in labels})]
    # The build provides rankings and a judge's grades for the gate; all other files are in the
    # folder, or an earlier command writes them.
    contents = {
        **{f"folder/{name}": text for name, text in sample.items()},
        "qrels.tsv": sample["qrels.tsv"],
        **dict.fromkeys(("main.trec", "initial.trec"), sample["initial.trec"]),
        **dict.fromkeys(("branch.trec", "bi.trec"), ideal),
        "grades.csv": f"query_id,doc_id,grade\n{grades}",
        "branch.json": json.dumps(timings),
        "assumptions.toml": assumptions(),
        "overlap.py": plugin(),
    }
    Path("folder").mkdir()
    for name, text in contents.items():
        Path(name).write_text(text, encoding="utf-8")
    loaded = load(sources_from_path(tmp_path / "folder"), name="folder")
    Workspace.open().save_dataset(loaded.dataset, report_json=loaded.report.to_json())
    return tmp_path


@pytest.mark.model
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_command_runs(run, files):
    # The server would not end, and a judge is a service.
    told = [
        line
        for line in commands(
            README, *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("statistics/*.md"))
        )
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
