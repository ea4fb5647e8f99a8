"""What the neural rerankers share: their settings, loading a model, and counting tokens."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.errors import RankdashError, ScoringError, UnavailableError
from rankdash.rerankers.base import Request, Scored, Scores
from rankdash.rerankers.settings import SettingSpec

BATCH_SIZE = SettingSpec(
    "batch_size",
    int,
    32,
    "Batch size",
    "How many texts or pairs go through the model at once. Changes speed and memory only.",
    minimum=1,
    maximum=4096,
)
DTYPE = SettingSpec(
    "dtype",
    str,
    "float32",
    "Model precision",
    "float32 is exact, also for models stored in 16 bits; the others are faster on some machines "
    "and change scores slightly.",
    choices=("float32", "bfloat16", "float16"),
)
DEVICE = SettingSpec(
    "device",
    str,
    "auto",
    "Device",
    "auto takes a graphics card where PyTorch finds one.",
    choices=("auto", "cpu", "cuda", "mps"),
)

LONGEST = 131_072
"""More tokens than any model here reads; some tokenizers declare 10^30 for "no limit"."""

Lengths = npt.NDArray[np.int64]


def load(model_class: str, folder: Path, settings: Mapping[str, Any], **extra: object) -> Any:
    """A sentence-transformers model of class `model_class` from a local folder.

    Raises UnavailableError where PyTorch, the device or the model is not usable here.
    """
    try:
        import sentence_transformers
        import torch
        from safetensors import SafetensorError
    except ImportError as error:
        raise UnavailableError(
            "The package {package} is not installed.",
            remedy="Install it: pip install sentence-transformers torch",
            package=error.name or "sentence-transformers",
        ) from error
    device = None if settings["device"] == "auto" else settings["device"]
    _check_device(torch, device)
    try:
        with _quiet():
            return getattr(sentence_transformers, model_class)(
                str(folder),
                device=device,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={
                    "dtype": getattr(torch, settings["dtype"]),
                    "use_safetensors": True,
                },
                **extra,
            )
    except (
        OSError,
        ValueError,
        LookupError,
        RuntimeError,
        TypeError,
        AttributeError,
        ImportError,
        SafetensorError,
    ) as error:
        raise UnavailableError(
            "The model in {folder} cannot be loaded: {reason}",
            remedy="Check that the folder is complete and of a kind that works without its own "
            "code.",
            folder=str(folder),
            reason=_first_line(error),
        ) from error


def _check_device(torch: Any, device: str | None) -> None:
    known = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    if device in known and not known[device]():
        raise UnavailableError(
            "PyTorch finds no device {device!r} on this machine.",
            remedy="Choose the device auto or cpu.",
            device=device,
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars and no notes about unused weights while a model loads."""
    transformers: Any = importlib.import_module("transformers.utils.logging")
    sentences = logging.getLogger("sentence_transformers")
    levels = transformers.get_verbosity(), sentences.level
    bars = transformers.is_progress_bar_enabled()
    transformers.set_verbosity_error()
    transformers.disable_progress_bar()
    sentences.setLevel(logging.ERROR)
    try:
        yield
    finally:
        transformers.set_verbosity(levels[0])
        sentences.setLevel(levels[1])
        if bars:
            transformers.enable_progress_bar()


def limit_length(model: Any, wanted: int) -> int | None:
    """Make `model` read at most `wanted` tokens (0 = as many as it declares); what it now reads.

    Never more than it has positions for. None where the model has no limit.
    """
    import torch

    declared = model.max_seq_length
    if declared is None or not np.isfinite(declared):
        return None
    positions = [
        # RoBERTa and its kin start counting positions behind the padding index.
        table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
        for table in (getattr(part, "position_embeddings", None) for part in model.modules())
        if isinstance(table, torch.nn.Embedding)
    ]
    limit = min(wanted or int(declared), *(positions or [int(declared)]), LONGEST)
    model.max_seq_length = limit
    return limit


def token_counts(tokenizer: Any, texts: Sequence[str], *, special: bool) -> Lengths:
    """(texts,) how many tokens each text has, uncut, with or without the special tokens."""
    if not texts:
        return np.zeros(0, dtype=np.int64)
    encoded = tokenizer(
        list(texts),
        add_special_tokens=special,
        truncation=False,
        padding=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    return np.array([len(ids) for ids in encoded["input_ids"]], dtype=np.int64)


def batches(lengths: Lengths, size: int) -> Iterator[npt.NDArray[np.intp]]:
    """Positions of texts of like length, longest first, so that little of a batch is padding."""
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), size):
        yield order[start : start + size]


def readable(text: str) -> str:
    """The text with lone surrogates, which tokenizers refuse, replaced by "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")


def checked(scores: Scores, tokens: Lengths | None, full: Lengths | None, seconds: float) -> Scored:
    """The answer of a model, or a failed query where a score is not finite."""
    wrong = int(np.count_nonzero(~np.isfinite(scores)))
    if wrong:
        error = ScoringError(
            "The model gave no finite score for {wrong} of {count} documents.",
            wrong=wrong,
            count=len(scores),
        )
        return Scored.failed(len(scores), str(error))
    return Scored(scores, tokens, full, seconds)


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
            return [Scored.failed(len(requests[0].documents), _first_line(error))]
        return [answer for request in requests for answer in answer_each([request], together)]


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
