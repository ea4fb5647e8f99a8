"""Why a document got its score: the form, and the text with the effects of its parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import streamlit as st

from rankdash.core.base import i18n
from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import duration, error_text, ngettext, number, paragraph, signed
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.rules import SettingValue
from rankdash.core.data.explanation import Explanation, Level, Stage
from rankdash.core.data.ranking import Run
from rankdash.core.rerankers import Request, RerankerKind, create, get
from rankdash.core.runs import jobs
from rankdash.core.study.study import Study
from rankdash.core.words.queries import grade
from rankdash.core.workspace.jobs.leases import ExplanationRequest, ExplanationRow, Explanations
from rankdash.features.queries import page_reading
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.ladder import Ladder
from rankdash.features.queries.occlusion import (
    LEVELS,
    LONGEST_LOOKED_AT,
    Cost,
    TextVariant,
    cost,
    in_calls,
    scalars,
    terms,
)
from rankdash.kit.widgets import dialogs, pickers, redraw, settings_form
from rankdash.kit.widgets.stored import read_only, worker, workspace
from rankdash.kit.widgets.text import html_safe, markdown_safe, shortened, signed_cells

# The first step is the least share of the largest effect that is marked; the others begin stronger
# colours.
_STEPS = (0.1, 0.3, 0.55, 0.8)
_LONGEST_SHOWN = 120
# In a narrower column, in pixels, the table is below the text.
_HALF = 340
_DIGITS = 4

# Okabe & Ito's blue and vermillion, as in the charts; the underline has the same meaning.
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


def draw(explanation: Explanation, query: str, document: str) -> None:
    """Draw the result for a query and a document."""
    stage = explanation.stages[-1]
    text = query if stage.level == "query" else document
    st.markdown(
        _(
            "Score for “{query}” with the whole text: **{score}**",
            query=markdown_safe(query, 120),
            score=number(explanation.score, _DIGITS),
        )
    )
    if not _largest(stage):
        st.caption(_("No single part changes the score."))
    # Sentences need the full width; words are next to the text.
    left, right = (st.container(), st.container())
    if stage.level != "sentence":
        halves = st.grid(2, min_column_width=_HALF)
        left, right = halves.cell(), halves.cell()
    with left:
        st.html(_STYLE + _key(explanation) + _marked(explanation, text, query))
    with right:
        _table(stage, text, _("Effect of each part on the score"))
    if len(explanation.stages) > 1:
        st.markdown(_("Sentences, tried first:"))
        _table(explanation.stages[0], text, _("Effect of each sentence on the score"))
    for note in _notes(explanation, text):
        st.caption(note)


def _notes(explanation: Explanation, text: str) -> list[str]:
    """Return notes on parts without an effect, truncation and the limit of length."""
    sentences = []
    missing = sum(math.isnan(each) for stage in explanation.stages for each in stage.effects)
    if missing:
        sentences.append(
            ngettext(
                "The effect of {n} part is unknown: its removal left no text, or scoring failed.",
                "The effects of {n} parts are unknown: their removal left no text, or scoring "
                "failed.",
                missing,
            )
        )
    if (
        explanation.read is not None
        and explanation.full is not None
        and explanation.full > explanation.read
    ):
        sentences.append(
            _(
                "The model read {read} of {full} tokens. Truncated text has no effect, but each "
                "removal lets the model read a little more of it.",
                read=number(explanation.read, 0),
                full=number(explanation.full, 0),
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


def _key(explanation: Explanation) -> str:
    """Return the legend of the marks as HTML."""
    parts = [
        f"<mark class='rd-up rd-3'>{html_safe(_('raises the score'))}</mark>",
        f"<mark class='rd-down rd-3'>{html_safe(_('lowers it'))}</mark>",
        html_safe(_("the stronger the colour, the larger the effect")),
    ]
    if len(explanation.stages) > 1:
        faint = html_safe(_("pale: the words were not tried one by one"))
        parts.append(f"<span class='rd-faint'>{faint}</span>")
    return f"<div class='rd-why-key'>{' · '.join(parts)}</div>"


def _marked(explanation: Explanation, text: str, query: str) -> str:
    """Return the text with its marks as safe HTML."""
    stage = explanation.stages[-1]
    largest = _largest(stage)
    places = sorted(
        (start, end, effect)
        for part, effect in zip(stage.parts, stage.effects, strict=True)
        for start, end in part.places
    )
    faint = _not_looked_into(explanation, text, query)
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
    """Return the strength of a mark for an effect, from 1 to 4; 0 for no mark."""
    if math.isnan(effect) or not largest:
        return 0
    return sum(abs(effect) / largest >= step for step in _STEPS)


def _largest(stage: Stage) -> float:
    return max((abs(each) for each in stage.effects if not math.isnan(each)), default=0.0)


def _plain(text: str, start: int, end: int, faint: Sequence[tuple[int, int]]) -> str:
    """Return text[start:end] as HTML, with the spans in `faint` in a pale colour."""
    html, at = [], start
    for first, last in faint:
        first, last = max(first, start), min(last, end)
        if first < last:
            html.append(html_safe(text[at:first]))
            html.append(f"<span class='rd-faint'>{html_safe(text[first:last])}</span>")
            at = last
    return "".join([*html, html_safe(text[at:end])])


def _not_looked_into(explanation: Explanation, text: str, query: str) -> list[tuple[int, int]]:
    """Return the (start, end) of the sentences with words that were not removed one at a time.

    Long texts have such sentences: the effect of single words is measured only in the sentences
    with the largest effects.
    """
    if len(explanation.stages) < 2:
        return []
    by_sentence, by_term = explanation.stages
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
                _p("column", "effect"),
                width=75,
                help=_("Score of the whole text minus the score without this part."),
            ),
            "does": st.column_config.TextColumn(_p("column", "effect"), width=115),
            "places": st.column_config.NumberColumn(_p("count", "times"), format="%d", width=50),
        },
        alt=alt,
    )


def _does(effect: float, largest: float) -> str:
    if math.isnan(effect):
        return _("not known")
    if not _step(effect, largest):
        return _("close to zero =")
    return _("raises ▲") if effect > 0 else _("lowers ▼")


# The form: for which document, by which parts, and the state of the calculation.

_MOST_OFFERED = 50


@dataclass(frozen=True)
class _Question:
    """A pair and the kind of parts to remove. settings: of the run's reranker, complete."""

    run: Run
    kind: RerankerKind
    settings: Mapping[str, SettingValue]
    asked: ExplanationRequest
    level: Level
    query: str
    document: str


def draw_occlusion(
    study: Study, challenger: str, ladder: Ladder, query_id: str, query: str
) -> None:
    """Draw the form and the result for a document of the list on the right. query: its text, or
    ""."""
    system = page_reading.sides(study, challenger)[1]
    if system not in ladder.systems:
        system = challenger
    reason = _why_not(study, system)
    if reason:
        st.caption(reason)
        return
    doc_id = _pick_document(study, ladder, system)
    level = _pick_level()
    if doc_id is None or level is None:
        return
    document = queries_study.texts(study, [doc_id])[doc_id].whole
    reason = _why_not_pair(study, system, query_id, doc_id, query, document)
    if reason:
        st.caption(reason)
        return
    run = study.run(system)
    if run is None:
        return
    st.caption(
        _(
            "Each part is removed once and the rest is scored again. The effect of a part is how "
            "much lower the score is without it. This is an approximation: parts are tried one "
            "at a time, parts with the same meaning replace each other, and a text with a gap is "
            "not natural."
        )
    )
    target = ExplanationRequest(run.id, query_id, doc_id, level)
    settings = create(run.reranker, scalars(run.settings)).settings
    _panel(_Question(run, get(run.reranker), settings, target, level, query, document))


def _why_not(study: Study, system: str) -> str:
    """Return why the scores of a system cannot be explained, or ""."""
    run = study.run(system)
    if run is None:
        return _(
            "The scores of the first stage are part of the data and cannot be computed again. Run "
            "BM25 or a model as a reranker to see what its scores depend on."
        )
    try:
        kind = get(run.reranker)
        if kind.capabilities.needs_text:
            create(run.reranker, scalars(run.settings))
    except RankdashError as error:
        return markdown_safe(error_text(error), 300)
    if not kind.capabilities.needs_text:
        return _(
            "rankdash did not compute this ranking from texts, so it cannot score a changed text."
        )
    if kind.capabilities.scope == "listwise":
        return _(
            "This reranker scores all documents of a query together, so the effect on a single "
            "document cannot be shown."
        )
    if kind.group == "llm":
        return _(
            "Not available for an LLM: it would need one call for each part, and its grades are "
            "too coarse to show the effect of one part."
        )
    return ""


def _why_not_pair(
    study: Study, system: str, query_id: str, doc_id: str, query: str, document: str
) -> str:
    (shown,) = queries_study.listed(study, system, query_id, [doc_id])
    if shown.score is None:
        return _("This document was not reranked: it is below the depth of the run.")
    if not document:
        return _("The data contains no text for this document.")
    return "" if query else _("The query has no text.")


def _pick_document(study: Study, ladder: Ladder, system: str) -> str | None:
    ranks = ladder.column(system)
    order = np.argsort(ranks)[: int((~np.isnan(ranks)).sum())]
    rows = [*order[:_MOST_OFFERED], *(r for r in order[_MOST_OFFERED:] if ladder.relevant[r])]
    docs = [str(doc) for doc in ladder.doc_ids[rows]]
    names, best = study.dataset.names_of(docs), study.dataset.top_grade
    row_of = dict(zip(docs, rows, strict=True))

    def named(doc_id: str) -> str:
        row = row_of[doc_id]
        name = shortened(names[doc_id], 70)
        return f"{ranks[row]:.0f} · {name} ({grade(float(ladder.label[row]), best)})"

    return pickers.pick_one(
        "doc", docs, st.selectbox, label=_("Document, by rank"), format_func=named
    )


def _pick_level() -> Level | None:
    words = {
        "term": _("words of the document"),
        "sentence": _("sentences of the document"),
        "query": _("words of the query"),
    }
    chosen = pickers.pick_one(
        "leave",
        LEVELS,
        st.segmented_control,
        default="term",
        label=_("Removed one at a time"),
        format_func=words.__getitem__,
        required=True,
    )
    return next((level for level in LEVELS if level == chosen), None)


def _panel(question: _Question) -> None:
    """Draw the offer to explain a score, its progress or its result. The panel refreshes once a
    second during the calculation."""
    rows = Explanations(workspace())
    first = rows.find(question.asked)

    @st.fragment(run_every=redraw.seconds(first))
    def panel() -> None:
        row = rows.find(question.asked)
        if redraw.seconds(row) != redraw.seconds(first):
            st.rerun(scope="app")
        if read_only() and (row is None or row.result is None):
            st.caption(_("Not computed for this document (read-only mode)."))
            return
        if row is not None and row.live:
            worker().ensure()
            _progress(row, rows)
            return
        if row is not None and row.result is not None:
            _result(question, row.result, lambda: rows.delete(question.asked.id))
            return
        _offer(question, row, rows)

    panel()


def _result(question: _Question, text: str, delete: Callable[[], None]) -> None:
    """Draw the result. delete: deletes it if it cannot be read."""
    try:
        explanation = Explanation.from_json(text)
    except (ValueError, RecursionError):
        st.error(_("This result cannot be read."), icon=":material/error:")
        if not read_only() and st.button(
            _p("button", "Delete"), icon=":material/delete:", key="occlusion.delete"
        ):
            again = _("The result will be deleted. You can compute it again.")
            dialogs.delete(_("Delete this result?"), [again], delete)
        return
    draw(explanation, question.query, question.document)


def _progress(row: ExplanationRow, rows: Explanations) -> None:
    text, action = st.columns([5, 1], vertical_alignment="center")
    if row.total:
        # If sentences are tried first, fewer pairs than the maximum may be needed.
        done = ngettext(
            "{done} of {n} pair", "{done} of {n} pairs", row.total, done=number(row.done, 0)
        )
        text.progress(min(1.0, row.done / row.total), text=done)
    else:
        text.caption(
            _p("state", "queued") if row.state == "queued" else _("loading model, warming up")
        )
    if action.button(
        _p("button", "Cancel"),
        key="occlusion.cancel",
        icon=":material/cancel:",
        disabled=row.cancelling,
    ):
        rows.cancel(row.id)
        st.rerun(scope="app")


def _offer(question: _Question, row: ExplanationRow | None, rows: Explanations) -> None:
    """Draw the end of an earlier attempt, the cost, and the button."""
    if row is not None and row.error is not None:
        st.error(markdown_safe(i18n.problem_text(row.error), 500), icon=":material/error:")
    elif row is not None and row.state == "interrupted":
        st.warning(
            _("The calculation was interrupted because the worker process ended."),
            icon=":material/info:",
        )
    elif row is not None:
        st.caption(_("The calculation was cancelled."))
    text = cost(question.query, question.document, question.level)
    if not text.variants:
        st.caption(_("Removing any part would leave no text to score."))
        return
    st.caption(paragraph(_price(question, text)))
    ready, key_field = True, settings_form.Found()
    if question.kind.capabilities.needs_network:
        name = f"occlusion.{question.asked.id}"
        key_field = settings_form.draw_key_field(question.kind, question.settings, name, fixed=True)
        ready = st.checkbox(
            _("Make these calls to the service"), key=f"occlusion.confirm.{question.asked.id}"
        )
    if st.button(
        _("Find out what the score depends on"),
        key="occlusion.start",
        icon=":material/ink_highlighter:",
        disabled=not ready,
    ):
        if key_field.missing:
            st.error(key_field.missing, icon=":material/key_off:")
            return
        if key_field.keys:
            worker().hand_over(question.asked.id, key_field.keys)
        rows.ask(question.asked)
        worker().ensure()
        st.rerun(scope="app")


def _price(question: _Question, cost: Cost) -> list[str]:
    """Return sentences on the number of pairs, the time or the calls, and a possible wait."""
    pairs = ngettext("{n} pair to score", "{n} pairs to score", cost.variants)
    if not cost.sure:
        pairs = _("at most {pairs}", pairs=pairs)
    text = [_(
            "The document has too many different words to try each: its sentences are tried "
            "first, then the words of the strongest sentences."
        )] if cost.by_sentence else []  # fmt: skip
    if question.kind.capabilities.needs_network:
        return [*text, _calls(question, cost, pairs)]
    measured = question.run.measured
    rate = None if measured is None else measured.pairs_per_second
    if rate is None or not rate > 0:
        text.append(_("Cost: {pairs}; the time is unknown.", pairs=pairs))
    else:
        seconds = duration(cost.variants / rate)
        text.append(
            _("Cost: {pairs}, about {time} at the speed of the run.", pairs=pairs, time=seconds)
        )
    if math.isfinite(question.run.load_ms):
        loading = duration(question.run.load_ms / 1e3)
        text.append(
            _(
                "Loading the model took {time} in this run; the model stays loaded for a few "
                "minutes.",
                time=loading,
            )
        )
    if any(row.state == "running" for row in jobs.list(workspace())):
        text.append(_("A run is in progress: this starts after the current batch."))
    return text


def _calls(question: _Question, cost: Cost, pairs: str) -> str:
    estimate, key = question.kind.estimate, question.kind.key
    place = None if key is None else key(question.settings)
    if estimate is None or place is None:
        return _("Cost: {pairs}; the time is unknown.", pairs=pairs)
    target = question.asked
    requests = [Request(target.query_id, question.query, [target.doc_id], [question.document])]
    if question.level == "query":
        # Each variant has a different query.
        requests *= cost.variants
    else:
        alike = [TextVariant(question.query, question.document)] * cost.variants
        requests = [
            request
            for together in in_calls(target.query_id, target.doc_id, alike, remote=True)
            for request in together
        ]
    expected = estimate(question.settings, requests)
    host = markdown_safe(urlsplit(place.base_url).netloc, 60)
    text = ngettext(
        "Cost: {pairs} in about {n} call to {host}, {tokens} tokens.",
        "Cost: {pairs} in about {n} calls to {host}, {tokens} tokens.",
        expected.calls,
        pairs=pairs,
        host=host,
        tokens=number(expected.tokens_in, 0),
    )
    if math.isnan(expected.dollars):
        return text
    # A bare dollar sign starts a formula in Markdown.
    return f"{text} {_('About {amount}.', amount=chr(92) + '$' + number(expected.dollars, 4))}"
