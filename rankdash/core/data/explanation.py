"""`Explanation`: the effect of each part of a text on its score, with its JSON form."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta, Struct, convert, to_builtins

Level = Literal["term", "sentence", "query"]
"""The kind of parts removed: terms of the document, its sentences, or terms of the query."""

Span = tuple[int, int]

_Place = Annotated[int, Meta(ge=0)]


@dataclass(frozen=True)
class TextPart:
    """Character spans removed as a unit: (start, end) in order, including spaces after a word."""

    places: tuple[Span, ...]

    def shown(self, text: str) -> str:
        """Return the text of the first span."""
        start, end = self.places[0]
        return text[start:end].strip()

    def without(self, text: str) -> str:
        """Return the text without this part."""
        remaining, at = [], 0
        for start, end in self.places:
            remaining.append(text[at:start])
            at = end
        return "".join([*remaining, text[at:]])


@dataclass(frozen=True)
class Stage:
    """The effects of parts of one kind. effects: one per part, NaN if it could not be computed."""

    level: Level
    parts: tuple[TextPart, ...]
    effects: tuple[float, ...]


@dataclass(frozen=True)
class Explanation:
    """The effects of the parts of one query–document pair.

    score: the score of the whole pair, in the units of the reranker.
    stages: one; for a long document two: its sentences, then the terms of its strongest sentences.
    read, full: tokens of the whole pair that the model read, and all its tokens; None if unknown.
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
        """Read the output of `to_json`. Raises ValueError for anything else."""
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
    """A stage in JSON, with None for NaN."""

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
