"""Settings that describe themselves: frozen dataclasses whose fields say what they mean.

    @dataclass(frozen=True)
    class Rules(Settings):
        depth: int = setting(10, "Depth", "How many documents are read.", least=1)

Every surface draws, words, parses and refuses them by their `Setting`.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from numbers import Real
from typing import Any

from rankdash.core.base.errors import Phrase, RankdashError, SpecError


@dataclass(frozen=True)
class Setting:
    """One setting as a form or a command line shows it.

    default: None for a setting without a value of its own. unset: None in words. name: the field's.
    choices: value → what it means; empty where the value is a number or a switch.
    least, most: the range of a number, its ends included. positive: whether it is above 0. option:
    what a command calls it, without its dashes, if that is not the name of the field.
    """

    default: Any
    title: str
    meaning: str
    unset: str = field(default="", kw_only=True)
    choices: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    least: float = field(default=-math.inf, kw_only=True)
    most: float = field(default=math.inf, kw_only=True)
    positive: bool = field(default=False, kw_only=True)
    option: str = field(default="", kw_only=True)
    name: str = field(default="", kw_only=True)

    def validate(self, value: object) -> None:
        """Raises SpecError for a value that is no choice, or a number out of range."""
        if value is None and self.default is None:
            return
        if self.choices:
            allowed = value in self.choices
        elif isinstance(self.default, bool) or isinstance(value, bool):
            allowed = isinstance(value, bool) and isinstance(self.default, bool)
        else:
            # Written so that NaN is refused as well.
            number: Any = value if isinstance(value, Real) else math.nan
            allowed = (
                self.least <= number <= self.most
                and math.isfinite(number)
                and (number > 0 or not self.positive)
            )
        if not allowed:
            raise self.refusal(value)

    def parse(self, text: str) -> Any:
        """The value that a text stands for. Raises SpecError for one that stands for none."""
        value: Any = text
        if isinstance(self.default, bool):
            value = {"True": True, "False": False}.get(text, text)
        elif not self.choices:
            # Not by way of a float, which has fewer digits than a seed.
            kind = int if type(self.default) is int else float
            try:
                value = kind(text)
            except ValueError:
                raise self.refusal(text) from None
        self.validate(value)
        return value

    def refusal(self, value: object) -> RankdashError:
        """The error for a value that cannot be."""
        if self.choices:
            near = difflib.get_close_matches(str(value), self.choices, n=1)
            return SpecError(
                "{value!r} is not a choice for {setting}.",
                remedy="Did you mean {nearest!r}? Choices: {choices}."
                if near
                else "Choices: {choices}.",
                value=value,
                setting=self.name,
                nearest="".join(near),
                choices=", ".join(self.choices),
            )
        if isinstance(self.default, bool):
            possible = Phrase("True or False")
        elif self.positive:
            possible = Phrase("a number above 0")
        else:
            possible = Phrase(
                "between {low} and {high}", low=f"{self.least:,}", high=f"{self.most:,}"
            )
        return SpecError(
            "{setting} must be {possible}, not {value!r}.",
            setting=self.name,
            possible=possible,
            value=value,
        )


def setting(*described: Any, **more: Any) -> Any:
    """A field of `Settings`; the arguments are those of `Setting`."""
    return described_by(Setting(*described, **more))


def described_by(made: Setting) -> Any:
    """A field of `Settings` that a `Setting` describes."""
    return field(default=made.default, metadata={"setting": made})


@dataclass(frozen=True)
class Settings:
    """The base of a dataclass of settings. Raises what `Setting.validate` raises."""

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for each in settings_of(kind):
            each.validate(getattr(self, each.name))

    def as_dict(self) -> dict[str, Any]:
        """Setting → value, fit for JSON."""
        return dataclasses.asdict(self)


@cache
def settings_of(kind: Any) -> tuple[Any, ...]:
    """The `Setting` of every field of a class of `Settings`, in order."""
    return tuple(
        dataclasses.replace(each.metadata["setting"], name=each.name)
        for each in dataclasses.fields(kind)
    )
