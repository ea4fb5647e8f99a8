"""The parts of a study: its public properties, and the public functions of a study in the core and
in the numbers of features."""

import functools
import importlib
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from hashlib import blake2b
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.judgements import Judgements
from rankdash.core.data.ranking import Ranking, Reading, Run
from rankdash.core.metrics import Conventions, Judged, Measure
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.study.unjudged.system_bounds import RankedLabels
from rankdash.core.value.assumptions import Assumption
from rankdash.core.value.targets import Goals
from rankdash.features.policy.policy import Choices
from rankdash.features.queries import study as queries_study
from tests.roles import numbers
from tests.study.builders import shown, six, study_on, together

QUERIES = [f"q{n:02}" for n in range(24)]
DOCS = [f"d{n}" for n in range(8)]
PAIRS = np.array([*product(QUERIES, DOCS)], dtype=object)


def ranking(rng: np.random.Generator, rows: np.ndarray) -> Ranking:
    """Return scores in coarse steps: some tie, some in single precision."""
    scores = rng.integers(1, 9, len(rows)) + rng.choice([0, 1e-9], len(rows))
    return Ranking.from_columns(*rows.T, scores)


def run(rng: np.random.Generator, data: Dataset, name: str, rows: np.ndarray, failed: str) -> Run:
    made = run_from_ranking(name, data.id, ranking(rng, rows[rows[:, 0] != failed]), "a.trec")
    size = len(made.queries)
    timed = made.queries.assign(latency_ms=rng.gamma(3, 20, size), tokens=rng.gamma(9, 50, size))
    lost = pd.DataFrame({"query_id": [failed], "state": "failed", "reason": "time-out"})
    full = rng.integers(5, 60, len(made.ranking)).astype(np.int32)
    queries = pd.concat([timed, lost], ignore_index=True)
    return replace(made, queries=queries, reading=Reading(np.minimum(full, 40), full))


def study() -> Study:
    """Return two systems, one also fused with the first stage, and queries without a value for each
    reason."""
    rng = np.random.default_rng(7)
    labels = pd.DataFrame(PAIRS, columns=["query_id", "doc_id"])
    labels["label"] = rng.choice([-1.0, 0, 0, 1, 3], len(PAIRS))
    labels.loc[labels["query_id"] == "q21", "label"] = 0.0
    first = PAIRS[(rng.random(len(PAIRS)) < 0.9) & (PAIRS[:, 0] != "q01")]
    kinds = [f"kind {n % 2}" for n in range(len(QUERIES))]
    data = Dataset(
        "set",
        pd.DataFrame(
            {
                "query_id": QUERIES,
                "text": [f"how {q}" for q in QUERIES],
                "kind": kinds,
                "frequency": [str(1 + n**2) for n in range(len(QUERIES))],
            }
        ),
        pd.DataFrame({"doc_id": DOCS, "title": DOCS, "text": [f"{doc} does" for doc in DOCS]}),
        labels[(rng.random(len(PAIRS)) < 0.7) & (labels["query_id"] < "q22")],
        ranking(rng, first),
    )
    one = run(rng, data, "one", PAIRS[PAIRS[:, 0] != "q04"], "q05")
    two = run(rng, data, "two", first, "q03")
    both = together(data, two, name="both", first_stage=True)
    return study_on(
        data,
        *(one, two, both),
        challengers=(both.id, one.id),
        cutoff=3,
        others=("map@2", "mrr@3", "err@3", "judged@3"),
        statistics=StatisticsSettings(interval="percentile", test="t", resamples=100),
        money=Money.of({"value_per_search": 0.1}),
        dataset_id="set",
    )


@functools.cache
def judge(seed: int) -> Judgements:
    grades = np.random.default_rng(seed).integers(0, 2, len(PAIRS)).astype(float)
    table = pd.DataFrame(PAIRS, columns=["query_id", "doc_id"]).assign(grade=grades, error="")
    return Judgements("judge", (0, 1), table)


def values(of: Study) -> dict[str, Any]:
    """Return argument of a part → its values."""
    return {
        "challenger": of.challengers,
        "system": of.challengers,
        "one": [of.baseline],
        "other": of.challengers,
        "before": of.challengers[:1],
        "after": of.challengers[-1:],
        "systems": [tuple(of.systems)],
        "others": [of.challengers],
        "segment": of.segments[::-1],
        "query_id": ["q00", "q03"],
        "docs": [()],
        "doc_ids": [DOCS[:2], DOCS[:1]],
        "judge": [judge(1)],
        "goals": [Goals.of("faq"), Goals.of("ecommerce")],
        "spec": of.specs,
        "specs": [of.specs, ("ndcg@1", "recall@2")],
        "metric": ["ndcg", "mrr"],
        "measure": [of.measure],
        "k": [3, 1],
        "passages": [1, 2],
        "margin": ["first", "edge"],
        "tolerance": [0.3, 0.0],
        "of_first": [None, 2],
        "choices": [
            Choices(of.challengers[-1], depth=5, skip_loss=0.3, deadline_ms=60.0),
            Choices(of.challengers[0], depth=8, skip_loss=0.0, margin="edge"),
            Choices(of.challengers[-1], floor_alpha=0.2),
            Choices(of.challengers[-1], weights=(of.baseline, of.challengers[-1])),
        ],
        "relevant_only": [False, True],
        "every": [False, True],
        "against": ["documents", "tokens"],
        "change": [0.1, -0.1],
        "alpha": [0.05, 0.1],
        "thresholds": [(4.0,), (6.0, 7.0)],
    }


# Arguments that are computed from other parts, and arguments of the cache.
NOT_ASKED = {
    *("choice", "depth", "found", "price", "query_ladder", "query_split", "missed", "draws"),
    *("make", "key", "alone", "skip_loss", "deadline_ms", "floor_alpha", "fuse"),
}


def why(study: Study, challenger: str, query_id: str) -> list[object]:
    """Return the explanation of one query: its change, the documents its list lacks, the fault."""
    found = queries_study.change(study, challenger, query_id)
    ladder = queries_study.ladder_of(study, challenger, query_id)
    lacking = queries_study.missed(study, challenger, query_id, ladder)
    said = queries_study.change_statements(study, found)
    return [said, lacking, queries_study.blame(study, challenger, found, lacking)]


def parts() -> Iterator[tuple[str, Callable[..., Any], list[str]]]:
    """Yield the name of each public part, its function of a study, and its further arguments: first
    the attributes, then functions of all modules, ordered by name."""
    for name, part in vars(Study).items():
        if inspect.isfunction(part) and not name.startswith("_"):
            _study, *more = inspect.signature(part).parameters.values()
            # `rules` is called without systems.
            yield name, part, [each.name for each in more if each.kind != each.VAR_POSITIONAL]
        elif isinstance(part, property | functools.cached_property) and not name.startswith("_"):
            yield name, functools.partial(lambda name, of: getattr(of, name), name), []
    found: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    for module in numbers():
        for name, part in vars(importlib.import_module(module)).items():
            if inspect.isfunction(part) and part.__module__ == module and name[0] != "_":
                first, *more = [*inspect.signature(part).parameters, ""]
                if first == "study":
                    assert name not in found, f"two parts of this name: {name}"
                    found[name] = part, more[:-1]
    yield from ((name, *found[name]) for name in sorted(found))
    yield "why", why, ["challenger", "query_id"]


def calls(
    of: Study, *, every: bool, own: Mapping[str, list[Any]] | None = None
) -> Iterator[tuple[str, Callable[[Study], Any]]]:
    """Yield each part with the first value of each argument, and with each system. every: also with
    each other value of one argument. own: values that replace those from `values`."""
    known = values(of) | dict(own or {})
    for name, part, arguments in parts():
        if NOT_ASKED.isdisjoint(arguments):
            first = {each: known[each][0] for each in arguments}
            varied = arguments if every else {"system"}.intersection(arguments)
            others = [{each: value} for each in varied for value in known[each][1:]]
            for change in ({}, *others):
                yield f"{name}({change or ''})", functools.partial(part, **first | change)


def result(part: Callable[[Study], Any], of: Study, shown: Callable[[Any], Any]) -> Any:
    """Return the part as text, or the error that it raises."""
    try:
        return shown(part(of))
    except RankdashError as error:
        return str(error)


# A part as one or more lines.

FEW = 6


def brief(value: Any) -> str:
    """Return a value in one or more lines. Many numbers are shown as their count, their mean, their
    spread, and the mean of each times its place."""
    match value:
        case Measure():
            return value.spec
        case Assumption():
            return value.name
        case Study() | Run() | Ranking() | Judged() | RankedLabels() | Conventions():
            return type(value).__name__
        case pd.DataFrame():
            return "\n".join([f"{len(value)} rows", *(f"  {n}: {brief(value[n])}" for n in value)])
        case pd.Series() if value.index.dtype == "int64" or len(value) > 30:
            return brief(value.tolist())
        case pd.Series():
            return brief(value.to_dict())
        case np.ndarray():
            return brief(value.ravel().tolist())
        case set() | frozenset():
            return brief(sorted(value))
        case str():
            return value[:80]
        case bytes():
            return f"{len(value)} bytes, {blake2b(value, digest_size=6).hexdigest()}"
    if hasattr(value, "to_pylist"):
        return brief(value.to_pylist())
    if isinstance(value, Mapping | list | tuple) and len(value) > FEW:
        return many(list(value.values()) if isinstance(value, Mapping) else list(value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {brief(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(brief, value))}]"
    if is_dataclass(value):
        names = [each.name for each in fields(value) if each.init and each.name[0] != "_"]
        own = ", ".join(f"{name} {brief(getattr(value, name))}" for name in names)
        return f"{type(value).__name__}({own})"
    return "…" if callable(value) else re.sub(r" object at 0x\w+", "", shown(value))


def many(items: list[Any]) -> str:
    if all(isinstance(each, int | float) for each in items):
        numbers = np.array(items, dtype=float)
        known = numbers[np.isfinite(numbers)]
        if not len(known):
            return f"0 of {len(items)}"
        places = np.flatnonzero(np.isfinite(numbers)) / len(items)
        each = f"mean {six(known.mean())} sd {six(known.std())} by place {six(known @ places)}"
        return f"{len(known)} of {len(items)} {each}"
    counts = Counter(map(brief, items))
    if len(counts) <= FEW and all(isinstance(each, str) or each is None for each in items):
        return f"{len(items)}: {', '.join(f'{n} {each}' for each, n in counts.items())}"
    return f"{len(items)}, {len(counts)} different, first {brief(items[0])}"


def all_of(of: Study, *, every: bool = False, **own: list[Any]) -> dict[str, str]:
    """Return each part as text. own: values of arguments."""
    found = {name: result(part, of, brief) for name, part in calls(of, every=every, own=own)}
    for system, known in of.systems.items():
        found = {name.replace(system, known.name): text.replace(system, known.name)
                 for name, text in found.items()}  # fmt: skip
    return found
