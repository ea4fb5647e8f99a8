"""Where the parts of a JSON document stand: for formats whose meaning lies in how objects nest.

The text is valid JSON by then; what is asked is on which physical line a part begins.
"""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rankdash.core.base.errors import Finding
from rankdash.core.readers.parse.skipped_rows import named_lines

_BETWEEN = re.compile(r"[ \t\r\n]*")


_BETWEEN_LISTS = re.compile(r"\]([ \t\r]*+\n[ \t\r\n]*+)\[")


def as_one(text: str) -> str:
    """Lists that stand a line each as a list of them, every one on the line that it had."""
    if not text.lstrip().startswith("[") or whole(text) is not None:
        return text
    joined = "[" + _BETWEEN_LISTS.sub(r"],\1[", text) + "]"
    return text if whole(joined) is None else joined


class RepeatedKeys(json.JSONDecoder):
    """A decoder that keeps the last value of a key, and the `names` of those that occur again in
    an object with another value."""

    def __init__(self) -> None:
        self.names: list[str] = []
        super().__init__(object_pairs_hook=self._object)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            self.names += [name for name, value in pairs if value != found[name]]
        return found


def repeated_keys(file: str, names: Iterable[str], lines: Sequence[int]) -> Finding:
    """A warning of keys that occur again in an object with another value. lines: of the entries."""
    return Finding(
        "warning",
        "repeated_keys",
        "Keys that occur more than once in an entry, of which the last value is used: {keys}. "
        "Lines: {lines}.",
        {"keys": ", ".join(dict.fromkeys(names)), "lines": named_lines(lines)},
        "Give each key of an entry a different name.",
        file,
        lines[0],
        len(lines),
    )


def whole(text: str) -> object:
    """The one value that the text is; None where it is not one valid value."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def text_of(value: object) -> str | None:
    """A cell of a table."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


class RecordPart(NamedTuple):
    """name: its key, "" in a list. value: decoded. line: from 1."""

    name: str
    value: Any
    line: int
    position: int


class RecordPlaces:
    """Walks through a text that is one valid value."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._decode: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().raw_decode
        self._breaks = [match.start() for match in re.finditer("\n", text)]

    def outermost(self) -> RecordPart:
        return self._part("", self._skip(0), self._skip(0))[0]

    def inside(self, outer: RecordPart | None) -> Iterator[RecordPart]:
        """The members of an object or the elements of a list, in their order; of anything else
        nothing."""
        if outer is None:
            return
        keyed = isinstance(outer.value, dict)
        if not outer.value or not (keyed or isinstance(outer.value, list)):
            return
        at = self._skip(outer.position + 1)
        while self._text[at] not in "]}":
            name, begin = "", at
            if keyed:
                name, stop = self._decode(self._text, at)
                at = self._skip(self._skip(stop) + 1)
            part, stop = self._part(name, begin, at)
            yield part
            at = self._skip(stop)
            if self._text[at] == ",":
                at = self._skip(at + 1)

    def member(self, outer: RecordPart, name: str) -> RecordPart | None:
        """The last of that name, as a decoder keeps it."""
        found = [part for part in self.inside(outer) if part.name == name]
        return found[-1] if found else None

    def _part(self, name: str, begin: int, position: int) -> tuple[RecordPart, int]:
        value, stop = self._decode(self._text, position)
        return RecordPart(name, value, bisect(self._breaks, begin) + 1, position), stop

    def _skip(self, position: int) -> int:
        match = _BETWEEN.match(self._text, position)
        return match.end() if match else position
