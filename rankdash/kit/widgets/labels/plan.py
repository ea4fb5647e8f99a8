"""The current labelling plan of a data set, and its answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import streamlit as st
from msgspec import convert

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import (
    duration,
    level_percent,
    ngettext,
    number,
    paragraph,
    signed,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.arrays import Floats
from rankdash.core.metrics import parse_measure
from rankdash.core.sampling.estimate import Estimate
from rankdash.core.sampling.label_plan import (
    FEWEST_DRAWS,
    FEWEST_QUERIES,
    Additive,
    Answered,
    LabelPlan,
    no_answers,
    pool_of,
)
from rankdash.core.sampling.label_plan import LabelSettings as LabelSettings
from rankdash.core.sampling.status import LabelStatus, status
from rankdash.core.study.labelling import as_estimated
from rankdash.core.study.study import Study
from rankdash.core.words.labelling import (
    effort_sentence,
    estimate_chip,
    estimate_sentences,
    like_these_sentence,
)
from rankdash.core.words.verdicts import change_interval
from rankdash.core.workspace.jobs.judges import JudgeRow
from rankdash.core.workspace.notes import Correction, Corrections, LabelPlans, Pair, StoredPlan
from rankdash.kit.html import interval
from rankdash.kit.widgets import stored
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.stored import workspace
from rankdash.kit.widgets.text import name_safe

SCALES = (1, 2, 3, 4)
"""The highest grades that a plan can have."""

# The number of log entries per cached block.
_BLOCK = 1_000


@dataclass(frozen=True)
class Labelling:
    """A plan of a data set, with the answers up to a revision of its corrections.

    off_scale: the number of answers above the highest grade, which do not count.
    resumed: name → when this person resumed after each pause.
    judge: the name of the judge whose grades are the predictions, and its grades of the pairs of
        the pool; None without one.
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
        """The status of the plan; systems by their ids."""
        grades = None if self.judge is None else self.judge[1]
        return status(self.plan, self.answered, grades, resumed=self.resumed)

    def named(self, fit: Callable[[str], str] = name_safe) -> LabelStatus:
        """Return the status with the current names of the systems, in the language of the reader.

        fit: converts a name; by default, names become safe for Markdown.
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
        """True if all labels that can change a difference are present."""
        return self.status.complete

    @property
    def metric(self) -> str:
        """The title of the metric of the estimates, such as "DCG@10"."""
        return parse_measure(self.settings.metric).title

    @property
    def grades(self) -> tuple[float, ...]:
        """The possible labels, ascending."""
        return tuple(float(grade) for grade in range(math.floor(self.settings.top) + 1))

    def last_of(self, who: str) -> Pair | None:
        """Return the pair that a person answered last; None if there is none."""
        answers = self.answered.latest
        answers = answers[answers["rater"] == who]
        return (
            self.pair(int(answers["pair"].iloc[answers["time"].argmax()])) if len(answers) else None
        )

    def of_query(self, query_id: str) -> tuple[int, int]:
        """Return how many documents of a query have an answer, and how many are to be labelled."""
        pool, order = self.plan.pool, self.plan.order
        pairs = order[pool.query_ids[pool.query[order]] == query_id]
        return int((self.answered.raters[pairs] > 0).sum()), len(pairs)

    def pair(self, place: int) -> Pair:
        """Return the query id and document id of an index in the pool."""
        pool = self.plan.pool
        return str(pool.query_ids[pool.query[place]]), str(pool.doc_ids[place])


def current(dataset_id: str) -> Labelling | None:
    """Return the plan that was begun last for a data set; None if there is none, if one of its
    systems was deleted, or if a workspace file contained an invalid one."""
    base = stored.stored(dataset_id)
    stored_plan = LabelPlans(workspace()).newest(base)
    if stored_plan is None:
        return None
    try:
        settings = convert(dict(stored_plan.settings), LabelSettings)
        has_systems = set(settings.systems) <= set(stored.systems(base))
        if not has_systems or settings.top not in SCALES:
            return None
        plan = cache(
            ("label plan", stored_plan.id), lambda: made(base, settings, stored_plan.revision)
        )
    except (RankdashError, ValueError):
        return None
    revision = Corrections(workspace()).revision(base)
    resumed = LabelPlans(workspace()).resumed(stored_plan.id)
    judge = stored.judge_rows(base).get(settings.judge)

    def answered() -> Labelling:
        answers = _answers(_log(base, stored_plan.revision, revision))
        above = answers["label"] > settings.top
        collected = Answered.of(plan.pool, answers[~above])
        guess = None if judge is None else (judge.name, _grades(judge, plan))
        return Labelling(stored_plan, settings, plan, collected, int(above.sum()), resumed, guess)

    pauses = sum(map(len, resumed.values()))
    graded = 0 if judge is None else judge.graded
    return cache(("labelling", stored_plan.id, revision, pauses, graded), answered)


def guessing(dataset_id: str, top: float) -> dict[str, JudgeRow]:
    """Return id → LLM judge, for the judges with grades from 0 to `top`.

    A labelling plan with the same highest grade can use these grades as predictions.
    """
    every = stored.judge_rows(dataset_id)
    return {each: row for each, row in every.items() if row.graded and row.top == top}


def _grades(judge: JudgeRow, plan: LabelPlan) -> Floats:
    """Return (N,) the grades of the pairs of the pool; NaN without a grade, or if the scales
    differ."""
    if judge.top != plan.metric.top:
        return np.full(len(plan.pool), np.nan)
    return plan.pool.aligned(stored.grades(judge), "grade")


def under_way(study: Study) -> Study:
    """Return the study with the current plan's result; unchanged without a plan."""
    labelling = current(study.stored_id)
    return study if labelling is None else replace(study, labelling=labelling.named(str))


def sampled(dataset_id: str) -> Labelling | None:
    """Return the plan if its labels are only a sample, so that means are not valid; None if there
    is no plan, if it is complete, or if most labels came with the data."""
    labelling = current(dataset_id)
    if labelling is None or labelling.complete or not _has_most_labels(labelling):
        return None
    return labelling


def complete_cutoff(dataset_id: str) -> int | None:
    """Return the cutoff within which a complete plan labelled the documents; None if there is no
    such plan, or if most labels came with the data."""
    labelling = current(dataset_id)
    if labelling is None or not labelling.complete or not _has_most_labels(labelling):
        return None
    return labelling.plan.metric.k


def _has_most_labels(labelling: Labelling) -> bool:
    """Return False if most labels came with the data."""
    first = labelling.status.estimates[0]
    labelled = stored.dataset(stored.stored(labelling.kept.dataset_id)).labelled_queries
    return not labelled or first.labels + first.waiting > first.known


def estimated(study: Study, labelling: Labelling) -> Study:
    """Return the study that the plan estimates: its systems, by its metric."""
    baseline, *challengers = labelling.settings.systems
    chosen = replace(study, baseline=baseline, challengers=tuple(challengers))
    return as_estimated(replace(chosen, labelling=labelling.named(str)))


def without_sampled(study: Study) -> Study:
    """Return the study without labels if its labels were sampled."""
    if sampled(study.stored_id) is None or not study.corrected:
        return study
    bare = stored.dataset(study.stored_id)
    return replace(study, dataset=bare, dataset_id=study.stored_id, corrections=0)


def offered(dataset_id: str, settings: LabelSettings) -> LabelPlan:
    """Return the labelling plan that the settings make with the current labels, without storing it.

    Raises the errors of `made`.
    """
    revision = Corrections(workspace()).revision(dataset_id)
    key = ("label plan offered", dataset_id, settings, revision)
    return cache(key, lambda: made(dataset_id, settings, revision))


def made(dataset_id: str, settings: LabelSettings, revision: int) -> LabelPlan:
    """Return the labelling plan that the settings make for a data set.

    revision: corrections of labels up to it count, if `settings.keep`.

    Raises the errors of `pool_of`, `Additive.of` and `LabelPlan.make`.
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
    """Return the corrections of labels between two revisions, in order; complete blocks are
    cached."""
    layer, block = Corrections(workspace()), max(end // _BLOCK * _BLOCK, start)
    key = ("label log", dataset_id, start, block)
    return [
        *cache(key, lambda: tuple(layer.log(dataset_id, start, block))),
        *layer.log(dataset_id, block, end),
    ]


def _answers(log: Sequence[Correction]) -> pd.DataFrame:
    """Return the answers in a log, without withdrawn ones."""
    withdrawn, remaining = set(), []
    for each in reversed(log):
        if each.withdrawn:
            withdrawn.add(each.pair)
        elif each.pair not in withdrawn:
            remaining.append(each)
    remaining.reverse()
    columns = {
        "query_id": [each.query_id for each in remaining],
        "doc_id": [each.doc_id for each in remaining],
        "label": [math.nan if each.label is None else each.label for each in remaining],
        "rater": [each.who for each in remaining],
        "time": [each.made for each in remaining],
    }
    return pd.DataFrame(columns) if remaining else no_answers()


# The progress of a labelling plan: its estimate, and the labels of each query.

# Session: plan → the widest axis of its intervals.
_AXES = "labelling.axes"


def draw_estimate_strip(labelling: Labelling) -> None:
    """Draw the interval of each challenger, which narrows with each label, and the number of labels
    needed."""
    state = labelling.named(str)
    axis = _axis(labelling.kept.id, state)
    st.html(interval.rows_html(_row(each, axis) for each in state.estimates))
    notes, first = [], state.estimates[0]
    if labelling.judge is not None and state.saved:
        notes.append(_saved(labelling.judge[0], state.saved))
    if first.waiting:
        notes.append(_waiting(labelling, first.waiting))
    if notes:
        st.caption(paragraph(notes))
    share, text = _progress(labelling, state)
    if math.isfinite(state.seconds):
        pace = _("{time} per label.", time=duration(state.seconds))
        text = paragraph([text, pace] if text else [pace])
    st.progress(share, text=text)


def draw_label_count(labelling: Labelling) -> None:
    """Draw the number of labels without the estimate, which would contradict means on the same
    page."""
    first = labelling.status.estimates[0]
    st.progress((first.labels + first.known) / first.pairs, text=_label_count(first))


def _label_count(each: Estimate) -> str:
    return _(
        "{n} of {all} labels", n=number(each.labels + each.known, 0), all=number(each.pairs, 0)
    )


def _axis(plan_id: str, state: LabelStatus) -> interval.Ends:
    """Return the axis of the intervals, as wide as at the first label in this window, so that the
    intervals visibly narrow."""
    axes: dict[str, interval.Ends] = st.session_state.setdefault(_AXES, {})
    estimates = [each for each in state.estimates if each.state != "too_early"]
    ends = [end for each in estimates for end in (each.low, each.high, each.difference)]
    axes[plan_id] = interval.common_axis([*ends, *axes.get(plan_id, ())])
    return axes[plan_id]


def _row(each: Estimate, axis: interval.Ends) -> tuple[str, str, str]:
    sentences = estimate_sentences(each)
    if each.conclusive and math.isfinite(each.like_these_low):
        sentences.append(like_these_sentence(each))
    # Before the first interval, a mean of a few labels would be misleading.
    value = math.nan if each.state == "too_early" else each.difference
    picture = interval.interval_html(
        value,
        each.low,
        each.high,
        axis,
        paragraph(sentences),
        proven=each.conclusive,
        labelled=True,
    )
    title = _(
        "{challenger} against {baseline}: {verdict}",
        challenger=each.challenger,
        baseline=each.baseline,
        verdict=estimate_chip(each),
    )
    labels = _label_count(each)
    if math.isnan(value):
        return title, picture, labels
    change = f"{parse_measure(each.metric).title} {signed(value, 4)}"
    if each.state == "complete":
        return title, picture, f"{change} · {labels}"
    ends = f"{level_percent(each.level)} {change_interval(each.low, each.high)}"
    return title, picture, f"{change} ({ends}) · {labels}"


def _progress(labelling: Labelling, state: LabelStatus) -> tuple[float, str]:
    """Return the progress towards a conclusive result, and its text."""
    first = state.estimates[0]
    if labelling.complete:
        return 1.0, _("All documents that can change the result have a label.")
    if state.conclusive:
        # The picture of the estimate shows it.
        return 1.0, ""
    if state.needed is None:
        fewest = FEWEST_DRAWS
        if state.mode == "query":
            fewest = math.ceil(first.pairs / first.queries * FEWEST_QUERIES)
        goal = min(fewest, first.pairs - first.known)
        text = _(
            "The first interval appears after about {n} labels.", n=number(goal + first.known, 0)
        )
        reached = (first.labels + first.known) / max(goal + first.known, 1)
        return min(reached, 0.99), text
    return first.labels / (first.labels + max(state.needed, 1)), effort_sentence(state)


def _saved(judge: str, saved: int) -> str:
    return ngettext(
        "The judge {name} has saved about {n} label; the result still rests on human labels.",
        "The judge {name} has saved about {n} labels; the result still rests on human labels.",
        saved,
        name=name_safe(judge),
    )


def _waiting(labelling: Labelling, waiting: int) -> str:
    if labelling.settings.mode == "query":
        return ngettext(
            "{n} label counts once all documents of its query are labelled.",
            "{n} labels count once all documents of their query are labelled.",
            waiting,
        )
    return ngettext(
        "{n} label will count once the documents sampled before it are labelled.",
        "{n} labels will count once the documents sampled before them are labelled.",
        waiting,
    )


def table(study: Study, labelling: Labelling) -> pd.DataFrame:
    """Return a row for each query with a label, most labels first: query (its text, else its id),
    labelled, documents that can change the result, and the highest label."""
    plan, answered = labelling.plan, labelling.answered
    pool = plan.pool
    labels = np.where(answered.raters > 0, answered.labels, plan.known)
    rows = pd.DataFrame(
        {
            "query_id": pool.query_ids[pool.query],
            "labelled": ~np.isnan(labels),
            "documents": plan.weighs,
            "highest": labels,
        }
    )
    by_query = rows.groupby("query_id", sort=False).agg(
        {"labelled": "sum", "documents": "sum", "highest": "max"}
    )
    by_query = by_query[by_query["labelled"] > 0].sort_values(
        "labelled", ascending=False, kind="stable"
    )
    names = study.dataset.query_names
    texts = [names.get(str(query), str(query)) for query in by_query.index]
    return by_query.reset_index().assign(query=texts)


def draw_labelled_queries(study: Study, labelling: Labelling) -> None:
    """Draw the labelled queries as a table."""
    rows = table(study, labelling)
    if rows.empty:
        return
    st.header(_("Labelled queries"), anchor=False)
    shown = {
        "query": _p("column", "query"),
        "labelled": _("labelled documents"),
        "documents": _("documents that can change the result"),
        "highest": _("highest label"),
    }
    st.dataframe(rows[list(shown)].rename(columns=shown), hide_index=True, width="stretch")
