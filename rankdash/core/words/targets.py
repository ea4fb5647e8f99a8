"""Targets as a table of words, for the page and the report."""

from __future__ import annotations

import math
from functools import partial

from rankdash.core.base.i18n import brief, number, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.study import costs
from rankdash.core.study.study import Study
from rankdash.core.value.assumptions import DOLLARS
from rankdash.core.value.targets import LIMITS, STATUSES, Goals, Limit, TargetRow
from rankdash.core.words.prices import money
from rankdash.core.words.queries import metric_title
from rankdash.core.words.verdicts import interval

_DASH = "–"


def head() -> tuple[str, ...]:
    return (
        *(
            _p("column", "system"),
            _p("column", "metric"),
            _p("column", "value"),
            _p("column", "interval"),
            _("reachable at most"),
        ),
        *(
            _p("column", "minimum"),
            _p("column", "target"),
            _p("column", "excellent"),
            _p("target", "status"),
            _p("target", "band"),
            _p("target", "advice"),
        ),
    )


def target_rows(study: Study, goals: Goals) -> list[tuple[str, ...]]:
    """Return a row for each system and target, with the columns of `head`."""
    return [
        (study.name(system), *_cells(row))
        for system in study.chosen
        for row in costs.target_rows(study, system, goals)
    ]


def note(goals: Goals) -> str:
    """Return the explanation of the table and the source of its numbers."""
    return paragraph(
        [
            _(
                "Met or missed: the whole interval is on one side of the target. Undecided: the "
                "interval contains the target, or there are too few queries for an interval."
            ),
            _(
                "Reachable: the mean of the best order of the documents that the systems rank, "
                "with these labels. Missing a target above it does not count as failure."
            ),
            _("These are custom targets.")
            if goals.own
            else _(
                "{source}: no source justifies a number for your own labels.",
                source=_(goals.targets.source),
            ),
        ]
    )


def limit_title(limit: Limit) -> str:
    return _p("limit", LIMITS[limit.what])


def _cells(row: TargetRow) -> tuple[str, ...]:
    goal, reached = row.asked, row.reached
    minimum: float | None = None
    if isinstance(goal, Limit):
        title = limit_title(goal)
    else:
        title, minimum = metric_title(row.subject), goal.minimum
    value = _figure(row, reached.value)
    if row.example:
        value = _("{value} (example price)", value=value)
    return (
        title,
        value,
        _interval(row),
        _figure(row, reached.most),
        *(_asked(row, level) for level in (minimum, goal.target, goal.excellent)),
        _status(row),
        _p("band", row.band) or _DASH,
        _(row.advice),
    )


def _status(row: TargetRow) -> str:
    if row.example:
        return _("? example price: not decided")
    if row.excellent:
        return _("★ excellent")
    return _p("status", STATUSES[row.status])


def _interval(row: TargetRow) -> str:
    low, high = row.reached.low, row.reached.high
    if math.isnan(low):
        return _DASH
    if math.isnan(high):
        return _("at least {low}", low=_figure(row, low))
    return interval(low, high, partial(_figure, row))


def _figure(row: TargetRow, value: float) -> str:
    if math.isnan(value):
        return _DASH
    if isinstance(row.asked, Limit):
        return brief(value, row.asked.target) if row.subject == "p95_ms" else money(value, DOLLARS)
    return number(value)


def _asked(row: TargetRow, level: float | None) -> str:
    """Return a level with the digits that it was entered with, not the digits of a mean."""
    if level is None:
        return _DASH
    if row.subject == "p95_ms":
        return brief(level, row.reached.value)
    return _figure(row, level) if isinstance(row.asked, Limit) else number(level, 2)
