"""The section of the report on queries, and the table of all queries."""

from __future__ import annotations

from functools import partial

import pandas as pd

from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import ngettext, number, paragraph, plain, signed
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.base.text import html_safe, shortened
from rankdash.core.words.queries import excluded_words
from rankdash.core.words.verdicts import reason_words
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.words import reasoning, statement_text, without_result
from rankdash.kit.drawing import changes
from rankdash.kit.html.html_page import Draft, filled, listed, prose, table, together

MOST = 5
_MOST_FAILED = 50
_LONGEST = 300
_NAME = 60


def draw(draft: Draft) -> str:
    parts = [_one(draft, challenger) for challenger in draft.study.challengers]
    return "".join(parts) or prose(_("There is no other system, so no query changed."))


def _one(draft: Draft, challenger: str) -> str:
    study = draft.study
    row = study.comparison.row(challenger, study.spec)
    tally = _(
        "{helped} helped · {same} same (changes up to ±{band}) · {hurt} hurt, of {queries}.",
        helped=number(row["helped"], 0),
        same=number(row["same"], 0),
        band=plain(study.statistics.tie_band),
        hurt=number(row["hurt"], 0),
        queries=ngettext("{n} query", "{n} queries", int(row["paired"])),
    )
    rows = queries_study.compared(study, challenger)
    hurt = rows[rows["outcome"] == "hurt"].nsmallest(MOST, "delta", keep="first")
    helped = rows[rows["outcome"] == "helped"].nlargest(MOST, "delta", keep="first")
    return "".join(
        [
            together(
                f"<h3>{html_safe(draft.against(challenger))}</h3>",
                prose(tally),
                draft.chart(changes.changes(study, challenger)) if len(rows) else "",
            ),
            _cards(draft, challenger, _("Most hurt"), hurt),
            _cards(draft, challenger, _("Most helped"), helped),
            _without(draft, challenger),
        ]
    )


def _cards(draft: Draft, challenger: str, title: str, rows: pd.DataFrame) -> str:
    if rows.empty:
        return ""
    first, *rest = (_card(draft, challenger, row) for _at, row in rows.iterrows())
    # A heading stays on the same page as the first card.
    return together(f"<h4>{html_safe(title)}</h4>", first) + "".join(rest)


def _card(draft: Draft, challenger: str, row: pd.Series) -> str:
    study, query = draft.study, str(row["query_id"])
    text = shortened(study.dataset.query_names.get(query, query), _LONGEST)
    values = f"{number(row['before'])} → {number(row['after'])} ({signed(row['delta'])})"
    facts = [f"{study.measure.title} {values}", _("query {id}", id=query)]
    note = study.notes.get(query)
    remarks = [*note.tags, note.text] if note is not None else []
    return (
        f'<div class="card {html_safe(str(row["outcome"]))}"><b dir=auto>{html_safe(text)}</b>'
        f'<p class="muted">{html_safe(" · ".join(facts))}</p>{_why(draft, challenger, query)}'
        f"{_noted([each for each in remarks if each])}</div>"
    )


def _noted(remarks: list[str]) -> str:
    if not remarks:
        return ""
    text = _("Notes: {remarks}", remarks=" · ".join(remarks))
    return f'<p class="whole" dir=auto>{html_safe(text)}</p>'


def _why(draft: Draft, challenger: str, query: str) -> str:
    """Return the reason, its evidence, and the contribution of each group of documents as HTML."""
    study = draft.study
    reasons = study.reasons(challenger)
    if reasons is None or query not in reasons.index:
        return ""
    row = reasons.loc[[query]].iloc[0]
    split = queries_study.change(study, challenger, query)
    text = reasoning(study, challenger, row, split, partial(shortened, limit=_NAME))
    code = str(row["reason"])
    head = f"<p><strong>{html_safe(reason_words()[code])}</strong> · {html_safe(paragraph(text))}"
    sentences = [
        statement_text(each, split.measure.k)
        for each in queries_study.change_statements(study, split)
    ]
    return f"{head}</p>{listed(sentences)}"


def names_of(draft: Draft, doc_ids: list[str]) -> dict[str, str]:
    """Return document id → its title, the beginning of its text if the title is not unique, or its
    id."""
    names = draft.study.dataset.names_of(doc_ids)
    return {doc: shortened(name, _NAME) for doc, name in names.items()}


def _without(draft: Draft, challenger: str) -> str:
    """Return the table of queries without a change, each with the known reason."""
    study = draft.study
    pairs = study.pairs(challenger)
    lost = pairs[pairs["delta"].isna()]
    if lost.empty:
        return ""
    reasons = {
        query: reason
        for system in (study.baseline, challenger)
        for query, reason in study.failures(system).itertuples(index=False)
    }
    words = excluded_words()
    rows = []
    for query, state in zip(lost["query_id"], lost["state"], strict=True):
        sides = [
            without_result(study.name(system), study.excluded(system).get(query))
            for system in (study.baseline, challenger)
            if query in study.excluded(system)
        ]
        why = paragraph([*sides, reasons.get(query, "")]).strip()
        rows.append(
            (study.dataset.query_names.get(query, query)[:_LONGEST], query, words[state], why)
        )
    text = _(
        "Excluded from both systems: a query without a value in one system does not count as 0."
    )
    more = len(rows) - _MOST_FAILED
    if more > 0:
        text += " " + ngettext("{n} more is not listed.", "{n} more are not listed.", more)
    head = (
        _p("column", "query"),
        _p("column", "id"),
        _("reason for exclusion"),
        _p("column", "details"),
    )
    listing = table(filled(head, rows[:_MOST_FAILED]))
    return f"<h4>{html_safe(_p('heading', 'Excluded'))}</h4>{prose(text)}{listing}"
