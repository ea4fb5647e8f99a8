"""`rerank --resume`: a stopped run continues, and equals a run without interruption."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.sets import ROOT

SAMPLE = ROOT / "assets" / "samples" / "helpcentre"
PLUGIN = ROOT / "tests" / "runs" / "ray_plugin.py"
# Each of its processes writes its id, and the query of each call.
COUNTING = "    def _score(self, request):\n"
COUNTED = f"""{COUNTING}        with Path(self.settings["log"]).open("a") as lines:
            lines.write(request.query_id + "\\n")
"""
# Its runtime changes its scores. "auto" is the first one in RUNTIMES, the runtimes of the machine.
CHOOSING = """
from rankdash.core.base.errors import UnavailableError


class Choosing(Hashing):
    def prepare(self, corpus):
        super().prepare(corpus)
        here, wanted = os.environ["RUNTIMES"].split(), self.settings["runtime"]
        if wanted not in ("auto", *here):
            raise UnavailableError("No {runtime} here.", runtime=wanted)
        self.runtime = here[0] if wanted == "auto" else wanted

    def details(self):
        return {"runtime": self.runtime, "device": "cpu", "threads": 1}

    def _score(self, request):
        answer = super()._score(request)
        return Scored(answer.scores * (1 if self.runtime == "first" else -1))


KIND = RerankerKind(
    "hashing",
    "Hashing",
    "Hashes of the pairs.",
    (*KIND.settings, SettingSpec("runtime", "auto", "Runtime", "Of the machine.")),
    Capabilities(across_queries=True),
    Choosing,
)
"""


pytestmark = pytest.mark.usefixtures("no_plugin_stays")


@pytest.fixture
def command(tmp_path):
    plugin = tmp_path / "counting.py"
    plugin.write_text(PLUGIN.read_text().replace(COUNTING, COUNTED))

    def made(*options, out="out.trec", ms=0):
        return [
            *("rerank", "--data", str(SAMPLE), "--plugin", str(plugin), "--reranker", "hashing"),
            *(f"--set=log={tmp_path / 'log'}", f"--set=ms={ms}", "--out", str(tmp_path / out)),
            *map(str, options),
        ]

    return made


def scored(tmp_path):
    """Return the queries that were scored since the last call, in order."""
    log = tmp_path / "log"
    found = [line for line in log.read_text().split() if not line.isdigit()]
    log.unlink()
    return found


def broken(command, tmp_path, number, *options):
    """Start it, and send a signal after some queries are stored."""
    kept = tmp_path / "kept"
    started = [sys.executable, "-m", "rankdash", *command("--resume", kept, *options, ms=15)]
    with subprocess.Popen(started, cwd=ROOT, stderr=subprocess.PIPE) as process:
        while process.poll() is None and (not kept.exists() or kept.read_bytes().count(b"\n") < 5):
            time.sleep(0.02)
        os.kill(process.pid, number)
    assert process.returncode
    return kept


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_broken_off_goes_on(run, command, tmp_path, number):
    kept = broken(command, tmp_path, number)
    assert not (tmp_path / "out.trec").exists()
    # An incomplete line, as after a crash of the machine.
    with kept.open("ab") as file:
        file.write(b'{"query_id": "cut')
    before = kept.read_bytes().count(b"\n") - 1
    first = scored(tmp_path)
    for ms, other, what in (
        *((15, ["--depth", 7], "depth"), (15, ["--repeats", 2], "repeats")),
        *((15, ["--without-text", "empty"], "without-text"), (16, [], "settings")),
    ):
        refused = run(*command("--resume", kept, *other, ms=ms))
        assert refused.code == 2 and f"belong to another run ({what} differ)" in refused.err
    assert run(*command("--resume", kept, ms=15)).code == 0
    again = scored(tmp_path)
    assert not kept.exists()
    done = len({*first} | {*again})
    assert done == 168 and len({*again}) <= done - before
    assert run(*command(out="whole.trec")).code == 0
    assert (tmp_path / "out.trec").read_bytes() == (tmp_path / "whole.trec").read_bytes()


@pytest.mark.parametrize(
    "options", [(), pytest.param(("--shard", "1/2"), marks=pytest.mark.thorough)]
)
def test_it_goes_on_by_the_runtime_that_it_began_with(run, command, tmp_path, monkeypatch, options):
    with (tmp_path / "counting.py").open("a") as plugin:
        plugin.write(CHOOSING)
    monkeypatch.setenv("RUNTIMES", "first second")
    kept = broken(command, tmp_path, signal.SIGKILL, *options)
    monkeypatch.setenv("RUNTIMES", "second")
    refused = run(*command("--resume", kept, *options, ms=15))
    assert refused.code == 2 and not (tmp_path / "out.trec").exists()
    assert "Resuming with runtime=first, device=cpu" in refused.err
    assert refused.err.splitlines()[-1].startswith("error: No first here.")
    monkeypatch.setenv("RUNTIMES", "second first")
    assert run(*command("--resume", kept, *options, ms=15)).code == 0
    other = run(*command(*options, out="other.trec"))
    monkeypatch.setenv("RUNTIMES", "first second")
    whole = run(*command(*options, out="whole.trec"))
    assert other.code == whole.code == 0
    found, first, second = (
        # The first line of a shard contains its durations.
        [line for line in (tmp_path / name).read_bytes().splitlines() if line[:1] != b"#"]
        for name in ("out.trec", "whole.trec", "other.trec")
    )
    assert found == first != second
