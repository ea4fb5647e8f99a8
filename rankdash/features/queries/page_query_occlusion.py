"""Why a document got its score: what is left of the score when a part of the text is left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import numpy as np
import streamlit as st

from rankdash.core.base import failures
from rankdash.core.base.errors import RankdashError
from rankdash.core.base.i18n import duration, error_text, ngettext, number, paragraph
from rankdash.core.base.i18n import gettext as _
from rankdash.core.data.explanation import Explanation, Level
from rankdash.core.data.ranking import Run
from rankdash.core.rerankers import Request, RerankerKind, create, get
from rankdash.core.rerankers.settings import SettingValue
from rankdash.core.runs import jobs
from rankdash.core.study.ladder import Ladder
from rankdash.core.study.study import Study
from rankdash.core.words.queries import grade
from rankdash.core.workspace.jobs.explanations import Asked, ExplanationRow, Explanations
from rankdash.features.queries import page_occlusion_view, queries
from rankdash.features.queries.explain import in_calls, scalars
from rankdash.features.queries.occlusion import LEVELS, Cost, TextVariant, cost
from rankdash.kit.widgets import address, dialogs, key_field, pickers, polling
from rankdash.kit.widgets.server import read_only, worker, workspace
from rankdash.kit.widgets.text import markdown_safe, shortened

_MOST_OFFERED = 50


@dataclass(frozen=True)
class _Question:
    """One pair and what is left out of it. settings: of the run's reranker, complete."""

    run: Run
    kind: RerankerKind
    settings: Mapping[str, SettingValue]
    asked: Asked
    level: Level
    query: str
    document: str


def draw(study: Study, challenger: str, ladder: Ladder, query_id: str, query: str) -> None:
    """For a document of the list whose cards are shown. query: its text, "" where it has none."""
    system = address.one("cards") or challenger
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
    document = queries.texts(study, [doc_id])[doc_id].whole
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
    asked = Asked(run.id, query_id, doc_id, level)
    settings = create(run.reranker, scalars(run.settings)).settings
    _panel(_Question(run, get(run.reranker), settings, asked, level, query, document))


def _why_not(study: Study, system: str) -> str:
    """Why a system can explain nothing; "" where it can."""
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
        return _("This ranking was not computed from texts here, so no text can be tried on it.")
    if kind.capabilities.scope == "listwise":
        return _(
            "This reranker scores the documents of a query together: a single document has no "
            "score whose change could be shown."
        )
    if kind.group == "llm":
        return _(
            "A language model would be called once for each part, and its grades are too coarse to "
            "show what one part does. Not offered."
        )
    return ""


def _why_not_pair(
    study: Study, system: str, query_id: str, doc_id: str, query: str, document: str
) -> str:
    (shown,) = queries.listed(study, system, query_id, [doc_id])
    if shown.score is None:
        return _("This document was not reranked: it is below the depth of the run.")
    if not document:
        return _("The data has no text for it.")
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
    """Offer, progress or result. Polls once a second while it is being worked on."""
    rows = Explanations(workspace())
    first = rows.find(question.asked)

    @st.fragment(run_every=polling.seconds(first))
    def panel() -> None:
        row = rows.find(question.asked)
        if polling.seconds(row) != polling.seconds(first):
            st.rerun(scope="app")
        if read_only() and (row is None or row.result is None):
            st.caption(_("Not worked out for this document, and nothing is worked out read-only."))
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
    """What was found. delete: takes it away, if it cannot be read."""
    try:
        found = Explanation.from_json(text)
    except (ValueError, RecursionError):
        st.error(_("This result cannot be read."), icon=":material/error:")
        if not read_only() and st.button(
            _("Delete"), icon=":material/delete:", key="occlusion.delete"
        ):
            again = _("The result will be deleted. It can be worked out again.")
            dialogs.delete(_("Delete this result?"), [again], delete)
        return
    page_occlusion_view.draw(found, question.query, question.document)


def _progress(row: ExplanationRow, rows: Explanations) -> None:
    text, action = st.columns([5, 1], vertical_alignment="center")
    if row.total:
        # A document that goes by sentence first may need fewer than the most.
        done = ngettext(
            "{done} of {n} pair", "{done} of {n} pairs", row.total, done=number(row.done, 0)
        )
        text.progress(min(1.0, row.done / row.total), text=done)
    else:
        text.caption(
            _("waiting for its turn") if row.state == "queued" else _("loading model, warming up")
        )
    if action.button(
        _("Cancel"), key="occlusion.cancel", icon=":material/cancel:", disabled=row.cancelling
    ):
        rows.cancel(row.id)
        st.rerun(scope="app")


def _offer(question: _Question, row: ExplanationRow | None, rows: Explanations) -> None:
    """What it costs, and the button; how an earlier attempt ended."""
    if row is not None and row.error is not None:
        st.error(markdown_safe(failures.problem(row.error), 500), icon=":material/error:")
    elif row is not None and row.state == "interrupted":
        st.warning(_("It was interrupted: the worker ended."), icon=":material/info:")
    elif row is not None:
        st.caption(_("It was cancelled."))
    text = cost(question.query, question.document, question.level)
    if not text.variants:
        st.caption(_("No text would be left to score without any one part."))
        return
    st.caption(paragraph(_price(question, text)))
    ready, found = True, key_field.Found()
    if question.kind.capabilities.needs_network:
        name = f"occlusion.{question.asked.id}"
        found = key_field.draw(question.kind, question.settings, name, fixed=True)
        ready = st.checkbox(
            _("Make these calls to the service"), key=f"occlusion.confirm.{question.asked.id}"
        )
    if st.button(
        _("Find out what the score depends on"),
        key="occlusion.start",
        icon=":material/ink_highlighter:",
        disabled=not ready,
    ):
        if found.missing:
            st.error(found.missing, icon=":material/key_off:")
            return
        if found.keys:
            worker().hand_over(question.asked.id, found.keys)
        rows.ask(question.asked)
        worker().ensure()
        st.rerun(scope="app")


def _price(question: _Question, cost: Cost) -> list[str]:
    """In sentences: how many pairs, how long or how many calls, and what it waits for."""
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
        text.append(_("Cost: {pairs}; the time is not known.", pairs=pairs))
    else:
        seconds = duration(cost.variants / rate)
        text.append(
            _("Cost: {pairs}, about {time} at the pace of the run.", pairs=pairs, time=seconds)
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
        return _("Cost: {pairs}; the time is not known.", pairs=pairs)
    asked = question.asked
    requests = [Request(asked.query_id, question.query, [asked.doc_id], [question.document])]
    if question.level == "query":
        # Each has a query of its own.
        requests *= cost.variants
    else:
        alike = [TextVariant(question.query, question.document)] * cost.variants
        requests = [
            request
            for together in in_calls(asked.query_id, asked.doc_id, alike, remote=True)
            for request in together
        ]
    found = estimate(question.settings, requests)
    host = markdown_safe(urlsplit(place.base_url).netloc, 60)
    text = ngettext(
        "Cost: {pairs} in about {n} call to {host}, {tokens} tokens.",
        "Cost: {pairs} in about {n} calls to {host}, {tokens} tokens.",
        found.calls,
        pairs=pairs,
        host=host,
        tokens=number(found.tokens_in, 0),
    )
    if math.isnan(found.dollars):
        return text
    # A bare dollar sign opens a formula in Markdown.
    return f"{text} {_('About {amount}.', amount=chr(92) + '$' + number(found.dollars, 4))}"
