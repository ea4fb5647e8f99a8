"""The leaderboard, in which users choose the compared systems and the one in focus; quality against
latency or price."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext, number, paragraph
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import CONTROL, middle
from rankdash.core.statistics.verdict import PROVEN
from rankdash.core.study.leaderboard import Axis, Standing, known_axes, standings, usual_axis
from rankdash.core.study.study import Study
from rankdash.core.words.verdicts import change_interval, chip
from rankdash.features.overview import report_systems
from rankdash.kit.drawing import style
from rankdash.kit.drawing.draw import mark_image
from rankdash.kit.html import interval
from rankdash.kit.html.html_page import DASH
from rankdash.kit.widgets import address, component, pickers
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.cache import shared
from rankdash.kit.widgets.text import markdown_safe

_LONGEST_NAME = 36
_FEW = 6
"""Number of runs outside the comparison above which they are folded."""

_CHART_HEIGHT = 400

_show = component.component(Path(__file__).with_name("leaderboard"))


def draw(study: Study, in_focus: str) -> None:
    """Draw the leaderboard, and below it a chart if latency or price of a reranker is known."""
    axes, board = known_axes(standings(study)), st.container()
    axis = _axis(study, axes)
    with board:
        _board(study, shared(_data, study, axis, in_focus))
    if axes:
        component.when_seen(
            study,
            "overview.trade_off",
            "",
            _CHART_HEIGHT,
            lambda again: shared(_trade_off, again, axis),
            axis,
        )
    else:
        _notes(study, axis)


def draw_choice(study: Study) -> None:
    """Draw the leaderboard without numbers, to choose systems while labels are missing or
    sampled."""
    if len(study.systems) > 1:
        title = {"title": _p("column", "System"), "up": True}
        _board(study, _table(study, [title], {each: [] for each in study.chosen}))


def _board(study: Study, data: dict[str, Any]) -> None:
    others = [each for each in study.systems if each != study.baseline]
    _show("overview.leaderboard", data, partial(_heard, others, study.challengers))


def _heard(systems: Collection[str], challengers: Collection[str], event: Any) -> None:
    """Apply a click in the leaderboard: ticked systems are compared, a clicked row gets the focus.
    event: from a browser, so not trusted."""
    if not isinstance(event, dict):
        return
    ticked, focus = event.get("systems"), event.get("focus")
    if isinstance(ticked, list):
        address.choose("system", [each for each in systems if each in ticked])
    if isinstance(focus, str) and focus in challengers:
        address.choose("vs", focus)


def _data(study: Study, axis: Axis, in_focus: str) -> dict[str, Any]:
    """Return the data of the component, for `leaderboard/index.js`."""
    (names, _names), *columns = report_systems.board(study, axis)
    rows = standings(study)
    titles: list[dict[str, Any]] = [
        {"title": names.title.value, "up": True},
        {"title": _p("column", "Verdict"), "up": True},
    ]
    titles += [
        {
            "title": each.title.value,
            # The interval of a mean is in the tooltip.
            "small": "" if each.name == "mean" else each.title.below,
            "more": each.title.more,
            "up": each.low_first,
            "wide": each.name == "delta",
        }
        for each, _cells in columns
    ]
    ends, threshold = report_systems.change_axis(study)
    place = partial(_place, ends)
    cells = {
        row.system: [
            [chip(row.kind), report_systems.remarks(study, row), "", chip(row.kind)],
            *(_cell(column, values[at], row, place) for column, values in columns),
        ]
        for at, row in enumerate(rows)
    }
    return {
        **_table(study, titles, cells),
        "by": 2,
        "focus": in_focus,
        "colours": {"better": style.BETTER, "worse": style.WORSE, "grey": style.FIRST_STAGE},
        "axis": {"zero": place(0.0), "threshold": None if threshold is None else place(threshold)},
    }


def _table(
    study: Study, columns: list[dict[str, Any]], cells: Mapping[str, list[Any]]
) -> dict[str, Any]:
    """Return the part of the component's data that both tables share. cells: of each compared
    system, best first."""
    # Newest first.
    others = [each for each in [*study.systems][::-1] if each not in cells]
    return {
        "words": {
            "title": _p("heading", "Leaderboard"),
            **(_announced(len(others)) if others else {}),
        },
        "columns": columns,
        "by": 0,
        "few": _FEW,
        "baseline": study.baseline,
        "rows": [{**_named(study, each), "cells": cells.get(each)} for each in (*cells, *others)],
    }


def _announced(n: int) -> dict[str, str]:
    """Return the texts of the leaderboard about runs outside the comparison. n: their number."""
    return {
        "hidden": ngettext("{n} run is not shown", "{n} runs are not shown", n),
        "add": _("Add to the comparison"),
        "all": _("Show all {n}", n=number(n, 0)),
    }


def _named(study: Study, system: str) -> dict[str, str]:
    name, places = study.name(system), {system: study.systems[system].place}
    mark = mark_image(style.marks(places, study.baseline)[system])
    shown = {"name": middle(name, _LONGEST_NAME), "whole": CONTROL.sub("", name)}
    return {"id": system, **shown, "mark": mark}


def _cell(
    column: report_systems.BoardColumn,
    cell: report_systems.Cell,
    row: Standing,
    place: Callable[[float], float | None],
) -> list[Any]:
    """Return a table cell for the component: text, small text, tooltip, sort key; for a change also
    its interval to draw. place: value → position on the axis."""
    text = "" if cell.value == DASH else cell.value
    if column.name == "mean":
        return [text, "", cell.below, cell.order]
    if column.name != "delta":
        return [text, cell.below if text else "", cell.more or cell.below, cell.order]
    proven, ends = row.kind in PROVEN, [row.delta, row.delta_low, row.delta_high]
    colour = "grey" if not proven else "better" if row.delta > 0 else "worse"
    words = change_interval(row.delta_low, row.delta_high) if text else ""
    return [text, "", "", cell.order, [*map(place, ends), colour, not proven, words]]


def _place(axis: interval.Ends, value: float) -> float | None:
    return round(interval.share(value, axis), 4) if math.isfinite(value) else None


def _trade_off(study: Study, axis: Axis) -> None:
    drawn = report_systems.trade_off(study, axis)
    if drawn is not None:
        widgets_charts.draw(drawn, key="overview.trade_off")
    elif any(row.kind == "too_few" for row in standings(study)):
        st.caption(_("Too few queries for a chart."))
    else:
        st.caption(_("No p95 latency is known.") if axis == "p95" else _("No price is known."))
    _notes(study, axis)


def _notes(study: Study, axis: Axis) -> None:
    if notes := report_systems.notes(study, axis):
        st.caption(paragraph([markdown_safe(each, 400) for each in notes]))


def _axis(study: Study, axes: Sequence[Axis]) -> Axis:
    """Return the axis that quality is drawn against; users choose if both are known."""
    usual = usual_axis(standings(study))
    if len(axes) < 2:
        return axes[0] if axes else usual
    words = {"p95": _("Quality and latency"), "cost": _("Quality and price")}
    chosen = pickers.pick_one(
        "trade",
        list(axes),
        st.segmented_control,
        default=usual,
        label=_p("field", "Trade-off"),
        label_visibility="collapsed",
        format_func=words.__getitem__,
        required=True,
    )
    return "p95" if chosen == "p95" else "cost"
