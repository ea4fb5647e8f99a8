"""One query: where each document stood and stands, the two joined by a line."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from rankdash.charts import style

MOST_DOCUMENTS = 40
_ROW = 24
_FURNITURE = 80
# On a phone, names on both sides leave room for the lines between them.
_NAME_WIDTH, _SYSTEM_WIDTH = 20, 22


@dataclass(frozen=True)
class Labels(style.Labels):
    risen: str = "relevant, risen"
    fallen: str = "relevant, fallen"
    held: str = "relevant, same rank"
    not_relevant: str = "not relevant"
    unjudged: str = "no label"
    cutoff: str = "cutoff {k}"
    absent: str = "–"
    hover: str = "rank {before} → {after}, label {label}"
    alt: str = (
        "Ranks of {shown} documents in {before} and {after}. Of the relevant ones {risen} rose, "
        "{fallen} fell and {held} kept their rank; {enters} entered the first {k} and {leaves} "
        "left it."
    )


def shown(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    """The documents worth drawing, at most `MOST_DOCUMENTS`: those that are relevant or stand in
    the first k on either side; where there are more, the relevant, then those that cross k, then
    those that moved farthest."""
    near = (frame["rank_before"] <= k) | (frame["rank_after"] <= k)
    drawn = frame[frame["relevant"] | near].copy()
    drawn["crosses"] = drawn["enters"] | drawn["leaves"]
    drawn["move"] = (drawn["rank_before"] - drawn["rank_after"]).abs()
    first = drawn.sort_values(["relevant", "crosses", "move"], ascending=False, kind="stable")
    return frame.loc[first.index[:MOST_DOCUMENTS].sort_values()]


def figure(
    frame: pd.DataFrame,
    k: int,
    before: str,
    after: str,
    ink: style.Ink,
    labels: Labels | None = None,
    *,
    names: Mapping[str, str] = style.NO_NAMES,
) -> go.Figure:
    """Two columns of documents, best on top; ranks that no drawn document has are left out.

    Relevance by weight and node (filled: relevant; cross: not; hollow: no label), direction by
    dash (dashed: fallen) and, for relevant documents, colour. Below the dotted line at k stand
    those that came in from there or went out, each with its rank.

    frame: as from `compare.ladder`. before, after: the names of the two systems. names: document
    id → the text shown for it. The customdata of a node is its document id, unescaped.
    """
    labels = labels or Labels()
    drawn, rows, cut = _place(shown(frame, k), k)
    chart = go.Figure()
    _add_lines(chart, drawn, ink, labels)
    hover = [_hover(row, names, labels) for row in drawn.to_dict("records")]
    _add_nodes(chart, drawn.assign(hover=np.array(hover, dtype=object)), ink, labels)
    chart.add_scatter(
        x=[-0.04, 1.04] if cut is not None else [None, None],
        y=[cut, cut],
        mode="lines",
        name=labels.cutoff.format(k=k),
        line={"color": ink.line, "width": 1, "dash": "dot"},
        hoverinfo="skip",
    )
    scale = {
        "range": [rows - 0.3, -1.7],
        "showgrid": False,
        "zeroline": False,
        "tickfont": {"color": ink.text},
    }
    return style.finish(
        chart,
        ink,
        round((rows + 1) * _ROW) + _FURNITURE,
        {
            "yaxis": {**scale, **_ticks(drawn, "before", before, names, labels)},
            "yaxis2": {
                **scale,
                **_ticks(drawn, "after", after, names, labels),
                "side": "right",
                "overlaying": "y",
            },
            "xaxis": {"range": [-0.04, 1.04], "showticklabels": False, "showline": False},
        },
        legend="below",
    )


def alt(frame: pd.DataFrame, k: int, before: str, after: str, labels: Labels | None = None) -> str:
    """What the chart says, in words."""
    labels = labels or Labels()
    move = _direction(frame)[frame["relevant"].to_numpy(dtype=bool)]
    return labels.alt.format(
        shown=len(shown(frame, k)),
        before=before,
        after=after,
        risen=int((move > 0).sum()),
        fallen=int((move < 0).sum()),
        held=int((move == 0).sum()),
        enters=int(frame["enters"].sum()),
        leaves=int(frame["leaves"].sum()),
        k=k,
    )


def _direction(frame: pd.DataFrame) -> npt.NDArray[np.int8]:
    """1 risen, -1 fallen, 0 same; a document that a ranking lacks stands below all others."""
    before = frame["rank_before"].fillna(np.inf).to_numpy()
    after = frame["rank_after"].fillna(np.inf).to_numpy()
    return (after < before).astype(np.int8) - (after > before).astype(np.int8)


def _place(frame: pd.DataFrame, k: int) -> tuple[pd.DataFrame, int, float | None]:
    """The frame with y_before, y_after and direction; how many rows; where the cut line runs.

    One row for each rank that a document has on either side, then one for each document that a
    side lacks.
    """
    drawn = frame.copy()
    ranks = np.unique(drawn[["rank_before", "rank_after"]].to_numpy(dtype=np.float64))
    ranks = ranks[~np.isnan(ranks)]
    rows = len(ranks)
    for side in ("before", "after"):
        rank = drawn[f"rank_{side}"].to_numpy(dtype=np.float64)
        lacking = np.isnan(rank)
        y = np.searchsorted(ranks, rank).astype(np.float64)
        y[lacking] = len(ranks) + np.arange(lacking.sum())
        drawn[f"y_{side}"] = y
        rows = max(rows, len(ranks) + int(lacking.sum()))
    drawn["direction"] = _direction(drawn)
    inside = int((ranks <= k).sum())
    return drawn, rows, inside - 0.5 if 0 < inside < rows else None


def _add_lines(chart: go.Figure, drawn: pd.DataFrame, ink: style.Ink, labels: Labels) -> None:
    relevant = drawn["relevant"].to_numpy(dtype=bool)
    move = drawn["direction"].to_numpy()
    for chosen, name, colour, dash, width in (
        (~relevant & (move >= 0), "", ink.line, "solid", 1),
        (~relevant & (move < 0), "", ink.line, "dash", 1),
        (relevant & (move == 0), labels.held, ink.text, "solid", 3),
        (relevant & (move < 0), labels.fallen, style.WORSE, "dash", 3),
        (relevant & (move > 0), labels.risen, style.BETTER, "solid", 3),
    ):
        part = drawn[chosen]
        gap = np.full(len(part), np.nan)
        ends = np.column_stack([part["y_before"], part["y_after"], gap])
        chart.add_scatter(
            x=np.tile([0.0, 1.0, np.nan], len(part)),
            y=ends.ravel(),
            mode="lines",
            name=name,
            showlegend=bool(name) and len(part) > 0,
            line={"color": colour, "dash": dash, "width": width},
            hoverinfo="skip",
        )


def _add_nodes(chart: go.Figure, drawn: pd.DataFrame, ink: style.Ink, labels: Labels) -> None:
    relevant = drawn["relevant"].to_numpy(dtype=bool)
    unjudged = drawn["label"].isna().to_numpy()
    for chosen, name, symbol, size, colour in (
        (relevant, "", "circle", 11, ink.text),
        (~relevant & ~unjudged, labels.not_relevant, "x-thin", 7, ink.muted),
        (unjudged, labels.unjudged, "circle-open", 8, ink.muted),
    ):
        part = drawn[chosen]
        for x, side, axis in ((0, "before", "y"), (1, "after", "y2")):
            chart.add_scatter(
                x=np.full(len(part), x),
                y=part[f"y_{side}"],
                yaxis=axis,
                mode="markers",
                name=name,
                showlegend=bool(name) and len(part) > 0 and side == "before",
                marker={
                    "color": colour,
                    "symbol": symbol,
                    "size": size,
                    "opacity": 1,
                    "line": {"color": colour, "width": 2},
                },
                cliponaxis=False,
                customdata=part["doc_id"],
                hovertext=part["hover"],
                hovertemplate="%{hovertext}<extra></extra>",
            )


def _ticks(
    drawn: pd.DataFrame, side: str, system: str, names: Mapping[str, str], labels: Labels
) -> dict[str, object]:
    """The system, and below it rank and document beside each node, the rank next to the node;
    relevant ones in bold."""
    join: Callable[[str, str], str] = (
        (lambda rank, name: f"{name}  {rank}")
        if side == "before"
        else (lambda rank, name: f"{rank}  {name}")
    )
    texts = [f"<b>{style.short(system, _SYSTEM_WIDTH)}</b>"]
    for row in drawn.to_dict("records"):
        rank = row[f"rank_{side}"]
        text = join(
            labels.absent if np.isnan(rank) else f"{rank:.0f}",
            style.short(names.get(row["doc_id"], row["doc_id"]), _NAME_WIDTH),
        )
        texts.append(f"<b>{text}</b>" if row["relevant"] else text)
    return {"tickvals": [-1, *drawn[f"y_{side}"]], "ticktext": texts}


def _hover(row: Mapping[Hashable, object], names: Mapping[str, str], labels: Labels) -> str:
    def shown_as(value: object) -> str:
        number = float(str(value))
        return labels.absent if np.isnan(number) else f"{number:g}"

    doc = str(row["doc_id"])
    place = labels.hover.format(
        before=shown_as(row["rank_before"]),
        after=shown_as(row["rank_after"]),
        label=shown_as(row["label"]),
    )
    return f"{style.short(names.get(doc, doc), 60)}<br>{place}"
