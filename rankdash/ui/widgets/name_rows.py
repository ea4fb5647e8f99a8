"""Tables with names of systems, which wrap."""

from __future__ import annotations

from collections.abc import Iterable

from rankdash.words.names import lines

# Of Streamlit's tables, in pixels: a row of one line, a further line, a column of text (about).
_ROW, _LINE, _CHARACTER = 35, 20, 7.2
_PADDING = 16
_MOST_LINES = 4


def row_height(names: Iterable[str], width: int) -> int:
    """How high rows have to be for every name to be whole in a column of that width, in pixels; of
    very long names there are four lines."""
    columns = int((width - _PADDING) / _CHARACTER)
    most = max((len(lines(name, columns)) for name in names), default=1)
    return _ROW + _LINE * (min(most, _MOST_LINES) - 1)
