"""Run: the choice to stop a run when its result is conclusive, and its interim result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import level_percent, ngettext, number, paragraph, signed
from rankdash.core.metrics import parse_measure
from rankdash.core.runs import jobs
from rankdash.core.runs.jobs import JobRow, StopRule
from rankdash.core.runs.stopping import Look
from rankdash.core.statistics.anytime import FEWEST_CHANGED, FEWEST_SCORED
from rankdash.features.run import page_estimate
from rankdash.features.run.page_estimate import Wish
from rankdash.kit.widgets import address, pickers, scenario, settings_form, stored, view
from rankdash.kit.widgets.labels import plan
from rankdash.kit.widgets.stored import workspace

Stopping = Literal["never", "ask", "itself"]
_CHOICES: tuple[Stopping, ...] = ("never", "ask", "itself")
_CONTINUED = "jobs.continued"


def choose(dataset_id: str, wishes: Sequence[Wish]) -> Stopping:
    """Draw the choice when runs may stop early: never, on a user's request, or when the result is
    conclusive.

    Returns "never" without drawing it if a run has too few labelled queries for a conclusive
    result, if the labels are a sample, or if the candidates are not the first stage's.
    """
    if any(wish.plan.source is not None for wish in wishes):
        return "never"
    labelled = stored.dataset(stored.stored(dataset_id)).labelled_queries
    fewest = min([labelled, *(wish.plan.queries for wish in wishes)])
    if fewest < FEWEST_SCORED or plan.sampled(dataset_id) is not None:
        return "never"
    paid = any(page_estimate.calls_out(wish.kind, wish.variant.settings) for wish in wishes)
    chosen: Stopping = st.selectbox(
        _("Stop early"),
        _CHOICES,
        index=_CHOICES.index("ask" if paid else "never"),
        format_func={
            "never": _("never: score all queries"),
            "ask": _("show the interim result; you can stop the run"),
            "itself": _("stop the run when its result is conclusive"),
        }.__getitem__,
        help=_(
            "Queries are scored in random order. After each batch, the change of {metric} against "
            "the first stage is shown with an interval that is valid at any time. A stopped run is "
            "reported with this interval, which is wider than the interval of a complete run.",
            metric=parse_measure(_metric()).title,
        ),
        key=pickers.in_words(f"run.stop.{paid}"),
        persist_state="session",
    )
    return chosen


def rule(dataset_id: str, wish: Wish, chosen: Stopping) -> StopRule | None:
    """Return the rule by which a run may stop early; None if it scores all queries."""
    if chosen == "never":
        return None
    rules = StopRule(
        metric=_metric(),
        conventions=settings_form.conventions(),
        level=settings_form.statistics(0).level,
        by_itself=chosen == "itself",
    )
    cost = page_estimate.cost(dataset_id, wish.kind, wish.variant.settings, wish.plan)
    return rules if cost is None else replace(rules, dollars=cost.dollars)


def _metric() -> str:
    """Return the spec of the metric that the other pages show."""
    measure = parse_measure(address.one("metric") or "ndcg")
    cutoff = view.cutoff_of(address.one("k"))
    if not measure.metric.measures_quality:
        return StopRule().metric
    return replace(measure, k=cutoff).spec if cutoff and measure.metric.has_cutoff else measure.spec


def draw_look(row: JobRow) -> None:
    """Draw the interim result of a running job, and if it is conclusive, the choice to stop."""
    if row.stop is None or row.look is None or row.state != "running":
        return
    rules, look = StopRule.from_mapping(row.stop), Look.from_mapping(row.look)
    text = _sentence(row, rules, look)
    continued: set[str] = st.session_state.setdefault(_CONTINUED, set())
    if not look.conclusive or rules.by_itself or row.id in continued:
        st.caption(text)
        return
    st.info(text, icon=":material/check_circle:")
    with st.container(horizontal=True):
        st.button(
            _("Stop the run"),
            on_click=jobs.stop_when_conclusive,
            args=(workspace(), row.id),
            icon=":material/stop_circle:",
            key=f"stop.{row.id}",
        )
        st.button(
            _("Go on"),
            on_click=continued.add,
            args=(row.id,),
            icon=":material/play_arrow:",
            key=f"continue.{row.id}",
        )


def _sentence(row: JobRow, rules: StopRule, look: Look) -> str:
    values = {
        "done": number(look.done, 0),
        "metric": parse_measure(rules.metric).title,
        "change": signed(look.change),
        "level": level_percent(rules.level),
        "low": signed(look.low),
        "high": signed(look.high),
    }
    cost = ""
    if math.isfinite(rules.dollars) and row.pairs_total:
        cost = _(
            "Cost: about {spent} of {total}.",
            spent=scenario.dollars(rules.dollars * row.pairs_done / row.pairs_total),
            total=scenario.dollars(rules.dollars),
        )
    if math.isnan(look.low):
        early = _(
            "The first interval of the change needs {queries} labelled queries, {changed} of them "
            "with a change.",
            queries=FEWEST_SCORED,
            changed=FEWEST_CHANGED,
        )
        return paragraph([early, cost] if cost else [early])
    if look.conclusive:
        result = ngettext(
            "Conclusive after {done} of {n} query: {metric} {change} ({level} {low} … {high}).",
            "Conclusive after {done} of {n} queries: {metric} {change} ({level} {low} … {high}).",
            row.total,
            **values,
        )
    else:
        result = ngettext(
            "Not conclusive after {done} of {n} query: {metric} {change} ({level} {low} … {high}).",
            "Not conclusive after {done} of {n} queries: {metric} {change} ({level} {low} … "
            "{high}).",
            row.total,
            **values,
        )
    return paragraph([result, cost] if cost else [result])
