"""Rerankers: a registry of kinds, and how to make one. Importing it loads no heavy library."""

from __future__ import annotations

from collections.abc import Mapping

from rankdash.errors import SettingError
from rankdash.rerankers import (
    bi_encoder,
    bm25,
    cross_encoder,
    endpoint,
    llm_listwise,
    llm_pairwise,
    llm_pointwise,
    precomputed,
)
from rankdash.rerankers.base import (
    Call,
    Capabilities,
    Corpus,
    Request,
    Reranker,
    RerankerKind,
    Scored,
)
from rankdash.rerankers.settings import SettingSpec, SettingValue, nearest, parse_settings

__all__ = [
    "Call",
    "Capabilities",
    "Corpus",
    "Request",
    "Reranker",
    "RerankerKind",
    "Scored",
    "SettingSpec",
    "SettingValue",
    "create",
    "get",
    "kinds",
]

_KINDS = {
    kind.name: kind
    for kind in (
        bm25.KIND,
        bi_encoder.KIND,
        cross_encoder.KIND,
        endpoint.KIND,
        llm_pointwise.KIND,
        llm_listwise.KIND,
        llm_pairwise.KIND,
        precomputed.KIND,
    )
}


def kinds() -> list[RerankerKind]:
    """Every kind of reranker, in the order in which a list shows them."""
    return list(_KINDS.values())


def get(name: str) -> RerankerKind:
    """The kind of that name. Raises SettingError naming the nearest where there is none."""
    kind = _KINDS.get(name.strip().lower())
    if kind is None:
        raise SettingError(
            "There is no reranker {name!r}.",
            remedy="Did you mean {nearest!r}? Rerankers: {names}.",
            name=name,
            nearest=nearest(name, list(_KINDS)),
            names=", ".join(_KINDS),
        )
    return kind


def create(name: str, settings: Mapping[str, SettingValue] | None = None) -> Reranker:
    """A reranker of the kind `name`; settings not given have their defaults.

    Values may be texts, as a command line has them. Nothing is loaded yet: `prepare` does that.

    Raises SettingError for an unknown kind or a wrong setting, and UnavailableError for a kind
    that is not made from settings ("precomputed").
    """
    kind = get(name)
    return kind.build(parse_settings(kind.settings, settings or {}))
