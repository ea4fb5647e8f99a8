"""One comparison: shown groups, marks and kept parts are the study's, whoever renders it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.labels.query_groups import DERIVED_SEGMENTS
from rankdash.charts import style
from rankdash.dataset import Dataset
from rankdash.errors import SpecError
from rankdash.loading import load
from rankdash.metrics import Conventions, evaluate
from rankdash.ranking.ranking import Ranking, Reading
from rankdash.readers import sources_from_path
from rankdash.reporting import figures
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.cache import Key
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, systems_of
from tests.study.test_queries import keeping, small

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


def test_the_curve_of_a_system_ends_at_its_own_longest_list(data):
    lists = [
        (query, docs[:10], scores[:10])
        for query in data.candidates.query_ids
        for docs, scores in [data.candidates.documents_of(query)]
    ]
    run = run_from_ranking("ten", data.id, Ranking.from_lists(lists), "ten.trec")
    study = Study(data, systems_of(data, [run]), FIRST_STAGE, (run.id,), cutoff=20)
    last = study.curves.groupby("system")["k"].max()
    assert last[run.id] == 10
    assert last[FIRST_STAGE] > 20
    assert figures.cutoffs(study) is not None


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
    cache = keeping()
    one = study_of(data, 2, dataset_id=data.id, cache=cache)
    other = Study(data, one.systems, one.baseline, one.challengers, dataset_id=data.id, cache=cache)
    made = {id(verdict) for verdict in one.comparison.verdicts.values()}
    assert {id(verdict) for verdict in other.comparison.verdicts.values()} == made
    threshold = replace(one, conventions=Conventions(threshold=2.0))
    assert threshold.judged(one.baseline) is one.judged(one.baseline)


def test_another_metric_of_those_that_are_shown_is_not_compared_again(data):
    kept: dict[Key, object] = {}
    cache = keeping(kept)
    one = study_of(data, 2, dataset_id=data.id, cache=cache)
    assert list(one.comparison.frame["metric"][::3])[:3] == ["ndcg@10", "mrr@10", "map@10"]
    before = set(kept)
    other = study_of(data, 2, metric="map", dataset_id=data.id, cache=cache)
    frame = other.comparison.frame
    assert set(kept) == before
    assert list(frame["metric"][::3])[:3] == ["map@10", "ndcg@10", "mrr@10"]
    assert list(frame["system"][:3]) == list(other.chosen)
    assert [each.spec for each in other.comparison.measures] == list(other.specs)
    by = ["metric", "system"]
    pd.testing.assert_frame_equal(
        frame.sort_values(by, ignore_index=True),
        one.comparison.frame.sort_values(by, ignore_index=True),
    )
    assert [spec for _system, spec in other.comparison.verdicts][:2] == ["map@10"] * 2
    found = other.evaluations[FIRST_STAGE]
    assert list(found.means()) == list(other.specs)
    alone = evaluate(other.judged(FIRST_STAGE), ["map@10"]).column("map@10")
    for each in (found, one.evaluations[FIRST_STAGE]):
        np.testing.assert_array_equal(each.column("map@10"), alone)


# What a study is of.

FOUR = {"q": "abcd", "r": "abcd"}
LABELS = {"q": {"a": 1.0}, "r": {"b": 1.0, "h": 2.0}}


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
    whole = replace(of, cutoff=None)
    assert whole.specs[:2] == ("recall", "ndcg")
    own = replace(of, others=("mrr@1", "recall@3", "mrr@1"))
    assert own.specs == ("recall@3", "mrr@1")
    assert list(own.titles) == ["recall@3", "mrr@1"]


def test_failures_are_those_that_failed_with_their_reason():
    of = small(FOUR, {"q": "abcd"}, labels=LABELS)
    run = of.run(of.challengers[0])
    rows = pd.DataFrame({"query_id": ["q", "r"], "state": ["failed", "skipped"],
                         "reason": ["time-out", ""]})  # fmt: skip
    run = replace(run, ranking=run.ranking.without(["q"]), queries=rows)
    of = replace(of, systems=systems_of(of.dataset, [run]))
    found = of.failures(run.id)
    assert found.to_dict("list") == {"query_id": ["q"], "reason": ["time-out"]}
    assert of.excluded(run.id) == {"q": "failed", "r": "skipped"}
    assert of.excluded(FIRST_STAGE) == {} and of.failures(FIRST_STAGE).empty
    assert list(of.ranked_labels(run.id).left_out) == ["q", "r"]


def test_a_curve_holds_the_cutoff_that_was_chosen_and_nothing_where_there_is_none():
    long = {"q": "abcdefgh"}
    of = small(long, long, labels={"q": {"a": 1.0}})
    cutoffs = {k: sorted(set(replace(of, cutoff=k).curves["k"])) for k in (4, 10, None)}
    assert cutoffs == {4: [1, 3, 4, 5, 8], 10: [1, 3, 5, 8], None: [1, 3, 5, 8]}
    assert replace(of, metric="r_precision").curves.empty
    assert set(of.curves["system"]) == {FIRST_STAGE, *of.challengers}


def test_pairs_are_of_any_metric_from_the_baseline_to_the_challenger():
    of = small(FOUR, {"q": "bacd", "r": "bacd"}, labels=LABELS, metric="mrr")
    (system,) = of.challengers
    pairs = of.pairs(system).set_index("query_id")
    assert pairs.loc["q", ["before", "after"]].tolist() == [1.0, 0.5]
    others = of.pairs(system, "hit@1").set_index("query_id")
    assert others.loc["q", ["before", "after", "delta"]].tolist() == [1.0, 0.0, -1.0]
    assert others.loc["r", "delta"] == 1.0


def test_reasons_follow_the_tie_band_the_direction_and_what_the_challenger_read():
    of = small(FOUR, {"q": "bacd", "r": "abcd"}, labels=LABELS, metric="mrr")
    (system,) = of.challengers

    def reasons(study: Study, challenger: str) -> dict[str, str]:
        found: dict[str, str] = study.reasons(challenger)["reason"].to_dict()
        return found

    assert reasons(of, system) == {"q": "unjudged_lifted", "r": "idle"}
    wide = replace(of, statistics=replace(of.statistics, tie_band=0.6))
    assert reasons(wide, system) == {"q": "already_ideal", "r": "idle"}
    turned = replace(of, baseline=system, challengers=(FIRST_STAGE,))
    assert reasons(turned, FIRST_STAGE) == {"q": "rescued", "r": "idle"}
    half = Reading(read=np.full(8, 5, dtype=np.int32), full=np.full(8, 10, dtype=np.int32))
    cut = replace(of, systems=systems_of(of.dataset, [replace(of.run(system), reading=half)]))
    assert reasons(cut, system) == {"q": "truncated", "r": "idle"}
    described = replace(of, metric="judged")
    assert described.reasons(system) is None and described.headroom(system) is None
    assert described.reason_counts(system) is None


def test_a_column_of_ones_own_takes_the_place_of_the_group_of_that_name():
    of = small(FOUR, {"q": "bacd", "r": "bacd"}, labels=LABELS, metric="mrr")
    data = of.dataset
    queries = data.queries.assign(difficulty=["hard", "easy"], kind=["x", "y"])
    named = type(data)(data.name, queries, data.documents, data.qrels, data.candidates)
    own = replace(of, dataset=named)
    assert own.segments == ("difficulty", "kind", "language", "query_length",
                            "relevant_documents")  # fmt: skip
    # In the order of the data where they are as large, and not in that of the group's own values.
    found = own.segment(of.challengers[0], "difficulty")
    assert found["segment"].tolist() == ["hard", "easy"]
    assert found["delta"].tolist() == [-0.5, 0.5]
    assert of.segments == ("language", "query_length", "relevant_documents", "difficulty")
    assert list(of.segment(of.challengers[0], "relevant_documents")["segment"]) == [
        "1 relevant", "2–3 relevant"
    ]  # fmt: skip


def test_how_difficult_a_query_is_follows_the_baseline_and_the_metric():
    """Of three queries the baseline finds one at once, one late and one in between."""
    first = {"q": "abcd", "r": "bacd", "s": "bcad"}
    turned = {"q": "bcda", "r": "bacd", "s": "abcd"}
    of = small(first, turned, labels={query: {"a": 1.0} for query in first}, metric="mrr")
    (system,) = of.challengers
    back = replace(of, baseline=system, challengers=(FIRST_STAGE,))
    forth, back_again = (
        study.segment(study.challengers[0], "difficulty").set_index("segment")["delta"].to_dict()
        for study in (of, back)
    )
    assert forth == pytest.approx({"easy": -3 / 4, "medium": 0.0, "hard": 2 / 3})
    assert back_again == pytest.approx({"easy": -2 / 3, "medium": 0.0, "hard": 3 / 4})


def test_what_labels_leave_open_is_of_every_system_and_of_both_sides():
    of = small({"q": "abcd"}, {"q": "efgh"}, labels={"q": {"a": 1.0, "b": 0.0}}, metric="mrr")
    (system,) = of.challengers
    assert len(of.unjudged) == 2
    change = of.unjudged_change(system).bounds()
    turned = replace(of, baseline=system, challengers=(FIRST_STAGE,))
    back = turned.unjudged_change(FIRST_STAGE).bounds()
    assert (change.lowest, change.highest) == pytest.approx((-1.0, 0.0))
    assert (back.lowest, back.highest) == pytest.approx((0.0, 1.0))


def test_corrected_labels_are_told_by_the_revision_behind_the_id():
    of = small(FOUR, FOUR, labels=LABELS, dataset_id="set")
    assert (of.corrected, of.stored_id) == (False, "set")
    corrected = replace(of, dataset_id="set+3")
    assert (corrected.corrected, corrected.stored_id) == (True, "set")


def test_places_are_those_among_all_systems_of_the_data_set():
    of = small(FOUR, FOUR, FOUR, labels=LABELS)
    *_first, last = of.challengers
    assert replace(of, challengers=(last,)).places == {FIRST_STAGE: 0, last: 2}


@pytest.mark.parametrize(("metric", "again"), [("ndcg", False), ("map", True)])
def test_what_no_threshold_changes_is_worked_out_once(data, metric, again):
    cache = keeping()
    rules = Conventions(threshold=2.0)
    one = study_of(data, 1, metric=metric, dataset_id=data.id, cache=cache)
    challenger = one.challengers[0]
    before = one.curves, one.reasons(challenger)
    other = replace(one, conventions=rules)
    after = other.curves, other.reasons(challenger)
    alone = study_of(data, 1, metric=metric, conventions=rules)
    for first, found, expected in zip(
        before, after, (alone.curves, alone.reasons(alone.challengers[0])), strict=True
    ):
        assert (found is not first) == again
        pd.testing.assert_frame_equal(found, expected)
