"""The columns of a comparison of systems, each declared once for every page, report and file.

A surface shows the columns that name it, in the order of the list, with a row for each system (and
metric). CSV and JSON have every field of `Comparison.frame`, and then the columns computed from
them that name "data".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal, get_args

import pandas as pd

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import language, level_percent, number, percent, signed, signed_percent
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.statistics.comparison import Comparison
from rankdash.core.statistics.planning import POWER
from rankdash.core.words.verdicts import chip, interval, p_title, p_value

Surface = Literal["leaderboard", "overview", "report", "file", "data", "gate", "history"]
"""leaderboard: the best first by one metric, on Overview, in the report and in its zip. overview:
every metric on Overview. report: the section Systems. file: Markdown, LaTeX and text. data: CSV and
JSON. gate: its JSON. history: the table of the page."""

Kind = Literal["number", "change", "size", "share", "change of a share", "count", "p", "words"]
Row = Mapping[Any, Any] | pd.Series
"""A row of `Comparison.frame`, or one with the same fields that are shown."""

EVERYWHERE: tuple[Surface, ...] = get_args(Surface)
_DASH = "–"
_WRITERS: Mapping[str, Callable[[Any], str]] = {
    "size": partial(number, digits=2),
    "share": partial(percent, digits=1),
    "change of a share": partial(signed_percent, digits=1),
    "count": partial(number, digits=0),
    "p": p_value,
    "words": str,
}


@dataclass(frozen=True)
class Column:
    """A column of a comparison.

    name: the key in CSV and JSON. kind: the format of the values; "words" are text already. title:
    in the reader's language. on: the surfaces that show it.
    compute: row → value; None: the field `name`. compared: whether it compares with the baseline,
    which then has no value. short: the English title in files; `title` by default. help: the
    explanation of the title. small, below: on the leaderboard, a second line of the title, and
    row → a second line of the cell. digits: decimals of a number or a change.
    """

    name: str
    kind: Kind
    title: str
    on: tuple[Surface, ...] = EVERYWHERE
    compute: Callable[[Row], Any] | None = None
    compared: bool = True
    short: str = ""
    help: str = ""
    small: str = ""
    below: Callable[[Row], str] | None = None
    digits: int = 3

    def value(self, row: Row) -> Any:
        """Return the unrounded value; NaN, or a dash instead of words, if there is none. The
        baseline has counts, in which all queries are the same."""
        if self._is_absent(row) and self.kind != "count":
            return _DASH if self.kind == "words" else math.nan
        return row[self.name] if self.compute is None else self.compute(row)

    def small_text(self, row: Row) -> str:
        """Return the second line of a cell of the leaderboard; "" if there is none."""
        return "" if self.below is None or self._is_absent(row) else self.below(row)

    def text(self, row: Row) -> str:
        """Return the value as it is printed; a dash if there is none."""
        if self._is_absent(row):
            return _DASH
        if self.kind in ("number", "change"):
            return (signed if self.kind == "change" else number)(self.value(row), self.digits)
        return _WRITERS[self.kind](self.value(row))

    def _is_absent(self, row: Row) -> bool:
        return self.compared and row["verdict"] == "baseline"


_OVERVIEW: tuple[Surface, ...] = ("overview",)
_COUNTS: tuple[Surface, ...] = ("overview", "file", "gate")
_PAGES: tuple[Surface, ...] = ("overview", "report", "history")
_TABLES: tuple[Surface, ...] = (*_PAGES, "file")
_SHOWN: tuple[Surface, ...] = (*_TABLES, "leaderboard", "gate")


def columns(on: Surface, level: float, corrected: bool, metric: str = "") -> list[Column]:
    """Return the columns of a surface in their order.

    level: of the intervals. corrected: whether p is corrected. metric: the title of the column of
    means; "mean" by default.
    """
    return _in_language(on, level, corrected, metric, language())


@lru_cache(maxsize=64)
def _in_language(
    on: Surface, level: float, corrected: bool, metric: str, _language: str
) -> list[Column]:
    digits = 4 if on == "file" else 3

    def of_mean(row: Row) -> str:
        return interval(row["mean_low"], row["mean_high"])

    def of_change(row: Row) -> str:
        return interval(row["delta_low"], row["delta_high"], partial(signed, digits=digits))

    def of_verdict(row: Row) -> str:
        return chip(row["verdict"])

    power, sure = percent(POWER), level_percent(level)
    within = _("{level} interval", level=sure)
    of_means = _("{level} interval of the mean", level=sure)
    of_changes = _("{level} interval of the change", level=sure)
    proves = _("The true change that this many queries prove in {power} of all cases.", power=power)
    needs = _(
        "If the true change is the observed one, this many more queries like these prove it in "
        "{power} of all cases.",
        power=power,
    )
    p = "p corrected" if corrected else "p"
    mean = metric or _p("column", "mean")
    declared = [
        Column("mean", "number", mean, _SHOWN, compared=False, small=within, below=of_mean),
        Column("interval", "words", of_means, _PAGES, of_mean, compared=False),
        Column(
            "delta",
            "change",
            _p("column", "change"),
            _SHOWN,
            short="Δ",
            small=within,
            below=of_change,
        ),
        Column("change_interval", "words", of_changes, _TABLES, of_change, short="interval of Δ"),
        Column("relative_delta", "change of a share", "Δ %", ("file",)),
        Column("p", "p", "p", ("overview", "file") if corrected else ()),
        Column("p_corrected", "p", p_title(corrected), _TABLES, short=p),
        Column("effect_size", "size", _("effect size d"), _OVERVIEW),
        Column("verdict", "words", _p("column", "verdict"), _TABLES, of_verdict, compared=False),
        Column(
            "helped_hurt",
            "words",
            _("Helped / hurt"),
            ("leaderboard",),
            lambda row: f"{number(row['helped'], 0)} / {number(row['hurt'], 0)}",
            small=_p("column", "queries"),
        ),
        Column("helped", "count", _p("column", "helped"), _COUNTS),
        Column("same", "count", _p("column", "same"), _COUNTS),
        Column("hurt", "count", _p("column", "hurt"), _COUNTS),
        Column(
            "n", "count", _p("column", "queries"), ("overview", "gate", "history"), compared=False
        ),
        Column(
            "paired", "count", _p("column", "queries"), ("report", "file", "gate"), compared=False
        ),
        Column("left_out", "count", _p("column", "excluded"), (*_COUNTS, "report")),
        Column(
            "smallest_detectable", "number", _("minimum detectable change"), _OVERVIEW, help=proves
        ),
        Column(
            "more_queries", "count", _("more queries, for the change seen"), _OVERVIEW, help=needs
        ),
    ]
    # In a printed table the words follow the numbers.
    last = "verdict" if on in ("report", "file") else ""
    shown = (replace(each, digits=digits) for each in declared if on in each.on)
    return sorted(shown, key=lambda each: each.name == last)


def records(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the rows of CSV and JSON: fields of the frame, and the columns computed from them."""
    computed = columns("data", comparison.settings.level, comparison.corrected)
    return [
        {str(name): value for name, value in row.items()}
        | {each.name: each.value(row) for each in computed}
        for row in comparison.frame.to_dict("records")
    ]
