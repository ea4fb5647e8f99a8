"""Late interaction: a vector for every token; each word of the query finds its best match.

MaxSim of ColBERT (Khattab and Zaharia, SIGIR 2020): the score is the sum, over the tokens of the
query, of the highest cosine with a token of the document. The special tokens that frame a text
([CLS], [SEP] …) count like the others, as there. A model that was trained for it is run as it was
trained, with its projection, markers and masks; of any other encoder the last layer's token vectors
are compared, which nobody trained to be compared.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import ScoringError, UnavailableError
from rankdash.core.base.rules import SettingSpec
from rankdash.core.rerankers.base import Capabilities, Corpus, Request, RerankerKind, Scored, Scores
from rankdash.core.rerankers.kinds import bi_encoder
from rankdash.core.rerankers.neural import model_files, open_model, shared
from rankdash.core.rerankers.neural.open_model import NativeOnlyError, Opened, encode_natively
from rankdash.core.rerankers.neural.runtimes import Runtime
from rankdash.core.rerankers.neural.tokenizer import Subwords

Vectors = npt.NDArray[np.float32]

# Characters of the documents that are encoded at a time: at most 150 MB of vectors of 384 numbers.
# And how much of the vectors is kept for other queries.
_CHUNK_CHARACTERS = 100_000
KEPT_BYTES = 256 << 20
"""The size of the embeddings of documents that stay in memory."""


@dataclass(frozen=True, eq=False)
class _Tokens:
    """A text as (tokens, d) vectors of length 1. full: its tokens uncut; -1 = unknown."""

    vectors: Vectors
    full: int


class LateInteraction(shared.NeuralReranker):
    """MaxSim over token embeddings.

    Encoding documents is what a search system does beforehand, so its time is `index_seconds`.
    Token embeddings are large: they are made for some documents at a time, and only the latest stay
    in memory.
    """

    name = "late-interaction"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._encoder: _Encoder | None = None
        self._documents = _Kept(KEPT_BYTES)

    def prepare(self, corpus: Corpus) -> None:
        """Open the model. Raises UnavailableError, within seconds where the hub is needed."""
        model = str(self.settings["model"])
        folder = model_files.locate(model, "sentence-transformers")
        weights = model_files.digest(folder)
        trained = trained_for_it(folder)
        runtime = "torch"
        if trained:
            self._encoder = _Trained(folder, self.settings, self._prompts)
        else:
            bi_encoder.refuse_others(model, folder)
            self._encoder = _Engine(_opened(folder, weights, self.settings), self._prompts)
            runtime = self._encoder.opened.runtime.name
        self._identify(weights, runtime, self.settings["max_length"])

    def details(self) -> dict[str, object]:
        """How it was computed, whether the model was trained for it, and how far an approximate
        runtime agrees with an exact one on pairs of this run."""
        encoder = self._encoder
        if encoder is None:
            return {}
        if isinstance(encoder, _Trained):
            return {"runtime": "torch", "trained_for_late_interaction": True}
        told = {
            **encoder.opened.details(),
            "trained_for_late_interaction": False,
            **self._provenance(),
        }
        return told | encoder.opened.agreement(self._sample, partial(_anew, encoder))

    def _subwords(self) -> Subwords | None:
        return self._encoder.opened.subwords if isinstance(self._encoder, _Engine) else None

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Sums of cosines, at most the number of tokens of the query; a query whose scores are not
        finite fails."""
        if self._encoder is None:
            raise ScoringError("No model is loaded yet: prepare() comes first.")
        encoder = self._encoder
        return shared.answer_each(requests, lambda asked: self._score(asked, encoder))

    def _score(self, requests: Sequence[Request], encoder: _Encoder) -> list[Scored]:
        queries = encoder.encode([request.query for request in requests], "query")
        scores = [np.full(len(request.documents), np.nan) for request in requests]
        full = [np.full(len(request.documents), -1, dtype=np.int64) for request in requests]
        seconds = read = 0.0
        for chunk in _chunks(requests):
            start = time.perf_counter()
            held, fresh = self._encoded([text for text, _ in chunk], encoder)
            seconds += time.perf_counter() - start
            read += fresh
            by_request: dict[int, list[tuple[int, _Tokens]]] = {}
            for (_, users), tokens in zip(chunk, held, strict=True):
                for asked, place in users:
                    by_request.setdefault(asked, []).append((place, tokens))
            for asked, found in by_request.items():
                places = [place for place, _ in found]
                documents = [tokens.vectors for _, tokens in found]
                scores[asked][places] = max_sim(queries[asked].vectors, documents)
                full[asked][places] = [tokens.full for _, tokens in found]
        total = max(1, sum(len(request.documents) for request in requests))
        answers = []
        for place, request in enumerate(requests):
            indexed = shared.Indexed(seconds, read).share(len(request.documents) / total)
            computed = indexed.tokens + shared.tokens_read([queries[place].full], encoder.limit)
            counts = _counts(queries[place].full, full[place], encoder.limit)
            answers.append(shared.checked(scores[place], *counts, indexed.seconds, computed))
            self._sample.add(request, answers[-1].scores)
        return answers

    def _encoded(self, texts: Sequence[str], encoder: _Encoder) -> tuple[list[_Tokens], float]:
        """Return the vectors of each text, and how many tokens were read for them now."""
        known = self._documents.of(texts)
        fresh = [text for text in texts if text not in known]
        made = dict(zip(fresh, encoder.encode(fresh, "document"), strict=True))
        self._documents.add(made)
        held = [made[text] if text in made else known[text] for text in texts]
        return held, shared.tokens_read([each.full for each in made.values()], encoder.limit)


def max_sim(query: Vectors, documents: Sequence[Vectors]) -> Scores:
    """(n,) for each document, the sum over query tokens of the highest cosine with one of its
    tokens. query: (q, d), documents: (t, d) each, vectors of length 1. A document without tokens is
    like nothing: -1 for every token of the query."""
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
    """Whether the files of a model say that it was trained for late interaction, and hold the
    projection of it. Any other that sentence-transformers loads as such gets a random one."""
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
            "The model {model!r} has no token embeddings that could be compared.",
            remedy="Use it with the reranker bi-encoder.",
            model=settings["model"],
        ) from error


@dataclass(frozen=True)
class _Engine:
    """The token vectors of an encoder's last layer, by our own engine."""

    opened: Opened
    prompts: Mapping[str, str]

    @property
    def limit(self) -> int | None:
        return self.opened.limit

    def encode(
        self, texts: Sequence[str], role: str, runtime: Runtime | None = None
    ) -> list[_Tokens]:
        """In the order of `texts`."""
        rows, types, full = self.opened.alone(texts, role, self.prompts)
        found = self.opened.compute_each(rows, types, runtime)
        return [
            _Tokens(shared.unit(vectors), size) for vectors, size in zip(found, full, strict=True)
        ]


class _Trained:
    """A model trained for late interaction, run by sentence-transformers.

    How many tokens it reads is not known.
    """

    limit: int | None = None

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], prompts: Mapping[str, str]
    ) -> None:
        wanted = str(settings["device"])
        device = "cpu" if wanted == "auto" else wanted
        self._model = open_model.load_model("MultiVectorEncoder", folder, device)
        if settings["max_length"]:
            longest = self._model.max_seq_length
            self._model.max_seq_length = min(int(settings["max_length"]), longest)
        self._prompts = prompts

    def encode(self, texts: Sequence[str], role: str) -> list[_Tokens]:
        """In the order of `texts`."""
        found = encode_natively(self._model, texts, role, self._prompts)
        return [_Tokens(shared.unit(vectors), -1) for vectors in found]


_Encoder = _Engine | _Trained


class _Kept:
    """The token vectors of the documents used last, up to so many bytes. Threads may share it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._held: OrderedDict[str, _Tokens] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, texts: Sequence[str]) -> dict[str, _Tokens]:
        """Those of `texts` that are there."""
        with self._lock:
            found = {text: self._held[text] for text in texts if text in self._held}
            for text in found:
                self._held.move_to_end(text)
        return found

    def add(self, fresh: Mapping[str, _Tokens]) -> None:
        with self._lock:
            for text, tokens in fresh.items():
                if text not in self._held:
                    self._held[text] = tokens
                    self._size += tokens.vectors.nbytes
            while self._size > self._limit:
                _, gone = self._held.popitem(last=False)
                self._size -= gone.vectors.nbytes


def _chunks(
    requests: Sequence[Request],
) -> Iterator[list[tuple[str, list[tuple[int, int]]]]]:
    """The distinct documents with their users, (request, place), in portions that fit in memory."""
    users: dict[str, list[tuple[int, int]]] = {}
    for request, asked in enumerate(requests):
        for place, text in enumerate(asked.documents):
            users.setdefault(text, []).append((request, place))
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


def _counts(
    query: int, full: shared.Lengths, limit: int | None
) -> tuple[shared.Lengths | None, shared.Lengths | None]:
    """Tokens read and tokens uncut of each pair; None where they are not known."""
    if limit is None:
        return None, None
    return np.minimum(full, limit) + min(query, limit), full + query


def _anew(encoder: _Engine, request: Request, runtime: Runtime) -> Scores:
    """The scores of a request with everything encoded anew in a given runtime."""
    (query,) = encoder.encode([request.query], "query", runtime)
    documents = encoder.encode(request.documents, "document", runtime)
    return max_sim(query.vectors, [tokens.vectors for tokens in documents])


def _refuse_others(model: str, folder: Path) -> None:
    if not trained_for_it(folder):
        bi_encoder.refuse_others(model, folder)


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
            "or a local folder. The default comes with rankdash and needs no network, but was "
            "trained for something else.",
            required=True,
        ),
        *shared.ENCODER_SETTINGS,
    ),
    capabilities=Capabilities(across_queries=True),
    build=LateInteraction,
    check=lambda settings: shared.check(settings, _refuse_others),
    models=True,
)
