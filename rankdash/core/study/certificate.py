"""The certificate of a comparison, from which others compute its numbers again, as described in
docs/certificate.md, and the check of a certificate against files."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

import rankdash
from rankdash.core.base.i18n import number, signed, speaking
from rankdash.core.base.rules import Conventions, StatisticsSettings
from rankdash.core.data.arrays import Floats, objects
from rankdash.core.data.ranking import group_rows
from rankdash.core.metrics import parse_measure
from rankdash.core.statistics.alignment import align
from rankdash.core.study.costs import hit_spec, hits
from rankdash.core.study.labelling import only_estimates
from rankdash.core.study.study import Study
from rankdash.core.study.systems import System

CERTIFICATE = "certificate"
"""The field of the JSON of `compare` that contains the certificate."""
_START, _END = '<script type="application/json" id="certificate">', "</script>"
EMPTY = _START + _END
"""The element of a report that contains the certificate, without it."""
MOST_VALUES = 250_000
"""The largest number of values (queries × systems × metrics) that a certificate contains; of more
it contains only their hash."""
MOST_BYTES, MOST_METRICS = 100_000_000, 1_000
"""The limits of a report that is checked."""
TOLERANCE = 1e-10
"""The largest difference, absolute below 1 and else relative, between a number and the same number
computed again: other processors and libraries round differently."""

Json = Any
_Row = dict[str, tuple[float | None, str] | str]


def _p(p: float) -> str:
    return "<0.0001" if p < 0.000_05 else number(p, 4)


def _count(n: float) -> str:
    return number(n, 0)


_NUMBERS: Mapping[str, tuple[Callable[[float], str], str]] = {
    "mean": (number, "mean of the values of the system"),
    "mean_low": (number, "lower end of the interval of this mean"),
    "mean_high": (number, "upper end of the interval of this mean"),
    "n": (_count, "number of queries with a value of the system"),
    "paired": (_count, "number of queries with a value of the system and of the baseline"),
    "before": (number, "mean of the baseline over these queries"),
    "after": (number, "mean of the system over these queries"),
    "delta": (signed, "mean of the differences of these queries"),
    "delta_low": (signed, "lower end of the interval of this mean difference"),
    "delta_high": (signed, "upper end of the interval of this mean difference"),
    "p": (_p, "test of the differences"),
    "p_corrected": (_p, "p after the correction for the comparisons of a family"),
    "helped": (_count, "number of differences above the tie band"),
    "same": (_count, "number of differences within the tie band"),
    "hurt": (_count, "number of differences below minus the tie band"),
}
"""The numbers of a row: how each is printed, and what it is computed from."""

_VERDICT = "interval of the difference, corrected p, and the settings of the verdict"
_NONE = "the file has no certificate; means per search, for example, have none"
_ESTIMATES = "estimates from sampled labels"
JUDGE = "without the file of its grades: verdicts of the LLM judge"
"""An item of `not_covered`."""
_STOPPED = "all numbers and verdicts, because a run was stopped by its result"
_OTHERS = (
    "latency, price, return, and the sentences on risks, open points and the next step",
    "title, note, charts, and the sections on single queries, kinds of queries, reasons for "
    "changes, latency, cost, data and versions",
    "without the files: all words, caveats, headlines, missing and excluded queries, numbers of "
    "queries that would prove a change, potential gains, effect sizes, and means by cutoff",
)


class _Input(msgspec.Struct, forbid_unknown_fields=True):
    queries: int
    rows: int
    sha256: str


class _Inputs(msgspec.Struct, forbid_unknown_fields=True):
    labels: _Input
    rankings: list[_Input]


class _Metric(msgspec.Struct, forbid_unknown_fields=True):
    range: tuple[float | None, float | None]
    quality: bool


class _Data(msgspec.Struct, forbid_unknown_fields=True):
    queries: list[str]
    unanswered: list[list[int]]
    values: dict[str, list[list[float | None]]]


class _Certificate(msgspec.Struct, forbid_unknown_fields=True):
    """The types of the fields of a certificate."""

    certificate: Literal[1]
    made: dict[str, str]
    inputs: _Inputs
    systems: list[str]
    metric: str
    cutoff: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None
    families: list[list[str]]
    metrics: dict[str, _Metric]
    conventions: dict[str, str | float | bool | None]
    statistics: dict[str, str | float | bool | None]
    data: _Data | None
    data_sha256: str
    numbers: dict[str, list[dict[str, str | tuple[float | None, str]]]]
    sources: dict[str, str]
    not_covered: list[str]
    document: str
    sha256: str


def canonical(content: Json) -> bytes:
    """Return the canonical JSON of a content. Raises ValueError for NaN and infinity."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_certifiable(study: Study) -> bool:
    """Return False if the rankings were read in pieces, so that they have no hash, if a system was
    tuned on its queries, or if means are per search, which files of labels and rankings do not
    show."""
    shown = study.has_rankings and not study.conventions.weighted
    return shown and not any(study.tuned(each) for each in study.chosen)


def certificate(study: Study) -> dict[str, Json] | None:
    """Return the certificate of a study, without the hashes of `seal`; None if it cannot have
    one."""
    if not is_certifiable(study):
        return None
    estimated = (_ESTIMATES,) if only_estimates(study) else ()
    stopped = (_STOPPED,) if any(map(study.stopped, study.chosen)) else ()
    families = [] if estimated or stopped else _families(study)
    specs = [spec for family in families for spec in family]
    data = query_values(study, specs)
    size = len(specs) * len(study.chosen) * len(data["queries"])
    measures = {spec: parse_measure(spec) for spec in specs}
    judged = () if study.judge is None else (JUDGE,)
    with speaking("en"):
        numbers = {spec: [_row(study, system, spec) for system in study.chosen] for spec in specs}
    return {
        "certificate": 1,
        "made": {
            "rankdash": rankdash.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "inputs": {
            "labels": hash_of_labels(study),
            "rankings": [hash_of_ranking(study, system) for system in study.chosen],
        },
        "systems": [*study.names.values()],
        "metric": study.spec,
        "cutoff": study.cutoff,
        "families": families,
        "metrics": {
            spec: {
                "range": [end if math.isfinite(end) else None for end in each.metric.range],
                "quality": each.metric.measures_quality,
            }
            for spec, each in measures.items()
        },
        "conventions": study.conventions.as_dict(),
        "statistics": study.statistics.as_dict(),
        "data": data if size <= MOST_VALUES else None,
        "data_sha256": sha256(canonical(data)),
        "numbers": numbers,
        "sources": {
            **{name: source for name, (_text, source) in _NUMBERS.items()},
            "verdict": _VERDICT,
        },
        "not_covered": [*estimated, *stopped, *judged, *_OTHERS],
    }


def _families(study: Study) -> list[list[str]]:
    """Return the metrics that were compared together: the metrics of the study, and the hit rate
    of the decision if it is not among them."""
    hit = hit_spec(study.cutoff)
    return [[*study.specs], *([] if hit in study.specs else [[hit]])]


def _row(study: Study, system: str, spec: str) -> _Row:
    """Return the numbers of a system, each unrounded and as it is printed, and the verdict."""
    compared = spec in study.specs
    row = study.comparison.row(system, spec) if compared else hits(study, system)
    numbers = {
        name: (_or_none(float(row[name])), text(float(row[name])))
        for name, (text, _source) in _NUMBERS.items()
    }
    return {**numbers, "verdict": str(row["verdict"])}


def _or_none(value: float) -> float | None:
    """Return a number for JSON: a whole number without decimals, None for NaN."""
    if math.isnan(value):
        return None
    return int(value) if value == int(value) else value


def query_values(study: Study, specs: Sequence[str]) -> dict[str, Json]:
    """Return the values of the queries: for each metric, a list for each system. A value is None
    if it does not exist; `unanswered` has the places of queries without documents. Queries are
    sorted by id."""
    if not specs:
        return {"queries": [], "unanswered": [], "values": {}}
    evaluations = {system: study.evaluate(system, tuple(specs)) for system in study.chosen}
    aligned = align(evaluations, study.baseline)
    order = np.argsort(aligned.query_ids, kind="stable")
    unanswered = aligned.known & ~aligned.answered
    return {
        "queries": aligned.query_ids[order].tolist(),
        "unanswered": [np.flatnonzero(each[order].any(axis=1)).tolist() for each in unanswered],
        "values": {
            spec: [_column(values[order, m]) for values in aligned.values]
            for m, spec in enumerate(specs)
        },
    }


def _column(values: Floats) -> list[float | None]:
    return [_or_none(value) for value in values.tolist()]


def hash_of_labels(study: Study) -> dict[str, Json]:
    """Return the numbers of queries and rows of the labels, and their hash."""
    labels = study.dataset.labels
    groups = group_rows(labels["query_id"])
    ids = objects(labels["doc_id"].texts)
    docs = ids[groups.arrange(labels["doc_id"].codes)].tolist()
    rows = [*zip(docs, groups.arrange(labels["label"]).tolist(), strict=True)]
    ends = groups.offsets.tolist()
    lists = {
        query: sorted(rows[start:end])
        for query, start, end in zip(objects(groups.ids), ends, ends[1:], strict=False)
    }
    return _hashed(lists)


def hash_of_ranking(study: Study, system: str) -> dict[str, Json]:
    """Return the numbers of labelled queries and rows of a ranking, and the hash of the order of
    its documents and of the queries without a result."""
    rules, ranking = study.conventions, study.ranking(system)
    ordered = ranking.with_ties(rules.order_rule(ranking.ties), rules.score_precision)
    labelled = set(study.dataset.labels["query_id"].texts.to_pylist())
    lost = study.excluded(system)
    docs = ordered.doc_ids[ordered.docs].tolist()
    ends = ordered.offsets.tolist()
    lists: dict[str, Json] = {
        query: docs[start:end]
        for query, start, end in zip(ordered.query_ids, ends, ends[1:], strict=False)
        if query in labelled and query not in lost
    }
    return _hashed(lists | {query: state for query, state in lost.items() if query in labelled})


def _hashed(lists: Mapping[str, Json]) -> dict[str, Json]:
    """Return the hash of the lists of all queries, by query id."""
    rows = sum(len(each) for each in lists.values() if isinstance(each, list))
    content = canonical(sorted(lists.items(), key=itemgetter(0)))
    return {"queries": len(lists), "rows": rows, "sha256": sha256(content)}


def seal(content: Mapping[str, Json], document: bytes) -> dict[str, Json]:
    """Return a certificate with the hash of the document that contains it, and its own hash.
    document: without the certificate."""
    whole = {**content, "document": sha256(document)}
    return {**whole, "sha256": sha256(canonical(whole))}


def embedded(document: bytes, content: Mapping[str, Json]) -> bytes:
    """Return the HTML of a report with its certificate. document: with the element `EMPTY`."""
    # No text in it can end the element.
    text = canonical(seal(content, document)).replace(b"<", b"\\u003c")
    return document.replace(EMPTY.encode(), f"{_START}{text.decode()}{_END}".encode(), 1)


# The check of a certificate.


@dataclass(frozen=True)
class Check:
    """An item that was checked, in words. reason: why it is refused; "" if it is correct."""

    subject: str
    reason: str = ""


def opened(report: bytes) -> tuple[Json, bytes]:
    """Return the certificate of a report (HTML) or of the JSON of `compare`, and the document
    without it. Raises ValueError, RecursionError."""
    if report.lstrip().startswith(b"{"):
        document = _parsed(report)
        if document.get(CERTIFICATE) is None:
            raise ValueError(_NONE)
        content = document.pop(CERTIFICATE)
        return content, canonical(document)
    if _START.encode() not in report:
        raise ValueError(_NONE)
    before, start, rest = report.partition(_START.encode())
    text, end, after = rest.partition(_END.encode())
    if not end or _START.encode() in after:
        raise ValueError("there is not exactly one certificate in it")
    return _parsed(text), before + start + end + after


def _parsed(text: str | bytes) -> Json:
    """Return JSON without doubled keys, NaN and infinity. Raises ValueError, RecursionError."""
    return json.loads(text, object_pairs_hook=_single, parse_constant=_finite, parse_float=_finite)


def _single(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return entries


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a number in JSON")
    return value


def settings_of(content: Json) -> tuple[Conventions, StatisticsSettings]:
    """Return the rules of a certificate. Raises SpecError and other errors for a content with other
    fields, types or settings than a certificate of this version."""
    msgspec.convert(content, _Certificate)
    specs = [content["metric"], *(spec for each in content["families"] for spec in each)]
    if len(specs) > MOST_METRICS:
        raise ValueError(f"more than {MOST_METRICS} metrics")
    for spec in specs:
        parse_measure(spec)
    rules = Conventions(**content["conventions"])
    if rules.weighted:
        raise ValueError(_NONE)
    statistics = StatisticsSettings(**content["statistics"])
    for made, key in ((rules, "conventions"), (statistics, "statistics")):
        if canonical(made.as_dict()) != canonical(content[key]):
            raise ValueError(f"settings are missing in {key}")
    return rules, statistics


def seal_checks(content: Mapping[str, Json], document: bytes) -> Iterator[Check]:
    """Yield the check of the certificate's own hash and of the document around it."""
    rest = {name: value for name, value in content.items() if name != "sha256"}
    yield equal("hash of the certificate", content["sha256"], sha256(canonical(rest)))
    yield equal("hash of the report", content["document"], sha256(document))


def same_study(content: Mapping[str, Json], read: Study) -> tuple[Study | None, list[Check]]:
    """Return the study of a certificate, with the systems of `read` that have its rankings, and the
    checks of the inputs; None if a ranking or the labels differ.

    read: the files, under the rules of the certificate.
    """
    same = content["inputs"]["labels"] == hash_of_labels(read)
    other = "the files have other labels, or --conflict or --reverse-labels is not as in the report"
    checks = [Check("labels", "" if same else other)]
    hashes = {system: hash_of_ranking(read, system) for system in read.systems}
    chosen: dict[str, System] = {}
    names, rankings = content["systems"], content["inputs"]["rankings"]
    for name, expected in zip(names, rankings, strict=False):
        found = [each for each, of in hashes.items() if of == expected and each not in chosen]
        reason = "" if found else "no file has this ranking with these failed queries (--timings)"
        checks.append(Check(f"ranking of {name}", reason))
        if found:
            chosen[found[0]] = replace(read.systems[found[0]], name=name)
    checks.append(
        equal("number of systems", [len(names), len(rankings)], [max(1, len(chosen))] * 2)
    )
    if any(each.reason for each in checks):
        return None, checks
    baseline, *challengers = chosen
    first = content["families"][0] if content["families"] else [content["metric"]]
    again = Study(
        metric=replace(parse_measure(content["metric"]), k=None).spec,
        cutoff=content["cutoff"],
        dataset=read.dataset,
        systems={**read.systems, **chosen},
        baseline=baseline,
        challengers=tuple(challengers),
        others=tuple(first),
        conventions=read.conventions,
        statistics=read.statistics,
        judge=read.judge,
        labelling=read.labelling,
    )
    return again, checks


def number_checks(content: Mapping[str, Json], study: Study) -> Iterator[Check]:
    """Yield the checks of a certificate against the study from `same_study`: the values of the
    queries, a check for each metric and system, and all other fields."""
    again = certificate(study) or {}
    yield _data_check(content, again)
    for spec, rows in again["numbers"].items():
        stored = content["numbers"].get(spec, [])
        for at, (name, row) in enumerate(zip(content["systems"], rows, strict=False)):
            line = ", ".join(
                f"{field} {value if isinstance(value, str) else value[1]}"
                for field, value in row.items()
            )
            wrong = _differences(stored[at], row) if at < len(stored) else ["row missing"]
            yield Check(f"{spec}, {name}: {line}", "; ".join(wrong))
    fixed = {name: again[name] for name in ("metric", "cutoff", "families", "metrics", "sources")}
    for field, value in fixed.items():
        yield equal(field, content[field], value)
    same = {spec: len(rows) for spec, rows in again["numbers"].items()}
    stored_sizes = {spec: len(rows) for spec, rows in content["numbers"].items()}
    yield equal("list of numbers", stored_sizes, same)
    missing = [each for each in again["not_covered"] if each not in content["not_covered"]]
    yield Check("list of what is not covered", f"lacks {missing}" if missing else "")


def _data_check(content: Mapping[str, Json], again: Mapping[str, Json]) -> Check:
    subject, stored, data = "values of the queries", content["data"], again["data"]
    if stored is None or data is None:
        return equal(subject, content["data_sha256"], again["data_sha256"])
    if sha256(canonical(stored)) != content["data_sha256"]:
        return Check(subject, "they do not have the hash data_sha256")
    for part in ("queries", "unanswered"):
        if stored[part] != data[part]:
            return Check(subject, f"{part} differ")
    if {spec: [*map(len, each)] for spec, each in stored["values"].items()} != {
        spec: [*map(len, each)] for spec, each in data["values"].items()
    }:
        return Check(subject, "their number differs")
    for spec, columns in data["values"].items():
        for system, column in enumerate(columns):
            pairs = zip(stored["values"][spec][system], column, strict=True)
            for query, (value, expected) in enumerate(pairs):
                if not close(value, expected):
                    where = (
                        f"{spec} of {content['systems'][system]}, query {data['queries'][query]}"
                    )
                    return Check(subject, f"{where}: {value}, computed {expected}")
    return Check(subject)


def _differences(stored: Mapping[str, Json], row: Mapping[str, Json]) -> list[str]:
    if stored.keys() != row.keys():
        return ["other numbers than expected"]
    wrong = []
    for name, expected in row.items():
        value = stored[name]
        same = (
            value == expected
            if isinstance(expected, str) or isinstance(value, str)
            else close(value[0], expected[0]) and value[1] == _printed(name, value[0])
        )
        if not same:
            wrong.append(f"{name} is {value}, computed {expected}")
    return wrong


def _printed(name: str, value: float | None) -> str:
    with speaking("en"):
        return _NUMBERS[name][0](math.nan if value is None else value)


def close(one: float | None, other: float | None) -> bool:
    """Return whether two numbers are equal up to `TOLERANCE`, or both missing."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= TOLERANCE * max(1.0, abs(other))


def equal(subject: str, stored: Json, expected: Json) -> Check:
    # Canonical, because 1 and 1.0 and true are equal in Python.
    same = canonical(stored) == canonical(expected)
    return Check(subject, "" if same else f"{_short(stored)}, computed {_short(expected)}")


def _short(value: Json) -> str:
    text = canonical(value).decode()
    return text if len(text) <= 200 else f"{text[:199]}…"
