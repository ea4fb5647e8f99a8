"""A cache of computed parts of studies. It is passed in, so that pages share their results.

    @part("labels", "baseline", "metric", "conventions")
    def headroom(study: Study, challenger: str) -> Headroom: …

declares that the part depends on these properties of the study and on its arguments. It is computed
once for each combination of their values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from rankdash.core.study.study import Study

P = ParamSpec("P")
Made = TypeVar("Made")
Of = TypeVar("Of", bound="Study")
Key = tuple[Hashable, ...]
"""The name of a part (first element) and the content ids of all its dependencies: an entry is never
stale."""

DEPENDENCIES: Mapping[str, Callable[[Study], Hashable]] = {
    # The data set without its labels, and with its labels; both with the documents of fetched runs.
    "texts": lambda study: (study.stored_id, study.dataset.added),
    "labels": lambda study: (study.dataset_id, study.dataset.added),
    "baseline": lambda study: study.baseline,
    "challengers": lambda study: study.challengers,
    "chosen": lambda study: study.chosen,
    "metric": lambda study: study.spec,
    "metrics": lambda study: study.specs,
    "conventions": lambda study: study.conventions,
    # Parts of the conventions: the order of documents, and the lowest relevant grade.
    "order": lambda study: study.conventions.joining,
    "threshold": lambda study: study.conventions.threshold,
    "statistics": lambda study: study.statistics,
    "level": lambda study: study.statistics.level,
    "seed": lambda study: study.statistics.seed,
    "tie band": lambda study: study.statistics.tie_band,
}


class Cache(Protocol):
    """A cache that returns the result of `make`, computed once for a key."""

    def __call__(self, key: Key, make: Callable[[], Made]) -> Made: ...


def part(
    *depends: str, limit: str = "", alone: bool = False
) -> Callable[[Callable[Concatenate[Of, P], Made]], Callable[Concatenate[Of, P], Made]]:
    """Return a decorator that caches a function of a study.

    depends: names of `DEPENDENCIES`; the key has their values and the arguments. An argument with
    an id, such as a judge, is represented by this id. limit: the name of a limit of the cache for
    large parts, first in the key. alone: not shared between studies, because the function depends
    on more than the key, such as prices.
    """
    values = [DEPENDENCIES[each] for each in depends]

    def decorated(
        compute: Callable[Concatenate[Of, P], Made],
    ) -> Callable[Concatenate[Of, P], Made]:
        name = (*((limit,) if limit else ()), f"{compute.__module__}.{compute.__qualname__}")

        @wraps(compute)
        def once(study: Of, /, *on: P.args, **named: P.kwargs) -> Made:
            arguments = [getattr(each, "id", each) for each in (*on, *named.values())]
            key = (*name, *(value(study) for value in values), *named, *arguments)
            return study.once(key, lambda: compute(study, *on, **named), alone=alone)

        return once

    return decorated
