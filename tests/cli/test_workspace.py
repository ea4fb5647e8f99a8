"""`workspace export` and `import`: from one folder into another, and what goes wrong in a line."""

import io
import sys

import pytest

from rankdash.cli import main
from rankdash.store import Workspace
from rankdash.store.notes.notes import Notes
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
    Notes(filled).keep(shop, "q1", ["odd"], "look")
    file = tmp_path / "shop.rankdash.zip"
    done = run("workspace", "export", file, "--data", "Shop")
    assert (done.code, done.out) == (0, "")
    assert "Data sets exported: 1" in done.err
    other = home("second")
    assert run("workspace", "import", file).err.endswith("Added: data sets 1, notes 1\n")
    assert [row.name for row in other.datasets()] == ["Shop"]
    Notes(other).keep(shop, "q1", [], "mine")
    done = run("workspace", "import", file)
    assert done.code == 0
    assert "warning: The note on query q1 differs. The one here stays." in done.err
    assert done.err.endswith("Added: nothing, it was all there\n")
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == [file.name]


def test_through_a_pipe(home, filled, capsysbinary, monkeypatch):
    assert main(["workspace", "export", "-", "--data", "Shop"]) == 0
    content, said = capsysbinary.readouterr()
    assert b"Written: standard output" in said
    other = home("second")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert main(["workspace", "import", "-"]) == 0
    assert [row.name for row in other.datasets()] == ["Shop"]


def test_a_data_set_that_is_not_there_is_named(run, filled, tmp_path):
    done = run("workspace", "export", tmp_path / "x.zip", "--data", "Nothing")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "There is no data set 'Nothing'" in done.err
    assert [each.name for each in tmp_path.iterdir()] == ["first"]


def test_nothing_is_taken_into_a_workspace_for_reading(run, filled, tmp_path, monkeypatch):
    file = tmp_path / "all.zip"
    run("workspace", "export", file)
    monkeypatch.setenv("RANKDASH_READ_ONLY", "1")
    done = run("workspace", "import", file)
    assert (done.code, "open for reading only" in done.err) == (2, True)


def test_a_repair_says_what_came_back(run, home, filled):
    Notes(filled).keep(filled.datasets()[0].id, "q1", ["odd"], "look")
    assert "There is nothing to repair" in run("workspace", "repair").err
    for copy in (filled.root / "backups").iterdir():
        copy.unlink()
    filled.database.file.write_bytes(b"\xff" * 10_000)
    said = run("workspace", "export", filled.root.parent / "all.zip").err
    assert "is damaged" in said
    assert "Data sets exported: 2" in said
    done = run("workspace", "repair")
    assert done.code == 0
    assert "There are now: data sets 2, runs 0, notes on queries 0" in done.err
    assert "Data sets and runs that only their folders knew: 2" in done.err
    assert "The old database is in " in done.err
    assert sorted(row.name for row in home("first").datasets()) == ["Help", "Shop"]


def test_a_check_names_what_changed_and_nothing_else(run, filled):
    done = run("workspace", "check")
    assert (done.code, done.out) == (0, "")
    assert done.err == "Data sets and runs checked: 2. Damaged: 0.\n"
    (file,) = filled.root.glob(f"datasets/{filled.datasets()[1].id}-*/documents.parquet")
    content = file.read_bytes()
    file.write_bytes(content[:9] + bytes([content[9] ^ 4]) + content[10:])
    done = run("workspace", "check")
    assert (done.code, done.out.count("\n")) == (1, 1)
    assert done.out.startswith(f"{filled.datasets()[1].name}: The workspace file {file} is damaged")
    assert done.err == "Data sets and runs checked: 2. Damaged: 1.\n"
    done = run("workspace", "export", filled.root.parent / "all.zip")
    assert done.code == 1
    assert f"{filled.datasets()[1].name} is damaged and was not exported" in done.err
    assert "Data sets exported: 1," in done.err


def test_a_folder_of_something_else_is_refused(run, tmp_path, monkeypatch):
    (tmp_path / "project" / "runs" / "bert").mkdir(parents=True)
    (tmp_path / "project" / "runs" / "bert" / "model.bin").write_bytes(b"weights")
    monkeypatch.setenv("RANKDASH_HOME", str(tmp_path / "project"))
    done = run("workspace", "export", tmp_path / "x.zip")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "Set RANKDASH_HOME to an empty or new folder." in done.err
    assert (tmp_path / "project" / "runs" / "bert" / "model.bin").exists()
