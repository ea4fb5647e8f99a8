"""The settings of a reranker as a typed, described schema: forms and flags are built from it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankdash.core.base.errors import SettingError
from rankdash.core.base.i18n import plain

SettingValue = str | int | float | bool

_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


@dataclass(frozen=True)
class SettingSpec:
    """One setting.

    default:  says by its type which values there can be: texts, whole numbers, numbers or bools.
    choices:  the only values allowed, where there are any.
    choice_titles: what a form calls each of them; empty where they need no other name.
    within:   the range of a number, both ends included; math.inf for none.
    required: whether a text must not be empty.
    suggestions: values that a form offers for a text, beside which any other can be typed.
    lines:    how many lines a form shows of a text; 1 for a text without line breaks.
    advanced: whether a form hides it until asked, because its default suits nearly everyone.
    """

    name: str
    default: SettingValue
    title: str
    help: str
    choices: tuple[str, ...] = ()
    within: tuple[float, float] | None = None
    required: bool = False
    suggestions: tuple[str, ...] = ()
    lines: int = 1
    advanced: bool = False
    choice_titles: tuple[str, ...] = ()

    @property
    def type(self) -> type[SettingValue]:
        return type(self.default)

    @property
    def minimum(self) -> float | None:
        return self.within[0] if self.within else None

    @property
    def maximum(self) -> float | None:
        return self.within[1] if self.within and math.isfinite(self.within[1]) else None

    @property
    def range(self) -> str:
        """ "1 to 512", "at least 1", or "" where every number will do."""
        if self.within is None:
            return ""
        if self.maximum is None:
            return f"at least {plain(self.within[0])}"
        return f"{plain(self.within[0])} to {plain(self.maximum)}"

    def parse(self, value: SettingValue) -> SettingValue:
        """The value in the type of the setting; texts such as "16" or "yes" are understood.

        Raises SettingError, naming the range or the nearest choice.
        """
        if not isinstance(value, str | int | float | bool):
            raise SettingError(
                "The setting {name!r} is a text, a number, true or false, not {value}.",
                name=self.name,
                value=type(value).__name__,
            )
        if self.type is bool:
            return self._boolean(value)
        if self.type is str:
            return self._text(value)
        return self._number(value)

    def _boolean(self, value: SettingValue) -> bool:
        known = _BOOLEANS.get(str(value).strip().lower())
        if known is None:
            raise SettingError(
                "The setting {name!r} is either true or false, not {value!r}.",
                name=self.name,
                value=value,
            )
        return known

    def _text(self, value: SettingValue) -> str:
        # A free text keeps its blanks: that after "query: " is part of a prompt.
        text = str(value).strip() if self.choices or self.required else str(value)
        if self.choices and text not in self.choices:
            raise SettingError(
                "The setting {name!r} cannot be {value!r}.",
                remedy="Did you mean {nearest!r}? Possible: {choices}.",
                name=self.name,
                value=value,
                nearest=nearest(text, self.choices),
                choices=", ".join(self.choices),
            )
        if self.required and not text:
            raise SettingError("The setting {name!r} must not be empty.", name=self.name)
        return text

    def _number(self, value: SettingValue) -> int | float:
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        whole = self.type is int
        if isinstance(value, bool) or not math.isfinite(number) or (whole and number % 1):
            raise SettingError(
                "The setting {name!r} must be a whole number, not {value!r}."
                if whole
                else "The setting {name!r} must be a number, not {value!r}.",
                remedy="Possible: {range}." if self.range else "",
                name=self.name,
                value=value,
                range=self.range,
            )
        low, high = self.within or (-math.inf, math.inf)
        if not low <= number <= high:
            raise SettingError(
                "The setting {name!r} is out of range: {value!r}.",
                remedy="Possible: {range}.",
                name=self.name,
                value=value,
                range=self.range,
            )
        return int(number) if whole else number


def parse_settings(
    specs: Sequence[SettingSpec], given: Mapping[str, SettingValue]
) -> dict[str, SettingValue]:
    """Every setting of the schema with the value given or its default, in the schema's order.

    Raises SettingError where a setting does not exist (naming the nearest) or its value is wrong.
    """
    names = [spec.name for spec in specs]
    for name in given:
        if name not in names:
            raise SettingError(
                "There is no setting {name!r} here.",
                remedy="Did you mean {nearest!r}? Settings: {names}."
                if names
                else "This reranker has no settings.",
                name=name,
                nearest=nearest(name, names),
                names=", ".join(names),
            )
    return {spec.name: spec.parse(given.get(spec.name, spec.default)) for spec in specs}


def completed(
    specs: Sequence[SettingSpec], stored: Mapping[str, object]
) -> dict[str, SettingValue]:
    """Return stored settings as `parse_settings` does, without names that the schema lacks, as
    those of another version. Raises SettingError for a value that cannot be."""
    known: Any = {spec.name: stored[spec.name] for spec in specs if spec.name in stored}
    return parse_settings(specs, known)


def nearest(name: str, known: Sequence[str]) -> str:
    """The known name most like `name`; "" where none is known."""
    close = difflib.get_close_matches(name.strip().lower(), known, n=1, cutoff=0.0)
    return close[0] if close else ""
