"""The score cache of a workspace, as far as it works: a run does not fail for want of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from rankdash.core.base.errors import StoreError
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.score_cache import KeptScores

_log = logging.getLogger(__name__)


class OptionalCache:
    """As `ScoreCache`; what cannot be read is not kept, and what cannot be written is lost."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @property
    def pairs(self) -> int:
        """How many pairs have a kept score or answer."""
        try:
            return self._workspace.score_cache.pairs
        except StoreError as error:
            _log.warning("The score cache cannot be read: %s", error)
            return 0

    def read(
        self, fingerprint: str, asked: Sequence[tuple[str, Sequence[str]]]
    ) -> list[KeptScores]:
        try:
            return self._workspace.score_cache.read(fingerprint, asked)
        except StoreError as error:
            _log.warning("The score cache cannot be read: %s", error)
            return [KeptScores.nothing(len(documents)) for _, documents in asked]

    def write(
        self, fingerprint: str, scored: Sequence[tuple[str, Sequence[str], KeptScores]]
    ) -> None:
        try:
            self._workspace.score_cache.write(fingerprint, scored)
        except StoreError as error:
            _log.warning("The score cache cannot be written: %s", error)

    def read_answers(
        self, fingerprint: str, asked: Sequence[tuple[str, str]], *, use: bool = True
    ) -> list[str]:
        try:
            return self._workspace.score_cache.read_answers(fingerprint, asked, use=use)
        except StoreError as error:
            _log.warning("The score cache cannot be read: %s", error)
            return [""] * len(asked)

    def write_answers(self, fingerprint: str, given: Sequence[tuple[str, str, str]]) -> None:
        try:
            self._workspace.score_cache.write_answers(fingerprint, given)
        except StoreError as error:
            _log.warning("The score cache cannot be written: %s", error)
