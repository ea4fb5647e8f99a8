"""Charts of a judge compared with human labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.judged import verdicts
from rankdash.core.study.study import Study
from rankdash.core.words.judged import three_ways as three_ways_of
from rankdash.kit.drawing import changes, draw, style
from rankdash.kit.drawing.draw import Drawing


def three_ways(study: Study, challenger: str) -> Drawing | None:
    """Draw the change by human labels only, by the judge only, and corrected; None without a
    judge."""
    if study.judge is None:
        return None
    verdict = verdicts(study, study.judge)[challenger]
    ways = three_ways_of(verdict.three)
    # A judge without human labels proves nothing.
    p = [verdict.three.people.p, math.nan, verdict.p]
    table = pd.DataFrame(
        {
            "segment": verdict.judge,
            "value": [title for title, _change in ways],
            "n": [change.n for _title, change in ways],
            "delta": [change.mean for _title, change in ways],
            "low": [change.low for _title, change in ways],
            "high": [change.high for _title, change in ways],
            "p_corrected": p,
            "small": False,
        }
    )
    title, level = study.measure.title, study.statistics.level
    return changes.group_changes_chart(table, title, level=level, corrected=False)


def label_curve(study: Study, challenger: str) -> Drawing | None:
    """Draw the effect of labelling more queries, with and without the judge; None if the judge
    cannot be corrected."""
    if study.judge is None:
        return None
    verdict = verdicts(study, study.judge)[challenger]
    curves, title = {verdict.judge: verdict.three.curve()}, study.measure.title
    if not verdict.three.enough or not verdict.three.corrected.error > 0:
        return None
    return label_curve_chart(curves, title)


# Width of the interval by the number of human-labelled queries, without a judge and with each
# judge.

_HEIGHT = 320
Curve = Sequence[tuple[int, float, float]]
"""Number of queries, half-width with human labels only, half-width corrected."""


def _label_curve_alt(curves: Mapping[str, Curve], metric: str) -> str:
    sentences = [
        _(
            "{judge}: ±{both} instead of ±{alone} at {n} queries, ±{last} at {all}.",
            judge=judge,
            both=style.number(curve[0][2]),
            alone=style.number(curve[0][1]),
            n=curve[0][0],
            last=style.number(curve[-1][2]),
            all=curve[-1][0],
        )
        for judge, curve in curves.items()
    ]
    return _(
        "Half-width of the interval of the change in {metric} by the number of human-labelled "
        "queries. {curves}",
        metric=metric,
        curves=" ".join(sentences),
    )


@draw.chart(_label_curve_alt)
def label_curve_chart(ink: style.Ink, curves: Mapping[str, Curve], metric: str) -> go.Figure:
    """Draw a line for human labels only, and one for each judge with human labels.

    curves: judge → its points, in order of queries, at least one; the first is the present state.
    metric: its title.
    """
    alone = [(n, people) for n, people, _both in max(curves.values(), key=len)]
    lines = {_("human labels only"): alone}
    lines |= {judge: [(n, both) for n, _people, both in curve] for judge, curve in curves.items()}
    marks = style.marks({name: place for place, name in enumerate(lines)}, next(iter(lines)))
    traces = [
        draw.scatter(
            [n for n, _half in points],
            [half for _n, half in points],
            name=style.short(name),
            cliponaxis=False,
            hover=[
                _("{queries}: ±{half}", queries=style.queries(n), half=style.number(half))
                for n, half in points
            ],
            **draw.curve(marks[name]),
        )
        for name, points in lines.items()
    ]
    now = min(n for points in lines.values() for n, _half in points)
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        shapes=[draw.upright(now, ink.line, "dot", layer="below")],
        xaxis=style.axis(_("human-labelled queries"), tickformat=",d", nticks=6),
        yaxis=style.axis(
            _("± {metric}", metric=style.short(metric)), tickformat=".2~f", rangemode="tozero"
        ),
    )
