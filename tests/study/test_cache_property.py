"""A key of the cache names all that its part is computed from.

Each public part of a study is asked for before and after each change of it, with a cache that makes
everything anew: two contents under one key are a part that a real cache returns after the change
that made it wrong. Parts, their arguments and what can change are found by introspection.
"""

import functools
import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankdash.study
from rankdash.analysis.judging.judgements import Judgements
from rankdash.analysis.labelling.status import LabelStatus
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.dataset import Dataset
from rankdash.errors import RankdashError
from rankdash.metrics import Conventions
from rankdash.ranking.ranking import Ranking, Reading, Run
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.cache import Key
from rankdash.study.study import Study
from rankdash.study.systems import Money
from rankdash.value.targets import Goals
from tests.study.builders import content, study_on, together

QUERIES = [f"q{n:02}" for n in range(24)]
DOCS = [f"d{n}" for n in range(8)]
PAIRS = np.array([*product(QUERIES, DOCS)], dtype=object)


def ranking(rng: np.random.Generator, rows: np.ndarray) -> Ranking:
    """Scores in coarse steps: some tie, some in single precision."""
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
    """Two systems, one also fused with the first stage; queries without a value for each reason."""
    rng = np.random.default_rng(7)
    labels = pd.DataFrame(PAIRS, columns=["query_id", "doc_id"])
    labels["label"] = rng.choice([-1.0, 0, 0, 1, 3], len(PAIRS))
    labels.loc[labels["query_id"] == "q21", "label"] = 0.0
    first = PAIRS[(rng.random(len(PAIRS)) < 0.9) & (PAIRS[:, 0] != "q01")]
    kinds = [f"kind {n % 2}" for n in range(len(QUERIES))]
    data = Dataset(
        "set",
        pd.DataFrame({"query_id": QUERIES, "text": [f"how {q}" for q in QUERIES], "kind": kinds}),
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


# A value of each field that `study` does not have.

STATISTICS: dict[str, Any] = {
    "level": 0.8, "interval": "bca", "test": "sign-flip", "correction": "none", "family": "all",
    "resamples": 200, "seed": 3, "tie_band": 0.3, "worthwhile": 0.5,
}  # fmt: skip
CONVENTIONS: dict[str, Any] = {
    "ties": "trec", "threshold": 2.0, "judged_only": True, "missing": "skip", "queries": "both",
    "no_relevant": "count", "mrr_none": "skip", "ap_norm": "min(R,k)", "negative": "unjudged",
    "score_precision": "float32", "err_top_label": 5.0,
}  # fmt: skip


def changes(of: Study) -> dict[str, dict[str, Any]]:
    """Field of a study → what `replace` sets so that it has another value."""
    relabelled = of.dataset.qrels.head(40).assign(label=lambda rows: 3 - rows["label"])
    first, second = of.challengers
    (other,) = of.systems.keys() - {*of.chosen}
    without_part = {key: each for key, each in of.systems.items() if key != other}
    return {
        "dataset": {"dataset": of.dataset.relabelled(relabelled), "dataset_id": "set+1"},
        "systems": {"systems": without_part},
        "baseline": {"baseline": second, "challengers": (first, of.baseline)},
        "challengers": {"challengers": (first, other)},
        "metric": {"metric": "map"},
        "cutoff": {"cutoff": 5},
        "others": {"others": None},
        "money": {"money": Money.of({"value_per_search": 5.0, "passages": 2})},
        "labelling": {"labelling": LabelStatus("query", (), 0, (), (), math.nan)},
        "judge": {"judge": judge(2)},
        **{
            f"{name}.{field}": {name: replace(getattr(of, name), **{field: value})}
            for name, values in (("statistics", STATISTICS), ("conventions", CONVENTIONS))
            for field, value in values.items()
        },
    }


# Fields that no part is computed from, and those whose own fields change.
UNCHANGED = {"check", "notes", "goals", "corrections", "dataset_id", "cache"}
UNCHANGED |= {"statistics", "conventions"}


def values(of: Study) -> dict[str, Any]:
    """Argument of a part → the values that are asked for."""
    return {
        "challenger": of.challengers,
        "system": of.challengers,
        "one": [of.baseline],
        "other": of.challengers,
        "before": of.challengers[:1],
        "after": of.challengers[1:],
        "systems": [tuple(of.systems)],
        "segment": of.segments[::-1],
        "query_id": ["q00", "q03"],
        "docs": [()],
        "doc_ids": [DOCS[:2], DOCS[:1]],
        "judge": [judge(1)],
        "goals": [Goals.of("faq"), Goals.of("ecommerce")],
        "spec": of.specs,
        "specs": [of.specs, ("ndcg@1", "recall@2")],
        "metric": ["ndcg", "mrr"],
        "k": [1, 3],
        "passages": [1, 2],
        "margin": ["first", "edge"],
        "tolerance": [0.0, 0.1],
        "relevant_only": [False, True],
        "every": [False, True],
        "against": ["documents", "tokens"],
        "change": [0.1, -0.1],
    }


# Arguments that are made of other parts, and those of what keeps parts.
NOT_ASKED = {*("choice", "found", "missed", "draws"), *("make", "key", "part", "on", "alone")}
NOT_ASKED |= {"dataset_id"}


def parts() -> Iterator[tuple[str, Callable[..., Any], list[str]]]:
    """Name of each public part, its function of a study, and the names of further arguments."""
    for name, part in vars(Study).items():
        if inspect.isfunction(part) and not name.startswith("_"):
            yield name, part, list(inspect.signature(part).parameters)[1:]
        elif isinstance(part, property | functools.cached_property) and not name.startswith("_"):
            yield name, functools.partial(lambda name, of: getattr(of, name), name), []
    for module in pkgutil.iter_modules(rankdash.study.__path__, "rankdash.study."):
        for name, part in vars(importlib.import_module(module.name)).items():
            if inspect.isfunction(part) and part.__module__ == module.name and name[0] != "_":
                first, *more = [*inspect.signature(part).parameters, ""]
                if first == "study":
                    yield f"{module.name}.{name}", part, more[:-1]


def calls(
    of: Study, *, every: bool, own: Mapping[str, list[Any]] | None = None
) -> Iterator[tuple[str, Callable[[Study], Any]]]:
    """Each part with the first value of each argument, and of each system; every: then with each
    other value of one argument. own: values of arguments in place of those of `values`."""
    known = values(of) | dict(own or {})
    for name, part, arguments in parts():
        if NOT_ASKED.isdisjoint(arguments):
            first = {each: known[each][0] for each in arguments}
            varied = arguments if every else {"system"}.intersection(arguments)
            others = [{each: value} for each in varied for value in known[each][1:]]
            for change in ({}, *others):
                yield f"{name}({change or ''})", functools.partial(part, **first | change)


class Checking:
    """A cache that makes everything anew. wrong: the parts whose key has two contents."""

    def __init__(self, made: Mapping[Key, Any]) -> None:
        self.made, self.wrong = dict(made), set[str]()

    def __call__(self, key: Key, make: Callable[[], Any]) -> Any:
        value = make()
        found = content(value)
        if self.made.setdefault(key, found) != found:
            self.wrong.add(str(key[0]))
        return value


def result(part: Callable[[Study], Any], of: Study) -> Any:
    """What the part contains, or the error that it raises."""
    try:
        return content(part(of))
    except RankdashError as error:
        return str(error)


def asked(of: Study, *, every: bool) -> dict[str, Any]:
    return {name: result(part, of) for name, part in calls(of, every=every)}


@pytest.fixture(scope="module")
def before() -> tuple[Study, dict[str, Any]]:
    of = replace(study(), cache=Checking({}))
    return of, asked(of, every=True)


@pytest.mark.parametrize("change", changes(study()))
def test_the_key_of_each_part_names_what_a_change_of_the_study_changes(before, change):
    of, parts = before
    cache = Checking(of.cache.made)
    after = asked(replace(of, **changes(of)[change], cache=cache), every=False)
    assert not cache.wrong, f"{change} changes {cache.wrong}, and their keys do not"
    assert any(parts[name] != found for name, found in after.items() if name in parts), (
        f"Choose a value of {change} that changes a part"
    )


def test_the_key_of_each_part_names_its_arguments(before):
    of, parts = before
    alone = {name: result(part, replace(of, cache=None)) for name, part in calls(of, every=True)}
    wrong = [name for name, found in alone.items() if parts[name] != found]
    assert not wrong, f"The key lacks an argument: {wrong}"


def test_every_field_and_argument_has_other_values():
    of = study()
    given = {each.name for each in fields(Study) if each.init} - UNCHANGED
    given |= {f"statistics.{each.name}" for each in fields(StatisticsSettings)}
    given |= {f"conventions.{each.name}" for each in fields(Conventions)}
    assert set(changes(of)) == given, "Add another value of the field"
    arguments = {each for *_part, own in parts() for each in own}
    assert arguments == {*values(of), *NOT_ASKED}, "Add values of the argument"
