"""The work of every regular expression of the package grows with the length of the text.

Texts come from others: documents, answers of models and services, files. A pattern whose work grows
with the square of the length makes one text of a megabyte stop a run. It is measured, on texts in
which a part that the pattern repeats comes again and again.
"""

import ast
import importlib
import re
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from re import _compiler as compiler
from re import _constants as kinds
from re import _parser as parser

import pytest

ROOT = Path(__file__).parents[1]
METHODS = {"sub", "subn", "search", "match", "fullmatch", "split", "findall", "finditer"}
# Characters of a text. A pattern that takes longer than so many seconds for it is looked at again.
LENGTH, SECONDS = 2_000, 0.0004
USUAL = {*map(chr, range(128)), *"é中\u3000\u2028Ａ٣ß"}
REPEAT = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)


class Parts:
    """The parts of a pattern: characters that stand for all that it tells apart where it repeats
    something, and for each part that it repeats the text before it and one of it. once: with the
    parts that it may leave out."""

    def __init__(self, pattern: re.Pattern[str], once: bool) -> None:
        self._once, self._leaves = once, {}
        self._tree = parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
        self.repeated: list[tuple[str, str]] = []
        self.text = self._text(self._tree, "", 0)
        alike = {
            tuple(bool(leaf.match(char)) for leaf, _ in self._leaves.values()): char
            for char in USUAL.union(char for _, char in self._leaves.values())
        }
        # First one that the fewest parts read.
        self.chars = [alike[each] for each in sorted(alike, key=sum)]

    def _text(self, items, before: str, deep: int) -> str:
        """The text before some parts, and one of theirs."""
        for kind, value in items:
            if kind is kinds.SUBPATTERN:
                before = self._text(value[3], before, deep)
            elif kind is kinds.ATOMIC_GROUP:
                before = self._text(value, before, deep)
            elif kind is kinds.BRANCH:
                before = max((self._text(each, before, deep) for each in value[1]), key=len)
            elif kind in (kinds.ASSERT, kinds.ASSERT_NOT):
                self._text(value[1], before, deep)
            elif kind in REPEAT:
                least, most, part = value
                after = self._text(part, before, deep + (most is kinds.MAXREPEAT))
                if most is kinds.MAXREPEAT:
                    self.repeated.append((before, after[len(before) :]))
                before += after[len(before) :] * max(least, self._once)
            elif kind is not kinds.AT:
                before += self._char(kind, value, deep)
        return before

    def _char(self, kind, value, deep: int) -> str:
        if kind is kinds.LITERAL and not deep:
            return chr(value)
        leaf = compiler.compile(parser.SubPattern(self._tree.state, [(kind, value)]))
        char = next((each for each in "a 1.,\n" if leaf.match(each)), None)
        char = char or next(each for each in map(chr, range(0x110000)) if leaf.match(each))
        self._leaves[str((kind, value))] = leaf, char
        return char


def texts(pattern: re.Pattern) -> Iterable[tuple[str, str, str]]:
    """Starts, parts and ends of texts on which a pattern may take long if the part is repeated."""
    if isinstance(pattern.pattern, bytes):
        pattern = re.compile(pattern.pattern.decode("latin-1"), pattern.flags | re.ASCII)
    found = {}
    for once in (False, True):
        parts = Parts(pattern, once)
        ends = ("", *parts.chars[:4], "\na\na")
        pairs = {a + b for a in parts.chars for b in parts.chars if len(parts.chars) < 7}
        for start, part in dict.fromkeys(parts.repeated):
            again = {parts.text, "\n", start, part, *parts.chars} - {""}
            tried = [*product(again, ends), *product(pairs, ends[:2])]
            found |= {(start, each, end): None for each, end in tried}
    return found


def repeated(start: str, part: str, end: str, length: float) -> str:
    """A text that takes as long whatever the length of the part, if the work is quadratic."""
    return start + part * round(length / len(part) ** 0.5) + end


class LateError(Exception):
    pass


def time_of(work: Callable[[], object], most: float) -> float:
    """The seconds of the processor that some work takes, or `most`, at which it is ended."""

    def stop(*_of: object) -> None:
        raise LateError

    before = signal.signal(signal.SIGPROF, stop)
    began = time.thread_time()
    signal.setitimer(signal.ITIMER_PROF, most)
    try:
        work()
        signal.setitimer(signal.ITIMER_PROF, 0)
    except LateError:
        return most
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return time.thread_time() - began


def grows(pattern: re.Pattern, method: str) -> str:
    """The part that is repeated in a text for which the work of a pattern grows faster than the
    length: four times the length takes more than eight times as long."""
    binary = isinstance(pattern.pattern, bytes)

    def seconds(text: str, most: float) -> float:
        given = text.encode("latin-1", "replace") if binary else text
        more = (given[:0],) if method in ("sub", "subn") else ()
        found = partial(getattr(pattern, method), *more, given)
        return time_of((lambda: deque(found(), 0)) if method == "finditer" else found, most)

    for start, part, end in texts(pattern):
        text, fourth = (repeated(start, part, end, length) for length in (LENGTH, LENGTH / 4))
        # Something else may have taken the time: what is slow is measured again.
        slow = seconds(text, SECONDS) >= SECONDS
        for _ in range(3):
            short = seconds(fourth, 0.1) if slow else 1.0
            slow = slow and (short >= 0.1 or seconds(text, 9 * short) >= 8 * short)
        if slow:
            return repr(part)
    return ""


def patterns(value: object) -> Iterator[re.Pattern]:
    """The patterns in a value of a module."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (Mapping, list, tuple, set, frozenset)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from patterns(each)


def methods(tree: ast.AST, name: str) -> Iterator[str]:
    """The methods of `name` that a module uses."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=used), attr=method) if used == name:
                if method in METHODS:
                    yield method


def used(folder: Path) -> Iterator[tuple[str, re.Pattern, str]]:
    """The patterns of a module or of those in a folder: where each is, and how it is used."""
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
        if (growth := grows(pattern, method))
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
    assert bool(grows(re.compile(pattern), method)) == bool(growth)
