"""Uploads: files, the meaning of their columns, and the choice of the baseline."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from rankdash.core.base.errors import RankdashError, RefusedFilesError
from rankdash.core.base.i18n import enumerated, error_text, language_name, ngettext
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.intake.reading import Reading, StoreOutcome, guessed, is_large, warm
from rankdash.core.readers import (
    FIELDS,
    FORMATS,
    SHAPES,
    BaselineNeeded,
    Choices,
    Conflict,
    Guess,
    MappingNeeded,
    Match,
    NumbersNeeded,
    Source,
    Together,
    WordsNeeded,
)
from rankdash.core.readers.loading import RETRIEVED, Retrieval
from rankdash.core.workspace.workspace_file import archive
from rankdash.features.data import page, page_samples
from rankdash.features.data.page_reading import (
    annotators_choice,
    conflict_choice,
    draw_reading_panel,
    match_choice,
)
from rankdash.kit.widgets import language, pickers, redraw
from rankdash.kit.widgets.stored import workspace
from rankdash.kit.widgets.text import markdown_safe
from rankdash.kit.widgets.uploader import uploader

_GRADES, _GAINS = "grades", "gains"
_GENERATION = "upload.generation"
_PENDING = "upload.pending"
_SAID = "upload.said"
_READING = "upload.reading"
_NO_COLUMN = ""
# Characters, of a file.
_LONGEST_REFUSAL = 600
# With a longer reading, the page shows progress.
AT_ONCE_SECONDS = 10.0


def sample_buttons(stored_ids: Collection[str], *, primary: bool) -> None:
    """Draw a button for each sample that is not stored, in the language of the interface first."""
    current = st.session_state[language.STATE]
    for each in page_samples.lacking(stored_ids, current):
        if st.button(
            _("Open the sample")
            if each == current
            else _("Open the sample in {language}", language=language_name(each)),
            type="primary" if primary and each == current else "secondary",
            icon=":material/storefront:",
            help=_(
                "A shop's help centre, written for rankdash: labelled queries, passages and "
                "finished runs."
            ),
            key=f"data.sample.{each}",
        ):
            open_stored(StoreOutcome(page_samples.open_sample(workspace(), each)))


def upload_panel() -> tuple[str | None, bool]:
    """Draw the uploader with its options, or an open question about the last files.

    Returns the id of the new data set if this panel showed why it cannot be reranked; and True if
    files are being read or wait for an answer.
    """
    dataset_id = (
        page.show_stored(st.session_state.pop(_SAID)) if _SAID in st.session_state else None
    )
    return dataset_id, _panel()


def _panel() -> bool:
    """Draw the panel; return True if files are being read or wait for an answer."""
    busy = _still_reading()
    if asking():
        if not busy:
            _question()
        return True
    warm()
    files = uploader(
        _("Labelled queries and documents, rankings, or a zip of them"),
        f"upload.files.{st.session_state.get(_GENERATION, 0)}",
        accept_multiple_files=True,
        help=_(
            "Supported: {formats}, Excel (.xlsx); plain, .gz or .zip. JSON may also list the "
            "retrieved and the relevant documents of each query, as ids, texts or grades, or be "
            "the output of {tools}. The format is detected from the content. Upload all files of "
            "a data set together; compress a folder as .zip.",
            formats=", ".join(FORMATS),
            tools=enumerated(SHAPES),
        ),
    )
    if not files:
        return busy
    packed = next((file.name for file in files if _is_workspace_file(file)), None)
    if packed is not None:
        text = _(
            "{file} is a workspace file. Import it at the end of this page, under *Export or "
            "import the workspace*.",
            file=markdown_safe(packed, 80),
        )
        st.info(text, icon=":material/folder_zip:")
        return False
    left, middle, right, last, ids = st.columns(5)
    name = left.text_input(_p("field", "Name"), placeholder=_("name from the files"), max_chars=80)
    first, retrieval = middle.selectbox(
        _("First-stage ranking"),
        [("", None), *((file.name, None) for file in files), *(("", how) for how in _retrievals())],
        format_func=lambda value: (
            value[0] or _retrievals().get(value[1], _("Detect automatically"))
        ),
        help=_(
            "The ranking that rerankers start from. If the files contain none, BM25 creates one: "
            "it retrieves {n} documents for each query, or orders the documents that the rows "
            "list for the query. You can also choose the method here; a bi-encoder takes longer.",
            n=RETRIEVED,
        ),
    )
    with right:
        conflict = conflict_choice()
    with last:
        annotators = annotators_choice()
    with ids:
        match = match_choice()
    mapping, worst = draw_column_choices(files, field_title)
    label = ngettext("Read {n} file", "Read {n} files", len(files))
    if st.button(label, type="primary", icon=":material/upload_file:", disabled=busy):
        _read(
            _Upload(
                files,
                name,
                first,
                retrieval,
                conflict,
                annotators,
                mapping,
                match=match,
                worst=worst,
            )
        )
    return True


def _is_workspace_file(source: Source) -> bool:
    with source.open() as file:
        return archive.is_workspace_file(file)


def asking() -> bool:
    """Return True if the page shows a question about uploaded files."""
    return _PENDING in st.session_state


def read_sources(sources: Sequence[Source]) -> None:
    """Read files from another source than the uploader, with the default options."""
    _read(_Upload(tuple(sources), "", "", None, "highest", "majority"))


def _retrievals() -> dict[Retrieval | None, str]:
    """Return the ways to create a first stage, in the reader's language."""
    return {
        "bm25": _("Create: BM25 over all documents"),
        "bi-encoder": _("Create: bi-encoder over all documents"),
        "fused": _("Create: BM25 + bi-encoder over all documents"),
        "listed": _("Create: BM25 over the documents listed for each query"),
        "rows": _("Create: order of the rows"),
    }


@dataclass(frozen=True)
class _Upload:
    """Files to read, and the answers to questions about them.

    mapping: file → field → column. words: file → word → grade. worst: the grade that means not
        relevant, if 1 is the best.
    """

    files: tuple[Source, ...]
    name: str
    first_stage: str
    retrieval: Retrieval | None
    conflict: Conflict
    annotators: Together
    mapping: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    words: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    match: Match = "id"
    worst: float | None = None


def _read(upload: _Upload) -> None:
    name = upload.name.strip() or None
    choices: Choices = {
        "mapping": upload.mapping,
        "conflict": upload.conflict,
        "first_stage": upload.first_stage or None,
        "words": upload.words,
        "annotators": upload.annotators,
        "match": upload.match,
        "worst_label": upload.worst,
        "ask": True,
    }
    try:
        reading = Reading(
            workspace(), upload.files, name=name, retrieval=upload.retrieval, **choices
        )
    except RankdashError as error:
        _refuse(error)
        return
    if not is_large(upload.files):
        with st.spinner(_("Reading and checking"), show_time=True):
            reading.wait(AT_ONCE_SECONDS)
        if not reading.running:
            _settle(upload, reading.result)
            return
    st.session_state[_READING] = (upload, reading)
    st.rerun()


def _still_reading() -> bool:
    """Show the progress or the result of the reading process; return True while it is running."""
    if _READING not in st.session_state:
        return False
    upload, reading = st.session_state[_READING]
    if reading.running:
        draw_reading_panel(reading, [file.name for file in upload.files])
        return True
    del st.session_state[_READING]
    if reading.cancelled:
        st.info(_("Cancelled. Nothing was stored."), icon=":material/cancel:")
    else:
        _settle(upload, reading.result)
    return False


def _settle(upload: _Upload, outcome: Callable[[], StoreOutcome]) -> None:
    """Process the result of a reading: a data set, a question about the files, or an error."""
    try:
        saved = outcome()
    except (MappingNeeded, NumbersNeeded, WordsNeeded, BaselineNeeded) as question:
        pending = st.session_state.get(_PENDING)
        mapped = (
            pending and isinstance(pending[1], MappingNeeded) and pending[1].file == question.file
        )
        st.session_state[_PENDING] = (upload, question, pending if mapped else None)
        _next_uploader()
    except RankdashError as error:
        # Files, options and mapping stay, so that the user can change one of them and read again.
        _refuse(error)
    else:
        st.session_state.pop(_PENDING, None)
        open_stored(saved)


def _refuse(error: RankdashError) -> None:
    """Show why files cannot be used, each file on a separate line."""
    redraw.pause()
    if isinstance(error, RefusedFilesError):
        head = _("Files that cannot be used: {count}. {each}", count=len(error.errors), each="")
        each = (markdown_safe(error_text(one), _LONGEST_REFUSAL) for one in error.errors)
        text = "\n- ".join([head.rstrip(), *each])
    else:
        text = markdown_safe(error_text(error), _LONGEST_REFUSAL)
    st.error(text, icon=":material/error:")


def _question() -> None:
    """Draw the open question about the files, and read them again with the answer."""
    upload, question, before = st.session_state[_PENDING]
    answer: Any
    if isinstance(question, BaselineNeeded):
        name, answer = "first_stage", draw_baseline(question, _forget)
    elif isinstance(question, WordsNeeded):
        name, answer = "words", _words_form(question)
    elif isinstance(question, NumbersNeeded):
        name, answer = "mapping", _numbers_form(question)
    else:
        name, answer = "mapping", _mapping_form(question)
    if before:
        st.button(_("Back to the columns"), on_click=_ask_again, args=(before,))
    if answer is not None:
        if name != "first_stage":
            answer = {**getattr(upload, name), question.file: answer}
        _read(replace(upload, **{name: answer}))


def _numbers_form(needed: NumbersNeeded) -> dict[str, str] | None:
    """Draw the question of what numbers are; return field → their key, or None until it is sent."""
    question = _(
        "What are the numbers under {key} in {file}?",
        key=markdown_safe(needed.key, 60),
        file=markdown_safe(needed.file, 80),
    )
    st.warning(question, icon=":material/pin:")
    st.caption(
        _(
            "For example {numbers}, with the documents {documents}.",
            numbers=markdown_safe(needed.numbers, 80),
            documents=markdown_safe(needed.documents, 80),
        )
    )
    with st.form(f"numbers.{needed.file}", border=False):
        field = st.radio(
            question,
            ("label", "doc_id"),
            index=None,
            format_func=lambda name: {
                "label": _("grades, one for each document"),
                "doc_id": _("ids of the relevant documents"),
            }[name],
            label_visibility="collapsed",
        )
        sent = _read_or_forget()
    return {field: needed.key} if sent and field else None


def _ask_again(question: tuple[_Upload, MappingNeeded, None]) -> None:
    st.session_state[_PENDING] = question


def _forget() -> None:
    st.session_state.pop(_PENDING, None)


def _mapping_form(needed: MappingNeeded) -> dict[str, str] | None:
    """Draw the column choices, starting from the reader's guess; return the mapping, or None until
    it is sent."""
    st.warning(
        _("Map the columns of {file}.", file=markdown_safe(needed.file)),
        icon=":material/table_view:",
    )
    st.caption(markdown_safe(error_text(needed), 400))
    st.dataframe(needed.preview, hide_index=True, alt=_("The first rows of the file"))
    chosen: dict[str, str] = {}
    with st.form("mapping", border=False):
        grid = st.columns(4)
        for position, (name, guess) in enumerate(needed.guess.items()):
            # Only columns that can be a label are offered as one.
            fitting = needed.labels if name == "label" else needed.columns
            columns = [_NO_COLUMN, *fitting]
            chosen[name] = grid[position % 4].selectbox(
                field_title(name),
                columns,
                index=columns.index(guess) if guess in columns else 0,
                format_func=lambda value: value or _("not in this file"),
                key=pickers.in_words(f"mapping.{needed.file}.{name}"),
            )
        sent = _read_or_forget()
    return {name: column for name, column in chosen.items() if column} if sent else None


def field_title(name: str) -> str:
    titles = {
        "query_id": _("Query id"),
        "query": _("Query text"),
        "doc_id": _("Document id"),
        "document": _("Document text"),
        "title": _("Document title"),
        "label": _p("field", "Label"),
        "score": _("First-stage score"),
        "rank": _("First-stage rank"),
        "reranked": _("Score of another system"),
    }
    return titles[name]


def open_stored(saved: StoreOutcome) -> None:
    """Open the new data set. If the data set was already in the workspace, only offer to open
    it."""
    if not saved.was_here:
        page.choose(saved.dataset_id)
    st.session_state[_SAID] = saved
    _next_uploader()


def _next_uploader() -> None:
    # A new key empties the uploader.
    st.session_state[_GENERATION] = st.session_state.get(_GENERATION, 0) + 1
    st.rerun()


def _words_form(needed: WordsNeeded) -> dict[str, float | None] | None:
    """Draw a grade field for each word; return word → grade (None: not a label), or None until it
    is sent."""
    st.warning(
        _(
            "The labels of {file} are words. Assign a grade to each word.",
            file=markdown_safe(needed.file),
        ),
        icon=":material/format_list_numbered:",
    )
    st.caption(
        _(
            "A higher grade is better, and 0 is not relevant. Leave the grade empty if the word "
            "is not a label: its rows are excluded."
        )
    )
    scale = _GRADES
    if all(word.gain is not None for word in needed.words) and len(needed.words) > 2:
        scale = st.radio(
            _p("field", "Scale"),
            (_GRADES, _GAINS),
            format_func=lambda value: {
                _GRADES: _("grades: 3, 2, 1, 0"),
                _GAINS: _("gains of the ESCI task: 1, 0.1, 0.01, 0"),
            }[value],
            horizontal=True,
            key=f"words.{needed.file}.scale",
            help=_(
                "The ESCI task uses these gains for E, S, C and I in NDCG. With this scale, "
                "choose linear gains; at a threshold of 1, only exact matches count as relevant."
            ),
        )
    with st.form(f"words.{needed.file}", border=False):
        grid = st.columns(4)
        grades = [
            grid[position % 4].number_input(
                ngettext(
                    "{word} ({n} row)",
                    "{word} ({n} rows)",
                    word.count,
                    word=markdown_safe(word.text, 60),
                ),
                value=word.gain if scale == _GAINS else word.grade,
                step=0.01 if scale == _GAINS else 1.0,
                format="%g",
                placeholder=_("not a label"),
                key=f"words.{needed.file}.{scale}.{position}",
            )
            for position, word in enumerate(needed.words)
        ]
        sent = _read_or_forget()
    return dict(zip((word.text for word in needed.words), grades, strict=True)) if sent else None


def _read_or_forget() -> bool:
    """Draw the buttons of a question about files; return True if the answer was sent."""
    with st.container(horizontal=True):
        sent = st.form_submit_button(_p("button", "Read"), type="primary")
        st.form_submit_button(_p("button", "Cancel"), on_click=_forget)
    return sent


# The columns before the reading: the guess in one row of choices, and a preview.

_GUESSED = "upload.guessed"
# For all files together. Of larger files only the beginning is examined, so that the page stays
# fast.
MOST_BYTES = 5_000_000
_WIDTH = 170


def draw_column_choices(
    files: Sequence[Source], title: Callable[[str], str]
) -> tuple[dict[str, Mapping[str, str]], float | None]:
    """Draw the choices for the uploaded files; return file → field → column for files that differ
    from the guess, and the grade that means not relevant if 1 is the best.

    title: returns the name of a field on the page.
    """
    dropped = tuple(file.content for file in files)
    large = sum(file.size for file in files) > MOST_BYTES
    if st.session_state.get(_GUESSED, ((), ()))[0] != dropped:
        proposed = guessed(files, MOST_BYTES // len(files))
        st.session_state[_GUESSED] = (dropped, proposed)
    if large:
        st.caption(
            _(
                "Columns of large files are detected from their first rows. Columns of archives, "
                "Parquet, Excel and single JSON lists are detected when they are read. The check "
                "report shows how each column was read; to change it, use `--columns` on the "
                "command line."
            )
        )
    guesses = st.session_state[_GUESSED][1]
    chosen: dict[str, Mapping[str, str]] = {each.file: _row(each, title) for each in guesses}
    worst = [_worst(each, chosen[each.file].get("label")) for each in guesses]
    changed = {each.file: chosen[each.file] for each in guesses if chosen[each.file] != each.fields}
    return changed, max((each for each in worst if each is not None), default=None)


def _worst(guess: Guess, label: str | None) -> float | None:
    """Draw the checkbox "1 is the best grade"; return the grade that means not relevant, or None if
    the labels are not reversed."""
    if label is None:
        return None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        ticked = st.checkbox(
            _("1 is the best grade in {column}", column=markdown_safe(label, 60)),
            key=f"columns.{guess.file}.reversed",
            help=_("The labels are reversed: each becomes the worst grade minus itself."),
        )
        if not ticked:
            return None
        return st.number_input(
            _("Grade for “not relevant”"),
            value=guess.highest.get(label, 1.0),
            step=1.0,
            format="%g",
            key=f"columns.{guess.file}.worst",
            width=_WIDTH,
        )


def _row(guess: Guess, title: Callable[[str], str]) -> dict[str, str]:
    """Draw one row of choices and a preview of the first rows; return field → column."""
    st.markdown(f"**{_('Columns of {file}', file=markdown_safe(guess.file, 80))}**")
    chosen: dict[str, str] = {}
    with st.container(horizontal=True):
        for field in FIELDS:
            # Only columns that can be a label are offered as one.
            fitting = guess.labels if field == "label" else guess.columns
            guessed = guess.fields.get(field, _NO_COLUMN)
            options = [_NO_COLUMN, *fitting]
            chosen[field] = st.selectbox(
                title(field),
                options,
                index=options.index(guessed) if guessed in options else 0,
                format_func=lambda value: value or _("not in this file"),
                key=pickers.in_words(f"columns.{guess.file}.{field}"),
                width=_WIDTH,
            )
    mapping = {field: column for field, column in chosen.items() if column}
    preview = {
        f"{title(field)} ← {column}": guess.rows[column] for field, column in mapping.items()
    }
    st.dataframe(preview, hide_index=True, alt=_("The first rows of the file"))
    return mapping


# The question which of several uploaded rankings is the baseline.


def draw_baseline(needed: BaselineNeeded, forget: Callable[[], None]) -> str | None:
    """Draw the question of which ranking is the current search. Return its name, or None until the
    answer is sent.

    forget: cancels the upload.
    """
    question = _("Which ranking is your current search?")
    st.warning(question, icon=":material/compare_arrows:")
    chosen = st.radio(
        question,
        needed.rankings,
        index=None,
        format_func=lambda name: markdown_safe(name, 80),
        label_visibility="collapsed",
        key="upload.baseline",
    )
    st.caption(
        _(
            "This ranking becomes the baseline, and rerankers start from it. To compare with "
            "another ranking later, choose it as Baseline under Settings in the sidebar."
        )
    )
    with st.container(horizontal=True):
        sent = st.button(
            _p("button", "Read"),
            type="primary",
            key="upload.baseline.read",
            disabled=chosen is None,
        )
        st.button(_p("button", "Cancel"), key="upload.baseline.cancel", on_click=forget)
    return chosen if sent else None
