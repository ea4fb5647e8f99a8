"""Late interaction: one vector per token; each query token is matched to its most similar token.

MaxSim of ColBERT (Khattab and Zaharia, SIGIR 2020): the score is the sum, over the tokens of the
query, of the highest cosine with a token of the document. The special tokens that frame a text
([CLS], [SEP] …) count like the others, as in ColBERT. A model trained for it runs with its own
projection, markers and masks. For any other encoder, the token vectors of the last layer are
compared, which it was not trained for.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import UnavailableError
from rankdash.core.base.rules import SettingSpec
from rankdash.core.rerankers.base import Capabilities, Request, RerankerKind, Scored, Scores
from rankdash.core.rerankers.kinds.bi_encoder import BiEncoder
from rankdash.core.rerankers.neural import model_files, open_model, shared
from rankdash.core.rerankers.neural.cache import Encoded, Recent
from rankdash.core.rerankers.neural.open_model import NativeOnlyError, Opened
from rankdash.core.rerankers.neural.runtimes import Runtime

Vectors = npt.NDArray[np.float32]

# Characters of the documents encoded at a time: at most 150 MB of vectors of 384 numbers.
_CHUNK_CHARACTERS = 100_000
KEPT_BYTES = 256 << 20
"""Memory limit for the cached embeddings of documents."""


class LateInteraction(shared.NeuralReranker):
    """MaxSim over token embeddings; the highest possible score is the query's number of tokens.

    A search system encodes documents beforehand, so that time is `index_seconds`. Token embeddings
    are large: they are computed for some documents at a time, and only the latest stay in memory.
    """

    name = "late-interaction"
    _encoder: shared.Encoder

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._documents = Recent[Encoded](KEPT_BYTES, lambda tokens: tokens.vector.nbytes)

    @staticmethod
    def refuse_others(model: str, folder: Path) -> None:
        """Raise UnavailableError for a model that only scores pairs."""
        if not trained_for_it(folder):
            BiEncoder.refuse_others(model, folder)

    def _open(self, folder: Path, weights: str) -> object:
        trained = trained_for_it(folder)
        self._more = {"trained_for_late_interaction": trained}
        if trained:
            self._more = {"runtime": "torch", **self._more}
            self._encoder = shared.Encoder(self._prompts, native=self._trained(folder), each=True)
        else:
            self._opened = _opened(folder, weights, self.settings)
            self._encoder = shared.Encoder(self._prompts, self._opened, each=True)
        return self.settings["max_length"]

    def _trained(self, folder: Path) -> Any:
        """Return a sentence-transformers model trained for late interaction."""
        requested = str(self.settings["device"])
        device = "cpu" if requested == "auto" else requested
        model = open_model.load_model("MultiVectorEncoder", folder, device)
        if self.settings["max_length"]:
            model.max_seq_length = min(int(self.settings["max_length"]), model.max_seq_length)
        return model

    def _score(self, requests: Sequence[Request]) -> list[Scored]:
        queries = self._encoder.encode([request.query for request in requests], "query")
        scores = [np.full(len(request.documents), np.nan) for request in requests]
        full = [np.full(len(request.documents), -1, dtype=np.int64) for request in requests]
        seconds = read = 0.0
        for chunk in _chunks(requests):
            start = time.perf_counter()
            embeddings, fresh = self._encoded([text for text, _ in chunk])
            seconds += time.perf_counter() - start
            read += fresh
            by_request: dict[int, list[tuple[int, Encoded]]] = {}
            for (_, users), tokens in zip(chunk, embeddings, strict=True):
                for position, place in users:
                    by_request.setdefault(position, []).append((place, tokens))
            for position, entries in by_request.items():
                places = [place for place, _ in entries]
                documents = [tokens.vector for _, tokens in entries]
                scores[position][places] = max_sim(queries[position].vector, documents)
                full[position][places] = [tokens.full for _, tokens in entries]
        total = max(1, sum(len(request.documents) for request in requests))
        answers = []
        for place, request in enumerate(requests):
            indexed = shared.Indexed(seconds, read).share(len(request.documents) / total)
            counts = self._encoder.tokens(queries[place], full[place], indexed)
            answers.append(shared.checked(scores[place], *counts))
            self._sample.add(request, answers[-1].scores)
        return answers

    def _encoded(self, texts: Sequence[str]) -> tuple[list[Encoded], float]:
        """Return the vectors of each text, and the number of tokens that were read for them in this
        call."""
        cached = self._documents.of(texts)
        fresh = [text for text in texts if text not in cached]
        encoded = dict(zip(fresh, self._encoder.encode(fresh, "document"), strict=True))
        self._documents.add(encoded)
        every = cached | encoded
        tokens = shared.tokens_read([each.full for each in encoded.values()], self._encoder.limit)
        return [every[text] for text in texts], tokens

    def _anew(self, request: Request, runtime: Runtime) -> Scores:
        (query,) = self._encoder.encode([request.query], "query", runtime)
        documents = self._encoder.encode(request.documents, "document", runtime)
        return max_sim(query.vector, [tokens.vector for tokens in documents])


def max_sim(query: Vectors, documents: Sequence[Vectors]) -> Scores:
    """Return for each document (n,) the sum over query tokens of the highest cosine with one of its
    tokens.

    query: (q, d), documents: (t, d) each, vectors of length 1. A document without tokens scores -1
        for every token of the query.
    """
    scores = np.full(len(documents), -float(len(query)))
    sizes = np.array([len(vectors) for vectors in documents], dtype=np.int64)
    there = np.flatnonzero(sizes).tolist()
    if not there:
        return scores
    starts = np.concatenate([[0], np.cumsum(sizes[there])[:-1]])
    cosines = query @ np.concatenate([documents[place] for place in there]).T
    scores[there] = np.maximum.reduceat(cosines, starts, axis=1).sum(axis=0, dtype=np.float64)
    return scores


def trained_for_it(folder: Path) -> bool:
    """Return whether the files of a model declare late interaction and contain its projection.
    sentence-transformers loads any other model with a random projection."""
    if model_files.architecture(folder) == "HF_ColBERT":
        return "linear.weight" in model_files.weight_names(folder)
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        return any("multi_vector" in str(each.get("type", "")) for each in modules)
    except (OSError, ValueError, AttributeError):
        return False


def _opened(folder: Path, weights: str, settings: Mapping[str, Any]) -> Opened:
    try:
        return open_model.open_model("tokens", folder, weights, settings, lambda model: None)
    except NativeOnlyError as error:
        raise UnavailableError(
            "The model {model!r} has no token embeddings to compare.",
            remedy="Use it with the reranker bi-encoder.",
            model=settings["model"],
        ) from error


def _chunks(
    requests: Sequence[Request],
) -> Iterator[list[tuple[str, list[tuple[int, int]]]]]:
    """Yield the distinct documents, each with its (request, place) occurrences, in chunks that fit
    in memory."""
    users: dict[str, list[tuple[int, int]]] = {}
    for number, request in enumerate(requests):
        for place, text in enumerate(request.documents):
            users.setdefault(text, []).append((number, place))
    chunk: list[tuple[str, list[tuple[int, int]]]] = []
    size = 0
    for text, places in users.items():
        if chunk and size + len(text) > _CHUNK_CHARACTERS:
            yield chunk
            chunk, size = [], 0
        chunk.append((text, places))
        size += len(text)
    if chunk:
        yield chunk


KIND = RerankerKind(
    name=LateInteraction.name,
    title="Late interaction",
    meaning="Compares every token of the query with every token of the document and adds up the "
    "best matches (MaxSim, as ColBERT does). With a model that was not trained for it, such as the "
    "default, this is only an experiment.",
    settings=(
        SettingSpec(
            "model",
            model_files.PACKAGED,
            "Model",
            "Any encoder, or a model trained for late interaction: a name on the Hugging Face hub "
            "or a local folder. The default comes with rankdash and needs no network, but was not "
            "trained for late interaction.",
            required=True,
        ),
        *shared.ENCODER_SETTINGS,
    ),
    capabilities=Capabilities(across_queries=True),
    build=LateInteraction,
    check=LateInteraction.check,
    models=True,
)
