"""Logging in and out, where the server's secrets name a provider: for names on notes, no more."""

from __future__ import annotations

import importlib.util

import streamlit as st
from streamlit.errors import StreamlitAuthError

from rankdash.core.base.i18n import gettext as _
from rankdash.kit.widgets import language
from rankdash.kit.widgets.text import markdown_safe


def draw() -> None:
    if not language.can_log_in():
        return
    name = language.person_name()
    if name:
        st.caption(_("Logged in as {name}", name=markdown_safe(name, 60)))
        st.button(_("Log out"), icon=":material/logout:", on_click=st.logout, width="stretch")
    elif st.button(
        _("Log in"),
        icon=":material/login:",
        width="stretch",
        help=_("Notes and corrections are then signed with your name."),
    ):
        _log_in()


def _log_in() -> None:
    if importlib.util.find_spec("authlib") is None:
        text = _('Logging in needs a package that is not installed: pip install "rankdash[login]"')
        st.error(markdown_safe(text, 200), icon=":material/extension_off:")
        return
    try:
        st.login()
    except StreamlitAuthError as error:
        st.error(markdown_safe(str(error), 500), icon=":material/error:")
