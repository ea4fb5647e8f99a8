"""The columns of a comparison of systems, each declared once for every page, report and file.

A surface shows the columns that name it, in the order of the list, with a row for each system (and
metric). CSV and JSON have every field of `Comparison.frame`, and then the columns computed from
them that name "data".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import level_percent, number, percent, signed, signed_percent
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

EVERYWHERE: frozenset[Surface] = frozenset(
    ("leaderboard", "overview", "report", "file", "data", "gate", "history")
)
_FILE_DIGITS = 4
_DASH = "–"


@dataclass(frozen=True)
class Column:
    """A column of a comparison.

    name: in CSV and JSON. kind: how its values are written; "words" are text already. title: in the
    reader's language. on: the surfaces that show it.
    compute: row → value; None: the field `name`. compared: whether it compares with the baseline,
    which then has no value. short: its title in files, in English; `title` by default. help: what
    its title means. small, below: on the leaderboard, a second line of the title, and row → a
    second line of the cell. digits: decimals of a number or a change.
    """

    name: str
    kind: Kind
    title: str
    on: Collection[Surface]
    compute: Callable[[Row], Any] | None = None
    compared: bool = True
    short: str = ""
    help: str = ""
    small: str = ""
    below: Callable[[Row], str] | None = None
    digits: int = 3

    def value(self, row: Row) -> Any:
        """Return the unrounded value; NaN, or a dash in place of words, if there is none. A count
        of the baseline is of all its queries as the same."""
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
        value = self.value(row)
        match self.kind:
            case "number":
                return number(value, self.digits)
            case "change":
                return signed(value, self.digits)
            case "size":
                return number(value, 2)
            case "share":
                return percent(value, 1)
            case "change of a share":
                return signed_percent(value, 1)
            case "count":
                return number(value, 0)
            case "p":
                return p_value(value)
        return str(value)

    def _is_absent(self, row: Row) -> bool:
        return self.compared and row["verdict"] == "baseline"


def columns(on: Surface, level: float, corrected: bool, metric: str = "") -> list[Column]:
    """Return the columns of a surface in their order.

    level: of the intervals. corrected: whether p is corrected. metric: the title of the column of
    means; "mean" by default.
    """
    digits = _FILE_DIGITS if on == "file" else 3
    found = [
        replace(each, digits=digits)
        for each in _declared(level_percent(level), corrected, metric, digits)
        if on in each.on
    ]
    # In a printed table the words follow the numbers.
    return sorted(found, key=lambda each: on in ("report", "file") and each.name == "verdict")


def records(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the rows of CSV and JSON: fields of the frame, and the columns computed from them."""
    computed = columns("data", comparison.settings.level, comparison.corrected)
    return [
        {str(name): value for name, value in row.items()}
        | {each.name: each.value(row) for each in computed}
        for row in comparison.frame.to_dict("records")
    ]


def _declared(level: str, corrected: bool, metric: str, digits: int) -> list[Column]:
    def of_mean(row: Row) -> str:
        return interval(row["mean_low"], row["mean_high"])

    def of_change(row: Row) -> str:
        ends = row["delta_low"], row["delta_high"]
        return interval(*ends, lambda value: signed(value, digits))

    within = _("{level} interval", level=level)
    power = percent(POWER)
    return [
        Column(
            "mean",
            "number",
            metric or _("mean"),
            EVERYWHERE - {"data"},
            compared=False,
            short="mean",
            small=within,
            below=of_mean,
        ),
        Column(
            "interval",
            "words",
            _("{level} interval of the mean", level=level),
            {"overview", "report", "history"},
            of_mean,
            compared=False,
        ),
        Column(
            "delta",
            "change",
            _("change"),
            EVERYWHERE - {"data"},
            short="Δ",
            small=within,
            below=of_change,
        ),
        Column(
            "change_interval",
            "words",
            _("{level} interval of the change", level=level),
            {"overview", "report", "file", "history"},
            of_change,
            short="interval of Δ",
        ),
        Column("relative_delta", "change of a share", "Δ %", {"file"}),
        Column("p", "p", "p", {"overview", "file"} if corrected else ()),
        Column(
            "p_corrected",
            "p",
            p_title(corrected),
            {"overview", "report", "file", "history"},
            short="p corrected" if corrected else "p",
        ),
        Column("effect_size", "size", _("effect size d"), {"overview"}),
        Column(
            "verdict",
            "words",
            _("verdict"),
            {"overview", "report", "file", "history"},
            lambda row: chip(row["verdict"]),
            compared=False,
        ),
        Column(
            "helped_hurt",
            "words",
            _("Helped / hurt"),
            {"leaderboard"},
            lambda row: f"{number(row['helped'], 0)} / {number(row['hurt'], 0)}",
            small=_("queries"),
        ),
        Column("helped", "count", _("helped"), {"overview", "file", "gate"}),
        Column("same", "count", _("same"), {"overview", "file", "gate"}),
        Column("hurt", "count", _("hurt"), {"overview", "file", "gate"}),
        Column("n", "count", _("queries"), {"overview", "gate", "history"}, compared=False),
        Column("paired", "count", _("queries"), {"report", "file", "gate"}, compared=False),
        Column("left_out", "count", _("excluded"), {"overview", "report", "file", "gate"}),
        Column(
            "smallest_detectable",
            "number",
            _("minimum detectable change"),
            {"overview"},
            help=_(
                "The true change that this many queries prove in {power} of all cases.", power=power
            ),
        ),
        Column(
            "more_queries",
            "count",
            _("more queries, for the change seen"),
            {"overview"},
            help=_(
                "If the true change is the observed one, this many more queries like these prove "
                "it in {power} of all cases.",
                power=power,
            ),
        ),
    ]
