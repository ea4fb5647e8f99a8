"""Explanations as a worker makes them: one after the other, with one model kept for the next."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import ScoringError
from rankdash.core.data.explanation import Explanation, Level
from rankdash.core.rerankers import Corpus, Request, Reranker, RerankerKind, Scored, create, get
from rankdash.core.rerankers.remote import keys
from rankdash.core.rerankers.settings import SettingValue
from rankdash.core.runs.claimed import Claimed
from rankdash.core.runs.key_pipe import Handover
from rankdash.core.runs.runner import Cancelled
from rankdash.core.workspace import RunRow, Workspace
from rankdash.core.workspace.jobs.explanations import ExplanationRow, Explanations
from rankdash.core.workspace.jobs.leases import Owner
from rankdash.features.queries.occlusion import LEVELS, TextVariant, cost, explain

# How long a model waits for the next question.
KEEP_SECONDS = 300.0

# How many pairs are scored between two looks at whether to stop; for a service, one call.
LOCAL_BATCH, REMOTE_BATCH = 16, 25


def in_calls(
    query_id: str, doc_id: str, variants: Sequence[TextVariant], remote: bool
) -> Iterator[list[Request]]:
    """The variants, in order, as the requests that are put to a reranker together."""
    size = REMOTE_BATCH if remote else LOCAL_BATCH
    for at in range(0, len(variants), size):
        requests = []
        for query, alike in groupby(variants[at : at + size], key=lambda variant: variant.query):
            texts = [variant.document for variant in alike]
            requests.append(Request(query_id, query, [doc_id] * len(texts), texts))
        yield requests


@dataclass(frozen=True, eq=False)
class _Held:
    """A reranker that is ready, and the texts of its data set. used: by `time.monotonic`."""

    run_id: str
    kind: RerankerKind
    reranker: Reranker
    queries: Mapping[str, str]
    documents: Mapping[str, str]
    used: float


class Explainer:
    """Makes explanations for a worker. Used by one thread."""

    def __init__(
        self,
        workspace: Workspace,
        owner: Owner,
        stopping: threading.Event,
        handover: Handover | None = None,
    ) -> None:
        self._workspace = workspace
        self._owner = owner
        self._stopping = stopping
        self._handover = handover or Handover()
        self._rows = Explanations(workspace)
        self._held: _Held | None = None

    def serve(self) -> bool:
        """Make the explanation that has waited longest; False where none waits. Errors end the
        explanation, not the worker."""
        self._let_go()
        row = self._rows.claim(self._owner)
        if row is None:
            return False
        claimed = Claimed(self._rows, row.id, self._owner, self._stopping)
        claimed.carry_out(lambda: {"result": self._explain(row, claimed.has_to_stop).to_json()})
        return True

    def _explain(self, row: ExplanationRow, has_to_stop: Callable[[], bool]) -> Explanation:
        asked = row.asked
        run = next((each for each in self._workspace.runs() if each.id == asked.run_id), None)
        if run is None:
            raise Cancelled
        kind = get(run.reranker)
        # Complete settings: an older version may not have known them all.
        reranker = create(run.reranker, scalars(run.settings))
        with keys.given(self._handover.take_for(row.id, kind.key and kind.key(reranker.settings))):
            held = self._ready(run, kind, reranker, has_to_stop)
            query, document = held.queries[asked.query_id], held.documents[asked.doc_id]
            level = _level(asked.level)
            told = cost(query, document, level)
            work = _Scoring(
                held,
                (asked.query_id, asked.doc_id),
                lambda done: self._rows.progress(row.id, self._owner, done, told.variants),
                has_to_stop,
            )
            found = explain(query, document, level, work)
        return replace(found, read=work.read, full=work.full)

    def _ready(
        self,
        run: RunRow,
        kind: RerankerKind,
        reranker: Reranker,
        has_to_stop: Callable[[], bool],
    ) -> _Held:
        """The reranker of a run, kept from before or made ready now. Not that of a service: it
        holds a key."""
        if self._held is not None and self._held.run_id == run.id:
            self._held = replace(self._held, used=time.monotonic())
            return self._held
        # Not two at once: a model may fill the memory.
        self._held = None
        data = self._workspace.dataset(run.dataset_id)
        queries, documents = data.query_text(), data.document_text()
        corpus = Corpus(doc_ids=list(documents.index), texts=list(documents))
        if has_to_stop():
            raise Cancelled
        reranker.prepare(corpus)
        held = _Held(
            run.id,
            kind,
            reranker,
            {str(query): str(text) for query, text in queries.items()},
            dict(zip(corpus.doc_ids, corpus.texts, strict=True)),
            time.monotonic(),
        )
        if not kind.able(reranker.settings).needs_network:
            self._held = held
        return held

    def _let_go(self) -> None:
        """Forget a model that no one has asked for a while."""
        if self._held is not None and time.monotonic() - self._held.used > KEEP_SECONDS:
            self._held = None


@dataclass
class _Scoring:
    """Scores variants in batches; what the reranker refuses is NaN.

    on_batch: called with the number of pairs scored. read, full: tokens of the first variant, which
        is the whole pair; None where not told.

    Raises ScoringError where the first variant fails, and Cancelled.
    """

    held: _Held
    pair: tuple[str, str]
    on_batch: Callable[[int], None]
    has_to_stop: Callable[[], bool]
    done: int = 0
    read: int | None = None
    full: int | None = None

    @property
    def _remote(self) -> bool:
        return self.held.kind.able(self.held.reranker.settings).needs_network

    def __call__(self, variants: Sequence[TextVariant]) -> npt.NDArray[np.float64]:
        found = [np.zeros(0)]
        for requests in in_calls(*self.pair, variants, self._remote):
            if self.has_to_stop():
                raise Cancelled
            answers = self._ask(requests)
            if not self.done:
                self._look_at(answers[0])
            found += [np.asarray(answer.scores, dtype=np.float64) for answer in answers]
            self.done += sum(len(request.documents) for request in requests)
            self.on_batch(self.done)
        return np.concatenate(found)

    def _ask(self, requests: Sequence[Request]) -> list[Scored]:
        answers = self.held.reranker.score(requests)
        failed = any(answer.error for answer in answers)
        pairs = sum(len(request.documents) for request in requests)
        if not failed or pairs == 1 or self._remote:
            return answers
        # Each alone, so that only the guilty fail. Asking a service again may cost money.
        return [
            answer
            for request in requests
            for text in request.documents
            for answer in self.held.reranker.score(
                [replace(request, doc_ids=request.doc_ids[:1], documents=[text])]
            )
        ]

    def _look_at(self, whole: Scored) -> None:
        """Without the score of the pair itself there is nothing to go on with."""
        if not np.isfinite(whole.scores[0]):
            raise ScoringError(
                "The complete document cannot be scored: {reason}.",
                reason=whole.error.rstrip(".") or "the reranker gave no score",
            )
        if whole.tokens is not None:
            self.read = int(whole.tokens[0])
        if whole.full is not None:
            self.full = int(whole.full[0])


def _level(text: str) -> Level:
    return next(level for level in LEVELS if level == text)


def scalars(settings: Mapping[str, object]) -> dict[str, SettingValue]:
    """The settings of a stored run as a reranker is created from them; there are no others."""
    return {
        name: value
        for name, value in settings.items()
        if isinstance(value, str | int | float | bool)
    }
