"""Locations of the files of a neural model: a package, a local folder, or the Hugging Face hub.

Only safetensors weights are read, and code that comes with a model is never run. An unreachable hub
is reported within seconds.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from rankdash.core.base.allowed import hub_token, is_shared
from rankdash.core.base.errors import UnavailableError
from rankdash.core.base.files import FULL
from rankdash.core.rerankers.neural import cache, packaged

PACKAGED = packaged.default_encoder()
"""Default model of the rerankers that embed texts."""
_LIBRARIES = ("onnxruntime", "tokenizers", "safetensors")
"""Packages that run a model. Models other than the published BERT also need PyTorch: the extra
`models`."""
_PATIENCE_SECONDS = 6.0
_READ_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]
_OTHER_RUNTIMES = ["onnx/*", "openvino/*"]
_PICKLES = {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack"}
_TOKENIZERS = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "sentencepiece.bpe.model",
    "spiece.model",
    "spm.model",
    "tokenizer.model",
)
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?", re.ASCII)
_ASK = (
    "Choose another model, or ask the server administrator to allow the token of the hub: "
    "--allow-key HF_TOKEN."
)

T = TypeVar("T")


def lacking_packages() -> UnavailableError | None:
    """Return the error for missing packages that models need, or None. Imports nothing."""
    missing = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    return without(missing) if missing else None


def require_packages() -> None:
    """Raise UnavailableError if packages that models need are missing."""
    lacking = lacking_packages()
    if lacking is not None:
        raise lacking


def without(packages: Iterable[str]) -> UnavailableError:
    """Return the error for missing packages."""
    return UnavailableError(
        "Models need packages that are not installed: {packages}.",
        remedy='Install them: pip install "rankdash[models]". BM25 and rerank services work '
        "without them.",
        packages=", ".join(packages),
    )


def locate(model: str, organization: str) -> Path:
    """Return the folder with a model's complete files; download a hub model once.

    model: a local folder, a hub name, or "all-MiniLM-L6-v2", which comes as a Python package.
    organization: the default organization for a hub name without "/".

    Raises UnavailableError, with a remedy, if packages are missing, or the files are unavailable,
    incomplete, or would have to be unpickled.
    """
    require_packages()
    folder = local(model)
    if folder is not None:
        return folder
    name = model if "/" in model else f"{organization}/{model}"
    return _cached(name) or _download(name)


def local(model: str) -> Path | None:
    """Return the complete folder that `model` names, or None for the name of a hub model. Opens a
    few small files and sends no request.

    Raises UnavailableError, with a remedy, if it is neither, or the folder contains no model.
    Visitors of a shared server do not learn which of its folders exist.
    """
    packaged_model = packaged.in_use(model)
    if packaged_model is not None:
        return packaged.folder_of(packaged_model)
    folder = Path(model)
    # expanduser fails for an unknown user.
    with suppress(RuntimeError):
        folder = folder.expanduser()
    visitor = is_shared()
    if _is_folder(folder):
        try:
            check_folder(folder)
        except UnavailableError:
            if not visitor:
                raise
        else:
            return folder
    if model[:1] in "/.~" or "\\" in model or model.count("/") > 1 or folder.is_absolute():
        if visitor:
            raise UnavailableError(
                "{model!r} is not a folder with a complete model.",
                remedy="Enter a name of the form organization/model, or the folder of a model on "
                "the server.",
                model=model,
            )
        raise UnavailableError(
            "The folder {folder} does not exist.",
            remedy="Enter an existing folder, or a name of the form organization/model.",
            folder=str(folder),
        )
    if not _HUB_NAME.fullmatch(model):
        raise _no_name(model)
    return None


def check_folder(folder: Path) -> None:
    """Raise UnavailableError, with the file name, if a model cannot be loaded from this folder."""
    modules = _modules(folder)
    first = folder / modules[0]["path"] if modules else folder
    tokens_only = bool(modules) and modules[0]["type"].endswith("StaticEmbedding")
    if not tokens_only and not (first / "config.json").is_file():
        raise _lacks(folder, first / "config.json")
    _check_weights(folder, first)
    if not any((first / name).is_file() for name in _TOKENIZERS):
        raise _lacks(folder, first / "tokenizer.json")
    for module in modules[1:]:
        names = [path.name for path in (folder / module["path"]).glob("*")]
        _refuse_pickles(str(folder), names)


def architecture(folder: Path) -> str:
    """Return the first architecture in config.json, such as BertForSequenceClassification."""
    config = _json(folder / "config.json") if (folder / "config.json").is_file() else {}
    names = config.get("architectures") or [""]
    return str(names[0])


def activation(folder: Path) -> str:
    """Return the function that a cross-encoder's authors apply to a score for display, such as
    Sigmoid."""
    config = _json(folder / "config.json")
    section = config.get("sentence_transformers")
    named = section.get("activation_fn") if isinstance(section, dict) else None
    named = named or config.get("sbert_ce_default_activation_function") or "Sigmoid"
    return str(named).rpartition(".")[2]


def weight_names(folder: Path) -> set[str]:
    """Return the names of the tensors in the safetensors files of a folder."""
    from safetensors import safe_open

    names: set[str] = set()
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="np") as weights:
            names.update(weights.keys())
    return names


def digest(folder: Path) -> str:
    """Return a hash of every file that affects the output of a model. A changed converted copy of
    packaged weights is converted again.

    Raises UnavailableError if packaged weights have an unknown hash.
    """
    hashes = cache.hashes_of(folder)
    if packaged.mend(folder, hashes):
        hashes = cache.hashes_of(folder)
    sha = hashlib.sha256()
    kinds = {".json", ".txt", ".model", ".safetensors"}
    for name in sorted(name for name in hashes if PurePosixPath(name).suffix in kinds):
        sha.update(name.encode())
        sha.update(bytes.fromhex(hashes[name]))
    return sha.hexdigest()


def cached_tokenizer(model: str) -> Path | None:
    """Return the path of tokenizer.json of a model in a local folder or the Hugging Face cache, or
    None. Sends no request."""
    if is_shared() or not _HUB_NAME.fullmatch(model):
        folder = Path(model)
        file = folder / "tokenizer.json"
        return file if not is_shared() and _is_folder(folder) and file.is_file() else None
    import huggingface_hub as hub

    path = hub.try_to_load_from_cache(model, "tokenizer.json")
    return Path(path) if isinstance(path, str) else None


def _is_folder(folder: Path) -> bool:
    """Return whether a folder exists and can be read; False for names that are too long."""
    try:
        return folder.is_dir()
    except OSError:
        return False


def _modules(folder: Path) -> list[dict[str, str]]:
    path = folder / "modules.json"
    if not path.is_file():
        return []
    modules = [
        {"type": str(entry.get("type", "")), "path": str(entry.get("path", ""))}
        for entry in _json(path)
    ]
    foreign = [
        entry["type"] for entry in modules if not entry["type"].startswith("sentence_transformers.")
    ]
    if foreign:
        raise UnavailableError(
            "The model in {folder} needs its own code ({code}), which rankdash does not run.",
            remedy="Choose a model that works without trust_remote_code.",
            folder=str(folder),
            code=foreign[0],
        )
    return modules


def _check_weights(folder: Path, first: Path) -> None:
    index = first / "model.safetensors.index.json"
    if index.is_file():
        for shard in sorted(set(_json(index).get("weight_map", {}).values())):
            if not (first / shard).is_file():
                raise _lacks(folder, first / shard)
    elif not (first / "model.safetensors").is_file():
        _refuse_pickles(str(folder), [path.name for path in first.glob("*")])
        raise _lacks(folder, first / "model.safetensors")


def _refuse_pickles(model: str, names: Iterable[str]) -> None:
    paths = [PurePosixPath(name) for name in names]
    pickles = [path.name for path in paths if path.suffix in _PICKLES]
    if pickles and not any(path.suffix == ".safetensors" for path in paths):
        raise UnavailableError(
            "The weights of {model} are only available as {file}, a format that can run code when "
            "it is opened; rankdash reads safetensors only.",
            remedy="Choose a model with safetensors weights, or convert it where you trust it: "
            "load it with transformers and call save_pretrained().",
            model=model,
            file=pickles[0],
        )


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> UnavailableError:
    """Return the error for an unreadable file of a model. error: the cause."""
    return UnavailableError(
        "The file {file} of the model cannot be read: {reason}",
        remedy="Download the model again.",
        file=str(path),
        reason=str(error),
    )


def _lacks(folder: Path, file: Path) -> UnavailableError:
    return UnavailableError(
        "The folder {folder} does not contain a complete model: {file} is missing.",
        remedy="Copy the whole folder of the model, or save it again with save_pretrained().",
        folder=str(folder),
        file=file.relative_to(folder).as_posix(),
    )


def _no_name(model: str) -> UnavailableError:
    return UnavailableError(
        "{model!r} is neither a folder nor a name of the form organization/model.", model=model
    )


def _cached(name: str) -> Path | None:
    """Return the model in the Hugging Face cache, or None if it is missing or incomplete."""
    import huggingface_hub as hub

    try:
        folder = Path(hub.snapshot_download(name, local_files_only=True))
        check_folder(folder)
    except hub.errors.HFValidationError as error:
        raise _no_name(name) from error
    except (hub.errors.LocalEntryNotFoundError, UnavailableError):
        return None
    return folder


def _download(name: str) -> Path:
    import huggingface_hub as hub

    token = hub_token()
    try:
        info = _within(
            _PATIENCE_SECONDS,
            lambda: hub.HfApi(token=token).model_info(name, timeout=_PATIENCE_SECONDS - 1),
        )
    except hub.errors.GatedRepoError as error:
        raise UnavailableError(
            "The model {model!r} is available only to users who accepted its terms on the hub.",
            remedy="Accept the terms on the model's page and set HF_TOKEN, or use a local folder."
            if token is None
            else _ASK,
            model=name,
        ) from error
    except hub.errors.RepositoryNotFoundError as error:
        raise UnavailableError(
            "The hub has no model {model!r}, or it is private.",
            remedy="Check the name; for a private model set HF_TOKEN." if token is None else _ASK,
            model=name,
        ) from error
    except Exception as error:
        # The hub's HTTP client, and its errors for "no answer", differ between releases.
        raise UnavailableError(
            "The model {model!r} is not on this machine, and the hub at {hub} cannot be reached "
            "({reason}).",
            remedy="Set 'model' to the folder of a downloaded model, or copy the model into the "
            "Hugging Face cache ({cache}; HF_HOME moves it), or check the connection. BM25 "
            "and the packaged bi-encoders need no network: {english} for English, {other} "
            "for other languages.",
            model=name,
            hub=hub.constants.ENDPOINT,
            reason=str(error) or type(error).__name__,
            cache=hub.constants.HF_HUB_CACHE,
            english=PACKAGED,
            other=packaged.MULTILINGUAL,
        ) from error
    _refuse_pickles(name, [file.rfilename for file in info.siblings or []])
    try:
        folder = hub.snapshot_download(
            name, allow_patterns=_READ_FILES, ignore_patterns=_OTHER_RUNTIMES, token=token
        )
    except Exception as error:
        raise UnavailableError(
            "The download of the model {model!r} stopped: {reason}.",
            remedy="Free space on the disk, or set HF_HOME to a folder on another disk. Then "
            "start the download again: it resumes from the downloaded parts."
            if getattr(error, "errno", None) in FULL
            else "Start the download again: it resumes from the downloaded parts.",
            model=name,
            reason=(str(error) or type(error).__name__).rstrip("."),
        ) from error
    check_folder(Path(folder))
    return Path(folder)


def _within(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of `call`, or raise TimeoutError: looking up a host name has no time limit
    itself."""
    results: list[T] = []
    errors: list[Exception] = []

    def work() -> None:
        try:
            results.append(call())
        except Exception as error:  # noqa: BLE001  raised again in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return results[0]
