"""Bi-encoder: query and document become vectors apart from each other, compared by cosine."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.errors import ScoringError, UnavailableError
from rankdash.rerankers import model_files, neural
from rankdash.rerankers.base import Capabilities, Corpus, Request, RerankerKind, Scored
from rankdash.rerankers.settings import SettingSpec

Vectors = npt.NDArray[np.float32]


class BiEncoder:
    """Cosine similarity of sentence-transformers embeddings.

    A document is encoded once in the life of the object, whichever queries it is a candidate of;
    a search system does that beforehand, so the time is reported as `index_seconds`.
    """

    name = "bi-encoder"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self._model: Any = None
        self._limit: int | None = None
        self._vectors: dict[str, Vectors] = {}
        self._lengths: dict[str, int] = {}

    def prepare(self, corpus: Corpus) -> None:
        """Load the model. Raises UnavailableError, within seconds where the hub is needed."""
        model = str(self.settings["model"])
        folder = model_files.locate(model, "sentence-transformers")
        pooled = (folder / "modules.json").is_file()
        if not pooled and model_files.architecture(folder).endswith("SequenceClassification"):
            raise UnavailableError(
                "The model {model!r} scores pairs of texts and has no embeddings.",
                remedy="Use it with the reranker cross-encoder.",
                model=model,
            )
        self._model = neural.load("SentenceTransformer", folder, self.settings)
        self._limit = neural.limit_length(self._model, self.settings["max_length"])

    def fingerprint(self) -> str:
        """None yet."""
        return ""

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Cosine similarities in [-1, 1]; a query whose scores are not finite fails."""
        if self._model is None:
            raise ScoringError("No model is loaded yet: prepare() comes first.")
        return neural.answer_each(requests, self._score)

    def _score(self, requests: Sequence[Request]) -> list[Scored]:
        documents = [[neural.readable(text) for text in request.documents] for request in requests]
        seconds = [self._index(texts) for texts in documents]
        asked = [neural.readable(request.query) for request in requests]
        queries = self._encode(asked, "query") if asked else np.zeros((0, 0), np.float32)
        lengths = self._count(asked, "query")
        return [
            self._answer(vector, None if lengths is None else int(lengths[place]), texts, spent)
            for place, (vector, texts, spent) in enumerate(
                zip(queries, documents, seconds, strict=True)
            )
        ]

    def _answer(
        self, query: Vectors, query_length: int | None, texts: list[str], seconds: float
    ) -> Scored:
        if not texts:
            return Scored(np.zeros(0))
        vectors = np.stack([self._vectors[text] for text in texts]).astype(np.float64)
        scores = _unit(vectors) @ _unit(query.astype(np.float64))
        if query_length is None or self._limit is None:
            return neural.checked(scores, None, None, seconds)
        lengths = np.array([self._lengths[text] for text in texts], dtype=np.int64)
        read = np.minimum(lengths, self._limit) + min(query_length, self._limit)
        return neural.checked(scores, read, lengths + query_length, seconds)

    def _index(self, texts: list[str]) -> float:
        """Encode the documents not seen before; the seconds that took."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if not fresh:
            return 0.0
        start = time.perf_counter()
        lengths = self._count(fresh, "document")
        if lengths is not None:
            self._lengths.update(zip(fresh, lengths.tolist(), strict=True))
        self._vectors.update(zip(fresh, self._encode(fresh, "document", lengths), strict=True))
        return time.perf_counter() - start

    def _encode(
        self, texts: list[str], role: str, lengths: neural.Lengths | None = None
    ) -> Vectors:
        """(texts, dimensions) embeddings, in the order of `texts`."""
        encode = self._model.encode_query if role == "query" else self._model.encode_document
        if lengths is None:
            lengths = np.array([len(text) for text in texts], dtype=np.int64)
        vectors: dict[int, Vectors] = {}
        for places in neural.batches(lengths, self.settings["batch_size"]):
            found = encode(
                [texts[place] for place in places],
                prompt=self.settings[f"{role}_prompt"] or None,
                batch_size=len(places),
                show_progress_bar=False,
            )
            vectors.update(zip(places.tolist(), found, strict=True))
        return np.stack([vectors[place] for place in range(len(texts))])

    def _count(self, texts: list[str], role: str) -> neural.Lengths | None:
        """Tokens of each text with its prompt, uncut; None where the model has no limit."""
        if self._limit is None:
            return None
        prompt = self.settings[f"{role}_prompt"] or self._model.prompts.get(role) or ""
        texts = [prompt + text for text in texts]
        return neural.token_counts(self._model.tokenizer, texts, special=True)


def _unit(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Vectors of length 1 along the last axis; a zero vector stays zero (similar to nothing)."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths == 0, 1.0, lengths)


KIND = RerankerKind(
    name=BiEncoder.name,
    title="Bi-encoder",
    meaning="Turns query and document into vectors and compares them by cosine: meaning rather "
    "than words. Documents are encoded once, so it is fast at search time.",
    settings=(
        SettingSpec(
            "model",
            str,
            model_files.PACKAGED,
            "Model",
            "A sentence-transformers model: a name on the Hugging Face hub or a local folder. "
            "The default comes with rankdash and needs no network.",
            required=True,
        ),
        neural.BATCH_SIZE,
        SettingSpec(
            "max_length",
            int,
            0,
            "Longest text in tokens",
            "Longer texts are cut, and counted. 0: what the model declares; never more than it "
            "can read.",
            minimum=0,
            maximum=neural.LONGEST,
        ),
        neural.DTYPE,
        neural.DEVICE,
        SettingSpec(
            "query_prompt",
            str,
            "",
            "Query prompt",
            "Text put before every query, such as 'query: '. Empty: the prompt that the model "
            "declares, if any.",
        ),
        SettingSpec(
            "document_prompt",
            str,
            "",
            "Document prompt",
            "Text put before every document, such as 'passage: '. Empty: the prompt that the "
            "model declares, if any.",
        ),
    ),
    capabilities=Capabilities(),
    build=BiEncoder,
)
