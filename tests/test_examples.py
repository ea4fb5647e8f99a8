"""The selection of tests, and the examples of Hypothesis: the same, or from a printed seed."""

import os
import re
import subprocess
import sys
from pathlib import Path

from hypothesis import settings

from tests.__main__ import PREFIX, ROOT, arguments, remove_abandoned


def test_no_example_has_a_deadline_and_a_failure_is_repeated_from_the_source_or_the_seed(
    pytestconfig,
):
    chosen = settings.get_current_profile_name()
    assert chosen == (pytestconfig.getoption("--hypothesis-profile") or "same")
    assert settings.default.deadline is None
    assert settings.default.derandomize == (chosen != "random")


def test_new_examples_are_drawn_from_a_seed_that_is_printed(capsys):
    first, second = arguments(["--random", "-x"], {}), arguments(["--random", "-x"], {})
    [one, other] = [next(each for each in given if "seed" in each) for given in (first, second)]
    assert one != other
    assert one in capsys.readouterr().out
    assert "--hypothesis-profile=random" in first
    assert first[-1] == "-x"


def test_what_runs_is_chosen_by_an_argument_or_a_variable():
    usual = arguments(["-x"], {})
    assert usual == ["-m", "not thorough", "-x"]
    assert arguments(["--all", "-x"], {}) == arguments(["-x"], {"RANKDASH_TESTS": "all"}) == ["-x"]
    quick = arguments(["--quick"], {"RANKDASH_TESTS": "all"})
    assert "not browser and not model and not slow and not thorough" in quick


def test_what_is_left_out_as_slow_exists():
    listed = Path(__file__).with_name("slow.txt").read_text().split()
    for file, _, name in (each.partition("::") for each in listed):
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), (file, name)


def test_only_folders_of_killed_test_commands_are_deleted(tmp_path):
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    abandoned = tmp_path / f"{PREFIX}{killed.pid}-abc"
    others = [tmp_path / f"{PREFIX}{os.getpid()}-abc", tmp_path / f"{PREFIX}mine", tmp_path / "x-1"]
    for folder in (abandoned, *others):
        folder.mkdir()
    remove_abandoned(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(others)
