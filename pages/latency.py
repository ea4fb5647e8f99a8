"""Latency: how long a query takes, cold and warm, alone and with others, and on which machine."""

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.study import latency
from rankdash.ui.latency import latency_readout, latency_view, throughput_view, tokens_view
from rankdash.ui.sidebar import view
from rankdash.ui.widgets.lazy_expander import fold

st.title(_("Latency"))
study = view.study("latency")
view.caption(study)
found = latency.timed(study)
if not found:
    latency_readout.not_timed(study, found)
    view.nothing_yet(
        "latency",
        _("No latency measured yet"),
        _(
            "A run times queries one at a time, on a warm model, with their own documents. None of "
            "the systems compared has such times."
        ),
        "run",
    )
target_ms = latency_readout.target()
latency_readout.measure_again(study)
latency_readout.draw(study, found, target_ms)
latency_readout.not_timed(study, found)
latency_view.spread(study, found, target_ms)
fold(
    _("All numbers as a table"),
    "latency.numbers",
    ":material/table:",
    lambda: latency_readout.numbers(study, found),
)
fold(
    _("The machine, its load, and versions"),
    "latency.machines",
    ":material/memory:",
    lambda: latency_readout.machines(study, found),
)
throughput, lengths = st.columns(2, gap="medium")
with throughput:
    throughput_view.draw(study, target_ms)
with lengths:
    tokens_view.draw(study)
latency_view.growth(study, found)
