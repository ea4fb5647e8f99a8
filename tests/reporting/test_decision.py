"""The decision page: result, cost, risk, missing data and one next step, under every combination of
verdict, labels, price and latency."""

import dataclasses

import pytest

from rankdash.core.data.measured import Measured
from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.prices import Price
from rankdash.core.value.targets import Goals, Limit, Profile
from rankdash.core.value.targets import shipped as targets
from rankdash.core.words import targets as words_targets
from rankdash.features.cost import words as cost_words
from rankdash.features.report.decision import decision
from rankdash.features.report.report import PRESETS, Front, html
from tests.approved import table
from tests.reporting import builders
from tests.reporting.reading import Read


def page(study: Study, language: str = "en") -> Read:
    """Return the decision page, after a check that the report has no other section."""
    read = Read(html(study, Front(sections=PRESETS["decision"], language=language)))
    assert list(read.parts) == ["", "decision"] and not read.all("nav")
    return read


def with_money(study: Study, money: Money | None) -> Study:
    return dataclasses.replace(study, money=money)


def priced(study: Study, price: Price) -> Study:
    """Return the study with a price that the user set."""
    return with_money(study, Money(prices={"run": dataclasses.replace(builders.OWN, price=price)}))


# Steps with different text on the page; tests/study/test_decision.py has the rules of every step.
STEPS = {
    "price": lambda study: study,
    "trial": lambda study: with_money(study, builders.MONEY),
    "price: example values": lambda study: with_money(study, Money(example=True)),
    "price: in another currency": lambda study: priced(study, Price(1.0, "flat", "EUR")),
    "latency": lambda study: builders.study_of(timed=False),
    "unprovable": lambda study: builders.with_minimum(
        builders.moved(study, lambda at: (2, 4)[at % 2]), 0.3
    ),
    "queries": lambda study: builders.labelled(study, lambda query, label: query < "q03"),
    "baseline: corpus-bm25": lambda study: builders.labelled(study, first_stage="corpus-bm25"),
    "model": lambda study: builders.changed(
        builders.moved(study, lambda at: 7), measured=Measured(unknown_tokens=0.6)
    ),
    "metric": lambda study: dataclasses.replace(study, metric="judged"),
    # bpref has no value without documents that are labelled as not relevant.
    "judge: equal values are no reason to stop": lambda study: dataclasses.replace(
        builders.labelled(study, lambda query, label: label > 0), metric="bpref", cutoff=None
    ),
    "price: one query gets worse": lambda study: builders.moved(
        study, lambda at: 7 if at == 9 else 0
    ),
    "price: none gets worse": lambda study: builders.moved(study, lambda at: 0),
}


def test_there_is_one_next_step_and_what_it_rests_on(better, approved):
    usual = {language: page(better, language).lines("decision") for language in ("en", "zh")}
    said: dict[str, dict[str, str]] = {language: {} for language in usual}
    for name, change in STEPS.items():
        study = change(better)
        assert decision(study, "run").step == name.partition(":")[0], name
        for language, known in usual.items():
            lines = page(study, language).lines("decision")
            # Lines common to all steps are included once.
            told = [each for each in lines if name == "price" or each not in known]
            said[language][name] = "\n".join(told)
    for language, cases in said.items():
        approved(f"report/steps.{language}", table(cases))


@pytest.mark.parametrize(
    ("ms", "said"),
    [(500.0 * (1 + 1e-12), None), (500.3, "500.3")],
)
def test_exactly_the_target_is_met_everywhere_and_what_is_over_is_never_written_like_it(
    better, ms, said
):
    slow = builders.changed(better, queries=better.run("run").queries.assign(latency_ms=ms))
    limit = Profile("Own", (), (Limit("p95_ms", 500.0),))
    judged = dataclasses.replace(slow, goals=Goals(targets().with_profile("own", limit), "own"))
    [row] = [
        each for each in words_targets.target_rows(judged, judged.goals) if each[0] == "mover plain"
    ]
    over = f"p95 latency is {said} ms, above the target of 500 ms."
    of_choice = cost_words.cautions(decision(slow, "run").choice, 500.0)
    shown = page(slow).text("decision")
    if said is None:
        assert "above the target" not in shown
        assert not any("misses" in each for each in of_choice)
        # With 27 queries neither is conclusive.
        assert row[8] == "? undecided"
    else:
        assert over in shown
        assert of_choice[-1] == f"▼ p95 of {said} ms misses the target of 500 ms"
        assert (row[2], row[8]) == (said, "▼ missed")


def test_all_systems_stand_below_the_best_one_under_their_full_names(better):
    name = "a cross-encoder with a long name that a table would like to cut, 50 candidates"
    last = builders.moved(better, lambda at: 7).systems["run"]
    systems = {**better.systems, "worse": dataclasses.replace(last, id="worse", name=name)}
    both = dataclasses.replace(better, systems=systems, challengers=("worse", "run"))
    read = page(both)
    head, *rows = read.rows
    assert head[0].startswith("System")
    for row, full in zip(rows, ("mover plain", "first", name), strict=True):
        assert row[0].startswith(full)
    assert "worse" in rows[2][0]
    cells = dict(zip(head, rows[2], strict=True))
    assert (cells["Helped / hurtqueries"], cells["p95 added"]) == ("0 / 27", "47.7 ms")
    assert "mover plain against first" in read.text("decision")
