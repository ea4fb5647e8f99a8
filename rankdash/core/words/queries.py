"""What became of a query, and what a document is worth to it, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rankdash.core.base.i18n import enumerated, ngettext, number, plain
from rankdash.core.base.i18n import gettext as _
from rankdash.core.metrics import parse_measure


def outcome_words() -> dict[str, str]:
    return {"helped": _("helped ▲"), "same": _("same ="), "hurt": _("hurt ▼"), **left_out_words()}


def state_words() -> dict[str, str]:
    return {"ok": _("ok"), "all_unjudged": _("all unjudged"), **left_out_words()}


def left_out_words() -> dict[str, str]:
    return {
        "failed": _("failed"),
        "skipped": _("not run"),
        "no_relevant": _("no relevant document"),
        "missing": _("not ranked"),
        "undefined": _("undefined"),
        "absent": _("only on one side"),
    }


def left_out_text(counts: Mapping[str, int]) -> str:
    """How many queries a comparison leaves out and why; empty without any. counts: by reason."""
    if not counts:
        return ""
    words = left_out_words()
    return ngettext(
        "{n} query is excluded on both sides and counts neither for nor against: {counts}.",
        "{n} queries are excluded on both sides and count neither for nor against: {counts}.",
        sum(counts.values()),
        counts=enumerated(
            _("{why} ({n})", why=words[reason], n=number(n, 0)) for reason, n in counts.items()
        ),
    )


def excluded(counts: Mapping[str, int]) -> list[str]:
    """One short fact for each reason. counts: as for `left_out_text`."""
    words = left_out_words()
    return [_("{n} excluded ({why})", n=number(n, 0), why=words[why]) for why, n in counts.items()]


def count_words() -> dict[str, str]:
    """Key of `Evaluation.counts` → what it counts the queries of a system for."""
    return {
        "queries": _("labelled queries"),
        "scored": _("scored"),
        "missing": _("not in the ranking"),
        "no_relevant": _("without a relevant document"),
        "failed": _("failed"),
        "skipped": _("not run"),
        "tied": _("with tied scores"),
        "unlabelled": _("ranked but without labels"),
    }


def metric_title(spec: str) -> str:
    """A metric as a reader finds it in a list of metrics: "NDCG@10", "MAP (graded)"."""
    measure = parse_measure(spec)
    return measure.title.replace(measure.metric.title, _(measure.metric.title), 1)


def judged_title(k: int | None) -> str:
    """What the share of labelled documents is called."""
    return _("Judged") if k is None else _("Judged@{k}", k=k)


def grade(label: float, best: float) -> str:
    """A label in words: "2 of 3", "not judged"."""
    if math.isnan(label):
        return _("not judged")
    return _("{label} of {best}", label=plain(label), best=plain(best))


def label_words(label: float | None) -> str:
    """A label as a number; None counts as not judged."""
    return _("not judged") if label is None else plain(label)


def query_count(n: int) -> str:
    """ "1 query" or "2,000 queries", for commands and files that speak English alone."""
    return "1 query" if n == 1 else f"{n:,} queries"
