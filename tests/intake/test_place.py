"""The next start removes the uploads of a killed server, and nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rankdash.core.intake import reading
from tests.sets import ROOT

HOLDS_A_FILE = """
import sys
from rankdash.core.intake import reading
(reading.uploads_folder() / "upload").write_bytes(b"given")
print(reading.uploads_folder(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Start a process with an uploaded file. All folders are made in an empty one."""
    shutil.rmtree(reading.uploads_folder())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    started = []

    def start():
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDS_A_FILE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        started.append(process)
        return process, Path(process.stdout.readline().strip())

    yield start
    for process in started:
        with process:
            process.kill()
    shutil.rmtree(reading.uploads_folder())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot tell who lives")
def test_what_a_killed_server_left_goes_and_nothing_else(server, tmp_path):
    (dead, left), (other, moved), (_living, held) = server(), server(), server()
    for each in (dead, other):
        each.kill()
        each.wait()
    own = reading.uploads_folder()
    # Another program's folder with a similar name, an unfinished folder, and a link to a moved one.
    (tmp_path / "rankdash-results").mkdir()
    (tmp_path / "rankdash-results" / "mine.csv").touch()
    (tmp_path / "rankdash-begun").mkdir()
    [mark] = {each.name for each in moved.iterdir()} - {"upload"}
    (tmp_path / "rankdash-begun" / f"{mark}.new").touch()
    kept = moved.rename(tmp_path / "elsewhere")
    (tmp_path / "rankdash-link").symlink_to(kept)
    before = set(tmp_path.rglob("*"))
    reading.sweep_uploads()
    assert before - set(tmp_path.rglob("*")) == {left, left / "upload", left / mark}
    assert (held / "upload").read_bytes() == (kept / "upload").read_bytes() == b"given"
    assert own.is_dir() and reading.uploads_folder() == own


def test_a_server_that_ends_leaves_nothing_and_a_folder_taken_away_is_made_again(server):
    process, folder = server()
    assert folder.is_dir()
    process.stdin.close()
    assert process.wait() == 0
    assert not folder.exists()
    first = reading.uploads_folder()
    shutil.rmtree(first)
    assert reading.uploads_folder() != first and reading.uploads_folder().is_dir()
