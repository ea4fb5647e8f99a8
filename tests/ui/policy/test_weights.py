"""The section Fusion weights: its answer, and the run that it stores."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.runs.combining import Tuned
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.overview import page_verdict
from rankdash.features.policy import page_weights
from rankdash.features.policy.weights import Gain, weights
from tests.approved import table
from tests.policy.test_weights import a_study, better
from tests.study.builders import LETTERS, study_on
from tests.ui.page_text import page_text
from tests.ui.parts import LANGUAGES, said, unlike
from tests.ui.sessions import page, part


def of(study: Study):
    return partial(page_weights.show, study, study.challengers[0])


def one_is_better() -> Study:
    """Return a first stage, and a ranking with the relevant document first in every list."""
    data = better().dataset
    scores = np.arange(len(LETTERS), 0, -1.0)
    ranking = Ranking.from_lists((query, [*LETTERS], scores) for query in data.query_text().index)
    return study_on(data, run_from_ranking("perfect", data.id, ranking, "run.trec"))


BETTER, PROVEN, THREE = better(), better(0.1), a_study(3)
CASES = {
    "proven": (PROVEN, {}),
    "a single system is the best": (one_is_better(), {}),
    "three systems": (THREE, {"fused": list(THREE.systems)}),
    "in the policy": (BETTER, {"weights": list(BETTER.systems)}),
    "one system": (BETTER, {"fused": FIRST_STAGE}),
    "too few queries": (a_study(queries=12), {}),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_fusion_weights(approved, language):
    usual = said(of(BETTER), language)
    opened = said(of(BETTER), language, ["policy.weights.table"])
    cases = {"not proven": usual, "its table": unlike(usual, opened)} | {
        name: unlike(usual, said(of(study), language, **given))
        for name, (study, given) in CASES.items()
    }
    approved(f"ui/weights.{language}", table(cases))


def test_an_interval_without_0_names_the_p_that_does_not_prove_it():
    study = a_study()
    tuned = weights(study, (FIRST_STAGE, *study.challengers))
    gain = Gain(0.036, 0.002, 0.074, p=0.0621)
    sentence = page_weights.conclusion(study, replace(tuned, over_single=gain))
    assert "(95%: +0.002 … +0.074; corrected p 0.0621)" in sentence


def test_the_stored_run_is_marked(workspace):
    workspace.save_dataset(BETTER.dataset)
    workspace.save_run(BETTER.run(BETTER.challengers[0]))
    app = part(of(replace(BETTER, dataset_id=BETTER.dataset.id)))
    app.button(key="weights.stored.go").click().run()
    assert not app.exception, app.exception
    tuned = next(run for run in workspace.runs() if "tuned_on" in run.settings)
    record = Tuned.of(workspace.run(tuned.id).settings)
    assert record.on == BETTER.dataset.id and record.low < record.gain < record.high
    study = study_on(BETTER.dataset, workspace.run(tuned.id))
    shown = said(partial(page_verdict.draw, study, tuned.id))
    assert "tuned on these queries" in shown and "not proven" in shown
    assert tuned.name == "Tuned fusion"
    chosen = {"data": BETTER.dataset.id, "base": FIRST_STAGE, "metric": "ndcg", "k": "10"}
    history = page_text(page("history", chosen=chosen))
    assert "This run was tuned on these queries, so its mean is in-sample." in history
    assert re.search(r"Tuned fusion \|.*\| not proven \|.*\| tuned on these queries \|", history)
