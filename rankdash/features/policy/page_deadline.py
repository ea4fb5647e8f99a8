"""Deadline: quality if queries over a time limit fall back to the first stage's order."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import (
    ngettext,
    number,
    paragraph,
    share_percent,
    signed,
)
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import FEWEST_QUERIES
from rankdash.core.study import latency
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words.latency import milliseconds, where_measured
from rankdash.features.policy import charts
from rankdash.features.policy.deadline import Deadline, deadline
from rankdash.features.policy.words import with_interval
from rankdash.kit.widgets import address, pickers, view
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.text import markdown_safe, signed_cells
from rankdash.kit.widgets.view import safe_name

_LONGEST_MS = 600_000.0


def chosen() -> float | None:
    """Return the deadline that the user chose, in milliseconds; None without one."""
    return _read(address.one("deadline"))


def _read(text: str | None) -> float | None:
    try:
        ms = float(text or "")
    except ValueError:
        return None
    return ms if 0 < ms <= _LONGEST_MS else None


def _target() -> float | None:
    """Return the latency target of the page Latency, if a user set it."""
    return _read(address.one("target")) if address.by_hand("target") else None


def show(study: Study, challenger: str) -> None:
    """Draw the effect of the deadline, and quality by deadline."""
    found, name = deadline(study, challenger), safe_name(study, challenger)
    if found is None:
        st.info(
            _("A deadline needs latencies, and none was measured for {system}.", system=name),
            icon=":material/info:",
        )
        view.link("run", _("Measure it in a run"), ":material/arrow_forward:")
        return
    if found.timed < FEWEST_QUERIES:
        st.info(
            ngettext(
                "A deadline needs at least {fewest} timed queries; {n} query is timed.",
                "A deadline needs at least {fewest} timed queries; {n} queries are timed.",
                found.timed,
                fewest=FEWEST_QUERIES,
            ),
            icon=":material/info:",
        )
        return
    answer = st.empty()
    ms = pickers.pick_free(
        "deadline",
        st.number_input,
        _read,
        lambda value: None if value is None else f"{value:.10g}",
        label=_("Deadline, ms"),
        min_value=0.0,
        max_value=_LONGEST_MS,
        value=None,
        format="%g",
        placeholder=_("not set"),
        width=240,
    )
    answer.markdown(_answer(study, challenger, found, ms))
    table = found.table
    if ms is not None:
        own = found.rows(np.array([ms]))
        table = pd.concat([table, own]).drop_duplicates("ms").sort_values("ms", ignore_index=True)
    known = {"p95": _p95(study, challenger), _p("chart", "target"): _target()}
    longest = float(table["ms"].iloc[-1])
    widgets_charts.draw(
        charts.quality(
            table,
            study.measure.title,
            x="ms",
            title=_("deadline, ms"),
            lines={
                study.name(FIRST_STAGE): float(table["mean"].iloc[0]),
                _("no deadline"): float(table["mean"].iloc[-1]),
            },
            marks={label: at for label, at in known.items() if at is not None and at <= longest},
            chosen=ms,
            share="fallback",
            share_title=_("over the deadline"),
            written=milliseconds,
            level=study.statistics.level,
        ),
        key="policy.deadline",
    )
    st.caption("  \n".join(_notes(study, challenger, found)))
    fold(_("As a table"), "policy.deadlines", ":material/table:", lambda: _table(table))


def _p95(study: Study, challenger: str) -> float | None:
    summary = latency.summary(study, challenger)
    return None if summary is None else summary.p95


def _answer(study: Study, challenger: str, found: Deadline, ms: float | None) -> str:
    """Return the effect of the chosen deadline; without one, of a deadline at p95."""
    at = _p95(study, challenger) if ms is None else ms
    if at is None:
        return _("**No deadline is set.**")
    row = found.rows(np.array([at])).iloc[0]
    level = study.statistics.level
    params = {
        "ms": milliseconds(at),
        "share": share_percent(row["fallback"]),
        "metric": study.measure.title,
        "mean": with_interval(row["mean"], row["low"], row["high"], level, number),
        "change": with_interval(
            row["change"], row["change_low"], row["change_high"], level, signed
        ),
    }
    if ms is None:
        return _(
            "**No deadline is set.** With a deadline of {ms} (p95), {share} of the queries fall "
            "back to the first stage's order, and {metric} changes by {change}.",
            **params,
        )
    return _(
        "**With a deadline of {ms}, {share} of the queries fall back to the first stage's "
        "order.** {metric} is {mean}; compared with no deadline, it changes by {change}.",
        **params,
    )


def _notes(study: Study, challenger: str, found: Deadline) -> list[str]:
    """Return which queries count, and how and on which machine latency was measured."""
    run = study.run(challenger)
    where = "" if run is None else where_measured(run)
    deviation = math.nan if run is None else latency.repeats_deviation(run)
    notes = [
        paragraph(
            [
                ngettext(
                    "{n} timed query with a value.",
                    "{n} timed queries with a value.",
                    found.timed,
                ),
                *(
                    [
                        ngettext(
                            "{n} query without a latency is excluded.",
                            "{n} queries without a latency are excluded.",
                            found.untimed,
                        )
                    ]
                    if found.untimed
                    else []
                ),
                _("This section is at full depth, without the chosen depth and skip rule."),
                _(
                    "Latency was measured with one query at a time; with concurrent queries, more "
                    "of them exceed a deadline."
                ),
            ]
        ),
        _("These latencies are {where}.", where=markdown_safe(where, 300))
        if where
        else _("Latency was measured on this machine."),
    ]
    if math.isfinite(deviation):
        notes.append(
            _(
                "Repeated timings of one query have a standard deviation of {ms}; its latency is "
                "their median.",
                ms=milliseconds(deviation),
            )
        )
    if latency.busy(study, challenger):
        notes.append(_("The machine was busy: on an idle machine these times may be shorter."))
    return notes


def _table(table: pd.DataFrame) -> None:
    titles = {
        "ms": _("deadline, ms"),
        "fallback": _("over the deadline"),
        "mean": _p("column", "mean"),
        "low": _p("column", "low"),
        "high": _p("column", "high"),
        "change": _p("column", "change"),
        "change_low": _("change, low"),
        "change_high": _("change, high"),
    }
    digits = dict.fromkeys((titles[name] for name in titles if "change" in name), 4)
    st.dataframe(
        signed_cells(table[list(titles)].rename(columns=titles), digits, times=(titles["ms"],)),
        hide_index=True,
        placeholder="–",
        column_config={
            titles["fallback"]: st.column_config.NumberColumn(format="percent"),
            **dict.fromkeys(
                (titles[name] for name in ("mean", "low", "high")),
                st.column_config.NumberColumn(format="%.4f"),
            ),
        },
        alt=_("Quality by deadline"),
    )
