"""History: a metric over time, one run, and two runs compared."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import pandas as pd
import streamlit as st
from babel.dates import format_skeleton

from rankdash.core.base.i18n import brief, language, moment, ngettext, number, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import moment as moment_words
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.runs.combining import KIND as FUSION
from rankdash.core.runs.combining import Tuned
from rankdash.core.study import history as study_history
from rankdash.core.study.history import Trend, differing, p_of_any_pair
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words.queries import excluded, provenance
from rankdash.core.words.verdicts import change_fact, change_facts, chip, p_value, sentence
from rankdash.core.workspace import RunRow
from rankdash.core.workspace.notes import Pins, RunNote, RunNotes
from rankdash.features.history import charts as history_charts
from rankdash.kit.drawing import style
from rankdash.kit.widgets import address, dialogs, pickers, run_records, stored, view
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.run_records import (
    record,
    reranker_title,
    setting_titles,
)
from rankdash.kit.widgets.stored import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe, name_safe

# Field of the address: which runs are compared.
LINE = "line"
_LIKE, _EVERY = "like", "every"
# A shorter evaluation has no progress bar, which would only flicker.
_UNNOTICED_SECONDS = 0.5
# Chosen runs in the address; the first of two is the baseline of the pair.
CHOSEN = "runs"


@dataclass(frozen=True, eq=False)
class Past:
    """The runs of a data set over time, oldest first, with their trend against the baseline. notes:
    run id → note. pinned: id of the pinned baseline."""

    study: Study
    runs: tuple[RunRow, ...]
    trend: Trend
    notes: Mapping[str, RunNote]
    pinned: str | None

    def name(self, system_id: str) -> str:
        """Return the name as it was typed, without escaping for Markdown."""
        return self.study.name(system_id)

    def number(self, system_id: str) -> int:
        """Return the number of a run in the chart and the table, from 1; 0 for the first stage."""
        places = (place for place, run in enumerate(self.runs, 1) if run.id == system_id)
        return next(places, 0)

    def p95_ms(self, run: RunRow) -> float:
        return run_records.latency_ms(self.study, run)[1]

    def row(self, system_id: str) -> Mapping[Hashable, Any]:
        """Return the row of a system in the trend."""
        return self._rows[system_id]

    @cached_property
    def _rows(self) -> dict[str, Mapping[Hashable, Any]]:
        # Rows of a frame are slow to read, and each is needed several times.
        return {row["system"]: row for row in self.trend.frame.to_dict("records")}


def past(study: Study) -> Past | None:
    """Return the history of a data set; None if it has no run."""
    runs = tuple(stored.rows(study.stored_id).values())
    if not runs:
        return None
    systems = tuple(study.systems)
    _evaluate(study)
    trend = study_history.trend(study, systems, every=address.one(LINE) == _EVERY)
    return Past(
        study,
        runs,
        trend,
        RunNotes(workspace()).all(study.stored_id),
        Pins(workspace()).of(study.stored_id),
    )


def _evaluate(study: Study) -> None:
    """Evaluate every system, with a progress bar if it takes long; the trend then uses the cached
    results."""
    place, started, systems = st.empty(), time.monotonic(), list(study.systems)
    for done, system in enumerate(systems):
        if time.monotonic() - started > _UNNOTICED_SECONDS:
            place.progress(
                done / len(systems),
                _(
                    "Evaluating run {n} of {all}; the result is stored",
                    n=number(done + 1, 0),
                    all=number(len(systems), 0),
                ),
            )
        study_history.evaluation(study, system)
    place.empty()


def answer(history: Past) -> None:
    """Draw sentences on the newest result: a repeated system compared with its run before, and the
    highest mean."""
    study = history.study
    runs = [run for run in history.runs if history.row(run.id)["on_line"]]
    runs = [run for run in runs if math.isfinite(history.row(run.id)["mean"])]
    if not runs:
        return
    best = max(runs, key=lambda run: float(history.row(run.id)["mean"]))
    sentences = []
    before, after = _newest_repeat(runs)
    if before is not None and after is not None:
        sentences += _progress(history, before, after)
    elif len({run.name for run in history.runs}) == len(history.runs):
        sentences.append(_("No trend yet: each system has one run."))
    if after is None or history.row(best.id)["mean"] > history.row(after.id)["mean"]:
        highest = _(
            "Highest: **{name}** ({day}), {metric} {mean}.",
            name=name_safe(history.name(best.id)),
            day=_day(best.created),
            metric=study.title,
            mean=number(history.row(best.id)["mean"]),
        )
        sentences.append(highest)
        if Tuned.of(best.settings) is not None:
            sentences.append(_("This run was tuned on these queries, so its mean is in-sample."))
    st.markdown(paragraph(sentences))


def _newest_repeat(runs: Sequence[RunRow]) -> tuple[RunRow, RunRow] | tuple[None, None]:
    """Return the newest run with an earlier run of the same name, that run first."""
    for place in reversed(range(len(runs))):
        earlier = [run for run in runs[:place] if run.name == runs[place].name]
        if earlier:
            return earlier[-1], runs[place]
    return None, None


def _progress(history: Past, before: RunRow, after: RunRow) -> list[str]:
    """Return the sentences on a run and its change from the run before of the same name."""
    study = history.study
    sentences = [
        _(
            "Newest run of **{name}** ({day}): {metric} {mean}.",
            name=name_safe(after.name),
            day=_day(after.created),
            metric=study.title,
            mean=number(history.row(after.id)["mean"]),
        )
    ]
    pair = replace(study, baseline=before.id, challengers=(after.id,), others=())
    row = study_history.trend(pair, (before.id, after.id), every=True).frame.iloc[1]
    if math.isfinite(row["delta_low"]):
        sentences.append(
            _(
                "Against its run before ({day}): **{verdict}**, {change}.",
                verdict=chip(str(row["verdict"])),
                day=_day(before.created),
                change=change_fact(row, study.statistics),
            )
        )
    return sentences


def chart(history: Past) -> None:
    """Draw a line for each system over time, and the horizontal lines to compare with."""
    study = history.study
    places = {each.id: each.place for each in study.systems.values()}
    marks = style.marks(places, study.baseline)
    by_name: dict[str, list[RunRow]] = {}
    for run in history.runs:
        by_name.setdefault(run.name, []).append(run)
    lines = [
        history_charts.TrendLine(name, marks[runs[-1].id], [_point(history, run) for run in runs])
        for name, runs in by_name.items()
    ]
    across = [
        history_charts.Across(name, float(history.row(system)["mean"]))
        for system, name in _lines(history).items()
        if history.row(system)["on_line"]
    ]
    widgets_charts.draw(
        history_charts.trend_chart(lines, study.title, across, level=study.statistics.level),
        key="history.trend",
    )


def _lines(history: Past) -> dict[str, str]:
    """Return system id → label of its horizontal line in the chart: the baseline, the pinned run if
    it is another system, and the first stage.

    The first stage is not a run, so the chart shows it nowhere else.
    """
    study, pinned = history.study, history.pinned
    template = _("{name} (pinned baseline)") if study.baseline == pinned else _("{name} (baseline)")
    titles = {study.baseline: template.format(name=history.name(study.baseline))}
    if pinned is not None and pinned in study.systems:
        titles.setdefault(pinned, _("{name} (pinned)", name=history.name(pinned)))
    titles.setdefault(FIRST_STAGE, history.name(FIRST_STAGE))
    return titles


def _point(history: Past, run: RunRow) -> history_charts.TrendPoint:
    row = history.row(run.id)
    return history_charts.TrendPoint(
        number=history.number(run.id),
        name=history.name(run.id),
        when=moment_words(run.created),
        seconds=_seconds(run.created),
        mean=float(row["mean"]),
        low=float(row["mean_low"]),
        high=float(row["mean_high"]),
        n=history.trend.queries if row["on_line"] else int(row["answered"]),
        compared=row["verdict"] != study_history.APART,
        p95_ms=history.p95_ms(run),
        failed=run.queries_failed,
        note=note_on(history, run),
    )


def note_on(history: Past, run: RunRow) -> str:
    """Return the note on a run, after a mark if it was tuned on these queries."""
    tuned = Tuned.of(run.settings) is not None
    mark = _p("caveat", "tuned on these queries") if tuned else ""
    text = history.notes[run.id].text if run.id in history.notes else ""
    return " · ".join(filter(None, (mark, text)))


def _day(iso: str) -> str:
    try:
        return str(format_skeleton("MMMd", datetime.fromisoformat(iso), locale=language()))
    except ValueError:
        return ""


def _seconds(iso: str) -> float:
    try:
        return datetime.fromisoformat(iso).timestamp()
    except ValueError:
        return 0.0


def rests_on(history: Past) -> None:
    """Draw sentences on the basis of the means: the queries, the runs that are not compared, and
    the number of different machines."""
    trend = history.trend
    sentences = [_shared(trend)]
    if trend.apart:
        sentences.append(
            ngettext(
                "{n} run has results for too few of these queries. It is not compared, and its "
                "row is computed over its own queries.",
                "{n} runs have results for too few of these queries. They are not compared, and "
                "their rows are computed over their own queries.",
                trend.apart,
            )
        )
    if trend.stopped:
        sentences.append(
            ngettext(
                "{n} run was stopped by its result. It is compared over the queries that it "
                "scored, with an anytime-valid interval.",
                "{n} runs were stopped by their result. They are compared over the queries that "
                "they scored, with anytime-valid intervals.",
                trend.stopped,
            )
        )
    machines = {
        run_records.record(run.id).machine.get("cpu")
        for run in history.runs
        # The times of a fused run are sums of its parts.
        if run.reranker != FUSION and math.isfinite(run.p95_ms)
    }
    if len(machines) > 1:
        sentences.append(
            _(
                "Latencies were measured on {n} kinds of machine and cannot be compared between "
                "them.",
                n=number(len(machines), 0),
            )
        )
    st.caption(paragraph(sentences))
    if trend.apart or address.one(LINE) == _EVERY:
        pickers.pick_one(
            LINE,
            [_LIKE, _EVERY],
            st.segmented_control,
            default=_LIKE,
            label=_("Compared runs"),
            format_func={
                _LIKE: _("runs with results for nearly all queries"),
                _EVERY: _("all runs, on the queries they have in common"),
            }.__getitem__,
            required=True,
        )


def _shared(trend: Trend) -> str:
    if not trend.queries:
        return _("No query has a result in every compared run, so the runs cannot be compared.")
    if trend.stopped:
        return ngettext(
            "Apart from stopped runs, the means, changes and tests use the same {n} query for "
            "every run.",
            "Apart from stopped runs, the means, changes and tests use the same {n} queries for "
            "every run.",
            trend.queries,
        )
    if trend.queries < trend.fullest:
        return _(
            "The means, changes and tests use the {n} of {all} queries with a result in every "
            "compared run.",
            n=number(trend.queries, 0),
            all=number(trend.fullest, 0),
        )
    return ngettext(
        "The means, changes and tests use the same {n} query for every run.",
        "The means, changes and tests use the same {n} queries for every run.",
        trend.queries,
    )


def looks(history: Past) -> None:
    """Draw a warning about multiple comparisons: how many systems were compared on the same
    queries, and how many would appear proven by chance."""
    study, made = history.study, history.trend.comparisons
    if made < 2 or not history.trend.queries:
        return
    by_chance = made * (1 - study.statistics.level)
    text = _(
        "**{n} systems were compared with {baseline} on the same queries.** Without correction, "
        "about {false} of them would appear proven by chance even if all were equal. The best of "
        "many systems is partly lucky: expect a slightly smaller gain on new queries. Deleted "
        "runs are not counted.",
        n=number(made, 0),
        baseline=name_safe(study.name(study.baseline)),
        false=number(by_chance, 1),
    )
    if study.statistics.correction != "none":
        way = {"holm": _p("correction", "Holm"), "bh": _p("correction", "Benjamini–Hochberg")}[
            study.statistics.correction
        ]
        tested = history.trend.tested
        corrected = (
            _(
                "The p values are corrected for all {n} comparisons ({way}).",
                n=number(made, 0),
                way=way,
            )
            if tested in (0, made)
            else _(
                "The p values are corrected for {n} of the {all} comparisons ({way}); the others "
                "have no p.",
                n=number(tested, 0),
                all=number(made, 0),
                way=way,
            )
        )
        st.info(
            paragraph([text, corrected]),
            icon=":material/functions:",
        )
        return
    st.warning(paragraph([text, _("The p values are not corrected.")]), icon=":material/functions:")
    st.button(
        _("Correct for all {n} comparisons", n=number(made, 0)),
        icon=":material/functions:",
        key="history.correct",
        on_click=_correct,
    )


def _correct() -> None:
    address.choose("correction", "holm")
    address.publish()


# One chosen run: its pin and its note.

_PLACE = "history"


def draw_run(history: Past, system_id: str) -> None:
    with st.container(border=True):
        title, action = st.columns([3, 1], vertical_alignment="center")
        title.markdown(f"**{name_safe(history.name(system_id))}**")
        if system_id != FIRST_STAGE and (weights := provenance(record(system_id).machine)):
            st.caption(markdown_safe(weights, 400))
        if read_only():
            if system_id != FIRST_STAGE:
                run_records.draw_run_note(system_id)
            return
        if system_id == FIRST_STAGE:
            title.caption(
                _(
                    "The first stage is the baseline if no run is pinned. Select a second system "
                    "to compare the two."
                )
            )
            return
        if system_id == history.pinned:
            title.caption(
                _(
                    "This run is pinned: it is the baseline, unless a link names another one. "
                    "Select a second run to compare the two."
                )
            )
            action.button(
                _p("button", "Unpin"),
                icon=":material/keep_off:",
                key="history.unpin",
                on_click=_unpin,
                args=(history.study.stored_id,),
                width="stretch",
            )
        elif not history.row(system_id)["answered"]:
            title.caption(_("All queries failed in this run, so it cannot be the baseline."))
        else:
            title.caption(
                _(
                    "Pin this run to compare all systems with it, also in new sessions. Select a "
                    "second run to compare the two."
                )
            )
            action.button(
                _("Pin as baseline"),
                icon=":material/keep:",
                key="history.pin",
                on_click=_pin,
                args=(system_id,),
                width="stretch",
            )
        dialogs.refused(_PLACE)
        run_records.draw_run_note(system_id)


def _pin(run_id: str) -> None:
    _then(lambda: Pins(workspace()).pin(run_id), run_id)


def _unpin(dataset_id: str) -> None:
    _then(lambda: Pins(workspace()).unpin(dataset_id), None)


def _then(change: Callable[[], None], baseline: str | None) -> None:
    """Pin or unpin a run, then set the baseline. change: pins or unpins; an error is shown, and the
    baseline stays. baseline: None for the default."""
    if dialogs.attempt(_PLACE, change):
        address.choose("base", baseline)
        address.publish()


# Two chosen systems: the verdict with its facts, and the differences.

_NOTHING = (None, "")


def draw_pair(history: Past, chosen: Sequence[str]) -> None:
    """Draw the comparison of two systems. chosen: baseline and challenger."""
    before, after = chosen
    study = history.study
    pair = replace(study, baseline=before, challengers=(after,), others=())
    comparison = pair.comparison
    safe = {system: name_safe(history.name(system)) for system in chosen}
    with st.container(border=True):
        verdict = comparison.verdict(after, study.spec, safe)
        with st.container(horizontal=True, vertical_alignment="center"):
            widgets_charts.verdict(verdict.kind)
            st.markdown(
                _("**{system}** against **{baseline}**", system=safe[after], baseline=safe[before]),
                width="stretch",
            )
            st.button(
                _p("button", "Swap"),
                icon=":material/swap_horiz:",
                key="history.swap",
                on_click=_choose,
                args=([after, before],),
            )
            to_overview(chosen)
        st.markdown(sentence(verdict))
        row = comparison.row(after, study.spec)
        facts = change_facts(row, study.statistics, "p")
        st.caption(" · ".join([*facts, *excluded(comparison.excluded(after, study.spec))]))
        systems = len(history.study.systems)
        if math.isfinite(row["p"]) and systems > 2:
            st.caption(
                _(
                    "This p is for a single comparison. As you picked the pair from {n} systems, "
                    "p corrected for all {pairs} possible pairs is {p} (Bonferroni).",
                    n=number(systems, 0),
                    pairs=number(math.comb(systems, 2), 0),
                    p=p_value(p_of_any_pair(float(row["p"]), systems)),
                )
            )
        _differences(history, before, after)


def to_overview(chosen: Sequence[str]) -> None:
    """Draw a button that opens Overview with the first chosen system as the baseline of the
    others."""
    if st.button(
        _("Open on Overview"), icon=":material/monitoring:", type="primary", key="history.overview"
    ):
        address.choose("base", chosen[0])
        address.choose("system", chosen[1:])
        view.go("overview")


def _choose(chosen: Sequence[str]) -> None:
    address.choose(CHOSEN, chosen)
    address.publish()


def _differences(history: Past, before: str, after: str) -> None:
    runs = {run.id: run for run in history.runs}
    sentences = [_recorded(history, runs.get(system)) for system in (before, after)]
    rows = [
        (part, name, _shown(one), _shown(other))
        for (part, earlier), (_same, others) in zip(sentences[0], sentences[1], strict=True)
        for name, one, other in differing(earlier, others)
        # Empty in one system and absent in the other is not a difference.
        if one not in _NOTHING or other not in _NOTHING
    ]
    st.markdown(f"**{_p('heading', 'Differences')}**")
    if not any(part != _p("group", "run") for part, *_rest in rows):
        st.caption(_("The recorded settings and machines do not differ."))
    if not rows:
        return
    st.dataframe(
        pd.DataFrame(rows, columns=["part", "name", "before", "after"], dtype=object),
        hide_index=True,
        placeholder="–",
        column_config={
            "part": st.column_config.TextColumn("", width=90),
            "name": st.column_config.TextColumn(_p("column", "item"), width=170),
            "before": st.column_config.TextColumn(history.name(before)),
            "after": st.column_config.TextColumn(history.name(after)),
        },
        alt=_("Differences between the two systems: settings, machine, versions"),
    )


def _recorded(history: Past, run: RunRow | None) -> list[tuple[str, Mapping[str, object]]]:
    """Return (group, name → value) of everything recorded about a system's run."""
    if run is None:
        return [
            (_p("group", "settings"), {}),
            (_p("group", "machine"), {}),
            (_p("group", "run"), {}),
        ]
    titles = setting_titles(run.reranker)
    return [
        (
            _p("group", "settings"),
            {
                _p("column", "reranker"): reranker_title(run.reranker),
                _p("column", "depth"): _p("choice", "all") if run.depth is None else str(run.depth),
                **{titles.get(name, name): value for name, value in run.settings.items()},
            },
        ),
        (_p("group", "machine"), run_records.record(run.id).machine),
        (
            _p("group", "run"),
            {
                _("created (UTC)"): moment(run.created),
                _p("column", "done"): run.queries_done,
                _p("column", "failed"): run.queries_failed,
                _("not run"): run.queries_skipped,
                _("p95 ms"): brief(history.p95_ms(run)),
            },
        ),
    ]


def _shown(value: object) -> str | None:
    return None if value is None else str(value)
