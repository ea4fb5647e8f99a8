"""The errors that rankdash raises on purpose.

    RankdashError            has a message and, if possible, a remedy
    ├── DataError            something in the user's data; names file and line if known
    │   ├── FormatError      no reader understands the file, or the file is broken
    │   │   └── RefusedFilesError  several files, each with its own error
    │   └── LimitError       the file is larger than the limit
    ├── SpecError            a metric spec or a convention that does not exist
    ├── RerankerError
    │   ├── SettingError     a setting that does not exist or is out of range
    │   ├── UnavailableError a model or a package that is not available here
    │   └── ScoringError     scoring one query failed
    └── StoreError           the workspace cannot be read or written, or lacks the requested item

Messages are English templates with named fields, so that a surface with another language can
translate the template and fill in the same fields. A field is as the user or a library wrote it, or
a `Phrase`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


class Phrase(str):
    """A field of a message that rankdash wrote itself, and which is translated with the message.

    It has a template with named fields like the message; as a string it is the English text.
    """

    template: str
    params: dict[str, object]

    def __new__(cls, template: str, **params: object) -> Phrase:
        phrase = super().__new__(cls, template.format(**params) if params else template)
        phrase.template, phrase.params = template, params
        return phrase


class RankdashError(Exception):
    """The base class of all errors.

    `template` and `remedy` are `str.format` templates over `params`. `str(error)` is the English
    message followed by the remedy.
    """

    def __init__(self, template: str, *, remedy: str = "", **params: object) -> None:
        self.template = template
        self.remedy = remedy
        self.params = params
        super().__init__(template)

    @property
    def message(self) -> str:
        return self.template.format(**self.params)

    def __str__(self) -> str:
        remedy = self.remedy.format(**self.params)
        return f"{self.message} {remedy}".strip()


class DataError(RankdashError):
    """An error in the user's data, at `file` and `line` (1-based) if known."""

    def __init__(
        self,
        template: str,
        *,
        remedy: str = "",
        file: str = "",
        line: int | None = None,
        **params: object,
    ) -> None:
        self.file = file
        self.line = line
        super().__init__(template, remedy=remedy, **params)

    @property
    def where(self) -> str:
        """The location: `file`, `file, line 12`, or ""."""
        return f"{self.file}, line {self.line}" if self.file and self.line else self.file

    def __str__(self) -> str:
        text = super().__str__()
        return f"{self.where}: {text}" if self.where else text


class FormatError(DataError):
    pass


class RefusedFilesError(FormatError):
    """Several files that cannot be used; `errors` has one error for each."""

    def __init__(self, errors: Sequence[DataError]) -> None:
        self.errors = tuple(errors)
        super().__init__(
            "Files that cannot be used: {count}. {each}",
            count=len(errors),
            each=" ".join(map(str, errors)),
        )


def refused(errors: Sequence[DataError]) -> DataError:
    """Return one error for the errors of one or several files."""
    return errors[0] if len(errors) == 1 else RefusedFilesError(errors)


class LimitError(DataError):
    pass


class SpecError(RankdashError):
    pass


class RerankerError(RankdashError):
    pass


class SettingError(RerankerError):
    pass


class UnavailableError(RerankerError):
    pass


class ScoringError(RerankerError):
    pass


class StoreError(RankdashError):
    pass


# Results of checks of the user's data, as values that any surface can render.

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """One line of a check report.

    `template` is an English `str.format` template over `params` (so it can be translated);
    `code` names the rule; `count` is how many rows, queries or pairs it concerns; `examples`
    are raw values from the file (hostile text: escape before showing).
    """

    severity: Severity
    code: str
    template: str
    params: Mapping[str, object] = field(default_factory=dict)
    remedy: str = ""
    file: str = ""
    line: int | None = None
    count: int = 1
    examples: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.template.format(**self.params)

    def as_error(self, file: str = "") -> DataError:
        """Return the finding as an error to raise. file: the name as the user typed it, if it
        differs from the finding's file."""
        return DataError(
            self.template,
            remedy=self.remedy,
            file=file or self.file,
            line=self.line,
            **self.params,
        )

    @property
    def where(self) -> str:
        return f"{self.file}, line {self.line}" if self.file and self.line else self.file
