"""Sentences about latencies, for the page and the report."""

from __future__ import annotations

import math

from rankdash.core.base.i18n import all_of, brief, duration, moment, ngettext, number, separated
from rankdash.core.base.i18n import gettext as _
from rankdash.core.data.measured import FEWEST_TIMED, Measured
from rankdash.core.data.ranking import Run
from rankdash.core.runs.combining import part_ids
from rankdash.core.study import latency
from rankdash.core.study.latency import Apart
from rankdash.core.study.pricing import CASCADE
from rankdash.core.study.study import Study


def milliseconds(value: float | None, beside: float = math.nan) -> str:
    """Return a latency with its unit; a dash if there is none. beside: as for `brief`."""
    if value is None or math.isnan(value):
        return "–"
    return _("{ms} ms", ms=brief(value, beside))


def where_measured(run: Run) -> str:
    """Return a note on times that are sums over parts or stages, of a cluster, or shipped with a
    sample; "" for times measured for this run on this machine."""
    if part_ids(run):
        if run.shipped:
            return _("shipped with the sample: sums of the times of its parts")
        return _("sums of the times of its parts, called one after the other")
    if run.shipped:
        return _(
            "shipped with the sample: measured on {cpu}, {moment}, not on this machine",
            cpu=str(run.machine.get("cpu", "–")),
            moment=moment(run.created),
        )
    if "ray_actors" in run.machine:
        return _(
            "measured with one query at a time on {node}, one machine of the Ray cluster",
            node=str(run.machine.get("node", "–")),
        )
    return _("sums of both stages") if run.reranker == CASCADE else ""


def added(run: Run | None) -> str:
    """Return a short note for a table cell if the times are a sum over parts; otherwise ""."""
    return _("sum of its parts") if run is not None and part_ids(run) else ""


def busy_notes(study: Study) -> list[str]:
    """Return warnings about measurements on a busy machine and about larger depths that were
    faster. Names are not escaped."""
    busy = [
        study.name(system)
        for system in study.chosen
        if latency.busy(study, system) and latency.summary(study, system) is not None
    ]
    sentences = []
    if busy:
        sentences.append(
            _(
                "The machine was busy while {names} ran: latency and price may be lower. Measure "
                "again when the machine is idle.",
                names=all_of(busy),
            )
        )
    for each in latency.inversions(study):
        sentences.append(
            _(
                "{deeper} reranks {n} documents and was measured faster than {shallower} with "
                "{fewer}: one of the two measurements was disturbed. Measure both again.",
                deeper=study.name(each.deeper),
                n=number(each.documents, 0),
                shallower=study.name(each.shallower),
                fewer=number(each.fewer, 0),
            )
        )
    return sentences


def without_p95(timed: int, whole: bool = False) -> str:
    """Return why p95 is not shown for `timed` timed queries. whole: whether the latencies are of
    whole searches."""
    if timed and whole:
        return _("of the whole search, not added to the first stage")
    if not timed:
        return _("not measured")
    return ngettext(
        "{n} query timed; p95 needs {fewest}",
        "{n} queries timed; p95 needs {fewest}",
        timed,
        fewest=number(FEWEST_TIMED, 0),
    )


def excluded_from_times(lost: Apart, measured: Measured | None) -> str:
    """Return the queries and the preparation that the latencies of a run exclude; "" if nothing is
    excluded."""
    sentences = []
    if measured is not None and measured.index_seconds > 0:
        sentences.append(
            _(
                "{time} of preparation, such as embedding documents",
                time=duration(measured.index_seconds),
            )
        )
    if lost.failed:
        sentences.append(ngettext("{n} failed query", "{n} failed queries", lost.failed))
    if lost.timed_out:
        sentences.append(
            ngettext(
                "{n} query that timed out after {time}, counted as over the target",
                "{n} queries that timed out after {time}, counted as over the target",
                lost.timed_out,
                time=duration(lost.limit_ms / 1e3),
            )
        )
    if lost.retried:
        sentences.append(
            ngettext(
                "{time} of waiting before retries, for {n} query",
                "{time} of waiting before retries, for {n} queries",
                lost.retried,
                time=duration(lost.retry_wait_ms / 1e3),
            )
        )
    if lost.untimed:
        sentences.append(
            ngettext(
                "{n} query scored in batches or from the cache",
                "{n} queries scored in batches or from the cache",
                lost.untimed,
            )
        )
    if lost.skipped:
        sentences.append(
            ngettext(
                "{n} query that was not requested",
                "{n} queries that were not requested",
                lost.skipped,
            )
        )
    return separated(sentences)
