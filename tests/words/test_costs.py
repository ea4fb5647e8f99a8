"""Texts of the break-even analysis: each answer on both sides of its threshold."""

from dataclasses import replace

import pytest

from rankdash.core.runs.results import MeasuredLoad
from rankdash.core.study.costs import Choice, choices
from rankdash.core.study.pricing import Bill, Waiting
from rankdash.core.value.assumptions import DAYS_PER_MONTH, Assumptions
from rankdash.core.value.payoff import NO_CHANGE, Amount, Gain, MeasuredChange, Option, outcome
from rankdash.core.value.prices import Load, shipped
from rankdash.core.words import costs
from rankdash.core.words.costs import month, year
from rankdash.features.cost import words as page_words
from tests.study.best_or_worst import best_or_worst

# A relative gain of 0.1 is worth the cost of a search.
SCENARIO = Assumptions(searches_per_day=1000, value_per_search=0.01)
COST = 0.001
LOAD = MeasuredLoad(Load(4, 10, 50), estimated=False)
LISTED = {each.key: each for each in shipped()}


def context(**changes: object) -> costs.MoneyContext:
    usual = {"currency": "USD", "metric": "NDCG@10", "hit": "Hit@10", "level": 0.95}
    return costs.MoneyContext(
        **usual | {"baseline": "BM25", "period": month(), "safe": str} | changes
    )


def choice(gain: Gain | None, scenario: Assumptions = SCENARIO, **more: object) -> Choice:
    option = Option("mini", COST, gain, **more)
    came = outcome(option, scenario)
    return Choice(option, came, "run", None, LOAD, Waiting(None, None), valued=True)


def change(value: float, low: float, high: float, proof: str = "proven") -> MeasuredChange:
    return MeasuredChange(value, low, high, proof)


def changed(value: float, low: float, high: float, proof: str = "proven", **more: object) -> Gain:
    return Gain(change(value, low, high, proof), queries=40, **more)


SURE = changed(0.2, 0.101, 0.3)
UNSURE = changed(0.2, 0.101, 0.3, "unproven")
LOSS = changed(-0.1, -0.2, -0.01)
FEW = Gain(MeasuredChange(0.9), queries=4)


def only(made: Choice, *, valued: bool = True, example: bool = False) -> Choice:
    """Return a choice as in a study with missing parts. valued: the value of a search is set."""
    made = replace(made, valued=valued, example_values=example)
    return replace(made, outcome=made.under(SCENARIO, made.option.gain, valued=valued))


def billed(gain: Gain | None, *, valued: bool = True) -> Choice:
    """Return a system without a price."""
    bill = Bill(None, LOAD, "USD", lack="price")
    return only(replace(choice(gain), bill=bill), valued=valued)


def came(made: Choice, **changes: object) -> Choice:
    """Return the choice with another outcome."""
    return replace(made, outcome=replace(made.outcome, **changes))


def told(made: Choice, scenario: Assumptions = SCENARIO) -> list[str]:
    return [f"[{costs.answer(made)}] {costs.headline(context(), made, scenario)}"]


def test_the_answer_follows_from_the_proof_and_the_interval_of_the_net(texts):
    tickets = Assumptions(searches_per_day=1000, ticket_share=0.1, ticket_cost=10)
    few_tickets = replace(SCENARIO, ticket_share=0.01, ticket_cost=1.0)
    cheap_tickets = replace(few_tickets, ticket_cost=0.1)
    reads = Assumptions(searches_per_day=1000, passages=10, llm_price=5)
    hits = change(0.2, 0.05, 0.3)
    cases = {
        "the lower end is above the cost": (SURE, SCENARIO),
        "the lower end is the cost": (changed(0.2, 0.1, 0.3), SCENARIO),
        "the value is just above the cost": (changed(0.101, 0.01, 0.2), SCENARIO),
        "the value is the cost": (changed(0.1, 0.01, 0.2), SCENARIO),
        "only the upper end is above the cost": (changed(0.05, 0.01, 0.101), SCENARIO),
        "the upper end is the cost": (changed(0.05, 0.01, 0.1), SCENARIO),
        "not proven by its p": (UNSURE, SCENARIO),
        "not proven by its interval": (changed(0.2, -0.01, 0.3, "unproven"), SCENARIO),
        "the interval ends at 0": (changed(0.2, 0.0, 0.3, "unproven"), SCENARIO),
        "not proven, the upper end above": (changed(0.02, -0.01, 0.101, "unproven"), SCENARIO),
        "not proven, the upper end the cost": (changed(0.02, -0.01, 0.1, "unproven"), SCENARIO),
        "a proven loss": (LOSS, SCENARIO),
        "tuned on these queries": (replace(UNSURE, in_sample=True), SCENARIO),
        "too few queries": (FEW, SCENARIO),
        "one query": (replace(FEW, queries=1), SCENARIO),
        "no change": (Gain(NO_CHANGE), SCENARIO),
        "the change is not known": (None, SCENARIO),
        "building and upkeep count": (SURE, replace(SCENARIO, setup_cost=1)),
        "upkeep counts": (SURE, replace(SCENARIO, monthly_cost=1)),
        "tickets that no proof backs": (
            Gain(NO_CHANGE, change(0.05, -0.01, 0.1, "unproven"), 40), tickets),
        "probably pays by tickets, which does not hold yet": (
            Gain(change(-0.01, -0.02, -0.005), hits, queries=40), few_tickets),
        "tickets are saved, so it is not never": (
            Gain(change(0.0, -0.01, 0.01, "unproven"), change(0.1, 0.05, 0.2), 40), cheap_tickets),
    }  # fmt: skip
    saving = {
        "a saving pays in spite of a proven loss": changed(-0.05, -0.1, -0.01),
        "a saving pays without a proven gain": changed(0.05, -0.1, 0.1, "unproven"),
        "a saving pays where nothing changes": Gain(NO_CHANGE),
    }
    texts(
        "answers",
        {name: told(choice(gain, each), each) for name, (gain, each) in cases.items()}
        | {
            name: told(choice(gain, reads, passages_after=5), reads)
            for name, gain in saving.items()
        }
        | {
            f"of a year, {gain.relative.value} {gain.relative.proof}": costs.headline(
                context(period=year()), choice(gain), SCENARIO
            )
            for gain in (SURE, UNSURE, LOSS)
        }
        | {
            f"net {net}, up to {high}": told(
                came(choice(SURE), pays=False, proven=True, net_per_month=Amount(net, low, high))
            )
            for net, low, high in (
                *((0.0, None, None), (0.0, -1.0, 0.0), (0.0, -1.0, 0.01)),
                *((0.0, "never", "always"), (0.01, -1.0, 1.0)),
            )
        },
    )


def test_without_a_price_and_a_value_of_ones_own_there_is_a_break_even_at_most(texts):
    unsettled, never = changed(-0.1, -0.2, 0.01, "unproven"), Amount(reason="never")
    cases = {
        "no value": only(choice(SURE), valued=False),
        "no price": billed(SURE),
        "neither": billed(SURE, valued=False),
        "not proven, no value": only(choice(UNSURE), valued=False),
        "not proven, no price": billed(UNSURE),
        "the upper end is above 0": billed(unsettled),
        "the upper end is 0": billed(changed(-0.1, -0.2, 0.0, "unproven")),
        "a loss, no value": only(choice(LOSS), valued=False),
        "a loss, no price": billed(LOSS),
        "no change, no price": billed(Gain(NO_CHANGE)),
        "too few queries, no price": billed(FEW),
        "no searches": came(billed(SURE), break_even_price=Amount(reason="no_traffic")),
        "no price is low enough": came(billed(SURE), break_even_price=never),
    }
    for key, more in {
        "own-cpu": {"lack": "throughput"}, "own": {}, "own ": {"chosen": True},
    }.items():  # fmt: skip
        bill = Bill(LISTED[key.strip()], LOAD, "USD", **more)
        cases[f"no value, and of the price: {more}"] = only(
            replace(choice(SURE), bill=bill), valued=False
        )
        for valued in (True, False):
            shown = only(replace(choice(SURE), bill=bill), valued=valued, example=True)
            cases[f"example values, valued: {valued}, and of the price: {more}"] = shown
    worth = only(choice(SURE), valued=False)
    for reason in ("no_traffic", "always"):
        cases[f"worth: {reason}"] = came(worth, break_even_worth=Amount(reason=reason))
    upkeep = replace(SCENARIO, monthly_cost=5.0)
    texts(
        "break_even_only",
        {name: [*told(made), page_words.cautions(made, 500.0)] for name, made in cases.items()}
        | {"upkeep": told(cases["no price is low enough"], upkeep)},
    )


def test_from_which_value_on_it_pays(texts):
    cases = {
        "a value": (Amount(0.5), Amount(), False),
        "with its interval": (Amount(0.5, 0.4, 0.6), Amount(), False),
        "and searches": (Amount(0.5), Amount(0.0), False),
        "and one search": (Amount(0.5), Amount(1.0), False),
        "without a gain": (Amount(0.5), Amount(), True),
        "no searches": (Amount(reason="no_traffic"), Amount(), False),
        "a search is worth nothing": (Amount(reason="no_value"), Amount(), False),
        "no gain": (Amount(reason="no_gain"), Amount(), False),
    }
    texts(
        "break_even",
        {
            name: told(came(choice(SURE), break_even_elasticity=even, break_even_searches=searches,
                            pays_without_gain=free))
            for name, (even, searches, free) in cases.items()
        },
    )  # fmt: skip


def test_a_figure_has_its_interval_where_that_says_more(texts):
    always, unsure = "always", choice(changed(0.02, -0.05, 0.101, "unproven")).outcome
    cells = [
        *((Amount(2.0, 2.0, 2.0), "money"), (Amount(2.0, 2.0, 3.0), "money")),
        *((Amount(2.0, None, 3.0), "money"), (Amount(2.0, 1.0, None), "money")),
        *((Amount(2.0, always, 3.0), "money"), (Amount(2.0, always, 3.0), "elasticity")),
        *((Amount(None, always, 3.0, always), "elasticity"), (Amount(reason="never"), "money")),
        *(
            (Amount(0.0), "elasticity"),
            (Amount(0.0049), "elasticity"),
            (Amount(123456.0), "elasticity"),
        ),
        *((Amount(0.0075, 0.005, 0.0148), "elasticity"), (Amount(0.00012), "elasticity")),
        *((Amount(0.0999), "elasticity"), (Amount(0.1), "elasticity"), (Amount(1.25), "months")),
        *((Amount(0.125), "percent"), (Amount(1234.4), "count")),
        *((unsure.value_per_month, "money"), (unsure.break_even_price, "money")),
        (unsure.break_even_elasticity, "elasticity"),
        (year().of(unsure.value_per_month), "money"),
    ]
    reasons = ["no_cost", "loses", "tenfold", "no_gain", "no_traffic", "no_value", "no_setup"]
    reasons += ["never", "always", "unknown_cost", "unknown_gain", "unset_price", "unset_value"]
    nets = (-0.1, 0.0, 108.3333, 1000.0, 1000.1)
    assert unsure.value_per_month.low == pytest.approx(-0.05 * 10 * DAYS_PER_MONTH)
    texts(
        "figures",
        {
            "figures": [(written, *costs.cell(found, "USD", written)) for found, written in cells],
            "reasons": [(each, *costs.cell(Amount(reason=each), "USD")) for each in reasons],
            "returns on 100": [(net, costs.return_words(net, 100.0)) for net in nets],
            "periods": [(each.name, each.cost, each.value, each.net) for each in (month(), year())],
        },
    )


def test_an_amount_of_a_year_is_that_of_twelve_months_at_every_end():
    assert year().of(Amount(1.0, -2.0, "never")) == Amount(12.0, -24.0, "never")
    assert year().of(Amount(None, None, 3.0, "no_gain")) == Amount(None, None, 36.0, "no_gain")
    assert month().of(Amount(1.0, 2.0, 3.0)) == Amount(1.0, 2.0, 3.0)


def test_how_sure_it_is_has_the_interval_of_the_gain_and_nothing_without_one(texts):
    gains = {
        "an interval, and a change that rounds to nothing": changed(-0.0001, -0.05, 0.05),
        "no interval": FEW,
        "no width": changed(0.1, 0.1, 0.1),
        "a judge": changed(0.1, 0.0, 0.2, judge="Judge <A>"),
        "one label": changed(0.1, 0.0, 0.2, labels=1),
        "labels, and no queries": replace(changed(-0.49, -0.79, -0.27), queries=200, labels=325),
    }
    safe = context(safe=lambda name: name.replace("<", "&lt;"))
    texts("sureness", {name: costs.sureness(safe, choice(gain)) for name, gain in gains.items()})


def test_what_is_saved_and_what_is_less_than_sure_of_an_option(texts):
    passages = {
        "no LLM": (0, None, {}),
        "no number of passages is enough": (1, None, {}),
        "fewer passages": (10, 4, {}),
        "the system as it is": (10, 4, {"free": True}),
        "a price alone": (10, 4, {"system": ""}),
    }
    waits = {
        "not measured": Waiting(None, None),
        "few queries": Waiting(9.0, None, timed=3),
        "on the target": Waiting(None, 500.0),
        "over it": Waiting(None, 501.0),
        "busy": Waiting(None, 9.0, busy=True),
    }
    lacking = replace(choice(SURE), bill=Bill(None, LOAD, "USD", lack="rate"))

    def kept(before: int, after: int | None, system: str = "run", free: bool = False) -> str:
        scenario = replace(SCENARIO, passages=before, passage_tokens=200)
        made = replace(choice(SURE, free=free), passages=after, system=system)
        return page_words.passages(made, scenario)

    texts(
        "cautions",
        {name: kept(*given, **more) for name, (*given, more) in passages.items()}
        | {
            f"latency, {name}": [
                *page_words.cautions(replace(lacking, waiting=each), 500.0),
                (
                    "a price alone",
                    *page_words.cautions(replace(lacking, waiting=each, system=""), 500),
                ),
            ]
            for name, each in waits.items()
        },
    )


def test_one_reason_says_why_there_is_no_answer(texts):
    def said(n: int, metric: str, first) -> list[str]:
        study = best_or_worst(n, metric, first, lambda _at: True)
        title, name = study.measure.title, study.name(study.baseline)
        safe = context(metric=title, baseline=name, safe="<{}>".format)
        return [costs.headline(safe, choices(study)[1], SCENARIO)]

    cases = {
        "two queries": (2, "precision@3", bool),
        "five queries": (5, "precision@3", bool),
        "two queries whose baseline is 0": (2, "precision@3", lambda _at: False),
        "six queries whose baseline is 0": (6, "precision@3", lambda _at: False),
        "six queries whose baseline is above 0": (6, "precision@3", bool),
        "no metric of quality": (6, "judged@3", bool),
    }
    texts("no_answer", {name: said(*each) for name, each in cases.items()})
