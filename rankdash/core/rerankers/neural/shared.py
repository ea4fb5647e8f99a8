"""Shared parts of the neural rerankers: settings, checks, isolation of failures."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import RankdashError, ScoringError
from rankdash.core.base.rules import SettingSpec
from rankdash.core.rerankers.base import Corpus, Request, Scored, Scores, first_line
from rankdash.core.rerankers.neural import model_files, packaged, runtimes
from rankdash.core.rerankers.neural.cache import Encoded
from rankdash.core.rerankers.neural.open_model import Opened, Sample, encode_natively
from rankdash.core.rerankers.neural.runtimes import Runtime
from rankdash.core.rerankers.neural.tokenizer import LONGEST, Windows, readable

Lengths = npt.NDArray[np.int64]
Number = TypeVar("Number", np.float32, np.float64)

RUNTIME = SettingSpec(
    "runtime",
    runtimes.AUTO,
    "Runtime",
    "Runtime that executes the model. auto uses the fastest one on this machine that ranks "
    "exactly as 32-bit PyTorch does. torch-bf16, torch-fp16, openvino-bf16 and onnx-int8 change "
    "scores slightly; the difference is measured on your queries.",
    choices=runtimes.CHOICES,
)
BATCH_TOKENS = SettingSpec(
    "batch_tokens",
    0,
    "Batch size (tokens)",
    "Number of tokens that the model processes together. Affects speed and memory only. 0: the "
    "default of the runtime.",
    within=(0, 1_048_576),
    advanced=True,
)
DEVICE = SettingSpec(
    "device",
    "auto",
    "Device",
    "auto uses a CUDA GPU if PyTorch finds one.",
    choices=("auto", "cpu", "cuda", "mps"),
    advanced=True,
)

QUERY_PROMPT = SettingSpec(
    "query_prompt",
    "",
    "Query prompt",
    "Text added before every query, such as 'query: '; if it contains {text}, the query replaces "
    "that. Empty: the prompt that the model declares or is known to need, if any.",
    advanced=True,
)
DOCUMENT_PROMPT = SettingSpec(
    "document_prompt",
    "",
    "Document prompt",
    "Text added before every document, such as 'passage: '; if it contains {text}, the document "
    "replaces that. Empty: the prompt that the model declares or is known to need, if any.",
    advanced=True,
)


MAX_LENGTH = SettingSpec(
    "max_length",
    0,
    "Max. sequence length (0 = model's limit)",
    "In tokens. Longer texts are truncated and counted. Limited by the model's maximum.",
    within=(0, LONGEST),
)

WINDOWS = (
    SettingSpec(
        "window",
        0,
        "Window (document tokens, 0 = truncate)",
        "Read a longer document in windows of this many tokens, and truncate none. A cross-encoder "
        "reads the query again with each window. 0: truncate documents instead. Limited by the "
        "max length.",
        within=(0, LONGEST),
    ),
    SettingSpec(
        "stride",
        0,
        "Stride of windows (tokens, 0 = half)",
        "Tokens from the start of a window to the start of the next: from an eighth of the window "
        "to the whole window. 0: half the window.",
        within=(0, LONGEST),
        advanced=True,
    ),
    SettingSpec(
        "window_score",
        "max",
        "Score of a document in windows",
        "The score of a document from the scores of its windows.",
        choices={"max": "highest score", "mean": "mean score"},
        advanced=True,
    ),
)

ENCODER_SETTINGS = (RUNTIME, MAX_LENGTH, QUERY_PROMPT, DOCUMENT_PROMPT, DEVICE, BATCH_TOKENS)
"""Settings of a model that reads one text at a time, besides its name."""


@dataclass(frozen=True)
class Encoder:
    """Embeddings of texts: by an exported or PyTorch model, or by sentence-transformers for a model
    of another structure, with an unknown number of tokens read.

    each: whether a text has a vector of length 1 for each of its tokens, (tokens, d); else one for
        each of its windows, (windows, d).
    """

    prompts: Mapping[str, str]
    opened: Opened | None = None
    native: Any = None
    each: bool = False

    @property
    def limit(self) -> int | None:
        """Maximum number of tokens read per text."""
        return None if self.opened is None else self.opened.limit

    def encode(
        self, texts: Sequence[str], role: str, runtime: Runtime | None = None
    ) -> list[Encoded]:
        """Return embeddings and token counts before truncation, in the order of `texts`. role:
        "query" or "document"."""
        if not texts:
            return []
        vectors: Any
        if self.opened is None:
            vectors = encode_natively(self.native, texts, role, self.prompts)
            full = [-1] * len(texts)
        else:
            rows, types, counts, full = self.opened.alone(texts, role, self.prompts)
            if self.each:
                vectors = self.opened.compute_each(rows, types, runtime)
            else:
                every = self.opened.compute(rows, types, runtime)
                vectors = np.split(every, np.cumsum(counts[:-1]))
        return [
            Encoded(unit(values) if self.each else np.atleast_2d(values), size)
            for values, size in zip(vectors, full, strict=True)
        ]

    def tokens(
        self, query: Encoded, full: Lengths, indexed: Indexed, windows: Lengths | int = 1
    ) -> tuple[Lengths | None, Lengths | None, float, float | None]:
        """Return the token counts of the pairs of a query and documents, as in `Scored`: tokens
        read and tokens before truncation of each pair, the seconds of indexing, and the tokens
        computed. None if unknown.

        full: the tokens of the documents before truncation. windows: the number of their windows.
        """
        if self.limit is None:
            return None, None, indexed.seconds, None
        read = min(query.full, self.limit)
        pairs = np.minimum(full, self.limit * windows) + read
        return pairs, full + query.full, indexed.seconds, indexed.tokens + read


class NeuralReranker:
    """Base class of rerankers that run their own model.

    organization: on the hub, for the name of a model without "/".
    """

    name: str
    organization = "sentence-transformers"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self._prompts = {role: str(settings[f"{role}_prompt"]) for role in ("query", "document")}
        self._fingerprint = ""
        self._sample = Sample()
        self._opened: Opened | None = None
        self._more: dict[str, object] = {}

    def prepare(self, corpus: Corpus) -> None:
        """Open the model. Raises UnavailableError, within seconds if the hub is needed."""
        model = str(self.settings["model"])
        folder = model_files.locate(model, self.organization)
        self.refuse_others(model, folder)
        weights = model_files.digest(folder)
        length = self._open(folder, weights)
        runtime = "torch" if self._opened is None else self._opened.runtime.name
        parts = (self.name, weights, runtimes.precision(runtime), length, *self._prompts.values())
        windows = Windows.of(self.settings)
        if windows.size:
            parts = (*parts, windows)
        if runtimes.alone():
            # Cached vectors of models that were opened otherwise differ in their last digits.
            parts = (*parts, "one by one", runtime)
        text = json.dumps([str(part) for part in parts])
        self._fingerprint = hashlib.sha256(text.encode()).hexdigest()

    @staticmethod
    def refuse_others(model: str, folder: Path) -> None:
        """Raise UnavailableError if the model of this name, in this folder, is of another kind."""
        raise NotImplementedError

    def _open(self, folder: Path, weights: str) -> object:
        """Open the model, whose files hash to `weights`; return its length setting, for the
        fingerprint."""
        raise NotImplementedError

    def fingerprint(self) -> str:
        """Return a hash of weights, precision, length, prompts and windows: exact runtimes share
        one."""
        return self._fingerprint

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        """Return raw scores; a query with a score that is not finite fails."""
        if not self._fingerprint:
            raise ScoringError("No model is loaded yet: call prepare() first.")
        return answer_each(requests, self._score)

    def _score(self, requests: Sequence[Request]) -> list[Scored]:
        raise NotImplementedError

    def _anew(self, request: Request, runtime: Runtime) -> Scores:
        """Return the scores of a request in another runtime, without cached vectors."""
        raise NotImplementedError

    def details(self) -> dict[str, object]:
        """Return what to store with a run besides its settings: fingerprint, runtime and device,
        the source of packaged weights, and the agreement of an approximate runtime with an exact
        one on pairs of this run."""
        prepared = {"fingerprint": self._fingerprint} if self._fingerprint else {}
        if self._opened is None:
            return {**prepared, **self._more}
        packaged_model = packaged.in_use(str(self.settings["model"]))
        details = {
            **prepared,
            **self._opened.details(),
            **self._more,
            **(packaged_model.provenance if packaged_model else {}),
        }
        return details | self._opened.agreement(self._sample, self._anew)

    def unknown_share(self, texts: Sequence[str]) -> float:
        """Return the share of the texts' tokens that the model does not know, as `Literate`
        requires; NaN for a model that its own library runs."""
        if self._opened is None:
            return math.nan
        return self._opened.subwords.unknown_share(list(map(readable, texts)))

    @classmethod
    def check(cls, settings: Mapping[str, Any]) -> None:
        """Check packages, runtime and local folder before anything is loaded; sends no request to
        the hub. Raises UnavailableError."""
        model_files.require_packages()
        runtimes.check_installed(str(settings["runtime"]))
        model = str(settings["model"])
        packaged_model = packaged.named(model)
        if packaged_model is not None and packaged_model.convert is not None:
            # The run converts it, not the check.
            packaged.source_of(packaged_model)
            return
        folder = model_files.local(model)
        if folder is not None:
            cls.refuse_others(model, folder)


def unit(vectors: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Scale vectors to length 1 along the last axis; a zero vector stays zero."""
    lengths: npt.NDArray[Number] = np.linalg.norm(vectors, axis=-1, keepdims=True)
    lengths[lengths == 0] = 1
    return vectors / lengths


@dataclass(frozen=True)
class Indexed:
    """Time and tokens of encoding the documents that were not cached. tokens: NaN if unknown."""

    seconds: float
    tokens: float

    def share(self, part: float) -> Indexed:
        """Return the part of the work, from 0 to 1, that one query is charged for."""
        return Indexed(self.seconds * part, self.tokens * part)


def tokens_read(full: Sequence[int], limit: int | None, windows: Sequence[int] | int = 1) -> float:
    """Return the total of tokens that a model reads. full: tokens of each text before truncation.
    limit: of the model; NaN without one. windows: number of windows of each text."""
    return math.nan if limit is None else float(np.minimum(full, limit * np.array(windows)).sum())


def checked(
    scores: Scores,
    tokens: Lengths | None,
    full: Lengths | None,
    seconds: float,
    computed_tokens: float | None = None,
) -> Scored:
    """Return the answer of a model, or a failed query if a score is not finite."""
    wrong = int(np.count_nonzero(~np.isfinite(scores)))
    if wrong:
        error = ScoringError(
            "Documents without a finite score from the model: {wrong} of {count}.",
            wrong=wrong,
            count=len(scores),
        )
        return Scored.failed(len(scores), str(error))
    return Scored(scores, tokens, full, seconds, computed_tokens=computed_tokens)


def answer_each(
    requests: Sequence[Request], together: Callable[[Sequence[Request]], list[Scored]]
) -> list[Scored]:
    """Return `together(requests)`; if it raises an error, try each request separately, so that only
    the failing requests are marked failed."""
    try:
        return together(requests)
    except RankdashError:
        raise
    except (RuntimeError, ValueError, TypeError, LookupError, MemoryError) as error:
        if len(requests) == 1:
            return [Scored.failed(len(requests[0].documents), first_line(error))]
        return [answer for request in requests for answer in answer_each([request], together)]
