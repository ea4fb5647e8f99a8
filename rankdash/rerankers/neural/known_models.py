"""Well-known cross-encoders, as `assets/models.toml` lists them: suggestions, and their prompts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from rankdash.shipped import ASSETS

_SHIPPED = ASSETS / "models.toml"


@dataclass(frozen=True)
class KnownModel:
    """One model of the hub.

    languages: two-letter codes, or "multi". parameters: how many weights. max_length: in tokens.
    licence: a note, to be checked on the model's page. purpose: what it is good for.
    query_prompt, document_prompt: what it has to be given around its texts; "" for nothing.
    """

    id: str
    languages: tuple[str, ...]
    parameters: int
    max_length: int
    licence: str
    purpose: str
    query_prompt: str = ""
    document_prompt: str = ""


@cache
def known_models() -> tuple[KnownModel, ...]:
    """All of them, the usual first choice first."""
    told = tomllib.loads(_SHIPPED.read_text(encoding="utf-8"))["model"]
    return tuple(KnownModel(**{**row, "languages": tuple(row["languages"])}) for row in told)


def with_prompts(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with the prompts that the model needs where none are given."""
    known = next((model for model in known_models() if model.id == settings["model"]), None)
    found = dict(settings)
    for name in ("query_prompt", "document_prompt"):
        if known is not None and not found[name]:
            found[name] = getattr(known, name)
    return found
