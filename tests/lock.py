"""The lock files of all tested packages, written from the present environment.

    python -m tests.lock

writes `tests/requirements.lock`, which pip uses as constraints with `requirements.txt` and
`tests/requirements.txt`; `tests/requirements.hashes`, the same with the SHA-256 of the files for
CPython 3.11 on Linux with x86-64; and docs/licenses.md, with the packaged models.
"""

import json
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rankdash.core.rerankers.neural.packaged import MODELS

ROOT = Path(__file__).parents[1]
LOCK, HASHES, LICENSES = (
    ROOT / "tests" / "requirements.lock",
    ROOT / "tests" / "requirements.hashes",
    ROOT / "docs" / "licenses.md",
)
# Packages with different contents for the same version: for CPUs only and for graphics cards.
BUILDS = {"torch"}
_HEAD = "# Written by `python -m tests.lock`.\n"
# The prefix of the classifiers of licences.
_CLASSIFIER = "License :: OSI Approved :: "


def named(file: Path) -> list[str]:
    """Return the requirements of a file and of the files that it includes."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found += named(file.parent / line[3:])
        elif line and not line.startswith(("#", "-")):
            found.append(line)
    return found


def tree() -> dict[str, Distribution]:
    """Return name → installed package, of all packages that the tests require."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    wanted = [Requirement(line) for line in named(ROOT / "tests" / "requirements.txt")]
    while wanted:
        requirement = wanted.pop()
        name = canonicalize_name(requirement.name)
        made = found.setdefault(name, distribution(name))
        for extra in {"", *requirement.extras} - {done for each, done in seen if each == name}:
            seen.add((name, extra))
            needs = map(Requirement, made.requires or ())
            wanted += [
                each for each in needs if not each.marker or each.marker.evaluate({"extra": extra})
            ]
    return dict(sorted(found.items()))


def public(made: Distribution) -> str:
    """Return the version without the local part that one index adds."""
    return made.version.partition("+")[0]


def license_of(made: Distribution) -> str:
    """Return the licence in a package's metadata, as one line."""
    about = made.metadata
    expression = about.get("License-Expression") or about.get("License") or ""
    classified = [
        each.removeprefix(_CLASSIFIER)
        for each in about.get_all("Classifier", [])
        if each.startswith(_CLASSIFIER)
    ]
    first = expression.strip().splitlines()[0].strip() if expression.strip() else ""
    short = first if len(first) <= 60 else ""
    return (short or ", ".join(classified) or first[:60]).replace("|", "/")


def lock(found: dict[str, Distribution]) -> str:
    return _HEAD + "".join(f"{name}=={public(made)}\n" for name, made in found.items())


def licenses(found: dict[str, Distribution]) -> str:
    rows = "".join(f"| {n} | {public(made)} | {license_of(made)} |\n" for n, made in found.items())
    models = "".join(
        f"| {each.id} | {each.licence} | {each.origin} | {each.package} {each.released} "
        f"| `{each.folder}/{each.weights}` | `{each.sha256}` |\n"
        for each in MODELS
    )
    return (
        "# Licences\n\nWritten by `python -m tests.lock`.\n\n"
        "## Models\n\nThe models whose weights rankdash reads from packages, where they were "
        "published and under which licence, the file, and the SHA-256 that it must have.\n\n"
        "| Model | Licence | Origin (Hugging Face hub) | Package | File | SHA-256 |\n"
        f"|---|---|---|---|---|---|\n{models}\n"
        "## Packages\n\nThe packages in `tests/requirements.lock`, including packages for tests, "
        "with their licences.\n\n"
        f"| Package | Version | Licence |\n|---|---|---|\n{rows}"
    )


def hashes(found: dict[str, Distribution]) -> str:
    """Return the lock with the hashes of the index's files for this machine."""
    pins = [f"{name}=={public(made)}" for name, made in found.items() if name not in BUILDS]
    asked = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps"]
    done = subprocess.run(
        [*asked, "--quiet", "--report", "-", *pins],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = {}
    for each in json.loads(done.stdout)["install"]:
        name = canonicalize_name(each["metadata"]["name"])
        own = each["download_info"]["archive_info"]["hashes"]["sha256"]
        lines[name] = f"{name}=={each['metadata']['version']} --hash=sha256:{own}\n"
    return _HEAD + "".join(lines[name] for name in sorted(lines))


def main() -> None:
    found = tree()
    LOCK.write_text(lock(found), encoding="utf-8")
    LICENSES.write_text(licenses(found), encoding="utf-8")
    HASHES.write_text(hashes(found), encoding="utf-8")
    unnamed = [name for name, made in found.items() if not license_of(made)]
    print(f"{len(found)} packages; without a licence in words: {', '.join(unnamed) or 'none'}")


if __name__ == "__main__":
    main()
