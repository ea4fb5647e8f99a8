"""The page Policy: deadline and floor, each answer on both sides of its threshold."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import SHIPPED_WITH
from rankdash.core.study.study import Study
from rankdash.features.policy import page_deadline, page_floor
from tests.approved import table
from tests.policy.test_floor import drawn, scored
from tests.study.builders import study_on, timed, together
from tests.ui.parts import LANGUAGES, said, unlike


def with_run(study: Study, **fields: object) -> Study:
    """Return the study with changed fields of its run."""
    return study_on(study.dataset, replace(study.run(study.challengers[0]), **fields), others=())


def slow(*ms: float) -> Study:
    """Return 24 queries that reranking changes, with their latencies; the others were not timed."""
    study = scored(drawn(24, gap=1))
    run = timed(study.run(study.challengers[0]), [*ms, *[math.nan] * (24 - len(ms))])
    return study_on(study.dataset, run, others=())


def of(show: Callable[[Study, str], None], study: Study) -> Callable[[], None]:
    return partial(show, study, study.challengers[-1])


TIMED = slow(*np.arange(10.0, 30))
ONE = TIMED.run(TIMED.challengers[0])
BUSY = Measured(seconds=9.0, cpu_seconds=9.0, threads=2)
DEADLINES = {
    "chosen": (TIMED, {"deadline": "15"}),
    "longer than any query": (TIMED, {"deadline": "900"}),
    "not a time": (TIMED, {"deadline": "soon"}),
    "a target": (TIMED, {"target": "20"}),
    "four timed queries": (slow(1, 2, 3, 4), {}),
    "one timed query": (slow(1), {}),
    "not timed": (slow(), {}),
    "shipped, repeated, and on a busy machine": (
        with_run(
            TIMED,
            machine={SHIPPED_WITH: "sample", "cpu": "a processor"},
            created="2026-11-26T21:34:21.103+00:00",
            measured=replace(BUSY, repeated_ms={"q0": (9.0, 10.0, 11.0)}),
        ),
        {},
    ),
    "fused": (
        study_on(TIMED.dataset, ONE, together(TIMED.dataset, ONE, first_stage=True), others=()),
        {},
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_quality_with_a_deadline(approved, language):
    usual = said(of(page_deadline.show, TIMED), language)
    opened = said(of(page_deadline.show, TIMED), language, ["policy.deadlines"])
    cases = {"not chosen": usual, "its table": unlike(usual, opened)} | {
        name: unlike(usual, said(of(page_deadline.show, study), language, **given))
        for name, (study, given) in DEADLINES.items()
    }
    approved(f"ui/deadline.{language}", table(cases))


PARTLY = scored(drawn(150, gap=2.5))
LABELS = PARTLY.dataset.qrels
FLOORS = {
    "chosen": (PARTLY, {"floor_alpha": "0.1"}),
    "too few queries for this share": (PARTLY, {"floor_alpha": "0.01"}),
    "not a share": (PARTLY, {"floor_alpha": "0.07"}),
    "separates": (scored(drawn(150, gap=6)), {"floor_alpha": "0.05"}),
    "does not separate": (scored(drawn(150)), {"floor_alpha": "0.05"}),
    "queries without a relevant document": (
        study_on(
            PARTLY.dataset.relabelled(
                LABELS.assign(label=LABELS["label"].where(LABELS["query_id"] > "q14", 0.0))
            ),
            PARTLY.run(PARTLY.challengers[0]),
            others=(),
        ),
        {},
    ),
    "too few queries": (scored(drawn(59, gap=2)), {}),
    "listwise": (with_run(PARTLY, reranker="llm-listwise"), {}),
    "ranks": (scored(np.tile(np.arange(8.0), (80, 1))), {}),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_documents_with_a_low_score_are_not_shown(approved, language):
    usual = said(of(page_floor.show, PARTLY), language)
    opened = said(of(page_floor.show, PARTLY), language, ["policy.floors"])
    cases = {"not chosen": usual, "its table": unlike(usual, opened)} | {
        name: unlike(usual, said(of(page_floor.show, study), language, **given))
        for name, (study, given) in FLOORS.items()
    }
    approved(f"ui/floor.{language}", table(cases))
