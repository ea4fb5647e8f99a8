"""Each feature can be removed from the source; `python -m tests.amputate` also runs the tests."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.amputate import MOST, amputate
from tests.roles import ROOT

FEATURES = (
    *("cost", "gate", "history", "judge", "label"),
    *("latency", "nightly", "policy", "queries", "rank_shifts", "report", "run"),
)
IMPORTED = """
import importlib, pkgutil, rankdash
for each in pkgutil.walk_packages(rankdash.__path__, "rankdash."):
    if each.name not in ("rankdash.__main__", "rankdash.app.frame"):
        importlib.import_module(each.name)
"""


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_can_be_cut_out_of_the_source(feature: str, tmp_path: Path):
    for name in ("rankdash", "pages"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    changed = amputate(tmp_path, feature, ("rankdash", "pages"))
    assert len(changed) <= MOST, changed
    undefined = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "."]
    for command in (undefined, [sys.executable, "-c", IMPORTED]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
