"""Small files to evaluate, and the command line in this process."""

import gzip
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from rankdash.app.command import main
from rankdash.core import rerankers

QRELS = """\
q1 0 d1 2
q1 0 d2 0
q1 0 d3 1
q2 0 d1 1
q2 0 d4 0
q3 0 d2 0
q4 0 d1 1
"""
# q1: d2 and d3 are tied; q2: unjudged documents on top; q4 is missing; q9 has no labels.
RUN = """\
q1 Q0 d2 1 3.0 first
q1 Q0 d3 2 3.0 first
q1 Q0 d1 3 1.0 first
q2 Q0 d8 1 9.0 first
q2 Q0 d1 2 8.0 first
q2 Q0 d4 3 7.0 first
q3 Q0 d2 1 1.0 first
q9 Q0 d1 1 1.0 first
"""


@dataclass(frozen=True)
class Outcome:
    """The output of a command, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def command(*arguments: object) -> Outcome:
        try:
            code = main([str(each) for each in arguments])
        except SystemExit as ended:
            # `--version` and `--help` end like this.
            code = int(ended.code or 0)
        return Outcome(code, *capsys.readouterr())

    return command


@pytest.fixture
def no_plugin_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Unload the plugins of commands after a test; a command loads them for its process's life."""

    def add(files: Sequence[str]) -> None:
        monkeypatch.setenv(rerankers.PLUGINS_VARIABLE, os.pathsep.join(files))
        rerankers.add_plugins([])

    monkeypatch.setattr("rankdash.features.run.command_rerank.add_plugins", add)
    yield
    monkeypatch.undo()
    rerankers.add_plugins([])


@pytest.fixture
def qrels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.qrels"
    path.write_text(QRELS)
    return path


@pytest.fixture
def first(tmp_path: Path) -> Path:
    path = tmp_path / "first.trec"
    path.write_text(RUN)
    return path


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """Another ranking, gzipped."""
    path = tmp_path / "second.trec.gz"
    path.write_bytes(gzip.compress(RUN.replace("q1 Q0 d1 3 1.0", "q1 Q0 d1 3 9.0").encode()))
    return path
