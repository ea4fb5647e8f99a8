"""What is typed and picked on the page on cost, and what the options are drawn with."""

import math
from types import SimpleNamespace

import pytest

from rankdash.ui.cost import cost_currency, cost_inputs, cost_roi, cost_sensitivity
from rankdash.ui.state import address, scenario
from rankdash.value.assumptions import Assumptions
from rankdash.value.sensitivity import GAIN, INPUTS, PRICE
from tests.ui.cost.test_cost_words import SCENARIO, choice, listed, study


class Figures:
    """In place of a module of charts: what was drawn with what."""

    def __init__(self, monkeypatch, module, chart) -> None:
        self.made = []
        monkeypatch.setattr(module, "show", lambda *_a, **_k: None)
        monkeypatch.setattr(module, "ink", lambda: None)
        monkeypatch.setattr(chart, "figure", lambda *given, **more: self.made.append((given, more)))
        monkeypatch.setattr(chart, "alt", lambda *_a, **_k: "")


@pytest.mark.parametrize(("per", "months"), [("month", 1), ("year", 12)])
def test_swings_are_those_of_the_period_that_is_shown(paper, session, monkeypatch, per, months):
    drawn = Figures(monkeypatch, cost_sensitivity, cost_sensitivity.tornado)
    paper(cost_sensitivity)
    cost_sensitivity.swings(study(), choice(), SCENARIO)
    address.settle("per", per)
    cost_sensitivity.swings(study(), choice(), SCENARIO)
    [(of_a_month, _more), (shown, more)] = drawn.made
    assert shown[1] == pytest.approx(of_a_month[1] * months)
    for usual, row in zip(of_a_month[0], shown[0], strict=True):
        assert (row.net_low, row.net_high) == pytest.approx(
            (usual.net_low * months, usual.net_high * months)
        )
        assert (row.name, row.low, row.high) == (usual.name, usual.low, usual.high)
    assert more["period"] == f"a {per}"


LACKING = "This needs a gain, a price and the value of a search that you set, or example values."


@pytest.mark.parametrize(
    ("made", "picked", "said"),
    [
        (choice(None), (PRICE, GAIN), LACKING),
        (choice(gain=None), (PRICE, GAIN), LACKING),
        (choice(), (GAIN, GAIN), "Choose two different assumptions."),
        (choice(), (GAIN, PRICE), None),
    ],
)  # fmt: skip
def test_the_net_is_drawn_over_two_different_assumptions(
    paper, session, monkeypatch, made, picked, said
):
    chosen, asked, drawn_as = iter(picked), [], []

    def pick(field, options, *_a, **_k):
        asked.append((field, list(options)))
        return next(chosen)

    monkeypatch.setattr(cost_sensitivity.pickers, "pick_one", pick)
    monkeypatch.setattr(
        cost_sensitivity.figures, "net_map", lambda *given: drawn_as.append(given[2:4])
    )
    drawn = paper(cost_sensitivity)
    cost_sensitivity.where_it_pays(made, SCENARIO)
    assert drawn.of("info") == ([said] if said else [])
    assert drawn_as == ([] if said else [picked])
    if asked:
        assert [field for field, _options in asked] == ["across", "upward"]
        # What this option has no number for is not offered.
        assert {PRICE, GAIN} <= set(asked[0][1]) <= set(INPUTS)


def test_options_are_marked_that_no_other_beats_within_the_target(paper, session, monkeypatch):
    known = {"a": (0.0, 100.0, 0.5), "b": (0.002, 500.0, 0.6), "c": (0.002, 501.0, 0.7),
             "d": (None, None, 0.9)}  # fmt: skip
    made = [SimpleNamespace(
        system=name, came=SimpleNamespace(cost_per_thousand=SimpleNamespace(value=cost)),
        waiting=SimpleNamespace(p95=p95)) for name, (cost, p95, _q) in known.items()]  # fmt: skip
    made.append(SimpleNamespace(system=None))
    monkeypatch.setattr(cost_sensitivity.costs, "system_of", lambda _study, each: each.system)
    monkeypatch.setattr(cost_sensitivity.style, "marks", lambda *_a: dict.fromkeys(known))
    drawn = Figures(monkeypatch, cost_sensitivity, cost_sensitivity.frontier)
    paper(cost_sensitivity)
    told = SimpleNamespace(
        mean=lambda system: (known[system][2], 0.1, 0.95), name=str.upper, places={},
        baseline="a", measure=SimpleNamespace(title="NDCG@10"),
        names={name: name.upper() for name in known},
    )  # fmt: skip
    cost_sensitivity.options(told, made, Assumptions(latency_target_ms=500.0))
    [(price, more), (wait, within)] = drawn.made
    assert (more["target"], within["target"]) == (None, 500.0)
    assert {each.name: (each.x, each.quality, each.low, each.high) for each in price[0]
            if not math.isnan(each.x)} == {
        "A": (0.0, 0.5, 0.1, 0.95), "B": (0.002, 0.6, 0.1, 0.95), "C": (0.002, 0.7, 0.1, 0.95)
    }  # fmt: skip
    front = [{each.name for each in points if each.front} for points in (price[0], wait[0])]
    # C is cheap enough and over the target.
    assert front == [{"A", "C"}, {"A", "B"}]


@pytest.mark.parametrize(
    ("keys", "thousand", "shown", "typed"),
    [
        ([], [], "", None),
        (["a=search"], [], "search", None),
        (["a=gone"], [], "", None),
        (["b=search"], [], "", None),
        ([], ["a=4"], "", 4.0),
        ([], ["a=0"], "", 0.0),
    ],
)
def test_the_price_of_a_system_is_of_the_list_or_typed(
    paper, session, monkeypatch, keys, thousand, shown, typed
):
    seen = {}
    monkeypatch.setattr(
        cost_inputs.pickers, "show",
        lambda _draw, key, value, *_a: lambda *_b, **_k: seen.update({key: value}),
    )  # fmt: skip
    monkeypatch.setattr(cost_inputs, "replace", lambda of, **_changes: of)
    monkeypatch.setattr(cost_inputs, "bill", lambda *_a: None)
    monkeypatch.setattr(
        cost_inputs, "typed_prices",
        lambda _study: {name: SimpleNamespace(price=SimpleNamespace(amount=amount))
                        for name, amount in scenario.amounts("thousand").items()},
    )  # fmt: skip
    paper(cost_inputs)
    address.choose("price", keys or None)
    address.choose("thousand", thousand or None)
    told = SimpleNamespace(name=str.upper, money=None)
    cost_inputs.choose_price(told, "a", {"search": listed(1, "search")})
    assert seen == {"cost.price.a": shown, "cost.thousand.a.USD": typed}


def test_a_price_of_the_list_takes_the_place_of_a_typed_one(paper, session, monkeypatch):
    heard = {}
    monkeypatch.setattr(
        cost_inputs.pickers, "show",
        lambda _draw, key, _value, changed, *_a: heard.update({key: changed}) or (
            lambda *_b, **_k: None),
    )  # fmt: skip
    monkeypatch.setattr(cost_inputs, "replace", lambda of, **_changes: of)
    monkeypatch.setattr(cost_inputs, "bill", lambda *_a: None)
    monkeypatch.setattr(cost_inputs, "typed_prices", lambda _study: {})
    paper(cost_inputs).session_state = session
    address.choose("price", ["b=search"])
    address.choose("thousand", ["a=4", "b=5"])
    told = SimpleNamespace(name=str.upper, money=None)
    prices = {"search": listed(1, "search"), "hour": listed(2, "hour")}
    cost_inputs.choose_price(told, "a", prices)
    session["cost.price.a"] = "hour"
    heard["cost.price.a"]()
    assert address.several("price") == ["b=search", "a=hour"]
    assert scenario.amounts("thousand") == {"b": 5.0}
    session["cost.price.a"] = ""
    heard["cost.price.a"]()
    assert address.several("price") == ["b=search"]
    session["cost.thousand.a.USD"] = 7.0
    heard["cost.thousand.a.USD"]()
    assert scenario.amounts("thousand") == {"b": 5.0, "a": 7.0}


def test_the_other_systems_have_their_prices_and_unknown_ones_are_said(paper, session, monkeypatch):
    priced = []
    monkeypatch.setattr(cost_inputs, "choose_price", lambda _s, system, _p: priced.append(system))
    monkeypatch.setattr(cost_inputs.pickers, "pick_several", lambda *_a, **_k: None)
    paper(cost_inputs)
    address.take_over({"price": ["a=gone", "b=search"]})
    told = SimpleNamespace(challengers=("a", "b", "c"))
    cost_inputs.other_prices(told, "b", {"search": listed(1, "search")})
    assert priced == ["a", "c"]
    assert address.lost() == {"price": "gone"}


@pytest.mark.parametrize(
    ("now", "typed", "currency", "rates", "value"),
    [
        ("USD", 0.5, "EUR", {"USD": 0.5}, "1"),
        ("USD", 0.0, "USD", {}, "2"),
        ("USD", None, "USD", {}, "2"),
        # In force already: then it is a rate for prices, and no amount changes.
        ("EUR", 0.5, "EUR", {"USD": 0.5}, "2"),
        ("EUR", 0.0, "EUR", {}, "2"),
    ],
)
def test_a_typed_rate_is_gone_over_with_or_kept_for_prices(
    paper, session, monkeypatch, now, typed, currency, rates, value
):
    heard = []
    monkeypatch.setattr(
        cost_currency.pickers, "show",
        lambda _d, _k, _v, changed: heard.append(changed) or (lambda *_b, **_s: None),
    )  # fmt: skip
    paper(cost_currency).session_state = session
    address.choose("value_per_search", "2")
    address.choose("currency", now)
    cost_currency._rate("USD", "EUR", None)
    session["cost.rate.USD.EUR"] = typed
    heard[0]()
    assert (scenario.currency(), scenario.rates()) == (currency, rates)
    assert address.one("value_per_search") == value


@pytest.mark.parametrize(
    ("currency", "into", "offered", "rates"),
    [
        (None, None, [], ["EUR"]),
        ("EUR", None, [], ["USD"]),
        ("GBP", None, [], ["EUR", "USD"]),
        ("USD", "GBP", [("USD", "GBP")], []),
        ("USD", "nonsense", [], ["EUR"]),
    ],
)
def test_rates_are_asked_for_of_the_currencies_that_prices_are_in(
    paper, session, monkeypatch, currency, into, offered, rates
):
    monkeypatch.setattr(cost_currency.pickers, "show", lambda *_a: lambda *_b, **_k: None)
    ways, asked = [], []
    monkeypatch.setattr(cost_currency, "_offer", lambda *given: ways.append(given))
    monkeypatch.setattr(cost_currency, "_rate", lambda foreign, *_a: asked.append(foreign))
    monkeypatch.setattr(cost_currency.scenario, "currency", lambda: currency or "USD")
    paper(cost_currency)
    if currency:
        address.choose("currency", currency)
    if into:
        address.choose("into", into)
    cost_currency.choose([listed(1, "search", "EUR"), listed(2, "search", "EUR")])
    assert (ways, asked) == (offered, rates)


@pytest.mark.parametrize(("typed", "currency", "value"), [(3.0, "EUR", "3"), (0.0, "EUR", "0"),
                                                          (None, "USD", "2")])  # fmt: skip
def test_without_a_rate_a_new_value_of_a_search_begins_anew(paper, session, typed, currency, value):
    drawn = paper(cost_currency)
    drawn.session_state = session
    address.choose("value_per_search", "2")
    cost_currency._offer("USD", "EUR")
    fields = [each for kind, _label, each in drawn.drawn if kind == "number_input"]
    [field] = [each for each in fields if "anew" in each["key"]]
    session[field["key"]] = typed
    field["on_change"]()
    assert (scenario.currency(), address.one("value_per_search")) == (currency, value)


@pytest.mark.parametrize(
    ("dollars", "p95", "cells"),
    [
        (0.0, None, ("0.50", "–", "$0", "–", "–", "–", "–")),
        (0.0, 0.0, ("0.50", "0 ms", "$0", "–", "–", "–", "–")),
        (2.0, 30.0, ("0.60", "30 ms", "$2")),
    ],
)
def test_a_way_that_costs_nothing_has_the_quality_before_and_no_return(
    session, dollars, p95, cells
):
    way = SimpleNamespace(title="Way", per_thousand=dollars, p95_ms=p95)
    found = cost_roi._way(way, 0.5, 0.6)
    assert found[0] == "Way"
    assert tuple(each.removesuffix(".00") for each in found[1 : 1 + len(cells)]) == cells
    assert len(found) == 8
    if dollars:
        given = scenario.assumptions()
        worth = given.value_per_search * given.elasticity
        gain, cost = given.searches_per_day * worth * 0.2, given.searches_per_day * 0.002
        assert found[4:6] == (cost_roi.amount(gain), cost_roi.amount(cost))
        assert found[6] == cost_roi.percent(gain / cost - 1, 2)
        # Where the gain is as large as the cost.
        assert found[7] == f"{0.5 * (1 + 0.002 / worth):.3f}"
        address.choose("currency", "EUR")
        address.choose("value_per_search", "1")
        # Without a rate of exchange its price says nothing here.
        assert cost_roi._way(way, 0.5, 0.6)[3:8] == ("–",) * 5


@pytest.mark.parametrize(
    ("made", "typed", "asked", "said"),
    [
        (None, 0.002, True, True),
        (None, None, True, False),
        (choice(0.001), None, False, True),
        (choice(None), None, False, False),
    ],
)
def test_the_calculator_takes_the_measured_quality_and_price_where_there_is_a_run(
    paper, session, monkeypatch, made, typed, asked, said
):
    usual, prices = [], []

    def quality(_column, _field, _title, value):
        usual.append(value)
        return value

    monkeypatch.setattr(cost_roi, "_quality", quality)
    monkeypatch.setattr(cost_roi, "_price", lambda _column: prices.append(1) or typed)
    drawn = paper(cost_roi)
    told = study()
    told.mean = {"base": (0.5, 0.4, 0.6), "run": (0.7, 0.6, 0.8)}.get
    found = cost_roi.calculator(told, made)
    measured = (0.5, 0.7) if made else (cost_roi.EXAMPLE_BEFORE, cost_roi.EXAMPLE_AFTER)
    assert found == measured == tuple(usual)
    assert bool(prices) is asked
    assert bool(drawn.of("html")) is said
    lacking = "This needs a price in the currency of the page."
    if made is not None:
        lacking = "Set the price and the value of a search above, or use example values."
    assert drawn.of("info") == ([] if said else [lacking])
    example = "Empty fields stand for the published example; type your own numbers."
    assert (example in drawn.of("caption")) is (made is None)
    if said:
        last = "the answer above includes them." if made else "a run shows them."
        assert drawn.of("caption")[-1].endswith(last)
