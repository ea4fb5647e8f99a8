"""What is set apart because its files changed since they were written, or its row cannot be read: a
data set, in place of the page; runs that are not compared, judges, and unfinished runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import streamlit as st

from rankdash.core.base.errors import StoreError
from rankdash.core.base.i18n import enumerated, error_text
from rankdash.core.base.i18n import gettext as _
from rankdash.core.runs import jobs
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.kit.widgets import address, deleted, dialogs, stored
from rankdash.kit.widgets.server import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe


def dataset() -> bool:
    """Say what is wrong with the data set that is chosen; whether there is something wrong."""
    chosen = address.one("data")
    error = None if chosen is None else stored.damage(chosen)
    if error is not None:
        st.error(markdown_safe(error_text(error), 600), icon=":material/error:")
    return error is not None


def runs() -> None:
    """Say which runs of the data set are set apart and why, and offer to delete them."""
    chosen = address.one("data")
    _set_apart(
        {} if chosen is None else stored.damaged(chosen),
        "damaged.delete",
        _("Set apart, and in no number here:"),
        _("Delete these runs"),
        _("Delete these runs?"),
        _delete,
    )


def judges(dataset_id: str) -> None:
    """The same for the judges of a data set."""
    rows = StoredJudges(workspace())
    _set_apart(
        rows.unreadable(dataset_id),
        "damaged.judges",
        _("Judges that cannot be read, and are in no number here:"),
        _("Delete these judges"),
        _("Delete these judges?"),
        rows.delete,
    )


def unfinished(dataset_id: str) -> None:
    """The same for the unfinished runs of a data set."""
    _set_apart(
        jobs.unreadable(workspace(), dataset_id),
        "damaged.jobs",
        _("Unfinished runs that cannot be read:"),
        _("Remove these runs"),
        _("Remove these runs?"),
        partial(jobs.delete, workspace()),
    )


def _set_apart(
    found: Mapping[str, tuple[str, StoreError]],
    key: str,
    heading: str,
    label: str,
    question: str,
    delete: Callable[[str], None],
) -> None:
    """Name the rows, and offer to delete them and nothing else.

    found: id → name, and what is wrong. delete: takes an id.
    """
    if not found:
        return
    lines = [heading]
    lines += [
        f"- {markdown_safe(name, 80)}: {markdown_safe(error_text(error), 600)}"
        for name, error in found.values()
    ]
    st.error("\n".join(lines), icon=":material/error:")

    def apply() -> None:
        for each in found:
            delete(each)

    if not read_only() and st.button(label, icon=":material/delete:", key=key):
        named = enumerated(markdown_safe(name, 80) for name, _error in found.values())
        dialogs.delete(
            question,
            [_("{names} will be deleted permanently.", names=named)],
            apply,
        )


def _delete(run: str) -> None:
    deleted.by_this_session([run])
    workspace().delete_run(run)
