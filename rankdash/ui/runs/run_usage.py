"""What a finished run asked of a service and what the service charges for it, in a line."""

from __future__ import annotations

import streamlit as st

from rankdash.i18n import gettext as _
from rankdash.i18n import ngettext, number
from rankdash.runs.usage import usage
from rankdash.ui.state.cache import cache
from rankdash.ui.state.server import workspace
from rankdash.ui.widgets.text import markdown_safe


def say(run_id: str) -> None:
    """Nothing for a run that called no service."""
    used = cache(("usage", run_id), lambda: usage(workspace().run(run_id)))
    if used is None:
        return
    parts = [ngettext("{n} call", "{n} calls", used.calls)]
    if used.failed:
        parts.append(_("{n} of them without an answer", n=number(used.failed, 0)))
    for unit, amount in used.billed.items():
        digits = 0 if float(amount).is_integer() else 4
        parts.append(f"{markdown_safe(unit, 40)}: {number(amount, digits)}")
    if used.noted:
        parts.append(_("{n} answers put right or not readable", n=number(used.noted, 0)))
    st.caption(" · ".join(parts))
