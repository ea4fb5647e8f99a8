"""A comparison says what its numbers allow, joined by query id, and never a NaN in a sentence."""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rankdash.analysis.statistics import inference
from rankdash.analysis.statistics.alignment import align
from rankdash.analysis.statistics.comparison import (
    STATISTICS_SETTINGS,
    Comparison,
    StatisticsSettings,
    compare,
    mean_intervals,
)
from rankdash.analysis.statistics.pairs import paired
from rankdash.analysis.statistics.settings import RULE_OF_THUMB
from rankdash.analysis.statistics.verdict import TITLES
from rankdash.errors import SpecError
from rankdash.metrics import Conventions, Evaluation, evaluate, judge
from rankdash.ranking.ranking import Ranking
from rankdash.rerankers.kinds.bm25 import order_candidates
from tests.sets import SETS, loaded

QUICK = StatisticsSettings(resamples=1000)
NUMBERS_OF_A_TEST = ["delta_low", "delta_high", "p", "p_corrected"]


def qrels(queries: int) -> pd.DataFrame:
    return pd.DataFrame(
        {"query_id": [f"q{i}" for i in range(queries)], "doc_id": "good", "label": 1.0}
    )


def ranked(places: Mapping[str, int]) -> Ranking:
    """Query → the rank of its one relevant document."""
    return Ranking.from_lists(
        (
            query,
            [*(f"bad{i}" for i in range(place - 1)), "good"],
            [float(-i) for i in range(place)],
        )
        for query, place in places.items()
    )


def evaluated(
    places: Mapping[str, int],
    *specs: str,
    labelled: int | None = None,
    failed: tuple[str, ...] = (),
    **conventions,
) -> Evaluation:
    rules = Conventions(**conventions)
    labels = qrels(len(places) if labelled is None else labelled)
    judged = judge(ranked(places), labels, rules)
    return evaluate(judged, specs or ("mrr",), rules, dict.fromkeys(failed, "failed"))


def places(values: list[int] | np.ndarray, start: int = 0) -> dict[str, int]:
    return {f"q{i}": int(value) for i, value in enumerate(values, start)}


def random_places(seed: int, queries: int = 60) -> dict[str, int]:
    return places(np.random.default_rng(seed).integers(1, 9, queries))


def no_nan_is_told(comparison: Comparison) -> None:
    for system in comparison.challengers:
        for measure in comparison.measures:
            sentence = comparison.verdict(system, measure).sentence
            assert "nan" not in sentence.lower().split()
            assert "{" not in sentence


def test_the_frame_agrees_with_numpy_and_scipy_on_the_same_pairs():
    before, after = evaluated(random_places(1)), evaluated(random_places(2))
    row = compare({"a": before, "b": after}, "a").row("b", "mrr")
    d = paired(before, after, "mrr")["delta"].to_numpy()
    assert row["delta"] == pytest.approx(d.mean())
    assert row["effect_size"] == pytest.approx(d.mean() / d.std(ddof=1))
    assert [row["helped"], row["same"], row["hurt"]] == [
        (d > 0.005).sum(),
        (abs(d) <= 0.005).sum(),
        (d < -0.005).sum(),
    ]
    reference = stats.bootstrap((d,), np.mean, n_resamples=20_000, rng=1).confidence_interval
    assert row["delta_low"] == pytest.approx(reference.low, abs=0.006)
    assert row["delta_high"] == pytest.approx(reference.high, abs=0.006)


def test_the_relative_change_is_of_the_baseline_over_the_pairs():
    before, after = random_places(1), random_places(2)
    made = {"a": evaluated(before), "b": evaluated(after, failed=("q0", "q1"))}
    row = compare(made, "a", QUICK).row("b", "mrr")
    kept = [query for query in before if query not in ("q0", "q1")]
    was, now = (np.mean([1 / side[query] for query in kept]) for side in (before, after))
    assert row["relative_delta"] == pytest.approx((now - was) / was)


def test_trap_11_each_query_is_paired_with_its_own_value_and_not_with_one_topic():
    """A test broadcast against a single topic sees only the spread between queries."""
    before = random_places(3)
    after = {query: max(1, place - 1) for query, place in before.items()}
    made = {"a": evaluated(before), "b": evaluated(after)}
    row = compare(made, "a", StatisticsSettings(test="t")).row("b", "mrr")
    own = [evaluation.column("mrr") for evaluation in made.values()]
    assert row["p"] == pytest.approx(stats.ttest_rel(own[1], own[0]).pvalue)
    assert row["p"] != pytest.approx(stats.ttest_1samp(own[1] - own[0][0], 0).pvalue)


def test_trap_12_systems_are_joined_by_query_id_and_not_by_position():
    before = random_places(4)
    after = {query: before[query] for query in reversed(before)}
    rules = Conventions()
    backwards = evaluate(
        judge(ranked(after), qrels(60).iloc[::-1].reset_index(drop=True), rules), ("mrr",), rules
    )
    found = compare({"a": evaluated(before), "b": backwards}, "a", QUICK)
    assert found.row("b", "mrr")["delta"] == 0
    assert found.verdict("b", "mrr").kind == "identical"


def test_a_failed_query_leaves_both_sides_and_the_count_is_given():
    before, after = random_places(5), random_places(6)
    made = {"a": evaluated(before), "b": evaluated(after, failed=("q1", "q2", "q3"))}
    found = compare(made, "a", QUICK)
    row = found.row("b", "mrr")
    assert [row["n"], row["paired"], row["left_out"]] == [57, 57, 3]
    assert found.left_out("b", "mrr") == {"failed": 3}
    kept = [1 / place for query, place in before.items() if query not in ("q1", "q2", "q3")]
    assert row["before"] == pytest.approx(np.mean(kept))
    assert found.row("a", "mrr")["n"] == 60


def test_what_failed_in_one_system_changes_nothing_between_two_others():
    made = {"a": evaluated(random_places(7)), "b": evaluated(random_places(8))}
    alone = compare(made, "a", StatisticsSettings(correction="none")).row("b", "mrr")
    broken = evaluated(random_places(9), failed=("q0", "q5"))
    beside = compare(made | {"c": broken}, "a", StatisticsSettings(correction="none"))
    pd.testing.assert_series_equal(
        alone.drop("system"), beside.row("b", "mrr").drop("system"), check_names=False, rtol=1e-6
    )


def test_counts_agree_with_the_pairs_of_two_systems():
    made = {"a": evaluated(random_places(1)), "b": evaluated(random_places(2), failed=("q9",))}
    states = paired(made["a"], made["b"], "mrr")["state"].value_counts().to_dict()
    assert states.pop("paired") == compare(made, "a", QUICK).row("b", "mrr")["paired"]
    assert compare(made, "a", QUICK).left_out("b", "mrr") == states


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        ([1] * 60, "better"),
        ([4] * 30 + [3] * 30, "small"),
        ([3, 6] * 30, "unproven"),
        ([9] * 60, "worse"),
        ([4] * 60, "identical"),
    ],
)
def test_the_four_answers_and_no_change_at_all(after, kind):
    made = {"a": evaluated(places([4] * 60)), "b": evaluated(places(after))}
    settings = StatisticsSettings(resamples=2000, worthwhile=0.2)
    found = compare(made, "a", settings)
    assert found.verdict("b", "mrr").kind == kind
    assert found.row("b", "mrr")["verdict"] == kind
    no_nan_is_told(found)


def test_changes_that_all_lie_within_the_tie_band_are_no_difference():
    made = {"a": evaluated(places([40] * 60)), "b": evaluated(places([38] * 60))}
    found = compare(made, "a", QUICK)
    row = found.row("b", "mrr")
    assert [row["helped"], row["same"], row["hurt"]] == [0, 60, 0]
    assert "none of the 60 queries changes by more than 0.005" in (
        found.verdict("b", "mrr").sentence
    )
    strict = compare(made, "a", StatisticsSettings(resamples=1000, tie_band=0, worthwhile=0.2))
    assert strict.verdict("b", "mrr").kind == "small"


def test_fewer_than_six_pairs_give_no_interval_and_say_so():
    found = compare({"a": evaluated(places([2] * 5)), "b": evaluated(places([1] * 5))}, "a")
    row = found.row("b", "mrr")
    assert row["delta"] == 0.5
    assert row[NUMBERS_OF_A_TEST].isna().all()
    assert found.verdict("b", "mrr").kind == "too_few"
    assert "5, where at least 6 are needed" in found.verdict("b", "mrr").sentence


def test_six_pairs_are_enough_for_every_test():
    made = {"a": evaluated(places([2, 3, 4, 5, 6, 7])), "b": evaluated(places([1, 2, 3, 4, 5, 6]))}
    for test in ("sign-flip", "t", "wilcoxon"):
        row = compare(made, "a", StatisticsSettings(test=test, resamples=1000)).row("b", "mrr")
        assert 0 < row["p"] < 0.15
        assert row["mean_low"] < row["mean"] < row["mean_high"]
        assert row["delta_low"] < row["delta"] < row["delta_high"]


def test_without_a_single_label_the_reason_is_told():
    made = {name: evaluated(places([1] * 9), labelled=0) for name in "ab"}
    found = compare(made, "a")
    assert found.verdict("b", "mrr").kind == "no_values"
    assert found.row("b", "mrr")["paired"] == 0
    no_nan_is_told(found)


def test_without_one_relevant_document_the_reason_is_told():
    labels = qrels(9).assign(label=0.0)
    rules = Conventions()
    judged = judge(ranked(places([1] * 9)), labels, rules)
    made = {name: evaluate(judged, ("mrr", "ndcg@10"), rules) for name in "ab"}
    found = compare(made, "a")
    assert found.left_out("b", "mrr") == {"no_relevant": 9}
    assert found.verdict("b", "mrr").kind == "no_values"
    no_nan_is_told(found)


@pytest.mark.parametrize("missing", ["zero", "skip"])
@pytest.mark.parametrize("queries", ["qrels", "both"])
def test_a_challenger_with_other_queries_is_not_called_worse(missing, queries):
    rules = {"labelled": 40, "missing": missing, "queries": queries}
    made = {
        "a": evaluated(places([1] * 20), **rules),
        "b": evaluated(places([2] * 20, start=20), **rules),
    }
    found = compare(made, "a", QUICK)
    assert found.verdict("b", "mrr").kind == "nothing_common"
    no_nan_is_told(found)


def test_a_challenger_that_failed_everywhere_cannot_be_compared():
    everything = tuple(f"q{i}" for i in range(60))
    made = {
        "a": evaluated(random_places(1)),
        "b": evaluated(random_places(2), failed=everything),
        "c": evaluated(random_places(3)),
    }
    found = compare(made, "a", QUICK)
    assert found.verdict("b", "mrr").kind == "nothing_common"
    assert found.left_out("b", "mrr") == {"failed": 60}
    # Trap 13: it does not count as a comparison, nor make one out of the others.
    assert found.row("c", "mrr")["p_corrected"] == found.row("c", "mrr")["p"]
    no_nan_is_told(found)


def test_judged_queries_that_a_system_lacks_count_0_and_are_counted():
    found = compare(
        {
            "a": evaluated(places([1] * 20), labelled=20),
            "b": evaluated(places([1] * 15), labelled=20),
        },
        "a",
        QUICK,
    )
    assert found.row("b", "mrr")["missing"] == 5
    assert found.row("b", "mrr")["mean"] == pytest.approx(0.75)


def test_a_metric_that_describes_labels_gets_no_verdict_and_no_p():
    made = {
        name: evaluated(random_places(seed), "judged@5", "mrr") for seed, name in enumerate("ab", 1)
    }
    found = compare(made, "a", QUICK)
    assert found.verdict("b", "judged@5").kind == "descriptive"
    assert math.isnan(found.row("b", "judged@5")["p"])
    assert not math.isnan(found.row("b", "mrr")["p"])


def many(*specs: str) -> dict[str, Evaluation]:
    return {name: evaluated(random_places(seed), *specs) for seed, name in enumerate("abcd", 1)}


def test_p_values_are_corrected_over_the_challengers_of_a_metric_or_over_everything():
    specs = ("mrr", "hit@3")
    apart = compare(many(*specs), "a", StatisticsSettings(test="t")).frame
    raw = apart.dropna(subset="p").set_index(["metric", "system"])["p"]
    apart = apart.set_index(["metric", "system"])["p_corrected"]
    together = compare(many(*specs), "a", StatisticsSettings(test="t", family="all"))
    together = together.frame.set_index(["metric", "system"])["p_corrected"]
    smallest = raw["mrr"].idxmin()
    assert apart["mrr"][smallest] == pytest.approx(min(1, 3 * raw["mrr"].min()))
    assert together[raw.idxmin()] == pytest.approx(min(1, 6 * raw.min()))
    plain = compare(many(*specs), "a", StatisticsSettings(test="t", correction="none")).frame
    assert (plain["p"].dropna() == plain["p_corrected"].dropna()).all()


def test_false_discovery_is_controlled_as_scipy_does_it():
    frame = compare(many(), "a", StatisticsSettings(test="t", correction="bh")).frame.dropna(
        subset="p"
    )
    expected = stats.false_discovery_control(frame["p"])
    assert frame["p_corrected"].tolist() == pytest.approx(expected)


def test_a_gain_that_many_comparisons_explain_is_not_proven():
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(80) < 0.58, 3, 5)
    base = {"a": evaluated(places([4] * 80)), "b": evaluated(places(gain))}
    others = {f"n{i}": evaluated(places(rng.choice([3, 5], 80))) for i in range(12)}
    settings = StatisticsSettings()
    assert compare(base, "a", settings).verdict("b", "mrr").kind == "better"
    among = compare(base | others, "a", settings).verdict("b", "mrr")
    assert among.kind == "unproven"
    assert "comparisons made: 13" in among.sentence


def test_what_is_not_proven_is_planned_at_the_level_that_the_correction_leaves():
    rng = np.random.default_rng(3)
    made = {
        "a": evaluated(places([4] * 40)),
        "b": evaluated(places(rng.choice([3, 3, 3, 4, 6, 6], 40))),
    }
    alone = compare(made, "a", StatisticsSettings(test="t"))
    row, verdict = alone.row("b", "mrr"), alone.verdict("b", "mrr")
    assert verdict.kind == "unproven"
    assert row["planned_level"] == 0.95
    assert row["more_least"] <= row["more_queries"]
    assert "more queries like these" in verdict.sentence
    made["c"] = evaluated(places([4] * 20 + [3] * 20))
    among = compare(made, "a", StatisticsSettings(test="t"))
    assert among.row("b", "mrr")["planned_level"] == 0.975
    assert among.row("b", "mrr")["more_queries"] > row["more_queries"]
    assert among.row("b", "mrr")["smallest_detectable"] > row["smallest_detectable"]
    assert "correction for 2 comparisons" in among.verdict("b", "mrr").sentence
    assert np.isnan(among.row("c", "mrr")["more_queries"])
    plain = compare(made, "a", StatisticsSettings(test="t", correction="none"))
    assert plain.row("b", "mrr")["more_queries"] == row["more_queries"]


@pytest.mark.parametrize(
    ("rules", "comparisons"),
    [({}, 3), ({"correction": "bh"}, 3), ({"family": "all"}, 6), ({"correction": "none"}, 1)],
)
def test_the_level_that_is_planned_for_is_shared_by_the_comparisons_of_its_family(
    rules, comparisons
):
    """Three challengers by two metrics; what describes labels is no comparison."""
    found = compare(many("mrr", "hit@3", "judged@5"), "a", StatisticsSettings(test="t", **rules))
    for system in "bcd":
        row = found.row(system, "mrr")
        assert row["planned_level"] == pytest.approx(1 - 0.05 / comparisons)


@pytest.mark.parametrize(("queries", "resamples"), [(2_000, 10_000), (2_001, 1_000)])
def test_beyond_two_thousand_queries_fewer_resamples_are_drawn(queries, resamples):
    assert StatisticsSettings.for_queries(queries).resamples == resamples
    assert StatisticsSettings.for_queries(queries, resamples=500).resamples == 500


def test_the_minimum_detectable_change_is_one_that_the_metric_can_reach():
    """From a mean of 0.25 MRR can rise by 0.75, from 1 by nothing."""
    few = {"a": evaluated(places([4] * 6)), "b": evaluated(places([1, 9, 1, 9, 1, 9]))}
    assert compare(few, "a").row("b", "mrr")["smallest_detectable"] < 0.75
    top = {"a": evaluated(places([1] * 6)), "b": evaluated(places([1, 9, 1, 9, 1, 9]))}
    assert np.isnan(compare(top, "a").row("b", "mrr")["smallest_detectable"])


def test_the_same_seed_repeats_and_another_does_not():
    first, again, other = (
        compare(many(), "a", StatisticsSettings(interval="bca", seed=seed)).frame
        for seed in (1, 1, 2)
    )
    pd.testing.assert_frame_equal(first, again)
    assert (first["delta_low"] != other["delta_low"]).any()


def test_percentile_intervals_and_levels_are_obeyed():
    made = many()
    narrow = compare(made, "a", StatisticsSettings(level=0.8)).row("b", "mrr")
    wide = compare(made, "a", StatisticsSettings(level=0.99)).row("b", "mrr")
    middle = compare(made, "a", StatisticsSettings(interval="percentile")).row("b", "mrr")
    usual = compare(made, "a").row("b", "mrr")
    assert wide["delta_low"] < usual["delta_low"] < narrow["delta_low"]
    assert wide["mean_high"] > usual["mean_high"] > narrow["mean_high"]
    assert middle["delta_low"] != usual["delta_low"]
    assert middle["delta_low"] == pytest.approx(usual["delta_low"], abs=0.03)


def test_intervals_of_many_queries_agree_with_those_of_few_queries_in_kind():
    """From a thousand queries on, resampling works otherwise; the interval must not show it."""
    rng = np.random.default_rng(5)
    made = {
        "a": evaluated(places(rng.integers(1, 6, 1500)), failed=("q7",)),
        "b": evaluated(places(rng.integers(1, 6, 1500)), failed=("q1", "q2")),
    }
    row = compare(made, "a").row("b", "mrr")
    d = paired(made["a"], made["b"], "mrr")["delta"].dropna().to_numpy()
    error = d.std() / math.sqrt(len(d))
    assert row["paired"] == 1497
    assert row["delta_low"] == pytest.approx(d.mean() - 1.96 * error, abs=0.08 * error)
    assert row["delta_high"] == pytest.approx(d.mean() + 1.96 * error, abs=0.08 * error)


def test_the_baseline_has_its_mean_and_no_test():
    found = compare(many(), "a", QUICK)
    row = found.row("a", "mrr")
    assert row["verdict"] == "baseline"
    assert [row["delta"], row["helped"], row["same"], row["hurt"]] == [0, 0, 60, 0]
    assert row["mean_low"] < row["mean"] < row["mean_high"]
    assert math.isnan(row["p"])
    with pytest.raises(SpecError, match="is the baseline itself"):
        found.verdict("a", "mrr")


def test_a_baseline_alone_has_intervals_and_no_verdict():
    found = compare({"a": evaluated(random_places(1))}, "a", QUICK)
    assert found.challengers == ()
    assert found.row("a", "mrr")["mean_low"] > 0


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda found: found.row("nobody", "mrr"), "'nobody' was not compared"),
        (lambda found: found.verdict("b", "map"), "'map' was not compared"),
        (lambda found: found.left_out("b", "map"), "Compared: mrr"),
    ],
)
def test_what_was_not_compared_is_named(ask: Callable[[Comparison], object], match: str):
    found = compare(many(), "a", QUICK)
    with pytest.raises(SpecError, match=match):
        ask(found)


def test_systems_under_other_conventions_are_refused():
    made = {"a": evaluated(random_places(1)), "b": evaluated(random_places(2), missing="skip")}
    with pytest.raises(SpecError, match="different conventions"):
        compare(made, "a")


def test_every_setting_is_described_and_within_its_limits():
    names = [setting.name for setting in STATISTICS_SETTINGS]
    assert set(names) == set(StatisticsSettings().as_dict())
    for setting in STATISTICS_SETTINGS:
        if setting.choices:
            assert setting.default in setting.choices
            for choice in setting.choices:
                StatisticsSettings(**{setting.name: choice})
        elif setting.name == "worthwhile":
            assert setting.default is None
        else:
            assert setting.least <= setting.default <= setting.most


@pytest.mark.parametrize(
    "wrong",
    [
        {"level": 95.0},
        {"level": math.nan},
        {"test": "z"},
        {"interval": "normal"},
        {"correction": "sidak"},
        {"resamples": 10},
        {"seed": -1},
        {"tie_band": -0.1},
        {"worthwhile": -1},
        {"family": "metrics"},
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(wrong):
    with pytest.raises(SpecError, match=next(iter(wrong))):
        StatisticsSettings(**wrong)


def test_every_kind_has_a_title():
    kinds = {"better", "small", "unproven", "worse", "identical"}
    kinds |= {"too_few", "nothing_common", "no_values", "descriptive"}
    assert kinds == set(TITLES)


@functools.cache
def evaluations_of(name: str) -> dict[str, Evaluation]:
    """The first stage and every reranking of a set, and BM25 made here."""
    found = loaded(name)
    data = found.dataset
    queries = data.queries.set_index("query_id")["text"]
    documents = data.documents.set_index("doc_id")["text"]
    rankings = {"initial": data.candidates} | {run.name: run.ranking for run in found.runs}
    rankings["bm25"] = order_candidates(queries, documents, data.candidates.frame())
    rules = Conventions()
    specs = ("ndcg@10", "mrr@10")
    return {
        name: evaluate(judge(ranking, data.qrels, rules), specs, rules)
        for name, ranking in rankings.items()
    }


@pytest.mark.parametrize("name", SETS)
def test_p_values_agree_with_scipy(name):
    found = evaluations_of(name)
    reranked = list(found)[-2]
    for spec in ("ndcg@10", "mrr@10"):
        d = paired(found["initial"], found[reranked], spec)["delta"].dropna().to_numpy()
        flips = stats.permutation_test(
            (d,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1
        )
        # Of either p the last digits are drawn.
        drawn = 4 * math.sqrt(2 * flips.pvalue * (1 - flips.pvalue) / 10_000) + 0.001
        expected = {
            "t": (stats.ttest_1samp(d, 0).pvalue, 1e-9),
            # Sizes that only differ in their last digits are ties.
            "wilcoxon": (stats.wilcoxon(np.round(d[d != 0], 12)).pvalue, 1e-9),
            "sign-flip": (flips.pvalue, drawn),
        }
        for test, (p, tolerance) in expected.items():
            row = compare(found, "initial", StatisticsSettings(test=test)).row(reranked, spec)
            assert row["p"] == pytest.approx(p, abs=tolerance), (test, spec)


# Set → reranking → its verdict: what an English model and titles do to English and to Chinese.
VERDICTS = {
    "helpcentre": {"rerank_by_title": "worse"},
    "medquad": {"rerank_minilm": "better"},
    "cmrc_zh": {"rerank_minilm": "worse", "rerank_bm25_title": "better"},
}


@pytest.mark.parametrize("name", SETS)
def test_the_verdicts_on_real_rankings(name):
    found = compare(evaluations_of(name), "initial")
    for spec in ("ndcg@10", "mrr@10"):
        told = {system: found.verdict(system, spec).kind for system in VERDICTS[name]}
        assert told == VERDICTS[name], spec
    no_nan_is_told(found)


@pytest.mark.parametrize("minimum", [None, RULE_OF_THUMB])
def test_a_gain_is_small_only_by_a_minimum_that_was_set(minimum):
    """Titles rank Chinese Wikipedia a few percent better."""
    found = compare(
        evaluations_of("cmrc_zh"), "initial", StatisticsSettings(worthwhile=minimum)
    ).verdict("rerank_bm25_title", "ndcg@10")
    assert found.kind == ("better" if minimum is None else "small")
    assert ("15% (set by the user)" in found.sentence) is (minimum is not None)


def test_means_alone_are_over_the_queries_that_every_system_has():
    specs = ("mrr", "mrr@3")
    alone = mean_intervals(
        {
            "a": evaluated(random_places(1), *specs, failed=("q3",)),
            "b": evaluated(random_places(2), *specs),
        },
        "a",
        QUICK,
    ).set_index(["system", "metric"])
    both_failed = {
        name: evaluated(random_places(seed), *specs, failed=("q3",))
        for name, seed in (("a", 1), ("b", 2))
    }
    whole = compare(both_failed, "a", QUICK).frame.set_index(["system", "metric"])
    for column, other in (("mean", "mean"), ("low", "mean_low"), ("high", "mean_high"), ("n", "n")):
        for place, value in alone[column].items():
            assert value == pytest.approx(whole.loc[place, other])
    assert set(alone["n"]) == {59}


def test_the_highest_value_is_that_of_the_best_order_or_what_a_system_has():
    specs = ("mrr", "judged@5")
    made = {
        "a": evaluated(places([4, 4, 4]), *specs),
        "b": evaluated(places([1, 9, 9]), *specs),
    }
    best = evaluated(places([2, 2]), *specs)
    aligned = align(made, "a")
    # The best order has no third query, and nothing to say of how many are judged.
    assert aligned.highest(best).tolist() == [[1.0, 1.0], [0.5, 1.0], [1.0, 1.0]]
    assert aligned.highest(None).tolist() == [[1.0, 1.0]] * 3


def test_queries_that_the_baseline_lacks_follow_in_their_own_order():
    rules = Conventions()
    labels = pd.DataFrame({"query_id": ["q9", "q1", "q3"], "doc_id": "good", "label": 1.0})
    other = evaluate(judge(ranked({"q9": 1, "q3": 1}), labels, rules), ("mrr",), rules)
    aligned = align({"a": evaluated(places([1, 1])), "b": other}, "a")
    assert aligned.query_ids.tolist() == ["q0", "q1", "q9", "q3"]


@pytest.mark.parametrize(("change", "exact"), [(1e-13, True), (1e-11, False)])
def test_the_last_digits_of_a_value_are_no_change(change, exact):
    before = evaluated(places([2] * 10))
    found = compare({"a": before, "b": replace(before, values=before.values + change)}, "a", QUICK)
    assert (found.row("b", "mrr")["delta"] == 0) == exact
    assert ("score the same on every one" in found.verdict("b", "mrr").sentence) == exact


@pytest.mark.parametrize(("queries", "known"), [(5, False), (6, True)])
def test_six_pairs_are_enough_for_a_minimum_detectable_change(queries, known):
    made = {
        "a": evaluated(places([4] * queries)),
        "b": evaluated(places([3, 5, 3, 5, 3, 5][:queries])),
    }
    assert np.isfinite(compare(made, "a", QUICK).row("b", "mrr")["smallest_detectable"]) == known


def test_a_comparison_is_corrected_where_it_is_one_of_several():
    systems = many()
    assert compare(systems, "a", QUICK).corrected
    assert not compare({name: systems[name] for name in "ab"}, "a", QUICK).corrected
    assert not compare(systems, "a", replace(QUICK, correction="none")).corrected


def test_where_no_number_of_queries_would_do_there_is_none_and_no_gap():
    """As many up as down, and one query from the 100th place to the 101st."""
    made = {
        "a": evaluated(places([4] * 40 + [100])),
        "b": evaluated(places([3, 6] * 20 + [101])),
    }
    found = compare(made, "a", QUICK)
    assert found.verdict("b", "mrr").kind == "unproven"
    for name in ("more_queries", "more_least", "more_most"):
        assert found.frame[name].dtype == float
        assert np.isnan(found.row("b", "mrr")[name])


@pytest.mark.parametrize(("rule", "missing"), [("zero", 5), ("skip", 0)])
def test_only_queries_that_count_0_are_missing(rule, missing):
    made = {
        name: evaluated(places([1] * answered), labelled=20, missing=rule)
        for name, answered in (("a", 20), ("b", 15))
    }
    assert compare(made, "a", QUICK).row("b", "mrr")["missing"] == missing


def test_a_baseline_without_values_has_no_change():
    everything = tuple(f"q{n}" for n in range(9))
    found = compare({"a": evaluated(places([1] * 9), failed=everything)}, "a", QUICK)
    row = found.row("a", "mrr")
    assert row[["delta", "delta_low", "relative_delta"]].isna().all()
    assert (row["paired"], row["verdict"]) == (0, "baseline")


@pytest.mark.parametrize(("systems", "shown"), [(2, "p"), (3, "p_corrected")])
def test_a_comparison_is_shown_with_its_verdicts_and_the_p_that_counts(systems, shown):
    names = ("first", "<b>bold</b>", "other")[:systems]
    found = compare(
        {
            name: evaluated({f"q{n}": 1 + (n + place) % 3 for n in range(8)}, "mrr")
            for place, name in enumerate(names)
        },
        "first",
        QUICK,
    )
    text, page = str(found), found._repr_html_()
    assert text.split("\n")[0].split() == [
        "metric", "system", "mean", "delta", "delta_low", "delta_high", shown, "helped", "same",
        "hurt", "verdict",
    ]  # fmt: skip
    # The baseline and each challenger, and a sentence for each of these.
    assert len(text.split("\n")) == 1 + systems + systems - 1
    assert "<b>bold" not in page and page.count("<p>") == systems - 1
    assert "&lt;b&gt;bold&lt;/b&gt; " in page.partition("<p>")[2]
    assert f"<th>{shown}</th>" in page


def test_what_rivals_need_is_drawn_with_the_rest_and_changes_nothing(monkeypatch):
    made = {name: evaluated(random_places(seed), "mrr", "hit@3") for seed, name in enumerate("abc")}
    rivals = {name: made[name] for name in "bc"}
    drawn = []
    draw = inference.bootstrap_means
    monkeypatch.setattr(
        inference, "bootstrap_means", lambda *given, **more: drawn.append(1) or draw(*given, **more)
    )

    def kept(seed: int, **asked: object) -> list[pd.DataFrame]:
        # Nothing is known yet under a seed that nobody had.
        settings = replace(QUICK, interval="bca", seed=seed)
        whole = compare(made, "a", settings, **asked)
        return [whole.frame, compare(rivals, "b", settings, measures=whole.measures[:1]).frame]

    asked = kept(811, rivals=("mrr",))
    assert len(drawn) == 1
    plain = kept(811)
    assert len(drawn) == 1
    kept(812)
    assert len(drawn) == 3
    for one, other in zip(asked, plain, strict=True):
        pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize("swapped", [False, True])
def test_no_end_of_an_interval_is_a_value_or_a_change_that_the_metric_cannot_have(swapped):
    """Five of six queries gain a hit; Student's t alone ends at +1.26."""
    first, second = {f"q{i}": 2 for i in range(6)}, {f"q{i}": 1 + (i > 4) for i in range(6)}
    sides = (second, first) if swapped else (first, second)
    found = {
        name: evaluated(places, "hit@1", "dcg@1")
        for name, places in zip(("base", "up"), sides, strict=True)
    }
    row = compare(found, "base", QUICK).row("up", "hit@1")
    ends = (row["delta_low"], row["delta_high"])
    assert ends == ((-1.0, 0.0) if swapped else (0.0, 1.0))
    assert 0 <= row["mean_low"] <= row["mean_high"] <= 1
    along = mean_intervals(found, "base", QUICK).set_index(["system", "metric"])
    assert along.loc[("base" if swapped else "up", "hit@1"), "high"] == 1.0
    # DCG has no highest value.
    unbounded = compare(found, "base", QUICK).row("up", "dcg@1")
    assert max(abs(unbounded["delta_low"]), abs(unbounded["delta_high"])) > 1.2
