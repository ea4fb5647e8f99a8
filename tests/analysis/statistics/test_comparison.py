"""A comparison says what its numbers allow, joined by query id, and never a NaN in a sentence."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankdash.core.base.errors import SpecError
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, Evaluation, evaluate, judge
from rankdash.core.statistics import inference
from rankdash.core.statistics.comparison import (
    STATISTICS_SETTINGS,
    Comparison,
    StatisticsSettings,
    compare,
    mean_intervals,
)
from tests.lists import evaluation
from tests.results import results, several, shown

QUICK = StatisticsSettings(resamples=1000)
T = StatisticsSettings(test="t")


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


def many(*specs: str) -> dict[str, Evaluation]:
    return {name: evaluated(random_places(seed), *specs) for seed, name in enumerate("abcd", 1)}


def compared(a, b, settings=T, *specs: str, **rules) -> Comparison:
    """Two systems by the places of their relevant documents."""
    sides = (places(each) if isinstance(each, list) else each for each in (a, b))
    made = {name: evaluated(each, *specs, **rules) for name, each in zip("ab", sides, strict=True)}
    return compare(made, "a", settings)


def told(found: Comparison) -> str:
    """What is known of each row, and below it what was left out and the sentence."""
    lines = [f"corrected: {found.corrected}"]
    for _, row in found.frame.iterrows():
        lines.append(shown(row.dropna()))
        if row["system"] in found.challengers:
            left = found.excluded(row["system"], row["metric"])
            sentence = found.verdict(row["system"], row["metric"]).sentence
            lines.append(f"  [{shown(left)}] {sentence}")
    return "\n".join(lines)


def no_relevant() -> Comparison:
    rules = Conventions()
    judged = judge(ranked(places([1] * 9)), qrels(9).assign(label=0.0), rules)
    return compare({name: evaluate(judged, ("mrr", "ndcg@10"), rules) for name in "ab"}, "a", T)


def other_queries(**rules) -> Comparison:
    sides = places([1] * 20), places([2] * 20, start=20)
    return compared(*sides, labelled=40, **rules)


def backwards() -> Comparison:
    """Trap 12: systems are joined by query id and not by position."""
    before = random_places(4)
    rules, labels = Conventions(), qrels(60).iloc[::-1].reset_index(drop=True)
    after = judge(ranked({query: before[query] for query in reversed(before)}), labels, rules)
    return compare({"a": evaluated(before), "b": evaluate(after, ("mrr",), rules)}, "a", T)


def failing(*failed: str) -> Comparison:
    made = {"a": evaluated(random_places(1)), "b": evaluated(random_places(2), failed=failed)}
    return compare(made | {"c": evaluated(random_places(3))}, "a", T)


def last_digits(change: float) -> Comparison:
    before = evaluated(places([2] * 10))
    return compare({"a": before, "b": replace(before, values=before.values + change)}, "a", T)


def hits(first: int, second: int) -> Comparison:
    """Five of six queries gain a hit; Student's t alone ends at +1.26. DCG has no highest value."""
    sides = [2] * 6, [1] * 5 + [2]
    return compared(sides[first], sides[second], T, "hit@1", "dcg@1")


FIFTH = replace(T, worthwhile=0.2)
EVERY = tuple(f"q{n}" for n in range(60))
SPREAD = [1, 9] * 3
SLIGHT = [3] * 42 + [5] * 38
CASES = {
    **{
        f"by a fifth: {name}": lambda after=after: compared([4] * 60, after, FIFTH)
        for name, after in {"better": [1] * 60, "small": [4] * 30 + [3] * 30, "worse": [9] * 60,
                            "unproven": [3, 6] * 30, "identical": [4] * 60}.items()
    },
    "within the tie band": lambda: compared([40] * 60, [38] * 60),
    "without a tie band": lambda: compared([40] * 60, [38] * 60, replace(FIFTH, tie_band=0)),
    "five pairs": lambda: compared([2] * 5, [1] * 5),
    **several(
        "six pairs by {}",
        lambda test: compared([2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6], replace(T, test=test)),
        ("sign-flip", "t", "wilcoxon"),
    ),
    "five pairs have no detectable change": lambda: compared([4] * 5, [3, 5, 3, 5, 3]),
    "six pairs have one": lambda: compared([4] * 6, [3, 5, 3, 5, 3, 5]),
    # From a mean of 0.25 MRR can rise by 0.75, from 1 by nothing.
    "a detectable change within 0.75": lambda: compared([4] * 6, SPREAD),
    "none from 1": lambda: compared([1] * 6, SPREAD),
    "no label": lambda: compared([1] * 9, [1] * 9, labelled=0),
    "no relevant document": no_relevant,
    **{
        f"other queries, {rules}": lambda rules=rules: other_queries(**rules)
        for rules in ({"missing": "zero"}, {"missing": "skip"}, {"queries": "both"},
                      {"missing": "skip", "queries": "both"})
    },
    "in another order": backwards,
    "three failed": lambda: failing("q1", "q2", "q3"),
    # Trap 13: it does not count as a comparison, nor make one out of the others.
    "all failed": lambda: failing(*EVERY),
    **several(
        "five are missing, {}",
        lambda rule: compared([1] * 20, [1] * 15, labelled=20, missing=rule),
        ("zero", "skip"),
    ),
    "what describes labels has no p": lambda: compared(
        random_places(1), random_places(2), T, "judged@5", "mrr"
    ),
    **several(
        "other rules: {}",
        lambda rules: compared(random_places(1), random_places(2), replace(T, **rules)),
        ({"level": 0.8}, {"level": 0.99}, {"interval": "t"}),
    ),
    **several(
        "three by two, {}",
        lambda rules: compare(many("mrr", "hit@3", "judged@5"), "a", replace(T, **rules)),
        ({}, {"correction": "bh"}, {"family": "all"}, {"correction": "none"}),
    ),
    # Twelve others without a gain: what was proven alone may come by chance.
    "alone of many": lambda: compared([4] * 80, SLIGHT),
    "among many": lambda: compare(
        {"a": evaluated(places([4] * 80)), "b": evaluated(places(SLIGHT))}
        | {f"n{i}": evaluated(places([4] * 80)) for i in range(12)}, "a", T,
    ),
    "alone": lambda: compare({"a": evaluated(random_places(1))}, "a", T),
    "alone without values": lambda: compare(
        {"a": evaluated(places([1] * 9), failed=EVERY[:9])}, "a", T
    ),
    **several("last digits: {}", last_digits, (1e-13, 1e-11)),
    # As many up as down, and one query from the 100th place to the 101st.
    "no number of queries would do": lambda: compared([4] * 40 + [100], [3, 6] * 20 + [101]),
    "no end is beyond what a metric can have, up": lambda: hits(0, 1),
    "no end is beyond what a metric can have, down": lambda: hits(1, 0),
    "other conventions": lambda: compare(
        {"a": evaluated(random_places(1)), "b": evaluated(random_places(2), missing="skip")}, "a"
    ),
    **{
        f"not compared: {name}": lambda ask=ask: ask(compare(many(), "a", T))
        for name, ask in {
            "a system": lambda found: found.row("nobody", "mrr"),
            "the baseline": lambda found: found.verdict("a", "mrr"),
            "a metric's verdict": lambda found: found.verdict("b", "map"),
            "a metric's queries": lambda found: found.excluded("b", "map"),
        }.items()
    },
}  # fmt: skip


def test_a_comparison_says_what_its_numbers_allow(approved):
    approved("analysis/comparison", results(CASES, told))


def test_trap_11_each_query_is_paired_with_its_own_value_and_not_with_one_topic():
    before = random_places(3)
    after = {query: max(1, place - 1) for query, place in before.items()}
    row = compared(before, after).row("b", "mrr")
    own = [evaluated(each).column("mrr") for each in (before, after)]
    assert row["p"] == pytest.approx(stats.ttest_rel(own[1], own[0]).pvalue)
    change = own[1] - own[0]
    assert row["effect_size"] == pytest.approx(change.mean() / change.std(ddof=1))


def test_what_failed_in_one_system_changes_nothing_between_two_others():
    made = {"a": evaluated(random_places(7)), "b": evaluated(random_places(8))}
    alone = compare(made, "a", StatisticsSettings(correction="none")).row("b", "mrr")
    broken = evaluated(random_places(9), failed=("q0", "q5"))
    beside = compare(made | {"c": broken}, "a", StatisticsSettings(correction="none"))
    pd.testing.assert_series_equal(
        alone.drop("system"), beside.row("b", "mrr").drop("system"), check_names=False, rtol=1e-6
    )


@pytest.mark.parametrize(("queries", "resamples"), [(2_000, 10_000), (2_001, 1_000)])
def test_beyond_two_thousand_queries_fewer_resamples_are_drawn(queries, resamples):
    assert StatisticsSettings.for_queries(queries).resamples == resamples
    assert StatisticsSettings.for_queries(queries, resamples=500).resamples == 500


def test_every_setting_is_described_and_within_its_limits():
    names = [setting.name for setting in STATISTICS_SETTINGS]
    assert set(names) == set(StatisticsSettings().as_dict())
    for setting in STATISTICS_SETTINGS:
        if setting.choices:
            assert setting.default in setting.choices
            for choice in setting.choices:
                StatisticsSettings(**{setting.name: choice})
        elif setting.name in ("worthwhile", "equal_margin"):
            assert setting.default is None
        else:
            assert setting.least <= setting.default <= setting.most


WRONG = {
    "level": (95.0, math.nan), "test": ("z",), "interval": ("normal",), "correction": ("sidak",),
    "resamples": (10,), "seed": (-1,), "tie_band": (-0.1,), "worthwhile": (-1,),
    "equal_margin": (-0.01, math.inf),
    "family": ("metrics",),
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(each, v) for each in WRONG for v in WRONG[each]])
def test_a_setting_out_of_range_is_refused_by_name(name, value):
    with pytest.raises(SpecError, match=name):
        StatisticsSettings(**{name: value})


@given(
    seed=st.integers(0, 99), shift=st.floats(-0.3, 0.3), margin=st.floats(0.01, 0.4),
    systems=st.sampled_from([2, 4]), level=st.sampled_from([0.8, 0.95]),
)  # fmt: skip
def test_as_good_as_is_two_one_sided_tests_at_the_corrected_level(
    seed, shift, margin, systems, level
):
    rng = np.random.default_rng(seed)
    values = np.clip(rng.normal(0.5, 0.2, 60), 0, 1)
    others = [np.clip(values + shift + rng.normal(0, 0.1, 60), 0, 1) for _ in range(systems - 1)]
    evaluations = {
        name: evaluation({f"q{i}": [value] for i, value in enumerate(each)}, ["ndcg@10"])
        for name, each in zip("abcd", [values, *others], strict=False)
    }
    settings = StatisticsSettings(level=level, interval="t", test="t", equal_margin=margin)
    found = compare(evaluations, "a", settings)
    alpha = (1 - level) / (systems - 1)
    for name, after in zip("bcd", others, strict=False):
        changes = after - values
        above = stats.ttest_1samp(changes, -margin, alternative="greater").pvalue
        below = stats.ttest_1samp(changes, margin, alternative="less").pvalue
        kind = found.verdict(name, "ndcg@10").kind
        if kind == "equal":
            assert max(above, below) < alpha + 1e-9
        elif kind == "unproven":
            assert max(above, below) > alpha - 1e-9
        within = "within the margin" in found.verdict(name, "ndcg@10").sentence
        assert within == (max(above, below) < alpha)


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
