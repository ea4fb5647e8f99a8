"""Flipped bits in files of a workspace: each is reported before a value is read, or harmless."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from rankdash.core.base.errors import RankdashError
from rankdash.core.workspace import Workspace, checksums
from rankdash.core.workspace.folders import DATABASE
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.jobs.queue import Queue
from rankdash.core.workspace.score_cache import KeptScores, ScoreCache
from tests.broken import Words
from tests.marked import written
from tests.store.builders import everything, flip

_CACHE = "scores.sqlite"
_TEXTS, _ASKED = [f"text {n}" for n in range(5)], [("question", "text")]


def values(root: Path) -> tuple[str, list[object]]:
    """Return all stored values of a workspace, and the cached values."""
    workspace = Workspace(root, read_only=True)
    if workspace.trouble is not None:
        raise workspace.trouble
    kinds = {"datasets": workspace.datasets(), "runs": workspace.runs()}
    for kind, key in ((kind, row.id) for kind, rows in kinds.items() for row in rows):
        if (damage := workspace.damage(kind, key)) is not None:
            raise damage
    judges = StoredJudges(workspace).rows(), Queue(workspace).rows()
    stored = repr((everything(workspace), judges, workspace.setting("prices")))
    with TemporaryDirectory() as spare:
        # Opening a cache removes damaged rows, so a copy is opened.
        cache = ScoreCache(Path(shutil.copy(root / _CACHE, spare)))
        (kept,) = cache.read("model", [("question", _TEXTS)])
        scores = [None if np.isnan(each) else each for each in kept.scores.tolist()]
        return stored, [*scores, *(each or None for each in cache.read_answers("judge", _ASKED))]


@pytest.mark.thorough
def test_of_120_flipped_bits_none_changes_a_value_or_is_a_raw_error(tmp_path):
    """One at a time, in random files; tests/store flips bits of the log of a database."""
    root, chance = tmp_path / "home", random.Random(3)
    workspace = written(Workspace.open(root), Words())
    scores = KeptScores.nothing(len(_TEXTS))
    scores.scores[:] = np.arange(len(_TEXTS))
    workspace.score_cache.write("model", [("question", _TEXTS, scores)])
    workspace.score_cache.write_answers("judge", [("question", "text", "an answer")])
    checksums.make_backup(root / DATABASE)
    stored, cached = before = values(root)
    # Without files that contain no data: locks and reserved disk space.
    files = [
        each
        for each in sorted(root.rglob("*"))
        if each.is_file() and not each.name.endswith(("-reserve", "-repair", "-wal", "-shm"))
    ]
    # Half of the flips are in databases. Empty bytes, most of a database, are not flipped.
    files += [root / DATABASE, root / _CACHE] * (len(files) // 2)
    refused, wrong = Counter(), []
    for _flip in range(120):
        file = chance.choice(files)
        content = file.read_bytes()
        at = chance.choice([at for at, byte in enumerate(content) if byte])
        bit = chance.randrange(8)
        flip(file, at, bit)
        what = ""
        try:
            now, cells = values(root)
            # A cached value may be missing.
            pairs = zip(cells, cached, strict=True)
            if now != stored or any(each not in (None, was) for each, was in pairs):
                what = "another value"
        except RankdashError:
            refused[file.name] += 1
        except Exception as error:  # noqa: BLE001 - the error to find
            what = repr(error)
        if what:
            wrong.append(f"{file.relative_to(root)}, byte {at}, bit {bit}: {what}")
        file.write_bytes(content)
    assert values(root) == before
    assert wrong == []
    assert refused[DATABASE] > 10
