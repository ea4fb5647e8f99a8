"""Texts of amounts, prices and assumptions, each on both sides of a change of the text."""

from dataclasses import replace
from datetime import timedelta

from rankdash.core.runs.results import MeasuredLoad
from rankdash.core.study.costs import Choice
from rankdash.core.study.pricing import Bill, Served, Waiting
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import ASSUMPTIONS, Assumptions
from rankdash.core.value.payoff import Option, outcome
from rankdash.core.value.prices import STALE_DAYS, UNITS, ListedPrice, Load, Price, shipped
from rankdash.core.words import prices
from rankdash.core.words.prices import money, symbol
from rankdash.features.cost import words as cost_words
from tests.conftest import TODAY

BY_NAME = {each.name: each for each in ASSUMPTIONS}
BY_KEY = {each.key: each for each in shipped()}


def test_an_amount_has_the_digits_that_say_something(texts):
    amounts = [None, float("inf"), 0.0, -0.0, 1e-12, 0.001, 0.00123, 0.0123, 0.5, 0.999, 1.0]
    amounts += [999.99, -999.994, 1000.0, 1000.4, -1234.5, 1e15, 1.1e15, -1.1e15]
    rows = [(each, *(money(each, currency) for currency in ("USD", "JPY"))) for each in amounts]
    texts("money", {"amounts": rows, "symbols": [symbol(each) for each in ("USD", "EUR", "CNY")]})


def listed(unit: str = "search", age: int = 0, currency: str = "USD") -> ListedPrice:
    price = Price(2.0, unit, currency, utilisation=0.3)
    return ListedPrice("own", "Ours", "", price, "our contract", TODAY - timedelta(days=age))


def bill(price: ListedPrice | None = None, *, estimated: bool = False, **more: object) -> Bill:
    return Bill(price, MeasuredLoad(Load(10, 40, 90), estimated=estimated), "USD", **more)


def hour(way: str, *given: object, **more: object) -> Bill:
    return bill(listed("hour"), served=Served(12.345, way, *given), **more)


def priced(own: Bill | None, load: MeasuredLoad) -> Choice:
    option = Option("mini", 0.001, None)
    came = outcome(option, Assumptions())
    return Choice(option, came, "run", own, load, Waiting(None, None))


def test_a_price_says_what_it_is_where_it_is_from_and_how_sure_it_is(texts):
    old, none = bill(listed(age=STALE_DAYS + 1)), bill(lack="price")
    flat = bill(listed("flat"))
    bills = {
        "as old as may be": bill(listed(age=STALE_DAYS)),
        "a day older": old,
        "tokens estimated, by the search": bill(listed(), estimated=True),
        "tokens estimated, by the token": bill(listed("tokens"), estimated=True),
        # Prices per hour or per search do not depend on the number of tokens.
        "tokens estimated, flat": bill(listed("flat"), estimated=True),
        "an hour with several clients": hour("concurrent", 4, "AMD EPYC", estimated=True),
        "an hour as listed": hour("listed"),
        "an hour of batches": hour("batches"),
        "an hour alone": hour("alone"),
        "an hour of a busy machine": hour("alone", 0, "", True),
        "whole machines": hour("listed", traffic=1e5),
        "another currency": bill(listed(currency="EUR"), rate=1.25),
        "the same currency at a rate": bill(listed(), rate=1.0),
        "no exchange rate": bill(listed(currency="EUR"), rate=None, lack="rate"),
        "no price": none,
        "an example": bill(BY_KEY["own"]),
        "an example that was chosen": bill(BY_KEY["own"], chosen=True),
        "a sum": bill(parts=(("one", flat), ("two", flat))),
        "the marks of its parts once": bill(parts=(("one", old), ("two", old))),
        "a part without a price": bill(parts=(("one", flat), ("two", none)), lack="parts"),
    }
    lacks = ["", "price", "throughput", "tokens", "rate", "parts"]
    rates = [(unit, prices.rate(Price(2.0, unit))) for unit in UNITS]

    def said(own: Bill) -> list[object]:
        row = cost_words.assumption_table(Assumptions(), [priced(own, own.load)], "USD", "Hit@10")[
            -2
        ]
        return [
            (prices.of(own), *prices.marks(own)),
            " · ".join(prices.notes(own)),
            row[1],
        ]

    texts(
        "prices",
        {name: said(own) for name, own in bills.items()}
        | {"lacks": [prices.lack(bill(lack=each)) for each in lacks], "rates": rates},
    )


def test_an_assumption_is_written_by_its_unit_with_its_value_in_force(texts):
    given = Assumptions(traffic_share=0.5)
    counted = MeasuredLoad(Load(10, 40, 90), estimated=False)
    loads = {
        "counted": counted,
        "estimated": replace(counted, estimated=True),
        "one document": MeasuredLoad(Load(10, 1, 90), estimated=False),
        "no texts": MeasuredLoad(Load(10, 40, float("nan")), estimated=True),
    }
    options = {name: priced(bill(listed()), each) for name, each in loads.items()}
    texts(
        "assumptions",
        {
            "rows": cost_words.assumption_table(given, [priced(None, counted)], "EUR", "Hit@10"),
            "units": [(each.name, prices.unit(each, "EUR")) for each in ASSUMPTIONS],
            "an amount": prices.value(BY_NAME["value_per_search"], 0.02, "USD"),
            "a percentage": prices.value(BY_NAME["elasticity"], 1.5, "USD"),
            "defaults": prices.defaults(Money(given, given=frozenset({"searches_per_day"}))),
            "all set": prices.defaults(replace(Money(), given=frozenset(BY_NAME))),
        }
        | {
            f"what a search sends, {name}": cost_words.assumption_table(
                given, [each], "USD", "Hit@10"
            )[-1]
            for name, each in options.items()
        },
    )
