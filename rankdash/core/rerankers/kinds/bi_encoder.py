"""Bi-encoder: query and document are embedded separately and compared by cosine."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import UnavailableError
from rankdash.core.base.rules import SettingSpec
from rankdash.core.data.arrays import best_places
from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers.base import Capabilities, Corpus, Request, RerankerKind, Scored, Scores
from rankdash.core.rerankers.catalogue import known_models
from rankdash.core.rerankers.neural import model_files, shared
from rankdash.core.rerankers.neural.cache import Embeddings, Encoded, cache_folder
from rankdash.core.rerankers.neural.open_model import NativeOnlyError, open_model
from rankdash.core.rerankers.neural.runtimes import Runtime
from rankdash.core.rerankers.neural.tokenizer import Windows, readable


class BiEncoder(shared.NeuralReranker):
    """Cosine similarity of sentence-transformers embeddings, in [-1, 1].

    A document is encoded once for all queries and runs: a search system does that beforehand, so
    the time is reported as `index_seconds`.
    """

    name = "bi-encoder"
    _encoder: shared.Encoder
    _documents: Embeddings

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._windows = Windows.of(settings)

    def prepare(self, corpus: Corpus) -> None:
        super().prepare(corpus)
        self._documents = Embeddings(cache_folder() / "embeddings", self._fingerprint)

    @staticmethod
    def refuse_others(model: str, folder: Path) -> None:
        """Raise UnavailableError for a model that only scores pairs."""
        pooled = (folder / "modules.json").is_file()
        if not pooled and model_files.architecture(folder).endswith("SequenceClassification"):
            raise UnavailableError(
                "The model {model!r} scores pairs of texts and has no embeddings.",
                remedy="Use it with the reranker cross-encoder.",
                model=model,
            )

    def _open(self, folder: Path, weights: str) -> object:
        try:
            self._opened = open_model("text", folder, weights, self.settings, lambda model: None)
            self._encoder = shared.Encoder(self._prompts, self._opened)
        except NativeOnlyError as only:
            if self.settings["window"]:
                raise UnavailableError(
                    "The model {model!r} runs only with its own library, without windows.",
                    remedy="Set window to 0, or choose another model.",
                    model=self.settings["model"],
                ) from only
            self._encoder = shared.Encoder(self._prompts, native=only.model)
        return self.settings["max_length"]

    def retrieve(
        self, queries: Mapping[str, str], documents: Mapping[str, str], depth: int
    ) -> Ranking:
        """Return the best `depth` of all documents for each query, by cosine; both are id →
        text."""
        texts = [readable(text) for text in documents.values()]
        self._index(texts)
        each = [self._documents.of(text).vector for text in texts]
        vectors, counts = shared.unit(np.concatenate(each)), list(map(len, each))
        doc_ids = np.array(list(documents), dtype=object)
        embeddings = self._encoder.encode([readable(text) for text in queries.values()], "query")
        lists = []
        for query, embedding in zip(queries, embeddings, strict=True):
            cosines = (vectors @ shared.unit(embedding.vector[0])).astype(np.float64)
            scores = self._windows.joined(cosines, counts)
            best = best_places(scores, depth)
            lists.append((query, list(doc_ids[best]), list(scores[best])))
        return Ranking.from_lists(lists)

    def embedded(self, queries: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the (queries, dimensions) embeddings of queries, of length 1."""
        self.prepare(Corpus([], []))
        encoded = self._encoder.encode([readable(text) for text in queries], "query")
        return shared.unit(np.concatenate([each.vector for each in encoded]))

    def _score(self, requests: Sequence[Request]) -> list[Scored]:
        texts = [[readable(text) for text in request.documents] for request in requests]
        indexed = self._index([text for each in texts for text in each])
        queries = self._encoder.encode([request.query for request in requests], "query")
        # All documents are encoded together; each query is charged for its share of them.
        total = max(1, sum(len(each) for each in texts))
        answers = []
        for request, query, each in zip(requests, queries, texts, strict=True):
            embeddings = [self._documents.of(text) for text in each]
            answer = Scored(np.zeros(0))
            if embeddings:
                full = np.array([embedding.full for embedding in embeddings], dtype=np.int64)
                windows = np.array([len(embedding.vector) for embedding in embeddings])
                counts = self._encoder.tokens(
                    query, full, indexed.share(len(each) / total), windows
                )
                answer = shared.checked(self._compared(query, embeddings), *counts)
            self._sample.add(request, answer.scores)
            answers.append(answer)
        return answers

    def _index(self, texts: Sequence[str]) -> shared.Indexed:
        """Encode the documents that are not in the cache."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._documents]
        if not fresh:
            return shared.Indexed(0.0, 0.0)
        start = time.perf_counter()
        embeddings = self._encoder.encode(fresh, "document")
        self._documents.add(fresh, embeddings)
        tokens = shared.tokens_read(
            [embedding.full for embedding in embeddings],
            self._encoder.limit,
            [len(embedding.vector) for embedding in embeddings],
        )
        return shared.Indexed(time.perf_counter() - start, tokens)

    def _anew(self, request: Request, runtime: Runtime) -> Scores:
        (query,) = self._encoder.encode([request.query], "query", runtime)
        documents = self._encoder.encode(request.documents, "document", runtime)
        return self._compared(query, documents)

    def _compared(self, query: Encoded, documents: Sequence[Encoded]) -> Scores:
        vectors = np.concatenate([each.vector for each in documents]).astype(np.float64)
        cosines = shared.unit(vectors) @ shared.unit(query.vector[0].astype(np.float64))
        return self._windows.joined(cosines, [len(each.vector) for each in documents])


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
            suggestions=tuple(each.id for each in known_models() if each.encoder),
        ),
        *shared.ENCODER_SETTINGS,
        *shared.WINDOWS,
    ),
    capabilities=Capabilities(across_queries=True),
    build=BiEncoder,
    check=BiEncoder.check,
    models=True,
)
