"""`python -m tests`: the checks of this project, the quick ones first and the types last.

With `--quick`, all but the tests that run Chromium or a neural model or are slow, by
`tests/slow.txt`, and a tenth of the examples that tests draw. With `--all`, or RANKDASH_TESTS=all,
also the thorough ones (kills, full disks, damaged files by the thousand, several processes, every
journey in the browser), then the quick ones with the oldest versions that pyproject.toml allows
(`tests/lowest.py`), and then faults are planted in the source, to list the ones that no test
notices (`tests/planted.py`). With `--times`, what took longest is written to `tests/slow.txt`.

Tests draw the same examples each time; with `--random` they draw others and run in another order,
from a seed that is printed. Any other argument goes to pytest.
"""

import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
SHOWN = ("streamlit", "pandas", "numpy", "plotly", "torch", "sentence-transformers", "pytest")
# One per processor, if the memory suffices: each takes 2 GB, and the browsers need more.
_ROOM = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // (4 * 1024**3)
PROCESSES = max(min(os.cpu_count() or 1, _ROOM, 8), 2)
CHECKS = {
    "format": [str(BIN / "ruff"), "format", "--check", "."],
    "lint": [str(BIN / "ruff"), "check", "."],
    "imports": [str(BIN / "lint-imports")],
    # In the order of `tests/conftest.py`, whatever number of tests a file has.
    "tests": [
        *(sys.executable, "-m", "pytest", "-q", "--durations=10", "-n", str(PROCESSES)),
        # Asserts that show values take each process 20 s to rewrite, so failed tests run again.
        *("--dist", "loadfile", "--no-loadscope-reorder", "--assert=plain"),
    ],
}
AGAIN = [sys.executable, "-m", "pytest", "-q", "--last-failed", "--last-failed-no-failures=none"]
# It runs in parallel, because it takes half a minute on one processor without a cache.
TYPES = [str(BIN / "mypy")]

CHOICES = {
    "--quick": (
        *("-m", "not browser and not model and not slow and not thorough"),
        "--hypothesis-profile=few",
    ),
    "--all": (),
    "": ("-m", "not thorough"),
}


def choice(given: list[str], variables: Mapping[str, str]) -> str:
    """Return the key of `CHOICES` for the tests to run."""
    everything = ["--all"] * (variables.get("RANKDASH_TESTS") == "all")
    return next(each for each in CHOICES if each in (*given, *everything, ""))


def arguments(given: list[str], variables: Mapping[str, str]) -> list[str]:
    """Return the arguments of pytest."""
    own = [*CHOICES[choice(given, variables)]]
    if "--random" in given:
        seed = random.SystemRandom().randrange(2**32)
        drawn = ["--hypothesis-profile=random", f"--hypothesis-seed={seed}"]
        drawn += ["-p", "randomly", f"--randomly-seed={seed}"]
        print("The same examples in the same order again: python -m tests", *drawn)
        own += drawn
    return [*own, *(each for each in given if each not in (*CHOICES, "--random"))]


# The folder for files in memory on Linux, and more space than all tests together use.
MEMORY = Path("/dev/shm")
# The process id of the command follows.
PREFIX = "rankdash-tests-"
ENOUGH_BYTES = 4 * 1024**3


def folder_in_memory() -> Path | None:
    """Return a folder for temporary files in memory; None if it has too little space, or programs
    cannot run from it."""
    if not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK):
        return None
    room = os.statvfs(MEMORY)
    fits = room.f_bavail * room.f_frsize >= ENOUGH_BYTES
    return MEMORY if fits and not room.f_flag & os.ST_NOEXEC else None


def remove_abandoned(parent: Path) -> None:
    """Delete the folders of test commands that were killed: each takes up to 4 GB of memory."""
    for folder in parent.glob(f"{PREFIX}*-*"):
        process = folder.name.removeprefix(PREFIX).split("-")[0]
        if process.isdigit() and not Path("/proc", process).exists():
            shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    remove_abandoned(MEMORY)
    prefix = f"{PREFIX}{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=folder_in_memory()) as folder:
        # Some tests open files in it as another user.
        Path(folder).chmod(0o711)
        # Threads of several processes that wait for each other would block the processors.
        environment = {**os.environ, "TMPDIR": folder, "OMP_NUM_THREADS": "1"}
        # Many tests start processes, and each would compile its imports again.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return check(environment)


def check(environment: dict[str, str]) -> int:
    """Run every check and print the failed ones."""
    given = arguments(sys.argv[1:], os.environ)
    CHECKS["tests"] += given
    thorough = choice(sys.argv[1:], os.environ) == "--all"
    if thorough:
        CHECKS["lowest versions"] = [sys.executable, "-m", "tests.lowest"]
    print(f"Python {platform.python_version()} on {platform.platform()}")
    print(", ".join(f"{name} {version(name)}" for name in SHOWN))
    failed = []
    types = subprocess.Popen(
        TYPES,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    for name, command in CHECKS.items():
        started = time.monotonic()
        print(f"\n== {name}", flush=True)
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
            failed.append(name)
        print(f"== {name}: {time.monotonic() - started:.0f} s", flush=True)
    if "tests" in failed:
        print("\n== what failed once more, with its values", flush=True)
        rest = [each for each in given if each != "--times"]
        subprocess.run([*AGAIN, *rest], cwd=ROOT, env=environment, check=False)
    if thorough and not failed:
        print("\n== planted faults", flush=True)
        subprocess.run(
            [sys.executable, "-m", "tests.planted"], cwd=ROOT, env=environment, check=False
        )
    print(f"\n== types\n{types.communicate()[0]}", flush=True)
    if types.returncode:
        failed.append("types")
    if failed:
        print("\nFailed: " + ", ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
