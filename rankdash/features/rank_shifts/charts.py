"""Charts of the movements of documents, and of the agreement of systems."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import level_percent, ngettext
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import LEVEL
from rankdash.features.rank_shifts.shifts import UNRANKED, Flow
from rankdash.kit.drawing import draw, style

_ROW = 56
_FURNITURE = 136
_GAP = "\u00a0\u00a0"


def _flows_alt(flow: Flow, before: str, after: str) -> str:
    rows = zip(flow.bands["band"], flow.bands["entered"], flow.bands["left"], strict=True)
    return _(
        (
            "Relevant documents: {total}. In the top {k}: {before_in} in {before}, {after_in} in "
            "{after}. {stayed} stayed, {came} came in, {went} dropped out. {bands}"
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


@draw.chart(_flows_alt)
def flows_chart(ink: style.Ink, flow: Flow, before: str, after: str) -> go.Figure:
    """Draw a row for each band of ranks below k: to the right the documents that came in from
    there, to the left, hatched, the documents that dropped out to there.

    before, after: names of the systems.
    """
    bands = [_band(band) for band in flow.bands["band"]]
    places = list(range(len(bands)))
    came = [int(each) for each in flow.bands["entered"]]
    went = [int(each) for each in flow.bands["left"]]
    most = max(*came, *went, 1)

    def bar(counts: list[int], sign: int, name: str, look: dict[str, object]) -> style.Trace:
        return draw.bar(
            # A bar of 0 would show its outline.
            [sign * count or None for count in counts],
            places,
            orientation="h",
            name=name,
            marker=look,
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
            _("▼ dropped out to these ranks: {n:,}", k=flow.k, n=flow.left),
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


def _band(band: str) -> str:
    if band == UNRANKED:
        return _("not ranked")
    return _("rank {band}", band=band).replace(">", "&gt;")


def _step(most: int) -> int:
    """Return a round step with at most three ticks a side."""
    size = 1
    while most // size > 3:
        size *= 10
    return next(
        step
        for step in (max(size // 10, 1), size // 5 or 1, size // 2 or 1, size)
        if most // step <= 3
    )


# How far documents moved, relevant documents next to the others.

_ROW_MOVE_SIZES = 30
_FURNITURE_MOVE_SIZES = 126


def _move_sizes_alt(table: pd.DataFrame, before: str, after: str) -> str:
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


@draw.chart(_move_sizes_alt)
def move_sizes_chart(ink: style.Ink, table: pd.DataFrame, before: str, after: str) -> go.Figure:
    """Draw two bars for each distance, the farthest up on top: the share of the relevant documents,
    and of the others, hatched.

    table: as from `shifts.move_sizes`, its steps from down to up. before, after: names of the
        systems.
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
                [share or None for share in shares],
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
        len(steps) * _ROW_MOVE_SIZES + _FURNITURE_MOVE_SIZES,
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


def _sides(table: pd.DataFrame) -> dict[str, pd.Series[bool]]:
    down, same = table["step"].str.startswith("−"), table["step"] == "0"
    return {"up": ~(down | same), "same": same, "down": down}


def _signed(step: str) -> str:
    """Return a step with a sign at both ends, for the axis: "+3…+5", "+21 …"."""
    ends = [
        end if end in ("", "0") or end.startswith("−") else f"+{end}" for end in step.split("…")
    ]
    return " … ".join(ends).strip() if "…" in step else ends[0]


# From which ranks to which: a cell for each pair of bins, with its count.

_ROW_TRANSITIONS = 46
_FURNITURE_TRANSITIONS = 130
_NAME_WIDTH = 26
# The strongest shade, as a share of the colour: text stays readable on it, light and dark.
_STRONGEST = 0.5
_COMPACT_FROM = 1_000
_LEAST_SHARE = 0.005


def _transitions_alt(table: pd.DataFrame, before: str, after: str) -> str:
    rows, columns = list(table.index), list(table.columns)
    totals, counts = {"up": 0, "same": 0, "down": 0}, table.to_numpy()
    for y, start in enumerate(rows):
        for x, end in enumerate(columns):
            totals[_side(start, end, rows, columns)] += int(counts[y, x])
    return ngettext(
        "Ranks in {before} (rows) and in {after} (columns) of {n} document: {up} moved to a higher "
        "band, {same} stayed in theirs, {down} moved to a lower one.",
        "Ranks in {before} (rows) and in {after} (columns) of {n} documents: {up} moved to a "
        "higher band, {same} stayed in theirs, {down} moved to a lower one.",
        sum(totals.values()),
        before=before,
        after=after,
        **totals,
    )


@draw.chart(_transitions_alt)
def transitions_chart(ink: style.Ink, table: pd.DataFrame, before: str, after: str) -> go.Figure:
    """Draw ranks before as rows and ranks after as columns, each cell with its count and its share
    of the row. Documents below the diagonal moved up, those above it down. Direction is shown by
    position, by an arrow in the cell and by colour; the shade is the share of the row. The
    customdata of a cell are its row and its column.

    table: as from `shifts.transitions`. before, after: names of the systems.
    """
    rows, columns = list(table.index), list(table.columns)
    counts = table.to_numpy()
    totals = counts.sum(axis=1)
    sides = {name: _empty(len(rows), len(columns)) for name in ("up", "same", "down")}
    written: list[tuple[int, int, str]] = []
    hover = [["" for _ in columns] for _ in rows]
    for y, start in enumerate(rows):
        for x, end in enumerate(columns):
            count = int(counts[y, x])
            share = count / totals[y] if totals[y] else 0.0
            side = _side(start, end, rows, columns)
            sides[side][y][x] = share
            hover[y][x] = _(
                "from {before} to {after}: {n} ({share:.0%} of the documents at {before})",
                before=_bin(start),
                after=_bin(end),
                n=f"{count:,}",
                share=share,
            )
            written.append((y, x, _text(count, share, side)))
    colours = {"up": style.BETTER, "same": style.FIRST_STAGE, "down": style.WORSE}
    heats = [
        {
            "type": "heatmap",
            "z": shares,
            "zmin": 0,
            "zmax": 1,
            "colorscale": [
                [0, style.blended(colours[side], ink.background, 0.06)],
                [1, style.blended(colours[side], ink.background, _STRONGEST)],
            ],
            "showscale": False,
            "xgap": 3,
            "ygap": 3,
            "hoverinfo": "skip",
        }
        for side, shares in sides.items()
    ]
    texts = draw.scatter(
        [x for _, x, _ in written],
        [y for y, _, _ in written],
        "markers+text",
        text=[text for *_, text in written],
        # Cells of a heatmap cannot be clicked: unseen squares on them can.
        marker={"symbol": "square", "size": _ROW_TRANSITIONS, "opacity": 0},
        selected={"marker": {"opacity": 0}, "textfont": {"color": ink.text}},
        unselected={"marker": {"opacity": 0}, "textfont": {"color": ink.text}},
        customdata=[[rows[y], columns[x]] for y, x, _ in written],
        hover=[hover[y][x] for y, x, _ in written],
        textfont={"family": style.FONT, "size": style.FONT_SIZE - 1, "color": ink.text},
    )
    keys = [
        draw.key(name, symbol, colours[side])
        for side, symbol, name in (
            ("up", "triangle-up", _("moved up")),
            ("same", "square", _("about the same")),
            ("down", "triangle-down", _("moved down")),
        )
    ]
    axis = style.row_labels(ink, showline=False)
    return style.finish(
        [*heats, texts, *keys],
        ink,
        len(rows) * _ROW_TRANSITIONS + _FURNITURE_TRANSITIONS,
        xaxis=style.axis(
            _("rank in {system}", system=style.short(after, _NAME_WIDTH)),
            **axis,
            range=[-0.5, len(columns) - 0.5],
            tickvals=list(range(len(columns))),
            ticktext=[_bin(each) for each in columns],
            tickangle=0,
        ),
        yaxis=style.axis(
            _("rank in {system}", system=style.short(before, _NAME_WIDTH)),
            **axis,
            range=[len(rows) - 0.5, -0.5],
            tickvals=list(range(len(rows))),
            ticktext=[_bin(each) for each in rows],
        ),
    )


def _empty(rows: int, columns: int) -> list[list[float | None]]:
    return [[None] * columns for _ in range(rows)]


def _side(start: str, end: str, rows: Sequence[str], columns: Sequence[str]) -> str:
    """Return the direction of a move between two bins: "up", "down" or "same". "Not ranked" is
    below all bins."""
    order = [*(each for each in rows if each != UNRANKED), UNRANKED]
    one, other = order.index(start), order.index(end)
    return "same" if one == other else "up" if other < one else "down"


def _text(count: int, share: float, side: str) -> str:
    if not count:
        return "0"
    arrow = {"up": "▲", "same": "=", "down": "▼"}[side]
    part = f"{share:.0%}" if share >= _LEAST_SHARE else "&lt;1%"
    return f"{arrow} <b>{_compact(count)}</b><br>{part}"


def _compact(count: int) -> str:
    """Return a count that fits its cell; tooltip and table show all digits."""
    if count < _COMPACT_FROM:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 10 * _COMPACT_FROM else f"{count / 1000:,.0f}k"


def _bin(name: str) -> str:
    return _p("choice", "none") if name == UNRANKED else name.replace(">", "&gt;")


# Agreement of each two systems: Kendall's τ and rank-biased overlap, with their intervals.

_ROW_AGREEMENT = 74
_FURNITURE_AGREEMENT = 120
_NAME_WIDTH_AGREEMENT = 22
_TAU_AT, _RBO_AT, _NAME_AT = 0.02, 0.3, -0.3
_ROOM = 0.24
# In a chart with more rows, there is another scale at the top, at this distance from the first row.
_TALL, _SCALE_AT = 10, -0.7


def _agreement_alt(table: pd.DataFrame, *, names: Mapping[str, str] = style.NO_NAMES) -> str:
    pairs = [
        _(
            "{one} and {other}: τ {tau}, RBO {rbo}, {queries}.",
            one=names.get(row["one"], row["one"]),
            other=names.get(row["other"], row["other"]),
            tau=style.number(row["tau"], 2),
            rbo=style.number(row["rbo"], 2),
            queries=style.queries(row["n"]),
        )
        for row in table.to_dict("records")
    ]
    return _("Agreement of each pair of systems. {pairs}", pairs=" ".join(pairs)).strip()


@draw.chart(_agreement_alt)
def agreement_chart(
    ink: style.Ink,
    table: pd.DataFrame,
    *,
    p: float,
    level: float = LEVEL,
    names: Mapping[str, str] = style.NO_NAMES,
) -> go.Figure:
    """Draw a row for each two systems, their names above, a circle for τ and a diamond below it for
    the overlap, each with its interval and its number.

    table: as from `agreement.pairwise`. p: of the overlap. level: of the intervals.
    names: system → the name shown.
    """
    rows = table.to_dict("records")
    traces: list[style.Trace] = []
    for name, title, symbol, colour, at in (
        ("tau", _("Kendall's τ, whole lists"), "circle", style.BETTER, _TAU_AT),
        (
            "rbo",
            _("overlap at the top (RBO, p = {p:g})", p=p),
            "diamond",
            style.SYSTEMS[1],
            _RBO_AT,
        ),
    ):
        values = [float(row[name]) for row in rows]
        ends = [[float(row[f"{name}_{end}"]) for row in rows] for end in ("low", "high")]
        places = [place + at for place in range(len(rows))]
        traces += draw.whiskers(ends[0], ends[1], places, colour)
        traces.append(
            draw.scatter(
                values,
                places,
                "markers",
                name=title,
                marker=draw.marker(colour, symbol, 11),
                hover=[_hover(row, name, title, names) for row in rows],
            )
        )
        traces.append(
            draw.texts(
                [
                    max(value, high) if math.isfinite(high) else value
                    for value, high in zip(values, ends[1], strict=True)
                ],
                places,
                [f"\u00a0\u00a0\u00a0\u00a0{style.number(value, 2)}" for value in values],
                ink,
            )
        )
    low = min([0.0, *(float(row[end]) for row in rows for end in ("tau_low", "tau"))], key=_finite)
    start = low - 0.03
    marks = [tick / 4 for tick in range(-4, 5) if tick / 4 >= start]
    # In front of the line at 0.
    notes = [
        draw.note(
            start,
            place + _NAME_AT,
            _names(row, names),
            ink.text,
            xanchor="left",
            bgcolor=ink.background,
            font={"color": ink.text, "size": style.FONT_SIZE},
        )
        for place, row in enumerate(rows)
    ]
    tall = len(rows) > _TALL
    if tall:
        notes += [
            draw.note(
                mark,
                _SCALE_AT,
                f"{mark:g}".replace("-", "−"),
                ink.muted,
                bgcolor=ink.background,
            )
            for mark in marks
        ]
    if any(math.isfinite(float(row["tau_low"])) for row in rows):
        traces.append(
            draw.key(_("{level} interval", level=level_percent(level)), "line-ew", ink.text)
        )
    return style.finish(
        traces,
        ink,
        len(rows) * _ROW_AGREEMENT + _FURNITURE_AGREEMENT,
        margin=style.CLEAR_OF_CAMERA,
        xaxis=style.axis(
            _("agreement: 1 is the same order"),
            range=[start, 1 + _ROOM],
            tickvals=marks,
            tickformat=".2~f",
            showgrid=True,
            zeroline=True,
        ),
        yaxis={
            "range": [len(rows) - 0.5, _SCALE_AT - 0.2 if tall else -0.6],
            "showticklabels": False,
            "ticks": "",
            "showgrid": False,
            "zeroline": False,
        },
        annotations=notes,
    )


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.inf


def _names(row: Mapping[Hashable, object], names: Mapping[str, str]) -> str:
    one, other = (str(row[side]) for side in ("one", "other"))
    shown = (style.short(names.get(each, each), _NAME_WIDTH_AGREEMENT) for each in (one, other))
    return "<b>" + " – ".join(shown) + "</b>"


def _whole(row: Mapping[Hashable, object], names: Mapping[str, str]) -> str:
    pair = (str(row[side]) for side in ("one", "other"))
    return "<br>– ".join(style.whole(names.get(each, each)) for each in pair)


def _hover(row: Mapping[Hashable, object], name: str, title: str, names: Mapping[str, str]) -> str:
    value, low, high = (float(str(row[each])) for each in (name, f"{name}_low", f"{name}_high"))
    span = draw.span(low, high)
    number = style.number(value)
    return f"{_whole(row, names)}<br>{title}: {number}" + (f" ({span})" if span else "")
