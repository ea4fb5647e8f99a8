"""The weights of a BERT model from an ONNX graph in 8 bits, as float32 under their published names.

The graph is as PyTorch exports it and ONNX Runtime's dynamic quantization writes it: a weight of
the product "/encoder/layer.0/output/dense/MatMul_quant" is w = scale · (q - zero point).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rankdash.core.rerankers.neural import onnx_format

Array = npt.NDArray[Any]

_QUANTIZED, _SCALE, _ZERO = "_quantized", "_scale", "_zero_point"


def read_weights(path: Path) -> dict[str, Array]:
    """Return name → weights, linear layers as (outputs, inputs).

    Raises KeyError or ValueError if the graph is of another form.
    """
    graph = onnx_format.parsed(path.read_bytes()).graph
    values = dict(_values(graph))
    found = {
        name: value
        for name, value in values.items()
        # Biases and norms are not quantized.
        if value.dtype == np.float32 and value.ndim == 1 and name.endswith((".bias", ".weight"))
    }
    for node in graph.node:
        for name in node.input:
            if name.endswith(_QUANTIZED) and name in values:
                own = name.removesuffix(_QUANTIZED)
                zero = values[own + _ZERO].astype(np.float32)
                weights = (values[name].astype(np.float32) - zero) * values[own + _SCALE]
                place = node.name.strip("/").rpartition("/")[0].replace("/", ".")
                linear = node.op_type == "MatMulInteger"
                found[f"{place}.weight"] = np.ascontiguousarray(weights.T if linear else weights)
    return found


def _values(graph: Any) -> Iterator[tuple[str, Array]]:
    """Yield the constants of a graph by their names."""
    for tensor in graph.initializer:
        yield tensor.name, onnx_format.array(tensor)
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value":
                    yield node.output[0], onnx_format.array(attribute.t)
