"""The error for a name that is not a kind of reranker: services and models are often taken for
one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from rankdash.core.base.errors import SettingError
from rankdash.core.rerankers.neural.known_models import known_models
from rankdash.core.rerankers.remote.apis import DIALECTS

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
