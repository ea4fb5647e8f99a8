"""Approved texts of pages, commands, charts and reports.

A test calls its fixture `approved("words/costs.en", text)`, which compares the text with
`tests/approved/words/costs.en.txt`. `python -m tests.approved` renews the files of all such tests;
arguments go to pytest, such as the folder whose files are to be renewed. Read the difference before
you commit it: it shows what users will see.
"""

import difflib
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

FOLDER = Path(__file__).parent / "approved"
RENEW = "python -m tests.approved"


def difference(name: str, text: str, renew: bool = False) -> str:
    """Return the lines in which a text differs from the approved one; "" if it does not.

    renew: write the file; there is no difference then.
    """
    file = FOLDER / f"{name}.txt"
    now = text.rstrip("\n") + "\n"
    if renew:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(now, encoding="utf-8", newline="\n")
    if not file.is_file():
        return f"tests/approved/{name}.txt is not there: {RENEW}"
    before = file.read_text(encoding="utf-8")
    if before == now:
        return ""
    lines = difflib.unified_diff(before.split("\n"), now.split("\n"), "approved", "now", "", "", 2)
    return f"{name} differs; if that is right: {RENEW}\n" + "\n".join(lines)


def table(cases: Mapping[str, object] | Iterable[tuple[str, object]]) -> str:
    """Return the cases as text: the name of each, which gives its reason, and below it its text."""
    pairs = cases.items() if isinstance(cases, Mapping) else cases
    return "\n".join(f"# {name}\n{said}" for name, said in pairs)


def masked(text: str, **patterns: str) -> str:
    """Replace text that differs between runs: each pattern by its name in brackets."""
    for name, pattern in patterns.items():
        text = re.sub(pattern, f"<{name}>", text)
    return text


if __name__ == "__main__":
    run = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "approved", "--renew"]
    raise SystemExit(subprocess.run([*run, *sys.argv[1:]], check=False).returncode)
