"""One query of a study as one file that needs no network: what it scored, why, and its texts."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import numpy as np

import rankdash
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import (
    language,
    moment,
    ngettext,
    number,
    paragraph,
    percent,
    plain,
    signed,
)
from rankdash.core.base.names import distinguishing, middle, shortened
from rankdash.core.metrics import parse_measure
from rankdash.core.study.ladder import Ladder
from rankdash.core.study.reasons.contributions import Split
from rankdash.core.study.study import Study
from rankdash.core.words.headroom import best_order
from rankdash.core.words.queries import grade, judged_title, label_words
from rankdash.core.words.reasons import reason_words
from rankdash.core.words.settings import rules_in_words
from rankdash.core.workspace.notes.corrections import Correction
from rankdash.core.workspace.notes.notes import Note
from rankdash.features.queries import charts, queries, report_query_page
from rankdash.features.queries.queries import Missed
from rankdash.features.queries.report_query_page import Card, Document, QueryPage
from rankdash.features.queries.words_explanations import reasoning, statement_text
from rankdash.features.queries.words_faults import fault_words, ground, place
from rankdash.kit.html.html_page import CHART_ENGINE, PageTable

_NAME = 60


def html(
    study: Study,
    challenger: str,
    query_id: str,
    corrections: Sequence[Correction] = (),
    uploaded: Mapping[str, float] | None = None,
) -> bytes:
    """The file, in the language of the moment. The study brings the note on the query.

    corrections: of this query's labels, where they are in force. uploaded: document → label before.
    """
    corrected = _corrections(study, corrections, uploaded or {})
    page = _page(study, challenger, query_id, corrected)
    return report_query_page.html(page).encode("utf-8", "replace")


def _page(study: Study, challenger: str, query_id: str, corrections: PageTable | None) -> QueryPage:
    found = queries.ladder_of(study, challenger, query_id)
    measure = parse_measure(study.spec)
    names = distinguishing(study.dataset.names_of(found.doc_ids))
    note = study.notes.get(query_id, Note(query_id))
    split = queries.change(study, challenger, query_id)
    reason, because = _reason(study, challenger, query_id, split)
    missed = queries.missed(study, challenger, query_id, found)
    blame = queries.blame(study, challenger, split, missed)
    lists, documents = _lists(study, found, query_id)
    titles = {system: study.name(system) for system in found.systems}
    pair = (study.name(study.baseline), study.name(challenger))
    return QueryPage(
        query=study.dataset.query_names.get(query_id, query_id),
        language=language(),
        facts=_facts(study, query_id),
        values=_values(study, challenger, query_id),
        reason=reason,
        because=because,
        fault=fault_words()[blame.fault.code] if blame else "",
        ground=ground(blame, measure.title, study.name) if blame else "",
        missed=_missed(study, missed, query_id),
        sentences=[
            statement_text(said, measure.k).replace("**", "")
            for said in queries.change_statements(study, split)
        ],
        waterfall=None
        if split.documents.empty
        else charts.waterfall(study, challenger, split, names).in_both_inks(),
        contributions=_contributions(split, pair, names),
        ladder=charts.ladder(found, titles, names).in_both_inks() if len(found) else None,
        places=_places(found, titles, names),
        lists=lists,
        documents=documents,
        tags=note.tags,
        note=note.text,
        corrections=corrections,
        definitions=[
            f"{measure.title}: {_(measure.metric.meaning)}",
            _(measure.metric.formula),
            *([_(measure.metric.note)] if measure.metric.note else []),
        ],
        made=PageTable(
            (_("setting"), _("current value")), rules_in_words(study.conventions, study.statistics)
        ),
        versions=_(
            "Made by rankdash {version} (Python {python}, {charts}) on {when} UTC. Nothing "
            "in this file is loaded from a network.",
            version=rankdash.__version__,
            python=platform.python_version(),
            charts=CHART_ENGINE,
            when=moment(datetime.now(UTC).isoformat(timespec="seconds")),
        ),
    )


def _reason(study: Study, challenger: str, query_id: str, split: Split) -> tuple[str, str]:
    """The reason in a word or two, and what it rests on."""
    table = study.reasons(challenger)
    if table is None or query_id not in table.index:
        return "", ""
    row = table.loc[[query_id]].iloc[0]
    text = reasoning(study, challenger, row, split, partial(shortened, limit=_NAME))
    return reason_words()[str(row["reason"])], paragraph(text)


def _missed(study: Study, missed: Sequence[Missed], query_id: str) -> list[Document]:
    texts = queries.texts(study, [each.doc_id for each in missed])
    labels, best = queries.label_of(study, query_id), study.dataset.top_grade
    return [
        Document(
            each.doc_id,
            texts[each.doc_id].title,
            texts[each.doc_id].body or "",
            f"{grade(labels[each.doc_id], best)} · {place(each, study.name)} · "
            f"{_('document {id}', id=shortened(each.doc_id, _NAME))}",
        )
        for each in missed
    ]


def _contributions(split: Split, pair: tuple[str, str], names: dict[str, str]) -> PageTable | None:
    if split.documents.empty:
        return None
    counts = split.documents[(split.documents[["before", "after"]] != 0).any(axis="columns")]
    columns = [counts[name].tolist() for name in ("label", "rank_before", "rank_after")]
    values = [counts[name].tolist() for name in ("before", "after", "delta")]
    before, after = (_("rank in {system}", system=shortened(name, _NAME)) for name in pair)
    return PageTable(
        (
            _("document"),
            _("label"),
            before,
            after,
            _("contribution before"),
            _("contribution after"),
            _("change"),
        ),
        [
            (
                names.get(doc, doc),
                *(plain(each) for each in places),
                number(was, 4),
                number(now, 4),
                signed(delta, 4),
            )
            for doc, *places, was, now, delta in zip(
                counts["doc_id"], *columns, *values, strict=True
            )
        ],
        frozenset(range(1, 7)),
    )


def _facts(study: Study, query_id: str) -> list[str]:
    data = study.dataset
    compared = f"{study.name(study.baseline)} → {', '.join(map(study.name, study.challengers))}"
    facts = [data.name, compared, study.measure.title, _("query {id}", id=query_id)]
    if study.corrections:
        facts.append(
            ngettext("{n} label corrected", "{n} labels corrected", study.corrections)
            if study.corrected
            else ngettext("{n} correction excluded", "{n} corrections excluded", study.corrections)
        )
    return facts


def _values(study: Study, challenger: str, query_id: str) -> PageTable:
    """A row for each system, and one for the best that the candidates allow."""
    judged = study.spec_of("judged")
    rows, before = [], math.nan
    for system in dict.fromkeys((study.baseline, challenger, *study.challengers)):
        value = _value(study, system, study.spec, query_id)
        if system == study.baseline:
            before = value
        change = "–" if system == study.baseline else signed(value - before)
        share = percent(_value(study, system, judged, query_id))
        rows.append((study.name(system), number(value), change, share))
    ceiling = queries.table(study, challenger).set_index("query_id").get("ceiling")
    if ceiling is not None and query_id in ceiling.index:
        best = float(ceiling[query_id])
        split = study.headroom(challenger)
        title = best_order(split is not None and split.own)
        rows.append((title, number(best), signed(best - before), "–"))
    return PageTable(
        (_("system"), study.measure.title, _("change"), judged_title(study.cutoff)),
        rows,
        frozenset({1, 2, 3}),
    )


def _value(study: Study, system: str, spec: str, query_id: str) -> float:
    return float(queries.by_query(study, system, spec).get(query_id, math.nan))


def _lists(
    study: Study, found: Ladder, query_id: str
) -> tuple[list[tuple[str, list[Card]]], list[Document]]:
    """The first k of each system, and every document of these lists once."""
    lists: list[tuple[str, list[Card]]] = []
    near: dict[str, int] = {}
    best = study.dataset.top_grade
    for system in found.systems:
        ranks = found.column(system)
        rows = [int(row) for row in np.argsort(ranks) if ranks[row] <= found.k]
        docs = [str(found.doc_ids[row]) for row in rows]
        shown = queries.listed(study, system, query_id, docs)
        cards = [
            Card(
                each.doc_id,
                int(ranks[row]),
                grade(float(found.label[row]), best),
                bool(found.relevant[row]),
                _elsewhere(study, found, row, system),
                _read(each),
            )
            for row, each in zip(rows, shown, strict=True)
        ]
        lists.append((study.name(system), cards))
        near.update(zip(docs, rows, strict=True))
    texts = queries.texts(study, near)
    documents = [
        Document(
            doc,
            texts[doc].title,
            texts[doc].body or "",
            f"{grade(float(found.label[row]), best)} · {_elsewhere(study, found, row)}",
        )
        for doc, row in near.items()
    ]
    return lists, documents


def _elsewhere(study: Study, found: Ladder, row: int, own: str = "") -> str:
    """The rank of a document in every system but its own; an arrow says how it moved from the
    baseline, to its own list or from it."""
    sentences = []
    for system in found.systems:
        if system == own:
            continue
        rank = found.column(system)[row]
        name = middle(study.name(system), _NAME)
        if math.isnan(rank):
            sentences.append(_("{system}: not ranked", system=name))
            continue
        here = found.column(own)[row] if study.baseline in (own, system) and own else rank
        rise = here - rank if own == study.baseline else rank - here
        sign = "" if rise == 0 else ("▲ " if rise > 0 else "▼ ")
        sentences.append(sign + _("{system}: rank {rank}", system=name, rank=int(rank)))
    return " · ".join(sentences)


def _read(shown: queries.Listed) -> list[str]:
    facts = []
    if shown.score is not None:
        facts.append(_("score {score}", score=number(shown.score)))
    if shown.read is not None and shown.full is not None:
        facts.append(
            _(
                "the model saw {read} of {full} tokens",
                read=number(shown.read, 0),
                full=number(shown.full, 0),
            )
        )
    return facts


def _places(found: Ladder, titles: dict[str, str], names: dict[str, str]) -> PageTable | None:
    if not len(found):
        return None
    near = found.picked(found.near)
    return PageTable(
        (_("document"), _("label"), *titles.values(), _("ideal")),
        [
            (
                names.get(doc, doc),
                plain(near.label[row]),
                *(plain(rank) for rank in near.ranks[row]),
                plain(near.ideal[row]),
            )
            for row, doc in enumerate(near.doc_ids)
        ],
        frozenset(range(1, 3 + len(titles))),
    )


def _corrections(
    study: Study, rows: Sequence[Correction], uploaded: Mapping[str, float]
) -> PageTable | None:
    if not rows:
        return None
    titles = study.dataset.document_names[0]
    return PageTable(
        (_("document"), _("uploaded"), _("corrected"), _("who"), _("when (UTC)")),
        [
            (
                titles.get(each.doc_id, each.doc_id),
                label_words(uploaded.get(each.doc_id)),
                label_words(each.label),
                each.who,
                moment(each.made),
            )
            for each in rows
        ],
    )
