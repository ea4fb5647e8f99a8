"""Latency: how long a query takes, cold and warm, alone and with others, and on which machine."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.study import latency
from rankdash.features.latency import page as latency_page
from rankdash.features.latency import page_readout
from rankdash.kit.widgets import view
from rankdash.kit.widgets.redraw import fold

st.title(_("Latency"))
study = view.study("latency")
view.caption(study)
found = latency.timed(study)
if not found:
    page_readout.not_timed(study, found)
    view.nothing_yet(
        "latency",
        _("No latency measured yet"),
        _(
            "A run times queries one at a time, on a warm model, with their own documents. None of "
            "the systems compared has such times."
        ),
        "run",
    )
target_ms = page_readout.target()
page_readout.measure_again(study)
page_readout.draw(study, found, target_ms)
page_readout.not_timed(study, found)
latency_page.spread(study, found, target_ms)
fold(
    _("All numbers as a table"),
    "latency.numbers",
    ":material/table:",
    lambda: page_readout.numbers(study, found),
)
fold(
    _("The machine, its load, and versions"),
    "latency.machines",
    ":material/memory:",
    lambda: page_readout.machines(study, found),
)
throughput, lengths = st.columns(2, gap="medium")
with throughput:
    latency_page.draw_throughput(study, target_ms)
with lengths:
    latency_page.draw_tokens(study)
latency_page.growth(study, found)
