"""Why a document got its score: the effect of each of its parts, as it is stored."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta, Struct, convert, to_builtins

Level = Literal["term", "sentence", "query"]
"""What is left out: terms of the document, its sentences, or terms of the query."""

Span = tuple[int, int]

_Place = Annotated[int, Meta(ge=0)]


@dataclass(frozen=True)
class TextPart:
    """What is left out together: the places (start, end) in a text, in order, blanks after a word
    included."""

    places: tuple[Span, ...]

    def shown(self, text: str) -> str:
        """What a person calls it."""
        start, end = self.places[0]
        return text[start:end].strip()

    def without(self, text: str) -> str:
        """The text less this part."""
        remaining, at = [], 0
        for start, end in self.places:
            remaining.append(text[at:start])
            at = end
        return "".join([*remaining, text[at:]])


@dataclass(frozen=True)
class Stage:
    """One pass over parts of one kind. effects: of each part, NaN where it could not be had."""

    level: Level
    parts: tuple[TextPart, ...]
    effects: tuple[float, ...]


@dataclass(frozen=True)
class Explanation:
    """What was found for one pair.

    score: of the whole pair, in the units of the reranker.
    stages: one; two where a long document was judged by sentence first, and then the terms of its
        strongest sentences.
    read, full: tokens of the whole pair that the model read, and that there were; None where
        unknown.
    """

    score: float
    stages: tuple[Stage, ...]
    read: int | None = None
    full: int | None = None

    def to_json(self) -> str:
        stages = [
            _StoredStage(
                stage.level,
                tuple(part.places for part in stage.parts),
                tuple(None if math.isnan(each) else each for each in stage.effects),
            )
            for stage in self.stages
        ]
        return json.dumps(to_builtins(_Stored(self.score, tuple(stages), self.read, self.full)))

    @classmethod
    def from_json(cls, text: str) -> Explanation:
        """Raises ValueError for what `to_json` did not write."""
        stored = convert(json.loads(text), _Stored)
        stages = [
            Stage(
                stage.level,
                tuple(map(TextPart, stage.parts)),
                tuple(math.nan if each is None else each for each in stage.effects),
            )
            for stage in stored.stages
        ]
        return cls(stored.score, tuple(stages), stored.read, stored.full)


class _StoredStage(Struct):
    """A stage as JSON, which has no NaN."""

    level: Level
    parts: tuple[tuple[tuple[_Place, _Place], ...], ...]
    effects: tuple[float | None, ...]

    def __post_init__(self) -> None:
        if len(self.parts) != len(self.effects):
            raise ValueError("a part without its effect")


class _Stored(Struct):
    score: float
    stages: tuple[_StoredStage, ...]
    read: int | None
    full: int | None
