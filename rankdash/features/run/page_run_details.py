"""One run in full: what computed it and why, what was measured, what failed, where it ran."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd
import streamlit as st

from rankdash.core.base import failures
from rankdash.core.base.errors import StoreError
from rankdash.core.base.i18n import duration, ngettext, number, percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.data.measured import TOO_MANY_UNKNOWN, Level, Measured
from rankdash.core.data.ranking import SHIPPED_WITH, Run
from rankdash.core.runs import combining
from rankdash.core.words.rankings import provenance, unknown_tokens, without_text
from rankdash.features.latency.words_latency import where_measured
from rankdash.features.run import page_retry_form
from rankdash.kit.widgets import run_note, run_records, stored
from rankdash.kit.widgets.run_records import Record, record
from rankdash.kit.widgets.signed_cells import signed_cells
from rankdash.kit.widgets.text import markdown_safe

_LONGEST = 300
# Told in sentences, so that the table need not repeat them.
_IN_SENTENCES = (
    *("runtime", "device", "calibration", "note", "rank_agreement", "agreement_pairs"),
    *("model_package", "model_origin", "model_licence"),
    SHIPPED_WITH,
)


def draw(run_id: str) -> None:
    run, kept = stored.run(run_id), record(run_id)
    with st.container(border=True):
        st.markdown(f"**{markdown_safe(run.name, 80)}**")
        if run.measured is not None and run.measured.contended:
            st.warning(_contended(run.measured), icon=":material/speed:")
        share = combining.unknown_tokens(run, _part)
        if share > TOO_MANY_UNKNOWN:
            said = unknown_tokens(markdown_safe(run.name, 80), share)
            st.warning(said, icon=":material/translate:")
        sentences = (*_computed(kept, run), *_read(share), *_times(run))
        st.markdown("\n".join(f"- {sentence}" for sentence in sentences))
        run_records.usage_line(run_id)
        if run.measured is not None and run.measured.throughput:
            _levels(run.measured.throughput)
        _failures(run)
        page_retry_form.draw(run_id)
        run_note.draw(run_id)
        _facts(run)


def _part(run_id: str) -> Run | None:
    """One of the runs that a run was made of; None where it was deleted."""
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


def _contended(measured: Measured) -> str:
    return ngettext(
        "Other programs held the processor: scoring got {got} of {n} thread, so its times are "
        "longer than this machine needs. Run it again when the machine is idle before you quote "
        "them. The ranking is not affected.",
        "Other programs held the processor: scoring got {got} of {n} threads, so its times are "
        "longer than this machine needs. Run it again when the machine is idle before you quote "
        "them. The ranking is not affected.",
        measured.threads,
        got=number(measured.cpu_per_wall, 1),
    )


def _computed(kept: Record, run: Run) -> Iterator[str]:
    for stage, name in kept.runtimes:
        titles = {
            key.removeprefix(stage): markdown_safe(str(value), _LONGEST)
            for key, value in kept.machine.items()
            if key.startswith(stage)
        }
        yield {
            "": _("Computed by {runtime} on {device}."),
            "first_": _("The first stage was computed by {runtime} on {device}."),
            "second_": _("The second stage was computed by {runtime} on {device}."),
        }[stage].format(runtime=markdown_safe(name, 40), device=titles.get("device", "cpu"))
        if "calibration" in titles:
            yield _(
                "It was chosen by measurement, as the fastest runtime for one batch that ranks "
                "exactly alike: {times}.",
                times=titles["calibration"],
            )
        elif run.settings.get("runtime") == name:
            yield _("It is set in the settings.")
        elif titles.get("device", "cpu") != "cpu":
            yield _("There is a graphics card, which auto prefers.")
        if weights := provenance(titles):
            yield weights
        if "note" in titles:
            yield titles["note"]
        if "rank_agreement" in titles:
            yield _(
                "It is approximate. Its order agrees with that of an exact runtime by {value} (1 "
                "is the same order; Spearman's rank correlation, the mean over queries), measured "
                "on {pairs} of these pairs.",
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
                "Cold start: {time}, of it {first} for the first call.",
                time=duration(run.load_ms / 1000),
                first=duration(measured.first_call_ms / 1000),
            )
            if math.isfinite(measured.first_call_ms)
            else _("Cold start: {time}.", time=duration(run.load_ms / 1000))
        )
    if measured.serial_queries:
        timed = ngettext(
            "{n} query was timed alone and warm",
            "{n} queries were timed alone and warm",
            measured.serial_queries,
        )
        times = ngettext("{n} time", "{n} times", measured.repeats)
        yield _("{timed}, {times} each.", timed=timed, times=times)
    else:
        yield _("No query was timed alone, so its latency is not known.")
    if measured.pairs:
        rate = number(measured.pairs_per_second, 1)
        yield (
            _("Throughput: {rate} pairs a second, one query at a time.", rate=rate)
            if measured.together <= 1
            else _(
                "Throughput: {rate} pairs a second, up to {together} queries together.",
                rate=rate,
                together=number(measured.together, 0),
            )
        )
    if where := where_measured(run):
        yield _("These times are {where}.", where=markdown_safe(where, _LONGEST))
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
                    _("queries/s"): [level.queries_per_second for level in levels],
                    _("pairs/s"): [level.pairs_per_second for level in levels],
                    _("p50 ms"): [level.p50_ms for level in levels],
                    _("p95 ms"): [level.p95_ms for level in levels],
                    _("answered"): [level.queries for level in levels],
                    _("failed"): [level.failed for level in levels],
                }
            ),
            {},
            times=(_("p50 ms"), _("p95 ms")),
        ),
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(format=digits)
            for name, digits in (
                (_("queries/s"), "%.1f"),
                (_("pairs/s"), "%.1f"),
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
            "{n} query failed; it counts as failed everywhere, never as zero:",
            "{n} queries failed; they count as failed everywhere, never as zero:",
            len(failed),
        )
    )
    st.dataframe(
        pd.DataFrame(
            {
                _("query"): list(failed["query_id"]),
                _("why it failed"): [failures.in_words(reason) for reason in failed["reason"]],
            }
        ),
        hide_index=True,
        alt=_("The queries that failed, and why"),
    )


def _facts(run: Run) -> None:
    machine = {
        name: value
        for name, value in run.machine.items()
        if name.removeprefix("first_").removeprefix("second_") not in _IN_SENTENCES
    }
    with st.expander(_("Settings and machine"), key=f"run.facts.{run.id}"):
        for title, values in ((_("setting"), run.settings), (_("machine"), machine)):
            if values:
                st.dataframe(
                    pd.DataFrame(
                        {title: list(values), _("value"): [str(value) for value in values.values()]}
                    ),
                    hide_index=True,
                    alt=title,
                )
