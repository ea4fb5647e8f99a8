"""Systems × metrics with their intervals, and the metric against k."""

from __future__ import annotations

import math

import pandas as pd

from rankdash.core.base.html import html_safe
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import number, paragraph, percent, signed
from rankdash.core.words.queries import metric_title
from rankdash.core.words.verdict_chips import change_interval, chip, interval, p_title, p_value
from rankdash.features.cost import report_targets
from rankdash.features.overview import charts
from rankdash.kit.html.draft import DASH, Draft, as_table, with_interval
from rankdash.kit.html.html_page import PageTable, prose, table, together


def means(draft: Draft) -> str:
    study = draft.study
    level = percent(study.statistics.level)
    rows = []
    for spec in study.specs:
        for system in study.chosen:
            row = study.comparison.row(system, spec)
            rows.append(
                (metric_title(spec), study.name(system), *_cells(row, system == study.baseline))
            )
    head = [
        *(_("metric"), _("system"), _("mean"), _("{level} interval of the mean", level=level)),
        *(
            _("change"),
            _("{level} interval of the change", level=level),
            p_title(study.comparison.corrected),
        ),
        *(_("queries"), _("excluded"), _("verdict")),
    ]
    said = [
        _(
            "Each mean is over all queries that the system has a value for; each change is over "
            "the queries that both systems have."
        )
    ]
    if study.comparison.frame["mean_low"].notna().any():
        said.append(
            _(
                "An interval holds the true value with {level} confidence; a change counts as "
                "proven when its interval excludes 0 and the {p} agrees.",
                level=level,
                p=p_title(study.comparison.corrected),
            )
        )
    # Too few queries leave no interval and no p, and then no column for them.
    used = [place for place in range(len(head)) if any(row[place] != DASH for row in rows)]
    content = PageTable(
        [head[place] for place in used],
        [[row[place] for place in used] for row in rows],
        frozenset(range(2, len(used) - 1)),
    )
    chart = draft.chart(charts.systems(study))
    return together(prose(paragraph(said)), chart) + table(content) + _targets(draft)


def _targets(draft: Draft) -> str:
    """The systems beside the profile of targets, where one was chosen."""
    goals = draft.study.goals
    if goals is None:
        return ""
    title = _("Targets: {profile}", profile=_(goals.profile.title))
    content = PageTable(
        report_targets.head(), report_targets.rows(draft.study, goals), frozenset(range(2, 8))
    )
    return (
        f"<h3>{html_safe(title)}</h3>{table(content)}{prose(report_targets.note(goals), 'muted')}"
    )


def _cells(row: pd.Series, alone: bool) -> list[str]:
    missing = math.isnan(row["p_corrected"])
    return [
        number(row["mean"]),
        interval(row["mean_low"], row["mean_high"]),
        DASH if alone else signed(row["delta"]),
        DASH if alone else change_interval(row["delta_low"], row["delta_high"]),
        DASH if missing else p_value(row["p_corrected"]),
        number(row["n"] if alone else row["paired"], 0),
        DASH if alone else number(row["left_out"], 0),
        chip(str(row["verdict"])),
    ]


def curve(draft: Draft) -> str:
    """The metric against k."""
    study = draft.study
    drawn = charts.cutoffs(study)
    if drawn is None:
        return prose(_("{metric} looks at the whole list.", metric=study.measure.metric.title))
    curves = study.curves
    rows = []
    for k in sorted(set(curves["k"])):
        own = curves[curves["k"] == k].set_index("system")
        cells = [
            with_interval(number(own["mean"][system]), own["low"][system], own["high"][system])
            if system in own.index
            else DASH
            for system in study.chosen
        ]
        rows.append((str(k), *cells))
    said = [_("How the mean changes with how far down the list a searcher looks (k).")]
    if curves["low"].notna().any():
        level = percent(study.statistics.level)
        said.append(_("The number in brackets is the {level} interval.", level=level))
    content = PageTable(("k", *study.names.values()), rows, frozenset(range(len(study.chosen) + 1)))
    return together(prose(paragraph(said)), draft.chart(drawn)) + as_table(content)
