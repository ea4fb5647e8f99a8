"""A key of the cache contains all inputs of its part.

Each public part of a study is computed before and after each change of it, with a cache that never
reuses a value. Two values under one key are an error: a real cache would return the old one. Parts,
their arguments and possible changes are found by introspection.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from string import ascii_letters
from typing import Any

import pytest

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.metrics import Conventions
from rankdash.core.sampling.status import LabelStatus
from rankdash.core.study.cache import Key
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from tests.study.builders import content
from tests.study.parts import NOT_ASKED, calls, judge, parts, result, study, values

# A value of each field that `study` does not have.

STATISTICS: dict[str, Any] = {
    "level": 0.8, "interval": "bca", "test": "sign-flip", "correction": "none", "family": "all",
    "resamples": 200, "seed": 3, "tie_band": 0.3, "worthwhile": 0.5,
    "equal_margin": 0.2,
}  # fmt: skip
CONVENTIONS: dict[str, Any] = {
    "ties": "trec", "threshold": 2.0, "judged_only": True, "missing": "skip", "queries": "both",
    "no_relevant": "count", "mrr_none": "skip", "ap_norm": "min(R,k)", "negative": "unjudged",
    "score_precision": "float32", "err_top_label": 5.0, "weights": "per search",
}  # fmt: skip


def changes(of: Study) -> dict[str, dict[str, Any]]:
    """Return field of a study → the fields that `replace` sets to change it."""
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


# Fields that no part depends on, and fields with fields that change.
UNCHANGED = {"check", "notes", "goals", "corrections", "dataset_id", "cache"}
UNCHANGED |= {"statistics", "conventions"}


class Checking:
    """A cache that never reuses a value. wrong: the parts with two values for one key."""

    def __init__(self, made: Mapping[Key, Any]) -> None:
        self.made, self.wrong = dict(made), set[str]()

    def __call__(self, key: Key, make: Callable[[], Any]) -> Any:
        value = make()
        found = content(value)
        if self.made.setdefault(key, found) != found:
            self.wrong.add(str(key[0]))
        return value


def asked(of: Study, *, every: bool) -> dict[str, Any]:
    return {name: result(part, of, content) for name, part in calls(of, every=every)}


@pytest.fixture(scope="module")
def before() -> tuple[Study, dict[str, Any]]:
    of = replace(study(), cache=Checking({}))
    return of, asked(of, every=True)


def test_the_key_of_each_part_names_what_a_change_of_the_study_changes(before, approved):
    """`approved/study/moved.txt` shows the parts that each change affects."""
    of, parts = before
    moved = {}
    for change, fields_ in changes(of).items():
        cache = Checking(of.cache.made)
        after = asked(replace(of, **fields_, cache=cache), every=False)
        assert not cache.wrong, f"{change} changes {cache.wrong}, and their keys do not"
        moved[change] = {name for name in after.keys() & parts.keys() if parts[name] != after[name]}
        assert moved[change], f"Choose a value of {change} that changes a part"
    marks = dict(zip(moved, ascii_letters, strict=False))
    rows = {name: "".join(marks[each] if name in moved[each] else "." for each in moved)
            for name in sorted(set().union(*moved.values()))}  # fmt: skip
    for system, known in of.systems.items():
        rows = {name.replace(system, known.name): row for name, row in rows.items()}
    legend = [f"{mark} {change}" for change, mark in marks.items()]
    approved("study/moved", "\n".join([*legend, *(f"{row} {name}" for name, row in rows.items())]))


def test_the_key_of_each_part_names_its_arguments(before):
    of, parts = before
    alone = {
        name: result(part, replace(of, cache=None), content) for name, part in calls(of, every=True)
    }
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
