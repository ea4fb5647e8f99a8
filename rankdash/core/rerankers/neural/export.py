"""ONNX graphs exported from models, cached by the hash of their weights.

Scoring then needs neither PyTorch nor transformers. A graph exported by PyTorch is compared with it
on 32 inputs before it is cached. It appears only when complete, so several processes may export the
same model concurrently. After the folder is deleted, the next run exports again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import UnavailableError
from rankdash.core.rerankers.base import first_line
from rankdash.core.rerankers.neural import runtimes
from rankdash.core.rerankers.neural.cache import cache_folder, finish, is_whole, unfinished
from rankdash.core.rerankers.neural.runtimes import (
    Batching,
    Forward,
    Ids,
    Runtime,
    compute,
    compute_each,
)

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
"""Possible inputs of a model, each (batch, width)."""

# One score for two texts, a vector for a text, or one for each of its tokens.
Purpose = Literal["pair", "text", "tokens"]

_DOCUMENT_PROMPTS = ("document", "passage", "corpus")
_GRAPH, _CARD, _TOKENIZER, _INT8 = "model.onnx", "card.json", "tokenizer.json", "int8"
OPSET = 17
_PARITY_ROWS = 32
_PARITY_TOKENS = 96
# Largest difference from PyTorch, relative to the largest output: rounding stays well below it.
_TOLERANCE = 5e-5


class NotExportableError(Exception):
    """Error for a model that works in PyTorch only; the text is the reason."""


@dataclass(frozen=True)
class ModelCard:
    """Properties of a model that scoring needs besides its graph.

    inputs: the model's inputs by name. padding: the token id that fills short rows.
    declared, positions: the longest input by the model's settings and by its position table; 0 = no
        limit.
    prompts: the texts that the model declares for "query" and "document".
    difference: the largest difference from PyTorch on the compared inputs; NaN if the graph was
        built without PyTorch.
    """

    inputs: tuple[str, ...]
    padding: int
    declared: int
    positions: int
    prompts: Mapping[str, str] = field(default_factory=dict)
    difference: float = 0.0

    def limit(self, requested: int, longest: int) -> int:
        """Return the token limit for a requested length (0 = as declared)."""
        limits = [requested or self.declared or longest, self.positions or longest, longest]
        return min(limits)


@dataclass(frozen=True)
class Exported:
    """A model's graph, card and tokenizer in their folder."""

    folder: Path
    card: ModelCard

    @property
    def tokenizer(self) -> Path:
        return self.folder / _TOKENIZER

    def open(self, name: str) -> Runtime:
        """Open the model in a runtime. Raises UnavailableError if the runtime's package is missing
        or the 8-bit weights cannot be written."""
        graph = self.folder / _GRAPH
        return runtimes.open_exported(
            name, self._quantized() if name == "onnx-int8" else graph, self.card.inputs
        )

    def _quantized(self) -> Path:
        """Return the graph with 8-bit weights, created on first use."""
        target = self.folder / _INT8
        if not is_whole(target):
            from onnxruntime.quantization import QuantType, quantize_dynamic

            try:
                with _quiet(), unfinished(target) as made:
                    graph = self.folder / _GRAPH
                    quantize_dynamic(graph, made / _GRAPH, weight_type=QuantType.QInt8)
                    finish(made, target)
            except Exception as error:
                # A full disk raises OSError, or an error of the code that reads a truncated file.
                raise UnavailableError(
                    "The 8-bit weights cannot be written to {folder}: {reason}.",
                    remedy="Free space there, set RANKDASH_CACHE to a folder on another disk, or "
                    "choose the runtime onnx.",
                    folder=str(self.folder),
                    reason=first_line(error).rstrip("."),
                ) from error
        return target / _GRAPH


def find(purpose: Purpose, weights: str) -> Exported | None:
    """Return the exported model whose files hash to `weights`; None if missing or changed."""
    folder = _place(purpose, weights)
    try:
        stored = json.loads((folder / _CARD).read_text(encoding="utf-8"))
        card = ModelCard(**{**stored, "inputs": tuple(stored["inputs"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return Exported(folder, card) if is_whole(folder) else None


def weights_of(graph: Path) -> Path:
    """Return the path of the weights of a graph that was built without PyTorch."""
    return graph.with_suffix(".weights")


def prompts_of(declared: Mapping[str, str] | None, default: str | None) -> dict[str, str]:
    """Return the prompts of a `ModelCard` from a model's prompts and the name of its default."""
    prompts = {key: str(text) for key, text in (declared or {}).items() if text}
    fallback = prompts.get(default or "", "")
    document = next((prompts[name] for name in _DOCUMENT_PROMPTS if name in prompts), fallback)
    return {"query": prompts.get("query", fallback), "document": document}


def write_compared(
    purpose: Purpose, module: Any, card: ModelCard, vocabulary: int, path: Path
) -> float:
    """Export a PyTorch module to `path`; return its largest difference from the module.

    module: takes the inputs of `card` in their order, in evaluation mode, float32, on the CPU.

    Raises NotExportableError if the graph's outputs differ too much, and any error of PyTorch.
    """
    with _quiet():
        _write_graph(module, card, path)
    return _difference(purpose, module, card, path, vocabulary)


def keep(
    purpose: Purpose,
    weights: str,
    card: ModelCard,
    tokenizer: Any,
    write: Callable[[Path], float],
) -> Exported:
    """Cache a graph, together with its card and tokenizer.

    tokenizer: of the library tokenizers. write: writes the graph to a path and returns the
        difference for the card.

    Raises NotExportableError if it cannot be written.
    """
    folder = _place(purpose, weights)
    try:
        with unfinished(folder) as unfinished_folder:
            difference = write(unfinished_folder / _GRAPH)
            tokenizer.save(str(unfinished_folder / _TOKENIZER))
            card = ModelCard(**{**vars(card), "difference": difference})
            (unfinished_folder / _CARD).write_text(json.dumps(asdict(card)), encoding="utf-8")
            finish(unfinished_folder, folder)
    except NotExportableError:
        raise
    except Exception as error:
        # Exporters raise many types of errors.
        raise NotExportableError(first_line(error)) from error
    exported = find(purpose, weights)
    if exported is None:
        raise NotExportableError(f"{folder} cannot be written")
    return exported


def _place(purpose: Purpose, weights: str) -> Path:
    return cache_folder() / "models" / f"{purpose}-{runtimes.GRAPHS}-{weights[:32]}"


def _write_graph(module: Any, card: ModelCard, path: Path) -> None:
    import torch

    ids = torch.full((2, 8), 3, dtype=torch.int64)
    mask = torch.ones_like(ids)
    ids[1, 5:], mask[1, 5:] = card.padding, 0
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)}
    # The tracing exporter needs no other package and takes a tenth of the time of its successor.
    torch.onnx.export(
        module,
        tuple(inputs[name] for name in card.inputs),
        str(path),
        input_names=list(card.inputs),
        output_names=["output"],
        dynamic_axes={name: {0: "batch", 1: "width"} for name in card.inputs},
        opset_version=OPSET,
        dynamo=False,
    )


def _difference(
    purpose: Purpose, module: Any, card: ModelCard, graph: Path, vocabulary: int
) -> float:
    """Return the largest difference between graph and module over rows of many lengths, in
    batches."""
    rows = sample_rows(card, vocabulary, _PARITY_ROWS, _PARITY_TOKENS)
    types = [np.zeros_like(row) for row in rows]

    def results(forward: Forward) -> npt.NDArray[np.float32]:
        how = Batching(4 * _PARITY_TOKENS, card.padding)
        if purpose == "tokens":
            return np.concatenate(compute_each(rows, types, forward, how))
        return compute(rows, types, forward, how)

    expected = results(runtimes.Torch("torch", module, "cpu", card.inputs).forward)
    actual = results(runtimes.open_exported("onnx", graph, card.inputs).forward)
    difference = float(np.abs(actual - expected).max())
    if not difference <= _TOLERANCE * max(1.0, float(np.abs(expected).max())):
        raise NotExportableError(f"the exported graph differs by {difference:.2g}")
    return difference


def sample_rows(card: ModelCard, vocabulary: int, count: int, longest: int) -> list[Ids]:
    """Return fixed pseudo-random rows, from short ones to `longest` tokens."""
    draw = np.random.default_rng(0)
    most = min(longest, card.limit(longest, longest))
    lengths = np.linspace(min(4, most), most, count).astype(np.int64)
    rows = [draw.integers(0, vocabulary, size=length) for length in lengths]
    # Texts never contain a padding token within a row.
    return [np.where(row == card.padding, (row + 1) % vocabulary, row) for row in rows]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the warnings and logs of the exporters."""
    names: Sequence[str] = ("torch.onnx", "root")
    loggers = [logging.getLogger("" if name == "root" else name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
