"""Contents of the README and the docs for tests: sections, code, commands."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
CHINESE = ROOT / "README.zh-CN.md"
DOCS = ROOT / "docs"


def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def section(file: Path, heading: str) -> str:
    """Return the text below a heading, up to the next one of the same or a higher level."""
    level = len(heading) - len(heading.lstrip("#"))
    below = text_of(file).split(f"\n{heading}\n")[1]
    # A comment in a block of code is not a heading.
    parts = re.split(r"(```.*?```)", below, flags=re.DOTALL)
    for at in range(0, len(parts), 2):
        end = re.search(rf"\n#{{1,{level}}} ", parts[at])
        if end:
            return "".join(parts[:at]) + parts[at][: end.start()]
    return below


def headings(text: str) -> list[str]:
    """Return the headings of a page, without those in blocks of code."""
    plain = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"^#+ .*$", plain, re.MULTILINE)


def anchors(text: str) -> list[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    titles = [re.sub(r"^#+ ", "", each) for each in headings(text)]
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


def code(text: str, *languages: str) -> list[str]:
    """Return the blocks of code in one of these languages."""
    return re.findall(rf"```(?:{'|'.join(languages)})\n(.*?)```", text, re.DOTALL)


def rows(text: str) -> list[list[str]]:
    """Return the cells of every row of the tables, without the headings."""
    found = re.findall(r"^\| (.*) \|$", re.sub(r"(?m)^.*\n\|[-|]+\|$", "", text), re.MULTILINE)
    return [[cell.strip() for cell in row.split(" | ")] for row in found]


def first_names(text: str) -> list[str]:
    """Return the first name in backticks of each row of the tables."""
    return [cells[0].split("`")[1] for cells in rows(text) if "`" in cells[0]]


def commands(*files: Path) -> list[list[str]]:
    """Return the arguments of each `rankdash COMMAND …` in their shell code, in order."""
    lines = [
        line for file in files for block in code(text_of(file), "sh") for line in block.splitlines()
    ]
    return [shlex.split(line)[1:] for line in lines if line.startswith("rankdash ")]


def assumptions() -> str:
    """Return the file of assumptions in the docs."""
    (found,) = code(text_of(DOCS / "cost.md"), "toml")
    return found


def plugin() -> str:
    """Return the code of the custom reranker in the docs."""
    (found,) = code(section(DOCS / "rerankers.md", "## A reranker of your own"), "python")
    return found
