"""Charts of the labels of a data set: how often each is used, and how they fit the texts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from rankdash.core.base.i18n import enumerated, plain, share_percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.readers.checks.check import CheckReport
from rankdash.kit.drawing import draw, style
from rankdash.kit.drawing.draw import Drawing


def grades(report: CheckReport) -> Drawing:
    """Draw the number of query–document pairs with each label."""
    bars = [
        (
            plain(bar.low) if bar.low == bar.high else f"{plain(bar.low)}…{plain(bar.high)}",
            bar.count,
        )
        for bar in report.label_histogram
    ]
    return grades_chart(bars)


# The number of pairs with each label.

_HEIGHT = 220


def _grades_alt(bars: Sequence[tuple[str, int]]) -> str:
    return _(
        "How many pairs carry each label: {bars}.",
        bars=enumerated(
            _("{part}: {value}", part=label, value=f"{count:,}") for label, count in bars
        ),
    )


@draw.chart(_grades_alt)
def grades_chart(ink: style.Ink, bars: Sequence[tuple[str, int]]) -> go.Figure:
    """Draw a bar for each label or range of labels, lowest first, with its count above.

    bars: (label, count).
    """
    return style.finish(
        [
            draw.bar(
                [label for label, _ in bars],
                [count for _, count in bars],
                text=[f"{count:,}" for _, count in bars],
                textposition="outside",
                cliponaxis=False,
                marker={"color": style.BETTER},
            )
        ],
        ink,
        _HEIGHT,
        # Room for the count above the highest bar.
        margin={"t": 24},
        bargap=0.4,
        xaxis=style.axis(_p("chart", "label"), type="category"),
        yaxis=style.axis(_p("chart", "pairs"), rangemode="tozero", nticks=4),
    )


# How often random documents share as many words with a query as its labelled documents.

_BINS = 10
_WORDS_HEIGHT = 280


def _words_alt(chances: Sequence[float], of_others: Sequence[float]) -> str:
    own, other = (_binned(each)[0] for each in (chances, of_others))
    return _(
        "Queries that at most 10% of random documents fit as well as the labelled ones: {own}; "
        "with the labels of another query: {other}.",
        own=share_percent(own),
        other=share_percent(other),
    )


def _binned(chances: Sequence[float]) -> list[float]:
    """Return the share of queries in each tenth of the chance. A chance on a border belongs to the
    lower tenth, as in the rule of the list."""
    tenths = [max(math.ceil(_BINS * each - 1e-9), 1) for each in chances]
    return [tenths.count(at) / len(tenths) for at in range(1, _BINS + 1)]


@draw.chart(_words_alt)
def words_chart(
    ink: style.Ink, chances: Sequence[float], of_others: Sequence[float], level: float
) -> go.Figure:
    """Draw the share of queries in each tenth of the chance, next to the share with the labels of
    another query. level: the chance above which queries are candidates."""
    ranges = [share_percent((at + 1) / _BINS) for at in range(_BINS)]
    own, other = _binned(chances), _binned(of_others)
    hover = "%{x}: %{y:.1%}<extra></extra>"
    return style.finish(
        [
            draw.bar(
                ranges,
                own,
                name=_("labels of the query"),
                marker={
                    "color": [
                        style.BETTER if at / _BINS < level else style.WORSE for at in range(_BINS)
                    ]
                },
                hovertemplate=hover,
            ),
            draw.scatter(
                ranges,
                other,
                name=_("labels of another query"),
                mode="lines+markers",
                line={"color": style.FIRST_STAGE, "dash": "dot"},
                marker={"symbol": "circle-open", "size": 7},
                hovertemplate=hover,
            ),
        ],
        ink,
        _WORDS_HEIGHT,
        xaxis=style.axis(
            _("random documents with as many words, at most"), type="category", tickangle=0
        ),
        yaxis=style.axis(_("share of queries"), rangemode="tozero", tickformat=".0%", nticks=5),
    )
