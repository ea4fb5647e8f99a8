"""Approved numbers of every part of a study, for half of each sample and for artificial lists."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.judgements import Judgements
from rankdash.core.data.ranking import Reading, Run
from rankdash.core.metrics import Conventions
from rankdash.core.readers import sources_from_path
from rankdash.core.readers.loading import load
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.sampling.label_plan import pool_of
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, Money
from tests.approved import table
from tests.sets import SAMPLE
from tests.study.builders import changed, ranking, study_on, timed, together, without
from tests.study.parts import QUERIES, all_of, brief, judge, result, study, why

SAMPLES = {"en": SAMPLE, "zh": SAMPLE.with_name("helpcentre_zh")}


def reranked(data: Dataset, name: str, rng: np.random.Generator) -> Run:
    """Return a run: half of the queries with their relevant documents first, the others with a list
    truncated at random; timed, with tokens, and one query failed."""
    labels = data.qrels[data.qrels["label"] > 0].groupby("query_id")["doc_id"].agg(set)
    lists = {}
    for place, query in enumerate(data.candidates.query_ids):
        docs, own = list(data.candidates.documents_of(query)[0]), labels.get(query, set())
        cut = int(rng.integers(len(docs)))
        best = sorted(docs, key=lambda doc, own=own: doc not in own)
        lists[query] = best if place % 2 else [*docs[cut:], *docs[:cut]]
    run = run_from_ranking(name, data.id, ranking(lists), f"{name}.trec")
    full = rng.integers(5, 60, len(run.ranking)).astype(np.int32)
    size = len(run.queries)
    run = replace(run, id=name, reading=Reading(np.minimum(full, 40), full), reranker="bm25")
    run = timed(run, rng.gamma(3, 20, size), tokens=rng.gamma(9, 50, size), pairs=20.0)
    return without(run, [run.ranking.query_ids[5]])


def sample(language: str) -> tuple[Study, Judgements]:
    data, rng = load(sources_from_path(SAMPLES[language])).dataset, np.random.default_rng(3)
    half = data.candidates.query_ids[::2]
    rows = data.qrels[~data.qrels["query_id"].isin(half)]
    data = changed(data, candidates=data.candidates.without(half), qrels=rows)
    one, two = (reranked(data, name, rng) for name in ("one", "two"))
    both = together(data, one, two, name="both", first_stage=True)
    study = study_on(data, one, two, both, challengers=(one.id, both.id), cutoff=5,
                     statistics=StatisticsSettings(resamples=200), dataset_id="set",
                     conventions=Conventions(threshold=2.0),
                     money=Money.of({"value_per_search": 0.1}))  # fmt: skip
    pool = pool_of({each: study.ranking(each) for each in study.chosen}, 10)
    grades = np.minimum(np.nan_to_num(pool.aligned(data.qrels)) + (rng.random(len(pool)) < 0.2), 3)
    rows = pd.DataFrame({"query_id": pool.query_ids[pool.query], "doc_id": pool.doc_ids})
    return study, Judgements("judge", (0, 3), rows.assign(grade=grades, error=""))


@pytest.mark.parametrize("language", SAMPLES)
def test_numbers_of_the_sample_are_as_approved(approved, language):
    of, judged = sample(language)
    queries = of.dataset.candidates.query_ids[[1, 4]].tolist()
    docs = list(of.dataset.candidates.documents_of(queries[0])[0][:2])
    found = all_of(of, query_id=queries, doc_ids=[docs], judge=[judged])
    approved(f"study/sample.{language}", table(found))


def made_up() -> dict[str, Study]:
    """Return ties, missing lists, failures and queries without a value, under several settings."""
    of = study()
    both, one = of.challengers
    strict = Conventions(threshold=2.0, missing="skip", queries="both", judged_only=True)
    rules = replace(of.statistics, interval="bca", test="sign-flip", correction="bh", tie_band=0.1)
    back = {"baseline": both, "challengers": (FIRST_STAGE,), "cutoff": None}
    return {
        "err": replace(of, metric="err", conventions=Conventions.trec_eval(), **back),
        "mrr": replace(of, metric="mrr", conventions=strict, statistics=rules, money=None),
        "judge": replace(of, judge=judge(1), challengers=(one,)),
        "judged": replace(of, metric="judged", cutoff=2),
        "precision": replace(of, metric="precision", challengers=(one,), others=()),
        "map": replace(of, metric="map", baseline=one, challengers=(FIRST_STAGE, both)),
    }


def test_numbers_of_made_up_lists_are_as_approved(approved):
    approved("study/made_up", table(all_of(study(), every=True, query_id=QUERIES)))
    for metric, of in made_up().items():
        changed = {f"why {each}": partial(why, challenger=of.challengers[0], query_id=each)
                   for each in QUERIES}  # fmt: skip
        said = {name: result(part, of, brief) for name, part in changed.items() if of.has_reasons}
        approved(f"study/made_up.{metric}", table(all_of(of) | said))
