"""Means beside the targets of a profile; profiles can be edited, and are kept in the workspace."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from rankdash.errors import RankdashError
from rankdash.i18n import error_text, number
from rankdash.i18n import gettext as _
from rankdash.metrics import parse_measure
from rankdash.study import costs, latency
from rankdash.study.study import Study
from rankdash.ui.state import pickers
from rankdash.ui.state.server import read_only, workspace
from rankdash.ui.widgets.text import markdown_safe, table_html
from rankdash.value.targets import (
    Limit,
    Profile,
    Target,
    TargetRow,
    Targets,
    judge_targets,
    shipped,
)
from rankdash.words.money import money

_SAVED = "targets"
_DOLLARS = "USD"
_LEVELS = ("minimum", "target", "excellent")


def draw(study: Study) -> None:
    targets = _saved()
    key = pickers.pick_one(
        "profile",
        list(targets.profiles),
        st.selectbox,
        label=_("Profile"),
        format_func=lambda name: _(targets.profiles[name].title),
    )
    if key is None:
        return
    profile = targets.profiles[key]
    headings = (
        _("system"), _("metric"), _("mean"), _("minimum"), _("target"), _("excellent"),
        _("status"), _("advice"),
    )  # fmt: skip
    rows = []
    for system in study.chosen:
        found = study.evaluate(system, profile.specs())
        rows += [
            _cells(study, system, row) for row in judge_targets(found.means(), profile, targets)
        ]
        rows += [_limit_cells(study, system, limit) for limit in profile.limits]
    st.html(table_html(headings, rows))
    st.caption(
        _(
            "{source}: no source justifies a number for your own labels. Edit them.",
            source=_(targets.source),
        )
    )
    if read_only():
        return
    with st.popover(_("Edit this profile"), icon=":material/edit:"):
        _edit(targets, key, profile)


def _saved() -> Targets:
    text = workspace().setting(_SAVED)
    if not text:
        return shipped()
    try:
        return Targets.from_json(text)
    except RankdashError as error:
        st.warning(markdown_safe(error_text(error), 300), icon=":material/warning:")
        return shipped()


def _cells(study: Study, system: str, row: TargetRow) -> tuple[str, ...]:
    status = {
        "below": _("▼ below by {gap}", gap=number(row.gap)),
        "meets": _("✓ meets it"),
        "excellent": _("★ excellent"),
        None: _("not known"),
    }[row.status]
    levels = (number(getattr(row, level), 2) for level in _LEVELS)
    advice = _(row.advice) if row.status == "below" and row.advice else ""
    return (
        study.name(system),
        parse_measure(row.metric).title,
        number(row.value),
        *levels,
        status,
        advice,
    )


def _limit_cells(study: Study, system: str, limit: Limit) -> tuple[str, ...]:
    value = _taken(study, system, limit.what)
    status = {
        "below": _("▼ over it"),
        "meets": _("✓ meets it"),
        "excellent": _("★ excellent"),
        None: _("not known"),
    }[None if value is None else limit.status(value)]
    levels = ("–", _limit_words(limit, limit.target), _limit_words(limit, limit.excellent))
    text = (study.name(system), _limit_title(limit), _limit_words(limit, value))
    return (*text, *levels, status, "")


def _taken(study: Study, system: str, what: str) -> float | None:
    """What a system takes of it, where that is known."""
    if what == "p95_ms":
        waited = latency.summary(study, system)
        return None if waited is None else waited.p95
    cost = costs.billed(study, system)
    # The limit is in dollars; a price in another currency says nothing about it.
    return (
        None
        if cost is None or cost.listed.price.currency != _DOLLARS
        else (cost.per_million_tokens)
    )


def _limit_title(limit: Limit) -> str:
    return _("p95, ms") if limit.what == "p95_ms" else _("cost of a million tokens")


def _limit_words(limit: Limit, value: float | None) -> str:
    if value is None:
        return "–"
    return number(value, 0) if limit.what == "p95_ms" else money(value, _DOLLARS)


def _edit(targets: Targets, key: str, profile: Profile) -> None:
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
            "metric": st.column_config.TextColumn(_("metric"), required=True),
            **{
                level: st.column_config.NumberColumn(title, min_value=0.0, max_value=1.0)
                for level, title in zip(
                    _LEVELS, (_("minimum"), _("target"), _("excellent")), strict=True
                )
            },
        },
    )
    limits = [
        st.number_input(
            _limit_title(each),
            min_value=0.0,
            value=float(each.target),
            format="%.10g",
            # A limit that was put back is another field: one that stays shows what was typed.
            key=f"targets.limit.{key}.{each.what}.{each.target:.10g}",
        )
        for each in profile.limits
    ]
    save, reset = st.columns(2)
    if save.button(_("Save"), type="primary", key="targets.save", width="stretch"):
        try:
            changed = Profile(
                profile.title,
                tuple(_target(row) for row in edited.to_dict("records")),
                tuple(
                    Limit(each.what, value, each.excellent and min(each.excellent, value))
                    for each, value in zip(profile.limits, limits, strict=True)
                ),
            )
            workspace().set_setting(_SAVED, targets.with_profile(key, changed).to_json())
        except RankdashError as error:
            st.error(markdown_safe(error_text(error), 300), icon=":material/error:")
        else:
            st.rerun()
    if reset.button(_("Restore the built-in targets"), key="targets.reset", width="stretch"):
        workspace().set_setting(_SAVED, "")
        st.rerun()


def _target(row: dict[object, object]) -> Target:
    levels = {
        level: float(value)
        for level in _LEVELS
        if isinstance(value := row[level], (int, float)) and math.isfinite(value)
    }
    return Target(str(row["metric"]), **levels)
