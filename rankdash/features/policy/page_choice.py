"""The switch of a section that adds its step to the policy."""

from __future__ import annotations

import streamlit as st

from rankdash.kit.widgets import pickers

YES = "yes"
"""The value of the field in the address if the step is in the policy."""


def in_policy(field: str, label: str) -> bool:
    """Draw the switch, and return whether the step is in the policy. field: of the address."""
    return pickers.pick_free(
        field,
        st.toggle,
        lambda value: value == YES,
        lambda chosen: YES if chosen else None,
        label=label,
    )
