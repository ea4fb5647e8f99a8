"""A reader of reports: its elements, its rows, and its text without charts."""

import re
from html.parser import HTMLParser

BLOCKS = {"p", "h1", "h2", "h3", "h4", "li", "div", "tr", "caption", "section", "summary"}
BLOCKS |= {"dt", "dd"}
HIDDEN = ("script", "style", "head")


class Read(HTMLParser):
    """A parsed report. elements: tags with their attributes. sections: id → its text, a line for
    each block, cells of a row divided; "" is the part outside. rows: the cells of every table."""

    def __init__(self, page: bytes | str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.parts: dict[str, list[str]] = {"": []}
        self.rows: list[list[str]] = []
        self.scripts: list[str] = []
        self.section, self.hidden, self.in_cell = "", "", False
        self.feed(page if isinstance(page, str) else page.decode("utf-8"))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in HIDDEN:
            self.hidden = tag
        if tag == "script":
            self.scripts.append("")
        if tag == "section":
            self.section = str(dict(attrs).get("id", ""))
            self.parts.setdefault(self.section, [])
        if tag == "tr":
            self.rows.append([])
        self.parts[self.section].append("\n" if tag in BLOCKS else "")
        if tag in ("td", "th"):
            self.parts[self.section].append(" | " if self.rows[-1] else "")
            self.rows[-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag):
        self.hidden = "" if tag == self.hidden else self.hidden
        self.in_cell = self.in_cell and tag not in ("td", "th")
        if tag == "section":
            self.section = ""
        if tag in BLOCKS:
            self.parts[self.section].append("\n")

    def handle_data(self, data):
        if self.scripts and self.hidden == "script":
            self.scripts[-1] += data
        if self.hidden:
            return
        self.parts[self.section].append(data.replace("\n", " "))
        if self.in_cell:
            self.rows[-1][-1] += data

    def lines(self, section: str) -> list[str]:
        lines = "".join(self.parts[section]).split("\n")
        return [line for each in lines if (line := " ".join(each.split()))]

    def text(self, *sections: str) -> str:
        """Return the text of the named or all sections, on one line."""
        return " ".join(line for each in sections or self.parts for line in self.lines(each))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]

    def written(self) -> str:
        """Return every section as text, without versions and the date."""
        said = "\n".join(
            line for section in self.parts for line in (f"## {section}", *self.lines(section))
        )
        said = re.sub(r"(?m) · (\w{3} \d+, \d{4}|\d+年\d+月\d+日)$", " · <day>", said)
        return re.sub(r"(rankdash|Python|plotly\.js) \d[\w.+-]*", r"\1 <version>", said)
