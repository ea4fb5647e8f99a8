"""Why a query changed: reasons, movements of its documents, and notes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import error_text, ngettext, number, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import distinct, distinguishing
from rankdash.core.data.ranking import digest
from rankdash.core.study.reasons.contributions import Split
from rankdash.core.study.reasons.main_document import evidence
from rankdash.core.study.study import Study
from rankdash.core.words.verdicts import reason_words
from rankdash.core.workspace.notes import LONGEST_NOTE, MOST_TAGS, Note, Notes, tags_in_use
from rankdash.features.queries import charts
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.charts import NAME_WIDTH
from rankdash.features.queries.charts_ladder import shown
from rankdash.features.queries.ladder import Ladder
from rankdash.features.queries.study import Missed, Text
from rankdash.features.queries.words import fault_words, ground, reasoning, statement_text
from rankdash.kit.widgets import address, dialogs, language, pickers
from rankdash.kit.widgets import charts as widgets_charts
from rankdash.kit.widgets.labels import corrections
from rankdash.kit.widgets.redraw import fold
from rankdash.kit.widgets.run_records import saved
from rankdash.kit.widgets.stored import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe, shortened, signed_cells

_ZERO = 1e-12
_NAME = 60


def chips(
    study: Study, challenger: str, query_id: str, missed: Sequence[Missed]
) -> list[tuple[str, str]]:
    """Return the reason and the fault of a query, each with the sentences that explain it.
    missed: the relevant documents that the challenger lacks."""
    table = study.reasons(challenger)
    if table is None or query_id not in table.index:
        return [(_("no label"), _("The query has no labels, so its metric has no value."))]
    row = table.loc[[query_id]].iloc[0]
    split = queries_study.change(study, challenger, query_id)
    sentences = reasoning(study, challenger, row, split, partial(shortened, limit=_NAME))
    result = [(reason_words()[str(row["reason"])], paragraph(sentences))]
    blame = queries_study.blame(study, challenger, split, missed)
    if blame is not None and blame.fault.code != "none":
        fault = _("Fault: {fault}", fault=fault_words()[blame.fault.code])
        result.append((fault, ground(blame, study.measure.title, study.name)))
    return result


def draw(study: Study, challenger: str, query_id: str) -> None:
    """Draw the change of a query in sentences, as a waterfall, and as a table."""
    table = study.reasons(challenger)
    if table is None or query_id not in table.index:
        return
    row = table.loc[[query_id]].iloc[0]
    split = queries_study.change(study, challenger, query_id)
    if split.why_not:
        return
    names = study.dataset.names_of(split.documents["doc_id"])
    text = queries_study.change_statements(study, split)
    st.markdown("\n".join(f"- {statement_text(sentences, split.measure.k)}" for sentences in text))
    moved = split.documents[split.documents["delta"].abs() > _ZERO]
    if moved.empty:
        st.caption(_("No document contributes more or less than before."))
        return
    drawn = charts.waterfall(study, challenger, split, distinguishing(names, NAME_WIDTH))
    widgets_charts.draw(drawn, key="queries.waterfall")
    fold(
        _("Contribution of each document"),
        "queries.contributions",
        ":material/table:",
        lambda: _tables(study, row, split, names),
    )


def _tables(study: Study, row: pd.Series, split: Split, names: Mapping[str, str]) -> None:
    _table(split, names)
    above = evidence(row, split, study.conventions)
    if not above:
        return
    main = markdown_safe(names[row["doc_id"]], _NAME)
    st.markdown(_("Promoted above “{document}”:", document=main))
    kinds = {
        "worse": _("labelled as worse"),
        "unjudged": _("without a label"),
        "other": _("at least as relevant"),
    }
    st.dataframe(
        pd.DataFrame(
            {
                "document": [names[each.doc_id] for each in above],
                "rank_before": [each.rank_before for each in above],
                "rank_after": [each.rank_after for each in above],
                "label": [each.label for each in above],
                "kind": [kinds[each.kind] for each in above],
            }
        ),
        hide_index=True,
        placeholder="–",
        column_config={**_columns(), "kind": st.column_config.TextColumn(_p("column", "category"))},
        alt=_("Documents promoted above the document with the largest change"),
    )


def _columns() -> dict[str, Any]:
    """Return the columns that both tables have."""
    return {
        "document": st.column_config.TextColumn(_p("column", "document"), width="medium"),
        "rank_before": st.column_config.NumberColumn(_("rank before"), format="%.0f"),
        "rank_after": st.column_config.NumberColumn(_("rank after"), format="%.0f"),
        "label": st.column_config.NumberColumn(_p("column", "label"), format="%g"),
    }


def _table(split: Split, names: Mapping[str, str]) -> None:
    """Draw every document with a label above 0 or a contribution; the last row has the sums, which
    are the values and the change."""
    documents = split.documents
    counted = (documents["label"] > 0) | (documents["delta"].abs() > _ZERO)
    rows = documents[counted]
    total = {
        "document": _p("row", "sum"),
        "rank_before": math.nan,
        "rank_after": math.nan,
        "label": math.nan,
        "before": split.before,
        "after": split.after,
        "delta": split.delta,
    }
    shown = pd.concat(
        [rows.assign(document=rows["doc_id"].map(names)), pd.DataFrame([total])], ignore_index=True
    )
    decimal = "%.4f"
    st.dataframe(
        signed_cells(shown[list(total)], {"delta": 4}),
        hide_index=True,
        placeholder="–",
        column_config={
            **_columns(),
            "before": st.column_config.NumberColumn(_("previous contribution"), format=decimal),
            "after": st.column_config.NumberColumn(_("current contribution"), format=decimal),
            "delta": st.column_config.NumberColumn(_p("column", "contribution")),
        },
        alt=_("Contribution of each document to the value, before and after"),
    )


# The ranks of one query's documents, as a chart and as a table.

_NOTABLE, _EVERY = "telling", "every"
_NO_DOCUMENT = ""
_OPENING = 80
_CHOICE = 300


def draw_ladder(study: Study, ladder: Ladder) -> None:
    """Draw the ranks of a query's documents as a chart and as a table."""
    st.markdown(f"**{_('Document movements')}**")
    texts = queries_study.texts(study, shown(ladder, every=True).doc_ids)
    names = _names(texts)
    choices = st.grid(2, min_column_width=_CHOICE, vertical_alignment="bottom")
    every = pickers.pick_one(
        "docs",
        [_NOTABLE, _EVERY],
        choices.segmented_control,
        default=_NOTABLE,
        label=_p("field", "Documents"),
        format_func={
            _NOTABLE: _("relevant, crossing k or moved at least 3 ranks"),
            _EVERY: _("all documents near the top"),
        }.__getitem__,
        required=True,
        wrap=True,
    )
    drawn = shown(ladder, every=every == _EVERY)
    focus = pickers.pick_one(
        "follow",
        [_NO_DOCUMENT, *drawn.doc_ids],
        choices.selectbox,
        default=_NO_DOCUMENT,
        label=_("Follow one document"),
        format_func=lambda doc: shortened(names[doc], 60) if doc else _p("choice", "none"),
    )
    if not focus:
        address.choose("follow", None)
    titles = {system: study.name(system) for system in ladder.systems}
    notes = [
        *_without_result(study, ladder),
        *_left_out(ladder, len(drawn)),
    ]
    if notes:
        st.caption(paragraph(notes))
    chart = charts.ladder(ladder, titles, names, focus=focus or None, every=every == _EVERY)
    widgets_charts.draw(chart, key="queries.ladder")
    fold(
        _("The same as a table"),
        "queries.ladder.table",
        ":material/table:",
        partial(_table_ladder, ladder.picked(ladder.near), titles, texts),
    )


def _without_result(study: Study, ladder: Ladder) -> list[str]:
    return [
        _("{system} has no result here.", system=markdown_safe(study.name(system), 60))
        for system in study.chosen
        if system not in ladder.systems
    ]


def _left_out(ladder: Ladder, drawn: int) -> list[str]:
    near = int(ladder.near.sum())
    if drawn >= near:
        return []
    return [
        ngettext(
            "{n} of the {all} documents that are relevant or near the top is drawn.",
            "{n} of the {all} documents that are relevant or near the top are drawn.",
            drawn,
            all=number(near, 0),
        )
    ]


def _table_ladder(ladder: Ladder, titles: dict[str, str], texts: dict[str, Text]) -> None:
    columns: dict[str, object] = {
        "doc": ladder.doc_ids,
        "text": [texts[doc].whole[:_OPENING] if doc in texts else "" for doc in ladder.doc_ids],
        "label": ladder.label,
        **{f"rank {system}": ladder.column(system) for system in ladder.systems},
        "ideal": ladder.ideal,
    }
    number_column = partial(st.column_config.NumberColumn, format="%.0f", width="small")
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        column_config={
            "doc": st.column_config.TextColumn(_p("column", "document"), width="small"),
            "text": st.column_config.TextColumn(_p("column", "beginning"), width="medium"),
            "label": st.column_config.NumberColumn(
                _p("column", "label"), format="%g", width="small"
            ),
            **{f"rank {system}": number_column(titles[system]) for system in ladder.systems},
            "ideal": number_column(_p("column", "ideal")),
        },
        alt=_("The rank of each document in every system"),
    )


def _names(texts: dict[str, Text]) -> dict[str, str]:
    """Return a name for each document: its title, or the beginning of its text if the title is not
    unique, or its id."""
    often = Counter(text.title for text in texts.values())
    titles = {}
    for doc, text in texts.items():
        opening = shortened(text.body or "", _OPENING)
        alone = text.title and often[text.title] == 1
        titles[doc] = (text.title if alone else opening) or text.title or doc
    return distinguishing(titles)


# Tags and a note on a query, and corrections of its labels.

_PLACE = "notes"
_BEFORE = "notes.before"


def draw_notes(study: Study, query_id: str) -> None:
    """Draw the tags and the note of the query, which are saved on each change, and its corrected
    labels."""
    if read_only():
        _shown(Notes(workspace()).of(study.stored_id, query_id))
    else:
        _remarks(study.stored_id, query_id)
        corrections.draw_name()
    corrections.draw(study.stored_id, query_id)


def marks(study: Study) -> pd.DataFrame:
    """Return query_id, tags (joined by commas) and note, one row for each query that has any."""
    notes = Notes(workspace()).all(study.stored_id)
    return pd.DataFrame(
        [(note.query_id, ", ".join(note.tags), note.text) for note in notes],
        columns=["query_id", "tags", "note"],
        dtype=object,
    )


def _shown(note: Note) -> None:
    """Draw the tags and the note of a query in a read-only workspace, without fields."""
    _unread(note)
    if note.tags:
        st.caption(" · ".join(markdown_safe(tag, 60) for tag in note.tags))
    if note.text:
        st.text(note.text)
    if not note.changed:
        st.caption(_("No note."))
    elif note.who:
        st.caption(saved(note))


def _unread(note: Note) -> None:
    if note.unread is not None:
        st.warning(markdown_safe(error_text(note.unread), 300), icon=":material/warning:")


def _remarks(dataset_id: str, query_id: str) -> None:
    notes = Notes(workspace())
    note = notes.of(dataset_id, query_id)
    name = _named(dataset_id, query_id)
    tags_key, text_key = f"notes.tags.{name}", f"notes.text.{name}"
    _unread(note)
    # Read from the store each time: another window may have changed it.
    tags, offered = list(note.tags), tags_in_use(notes.all(dataset_id))

    def changed() -> None:
        _keep(dataset_id, note, st.session_state[tags_key], st.session_state[text_key])

    titles = distinct({tag: tag for tag in (*tags, *offered)})
    pickers.show(st.multiselect, tags_key, tags, changed)(
        _p("field", "Tags"),
        list(titles),
        format_func=lambda tag: titles.get(tag, tag),
        accept_new_options=True,
        max_selections=MOST_TAGS,
        placeholder=_("choose or type"),
    )
    pickers.show(st.text_area, text_key, note.text, changed)(
        _p("field", "Note"),
        max_chars=LONGEST_NOTE,
        height=110,
        placeholder=_("Notes, included in the report"),
    )
    dialogs.refused(_PLACE)
    before: dict[str, Any] = st.session_state.get(_BEFORE, {})
    if note.changed or before.get("name") == name:
        _saved(dataset_id, note, before.get("note") if before.get("name") == name else None)


def _saved(dataset_id: str, note: Note, before: Note | None) -> None:
    line, undo = st.columns([3, 1], vertical_alignment="center")
    line.caption(saved(note) if note.changed else _p("state", "Empty"))
    if before is not None:
        undo.button(
            _p("button", "Undo"),
            icon=":material/undo:",
            key="notes.undo",
            on_click=_keep,
            args=(dataset_id, note, before.tags, before.text),
            width="stretch",
        )


def _keep(dataset_id: str, before: Note, tags: list[str], text: str) -> None:
    query_id = before.query_id
    if dialogs.attempt(
        _PLACE,
        lambda: Notes(workspace()).store(dataset_id, query_id, tags, text, language.person_name()),
    ):
        st.session_state[_BEFORE] = {"name": _named(dataset_id, query_id), "note": before}


def _named(dataset_id: str, query_id: str) -> str:
    """Return a hash of a query for keys of widgets: ids may contain any character."""
    return digest([dataset_id.encode(), query_id.encode("utf-8", "surrogatepass")])


def tags(marks: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return query id → its tags, from `marks`."""
    return {
        query: tuple(joined.split(", "))
        for query, joined in zip(marks["query_id"], marks["tags"], strict=True)
        if joined
    }
