"""Names and recorded details of runs, apart from their rankings."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import moment, ngettext, number, percent, refused_text
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import CHURN, RETRIEVAL, SHIPPED_WITH
from rankdash.core.rerankers import kinds
from rankdash.core.runs.combining import KIND as COMBINED
from rankdash.core.runs.results import usage
from rankdash.core.runs.retrieving import RETRIEVAL_SETTINGS
from rankdash.core.search.endpoint import address_of
from rankdash.core.study import history
from rankdash.core.study.study import Study
from rankdash.core.workspace import RunRow
from rankdash.core.workspace.notes import LONGEST_NOTE, Note, RunNote, RunNotes
from rankdash.kit.widgets import dialogs, language, pickers
from rankdash.kit.widgets.cache import cache
from rankdash.kit.widgets.stored import read_only, workspace
from rankdash.kit.widgets.text import markdown_safe

# A cascade prefixes the details of a stage with the stage's name.
_STAGES = ("", "first_", "second_")


@dataclass(frozen=True)
class Record:
    """The recorded details of a run. machine: names and values as they were stored. measured: None
    without measurements."""

    machine: Mapping[str, object]
    measured: Measured | None

    @property
    def runtimes(self) -> tuple[tuple[str, str], ...]:
        """(stage as a prefix, runtime) of each part that a runtime computed."""
        return tuple(
            (stage, str(self.machine[f"{stage}runtime"]))
            for stage in _STAGES
            if f"{stage}runtime" in self.machine
        )

    @property
    def from_cache(self) -> float:
        """The share of pairs whose score came from the cache; NaN if unknown."""
        if self.measured is None:
            return math.nan
        pairs = self.measured.scored_pairs + self.measured.cached_pairs
        return self.measured.cached_pairs / pairs if pairs else math.nan

    def remarks(self) -> Iterator[str]:
        """Yield remarks on the run for the list, each in a few words."""
        if SHIPPED_WITH in self.machine:
            yield _("shipped with the sample")
        if self.measured is not None and self.measured.stopped is not None:
            yield _("stopped by its result")
        if self.measured is not None and self.measured.contended:
            yield _("machine was busy")
        if self.measured is not None and self.measured.refused:
            yield refused_text(self.measured.refused, self.measured.requests)
        churn = self.machine.get(CHURN)
        if isinstance(churn, float):
            yield _("churn of the top 10: {share}", share=percent(churn))
        for stage, name in self.runtimes:
            agreement = self.machine.get(f"{stage}rank_agreement")
            if isinstance(agreement, float):
                yield _("{runtime}: agreement {value}", runtime=name, value=number(agreement, 4))
        if self.from_cache > 0:
            yield _("{share} from the score cache", share=percent(self.from_cache))


def record(run_id: str) -> Record:
    return cache(("record", run_id), lambda: Record(*workspace().recorded(run_id)))


def latency_ms(study: Study, row: RunRow) -> tuple[float, float]:
    """Return p50 and p95 in milliseconds as on the page Latency, NaN if unknown: as recorded, or
    for a fused run the quantiles of the sums over its parts."""
    if row.reranker != COMBINED:
        return row.p50_ms, row.p95_ms
    return history.quantiles_ms(study, row.id)


def reranker_title(name: str) -> str:
    """Return the title of a kind of reranker; its name if it is unknown here, such as a removed
    plugin."""
    if name == COMBINED:
        return _("Fused runs")
    if name == RETRIEVAL:
        return _p("reranker", "Retrieval")
    title = next((kind.title for kind in kinds() if kind.name == name), None)
    return name if title is None else _p("reranker", title)


def setting_titles(reranker: str) -> dict[str, str]:
    """Return setting → its title in the form."""
    own = {RETRIEVAL: RETRIEVAL_SETTINGS}.get(reranker, ())
    settings = next((kind.settings for kind in kinds() if kind.name == reranker), own)
    return {setting.name: _p("setting", setting.title) for setting in settings}


def settings_in_words(settings: Mapping[str, object]) -> str:
    """Return settings in one line, without empty ones, and with the address of a search endpoint in
    place of its JSON."""
    shown = {name: value for name, value in settings.items() if value != "" and name != "endpoint"}
    # The endpoint may be from another version.
    with suppress(ValueError, LookupError, TypeError):
        shown = {"url": address_of(json.loads(str(settings["endpoint"]))["url"]), **shown}
    return ", ".join(f"{name}={value}" for name, value in shown.items())


def usage_line(run_id: str) -> None:
    """Draw the usage of services by a run, if any."""
    used = cache(("usage", run_id), lambda: usage(workspace().run(run_id)))
    if used is None:
        return
    parts = [ngettext("{n} call", "{n} calls", used.calls)]
    if used.failed:
        parts.append(_("{n} of them without an answer", n=number(used.failed, 0)))
    for unit, amount in used.billed.items():
        digits = 0 if float(amount).is_integer() else 4
        billed = number(amount, digits)
        parts.append(_("{part}: {value}", part=markdown_safe(unit, 40), value=billed))
    if used.noted:
        parts.append(
            ngettext(
                "{n} answer corrected or not readable",
                "{n} answers corrected or not readable",
                used.noted,
            )
        )
    st.caption(" · ".join(parts))


# The note on a run, edited next to the run, saved immediately, and with undo.

_PLACE = "run_note"
_BEFORE = "run_note.before"


def draw_run_note(run_id: str) -> None:
    note = RunNotes(workspace()).of(run_id)
    if read_only():
        if note.text:
            st.caption(_("Note on this run"))
            st.text(note.text)
            if note.who:
                st.caption(saved(note))
        return
    key = f"run_note.text.{run_id}"

    def changed() -> None:
        _save(note, st.session_state[key])

    # Read from the workspace each time: another window may have changed it.
    pickers.show(st.text_area, key, note.text, changed)(
        _("Note on this run"),
        max_chars=LONGEST_NOTE,
        height=100,
        placeholder=_("What changed, and why you made this run"),
    )
    dialogs.refused(_PLACE)
    before: RunNote | None = st.session_state.get(_BEFORE)
    if before is not None and before.run_id != run_id:
        before = None
    if not note.changed and before is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(saved(note) if note.changed else _p("state", "Deleted"), width="content")
        if note.text:
            st.button(
                _("Delete the note"),
                icon=":material/delete:",
                key="run_note.delete",
                on_click=_save,
                args=(note, ""),
            )
        if before is not None:
            st.button(
                _p("button", "Undo"),
                icon=":material/undo:",
                key="run_note.undo",
                on_click=_save,
                args=(note, before.text),
            )


def saved(note: Note | RunNote) -> str:
    """Return when a note was written, and by whom if that is known; safe for Markdown."""
    when = moment(note.changed)
    if note.who:
        return _("Saved {when} UTC by {name}", when=when, name=markdown_safe(note.who, 60))
    return _("Saved {when} UTC", when=when)


def _save(before: RunNote, text: str) -> None:
    notes = RunNotes(workspace())
    if dialogs.attempt(_PLACE, lambda: notes.store(before.run_id, text, language.person_name())):
        st.session_state[_BEFORE] = before
