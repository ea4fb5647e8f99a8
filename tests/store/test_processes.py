"""Several real processes, as two browsers and a command line are, use one workspace at once."""

from rankdash.store import Workspace

WRITE = """
import sys
from dataclasses import replace
from pathlib import Path
from rankdash.store import Workspace
root, me = Path(sys.argv[1]), sys.argv[2]
workspace = Workspace.open(root)
dataset = workspace.dataset(workspace.datasets()[0].id)
run = workspace.run("run-1")
for number in range(10):
    workspace.save_run(replace(run, id=f"{me}-{number}", name=f"{me}-{number}"))
    workspace.set_setting(me, str(number))
    workspace.rename_dataset(dataset.id, f"{me}-{number}")
    if number % 2:
        workspace.delete_run(f"{me}-{number}")
"""

READ = """
import sys
from pathlib import Path
from rankdash.store import Workspace
workspace = Workspace.open(Path(sys.argv[1]))
first = workspace.datasets()[0].id
for _ in range(30):
    assert workspace.dataset(first).id == first
    assert len(workspace.run("run-1").ranking) == 4
    assert all(row.queries_done == 2 for row in workspace.runs(first))
"""

SAVE_THE_SAME = """
import sys
from pathlib import Path
from rankdash.store import Workspace
source, target = Workspace.open(Path(sys.argv[1])), Workspace.open(Path(sys.argv[2]))
dataset = source.dataset(source.datasets()[0].id)
target.save_dataset(dataset)
assert target.dataset(dataset.id) == dataset
"""


def finish(processes):
    for process in processes:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said


def test_readers_and_writers_do_not_disturb_each_other(workspace, make_dataset, make_run, python):
    dataset = make_dataset()
    workspace.save_dataset(dataset)
    workspace.save_run(make_run(dataset))
    finish(
        [python(WRITE, workspace.root, name) for name in ("a", "b")]
        + [python(READ, workspace.root)]
    )
    assert len(workspace.runs()) == 1 + 2 * 5
    assert len(list((workspace.root / "runs").iterdir())) == 1 + 2 * 5
    assert (workspace.setting("a"), workspace.setting("b")) == ("9", "9")
    for row in workspace.runs():
        assert len(workspace.run(row.id).ranking) == 4


def test_two_processes_that_save_the_same_data_set_store_it_once(
    workspace, make_dataset, tmp_path, python
):
    workspace.save_dataset(make_dataset())
    target = Workspace.open(tmp_path / "target")
    finish([python(SAVE_THE_SAME, workspace.root, target.root) for _ in range(3)])
    assert len(target.datasets()) == 1
    assert len(list((target.root / "datasets").iterdir())) == 1
