"""Tests use only public names of rankdash and its real parts, so that private code may change."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "rankdash"
FOLDERS = sorted({file.relative_to(TESTS).parts[0] for file in TESTS.rglob("*.py")})
# Public names of every named tuple.
OF_TUPLES = {"_asdict", "_fields", "_make", "_replace"}
# Functions that make an object that imitates any class.
STAND_INS = {"SimpleNamespace", "Mock", "MagicMock", "NonCallableMock", "create_autospec"}


@cache
def private_names() -> set[str]:
    """Return every name with one leading underscore that rankdash defines."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    found.add(name)
    return {each for each in found if re.fullmatch(r"_[^\W_]|_[^\W_]\w*[^\W_]", each)} - OF_TUPLES


def violations(tree: ast.AST) -> list[tuple[int, str]]:
    """Return line and name of private names of rankdash that are read, imported or replaced."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                names = []
            case ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                names = [name]
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] == "rankdash":
                names = [*module.split("."), *(each.name for each in node.names)]
            case ast.Constant(value=str(text)) if text.startswith("rankdash."):
                names = text.split(".")
            case ast.Call(func=ast.Attribute(attr=call) | ast.Name(id=call), args=[_, *rest]) if (
                call.endswith("attr")
            ):
                names = [each.value for each in rest if isinstance(each, ast.Constant)]
            case _:
                names = []
        found += [(node.lineno, each) for each in names if each in private_names()]
    return sorted(found)


def stand_ins(tree: ast.AST) -> list[tuple[int, str]]:
    """Return line and name of objects that replace an object of rankdash without its class."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in STAND_INS:
                found.append((node.lineno, name))
            case ast.Call(func=ast.Name(id="type"), args=[_, _, _]):
                found.append((node.lineno, "type"))
    return sorted(found)


def suspect(file: Path) -> bool:
    """Return whether a file contains any of the names."""
    words = set(re.findall(r"\w+", file.read_text("utf-8")))
    return not words.isdisjoint(private_names() | STAND_INS | {"type"})


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_test_reads_a_private_name_or_makes_a_stand_in(folder):
    files = (TESTS / folder).rglob("*.py") if (TESTS / folder).is_dir() else [TESTS / folder]
    trees = {file: ast.parse(file.read_bytes()) for file in files if suspect(file)}
    assert [
        f"{file.relative_to(TESTS.parent)}:{line}: {name}"
        for file, tree in trees.items()
        for line, name in violations(tree) + stand_ins(tree)
    ] == []


@pytest.mark.parametrize(
    "planted",
    [
        *(
            "tables._HASH",
            "from rankdash.core.workspace.tables import _HASH",
            "'rankdash.core.workspace.tables._OF'",
        ),
        *("monkeypatch.setattr(tables, '_HASH', 1)", "SimpleNamespace(_queue=1)"),
    ],
)
def test_a_private_name_is_found_wherever_it_is_read(planted):
    assert [line for line, _ in violations(ast.parse(f"\n{planted}\n"))] == [2]
    others = "numpy.core._internal; self._own; row._replace(id=1); '_id'"
    assert violations(ast.parse(others)) == []


def test_a_stand_in_is_found_however_it_is_made():
    made = "types.SimpleNamespace(id=1)", "Mock()", "mock.MagicMock", "type('Job', (), {})"
    assert [line for line, _ in stand_ins(ast.parse("\n".join(made)))] == [1, 2, 3, 4]
    assert stand_ins(ast.parse("type(job); Job(id=1)")) == []
