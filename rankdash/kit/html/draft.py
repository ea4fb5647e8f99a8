"""What all sections of a report write on: the page and the study."""

from __future__ import annotations

from collections.abc import Sequence

from rankdash.core.base.html import html_safe
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import paragraph
from rankdash.core.study.study import Study
from rankdash.core.words.verdict_chips import interval
from rankdash.kit.drawing.drawing import Drawing
from rankdash.kit.html.html_page import Page, PageTable, folded, table, together

DASH = "–"


class Draft:
    """A report that is being written."""

    def __init__(self, page: Page, study: Study) -> None:
        self.page = page
        self.study = study

    def chart(self, drawing: Drawing | None) -> str:
        return "" if drawing is None else self.page.chart(drawing.in_both_inks())

    def titled(self, drawing: Drawing) -> str:
        """A chart under its title, on one page of paper."""
        title = f"<h4>{html_safe(drawing.title)}</h4>" if drawing.title else ""
        return together(title, self.chart(drawing))

    def explained(self, title: str, *said: str) -> str:
        """What a title stands for, in sentences."""
        return _("{part}: {value}", part=title, value=paragraph([each for each in said if each]))

    def against(self, challenger: str) -> str:
        """Which two systems something is about."""
        return _(
            "{system} against {baseline}",
            system=self.study.name(challenger),
            baseline=self.study.name(self.study.baseline),
        )


def as_table(content: PageTable) -> str:
    """A table that is folded on screen and open on paper."""
    return folded(_("As a table"), table(content), printed=True)


def filled(head: Sequence[str], rows: Sequence[Sequence[str]]) -> PageTable:
    """A table of words without the columns that no row has a word in."""
    used = [place for place in range(len(head)) if any(row[place] for row in rows)]
    return PageTable([head[at] for at in used], [[row[at] for at in used] for row in rows])


def with_interval(value: str, low: float, high: float) -> str:
    """A value with its interval, where it has one."""
    ends = interval(low, high)
    return value if ends == DASH else f"{value} ({ends})"
