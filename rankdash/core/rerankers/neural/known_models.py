"""Well-known models, as `assets/models.toml` lists them: suggestions, prompts, and languages."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from rankdash.core.base.errors import Finding
from rankdash.core.base.shipped import ASSETS
from rankdash.core.data.measured import TOO_MANY_UNKNOWN
from rankdash.core.rerankers.neural import packaged

_SHIPPED = ASSETS / "models.toml"
_NOT_LATIN = ("zh", "ja", "ko")
# Strong in many languages: what is suggested where another model does not read the texts.
_FOR_MANY = {False: "BAAI/bge-reranker-v2-m3", True: packaged.MULTILINGUAL}


@dataclass(frozen=True)
class KnownModel:
    """One model of the hub.

    languages: two-letter codes, or "multi". parameters: how many weights. max_length: in tokens.
    purpose: what it is good for. licence: a note, to be checked on the model's page; "" for a
    packaged model, whose licence `packaged` declares.
    query_prompt, document_prompt: what it has to be given around its texts; "" for nothing.
    encoder: whether it reads one text at a time; else it scores pairs.
    """

    id: str
    languages: tuple[str, ...]
    parameters: int
    max_length: int
    purpose: str
    licence: str = ""
    query_prompt: str = ""
    document_prompt: str = ""
    encoder: bool = False

    def reads(self, language: str) -> bool:
        """Whether it was trained for a language, given as `language_of` does. Those in Latin
        letters are not told apart."""
        if language == "latin":
            return any(code not in _NOT_LATIN for code in self.languages)
        return "multi" in self.languages or language in self.languages


@cache
def known_models() -> tuple[KnownModel, ...]:
    """All of them, the usual first choice first."""
    told = tomllib.loads(_SHIPPED.read_text(encoding="utf-8"))["model"]
    return tuple(KnownModel(**{**row, "languages": tuple(row["languages"])}) for row in told)


def fitting(
    model: str, language: str, unknown_share: Callable[[str], float] = lambda model: math.nan
) -> str:
    """Return the model, or a multilingual one of its kind if the model is known not to read the
    language or does not know too many of the tokens.

    unknown_share: of the tokens of the texts, the share in [0, 1] that the tokenizer of a model
        does not know; NaN if that cannot be told.
    """
    name = model.removeprefix("sentence-transformers/")
    known = next((each for each in known_models() if each.id == name), None)
    if known is None or (known.reads(language) and not unknown_share(model) > TOO_MANY_UNKNOWN):
        return model
    return _FOR_MANY[known.encoder]


def misfit(settings: Mapping[str, Any], language: str) -> list[Finding]:
    """A warning where the model of a reranker is known not to read the language of the queries."""
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
            "Choose one that was, such as {better}; else the ranking says nothing about reranking.",
        )
    ]


def with_prompts(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with the prompts that the model needs where none are given."""
    known = next((model for model in known_models() if model.id == settings["model"]), None)
    found = dict(settings)
    for name in ("query_prompt", "document_prompt"):
        if known is not None and not found[name]:
            found[name] = getattr(known, name)
    return found
