"""How long query and document are together, in the model's tokens, and what it did not read."""

from __future__ import annotations

import math

import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext
from rankdash.core.study.latency import TokenLengths
from rankdash.kit.drawing import draw, style

_HEIGHT = 320


def figure(lengths: TokenLengths, ink: style.Ink, *, name: str) -> go.Figure:
    """A bar for each range of lengths, hatched where pairs were cut; a line at what was read of
    those at most. The last bar gathers what is longer."""
    table = lengths.table
    width = float(table["stop"].iloc[0] - table["start"].iloc[0])
    ranges = list(zip(table["start"], table["stop"], strict=True))
    middles = [start + width / 2 for start, _ in ranges]
    end = middles[-1] + width / 2
    names = [
        _("{start:,} to {last:,}", start=int(start), last=int(stop) - 1)
        if math.isfinite(stop)
        else _("from {start:,} on", start=int(start))
        for start, stop in ranges
    ]
    traces: list[style.Trace] = []
    for column, title, look in (
        ("whole", _("read to the end ({n:,})"), {"color": style.BETTER, "line": {"width": 0}}),
        ("cut", _("cut ({n:,}, {share:.0%})"), draw.hatched(style.WORSE, "/", ink)),
    ):
        counts = [int(each) for each in table[column]]
        if not sum(counts):
            continue
        traces.append(
            draw.bar(
                middles,
                [count / lengths.pairs for count in counts],
                width=0.92 * width,
                name=title.format(n=sum(counts), share=sum(counts) / lengths.pairs),
                marker=look,
                hover=[
                    ngettext(
                        "{bin} tokens<br>{n} pair, {share:.1%}",
                        "{bin} tokens<br>{n} pairs, {share:.1%}",
                        count,
                        bin=bin_name,
                        share=count / lengths.pairs,
                    )
                    for bin_name, count in zip(names, counts, strict=True)
                ],
            )
        )
    highest = float((table["whole"] + table["cut"]).max()) / lengths.pairs
    if lengths.limit is not None:
        traces.append(
            draw.scatter(
                [lengths.limit, lengths.limit],
                [0, 1.08 * highest],
                "lines",
                name=_("most read: {n:,}", n=lengths.limit),
                line={"color": ink.text, "width": 1.5, "dash": "dash"},
            )
        )
    last = int(table["start"].iloc[-1])
    beyond = math.isinf(ranges[-1][1])
    # The last bar gathers what is longer, and its tick says so.
    regular = list(range(0, round(end) + 1, max(int(width) * 5, 1)))
    ticks = [*(tick for tick in regular if tick < last - 2 * width), last] if beyond else regular
    return style.finish(
        traces,
        ink,
        _HEIGHT,
        barmode="stack",
        legend={"traceorder": "normal"},
        xaxis=style.axis(
            _(
                "tokens of query and document, before cutting<br>{name}",
                name=style.short(name),
            ),
            tickvals=ticks,
            ticktext=[f"{tick:,} …" if beyond and tick == last else f"{tick:,}" for tick in ticks],
            range=[0, end],
        ),
        yaxis=style.axis(
            _("share of pairs"), tickformat=".1~%", range=[0, 1.1 * highest], nticks=5
        ),
    )


def alt(lengths: TokenLengths, name: str) -> str:
    """What the chart says, in words. name: of the system."""
    cut = _("None is cut.")
    if lengths.limit is not None:
        cut = _(
            "{n:,} are cut; at most {limit:,} tokens are read.", n=lengths.cut, limit=lengths.limit
        )
    return ngettext(
        "Lengths of {n} pair in {name}: half have up to {p50:,} tokens, 95 in 100 up to {p95:,}. "
        "{cut}",
        "Lengths of {n} pairs in {name}: half have up to {p50:,} tokens, 95 in 100 up to {p95:,}. "
        "{cut}",
        lengths.pairs,
        name=name,
        p50=round(lengths.p50),
        p95=round(lengths.p95),
        cut=cut,
    )
