"""Whether it pays, in a word: each answer at its boundary from both sides."""

import pytest

from rankdash.study.costs import Choice
from rankdash.study.pricing import MeasuredLoad, Waiting
from rankdash.value.assumptions import DAYS_PER_MONTH, Assumptions
from rankdash.value.billing import Load
from rankdash.value.payoff import NO_CHANGE, Amount, Gain, MeasuredChange, Option, outcome
from rankdash.words.costs import MoneyContext, answer, cell, headline, month, sureness

# A relative gain of 0.1 brings what a search costs.
SCENARIO = Assumptions(searches_per_day=1000, value_per_search=0.01)
COST = 0.001
CONTEXT = MoneyContext(
    currency="USD", metric="NDCG@10", hit="Hit@10", level=0.95, baseline="BM25",
    period=month(), safe=str,
)  # fmt: skip


def choice(gain: Gain | None, scenario: Assumptions = SCENARIO, **more: object) -> Choice:
    option = Option("mini", COST, gain, **more)
    load = MeasuredLoad(Load(4, 10, 50), estimated=False)
    return Choice(option, outcome(option, scenario), "run", None, load, Waiting(None, None))


def changed(value: float, low: float, high: float, proof: str = "proven") -> Gain:
    return Gain(MeasuredChange(value, low, high, proof), queries=40)


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (changed(0.2, 0.101, 0.3), "yes"),
        (changed(0.2, 0.1, 0.3), "maybe"),
        (changed(0.101, 0.01, 0.2), "maybe"),
        (changed(0.1, 0.01, 0.2), "doubtful"),
        (changed(0.05, 0.01, 0.101), "doubtful"),
        (changed(0.05, 0.01, 0.1), "no"),
        (changed(0.2, 0.101, 0.3, "unproven"), "unproven"),
        (changed(0.2, -0.01, 0.3, "unproven"), "unproven"),
        (changed(0.02, -0.01, 0.101, "unproven"), "unproven"),
        (changed(0.02, -0.01, 0.1, "unproven"), "no"),
        (changed(-0.1, -0.2, -0.01), "no"),
        (Gain(MeasuredChange(0.9), queries=4), "unproven"),
        (Gain(NO_CHANGE), "no"),
        (None, "unknown"),
    ],
)
def test_the_answer_follows_from_the_proof_and_the_interval_of_the_net(gain, said):
    assert answer(choice(gain)) == said


@pytest.mark.parametrize(
    ("gain", "why"),
    [
        (changed(0.2, 0.101, 0.3, "unproven"), "may come by chance"),
        (changed(0.2, 0.0, 0.3, "unproven"), "its interval includes 0"),
        (Gain(MeasuredChange(0.9), queries=4), "but 4 queries are too few to tell"),
        (Gain(MeasuredChange(0.9), queries=1), "but 1 query is too few to tell"),
    ],
)
def test_what_is_not_proven_says_why(gain, why):
    text = headline(CONTEXT, choice(gain), SCENARIO)
    assert text.startswith("**Not proven that mini pays.** NDCG@10 changes by +")
    assert why in text
    assert "pays under" not in text and "even if" not in text


def test_tickets_that_no_proof_backs_are_named():
    tickets = Assumptions(searches_per_day=1000, ticket_share=0.1, ticket_cost=10)
    unsure = Gain(NO_CHANGE, MeasuredChange(0.05, -0.01, 0.1, "unproven"), 40)
    assert headline(CONTEXT, choice(unsure, tickets), tickets) == (
        "**Not proven that mini pays.** Hit@10 changes by +0.050, but its interval includes 0. The "
        "value is $1,521 (-$304.17 … $3,042) a month, for $30.42."
    )


@pytest.mark.parametrize(
    ("gain", "note"),
    [
        (
            changed(-0.05, -0.1, -0.01),
            "although NDCG@10 falls by 5.0%, which is proven",
        ),
        (changed(0.05, -0.1, 0.1, "unproven"), "although no gain in NDCG@10 is proven"),
    ],
)
def test_a_saving_that_pays_for_itself_does_not_hide_the_verdict(gain, note):
    reads = Assumptions(searches_per_day=1000, passages=10, llm_price=5)
    text = headline(CONTEXT, choice(gain, reads, passages_after=5), reads)
    assert text.startswith("**mini pays under these assumptions.**")
    assert note in text
    assert "It pays even if better ranking has no value." in text


def test_an_end_that_never_pays_is_never_and_a_loss_keeps_its_sign():
    came = choice(changed(0.02, -0.05, 0.101, "unproven")).came
    value, interval = cell(came.value_per_month, "USD")
    assert (value, interval) == ("$6.08", "-$15.21 … $30.72")
    assert came.value_per_month.low == pytest.approx(-0.05 * 10 * DAYS_PER_MONTH)
    assert cell(came.break_even_price, "USD") == ("$0.20", "never … $1.01")
    assert cell(came.break_even_elasticity, "USD", "elasticity") == ("5.00%", "0.99% … never")


def test_a_break_even_that_needs_no_gain_starts_from_0():
    found = Amount(None, "always", 3.0, "always")
    assert cell(found, "USD", "elasticity") == ("from 0%", "from 0% … 3.00%")
    assert cell(Amount(reason="never"), "USD") == ("never", "")


def test_how_sure_it_is_has_the_interval_of_the_gain_and_nothing_without_one():
    text = sureness(CONTEXT, choice(changed(-0.0001, -0.05, 0.05, "unproven")))
    assert text.startswith(
        "Certainty: NDCG@10 changes by 0.0% (95%: -5.0% … +5.0%), measured on 40"
    )
    assert sureness(CONTEXT, choice(Gain(MeasuredChange(0.9), queries=4))) == ""
