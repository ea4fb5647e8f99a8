"""Verdicts in words: a chip for each kind, and the sentence with its advice."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

import pandas as pd

from rankdash.core.base.i18n import (
    all_of,
    enumerated,
    level_percent,
    ngettext,
    number,
    paragraph,
    percent,
    signed,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.statistics.verdict import TITLES, Kind, Verdict, has_width
from rankdash.core.study.groups import DERIVED_SEGMENTS, Group
from rankdash.core.study.headroom import Headroom
from rankdash.core.study.history import APART
from rankdash.core.study.reasons.reasons import LISTED
from rankdash.core.study.study import Study

_DERIVED = {each.name: each for each in DERIVED_SEGMENTS}
_KINDS_NAMED = 3


def p_title(corrected: bool) -> str:
    """Return the title of a p. corrected: whether it accounts for other comparisons."""
    return _("corrected p") if corrected else _p("column", "p")


def p_value(p: float) -> str:
    """Return a p with four decimals, "<0.0001" if these are zeros, or a dash for NaN."""
    return "<0.0001" if p < 0.000_05 else number(p, 4)


def chip(kind: str) -> str:
    """Return a kind of verdict in a word or two. kind: also "baseline", or `APART` for a run that
    is not compared with it."""
    others = {"baseline": _p("verdict", "baseline"), APART: _("not compared")}
    return others[kind] if kind in others else _p("verdict", TITLES[cast(Kind, kind)])


def sentence(verdict: Verdict) -> str:
    """Return the verdict on a challenger and its advice."""
    return paragraph([_(each, **verdict.params) for each in (verdict.template, *verdict.advice)])


def change_facts(row: pd.Series, settings: StatisticsSettings, p: str) -> list[str]:
    """Return the change with its interval, its p, and the counts of queries, in a few words each.

    row: of a `Comparison`. p: the column to show, "p" or "p_corrected".
    """
    facts = (change_fact(row, settings), p_fact(row, settings, p), tally(row))
    return [each for each in facts if each]


def change_fact(row: pd.Series, settings: StatisticsSettings) -> str:
    """Return the change with its interval; "" if there is no interval."""
    if not math.isfinite(row["delta_low"]):
        return ""
    return _(
        "change {delta} ({level} {interval})",
        delta=signed(row["delta"]),
        level=level_percent(settings.level),
        interval=change_interval(row["delta_low"], row["delta_high"]),
    )


def tally(row: pd.Series) -> str:
    """Return the numbers of queries that were helped, stayed the same and were hurt."""
    return _(
        "{helped} helped, {same} same, {hurt} hurt",
        helped=number(row["helped"], 0),
        same=number(row["same"], 0),
        hurt=number(row["hurt"], 0),
    )


def p_fact(row: pd.Series, settings: StatisticsSettings, p: str) -> str:
    """Return the p of a change, with the corrected p if it differs; "" if there is none.

    row, p: as for `change_facts`.
    """
    if not math.isfinite(row[p]):
        return ""
    raw, value = p_value(row["p"]), p_value(row[p])
    if p == "p" or not is_corrected(row, settings):
        return _("p {p}", p=raw)
    if row["p"] == row["p_corrected"]:
        return _("corrected p {p}", p=value)
    return _("p {raw}, corrected {p}", raw=raw, p=value)


def interval(low: float, high: float, write: Callable[[float], str] = number) -> str:
    """Return an interval for a cell: a dash if it is not finite, "no spread" if all queries have
    the same value."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return "–"
    if not has_width(low, high):
        return _("no spread")
    return _("{low} … {high}", low=write(low), high=write(high))


def change_interval(low: float, high: float) -> str:
    """Return a signed interval of a change for a cell, as `interval`."""
    return interval(low, high, signed)


def query_counts(study: Study, *, means: bool) -> str:
    """Return the number of queries of the data set, and how many count in the comparison, as text.
    means: whether the labels allow means, which a sample of labels does not."""
    queries = ngettext("{n} query", "{n} queries", len(study.dataset.queries))
    if not means:
        return queries
    compared = study.challengers or (study.baseline,)
    counted = max(int(study.comparison.row(each, study.spec)["paired"]) for each in compared)
    if counted == len(study.dataset.queries):
        return queries
    return ngettext("{n} of {queries} counts", "{n} of {queries} count", counted, queries=queries)


def is_corrected(row: pd.Series, settings: StatisticsSettings) -> bool:
    """Return whether the p of a row of a `Comparison` accounts for other comparisons."""
    return bool(row["planned_level"] > settings.level)


# The reasons of `study.reasons.reasons` in words: short for a list, long for a tooltip.


def reason_words() -> dict[str, str]:
    """Return code of a reason → title."""
    return {each.code: _p("reason", each.title) for each in LISTED}


def reason_meanings() -> dict[str, str]:
    """Return code of a reason → meaning, in a sentence."""
    return {each.code: _(each.meaning, share=percent(each.share)) for each in LISTED}


# The limits of reranking, in words: the documents that it can and cannot order.


def documents(own_list: bool) -> str:
    """Return the documents of the best possible order, in a few words."""
    return _("own list") if own_list else _p("documents", "candidates")


def best_order(own_list: bool) -> str:
    """Return the words for the best possible value of one query."""
    return _("best order of the system's list") if own_list else _("best order of the candidates")


def notes(study: Study, fit: Callable[[str], str] = str) -> list[str]:
    """Return which share of the relevant documents each system could order, one sentence per set of
    documents. fit: escapes a name for the place that shows it."""
    splits = {system: study.headroom(system) for system in study.challengers}
    limits = {
        system: split
        for system, split in splits.items()
        if split is not None and split.n and split.recall_ceiling is not None
    }
    depths = {split.depth: split for split in reversed(limits.values()) if not split.own}
    lists = [
        _("{system} {share}", system=fit(study.name(system)), share=_share(split))
        for system, split in limits.items()
        if split.own and split.depth is None
    ]
    sentences = [_found(split) for split in depths.values()][::-1]
    sentences += [
        _(
            "On average, the candidates of {system} down to rank {depth} contain {share} of a "
            "query's relevant documents.",
            system=fit(study.name(system)),
            depth=number(split.depth, 0),
            share=_share(split),
        )
        for system, split in limits.items()
        if split.own and split.depth is not None
    ]
    return [*sentences, _lists(lists)] if lists else sentences


def _lists(shares: Sequence[str]) -> str:
    return ngettext(
        "The list of a system contains this share of a query's relevant documents on average: "
        "{shares}. A better order cannot bring back the rest.",
        "The lists of the systems contain these shares of a query's relevant documents on average: "
        "{shares}. A better order cannot bring back the rest.",
        len(shares),
        shares=enumerated(shares),
    )


def _found(split: Headroom) -> str:
    """Return how many of the relevant documents are among the candidates."""
    if split.recall_ceiling == 1:
        if split.depth is None:
            return _("The first stage found every relevant document.")
        return _(
            "The top {depth} candidates contain every relevant document.",
            depth=number(split.depth, 0),
        )
    if split.depth is None:
        return _(
            "On average, the first stage found {share} of a query's relevant documents; no "
            "reranker can bring back the rest.",
            share=_share(split),
        )
    return _(
        "On average, the candidates down to rank {depth} contain {share} of a query's relevant "
        "documents; reranking no deeper cannot bring back the rest.",
        depth=number(split.depth, 0),
        share=_share(split),
    )


def _share(split: Headroom) -> str:
    """Return the recall in words; a recall below 1 is never written as 100%."""
    recall = split.recall_ceiling or 0.0
    shown = percent(recall)
    return (
        _("more than {share}", share=percent(0.99))
        if recall < 1 and shown == percent(1.0)
        else shown
    )


# The kinds of queries that gain or lose, by name.


def kinds(study: Study, groups: Sequence[Group], fit: Callable[[str], str] = str) -> str:
    """Return the first kinds of queries by name, in the reader's language if rankdash named them,
    and the number of others."""
    named = [_kind(study, each, fit) for each in groups[:_KINDS_NAMED]]
    more = len(groups) - _KINDS_NAMED
    if more > 0:
        named.append(ngettext("{n} other kind", "{n} other kinds", more))
    return all_of(named)


def kind(study: Study, group: Group, fit: Callable[[str], str] = str) -> dict[str, str]:
    """Return the `column` and the `value` of a kind of queries as they are shown."""
    derived = None if group.column in study.dataset.segments else _DERIVED[group.column]
    return {
        "column": fit(group.column if derived is None else _p("segment", derived.title)),
        "value": fit(group.value if derived is None else _p("segment", group.value)),
    }


def _kind(study: Study, group: Group, fit: Callable[[str], str]) -> str:
    params = {
        **kind(study, group, fit),
        "queries": ngettext("{n} query", "{n} queries", group.n),
        "change": signed(group.delta),
    }
    return (
        _("{column} “{value}” ({queries}, {change}, proven)", **params)
        if group.proven
        else _("{column} “{value}” ({queries}, {change}, not proven)", **params)
    )
