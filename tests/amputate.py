"""Removes a feature from a copy of the project and checks that the rest works.

    python -m tests.amputate NAME [NAME …]

works in a clone of the last commit. It removes the folder of the feature, its page, its lines in
the registries (`REGISTRIES`: menu, commands, sections and charts of the report, worker), other
lines that mention it, at most `MOST`, and its tests: those that use a name of the feature, and
those that fail because its page, its command or its section of the report is missing. It renews the
approved texts, because a report without a section differs. Then the quick tests of everything else
run. It ends with 1 if one fails or if more lines change.

The docs and three lists of tests name every feature: their tests (`OF_THE_DOCS`, `OF_LISTS`) do not
run.
"""

import argparse
import ast
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from pathlib import Path

from tests.roles import ROOT

MOST = 5
REGISTRIES = (
    "rankdash/app/frame.py",
    "rankdash/app/server.py",
    "rankdash/app/worker.py",
    "rankdash/features/report/report.py",
    "rankdash/features/report/report_zip.py",
    "rankdash/kit/commands/registry.py",
)
QUICK = ("-m", "not browser and not model and not slow and not thorough")
OF_THE_DOCS = ("tests/test_docs.py", "tests/test_recipes.py", "tests/cli/test_readme.py")
# These tests compare lists that contain names of every feature.
OF_LISTS = (
    "tests/charts/test_charts.py::test_every_chart_has_examples",
    "tests/reporting/exports/test_exports.py::test_csv_is_written_only_where_its_cells_are_defused",
    "tests/study/test_cache_property.py::test_every_field_and_argument_has_other_values",
)

_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict)
_BLOCKS = ("body", "orelse", "finalbody")


class Cut:
    """The removal of a feature from one file after another.

    names: module → its removed names. fixtures: folder → the removed fixtures of its conftest.py.
    """

    def __init__(self, tree: Path, feature: str) -> None:
        self.tree = tree
        self.package = f"rankdash.features.{feature}"
        self.names: dict[str, set[str]] = defaultdict(set)
        self.fixtures: dict[Path, set[str]] = defaultdict(set)
        named, part = (
            rf"(?:rankdash\.)?features\.{feature}\.\w+",
            rf"{feature}\.(?:page|report|charts)\w*",
        )
        address = rf"{named}(?:[.:]\w+)*|{part}:\w+"
        self.address = re.compile(address)
        self.listed = re.compile(f"{address}|{part}")
        self.feature = feature
        # The function for notebooks has the name of its feature, if it exists.
        if f"\ndef {feature}(" in (tree / "rankdash/api.py").read_text():
            self.names["rankdash"].add(feature)

    def of(self, file: Path) -> bool:
        """Remove the feature from a file. Return whether the file changed."""
        is_test = file.is_relative_to(self.tree / "tests")
        changed = False
        while spans := self._spans(file, is_test):
            text = file.read_bytes()
            for start, end in spans:
                text = text[:start] + text[end:]
            file.write_bytes(text)
            changed = True
        return changed

    def _spans(self, file: Path, is_test: bool) -> list[tuple[int, int]]:
        """Return the parts of a file to remove, the last first; they do not overlap."""
        source = file.read_bytes()
        gone = (self.feature, *chain.from_iterable([*self.names.values(), *self.fixtures.values()]))
        if not any(each.encode() in source for each in gone):
            return []
        tree = ast.parse(source)
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        module = ".".join(file.relative_to(self.tree).with_suffix("").parts)
        found = set()
        for node in self._gone(tree, module, file, is_test):
            target = self._target(node, parents, tree, is_test)
            for name in _defined(target) if target in tree.body else ():
                self.names[module].add(name)
                if file.name == "conftest.py":
                    self.fixtures[file.parent].add(name)
            found.add(_span(target, parents, source))
        spans = sorted(found, key=lambda span: (span[0], -span[1]))
        outer: list[tuple[int, int]] = []
        for span in spans:
            if not outer or span[0] >= outer[-1][1]:
                outer.append(span)
        return outer[::-1]

    def _gone(self, tree: ast.Module, module: str, file: Path, is_test: bool) -> Iterator[ast.AST]:
        """Yield the nodes that mention a removed name."""
        bound = set(self.names[module])
        objects: dict[str, set[str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                known = (each for each in node.names if each.name in self.names)
                objects |= {each.asname or each.name: self.names[each.name] for each in known}
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            whole = f"{node.module}.".startswith(f"{self.package}.")
            for alias in node.names:
                dotted = f"{node.module}.{alias.name}"
                here = alias.asname or alias.name
                if whole or dotted == self.package or alias.name in self.names.get(node.module, ()):
                    bound.add(here)
                    yield node if len(node.names) == 1 or whole else alias
                elif dotted in self.names:
                    objects[here] = self.names[dotted]
        fixtures = {
            name
            for folder, names in self.fixtures.items()
            if folder in file.parents
            for name in names
        }
        is_registry = str(file.relative_to(self.tree)) in REGISTRIES
        address = self.listed if is_registry else self.address
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name) if name in bound:
                    yield node
                case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr in objects.get(
                    name, ()
                ):
                    yield node
                case ast.arg(arg=name) if is_test and name in fixtures | bound:
                    yield node
                case ast.Constant(value=str(text)) if address.fullmatch(text):
                    yield node
                case ast.BinOp(
                    left=ast.BinOp(right=ast.Constant("features")),
                    right=ast.Constant(self.feature),
                ):
                    yield node
                case ast.Constant(value=str(text)) if is_test and text in fixtures:
                    yield node
                case ast.Call(
                    args=[ast.Constant(value=self.feature), *_], func=ast.Name("page_of")
                ):
                    yield node

    def _target(
        self, node: ast.AST, parents: dict[ast.AST, ast.AST], tree: ast.Module, is_test: bool
    ) -> ast.AST:
        """Return the node to remove: an element of a list, a statement, in tests a function."""
        around = [node]
        while not isinstance(around[-1], ast.Module):
            around.append(parents[around[-1]])
        top = around[-2]
        in_function = isinstance(top, ast.FunctionDef | ast.ClassDef)
        decorated = in_function and any(each in around for each in top.decorator_list)
        if is_test and in_function and not decorated:
            return top
        if isinstance(node, ast.alias):
            return node
        if is_test and isinstance(top, ast.Assign) and isinstance(top.targets[0], ast.Tuple):
            return top
        within = list(takewhile(lambda each: not isinstance(each, ast.stmt), around))
        listed = [each for each in within if isinstance(parents[each], _DISPLAYS)]
        if listed:
            # An address may be a part of a list's element, and so may a case of a test.
            return listed[-1 if is_test or isinstance(node, ast.Constant) else 0]
        return _whole_block(around[len(within)], parents)


def _whole_block(statement: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.AST:
    """Return the statement, or the outermost one around it that would have an empty body."""
    outer = parents[statement]
    blocks = [getattr(outer, name, None) for name in _BLOCKS]
    if not isinstance(outer, ast.Module) and any(block == [statement] for block in blocks):
        if getattr(outer, "orelse", None) == [statement]:
            return statement
        return _whole_block(outer, parents)
    return statement


def _defined(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement at the top of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))


def _span(node: ast.AST, parents: dict[ast.AST, ast.AST], source: bytes) -> tuple[int, int]:
    """Return the bytes of a node with the comma or the end of the line after it."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    outer = parents[node]
    first, last = node, node
    if isinstance(outer, ast.Dict):
        place = next(
            n for n, pair in enumerate(zip(outer.keys, outer.values, strict=True)) if node in pair
        )
        first, last = outer.keys[place] or outer.values[place], outer.values[place]
    line = min([first.lineno, *(each.lineno for each in getattr(first, "decorator_list", []))])
    start = starts[line - 1] + (first.col_offset if line == first.lineno else 0)
    if isinstance(outer, ast.Dict) and outer.keys[place] is None:
        start = source.rindex(b"**", 0, start)
    end = starts[last.end_lineno - 1] + last.end_col_offset
    comma = re.compile(rb"\s*,").match(source, end)
    if comma and not isinstance(node, ast.stmt):
        end = comma.end()
    elif isinstance(node, ast.alias):
        before = re.compile(rb",\s*$").search(source[:start])
        if before:
            return before.start(), end
    if not source[starts[line - 1] : start].strip():
        rest = re.compile(rb"[ \t]*(#[^\n]*)?\n").match(source, end)
        if rest:
            return starts[line - 1], rest.end()
    return start, end


def _lines(tree: Path) -> list[str]:
    """Return the lines of the source that changed outside of the feature and the registries."""
    spare = [f":!{each}" for each in (*REGISTRIES, "pyproject.toml", "tests", "docs")]
    diff = ["git", "diff", "-U0", "--diff-filter=M", "--", ".", *spare]
    shown = subprocess.run(diff, cwd=tree, capture_output=True, text=True, check=True).stdout
    return [each for each in shown.splitlines() if re.match(r"-(?!-)", each)]


def amputate(
    tree: Path, feature: str, tops: Sequence[str] = ("rankdash", "pages", "tests")
) -> list[str]:
    """Remove a feature from some folders of a copy of the project. Return the lines that changed
    elsewhere."""
    cut = Cut(tree, feature)
    shutil.rmtree(tree / "rankdash/features" / feature)
    (tree / f"pages/{feature}.py").unlink(missing_ok=True)
    shutil.rmtree(tree / "tests/ui" / feature, ignore_errors=True)
    files = [each for top in tops for each in (tree / top).rglob("*.py")]
    while [each for each in files if cut.of(each)]:
        pass
    changed = _lines(tree)
    if "tests" in tops:
        _renew_lists(tree, feature)
    return changed


def _renew_lists(tree: Path, feature: str) -> None:
    """Remove the feature from the contracts and the list of slow tests; write the reference."""
    contracts = tree / "pyproject.toml"
    layers = re.sub(rf'"{feature}", |{feature} \| | \| {feature}\b', "", contracts.read_text())
    contracts.write_text(layers)
    subprocess.run(
        [sys.executable, "-m", "ruff", "check", "-q", "--select", "F401,I", "--fix", "."],
        cwd=tree, check=False,
    )  # fmt: skip
    slow = tree / "tests/slow.txt"
    there = []
    for each in slow.read_text().split():
        file, _, name = each.partition("::")
        if (tree / file).is_file() and f"def {name}(" in (tree / file).read_text():
            there.append(each)
    slow.write_text("\n".join(there) + "\n")
    reference = [sys.executable, "-m", "rankdash.app.reference"]
    written = subprocess.run(reference, cwd=tree, capture_output=True, check=True)
    (tree / "docs/commands.md").write_bytes(written.stdout)


_PLUGIN = """
import re
import pytest

MISSING = re.compile({missing!r})

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item):
    report = yield
    texts = [str(report.longrepr), *(text for _title, text in report.sections)]
    if report.failed and any(map(MISSING.search, texts)):
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, "Skipped: of {feature}")
    return report
"""


def _commands(tree: Path, feature: str) -> list[str]:
    """Return the commands of a feature."""
    registry = (tree / "rankdash/kit/commands/registry.py").read_text()
    return re.findall(rf'"(\w+)": \(\s*"features\.{feature}\.', registry)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    failed = []
    for feature in options.names:
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "copy"
            subprocess.run(["git", "clone", "-q", str(ROOT), str(tree)], check=True)
            commands = "|".join(_commands(tree, feature))
            for command in commands.split("|"):
                for each in (tree / "tests/cli").glob(f"test_{command}*.py") if command else ():
                    each.unlink()
            changed = amputate(tree, feature)
            missing = rf"pages/{feature}\.py|invalid choice: '({commands})'|Unknown section"
            plugin = _PLUGIN.format(missing=missing, feature=feature)
            (tree / "without_feature.py").write_text(plugin)
            print(f"{feature}: {len(changed)} lines change outside", *changed, sep="\n  ")
            if len(changed) > MOST or not _green(tree):
                failed.append(feature)
    print(f"Cannot be cut out: {', '.join(failed)}" if failed else "All can be cut out.")
    return 1 if failed else 0


def _green(tree: Path) -> bool:
    """Return whether the quick tests pass in a copy."""
    python = [sys.executable, "-m"]
    left_out = [f"--ignore={each}" for each in OF_THE_DOCS]
    left_out += [f"--deselect={each}" for each in OF_LISTS]
    quick = [*python, "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider"]
    quick += ["-p", "without_feature", "--hypothesis-profile=few", *left_out]
    undefined = [*python, "ruff", "check", "-q", "--select", "F821", "rankdash", "pages", "tests"]
    steps = (undefined, [*quick, *QUICK, "--renew"])
    return all(subprocess.run(step, cwd=tree, check=False).returncode == 0 for step in steps)


if __name__ == "__main__":
    raise SystemExit(main())
