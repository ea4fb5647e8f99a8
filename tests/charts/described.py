"""A figure as text: its axes, traces and notes, without properties common to all figures."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go

# Properties that are equal in every figure, or that do not change its look.
COMMON = {"fillmode", "fgopacity", "solidity", "hovertemplate", "hoverinfo", "cliponaxis", "font"}
COMMON |= {"automargin", "linecolor", "zerolinecolor", "gridcolor", "fixedrange", "template"}
COMMON |= {"tickfont", "textfont", "showarrow", "paper_bgcolor", "plot_bgcolor", "margin"}
COMMON |= {"modebar", "hoverlabel", "legend"}
WHOLE, ENDS = 12, 3
"""Of more values than this the first and the last are shown, and the others once each if few are
different."""


def _written(value: Any) -> str:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        each = [f"[{_written(one)}]" if isinstance(one, list) else _written(one) for one in value]
        if len(each) > WHOLE:
            ends = each[:ENDS], each[-ENDS:]
            others = dict.fromkeys(one for one in each if one not in [*ends[0], *ends[1]])
            others = others if len(others) <= 2 * WHOLE else {}
            each = [*ends[0], f"… {len(each)} values …", *others, *ends[1]]
        return " ¦ ".join(each)
    return f"{value + 0:.4g}" if isinstance(value, float) else str(value)


def _flat(of: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for name, value in of.items():
        if name in COMMON or value is None:
            continue
        if isinstance(value, Mapping) and "bdata" in value:
            sent = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
            yield f"{path}{name}", _written(sent)
        elif isinstance(value, Mapping):
            yield from _flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", _written(value)


def _short(of: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in _flat(of))


def described(figure: go.Figure) -> Iterator[str]:
    """Yield lines: the layout and its axes, then each trace: its look, then its values."""
    drawn = figure.to_plotly_json()
    layout, nested = drawn["layout"], {}
    for name, value in layout.items():
        if "axis" in name or name in ("shapes", "annotations"):
            nested[name] = value
    yield _short({name: layout[name] for name in sorted(layout) if name not in nested})
    for name, value in sorted(nested.items()):
        one = isinstance(value, Mapping)
        for each in (value,) if one else value:
            yield f"{name if one else name[:-1]}: {_short(each)}"
    for trace in drawn["data"]:
        parts = dict(_flat(trace))
        listed = {name: said for name, said in parts.items() if " ¦ " in said or name in ("x", "y")}
        yield " ".join(
            [f"{parts.pop('type')} “{parts.pop('name', '')}”"]
            + [f"{name}={said}" for name, said in parts.items() if name not in listed]
        )
        yield from (f"  {name}: {said}".rstrip() for name, said in listed.items())


def worded(figure: go.Figure) -> Iterator[str]:
    """Yield only the texts of a figure: titles of axes, names of traces, notes."""
    for axis in (*figure.select_xaxes(), *figure.select_yaxes()):
        if axis.title.text:
            yield axis.title.text
    yield from (str(trace.name) for trace in figure.data if trace.name)
    yield from (note.text for note in figure.layout.annotations)
