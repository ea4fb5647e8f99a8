"""The finished runs of a data set: what they were, how fast, how many failed; rename, delete."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from rankdash.core.base import names
from rankdash.core.base.i18n import enumerated, moment, ngettext
from rankdash.core.base.i18n import gettext as _
from rankdash.core.data.ranking import digest
from rankdash.core.runs import jobs
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.core.workspace import RunRow
from rankdash.core.workspace.notes.pins import Pins
from rankdash.core.workspace.notes.run_notes import RunNotes
from rankdash.features.run import page_run_details
from rankdash.kit.widgets import address, deleted, dialogs, run_records, stored, view
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.run_records import reranker_title, settings_in_words
from rankdash.kit.widgets.server import read_only, workspace
from rankdash.kit.widgets.signed_cells import signed_cells
from rankdash.kit.widgets.text import markdown_safe

# Of the names, in pixels and in columns of text.
_NAME_WIDTH, _NAME_COLUMNS = 270, 35


def draw(dataset_id: str) -> None:
    st.subheader(_("Runs"), anchor=False)
    rows = list(stored.rows(dataset_id).values())[::-1]
    if not rows:
        st.caption(_nothing_listed(dataset_id))
        return
    event = st.dataframe(
        signed_cells(_table(dataset_id, rows), {}, times=(_("p50 ms"), _("p95 ms"))),
        hide_index=True,
        placeholder="–",
        # A selection is a row number, so the rows are part of the key.
        key=f"runs.list.{digest([row.id.encode() for row in rows])}",
        on_select="rerun",
        selection_mode="multi-row",
        column_config={
            _("name"): st.column_config.TextColumn(width=_NAME_WIDTH),
            _("remarks"): st.column_config.TextColumn(width="medium"),
            _("note"): st.column_config.TextColumn(width="medium"),
            _("start s"): st.column_config.NumberColumn(format="%.1f"),
            _("pairs/s"): st.column_config.NumberColumn(format="localized"),
        },
        alt=_("The runs of this data set, newest first"),
    )
    st.caption(
        _(
            "p50 and p95: milliseconds for one query after warm-up. Start: loading and warming "
            "the model. Preparation, such as embedding documents, is not included in them, but "
            "it is in pairs/s: query–document pairs per second over the whole run. Select a run "
            "to see all that it recorded."
        )
    )
    chosen = [rows[position] for position in event["selection"]["rows"] if position < len(rows)]
    with st.container(horizontal=True):
        if st.button(_("Compare on Overview"), icon=":material/monitoring:", disabled=not chosen):
            address.choose("system", [row.id for row in chosen])
            view.go("overview")
        if not read_only():
            _rename(chosen, rows)
            _offer_delete(chosen)
    if len(chosen) == 1:
        page_run_details.draw(chosen[0].id)


def _nothing_listed(dataset_id: str) -> str:
    if read_only():
        return _("No run yet")
    if any(row.state in jobs.LIVE for row in jobs.list(workspace(), dataset_id)):
        return _("None is finished yet.")
    return _("None yet: choose a reranker above and start.")


def _rename(chosen: Sequence[RunRow], rows: Sequence[RunRow]) -> None:
    if st.button(_("Rename"), icon=":material/edit:", disabled=len(chosen) != 1):
        dialogs.rename(
            _("Rename the run"),
            chosen[0].name,
            lambda name: workspace().rename_run(
                chosen[0].id, names.free(name, [row.name for row in rows if row is not chosen[0]])
            ),
        )


def _offer_delete(chosen: Sequence[RunRow]) -> None:
    if st.button(_("Delete"), icon=":material/delete:", disabled=not chosen):
        dialogs.delete(
            _("Delete these runs?"),
            _what_goes(chosen),
            lambda: _delete(chosen),
        )


def _what_goes(chosen: Sequence[RunRow]) -> list[str]:
    named = enumerated(markdown_safe(row.name, 80) for row in chosen)
    sentences = [_("{names} will be deleted permanently.", names=named)]
    ids, dataset_id = {row.id for row in chosen}, chosen[0].dataset_id
    if notes := len(ids & RunNotes(workspace()).all(dataset_id).keys()):
        sentences.append(ngettext("{n} note goes with it.", "{n} notes go with them.", notes))
    if Pins(workspace()).of(dataset_id) in ids:
        sentences.append(_("The pinned baseline is deleted too; the first stage replaces it."))
    return sentences


def _table(dataset_id: str, rows: Sequence[RunRow]) -> pd.DataFrame:
    records = [run_records.record(row.id) for row in rows]
    study = _study(dataset_id)
    times = [run_records.latency_ms(study, row) for row in rows]
    notes, pinned = RunNotes(workspace()).all(dataset_id), Pins(workspace()).of(dataset_id)
    table = pd.DataFrame(
        {
            _("name"): [names.middle(row.name, _NAME_COLUMNS) for row in rows],
            _("baseline"): [_("pinned") if row.id == pinned else None for row in rows],
            _("reranker"): [reranker_title(row.reranker) for row in rows],
            _("depth"): [_("all") if row.depth is None else str(row.depth) for row in rows],
            _("done"): [row.queries_done for row in rows],
            _("failed"): [row.queries_failed for row in rows],
            _("p50 ms"): [p50 for p50, _p95 in times],
            _("p95 ms"): [p95 for _p50, p95 in times],
            _("pairs/s"): [round(row.pairs_per_second or 0) or None for row in rows],
            _("note"): [notes[row.id].text if row.id in notes else None for row in rows],
            _("remarks"): ["; ".join(each.remarks()) or None for each in records],
            _("runtime"): [
                " → ".join(name for _stage, name in each.runtimes) or None for each in records
            ],
            _("start s"): [row.load_ms / 1000 for row in rows],
            _("made (UTC)"): [moment(row.created) for row in rows],
            _("settings"): [settings_in_words(row.settings) for row in rows],
        }
    )
    # Most data sets have no pinned run and no note: then they take no room.
    unused = [name for name in (_("baseline"), _("note")) if table[name].isna().all()]
    return table.drop(columns=unused)


def _study(dataset_id: str) -> Study:
    """What the times of fused runs are summed by."""
    data, systems = stored.dataset(dataset_id), stored.systems(dataset_id)
    return Study(data, systems, FIRST_STAGE, (), dataset_id=dataset_id, cache=cache)


def _delete(rows: Sequence[RunRow]) -> None:
    deleted.by_this_session(row.id for row in rows)
    for row in rows:
        workspace().delete_run(row.id)
