"""What a person says of the report: its title, a note, a logo, and which sections it has.

All of it is kept for the session, so that a look at another page loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from rankdash.core.base.errors import DataError
from rankdash.core.base.i18n import error_text, language
from rankdash.core.base.i18n import gettext as _
from rankdash.features.report.page_report_preview import Preview
from rankdash.features.report.report_report import (
    LONGEST_NOTE,
    LONGEST_TITLE,
    PRESETS,
    SECTIONS,
    Front,
)
from rankdash.kit.html import logo
from rankdash.kit.widgets import action_errors, pickers, upload_limits, view
from rankdash.kit.widgets.text import markdown_safe, shortened

_KEPT = "report.kept"
_LOGO, _REFUSED, _UPLOAD = "report.logo", "report.logo.refused", "report.logo.file"
_FILE_NAME = 40
_LOGO_MEGABYTES = 1


def draw(
    words: DeltaGenerator, parts: DeltaGenerator, usual_title: str, previews: Mapping[str, Preview]
) -> Front | None:
    """Draw the form; what it says now, in the reader's language, or None without a section.

    words, parts: where the texts go, and where the sections. usual_title: what the report is called
    where nobody says otherwise.
    """
    with words:
        title = _field(
            st.text_input,
            "title",
            "",
            label=_("Title"),
            placeholder=usual_title,
            max_chars=LONGEST_TITLE,
        )
        note = _field(
            st.text_area,
            "note",
            "",
            label=_("Note"),
            height=180,
            placeholder=_("The decision, who made it, and the next steps"),
            max_chars=LONGEST_NOTE,
            help=_("Shown below the title, exactly as typed."),
        )
        picture = _logo()
    with parts:
        sections = _sections(previews)
    if not sections:
        words.info(_("Choose at least one section."), icon=":material/info:")
        return None
    return Front(title=title, note=note, logo=picture, sections=sections, language=language())


def _sections(previews: Mapping[str, Preview]) -> tuple[str, ...]:
    """A line for each section: whether it is wanted, and what it would say or what it lacks."""
    _preset(previews)
    wanted = []
    for section in SECTIONS:
        preview = previews[section.id]
        box, beside = st.columns([5, 6], vertical_alignment="center")
        with box:
            chosen = _field(
                st.checkbox,
                f"section.{section.id}",
                True,
                label=_(section.title),
                disabled=preview.empty,
            )
        if chosen and not preview.empty:
            wanted.append(section.id)
        beside.caption(preview.summary)
        if preview.page:
            beside.page_link(
                view.page(preview.page), label=preview.link, icon=":material/arrow_forward:"
            )
    return tuple(wanted)


def _preset(previews: Mapping[str, Preview]) -> None:
    """A button for each preset, which chooses its sections; the one in force is highlighted.

    Buttons, as a choice that follows from the boxes would be taken back by a click on a second box
    that comes before the browser has heard what the first one changed.
    """
    kept: dict[str, Any] = st.session_state.setdefault(_KEPT, {})
    titles = {"decision": _("Decision, one page"), "full": _("Full report")}
    possible = [each.id for each in SECTIONS if not previews[each.id].empty]
    wanted = {each for each in possible if kept.get(f"section.{each}", True)}
    with st.container(horizontal=True):
        for name, title in titles.items():
            sections = PRESETS[name]
            st.button(
                title,
                key=f"report.preset.{name}",
                type="primary" if wanted == {*possible}.intersection(sections) else "secondary",
                on_click=kept.update,
                args=({f"section.{each.id}": each.id in sections for each in SECTIONS},),
            )


def _logo() -> bytes | None:
    """The chosen picture; checked when it is chosen, and kept apart from the uploader."""
    kept: tuple[str, bytes] | None = st.session_state.get(_LOGO)
    if kept is not None:
        name, content = kept
        with st.container(horizontal=True, vertical_alignment="center"):
            file = markdown_safe(shortened(name, _FILE_NAME))
            st.markdown(_("Logo: {file}", file=file), width="content")
            st.button(
                _("Remove"),
                icon=":material/close:",
                key="report.logo.away",
                on_click=lambda: st.session_state.pop(_LOGO),
            )
        return content
    upload_limits.field(_LOGO_MEGABYTES)
    st.file_uploader(
        _("Logo"),
        type=["png", "jpg", "jpeg", "gif", "webp"],
        max_upload_size=_LOGO_MEGABYTES,
        key=_UPLOAD,
        on_change=_take,
    )
    refused: DataError | None = st.session_state.pop(_REFUSED, None)
    if refused is not None:
        action_errors.say(error_text(refused))
    return None


def _take() -> None:
    """Keep the picture that was given, or the reason why it cannot be used."""
    given = st.session_state[_UPLOAD]
    if given is None:
        return
    content = given.getvalue()
    try:
        logo.data_uri(content)
    except DataError as error:
        st.session_state[_REFUSED] = error
    else:
        st.session_state[_LOGO] = (given.name, content)


def _field(widget: Any, name: str, usual: Any, **settings: Any) -> Any:
    """Draw a widget that shows what was said in this session, else `usual`."""
    kept: dict[str, Any] = st.session_state.setdefault(_KEPT, {})
    key = f"report.{name}"

    def changed() -> None:
        kept[name] = st.session_state[key]

    pickers.show(widget, key, kept.get(name, usual), changed)(**settings)
    return kept.get(name, usual)
