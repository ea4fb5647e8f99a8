"""The work of every regular expression of the package grows with the length of the text.

Texts are from documents, files, and answers of models and services. If the work of a pattern grows
with the square of the length, one text of a megabyte can stop a run.
"""

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.backtracking import Automaton

ROOT = Path(__file__).parents[1]
METHODS = {"sub", "subn", "search", "match", "fullmatch", "split", "findall", "finditer"}


def patterns(value: object) -> Iterator[re.Pattern]:
    """Yield the patterns in a value of a module."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (Mapping, list, tuple, set, frozenset)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from patterns(each)


def methods(tree: ast.AST, name: str) -> Iterator[str]:
    """Yield the methods of `name` that a module uses."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=used), attr=method) if used == name:
                if method in METHODS:
                    yield method


def used(folder: Path) -> Iterator[tuple[str, re.Pattern, str]]:
    """Yield place, pattern and method of the patterns of a module or folder."""
    for file in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
        text = file.read_text()
        tree = ast.parse(text)
        place = file.relative_to(ROOT).as_posix()
        if "re.compile(" in text:
            module = importlib.import_module(place.removesuffix(".py").replace("/", "."))
            for name, value in vars(module).items():
                for pattern in patterns(value):
                    for method in set(methods(tree, name)) or {"search"}:
                        yield f"{place} {name}", pattern, method
        for node in ast.walk(tree):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="re"), attr=method),
                    args=[ast.Constant(value=str(text)), *_],
                ) if method in METHODS:
                    yield f"{place}:{node.lineno}", re.compile(text, re.DOTALL), method


PLACES = sorted(
    place
    for place in (ROOT / "rankdash").iterdir()
    if (place.is_dir() or place.suffix == ".py") and place.name != "__main__.py"
)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_the_work_of_a_pattern_grows_with_the_length_of_the_text(place):
    growing = [
        f"{name}.{method}: {growth}: {pattern.pattern}"
        for name, pattern, method in used(place)
        if (growth := Automaton(pattern, method).grows())
    ]
    assert growing == []


@pytest.mark.parametrize(
    ("pattern", "method", "growth"),
    [
        (r".*</think>", "sub", "quadratic"),
        (r"<think>.*?</think>", "sub", "quadratic"),
        (r"\s+$", "search", "quadratic"),
        (r"\w+@", "search", "quadratic"),
        (r"(?<!\w)\w+@", "search", ""),
        (r"\d+", "findall", ""),
        (r"(?:[^,(]|\([^()]*+\)?+)+", "findall", ""),
        (r"a+(?!b)", "search", ""),
        (r"a+(?=b)", "search", "quadratic"),
        (r"\w+(?:-\w+)*", "findall", ""),
        (r"a.*z|b", "sub", "quadratic"),
        (r".*x.*y", "match", "quadratic"),
        (r"(a+)+b", "fullmatch", "exponential"),
        (r"(a|a)*b", "match", "exponential"),
        (r"a+a+b", "fullmatch", "quadratic"),
        (r"(?:a|b)*c", "fullmatch", ""),
        (r"[*\s]*\.?[*\s]*", "fullmatch", "quadratic"),
        (r"[*\s]*(?:\.[*\s]*)?", "fullmatch", ""),
        (r"^\s*x", "search", ""),
        (r"(?m)^\s*x", "search", "quadratic"),
        (r"(?m)^[ \t]*x", "search", ""),
        (r"[.!?]+(?=\s|$)", "search", "quadratic"),
        (r"(?<![.!?])[.!?]++(?=\s|$)", "search", ""),
        (r"<(?=\s*/?\s*(?:document)\b)", "sub", "quadratic"),
        (r"<(?=\s*(?:/\s*)?(?:document)\b)", "sub", ""),
    ],
)
def test_the_growth_of_known_patterns_is_found(pattern, method, growth):
    assert Automaton(re.compile(pattern), method).grows().partition(":")[0] == growth
