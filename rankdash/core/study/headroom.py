"""How high systems can come: the best order of the documents that they rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankdash.core.data.ranking import adds_documents, pooled
from rankdash.core.metrics import Evaluation, Judged, judge
from rankdash.core.study.cache import Key, part
from rankdash.core.study.reasons.headroom import Ceilings, best_values, limits
from rankdash.core.study.systems import FIRST_STAGE

if TYPE_CHECKING:
    from rankdash.core.study.study import Study

# Kinds of runs with lists of their own: read from a file, or made of several rankings.
_LISTS = ("precomputed", "fusion")


def limits_of(study: Study, system: str) -> Ceilings:
    """Return the limits of what a system could order: for a rerank of ours the first stage's
    candidates, as deep as it reordered them; for any other system its own list, if that has other
    documents than the candidates."""
    run = study.run(system)
    own = run is not None and run.reranker in _LISTS and _has_other_documents(study, system)
    depth = None if run is None else run.depth
    documents = system if own else FIRST_STAGE
    return _limits(study, documents, depth, own)


@part("labels", "metric", "conventions")
def _limits(study: Study, documents: str, depth: int | None, own: bool) -> Ceilings:
    return study.of_judged(
        documents,
        lambda judged: limits(judged, study.measure, study.conventions, depth, own=own),
    )


def best_of_all(study: Study, specs: tuple[str, ...]) -> Evaluation:
    """What the best order of the documents that the chosen systems rank, the first stage's
    candidates among them, gets on each metric, query by query: no order of theirs gets more."""
    return _best(study, specs, study.chosen if systems_adding_documents(study) else ())


@part("labels", "conventions")
def _best(study: Study, specs: tuple[str, ...], pool: tuple[str, ...]) -> Evaluation:
    """pool: the systems whose documents count; none for the first stage's alone."""

    def best(judged: Judged) -> Evaluation:
        return best_values(judged, specs, study.conventions)

    return study.of_pool(best) if pool else study.of_judged(FIRST_STAGE, best)


def systems_adding_documents(study: Study) -> list[str]:
    """The chosen systems that rank documents for labelled queries that the first stage did not
    find."""
    return [system for system in study.chosen if _adds_documents(study, system)]


def _has_other_documents(study: Study, system: str) -> bool:
    """Return whether a run lists other documents, or fewer, than the first stage."""
    return _adds_documents(study, system) or _lacks_documents(study, system)


def _lacks_documents(study: Study, system: str) -> bool:
    def lacks() -> bool:
        judged = study.judged(system)
        candidates, own = study.dataset.candidates, study.ranking(system)
        return adds_documents(candidates, own, judged.query_ids[judged.present])

    return study.once(lacking_key(study, system), lacks)


def _adds_documents(study: Study, system: str) -> bool:
    run = study.run(system)
    return run is not None and study.once(
        adding_key(study, system),
        lambda: adds_documents(
            run.ranking, study.dataset.candidates, study.judged(FIRST_STAGE).query_ids
        ),
    )


@part("labels", "chosen", "order")
def pool_of(study: Study) -> Judged:
    """Every document that a chosen system ranks, with its label."""
    rankings = [study.ranking(system) for system in study.chosen]
    return judge(pooled(rankings), study.dataset.qrels, study.conventions)


def adding_key(study: Study, system: str) -> Key:
    """Under which a study keeps whether a system adds documents."""
    return "adds documents", study.dataset_id, system


def lacking_key(study: Study, system: str) -> Key:
    """Under which a study keeps whether a system lacks candidates of the queries that it ranks."""
    return "lacks documents", study.dataset_id, system
