"""The plan of labels that is under way for a data set, and what was answered so far."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pandas as pd
from msgspec import convert

from rankdash.analysis.labelling.additive import Additive
from rankdash.analysis.labelling.answers import COLUMNS, Answered, no_answers
from rankdash.analysis.labelling.draws import LabelPlan
from rankdash.analysis.labelling.estimate import Estimate
from rankdash.analysis.labelling.label_pool import pool_of
from rankdash.analysis.labelling.status import LabelStatus, status
from rankdash.store.notes.corrections import Correction, Corrections, Pair
from rankdash.store.notes.label_plans import LabelPlans, StoredPlan
from rankdash.ui.state import stored
from rankdash.ui.state.cache import cache
from rankdash.ui.state.server import workspace
from rankdash.ui.widgets.text import name_safe


@dataclass(frozen=True)
class LabelSettings:
    """What a plan is made from; the same settings and rankings make the same plan again.

    systems: their ids, the baseline first. metric: a sum over documents with a cutoff, such as
    "dcg@10". top: the highest grade. threshold: the lowest that is relevant. double: the share of
    the pairs that two people label.
    """

    systems: tuple[str, ...]
    metric: str
    top: float
    threshold: float
    seed: int
    double: float = 0.0


@dataclass(frozen=True)
class Labelling:
    """A plan of a data set, with the answers up to a revision of its corrections."""

    kept: StoredPlan
    settings: LabelSettings
    plan: LabelPlan
    answered: Answered

    @cached_property
    def status(self) -> LabelStatus:
        """Where the plan stands; systems by their names, safe for Markdown."""
        found = status(self.plan, self.answered)
        return replace(found, estimates=tuple(map(self._named, found.estimates)))

    def _named(self, found: Estimate) -> Estimate:
        systems = stored.systems(self.kept.dataset_id)
        return replace(
            found,
            baseline=name_safe(systems[found.baseline].name),
            challenger=name_safe(systems[found.challenger].name),
        )

    @property
    def complete(self) -> bool:
        """Whether all labels are there that can move a difference."""
        return all(each.state == "complete" for each in self.status.estimates)

    @property
    def grades(self) -> tuple[float, ...]:
        """The labels that can be given, ascending."""
        return tuple(float(grade) for grade in range(math.floor(self.settings.top) + 1))

    def last_of(self, who: str) -> Pair | None:
        """The pair that a person answered last; None where there is none."""
        own = self.answered.latest
        own = own[own["rater"] == who]
        return self.pair(int(own["pair"].iloc[own["time"].argmax()])) if len(own) else None

    def pair(self, place: int) -> Pair:
        """Query id and document id of a place in the pool."""
        pool = self.plan.pool
        return str(pool.query_ids[pool.query[place]]), str(pool.doc_ids[place])


def current(dataset_id: str) -> Labelling | None:
    """The plan that was begun last for a data set; None where there is none, or where a system of
    it was deleted."""
    base = stored.stored(dataset_id)
    kept = LabelPlans(workspace()).newest(base)
    if kept is None:
        return None
    settings = convert(dict(kept.settings), LabelSettings)
    if not set(settings.systems) <= set(stored.systems(base)):
        return None
    plan = cache(("label plan", kept.id), lambda: made(base, settings, kept.revision))
    revision = Corrections(workspace()).layer(base).revision

    def answered() -> Labelling:
        log = Corrections(workspace()).log(base, kept.revision)
        return Labelling(kept, settings, plan, Answered.of(plan.pool, _answers(log)))

    return cache(("labelling", kept.id, revision), answered)


def made(dataset_id: str, settings: LabelSettings, revision: int) -> LabelPlan:
    """The plan that settings make for a data set, with the labels of a revision of its corrections.

    Raises what `pool_of`, `Additive.of` and `LabelPlan.make` raise.
    """
    data = stored.dataset(stored.with_corrections(dataset_id, revision) if revision else dataset_id)
    systems, rankings = stored.systems(dataset_id), {}
    for each in settings.systems:
        own, load = systems[each].ranking, systems[each].load
        rankings[each] = load().ranking if load else data.candidates if own is None else own
    metric = Additive.of(settings.metric, top=settings.top, threshold=settings.threshold)
    pool = pool_of(rankings, metric.k)
    return LabelPlan.make(pool, metric, seed=settings.seed, known=pool.aligned(data.qrels))


def _answers(log: Sequence[Correction]) -> pd.DataFrame:
    """The answers of a log, without those that were withdrawn."""
    kept: dict[Pair, list[Correction]] = {}
    for each in log:
        if each.withdrawn:
            kept.pop(each.pair, None)
        else:
            kept.setdefault(each.pair, []).append(each)
    rows: list[Mapping[str, object]] = [
        dict(
            zip(
                COLUMNS,
                (*each.pair, math.nan if each.label is None else each.label, each.who, each.made),
                strict=True,
            )
        )
        for entries in kept.values()
        for each in entries
    ]
    return pd.DataFrame(rows) if rows else no_answers()
