"""The roles of the modules: the first word of a feature's file name is its role."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.sets import ROOT

PACKAGE = ROOT / "rankdash"
SURFACES = ("page", "report", "command")
LOW_TO_HIGH = (("numbers",), ("words",), ("charts",), SURFACES)
_COMMAND_LINE = ("command", "processes", "reference", "serve")


def role(file: Path) -> str:
    """Return the role of a module: one of the words above, "kit.widgets" or similar for a module of
    the kit, and "numbers" for any other."""
    *folders, name = file.relative_to(ROOT).with_suffix("").parts
    if folders == ["pages"]:
        return "page"
    if folders[1:] == ["app"]:
        return "command" if name in _COMMAND_LINE else "page"
    if folders[1:2] == ["kit"]:
        return ".".join(folders[1:3])
    word = name.split("_")[0]
    return word if word in (*SURFACES, "words", "charts") and "features" in folders else "numbers"


def is_command(file: Path) -> bool:
    """Return whether a module belongs to the command line, which is in English."""
    return role(file) in ("command", "kit.commands")


def is_page(file: Path) -> bool:
    """Return whether a module draws with Streamlit."""
    return role(file) in ("page", "kit.widgets")


def numbers() -> Iterator[str]:
    """Yield the modules that compute parts of a study."""
    for folder in ("core/study", "features"):
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            if role(file) == "numbers" and file.stem != "__init__":
                yield ".".join(file.relative_to(ROOT).with_suffix("").parts)


def imports(file: Path) -> Iterator[str]:
    """Yield the modules that a module imports, and the imported names, dotted."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{each.name}" for each in node.names)
