"""Two chosen systems of the history: the verdict with what it rests on, and what differs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import brief, moment, number
from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.history import differing, p_of_any_pair
from rankdash.core.words.queries import excluded
from rankdash.core.words.verdicts import change_facts, p_value, sentence
from rankdash.core.workspace import RunRow
from rankdash.features.history.page import Past
from rankdash.features.history.page_table import CHOSEN
from rankdash.kit.widgets import address, run_records, view
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.run_records import reranker_title, setting_titles
from rankdash.kit.widgets.text import name_safe

_NOTHING = (None, "")


def draw(history: Past, chosen: Sequence[str]) -> None:
    """chosen: the first is the one that the second is compared with."""
    before, after = chosen
    study = history.study
    pair = replace(study, baseline=before, challengers=(after,), others=())
    found = pair.comparison
    safe = {system: name_safe(history.name(system)) for system in chosen}
    with st.container(border=True):
        verdict = found.verdict(after, study.spec, safe)
        with st.container(horizontal=True, vertical_alignment="center"):
            widgets_charts.verdict(verdict.kind)
            st.markdown(
                _("**{system}** against **{baseline}**", system=safe[after], baseline=safe[before]),
                width="stretch",
            )
            st.button(
                _("Swap"),
                icon=":material/swap_horiz:",
                key="history.swap",
                on_click=_choose,
                args=([after, before],),
            )
            to_overview(chosen)
        st.markdown(sentence(verdict))
        row = found.row(after, study.spec)
        facts = change_facts(row, study.statistics, "p")
        st.caption(" · ".join([*facts, *excluded(found.left_out(after, study.spec))]))
        systems = len(history.study.systems)
        if math.isfinite(row["p"]) and systems > 2:
            st.caption(
                _(
                    "This p counts one comparison. The pair was picked among {n} systems: "
                    "corrected for all {pairs} possible pairs it is {p} (Bonferroni).",
                    n=number(systems, 0),
                    pairs=number(math.comb(systems, 2), 0),
                    p=p_value(p_of_any_pair(float(row["p"]), systems)),
                )
            )
        _differences(history, before, after)


def to_overview(chosen: Sequence[str]) -> None:
    """A button that compares the first of the chosen with the others on Overview."""
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
        for (part, own), (_same, others) in zip(sentences[0], sentences[1], strict=True)
        for name, one, other in differing(own, others)
        # What one kind leaves empty and the other does not have is no difference.
        if one not in _NOTHING or other not in _NOTHING
    ]
    st.markdown(f"**{_('Differences')}**")
    if not any(part != _("run") for part, *_rest in rows):
        st.caption(_("No difference in their recorded settings and machine."))
    if not rows:
        return
    st.dataframe(
        pd.DataFrame(rows, columns=["part", "name", "before", "after"], dtype=object),
        hide_index=True,
        placeholder="–",
        column_config={
            "part": st.column_config.TextColumn("", width=90),
            "name": st.column_config.TextColumn(_("what"), width=170),
            "before": st.column_config.TextColumn(history.name(before)),
            "after": st.column_config.TextColumn(history.name(after)),
        },
        alt=_("Differences between the two: settings, machine, versions"),
    )


def _recorded(history: Past, run: RunRow | None) -> list[tuple[str, Mapping[str, object]]]:
    """(part, name → value) of all that is known of how a system came about."""
    if run is None:
        return [(_("settings"), {}), (_("machine"), {}), (_("run"), {})]
    titles = setting_titles(run.reranker)
    return [
        (
            _("settings"),
            {
                _("reranker"): reranker_title(run.reranker),
                _("depth"): _("all") if run.depth is None else str(run.depth),
                **{titles.get(name, name): value for name, value in run.settings.items()},
            },
        ),
        (_("machine"), run_records.record(run.id).machine),
        (
            _("run"),
            {
                _("made (UTC)"): moment(run.created),
                _("done"): run.queries_done,
                _("failed"): run.queries_failed,
                _("not run"): run.queries_skipped,
                _("p95 ms"): brief(history.p95_ms(run)),
            },
        ),
    ]


def _shown(value: object) -> str | None:
    return None if value is None else str(value)
