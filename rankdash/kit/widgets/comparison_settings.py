"""The conventions and the statistics in force: drawn from the schemas that declare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from rankdash.core.base.errors import RankdashError, SpecError
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import percent
from rankdash.core.base.rules import RULE_OF_THUMB, STATISTICS_SETTINGS, Setting, StatisticsSettings
from rankdash.core.metrics import CONVENTION_SETTINGS, Conventions
from rankdash.core.words.methods import key_of, options_of
from rankdash.kit.widgets import address, pickers
from rankdash.kit.widgets.redraw import fold

_TOPS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 100.0)
_STATISTICS_OFFERED = {
    "level": (0.8, 0.9, 0.99),
    "resamples": (1_000, 2_000, 20_000),
    "seed": (1, 2, 3),
    "tie_band": (0.0, 0.001, 0.01, 0.02, 0.05),
    "worthwhile": (0.0, 0.01, 0.02, 0.05, 0.1, RULE_OF_THUMB, 0.2, 0.3, 0.5),
}


def draw(labels: Sequence[float]) -> None:
    """labels: those that the data set uses."""
    positive = [label for label in labels if label > 0]
    # A scale may end above the highest label that was given, and never below it.
    tops = [top for top in {*positive, *_TOPS} if top >= max(positive, default=0.0)]
    grades = {"threshold": positive, "err_top_label": tops}
    fold(
        _("Metric conventions"),
        "sidebar.rules",
        ":material/rule:",
        lambda: _draw_settings(CONVENTION_SETTINGS, grades),
    )
    fold(
        _("Statistics"),
        "sidebar.statistics",
        ":material/query_stats:",
        _draw_statistics,
    )


def conventions() -> Conventions:
    """The conventions of the address; the defaults where they cannot be."""
    try:
        return Conventions(**_chosen(CONVENTION_SETTINGS))
    except SpecError:
        return Conventions()


def statistics(queries: int) -> StatisticsSettings:
    """The statistics settings of the address; the defaults where they cannot be.

    queries: how many of the data set's have a label.
    """
    given = _chosen(STATISTICS_SETTINGS)
    try:
        return StatisticsSettings.for_queries(queries, **given)
    except SpecError:
        return StatisticsSettings.for_queries(queries)


def _draw_statistics() -> None:
    _draw_settings(STATISTICS_SETTINGS, _STATISTICS_OFFERED)
    if "worthwhile" not in _chosen(STATISTICS_SETTINGS):
        st.button(
            _("Set {share} (rule of thumb)", share=percent(RULE_OF_THUMB)),
            key="sidebar.rule_of_thumb",
            on_click=address.choose,
            args=("worthwhile", key_of(RULE_OF_THUMB)),
            help=_(
                "A common minimum practically relevant gain. It counts as your choice, and is "
                "named so in verdicts and reports."
            ),
        )


def _draw_settings(settings: Sequence[Setting], numbers: Mapping[str, Sequence[float]]) -> None:
    """One selectbox a setting. numbers: setting → the numbers it offers beside its default."""
    for setting in settings:
        options = options_of(setting, numbers.get(setting.name, ()))
        if len(options) > 1:
            pickers.pick_one(
                setting.name,
                list(options),
                st.selectbox,
                default=key_of(setting.default),
                label=_(setting.title),
                help=_(setting.help),
                format_func=options.__getitem__,
            )


def _chosen(settings: Sequence[Setting]) -> dict[str, Any]:
    """name → value for what is not at its default; what cannot be read is left out."""
    values = {}
    for setting in settings:
        text = address.one(setting.name)
        lost = None
        if text not in (None, key_of(setting.default)):
            try:
                values[setting.name] = setting.parse(text)
            except RankdashError:
                lost = text
        address.lose(setting.name, lost)
    return values
