"""Whether runs go to the Ray cluster that whoever started the server allowed."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rankdash.core.base.errors import SettingError
from rankdash.core.base.i18n import gettext as _
from rankdash.core.runs.on_ray.settings import ACTOR_SETTINGS, LOCAL, Actors, allowed_address
from rankdash.kit.widgets.text import markdown_safe


def draw() -> Actors | None:
    """The actors of the runs; None for runs on this machine. Nothing is drawn without a cluster."""
    try:
        address = allowed_address()
    except SettingError:
        return None
    chosen = st.toggle(
        _("Score with Ray on this machine")
        if address == LOCAL
        else _("Score on the Ray cluster {address}", address=markdown_safe(address, 80)),
        help=_("Services and language models are asked from here all the same."),
        key="run.on_ray",
        persist_state="session",
    )
    if not chosen:
        return None
    values: dict[str, Any] = {}
    for column, each in zip(st.columns(len(ACTOR_SETTINGS)), ACTOR_SETTINGS, strict=True):
        whole = each.name != "gpus"
        given = column.number_input(
            _(each.title),
            int(each.least) if whole else float(each.least),
            int(each.most) if whole else float(each.most),
            None,
            step=1 if whole else 0.25,
            help=_(each.meaning),
            key=f"run.actors.{each.name}",
            persist_state="session",
        )
        values[each.name] = given
    st.caption(_("Latency is measured with one query at a time on one machine of the cluster."))
    return Actors(**values)
