"""How far reranking could go, in words: by which documents, and what none of them can bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rankdash.analysis.reasons.headroom import Headroom
from rankdash.i18n import all_of, ngettext, number, percent
from rankdash.i18n import gettext as _
from rankdash.study.headroom import systems_adding_documents
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE


def documents(pool: bool) -> str:
    """The documents of whose best order the ceiling is, in a few words."""
    return _("pool of all systems") if pool else _("candidates")


def best_order(pool: bool) -> str:
    """The ceiling of one query."""
    return _("best order of the pool") if pool else _("best order of the candidates")


def whole(pool: bool) -> str:
    """What a share of the headroom is a share of."""
    if pool:
        return _("of the gain of a perfect order of all documents that the systems rank")
    return _("of the gain of a perfect order of the same documents")


def notes(study: Study, fit: Callable[[str], str] = str) -> list[str]:
    """What to know of the ceilings of a study: which documents they are of, where one system ranks
    others than the first stage's candidates, and how many relevant ones are not among them. fit:
    makes a name fit for where it is shown."""
    splits = {system: study.headroom(system) for system in study.challengers}
    known = {system: split for system, split in splits.items() if split is not None and split.n}
    kinds = {(split.pool, split.depth): split for split in reversed(known.values())}
    sentences = [_found(split) for split in kinds.values() if split.recall_ceiling is not None]
    pooled = [fit(study.name(system)) for system, split in known.items() if split.pool]
    if not pooled:
        return sentences[::-1]
    adding = [fit(study.name(system)) for system in systems_adding_documents(study)]
    return [_pool(adding, pooled, fit(study.name(FIRST_STAGE))), *sentences[::-1]]


def _pool(adding: Sequence[str], pooled: Sequence[str], first: str) -> str:
    return ngettext(
        "{systems} ranks documents that are not among the candidates of {first}. The best possible "
        "value of {pooled} is therefore that of the pool: of all documents that the systems "
        "compared rank.",
        "{systems} rank documents that are not among the candidates of {first}. The best possible "
        "value of {pooled} is therefore that of the pool: of all documents that the systems "
        "compared rank.",
        len(adding),
        systems=all_of(adding),
        first=first,
        pooled=all_of(pooled),
    )


def _found(split: Headroom) -> str:
    """How many of the relevant documents may be reordered."""
    recall = split.recall_ceiling or 0.0
    if recall == 1:
        if split.pool:
            return _("Together, the systems compared rank every relevant document.")
        if split.depth is None:
            return _("The first stage found every relevant document.")
        return _(
            "The top {depth} candidates hold every relevant document.",
            depth=number(split.depth, 0),
        )
    share = _share(recall)
    if split.pool:
        return _(
            "Together, the systems compared rank {share} of a query's relevant documents on "
            "average; no order of theirs can bring back the rest.",
            share=share,
        )
    if split.depth is None:
        return _(
            "On average, the first stage found {share} of a query's relevant documents; no "
            "reranker can bring back the rest.",
            share=share,
        )
    return _(
        "On average, the candidates down to rank {depth} hold {share} of a query's relevant "
        "documents; reranking no deeper cannot bring back the rest.",
        depth=number(split.depth, 0),
        share=share,
    )


def _share(recall: float) -> str:
    """A share that is not everything never reads 100%."""
    shown = percent(recall)
    return _("more than {share}", share=percent(0.99)) if shown == percent(1.0) else shown
