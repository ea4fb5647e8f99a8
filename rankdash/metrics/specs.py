"""The registry of metrics, and the strings that name them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from rankdash.errors import SpecError
from rankdash.metrics import (
    average_precision,
    gain,
    patience,
    preference,
    reciprocal,
    sets,
)
from rankdash.metrics.definition import Measure, MetricDefinition

registry: Mapping[str, MetricDefinition] = MappingProxyType(
    {
        definition.name: definition
        for family in (gain, reciprocal, average_precision, sets, preference, patience)
        for definition in family.DEFINITIONS
    }
)
"""Metric name → definition, in the order in which a list of metrics shows them."""

_NAMES: Mapping[str, MetricDefinition] = MappingProxyType(
    {
        name: definition
        for definition in registry.values()
        for name in (definition.name, *definition.aliases)
    }
)
_SPEC = re.compile(
    r"(?P<name>[a-z][a-z0-9_.]*)(?:\((?:[a-z]+=)?(?P<parameter>[0-9.]{1,20})\))?(?:@(?P<k>.*))?"
)
_TREC_CUTOFF = re.compile(r"(?P<name>.+)[._](?P<k>[0-9]+)")
_CUTOFF = re.compile(r"0*[1-9][0-9]{0,8}")


def parse_measure(spec: str) -> Measure:
    """A measure from its spec: "ndcg@10", "MAP", "p@1", "rbp(0.95)@10", "ndcg_cut_10".

    Case and surrounding blanks do not matter; aliases and trec_eval's own names are known.

    Raises SpecError, naming the nearest spec, where there is no such metric, the cutoff is not a
    positive whole number, or the parameter is out of its range.
    """
    text = spec.strip().lower().replace("-", "_").replace(" ", "")
    match = _SPEC.fullmatch(text)
    if match is None:
        raise _unknown(spec, text)
    name, cutoff = match["name"], match["k"]
    if name not in _NAMES and cutoff is None:
        trec = _TREC_CUTOFF.fullmatch(text)
        if trec is not None:
            name, cutoff = trec["name"], trec["k"]
    definition = _NAMES.get(name)
    if definition is None:
        raise _unknown(spec, text)
    return Measure(
        definition,
        _cutoff(spec, definition, cutoff),
        _parameter(spec, definition, match["parameter"]),
    )


def parse_measures(specs: str | Iterable[str]) -> tuple[Measure, ...]:
    """Measures from a list, or from one string with commas between; repeats are dropped."""
    parts = specs.split(",") if isinstance(specs, str) else specs
    measures = (parse_measure(part) for part in parts if part.strip())
    return tuple({measure.spec: measure for measure in measures}.values())


def _cutoff(spec: str, definition: MetricDefinition, text: str | None) -> int | None:
    if text is None:
        return None
    if not definition.has_cutoff:
        raise SpecError(
            "{title} takes no cutoff: {spec!r}.",
            remedy="Did you mean {nearest!r}?",
            title=definition.title,
            spec=spec,
            nearest=definition.name,
        )
    if _CUTOFF.fullmatch(text) is None:
        raise SpecError(
            "The cutoff of {spec!r} is not a whole number from 1.",
            remedy="Did you mean {nearest!r}?",
            spec=spec,
            nearest=f"{definition.name}@10",
        )
    return int(text)


def _parameter(spec: str, definition: MetricDefinition, text: str | None) -> float:
    parameter = definition.parameter
    if parameter is None:
        if text is not None:
            raise SpecError(
                "{title} takes no number in brackets: {spec!r}.",
                remedy="Did you mean {nearest!r}?",
                title=definition.title,
                spec=spec,
                nearest=definition.spec.replace("@k", "@10"),
            )
        return 0.0
    if text is None:
        return parameter.default
    try:
        value = float(text)
    except ValueError:
        value = parameter.high
    if not parameter.low < value < parameter.high:
        raise SpecError(
            "{name} of {spec!r} must lie between {low:g} and {high:g}.",
            remedy="Did you mean {nearest!r}?",
            name=parameter.name,
            spec=spec,
            low=parameter.low,
            high=parameter.high,
            nearest=f"{definition.name}({parameter.default:g})",
        )
    return value


def _unknown(spec: str, text: str) -> SpecError:
    name, at, cutoff = text.partition("@")
    near = difflib.get_close_matches(name, _NAMES, n=1, cutoff=0.0)
    definition = _NAMES[near[0]] if near else registry["ndcg"]
    suffix = at + cutoff if definition.has_cutoff and _CUTOFF.fullmatch(cutoff) else ""
    return SpecError(
        "There is no metric {spec!r}.",
        remedy="Did you mean {nearest!r}? Metrics: {names}.",
        spec=spec,
        nearest=definition.name + suffix,
        names=", ".join(entry.spec for entry in registry.values()),
    )
