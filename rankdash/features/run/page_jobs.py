"""Queued, running and stopped jobs, the score cache and the cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rankdash.core.base.errors import RankdashError, SettingError
from rankdash.core.base.i18n import (
    duration,
    enumerated,
    error_text,
    ngettext,
    number,
    paragraph,
    problem_text,
    refused_text,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.ranking import RETRIEVAL
from rankdash.core.rerankers import get
from rankdash.core.runs import jobs
from rankdash.core.runs.fetch_job import Fetch, is_fetch
from rankdash.core.runs.jobs import LIVE, JobRow
from rankdash.core.runs.on_ray.cluster import ACTOR_SETTINGS, LOCAL, Actors, allowed_address
from rankdash.features.run import page_stop
from rankdash.kit.widgets import address, dialogs, search_form, settings_form, view
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.run_records import reranker_title
from rankdash.kit.widgets.search_form import Keys
from rankdash.kit.widgets.settings_form import Found
from rankdash.kit.widgets.stored import worker, workspace
from rankdash.kit.widgets.text import markdown_safe

_REFRESH_SECONDS = 1.0
# Slow, because another tab or the command line may start a job.
_IDLE_SECONDS = 10.0
_SEEN_LIVE = "jobs.live"
_SEEN_GRIDS = "jobs.grids"
_WATCHED = "jobs.watched"


def draw(dataset_id: str) -> None:
    """Draw the jobs of a data set. Polls once a second while any job is live, else every 10
    seconds."""
    all_jobs = jobs.list(workspace())
    _offer_comparison(_of(all_jobs, dataset_id))
    _offer_overview(_of(all_jobs, dataset_id))
    live = any(row.state in LIVE for row in all_jobs)

    @st.fragment(run_every=_REFRESH_SECONDS if live else _IDLE_SECONDS)
    def panel() -> None:
        all_jobs = jobs.list(workspace())
        every = _of(all_jobs, dataset_id)
        now_live = {row.id for row in all_jobs if row.state in LIVE}
        before = st.session_state.get(_SEEN_LIVE, set())
        st.session_state[_SEEN_LIVE] = now_live
        if now_live:
            worker().ensure()
        for rows in _unfinished(every):
            if rows[0].grid is None:
                _draw_job(rows[0])
            else:
                _draw_grid(rows)
        if before - now_live or (now_live and not live):
            # A job has ended or started elsewhere: redraw the list of runs, the sidebar and the key
            # field.
            st.rerun(scope="app")

    panel()


def watch(job_id: str) -> None:
    """Remember a job of this session, so that its end is noticed even between two polls."""
    st.session_state.setdefault(_SEEN_LIVE, set()).add(job_id)


def _of(rows: Sequence[JobRow], dataset_id: str) -> list[JobRow]:
    return [row for row in rows if row.dataset_id == dataset_id]


def _unfinished(every: Sequence[JobRow]) -> list[list[JobRow]]:
    """Return the unfinished jobs, each individually or with all variants of its grid."""
    groups: dict[str, list[JobRow]] = {}
    for row in every:
        groups.setdefault(row.grid or row.id, []).append(row)
    return [rows for rows in groups.values() if any(row.state != "done" for row in rows)]


def _draw_grid(rows: Sequence[JobRow]) -> None:
    """Draw one card for the variants of a reranker: progress of all, and state of each."""
    grid = str(rows[0].grid)
    live = [row for row in rows if row.state in LIVE]
    stopped = [row for row in rows if row.state in ("cancelled", "interrupted", "failed")]
    done = sum(row.state == "done" for row in rows)
    with st.container(border=True):
        text, action = st.columns([5, 1], vertical_alignment="center")
        title = ngettext("{n} variant", "{n} variants", len(rows))
        text.write(f"**{reranker_title(rows[0].reranker)}** · {title}")
        if live:
            share = sum(1.0 if row.state == "done" else _share(row) for row in rows) / len(rows)
            running = next((row for row in live if row.state == "running"), live[0])
            parts = [
                _("{done} of {total} variants", done=number(done, 0), total=number(len(rows), 0)),
                _("{part}: {value}", part=markdown_safe(running.name, 80), value=_state(running)),
                *([_progress(running)] if running.total else []),
            ]
            text.progress(share, text=" · ".join(parts))
            if action.button(
                _p("button", "Cancel"),
                key=f"cancel.{grid}",
                icon=":material/cancel:",
                disabled=all(row.cancelling for row in live),
            ):
                for row in live:
                    jobs.cancel(workspace(), row.id)
                st.rerun(scope="fragment")
            page_stop.draw_look(running)
        for row in stopped:
            text.write(f"{markdown_safe(row.name, 80)} · {_state(row)}")
            if row.error is not None:
                text.error(markdown_safe(problem_text(row.error), 500), icon=":material/error:")
        if not stopped or live:
            return
        _offer_resume(stopped, grid, text, action)
        if action.button(_p("button", "Remove"), key=f"remove.{grid}", icon=":material/delete:"):
            _remove(stopped)


def _offer_comparison(every: Sequence[JobRow]) -> None:
    """Offer to compare on Overview the variants of the grid that ended last in this session."""
    watched = {row.grid for row in every if row.state in LIVE and row.grid}
    seen: list[str] = st.session_state.setdefault(_SEEN_GRIDS, [])
    seen += sorted(watched - set(seen))
    if not seen or seen[-1] in watched:
        return
    stored = {row.id for row in workspace().runs()}
    variants = [row for row in every if row.grid == seen[-1] and row.id in stored]
    runs = [each for row in variants for each in row.runs if each in stored]
    if len(variants) < 2:
        return
    text, action = st.columns([5, 1], vertical_alignment="center")
    text.success(ngettext("{n} variant is done.", "{n} variants are done.", len(variants)))
    if action.button(
        _p("button", "Compare"), icon=":material/monitoring:", key=f"compare.{seen[-1]}"
    ):
        seen.remove(seen[-1])
        address.choose("base", runs[0])
        address.choose("system", runs[1 : view.MOST_COMPARED])
        view.go("overview")


def _offer_overview(every: Sequence[JobRow]) -> None:
    """Offer Overview for the runs that ended last during this session: their cards have
    disappeared, and the list of runs may be below the screen."""
    watched: list[str] = st.session_state.setdefault(_WATCHED, [])
    single = [row for row in every if row.grid is None]
    live = [row.id for row in single if row.state in LIVE]
    if live:
        # Earlier runs were already offered.
        if not set(live) & set(watched):
            watched.clear()
        watched += [each for each in live if each not in watched]
        return
    ended = [row for row in single if row.id in watched]
    stored = {row.id for row in workspace().runs()}
    runs = {each: name for row in ended for each, name in row.runs.items() if each in stored}
    if not runs:
        return
    text, action = st.columns([5, 1], vertical_alignment="center")
    names = enumerated(markdown_safe(name, 60) for name in runs.values())
    failed = sum(row.failed for row in ended)
    if failed:
        lost = ngettext(
            "{n} query failed: select the run in the list to retry it.",
            "{n} queries failed: select the run in the list to retry them.",
            failed,
        )
        done = paragraph([_("Done: {names}.", names=names), lost])
        text.warning(done, icon=":material/warning:")
    else:
        words = [_("Done: {names}.", names=names), *_stopped_early(runs)]
        text.success(paragraph(words), icon=":material/check_circle:")
    if action.button(_p("button", "Compare"), icon=":material/monitoring:", key="compare.done"):
        watched.clear()
        address.choose("system", list(runs)[: view.MOST_COMPARED])
        view.go("overview")


def _stopped_early(runs: Mapping[str, str]) -> list[str]:
    """Return a sentence on each run that was stopped by its result. runs: id → name."""
    sentences = []
    for run_id, name in runs.items():
        _machine, measured = workspace().recorded(run_id)
        record = None if measured is None else measured.stopped
        if record is not None:
            sentences.append(
                ngettext(
                    "{name} stopped early, because its result is conclusive: {scored} of {n} "
                    "query is scored.",
                    "{name} stopped early, because its result is conclusive: {scored} of {n} "
                    "queries are scored.",
                    record.planned,
                    name=markdown_safe(name, 60),
                    scored=number(record.scored, 0),
                )
            )
    return sentences


def _draw_job(row: JobRow) -> None:
    with st.container(border=True):
        text, action = st.columns([5, 1], vertical_alignment="center")
        text.write(f"**{markdown_safe(row.name, 80)}** · {_state(row)}")
        if row.state in LIVE:
            if row.total:
                text.progress(_share(row), text=_progress(row))
            if action.button(
                _p("button", "Cancel"),
                key=f"cancel.{row.id}",
                icon=":material/cancel:",
                disabled=row.cancelling,
            ):
                jobs.cancel(workspace(), row.id)
                st.rerun(scope="fragment")
            page_stop.draw_look(row)
            return
        if row.error is not None:
            text.error(markdown_safe(problem_text(row.error), 500), icon=":material/error:")
        if row.state in ("cancelled", "interrupted", "failed"):
            if row.done:
                text.caption(
                    ngettext(
                        "{n} query is done and saved.", "{n} queries are done and saved.", row.done
                    )
                )
            _offer_resume([row], row.id, text, action)
            if action.button(
                _p("button", "Remove"), key=f"remove.{row.id}", icon=":material/delete:"
            ):
                _remove([row])


def _offer_resume(
    rows: Sequence[JobRow], key: str, text: DeltaGenerator, action: DeltaGenerator
) -> None:
    """Offer to resume stopped jobs of one reranker. If the reranker is unavailable, for example
    without its plugin, show the error; the jobs can only be removed."""
    with text:
        key_field = draw_keys(rows[0], key)
    if key_field is None:
        return
    if action.button(_p("button", "Resume"), key=f"resume.{key}", icon=":material/resume:"):
        if key_field.missing:
            text.error(key_field.missing, icon=":material/key_off:")
            return
        for row in rows:
            if key_field.keys:
                worker().hand_over(row.id, key_field.keys)
            jobs.resume(workspace(), row.id)
        worker().ensure()
        st.rerun(scope="app")


def draw_keys(row: JobRow, name: str) -> Found | Keys | None:
    """Draw the fields for the keys of a job, if it needs any. If its reranker is unavailable, draw
    the error and return None. name: distinguishes the fields of a page."""
    try:
        request = Fetch.of(row.settings)
        kind = None if row.reranker == RETRIEVAL else get(row.reranker)
    except RankdashError as error:
        st.error(markdown_safe(error_text(error), 500), icon=":material/extension_off:")
        return None
    if request is not None:
        return search_form.draw_keys(request.endpoint, name)
    if kind is None:
        return Found()
    return settings_form.draw_key_field(kind, row.settings, name, fixed=True)


def _remove(rows: Sequence[JobRow]) -> None:
    """Remove the jobs; ask first if scored or answered queries would be lost."""

    def remove() -> None:
        for row in rows:
            jobs.delete(workspace(), row.id)

    scored = sum(row.done for row in rows)
    if scored:
        fetched = all(is_fetch(row.settings) for row in rows)
        dialogs.delete(
            _("Remove this run?"),
            [
                *(markdown_safe(row.name, 80) for row in rows),
                ngettext(
                    "{n} answered query will be lost.",
                    "{n} answered queries will be lost.",
                    scored,
                )
                if fetched
                else ngettext(
                    "{n} scored query will be lost.", "{n} scored queries will be lost.", scored
                ),
            ],
            remove,
        )
    else:
        remove()
        st.rerun(scope="app")


def _state(row: JobRow) -> str:
    if row.cancelling:
        return _("cancelling after the current batch")
    if row.state == "running" and row.reranker == RETRIEVAL:
        since = duration(_seconds_since(row.started))
        fetches = is_fetch(row.settings)
        what = _p("state", "fetching") if fetches else _("retrieving from all documents")
        if row.stage == "timing":
            what = _("all queries fetched; repeating the requests to measure the churn")
        return f"{what} · {since}"
    if row.state == "running":
        preparing = {
            "loading": _("loading the model"),
            "converting": _("converting the packaged weights, once for each model"),
            "exporting": _("exporting the model to ONNX, once for each model"),
            "choosing": _("measuring which runtime is fastest here, once for each model"),
            "warming": _("warming up"),
        }
        if row.stage in preparing:
            return f"{preparing[row.stage]} · {duration(_seconds_since(row.started))}"
        return {
            "scoring": _p("state", "scoring"),
            "timing": _("all scored; measuring the throughput"),
        }.get(row.stage, _p("state", "starting"))
    return {
        "queued": _p("state", "queued"),
        "failed": _p("state", "failed"),
        "cancelled": _p("state", "cancelled"),
        "interrupted": _p("state", "interrupted"),
    }[row.state]


def _seconds_since(iso: str | None) -> float | None:
    return (
        None if iso is None else (datetime.now(UTC) - datetime.fromisoformat(iso)).total_seconds()
    )


def _share(row: JobRow) -> float:
    if not row.pairs_total:
        # A fetch scores no pairs.
        return min(1.0, (row.done + row.failed) / row.total) if row.total else 0.0
    return min(1.0, row.pairs_done / row.pairs_total)


def _progress(row: JobRow) -> str:
    pairs = ngettext(
        "{done} of {n} pair",
        "{done} of {n} pairs",
        row.pairs_total,
        done=number(row.pairs_done, 0),
    )
    parts = [
        *([pairs] if row.pairs_total else []),
        ngettext(
            "{done} of {n} query", "{done} of {n} queries", row.total, done=number(row.done, 0)
        ),
    ]
    if row.rate_pairs_s:
        parts.append(_("{rate} pairs per second", rate=number(row.rate_pairs_s, 0)))
    if row.seconds_left is not None and row.state == "running":
        parts.append(_("{time} left", time=duration(row.seconds_left)))
    if row.failed:
        parts.append(ngettext("{n} query failed", "{n} queries failed", row.failed))
    if row.refused:
        parts.append(refused_text(row.refused, row.requests))
    return " · ".join(parts)


# The score cache of the workspace: its size, its limit, and the button to clear it.

_MEGABYTE = 1024 * 1024
_MOST_MEGABYTES = 1_000_000


def draw_cache_panel() -> None:
    fold(_("Score cache"), "run.cache", ":material/inventory_2:", _panel)


def _panel() -> None:
    cache = workspace().score_cache
    pairs, limit = cache.pairs, cache.limit
    st.caption(
        _(
            "The scores of a model for a query and a document are cached, so that another run "
            "with the same model, settings and texts does not compute them again. Cached scores "
            "are not included in latency."
        )
    )
    st.write(
        _(
            "{pairs} · {size} MB of at most {limit} MB",
            pairs=ngettext("{n} pair", "{n} pairs", pairs),
            size=megabytes(cache.size_bytes),
            limit=megabytes(limit),
        )
    )
    left, middle, right = st.columns([2, 1, 1], vertical_alignment="bottom")
    new_limit = left.number_input(
        _("Limit in MB"),
        0,
        _MOST_MEGABYTES,
        round(limit / _MEGABYTE),
        # Another window may have changed the limit.
        key=f"cache.limit.{limit}",
        help=_("The least recently used scores are deleted first. 0: no score is cached."),
    )
    if middle.button(
        _("Set the limit"),
        icon=":material/check:",
        width="stretch",
        disabled=new_limit == round(limit / _MEGABYTE),
        help=_("Scores over the limit are deleted immediately."),
    ):
        cache.limit = new_limit * _MEGABYTE
        st.rerun()
    if right.button(
        _p("button", "Clear"),
        icon=":material/delete:",
        width="stretch",
        disabled=not pairs,
        key="cache.clear",
    ):
        dialogs.delete(_("Clear the score cache?"), cost(pairs), cache.clear)


def cost(pairs: int) -> list[str]:
    """Return sentences on the work of scoring again after the cache is cleared. pairs: the number
    of cached pairs."""
    sentences = [
        ngettext(
            "The next run that needs it has to score {n} pair again.",
            "The next runs that need them have to score {n} pairs again.",
            pairs,
        )
    ]
    rates = [row.pairs_per_second for row in workspace().runs() if row.pairs_per_second]
    if rates:
        sentences.append(
            _(
                "At the speed of the slowest stored run, this takes about {time}.",
                time=duration(pairs / min(rates)),
            )
        )
    sentences.append(
        _("Paid services bill these calls again. Stored runs and their times do not change.")
    )
    return sentences


def megabytes(size: int) -> str:
    """Return a size in MB, rounded up so that only 0 is shown as 0."""
    tenths = math.ceil(10 * size / _MEGABYTE) / 10
    return number(tenths, 0 if tenths >= 10 or not size else 1)


# Runs on the Ray cluster that the server administrator allowed.


def draw_cluster() -> Actors | None:
    """Draw the choice of a Ray cluster. Return the actors of the runs; None for runs on this
    machine, or without a cluster."""
    try:
        address = allowed_address()
    except SettingError:
        return None
    chosen = st.toggle(
        _("Score with Ray on this machine")
        if address == LOCAL
        else _("Score on the Ray cluster {address}", address=markdown_safe(address, 80)),
        help=_("Services and LLMs are still called from this server."),
        key="run.on_ray",
        persist_state="session",
    )
    if not chosen:
        return None
    values: dict[str, Any] = {}
    for column, each in zip(st.columns(len(ACTOR_SETTINGS)), ACTOR_SETTINGS, strict=True):
        whole = each.type is int
        entered = column.number_input(
            _p("setting", each.title),
            int(each.least) if whole else float(each.least),
            int(each.most) if whole else float(each.most),
            None,
            step=1 if whole else 0.25,
            help=_("{help} Empty: {unset}.", help=_(each.help), unset=_p("choice", each.unset)),
            key=f"run.actors.{each.name}",
            persist_state="session",
        )
        values[each.name] = entered
    st.caption(_("Latency is measured with one query at a time on one machine of the cluster."))
    return Actors(**values)
