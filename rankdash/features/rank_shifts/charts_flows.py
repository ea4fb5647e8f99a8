"""Where relevant documents that came into the first k came from, and where others went."""

from __future__ import annotations

import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.features.rank_shifts.shifts import UNRANKED, Flow
from rankdash.kit.drawing import draw, style

_ROW = 56
_FURNITURE = 136
_GAP = "\u00a0\u00a0"


def figure(flow: Flow, before: str, after: str, ink: style.Ink) -> go.Figure:
    """A row for each band of ranks below k: to the right what came in from there, to the left,
    hatched, what dropped out to there.

    before, after: names of the systems.
    """
    bands = [_band(band) for band in flow.bands["band"]]
    places = list(range(len(bands)))
    came = [int(each) for each in flow.bands["entered"]]
    went = [int(each) for each in flow.bands["left"]]
    most = max(*came, *went, 1)

    def bar(counts: list[int], sign: int, name: str, look: dict[str, object]) -> style.Trace:
        return draw.bar(
            [sign * count for count in counts], places, orientation="h", name=name, marker=look
        )

    traces = [
        bar(
            came,
            1,
            _("▲ came into the top {k} from these ranks: {n:,}", k=flow.k, n=flow.entered),
            {"color": style.BETTER, "line": {"width": 0}},
        ),
        bar(
            went,
            -1,
            _("▼ dropped out of it to these ranks: {n:,}", k=flow.k, n=flow.left),
            draw.hatched(style.WORSE, "\\", ink),
        ),
        draw.texts(
            [*came, *(-count for count in went)],
            [*places, *places],
            [f"{_GAP}{count:,}" for count in came] + [f"{count:,}{_GAP}" for count in went],
            ink,
            ["middle right"] * len(came) + ["middle left"] * len(went),
            style.FONT_SIZE,
        ),
    ]
    step = _step(most)
    ticks = [place * step for place in range(-(most // step), most // step + 1)]
    names = {"before": style.short(before, 18), "after": style.short(after, 18)}
    return style.finish(
        traces,
        ink,
        len(bands) * _ROW + _FURNITURE,
        barmode="overlay",
        bargap=0.35,
        xaxis=style.axis(
            _("relevant documents<br>{before} → {after}", **names),
            range=[-1.3 * most, 1.3 * most],
            tickvals=ticks,
            ticktext=[f"{abs(tick):,}" for tick in ticks],
            zeroline=True,
        ),
        yaxis=style.row_labels(
            ink, tickvals=places, ticktext=bands, range=[len(bands) - 0.5, -0.5]
        ),
    )


def alt(flow: Flow, before: str, after: str) -> str:
    """What the chart says, in words."""
    rows = zip(flow.bands["band"], flow.bands["entered"], flow.bands["left"], strict=True)
    return _(
        (
            "Relevant documents: {total}. In the top {k} of {before}: {before_in}; in that of "
            "{after}: {after_in}. {stayed} stayed, {came} came in, {went} dropped out. {bands}"
        ),
        k=flow.k,
        total=flow.total,
        before=before,
        after=after,
        before_in=flow.before,
        after_in=flow.after,
        stayed=flow.stayed,
        came=flow.entered,
        went=flow.left,
        bands=" ".join(
            _(
                "{band}: {came} from there, {went} to there.",
                band=_band(band).replace("&gt;", ">"),
                came=came,
                went=went,
            )
            for band, came, went in rows
        ),
    )


def _band(band: str) -> str:
    if band == UNRANKED:
        return _("not ranked")
    return _("rank {band}", band=band).replace(">", "&gt;")


def _step(most: int) -> int:
    """A round step that gives at most three ticks a side."""
    size = 1
    while most // size > 3:
        size *= 10
    return next(
        step
        for step in (max(size // 10, 1), size // 5 or 1, size // 2 or 1, size)
        if most // step <= 3
    )
