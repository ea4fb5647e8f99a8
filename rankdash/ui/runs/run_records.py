"""What runs recorded of themselves besides their rankings: the machine and what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rankdash.i18n import gettext as _
from rankdash.i18n import number, percent
from rankdash.ranking.measured import Measured
from rankdash.ui.state.cache import cache
from rankdash.ui.state.server import workspace

# A cascade puts the name of the stage before what that stage tells.
_STAGES = ("", "first_", "second_")


@dataclass(frozen=True)
class Record:
    """machine: names and values as they were stored. measured: None where nothing was."""

    machine: Mapping[str, object]
    measured: Measured | None

    @property
    def runtimes(self) -> tuple[tuple[str, str], ...]:
        """(stage as a prefix, runtime) of each part that a runtime computed."""
        return tuple(
            (stage, str(self.machine[f"{stage}runtime"]))
            for stage in _STAGES
            if f"{stage}runtime" in self.machine
        )

    @property
    def from_cache(self) -> float:
        """The share of pairs whose score was kept from an earlier run; NaN where unknown."""
        if self.measured is None:
            return math.nan
        pairs = self.measured.scored_pairs + self.measured.cached_pairs
        return self.measured.cached_pairs / pairs if pairs else math.nan

    def remarks(self) -> Iterator[str]:
        """What the reader of the list has to know, each in a few words."""
        if self.measured is not None and self.measured.contended:
            yield _("other programs ran too")
        for stage, name in self.runtimes:
            agreement = self.machine.get(f"{stage}rank_agreement")
            if isinstance(agreement, float):
                yield _("{runtime}: agreement {value}", runtime=name, value=number(agreement, 4))
        if self.from_cache > 0:
            yield _("{share} kept from earlier runs", share=percent(self.from_cache))


def record(run_id: str) -> Record:
    return cache(("record", run_id), lambda: Record(*workspace().recorded(run_id)))
