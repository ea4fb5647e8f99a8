"""The workspace as one file: taken away for a colleague, and a colleague's file brought in."""

from __future__ import annotations

import io
from collections.abc import Sequence

import streamlit as st

from rankdash import __version__
from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import enumerated, error_text, finding_text, ngettext, number
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.names import distinct
from rankdash.core.intake import sharing
from rankdash.core.intake.reading import imported
from rankdash.core.workspace import DatasetRow
from rankdash.core.workspace.workspace_file.merge_rows import TakenIn
from rankdash.kit.html.downloads import file_name
from rankdash.kit.widgets import action_errors, address, pickers, redraw, stored
from rankdash.kit.widgets.server import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe
from rankdash.kit.widgets.uploaded import uploader

_SAID = "sharing.said"
_GENERATION = "sharing.generation"
_MOST_FINDINGS = 20


def draw(rows: Sequence[DatasetRow]) -> None:
    """Export what is stored, and import; a workspace that is only shown is exported at most."""
    if rows:
        _export(rows)
    if not read_only():
        _said()
        _import()


def _said() -> None:
    """What the last import did, once."""
    found: TakenIn | None = st.session_state.pop(_SAID, None)
    if found is None:
        return
    st.success(added(found), icon=":material/check_circle:")
    shown = found.findings[:_MOST_FINDINGS]
    lines = [f"- {markdown_safe(finding_text(each), 300)}" for each in shown]
    more = len(found.findings) - len(shown)
    if more:
        lines.append("- " + ngettext("and {n} more", "and {n} more", more))
    if lines:
        redraw.hold()
        heading = _("What is already here was not changed; the file differs in this:")
        st.warning("\n".join([heading, "", *lines]), icon=":material/info:")


def _export(rows: Sequence[DatasetRow]) -> None:
    names = distinct({row.id: row.name for row in rows})
    st.caption(
        _(
            "One file holds data sets with their runs, notes, corrected labels, judges and "
            "explanations, and the scenarios, prices and targets. Keys, cached scores, unfinished "
            "runs and paths on this machine are not exported."
        )
    )
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    chosen = left.multiselect(
        _("Data sets in the file"),
        list(names),
        default=list(names),
        format_func=names.__getitem__,
        key=pickers.in_words("sharing.data"),
    )
    apart = [names[each] for each in chosen if stored.damage(each) is not None]
    apart += [name for each in chosen for name, _error in stored.damaged(each).values()]
    if apart:
        damaged = enumerated(markdown_safe(name, 80) for name in apart)
        st.warning(
            _("Damaged, and not in the file: {names}.", names=damaged), icon=":material/warning:"
        )
    right.download_button(
        _("Export"),
        data=lambda: exported(chosen),
        file_name=file_name(
            names[chosen[0]] if len(chosen) == 1 else "", "workspace", sharing.SUFFIX[1:]
        ),
        mime="application/zip",
        icon=":material/download:",
        key="sharing.export",
        on_click="ignore",
        disabled=not chosen,
        width="stretch",
    )


def exported(dataset_ids: Sequence[str]) -> bytes:
    """The file with these data sets."""
    target = io.BytesIO()
    sharing.export(workspace(), target, __version__, dataset_ids)
    return target.getvalue()


def _import() -> None:
    files = uploader(
        _("A workspace file to import"),
        f"sharing.file.{st.session_state.get(_GENERATION, 0)}",
        type=["zip"],
        help=_(
            "The file is checked first and added completely or not at all. The content of this "
            "workspace stays unchanged."
        ),
    )
    if not files or not st.button(
        _("Import"), type="primary", icon=":material/upload:", key="sharing.import"
    ):
        return
    bar = st.progress(0.0, text=_("Checking"))

    def progress(done: int, total: int) -> None:
        words = _("{done} of {total} checked", done=number(done, 0), total=number(total, 0))
        bar.progress(done / total, text=words)

    try:
        found = imported(workspace(), files[0], progress)
    except RankdashError as error:
        bar.empty()
        action_errors.say(error_text(error))
        return
    st.session_state[_SAID] = found
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
    if found.datasets:
        address.choose("data", found.datasets[0])
    st.rerun()


def added(found: TakenIn) -> str:
    new = found.added
    words = {
        "datasets": ngettext("{n} data set", "{n} data sets", new["datasets"]),
        "runs": ngettext("{n} run", "{n} runs", new["runs"]),
        "notes": ngettext("{n} note", "{n} notes", new["notes"]),
        "corrections": ngettext("{n} corrected label", "{n} corrected labels", new["corrections"]),
        "explanations": ngettext("{n} explanation", "{n} explanations", new["explanations"]),
        "judges": ngettext("{n} judge", "{n} judges", new["judges"]),
        "settings": _("scenarios, prices or targets"),
    }
    parts = [text for kind, text in words.items() if new[kind]]
    if not parts:
        return _("All of it is in this workspace already.")
    return _("Imported: {what}.", what=enumerated(parts))
