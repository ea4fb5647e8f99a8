"""Data sets and runs that are damaged or deleted, and the repair of a workspace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import streamlit as st

from rankdash.core.base.errors import StoreError
from rankdash.core.base.i18n import enumerated, error_text, ngettext, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.runs import jobs
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.core.workspace.repair import Repaired
from rankdash.features.data import page_samples
from rankdash.kit.widgets import address, dialogs, stored
from rankdash.kit.widgets.stored import read_only, reopen, workspace
from rankdash.kit.widgets.text import markdown_safe


def dataset() -> bool:
    """Show the damage of the chosen data set; return True if it is damaged."""
    chosen = address.one("data")
    error = None if chosen is None else stored.damage(chosen)
    if error is not None:
        st.error(markdown_safe(error_text(error), 600), icon=":material/error:")
    return error is not None


def runs() -> None:
    """Show the damaged runs of the data set with the reasons, and offer to delete them."""
    chosen = address.one("data")
    _offer_deletion(
        {} if chosen is None else stored.damaged(chosen),
        "damaged.delete",
        _("Quarantined and excluded from all results:"),
        _("Delete these runs"),
        _("Delete these runs?"),
        _delete,
    )


def judges(dataset_id: str) -> None:
    """Show the damaged judges of a data set, and offer to delete them."""
    rows = StoredJudges(workspace())
    _offer_deletion(
        rows.unreadable(dataset_id),
        "damaged.judges",
        _("Judges that cannot be read and are excluded from all results:"),
        _("Delete these judges"),
        _("Delete these judges?"),
        rows.delete,
    )


def unfinished(dataset_id: str) -> None:
    """Show the damaged unfinished runs of a data set, and offer to remove them."""
    _offer_deletion(
        jobs.unreadable(workspace(), dataset_id),
        "damaged.jobs",
        _("Unfinished runs that cannot be read:"),
        _("Remove these runs"),
        _("Remove these runs?"),
        partial(jobs.delete, workspace()),
    )


def _offer_deletion(
    damaged: Mapping[str, tuple[str, StoreError]],
    key: str,
    heading: str,
    label: str,
    question: str,
    delete: Callable[[str], None],
) -> None:
    """Show damaged rows with the reasons, and offer to delete them.

    damaged: id → name and error. delete: takes an id.
    """
    if not damaged:
        return
    lines = [heading]
    lines += [
        f"- {markdown_safe(name, 80)}: {markdown_safe(error_text(error), 600)}"
        for name, error in damaged.values()
    ]
    st.error("\n".join(lines), icon=":material/error:")

    def apply() -> None:
        for each in damaged:
            delete(each)

    if not read_only() and st.button(label, icon=":material/delete:", key=key):
        named = enumerated(markdown_safe(name, 80) for name, _error in damaged.values())
        dialogs.delete(
            question,
            [_("{names} will be deleted permanently.", names=named)],
            apply,
        )


def _delete(run: str) -> None:
    stored.by_this_session([run])
    workspace().delete_run(run)


# Deletions in another window: a data set, in place of the page, or compared runs.

_OTHER = "deleted.other"


def deleted_dataset(name: str) -> bool:
    """Show that the chosen data set was deleted, and offer the others. Return True if the user has
    to choose one first."""
    rows = {row.id: row for row in workspace().datasets()}
    text = _("{name} was deleted in another window.", name=markdown_safe(name, 80))
    st.warning(text, icon=":material/delete:")
    if not rows:
        address.choose("data", None)
        return False
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            _("Other data sets"),
            list(rows),
            format_func=lambda each: page_samples.called(rows[each]),
            key=_OTHER,
        )
        st.button(
            _p("button", "Open"),
            type="primary",
            icon=":material/database:",
            on_click=_open,
            key="deleted.open",
        )
    return True


def deleted_runs() -> None:
    """Show the deleted runs and the systems that are compared instead, until the message is
    dismissed."""
    names, dataset_id = stored.runs(), address.one("data")
    if not names or dataset_id is None:
        return
    systems = stored.systems(dataset_id)
    compared = [systems[each].name for each in address.several("system") if each in systems]
    gone = ngettext(
        "{names} was deleted in another window.",
        "{names} were deleted in another window.",
        len(names),
        names=enumerated(markdown_safe(each, 80) for each in names),
    )
    now = _(
        "Baseline now: {baseline}. Systems to compare: {systems}.",
        baseline=markdown_safe(systems[address.one("base") or ""].name, 80),
        systems=enumerated(markdown_safe(each, 80) for each in compared) or _p("choice", "none"),
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.warning(paragraph([gone, now]), icon=":material/delete:")
        st.button(_p("button", "Dismiss"), on_click=stored.dismiss, key="deleted.dismiss")


def _open() -> None:
    address.choose("data", st.session_state[_OTHER])
    for name in address.OF_A_DATA_SET:
        address.choose(name, None)


# A workspace with a damaged database: the problem, and a button that repairs it.

_SAID = "repair.said"
_MOST_NAMED = 10


def draw_repair() -> None:
    """Draw the problem above every page; after a repair, once, what was recovered."""
    done: Repaired | None = st.session_state.pop(_SAID, None)
    if done is not None:
        st.success(
            "\n".join([_("The workspace is repaired."), "", *came_back(done)]),
            icon=":material/check_circle:",
        )
    store = workspace()
    if store.trouble is None or store.found is None:
        return
    lines = [markdown_safe(error_text(store.trouble), 600), "", *came_back(store.found)]
    st.error("\n".join(lines), icon=":material/healing:")
    if store.may_repair and st.button(
        _("Repair workspace"), type="primary", icon=":material/build:", key="repair"
    ):
        with st.spinner(_("Repairing the workspace")):
            st.session_state[_SAID] = store.repair()
            reopen()
        st.rerun()


def came_back(repair: Repaired) -> list[str]:
    rows = repair.rows
    parts = [
        ngettext("{n} data set", "{n} data sets", rows["datasets"]),
        ngettext("{n} run", "{n} runs", rows["runs"]),
        ngettext("{n} note", "{n} notes", rows["notes"] + rows["run_notes"]),
        ngettext("{n} label correction", "{n} label corrections", rows["corrections"]),
    ]
    lines = [_("Found: {what}.", what=enumerated(parts))]
    if repair.copy_of:
        lines.append(_("Also used: the database copy of {day}.", day=repair.copy_of))
    if repair.changed:
        lines.append(
            _(
                "Quarantined because they changed after they were written: {n} rows",
                n=repair.changed,
            )
        )
    if repair.unlisted:
        lines.append(
            _("Could not be listed (left unchanged): {names}", names=_named(repair.unlisted))
        )
    if repair.gone:
        lines.append(_("Folder missing: {names}", names=_named(repair.gone)))
    if repair.trash is not None:
        lines.append(
            _(
                "The old database is in {folder} for 30 days.",
                folder=markdown_safe(str(repair.trash), 300),
            )
        )
    return [f"- {line}" for line in lines]


def _named(names: list[str]) -> str:
    shown = [markdown_safe(name, 80) for name in names[:_MOST_NAMED]]
    more = len(names) - len(shown)
    return enumerated([*shown, *([ngettext("and {n} more", "and {n} more", more)] if more else [])])
