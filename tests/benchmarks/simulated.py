"""Judges with known errors on real labels, and the coverage of intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rankdash.core.data.ranking import coded
from rankdash.core.metrics import Conventions, evaluate
from rankdash.core.metrics import judge as join
from rankdash.core.sampling.bias_corrected import Corrected, correct, expected_changes
from rankdash.core.sampling.label_plan import Additive, LabelPlan, LabelPool
from rankdash.core.sampling.rater_agreement import cohen_kappa
from tests.analysis.labelling.pools import real_pool
from tests.benchmarks.robot import failing, favouring, judge, one_grade_off
from tests.sets import loaded

STRENGTHS = (0.8, 0.6, 0.4)
SETTINGS = (
    # Set, reranking, number of queries with human labels.
    ("medquad", "minilm", 20),
    ("medquad", "minilm", 40),
    ("cmrc_zh", "minilm", 60),
    ("helpcentre", "by_title", 30),
)
METRICS = ("ndcg@10", "mrr@10", "dcg@10")
# Number of queries of a log, graded by a judge.
OTHERS = 1_000


@dataclass(frozen=True, eq=False)
class Lists:
    """Q queries of a pool, at most P pairs in each, and a metric at 10 that is fast enough for
    thousands of samples.

    at: (Q, P) the row of each pair in the pool, -1 if a query has fewer.
    """

    metric: str
    at: np.ndarray
    pool: LabelPool

    @classmethod
    def of(cls, pool: LabelPool, spec: str) -> "Lists":
        counts = np.bincount(pool.query, minlength=len(pool.query_ids))
        at = np.full((len(counts), counts.max()), -1)
        at[np.arange(at.shape[1]) < counts[:, None]] = np.arange(len(pool))
        return cls(spec.removesuffix("@10"), at, pool)

    def pairs(self, queries: np.ndarray) -> np.ndarray:
        """Return the rows of some queries in the pool, one query after the other."""
        at = self.at[queries]
        return at[at >= 0]

    def pool_of(self, queries: np.ndarray) -> LabelPool:
        """Return the pool of some queries; a query that occurs twice is two separate queries."""
        rows = self.pairs(queries)
        return LabelPool(
            self.pool.systems,
            self.pool.query_ids[queries],
            np.nonzero(self.at[queries] >= 0)[0],
            self.pool.doc_ids[rows],
            self.pool.ranks[:, rows],
        )

    def changes(self, queries: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return (len(queries),) the changes of some queries by the labels of all their pairs, one
        query after the other; NaN without a relevant document."""
        at = self.at[queries]
        grid = np.zeros(at.shape)
        grid[at >= 0] = labels
        before, after = (np.where(at >= 0, side[at], np.inf) for side in self.pool.ranks)
        if self.metric == "mrr":
            first = [np.where(grid >= 1, 1 / side, 0).max(axis=1) for side in (before, after)]
            found = first[1] - first[0]
        else:
            worth = [np.where(side <= 10, 1 / np.log2(side + 1), 0) for side in (before, after)]
            found = (grid * (worth[1] - worth[0])).sum(axis=1)
        if self.metric == "ndcg":
            best = -np.sort(-grid, axis=1)[:, :10]
            ideal = (best / np.log2(np.arange(2, 2 + best.shape[1]))).sum(axis=1)
            found = found / np.where(ideal > 0, ideal, 1)
        return np.where((grid >= 1).any(axis=1), found, np.nan)


@dataclass(frozen=True, eq=False)
class Judged:
    """A judge of a set: kind of its errors, kappa, labels and grades of all N pairs, and the
    changes of all Q queries by human labels and by its grades; NaN for a query without a change."""

    kind: str
    kappa: float
    labels: np.ndarray
    grades: np.ndarray
    people: np.ndarray
    judge: np.ndarray
    lists: Lists

    @property
    def truth(self) -> float:
        return float(np.nanmean(self.people))

    def expected(self, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the expected changes of the queries with human labels, each repetition as a
        separate query; and (Q,) of all queries as others."""
        queries = np.concatenate([own, np.arange(len(self.people))])
        rows, pool = self.lists.pairs(queries), self.lists.pool_of(queries)
        found = expected_changes(
            pool,
            self.grades[rows],
            np.where(pool.query < len(own), self.labels[rows], np.nan),
            lambda labels: self.lists.changes(queries, labels),
        )
        return found[: len(own)], found[len(own) :]


def judges(name: str, reranking: str, spec: str, strengths=STRENGTHS) -> Iterator[Judged]:
    """Yield judges with even errors, one of which fails on a twentieth of the pairs, judges that
    favour the challenger, and one with random grades."""
    found = loaded(name)
    run = next(run for run in found.runs if reranking in run.name)
    pool, labels = real_pool(name, reranking)
    top = float(labels.max())
    weights = LabelPlan.make(pool, Additive.of("dcg@10", top=top), seed=0).weights[0]
    conventions = Conventions()
    lists = Lists.of(pool, spec)

    def changes(grades) -> np.ndarray:
        graded = ~np.isnan(grades)
        ids = (pool.query_ids[pool.query][graded], pool.doc_ids[graded])
        keyed = {
            key: coded(pd.Series(own)) for key, own in zip(("query_id", "doc_id"), ids, strict=True)
        }
        before, after = (
            evaluate(
                join(ranking, {**keyed, "label": grades[graded]}, conventions), [spec], conventions
            )
            for ranking in (found.dataset.candidates, run.ranking)
        )
        sides = (pd.Series(each.column(spec), each.query_ids) for each in (after, before))
        return next(sides).sub(next(sides)).reindex(pool.query_ids).to_numpy()

    people = changes(labels)

    def judged(kind: str, grades) -> Judged:
        graded = ~np.isnan(grades)
        kappa = cohen_kappa(labels[graded], grades[graded]).kappa
        return Judged(kind, kappa, labels, grades, people, changes(grades), lists)

    for kind, wrong in (
        ("even errors", one_grade_off(labels, top)),
        ("favours the challenger", favouring(labels, weights)),
    ):
        for strength in strengths:
            yield judged(kind, judge(labels, strength, top, wrong))
    even = judge(labels, strengths[0], top, one_grade_off(labels, top))
    yield judged("fails on 5%", failing(even))
    yield judged("guesses", np.random.default_rng(1).permutation(labels))


def resampled(
    judged: Judged, n: int, others: Sequence[int], resamples: int, seed=5
) -> list[list[Corrected]]:
    """Return corrections of n queries with human labels and others of the judge's, sampled with
    replacement: for each number of others, with the same n queries."""
    rng = np.random.default_rng(seed)
    found = [[] for _ in others]
    for _ in range(resamples):
        drawn = rng.integers(0, len(judged.people), n + max(others))
        labelled, rest = judged.expected(drawn[:n])
        for some, count in zip(found, others, strict=True):
            queries = drawn[: n + count]
            is_own = np.arange(len(queries)) < n
            some.append(
                correct(
                    np.where(is_own, judged.people[queries], np.nan),
                    judged.judge[queries],
                    expected=np.concatenate([labelled, rest[queries[n:]]]),
                    labelled=is_own,
                    level=0.95,
                )
            )
    return found


def held(found: list[Corrected], way: str, truth: float) -> float:
    """Return the share of resamples with the truth in the interval, by one of the three methods."""
    each = [getattr(correction, way) for correction in found]
    return float(np.mean([one.low <= truth <= one.high for one in each]))


def narrower(found: list[Corrected]) -> float:
    """Return the mean ratio of the corrected standard error to the one by human labels only."""
    errors = [(each.corrected.error, each.people.error) for each in found]
    own, alone = np.mean(errors, axis=0)
    return float(own / alone)
