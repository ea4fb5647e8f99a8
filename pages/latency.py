"""Page Latency: which systems meet the latency target, with intervals and the machine."""

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.features.latency import charts, page_readout
from rankdash.features.latency import page as latency_page
from rankdash.kit.widgets import component, view
from rankdash.kit.widgets.redraw import fold

st.title(_p("page", "Latency"))
study = view.study("latency")
view.caption(study)
timed = charts.timed(study)
if not timed:
    page_readout.not_timed(study, timed)
    view.nothing_yet(
        "latency",
        _("No latency measured yet"),
        _(
            "A run measures the latency of each query separately, with its own documents, after a "
            "warm-up. None of the compared systems has such measurements."
        ),
        "run",
    )
target_ms = page_readout.draw(study, timed)
fold(
    _("Details of each system"),
    "latency.details",
    ":material/notes:",
    lambda: page_readout.details(study, timed, target_ms),
)
fold(
    _("Table of all measurements"),
    "latency.numbers",
    ":material/table:",
    lambda: page_readout.numbers(study, timed),
)
fold(
    _("Machine, load and versions"),
    "latency.machines",
    ":material/memory:",
    lambda: page_readout.machines(study, timed),
)
component.when_seen(
    study,
    "latency.load",
    "",
    620,
    lambda study: latency_page.load(study, target_ms),
    target_ms,
)
component.when_seen(study, "latency.growth", "", 520, latency_page.growth)
