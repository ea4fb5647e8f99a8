"""What `evaluate` found, as a table for the eye, or as JSON or CSV with unrounded numbers."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from rankdash.analysis.labels.labelling import defused
from rankdash.cli.evaluate import Results
from rankdash.cli.writing import aligned, printable
from rankdash.metrics import Evaluation

_DIGITS = 4
_COUNTS = {
    "missing": "missing from the ranking",
    "no_relevant": "without a relevant document",
    "tied": "with tied scores",
    "unlabelled": "ranked but without labels",
}


def table(results: Results, per_query: bool) -> Iterator[str]:
    """Means in rounded columns, what was counted below, and the queries where asked for."""
    head = ["system", *results.measures]
    means = [
        [name, *(_rounded(value) for value in _means(results, found).values())]
        for name, found in results.systems.items()
    ]
    yield aligned([head, *means])
    yield "\n"
    for name, found in results.systems.items():
        used = sum(1 for values in _per_query(results, found).values() if values)
        counts = [
            f"{found.counts[key]} {words}" for key, words in _COUNTS.items() if found.counts[key]
        ]
        text = "; ".join([f"{used} of {found.counts['queries']} queries scored", *counts])
        yield f"{printable(name)}: {text}\n"
    yield f"{results.conventions.summary}.\n"
    if per_query:
        yield "\n"
        rows = [["system", "query", "state", *results.measures]]
        for name, query, state, values in _rows(results):
            rows.append([name, query, state, *(_rounded(value) for value in values)])
        yield aligned(rows, left=3)


def as_json(results: Results, per_query: bool) -> Iterator[str]:
    """The values of every query are always in it: the means can be checked against them."""
    settings = {
        **results.conventions.as_dict(),
        "conflict": results.conflict,
        "qrels": results.qrels,
        "metrics": {typed: measure.spec for typed, measure in results.measures.items()},
    }
    systems = {
        name: {
            "mean": {spec: _or_null(value) for spec, value in _means(results, found).items()},
            "counts": dict(found.counts),
            "left_out": {
                query: state
                for (query, values), state in zip(
                    _per_query(results, found).items(), found.states, strict=True
                )
                if not values
            },
            "per_query": {
                query: values for query, values in _per_query(results, found).items() if values
            },
        }
        for name, found in results.systems.items()
    }
    yield json.dumps({"settings": settings, "systems": systems}, indent=2, allow_nan=False)
    yield "\n"


def as_csv(results: Results, per_query: bool) -> Iterator[str]:
    """One row a system with its means and counts, or one a query with its values; no value is an
    empty cell. The last column names the tie rule."""
    ties = results.conventions.ties
    if per_query:
        yield _csv_line(["system", "query_id", "state", *results.measures, "ties"])
        for name, query, state, values in _rows(results):
            yield _csv_line([defused(name), defused(query), state, *map(_exact, values), ties])
        return
    counted = list(next(iter(results.systems.values())).counts)
    yield _csv_line(["system", *results.measures, *counted, "ties"])
    for name, found in results.systems.items():
        means = [_exact(value) for value in _means(results, found).values()]
        counts = (str(found.counts[key]) for key in counted)
        yield _csv_line([defused(name), *means, *counts, ties])


FORMATS: Mapping[str, Callable[[Results, bool], Iterator[str]]] = {
    "table": table,
    "json": as_json,
    "csv": as_csv,
}


def _means(results: Results, found: Evaluation) -> dict[str, float]:
    return {typed: found.mean(measure) for typed, measure in results.measures.items()}


def _per_query(results: Results, found: Evaluation) -> dict[str, dict[str, float]]:
    """Query id → metric as typed → value, without those that are left out of the mean."""
    columns = {typed: found.column(measure) for typed, measure in results.measures.items()}
    return {
        str(query): {
            typed: float(values[place])
            for typed, values in columns.items()
            if not math.isnan(values[place])
        }
        for place, query in enumerate(found.query_ids)
    }


def _rows(results: Results) -> Iterator[tuple[str, str, str, list[float]]]:
    """System, query, state and values, every query of every system."""
    for name, found in results.systems.items():
        columns = [found.column(measure) for measure in results.measures.values()]
        for place, (query, state) in enumerate(zip(found.query_ids, found.states, strict=True)):
            yield name, str(query), str(state), [float(values[place]) for values in columns]


def _rounded(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.{_DIGITS}f}"


def _exact(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def _or_null(value: float) -> float | None:
    return None if math.isnan(value) else value


def _csv_line(cells: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()
