"""Opening a neural model for scoring: exported if possible, in the requested runtime."""

from __future__ import annotations

import importlib
import inspect
import logging
import math
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import SettingError, UnavailableError
from rankdash.core.rerankers import base
from rankdash.core.rerankers.base import Request, Scores, first_line
from rankdash.core.rerankers.neural import export, runtimes
from rankdash.core.rerankers.neural.bert_graph import BertGraph
from rankdash.core.rerankers.neural.export import Exported, ModelCard, NotExportableError, Purpose
from rankdash.core.rerankers.neural.model_files import without
from rankdash.core.rerankers.neural.runtimes import (
    KINDS,
    Batching,
    Forward,
    Ids,
    Outputs,
    Runtime,
    compute,
    compute_each,
)
from rankdash.core.rerankers.neural.tokenizer import (
    LONGEST,
    Cut,
    RawTokenizer,
    SlowTokenizer,
    Subwords,
    TokenizerSource,
    Windows,
    around,
    prompted,
    readable,
)


def load_model(model_class: str, folder: Path, device: str, dtype: str = "float32") -> Any:
    """Load a sentence-transformers model of class `model_class` from a local folder.

    dtype: the precision to use, regardless of the files' precision.

    Raises UnavailableError if PyTorch, the device or the model is not usable here.
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
            remedy="Check that the folder is complete and that the model works without its own "
            "code.",
            folder=str(folder),
            reason=first_line(error),
        ) from error


def encode_natively(
    model: Any, texts: Sequence[str], role: str, prompts: Mapping[str, str]
) -> list[npt.NDArray[np.float32]]:
    """Return the output of a model for each text, computed by its own library. role: "query" or
    "document"."""
    if not texts:
        return []
    vectors = {"query": model.encode_query, "document": model.encode_document}[role](
        [readable(text) for text in texts],
        prompt=prompts[role] or None,
        show_progress_bar=False,
    )
    return [np.asarray(values, dtype=np.float32) for values in vectors]


def _check_device(torch: Any, device: str) -> None:
    checks = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    if device in checks and not checks[device]():
        raise UnavailableError(
            "PyTorch finds no device {device!r} on this machine.",
            remedy="Choose the device auto or cpu.",
            device=device,
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress progress bars and warnings about unused weights while a model loads."""
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


_CLASSES = {
    "pair": "CrossEncoder",
    "text": "SentenceTransformer",
    "tokens": "SentenceTransformer",
}
_OUTPUTS = {"text": "sentence_embedding", "tokens": "token_embeddings"}
_TORCH_TYPES = {"torch": "float32", "torch-bf16": "bfloat16", "torch-fp16": "float16"}


@dataclass(frozen=True)
class Opened:
    """Model ready to score.

    limit: maximum number of tokens per text or pair, special tokens included.
    windows: of long documents.
    device: as in PyTorch. note: a message for the user, or "".
    timed: calibration results, in seconds by runtime; empty without calibration.
    exact: opens the same model in an exact runtime, for comparison with an approximate one.
    """

    subwords: Subwords
    card: ModelCard
    runtime: Runtime
    limit: int
    budget: int
    device: str
    exact: Callable[[], Runtime]
    note: str = ""
    timed: Mapping[str, float] | None = None
    windows: Windows = field(default_factory=Windows)

    def compute(
        self, rows: Sequence[Ids], types: Sequence[Ids], runtime: Runtime | None = None
    ) -> Outputs:
        """Return the model's output for each row, (rows, outputs). runtime: None for the runtime in
        which the model was opened."""
        return compute(rows, types, *self._how(runtime))

    def compute_each(
        self, rows: Sequence[Ids], types: Sequence[Ids], runtime: Runtime | None = None
    ) -> list[Outputs]:
        """Return the model's outputs for each token, (tokens, outputs) per row, if the model was
        opened for "tokens". runtime: as for `compute`."""
        return compute_each(rows, types, *self._how(runtime))

    def _how(self, runtime: Runtime | None) -> tuple[Forward, Batching]:
        chosen = runtime or self.runtime
        budget = self.budget if runtime is None else runtime.budget
        return chosen.forward, Batching(budget, self.card.padding, chosen.rounding, self.limit)

    def alone(
        self, texts: Sequence[str], role: str, prompts: Mapping[str, str]
    ) -> tuple[list[Ids], list[Ids], list[int], list[int]]:
        """Tokenise texts that the model reads separately, not in pairs. Return token ids and types
        of each row, and for each text its number of rows and of tokens before truncation. role:
        "query" or "document"; an empty prompt means the model's own."""
        prompt = prompts[role] or self.card.prompts.get(role, "")
        frame = self.subwords.frame
        room = max(1, self.limit - frame.size)
        windows = self.windows if role == "document" else Windows()
        ends = [cut.ids for cut in self.cut(around(prompt))]
        rows, types, counts, full = [], [], [], []
        for cut in self.cut([prompted(prompt, text) for text in texts]):
            parts = windows.parts(cut, room, *ends)
            framed = [frame.around([part]) for part in parts]
            rows += [ids for ids, _ in framed]
            types += [kinds for _, kinds in framed]
            counts.append(len(parts))
            full.append(cut.unread(parts) + sum(len(ids) for ids, _ in framed))
        return rows, types, counts, full

    def cut(self, texts: Sequence[str]) -> list[Cut]:
        """Return the tokens of each text that may be read: all with windows, else the first."""
        return self.subwords.cut(texts, sys.maxsize if self.windows.size else self.limit)

    def agreement(
        self, sample: Sample, scores: Callable[[Request, Runtime], Scores]
    ) -> dict[str, object]:
        """Return the agreement of an approximate runtime with an exact one on the pairs of a
        sample; {} for an exact runtime."""
        if KINDS[self.runtime.name].exact or not sample.kept:
            return {}
        exact = self.exact()
        return sample.measure(lambda request: scores(request, exact))

    def details(self) -> dict[str, object]:
        """Return how the model was opened, for the record of a run."""
        details: dict[str, object] = {
            "runtime": self.runtime.name,
            "device": self.device,
            "threads": runtimes.threads(),
            "tokens_in_a_batch": self.budget,
        }
        if self.timed:
            details["calibration"] = ", ".join(
                f"{name} {seconds * 1e3:.1f} ms" for name, seconds in self.timed.items()
            )
        if KINDS[self.runtime.name].exported and not math.isnan(self.card.difference):
            details["export_difference"] = self.card.difference
        if self.note:
            details["note"] = self.note
        return details


class NativeOnlyError(Exception):
    """Error for a model that works only with its own library; `model` is the loaded model."""

    def __init__(self, model: Any) -> None:
        self.model = model
        super().__init__()


def open_model(
    purpose: Purpose,
    folder: Path,
    weights: str,
    settings: Mapping[str, Any],
    check: Callable[[Any], None],
) -> Opened:
    """Open the model in `folder`, whose files hash to `weights`.

    settings: runtime, device, max_length and batch_tokens.
    check: called with the loaded model before first use; raises UnavailableError if it cannot be
        used.

    PyTorch runs a model that cannot be exported, and `note` gives the reason. Raises
    UnavailableError if it cannot be opened, SettingError for a runtime that the device does not
    support, and NativeOnlyError.
    """
    requested = str(settings["runtime"])
    device = _device(str(settings["device"]), requested)
    if device != "cpu" and requested != runtimes.AUTO and KINDS[requested].exported:
        raise SettingError(
            "The runtime {runtime!r} does not support the device {device!r}.",
            remedy="Choose one of torch, torch-bf16 and torch-fp16, or the device cpu.",
            runtime=requested,
            device=device,
        )
    runtimes.check_installed(requested)
    loading = _Loading(purpose, folder, device, check)
    note = ""
    if device == "cpu" and (requested == runtimes.AUTO or KINDS[requested].exported):
        exported = export.find(purpose, weights)
        try:
            return _opened_export(loading, exported, weights, settings)
        except NotExportableError as error:
            note = f"The model could not be exported and is run by PyTorch: {error}."
    name = requested if requested in _TORCH_TYPES else "torch"
    model, module, card = loading.loaded(_TORCH_TYPES[name])
    runtime = runtimes.Torch(name, module, device, card.inputs)
    subwords = Subwords(_source(model.tokenizer), pairs=purpose == "pair")

    def exact() -> Runtime:
        _, reference, _ = loading.loaded("float32")
        return runtimes.Torch("torch", reference, device, card.inputs)

    return _ready(subwords, card, runtime, settings, device, exact, note=note)


def _opened_export(
    loading: _Loading, exported: Exported | None, weights: str, settings: Mapping[str, Any]
) -> Opened:
    module: Any = None
    if exported is None:
        base.begin("exporting")
    graph = None if exported else BertGraph.read(loading.purpose, loading.folder)
    if graph is not None:
        exported = export.keep(loading.purpose, weights, graph.card, graph.tokenizer, graph.write)
    if exported is None:
        model, module, card = loading.loaded("float32")
        backend = getattr(model.tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise NotExportableError("its tokenizer is written in Python")
        compared = partial(
            export.write_compared, loading.purpose, module, card, backend.get_vocab_size()
        )
        exported = export.keep(loading.purpose, weights, card, backend, compared)
    subwords = Subwords(RawTokenizer.from_file(exported.tokenizer), pairs=loading.purpose == "pair")
    name = str(settings["runtime"])
    timed: Mapping[str, float] = {}
    chosen: Runtime | None = None
    if name == runtimes.AUTO and runtimes.alone():
        name = runtimes.PREFERRED
    elif name == runtimes.AUTO:
        measured = runtimes.kept_calibration(exported.folder)
        if measured is None:
            base.begin("choosing")
            candidates = _candidates(exported, module)
            limit = exported.card.limit(0, LONGEST)
            measured = runtimes.calibrate(candidates, limit)
            chosen = candidates[measured.choice]
            runtimes.keep_calibration(exported.folder, measured)
        name, timed = measured.choice, measured.seconds
    if chosen is None and name == "torch":
        # Only if calibration chose PyTorch despite the time of its import.
        _, module, _ = loading.loaded("float32")
        chosen = runtimes.Torch("torch", module, "cpu", exported.card.inputs)
    chosen = chosen or exported.open(name)
    available = exported
    return _ready(
        subwords,
        exported.card,
        chosen,
        settings,
        "cpu",
        lambda: available.open(runtimes.PREFERRED),
        timed=timed,
    )


def _ready(
    subwords: Subwords,
    card: ModelCard,
    runtime: Runtime,
    settings: Mapping[str, Any],
    device: str,
    exact: Callable[[], Runtime],
    *,
    note: str = "",
    timed: Mapping[str, float] | None = None,
) -> Opened:
    budget = int(settings["batch_tokens"]) or runtime.budget
    if runtime.name == "onnx-int8" or (device == "cpu" and runtimes.alone()):
        # A row longer than the budget forms its own batch.
        budget = 1
    limit = card.limit(int(settings["max_length"]), LONGEST)
    windows = Windows.of(settings)
    return Opened(subwords, card, runtime, limit, budget, device, exact, note, timed, windows)


def _candidates(exported: Exported, module: Any) -> dict[str, Runtime]:
    """Return the installed runtimes whose scores are exact; PyTorch only if its model is already
    loaded."""
    candidates: dict[str, Runtime] = {
        name: exported.open(name)
        for name, kind in KINDS.items()
        if kind.exact and kind.exported and runtimes.installed(name)
    }
    if module is not None:
        candidates["torch"] = runtimes.Torch("torch", module, "cpu", exported.card.inputs)
    return candidates


class _Loading:
    """PyTorch version of a model, loaded on demand and once for each precision."""

    def __init__(
        self, purpose: Purpose, folder: Path, device: str, check: Callable[[Any], None]
    ) -> None:
        self.purpose = purpose
        self.folder = folder
        self._device = device
        self._check = check
        self._made: dict[str, tuple[Any, Any, ModelCard]] = {}

    def loaded(self, dtype: str) -> tuple[Any, Any, ModelCard]:
        """Return the model, a module that takes its inputs one by one, and its card."""
        if dtype not in self._made:
            model = load_model(_CLASSES[self.purpose], self.folder, self._device, dtype)
            self._check(model)
            if self.purpose != "pair" and not _follows_the_pattern(model, self.purpose):
                raise NativeOnlyError(model)
            card = _card(model)
            self._made[dtype] = model, _module(self.purpose, model, card.inputs), card
        return self._made[dtype]


def _follows_the_pattern(model: Any, purpose: Purpose) -> bool:
    """Return whether an embedding model has the usual structure: token ids in, transformer,
    pooling, vector out. Only the transformer matters for "tokens"."""
    first = model[0]
    usual = (
        type(first).__name__ == "Transformer"
        and getattr(first, "tokenizer", None) is not None
        and not getattr(first, "do_lower_case", False)
    )
    if purpose == "tokens":
        return usual
    names = {type(part).__name__ for part in list(model)[1:]}
    return (
        usual
        and names <= {"Pooling", "Dense", "Normalize", "LayerNorm", "Dropout"}
        and all(getattr(part, "include_prompt", True) for part in model)
    )


def _card(model: Any) -> ModelCard:
    import torch

    first = model[0]
    tokenizer = model.tokenizer
    takes = inspect.signature(first.auto_model.forward).parameters
    inputs = [
        name for name in export.INPUTS if name in tokenizer.model_input_names and name in takes
    ]
    declared = model.max_seq_length
    positions = [
        # RoBERTa and related models start counting positions after the padding index.
        table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
        for table in (getattr(part, "position_embeddings", None) for part in model.modules())
        if isinstance(table, torch.nn.Embedding)
    ]
    if not positions:
        positions = [int(getattr(first.auto_model.config, "max_position_embeddings", 0) or 0)]
    has_limit = declared is not None and np.isfinite(declared)
    padding = tokenizer.pad_token_id
    return ModelCard(
        inputs=tuple(inputs),
        padding=0 if padding is None else int(padding),
        declared=min(int(declared), LONGEST) if has_limit else 0,
        positions=min(positions),
        prompts=export.prompts_of(model.prompts, model.default_prompt_name),
    )


def _module(purpose: Purpose, model: Any, inputs: Sequence[str]) -> Any:
    import torch

    class Inner(torch.nn.Module):  # type: ignore[misc]
        """Wrapper with positional inputs and its one output in 32 bits."""

        def __init__(self) -> None:
            super().__init__()
            parts = {"pair": lambda: model[0].auto_model, "text": lambda: model}
            self.inner = parts.get(purpose, lambda: model[0])()

        def forward(self, *tensors: Any) -> Any:
            named = dict(zip(inputs, tensors, strict=True))
            if purpose == "pair":
                return self.inner(**named).logits.float()
            return self.inner(named)[_OUTPUTS[purpose]].float()

    # An exporter that finds the wrapper in training mode leaves the model in that mode.
    return Inner().eval()


def _source(tokenizer: Any) -> TokenizerSource:
    from tokenizers import Tokenizer

    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return SlowTokenizer(tokenizer)
    return RawTokenizer(Tokenizer.from_str(backend.to_str()))


def _device(device: str, runtime: str) -> str:
    """Return the device to use. Imports PyTorch only if the machine may have a GPU."""
    if device != "auto":
        return device
    if runtime != runtimes.AUTO and KINDS[runtime].exported:
        return "cpu"
    if shutil.which("nvidia-smi") is None and "torch" not in sys.modules:
        return "cpu"
    try:
        import torch
    except ImportError:
        return "cpu"
    return "cuda" if torch.cuda.is_available() else "cpu"


_QUERIES = 12


_DOCUMENTS = 10


@dataclass
class Sample:
    """Sample of the scored pairs with their scores: the first queries, with documents spread over
    the candidates."""

    kept: list[tuple[Request, Scores]] = field(default_factory=list)

    def add(self, request: Request, scores: Scores) -> None:
        """Add some documents of a request, unless the sample is full or has this query."""
        size = len(request.doc_ids)
        sampled = any(request.query_id == stored.query_id for stored, _ in self.kept)
        if len(self.kept) >= _QUERIES or size < 2 or sampled or not np.isfinite(scores).all():
            return
        places = np.unique(np.linspace(0, size - 1, min(size, _DOCUMENTS)).astype(int))
        self.kept.append((request.part(places), scores[places]))

    def measure(self, exact: Callable[[Request], Scores]) -> dict[str, object]:
        """Return the mean over queries of Spearman's rank correlation with exact scores, and the
        number of pairs; {} for an empty sample."""
        correlations = [rank_correlation(scores, exact(request)) for request, scores in self.kept]
        if not correlations:
            return {}
        pairs = sum(len(request.doc_ids) for request, _ in self.kept)
        return {"rank_agreement": round(float(np.mean(correlations)), 4), "agreement_pairs": pairs}


def rank_correlation(first: Scores, second: Scores) -> float:
    """Return Spearman's rank correlation, equal scores at their mean rank; 1 if all are equal in
    both."""
    ranks = [_ranks(first), _ranks(second)]
    spread = [float(np.std(rank)) for rank in ranks]
    if min(spread) == 0:
        return float(spread[0] == spread[1])
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(scores: Scores) -> Scores:
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Scores = (ends - (counts - 1) / 2)[places]
    return ranks
