"""How far reranking could go, in words: by which documents, and what none of them can bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rankdash.core.base.i18n import enumerated, ngettext, number, percent
from rankdash.core.base.i18n import gettext as _
from rankdash.core.study.reasons.headroom import Headroom
from rankdash.core.study.study import Study


def documents(own: bool) -> str:
    """Return the documents of the best possible order, in a few words."""
    return _("own list") if own else _("candidates")


def best_order(own: bool) -> str:
    """Return the words for the best possible value of one query."""
    return _("best order of its own list") if own else _("best order of the candidates")


def notes(study: Study, fit: Callable[[str], str] = str) -> list[str]:
    """Return which share of the relevant documents each system could order, one sentence per set of
    documents. fit: makes a name fit for where it is shown."""
    splits = {system: study.headroom(system) for system in study.challengers}
    known = {
        system: split
        for system, split in splits.items()
        if split is not None and split.n and split.recall_ceiling is not None
    }
    depths = {split.depth: split for split in reversed(known.values()) if not split.own}
    lists = [
        _("{system} {share}", system=fit(study.name(system)), share=_share(split))
        for system, split in known.items()
        if split.own
    ]
    sentences = [_found(split) for split in depths.values()][::-1]
    return [*sentences, _lists(lists)] if lists else sentences


def _lists(shares: Sequence[str]) -> str:
    return ngettext(
        "The list of a system contains this share of a query's relevant documents on average: "
        "{shares}. A better order cannot bring back the rest.",
        "The lists of the systems contain these shares of a query's relevant documents on average: "
        "{shares}. A better order cannot bring back the rest.",
        len(shares),
        shares=enumerated(shares),
    )


def _found(split: Headroom) -> str:
    """Return how many of the relevant documents are among the candidates."""
    if split.recall_ceiling == 1:
        if split.depth is None:
            return _("The first stage found every relevant document.")
        return _(
            "The top {depth} candidates hold every relevant document.",
            depth=number(split.depth, 0),
        )
    if split.depth is None:
        return _(
            "On average, the first stage found {share} of a query's relevant documents; no "
            "reranker can bring back the rest.",
            share=_share(split),
        )
    return _(
        "On average, the candidates down to rank {depth} hold {share} of a query's relevant "
        "documents; reranking no deeper cannot bring back the rest.",
        depth=number(split.depth, 0),
        share=_share(split),
    )


def _share(split: Headroom) -> str:
    """Return the recall in words; less than everything never reads 100%."""
    recall = split.recall_ceiling or 0.0
    shown = percent(recall)
    return (
        _("more than {share}", share=percent(0.99))
        if recall < 1 and shown == percent(1.0)
        else shown
    )
