"""Each recipe of docs/extending.md, applied to a copy of the project as a reader would do it.

The text of the recipe is the only source. A block of code belongs to the file that the line above
it names, in one of these forms, and its indentation follows from its place:

    `FILE`:                        a new file, or the end of one that exists
    `FILE`, before `TEXT`:         lines above the one line that contains TEXT
    `FILE`, after `TEXT`:          lines below it
    `FILE`, at the end of `TEXT`:  the last lines within the brackets that this line opens
    `FILE`, in place of `TEXT`:    for TEXT itself, which may be a part of a line

"an empty file `FILE`" is one, and "Copy `FILE` to `OTHER`" copies. Commands that write files
(`python -m tests.approved …`, `python -m rankdash.app.reference …`) run after the changes. The
commands of the step "Check:" run at the end, without slow tests: none may fail.
"""

import filecmp
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.pofile import read_po, write_po

from tests.documented import DOCS, ROOT, section, text_of

EXTENDING = DOCS / "extending.md"
RECIPES = re.findall(r"^## (Add .+)$", text_of(EXTENDING), re.MULTILINE)
BLOCK = re.compile(
    r"^(?P<above>[^\n]*):\n\n(?P<code> *(?P<fence>`{3,})\w+\n.*?^ *(?P=fence))$",
    re.DOTALL | re.MULTILINE,
)
PLACE = re.compile(
    r"`(?P<file>[^`]+)`"
    r"(?:, (?P<place>before|after|at the end of|in place of) (`+) ?(?P<text>.+?) ?\3)?"
)
QUICK = (
    "-q -p no:cacheprovider --hypothesis-profile=few "
    "-m 'not browser and not model and not slow and not thorough'"
)
RENEWS = re.compile(r"`(python -m (?:tests\.approved|rankdash\.app\.reference) [^`]*)`")


class Tree:
    """A copy of the project, restored after each recipe."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._original = folder / "project", folder / "original"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (self._original / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self._original / name)
        shutil.copytree(self._original, self.folder)

    def read(self, name: str) -> str | None:
        file = self.folder / name
        return file.read_text(encoding="utf-8") if file.is_file() else None

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, encoding="utf-8")

    def run(self, command: str) -> None:
        """Run a shell command; fail if it does."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        ended = subprocess.run(
            command, cwd=self.folder, check=False, capture_output=True, text=True, shell=True,
            env=os.environ
            | {"PATH": path, "PYTHONPATH": str(self.folder), "PYTEST_ADDOPTS": "--show-capture=no"},
        )  # fmt: skip
        assert ended.returncode == 0, f"{command}\n{ended.stdout[-6000:]}{ended.stderr[-3000:]}"

    def restore(self) -> None:
        """Undo all changes, those by commands too."""
        for file in self._files(self.folder):
            if not (self._original / file.parent).exists():
                shutil.rmtree(self.folder / file.parent, ignore_errors=True)
            elif not (self._original / file).exists():
                (self.folder / file).unlink()
        for file in self._files(self._original):
            if not filecmp.cmp(self._original / file, self.folder / file):
                shutil.copy2(self._original / file, self.folder / file)

    def _files(self, below: Path) -> list[Path]:
        return [
            file.relative_to(below)
            for file in below.rglob("*")
            if file.is_file() and "__pycache__" not in file.parts
        ]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("project"))


@pytest.fixture
def tree(copied: Tree) -> Iterator[Tree]:
    yield copied
    copied.restore()


def placed(text: str, code: str, place: str, anchor: str) -> str:
    """Return the text with the code at a place named by an anchor."""
    if place == "in place of":
        assert text.count(anchor) == 1, f"{text.count(anchor)} times there: {anchor}"
        return text.replace(anchor, code.rstrip("\n"))
    lines = text.splitlines(keepends=True)
    whole = [number for number, line in enumerate(lines) if line.strip() == anchor]
    (at,) = whole or [number for number, line in enumerate(lines) if anchor in line]
    indent = _indent(lines[at])
    if place == "at the end of":
        ends = re.compile(rf"{indent}[)\]}}]")
        at = next(number for number in range(at, len(lines)) if ends.match(lines[number]))
        indent += "    "
    elif place == "after":
        at += 1
        indent = _indent(lines[at])
    return "".join([*lines[:at], textwrap.indent(code, indent), *lines[at:]])


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def translate(catalogue: str, tree: Tree) -> None:
    """Fill every message of a catalogue with its English, instead of a translation."""
    file = tree.folder / catalogue
    with file.open("rb") as stream:
        messages = read_po(stream)
    for message in messages:
        if message.id:
            message.string = message.id
    with file.open("wb") as stream:
        write_po(stream, messages)


def follow(recipe: str, tree: Tree) -> None:
    """Make the changes that a recipe names."""
    copied = re.findall(r"Copy `([^`]+)` to `([^`]+)`", recipe)
    for source, target in copied:
        tree.write(target, tree.read(source) or "")
    for block in BLOCK.finditer(recipe):
        (named,) = re.finditer(rf"{PLACE.pattern}$", block["above"].splitlines()[-1])
        code = textwrap.dedent(block["code"]).partition("\n")[2].removesuffix(block["fence"])
        now = tree.read(named["file"])
        if named["place"]:
            assert now is not None, f"no such file: {named['file']}"
            tree.write(named["file"], placed(now, code, named["place"], named["text"]))
        else:
            tree.write(named["file"], code if now is None else f"{now.rstrip()}\n\n{code}")
    for name in re.findall(r"an empty file `([^`]+)`", recipe):
        tree.write(name, "")
    for _, catalogue in copied:
        translate(catalogue, tree)


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_leaves_nothing_red(title: str, tree: Tree):
    recipe = section(EXTENDING, f"## {title}")
    assert "```" not in BLOCK.sub("", recipe), "a block without its file"
    follow(recipe, tree)
    tree.run("ruff format -q .")
    tree.run("ruff check -q .")
    for command in RENEWS.findall(recipe):
        tree.run(command)
    (checks,) = re.findall(r"^\d\. Check: (.*)$", recipe, re.MULTILINE)
    for command in re.findall(r"`((?:python|lint-imports)[^`]*)`", checks):
        tree.run(f"{command} {QUICK if 'pytest' in command else ''}")
