"""BERT as an ONNX graph, built from a model's files without PyTorch, whose import takes longer than
scoring a small set.

Models that differ from the published BERT in the name or shape of any tensor use PyTorch's
exporter. Sources: Devlin et al. 2019, BERT; for the pooling, Reimers and Gurevych 2019,
Sentence-BERT.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from rankdash.core.rerankers.neural import formats
from rankdash.core.rerankers.neural.export import (
    INPUTS,
    OPSET,
    ModelCard,
    Purpose,
    prompts_of,
    weights_of,
)

Array = npt.NDArray[Any]

# No published BERT is larger.
_MOST_BYTES = 1_800_000_000
# Larger tensors are stored in the file of weights, each at the start of a memory page.
_LARGE_BYTES, _PAGE_BYTES = 1024, 4096
# Keys of config.json with their values in the published BERT; missing keys have these values.
_AS_PUBLISHED = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "quantization_config": None,
    "auto_map": None,
}
_NORMALIZER = {"type": "BertNormalizer", "clean_text": True}
_HEAD = ("pooler.dense", "classifier")
_TYPES = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True)
class BertGraph:
    """BERT model read from its folder.

    tokenizer: of the library tokenizers. tensors: name → values, without the prefix "bert.".
    pooling: "mean" or "cls" for the vector of a text; normalized: whether vectors have length 1.
    """

    purpose: Purpose
    card: ModelCard
    tokenizer: Any
    heads: int
    epsilon: float
    tensors: Mapping[str, Array]
    pooling: str = ""
    normalized: bool = False

    @classmethod
    def read(cls, purpose: Purpose, folder: Path) -> BertGraph | None:
        """Return the model in a folder; None if it differs from the published BERT, or if a file is
        missing or broken (PyTorch then reports the error)."""
        from safetensors import SafetensorError

        try:
            return _read(purpose, folder)
        except (SafetensorError, OSError, ValueError, TypeError, LookupError, AttributeError):
            return None

    def write(self, path: Path) -> float:
        """Write a graph from token ids, mask and token types, each (batch, width) int64, to
        "output", float32: (batch, 1), (batch, hidden) or (batch, width, hidden). Its weights go to
        the file `weights_of(path)`, which runtimes map into memory without parsing or copying.
        Return NaN, because nothing is compared with PyTorch."""
        build = _Build(self.tensors)
        tokens = self._encoded(build)
        if self.purpose == "pair":
            tokens = self._score(build, tokens)
        elif self.purpose == "text":
            tokens = self._vector(build, tokens)
        build.node("Identity", tokens, name="output")
        with weights_of(path).open("wb") as weights:
            path.write_bytes(build.model(weights))
        return math.nan

    def _encoded(self, build: _Build) -> str:
        """Add the embeddings and the layers above them; if only the first token is read, the last
        layer computes only that token."""
        place = "embeddings."
        words = build.node("Gather", build.tensor(f"{place}word_embeddings.weight"), "input_ids")
        kinds = build.node(
            "Gather", build.tensor(f"{place}token_type_embeddings.weight"), "token_type_ids"
        )
        width = build.node("Shape", "input_ids", start=1)
        positions = build.node(
            "Slice",
            build.tensor(f"{place}position_embeddings.weight"),
            build.ints(0),
            width,
            build.ints(0),
        )
        summed = build.node("Add", build.node("Add", words, kinds), positions)
        tokens = build.normed(summed, f"{place}LayerNorm", self.epsilon)
        floats = build.node("Cast", "attention_mask", to=build.FLOAT)
        absent = build.node("Sub", build.number(1.0), floats)
        far = build.node("Mul", absent, build.number(float(np.finfo(np.float32).min)))
        mask = build.node("Unsqueeze", far, build.ints(1, 2))
        first_only = self.purpose == "pair" or (self.purpose == "text" and self.pooling == "cls")
        layers = sum(name.endswith("intermediate.dense.bias") for name in self.tensors)
        for layer in range(layers):
            asking = tokens
            if first_only and layer == layers - 1:
                asking = build.node("Slice", tokens, build.ints(0), build.ints(1), build.ints(1))
            tokens = self._layer(build, asking, tokens, mask, f"encoder.layer.{layer}.")
        return tokens

    def _layer(self, build: _Build, asking: str, tokens: str, mask: str, place: str) -> str:
        """Add a layer; return its outputs for the tokens `asking`, which attend to all tokens."""
        split = build.ints(0, 0, self.heads, -1)

        def of_heads(name: str, source: str, *order: int) -> str:
            linear = build.linear(source, f"{place}attention.self.{name}")
            return build.node("Transpose", build.node("Reshape", linear, split), perm=order)

        width = self.tensors[f"{place}attention.self.query.weight"].shape[0] // self.heads
        queries, keys = of_heads("query", asking, 0, 2, 1, 3), of_heads("key", tokens, 0, 2, 3, 1)
        scores = build.node(
            "Div", build.node("MatMul", queries, keys), build.number(math.sqrt(width))
        )
        weights = build.node("Softmax", build.node("Add", scores, mask), axis=-1)
        mixed = build.node("MatMul", weights, of_heads("value", tokens, 0, 2, 1, 3))
        joined = build.node(
            "Reshape", build.node("Transpose", mixed, perm=(0, 2, 1, 3)), build.ints(0, 0, -1)
        )
        output = build.linear(joined, f"{place}attention.output.dense")
        tokens = build.normed(
            build.node("Add", output, asking), f"{place}attention.output.LayerNorm", self.epsilon
        )
        wide = build.gelu(build.linear(tokens, f"{place}intermediate.dense"))
        narrow = build.linear(wide, f"{place}output.dense")
        return build.normed(
            build.node("Add", narrow, tokens), f"{place}output.LayerNorm", self.epsilon
        )

    def _score(self, build: _Build, tokens: str) -> str:
        first = build.node("Gather", tokens, build.scalar(0), axis=1)
        return build.linear(build.node("Tanh", build.linear(first, _HEAD[0])), _HEAD[1])

    def _vector(self, build: _Build, tokens: str) -> str:
        if self.pooling == "cls":
            vector = build.node("Gather", tokens, build.scalar(0), axis=1)
        else:
            floats = build.node("Cast", "attention_mask", to=build.FLOAT)
            mask = build.node("Unsqueeze", floats, build.ints(2))
            total = build.node(
                "ReduceSum", build.node("Mul", tokens, mask), build.ints(1), keepdims=0
            )
            count = build.node("ReduceSum", mask, build.ints(1), keepdims=0)
            vector = build.node("Div", total, build.node("Max", count, build.number(1e-9)))
        if not self.normalized:
            return vector
        length = build.node("ReduceL2", vector, axes=(1,), keepdims=1)
        return build.node("Div", vector, build.node("Max", length, build.number(1e-12)))


class _Build:
    """Nodes of a graph under construction; each method adds some and returns the name of their
    output."""

    FLOAT = 1  # TensorProto.FLOAT

    def __init__(self, tensors: Mapping[str, Array]) -> None:
        self._tensors = tensors
        self._nodes: list[Any] = []
        self._values: dict[str, Array] = {}

    def node(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        name = name or f"{kind.lower()}.{len(self._nodes)}"
        self._nodes.append(formats.node(kind, inputs, name, **attributes))
        return name

    def tensor(self, name: str, *, turned: bool = False) -> str:
        self._values[name] = self._tensors[name].T if turned else self._tensors[name]
        return name

    def number(self, value: float) -> str:
        return self._constant(np.float32(value))

    def scalar(self, value: int) -> str:
        return self._constant(np.int64(value))

    def ints(self, *values: int) -> str:
        return self._constant(np.array(values, dtype=np.int64))

    def _constant(self, value: npt.ArrayLike) -> str:
        name = f"constant.{len(self._values)}"
        self._values[name] = np.asarray(value)
        return name

    def linear(self, source: str, place: str) -> str:
        product = self.node("MatMul", source, self.tensor(f"{place}.weight", turned=True))
        return self.node("Add", product, self.tensor(f"{place}.bias"))

    def normed(self, source: str, place: str, epsilon: float) -> str:
        scale, bias = self.tensor(f"{place}.weight"), self.tensor(f"{place}.bias")
        return self.node("LayerNormalization", source, scale, bias, axis=-1, epsilon=epsilon)

    def gelu(self, source: str) -> str:
        inside = self.node("Erf", self.node("Div", source, self.number(math.sqrt(2.0))))
        sized = self.node("Mul", source, self.node("Add", inside, self.number(1.0)))
        return self.node("Mul", sized, self.number(0.5))

    def model(self, weights: BinaryIO) -> bytes:
        stored = [
            _stored(name, np.asarray(value, order="C"), weights)
            for name, value in self._values.items()
        ]
        return formats.model(self._nodes, INPUTS, "output", stored, OPSET)


def _stored(name: str, value: Array, weights: BinaryIO) -> Any:
    """Return a tensor of the graph; append the values of a large one to the file of weights."""
    if value.nbytes < _LARGE_BYTES:
        return formats.tensor(name, value)
    weights.write(bytes(-weights.tell() % _PAGE_BYTES))
    tensor = formats.tensor(name, value, (Path(weights.name).name, weights.tell()))
    weights.write(value.data)
    return tensor


def _read(purpose: Purpose, folder: Path) -> BertGraph | None:
    config = _json(folder / "config.json")
    odd = [name for name, usual in _AS_PUBLISHED.items() if config.get(name, usual) != usual]
    if config["model_type"] != "bert" or odd:
        return None
    sentences = _sentences(folder)
    if (sentences is None) is not (purpose == "pair"):
        return None
    pooling, normalized, longest = sentences or ("", False, None)
    tokenizer, declared = _tokenizer(purpose, folder)
    positions = int(config["max_position_embeddings"])
    tensors = _tensors(folder, purpose, config)
    if tensors is None:
        return None
    sentence_config = _json(folder / "config_sentence_transformers.json", {})
    named = _json(folder / "tokenizer_config.json")
    card = ModelCard(
        inputs=INPUTS,
        padding=int(tokenizer.token_to_id(named.get("pad_token", "[PAD]"))),
        declared=longest or min(declared, positions),
        positions=positions,
        prompts=prompts_of(
            sentence_config.get("prompts"), sentence_config.get("default_prompt_name")
        ),
    )
    heads, epsilon = int(config["num_attention_heads"]), float(config["layer_norm_eps"])
    return BertGraph(purpose, card, tokenizer, heads, epsilon, tensors, pooling, normalized)


def _sentences(folder: Path) -> tuple[str, bool, int | None] | None:
    """Return the pooling, whether vectors have length 1, and the longest input of a model of
    sentence-transformers; None for another model. Raises ValueError for unusual modules."""
    modules = _json(folder / "modules.json", None)
    if modules is None:
        return None
    types = tuple(each["type"].rpartition(".")[2] for each in modules)
    first = _json(folder / "sentence_bert_config.json", {})
    usual = set(first) <= {"max_seq_length", "do_lower_case"} and not first.get("do_lower_case")
    if types not in (_TYPES[:2], _TYPES) or modules[0]["path"] or not usual:
        raise ValueError
    how = dict(_json(folder / modules[1]["path"] / "config.json"))
    for name in ("word_embedding_dimension", "embedding_dimension"):
        how.pop(name, None)
    if not how.pop("include_prompt", True):
        raise ValueError
    named = how.pop("pooling_mode", None)
    on = [named] if named else [name for name, enabled in how.items() if enabled]
    pooling = {"mean": "mean", "cls": "cls"} | {
        "pooling_mode_mean_tokens": "mean",
        "pooling_mode_cls_token": "cls",
    }
    (only,) = on
    return pooling[only], types == _TYPES, first.get("max_seq_length")


def _tokenizer(purpose: Purpose, folder: Path) -> tuple[Any, int]:
    """Return the tokenizer and its declared longest input. Raises ValueError if it is neither
    BERT's nor fully described by its file, or if its two files disagree."""
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    config, definition = _json(folder / "tokenizer_config.json"), _json(path)
    # The file describes everything except the token types of pairs.
    own_class = config["tokenizer_class"] == "PreTrainedTokenizerFast" and purpose != "pair"
    normalizer = _NORMALIZER | {
        "handle_chinese_chars": config.get("tokenize_chinese_chars", True),
        "strip_accents": config.get("strip_accents"),
        "lowercase": config.get("do_lower_case", True),
    }
    usual = own_class or (
        config["tokenizer_class"].removesuffix("Fast") == "BertTokenizer"
        and "model_input_names" not in config
        and config.get("pad_token", "[PAD]") == "[PAD]"
        and definition["normalizer"] == normalizer
        and definition["pre_tokenizer"] == {"type": "BertPreTokenizer"}
        and definition["model"]["type"] == "WordPiece"
    )
    if not usual:
        raise ValueError
    tokenizer = Tokenizer.from_file(str(path))
    # Files may contain truncation and padding to a fixed length.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, int(config["model_max_length"])


def _tensors(folder: Path, purpose: Purpose, config: Mapping[str, Any]) -> dict[str, Array] | None:
    """Return the tensors of the graph; None if the files contain others, or other shapes."""
    from safetensors import safe_open

    (path,) = folder.glob("*.safetensors")
    if path.stat().st_size > _MOST_BYTES:
        return None
    expected = _shapes(purpose, config)
    tensors: dict[str, Array] = {}
    with safe_open(path, framework="np") as weights:
        names = list(weights.keys())
        prefix = "bert." if any(name.startswith("bert.") for name in names) else ""
        for name in names:
            short = name.removeprefix(prefix)
            if short in expected:
                tensors[short] = np.asarray(weights.get_tensor(name), dtype=np.float32)
            elif not short.startswith(("pooler.", "cls.", "embeddings.position_ids")):
                return None
    shapes = {name: each.shape for name, each in tensors.items()}
    return tensors if shapes == expected else None


def _shapes(purpose: Purpose, config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    hidden, inner = int(config["hidden_size"]), int(config["intermediate_size"])
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (int(config["vocab_size"]), hidden),
        "embeddings.position_embeddings.weight": (int(config["max_position_embeddings"]), hidden),
        "embeddings.token_type_embeddings.weight": (int(config["type_vocab_size"]), hidden),
    }

    def linear(place: str, inputs: int, outputs: int) -> None:
        shapes.update({f"{place}.weight": (outputs, inputs), f"{place}.bias": (outputs,)})

    def norm(place: str) -> None:
        shapes.update({f"{place}.weight": (hidden,), f"{place}.bias": (hidden,)})

    norm("embeddings.LayerNorm")
    for layer in range(int(config["num_hidden_layers"])):
        place = f"encoder.layer.{layer}."
        for name in ("query", "key", "value"):
            linear(f"{place}attention.self.{name}", hidden, hidden)
        linear(f"{place}attention.output.dense", hidden, hidden)
        norm(f"{place}attention.output.LayerNorm")
        linear(f"{place}intermediate.dense", hidden, inner)
        linear(f"{place}output.dense", inner, hidden)
        norm(f"{place}output.LayerNorm")
    if purpose == "pair":
        linear(_HEAD[0], hidden, hidden)
        linear(_HEAD[1], hidden, 1)
    return shapes


_REQUIRED = object()


def _json(path: Path, missing: Any = _REQUIRED) -> Any:
    if missing is not _REQUIRED and not path.is_file():
        return missing
    return json.loads(path.read_text(encoding="utf-8"))
