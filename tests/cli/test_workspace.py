"""`workspace import` of different notes, and by a pipe; other cases are in `approved/cli`."""

import io
import sys

import pytest

from rankdash.app.command import main
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.notes import Notes
from tests.stored import keep_rows

ROWS = "query_id,query,doc_id,document,label,score\n" + "".join(
    f"q{q},what is {q},d{d},document {d},{int(d == q)},{4 - d}\n"
    for q in range(3)
    for d in range(4)
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    def use(name):
        monkeypatch.setenv("RANKDASH_HOME", str(tmp_path / name))
        return Workspace.open()

    return use


@pytest.fixture
def filled(home):
    workspace = home("first")
    for name in ("Shop", "Help"):
        keep_rows(workspace, ROWS.replace("what", name), name)
    return workspace


def test_from_one_workspace_into_another(run, home, filled, tmp_path):
    shop = filled.datasets()[0].id
    Notes(filled).store(shop, "q1", ["odd"], "look")
    file = tmp_path / "shop.rankdash.zip"
    done = run("workspace", "export", file, "--data", "Shop")
    assert (done.code, done.out) == (0, "")
    assert "Data sets exported: 1" in done.err
    other = home("second")
    assert run("workspace", "import", file).err.endswith("Added: data sets 1, notes 1\n")
    assert [row.name for row in other.datasets()] == ["Shop"]
    Notes(other).store(shop, "q1", [], "mine")
    done = run("workspace", "import", file)
    assert done.code == 0
    assert "warning: The note on query q1 differs. The existing note stays." in done.err
    assert done.err.endswith("Added: nothing, the workspace contains everything\n")
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == [file.name]


def test_through_a_pipe(home, filled, capsysbinary, monkeypatch):
    assert main(["workspace", "export", "-", "--data", "Shop"]) == 0
    content, said = capsysbinary.readouterr()
    assert b"Written: standard output" in said
    other = home("second")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert main(["workspace", "import", "-"]) == 0
    assert [row.name for row in other.datasets()] == ["Shop"]
