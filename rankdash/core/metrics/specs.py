"""Registry of metrics, and parsing of metric specs.

ndcg@10  MAP  p@1  rbp(0.95)@10              rankdash's own spellings; case does not matter
ndcg_cut.10  P_5  recall.100  recip_rank     trec_eval's
nDCG(dcg='exp-log2')@10  P(rel=2)@5  RR@10   ir_measures'
ndcg@5,10                                    in a list: the same metric at several cutoffs
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from rankdash.core.base.errors import SpecError
from rankdash.core.metrics.definitions import DEFINITIONS
from rankdash.core.metrics.engine import Measure, MetricDefinition


def _plain(text: str) -> str:
    """Normalize a spec for comparison: lower case, no blanks, underscores."""
    return text.strip().lower().replace("-", "_").replace(" ", "")


registry: Mapping[str, MetricDefinition] = MappingProxyType(
    {definition.name: definition for definition in DEFINITIONS}
)
"""Metric name → definition, in display order."""

_NAMES: Mapping[str, MetricDefinition] = MappingProxyType(
    {
        name: definition
        for definition in registry.values()
        for name in (definition.name, *definition.aliases)
    }
)
_DCG: Mapping[str, MetricDefinition] = MappingProxyType(
    {_plain(definition.dcg): definition for definition in registry.values() if definition.dcg}
)
_SPEC = re.compile(r"(?P<name>[a-z][a-z0-9_.]*)(?:\((?P<bracket>[^()]*)\))?(?:@(?P<k>.*))?")
_TREC_CUTOFF = re.compile(r"(?P<name>.+)[._](?P<k>[0-9]+)")
_CUTOFF = re.compile(r"0*[1-9][0-9]{0,8}")
_NUMBER = re.compile(r"[0-9]{0,20}(\.[0-9]{1,20})?")
# Up to a comma outside brackets.
_LISTED = re.compile(r"(?:[^,(]|\([^()]*+\)?+)+")
_AT_A_CUTOFF = re.compile(r"(?P<start>.*[@._])[0-9]+\s*")


@dataclass(frozen=True)
class MetricList:
    """Parsed list of metrics.

    measures: spec as typed → measure, in order. threshold: the lowest relevant label if a spec sets
        it (`rel=2`); it applies to all. implied: specs as typed that it affects and that do not set
        it.
    """

    measures: Mapping[str, Measure]
    threshold: float | None = None
    implied: tuple[str, ...] = ()

    @property
    def specs(self) -> tuple[str, ...]:
        """Normalized specs, without duplicates."""
        return tuple(dict.fromkeys(measure.spec for measure in self.measures.values()))


def parse_metrics(specs: str | Iterable[str]) -> MetricList:
    """Parse lists of metrics separated by commas; a bare number is another cutoff of the previous
    spec.

    Raises SpecError as `parse_measure` does, if two specs differ in `rel=`, and for an empty list.
    """
    parsed = {spec: _parse_with_threshold(spec) for spec in _split_specs(specs)}
    if not parsed:
        raise SpecError("The list of metrics is empty.", remedy="For example: ndcg@10")
    threshold = one_threshold(rel for _, rel in parsed.values())
    measures = {spec: measure for spec, (measure, _) in parsed.items()}
    implied = (
        spec
        for spec, (measure, rel) in parsed.items()
        if threshold is not None and rel is None and measure.metric.binary
    )
    return MetricList(measures, threshold, tuple(implied))


def parse_measure(spec: str, threshold: float | None = None) -> Measure:
    """Parse a measure from its spec: "ndcg@10", "MAP", "p@1", "rbp(0.95)@10", "ndcg_cut_10".

    threshold: the lowest relevant label, the only value allowed for `rel=`; None if `rel=` is not
        allowed.

    Raises SpecError, with the nearest spec, for an unknown metric, a cutoff that is not a positive
    integer, or unknown text in brackets.
    """
    measure, rel = _parse_with_threshold(spec)
    if rel is None:
        return measure
    if threshold is None:
        raise SpecError(
            "The relevance threshold applies to all metrics, so rel= is not allowed in {spec!r} "
            "here.",
            remedy="Set the threshold in the metric conventions.",
            spec=spec,
        )
    one_threshold([threshold, rel])
    return measure


def one_threshold(thresholds: Iterable[float | None]) -> float | None:
    """Return the lowest relevant label, None without any. Raises SpecError for two different
    ones."""
    distinct = list(dict.fromkeys(each for each in thresholds if each is not None))
    if len(distinct) > 1:
        raise SpecError(
            "Two relevance thresholds are set: {one:g} and {other:g}.",
            remedy="All metrics share one threshold: evaluate once per threshold.",
            one=distinct[0],
            other=distinct[1],
        )
    return distinct[0] if distinct else None


def _split_specs(specs: str | Iterable[str]) -> list[str]:
    """Split lists at commas: "ndcg@5,10" becomes "ndcg@5" and "ndcg@10"."""
    separated: list[str] = []
    for text in [specs] if isinstance(specs, str) else specs:
        for part in filter(None, map(str.strip, _LISTED.findall(text))):
            before = (
                _AT_A_CUTOFF.fullmatch(separated[-1]) if separated and part.isdecimal() else None
            )
            separated.append(before["start"] + part if before else part)
    return separated


def _parse_with_threshold(spec: str) -> tuple[Measure, float | None]:
    """Parse a measure as `parse_measure` does; also return the lowest relevant label from
    `rel=`."""
    text = _plain(spec)
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
    pairs = [part.rpartition("=") for part in (match["bracket"] or "").split(",") if part]
    bracket = {key: value.strip("'\"") for key, _, value in pairs}
    if definition.dcg and bracket.get("dcg") in _DCG:
        definition = _DCG[bracket.pop("dcg")]
    if cutoff is None:
        cutoff = bracket.pop("cutoff", None)
    threshold = _threshold(spec, definition, bracket)
    parameter = _parameter(spec, definition, bracket)
    if bracket:
        raise _unfit(spec, definition, cutoff, *bracket.popitem())
    return Measure(definition, _cutoff(spec, definition, cutoff), parameter), threshold


def _cutoff(spec: str, definition: MetricDefinition, text: str | None) -> int | None:
    if text is None:
        return None
    if not definition.has_cutoff:
        raise SpecError(
            "{title} has no cutoff: {spec!r}.",
            remedy="Did you mean {nearest!r}?",
            title=definition.title,
            spec=spec,
            nearest=definition.name,
        )
    if _CUTOFF.fullmatch(text) is None:
        raise SpecError(
            "The cutoff of {spec!r} must be a whole number of at least 1.",
            remedy="Did you mean {nearest!r}?",
            spec=spec,
            nearest=f"{definition.name}@10",
        )
    return int(text)


def _threshold(spec: str, definition: MetricDefinition, bracket: dict[str, str]) -> float | None:
    if not definition.binary or "rel" not in bracket:
        return None
    value = _number(bracket.pop("rel"))
    if not value > 0:
        raise SpecError("The threshold rel= of {spec!r} must be a number above 0.", spec=spec)
    return value


def _parameter(spec: str, definition: MetricDefinition, bracket: dict[str, str]) -> float:
    parameter = definition.parameter
    if parameter is None:
        return 0.0
    key = next((key for key in ("", parameter.name) if key in bracket), None)
    if key is None:
        return parameter.default
    value = _number(bracket.pop(key))
    if not parameter.low < value < parameter.high:
        raise SpecError(
            "{name} of {spec!r} must be between {low:g} and {high:g}.",
            remedy="Did you mean {nearest!r}?",
            name=parameter.name,
            spec=spec,
            low=parameter.low,
            high=parameter.high,
            nearest=f"{definition.name}({parameter.default:g})",
        )
    return value


def _number(text: str) -> float:
    return float(text) if text and _NUMBER.fullmatch(text) else math.nan


def _unfit(
    spec: str, definition: MetricDefinition, cutoff: str | None, key: str, value: str
) -> SpecError:
    parameter, suffix = definition.parameter, ""
    if definition.has_cutoff:
        suffix = f"@{cutoff if cutoff and _CUTOFF.fullmatch(cutoff) else 10}"
    options = ["rel=2"] if definition.binary else []
    options += [f"{parameter.name}={parameter.default:g}"] if parameter else []
    options += [f"dcg='{each.dcg}'" for each in _DCG.values()] if definition.dcg else []
    return SpecError(
        "{title} does not accept {given!r} in brackets: {spec!r}.",
        remedy="Did you mean {nearest!r}? Allowed in brackets: {known}."
        if options
        else "Did you mean {nearest!r}?",
        title=definition.title,
        given=f"{key}={value}" if key else value,
        spec=spec,
        nearest=definition.name + suffix,
        known=", ".join(options),
    )


def _unknown(spec: str, text: str) -> SpecError:
    name, _, cutoff = text.partition("@")
    trec = _TREC_CUTOFF.fullmatch(text)
    if trec is not None:
        name, cutoff = trec["name"], trec["k"]
    near = difflib.get_close_matches(name, _NAMES, n=1, cutoff=0.0)
    definition = _NAMES[near[0]] if near else registry["ndcg"]
    suffix = f"@{cutoff}" if definition.has_cutoff and _CUTOFF.fullmatch(cutoff) else ""
    return SpecError(
        "Unknown metric {spec!r}.",
        remedy="Did you mean {nearest!r}? Metrics: {names}.",
        spec=spec,
        nearest=definition.name + suffix,
        names=", ".join(entry.spec for entry in registry.values()),
    )
