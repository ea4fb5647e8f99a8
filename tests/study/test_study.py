"""One comparison: shown groups, marks and kept parts are the study's, whoever renders it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rankdash.analysis.labels.query_groups import DERIVED_SEGMENTS
from rankdash.charts import style
from rankdash.dataset import Dataset
from rankdash.loading import load
from rankdash.metrics import Conventions
from rankdash.ranking.ranking import Ranking
from rankdash.readers import sources_from_path
from rankdash.reporting import figures
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, systems_of

SAMPLE = Path(__file__).parents[2] / "assets" / "samples" / "helpcentre"


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load(sources_from_path(SAMPLE)).dataset


def turned(ranking: Ranking, by: int) -> Ranking:
    """Every list with its first `by` documents moved behind the others."""
    lists = []
    for query in ranking.query_ids:
        docs = list(ranking.documents_of(query)[0])
        order = [*docs[by:], *docs[:by]]
        lists.append((query, order, np.arange(len(order), 0, -1.0)))
    return Ranking.from_lists(lists)


def with_candidates(data: Dataset, candidates: Ranking) -> Dataset:
    return Dataset(data.name, data.queries, data.documents, data.qrels, candidates)


def study_of(data: Dataset, count: int, **changes: object) -> Study:
    runs = [
        run_from_ranking(f"by {n}", data.id, turned(data.candidates, n), f"{n}.trec")
        for n in range(1, count + 1)
    ]
    given = {"baseline": FIRST_STAGE, "challengers": tuple(run.id for run in runs)}
    return Study(data, systems_of(data, runs), **(given | changes))


def test_groups_that_rankdash_makes_stand_in_their_natural_order(data):
    study = study_of(data, 1)
    (challenger,) = study.challengers
    difficulty = figures.group(study, challenger, "difficulty")
    assert list(difficulty["value"]) == ["easy", "medium", "hard", "unknown"]
    lengths = list(figures.group(study, challenger, "query_length")["value"])
    natural = next(each.values for each in DERIVED_SEGMENTS if each.name == "query_length")
    assert lengths == [value for value in natural if value in lengths]
    assert len(lengths) > 2


def test_nine_systems_have_nine_marks_and_keep_them_in_any_company(data):
    study = study_of(data, 8)
    marks = style.marks(study.places, study.baseline)
    assert len({mark.colour for mark in marks.values()}) == 9
    assert len({mark.symbol for mark in marks.values()}) == 9
    *_others, last = study.challengers
    alone = Study(data, study.systems, FIRST_STAGE, (last,))
    assert style.marks(alone.places, alone.baseline)[last] == marks[last]


def test_queries_without_a_relevant_label_are_counted_apart(data):
    study = study_of(data, 1)
    (challenger,) = study.challengers
    reasons = study.reasons(challenger)["reason"]
    without = {"q61", "q62", "q199", "q204"}
    assert set(reasons.index[reasons == "no_relevant_label"]) == without
    left_out = study.comparison.left_out(challenger, study.spec)
    assert left_out == {"no_relevant": len(without)}


@pytest.mark.parametrize(
    ("longest", "cutoff", "ends"),
    [
        (7, 5, [1, 3, 5, 7]),
        (10, 10, [1, 3, 5, 10]),
        (11, 10, [1, 3, 5, 10, 11]),
        (7, 9, [1, 3, 5, 7]),
    ],
)
def test_a_metric_by_cutoff_ends_at_the_longest_list(data, longest, cutoff, ends):
    lists = [
        (query, data.candidates.documents_of(query)[0][:longest], np.arange(longest, 0, -1.0))
        for query in data.candidates.query_ids[:20]
    ]
    cut = with_candidates(data, Ranking.from_lists(lists))
    study = study_of(cut, 1, cutoff=cutoff)
    assert sorted(set(study.curves["k"])) == ends


def test_a_longer_challenger_lengthens_the_curve_of_all(data):
    whole, first = int(np.diff(data.candidates.offsets).max()), data.candidates.documents_of("q01")
    short = with_candidates(data, Ranking.from_lists([("q01", first[0][:1], [1.0])]))
    run = run_from_ranking("long", short.id, data.candidates, "long.trec")
    study = Study(short, systems_of(short, [run]), FIRST_STAGE, (run.id,))
    assert study.curves["k"].max() == min(whole, 100)


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"missing": "skip"},
        {"queries": "both"},
        {"no_relevant": "count"},
        {"mrr_none": "skip"},
    ],
    ids=str,
)
@pytest.mark.parametrize("metric", ["ndcg", "mrr"])
def test_reasons_sum_to_the_queries_that_the_mean_counts(data, metric, rules):
    full = turned(data.candidates, 1)
    lacking = full.without(["q01", "q02", "q61"])
    run = run_from_ranking("lacking", data.id, lacking, "lacking.trec")
    lost = run.queries["query_id"].isin(["q03", "q04"])
    states = run.queries.assign(state=np.where(lost, "failed", "done"))
    run = replace(run, ranking=lacking.without(["q03", "q04"]), queries=states)
    study = Study(
        data,
        systems_of(data, [run]),
        FIRST_STAGE,
        (run.id,),
        metric=metric,
        conventions=Conventions(**rules),
    )
    counts, row = study.reason_counts(run.id), study.comparison.row(run.id, study.spec)
    assert counts["queries"].sum() == row["paired"]
    assert counts["adds"].sum() == pytest.approx(row["delta"])
    assert "failed" not in counts.index
    assert ("missing" in counts.index) is not ("missing" in rules or "queries" in rules)
    reasons = study.reasons(run.id)["reason"]
    assert list(reasons[["q01", "q02", "q03", "q61"]]) == [
        *("missing", "missing", "failed", "no_relevant_label")
    ]


def test_a_pair_has_one_p_whoever_else_is_compared(data):
    several = study_of(data, 3)
    first, *_others = several.challengers
    alone = Study(data, several.systems, FIRST_STAGE, (first,))
    for column in ("p", "delta_low", "delta_high", "delta", "mean", "mean_low", "mean_high"):
        one, other = (each.comparison.row(first, each.spec)[column] for each in (alone, several))
        assert one == other


def test_parts_are_kept_by_the_cache_that_is_passed_in_and_shared(data):
    kept: dict[tuple[object, ...], object] = {}

    def cache(key, make):
        if key not in kept:
            kept[key] = make()
        return kept[key]

    one = study_of(data, 2, dataset_id=data.id, cache=cache)
    other = Study(data, one.systems, one.baseline, one.challengers, dataset_id=data.id, cache=cache)
    assert other.comparison is one.comparison
    threshold = Study(
        data,
        one.systems,
        one.baseline,
        one.challengers,
        conventions=type(one.conventions)(threshold=2.0),
        dataset_id=data.id,
        cache=cache,
    )
    assert threshold.comparison is not one.comparison
    assert threshold.judged(one.baseline) is one.judged(one.baseline)
