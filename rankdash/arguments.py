"""What a caller of the Python interface passes: its types, so that a slip is a RankdashError, and
the files that it names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import pandas as pd

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.readers import read_beside, sources_at

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
    """Raise SpecError if an argument, given as (value, kind, …), is of none of its kinds."""
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
    """Raise SpecError if a value of the argument `name`, which is a list, is not of that kind."""
    for value in values:
        expect(**{name: (value, kind)})


def expect_paths(paths: Iterable[object]) -> None:
    """Raise SpecError if one of the files to read is not a path, such as a list of paths."""
    for path in paths:
        if isinstance(path, (list, tuple, set, frozenset)):
            raise SpecError(
                "A path must be text or a path, not a list.",
                remedy='Pass the paths one by one: read("qrels.tsv", "run.trec").',
            )
        expect(paths=(path, PATH))


def _words(kind: type[Any]) -> str:
    if kind in (list, tuple, set, dict):
        kind = Mapping if kind is dict else Iterable
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    return _WORDS.get(kind) or f"{article} {kind.__name__}"


def draws_of(file: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the draws in a file of labels. Raises DataError if it does not contain them."""
    draws = read_beside(sources_at([file]), {}).draws
    if draws is None:
        raise DataError(
            "The file does not say in which draw each label came.",
            remedy="Give labels with the columns draw and probability, as `rankdash label status "
            "--out` writes them.",
            file=os.fspath(file),
        )
    return draws
