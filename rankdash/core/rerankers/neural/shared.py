"""What the neural rerankers share: settings, checks, failing one by one, comparing runtimes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import RankdashError, ScoringError
from rankdash.core.base.rules import SettingSpec
from rankdash.core.rerankers.base import Request, Scored, Scores
from rankdash.core.rerankers.neural import model_files, packaged, runtimes
from rankdash.core.rerankers.neural.tokenizer import Subwords

RUNTIME = SettingSpec(
    "runtime",
    runtimes.AUTO,
    "Runtime",
    "What computes the model. auto takes the fastest of those that rank exactly as 32-bit PyTorch "
    "does, measured on this machine. torch-bf16, torch-fp16, openvino-bf16 and onnx-int8 "
    "change scores slightly: how much is measured on your own queries.",
    choices=runtimes.CHOICES,
)
BATCH_TOKENS = SettingSpec(
    "batch_tokens",
    0,
    "Tokens in a batch",
    "How many tokens go through the model at once. Changes speed and memory only. 0: what suits "
    "the runtime.",
    within=(0, 1_048_576),
    advanced=True,
)
DEVICE = SettingSpec(
    "device",
    "auto",
    "Device",
    "auto takes an NVIDIA graphics card where PyTorch finds one.",
    choices=("auto", "cpu", "cuda", "mps"),
    advanced=True,
)

QUERY_PROMPT = SettingSpec(
    "query_prompt",
    "",
    "Query prompt",
    "Text put before every query, such as 'query: '; with {text} in it, the query goes there. "
    "Empty: what the model declares or is known to need, if anything.",
    advanced=True,
)
DOCUMENT_PROMPT = SettingSpec(
    "document_prompt",
    "",
    "Document prompt",
    "Text put before every document, such as 'passage: '; with {text} in it, the document goes "
    "there. Empty: what the model declares or is known to need, if anything.",
    advanced=True,
)

LONGEST = 131_072
"""More tokens than any model here reads; some tokenizers declare 10^30 for "no limit"."""

MAX_LENGTH = SettingSpec(
    "max_length",
    0,
    "Max. sequence length (0 = model's limit)",
    "In tokens. Longer texts are cut, and counted; never more than the model can read.",
    within=(0, LONGEST),
)

ENCODER_SETTINGS = (RUNTIME, MAX_LENGTH, QUERY_PROMPT, DOCUMENT_PROMPT, DEVICE, BATCH_TOKENS)
"""What a model that reads one text at a time is asked for, besides its name."""


class NeuralReranker:
    """What rerankers with a model of their own have in common."""

    name: str

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self._prompts = {role: str(settings[f"{role}_prompt"]) for role in ("query", "document")}
        self._fingerprint = ""
        self._sample = Sample()

    def fingerprint(self) -> str:
        """Of weights, precision, length and prompts: exact runtimes share one."""
        return self._fingerprint

    def unknown_share(self, texts: Sequence[str]) -> float:
        """As `Literate` says; of a model that its own library runs, nothing is known."""
        subwords = self._subwords()
        return math.nan if subwords is None else subwords.unknown_share(list(map(readable, texts)))

    def _provenance(self) -> dict[str, str]:
        """Origin and licence of packaged weights; empty for another model."""
        known = packaged.in_use(str(self.settings["model"]))
        return {} if known is None else known.provenance

    def _subwords(self) -> Subwords | None:
        """The tokens of the open model; None where they are not known."""
        raise NotImplementedError

    def _identify(self, weights: str, runtime: str, length: object) -> None:
        parts = (self.name, weights, runtimes.precision(runtime), length, *self._prompts.values())
        if runtimes.alone():
            # Kept vectors of models that were opened otherwise differ in their last digits.
            parts = (*parts, "one by one", runtime)
        text = json.dumps([str(part) for part in parts])
        self._fingerprint = hashlib.sha256(text.encode()).hexdigest()


Lengths = npt.NDArray[np.int64]
Number = TypeVar("Number", np.float32, np.float64)


def check(settings: Mapping[str, Any], refuse: Callable[[str, Path], None]) -> None:
    """Before anything is loaded: packages, runtime, local folder; the hub is not asked for a name.

    refuse: raises UnavailableError where the model of this name, in this folder, is of another
        kind.
    """
    model_files.require_packages()
    runtimes.check_installed(str(settings["runtime"]))
    model = str(settings["model"])
    known = packaged.named(model)
    if known is not None and known.convert is not None:
        # It is converted by the run, and not by who asks for one.
        packaged.source_of(known)
        return
    folder = model_files.local(model)
    if folder is not None:
        refuse(model, folder)


def readable(text: str) -> str:
    """The text with lone surrogates, which tokenizers refuse, replaced by "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def around(prompt: str) -> tuple[str, str]:
    """What a prompt puts before and after a text: "{text}" stands for it, or else it comes last."""
    before, _, after = prompt.partition("{text}")
    return readable(before), readable(after)


def prompted(prompt: str, text: str) -> str:
    """A text with its prompt, fit for a tokenizer."""
    before, after = around(prompt)
    return before + readable(text) + after


def unit(vectors: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Vectors of length 1 along the last axis; a zero vector stays zero (similar to nothing)."""
    lengths: npt.NDArray[Number] = np.linalg.norm(vectors, axis=-1, keepdims=True)
    lengths[lengths == 0] = 1
    return vectors / lengths


@dataclass(frozen=True)
class Indexed:
    """The work of encoding documents that were not encoded before. tokens: read for it, NaN where
    unknown."""

    seconds: float
    tokens: float

    def share(self, part: float) -> Indexed:
        """Return the work of a part, from 0 to 1."""
        return Indexed(self.seconds * part, self.tokens * part)


def tokens_read(full: Sequence[int], limit: int | None) -> float:
    """Sum the tokens that a model reads of texts. full: of each text, uncut. limit: of the model;
    NaN without one."""
    return math.nan if limit is None else float(np.minimum(full, limit).sum())


def checked(
    scores: Scores,
    tokens: Lengths | None,
    full: Lengths | None,
    seconds: float,
    computed_tokens: float | None = None,
) -> Scored:
    """The answer of a model, or a failed query where a score is not finite."""
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
    """`together(requests)`; where that raises, each request alone, so that only the guilty fail."""
    try:
        return together(requests)
    except RankdashError:
        raise
    except (RuntimeError, ValueError, TypeError, LookupError, MemoryError) as error:
        if len(requests) == 1:
            return [Scored.failed(len(requests[0].documents), first_line(error))]
        return [answer for request in requests for answer in answer_each([request], together)]


def first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


# How far an approximate runtime ranks as an exact one does, on queries of the user's own.

_QUERIES = 12
_DOCUMENTS = 10


@dataclass
class Sample:
    """Some of the pairs scored, with their scores: of the first queries, documents spread over the
    candidates."""

    kept: list[tuple[Request, Scores]] = field(default_factory=list)

    def add(self, request: Request, scores: Scores) -> None:
        """Remember some documents of a request, unless there are enough or it is known."""
        size = len(request.doc_ids)
        known = any(request.query_id == kept.query_id for kept, _ in self.kept)
        if len(self.kept) >= _QUERIES or size < 2 or known or not np.isfinite(scores).all():
            return
        places = np.unique(np.linspace(0, size - 1, min(size, _DOCUMENTS)).astype(int))
        self.kept.append((request.part(places), scores[places]))

    def measure(self, exact: Callable[[Request], Scores]) -> dict[str, object]:
        """The mean over queries of Spearman's rank correlation with exact scores, and on how many
        pairs; nothing where no pair was remembered."""
        found = [rank_correlation(scores, exact(request)) for request, scores in self.kept]
        if not found:
            return {}
        pairs = sum(len(request.doc_ids) for request, _ in self.kept)
        return {"rank_agreement": round(float(np.mean(found)), 4), "agreement_pairs": pairs}


def rank_correlation(first: Scores, second: Scores) -> float:
    """Spearman's rank correlation, equal scores at their mean rank; 1 where all are equal in
    both."""
    ranks = [_ranks(first), _ranks(second)]
    spread = [float(np.std(rank)) for rank in ranks]
    if min(spread) == 0:
        return float(spread[0] == spread[1])
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(scores: Scores) -> Scores:
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    found: Scores = (ends - (counts - 1) / 2)[places]
    return found
