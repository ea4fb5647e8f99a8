"""Whether it pays, in a word: each answer at its boundary from both sides."""

from dataclasses import replace

import pytest

from rankdash.runs.usage import MeasuredLoad
from rankdash.study.costs import Choice
from rankdash.study.costs import choices as costs_of
from rankdash.study.pricing import Bill, Waiting
from rankdash.value.assumptions import DAYS_PER_MONTH, Assumptions
from rankdash.value.billing import Load
from rankdash.value.payoff import NO_CHANGE, Amount, Gain, MeasuredChange, Option, outcome
from rankdash.value.price_list import ListedPrice, shipped
from rankdash.words import assumptions, costs, prices
from rankdash.words.costs import MoneyContext, answer, cell, headline, sureness
from rankdash.words.money import month, year
from tests.study.best_or_worst import best_or_worst

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
    came = outcome(option, scenario)
    return Choice(option, came, "run", None, load, Waiting(None, None), valued=True)


def changed(value: float, low: float, high: float, proof: str = "proven") -> Gain:
    return Gain(MeasuredChange(value, low, high, proof), queries=40)


LOAD = MeasuredLoad(Load(4, 10, 50), estimated=False)
SURE = changed(0.2, 0.101, 0.3)


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
        (Gain(NO_CHANGE), ""),
    ],
)
def test_a_saving_that_pays_for_itself_does_not_hide_the_verdict(gain, note):
    reads = Assumptions(searches_per_day=1000, passages=10, llm_price=5)
    text = headline(CONTEXT, choice(gain, reads, passages_after=5), reads)
    assert text.startswith("**mini pays under these assumptions.**")
    assert note in text and ("although" in text) is bool(note)
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
    estimated = replace(changed(-0.49, -0.79, -0.27), queries=200, labels=325)
    said = sureness(CONTEXT, choice(estimated))
    assert "(95%: -79.0% … -27.0%), estimated from 325 labels." in said and "200" not in said


def test_a_change_that_is_not_known_yet_is_a_sentence():
    assert headline(CONTEXT, choice(None), SCENARIO) == (
        "**No answer for mini.** The change of NDCG@10 is not known yet."
    )


# Prices that nobody set, amounts of a year, and the sentences that turn with them.


def billed(gain: Gain | None, lack: str = "price", **more: object) -> Choice:
    """A system whose price nobody set."""
    return only(replace(choice(gain, **more), bill=Bill(None, LOAD, "USD", lack=lack)))


def only(made: Choice, *, valued: bool = True, example: bool = False) -> Choice:
    """With what a study leaves of it. valued: whether the value of a search is set."""
    made = replace(made, valued=valued, example_values=example)
    return replace(made, came=made.under(SCENARIO, made.option.gain, valued=valued))


def listed(key: str = "own-cpu") -> ListedPrice:
    return next(each for each in shipped() if each.key == key)


@pytest.mark.parametrize(
    ("gain", "assumed", "unset", "said"),
    [
        (SURE, False, False, "yes"),
        (SURE, True, False, "open"),
        (SURE, False, True, "open"),
        (changed(0.2, 0.101, 0.3, "unproven"), True, False, "unproven"),
        (changed(-0.1, -0.2, 0.01, "unproven"), False, True, "unproven"),
        (changed(-0.1, -0.2, 0.0, "unproven"), False, True, "no"),
        (changed(-0.1, -0.2, -0.01), True, False, "no"),
        (Gain(NO_CHANGE), False, True, "no"),
        (Gain(MeasuredChange(0.9), queries=4), False, True, "unproven"),
    ],
)
def test_without_a_price_of_ones_own_there_is_a_break_even_at_most(gain, assumed, unset, said):
    made = only(billed(gain) if unset else choice(gain), valued=not assumed)
    assert made.unset is unset
    assert answer(made) == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(None, None, "no"), (-1.0, 0.0, "no"), (-1.0, 0.01, "doubtful"), ("never", "always",
                                                                       "doubtful")],
)  # fmt: skip
def test_a_net_of_nothing_is_doubtful_as_long_as_its_upper_end_is_above(low, high, said):
    made = choice(SURE)
    came = replace(made.came, pays=False, proven=True, net_per_month=Amount(0.0, low, high))
    assert answer(replace(made, came=came)) == said


def test_an_amount_of_a_year_is_that_of_twelve_months_at_every_end():
    assert year().of(Amount(1.0, -2.0, "never")) == Amount(12.0, -24.0, "never")
    assert year().of(Amount(None, None, 3.0, "no_gain")) == Amount(None, None, 36.0, "no_gain")
    assert month().of(Amount(1.0, 2.0, 3.0)) == Amount(1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("found", "written", "said"),
    [
        (Amount(2.0, 2.0, 2.0), "money", ("$2.00", "")),
        (Amount(2.0, 2.0, 3.0), "money", ("$2.00", "$2.00 … $3.00")),
        (Amount(2.0, None, 3.0), "money", ("$2.00", "– … $3.00")),
        (Amount(2.0, 1.0, None), "money", ("$2.00", "$1.00 … –")),
        (Amount(2.0, "always", 3.0), "money", ("$2.00", "from the first search … $3.00")),
        (Amount(2.0, "always", 3.0), "elasticity", ("2.00%", "from 0% … 3.00%")),
        (Amount(0.0), "elasticity", ("0.00%", "")),
        (Amount(0.0049), "elasticity", ("0.0049%", "")),
        (Amount(0.0075, 0.005, 0.0148), "elasticity", ("0.0075%", "0.005% … 0.015%")),
        (Amount(0.00012), "elasticity", ("0.00012%", "")),
        (Amount(0.1), "elasticity", ("0.10%", "")),
        (Amount(1.25), "months", ("1.2", "")),
        (Amount(0.125), "percent", ("12%", "")),
    ],
)
def test_a_figure_has_its_interval_where_that_says_more(found, written, said):
    assert cell(found, "USD", written) == said


@pytest.mark.parametrize(
    ("bill", "said"),
    [
        (Bill(None, LOAD, "USD", lack="price"), "mini has no price (no price given)"),
        (Bill(listed(), LOAD, "USD", lack="throughput"),
         "mini has no price (throughput not measured)"),
        (Bill(listed("own"), LOAD, "USD"), "the price of mini is an example"),
        (Bill(listed("own"), LOAD, "USD", chosen=True), "the value of a search is not set"),
        (None, "the value of a search is not set"),
    ],
)  # fmt: skip
def test_why_there_is_only_a_break_even(bill, said):
    found = only(replace(choice(SURE), bill=bill), valued=False)
    text = headline(CONTEXT, found, SCENARIO)
    assert text.startswith(f"**Break-even only: {said}.** ")
    if found.unset:
        assert text.endswith("** Set its price and the value of a search to see from which point "
                             "it pays.")  # fmt: skip
    else:
        # $1.00 for 1,000 searches that gain 20 %.
        assert text.endswith("** It pays if 1% more NDCG@10 is worth at least **$0.05** (95%: "
                             "$0.033 … $0.099) for 1,000 searches.")  # fmt: skip


@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize("valued", [True, False])
def test_example_values_mark_what_rests_on_them(chosen, valued):
    bill = Bill(listed("own"), LOAD, "USD", chosen=chosen)
    made = only(replace(choice(SURE), bill=bill), valued=valued, example=True)
    text = headline(CONTEXT, made, SCENARIO)
    marked = not (chosen and valued)
    assert made.demonstrated is marked
    assert text.startswith("**Example values.** **mini pays" if marked else "**mini pays")
    assert ("example values" in prices.cautions(made, 500.0)) is marked
    without = only(made, valued=valued)
    assert (without.came.net_per_month.value is None) is marked


@pytest.mark.parametrize(
    ("net", "cost", "said"),
    [
        (108.3333, 100.0, "108.33%"),
        (1000.0, 100.0, "1,000.00%"),
        (1001.0, 100.0, "more than ten times the cost"),
        (-0.1, 100.0, "loses money"),
        (0.0, 100.0, "0.00%"),
    ],
)
def test_a_return_is_printed_from_0_to_a_thousand_percent(net, cost, said):
    assert costs.return_words(net, cost) == said


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (billed(Gain(NO_CHANGE)), "It leaves NDCG@10 as it is."),
        (billed(changed(-0.1, -0.2, -0.01)), "It changes NDCG@10 by -10.0%."),
        (
            choice(changed(-0.1, -0.2, -0.01)),
            "It changes NDCG@10 by -10.0%. It costs $30.42 a month.",
        ),
    ],
)
def test_what_pays_at_no_price_changes_nothing_or_for_the_worse(made, said):
    text = headline(CONTEXT, made, SCENARIO)
    assert text == f"**No: mini does not pay at any price.** {said}"


def test_a_gain_that_is_too_small_for_its_price_may_pay_at_another():
    text = headline(CONTEXT, choice(changed(0.05, 0.01, 0.1)), SCENARIO)
    assert text.startswith("**mini does not pay under these assumptions.**") and "$30.42" in text


def test_what_probably_pays_by_tickets_does_not_hold_yet():
    fewer, hit = (
        MeasuredChange(-0.01, -0.02, -0.005, "proven"),
        MeasuredChange(0.2, 0.05, 0.3, "proven"),
    )
    scenario = replace(SCENARIO, ticket_share=0.01, ticket_cost=1.0)
    said = headline(CONTEXT, choice(Gain(fewer, hit, queries=40), scenario), scenario)
    assert said.startswith("**mini probably pays under these assumptions.**")
    assert "This holds although" not in said


def test_tickets_that_are_saved_are_no_reason_to_say_never():
    hit = MeasuredChange(0.1, 0.05, 0.2, "proven")
    gain = Gain(MeasuredChange(0.0, -0.01, 0.01, "unproven"), hit, queries=40)
    scenario = replace(SCENARIO, ticket_share=0.01, ticket_cost=0.1)
    assert "at any price" not in headline(CONTEXT, choice(gain, scenario), scenario)


@pytest.mark.parametrize(("setup", "monthly", "said"), [(0, 0, True), (1, 0, False), (0, 1, False)])
def test_building_that_counts_nothing_is_said_of_what_nets_something(setup, monthly, said):
    scenario = replace(SCENARIO, setup_cost=setup, monthly_cost=monthly)
    text = headline(CONTEXT, choice(SURE, scenario), scenario)
    assert ("Building and upkeep count as $0.00." in text) is said
    loss = changed(0.05, 0.01, 0.1)
    assert "Building" not in headline(CONTEXT, choice(loss), SCENARIO)
    nets = replace(choice(SURE).came, pays=False, proven=True)
    for net, told in ((0.0, False), (0.01, True)):
        came = replace(nets, net_per_month=Amount(net, -1.0, 1.0))
        text = headline(CONTEXT, replace(choice(SURE), came=came), SCENARIO)
        assert ("Building" in text) is told


def test_a_price_that_nobody_set_costs_nothing_in_the_headline():
    said = headline(CONTEXT, billed(changed(0.2, 0.101, 0.3, "unproven")), SCENARIO)
    assert said.startswith("**Not proven that mini pays.**")
    assert "The value is" not in said and "It pays while 1,000 searches cost at most" in said
    typed = headline(CONTEXT, choice(changed(0.2, 0.101, 0.3, "unproven")), SCENARIO)
    assert "The value is $60.83" in typed and "for $30.42" in typed
    assert "It pays if 1% more NDCG@10 brings at least" in typed


def test_the_price_that_is_low_enough_rests_on_what_was_set():
    text = headline(CONTEXT, billed(SURE), SCENARIO)
    assert "It pays while 1,000 searches cost at most **$2.00** (95%: $1.01 … " in text
    assert text.endswith("if a search is worth $0.01 and 1% more NDCG@10 brings 1% more value.")


@pytest.mark.parametrize(
    ("price", "said"),
    [
        (Amount(reason="no_traffic"), "There are no searches, so there is nothing to gain."),
        (
            Amount(reason="never"),
            "With the change as measured, no price is low enough: it brings nothing.",
        ),
    ],
)
def test_why_no_price_is_low_enough(price, said):
    made = billed(SURE)
    made = replace(made, came=replace(made.came, break_even_price=price))
    assert headline(CONTEXT, made, SCENARIO).endswith(said)
    upkeep = replace(SCENARIO, monthly_cost=5.0)
    assert ("less than its upkeep" in headline(CONTEXT, made, upkeep)) is (price.reason == "never")


@pytest.mark.parametrize(
    ("even", "searches", "without_gain", "said"),
    [
        (Amount(0.5), Amount(), False, "It pays if 1% more NDCG@10 brings at least **0.50%** more "
         "value."),
        (Amount(0.5, 0.4, 0.6), Amount(), False, "It pays if 1% more NDCG@10 brings at least "
         "**0.50%** more value (95%: 0.40% … 0.60%)."),
        (Amount(0.5), Amount(0.0), False, "It pays if 1% more NDCG@10 brings at least **0.50%** "
         "more value. From 0 searches a day on."),
        (Amount(0.5), Amount(), True, "It pays even if better ranking has no value."),
        (Amount(reason="no_traffic"), Amount(), False,
         "There are no searches, so there is nothing to gain."),
        (Amount(reason="no_gain"), Amount(), False, ""),
    ],
)  # fmt: skip
def test_from_which_value_on_it_pays(even, searches, without_gain, said):
    made = choice(SURE)
    came = replace(made.came, break_even_elasticity=even, break_even_searches=searches,
                   pays_without_gain=without_gain)  # fmt: skip
    text = headline(CONTEXT, replace(made, came=came), SCENARIO)
    text = text.removeprefix("**mini pays under these assumptions.** ")
    assert text.partition("At the 1.00% ")[0].strip() == said


@pytest.mark.parametrize(
    ("before", "after", "more", "said"),
    [
        (0, None, {}, ""),
        (1, None, {}, "No saving on the LLM is claimed"),
        (10, 4, {}, "4 reranked passages reliably keep the recall of the first 10: the LLM reads "
         "1,200 fewer tokens a search."),
        (10, 4, {"free": True}, ""),
        (10, 4, {"system": ""}, ""),
    ],
)  # fmt: skip
def test_passages_that_an_llm_no_longer_reads_are_counted_for_a_reranker(before, after, more, said):
    scenario = replace(SCENARIO, passages=before, passage_tokens=200)
    made = choice(SURE, free=more.get("free", False))
    made = replace(made, passages=after, system=more.get("system", "run"))
    assert assumptions.passages(made, scenario).startswith(said)
    assert said or assumptions.passages(made, scenario) == ""


@pytest.mark.parametrize(
    ("system", "p95", "said"),
    [
        ("run", None, ["latency: not measured"]),
        ("", None, []),
        ("run", 3, ["latency: 3 queries timed; p95 needs 5"]),
        ("run", 500.0, []),
        ("run", 501.0, ["▼ p95 of 501 ms misses the target of 500 ms"]),
    ],
)
def test_a_latency_is_a_caution_where_it_misses_the_target_or_is_not_known(system, p95, said):
    waiting = Waiting(9.0, None, timed=p95) if p95 == 3 else Waiting(None, p95)
    made = replace(choice(SURE), system=system, waiting=waiting)
    assert prices.cautions(made, 500.0) == said
    lacking = replace(made, bill=Bill(None, LOAD, "USD", lack="rate"))
    assert prices.cautions(lacking, 500.0) == ["no exchange rate", *said]


def never(_at: int) -> bool:
    return False


@pytest.mark.parametrize(
    ("n", "metric", "first", "why"),
    [
        (2, "precision@3", bool, "Too few queries to compare <run> with <First stage>: 2, where at "
         "least 6 are needed. Label more queries."),
        (5, "precision@3", bool, "Too few queries to compare <run> with <First stage>: 5, where at "
         "least 6 are needed. Label more queries."),
        (2, "precision@3", never, "Too few queries to compare <run> with <First stage>: 2, where "
         "at least 6 are needed. Label more queries."),
        (6, "precision@3", never, "Precision@3 of <First stage> is 0.000, so there is no relative "
         "gain."),
        (6, "judged@3", bool, "Judged@3 describes the labels and not the quality of a ranking: no "
         "verdict follows."),
    ],
)  # fmt: skip
def test_one_reason_says_why_there_is_no_answer(n, metric, first, why):
    study = best_or_worst(n, metric, first, lambda _at: True)
    context = replace(
        CONTEXT, metric=study.measure.title, baseline=study.name(study.baseline), safe="<{}>".format
    )
    said = headline(context, costs_of(study)[1], SCENARIO)
    assert said == f"**No answer for <run>.** {why}"


def test_six_queries_whose_baseline_is_above_0_have_an_answer():
    study = best_or_worst(6, "precision@3", bool, lambda _at: True)
    assert "No answer" not in headline(CONTEXT, costs_of(study)[1], SCENARIO)
