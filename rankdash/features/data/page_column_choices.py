"""Which column is which, before files are read: the guess in one row of choices, and a preview."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.intake.reading import guessed
from rankdash.core.readers import FIELDS, Guess, Source
from rankdash.kit.widgets import pickers
from rankdash.kit.widgets.text import markdown_safe

_GUESSED = "upload.guessed"
_NO_COLUMN = ""
# Of all files together: of larger ones the beginning is looked at, so that a page stays quick.
MOST_BYTES = 5_000_000
_WIDTH = 170


def draw(
    files: Sequence[Source], title: Callable[[str], str]
) -> tuple[dict[str, Mapping[str, str]], float | None]:
    """Draw the choices for the uploaded files; return file → field → column where one differs from
    the guess, and the grade that means not relevant if 1 is the best.

    title: the name of a field on the page.
    """
    dropped = tuple(file.content for file in files)
    large = sum(file.size for file in files) > MOST_BYTES
    if st.session_state.get(_GUESSED, ((), ()))[0] != dropped:
        found = guessed(files, MOST_BYTES // len(files))
        st.session_state[_GUESSED] = (dropped, found)
    if large:
        st.caption(
            _(
                "The columns of large files are guessed from their first rows; for archives, "
                "Parquet, Excel and a single JSON list there is no guess before they are read. The "
                "check report says which column was read as which; `--columns` of the commands "
                "changes it."
            )
        )
    guesses = st.session_state[_GUESSED][1]
    chosen: dict[str, Mapping[str, str]] = {each.file: _row(each, title) for each in guesses}
    worst = [_worst(each, chosen[each.file].get("label")) for each in guesses]
    changed = {each.file: chosen[each.file] for each in guesses if chosen[each.file] != each.fields}
    return changed, max((each for each in worst if each is not None), default=None)


def _worst(guess: Guess, label: str | None) -> float | None:
    """The tick beside the label column; the grade that means not relevant where it is set."""
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
            _("Grade that means not relevant"),
            value=guess.highest.get(label, 1.0),
            step=1.0,
            format="%g",
            key=f"columns.{guess.file}.worst",
            width=_WIDTH,
        )


def _row(guess: Guess, title: Callable[[str], str]) -> dict[str, str]:
    """One row of choices and the first rows as they will be read; field → column."""
    st.markdown(f"**{_('Columns of {file}', file=markdown_safe(guess.file, 80))}**")
    chosen: dict[str, str] = {}
    with st.container(horizontal=True):
        for field in FIELDS:
            # What cannot be a label is never offered as one.
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
    found = {field: column for field, column in chosen.items() if column}
    preview = {f"{title(field)} ← {column}": guess.rows[column] for field, column in found.items()}
    st.dataframe(preview, hide_index=True, alt=_("The first rows of the file"))
    return found
