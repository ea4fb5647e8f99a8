"""Registry of the kinds of rerankers, and `create`. Importing it loads no heavy library."""

from __future__ import annotations

import difflib
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from rankdash.core.base.errors import Phrase, RankdashError, SettingError, UnavailableError
from rankdash.core.base.rules import SettingSpec, SettingValue, parse_settings
from rankdash.core.rerankers.base import (
    Call,
    Capabilities,
    Configured,
    Corpus,
    Request,
    Reranker,
    RerankerKind,
    Scored,
    first_line,
)
from rankdash.core.rerankers.catalogue import known_models, loaded
from rankdash.core.rerankers.kinds import (
    bi_encoder,
    bm25,
    cascade,
    cross_encoder,
    endpoint,
    late_interaction,
    llm,
    precomputed,
)
from rankdash.core.rerankers.kinds.endpoint import DIALECTS

__all__ = [
    "Call",
    "Capabilities",
    "Configured",
    "Corpus",
    "Request",
    "Reranker",
    "RerankerKind",
    "Scored",
    "SettingSpec",
    "SettingValue",
    "add_plugins",
    "create",
    "get",
    "kinds",
    "plugin_files",
    "problems",
]

_BUILT_IN = (
    bm25.KIND,
    bi_encoder.KIND,
    late_interaction.KIND,
    cross_encoder.KIND,
    endpoint.KIND,
    llm.POINTWISE,
    llm.LISTWISE,
    llm.PAIRWISE,
    precomputed.KIND,
)
# Kinds of runs without a reranker: fusions of other runs, and retrieval from all documents.
_RESERVED = (cascade.NAME, "fusion", "retrieval")
_named_files: list[str] = []


@cache
def _registry() -> tuple[dict[str, RerankerKind], list[RankdashError]]:
    """Return the kinds by name, and the errors of the plugins that were not loaded."""
    reserved = (*(kind.name for kind in _BUILT_IN), *_RESERVED)
    plugins, refused = find_plugins([*files_in_environment(), *_named_files], reserved)
    every = [*_BUILT_IN, *plugins]
    stages = cascade.kind([kind for kind in every if kind is not precomputed.KIND])
    every.insert(_BUILT_IN.index(cross_encoder.KIND) + 1, stages)
    return {kind.name: kind for kind in every}, refused


def add_plugins(files: Sequence[str]) -> None:
    """Add Python files to the plugins. They are run when a kind is next looked up; `problems`
    returns their errors."""
    _named_files.extend(files)
    _registry.cache_clear()


def plugin_files() -> list[str]:
    """Return the absolute paths of the plugin files, for another process to load too."""
    files = [*files_in_environment(), *_named_files]
    return [str(Path(file).expanduser().absolute()) for file in files]


def problems() -> list[RankdashError]:
    """Return the errors of the plugins and of the catalogue that were not loaded."""
    refused = loaded().problem
    return [*_registry()[1], *([] if refused is None else [refused])]


def kinds() -> list[RerankerKind]:
    """Return every kind of reranker, in display order."""
    return list(_registry()[0].values())


def get(name: str) -> RerankerKind:
    """Return the kind with that name.

    Raises SettingError; for the name of a service or a model, its remedy names the kind to use.
    """
    registry = _registry()[0]
    kind = registry.get(name.strip().lower())
    if kind is None:
        raise unknown_kind(name, list(registry))
    return kind


def create(name: str, settings: Mapping[str, SettingValue] | None = None) -> Reranker:
    """Return a reranker of the kind `name`; settings that are not passed have their defaults.

    Values may be strings, as on a command line. Nothing is loaded yet: `prepare` does that.

    Raises SettingError for an unknown kind or an invalid setting, and UnavailableError for a kind
    that is not built from settings ("precomputed").
    """
    kind = get(name)
    return kind.build(parse_settings(kind.settings, settings or {}))


# Plugins: rerankers from installed packages and from files that the administrator lists.
# A package registers one by an entry point of the group `rankdash.rerankers`. A file is listed on
# the command line or in the environment variable RANKDASH_PLUGINS and defines `KIND` (or `KINDS`,
# several) at module level. Both are Python code that is run, so neither ever comes from an upload.
# A broken plugin is reported and skipped; the others work.

PLUGINS_GROUP = "rankdash.rerankers"
PLUGINS_VARIABLE = "RANKDASH_PLUGINS"

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def find_plugins(
    files: Collection[str], taken: Collection[str]
) -> tuple[list[RerankerKind], list[RankdashError]]:
    """Return the kinds of installed packages and of `files`, and the errors of plugins not loaded.

    taken: reserved names, which plugins may not use.
    """
    kinds: dict[str, RerankerKind] = {}
    problems: list[RankdashError] = []
    for source, load in (*_installed(), *_files(files)):
        try:
            for kind in _checked(load()):
                if kind.name in taken or kind.name in kinds:
                    raise _RefusedError(
                        Phrase("the name {name!r} is already in use", name=kind.name)
                    )
                kinds[kind.name] = kind
        except (Exception, SystemExit) as error:  # noqa: BLE001 - plugins may raise anything
            problems.append(
                UnavailableError(
                    "The plugin {source} was not loaded: {reason}.",
                    remedy="Fix the plugin, or start rankdash without it.",
                    source=source,
                    reason=error.args[0]
                    if isinstance(error, _RefusedError)
                    else f"{type(error).__name__}: {first_line(error)}".rstrip("."),
                )
            )
    return list(kinds.values()), problems


class _RefusedError(Exception):
    """Refusal of a plugin; its only argument is the reason, a `Phrase`."""


def files_in_environment() -> list[str]:
    """Return the files listed in RANKDASH_PLUGINS, separated as in PATH."""
    return [part for part in os.environ.get(PLUGINS_VARIABLE, "").split(os.pathsep) if part.strip()]


def _installed() -> Iterator[tuple[str, Callable[[], object]]]:
    for entry in importlib.metadata.entry_points(group=PLUGINS_GROUP):
        yield f"{entry.name} ({entry.value})", entry.load


def _files(files: Collection[str]) -> Iterator[tuple[str, Callable[[], object]]]:
    for file in dict.fromkeys(files):
        yield file, partial(_run, Path(file).expanduser().absolute())


def _run(path: Path) -> object:
    """Run the file and return its KIND or KINDS."""
    name = f"rankdash_plugin_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if not path.is_file():
        raise _RefusedError(Phrase("file not found"))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _RefusedError(Phrase("not a Python file (.py)"))
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up the module that defines them.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    if not hasattr(module, "KINDS") and not hasattr(module, "KIND"):
        raise _RefusedError(Phrase("the file defines neither KIND nor KINDS"))
    return getattr(module, "KINDS", None) or module.KIND


def _checked(provided: object) -> list[RerankerKind]:
    kinds: list[RerankerKind] = []
    for kind in provided if isinstance(provided, (list, tuple)) else [provided]:
        if not isinstance(kind, RerankerKind):
            provided = type(kind).__name__
            raise _RefusedError(Phrase("expected a RerankerKind, not {found}", found=provided))
        if not _NAME.fullmatch(kind.name):
            raise _RefusedError(
                Phrase(
                    "the name {name!r} may contain only lower-case letters, digits and hyphens",
                    name=kind.name,
                )
            )
        optional = [spec for spec in kind.settings if not spec.required]
        parse_settings(optional, {})
        kinds.append(kind)
    return kinds


# The error for an unknown kind: names of services and models are often entered instead.

_LANGUAGE_MODEL = re.compile(
    r"(gpt|chatgpt|o\d|claude|gemini|llama|mistral|deepseek|qwen\d*-max)\b"
)
_LATE_INTERACTION = re.compile(r"colbert", re.I)


def unknown_kind(name: str, known: Sequence[str]) -> SettingError:
    """Return the error for a name that is not a known kind. The remedy names the kind and the
    setting for a service or a model, or else a similar kind if one exists."""
    plain = name.strip().lower()
    parts = plain.split("/")
    params = {"name": name, "names": ", ".join(known)}
    service = next((each for each in DIALECTS if each in re.split(r"[^a-z0-9]+", plain)), None)
    model = _model_kind(plain)
    close = difflib.get_close_matches(plain, known, n=1, cutoff=0.6)
    if len(parts) == 1 and service is not None and "endpoint" in known:
        return SettingError(
            "Unknown reranker {name!r}.",
            remedy="{service} is a service: use the reranker 'endpoint' with dialect={service}.",
            service=service,
            **params,
        )
    if model in known and (len(parts) > 1 or not close):
        return SettingError(
            "Unknown reranker {name!r}.",
            remedy="{name} is a model: use the reranker {kind!r} with model={name}.",
            kind=model,
            **params,
        )
    if close:
        return SettingError(
            "Unknown reranker {name!r}.",
            remedy="Did you mean {nearest!r}? Rerankers: {names}.",
            nearest=close[0],
            **params,
        )
    return SettingError("Unknown reranker {name!r}.", remedy="Rerankers: {names}.", **params)


def _model_kind(name: str) -> str:
    """Return the kind that runs the model of that name; "" if it is not the name of a model."""
    short = name.rpartition("/")[2]
    listed = {each.id.lower().rpartition("/")[2]: each for each in known_models()}
    if short in listed:
        return "bi-encoder" if listed[short].encoder else "cross-encoder"
    if _LATE_INTERACTION.search(name):
        return "late-interaction"
    if _LANGUAGE_MODEL.match(short):
        return "llm-pointwise"
    return "cross-encoder" if "/" in name else ""
