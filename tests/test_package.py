"""The wheel, built and installed by the lines of the Dockerfile, and started outside this folder.

The installation uses the packages of this environment, so that nothing is downloaded. Not tested:
`docker build` itself, and the steps of action.yml that use other actions.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from rankdash import __version__
from rankdash.core.base.shipped import SAMPLES, runs_of
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.workspace_file import archive
from tests.sets import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
SAMPLE = ROOT / "assets" / "samples" / "helpcentre"
# Not needed to run rankdash.
LEFT_OUT = {"assets/screenshot.png"}
# pip downloads nothing: hatchling and all requirements of rankdash are installed here.
ALONE = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_QUIET": "1"}
SETTINGS = """
import json, sys
import streamlit as st
from streamlit.web.server.starlette import starlette_server
import rankdash
from rankdash.app.command import main
from rankdash.core.base.i18n import pgettext, speaking
def shown(self):
    names = ("server.address", "client.disableDataExport", "client.showErrorDetails",
             "theme.light.primaryColor", "browser.gatherUsageStats")
    with speaking("zh"):
        told = [rankdash.__file__, pgettext("page", "Overview")]
    print(json.dumps([*told, *map(st.get_option, names)]))
starlette_server.UvicornRunner.run = shown
sys.exit(main([]))
"""


class Installed:
    """An environment with rankdash. wheel: the installed file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wheels = folder / "wheel"

    def run(self, *command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command, cwd=cwd, env=self.environment(environment), capture_output=True, text=True
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done

    def environment(self, more: dict[str, str]) -> dict[str, str]:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RANKDASH", "STREAMLIT", "PYTHON", "PIP"))
        }
        path = f"{self.folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {**inherited, "PATH": path, **more}


def lines(instruction: str) -> list[str]:
    """Return the arguments of each occurrence of an instruction in the Dockerfile."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^{instruction} (.*)$", joined, re.MULTILINE)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    if find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: see tests/requirements.txt")
    made = Installed(tmp_path_factory.mktemp("image"))
    home = made.folder / "venv"
    venv.create(home)
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "here.pth").write_text("\n".join(each for each in sys.path if "site-pack" in each))
    pip = home / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\nexec "{home / "bin" / "python"}" -m pip "$@"\n')
    pip.chmod(0o755)
    made.wheels.mkdir()
    (made.wheels / "requirements.txt").write_bytes((ROOT / "requirements.txt").read_bytes())
    build, install, other = lines("RUN")
    assert other.startswith("useradd ")
    for line in (build, install):
        here = line.replace("/src", str(ROOT)).replace("/wheel", str(made.wheels))
        made.run("sh", "-c", here, cwd=made.folder, **ALONE)
    return made


def test_the_wheel_holds_what_runs_and_nothing_else(installed):
    (wheel,) = installed.wheels.glob("*.whl")
    assert wheel.name == f"rankdash-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"rankdash-{__version__}.dist-info/METADATA").decode()
    found = {name for name in names if ".dist-info/" not in name}
    folders = (ROOT / "rankdash", ROOT / "pages", ROOT / "assets")
    ours = {path.relative_to(ROOT).as_posix() for each in folders for path in each.rglob("*")}
    files = {name for name in ours if (ROOT / name).is_file() and "__pycache__" not in name}
    files |= {"app.py", ".streamlit/config.toml"}
    assert found == {
        name if name.startswith("rankdash/") else f"rankdash/dashboard/{name}"
        for name in files - LEFT_OUT
    }
    assert {"rankdash/py.typed", "rankdash/locale/zh.po"} <= found
    assert "License-Expression: MIT" in metadata and "Requires-Python: >=3.11" in metadata


def test_what_was_tested_is_within_the_ranges_of_the_package():
    pins = {}
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        name, equals, version = line.partition("==")
        if equals:
            pins[name.lower()] = version
    extras = PROJECT["optional-dependencies"]
    ranges = {
        each.name.lower(): each.specifier
        for each in map(Requirement, [*PROJECT["dependencies"], *extras["models"]])
    }
    assert set(ranges) == set(pins)
    assert all(ranges[name].contains(version) for name, version in pins.items())
    neural = {"torch", "transformers", "sentence-transformers"}
    assert not neural & {Requirement(each).name for each in PROJECT["dependencies"]}


def test_commands_and_settings_of_the_dashboard_hold_in_any_folder(installed, tmp_path):
    for command in (["rankdash"], ["python", "-m", "rankdash"]):
        told = installed.run(*command, "--version", cwd=tmp_path).stdout
        assert told == f"rankdash {__version__}\n"
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "config.toml").write_text(
        '[server]\naddress = "0.0.0.0"\n[client]\ndisableDataExport = false\n'
    )
    home = str(tmp_path / "home")
    done = installed.run("python", "-c", SETTINGS, cwd=tmp_path, RANKDASH_HOME=home)
    place, *told = json.loads(done.stdout.splitlines()[-1])
    assert Path(place).is_relative_to(installed.folder)
    assert told == ["概览", "127.0.0.1", True, "type", "#475569", False]


def test_the_container_serves_the_sample_and_ends_quietly(installed, tmp_path):
    home = tmp_path / "home"
    (command,) = (json.loads(line) for line in lines("CMD"))
    (check,) = lines(r"HEALTHCHECK [^\n]*? CMD")
    environment = {
        "RANKDASH_HOME": str(home),
        "STREAMLIT_SERVER_ADDRESS": "127.0.0.1",
        "STREAMLIT_SERVER_PORT": "0",
        "STREAMLIT_SERVER_BASE_URL_PATH": "/tools/rank/",
    }
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=installed.environment(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests in a background process ignore Ctrl+C, and so would this process.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        (port,) = re.findall(r"http://127\.0\.0\.1:(\d+)/tools/rank ", said)
        installed.run(
            *shlex.split(check),
            cwd=tmp_path,
            **{**environment, "STREAMLIT_SERVER_PORT": port},
        )
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/tools/rank/") as page:
            assert b"<title>" in page.read()
        for host, path in (("other.example", ""), ("localhost", "_stcore/metrics")):
            asked = urllib.request.Request(
                f"http://127.0.0.1:{port}/tools/rank/{path}", headers={"Host": host}
            )
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(asked)
            refused.value.close()
            assert refused.value.code == (404 if path else 421)
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (130, "Stopped.\n")
    # The wheel contains every sample with its runs.
    store = Workspace(home)
    opened = [row.id for row in store.datasets()]
    shipped = [runs_of(folder) for folder in SAMPLES.values() if runs_of(folder).is_file()]
    assert opened == [archive.datasets_in(file)[0] for file in shipped]
    assert {row.dataset_id for row in store.runs()} == set(opened)


def test_the_lines_of_the_action_gate_a_change(installed, tmp_path):
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    given = {
        "qrels": str(SAMPLE / "qrels.tsv"),
        "baseline": str(SAMPLE / "initial.trec"),
        "challenger": "branch.trec",
        "conditions": "--min ndcg@10=0.40 --max-hurt 0.2",
        "junit": action["inputs"]["junit"]["default"],
    }
    assert set(given) == set(action["inputs"])
    (tmp_path / "branch.trec").write_bytes((SAMPLE / "initial.trec").read_bytes())
    summary = tmp_path / "summary.md"
    environment = {**ALONE, "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_STEP_SUMMARY": str(summary)}
    steps = [step for step in action["runs"]["steps"] if "run" in step]
    for step in steps:
        named = {
            name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: given[found[1]], value)
            for name, value in step.get("env", {}).items()
        }
        installed.run("bash", "-e", "-c", step["run"], cwd=tmp_path, **environment, **named)
    assert summary.read_text(encoding="utf-8").startswith("## Passed: branch against initial")
    assert "<testsuite" in (tmp_path / given["junit"]).read_text(encoding="utf-8")
