"""Bi-encoder: query and document become vectors apart from each other, compared by cosine."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import ScoringError, UnavailableError
from rankdash.core.base.rules import SettingSpec
from rankdash.core.data.ranking import Ranking, best_places
from rankdash.core.rerankers.base import Capabilities, Corpus, Request, RerankerKind, Scored, Scores
from rankdash.core.rerankers.neural import model_files, packaged, shared
from rankdash.core.rerankers.neural.cache import Embeddings, KeptEmbeddings, cache_folder
from rankdash.core.rerankers.neural.open_model import (
    NativeOnlyError,
    Opened,
    encode_natively,
    open_model,
)
from rankdash.core.rerankers.neural.runtimes import Runtime
from rankdash.core.rerankers.neural.tokenizer import Subwords

Vectors = npt.NDArray[np.float32]


class BiEncoder(shared.NeuralReranker):
    """Cosine similarity of sentence-transformers embeddings.

    A document is encoded once, whichever queries it is a candidate of and whichever run it is in: a
    search system does that beforehand, so the time is reported as `index_seconds`.
    """

    name = "bi-encoder"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._encoder: _Encoder | None = None
        self._documents: Embeddings | None = None

    def prepare(self, corpus: Corpus) -> None:
        """Open the model. Raises UnavailableError, within seconds where the hub is needed."""
        model = str(self.settings["model"])
        folder = model_files.locate(model, "sentence-transformers")
        refuse_others(model, folder)
        weights = model_files.digest(folder)
        runtime = "torch"
        try:
            opened = open_model("text", folder, weights, self.settings, lambda model: None)
            self._encoder = _Engine(opened, self._prompts)
            runtime = opened.runtime.name
        except NativeOnlyError as only:
            self._encoder = _Native(only.model, self._prompts)
        self._identify(weights, runtime, self.settings["max_length"])
        self._documents = Embeddings(cache_folder() / "embeddings", self._fingerprint)

    def details(self) -> dict[str, object]:
        """What to keep with a run besides its settings: how it was computed, and how far an
        approximate runtime agrees with an exact one on pairs of this run."""
        encoder = self._encoder
        if not isinstance(encoder, _Engine):
            return {}
        told = encoder.opened.details() | self._provenance()
        return told | encoder.opened.agreement(self._sample, partial(_cosines, encoder))

    def _subwords(self) -> Subwords | None:
        return self._encoder.opened.subwords if isinstance(self._encoder, _Engine) else None

    def retrieve(
        self, queries: Mapping[str, str], documents: Mapping[str, str], depth: int
    ) -> Ranking:
        """The best `depth` of all documents for each query, by cosine; both are id → text."""
        if self._encoder is None or self._documents is None:
            raise ScoringError("No model is loaded yet: prepare() comes first.")
        texts = [shared.readable(text) for text in documents.values()]
        _index(self._encoder, self._documents, texts)
        held = shared.unit(np.stack([self._documents.of(text).vector for text in texts]))
        doc_ids = np.array(list(documents), dtype=object)
        asked = self._encoder.encode([shared.readable(text) for text in queries.values()], "query")
        lists = []
        for query, found in zip(queries, asked, strict=True):
            scores = (held @ shared.unit(found.vector)).astype(np.float64)
            best = best_places(scores, depth)
            lists.append((query, list(doc_ids[best]), list(scores[best])))
        return Ranking.from_lists(lists)

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Cosine similarities in [-1, 1]; a query whose scores are not finite fails."""
        if self._encoder is None or self._documents is None:
            raise ScoringError("No model is loaded yet: prepare() comes first.")
        encoder, documents = self._encoder, self._documents
        return shared.answer_each(requests, lambda asked: self._score(asked, encoder, documents))

    def _score(
        self, requests: Sequence[Request], encoder: _Encoder, documents: Embeddings
    ) -> list[Scored]:
        texts = [[shared.readable(text) for text in request.documents] for request in requests]
        indexed = _index(encoder, documents, [text for each in texts for text in each])
        queries = encoder.encode([request.query for request in requests], "query")
        # The work is done for all together; a query is charged for its share of the documents.
        total = max(1, sum(len(each) for each in texts))
        answers = []
        for request, query, each in zip(requests, queries, texts, strict=True):
            held = [documents.of(text) for text in each]
            answer = _answer(query, held, encoder.limit, indexed.share(len(each) / total))
            self._sample.add(request, answer.scores)
            answers.append(answer)
        return answers


@dataclass(frozen=True)
class _Engine:
    """Embeddings by our own engine."""

    opened: Opened
    prompts: Mapping[str, str]

    @property
    def limit(self) -> int | None:
        return self.opened.limit

    def encode(
        self, texts: Sequence[str], role: str, runtime: Runtime | None = None
    ) -> list[KeptEmbeddings]:
        """Embeddings and uncut token counts, in the order of `texts`."""
        if not texts:
            return []
        rows, types, full = self.opened.alone(texts, role, self.prompts)
        vectors = self.opened.compute(rows, types, runtime)
        return [KeptEmbeddings(vector, size) for vector, size in zip(vectors, full, strict=True)]


@dataclass(frozen=True)
class _Native:
    """Embeddings by sentence-transformers, for models that are built in a way of their own.

    How many tokens such a model reads is not known.
    """

    model: Any
    prompts: Mapping[str, str]
    limit: int | None = None

    def encode(self, texts: Sequence[str], role: str) -> list[KeptEmbeddings]:
        found = encode_natively(self.model, texts, role, self.prompts)
        return [KeptEmbeddings(vector, -1) for vector in found]


_Encoder = _Engine | _Native


def _index(encoder: _Encoder, documents: Embeddings, texts: Sequence[str]) -> shared.Indexed:
    """Encode the documents not seen before."""
    fresh = [text for text in dict.fromkeys(texts) if text not in documents]
    if not fresh:
        return shared.Indexed(0.0, 0.0)
    start = time.perf_counter()
    found = encoder.encode(fresh, "document")
    documents.add(fresh, found)
    tokens = shared.tokens_read([kept.full for kept in found], encoder.limit)
    return shared.Indexed(time.perf_counter() - start, tokens)


def _answer(
    query: KeptEmbeddings,
    held: Sequence[KeptEmbeddings],
    limit: int | None,
    indexed: shared.Indexed,
) -> Scored:
    if not held:
        return Scored(np.zeros(0))
    scores = _compared(query, held)
    if limit is None:
        return shared.checked(scores, None, None, indexed.seconds)
    full = np.array([kept.full for kept in held], dtype=np.int64)
    read = np.minimum(full, limit) + min(query.full, limit)
    computed = indexed.tokens + min(query.full, limit)
    return shared.checked(scores, read, full + query.full, indexed.seconds, computed)


def _cosines(encoder: _Engine, request: Request, runtime: Runtime) -> Scores:
    """The scores of a request with everything encoded anew in a given runtime."""
    (query,) = encoder.encode([request.query], "query", runtime)
    return _compared(query, encoder.encode(request.documents, "document", runtime))


def _compared(query: KeptEmbeddings, held: Sequence[KeptEmbeddings]) -> Scores:
    vectors = np.stack([kept.vector for kept in held]).astype(np.float64)
    scores: Scores = shared.unit(vectors) @ shared.unit(query.vector.astype(np.float64))
    return scores


def refuse_others(model: str, folder: Path) -> None:
    """Raises UnavailableError for a model that only scores pairs."""
    pooled = (folder / "modules.json").is_file()
    if not pooled and model_files.architecture(folder).endswith("SequenceClassification"):
        raise UnavailableError(
            "The model {model!r} scores pairs of texts and has no embeddings.",
            remedy="Use it with the reranker cross-encoder.",
            model=model,
        )


KIND = RerankerKind(
    name=BiEncoder.name,
    title="Bi-encoder",
    meaning="Turns query and document into vectors and compares them by cosine: meaning rather "
    "than words. Documents are encoded once, so it is fast at search time.",
    settings=(
        SettingSpec(
            "model",
            model_files.PACKAGED,
            "Model",
            "A sentence-transformers model: a name on the Hugging Face hub or a local folder. "
            "The default comes with rankdash and needs no network.",
            required=True,
            suggestions=tuple(each.id for each in packaged.known_models() if each.encoder),
        ),
        *shared.ENCODER_SETTINGS,
    ),
    capabilities=Capabilities(across_queries=True),
    build=BiEncoder,
    check=lambda settings: shared.check(settings, refuse_others),
    models=True,
)
