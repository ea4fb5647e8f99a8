"""Artificial faults, planted one at a time, and the tests that notice each.

    python -m tests.planted [--since COMMIT] [--faults 30] [--seed 0] [PATH …]

chooses lines that changed since the last release, alters one operator, number, condition or
argument of each, and runs the tests of the same folder, then all quick ones. It works in a clone of
the last commit, lists the faults that no test noticed, and ends with 1 if there are any.
"""

import argparse
import ast
import copy
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.roles import role

ROOT = Path(__file__).parents[1]
PAIRS: tuple[tuple[type[ast.AST], type[ast.AST]], ...] = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)),
    *((ast.In, ast.NotIn), (ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div)),
)
SWAPPED = {**dict(PAIRS), **{other: one for one, other in PAIRS}}


@dataclass(frozen=True)
class Fault:
    """A part of a file and its replacement. start, end: positions in the file's bytes."""

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before} → {self.after}"

    def planted(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]


def altered(node: ast.AST) -> ast.AST | None:
    """Return the node with one fault; None for kinds of nodes without a fault."""
    made = copy.deepcopy(node)
    match made:
        case ast.Compare(ops=[op, *_]) if type(op) in SWAPPED:
            made.ops[0] = SWAPPED[type(op)]()
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPPED:
            made.op = SWAPPED[type(op)]()
        case ast.UnaryOp(op=ast.Not()):
            return made.operand
        case ast.IfExp():
            made.body, made.orelse = made.orelse, made.body
        case ast.Constant(value=bool(value)):
            made.value = not value
        case ast.Constant(value=int(value) | float(value)):
            made.value = value + 1
        case ast.Call(keywords=[_, *rest]):
            made.keywords = rest
        case _:
            return None
    return made


def faults(file: str, source: bytes, lines: set[int]) -> Iterator[Fault]:
    """Yield every fault that can be planted in some lines of a module."""
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.expr) or node.lineno not in lines or not node.end_lineno:
            continue
        made = altered(node)
        if made is not None:
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + (node.end_col_offset or 0)
            whole = isinstance(made, ast.BinOp | ast.BoolOp | ast.Compare | ast.IfExp)
            after = f"({ast.unparse(made)})" if whole else ast.unparse(made)
            yield Fault(file, node.lineno, start, end, source[start:end].decode(), after)


def git(*words: str) -> str:
    told = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return told.stdout.strip()


def last_release() -> str:
    """Return the newest tag, or the commit that set the version number."""
    named = git("log", "-1", "--format=%H", "-G^__version__", "--", "rankdash/__init__.py")
    return git("describe", "--tags", "--abbrev=0") or named


def changed_lines(since: str, paths: list[str]) -> dict[str, set[int]]:
    """Return file → lines that differ from a commit."""
    found: dict[str, set[int]] = {}
    file = ""
    for line in git("diff", "-U0", since, "HEAD", "--", *paths).splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ b/")
        elif line.startswith("@@") and file.endswith(".py"):
            first, _, count = line.split("+")[1].split(" ")[0].partition(",")
            found.setdefault(file, set()).update(range(int(first), int(first) + int(count or 1)))
    return found


# Folder or role of modules → folder of their tests.
TESTS = {
    **{f"core/{each}": each for each in ("intake", "metrics", "readers", "rerankers", "runs")},
    **{f"core/{each}": each for each in ("study", "value", "words")},
    "core/data": "ranking",
    "core/workspace": "store",
    "core/statistics": "analysis/statistics",
    "core/sampling": "analysis/labelling",
    "page": "ui",
    "kit/widgets": "ui",
    "words": "words",
    "charts": "charts",
    "kit/drawing": "charts",
    "report": "reporting",
    "kit/html": "reporting",
    "command": "cli",
    "kit/commands": "cli",
}


def own_tests(file: str) -> str:
    """Return the folder with the tests of a module, or the nearest above it."""
    known, *deeper = Path(file).parent.parts[1:3], *Path(file).parent.parts[3:]
    found = TESTS.get(role(ROOT / file)) or TESTS.get("/".join(known), "")
    folder = Path("tests", found, *deeper)
    return str(next(each for each in (folder, *folder.parents) if (ROOT / each).is_dir()))


def fails(copied: Path, tests: str) -> bool:
    marks = "not browser and not model and not thorough" + " and not slow" * (tests == "tests")
    command = [sys.executable, "-m", "pytest", "-q", "-n2", "-x", "-m", marks, tests]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(command, cwd=copied, env=environment, capture_output=True, check=False)
    return ran.returncode != 0


def noticed(copied: Path, fault: Fault) -> str:
    """Return the tests that notice the fault: the folder's own, all, or "" for none."""
    place = copied / fault.file
    source = place.read_bytes()
    place.write_bytes(fault.planted(source))
    every = dict.fromkeys([own_tests(fault.file), "tests"])
    found = next((tests for tests in every if fails(copied, tests)), "")
    place.write_bytes(source)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="*", default=["rankdash"])
    parser.add_argument("--since", default=last_release())
    parser.add_argument("--faults", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    possible = [
        fault
        for file, lines in sorted(changed_lines(options.since, options.paths).items())
        for fault in faults(file, git("show", f"HEAD:{file}").encode(), lines)
    ]
    chosen = random.Random(options.seed).sample(possible, min(options.faults, len(possible)))
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "copy"
        git("clone", "-q", str(ROOT), str(copied))
        if fails(copied, "tests"):
            print("The tests fail without a fault too.")
            return 1
        for fault in chosen:
            by = noticed(copied, fault)
            print(f"{by or 'NOTHING':30} {fault}", flush=True)
            missed += [] if by else [fault]
    print(f"Noticed: {len(chosen) - len(missed)} of {len(chosen)}, chosen from {len(possible)}.")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
