"""What a run will score: which queries, how deep, and why the others are left out."""

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
    """documents: query id → its candidates to rerank, best first, in the order of the data set.

    skipped: query id → why it is not scored.
    textless: how many of the pairs asked for have a document without a text. without_text: what is
        done with them.
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
    """What a run measures beside the scores.

    latency: of which queries the serial latency is measured. "auto": a sample, of which those
        count that have no cached score. "always": a sample, scored even where scores are cached.
        "every": every query, scored even where scores are cached, and none with others.
        "never": no sample is set apart. Rerankers that are asked one query at a time anyway are
        always timed where they score a whole query.
    repeats: how often a query is timed; its latency is the median.
    sample: how many queries are timed at most; half of all where that is fewer, so that the others
        tell the throughput.
    seed: of the sample.
    concurrency: how many clients at once the throughput is measured with, each for `seconds`;
        empty: not at all.
    """

    latency: Literal["auto", "always", "every", "never"] = "auto"
    repeats: int = 1
    sample: int = 200
    seed: int = 0
    concurrency: tuple[int, ...] = ()
    seconds: float = 5.0

    def __post_init__(self) -> None:
        """Raises SettingError for a value out of its range."""
        if self.latency not in ("auto", "always", "every", "never"):
            raise SettingError(
                "The latency is measured auto, always, every or never, not {value!r}.",
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
        """From what `dataclasses.asdict` gave, in JSON or not; what is missing has its default."""
        levels = tuple(values.get("concurrency", ()))
        return cls(**{**values, "concurrency": levels})


def sample_queries(dataset: Dataset, size: int, seed: int) -> tuple[str, ...]:
    """`size` queries sampled at random, without replacement, from those that have candidates.

    The sample is the start of a permutation by NumPy's default generator (PCG64) of the ids in
    alphabetical order, so a larger sample with the same seed contains the smaller one, and the
    order of the files changes nothing. Fewer come back where there are fewer.

    Raises SettingError where `size` is under 1.
    """
    if size < 1:
        raise SettingError(
            "A sample needs at least 1 query, not {size}.",
            remedy="Leave the sample empty to take all queries.",
            size=size,
        )
    counts = np.diff(dataset.candidates.offsets)
    return random_order(dataset.candidates.query_ids[counts > 0], seed)[:size]


def random_order(ids: Iterable[str], seed: int) -> tuple[str, ...]:
    """All of `ids` in a random order that depends on nothing but them and `seed`."""
    known = sorted(ids)
    return tuple(known[place] for place in np.random.default_rng(seed).permutation(len(known)))


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
    without_text: what becomes of candidates without one then. "exclude": they are not asked for,
        and keep their first-stage order below those that are; where all of a query's are without,
        the query fails, and so they stay in the plan. "empty": they are scored as empty texts.

    Raises SettingError where the depth is under 1, a query is not in the data set, or there is no
    such rule for candidates without a text.
    """
    if depth is not None and depth < 1:
        raise SettingError(
            "The depth must be at least 1, not {depth}.",
            remedy="Leave it empty to rerank all candidates.",
            depth=depth,
        )
    if without_text not in get_args(WithoutText):
        raise SettingError(
            "There is no rule {rule!r} for candidates without a text.",
            remedy="The rules are: exclude, empty.",
            rule=without_text,
        )
    known = list(dataset.queries["query_id"])
    requested = set(known if query_ids is None else query_ids)
    unknown = sorted(requested.difference(known))
    if unknown:
        raise SettingError("The data set has no query {query!r}.", query=unknown[0])
    silent = dataset.textless if needs_text else frozenset()
    textless = 0
    documents: dict[str, list[str]] = {}
    skipped: dict[str, str] = {}
    for query in known:
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


# One reranker with a grid of settings: every combination of the values that were asked for.

# How many candidates are reranked is no setting of a reranker, and varies all the same.
DEPTH = "depth"
MOST_VARIANTS = 24


@dataclass(frozen=True)
class Variant:
    """settings, depth: as a job takes them. differs: what it has of the settings that vary, in the
    order in which they were given."""

    settings: Mapping[str, SettingValue]
    depth: int | None
    differs: tuple[tuple[str, SettingValue], ...] = ()


def variants(
    specs: Sequence[SettingSpec],
    settings: Mapping[str, SettingValue],
    depth: int | None,
    varied: Mapping[str, Sequence[SettingValue]],
) -> tuple[Variant, ...]:
    """Every combination of the values in `varied`, the last setting changing fastest; equal values
    count once. Nothing varied gives the settings as they are.

    varied: name of a setting, or DEPTH → its values, which may be texts.

    Raises SettingError for a setting that does not exist, one without values, a value that is
    wrong, and more than MOST_VARIANTS combinations.
    """
    known = {spec.name: spec for spec in specs}
    values: dict[str, list[SettingValue]] = {}
    for name, choices in varied.items():
        if name != DEPTH and name not in known:
            raise SettingError("There is no setting {name!r} to vary.", name=name)
        spec = _DEPTH_SPEC if name == DEPTH else known[name]
        values[name] = list(dict.fromkeys(spec.parse(value) for value in choices))
        if not values[name]:
            raise SettingError(
                "There are no values of {name} to vary.", remedy="Give at least one.", name=name
            )
    combinations = [
        tuple(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())
    ]
    if len(combinations) > MOST_VARIANTS:
        raise SettingError(
            "These are {count} variants; {most} can be run at once.",
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
