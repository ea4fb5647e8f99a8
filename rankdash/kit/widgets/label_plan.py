"""The plan of labels that is under way for a data set, and what was answered so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from msgspec import convert

from rankdash.core.base.errors import RankdashError
from rankdash.core.data.arrays import Floats
from rankdash.core.metrics import parse_measure
from rankdash.core.sampling.draws import Additive, Answered, LabelPlan, no_answers, pool_of
from rankdash.core.sampling.draws import LabelSettings as LabelSettings
from rankdash.core.sampling.status import LabelStatus, status
from rankdash.core.study.drawn import as_estimated
from rankdash.core.study.study import Study
from rankdash.core.workspace.jobs.judges import JudgeRow
from rankdash.core.workspace.notes import Correction, Corrections, LabelPlans, Pair, StoredPlan
from rankdash.kit.widgets import stored
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.server import workspace
from rankdash.kit.widgets.text import name_safe

SCALES = (1, 2, 3, 4)
"""The highest grades that a plan can have."""

# Entries of the log.
_BLOCK = 1_000


@dataclass(frozen=True)
class Labelling:
    """A plan of a data set, with the answers up to a revision of its corrections.

    off_scale: how many answers are above the highest grade, and do not count. resumed: name → when
    this person went on after each pause. judge: the name of the judge whose grades are the guess,
    and its grades of the pairs of the pool; None where there is none.
    """

    kept: StoredPlan
    settings: LabelSettings
    plan: LabelPlan
    answered: Answered
    off_scale: int
    resumed: Mapping[str, Sequence[str]]
    judge: tuple[str, Floats] | None = None

    @cached_property
    def status(self) -> LabelStatus:
        """Where the plan stands; systems by their ids."""
        grades = None if self.judge is None else self.judge[1]
        return status(self.plan, self.answered, grades, resumed=self.resumed)

    def named(self, fit: Callable[[str], str] = name_safe) -> LabelStatus:
        """The status with systems by their names of now, in the language of the reader.

        fit: what a name goes through; as it is, they are safe for Markdown.
        """
        systems = stored.systems(self.kept.dataset_id)
        named = (
            replace(
                each,
                baseline=fit(systems[each.baseline].name),
                challenger=fit(systems[each.challenger].name),
            )
            for each in self.status.estimates
        )
        return replace(self.status, estimates=tuple(named))

    @property
    def complete(self) -> bool:
        """Whether all labels are there that can move a difference."""
        return self.status.complete

    @property
    def metric(self) -> str:
        """The title of the metric of the estimates, such as "DCG@10"."""
        return parse_measure(self.settings.metric).title

    @property
    def grades(self) -> tuple[float, ...]:
        """The labels that can be given, ascending."""
        return tuple(float(grade) for grade in range(math.floor(self.settings.top) + 1))

    def last_of(self, who: str) -> Pair | None:
        """The pair that a person answered last; None where there is none."""
        own = self.answered.latest
        own = own[own["rater"] == who]
        return self.pair(int(own["pair"].iloc[own["time"].argmax()])) if len(own) else None

    def of_query(self, query_id: str) -> tuple[int, int]:
        """How many documents of a query have an answer, and how many are to be labelled."""
        pool, order = self.plan.pool, self.plan.order
        own = order[pool.query_ids[pool.query[order]] == query_id]
        return int((self.answered.raters[own] > 0).sum()), len(own)

    def pair(self, place: int) -> Pair:
        """Query id and document id of a place in the pool."""
        pool = self.plan.pool
        return str(pool.query_ids[pool.query[place]]), str(pool.doc_ids[place])


def current(dataset_id: str) -> Labelling | None:
    """The plan that was begun last for a data set; None where there is none, where a system of it
    was deleted, or where a workspace file brought one that is none."""
    base = stored.stored(dataset_id)
    kept = LabelPlans(workspace()).newest(base)
    if kept is None:
        return None
    try:
        settings = convert(dict(kept.settings), LabelSettings)
        known = set(settings.systems) <= set(stored.systems(base))
        if not known or settings.top not in SCALES:
            return None
        plan = cache(("label plan", kept.id), lambda: made(base, settings, kept.revision))
    except (RankdashError, ValueError):
        return None
    revision = Corrections(workspace()).revision(base)
    resumed = LabelPlans(workspace()).resumed(kept.id)
    judge = stored.judge_rows(base).get(settings.judge)

    def answered() -> Labelling:
        answers = _answers(_log(base, kept.revision, revision))
        above = answers["label"] > settings.top
        found = Answered.of(plan.pool, answers[~above])
        guess = None if judge is None else (judge.name, _grades(judge, plan))
        return Labelling(kept, settings, plan, found, int(above.sum()), resumed, guess)

    pauses = sum(map(len, resumed.values()))
    graded = 0 if judge is None else judge.graded
    return cache(("labelling", kept.id, revision, pauses, graded), answered)


def guessing(dataset_id: str, top: float) -> dict[str, JudgeRow]:
    """id → judge of those whose grades can be the guess of a plan with that highest grade."""
    every = stored.judge_rows(dataset_id)
    return {each: row for each, row in every.items() if row.graded and row.top == top}


def _grades(judge: JudgeRow, plan: LabelPlan) -> Floats:
    """(N,) of the pairs of the pool; NaN where it has none, or its scale is another one."""
    if judge.top != plan.metric.top:
        return np.full(len(plan.pool), np.nan)
    return plan.pool.aligned(stored.grades(judge), "grade")


def under_way(study: Study) -> Study:
    """The study with what the labels say that are being given; as it is without a plan."""
    found = current(study.stored_id)
    return study if found is None else replace(study, labelling=found.named(str))


def sampled(dataset_id: str) -> Labelling | None:
    """Return the plan whose labels are a sample of what a mean of this data set needs; None if
    there is no plan, if it is complete, or if most labels came with the data."""
    found = current(dataset_id)
    if found is None or found.complete:
        return None
    first = found.status.estimates[0]
    own = stored.dataset(stored.stored(dataset_id)).labelled_queries
    return None if own and first.labels + first.waiting <= first.known else found


def estimated(study: Study, labelling: Labelling) -> Study:
    """Return the study of what the plan estimates: its systems, by its metric."""
    baseline, *challengers = labelling.settings.systems
    chosen = replace(study, baseline=baseline, challengers=tuple(challengers))
    return as_estimated(replace(chosen, labelling=labelling.named(str)))


def without_sampled(study: Study) -> Study:
    """Return the study without labels if those that there are were sampled."""
    if sampled(study.stored_id) is None or not study.corrected:
        return study
    bare = stored.dataset(study.stored_id)
    return replace(study, dataset=bare, dataset_id=study.stored_id, corrections=0)


def offered(dataset_id: str, settings: LabelSettings) -> LabelPlan:
    """The plan that settings would make of the labels of now.

    Raises what `made` raises.
    """
    revision = Corrections(workspace()).revision(dataset_id)
    key = ("label plan offered", dataset_id, settings, revision)
    return cache(key, lambda: made(dataset_id, settings, revision))


def made(dataset_id: str, settings: LabelSettings, revision: int) -> LabelPlan:
    """The plan that settings make for a data set, with the labels of a revision of its corrections.

    Raises what `pool_of`, `Additive.of` and `LabelPlan.make` raise.
    """
    counting = revision and settings.keep
    data = stored.dataset(stored.with_corrections(dataset_id, revision) if counting else dataset_id)
    rankings = stored.rankings(dataset_id, settings.systems)
    metric = Additive.of(settings.metric, top=settings.top, threshold=settings.threshold)
    pool = pool_of(rankings, metric.k)
    labels = pool.aligned(data.qrels)
    known = np.where(labels > settings.top, np.nan, labels)
    return LabelPlan.make(
        pool, metric, seed=settings.seed, known=known, mode=settings.mode, share=settings.share
    )


def _log(dataset_id: str, start: int, end: int) -> list[Correction]:
    """The log between two revisions; what is complete for good is read once."""
    layer, block = Corrections(workspace()), max(end // _BLOCK * _BLOCK, start)
    key = ("label log", dataset_id, start, block)
    return [
        *cache(key, lambda: tuple(layer.log(dataset_id, start, block))),
        *layer.log(dataset_id, block, end),
    ]


def _answers(log: Sequence[Correction]) -> pd.DataFrame:
    """The answers of a log, without those that were withdrawn."""
    withdrawn, kept = set(), []
    for each in reversed(log):
        if each.withdrawn:
            withdrawn.add(each.pair)
        elif each.pair not in withdrawn:
            kept.append(each)
    kept.reverse()
    columns = {
        "query_id": [each.query_id for each in kept],
        "doc_id": [each.doc_id for each in kept],
        "label": [math.nan if each.label is None else each.label for each in kept],
        "rater": [each.who for each in kept],
        "time": [each.made for each in kept],
    }
    return pd.DataFrame(columns) if kept else no_answers()
