"""Judges with known errors on real labels, and how often an interval holds the truth."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rankdash.analysis.judging.corrected import Corrected, correct
from rankdash.analysis.labelling.additive import Additive
from rankdash.analysis.labelling.draws import LabelPlan
from rankdash.analysis.labelling.kappa import cohen_kappa
from rankdash.metrics import Conventions, evaluate
from rankdash.metrics import judge as join
from rankdash.ranking.build import coded
from tests.analysis.labelling.robot import favouring, judge, one_grade_off, real_pool
from tests.sets import loaded

STRENGTHS = (0.8, 0.6, 0.4)
SETTINGS = (
    # Set, reranking, queries of people's, metric: in cmrc_zh each query has one relevant passage.
    ("medquad", "minilm", 20, "ndcg@10"),
    ("medquad", "minilm", 40, "ndcg@10"),
    ("cmrc_zh", "minilm", 60, "mrr@10"),
    ("helpcentre", "by_title", 30, "ndcg@10"),
)
# A judge grades a log of queries.
OTHERS = 1_000


@dataclass(frozen=True, eq=False)
class Judged:
    """A judge of a set: kind of its errors, kappa, and the changes of all Q queries by people's
    labels and by its grades; NaN where there is none."""

    kind: str
    kappa: float
    people: np.ndarray
    judge: np.ndarray

    @property
    def truth(self) -> float:
        return float(np.nanmean(self.people))


def judges(name: str, reranking: str, spec: str, strengths=STRENGTHS) -> Iterator[Judged]:
    """Judges with even errors and such that favour the challenger, and one that guesses."""
    found = loaded(name)
    run = next(run for run in found.runs if reranking in run.name)
    pool, labels = real_pool(name, reranking)
    top = float(labels.max())
    weights = LabelPlan.make(pool, Additive.of("dcg@10", top=top), seed=0).weights[0]
    conventions = Conventions()

    def changes(grades) -> np.ndarray:
        ids = (pool.query_ids[pool.query], pool.doc_ids)
        keyed = {
            key: coded(pd.Series(own)) for key, own in zip(("query_id", "doc_id"), ids, strict=True)
        }
        before, after = (
            evaluate(join(ranking, {**keyed, "label": grades}, conventions), [spec], conventions)
            for ranking in (found.dataset.candidates, run.ranking)
        )
        sides = (pd.Series(each.column(spec), each.query_ids) for each in (after, before))
        return next(sides).sub(next(sides)).reindex(pool.query_ids).to_numpy()

    people = changes(labels)
    for kind, wrong in (
        ("even errors", one_grade_off(labels, top)),
        ("favours the challenger", favouring(labels, weights)),
    ):
        for strength in strengths:
            grades = judge(labels, strength, top, wrong)
            yield Judged(kind, cohen_kappa(labels, grades).kappa, people, changes(grades))
    guessed = np.random.default_rng(1).permutation(labels)
    yield Judged("guesses", cohen_kappa(labels, guessed).kappa, people, changes(guessed))


def resampled(judged: Judged, n: int, others: int, resamples: int, seed=5) -> list[Corrected]:
    """Corrections of n queries of people's and others of the judge's, drawn with replacement."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(resamples):
        drawn = rng.integers(0, len(judged.people), n + others)
        own = np.arange(n + others) < n
        people = np.where(own, judged.people[drawn], np.nan)
        found.append(correct(people, judged.judge[drawn], labelled=own, level=0.95))
    return found


def held(found: list[Corrected], way: str, truth: float) -> float:
    """The share of resamples whose interval has the truth in it, by one of the three ways."""
    each = [getattr(correction, way) for correction in found]
    return float(np.mean([one.low <= truth <= one.high for one in each]))


def narrower(found: list[Corrected]) -> float:
    """The mean standard error of the corrected number over that of people alone."""
    errors = [(each.corrected.error, each.people.error) for each in found]
    own, alone = np.mean(errors, axis=0)
    return float(own / alone)
