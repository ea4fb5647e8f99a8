"""What runs in an actor: one reranker, loaded once."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rankdash import __version__
from rankdash.core.base.errors import RankdashError, UnavailableError
from rankdash.core.rerankers import Corpus, Request, Scored, add_plugins, create, plugin_files
from rankdash.core.rerankers.base import Detailed, Literate
from rankdash.core.rerankers.settings import SettingValue
from rankdash.core.runs import scoring
from rankdash.core.runs.concurrency import machine


@dataclass(frozen=True)
class Loaded:
    """A reranker ready in an actor. details: as `Detailed` has them."""

    fingerprint: str
    details: Mapping[str, object]


class Scorer:
    """Scores what it is given; made on a node of the cluster."""

    def __init__(self, name: str, plugins: Sequence[str], environment: Mapping[str, str]) -> None:
        """environment: from `allowed.environment`, because a model may be fetched here."""
        os.environ.update(environment)
        self._name = name
        known = plugin_files()
        add_plugins([file for file in plugins if file not in known])

    def place(self) -> tuple[str, str]:
        """The name of its machine, and the version of rankdash there."""
        return platform.node(), __version__

    def load(self, settings: Mapping[str, SettingValue], corpus: Corpus) -> Loaded | RankdashError:
        """Load the reranker, or say why that cannot be done here."""
        try:
            self._reranker = create(self._name, settings)
            self._reranker.prepare(corpus)
            return Loaded(self._reranker.fingerprint(), self.details())
        except RankdashError as error:
            return error

    def score(
        self, requests: Sequence[Request]
    ) -> tuple[list[Scored], float, float] | UnavailableError:
        """The answers, and the wall and CPU seconds that they took here."""
        try:
            asked = scoring.ask(
                self._reranker, requests, time.perf_counter_ns, time.process_time_ns
            )
        except UnavailableError as error:
            return error
        return asked.answers, asked.seconds, asked.cpu_seconds

    def details(self) -> dict[str, object]:
        """The machine, and what the reranker tells."""
        told = self._reranker.details() if isinstance(self._reranker, Detailed) else {}
        return {**machine(), **told, "node": platform.node()}

    def unknown_share(self, texts: Sequence[str]) -> float:
        """As `Literate` says; NaN of a reranker that reads no tokens."""
        if not isinstance(self._reranker, Literate):
            return float("nan")
        return self._reranker.unknown_share(texts)
