"""How far documents moved, relevant ones beside the others."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext
from rankdash.kit.drawing import draw, style

_ROW = 30
_FURNITURE = 126


def figure(table: pd.DataFrame, before: str, after: str, ink: style.Ink) -> go.Figure:
    """Two bars for each distance, the farthest up on top: the share of the relevant documents, and
    of the others, hatched.

    table: as from `shifts.move_sizes`, its steps from down to up. before, after:
    names of the systems.
    """
    steps = [_signed(step) for step in table["step"]]
    highest = 0.0
    traces: list[style.Trace] = []
    for name, title, look in (
        ("other", _("all others ({n:,})"), draw.hatched(style.FIRST_STAGE, "/", ink)),
        ("relevant", _("relevant ({n:,})"), {"color": style.BETTER, "line": {"width": 0}}),
    ):
        counts = [int(each) for each in table[name]]
        if not sum(counts):
            continue
        shares = [float(each) for each in table[f"{name}_share"]]
        highest = max(highest, *shares)
        traces.append(
            draw.bar(
                shares,
                list(range(len(steps))),
                orientation="h",
                name=title.format(n=sum(counts)),
                legendrank=1 if name == "relevant" else 2,
                marker=look,
                text=[f"{share:.0%}" if share else "" for share in shares],
                textposition="outside",
                textfont={"size": style.FONT_SIZE - 3, "color": ink.text},
                cliponaxis=False,
                hover=[
                    ngettext(
                        "{step}: {n} document, {share:.1%}",
                        "{step}: {n} documents, {share:.1%}",
                        count,
                        step=step,
                        share=share,
                    )
                    for step, count, share in zip(steps, counts, shares, strict=True)
                ],
            )
        )
    names = {"before": style.short(before, 18), "after": style.short(after, 18)}
    return style.finish(
        traces,
        ink,
        len(steps) * _ROW + _FURNITURE,
        barmode="group",
        bargap=0.25,
        xaxis=style.axis(
            _("share of documents<br>{before} → {after}", **names),
            tickformat=".0%",
            range=[0, (highest or 1.0) * 1.15],
            nticks=5,
        ),
        yaxis=style.row_labels(
            ink,
            title={"text": _("ranks up (+) or down (−)")},
            tickvals=list(range(len(steps))),
            ticktext=steps,
            range=[-0.6, len(steps) - 0.4],
        ),
    )


def alt(table: pd.DataFrame, before: str, after: str) -> str:
    """What the chart says, in words."""
    counts = {}
    for name in ("relevant", "other"):
        for side, rows in _sides(table).items():
            counts[f"{name}_{side}"] = int(table.loc[rows, name].sum())
    return _(
        (
            "How far documents moved from {before} to {after}. Relevant: {relevant_up} "
            "up, {relevant_same} not at all, {relevant_down} down. All others: "
            "{other_up} up, {other_same} not at all, {other_down} down."
        ),
        before=before,
        after=after,
        **counts,
    )


def _sides(table: pd.DataFrame) -> dict[str, pd.Series[bool]]:
    down, same = table["step"].str.startswith("−"), table["step"] == "0"
    return {"up": ~(down | same), "same": same, "down": down}


def _signed(step: str) -> str:
    """A step with its sign on both ends, as it stands on the axis: "+3…+5", "+21 …"."""
    ends = [
        end if end in ("", "0") or end.startswith("−") else f"+{end}" for end in step.split("…")
    ]
    return " … ".join(ends).strip() if "…" in step else ends[0]
