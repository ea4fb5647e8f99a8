"""One reranker with a grid of settings: every combination of the values that were asked for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rankdash.core.base.errors import SettingError
from rankdash.core.rerankers import SettingSpec, SettingValue

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
    for name, given in varied.items():
        if name != DEPTH and name not in known:
            raise SettingError("There is no setting {name!r} to vary.", name=name)
        spec = _DEPTH_SPEC if name == DEPTH else known[name]
        values[name] = list(dict.fromkeys(spec.parse(value) for value in given))
        if not values[name]:
            raise SettingError(
                "There are no values of {name} to vary.", remedy="Give at least one.", name=name
            )
    found = [
        tuple(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())
    ]
    if len(found) > MOST_VARIANTS:
        raise SettingError(
            "These are {count} variants; {most} can be run at once.",
            remedy="Vary fewer settings, or fewer values of each.",
            count=len(found),
            most=MOST_VARIANTS,
        )
    return tuple(_variant(settings, depth, differs) for differs in found)


_DEPTH_SPEC = SettingSpec(DEPTH, 1, "Depth", "Candidates reranked per query.", within=(1, math.inf))


def _variant(
    settings: Mapping[str, SettingValue],
    depth: int | None,
    differs: tuple[tuple[str, SettingValue], ...],
) -> Variant:
    own = dict(differs)
    deep = own.pop(DEPTH, depth)
    return Variant({**settings, **own}, None if deep is None else int(deep), differs)
