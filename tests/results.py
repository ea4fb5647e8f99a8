"""Cases as text for approved outputs: the result of a function or its error, in six digits.

A case is a value, or a function without arguments that returns one. Its name gives its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd

from rankdash.core.base.errors import RankdashError
from tests.approved import table

Cases = Mapping[str, object | Callable[[], object]]


def results(cases: Cases, of: Callable[[Any], object] = lambda found: found) -> str:
    """Return cases as text. of: returns the part of a result to show."""
    return table((name, result(case, of)) for name, case in cases.items())


def several(
    name: str, function: Callable[..., object], rows: Iterable[object]
) -> dict[str, Callable[[], object]]:
    """Return a case for each row. A row fills the name and is the argument of a function with one
    argument, or the tuple of arguments of a function with several."""
    needed = [
        each for each in signature(function).parameters.values() if each.default is each.empty
    ]
    given = [row if len(needed) > 1 else (row,) for row in rows]
    cases = {name.format(*row): partial(function, *row) for row in given}
    assert len(cases) == len(given), f"two cases are called alike: {name}"
    return cases


def result(case: object, of: Callable[[Any], object] = lambda found: found) -> str:
    try:
        return shown(of(case() if callable(case) else case))
    except RankdashError as refused:
        file = getattr(refused, "file", None)
        return f"{type(refused).__name__}{f' in {file}' if file else ''}: {refused}"


def shown(value: object) -> str:
    """Return a value in one line, a table with one line per row."""
    if isinstance(value, float | np.floating):
        # The rounding error of 0 differs between processors.
        return f"{0.0 if abs(value) < 1e-13 else value:.6g}"
    if isinstance(value, np.generic):
        return shown(value.item())
    if isinstance(value, pd.DataFrame):
        rows = value.to_dict("records")
        return "\n".join(map(shown, rows)) or f"no rows: {', '.join(map(str, value))}"
    if isinstance(value, pd.Series | Mapping):
        return ", ".join(f"{_plain(key)}={shown(each)}" for key, each in value.items()) or "nothing"
    if is_dataclass(value):
        own = {each.name: getattr(value, each.name) for each in fields(value)}
        return f"{type(value).__name__}({shown(own)})"
    if isinstance(value, list | tuple | set | frozenset | np.ndarray | pd.Index):
        several = sorted(value) if isinstance(value, set | frozenset) else value
        return f"[{', '.join(map(shown, several))}]"
    return str(value)


def _plain(key: object) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else str(key)
