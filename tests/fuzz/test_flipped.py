"""Flipped bits in every file of a workspace: each is named before a value is read, or harmless."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from rankdash.errors import RankdashError
from rankdash.store import Workspace, backups
from rankdash.store.folders import DATABASE
from rankdash.store.jobs.judges import StoredJudges
from rankdash.store.jobs.queue import Queue
from rankdash.store.notes.corrections import Corrections
from rankdash.store.notes.label_notes import LabelNotes
from rankdash.store.notes.label_plans import LabelPlans
from rankdash.store.notes.notes import Notes
from rankdash.store.notes.pins import Pins
from rankdash.store.notes.run_notes import RunNotes
from rankdash.store.score_cache import KeptScores, ScoreCache
from tests.broken import Words
from tests.marked import written

_CACHE, _LOG = "scores.sqlite", f"{DATABASE}-wal"
_TEXTS, _ASKED = [f"text {n}" for n in range(5)], [("question", "text")]


def made(root: Path) -> None:
    """Make a workspace that has a row of every kind that holds a value."""
    workspace = written(Workspace.open(root), Words())
    scores = KeptScores.nothing(len(_TEXTS))
    scores.scores[:] = np.arange(len(_TEXTS))
    workspace.score_cache.write("model", [("question", _TEXTS, scores)])
    workspace.score_cache.write_answers("judge", [("question", "text", "an answer")])
    backups.make(root / DATABASE)


def change_and_die(root: Path) -> None:
    """Change a row in each of many transactions and kill this process, which leaves their log."""
    workspace = Workspace.open(root)
    (data,) = workspace.datasets()
    labels = Corrections(workspace)
    pairs = [each.pair for each in labels.all(data.id)]
    # A connection that stays open keeps the log.
    with workspace.database.reading():
        for n in range(20):
            labels.correct(data.id, pairs[n % len(pairs)], float((n + 1) % 4), "ann")
            workspace.set_setting("prices", f'{{"per_1000_searches": {n}}}')
        os.kill(os.getpid(), signal.SIGKILL)


def _killed(root: Path, copy: Path) -> dict[Path, bytes]:
    """Copy a workspace and let a process that writes to it be killed. Return the content of its log
    and of the index of the log."""
    shutil.copytree(root, copy)
    code = "import sys; from pathlib import Path; from tests.fuzz import test_flipped as flipped; "
    command = [sys.executable, "-c", f"{code}flipped.change_and_die(Path(sys.argv[1]))", str(copy)]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], check=False)
    assert ended.returncode == -signal.SIGKILL
    return {each: each.read_bytes() for each in (copy / _LOG, copy / f"{DATABASE}-shm")}


def values(root: Path) -> dict[str, Any]:
    """All that is read of a workspace, by what it is."""
    workspace = Workspace(root, read_only=True)
    if workspace.trouble is not None:
        raise workspace.trouble
    (data,), runs = workspace.datasets(), workspace.runs()
    for kind, row in (("datasets", data), *(("runs", run) for run in runs)):
        if (damage := workspace.damage(kind, row.id)) is not None:
            raise damage
    stored, whole = workspace.dataset(data.id), [workspace.run(run.id) for run in runs]
    (judge,) = StoredJudges(workspace).rows(data.id)
    rankings = [stored.candidates, *(run.ranking for run in whole)]
    found = {
        "rows": repr((data, runs, judge, Queue(workspace).rows())),
        "data": [getattr(stored, name).to_json() for name in ("queries", "documents", "qrels")],
        "report": workspace.check_report(data.id),
        "rankings": [each and each.frame().to_json(double_precision=15) for each in rankings],
        "results": [run.queries.to_json(double_precision=15) for run in whole],
        "calls": [None if run.calls is None else run.calls.to_json() for run in whole],
        "runs": [repr((run.settings, run.machine, run.measured, run.load_ms)) for run in whole],
        "labels": Corrections(workspace).all(data.id),
        "log": Corrections(workspace).log(data.id),
        "layer": Corrections(workspace).layer(data.id),
        "grades": StoredJudges(workspace).grades(judge.id).to_json(),
        "notes": [Notes(workspace).all(data.id), RunNotes(workspace).all(data.id)],
        "remarks": LabelNotes(workspace).all(data.id),
        "plan": LabelPlans(workspace).newest(data.id),
        "pin": Pins(workspace).of(data.id),
        "prices": workspace.setting("prices"),
    }
    with TemporaryDirectory() as spare:
        # What is damaged is removed from a cache when it is opened.
        cache = ScoreCache(Path(shutil.copy(root / _CACHE, spare)))
        (kept,) = cache.read("model", [("question", _TEXTS)])
        scores = [None if np.isnan(each) else each for each in kept.scores.tolist()]
        found["cached"] = [*scores, *(each or None for each in cache.read_answers("judge", _ASKED))]
    return found


def changed_in(found: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """What is read as another value. A cached value may be missing."""
    pairs = zip(found["cached"], before["cached"], strict=True)
    cached = [] if all(each in (None, was) for each, was in pairs) else ["cached"]
    return cached + [name for name in found if name != "cached" and found[name] != before[name]]


def trial(place: Path, flips: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Flip bits, one at a time, in files drawn at random. Returns how often a file of each name was
    refused, and a line for each flip after which something was read as another value."""
    root, killed, chance = place / "home", place / "killed", random.Random(seed)
    made(root)
    left = _killed(root, killed)
    before = {each: values(each) for each in (root, killed)}
    # Not files without content of a workspace: locks, and room on the disk.
    files = [
        each
        for each in sorted(root.rglob("*"))
        if each.is_file() and not each.name.endswith(("-reserve", "-repair", "-wal", "-shm"))
    ]
    # As often in a database as in all tables: most bytes of it are empty, and are spared.
    files += [root / DATABASE, root / _CACHE, killed / _LOG] * (len(files) // 3)
    refused: Counter[str] = Counter()
    wrong = []
    for _flip in range(flips):
        file = chance.choice(files)
        home = killed if file.is_relative_to(killed) else root
        content = file.read_bytes()
        at = chance.choice([at for at, byte in enumerate(content) if byte])
        bit = 1 << chance.randrange(8)
        file.write_bytes(content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :])
        try:
            what = changed_in(values(home), before[home])
        except RankdashError:
            what = []
            refused[file.name] += 1
        except Exception as error:  # noqa: BLE001 - what is looked for
            what = [repr(error)]
        if what:
            wrong.append(f"{file.relative_to(place)}, byte {at}, bit {bit}: {what}")
        for each, kept in {file: content, **(left if home == killed else {})}.items():
            each.write_bytes(kept)
    assert {each: values(each) for each in before} == before
    return refused, wrong


@pytest.mark.thorough
def test_of_120_flipped_bits_none_changes_a_value_or_is_a_raw_error(tmp_path):
    refused, wrong = trial(tmp_path, 120, 3)
    assert wrong == []
    assert refused[DATABASE] > 10 and refused[_LOG] > 10
