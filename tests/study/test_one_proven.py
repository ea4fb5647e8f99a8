"""Borderline comparisons: verdict, cost, History, gate, depth and skipping say compatible things of
each."""

import math
from dataclasses import dataclass, field, replace
from datetime import date

import numpy as np
import pytest

from rankdash.analysis.statistics.gate import Condition, decide
from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.loading import load
from rankdash.ranking.ranking import Ranking
from rankdash.readers import Source
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study import costs, gains, history, ranks
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money, systems_of
from rankdash.value.assumptions import Assumptions
from rankdash.value.billing import Price
from rankdash.value.payoff import Amount
from rankdash.value.price_list import ListedPrice
from rankdash.words import costs as words

LONG = 12
PROVEN = ("better", "small")
PASSES_UNCORRECTED = ("five of five helped: p 0.06", "six, but two comparisons")
"""Cases whose interval excludes 0 although their p is too large."""


@dataclass(frozen=True)
class Case:
    """Ranks of the one relevant document of each query, before and after, and what is said."""

    name: str
    before: list[int]
    after: list[int]
    kind: str
    answer: str
    metric: str = "hit@1"
    rules: dict[str, object] = field(default_factory=dict)
    twins: int = 1


def first(n: int, right: int, helped: int, hurt: int = 0) -> dict[str, list[int]]:
    """Ranks of n queries, so many of them right before, and which change."""
    before = [1] * right + [2] * (n - right)
    after = [*before]
    for place in range(right, right + helped):
        after[place] = 1
    for place in range(hurt):
        after[place] = 2
    return {"before": before, "after": after}


def moved(n: int, mean: float, seed: int) -> dict[str, list[int]]:
    """Ranks that rise by so much in the mean, by chance."""
    rng = np.random.default_rng(seed)
    before = rng.integers(1, LONG + 1, n)
    after = np.clip(np.round(before - rng.normal(mean, 3, n)), 1, LONG).astype(int)
    return {"before": before.tolist(), "after": after.tolist()}


CASES = [
    Case("five of five helped: p 0.06", **first(40, 20, 5), kind="unproven", answer="unproven"),
    Case("six of six helped: p 0.03", **first(40, 20, 6), kind="better", answer="yes"),
    Case("six, but two comparisons", **first(40, 20, 6), kind="unproven", answer="unproven",
         twins=2),
    Case("eight, and two comparisons", **first(40, 20, 8), kind="better", answer="yes", twins=2),
    Case("six, uncorrected", **first(40, 20, 6), kind="better", answer="yes", twins=2,
         rules={"correction": "none"}),
    Case("six of a hundred: small", **first(100, 60, 6), kind="small", answer="yes",
         rules={"worthwhile": 0.15}),
    Case("one query helped", **first(40, 20, 1), kind="unproven", answer="unproven"),
    Case("as many helped as hurt", **first(40, 20, 4, 4), kind="unproven", answer="unproven"),
    Case("one query hurt", **first(40, 20, 0, 1), kind="unproven", answer="unproven"),
    Case("six of six hurt", **first(40, 20, 0, 6), kind="worse", answer="no"),
    Case("nothing changes", **first(40, 20, 0), kind="identical", answer="no"),
    Case("four queries", **first(4, 1, 3), kind="too_few", answer="unknown"),
    Case("five queries", **first(5, 1, 4), kind="too_few", answer="unknown"),
    Case("nine queries", **first(9, 2, 6), kind="better", answer="yes"),
    Case("six, percentiles and t", **first(40, 20, 6), kind="better", answer="yes",
         rules={"interval": "percentile", "test": "t"}),
    Case("nine of eleven helped", **first(60, 30, 10, 1), kind="better", answer="yes"),
    Case("eight of eleven helped", **first(60, 30, 8, 3), kind="unproven", answer="unproven"),
    Case("all but one hurt", **first(60, 30, 1, 10), kind="worse", answer="no"),
    Case("continuous, a rise", **moved(60, 1.2, 1), kind="better", answer="yes", metric="ndcg@10"),
    Case("continuous, next to none", **moved(60, 0.3, 5), kind="unproven", answer="unproven",
         metric="ndcg@10"),
    Case("continuous, a fall", **moved(60, -1.5, 3), kind="worse", answer="no", metric="ndcg@10"),
]  # fmt: skip


def study_of(case: Case) -> Study:
    docs = [f"d{place}" for place in range(LONG)]

    def order(rank: int) -> list[str]:
        others = docs[1:]
        return [*others[: rank - 1], "d0", *others[rank - 1 :]]

    rows = "query_id,query,doc_id,document,label,score\n" + "".join(
        f"q{q},question {q},{doc},words of {doc},{int(doc == 'd0')},{-place}\n"
        for q, rank in enumerate(case.before)
        for place, doc in enumerate(order(rank))
    )
    data = load([Source("rows.csv", rows.encode())], name="Shop").dataset
    scores = [-float(place) for place in range(LONG)]
    lists = [(f"q{q}", order(rank), scores) for q, rank in enumerate(case.after)]
    runs = [
        run_from_ranking(f"run {twin}", data.id, Ranking.from_lists(lists), f"{twin}.trec")
        for twin in range(case.twins)
    ]
    price = ListedPrice("flat", "Flat", "", Price(1e-6, "search"), "a test", date(2026, 11, 21))
    return Study.on(
        case.metric,
        dataset=data,
        systems=systems_of(data, runs),
        baseline=FIRST_STAGE,
        challengers=tuple(run.id for run in runs),
        statistics=StatisticsSettings(**case.rules),
        money=Money(
            Assumptions(value_per_search=1.0),
            prices={run.id: price for run in runs},
            given=frozenset({"value_per_search"}),
        ),
    )


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request) -> Case:
    return request.param


def test_all_parts_agree(case: Case):
    study = study_of(case)
    challenger = study.challengers[0]
    row = study.comparison.row(challenger, study.spec)
    choice = next(each for each in costs.choices(study) if each.system == challenger)
    assert (row["verdict"], words.answer(choice)) == (case.kind, case.answer)

    # The interval of the relative change is of the verdict's draws: 0 lies where it does there.
    if case.kind == "too_few":
        assert choice.option.gain is None
        assert choice.came.break_even_elasticity == Amount(reason="unknown_gain")
    else:
        change = choice.option.gain.relative
        assert (
            np.sign([change.low, change.high]).tolist()
            == np.sign([row["delta_low"], row["delta_high"]]).tolist()
        )
        value = choice.came.value_per_month
        assert (value.low, value.high) == pytest.approx(
            (change.low * 100_000 * 365 / 12, change.high * 100_000 * 365 / 12)
        )

    # History compares the same systems over the same queries.
    past = history.trend(study, study.chosen, every=True).frame.set_index("system").loc[challenger]
    assert past["verdict"] == row["verdict"]
    assert past["p_corrected"] == pytest.approx(row["p_corrected"], nan_ok=True)

    # A gate on any gain at all, at the same level: it passes where the interval is above 0, which
    # is proven but for the p: it makes one comparison, and no correction.
    (gate,) = decide([Condition("min-gain", study.spec, 1e-9)], study.comparison, challenger)
    if case.kind == "too_few":
        assert gate.reason == "too_few"
    elif row["delta"] <= 0:
        assert gate.reason == "missed"
    else:
        assert gate.reason == ("met" if row["delta_low"] > 0 else "unproven")
    assert gate.passed == (case.kind in PROVEN or case.name in PASSES_UNCORRECTED)

    # Depth recommends reranking where the verdict proves a gain, and nowhere else: these lists are
    # reranked to their end or not at all.
    curve = costs.depths(study, challenger).curve
    full = curve.table.iloc[-1]
    assert full["gain_proven"] == (case.kind in PROVEN)
    assert (full["gain_low"], full["gain_high"]) == pytest.approx(
        (row["delta_low"], row["delta_high"]), nan_ok=True
    )
    assert (curve.enough > 0) == bool(curve.table["gain_proven"].any())
    assert curve.enough > 0 or case.kind not in PROVEN

    # Skipping every query is the verdict turned round.
    found = ranks.skipping(study, challenger, "first", 1, 0.01)
    everything = found.curve.iloc[-1]
    # A change of exactly 0 has no sign to draw the mirror image by.
    assert row["delta"] == 0 or (everything["low"], everything["high"]) == pytest.approx(
        (-row["delta_high"], -row["delta_low"]), nan_ok=True
    )
    assert ranks.first_stage_kind(study, challenger) == case.kind
    if found.rule is not None and found.rule.share == 1:
        assert case.kind not in PROVEN


def test_the_verdict_on_the_first_stage_is_found_whatever_the_baseline():
    study = study_of(replace(CASES[1], twins=2, rules={"correction": "none"}))
    one, other = study.challengers
    turned = replace(study, baseline=one, challengers=(other, FIRST_STAGE))
    assert turned.comparison.row(other, study.spec)["verdict"] == "identical"
    assert ranks.first_stage_kind(turned, other) == "better"
    assert costs.depths(turned, other).curve.enough > 0


def test_the_hit_rate_has_a_verdict_of_its_own_where_it_is_not_evaluated_beside():
    six = study_of(replace(CASES[1], metric="mrr@10"))
    alone = replace(six, others=())
    (system,) = six.challengers
    assert gains.gain(alone, system) == gains.gain(six, system)
    assert gains.gain(alone, system).hit.value == 0  # At 10 all are found, before and after.
    at_one = replace(alone, cutoff=1)
    hit = gains.gain(at_one, system).hit
    assert (hit.value, hit.proof) == (pytest.approx(0.15), "proven")


@pytest.mark.parametrize("metric", ["judged@10", "hit@1"])
def test_there_is_no_gain_without_a_baseline_or_in_what_measures_no_quality(metric):
    nothing_before = first(40, 0, 8) if metric == "hit@1" else first(40, 20, 6)
    study = study_of(Case("", **nothing_before, kind="", answer="", metric=metric))
    assert gains.gain(study, study.challengers[0]) is None
    choice = costs.choices(study)[1]
    assert words.answer(choice) == "unknown"


def test_fewer_than_six_queries_hold_no_recall_for_sure():
    held = first(6, 6, 0)
    assert costs.equal_recall(*_system(Case("", **held, kind="", answer="")), 3) == 1
    few = first(5, 5, 0)
    assert costs.equal_recall(*_system(Case("", **few, kind="", answer="")), 3) is None


def _system(case: Case) -> tuple[Study, str]:
    study = study_of(case)
    return study, study.challengers[0]


def test_an_unknown_interval_is_nan_in_the_curve_of_depths():
    study, system = _system(Case("", **first(4, 1, 3), kind="", answer=""))
    table = costs.depths(study, system).curve.table
    assert math.isnan(table["gain_low"].iloc[-1]) and not table["gain_proven"].any()
