"""File of a labelling plan with its sample and all answers, from which every estimate can be
recomputed.

JSON lines: one with the settings, one for each pair of the pool with its ranks and its draw, then
one for each answer in order of arrival. Answers are only appended, so a program that dies loses
none,
and concurrent writers keep both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from rankdash.core.base.errors import DataError
from rankdash.core.base.files import from_json, guarded, text_of
from rankdash.core.sampling.label_plan import (
    COLUMNS,
    Additive,
    LabelPlan,
    LabelPool,
    Mode,
    no_answers,
)

_KIND = "rankdash label plan 1"
_NO_PLAN = "This is not a labelling plan file."
_REMEDY = "Use the unmodified file written by `rankdash label plan`."


class _Head(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    kind: str
    metric: str
    top: float
    threshold: float
    level: float
    seed: int
    systems: list[str]
    contrasts: list[tuple[int, int]]
    queries: list[str]
    excluded: list[str]
    mode: Mode = "weight"
    share: float = 0.0


class _Pair(msgspec.Struct, forbid_unknown_fields=True, tag="pair", tag_field="row"):
    query_id: str
    doc_id: str
    ranks: list[int | None]
    draw: int | None
    probability: float | None
    known: float | None


class _Answer(msgspec.Struct, forbid_unknown_fields=True, tag="answer", tag_field="row"):
    query_id: str
    doc_id: str
    label: float | None
    rater: str
    time: str


def write_plan(plan: LabelPlan) -> bytes:
    """Return the plan without answers, as bytes."""
    pool = plan.pool
    head = _Head(
        kind=_KIND,
        metric=plan.metric.measure.spec,
        top=float(plan.metric.top),
        threshold=float(plan.metric.threshold),
        level=plan.level,
        seed=plan.seed,
        systems=list(pool.systems),
        contrasts=list(plan.contrasts),
        queries=pool.query_ids.tolist(),
        excluded=list(pool.excluded),
        mode=plan.mode,
        share=plan.share,
    )
    draw = np.full(len(pool), -1)
    draw[plan.order] = np.arange(len(plan.order))
    chance = np.full(len(pool), np.nan)
    chance[plan.order] = plan.probabilities
    rows = (
        _Pair(
            query_id=pool.query_ids[pool.query[at]],
            doc_id=pool.doc_ids[at],
            ranks=[None if math.isinf(rank) else int(rank) for rank in pool.ranks[:, at]],
            draw=int(draw[at]) + 1 if draw[at] >= 0 else None,
            probability=_or_none(chance[at]),
            known=_or_none(plan.known[at]),
        )
        for at in range(len(pool))
    )
    return _lines([head, *rows])


def write_answers(answers: pd.DataFrame) -> bytes:
    """Return rows of answers to append to a plan, as bytes."""
    columns = (answers[name].tolist() for name in COLUMNS)
    return _lines(
        _Answer(query, doc, _or_none(label), rater, time)
        for query, doc, label, rater, time in zip(*columns, strict=True)
    )


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _lines(rows: Iterable[msgspec.Struct]) -> bytes:
    """Return rows as JSON lines. JSON escapes lone surrogates, which ids may contain."""
    texts = (json.dumps(msgspec.to_builtins(row)) for row in rows)
    return "".join(f"{text}\n" for text in texts).encode()


def read_plan(content: bytes, file: str) -> tuple[LabelPlan, pd.DataFrame]:
    """Read a plan and its answers, without an incomplete last line (left by a program that died).

    Raises DataError, with the line, for any other content.
    """
    rows = _rows(content.split(b"\n")[:-1], file)
    head = next(rows, None)
    if not isinstance(head, _Head) or head.kind != _KIND:
        raise _no_plan(file, 1)
    pairs: list[_Pair] = []
    answers: list[_Answer] = []
    for row in rows:
        if isinstance(row, _Pair):
            pairs.append(row)
        elif isinstance(row, _Answer):
            answers.append(row)
    with guarded(file, _NO_PLAN, _REMEDY, line=1):
        plan = _plan(head, pairs, file)
    if not answers:
        return plan, no_answers()
    table = pd.DataFrame([msgspec.structs.asdict(row) for row in answers])
    return plan, table.astype({"label": np.float64})


def _rows(lines: list[bytes], file: str) -> Iterator[Any]:
    for number, line in enumerate(lines, 1):
        with guarded(file, _NO_PLAN, _REMEDY, line=number):
            read = from_json(text_of(line))
            row = msgspec.convert(read, _Head if number == 1 else _Pair | _Answer)
            values = msgspec.structs.astuple(row)
            if any(isinstance(value, float) and not math.isfinite(value) for value in values):
                raise _no_plan(file, number)
        yield row


def _no_plan(file: str, line: int) -> DataError:
    return DataError(_NO_PLAN, remedy=_REMEDY, file=file, line=line)


def _plan(head: _Head, pairs: list[_Pair], file: str) -> LabelPlan:
    place = {query: at for at, query in enumerate(head.queries)}
    systems = range(len(head.systems))
    sampled = sorted((row.draw, at) for at, row in enumerate(pairs) if row.draw is not None)
    sound = (
        pairs
        and 0 < head.level < 1
        and all(row.query_id in place and len(row.ranks) == len(systems) for row in pairs)
        and [draw for draw, _ in sampled] == list(range(1, len(sampled) + 1))
        and head.contrasts
        and all(system in systems for contrast in head.contrasts for system in contrast)
    )
    if not sound:
        raise _no_plan(file, 1)
    ranks = [[np.inf if rank is None else rank for rank in row.ranks] for row in pairs]
    pool = LabelPool(
        systems=tuple(head.systems),
        query_ids=np.array(head.queries, dtype=object),
        query=np.array([place[row.query_id] for row in pairs], dtype=np.int64),
        doc_ids=np.array([row.doc_id for row in pairs], dtype=object),
        ranks=np.array(ranks, dtype=np.float64).T,
        excluded=tuple(head.excluded),
    )
    plan = LabelPlan(
        pool=pool,
        metric=Additive.of(head.metric, top=head.top, threshold=head.threshold),
        contrasts=tuple(head.contrasts),
        seed=head.seed,
        known=np.array([np.nan if row.known is None else row.known for row in pairs]),
        order=np.array([at for _, at in sampled], dtype=np.int64),
        level=head.level,
        mode=head.mode,
        share=head.share,
    )
    # Estimates use the sampling probability of each draw, which follows from the rest of the plan.
    written = np.array([pairs[at].probability for _, at in sampled], dtype=np.float64)
    with np.errstate(all="ignore"):
        if not np.allclose(plan.probabilities, written, rtol=1e-6, atol=0):
            raise _no_plan(file, 1)
    return plan
