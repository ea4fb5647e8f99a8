"""Rerankers: a registry of kinds, and how to make one. Importing it loads no heavy library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rankdash.core.base.errors import RankdashError
from rankdash.core.rerankers import plugins
from rankdash.core.rerankers.base import (
    Call,
    Capabilities,
    Configured,
    Corpus,
    Request,
    Reranker,
    RerankerKind,
    Scored,
)
from rankdash.core.rerankers.kinds import (
    bi_encoder,
    bm25,
    cascade,
    cross_encoder,
    endpoint,
    late_interaction,
    llm_listwise,
    llm_pairwise,
    llm_pointwise,
    precomputed,
)
from rankdash.core.rerankers.plugins import unknown
from rankdash.core.rerankers.settings import SettingSpec, SettingValue, parse_settings

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
    llm_pointwise.KIND,
    llm_listwise.KIND,
    llm_pairwise.KIND,
    precomputed.KIND,
)
# "fusion" is what a run made of runs is called.
_RESERVED = (cascade.NAME, "fusion")
_named_files: list[str] = []


@dataclass(frozen=True)
class _Registry:
    kinds: Mapping[str, RerankerKind]
    problems: Sequence[RankdashError]


@cache
def _registry() -> _Registry:
    taken = (*(kind.name for kind in _BUILT_IN), *_RESERVED)
    found = plugins.find([*plugins.files_in_environment(), *_named_files], taken)
    every = [*_BUILT_IN, *found.kinds]
    stages = cascade.kind([kind for kind in every if kind is not precomputed.KIND])
    every.insert(_BUILT_IN.index(cross_encoder.KIND) + 1, stages)
    return _Registry({kind.name: kind for kind in every}, found.problems)


def add_plugins(files: Sequence[str]) -> None:
    """Take these Python files as plugins too, from now on. They are run when a kind is asked for;
    why one is left out is in `problems`."""
    _named_files.extend(files)
    _registry.cache_clear()


def plugin_files() -> list[str]:
    """The files that plugins are taken from, absolute, for another process to take them too."""
    files = [*plugins.files_in_environment(), *_named_files]
    return [str(Path(file).expanduser().absolute()) for file in files]


def problems() -> list[RankdashError]:
    """Why plugins are left out; empty where all that are named work."""
    return list(_registry().problems)


def kinds() -> list[RerankerKind]:
    """Every kind of reranker, in the order in which a list shows them."""
    return list(_registry().kinds.values())


def get(name: str) -> RerankerKind:
    """The kind of that name. Raises SettingError, with the kind for a service or a model."""
    known = _registry().kinds
    kind = known.get(name.strip().lower())
    if kind is None:
        raise unknown(name, list(known))
    return kind


def create(name: str, settings: Mapping[str, SettingValue] | None = None) -> Reranker:
    """A reranker of the kind `name`; settings not given have their defaults.

    Values may be texts, as a command line has them. Nothing is loaded yet: `prepare` does that.

    Raises SettingError for an unknown kind or a wrong setting, and UnavailableError for a kind
    that is not made from settings ("precomputed").
    """
    kind = get(name)
    return kind.build(parse_settings(kind.settings, settings or {}))
