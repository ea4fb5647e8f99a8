"""A command in a process of its own, which ends in ways that Ray ends it."""

import signal
import subprocess
import sys

import pytest

from rankdash.errors import UnavailableError
from rankdash.runs.on_ray.apart import needed, run_apart
from tests.runs.test_process import is_alive
from tests.sets import ROOT

SAMPLE = ROOT / "assets" / "samples" / "helpcentre"
PLUGIN = ROOT / "tests" / "runs" / "ray_plugin.py"
APART = """
import sys
from rankdash.runs.on_ray.apart import run_apart
sys.exit(run_apart(sys.argv[1:], "ray"))
"""


def command(folder, *settings, plugin=PLUGIN, reranker="hashing"):
    target = folder / "out.trec"
    options = ["--plugin", str(plugin), "--reranker", reranker, "--out", str(target)]
    options += [f"--set={each}" for each in settings]
    return ["rerank", "--data", str(SAMPLE), *options]


def test_a_command_that_ends_by_itself_has_its_exit_code(tmp_path, capfd):
    assert run_apart(command(tmp_path), "ray") == 0
    assert (tmp_path / "out.trec").stat().st_size
    assert run_apart(command(tmp_path, reranker="unheard"), "ray") == 2
    assert "error: " in capfd.readouterr().err


def test_a_command_whose_process_is_ended_says_so(tmp_path):
    plugin = tmp_path / "ending.py"
    # As Ray does where the raylet died.
    ending = PLUGIN.read_text().replace("os.kill(os.getpid(), signal.SIGKILL)", "os._exit(1)")
    plugin.write_text(ending)
    with pytest.raises(UnavailableError, match="The Ray cluster at ray is gone"):
        run_apart(command(tmp_path, "poison=e", plugin=plugin), "ray")
    with pytest.raises(UnavailableError, match="was killed by signal 9"):
        run_apart(command(tmp_path, "poison=e"), "ray")
    assert not (tmp_path / "out.trec").exists()


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
    arguments = command(tmp_path, "ms=60000", f"log={log}")
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
