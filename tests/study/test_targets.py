"""Targets of a profile: met or missed by the interval, and what labels and candidates allow."""

from dataclasses import replace

import numpy as np
import pytest

from rankdash.reporting import targets as table
from rankdash.reporting.report import Front, html
from rankdash.study import targets
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money
from rankdash.value import price_list
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


@pytest.mark.parametrize(("asked", "status"), [(0.6, "met"), (0.9, "undecided"), (0.99, "missed")])
def test_the_interval_decides_and_not_the_mean(asked, status):
    study = study_of(40)
    (run,) = study.challengers
    (row,) = targets.rows(study, run, goals(Target("hit@3", target=asked)))
    assert row.reached.value == pytest.approx(0.9)
    assert row.reached.low < 0.9 < row.reached.high < 0.99
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
    money = Money(prices={study.challengers[0]: price_list.shipped()[0]})
    study = replace(study, money=money)
    limit = Limit("per_million_tokens", 1e-6)
    (row,) = targets.rows(study, study.challengers[0], goals(limits=(limit,)))
    assert (row.status, row.example) == ("undecided", True)
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
