"""Readers of the output of surfaces: numbers within a text, tables within a page."""

import re
from collections.abc import Iterable
from html.parser import HTMLParser

# Not a part of a name such as p95 or NDCG@10, and without a hyphen between two words.
_NUMBER = re.compile(r"(?<![\w.,@-])[-+]?[$]?\d+(?:,\d{3})*(?:\.\d+)?%?")
_INLINE = {"b", "strong", "em", "span", "a", "sup", "sub", "code"}


def numbers(text: str) -> list[str]:
    """Return the numbers of a text as written, without escapes of Markdown."""
    return _NUMBER.findall(re.sub(r"\\(?=[!-/:-@\[-`{-~])", "", text).replace("-$", "$-"))


def assert_says(text: str, expected: Iterable[str]) -> None:
    """Check that the text contains the numbers in this order, with any others in between."""
    rest = iter(numbers(text))
    wanted = [each for one in expected for each in numbers(one)]
    missing = [each for each in wanted if each not in rest]
    assert not missing, f"{missing} of {wanted} in: {text}"


class Page(HTMLParser):
    """A parsed HTML page. tables: section → its tables, each a list of rows of cells. texts:
    section → all of its text. "" is the part outside of sections."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[list[str]]]] = {"": []}
        self.texts: dict[str, str] = {"": ""}
        # The depth within a picture, which is ignored.
        self._section, self._inside, self._drawn = "", "", 0
        self._in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._drawn or dict(attrs).get("role") == "img":
            self._drawn += 1
            return
        self._inside = tag
        if tag not in _INLINE:
            self.texts[self._section] += "\n"
        match tag:
            case "section":
                self._section = str(dict(attrs)["id"])
                self.tables[self._section], self.texts[self._section] = [], ""
            case "table":
                self.tables[self._section].append([])
            case "tr":
                self._table.append([])
            case "td" | "th":
                self._table[-1].append("")
                self._in_cell = True
            case "small":
                self._table[-1][-1] += " "

    def handle_endtag(self, tag: str) -> None:
        self._drawn = max(self._drawn - 1, 0)
        if tag == "section":
            self._section = ""
        if tag in ("script", "style"):
            self._inside = ""
        self._in_cell = self._in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._drawn or self._inside in ("script", "style"):
            return
        self.texts[self._section] += data
        if self._in_cell:
            self._table[-1][-1] += data

    @property
    def _table(self) -> list[list[str]]:
        return self.tables[self._section][-1]
