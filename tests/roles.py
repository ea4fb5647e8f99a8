"""What the modules of the package do: commands, pages, numbers of a study."""

from collections.abc import Iterator
from pathlib import Path

from tests.sets import ROOT

PACKAGE = ROOT / "rankdash"
_FRAME = {"command.py", "processes.py", "reference.py", "serve.py"}


def _place(file: Path) -> tuple[list[str], str]:
    """Return the folders of a module, those of the package without its name, and the module."""
    *folders, name = file.relative_to(ROOT).parts
    return folders[folders[:1] == ["rankdash"] :], name


def is_command(file: Path) -> bool:
    """Whether a module is of the command line, which speaks English."""
    folders, name = _place(file)
    return (
        name.startswith("command_")
        or folders == ["kit", "commands"]
        or (folders == ["app"] and name in _FRAME)
    )


def is_page(file: Path) -> bool:
    """Whether a module draws with Streamlit."""
    folders, name = _place(file)
    return (
        name.startswith("page_")
        or folders == ["pages"]
        or folders == ["kit", "widgets"]
        or (folders == ["app"] and name not in _FRAME)
    )


def numbers() -> Iterator[str]:
    """The modules that compute parts of a study."""
    shown = ("charts", "command", "page", "report", "words")
    for folder in ("core/study", "features"):
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            if not file.stem.startswith((*shown, "__")):
                yield ".".join(file.relative_to(ROOT).with_suffix("").parts)
