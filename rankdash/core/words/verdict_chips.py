"""Verdicts in words: a chip for each kind, and the sentence with its advice."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import pandas as pd

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import number, paragraph, percent, signed
from rankdash.core.statistics.settings import StatisticsSettings
from rankdash.core.statistics.verdict import TITLES, Kind, Verdict, has_width


def p_title(corrected: bool) -> str:
    """What a p is called. corrected: whether it allows for other comparisons."""
    return _("corrected p") if corrected else _("p")


def p_value(p: float) -> str:
    """A p with four decimals, "<0.0001" where these are zeros; a dash where there is none."""
    return "<0.0001" if p < 0.000_05 else number(p, 4)


def chip(kind: str) -> str:
    """A kind of verdict in a word or two; "baseline" is what the others are compared with."""
    return _("baseline") if kind == "baseline" else _(TITLES[cast(Kind, kind)])


def sentence(verdict: Verdict) -> str:
    """What may be said of a challenger, and what to do about it."""
    return paragraph([_(each, **verdict.params) for each in (verdict.template, *verdict.advice)])


def change_facts(row: pd.Series, settings: StatisticsSettings, p: str) -> list[str]:
    """The change with its interval, its p and whom it helped, in a few words each.

    row: of a `Comparison`. p: the column to show, "p" or "p_corrected".
    """
    facts = []
    if math.isfinite(row["delta_low"]):
        facts.append(
            _(
                "change {delta} ({level} {interval})",
                delta=signed(row["delta"]),
                level=percent(settings.level),
                interval=change_interval(row["delta_low"], row["delta_high"]),
            )
        )
    if said := p_fact(row, settings, p):
        facts.append(said)
    facts.append(
        _(
            "{helped} helped, {same} same, {hurt} hurt",
            helped=number(row["helped"], 0),
            same=number(row["same"], 0),
            hurt=number(row["hurt"], 0),
        )
    )
    return facts


def p_fact(row: pd.Series, settings: StatisticsSettings, p: str) -> str:
    """The p of a change, beside the corrected one where both differ; "" where there is none.

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
    """An interval for a cell; a dash where there is none, and that it has no width where all
    queries have one value."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return "–"
    return f"{write(low)} … {write(high)}" if has_width(low, high) else _("no spread")


def change_interval(low: float, high: float) -> str:
    """An interval of a change for a cell, as `interval`: signed."""
    return interval(low, high, signed)


def is_corrected(row: pd.Series, settings: StatisticsSettings) -> bool:
    """Whether the p of a row of a `Comparison` allows for other comparisons."""
    return bool(row["planned_level"] > settings.level)
