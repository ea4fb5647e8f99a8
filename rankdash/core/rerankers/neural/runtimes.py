"""Runtimes that execute a model in batches: PyTorch, ONNX Runtime or OpenVINO; choice of the
fastest."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import math
import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rankdash.core.base.errors import UnavailableError
from rankdash.core.rerankers import base

AUTO = "auto"


@dataclass(frozen=True)
class Kind:
    """Kind of runtime. exact: whether it ranks exactly as float32 does. package: the package it
    needs, which may be missing even if others can run models."""

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

# Scores of exact runtimes differ from each other only by rounding.
EXACT = "float32"
# Version of exported graphs: after an increase, old graphs and approximate scores from them are no
# longer used.
GRAPHS = 3

_CPU_TOKENS = 1024
_CUDA_TOKENS = 32_768
_ROUNDING = 16


class Runtime(Protocol):
    """Model ready to run. Several threads may call `forward` concurrently.

    budget: recommended number of tokens per batch; rounding: rows are padded to a multiple of it.
    """

    @property
    def name(self) -> str: ...

    @property
    def budget(self) -> int: ...

    @property
    def rounding(self) -> int: ...

    def forward(self, ids: Ids, mask: Ids, types: Ids) -> Outputs:
        """Map token ids, mask and token types, each (batch, width), to (batch, outputs) float32."""
        ...


def precision(name: str) -> str:
    """Return the numerical precision of a runtime's scores, as an identifier: "float32" for all
    exact runtimes, else unique to the runtime."""
    kind = KINDS[name]
    if kind.exact:
        return EXACT
    return f"{name} {GRAPHS}" if kind.exported else name


def installed(name: str) -> bool:
    """Return whether the package of a runtime is installed; imports nothing."""
    return importlib.util.find_spec(KINDS[name].package) is not None


def check_installed(name: str) -> None:
    """Raise UnavailableError if the package of a runtime is missing; AUTO always has one."""
    if name != AUTO and not installed(name):
        raise UnavailableError(
            "The package {package} is not installed.",
            remedy="Install it: pip install {package}",
            package=KINDS[name].package,
        )


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of the installed packages; imports nothing."""
    by_package: dict[str, str] = {}
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            by_package[package] = version(package)
    return by_package


_alone: ContextVar[bool] = ContextVar("alone", default=False)


@contextmanager
def one_by_one() -> Iterator[None]:
    """Make scores reproducible on all machines with the same processor: inside the block, auto is
    ONNX Runtime, without measuring, and a CPU computes each row separately, because its last digits
    may depend on the other rows of a batch."""
    before = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(before)


def alone() -> bool:
    """Return whether the code runs inside `one_by_one`."""
    return _alone.get()


def threads() -> int:
    """Return the number of available threads, at most OMP_NUM_THREADS, which schedulers such as Ray
    and Slurm set to divide a machine."""
    if hasattr(os, "sched_getaffinity"):
        available = len(os.sched_getaffinity(0))
    else:
        available = os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(available, int(limit)) if limit.isdecimal() and int(limit) else available


def open_exported(name: str, graph: Path, inputs: Sequence[str]) -> Runtime:
    """Open an exported model in the runtime `name`. Raises UnavailableError if it is not
    installed."""
    check_installed(name)
    if name.startswith("openvino"):
        return OpenVino(name, graph, inputs)
    return OnnxRuntime(name, graph, inputs)


class OnnxRuntime:
    """ONNX Runtime on the CPU.

    int8 runs one row at a time: otherwise scores would depend on the other rows of a batch, whose
        values determine the scale.
    """

    rounding = 1

    def __init__(self, name: str, graph: Path, inputs: Sequence[str]) -> None:
        import onnxruntime

        self.name = name
        self.budget = 1 if name == "onnx-int8" else _CPU_TOKENS
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads()
        # Threads that spin while they wait block the cores for other programs.
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
    """OpenVINO on the CPU. It compiles for each input shape, so lengths are rounded."""

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
            outputs = self._request.infer(_fed(self._inputs, ids, mask, types), share_inputs=True)
            return np.array(outputs[0], dtype=np.float32)


class Torch:
    """PyTorch on the CPU or a GPU.

    model: called with the inputs in order, returns (batch, outputs); already on its device and in
        its precision.
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
        outputs: Outputs = values.float().cpu().numpy()
        return outputs


def _fed(inputs: Sequence[str], ids: Ids, mask: Ids, types: Ids) -> Mapping[str, Ids]:
    tensors = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    return {name: tensors[name] for name in inputs}


# Batches of token ids: rows of similar length together, up to a budget of tokens, scattered back.
# This part knows neither models nor texts. Padding makes a simple loop slow, so rows are sorted by
# their exact length in tokens, across queries, and equal rows are computed once (they then also get
# equal scores, to the last bit).

Ids = npt.NDArray[np.int64]
Outputs = npt.NDArray[np.float32]
Forward = Callable[[Ids, Ids, Ids], Outputs]

# A batch ends before its budget is full if padding would waste more than this share.
_WASTE = 0.02
_SMALLEST_BATCH = 0.25


@dataclass(frozen=True)
class Frame:
    """Special tokens around a model's input: before, between and after the texts.

    types: the token type of each of the five parts (before, first text, between, second text,
        after); of the first, second and last if a model reads one text.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    types: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of special tokens."""
        return len(self.before) + len(self.between) + len(self.after)

    def around(self, texts: Sequence[Ids]) -> tuple[Ids, Ids]:
        """Return token ids and token types of one text, or of two read together."""
        parts: list[npt.ArrayLike] = [self.before, texts[0]]
        if len(texts) == 2:
            parts += [self.between, texts[1]]
        parts.append(self.after)
        arrays = [np.asarray(part, dtype=np.int64) for part in parts]
        types = np.repeat(np.array(self.types, dtype=np.int64), [len(part) for part in arrays])
        return np.concatenate(arrays), types


@dataclass(frozen=True)
class Batching:
    """Parameters of `plan_batches`: budget, rounding and limit.

    padding: the token id that fills short rows; the mask is 0 there.
    """

    budget: int
    padding: int
    rounding: int = 1
    limit: int | None = None


@dataclass(frozen=True)
class BatchPlan:
    """Batches as positions of rows, the longest first; `widths` are their padded lengths."""

    batches: tuple[npt.NDArray[np.intp], ...]
    widths: tuple[int, ...]

    @property
    def slots(self) -> int:
        """Tokens computed, padding included."""
        return sum(len(rows) * width for rows, width in zip(self.batches, self.widths, strict=True))


def plan_batches(
    lengths: npt.NDArray[np.int64], budget: int, rounding: int = 1, limit: int | None = None
) -> BatchPlan:
    """Return batches of rows of similar length that contain every row once.

    budget: maximum number of tokens per batch, padding included; a longer row forms its own batch.
    rounding: lengths are padded to a multiple of this, for engines that compile for each shape;
        never beyond `limit`, the longest row that the model reads.
    """
    batches: list[npt.NDArray[np.intp]] = []
    widths: list[int] = []
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        width = -(-int(lengths[order[start]]) // rounding) * rounding
        if limit is not None:
            width = max(min(width, limit), int(lengths[order[start]]))
        stop = start + 1
        real = int(lengths[order[start]])
        while stop < len(order) and width * (stop - start + 1) <= budget:
            real += int(lengths[order[stop]])
            slots = width * (stop - start + 1)
            if slots > real * (1 + _WASTE) and slots >= budget * _SMALLEST_BATCH:
                break
            stop += 1
        batches.append(order[start:stop])
        widths.append(width)
        start = stop
    return BatchPlan(tuple(batches), tuple(widths))


def compute(rows: Sequence[Ids], types: Sequence[Ids], forward: Forward, how: Batching) -> Outputs:
    """Return the output of `forward` for each row: (rows, …) float32, in the order of the rows.

    rows, types: token ids and token types of each row.
    forward: (token ids, mask, token types), each (batch, width) int64, to (batch, …).
    """
    groups, distinct = _distinct(rows, types)
    results: Outputs | None = None
    for places, outputs in _forwarded(rows, types, distinct, forward, how):
        if results is None:
            results = np.empty((len(distinct), *outputs.shape[1:]), dtype=np.float32)
        results[places] = outputs
    return np.zeros(0, dtype=np.float32) if results is None else results[groups]


def compute_each(
    rows: Sequence[Ids], types: Sequence[Ids], forward: Forward, how: Batching
) -> list[Outputs]:
    """Do the same as `compute` for a model with an output per token: (tokens of the row, …) float32
    for each row, without padding. Equal rows share one array.

    forward: to (batch, width, …).
    """
    groups, distinct = _distinct(rows, types)
    results: list[Outputs] = [np.zeros(0, dtype=np.float32)] * len(distinct)
    for places, outputs in _forwarded(rows, types, distinct, forward, how):
        for place, values in zip(places, outputs, strict=True):
            results[place] = values[: len(rows[distinct[place]])].copy()
    return [results[place] for place in groups]


def _distinct(
    rows: Sequence[Ids], types: Sequence[Ids]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return for each row the number of its group of equal rows, and the first row of each
    group."""
    first: dict[bytes, int] = {}
    keys = (row.tobytes() + kinds.tobytes() for row, kinds in zip(rows, types, strict=True))
    groups = np.array([first.setdefault(key, len(first)) for key in keys], dtype=np.intp)
    _, distinct = np.unique(groups, return_index=True)
    return groups, distinct


def _forwarded(
    rows: Sequence[Ids],
    types: Sequence[Ids],
    chosen: npt.NDArray[np.intp],
    forward: Forward,
    how: Batching,
) -> Iterator[tuple[npt.NDArray[np.intp], Outputs]]:
    """Yield for each batch the positions among the chosen rows, and the output of `forward`."""
    lengths = np.array([len(rows[row]) for row in chosen], dtype=np.int64)
    batches = plan_batches(lengths, how.budget, how.rounding, how.limit)
    for places, width in zip(batches.batches, batches.widths, strict=True):
        ids = np.full((len(places), width), how.padding, dtype=np.int64)
        mask, kinds = np.zeros_like(ids), np.zeros_like(ids)
        for line, row in enumerate(chosen[places]):
            size = len(rows[row])
            ids[line, :size], kinds[line, :size], mask[line, :size] = rows[row], types[row], 1
        base.pause()
        yield places, forward(ids, mask, kinds)


# Choice of the fastest exact runtime on this machine: measured once per model, and stored.
# Exact runtimes give the same ranking, so the choice affects time only. The fastest one depends on
# the processor, so it is measured, not assumed.

SECONDS = 0.5
# The full time is used only for a close result, because it occupies every processor core.
_FEWEST_ROUNDS, _ROUNDS = 3, 50
_NEAR = 1.05
# Tokens of a query and of a passage. A runtime that rounds lengths pads them by half of its
# rounding, as it pads texts on average.
_LENGTHS = (8, 120)
PREFERRED = "onnx"
# PyTorch takes seconds and about 600 MB to import: it must be this much faster to be chosen.
_MARGINS = {"torch": 0.7, "openvino": 0.9}
_FILE = "calibration.json"


@dataclass(frozen=True)
class Calibration:
    """Result of a measurement. choice: the runtime to use. seconds: by runtime, the fastest time
    for a query and a passage."""

    choice: str
    seconds: Mapping[str, float]


def kept_calibration(folder: Path) -> Calibration | None:
    """Return the stored calibration for the exported model in `folder`; None if the machine or the
    package versions differ."""
    try:
        stored = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        if stored["machine"] != _calibrated_machine():
            return None
        return Calibration(str(stored["choice"]), dict(stored["seconds"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep_calibration(folder: Path, measured: Calibration) -> None:
    """Store the choice for later runs; if the folder cannot be written, the next run measures
    again."""
    record = {
        "choice": measured.choice,
        "seconds": measured.seconds,
        "machine": _calibrated_machine(),
    }
    partial = folder / f"{uuid.uuid4().hex}.json"
    try:
        partial.write_text(json.dumps(record), encoding="utf-8")
        partial.replace(folder / _FILE)
    except OSError:
        partial.unlink(missing_ok=True)


def calibrate(
    candidates: Mapping[str, Runtime],
    limit: int,
    *,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.perf_counter,
) -> Calibration:
    """Benchmark runtimes alternately (A B A B): 3 rounds or, if the result is close, up to 50
    rounds or `seconds` seconds.

    limit: the longest row that the model reads.
    """
    if len(candidates) == 1:
        return Calibration(next(iter(candidates)), {})
    draw = np.random.default_rng(0)
    rows: list[Ids] = [draw.integers(5, 30, size=min(length, limit)) for length in _LENGTHS]

    def forward(runtime: Runtime) -> None:
        how = Batching(runtime.budget, 0, runtime.rounding, limit)
        for row in rows:
            compute([row], [np.zeros_like(row)], runtime.forward, how)

    best = dict.fromkeys(candidates, math.inf)
    for runtime in candidates.values():
        forward(runtime)
    started = clock()
    for done in range(1, _ROUNDS + 1):
        for name, runtime in candidates.items():
            before = clock()
            forward(runtime)
            best[name] = min(best[name], clock() - before)
        if clock() - started >= seconds or (done >= _FEWEST_ROUNDS and not _near(best)):
            break
    return Calibration(choose(best), best)


def choose(seconds: Mapping[str, float]) -> str:
    """Return the fastest runtime. A runtime other than the preferred one must be faster by its
    margin."""
    limits = _limits(seconds)
    worthy = {name: duration for name, duration in seconds.items() if duration <= limits[name]}
    return min(worthy, key=lambda name: worthy[name])


def _limits(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the time below which each runtime wins."""
    base = seconds.get(PREFERRED, math.inf)
    return {name: base * _MARGINS.get(name, 1.0) for name in seconds}


def _near(seconds: Mapping[str, float]) -> bool:
    """Return whether timing noise could change the choice."""
    return any(
        limit / _NEAR < seconds[name] < limit * _NEAR
        for name, limit in _limits(seconds).items()
        if name != PREFERRED
    )


def _calibrated_machine() -> dict[str, object]:
    packages = versions(sorted({kind.package for kind in KINDS.values()}))
    node = platform.processor() or platform.machine()
    # The flags distinguish processors with the same name in virtual machines.
    model = " ".join(cpu_lines("model name", "flags"))
    processor = hashlib.sha256(f"{node} {model}".encode()).hexdigest()[:16]
    return {"processor": processor, "threads": threads(), **packages}


def cpu_lines(*names: str) -> list[str]:
    """Return the lines of /proc/cpuinfo about the first processors that begin with one of `names`;
    [] on other systems than Linux."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines()[:40] if line.startswith(names)]
