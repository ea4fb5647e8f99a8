"""A caveat of a verdict: when it applies, its sentence, and its section of the decision page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, Literal, Self

from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.study.study import Study

Fit = Callable[[str], str]
"""Function that makes a name or a value from the data safe for an output format, such as by
escaping."""

Section = Literal["result", "risks", "missing", "elsewhere"]
"""Section of the decision page. elsewhere: next to the kinds of queries and the prices, which show
more detail."""


class Caveat(ABC):
    """A caveat of a verdict, with its numbers. Subclasses are ordered by severity, the most serious
    first.

    code: identifier in JSON. section: of the decision page. title: short text for a label.
    """

    code: ClassVar[str]
    section: ClassVar[Section]
    title: ClassVar[str]

    def __init_subclass__(cls, *, code: str, section: Section, title: str = "") -> None:
        cls.code, cls.section, cls.title = code, section, title

    @classmethod
    @abstractmethod
    def of(cls, study: Study, challenger: str) -> Iterator[Self]:
        """Yield the caveat if it applies to the verdict on a challenger."""

    def label(self, study: Study, fit: Fit = str) -> str:
        """Return the caveat in a few words, for display below the verdict."""
        return _p("caveat", self.title)

    @abstractmethod
    def sentence(self, study: Study, fit: Fit = str) -> str:
        """Return the caveat as one or more sentences."""
