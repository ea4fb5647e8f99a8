"""Plan of a run: queries to score, depth, and reasons for skipped queries."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from rankdash.core.base.errors import SettingError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.measured import WithoutText
from rankdash.core.rerankers import SettingSpec, SettingValue

NO_CANDIDATES = "no candidates"
NOT_SAMPLED = "not in the sample"
MOST_CLIENTS = 256


@dataclass(frozen=True)
class Plan:
    """Plan of a run. documents: query id → its candidates to rerank, best first, in data set order.

    skipped: query id → reason.
    textless: number of requested pairs with a document without text. without_text: treatment of
        these pairs.
    """

    documents: dict[str, list[str]]
    skipped: dict[str, str]
    textless: int = 0
    without_text: WithoutText = "exclude"

    @property
    def pairs(self) -> int:
        return sum(len(docs) for docs in self.documents.values())


@dataclass(frozen=True)
class Timing:
    """Measurements of a run besides the scores.

    latency: queries with a measured serial latency. "auto": a sample, without the queries that have
        a cached score. "always": a sample, scored even if scores are cached. "every": every query,
        scored individually even if scores are cached. "never": no sample. Rerankers that receive
        one query at a time are always timed for queries without cached scores.
    repeats: number of times that a query is timed; its latency is the median.
    sample: maximum number of timed queries, and at most half of all, so that the others measure the
        throughput.
    seed: of the sample.
    concurrency: numbers of concurrent clients for measuring the throughput, each for `seconds`;
        empty: no measurement.
    """

    latency: Literal["auto", "always", "every", "never"] = "auto"
    repeats: int = 1
    sample: int = 200
    seed: int = 0
    concurrency: tuple[int, ...] = ()
    seconds: float = 5.0

    def __post_init__(self) -> None:
        """Raise SettingError for a value out of range."""
        if self.latency not in ("auto", "always", "every", "never"):
            raise SettingError(
                "The latency measurement must be auto, always, every or never, not {value!r}.",
                value=self.latency,
            )
        for name, value, most in (
            ("repeats", self.repeats, 100),
            ("sample", self.sample, 100_000),
            ("seconds", self.seconds, 600),
            *(("concurrency", clients, MOST_CLIENTS) for clients in self.concurrency),
        ):
            if not 1 <= value <= most:
                raise SettingError(
                    "The {name} must be from 1 to {most}, not {value}.",
                    name=name,
                    most=most,
                    value=value,
                )

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Timing:
        """Build from the result of `dataclasses.asdict`, also after JSON; missing values have
        defaults."""
        levels = tuple(values.get("concurrency", ()))
        return cls(**{**values, "concurrency": levels})


def sample_queries(dataset: Dataset, size: int, seed: int) -> tuple[str, ...]:
    """Return `size` queries with candidates, sampled at random without replacement.

    The sample is the start of a permutation by NumPy's default generator (PCG64) of the ids in
    alphabetical order, so a larger sample with the same seed contains the smaller one, and the
    order of the files has no effect. If fewer queries exist, all are returned.

    Raises SettingError if `size` is below 1.
    """
    if size < 1:
        raise SettingError(
            "A sample needs at least 1 query, not {size}.",
            remedy="Leave the sample empty to use all queries.",
            size=size,
        )
    counts = np.diff(dataset.candidates.offsets)
    return random_order(dataset.candidates.query_ids[counts > 0], seed)[:size]


def random_order(ids: Iterable[str], seed: int) -> tuple[str, ...]:
    """Return `ids` in a random order that depends only on them and `seed`."""
    ordered = sorted(ids)
    return tuple(ordered[place] for place in np.random.default_rng(seed).permutation(len(ordered)))


def plan(
    dataset: Dataset,
    depth: int | None = None,
    query_ids: Collection[str] | None = None,
    *,
    needs_text: bool = False,
    without_text: WithoutText = "exclude",
) -> Plan:
    """Plan to rerank the first `depth` candidates (None: all) of `query_ids` (None: all queries).

    needs_text: whether the reranker reads texts.
    without_text: treatment of candidates without text in that case. "exclude": they are not scored
        and follow the scored ones in first-stage order; a query with only such candidates stays in
        the plan with them, and fails. "empty": they are scored as empty texts.

    Raises SettingError if the depth is below 1, a query is not in the data set, or `without_text`
    is unknown.
    """
    if depth is not None and depth < 1:
        raise SettingError(
            "The depth must be at least 1, not {depth}.",
            remedy="Leave it empty to rerank all candidates.",
            depth=depth,
        )
    if without_text not in get_args(WithoutText):
        raise SettingError(
            "Unknown rule {rule!r} for candidates without text.",
            remedy="The rules are: exclude, empty.",
            rule=without_text,
        )
    query_order = list(dataset.queries["query_id"])
    requested = set(query_order if query_ids is None else query_ids)
    unknown = sorted(requested.difference(query_order))
    if unknown:
        raise SettingError("The data set has no query {query!r}.", query=unknown[0])
    silent = dataset.textless if needs_text else frozenset()
    textless = 0
    documents: dict[str, list[str]] = {}
    skipped: dict[str, str] = {}
    for query in query_order:
        docs = dataset.candidates.documents_of(query)[0][:depth]
        if not docs:
            skipped[query] = NO_CANDIDATES
        elif query not in requested:
            skipped[query] = NOT_SAMPLED
        else:
            readable = [doc for doc in docs if doc not in silent]
            textless += len(docs) - len(readable)
            documents[query] = docs if without_text == "empty" else readable or docs
    return Plan(documents, skipped, textless, without_text)


# Variants: one reranker with every combination of some values of its settings.

# The depth is not a setting of a reranker, but can vary too.
DEPTH = "depth"
MOST_VARIANTS = 24


@dataclass(frozen=True)
class Variant:
    """Variant of a job. settings, depth: as in a job. differs: its values of the settings that
    vary, in input order."""

    settings: Mapping[str, SettingValue]
    depth: int | None
    differs: tuple[tuple[str, SettingValue], ...] = ()


def variants(
    specs: Sequence[SettingSpec],
    settings: Mapping[str, SettingValue],
    depth: int | None,
    varied: Mapping[str, Sequence[SettingValue]],
) -> tuple[Variant, ...]:
    """Return every combination of the values in `varied`, the last setting changing fastest; equal
    values count once. An empty `varied` returns the settings unchanged.

    varied: name of a setting, or DEPTH → its values, which may be strings.

    Raises SettingError for an unknown setting, one without values, an invalid value, and more than
    MOST_VARIANTS combinations.
    """
    by_name = {spec.name: spec for spec in specs}
    values: dict[str, list[SettingValue]] = {}
    for name, choices in varied.items():
        if name != DEPTH and name not in by_name:
            raise SettingError("Unknown setting {name!r} for variants.", name=name)
        spec = _DEPTH_SPEC if name == DEPTH else by_name[name]
        values[name] = list(dict.fromkeys(spec.parse(value) for value in choices))
        if not values[name]:
            raise SettingError(
                "The list of values for the variants of {name} is empty.",
                remedy="Provide at least one value.",
                name=name,
            )
    combinations = [
        tuple(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())
    ]
    if len(combinations) > MOST_VARIANTS:
        raise SettingError(
            "There are {count} variants; at most {most} can run together.",
            remedy="Vary fewer settings, or fewer values of each.",
            count=len(combinations),
            most=MOST_VARIANTS,
        )
    return tuple(_variant(settings, depth, differs) for differs in combinations)


_DEPTH_SPEC = SettingSpec(DEPTH, 1, "Depth", "Candidates reranked per query.", within=(1, math.inf))


def _variant(
    settings: Mapping[str, SettingValue],
    depth: int | None,
    differs: tuple[tuple[str, SettingValue], ...],
) -> Variant:
    overrides = dict(differs)
    deep = overrides.pop(DEPTH, depth)
    return Variant({**settings, **overrides}, None if deep is None else int(deep), differs)
