"""Rerankers that others wrote: installed packages, and files named by whoever starts rankdash.

A package offers one by an entry point of the group `rankdash.rerankers`; a file, named on the
command line or in the environment variable RANKDASH_PLUGINS, by a name `KIND` (or `KINDS`, several)
at its top. Both are Python code that is run, so neither ever comes from an upload. One that is
broken is told and left out; the others work.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rankdash.core.base.errors import Phrase, RankdashError, SettingError, UnavailableError
from rankdash.core.rerankers.base import RerankerKind
from rankdash.core.rerankers.neural.known_models import known_models
from rankdash.core.rerankers.neural.shared import first_line
from rankdash.core.rerankers.remote.apis import DIALECTS
from rankdash.core.rerankers.settings import parse_settings

GROUP = "rankdash.rerankers"
VARIABLE = "RANKDASH_PLUGINS"

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Plugins:
    """The kinds found, and why others are left out."""

    kinds: tuple[RerankerKind, ...] = ()
    problems: tuple[RankdashError, ...] = ()


def find(files: Collection[str], taken: Collection[str]) -> Plugins:
    """The kinds of installed packages and of `files`. taken: names that are not theirs to use."""
    kinds: dict[str, RerankerKind] = {}
    problems: list[RankdashError] = []
    for source, load in (*_installed(), *_files(files)):
        try:
            for kind in _checked(load()):
                if kind.name in taken or kind.name in kinds:
                    raise _RefusedError(Phrase("the name {name!r} is taken", name=kind.name))
                kinds[kind.name] = kind
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is anyone's code
            problems.append(
                UnavailableError(
                    "The plugin {source} is not loaded: {reason}.",
                    remedy="Repair it, or start rankdash without it.",
                    source=source,
                    reason=error.reason if isinstance(error, _RefusedError) else _said(error),
                )
            )
    return Plugins(tuple(kinds.values()), tuple(problems))


class _RefusedError(Exception):
    """What is wrong with a plugin that could be run, or not even that."""

    def __init__(self, reason: Phrase) -> None:
        self.reason = reason
        super().__init__(reason)


def _said(error: BaseException) -> str:
    """What a plugin raised, for whoever wrote it."""
    return f"{type(error).__name__}: {first_line(error)}".rstrip(".")


def files_in_environment() -> list[str]:
    """The files that RANKDASH_PLUGINS names, separated as in PATH."""
    return [part for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part.strip()]


def _installed() -> Iterator[tuple[str, Callable[[], object]]]:
    for entry in importlib.metadata.entry_points(group=GROUP):
        yield f"{entry.name} ({entry.value})", entry.load


def _files(files: Collection[str]) -> Iterator[tuple[str, Callable[[], object]]]:
    for file in dict.fromkeys(files):
        yield file, partial(_run, Path(file).expanduser().absolute())


def _run(path: Path) -> object:
    """What the file defines as KIND or KINDS."""
    name = f"rankdash_plugin_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if not path.is_file():
        raise _RefusedError(Phrase("there is no such file"))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _RefusedError(Phrase("it is no Python file; its name has to end in .py"))
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look for the module that they are defined in.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    if not hasattr(module, "KINDS") and not hasattr(module, "KIND"):
        raise _RefusedError(Phrase("it defines neither KIND nor KINDS"))
    return getattr(module, "KINDS", None) or module.KIND


def _checked(found: object) -> list[RerankerKind]:
    kinds: list[RerankerKind] = []
    for kind in found if isinstance(found, (list, tuple)) else [found]:
        if not isinstance(kind, RerankerKind):
            found = type(kind).__name__
            raise _RefusedError(Phrase("a RerankerKind is needed, not {found}", found=found))
        if not _NAME.fullmatch(kind.name):
            raise _RefusedError(
                Phrase(
                    "the name {name!r} may have small letters, digits and hyphens only",
                    name=kind.name,
                )
            )
        optional = [spec for spec in kind.settings if not spec.required]
        parse_settings(optional, {})
        kinds.append(kind)
    return kinds


# The error for a name that is not a kind of reranker: services and models are often taken for
# one.

_LANGUAGE_MODEL = re.compile(
    r"(gpt|chatgpt|o\d|claude|gemini|llama|mistral|deepseek|qwen\d*-max)\b"
)
_LATE_INTERACTION = re.compile(r"colbert", re.I)


def unknown(name: str, known: Sequence[str]) -> SettingError:
    """Return the error for a name that is none of the known kinds. The remedy names the kind and
    the setting for a service or a model, or else a similar kind if there is one."""
    plain = name.strip().lower()
    parts = plain.split("/")
    given = {"name": name, "names": ", ".join(known)}
    service = next((each for each in DIALECTS if each in re.split(r"[^a-z0-9]+", plain)), None)
    model = _model_kind(plain)
    close = difflib.get_close_matches(plain, known, n=1, cutoff=0.6)
    if len(parts) == 1 and service is not None and "endpoint" in known:
        return SettingError(
            "There is no reranker {name!r}.",
            remedy="It is a service: use the reranker 'endpoint' with dialect={service}.",
            service=service,
            **given,
        )
    if model in known and (len(parts) > 1 or not close):
        return SettingError(
            "There is no reranker {name!r}.",
            remedy="It is a model: use the reranker {kind!r} with model={name}.",
            kind=model,
            **given,
        )
    if close:
        return SettingError(
            "There is no reranker {name!r}.",
            remedy="Did you mean {nearest!r}? Rerankers: {names}.",
            nearest=close[0],
            **given,
        )
    return SettingError("There is no reranker {name!r}.", remedy="Rerankers: {names}.", **given)


def _model_kind(name: str) -> str:
    """The kind that computes a model of that name; "" for what is not the name of a model."""
    short = name.rpartition("/")[2]
    listed = {each.id.lower().rpartition("/")[2]: each for each in known_models()}
    if short in listed:
        return "bi-encoder" if listed[short].encoder else "cross-encoder"
    if _LATE_INTERACTION.search(name):
        return "late-interaction"
    if _LANGUAGE_MODEL.match(short):
        return "llm-pointwise"
    return "cross-encoder" if "/" in name else ""
