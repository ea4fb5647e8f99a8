"""Judges as a server sees them: what one would be asked and cost, and queueing it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rankdash.core.base.errors import SettingError
from rankdash.core.rerankers.remote.estimates import Estimate
from rankdash.core.rerankers.settings import SettingValue
from rankdash.core.runs.plan import drawn
from rankdash.core.sampling.label_pool import LabelPool
from rankdash.core.workspace import Workspace
from rankdash.core.workspace.jobs.judges import StoredJudges
from rankdash.features.judge.asking import AnswerStore, Question, cached_answers
from rankdash.features.judge.judge import Judge, no_text

# So many pairs tell what the others cost.
_LOOKED_AT = 400
_SEED = 7

Pair = tuple[str, str]


@dataclass(frozen=True)
class JudgeRequest:
    """A wish for a judge.

    name: as people call it; "" for the name of its model. systems: what the rankings are called
    whose first `depth` documents make the pairs. pairs: (query id, document id).
    """

    dataset_id: str
    settings: Mapping[str, SettingValue]
    systems: Sequence[str]
    depth: int
    pairs: Sequence[Pair] = field(repr=False)
    name: str = ""


def submit(workspace: Workspace, request: JudgeRequest, judge_id: str | None = None) -> str:
    """Queue a judge and return its id. Nobody is asked here.

    judge_id: where the worker was given a key for it before; None for a new one.

    Raises SettingError for settings that cannot be used, DataError where there is no pair, and
    StoreError for an unknown data set.
    """
    judge = Judge(request.settings)
    return StoredJudges(workspace).submit(
        dataset_id=request.dataset_id,
        name=request.name.strip() or judge.model,
        model=judge.model,
        template=judge.template_hash,
        settings=judge.settings,
        top=judge.top,
        systems=request.systems,
        depth=request.depth,
        pairs=request.pairs,
        judge_id=judge_id,
    )


def pairs_of(
    pool: LabelPool,
    queries: int | None = None,
    seed: int = 0,
    labelled: Collection[str] = (),
) -> list[Pair]:
    """Return the (query id, document id) pairs of a pool, by query.

    queries: so many of its queries, with all of their pairs: first those of `labelled`, the queries
    with human labels, then others, each drawn at random with the seed; None for all.

    Raises SettingError if `queries` is under 1.
    """
    if queries is not None and queries < 1:
        raise SettingError(
            "A sample needs at least 1 query, not {size}.",
            remedy="Leave the sample empty to take all queries.",
            size=queries,
        )
    # A judge is corrected on queries that it and people both looked at.
    human = set(labelled)
    order = sorted(drawn(pool.query_ids, seed), key=lambda query: query not in human)
    sampled = set(order[:queries])
    chosen = np.array([query in sampled for query in pool.query_ids], dtype=bool)
    inside = chosen[pool.query]
    ids = pool.query_ids[pool.query[inside]]
    return [(str(query), str(doc)) for query, doc in zip(ids, pool.doc_ids[inside], strict=True)]


def estimate(
    judge: Judge, pairs: Sequence[Question], cache: AnswerStore | None = None
) -> tuple[Estimate, int]:
    """What a judge would cost, from a sample of the pairs, and how many of them the cache answers
    already: these cost nothing. cache: None for none."""
    known = {} if cache is None else cached_answers(cache, judge.fingerprint(), pairs, use=False)
    # How often each pair is still to be asked.
    left = {
        pair: judge.repeats - len(known.get((pair.query, pair.document), ())[: judge.repeats])
        for pair in pairs
        if no_text(pair.query, pair.document) is None
    }
    asked = [pair for pair, times in left.items() if times]
    answered = len(left) - len(asked)
    if not asked:
        return Estimate(0, 0.0), answered
    places = np.random.default_rng(_SEED).permutation(len(asked))[:_LOOKED_AT]
    sample = [(asked[place].query, asked[place].document) for place in places]
    calls = sum(left.values())
    found = judge.estimate(sample).scaled(calls / (judge.repeats * len(sample)))
    return replace(found, calls=calls), answered


def seconds_of(judge: Judge, calls: int, before: float | None = None) -> float:
    """How long so many calls take about; NaN where nothing tells it.

    before: calls a second of an earlier judge with the same model; None where there is none.
    """
    limit = float(judge.settings["per_minute"]) / 60
    rates = [rate for rate in (limit, before or 0.0) if rate > 0]
    return calls / min(rates) if rates else float("nan")
