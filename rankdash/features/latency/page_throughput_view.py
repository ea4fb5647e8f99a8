"""How many queries a second each system serves with several under way, where it was measured."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import brief, enumerated, number
from rankdash.core.base.i18n import gettext as _
from rankdash.core.runs.concurrency import within_target
from rankdash.core.study.study import Study
from rankdash.features.latency import charts_throughput
from rankdash.kit.drawing import style
from rankdash.kit.widgets import view
from rankdash.kit.widgets.lazy_expander import fold
from rankdash.kit.widgets.plotly_chart import ink, show
from rankdash.kit.widgets.signed_cells import signed_cells
from rankdash.kit.widgets.text import name_rows
from rankdash.kit.widgets.view import safe_name


def draw(study: Study, target_ms: float) -> None:
    """The throughput with several queries under way at once, where it was measured."""
    st.subheader(_("Throughput, concurrency"), anchor=False)
    measured, without = [], []
    for system in study.chosen:
        run = study.run(system)
        if run is None:
            continue
        if run.measured is not None and run.measured.throughput:
            levels = run.measured.throughput
            measured.append(charts_throughput.Measurement(system, study.name(system), levels))
        elif run.measured is not None:
            without.append(safe_name(study, system))
    if measured:
        st.markdown("  \n".join(_best_in_words(study, each, target_ms) for each in measured))
        show(
            charts_throughput.figure(
                measured, style.marks(study.places, study.baseline), ink(), target_ms=target_ms
            ),
            alt=charts_throughput.alt(measured),
            key="latency.throughput",
        )
        fold(
            _("Every level as a table"),
            "latency.levels",
            ":material/table:",
            lambda: _levels_table(measured),
        )
    if without:
        st.caption(
            _(
                "Not measured: {names}. Throughput cannot be derived from latency: concurrent "
                "queries share the machine. Open “What is measured” when you start a run.",
                names=enumerated(without),
            )
        )
        st.page_link(
            view.page("run"), label=_("Measure it in a run"), icon=":material/arrow_forward:"
        )


def _best_in_words(study: Study, each: charts_throughput.Measurement, target_ms: float) -> str:
    best = within_target(each.levels, target_ms)
    name = safe_name(study, each.system)
    if best is None:
        return _(
            "**{system}**: at no measured level is p95 within {target} ms.",
            system=name,
            target=brief(target_ms),
        )
    return _(
        "**{system}** serves **{rate} queries/s** within {target} ms (concurrency {n}, p95 {p95} "
        "ms).",
        system=name,
        rate=brief(best.queries_per_second),
        target=brief(target_ms),
        n=number(best.in_flight, 0),
        p95=brief(best.p95_ms, target_ms),
    )


def _levels_table(measured: list[charts_throughput.Measurement]) -> None:
    rows = [
        {
            _("system"): each.name,
            _("concurrent"): level.in_flight,
            _("queries/s"): level.queries_per_second,
            _("pairs/s"): level.pairs_per_second,
            "p50": level.p50_ms,
            "p95": level.p95_ms,
            _("answered"): level.queries,
            _("failed"): level.failed,
            _("seconds"): level.seconds,
        }
        for each in measured
        for level in each.levels
    ]
    decimal = st.column_config.NumberColumn(format="%.1f")
    st.dataframe(
        signed_cells(pd.DataFrame(rows), {}, times=("p50", "p95")),
        hide_index=True,
        placeholder="–",
        column_config=dict.fromkeys((_("queries/s"), _("pairs/s"), _("seconds")), decimal),
        row_height=name_rows(each.name for each in measured),
        alt=_("Throughput at each level"),
    )
