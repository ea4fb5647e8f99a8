"""`python -m tests.conformance` writes docs/conformance.md from an exchange with every tool.

The environment variable RANKDASH_TOOLS contains the folders of the virtual environments.
"""

import sys
import tempfile
from datetime import date
from pathlib import Path

import rankdash as rd
from tests.conformance.drive import TOOLS
from tests.conformance.exchange import FAILS, Outcome, exchange, python_of
from tests.documented import DOCS, text_of

PAGE = DOCS / "conformance.md"
HEAD = (
    *("Tool", "Version", "Files read by rankdash", "Files of rankdash read by the tool"),
    *("Compared values", "Largest difference", "Result"),
)


def row(outcome: Outcome) -> str:
    """Return the row of a tool in the table."""
    cells = (
        outcome.tool,
        outcome.version,
        "<br>".join(outcome.read) or "–",
        ", ".join(outcome.written) or "–",
        str(outcome.values) if outcome.values else "–",
        f"{outcome.difference:.1g}" if outcome.values else "–",
        f"fails: {FAILS.get(outcome.tool, outcome.problems)}" if outcome.problems else "pass",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    lines, missing = [], []
    for tool in TOOLS:
        python = python_of(tool)
        if python is None:
            missing.append(tool)
            continue
        with tempfile.TemporaryDirectory() as folder:
            lines.append(row(exchange(tool, python, Path(folder))))
        print(lines[-1], flush=True)
    if missing:
        print(f"Not installed, so the page is not written: {', '.join(missing)}", file=sys.stderr)
        return 1
    write(lines)
    return 0


def write(lines: list[str]) -> None:
    """Replace the date and the table, the last parts of the page."""
    head = text_of(PAGE).partition("\nMade on ")[0]
    made = f"Made on {date.today()} with rankdash {rd.__version__}:"
    table = [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD), *lines]
    PAGE.write_text("\n".join([head, made, "", *table, ""]), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
