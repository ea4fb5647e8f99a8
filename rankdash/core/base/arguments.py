"""Checks of the arguments of Python functions: a wrong type is a RankdashError."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from rankdash.core.base.errors import SpecError

PATH = (str, os.PathLike)
_WORDS = {
    str: "text",
    os.PathLike: "a path",
    Integral: "a whole number",
    int: "a whole number",
    Real: "a number",
    float: "a number",
    Iterable: "a list",
    Mapping: "a dictionary",
    type(None): "None",
}


def expect(**arguments: tuple[Any, ...]) -> None:
    """Raise SpecError if an argument, passed as (value, type, …), has none of these types."""
    for name, (value, *kinds) in arguments.items():
        flat = [kind for each in kinds for kind in (each if isinstance(each, tuple) else (each,))]
        if not isinstance(value, tuple(flat)):
            raise SpecError(
                "The argument {name} must be {expected}, not {given}.",
                remedy="`help` of the function lists its arguments.",
                name=name,
                expected=" or ".join(map(_words, flat)),
                given=_words(type(value)),
            )


def expect_each(name: str, values: Iterable[object], kind: type[Any]) -> None:
    """Raise SpecError if an item of the list argument `name` does not have the type `kind`."""
    for value in values:
        expect(**{name: (value, kind)})


def expect_paths(paths: Iterable[object]) -> None:
    """Raise SpecError if a path is not text or a path, for example a list of paths."""
    for path in paths:
        if isinstance(path, (list, tuple, set, frozenset)):
            raise SpecError(
                "A path must be text or a path, not a list.",
                remedy='Pass the paths one by one: read("qrels.tsv", "run.trec").',
            )
        if not hasattr(path, "__arrow_c_stream__"):
            expect(paths=(path, PATH, Mapping))


def _words(kind: type[Any]) -> str:
    if kind in (list, tuple, set, dict):
        kind = Mapping if kind is dict else Iterable
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    return _WORDS.get(kind) or f"{article} {kind.__name__}"
