"""A command in a separate process, which ends in the ways in which Ray ends it."""

import signal
import subprocess
import sys

import pytest

from rankdash.core.base.errors import UnavailableError
from rankdash.core.runs.on_ray.cluster import needed, run_apart
from tests.runs.test_process import is_alive
from tests.sets import ROOT, SAMPLE

PLUGIN = ROOT / "tests" / "runs" / "ray_plugin.py"
APART = """
import sys
from rankdash.core.runs.on_ray.cluster import run_apart
sys.exit(run_apart(sys.argv[1:], "ray"))
"""


def test_how_a_command_ends_is_its_exit_code_or_said(tmp_path, capfd):
    data, plugin, target = (tmp_path / name for name in ("rows.csv", "own.py", "out.trec"))
    data.write_text("query_id,query,doc_id,document,label,rank\nq,ask,d,to ask,1,1\n")
    plugin.write_text("KINDS = []\n")

    def run(reranker="bm25"):
        options = ["--plugin", str(plugin), "--reranker", reranker, "--out", str(target)]
        return run_apart(["rerank", "--data", str(data), *options], "ray")

    assert run() == 0 and target.stat().st_size
    assert run("unheard") == 2
    assert "error: " in capfd.readouterr().err
    for ending, said in (
        # The output of Ray after its raylet died.
        ("_exit(1)", "Lost connection to the Ray cluster at ray"),
        ("kill(os.getpid(), 9)", "was killed by signal 9"),
    ):
        plugin.write_text(f"import os\nos.{ending}\n")
        with pytest.raises(UnavailableError, match=said):
            run()


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        *(pytest.param(number, marks=pytest.mark.thorough)
          for number in (signal.SIGINT, signal.SIGKILL)),
    ],
)  # fmt: skip
def test_a_signal_ends_both_processes(tmp_path, wait_until, number):
    log = tmp_path / "pids"
    arguments = ["rerank", "--data", str(SAMPLE), "--plugin", str(PLUGIN)]
    arguments += ["--reranker=hashing", "--set=ms=60000", f"--set=log={log}"]
    arguments += ["--out", str(tmp_path / "out.trec")]
    with subprocess.Popen([sys.executable, "-c", APART, *arguments], cwd=ROOT) as process:
        wait_until(lambda: log.exists() and log.read_text().strip())
        process.send_signal(number)
        code = process.wait()
    assert code == (-number if number == signal.SIGKILL else 128 + number)
    wait_until(lambda: not is_alive(int(log.read_text())))
    assert not (tmp_path / "out.trec").exists()


def test_over_a_client_no_other_process_is_needed(monkeypatch):
    assert not needed("ray://host:10001")
    monkeypatch.setitem(sys.modules, "ray", None)
    assert not needed("ray")
