"""Baseline against challengers: what every page that compares asks for."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.analysis.statistics.comparison import Comparison
from rankdash.charts import style
from rankdash.i18n import gettext as _
from rankdash.i18n import ngettext, number
from rankdash.metrics import Evaluation
from rankdash.ui.sidebar.sidebar import View
from rankdash.ui.state import services
from rankdash.ui.widgets.text import markdown_safe
from rankdash.words.queries import outcome_words

_SHOWN = ("ndcg", "mrr", "map", "recall", "precision", "hit", "judged")


def specs(view: View) -> tuple[str, ...]:
    """The chosen metric first, then the usual ones, all at the chosen cutoff."""
    return tuple(dict.fromkeys([view.spec, *(view.spec_of(name) for name in _SHOWN)]))


def evaluations(view: View) -> dict[str, Evaluation]:
    return services.evaluations(view.dataset_id, view.chosen, specs(view), view.conventions)


def compared(view: View) -> Comparison:
    return services.comparison(
        view.dataset_id, view.chosen, specs(view), view.conventions, view.statistics
    )


def names(view: View) -> dict[str, str]:
    """System id → its name as it was typed: not safe for Markdown."""
    return {system: view.name(system) for system in view.chosen}


def marks(view: View) -> dict[str, style.Mark]:
    """System id → how it looks in every chart."""
    return style.marks(view.chosen, view.baseline)


def titles(view: View) -> dict[str, str]:
    """Spec → title, such as "NDCG@10"."""
    return {spec: view.title(spec) for spec in specs(view)}


def pairs_of(view: View, system: str) -> pd.DataFrame:
    """Both values and the change of every query."""
    return services.pairs(
        view.dataset_id, (view.baseline, system), specs(view), view.spec, view.conventions
    )


def tally_line(view: View, system: str) -> None:
    """Helped, same, hurt with the tie band, and what was left out and why."""
    found, words = compared(view), outcome_words()
    row = found.row(system, view.spec)
    out = [
        _("{n} {why}", n=number(n, 0), why=words[why])
        for why, n in found.left_out(system, view.spec).items()
    ]
    line = _(
        "**{name}**: {helped} helped · {same} same (±{band}) · {hurt} hurt, of {queries}",
        name=markdown_safe(view.name(system), 60),
        helped=number(row["helped"], 0),
        same=number(row["same"], 0),
        hurt=number(row["hurt"], 0),
        band=f"{view.statistics.tie_band:g}",
        queries=ngettext("{n} query", "{n} queries", int(row["paired"])),
    )
    apart = _("left out: {counts}", counts=", ".join(out))
    st.markdown(f"{line} · {apart}" if out else line)
