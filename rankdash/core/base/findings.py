"""What a check noticed about the user's data, as a value that any surface can render."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rankdash.core.base.errors import DataError

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
        """What to raise where one cannot go on with it. file: as the user typed it, where that is
        another name."""
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
