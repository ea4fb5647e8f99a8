"""The list of runs, the details of one, and the retry of failed queries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress

import pandas as pd
import streamlit as st

from rankdash.core.base import i18n, text
from rankdash.core.base.errors import RankdashError, StoreError
from rankdash.core.base.i18n import (
    duration,
    enumerated,
    moment,
    ngettext,
    number,
    percent,
    separated,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.measured import TOO_MANY_UNKNOWN, Level, Measured
from rankdash.core.data.ranking import CHURN, SHIPPED_WITH, Run, digest
from rankdash.core.runs import combining, jobs
from rankdash.core.runs.fetch_job import is_fetch
from rankdash.core.search.endpoint import Endpoint
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.words.latency import where_measured
from rankdash.core.words.queries import provenance, unknown_tokens, without_text
from rankdash.core.workspace import RunRow
from rankdash.core.workspace.notes import Pins, RunNotes
from rankdash.features.run import page_jobs
from rankdash.kit.widgets import (
    address,
    dialogs,
    run_records,
    stored,
    view,
)
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.run_records import Record, record, reranker_title, settings_in_words
from rankdash.kit.widgets.stored import read_only, worker, workspace
from rankdash.kit.widgets.text import markdown_safe, signed_cells

# Width of the names, in pixels and in columns of text.
_NAME_WIDTH, _NAME_COLUMNS = 180, 22


def draw(dataset_id: str) -> None:
    st.header(_p("heading", "Runs"), anchor=False)
    rows = list(stored.rows(dataset_id).values())[::-1]
    if not rows:
        st.caption(_nothing_listed(dataset_id))
        return
    event = st.dataframe(
        signed_cells(_table(dataset_id, rows), {}, times=(_("p50 ms"), _("p95 ms"))),
        hide_index=True,
        placeholder="–",
        # A selection is a row number, so the rows are part of the key.
        key=f"runs.list.{digest([row.id.encode() for row in rows])}",
        on_select="rerun",
        selection_mode="multi-row",
        column_config={
            _p("column", "name"): st.column_config.TextColumn(width=_NAME_WIDTH),
            _p("column", "remarks"): st.column_config.TextColumn(width="medium"),
            _p("column", "note"): st.column_config.TextColumn(width="medium"),
            _("start s"): st.column_config.NumberColumn(format="%.1f"),
            _p("column", "pairs/s"): st.column_config.NumberColumn(format="localized"),
        },
        alt=_("The runs of this data set, newest first"),
    )
    st.caption(
        _(
            "p50 and p95: milliseconds for one query after warm-up. Start: loading and warming up "
            "the model. These times exclude preparation, such as embedding documents; pairs/s "
            "(query–document pairs per second over the whole run) includes it. Select a run to "
            "see everything that it recorded."
        )
    )
    chosen = [rows[position] for position in event["selection"]["rows"] if position < len(rows)]
    with st.container(horizontal=True):
        if st.button(_("Compare on Overview"), icon=":material/monitoring:", disabled=not chosen):
            address.choose("system", [row.id for row in chosen])
            view.go("overview")
        if not read_only():
            _rename(chosen, rows)
            _offer_delete(chosen)
    if len(chosen) == 1:
        draw_details(chosen[0].id)


def _nothing_listed(dataset_id: str) -> str:
    if read_only():
        return _("No run yet")
    if any(row.state in jobs.LIVE for row in jobs.list(workspace(), dataset_id)):
        return _("No run is finished yet.")
    return _("No runs yet: choose a reranker above and start.")


def _rename(chosen: Sequence[RunRow], rows: Sequence[RunRow]) -> None:
    if st.button(_p("button", "Rename"), icon=":material/edit:", disabled=len(chosen) != 1):
        dialogs.rename(
            _("Rename the run"),
            chosen[0].name,
            lambda name: workspace().rename_run(
                chosen[0].id, text.free(name, [row.name for row in rows if row is not chosen[0]])
            ),
        )


def _offer_delete(chosen: Sequence[RunRow]) -> None:
    if st.button(_p("button", "Delete"), icon=":material/delete:", disabled=not chosen):
        dialogs.delete(
            _("Delete these runs?"),
            _what_goes(chosen),
            lambda: _delete(chosen),
        )


def _what_goes(chosen: Sequence[RunRow]) -> list[str]:
    named = enumerated(markdown_safe(row.name, 80) for row in chosen)
    sentences = [_("{names} will be deleted permanently.", names=named)]
    ids, dataset_id = {row.id for row in chosen}, chosen[0].dataset_id
    if notes := len(ids & RunNotes(workspace()).all(dataset_id).keys()):
        sentences.append(
            ngettext("{n} note will be deleted too.", "{n} notes will be deleted too.", notes)
        )
    if Pins(workspace()).of(dataset_id) in ids:
        sentences.append(_("The pinned baseline is deleted too; the first stage replaces it."))
    return sentences


def _table(dataset_id: str, rows: Sequence[RunRow]) -> pd.DataFrame:
    records = [run_records.record(row.id) for row in rows]
    study = _study(dataset_id)
    times = [run_records.latency_ms(study, row) for row in rows]
    notes, pinned = RunNotes(workspace()).all(dataset_id), Pins(workspace()).of(dataset_id)
    table = pd.DataFrame(
        {
            _p("column", "name"): [text.middle(row.name, _NAME_COLUMNS) for row in rows],
            _p("column", "baseline"): [
                _p("state", "pinned") if row.id == pinned else None for row in rows
            ],
            _("p50 ms"): [p50 for p50, _p95 in times],
            _("p95 ms"): [p95 for _p50, p95 in times],
            _p("column", "pairs/s"): [round(row.pairs_per_second or 0) or None for row in rows],
            _p("column", "failed"): [row.queries_failed or None for row in rows],
            _p("column", "reranker"): [reranker_title(row.reranker) for row in rows],
            _p("column", "depth"): [
                _p("choice", "all") if row.depth is None else str(row.depth) for row in rows
            ],
            _p("column", "done"): [row.queries_done for row in rows],
            _p("column", "note"): [notes[row.id].text if row.id in notes else None for row in rows],
            _p("column", "remarks"): [separated(each.remarks()) or None for each in records],
            _p("column", "runtime"): [
                " → ".join(name for _stage, name in each.runtimes) or None for each in records
            ],
            _("start s"): [row.load_ms / 1000 for row in rows],
            _("created (UTC)"): [moment(row.created) for row in rows],
            _p("column", "settings"): [settings_in_words(row.settings) for row in rows],
        }
    )
    # Most data sets have no pinned run, note or failed query: omit empty columns.
    return table.dropna(axis="columns", how="all")


def _study(dataset_id: str) -> Study:
    """Return a study of a data set without challengers, to compute the latencies of fused runs."""
    data, systems = stored.dataset(dataset_id), stored.systems(dataset_id)
    return Study(data, systems, FIRST_STAGE, (), dataset_id=dataset_id, cache=cache)


def _delete(rows: Sequence[RunRow]) -> None:
    stored.by_this_session(row.id for row in rows)
    for row in rows:
        workspace().delete_run(row.id)


# One run: its runtime with the reason, its measurements, failures and machine.

_LONGEST = 300
# Shown in sentences, so the table does not repeat them.
_IN_SENTENCES = (
    *("runtime", "device", "calibration", "note", "rank_agreement", "agreement_pairs"),
    *("model_package", "model_origin", "model_licence"),
    *("repeats", CHURN, "changed_queries"),
    SHIPPED_WITH,
)


def draw_details(run_id: str) -> None:
    run, stored_record = stored.run(run_id), record(run_id)
    with st.container(border=True):
        st.markdown(f"**{markdown_safe(run.name, 80)}**")
        if run.measured is not None and run.measured.contended:
            st.warning(_contended(run.measured), icon=":material/speed:")
        share = combining.unknown_tokens(run, _part)
        if share > TOO_MANY_UNKNOWN:
            warning = unknown_tokens(markdown_safe(run.name, 80), share)
            st.warning(warning, icon=":material/translate:")
        sentences = (
            *_fetched(run),
            *_computed(stored_record, run),
            *_read(share),
            *_times(run),
        )
        st.markdown("\n".join(f"- {sentence}" for sentence in sentences))
        run_records.usage_line(run_id)
        if run.measured is not None and run.measured.throughput:
            _levels(run.measured.throughput)
        _failures(run)
        draw_retry(run_id)
        run_records.draw_run_note(run_id)
        _facts(run)


def _part(run_id: str) -> Run | None:
    """Return a run that a fused run was made from; None if it was deleted."""
    try:
        return stored.run(run_id)
    except StoreError:
        return None


def _read(share: float) -> Iterator[str]:
    if math.isfinite(share):
        yield _(
            "Tokens of queries and documents that the model does not know: {share}.",
            share=percent(share),
        )


def _fetched(run: Run) -> Iterator[str]:
    """Yield the source of a fetched run, and how much its results change between requests."""
    if not is_fetch(run.settings):
        return
    # The endpoint may be from another version.
    with suppress(RankdashError):
        yield _(
            "Fetched from {host}: request {request}.",
            host=markdown_safe(Endpoint.of(str(run.settings["endpoint"])).address, 200),
            request=markdown_safe(str(run.settings.get("request", "")), 40),
        )
    churn, changed = run.machine.get(CHURN), run.machine.get("changed_queries")
    if isinstance(churn, float) and isinstance(changed, float):
        yield _(
            "Churn: {share} of the top 10 changed between two requests, and the top 10 of "
            "{changed} of the queries differed ({n} requests per query).",
            share=percent(churn),
            changed=percent(changed),
            n=str(run.machine.get("repeats", "–")),
        )


def _contended(measured: Measured) -> str:
    return ngettext(
        "Other programs used the CPU: scoring got {got} of {n} thread, so its times are longer "
        "than this machine needs. Run it again when the machine is idle before you quote them. "
        "The ranking is not affected.",
        "Other programs used the CPU: scoring got {got} of {n} threads, so its times are longer "
        "than this machine needs. Run it again when the machine is idle before you quote them. "
        "The ranking is not affected.",
        measured.threads,
        got=number(measured.cpu_per_wall, 1),
    )


def _computed(stored_record: Record, run: Run) -> Iterator[str]:
    for stage, name in stored_record.runtimes:
        titles = {
            key.removeprefix(stage): markdown_safe(str(value), _LONGEST)
            for key, value in stored_record.machine.items()
            if key.startswith(stage)
        }
        yield {
            "": _("Runtime: {runtime} on {device}."),
            "first_": _("Stage 1 ran on {runtime}, device {device}."),
            "second_": _("Stage 2 ran on {runtime}, device {device}."),
        }[stage].format(runtime=markdown_safe(name, 40), device=titles.get("device", "cpu"))
        if "calibration" in titles:
            yield _(
                "This runtime was the fastest in a measurement of one batch, among runtimes with "
                "exactly the same ranking: {times}.",
                times=titles["calibration"],
            )
        elif run.settings.get("runtime") == name:
            yield _("The settings specify this runtime.")
        elif titles.get("device", "cpu") != "cpu":
            yield _("auto prefers the available graphics card.")
        if weights := provenance(titles):
            yield weights
        if "note" in titles:
            yield titles["note"]
        if "rank_agreement" in titles:
            yield _(
                "This runtime is approximate. Its rank correlation with an exact runtime is "
                "{value} (1 is the same order; Spearman, mean over queries), measured on {pairs} "
                "of these pairs.",
                value=titles["rank_agreement"],
                pairs=titles.get("agreement_pairs", "–"),
            )


def _times(run: Run) -> Iterator[str]:
    measured = run.measured
    if measured is None:
        return
    if excluded := without_text(measured):
        yield excluded
    total = measured.scored_pairs + measured.cached_pairs
    if measured.cached_pairs:
        yield ngettext(
            "{cached} of {n} pair came from the score cache; it is not included in the times "
            "below.",
            "{cached} of {n} pairs came from the score cache; they are not included in the times "
            "below.",
            total,
            cached=number(measured.cached_pairs, 0),
        )
    elif total:
        yield ngettext(
            "{n} pair was scored, none came from the score cache.",
            "{n} pairs were scored, none came from the score cache.",
            total,
        )
    if math.isfinite(run.load_ms):
        yield (
            _(
                "Cold start: {time}, including {first} for the first call.",
                time=duration(run.load_ms / 1000),
                first=duration(measured.first_call_ms / 1000),
            )
            if math.isfinite(measured.first_call_ms)
            else _("Cold start: {time}.", time=duration(run.load_ms / 1000))
        )
    if measured.serial_queries:
        timed = ngettext(
            "{n} query was timed individually after warm-up",
            "{n} queries were timed individually after warm-up",
            measured.serial_queries,
        )
        times = ngettext("{n} time", "{n} times", measured.repeats)
        yield _("{timed}, {times} each.", timed=timed, times=times)
    else:
        yield _("No query was timed individually, so the latency is unknown.")
    if measured.pairs:
        rate = number(measured.pairs_per_second, 1)
        yield (
            _("Throughput: {rate} pairs per second, one query at a time.", rate=rate)
            if measured.together <= 1
            else _(
                "Throughput: {rate} pairs per second, in batches of up to {together} queries.",
                rate=rate,
                together=number(measured.together, 0),
            )
        )
    if where := where_measured(run):
        yield _("These latencies are {where}.", where=markdown_safe(where, _LONGEST))
    if math.isfinite(measured.load_start):
        yield _(
            "Load of the machine: {start} before, {end} after (load average over one minute).",
            start=number(measured.load_start, 1),
            end=number(measured.load_end, 1),
        )


def _levels(levels: Sequence[Level]) -> None:
    st.dataframe(
        signed_cells(
            pd.DataFrame(
                {
                    _("concurrent clients"): [level.in_flight for level in levels],
                    _p("column", "queries/s"): [level.queries_per_second for level in levels],
                    _p("column", "pairs/s"): [level.pairs_per_second for level in levels],
                    _("p50 ms"): [level.p50_ms for level in levels],
                    _("p95 ms"): [level.p95_ms for level in levels],
                    _p("column", "answered"): [level.queries for level in levels],
                    _p("column", "failed"): [level.failed for level in levels],
                }
            ),
            {},
            times=(_("p50 ms"), _("p95 ms")),
        ),
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(format=digits)
            for name, digits in (
                (_p("column", "queries/s"), "%.1f"),
                (_p("column", "pairs/s"), "%.1f"),
            )
        },
        alt=_("Measured throughput by concurrent clients"),
    )


def _failures(run: Run) -> None:
    failed = run.queries[run.queries["state"] == "failed"]
    if failed.empty:
        return
    st.markdown(
        ngettext(
            "{n} query failed. It is reported as failed and never scored as 0:",
            "{n} queries failed. They are reported as failed and never scored as 0:",
            len(failed),
        )
    )
    st.dataframe(
        pd.DataFrame(
            {
                _p("column", "query"): list(failed["query_id"]),
                _("reason for the failure"): [
                    i18n.reason_text(reason) for reason in failed["reason"]
                ],
            }
        ),
        hide_index=True,
        alt=_("The failed queries and the reasons"),
    )


def _facts(run: Run) -> None:
    machine = {
        name: value
        for name, value in run.machine.items()
        if name.removeprefix("first_").removeprefix("second_") not in _IN_SENTENCES
    }
    with st.expander(_("Settings and machine"), key=f"run.facts.{run.id}"):
        for title, values in (
            (_p("column", "setting"), run.settings),
            (_p("column", "machine"), machine),
        ):
            if values:
                st.dataframe(
                    pd.DataFrame(
                        {
                            title: list(values),
                            _p("column", "value"): [str(value) for value in values.values()],
                        }
                    ),
                    hide_index=True,
                    alt=title,
                )


# The failed queries of a run, scored again without the others.


def draw_retry(run_id: str) -> None:
    """Draw a button that retries the failed queries, with a key field if the service needs one.
    Draw nothing for a run that was not made here."""
    row = None if read_only() else jobs.retryable(workspace(), run_id)
    if row is None:
        return
    key_field = page_jobs.draw_keys(row, f"retry.{run_id}")
    if key_field is None:
        return
    label = ngettext("Retry the {n} failed query", "Retry the {n} failed queries", row.failed)
    pressed = st.button(
        label,
        icon=":material/refresh:",
        key=f"retry.{run_id}",
        help=_("The result becomes a separate run."),
    )
    if not pressed:
        return
    if key_field.missing:
        st.error(key_field.missing, icon=":material/key_off:")
        return
    job_id = jobs.new_id()
    names = {each.name for each in workspace().runs(row.dataset_id)}
    names |= {each.name for each in jobs.list(workspace(), row.dataset_id)}
    if key_field.keys:
        worker().hand_over(job_id, key_field.keys)
    jobs.retry(workspace(), run_id, text.free(row.name, names), job_id)
    page_jobs.watch(job_id)
    worker().ensure()
    st.rerun()
