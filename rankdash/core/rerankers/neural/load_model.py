"""A sentence-transformers model from a local folder, or why it cannot be used here."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import UnavailableError
from rankdash.core.rerankers.neural.model_files import without
from rankdash.core.rerankers.neural.shared import first_line, readable


def load(model_class: str, folder: Path, device: str, dtype: str = "float32") -> Any:
    """A sentence-transformers model of class `model_class` from a local folder.

    dtype: its precision, whatever that of the files.

    Raises UnavailableError where PyTorch, the device or the model is not usable here.
    """
    try:
        import sentence_transformers
        import torch
        from safetensors import SafetensorError
    except ImportError as error:
        raise without([error.name or "sentence-transformers"]) from error
    _check_device(torch, device)
    try:
        with _quiet():
            return getattr(sentence_transformers, model_class)(
                str(folder),
                device=device,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={
                    "dtype": getattr(torch, dtype),
                    "use_safetensors": True,
                },
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
            reason=first_line(error),
        ) from error


def encode(
    model: Any, texts: Sequence[str], role: str, prompts: Mapping[str, str]
) -> list[npt.NDArray[np.float32]]:
    """What a model gives for each text by its own library. role: "query" or "document"."""
    if not texts:
        return []
    found = {"query": model.encode_query, "document": model.encode_document}[role](
        [readable(text) for text in texts],
        prompt=prompts[role] or None,
        show_progress_bar=False,
    )
    return [np.asarray(values, dtype=np.float32) for values in found]


def _check_device(torch: Any, device: str) -> None:
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
