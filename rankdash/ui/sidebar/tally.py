"""How many queries a system helped and hurt, in a line."""

from __future__ import annotations

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.i18n import ngettext, number
from rankdash.study.study import Study
from rankdash.ui.widgets.text import markdown_safe
from rankdash.words.queries import outcome_words


def tally_line(study: Study, system: str) -> None:
    """Helped, same, hurt with the tie band, and what was left out and why."""
    found, words = study.comparison, outcome_words()
    row = found.row(system, study.spec)
    out = [
        _("{n} {why}", n=number(n, 0), why=words[why])
        for why, n in found.left_out(system, study.spec).items()
    ]
    line = _(
        "**{name}**: {helped} helped · {same} same (±{band}) · {hurt} hurt, of {queries}",
        name=markdown_safe(study.name(system), 60),
        helped=number(row["helped"], 0),
        same=number(row["same"], 0),
        hurt=number(row["hurt"], 0),
        band=f"{study.statistics.tie_band:g}",
        queries=ngettext("{n} query", "{n} queries", int(row["paired"])),
    )
    apart = _("left out: {counts}", counts=", ".join(out))
    st.markdown(f"{line} · {apart}" if out else line)
