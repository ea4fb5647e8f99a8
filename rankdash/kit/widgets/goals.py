"""The profile of targets that was chosen, from those that were saved in the workspace."""

from __future__ import annotations

import streamlit as st

from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import error_text
from rankdash.core.value.targets import Goals, Profile, Targets, shipped
from rankdash.kit.widgets import address
from rankdash.kit.widgets.server import workspace
from rankdash.kit.widgets.text import markdown_safe

_SAVED = "targets"


def saved() -> Targets:
    """Those that a person edited, and what is shipped beside them; where they cannot be read, the
    shipped ones, and a line that says so."""
    text = workspace().setting(_SAVED)
    if not text:
        return shipped()
    try:
        own = Targets.from_json(text)
    except RankdashError as error:
        st.warning(markdown_safe(error_text(error), 300), icon=":material/warning:")
        return shipped()
    for key, profile in shipped().profiles.items():
        if key not in own.profiles:
            own = own.with_profile(key, profile)
    return own


def save(targets: Targets, key: str, profile: Profile) -> None:
    """Save the targets with one profile changed."""
    workspace().set_setting(_SAVED, targets.with_profile(key, profile).to_json())


def reset() -> None:
    """Back to the shipped targets."""
    workspace().set_setting(_SAVED, "")


def chosen() -> Goals | None:
    """The profile that a person or a link chose; None where none was."""
    key = address.one("profile")
    if key is None:
        return None
    targets = saved()
    return Goals(targets, key) if key in targets.profiles else None
