"""What computes a model: PyTorch, ONNX Runtime or OpenVINO, behind one small protocol."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rankdash.core.base.errors import UnavailableError
from rankdash.core.rerankers.neural.batches import Ids, Outputs

AUTO = "auto"


@dataclass(frozen=True)
class Kind:
    """exact: whether it ranks as float32 does, to the last document. package: what it needs that
    may be missing where models can be computed."""

    name: str
    exact: bool
    exported: bool
    package: str


KINDS = {
    kind.name: kind
    for kind in (
        Kind("onnx", True, True, "onnxruntime"),
        Kind("torch", True, False, "torch"),
        Kind("openvino", True, True, "openvino"),
        Kind("torch-bf16", False, False, "torch"),
        Kind("torch-fp16", False, False, "torch"),
        Kind("openvino-bf16", False, True, "openvino"),
        Kind("onnx-int8", False, True, "onnx"),
    )
}
CHOICES = (AUTO, *KINDS)

# Scores of an exact runtime differ from one another's by rounding only.
EXACT = "float32"
# Version of exported graphs: a new one makes old graphs, and approximate scores by them, unused.
GRAPHS = 3

_CPU_TOKENS = 1024
_CUDA_TOKENS = 32_768
_ROUNDING = 16


class Runtime(Protocol):
    """A model ready to compute. Several threads may call `forward` at once.

    budget: how many tokens a batch had best hold; rounding: to which multiple rows are padded.
    """

    @property
    def name(self) -> str: ...

    @property
    def budget(self) -> int: ...

    @property
    def rounding(self) -> int: ...

    def forward(self, ids: Ids, mask: Ids, types: Ids) -> Outputs:
        """Token ids, mask and token types, each (batch, width), to (batch, outputs) float32."""
        ...


def precision(name: str) -> str:
    """What of a runtime changes scores: nothing among the exact ones."""
    kind = KINDS[name]
    if kind.exact:
        return EXACT
    return f"{name} {GRAPHS}" if kind.exported else name


def installed(name: str) -> bool:
    """Whether the package of a runtime is here; imports nothing."""
    return importlib.util.find_spec(KINDS[name].package) is not None


def check_installed(name: str) -> None:
    """Raise UnavailableError where the package of a runtime is missing; AUTO always has one."""
    if name != AUTO and not installed(name):
        raise UnavailableError(
            "The package {package} is not installed.",
            remedy="Install it: pip install {package}",
            package=KINDS[name].package,
        )


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The versions of those that are installed; imports nothing."""
    found: dict[str, str] = {}
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


_alone: ContextVar[bool] = ContextVar("alone", default=False)


@contextmanager
def one_by_one() -> Iterator[None]:
    """Models that are opened inside score alike wherever they run, up to the processor: auto is
    ONNX Runtime, without measuring, and on a CPU each row is computed by itself, since its last
    digits may hang on the rows beside it."""
    before = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(before)


def alone() -> bool:
    """Whether `one_by_one` holds."""
    return _alone.get()


def threads() -> int:
    """How many threads may compute here: no more than OMP_NUM_THREADS, by which a scheduler such
    as Ray or Slurm shares a machine out."""
    if hasattr(os, "sched_getaffinity"):
        found = len(os.sched_getaffinity(0))
    else:
        found = os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(found, int(limit)) if limit.isdecimal() and int(limit) else found


def open_exported(name: str, graph: Path, inputs: Sequence[str]) -> Runtime:
    """An exported model in the runtime `name`. Raises UnavailableError where it is not here."""
    check_installed(name)
    if name.startswith("openvino"):
        return OpenVino(name, graph, inputs)
    return OnnxRuntime(name, graph, inputs)


class OnnxRuntime:
    """ONNX Runtime on the CPU.

    int8 is computed a row at a time: its scores would else depend on the other rows of a batch,
    whose values set the scale.
    """

    rounding = 1

    def __init__(self, name: str, graph: Path, inputs: Sequence[str]) -> None:
        import onnxruntime

        self.name = name
        self.budget = 1 if name == "onnx-int8" else _CPU_TOKENS
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads()
        # Threads that spin while they wait take the cores from everything else on the machine.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        self._inputs = tuple(inputs)
        self._session = onnxruntime.InferenceSession(
            str(graph), options, providers=["CPUExecutionProvider"]
        )

    def forward(self, ids: Ids, mask: Ids, types: Ids) -> Outputs:
        (values,) = self._session.run(None, _fed(self._inputs, ids, mask, types))
        return np.asarray(values, dtype=np.float32)


class OpenVino:
    """OpenVINO on the CPU. It prepares itself for each shape, so lengths are rounded."""

    rounding = _ROUNDING
    budget = _CPU_TOKENS

    def __init__(self, name: str, graph: Path, inputs: Sequence[str]) -> None:
        import openvino

        self.name = name
        self._inputs = tuple(inputs)
        self._lock = threading.Lock()
        core = openvino.Core()
        hint = "bf16" if name == "openvino-bf16" else "f32"
        compiled = core.compile_model(
            core.read_model(str(graph)),
            "CPU",
            {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": threads()},
        )
        self._request = compiled.create_infer_request()

    def forward(self, ids: Ids, mask: Ids, types: Ids) -> Outputs:
        with self._lock:
            given = self._request.infer(_fed(self._inputs, ids, mask, types), share_inputs=True)
            return np.array(given[0], dtype=np.float32)


class Torch:
    """PyTorch on the CPU or a graphics card.

    model: called with the inputs by name, gives (batch, outputs); already on its device and in its
        precision.
    """

    rounding = 1

    def __init__(
        self, name: str, model: Callable[..., Any], device: str, inputs: Sequence[str]
    ) -> None:
        self.name = name
        self.budget = _CPU_TOKENS if device == "cpu" else _CUDA_TOKENS
        self._model = model
        self._device = device
        self._inputs = tuple(inputs)

    def forward(self, ids: Ids, mask: Ids, types: Ids) -> Outputs:
        import torch

        fed = {
            name: torch.from_numpy(array).to(self._device)
            for name, array in _fed(self._inputs, ids, mask, types).items()
        }
        with torch.inference_mode():
            values = self._model(*(fed[name] for name in self._inputs))
        found: Outputs = values.float().cpu().numpy()
        return found


def _fed(inputs: Sequence[str], ids: Ids, mask: Ids, types: Ids) -> Mapping[str, Ids]:
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    return {name: given[name] for name in inputs}
