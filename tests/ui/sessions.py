"""Parts of pages, each in a separate session: read as text, and clicked."""

import runpy
from collections.abc import Callable, Mapping
from typing import Any

from streamlit.testing.v1 import AppTest

from rankdash.core.base.shipped import INTERFACE, PAGES
from rankdash.kit.widgets import language

MAIN = str(INTERFACE)


def part(
    draw: Callable[..., Any],
    *arguments: Any,
    lang: str = "en",
    chosen: Mapping[str, str | list[str]] | None = None,
    state: Mapping[str, object] | None = None,
    **settings: Any,
) -> AppTest:
    """Return the app of one function. Its return value is in the session as "found".

    chosen: choices, as from the address. state: values of the session.
    """

    def drawn(draw, arguments, settings):

        import streamlit as st

        from rankdash.core.base.shipped import PAGES
        from rankdash.kit.widgets.stored import workspace

        # Links lead to pages that the app knows.
        st.navigation([st.Page(page) for page in PAGES.glob("*.py")], position="hidden")
        with workspace().database.held_open():
            st.session_state["found"] = draw(*arguments, **settings)

    app = AppTest.from_function(drawn, default_timeout=300, args=(draw, arguments, settings))
    app.session_state[language.STATE] = lang
    app.session_state["address.choices"] = {
        name: [value] if isinstance(value, str) else value for name, value in (chosen or {}).items()
    }
    for name, value in (state or {}).items():
        app.session_state[name] = value
    app.run()
    assert not app.exception, app.exception[0].message
    return app


def whole(name: str, state: Mapping[str, object] | None = None, **address: Any) -> AppTest:
    """Return a page with its sidebar and menu, opened by a link in a new session."""
    app = AppTest.from_file(MAIN, default_timeout=300)
    for key, value in (state or {}).items():
        app.session_state[key] = value
    app.query_params.update(address)
    if name != "overview":
        app.switch_page(str(PAGES / f"{name}.py"))
    app.run()
    assert not app.exception
    return app


def button(app: AppTest, label: str) -> Any:
    return next(each for each in app.button if each.label == label)


def press(app: AppTest, label: str) -> AppTest:
    button(app, label).click().run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    """Return all sentences, without the escapes of Markdown."""
    kinds = (app.title, app.header, app.markdown, app.caption, app.text)
    notes = (app.info, app.success, app.warning, app.error)
    found = "\n".join(str(each.value) for kind in (*kinds, *notes) for each in kind)
    return found.replace("\\", "").replace("\u2060", "")


def page(name: str, **given: Any) -> AppTest:
    """Return a page without the sidebar. Choices of the sidebar must be passed."""
    return part(runpy.run_path, str(PAGES / f"{name}.py"), **given)
