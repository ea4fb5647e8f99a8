"""One comparison: shown groups, marks and cached parts are the study's, whoever renders it."""

from dataclasses import replace

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
from rankdash.study import history
from rankdash.study.cache import Key
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, System, numbered, systems_of, unused
from tests.sets import SAMPLE
from tests.study.builders import changed, data_of, keeping, ranking, small, study_on, without

FOUR = {"q": "abcd", "r": "abcd"}
LABELS = {"q": {"a": 1.0}, "r": {"b": 1.0, "h": 2.0}}
SWAPPED = {"q": "bacd", "r": "bacd"}


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load(sources_from_path(SAMPLE)).dataset


def turned(first: Ranking, by: int) -> Ranking:
    """Every list with its first `by` documents moved behind the others."""
    lists = {query: list(first.documents_of(query)[0]) for query in first.query_ids}
    return ranking({query: [*docs[by:], *docs[:by]] for query, docs in lists.items()})


def shortened(first: Ranking, longest: int, queries: int | None = None) -> Ranking:
    return ranking({q: first.documents_of(q)[0][:longest] for q in first.query_ids[:queries]})


def study_of(data: Dataset, count: int, **given: object) -> Study:
    """The first stage against runs that turn its lists by one, two, … documents."""
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


def test_nine_systems_have_nine_marks_and_keep_them_in_any_company(data):
    study = study_of(data, 8)
    marks = style.marks(study.places, study.baseline)
    assert len({mark.colour for mark in marks.values()}) == 9
    assert len({mark.symbol for mark in marks.values()}) == 9
    *_others, last = study.challengers
    alone = replace(study, challengers=(last,))
    assert style.marks(alone.places, alone.baseline)[last] == marks[last]
    assert alone.places == {FIRST_STAGE: 0, last: 8}


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
    ("longest", "cutoff", "ends"),
    [
        (7, 5, [1, 3, 5, 7]),
        (7, 9, [1, 3, 5, 7]),
        (8, 4, [1, 3, 4, 5, 8]),
        (8, None, [1, 3, 5, 8]),
        (10, 10, [1, 3, 5, 10]),
        (11, 10, [1, 3, 5, 10, 11]),
    ],
)
def test_a_metric_by_cutoff_ends_at_the_longest_list(data, longest, cutoff, ends):
    study = study_of(changed(data, candidates=shortened(data.candidates, longest, 20)), 1,
                     cutoff=cutoff)  # fmt: skip
    assert sorted(set(study.curves["k"])) == ends
    assert set(study.curves["system"]) == {FIRST_STAGE, *study.challengers}
    assert replace(study, metric="r_precision").curves.empty


def test_the_curve_of_a_system_ends_at_its_own_longest_list(data):
    run = run_from_ranking("ten", data.id, shortened(data.candidates, 10), "ten.trec")
    study = study_on(data, run, cutoff=20)
    last = study.curves.groupby("system")["k"].max()
    assert last[run.id] == 10
    assert last[FIRST_STAGE] > 20
    assert figures.cutoffs(study) is not None
    # A longer challenger lengthens the curve of all.
    whole = int(np.diff(data.candidates.offsets).max())
    short = changed(data, candidates=shortened(data.candidates, 1, 1))
    study = study_on(short, run_from_ranking("long", short.id, data.candidates, "long.trec"))
    assert study.curves["k"].max() == min(whole, 100)


def test_pairs_are_of_any_metric_from_the_baseline_to_the_challenger():
    of = small(FOUR, SWAPPED, labels=LABELS, metric="mrr")
    (system,) = of.challengers
    pairs = of.pairs(system).set_index("query_id")
    assert pairs.loc["q", ["before", "after"]].tolist() == [1.0, 0.5]
    others = of.pairs(system, "hit@1").set_index("query_id")
    assert others.loc["q", ["before", "after", "delta"]].tolist() == [1.0, 0.0, -1.0]
    assert others.loc["r", "delta"] == 1.0


def test_a_pair_has_one_p_whoever_else_is_compared(data):
    several = study_of(data, 3)
    first, *_others = several.challengers
    alone = replace(several, challengers=(first,))
    for column in ("p", "delta_low", "delta_high", "delta", "mean", "mean_low", "mean_high"):
        one, other = (each.comparison.row(first, each.spec)[column] for each in (alone, several))
        assert one == other


# Failures, reasons, groups.


def test_failures_are_those_that_failed_with_their_reason():
    of = small(FOUR, {"q": "abcd"}, labels=LABELS)
    run = of.run(of.challengers[0])
    states = pd.DataFrame({"query_id": ["q", "r"], "state": ["failed", "skipped"],
                           "reason": ["time-out", ""]})  # fmt: skip
    run = replace(run, ranking=run.ranking.without(["q"]), queries=states)
    of = replace(of, systems=systems_of(of.dataset, [run]))
    assert of.failures(run.id).to_dict("list") == {"query_id": ["q"], "reason": ["time-out"]}
    assert of.excluded(run.id) == {"q": "failed", "r": "skipped"}
    assert of.excluded(FIRST_STAGE) == {} and of.failures(FIRST_STAGE).empty
    assert list(of.ranked_labels(run.id).left_out) == ["q", "r"]


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
    lacking = turned(data.candidates, 1).without(["q01", "q02", "q61"])
    run = run_from_ranking("lacking", data.id, lacking, "lacking.trec")
    run = without(run, ["q03", "q04"])
    study = study_on(data, run, metric=metric, conventions=Conventions(**rules))
    counts, row = study.reason_counts(run.id), study.comparison.row(run.id, study.spec)
    assert counts["queries"].sum() == row["paired"]
    assert counts["adds"].sum() == pytest.approx(row["delta"])
    assert "failed" not in counts.index
    assert ("missing" in counts.index) is not ("missing" in rules or "queries" in rules)
    reasons = study.reasons(run.id)["reason"]
    assert list(reasons[["q01", "q02", "q03", "q61"]]) == [
        *("missing", "missing", "failed", "no_relevant_label")
    ]


def test_queries_without_a_relevant_label_are_counted_apart(data):
    study = study_of(data, 1)
    (challenger,) = study.challengers
    reasons = study.reasons(challenger)["reason"]
    bare = {"q61", "q62", "q199", "q204"}
    assert set(reasons.index[reasons == "no_relevant_label"]) == bare
    assert study.comparison.left_out(challenger, study.spec) == {"no_relevant": len(bare)}


def test_reasons_follow_the_tie_band_the_direction_and_what_the_challenger_read():
    of = small(FOUR, {"q": "bacd", "r": "abcd"}, labels=LABELS, metric="mrr")
    (system,) = of.challengers
    half = Reading(read=np.full(8, 5, dtype=np.int32), full=np.full(8, 10, dtype=np.int32))
    cut = systems_of(of.dataset, [replace(of.run(system), reading=half)])
    for given, reason in (
        ({}, "unjudged_lifted"),
        ({"statistics": replace(of.statistics, tie_band=0.6)}, "already_ideal"),
        ({"baseline": system, "challengers": (FIRST_STAGE,)}, "rescued"),
        ({"systems": cut}, "truncated"),
    ):
        study = replace(of, **given)
        found = study.reasons(study.challengers[0])["reason"].to_dict()
        assert found == {"q": reason, "r": "idle"}
    described = replace(of, metric="judged")
    assert described.reasons(system) is described.headroom(system) is None
    assert described.reason_counts(system) is None


def test_groups_that_rankdash_makes_are_in_their_natural_order(data):
    study = study_of(data, 1)
    (challenger,) = study.challengers
    difficulty = figures.group(study, challenger, "difficulty")
    assert list(difficulty["value"]) == ["easy", "medium", "hard", "unknown"]
    lengths = list(figures.group(study, challenger, "query_length")["value"])
    natural = next(each.values for each in DERIVED_SEGMENTS if each.name == "query_length")
    assert lengths == [value for value in natural if value in lengths]
    assert len(lengths) > 2


def test_a_column_of_ones_own_takes_the_place_of_the_group_of_that_name():
    of = small(FOUR, SWAPPED, labels=LABELS, metric="mrr")
    queries = of.dataset.queries.assign(difficulty=["hard", "easy"], kind=["x", "y"])
    own = replace(of, dataset=changed(of.dataset, queries=queries))
    derived = ("language", "query_length", "relevant_documents")
    assert own.segments == ("difficulty", "kind", *derived)
    # In the order of the data where they are as large, and not in that of the group's own values.
    found = own.segment(of.challengers[0], "difficulty")
    assert found["segment"].tolist() == ["hard", "easy"]
    assert found["delta"].tolist() == [-0.5, 0.5]
    assert of.segments == (*derived, "difficulty")
    assert list(of.segment(of.challengers[0], "relevant_documents")["segment"]) == [
        "1 relevant", "2–3 relevant"
    ]  # fmt: skip


def test_how_difficult_a_query_is_follows_the_baseline_and_the_metric():
    """Of three queries the baseline finds one at once, one late and one in between."""
    first = {"q": "abcd", "r": "bacd", "s": "bcad"}
    after = {"q": "bcda", "r": "bacd", "s": "abcd"}
    of = small(first, after, labels={query: {"a": 1.0} for query in first}, metric="mrr")
    back = replace(of, baseline=of.challengers[0], challengers=(FIRST_STAGE,))
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
    back = replace(of, baseline=system, challengers=(FIRST_STAGE,))
    back_again = back.unjudged_change(FIRST_STAGE).bounds()
    assert (change.lowest, change.highest) == pytest.approx((-1.0, 0.0))
    assert (back_again.lowest, back_again.highest) == pytest.approx((0.0, 1.0))


# What is cached.


def test_corrected_labels_are_told_by_the_revision_behind_the_id():
    of = small(FOUR, FOUR, labels=LABELS, dataset_id="set")
    assert (of.corrected, of.stored_id) == (False, "set")
    corrected = replace(of, dataset_id="set+3")
    assert (corrected.corrected, corrected.stored_id) == (True, "set")


def test_parts_are_kept_by_the_cache_that_is_passed_in_and_shared(data):
    one = study_of(data, 2, dataset_id=data.id, cache=keeping())
    other = replace(one)
    assert other.comparison is not one.comparison
    made = {id(verdict) for verdict in one.comparison.verdicts.values()}
    assert {id(verdict) for verdict in other.comparison.verdicts.values()} == made
    threshold = replace(one, conventions=Conventions(threshold=2.0))
    assert threshold.judged(one.baseline) is one.judged(one.baseline)


def test_another_metric_of_those_that_are_shown_is_not_compared_again(data):
    kept: dict[Key, object] = {}
    one = study_of(data, 2, dataset_id=data.id, cache=keeping(kept))
    assert list(one.comparison.frame["metric"][::3])[:3] == ["ndcg@10", "mrr@10", "map@10"]
    before = set(kept)
    other = replace(one, metric="map")
    frame = other.comparison.frame
    assert set(kept) == before
    assert list(frame["metric"][::3])[:3] == ["map@10", "ndcg@10", "mrr@10"]
    assert list(frame["system"][:3]) == list(other.chosen)
    assert [each.spec for each in other.comparison.measures] == list(other.specs)
    ours, theirs = (
        each.sort_values(["metric", "system"], ignore_index=True)
        for each in (frame, one.comparison.frame)
    )
    pd.testing.assert_frame_equal(ours, theirs)
    assert [spec for _system, spec in other.comparison.verdicts][:2] == ["map@10"] * 2
    found = other.evaluations[FIRST_STAGE]
    assert list(found.means()) == list(other.specs)
    alone = evaluate(other.judged(FIRST_STAGE), ["map@10"]).column("map@10")
    for each in (found, one.evaluations[FIRST_STAGE]):
        np.testing.assert_array_equal(each.column("map@10"), alone)


@pytest.mark.parametrize(("metric", "again"), [("ndcg", False), ("map", True)])
def test_what_no_threshold_changes_is_worked_out_once(data, metric, again):
    one = study_of(data, 1, metric=metric, dataset_id=data.id, cache=keeping())
    other = replace(one, conventions=Conventions(threshold=2.0))
    alone = replace(other, cache=None)
    (challenger,) = one.challengers
    first, found, expected = (
        (each.curves, each.reasons(challenger)) for each in (one, other, alone)
    )
    for part in range(2):
        assert (found[part] is not first[part]) == again
        pd.testing.assert_frame_equal(found[part], expected[part])


# Runs over time.

FIRST = dict.fromkeys("pqrstu", "abc")
RELEVANT = {query: {"b": 1.0} for query in FIRST}


@pytest.mark.parametrize("rules", [{}, {"missing": "skip"}], ids=str)
def test_a_run_that_is_not_chosen_has_the_same_values_and_its_failures_are_no_zeros(rules):
    better = {query: "bac" for query in FIRST if query not in "pq"}
    worse = {query: "acb" for query in FIRST if query not in "pr"}
    of = small(FIRST, better, worse, labels=RELEVANT, failed=("p",), metric="mrr",
               conventions=Conventions(**rules))  # fmt: skip
    alone = replace(of, challengers=of.challengers[:1])
    for system in of.challengers:
        chosen, other = history.evaluation(of, system), history.evaluation(alone, system)
        np.testing.assert_array_equal(chosen.values, other.values)
        values = dict(zip(other.query_ids, other.column(of.spec), strict=True))
        assert np.isnan(values["p"])
        left_out = "q" if system == of.challengers[0] else "r"
        assert values[left_out] == 0.0 or ("missing" in rules and np.isnan(values[left_out]))


def test_a_line_follows_the_rules_of_the_study_also_where_parts_are_shared():
    better = dict.fromkeys(FIRST, "bac") | {"u": "abc"}
    of = small(FIRST, better, labels=RELEVANT, metric="mrr", cache=keeping())
    systems = (FIRST_STAGE, *of.challengers)

    def trend(study: Study) -> pd.DataFrame:
        return history.trend(study, systems, every=True).frame.set_index("system")

    rows = trend(of)
    assert rows.loc[of.challengers[0], "delta"] == pytest.approx(5 / 12)
    assert rows.loc[FIRST_STAGE, "mean"] == 0.5
    back = replace(of, baseline=of.challengers[0], challengers=(FIRST_STAGE,))
    assert trend(back).loc[FIRST_STAGE, "delta"] == pytest.approx(-5 / 12)
    narrow = trend(replace(of, statistics=replace(of.statistics, level=0.5)))
    width = [
        frame.loc[of.challengers[0], "delta_high"] - frame.loc[of.challengers[0], "delta_low"]
        for frame in (narrow, rows)
    ]
    assert 0 < width[0] < width[1]
    assert trend(replace(of, cutoff=1)).loc[FIRST_STAGE, "mean"] == 0.0
