"""Targets of a profile: met or missed by the interval, and what labels and candidates allow."""

from dataclasses import replace

import numpy as np
import pytest

from rankdash.reporting import targets as table
from rankdash.reporting.report import Front, html
from rankdash.study import targets
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money, systems_of
from rankdash.value import price_list
from rankdash.value.billing import Price
from rankdash.value.targets import Goals, Limit, Profile, Target, shipped
from tests.study.best_or_worst import best_or_worst


def study_of(n: int, relevant: int = 1) -> Study:
    """The relevant documents last in the first stage, and for every tenth query of the run."""
    return best_or_worst(n, "mrr@3", lambda _at: False, lambda at: at % 10 != 0, relevant=relevant)


def goals(*asked: Target, limits: tuple[Limit, ...] = ()) -> Goals:
    return Goals(shipped().with_profile("own", Profile("Own", asked, limits)), "own")


def test_precision_at_3_with_one_answer_a_query_is_at_most_a_third_and_no_failure():
    study = study_of(40)
    (run,) = study.challengers
    found = targets.rows(study, run, Goals(shipped(), "faq"))
    by = {row.subject: row for row in found}
    assert by["precision@3"].reached.most == pytest.approx(1 / 3)
    assert (by["precision@3"].status, by["precision@3"].advice) == ("unreachable", "")
    assert by["precision@3"].band == "poor", "what such a value is usually called stays"
    assert by["mrr"].reached.most == 1.0
    assert by["p95_ms"].status is None
    three = study_of(40, relevant=3)
    most = targets.figures(three, three.challengers[0], ("precision@3",))["precision@3"].most
    assert most == 1.0


@pytest.mark.parametrize(("asked", "status"), [(0.6, "met"), (0.9, "undecided"), (0.999, "missed")])
def test_the_interval_decides_and_not_the_mean(asked, status):
    study = study_of(40)
    (run,) = study.challengers
    (row,) = targets.rows(study, run, goals(Target("hit@3", target=asked)))
    assert row.reached.value == pytest.approx(0.9)
    assert row.reached.low < 0.9 < row.reached.high < 0.999
    assert row.status == status


def test_fewer_than_five_queries_decide_nothing():
    study = study_of(4)
    for system in study.chosen:
        (row,) = targets.rows(study, system, goals(Target("hit@3", target=0.5)))
        assert row.status == "undecided"
        assert np.isnan([row.reached.low, row.reached.high]).all()


def test_advice_is_for_what_may_be_below_and_could_be_above():
    study = study_of(40)
    (run,) = study.challengers
    first, ours = (
        targets.rows(study, system, goals(Target("mrr", target=0.8)))[0]
        for system in (FIRST_STAGE, run)
    )
    assert (first.status, first.band) == ("missed", "poor")
    assert first.advice.startswith("The first relevant document is usually not near the top")
    assert (ours.band, ours.advice) == ("excellent", "")


def test_an_example_price_decides_nothing_and_is_called_so():
    study = study_of(40)
    study = replace(study, money=Money(example=True))
    limit = Limit("per_million_tokens", 1e-6)
    (row,) = targets.rows(study, study.challengers[0], goals(limits=(limit,)))
    assert (row.status, row.example) == ("undecided", True)
    far = goals(limits=(Limit("per_million_tokens", 1e6, 1e5),))
    (within,) = targets.rows(study, study.challengers[0], far)
    assert (within.status, within.excellent) == ("undecided", False)
    (_first, ours) = table.rows(study, goals(limits=(limit,)))
    assert ours[2].endswith("(example price)")
    assert "example price" in ours[8]


def test_the_report_has_the_rows_of_the_page_where_a_profile_was_chosen():
    study = study_of(40)
    chosen = Goals(shipped(), "faq")
    page = html(study, Front(sections=("systems",))).decode()
    assert "reachable at most" not in page
    study = replace(study, goals=chosen)
    page = html(study, Front(sections=("systems",))).decode()
    assert "Targets: FAQ" in page
    for row in table.rows(study, chosen):
        assert all(f">{cell}<" in page for cell in row[1:8] if cell)


def test_every_scenario_sets_metric_cutoff_and_latency_together():
    scenarios = [shipped().profiles[key] for key in
                 ("faq", "documents", "ecommerce", "academic", "enterprise")]  # fmt: skip
    for each in scenarios:
        assert each.measure.partition("@")[2].isdigit()
        assert each.limit("p95_ms").target in (500, 2000)


def timed(ms: list[float], reasons: list[str] | None = None) -> Study:
    """The run of a study with these latencies, failed where there is a reason."""
    study = study_of(len(ms))
    (run,) = study.challengers
    given = reasons or [""] * len(ms)
    queries = study.run(run).queries.assign(
        latency_ms=ms, state=["failed" if each else "done" for each in given], reason=given
    )
    made = replace(study.run(run), queries=queries)
    return replace(study, systems=systems_of(study.dataset, [made]), challengers=(made.id,))


@pytest.mark.parametrize(
    ("limit", "excellent", "status", "is_excellent"),
    [
        (500.0, 300.0, "met", True),
        (500.0, 150.0, "met", False),
        (500.0, None, "met", False),
        (50.0, 20.0, "missed", False),
        (195.0, 20.0, "undecided", False),
    ],
)
def test_a_latency_meets_a_limit_where_its_interval_does(limit, excellent, status, is_excellent):
    study = timed([100.0 + n / 4 for n in range(400)])
    (run,) = study.challengers
    (row,) = targets.rows(study, run, goals(limits=(Limit("p95_ms", limit, excellent),)))
    assert (row.status, row.excellent, row.subject) == (status, is_excellent, "p95_ms")
    assert row.reached.low < row.reached.value < row.reached.high
    assert row.reached.value == pytest.approx(np.quantile(100 + np.arange(400) / 4, 0.95))


def test_the_first_stage_and_what_was_not_timed_have_no_latency_to_judge():
    study = timed([float("nan")] * 40)
    for system in study.chosen:
        (row,) = targets.rows(study, system, goals(limits=(Limit("p95_ms", 500.0, 300.0),)))
        assert (row.status, row.excellent) == (None, False)
        assert np.isnan(row.reached.value)


@pytest.mark.parametrize(
    ("most", "excellent", "status", "is_excellent"),
    [(0.05, 0.05, "met", True), (0.05, 0.04, "met", False), (0.05, None, "met", False),
     (0.049, 0.04, "missed", False)],
)  # fmt: skip
def test_a_price_of_ones_own_meets_a_limit_up_to_the_limit(most, excellent, status, is_excellent):
    study = study_of(40)
    (run,) = study.challengers
    own = replace(price_list.shipped()[0], source="our contract", key="mine",
                  price=Price(0.05, "tokens"))  # fmt: skip
    limit = goals(limits=(Limit("per_million_tokens", most, excellent),))
    (row,) = targets.rows(replace(study, money=Money(prices={run: own})), run, limit)
    assert (row.status, row.excellent, row.example) == (status, is_excellent, False)
    assert row.reached.value == pytest.approx(0.05)
    euros = replace(own, price=Price(0.05, "tokens", "EUR"))
    for money in (
        Money(prices={run: euros}, currency="EUR"),
        Money(prices={run: euros}),
        Money(),
    ):
        (row,) = targets.rows(replace(study, money=money), run, limit)
        assert (row.status, row.excellent) == (None, False)
