"""Means next to the targets of a profile; profiles can be edited and are stored in the
workspace."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import brief, error_text, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.metrics import parse_measure
from rankdash.core.study.study import Study
from rankdash.core.value.targets import Goals, Limit, Profile, Target, Targets
from rankdash.core.words import targets
from rankdash.core.words.queries import metric_title
from rankdash.kit.html.tables import file_name
from rankdash.kit.widgets import address, dialogs, pickers, scenario
from rankdash.kit.widgets.stored import read_only
from rankdash.kit.widgets.text import table_html

_LEVELS = ("minimum", "target", "excellent")


def draw(study: Study) -> None:
    saved = scenario.saved_targets()
    choose, beside = st.columns([1, 2], vertical_alignment="bottom")
    key = pickers.pick_one(
        "profile",
        list(saved.profiles),
        choose.selectbox,
        label=_p("field", "Profile"),
        format_func=lambda name: _p("profile", saved.profiles[name].title),
    )
    if key is None:
        return
    if not address.by_hand("profile"):
        # The verdict names its targets only after the user chose them.
        address.set_default("profile", None)
    chosen = Goals(saved, key)
    offer(chosen.profile, beside)
    st.html(table_html(targets.head(), targets.target_rows(study, chosen)))
    st.caption(paragraph([targets.note(chosen), _("You can edit them.")]))
    with st.container(horizontal=True):
        st.download_button(
            _("Export this profile"),
            chosen.profile.to_json(),
            file_name("", f"targets {key}", "json"),
            "application/json",
            icon=":material/download:",
            help=_(
                "Use the file with rankdash gate --profile FILE or rankdash report --profile FILE."
            ),
            key="targets.export",
        )
        if not read_only():
            with st.popover(_("Edit this profile"), icon=":material/edit:"):
                edit(saved, key, chosen.profile)


def offer(profile: Profile, place: DeltaGenerator) -> None:
    """Draw a button that sets metric, cutoff and latency target to those in the profile."""
    limit = profile.limit("p95_ms")
    if not profile.measure or limit is None:
        return
    measure = parse_measure(profile.measure)
    target = f"{limit.target:.0f}"
    settings = {
        "metric": measure.metric.name,
        "k": None if measure.k is None else str(measure.k),
        "target": target,
        "latency_target_ms": target,
    }

    def use() -> None:
        for field, value in settings.items():
            address.choose(field, value)

    place.button(
        _(
            "Use these settings: {metric}, latency target {ms} ms",
            metric=metric_title(profile.measure),
            ms=brief(limit.target),
        ),
        icon=":material/tune:",
        help=_(
            "Sets the metric, its cutoff k, and the latency targets on the pages Latency and Cost "
            "& ROI."
        ),
        on_click=use,
        disabled=all(address.one(field) == value for field, value in settings.items()),
        key="targets.use",
    )


def edit(saved: Targets, key: str, profile: Profile) -> None:
    """Draw the form of a profile. saved: all profiles, including `key`."""
    edited = st.data_editor(
        pd.DataFrame(
            [
                {"metric": target.metric, **{level: getattr(target, level) for level in _LEVELS}}
                for target in profile.targets
            ]
        ),
        num_rows="dynamic",
        hide_index=True,
        placeholder="–",
        key=f"targets.edit.{key}",
        column_config={
            "metric": st.column_config.TextColumn(_p("column", "metric"), required=True),
            **{
                level: st.column_config.NumberColumn(title, min_value=0.0, max_value=1.0)
                for level, title in zip(
                    _LEVELS,
                    (_p("column", "minimum"), _p("column", "target"), _p("column", "excellent")),
                    strict=True,
                )
            },
        },
    )
    limits = [
        st.number_input(
            targets.limit_title(each),
            min_value=0.0,
            value=float(each.target),
            format="%.10g",
            # A restored limit needs another key: with the same key the field shows the typed value.
            key=f"targets.limit.{key}.{each.what}.{each.target:.10g}",
        )
        for each in profile.limits
    ]
    save, reset = st.columns(2)
    if save.button(_p("button", "Save"), type="primary", key="targets.save", width="stretch"):
        try:
            changed = Profile(
                profile.title,
                tuple(target_of(row) for row in edited.to_dict("records")),
                tuple(
                    Limit(each.what, value, each.excellent and min(each.excellent, value))
                    for each, value in zip(profile.limits, limits, strict=True)
                ),
                profile.measure,
            )
            scenario.save_targets(saved, key, changed)
        except RankdashError as error:
            dialogs.show_error(error_text(error))
        else:
            st.rerun()
    if reset.button(_("Restore the built-in targets"), key="targets.reset", width="stretch"):
        scenario.reset_targets()
        st.rerun()


def target_of(row: dict[object, object]) -> Target:
    """Return the target of a row of the form, without empty levels."""
    levels = {
        level: float(value)
        for level in _LEVELS
        if isinstance(value := row[level], (int, float)) and math.isfinite(value)
    }
    return Target(str(row["metric"]), **levels)
