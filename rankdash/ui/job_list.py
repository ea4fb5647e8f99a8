"""Work in progress: what waits, runs, stopped or failed, and what can be done about it."""

from __future__ import annotations

import streamlit as st

from rankdash.i18n import duration, error_text, ngettext, number
from rankdash.i18n import gettext as _
from rankdash.rerankers import get
from rankdash.runs import jobs
from rankdash.runs.jobs import LIVE, JobRow
from rankdash.ui import dialogs, key_field
from rankdash.ui.server import worker, workspace
from rankdash.ui.text import markdown_safe

_REFRESH_SECONDS = 1.0
# Slow, but there: another tab or the command line may start a job.
_IDLE_SECONDS = 10.0
_SEEN_LIVE = "jobs.live"


def draw(dataset_id: str) -> None:
    """The jobs of a data set. Polls once a second while one is live, and seldom otherwise."""
    live = any(row.state in LIVE for row in jobs.list(workspace(), dataset_id))

    @st.fragment(run_every=_REFRESH_SECONDS if live else _IDLE_SECONDS)
    def panel() -> None:
        rows = [row for row in jobs.list(workspace(), dataset_id) if row.state != "done"]
        now_live = {row.id for row in rows if row.state in LIVE}
        before = st.session_state.get(_SEEN_LIVE, set())
        st.session_state[_SEEN_LIVE] = now_live
        if now_live:
            worker().ensure()
        for row in rows:
            _draw_job(row)
        if before - now_live or (now_live and not live):
            # One has ended, or began elsewhere: the list of runs and the sidebar have to know.
            st.rerun(scope="app")

    panel()


def _draw_job(row: JobRow) -> None:
    with st.container(border=True):
        text, action = st.columns([5, 1], vertical_alignment="center")
        text.write(f"**{markdown_safe(row.name, 80)}** · {_state(row)}")
        if row.state in LIVE:
            if row.total:
                text.progress(_share(row), text=_progress(row))
            if action.button(_("Cancel"), key=f"cancel.{row.id}", icon=":material/cancel:"):
                jobs.cancel(workspace(), row.id)
                st.rerun(scope="fragment")
            return
        if row.error is not None:
            text.error(markdown_safe(error_text(row.error), 500), icon=":material/error:")
        if row.state in ("cancelled", "interrupted", "failed"):
            if row.done:
                text.caption(
                    ngettext(
                        "{n} query is done and kept.", "{n} queries are done and kept.", row.done
                    )
                )
            with text:
                found = key_field.draw(get(row.reranker), row.settings, row.id)
            if action.button(_("Resume"), key=f"resume.{row.id}", icon=":material/resume:"):
                if found.keys:
                    worker().hand_over(row.id, found.keys)
                jobs.resume(workspace(), row.id)
                worker().ensure()
                st.rerun(scope="app")
            if action.button(_("Remove"), key=f"remove.{row.id}", icon=":material/delete:"):
                _remove(row)


def _remove(row: JobRow) -> None:
    """At once where nothing is done yet; asked first where scored queries would be lost."""
    if row.done:
        dialogs.delete(
            _("Remove this run?"),
            [
                markdown_safe(row.name, 80),
                ngettext("{n} scored query is lost.", "{n} scored queries are lost.", row.done),
            ],
            lambda: jobs.delete(workspace(), row.id),
        )
    else:
        jobs.delete(workspace(), row.id)
        st.rerun(scope="app")


def _state(row: JobRow) -> str:
    if row.state == "running":
        return {
            "loading": _("getting ready"),
            "scoring": _("scoring"),
            "timing": _("all scored; measuring the throughput"),
        }.get(row.stage, _("starting"))
    return {
        "queued": _("waiting for its turn"),
        "failed": _("failed"),
        "cancelled": _("cancelled"),
        "interrupted": _("interrupted"),
    }[row.state]


def _share(row: JobRow) -> float:
    return min(1.0, row.pairs_done / row.pairs_total) if row.pairs_total else 0.0


def _progress(row: JobRow) -> str:
    parts = [
        _(
            "{done} of {total} pairs",
            done=number(row.pairs_done, 0),
            total=number(row.pairs_total, 0),
        ),
        _("{done} of {total} queries", done=number(row.done, 0), total=number(row.total, 0)),
    ]
    if row.rate_pairs_s:
        parts.append(_("{rate} pairs a second", rate=number(row.rate_pairs_s, 0)))
    if row.seconds_left is not None and row.state == "running":
        parts.append(_("{time} left", time=duration(row.seconds_left)))
    if row.failed:
        parts.append(ngettext("{n} query failed", "{n} queries failed", row.failed))
    return " · ".join(parts)
