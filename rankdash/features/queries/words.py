"""Sentences on the change of one query. Names of documents are safe in Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pandas as pd

from rankdash.core.base.i18n import (
    all_of,
    enumerated,
    ngettext,
    number,
    paragraph,
    percent,
    plain,
    signed,
)
from rankdash.core.base.i18n import gettext as _
from rankdash.core.base.i18n import pgettext as _p
from rankdash.core.study.reasons.contributions import CARRIED, Split, Statement
from rankdash.core.study.reasons.reasons import Fault
from rankdash.core.study.study import Study
from rankdash.core.words.verdicts import reason_meanings
from rankdash.features.queries import study as queries_study
from rankdash.features.queries.study import Blame, Missed

_RANKS_NAMED = 4
_ROUNDING = 1e-9


def statement_text(statement: Statement, k: int | None) -> str:
    """Return a sentence about one part of a query's change. It starts with the signed amount,
    except for documents promoted above relevant ones. k: the cutoff of the metric."""
    sentence = _CAUSES.get(statement.kind, _sentence)(statement, k)
    return sentence if statement.kind in _CAUSES else f"**{signed(statement.amount)}** · {sentence}"


def _sentence(statement: Statement, k: int | None) -> str:
    moves = _moves(statement.moves)
    n = statement.count
    match statement.kind:
        case "entered" if k is None:
            return ngettext(
                "{n} relevant document is new in the list ({moves}).",
                "{n} relevant documents are new in the list ({moves}).",
                n,
                moves=moves,
            )
        case "entered":
            return ngettext(
                "{n} relevant document entered the top {k} ({moves}).",
                "{n} relevant documents entered the top {k} ({moves}).",
                n,
                k=k,
                moves=moves,
            )
        case "left" if k is None:
            return ngettext(
                "{n} relevant document is no longer in the list ({moves}).",
                "{n} relevant documents are no longer in the list ({moves}).",
                n,
                moves=moves,
            )
        case "left":
            return ngettext(
                "{n} relevant document dropped out of the top {k} ({moves}).",
                "{n} relevant documents dropped out of the top {k} ({moves}).",
                n,
                k=k,
                moves=moves,
            )
        case "rose":
            return ngettext(
                "{n} relevant document rose ({moves}).",
                "{n} relevant documents rose ({moves}).",
                n,
                moves=moves,
            )
        case "fell":
            return ngettext(
                "{n} relevant document fell ({moves}).",
                "{n} relevant documents fell ({moves}).",
                n,
                moves=moves,
            )
        case "held":
            return ngettext(
                "{n} relevant document stayed at its rank, but its contribution changed because "
                "of the documents above it.",
                "{n} relevant documents stayed at their rank, but their contribution changed "
                "because of the documents above them.",
                n,
            )
        case "first":
            return first_text(*statement.moves[0])
        case _:
            return ngettext(
                "{n} more relevant document changed its contribution.",
                "{n} more relevant documents changed their contribution.",
                n,
            )


def _unjudged(statement: Statement, k: int | None) -> str:
    return ngettext(
        "{n} document without a label was promoted above relevant ones (to {ranks}). Without it "
        "the value would be {cost} higher.",
        "{n} documents without a label were promoted above relevant ones (to {ranks}). Without "
        "them the value would be {cost} higher.",
        statement.count,
        ranks=_listed([_rank(after) for _before, after in statement.moves]),
        cost=number(-statement.amount),
    )


def _worse(statement: Statement, k: int | None) -> str:
    return ngettext(
        "{n} document labelled as not relevant was promoted above relevant ones (to {ranks}). "
        "Without it the value would be {cost} higher.",
        "{n} documents labelled as not relevant were promoted above relevant ones (to {ranks}). "
        "Without them the value would be {cost} higher.",
        statement.count,
        ranks=_listed([_rank(after) for _before, after in statement.moves]),
        cost=number(-statement.amount),
    )


_CAUSES: dict[str, Callable[[Statement, int | None], str]] = {
    "unjudged_above": _unjudged,
    "worse_above": _worse,
}


def first_text(before: float, after: float) -> str:
    """Return a sentence on the ranks of the first relevant document."""
    if math.isnan(before):
        return _(
            "The first relevant document appeared at rank {after}; there was none before.",
            after=_rank(after),
        )
    if math.isnan(after):
        return _("The list no longer has a relevant document; one was at rank {before}.",
                 before=_rank(before))  # fmt: skip
    return _(
        "The first relevant document was at rank {before} and is at rank {after}.",
        before=_rank(before),
        after=_rank(after),
    )


def reasoning(
    study: Study, challenger: str, row: pd.Series, split: Split, fit: Callable[[str], str]
) -> list[str]:
    """Return sentences that explain why a query's value changed, or why it has no change.

    row: of `Study.reasons`; its name is the query id. fit: shortens or escapes a name for its
    place.
    """
    code, query_id = str(row["reason"]), str(row.name)
    sentences = [reason_meanings()[code]]
    if code in ("failed", "missing"):
        for system in (study.baseline, challenger):
            lost = study.excluded(system).get(query_id)
            if lost is not None or query_id not in study.ranking(system).positions:
                sentences.append(without_result(fit(study.name(system)), lost))
        return sentences
    if code == "no_relevant_candidate":
        labels = queries_study.labels(study, query_id)
        relevant = int((labels["label"] >= study.conventions.threshold).sum())
        return [
            *sentences,
            ngettext(
                "This query has {n} relevant document, but the first stage did not retrieve it.",
                "This query has {n} relevant documents, but the first stage did not retrieve them.",
                relevant,
            ),
        ]
    if code == "below_cutoff":
        return [*sentences, _below_cutoff(study, split, fit)]
    if isinstance(row["doc_id"], str):
        doc = row["doc_id"]
        sentences += evidence_text(
            row, split, fit(study.dataset.names_of(split.documents["doc_id"])[doc])
        )
    return sentences


def _below_cutoff(study: Study, split: Split, fit: Callable[[str], str]) -> str:
    """Return a sentence on the best document below the cutoff, the nearest one if several are
    equal."""
    k = math.inf if split.measure.k is None else split.measure.k
    rows = split.documents.assign(
        nearest=split.documents[["rank_before", "rank_after"]].min(axis=1)
    )
    outside = (rows["rank_before"] > k) | (rows["rank_after"] > k)
    best = rows[outside].sort_values(["label", "nearest"], ascending=[False, True])
    doc = best.iloc[0]
    return _(
        "The nearest is “{document}”, label {label}: rank {before} → {after}.",
        document=fit(study.dataset.names_of([doc["doc_id"]])[doc["doc_id"]]),
        label=plain(doc["label"]),
        before=_rank(doc["rank_before"]),
        after=_rank(doc["rank_after"]),
    )


def without_result(system: str, state: str | None) -> str:
    """Return why a system has no result for a query. state: "failed", "skipped", or None if its
    ranking just lacks the query."""
    if state == "failed":
        return _("{system} failed on this query.", system=system)
    if state == "skipped":
        return _("{system} was not run on this query.", system=system)
    return _("{system} does not rank this query.", system=system)


def evidence_text(row: pd.Series, split: Split, name: str) -> list[str]:
    """Return sentences with the document, ranks and amounts behind a query's reason. row: of
    `reasons.reasons`. name: of its main document."""
    sentences = []
    if math.isfinite(row["share"]):
        if split.measure.metric.name in CARRIED:
            sentences.append(first_text(row["rank_before"], row["rank_after"]))
        elif abs(row["share"] - split.delta) < _ROUNDING:
            sentences.append(
                _(
                    "The document: “{document}”, label {label}.",
                    document=name,
                    label=plain(row["label"]),
                )
            )
        else:
            sentences.append(
                _(
                    "The largest contribution: “{document}”, label {label}: rank {before} → "
                    "{after}, {share}.",
                    document=name,
                    label=plain(row["label"]),
                    before=_rank(row["rank_before"]),
                    after=_rank(row["rank_after"]),
                    share=signed(row["share"]),
                )
            )
    match row["reason"]:
        case "near_tie":
            sentences.append(
                _(
                    "Its score and the score of the document now at its previous rank differ by "
                    "{margin} of the list's score range.",
                    margin=percent(row["margin"], 1),
                )
            )
        case "truncated":
            sentences.append(
                _(
                    "The model read {read} of this document's {full} tokens.",
                    read=number(row["read"], 0),
                    full=number(row["full"], 0),
                )
            )
    if row["reason"] in ("truncated", "buried", "distractor_lifted", "unjudged_lifted"):
        sentences.append(_overtaken(row, split.measure.k))
    return [sentence for sentence in sentences if sentence]


def _overtaken(row: pd.Series, k: int | None) -> str:
    worse, unjudged, other = (int(row[kind]) for kind in ("worse", "unjudged", "other"))
    parts = [
        *([_("{n} labelled as worse", n=number(worse, 0))] if worse else []),
        *([_("{n} without a label", n=number(unjudged, 0))] if unjudged else []),
        *([_("{n} at least as relevant", n=number(other, 0))] if other else []),
    ]
    if not parts:
        return ""
    if k is None or row["rank_after"] <= k:
        return _("Promoted above this document: {documents}.", documents=_listed(parts))
    return _(
        "Promoted above this document in the top {k}: {documents}.", k=k, documents=_listed(parts)
    )


def _moves(moves: Sequence[tuple[float, float]]) -> str:
    return _listed([f"{_rank(before)} → {_rank(after)}" for before, after in moves])


def _listed(parts: Sequence[str]) -> str:
    """Return "a, b and c", with the number of the others if there are many."""
    if len(parts) > _RANKS_NAMED + 1:
        more = len(parts) - _RANKS_NAMED
        parts = [*parts[:_RANKS_NAMED], _("{n} more", n=number(more, 0))]
    return all_of(parts)


def _rank(rank: float) -> str:
    return _("not ranked") if math.isnan(rank) else number(rank, 0)


# What limits the value of a query: retriever, labels or reranker, with the evidence.


def fault_words() -> dict[str, str]:
    """Return code of a `Fault` → a word."""
    return {
        "retriever": _p("fault", "retriever"),
        "labels": _p("fault", "labels"),
        "reranker": _p("fault", "reranker"),
        "mixed": _("mixed (no single cause)"),
        "none": _p("fault", "none"),
    }


def place(missed: Missed, name: Callable[[str], str]) -> str:
    """Return the system that ranks a missed document, and its rank, as text. name: system → its
    name, shortened or escaped for its place."""
    if missed.system is None:
        return _("in no ranking")
    return _(
        "rank {rank} in {system}, not in this run",
        rank=number(missed.rank, 0),
        system=name(missed.system),
    )


def ground(blame: Blame, metric: str, name: Callable[[str], str]) -> str:
    """Return sentences on how far a query is below a perfect ranking, and by which faults. metric:
    its title. name: as for `place`."""
    fault = blame.fault
    if math.isnan(fault.lost):
        return _too_little(blame)
    if fault.code == "none":
        return _(
            "{metric} equals the value of a perfect ranking, within the tie band.", metric=metric
        )
    words = fault_words()
    shares = [
        _("{part} {amount}", part=words[part], amount=number(amount))
        for part, amount in sorted(fault.parts.items(), key=lambda each: -each[1])
        if round(amount, 3) > 0
    ]
    params = {"metric": metric, "lost": number(fault.lost)}
    below = (
        _(
            "{metric} is {lost} below a perfect ranking: {shares}.",
            shares=enumerated(shares),
            **params,
        )
        if len(shares) > 1
        else _("{metric} is {lost} below a perfect ranking.", **params)
    )
    return paragraph([below, *_cause(blame, fault, name)])


def _cause(blame: Blame, fault: Fault, name: Callable[[str], str]) -> list[str]:
    """Return the cause of the largest part."""
    if fault.code == "retriever" and blame.missed:
        return _not_retrieved(blame, name)
    if fault.code == "retriever":
        return [_("Relevant documents rank below the reranking depth.")]
    if fault.code == "labels":
        return [
            ngettext(
                "{n} document without a label ranks above relevant ones.",
                "{n} documents without a label rank above relevant ones.",
                blame.unlabelled,
            )
        ]
    if fault.code == "reranker":
        return [_("A better order of the same documents would recover the loss.")]
    return []


def _not_retrieved(blame: Blame, name: Callable[[str], str]) -> list[str]:
    """Return how many relevant documents are in no ranking, and how many in other systems'
    rankings."""
    elsewhere = [each for each in blame.missed if each.system is not None]
    nowhere = len(blame.missed) - len(elsewhere)
    sentences = []
    if elsewhere:
        best = min(elsewhere, key=lambda each: each.rank)
        sentences.append(
            ngettext(
                "{n} relevant document has rank {rank} in {system} and is not in this run.",
                "{n} relevant documents are in the lists of other systems and not in this run; "
                "the highest has rank {rank} in {system}.",
                len(elsewhere),
                rank=number(best.rank, 0),
                system=name(str(best.system)),
            )
        )
    if nowhere:
        sentences.append(
            ngettext(
                "{n} relevant document was not retrieved.",
                "{n} relevant documents were not retrieved.",
                nowhere,
            )
        )
    return sentences


def _too_little(blame: Blame) -> str:
    if not blame.relevant:
        return _("No document is labelled as relevant, so the value is meaningless.")
    return _("No displayed document has a label, so the value is meaningless.")
