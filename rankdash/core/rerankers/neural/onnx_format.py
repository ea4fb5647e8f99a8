"""The part of the ONNX format that a graph of BERT needs, as messages of protobuf.

Source: onnx.proto of ONNX 1.17, its names and numbers of fields. The library onnx takes 30 MB and
half a second to import.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Message → its fields: number, name, type. "*" is a list.
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
# Attribute type → the field that has the value.
_FLOAT, _INT, _INTS = 1, 2, 7
_EXTERNAL = 1
# Number of a type of values → NumPy's name of it.
_TYPES = {1: "<f4", 2: "u1", 3: "i1", 6: "<i4", 7: "<i8"}
_NUMBERS = {np.dtype(name): number for number, name in _TYPES.items()}


@cache
def _classes() -> dict[str, Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="graph.proto", package="rankdash")
    kinds = descriptor_pb2.FieldDescriptorProto
    for message, fields in _MESSAGES.items():
        made = file.message_type.add(name=message)
        for number, name, kind in (each.split() for each in fields.split(", ")):
            many, plain = kind.startswith("*"), kind.lstrip("*")
            field = made.field.add(name=name, number=int(number))
            field.label = kinds.LABEL_REPEATED if many else kinds.LABEL_OPTIONAL
            if plain in _MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".rankdash.{plain}"
            else:
                field.type = kinds.Type.Value(f"TYPE_{plain.upper()}")
    found = descriptor_pool.DescriptorPool().AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(found.message_types_by_name[name])
        for name in _MESSAGES
    }


def parsed(content: bytes) -> Any:
    """Return a model. Raises ValueError if the bytes are none."""
    from google.protobuf.message import DecodeError

    try:
        return _classes()["Model"].FromString(content)
    except DecodeError as error:
        raise ValueError(str(error)) from error


def array(tensor: Any) -> Array:
    """Return the values of a tensor that has them in itself. Raises KeyError for other types."""
    kind = np.dtype(_TYPES[tensor.data_type])
    if tensor.raw_data:
        values = np.frombuffer(tensor.raw_data, kind)
    else:
        lists = (tensor.float_data, tensor.int32_data, tensor.int64_data)
        values = np.array(next((each for each in lists if len(each)), []), kind)
    return values.reshape(tuple(tensor.dims))


def tensor(name: str, value: Array, place: tuple[str, int] | None = None) -> Any:
    """Return a tensor with its values in itself, or in a file. place: the name of the file, and
    where in it they begin."""
    made = _classes()["Tensor"](name=name, dims=value.shape, data_type=_NUMBERS[value.dtype])
    if place is None:
        made.raw_data = value.tobytes()
        return made
    made.data_location = _EXTERNAL
    told = {"location": place[0], "offset": place[1], "length": value.nbytes}
    for key, each in told.items():
        made.external_data.add(key=key, value=str(each))
    return made


def node(kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> Any:
    """Return an operation. attributes: a float, an int, or a sequence of ints each."""
    made = _classes()["Node"](op_type=kind, input=inputs, output=[output])
    for name, value in attributes.items():
        if isinstance(value, float):
            made.attribute.add(name=name, type=_FLOAT, f=value)
        elif isinstance(value, int):
            made.attribute.add(name=name, type=_INT, i=value)
        else:
            made.attribute.add(name=name, type=_INTS, ints=value)
    return made


def model(
    nodes: Sequence[Any], inputs: Sequence[str], output: str, tensors: Sequence[Any], opset: int
) -> bytes:
    """Return the bytes of a model of int64 inputs, each (batch, width), and a float32 output."""
    # The version of its time, which older runtimes read too.
    made = _classes()["Model"](ir_version=8)
    made.opset_import.add(domain="", version=opset)
    made.graph.name = "bert"
    made.graph.node.extend(nodes)
    made.graph.initializer.extend(tensors)
    for name in inputs:
        value = made.graph.input.add(name=name).type.tensor_type
        value.elem_type = _NUMBERS[np.dtype(np.int64)]
        for dimension in ("batch", "width"):
            value.shape.dim.add(dim_param=dimension)
    result = made.graph.output.add(name=output).type.tensor_type
    result.elem_type = _NUMBERS[np.dtype(np.float32)]
    content: bytes = made.SerializeToString()
    return content
