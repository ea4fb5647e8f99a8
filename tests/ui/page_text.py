"""The text of a page: each element on one or more lines, in order, indented by its container.

For approved outputs (`tests/approved.py`). A table is shown as its columns and first rows, a chart
as its titles, axes and traces with their first values, and a control as its label and value.
"""

import base64
import html
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from streamlit.testing.v1 import AppTest

# Rows of a table and values of a trace.
ROWS = 12
VALUES = 6
BLOCKS = "br|/?(p|div|tr|li|ul|h[1-6]|table|section|details|summary)"


def page_text(app: AppTest, sidebar: bool = False, charts: bool = True) -> str:
    """Return the text of a page. sidebar: put the sidebar's text first. charts: if false, print
    only one line per chart."""
    blocks = [app.sidebar, app.main] if sidebar else [app.main]
    text = "\n".join(line for block in blocks for line in lines(block))
    return text if charts else re.sub(r"(?m)^( *)(\[chart\].*)(\n\1 .*)*", r"\1\2", text)


def block_text(block: Any) -> str:
    """Return the text of one block of a page, such as an expander."""
    return "\n".join(lines(block))


def lines(block: Any, depth: int = 0) -> Iterator[str]:
    for node in block.children.values():
        inside = depth
        # Elements for layout only have no line.
        for line in _said(node).split("\n"):
            if line.strip():
                inside = depth + 1
                yield "  " * depth + line.rstrip()
        if hasattr(node, "children"):
            yield from lines(node, inside)


def _said(node: Any) -> str:
    kind, proto = node.type, getattr(node, "proto", None)
    if hasattr(node, "children"):
        label = getattr(node, "label", "")
        return f"[{kind}] {label}" if label else ""
    match kind:
        case "html":
            return tag_free(str(node.value))
        case "markdown" | "caption" | "title" | "header" | "subheader" | "text" | "code":
            return f"{'' if kind in ('markdown', 'caption') else f'[{kind}] '}{node.value}"
        case "info" | "warning" | "error" | "success":
            return f"[{kind}] {node.value}"
        case "arrow_data_frame" | "arrow_table" | "dataframe" | "table":
            return table_text(node.value)
        case "plotly_chart":
            return chart_text(json.loads(proto.spec))
        case "metric":
            return f"[metric] {node.label}: {node.value} {node.delta}".rstrip()
        case "progress":
            return f"[progress] {proto.value}% {proto.text}"
        case "divider" | "empty" | "space" | "balloons":
            return ""
        case "bidi_component":
            return f"[{proto.component_name}] {'; '.join(_texts(json.loads(proto.json)))}"
    if kind == "progress":
        return f"[progress] {proto.value}% {proto.text}".rstrip()
    label = str(getattr(node, "label", "") or getattr(proto, "label", ""))
    value = getattr(node, "value", None)
    shown = "" if value is None or value is False else f": {value}"
    return f"[{kind}] {label}{shown}{_of_control(node)}"


def _texts(data: Any) -> Iterator[str]:
    """Yield the texts in the data of a component, in their order, without images."""
    if isinstance(data, str):
        yield from [data] if data and not data.startswith("data:image") else []
    elif isinstance(data, (dict, list)):
        for each in data.values() if isinstance(data, dict) else data:
            yield from _texts(each)


def _of_control(node: Any) -> str:
    """Return the choices and the state of a control."""
    said = []
    options = getattr(node, "options", None)
    if options:
        shown = [str(each) for each in options[:ROWS]]
        more = f" … {len(options)}" if len(options) > ROWS else ""
        said.append(f" of {', '.join(shown)}{more}")
    if getattr(node, "disabled", False):
        said.append(" (disabled)")
    return "".join(said)


def tag_free(markup: str) -> str:
    """Return the text of HTML: one line per block, and the cells of a row on one line."""
    text = re.sub(r"(?is)<(style|script)\b.*?</\1>", "", markup)
    text = re.sub(r"(?i)</t[dh]>\s*<t[dh]\b[^>]*>", " | ", text)
    text = re.sub(r"<mark\b([^>]*)>(.*?)</mark>", _marked, text)
    text = re.sub(r"<summary>(.*?)</summary>", r"<p>▸ \1</p>", text)
    text = re.sub(rf"(?i)<({BLOCKS})\b[^>]*>", "\n", text)
    text = html.unescape(re.sub(r"<[^>]*>", " ", text))
    found = (re.sub(r"[^\S\n]+", " ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in found if line)


def _marked(found: re.Match[str]) -> str:
    """Return a marked word with the strength and the number of its mark."""
    said = re.findall(r"rd-(\w+)|title='(.*?)'", found[1])
    return f"‹{' '.join([found[2], *map(''.join, said)])}›"


def table_text(table: pd.DataFrame) -> str:
    """Return the columns and the first rows of a table."""
    frame = table.data if hasattr(table, "data") else table
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    rows = [" | ".join(map(str, frame.columns))]
    rows += [" | ".join(map(_cell, row)) for row in frame.head(ROWS).itertuples(index=False)]
    return "\n".join([f"[table] {len(frame)} rows", *(f"  {row}" for row in rows)])


def chart_text(figure: dict[str, Any]) -> str:
    """Return the titles, axes and traces of a chart."""
    layout = figure.get("layout", {})
    said = [f"[chart] {_title(layout)}".rstrip()]
    for name in sorted(each for each in layout if re.fullmatch(r"[xy]axis\d*", each)):
        axis = layout[name]
        parts = [_title(axis), axis.get("type", ""), _values(axis.get("ticktext"))]
        if any(parts):
            said.append(f"  {name}: {' '.join(part for part in parts if part)}")
    for trace in figure.get("data", []):
        given = [f"{key} {_values(trace[key])}" for key in ("x", "y", "text") if key in trace]
        name = trace.get("name") or ""
        said.append(f"  {trace.get('type', 'scatter')} {name}: {'; '.join(given)}")
    said += [
        f"  note: {each['text']}" for each in layout.get("annotations", []) if each.get("text")
    ]
    return "\n".join(said)


def _title(part: dict[str, Any]) -> str:
    title = part.get("title", "")
    return str(title.get("text", "") if isinstance(title, dict) else title)


def _values(values: Any) -> str:
    if values is None:
        return ""
    if isinstance(values, dict):
        # Plotly sends arrays of numbers in a packed form.
        values = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).tolist()
    if not isinstance(values, list):
        return _cell(values)
    more = f", … {len(values)}" if len(values) > VALUES else ""
    return ", ".join(map(_cell, values[:VALUES])) + more


def _cell(value: object) -> str:
    said = f"{value:.6g}" if isinstance(value, float) else str(value)
    return "<image>" if said.startswith("data:image") else said
