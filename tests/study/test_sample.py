"""Every part of a study of half of each sample, as approved numbers."""

import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.judging.judgements import Judgements
from rankdash.analysis.labelling.label_pool import pool_of
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.analysis.unjudged.system_bounds import RankedLabels
from rankdash.dataset import Dataset
from rankdash.loading import load
from rankdash.metrics import Conventions, Judged, Measure
from rankdash.ranking.ranking import Ranking, Reading, Run
from rankdash.readers import sources_from_path
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.study import Study
from rankdash.study.systems import Money
from tests.approved import table
from tests.sets import SAMPLE
from tests.study.builders import changed, ranking, shown, six, study_on, timed, together, without
from tests.study.test_cache_property import calls

SAMPLES = {"en": SAMPLE, "zh": SAMPLE.with_name("helpcentre_zh")}
FEW = 6


def reranked(data: Dataset, name: str, rng: np.random.Generator) -> Run:
    """Half of the queries with their relevant documents first, the others with a list cut off at
    random; timed, with tokens, and one query failed."""
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


def brief(value: Any) -> str:
    """A value in a line or a few: of many numbers how many, their mean and their spread."""
    match value:
        case Measure():
            return value.spec
        case Study() | Run() | Ranking() | Judged() | RankedLabels() | Conventions():
            return type(value).__name__
        case pd.DataFrame():
            return "\n".join([f"{len(value)} rows", *(f"  {n}: {brief(value[n])}" for n in value)])
        case pd.Series() if value.index.dtype == "int64" or len(value) > 30:
            return brief(value.tolist())
        case pd.Series():
            return brief(value.to_dict())
        case np.ndarray():
            return brief(value.ravel().tolist())
        case set() | frozenset():
            return brief(sorted(value))
        case str():
            return value[:80]
    if hasattr(value, "to_pylist"):
        return brief(value.to_pylist())
    if isinstance(value, Mapping | list | tuple) and len(value) > FEW:
        items = list(value.values()) if isinstance(value, Mapping) else list(value)
        if all(isinstance(each, int | float) for each in items):
            known = np.array([each for each in items if math.isfinite(each)], dtype=float)
            ends = "" if not len(known) else f" mean {six(known.mean())} sd {six(known.std())}"
            return f"{len(known)} of {len(items)}{ends}"
        return f"{len(items)}, {len({*map(str, items)})} different, first {brief(items[0])}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {brief(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(brief, value))}]"
    if is_dataclass(value):
        names = [each.name for each in fields(value) if each.init and each.name[0] != "_"]
        own = ", ".join(f"{name} {brief(getattr(value, name))}" for name in names)
        return f"{type(value).__name__}({own})"
    return "…" if callable(value) else re.sub(r" object at 0x\w+", "", shown(value))


@pytest.mark.parametrize("language", SAMPLES)
def test_numbers_of_the_sample_are_as_approved(approved, language):
    of, judge = sample(language)
    queries = of.dataset.candidates.query_ids[[1, 4]].tolist()
    docs = list(of.dataset.candidates.documents_of(queries[0])[0][:2])
    own = {"query_id": queries, "doc_ids": [docs], "judge": [judge]}
    found = {name: brief(part(of)) for name, part in calls(of, every=False, own=own)}
    text = table(found)
    for system, known in of.systems.items():
        text = text.replace(system, known.name)
    approved(f"study/sample.{language}", text)
