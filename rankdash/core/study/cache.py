"""Where studies share what they worked out: passed in, so that pages reuse each other's.

    @part("labels", "baseline", "metric", "conventions")
    def headroom(study: Study, challenger: str) -> Headroom: …

says that the part is computed from these of the study, and from its arguments. It is made once for
each value of them.
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
"""What is kept (its first element) and everything that it depends on, by content ids: an entry is
never stale."""

DEPENDENCIES: Mapping[str, Callable[[Study], Hashable]] = {
    # The data set without its labels, and with them.
    "texts": lambda study: study.stored_id,
    "labels": lambda study: study.dataset_id,
    "baseline": lambda study: study.baseline,
    "challengers": lambda study: study.challengers,
    "chosen": lambda study: study.chosen,
    "metric": lambda study: study.spec,
    "metrics": lambda study: study.specs,
    "conventions": lambda study: study.conventions,
    # Of the conventions: what settles the order of documents, and from which grade one is relevant.
    "order": lambda study: study.conventions.joining,
    "threshold": lambda study: study.conventions.threshold,
    "statistics": lambda study: study.statistics,
    "level": lambda study: study.statistics.level,
    "seed": lambda study: study.statistics.seed,
    "tie band": lambda study: study.statistics.tie_band,
}


class Cache(Protocol):
    """What `make` makes, made once for a key."""

    def __call__(self, key: Key, make: Callable[[], Made]) -> Made: ...


def part(
    *depends: str, limit: str = "", alone: bool = False
) -> Callable[[Callable[Concatenate[Of, P], Made]], Callable[Concatenate[Of, P], Made]]:
    """Make a function of a study a part of it, computed once for its arguments and for what it
    depends on, names of `DEPENDENCIES`. An argument with an id, such as a judge, counts by that.

    limit: the name of the limit that a cache has for such large parts, first in the key. alone:
    each study computes its own, as it depends on more than a key names, such as prices.
    """
    values = [DEPENDENCIES[each] for each in depends]

    def decorated(
        made: Callable[Concatenate[Of, P], Made],
    ) -> Callable[Concatenate[Of, P], Made]:
        name = (*((limit,) if limit else ()), f"{made.__module__}.{made.__qualname__}")

        @wraps(made)
        def once(study: Of, /, *on: P.args, **named: P.kwargs) -> Made:
            arguments = [getattr(each, "id", each) for each in (*on, *named.values())]
            key = (*name, *(value(study) for value in values), *named, *arguments)
            return study.once(key, lambda: made(study, *on, **named), alone=alone)

        return once

    return decorated
