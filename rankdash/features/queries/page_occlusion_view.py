"""What was found by leaving parts out: marked in the text, and as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext, number, signed
from rankdash.core.data.explanation import Explanation, Stage
from rankdash.features.queries.occlusion import LONGEST_LOOKED_AT, terms
from rankdash.kit.widgets.signed_cells import signed_cells
from rankdash.kit.widgets.text import html_safe, markdown_safe, shortened

# An effect counts as one from this share of the largest on; and where the steps of strength begin.
_STEPS = (0.1, 0.3, 0.55, 0.8)
_LONGEST_SHOWN = 120
# Narrower than this, in pixels, the table stands below the text.
_HALF = 340
_DIGITS = 4

# Okabe & Ito's blue and vermillion, as the charts have them; the underline says the same.
_STYLE = """<style>
.rd-why { border: 1px solid color-mix(in srgb, currentColor 22%, transparent); border-radius: 8px;
  padding: 0.7rem 0.9rem; max-height: 30rem; overflow-y: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; line-height: 1.9; font-size: 0.95rem; }
.rd-why mark, .rd-why-key mark { color: inherit; border-radius: 3px; padding: 0.1rem 0; margin: 0 1px;
  text-underline-offset: 3px; text-decoration-skip-ink: none; }
.rd-up { text-decoration: underline solid #0072B2; }
.rd-down { text-decoration: underline wavy #D55E00; }
mark.rd-up.rd-1 { background: color-mix(in srgb, #0072B2 10%, transparent); text-decoration-thickness: 1px; }
mark.rd-up.rd-2 { background: color-mix(in srgb, #0072B2 22%, transparent); text-decoration-thickness: 1px; }
mark.rd-up.rd-3 { background: color-mix(in srgb, #0072B2 36%, transparent); text-decoration-thickness: 2px; }
mark.rd-up.rd-4 { background: color-mix(in srgb, #0072B2 52%, transparent); text-decoration-thickness: 3px; }
mark.rd-down.rd-1 { background: color-mix(in srgb, #D55E00 10%, transparent); text-decoration-thickness: 1px; }
mark.rd-down.rd-2 { background: color-mix(in srgb, #D55E00 22%, transparent); text-decoration-thickness: 1px; }
mark.rd-down.rd-3 { background: color-mix(in srgb, #D55E00 36%, transparent); text-decoration-thickness: 2px; }
mark.rd-down.rd-4 { background: color-mix(in srgb, #D55E00 52%, transparent); text-decoration-thickness: 2px; }
.rd-faint { opacity: 0.6; }
.rd-why-key { font-size: 0.85rem; margin-bottom: 0.4rem; }
</style>"""  # noqa: E501


def draw(found: Explanation, query: str, document: str) -> None:
    """The result for a pair of texts."""
    stage = found.stages[-1]
    text = query if stage.level == "query" else document
    st.markdown(
        _(
            "Score for “{query}” with the whole text: **{score}**",
            query=markdown_safe(query, 120),
            score=number(found.score, _DIGITS),
        )
    )
    if not _largest(stage):
        st.caption(_("No part changes the score by itself."))
    # Sentences need the width; words stand beside the text.
    left, right = (st.container(), st.container())
    if stage.level != "sentence":
        halves = st.grid(2, min_column_width=_HALF)
        left, right = halves.cell(), halves.cell()
    with left:
        st.html(_STYLE + _key(found) + _marked(found, text, query))
    with right:
        _table(stage, text, _("Effect of each part on the score"))
    if len(found.stages) > 1:
        st.markdown(_("The sentences, which were tried first:"))
        _table(found.stages[0], text, _("Effect of each sentence on the score"))
    for note in _notes(found, text):
        st.caption(note)


def _notes(found: Explanation, text: str) -> list[str]:
    """What the reader has to know to read it rightly."""
    sentences = []
    missing = sum(math.isnan(each) for stage in found.stages for each in stage.effects)
    if missing:
        sentences.append(
            ngettext(
                "{n} part has no known effect: without it no text is left, or scoring failed.",
                "{n} parts have no known effect: without them no text is left, or scoring failed.",
                missing,
            )
        )
    if found.read is not None and found.full is not None and found.full > found.read:
        sentences.append(
            _(
                "The model read {read} of {full} tokens. Text behind the cut has no effect; "
                "removing a part moves a little of it before the cut.",
                read=number(found.read, 0),
                full=number(found.full, 0),
            )
        )
    if len(text) > LONGEST_LOOKED_AT:
        sentences.append(
            _(
                "Only the first {n} characters were tried; the rest stayed unchanged.",
                n=number(LONGEST_LOOKED_AT, 0),
            )
        )
    return sentences


def _key(found: Explanation) -> str:
    """What the marks mean."""
    parts = [
        f"<mark class='rd-up rd-3'>{html_safe(_('raises the score'))}</mark>",
        f"<mark class='rd-down rd-3'>{html_safe(_('lowers it'))}</mark>",
        html_safe(_("the stronger the colour, the larger the effect")),
    ]
    if len(found.stages) > 1:
        faint = html_safe(_("pale: the words were not tried one by one"))
        parts.append(f"<span class='rd-faint'>{faint}</span>")
    return f"<div class='rd-why-key'>{' · '.join(parts)}</div>"


def _marked(found: Explanation, text: str, query: str) -> str:
    """The text with its marks, safe as HTML."""
    stage = found.stages[-1]
    largest = _largest(stage)
    places = sorted(
        (start, end, effect)
        for part, effect in zip(stage.parts, stage.effects, strict=True)
        for start, end in part.places
    )
    faint = _not_looked_into(found, text, query)
    html, at = [], 0
    for start, end, effect in places:
        html.append(_plain(text, at, start, faint))
        word = text[start:end]
        bare = word.rstrip()
        html += [_mark(bare, effect, largest), html_safe(word[len(bare) :])]
        at = end
    examined = min(len(text), LONGEST_LOOKED_AT)
    rest = " …" if examined < len(text) else ""
    return f"<div class='rd-why'>{''.join(html)}{_plain(text, at, examined, faint)}{rest}</div>"


def _mark(word: str, effect: float, largest: float) -> str:
    step = _step(effect, largest)
    if not step:
        return html_safe(word)
    kind = "up" if effect > 0 else "down"
    text = html_safe(signed(effect, _DIGITS))
    return f"<mark class='rd-{kind} rd-{step}' title='{text}'>{html_safe(word)}</mark>"


def _step(effect: float, largest: float) -> int:
    """How strong: 1 to 4, 0 for nothing to show."""
    if math.isnan(effect) or not largest:
        return 0
    return sum(abs(effect) / largest >= step for step in _STEPS)


def _largest(stage: Stage) -> float:
    return max((abs(each) for each in stage.effects if not math.isnan(each)), default=0.0)


def _plain(text: str, start: int, end: int, faint: Sequence[tuple[int, int]]) -> str:
    """Text without a mark; the part of it whose words were not tried is faint."""
    html, at = [], start
    for first, last in faint:
        first, last = max(first, start), min(last, end)
        if first < last:
            html.append(html_safe(text[at:first]))
            html.append(f"<span class='rd-faint'>{html_safe(text[first:last])}</span>")
            at = last
    return "".join([*html, html_safe(text[at:end])])


def _not_looked_into(found: Explanation, text: str, query: str) -> list[tuple[int, int]]:
    """The sentences of which some word was not tried."""
    if len(found.stages) < 2:
        return []
    by_sentence, by_term = found.stages
    tried = {start for part in by_term.parts for start, _end in part.places}
    every = [start for part in terms(text, query) for start, _end in part.places]
    sentences = [part.places[0] for part in by_sentence.parts]
    return [
        (start, end)
        for start, end in sentences
        if any(start <= at < end and at not in tried for at in every)
    ]


def _table(stage: Stage, text: str, alt: str) -> None:
    largest = _largest(stage)
    effects = np.array(stage.effects)
    order = np.argsort(-np.nan_to_num(np.abs(effects), nan=-1.0), kind="stable")
    shown = pd.DataFrame(
        {
            "part": [shortened(stage.parts[row].shown(text), _LONGEST_SHOWN) for row in order],
            "effect": effects[order],
            "does": [_does(float(effects[row]), largest) for row in order],
            "places": [len(stage.parts[row].places) for row in order],
        }
    )
    if stage.level == "sentence":
        shown = shown.drop(columns="places")
    st.dataframe(
        signed_cells(shown, {"effect": _DIGITS}),
        hide_index=True,
        placeholder="–",
        height=420 if len(shown) > 11 else "content",
        column_config={
            "part": st.column_config.TextColumn(
                _("removed part"), width="large" if stage.level == "sentence" else 135
            ),
            "effect": st.column_config.NumberColumn(
                _("effect"), width=75, help=_("The score less that without it.")
            ),
            "does": st.column_config.TextColumn(_("effect"), width=115),
            "places": st.column_config.NumberColumn(_("times"), format="%d", width=50),
        },
        alt=alt,
    )


def _does(effect: float, largest: float) -> str:
    if math.isnan(effect):
        return _("not known")
    if not _step(effect, largest):
        return _("close to zero =")
    return _("raises ▲") if effect > 0 else _("lowers ▼")
