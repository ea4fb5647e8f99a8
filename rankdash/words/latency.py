"""What is said of latencies on the page and in the report alike."""

from __future__ import annotations

from functools import reduce

from rankdash.analysis.latency import Apart
from rankdash.i18n import duration, moment, ngettext
from rankdash.i18n import gettext as _
from rankdash.ranking.measured import Measured
from rankdash.ranking.ranking import Run


def where_measured(run: Run) -> str:
    """Where and when the times of a run that came with a sample were measured; "" for others."""
    if not run.shipped:
        return ""
    cpu = run.machine.get("cpu")
    if not cpu:
        return _("shipped with the sample: from the times of its parts, not of this machine")
    return _(
        "shipped with the sample: measured on {cpu}, {moment}, not on this machine",
        cpu=str(cpu),
        moment=moment(run.created),
    )


def left_out_of_times(lost: Apart, measured: Measured | None) -> str:
    """What is in no time of a run, of its queries and of the work before them; "" where nothing."""
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
                "{n} query given up after {time}, which counts as over the target",
                "{n} queries given up after {time}, which count as over the target",
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
    # Chinese has a semicolon of its own, without a blank.
    return (
        reduce(lambda one, other: _("{one}; {other}", one=one, other=other), sentences)
        if sentences
        else ""
    )
