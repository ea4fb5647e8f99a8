"""Targets of a profile: met or missed by the interval, and what labels and candidates allow."""

import math
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
from rankdash.value.targets import Goals, Limit, Profile, Target, TargetRow, shipped
from tests.study.best_or_worst import best_or_worst


def study_of(n: int = 40, relevant: int = 1) -> Study:
    """The relevant documents last in the first stage, and for every tenth query of the run."""
    return best_or_worst(n, "mrr@3", lambda _at: False, lambda at: at % 10 != 0, relevant=relevant)


def goals(*asked: Target | Limit) -> Goals:
    limits = tuple(each for each in asked if isinstance(each, Limit))
    wanted = tuple(each for each in asked if isinstance(each, Target))
    return Goals(shipped().with_profile("own", Profile("Own", wanted, limits)), "own")


def row(study: Study, asked: Target | Limit, system: str = "") -> TargetRow:
    (found,) = targets.rows(study, system or study.challengers[0], goals(asked))
    return found


def test_precision_at_3_with_one_answer_a_query_is_at_most_a_third_and_no_failure():
    study = study_of()
    found = targets.rows(study, study.challengers[0], Goals(shipped(), "faq"))
    by = {each.subject: each for each in found}
    assert by["precision@3"].reached.most == pytest.approx(1 / 3)
    assert (by["precision@3"].status, by["precision@3"].advice) == ("unreachable", "")
    assert by["precision@3"].band == "poor", "what such a value is usually called stays"
    assert by["mrr"].reached.most == 1.0
    assert by["p95_ms"].status is None
    three = study_of(relevant=3)
    specs = ("precision@3",)
    assert targets.figures(three, three.challengers[0], specs)["precision@3"].most == 1.0


@pytest.mark.parametrize(("asked", "status"), [(0.6, "met"), (0.9, "undecided"), (0.999, "missed")])
def test_the_interval_decides_and_not_the_mean(asked, status):
    found = row(study_of(), Target("hit@3", target=asked))
    assert found.reached.value == pytest.approx(0.9)
    assert found.reached.low < 0.9 < found.reached.high < 0.999
    assert found.status == status


def test_fewer_than_five_queries_decide_nothing():
    study = study_of(4)
    for system in study.chosen:
        found = row(study, Target("hit@3", target=0.5), system)
        assert found.status == "undecided"
        assert np.isnan([found.reached.low, found.reached.high]).all()


def test_advice_is_for_what_may_be_below_and_could_be_above():
    study = study_of()
    first, ours = (row(study, Target("mrr", target=0.8), system) for system in study.chosen)
    assert (first.status, first.band) == ("missed", "poor")
    assert first.advice.startswith("The first relevant document is usually not near the top")
    assert (ours.band, ours.advice) == ("excellent", "")


def test_an_example_price_decides_nothing_and_is_called_so():
    study = replace(study_of(), money=Money(example=True))
    limit = Limit("per_million_tokens", 1e-6)
    within = row(study, Limit("per_million_tokens", 1e6, 1e5))
    assert (row(study, limit).status, row(study, limit).example) == ("undecided", True)
    assert (within.status, within.excellent) == ("undecided", False)
    (_first, ours) = table.rows(study, goals(limit))
    assert ours[2].endswith("(example price)")
    assert "example price" in ours[8]


def test_the_report_has_the_rows_of_the_page_where_a_profile_was_chosen():
    study, chosen = study_of(), Goals(shipped(), "faq")
    assert "reachable at most" not in html(study, Front(sections=("systems",))).decode()
    study = replace(study, goals=chosen)
    page = html(study, Front(sections=("systems",))).decode()
    assert "Targets: FAQ" in page
    for each in table.rows(study, chosen):
        assert all(f">{cell}<" in page for cell in each[1:8] if cell)


def test_every_scenario_sets_metric_cutoff_and_latency_together():
    for key in ("faq", "documents", "ecommerce", "academic", "enterprise"):
        each = shipped().profiles[key]
        assert each.measure.partition("@")[2].isdigit()
        assert each.limit("p95_ms").target in (500, 2000)


def timed(ms: list[float]) -> Study:
    study = study_of(len(ms))
    run = study.run(study.challengers[0])
    run = replace(run, queries=run.queries.assign(latency_ms=ms))
    return replace(study, systems=systems_of(study.dataset, [run]))


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
    ms = [100.0 + n / 4 for n in range(400)]
    found = row(timed(ms), Limit("p95_ms", limit, excellent))
    assert (found.status, found.excellent, found.subject) == (status, is_excellent, "p95_ms")
    assert found.reached.low < found.reached.value < found.reached.high
    assert found.reached.value == pytest.approx(np.quantile(ms, 0.95))


def test_the_first_stage_and_what_was_not_timed_have_no_latency_to_judge():
    study = timed([math.nan] * 40)
    for system in (FIRST_STAGE, *study.challengers):
        found = row(study, Limit("p95_ms", 500.0, 300.0), system)
        assert (found.status, found.excellent) == (None, False)
        assert np.isnan(found.reached.value)


@pytest.mark.parametrize(
    ("most", "excellent", "status", "is_excellent"),
    [
        (0.05, 0.05, "met", True),
        (0.05, 0.04, "met", False),
        (0.05, None, "met", False),
        (0.049, 0.04, "missed", False),
    ],
)
def test_a_price_of_ones_own_meets_a_limit_up_to_the_limit(most, excellent, status, is_excellent):
    study = study_of()
    (run,) = study.challengers
    own = replace(price_list.shipped()[0], source="our contract", key="mine",
                  price=Price(0.05, "tokens"))  # fmt: skip
    limit = Limit("per_million_tokens", most, excellent)
    found = row(replace(study, money=Money(prices={run: own})), limit)
    assert (found.status, found.excellent, found.example) == (status, is_excellent, False)
    assert found.reached.value == pytest.approx(0.05)
    euros = {run: replace(own, price=Price(0.05, "tokens", "EUR"))}
    for money in (Money(prices=euros, currency="EUR"), Money(prices=euros), Money()):
        found = row(replace(study, money=money), limit)
        assert (found.status, found.excellent) == (None, False)
