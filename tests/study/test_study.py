"""Names of systems, metrics and cutoffs, groups, and the cache, in cases that `made_up` of
`test_sample` lacks."""

from dataclasses import replace

import pandas as pd
import pytest

from rankdash.core.base.errors import SpecError
from rankdash.core.data.dataset import Dataset
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.study.cache import Key
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, System, numbered, systems_of, unused
from rankdash.features.overview import charts as overview_charts
from tests.study.builders import changed, data_of, keeping, lists_of, ranking, small, study_on
from tests.study.parts import study as made_up

FOUR = {"q": "abcd", "r": "abcd"}
LABELS = {"q": {"a": 1.0}, "r": {"b": 1.0, "h": 2.0}}
SWAPPED = {"q": "bacd", "r": "bacd"}


def turned(first: Ranking, by: int) -> Ranking:
    """Return every list with its first `by` documents moved behind the others."""
    return ranking({query: [*docs[by:], *docs[:by]] for query, docs in lists_of(first).items()})


def study_of(data: Dataset, count: int, **given: object) -> Study:
    """Return the first stage and runs that turn its lists by one, two, … documents."""
    runs = [
        run_from_ranking(f"by {n}", data.id, turned(data.candidates, n), f"{n}.trec")
        for n in range(1, count + 1)
    ]
    return study_on(data, *runs, **given)


# Systems and their names.


@pytest.mark.parametrize(
    ("taken", "free"),
    [
        ([], "BM25"),
        (["bm25"], "BM25"),
        (["BM25"], "BM25 (2)"),
        (["BM25", "BM25 (2)"], "BM25 (3)"),
        (["BM25", "BM25 (3)"], "BM25 (2)"),
        (["BM25 (2)"], "BM25"),
    ],
)
def test_a_name_that_another_has_gets_the_first_free_number(taken, free):
    assert unused("BM25", taken) == free


def test_systems_of_one_name_are_told_apart_and_keep_their_places():
    given = [System(str(place), name) for place, name in enumerate(["x", "y", "x", "x (2)", "x"])]
    found = numbered(given)
    assert [each.name for each in found.values()] == ["x", "y", "x (2)", "x (2) (2)", "x (3)"]
    assert [each.place for each in found.values()] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("first_stage", "given", "name"),
    [
        ("given", None, "First stage"),
        ("bm25", None, "First stage (BM25, listed documents only)"),
        ("corpus-bm25", None, "First stage (BM25)"),
        ("rows", None, "First stage (order of the rows)"),
        ("corpus-fused", None, "First stage (BM25 + bi-encoder)"),
        ("bm25", "Our search", "Our search"),
        ("given", "Our search", "Our search"),
    ],
)
def test_the_first_stage_is_called_what_the_file_says_or_how_it_was_made(first_stage, given, name):
    data = changed(data_of({"q": "ab"}, {"q": {"a": 1.0}}), first_stage=first_stage)
    run = run_from_ranking(name, data.id, data.candidates, "run.trec")
    found = systems_of(data, [run], given)
    assert [(each.id, each.name, each.place) for each in found.values()] == [
        (FIRST_STAGE, name, 0),
        (run.id, f"{name} (2)", 1),
    ]
    assert found[FIRST_STAGE].load is None
    assert found[run.id].load() is run


def test_a_system_is_known_and_named_once():
    of = small(FOUR, FOUR, labels=LABELS)
    for wrong in ({"baseline": "nobody"}, {"challengers": ("nobody",)}):
        with pytest.raises(SpecError, match="nobody"):
            replace(of, **wrong)
    for wrong in ((FIRST_STAGE,), (*of.challengers, *of.challengers)):
        with pytest.raises(SpecError, match="itself"):
            replace(of, challengers=wrong)
    with pytest.raises(SpecError):
        replace(of, metric="nonsense")


# Metrics and cutoffs.


@pytest.mark.parametrize(
    ("spec", "metric", "cutoff"),
    [("ndcg@10", "ndcg", 10), ("ndcg", "ndcg", None), ("rbp", "rbp", None), ("hit@1", "hit", 1)],
)
def test_a_spec_is_a_metric_and_its_cutoff(spec, metric, cutoff):
    of = small(FOUR, FOUR, labels=LABELS)
    found = Study.on(spec, dataset=of.dataset, systems=of.systems, baseline=FIRST_STAGE,
                     challengers=of.challengers)  # fmt: skip
    assert (found.spec, found.cutoff) == (spec, cutoff)
    assert found.metric.partition("(")[0] == metric


def test_other_metrics_have_the_cutoff_as_far_as_they_have_one_and_the_chosen_is_first():
    of = small(FOUR, FOUR, labels=LABELS, metric="recall", cutoff=3)
    assert of.specs == (
        *("recall@3", "ndcg@3", "mrr@3", "map@3", "precision@3", "hit@3", "judged@3"),
    )
    assert of.spec_of("r_precision") == "r_precision"
    assert replace(of, cutoff=None).specs[:2] == ("recall", "ndcg")
    own = replace(of, others=("mrr@1", "recall@3", "mrr@1"))
    assert own.specs == tuple(own.titles) == ("recall@3", "mrr@1")


@pytest.mark.parametrize(
    ("first", "own", "cutoff", "ends"),
    [
        (7, 7, 9, ([1, 3, 5, 7], [1, 3, 5, 7])),
        (8, 8, 4, ([1, 3, 4, 5, 8], [1, 3, 4, 5, 8])),
        (8, 8, None, ([1, 3, 5, 8], [1, 3, 5, 8])),
        (11, 10, 10, ([1, 3, 5, 10, 11], [1, 3, 5, 10])),
        (30, 10, 20, ([1, 3, 5, 10, 20, 30], [1, 3, 5, 10])),
        # The curve of the first stage ends at k = 1, the curve of the challenger at 30.
        (1, 30, 10, ([1], [1, 3, 5, 10, 20, 30])),
    ],
)
def test_a_metric_by_cutoff_ends_at_the_longest_list_of_each_system(first, own, cutoff, ends):
    docs = [f"d{n:02}" for n in range(30)]
    data = data_of({"q": docs[:first]}, {"q": {"d00": 1.0}}, docs)
    run = run_from_ranking("run", data.id, ranking({"q": docs[:own]}), "run.trec")
    of = study_on(data, run, cutoff=cutoff)
    curves = of.curves.groupby("system")["k"].agg(list)
    assert (curves[FIRST_STAGE], curves[run.id]) == ends
    assert overview_charts.cutoffs(of) is not None
    assert replace(of, metric="r_precision").curves.empty


# Groups of queries.


def test_a_column_of_ones_own_takes_the_place_of_the_group_of_that_name():
    of = small(FOUR, SWAPPED, labels=LABELS, metric="mrr")
    queries = of.dataset.queries.assign(difficulty=["hard", "easy"], kind=["x", "y"])
    own = replace(of, dataset=changed(of.dataset, queries=queries))
    derived = ("language", "query_length", "relevant_documents")
    assert own.segments == ("difficulty", "kind", *derived)
    # Groups of equal size are in the order of the data, not of their usual values.
    found = own.segment(of.challengers[0], "difficulty")
    assert found["segment"].tolist() == ["hard", "easy"]
    assert found["delta"].tolist() == [-0.5, 0.5]
    assert of.segments == (*derived, "difficulty")
    assert list(of.segment(of.challengers[0], "relevant_documents")["segment"]) == [
        "1 relevant", "2–3 relevant"
    ]  # fmt: skip


# The cache.


def test_parts_are_kept_by_the_cache_that_is_passed_in_and_shared():
    one = replace(made_up(), cache=keeping())
    other = replace(one)
    assert other.comparison is not one.comparison
    made = {id(verdict) for verdict in one.comparison.verdicts.values()}
    assert {id(verdict) for verdict in other.comparison.verdicts.values()} == made
    threshold = replace(one, conventions=Conventions(threshold=2.0))
    assert threshold.judged(one.baseline) is one.judged(one.baseline)


def test_another_metric_of_those_that_are_shown_is_not_compared_again():
    kept: dict[Key, object] = {}
    one = replace(made_up(), others=None, cache=keeping(kept))
    frame, before = one.comparison.frame, set(kept)
    other = replace(one, metric="map")
    assert [each.spec for each in other.comparison.measures] == list(other.specs)
    assert list(other.comparison.frame["system"][:3]) == list(other.chosen)
    assert other.comparison.frame["metric"].unique().tolist() == list(other.specs)
    assert list(other.evaluations[FIRST_STAGE].means()) == list(other.specs)
    assert set(kept) == before
    ours, theirs = (
        each.sort_values(["metric", "system"], ignore_index=True)
        for each in (other.comparison.frame, frame)
    )
    pd.testing.assert_frame_equal(ours, theirs)


@pytest.mark.parametrize(("metric", "again"), [("ndcg", False), ("map", True)])
def test_what_no_threshold_changes_is_computed_once(metric, again):
    one = replace(made_up(), metric=metric, cache=keeping())
    other = replace(one, conventions=Conventions(threshold=2.0))
    (challenger, _) = one.challengers
    assert (other.curves is not one.curves) == again
    assert (other.reasons(challenger) is not one.reasons(challenger)) == again
