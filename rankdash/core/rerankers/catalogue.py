"""Known models and services: languages, licence, size, and how long they exist.

They are read from `assets/models.toml`, or from a file in the variable RANKDASH_CATALOGUE.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from rankdash.core.base.errors import DataError, Phrase, RankdashError, UnavailableError
from rankdash.core.base.files import from_json_or_toml, guarded, text_of
from rankdash.core.base.shipped import ASSETS

VARIABLE = "RANKDASH_CATALOGUE"
SHIPPED = ASSETS / "models.toml"
MANY = "multi"
"""The languages of a model that reads about a hundred."""

Status = Literal["", "current", "deprecated", "ended"]
Needs = Literal["", "code", "modules"]
"""Requirement of a model that rankdash does not meet: code from its page, or the modules of a model
that is not a sequence classifier."""

_NOT_LATIN = ("zh", "ja", "ko")
_LONGEST_TEXT = 2_000
_MOST_ENTRIES = 500
_REMEDY = "Use TOML with [[model]] and [[service]] entries, as in assets/models.toml."


@dataclass(frozen=True, kw_only=True)
class Known:
    """Known model or service.

    id: the name in settings. released: date of release. status: according to the source; "" if it
        does not state one. sunset: the first day without it. successor: the id that the source
        recommends. seen_on, source: day and address of the facts. secondary: whether the
        source only quotes a page of the provider.
    """

    id: str
    seen_on: date
    source: str
    released: date | None = None
    status: Status = ""
    sunset: date | None = None
    successor: str = ""
    secondary: bool = False

    def ended(self, today: date) -> bool:
        """Return whether it no longer exists on a day."""
        return self.sunset is not None and self.sunset <= today

    def facts(self, today: date) -> dict[str, object]:
        """Return the known facts, ready for JSON, with `ended`."""
        known = {name: value for name, value in asdict(self).items() if value or value is False}
        dates = {name: str(value) for name, value in known.items() if isinstance(value, date)}
        return {**known, **dates, "ended": self.ended(today)}


@dataclass(frozen=True, kw_only=True)
class KnownModel(Known):
    """Known model, with weights or at a service.

    languages: two-letter codes, or "multi". size: number of parameters; 0 if it is not published.
    max_length: in tokens. purpose: what it is good for. licence: a note, to be checked on the
        model's page; "" for a packaged model, whose licence `packaged` declares.
    query_prompt, document_prompt: required texts around its input; "" for none.
    encoder: whether it reads one text at a time; else it scores pairs.
    service: the service that runs it; "" for weights. price: its key in the price list.
    """

    languages: tuple[str, ...]
    max_length: int = 0
    size: int = 0
    purpose: str = ""
    licence: str = ""
    query_prompt: str = field(default="", repr=False)
    document_prompt: str = field(default="", repr=False)
    encoder: bool = False
    needs: Needs = ""
    service: str = ""
    price: str = ""

    def reads(self, language: str) -> bool:
        """Return whether it was trained for a language, in the codes of `language_of`. Languages in
        Latin script are not distinguished."""
        if language == "latin":
            return any(code not in _NOT_LATIN for code in self.languages)
        return MANY in self.languages or language in self.languages


@dataclass(frozen=True, kw_only=True)
class KnownService(Known):
    """Known rerank service. id: the name of its dialect. title: its name."""

    title: str


@dataclass(frozen=True)
class Catalogue:
    """Known models, the usual first choice first, and services. problem: why the file in
    RANKDASH_CATALOGUE is not used; None if it is, or if none is named."""

    models: tuple[KnownModel, ...]
    services: tuple[KnownService, ...]
    problem: RankdashError | None = None


@cache
def loaded() -> Catalogue:
    """Return the catalogue of the administrator, or the shipped one with the reason why the other
    cannot be read."""
    named = os.environ.get(VARIABLE, "").strip()
    shipped = parse(SHIPPED.read_bytes(), SHIPPED.name)
    if not named:
        return shipped
    path = Path(named).expanduser()
    try:
        return parse(path.read_bytes(), str(path))
    except (OSError, RankdashError) as error:
        reason = f"{error.strerror}." if isinstance(error, OSError) else str(error)
        problem = UnavailableError(
            "The catalogue in {variable} is not used: {reason}",
            remedy="Correct the file, or start rankdash without the variable.",
            variable=VARIABLE,
            reason=reason,
        )
        return Catalogue(shipped.models, shipped.services, problem)


def known_models() -> tuple[KnownModel, ...]:
    """Return all known models with weights, the usual first choice first."""
    return tuple(each for each in loaded().models if not each.service)


def hosted_models(service: str) -> tuple[KnownModel, ...]:
    """Return the known models of a service, its usual one first."""
    return tuple(each for each in loaded().models if each.service == service)


def default_model(service: str) -> str:
    """Return the usual model of a service; "" if none is known."""
    return next((each.id for each in hosted_models(service)), "")


def known(model: str, service: str = "") -> KnownModel | None:
    """Return the known model of that name, with weights or at a service."""
    models = hosted_models(service) if service else known_models()
    return next((each for each in models if each.id == model), None)


def ended(today: date) -> frozenset[str]:
    """Return the ids of models with weights and of services that no longer exist."""
    listed = (*known_models(), *loaded().services)
    return frozenset(each.id for each in listed if each.ended(today))


def ended_price(key: str, today: date) -> date | None:
    """Return the day on which the only model with a price ended; None if one still exists."""
    priced = [each for each in loaded().models if each.price == key]
    if not priced or not all(each.ended(today) for each in priced):
        return None
    return max(each.sunset for each in priced if each.sunset is not None)


def parse(content: bytes, file: str) -> Catalogue:
    """Parse a catalogue. Raises DataError with the file, the entry and the problem."""
    with guarded(file, "The catalogue cannot be read: {reason}.", _REMEDY):
        return _listed(from_json_or_toml(text_of(content)), file)


def _listed(read: Any, file: str) -> Catalogue:
    lists = {name: read.get(name, []) if isinstance(read, Mapping) else None for name in _LISTS}
    rows = lists["model"]
    if not isinstance(read, Mapping) or set(read) - set(_LISTS) or not isinstance(rows, list):
        raise DataError("The file has no list called model.", remedy=_REMEDY, file=file)
    if not rows or not isinstance(lists["service"], list):
        raise DataError("The file has no list called model.", remedy=_REMEDY, file=file)
    if (count := len(rows) + len(lists["service"])) > _MOST_ENTRIES:
        raise DataError(
            "The catalogue has {count} entries; the limit is {most}.",
            file=file,
            count=count,
            most=_MOST_ENTRIES,
        )
    services = tuple(_entry(KnownService, row, at, file) for at, row in _places(lists["service"]))
    hosts = {each.id: each for each in services}
    models = tuple(
        _inherited(_entry(KnownModel, row, at, file), hosts, at, file) for at, row in _places(rows)
    )
    _check_names(services, models, file)
    return Catalogue(models, services)


_LISTS = ("service", "model")


def _places(rows: Iterable[object]) -> Iterable[tuple[int, object]]:
    return enumerate(rows, start=1)


def _inherited(
    model: KnownModel, hosts: Mapping[str, KnownService], at: int, file: str
) -> KnownModel:
    """Return a model, which ends with its service at the latest. Raises DataError for an unknown
    service."""
    if not model.service:
        return model
    host = hosts.get(model.service)
    if host is None:
        raise _broken("model", at, Phrase("{name} is not listed", name=model.service), file)
    days = [each.sunset for each in (model, host) if each.sunset is not None]
    values = {each.name: getattr(model, each.name) for each in fields(model)}
    return KnownModel(**{**values, "sunset": min(days, default=None)})


def _check_names(
    services: tuple[KnownService, ...], models: tuple[KnownModel, ...], file: str
) -> None:
    for kind, entries in (("service", services), ("model", models)):
        names = [(getattr(each, "service", ""), each.id) for each in entries]
        every = {each.id for each in entries}
        for at, each in enumerate(entries, start=1):
            if names.index(names[at - 1]) != at - 1:
                raise _broken(kind, at, Phrase("the id {name!r} is repeated", name=each.id), file)
            if each.successor and each.successor not in every:
                reason = Phrase("the successor {name!r} is not listed", name=each.successor)
                raise _broken(kind, at, reason, file)
            if each.status == "ended" and each.sunset is None:
                raise _broken(kind, at, Phrase("{name} is missing", name="sunset"), file)


def _entry(kind: type[Any], row: object, at: int, file: str) -> Any:
    name = "service" if kind is KnownService else "model"
    if not isinstance(row, Mapping):
        raise _broken(name, at, Phrase("the entry is not a set of named fields"), file)
    declared = {each.name: each for each in fields(kind)}
    unknown = sorted(map(str, set(row) - set(declared)))
    if unknown:
        raise _broken(name, at, Phrase("the field {name!r} is unknown", name=unknown[0]), file)
    for each in declared.values():
        if each.default is MISSING and row.get(each.name) in (None, "", []):
            raise _broken(name, at, Phrase("{name} is missing", name=each.name), file)
    values: dict[str, Any] = {}
    for key, value in row.items():
        values[key] = _value(str(declared[key].type), value)
        if values[key] is None:
            possible = _POSSIBLE[str(declared[key].type)]
            reason = Phrase("{name} is not {possible}", name=key, possible=possible)
            raise _broken(name, at, reason, file)
    return kind(**values)


_POSSIBLE = {
    "str": Phrase("a text of at most {most} characters", most=_LONGEST_TEXT),
    "date": Phrase("a date such as 2026-11-21"),
    "date | None": Phrase("a date such as 2026-11-21"),
    "int": Phrase("a whole number of at least 0"),
    "bool": Phrase("true or false"),
    "tuple[str, ...]": Phrase("a list of language codes"),
    "Status": Phrase("one of {names}", names=", ".join(filter(None, get_args(Status)))),
    "Needs": Phrase("one of {names}", names=", ".join(filter(None, get_args(Needs)))),
}


def _value(kind: str, value: object) -> Any:
    """Return the value of a field; None if it is not of that kind."""
    if kind in ("date", "date | None"):
        try:
            return date.fromisoformat(str(value))
        except ValueError:
            return None
    if kind == "int":
        return value if type(value) is int and value >= 0 else None
    if kind == "bool":
        return value if isinstance(value, bool) else None
    if kind == "tuple[str, ...]":
        codes = value if isinstance(value, list) and value else None
        usable = codes and all(isinstance(each, str) and each.isalpha() for each in codes)
        return tuple(codes) if codes and usable else None
    allowed = {"Status": get_args(Status), "Needs": get_args(Needs)}.get(kind)
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        return None
    return value if allowed is None or value in allowed else None


def _broken(kind: str, at: int, reason: Phrase, file: str) -> DataError:
    return DataError(
        "The {kind} {place} of the catalogue cannot be used: {reason}.",
        remedy="Correct the entry, or remove it.",
        file=file,
        kind=kind,
        place=at,
        reason=reason,
    )
