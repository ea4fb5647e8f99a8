"""The page on cost without its widgets: which figure, which side and which words."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from rankdash.runs.usage import MeasuredLoad
from rankdash.study.costs import BASELINE, Choice
from rankdash.study.pricing import Bill, Waiting
from rankdash.ui.cost import (
    cost_cards,
    cost_currency,
    cost_inputs,
    cost_roi,
    cost_scenarios,
    cost_sensitivity,
    cost_terms,
    cost_units,
)
from rankdash.ui.state import address, scenario
from rankdash.ui.widgets import action_errors
from rankdash.value.assumptions import ASSUMPTIONS, Assumptions
from rankdash.value.billing import Load, Price
from rankdash.value.payoff import Gain, MeasuredChange, Option, outcome
from rankdash.value.price_list import ListedPrice, shipped

SCENARIO = Assumptions(searches_per_day=1000, value_per_search=0.01)
LOAD = MeasuredLoad(Load(4, 10, 50), estimated=False)
GAIN = Gain(MeasuredChange(0.2, 0.1, 0.3, "proven"), queries=40)
LISTED = next(each for each in shipped() if each.price.unit == "search")


def choice(
    cost: float | None = 0.001,
    gain: Gain | None = GAIN,
    p95: float | None = None,
    scenario: Assumptions = SCENARIO,
    **more: object,
) -> Choice:
    option = Option("mini", cost, gain, free=bool(more.pop("free", False)))
    bill = Bill(LISTED, LOAD, "USD", chosen=True)
    if cost is None:
        bill = Bill(None, LOAD, "USD", lack="price")
    came, waiting = outcome(option, scenario), Waiting(None, p95)
    own = bill if more.pop("billed", True) else None
    made = Choice(option, came, "run", own, LOAD, waiting, valued=True)
    return replace(made, **more)


def study(low: float = 0.4) -> SimpleNamespace:
    return SimpleNamespace(
        mean=lambda _system: (0.5, low, 0.6), baseline="base", run=lambda _system: None,
        statistics=SimpleNamespace(level=0.95), measure=SimpleNamespace(title="NDCG@10"),
        name=str.upper, labelling=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("made", "keys"),
    [
        (choice(), {"quality", "price", "thousand", "cost", "value", "net", "roi", "even", "p95",
                    "care"}),
        (choice(None), {"quality", "price", "thousand", "most", "p95", "care"}),
        (choice(valued=False), {"quality", "price", "thousand", "cost", "worth", "p95", "care"}),
        (choice(gain=None), {"quality", "price", "thousand", "cost", "value", "p95", "care"}),
        (choice(free=True, billed=False, system=BASELINE),
         {"quality", "thousand", "cost", "p95"}),
        (choice(gain=None, system=""), {"quality", "price", "thousand", "cost", "value", "care"}),
    ],
)  # fmt: skip
def test_an_option_has_the_figures_that_are_known_of_it(session, made, keys):
    assert set(cost_cards._cells(study(), made, SCENARIO)) == keys


@pytest.mark.parametrize(("setup", "there"), [(0.0, False), (1.0, True)])
def test_months_to_pay_back_stand_where_there_is_something_to_earn_back(session, setup, there):
    assumed = replace(SCENARIO, setup_cost=setup)
    assert ("payback" in cost_cards._cells(study(), choice(scenario=assumed), assumed)) is there


@pytest.mark.parametrize(
    ("p95", "target", "cell"),
    [
        (None, 500.0, ("not measured", "")),
        (0.0, 500.0, ("0 ms", "")),
        (500.0, 500.0, ("500 ms", "")),
        (501.0, 500.0, ("501 ms", "▼ over 500 ms")),
    ],
)
def test_a_latency_over_the_target_is_marked(session, p95, target, cell):
    assumed = replace(SCENARIO, latency_target_ms=target)
    assert cost_cards._cells(study(), choice(p95=p95), assumed)["p95"] == cell


@pytest.mark.parametrize(
    ("low", "below"), [(0.4, "0.400 … 0.600"), (math.nan, "")]
)  # fmt: skip
def test_the_quality_has_its_interval_where_there_is_one(session, low, below):
    assert cost_cards._cells(study(low), choice(), SCENARIO)["quality"] == ("0.500", below)
    lacking = cost_cards._cells(study(), choice(None), SCENARIO)
    assert lacking["thousand"] == ("no price given", "")


def test_a_price_alone_is_headed_by_its_name_and_a_system_by_its_own():
    bill = Bill(LISTED, LOAD, "USD")
    assert cost_cards._heading(choice(bill=bill)) == "mini"
    alone = cost_cards._heading(choice(bill=bill, system=""))
    assert alone == cost_cards.title(LISTED)
    assert cost_cards._heading(choice(billed=False, system="")) == "mini"
    assert cost_cards._price(choice(), bill)[1].startswith(alone[:40])
    assert cost_cards._price(choice(system=""), bill)[1] == ""
    assert cost_cards._price(choice(), Bill(None, LOAD, "USD", lack="price")) == (
        "no price given", ""
    )  # fmt: skip


def test_the_pessimistic_row_is_at_the_lower_end_and_stands_before_what_is_set(session):
    rows = cost_scenarios._compared(choice(), SCENARIO, {"ours": replace(SCENARIO, passages=2)})
    assert [name for name, _came in rows] == [
        "pessimistic", "as set now (expected)", "optimistic", "ours"
    ]  # fmt: skip
    values = [came.value_per_month.value for _name, came in rows]
    assert values[0] < values[1] < values[2]
    assert values[0] == pytest.approx(values[1] / 2)
    few = choice(gain=Gain(MeasuredChange(0.9), queries=4))
    assert [name for name, _came in cost_scenarios._compared(few, SCENARIO, {})] == [
        "as set now (expected)"
    ]
    assert len(cost_scenarios._compared(choice(gain=None), SCENARIO, {})) == 1


@pytest.mark.parametrize(
    ("name", "count", "said"),
    [
        ("", 0, "A scenario needs a name."),
        ("new", cost_scenarios.MOST_SCENARIOS, "scenarios are saved already"),
        ("s0", cost_scenarios.MOST_SCENARIOS, None),
        ("new", cost_scenarios.MOST_SCENARIOS - 1, None),
    ],
)
def test_a_scenario_is_saved_under_a_name_as_long_as_there_is_room(
    paper, monkeypatch, name, count, said
):
    kept = {}
    monkeypatch.setattr(cost_scenarios, "_keep", kept.update)
    drawn = paper(cost_scenarios, action_errors)
    saved = {f"s{place}": Assumptions() for place in range(count)}
    cost_scenarios._save(saved, name, SCENARIO)
    assert bool(drawn.of("rerun")) is (said is None)
    if said is None:
        assert kept == saved | {name: SCENARIO}
    else:
        assert not kept and said in drawn.of("error")[0].replace("\\", "")


@pytest.mark.parametrize(
    ("enough", "best", "start"),
    [
        (0, 0, "**No reason to rerank here:**"),
        (5, 0, "**No reason to rerank here:**"),
        (0, 50, "**Not proven that reranking helps at any depth here:**"),
        (5, 50, "**Rerank down to rank 5:**"),
    ],
)
def test_a_depth_is_recommended_where_one_helps(enough, best, start):
    curve = SimpleNamespace(enough=enough, best=best, queries=6)
    said = cost_sensitivity._recommended(study(), choice(), curve)
    assert said.startswith(start)
    assert ("down to rank 50." in said) is (enough == 5 and best == 50)


@pytest.mark.parametrize(
    ("queries", "start", "marked"),
    [
        (2, "**No depth is recommended:** 2 queries, where at least 6 are needed.", []),
        (5, "**No depth is recommended:** 5 queries, where at least 6 are needed.", []),
        (6, "**Rerank down to rank 1:**", ["best", "enough", "most"]),
    ],
)
def test_fewer_than_six_queries_recommend_no_depth(paper, monkeypatch, queries, start, marked):
    table = pd.DataFrame({"depth": [0, 1], "mean": [0.1, 0.2]})
    curve = SimpleNamespace(enough=1, best=1, most=1, queries=queries, table=table)
    found = SimpleNamespace(curve=curve, p95=(0.0, 1.0))
    monkeypatch.setattr(cost_sensitivity.costs, "depths", lambda *_given: found)
    monkeypatch.setattr(cost_sensitivity.costs, "listwise", lambda *_given: False)
    monkeypatch.setattr(cost_sensitivity, "show", lambda *_given, **_more: None)
    drawn_marks = []
    chart = SimpleNamespace(
        figure=lambda _table, _metric, marks, *_more, **_rest: drawn_marks.extend(marks),
        alt=lambda *_given: "",
    )
    monkeypatch.setattr(cost_sensitivity, "depth", chart)
    drawn = paper(cost_sensitivity)
    cost_sensitivity.depths(study(), choice())
    assert drawn.of("markdown")[0].startswith(start)
    assert sorted(drawn_marks) == marked


@pytest.mark.parametrize(
    ("made", "said"),
    [(choice(system=""), True), (choice(system=BASELINE), True), (choice(), True)],
)
def test_only_the_run_of_a_reranker_is_cut_at_depths(paper, monkeypatch, made, said):
    asked = []
    monkeypatch.setattr(cost_sensitivity.costs, "depths", lambda _study, each: asked.append(each))
    drawn = paper(cost_sensitivity)
    cost_sensitivity.depths(study(), made)
    assert drawn.of("info") == ["Only the run of a reranker can be cut at a smaller depth."]
    assert asked == (["run"] if made.system == "run" else [])


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (GAIN, "The gain varies over its 95% interval"),
        (Gain(MeasuredChange(0.9), queries=4), "Every number varies by half in both directions."),
    ],
)
def test_what_the_gain_varies_by_is_said(paper, session, monkeypatch, gain, said):
    shown = []
    monkeypatch.setattr(cost_sensitivity, "show", lambda *_a, **_k: shown.append(1))
    monkeypatch.setattr(cost_sensitivity, "ink", lambda: None)
    monkeypatch.setattr(cost_sensitivity.tornado, "figure", lambda rows, net, *_a, **_k: net)
    drawn = paper(cost_sensitivity)
    cost_sensitivity.swings(study(), choice(gain=gain), SCENARIO)
    [caption] = drawn.of("caption")
    assert shown and caption.startswith(said)
    for lacking in (choice(None), choice(gain=None)):
        cost_sensitivity.swings(study(), lacking, SCENARIO)
    assert len(drawn.of("info")) == 2 and len(shown) == 1


def listed(amount: float, unit: str, currency: str = "USD") -> ListedPrice:
    return ListedPrice(unit, unit, "", Price(amount, unit, currency), "a test", LISTED.as_of)


@pytest.mark.parametrize(
    ("tokens", "documents", "drawn"), [(50, 10, True), (0, 10, False), (50, 0, False)]
)
def test_prices_are_compared_by_length_where_something_is_sent(
    paper, session, monkeypatch, tokens, documents, drawn
):
    calls, machines = [], []
    monkeypatch.setattr(cost_units, "_by_length", lambda _load, shown: calls.append(shown))
    monkeypatch.setattr(
        cost_units, "_by_traffic", lambda _s, _c, machine, _others: machines.append(machine)
    )
    here = paper(cost_units)
    prices = {"a": listed(1, "search"), "b": listed(1, "hour"), "c": listed(1, "search", "EUR")}
    load = MeasuredLoad(Load(4, documents, tokens), estimated=False)
    cost_units.draw(study(), choice(load=load), prices)
    # Those of the currency of the page; a machine is compared by traffic.
    assert calls == ([[prices["a"]]] if drawn else [])
    assert bool(here.of("info")) is not drawn
    assert machines == [prices["b"]]


def test_the_length_from_which_units_are_cheaper_is_said_once_for_each_other_price(
    paper, session, monkeypatch
):
    monkeypatch.setattr(cost_units, "show", lambda *_a, **_k: None)
    monkeypatch.setattr(cost_units, "ink", lambda: None)
    monkeypatch.setattr(cost_units.crossover, "figure", lambda *_a, **_k: None)
    monkeypatch.setattr(cost_units.crossover, "alt", lambda *_a, **_k: "")
    drawn = paper(cost_units)
    tokens, units = listed(1.0, "tokens"), listed(1.0, "search")
    cost_units._by_length(Load(20, 10, 300), [units, tokens])
    [line] = drawn.of("markdown")
    assert line.startswith("From **80 tokens** per document on, search")
    assert line.partition(" is cheaper than ")[2].startswith("tokens")
    cost_units._by_length(Load(20, 10, 300), [tokens])
    assert len(drawn.of("markdown")) == 1


# What is typed.


@pytest.mark.parametrize(
    ("given", "value", "lost"),
    [
        (None, 0.7, {}),
        ("0", 0.0, {}),
        ("0.5", 0.5, {}),
        ("1e10", 1e10, {}),
        ("10000000001", 0.7, {"quality_before": "10000000001"}),
        ("-0.1", 0.7, {"quality_before": "-0.1"}),
        ("words", 0.7, {"quality_before": "words"}),
    ],
)
def test_a_typed_quality_is_from_nothing_to_the_most(session, monkeypatch, given, value, lost):
    monkeypatch.setattr(cost_roi.pickers, "show", lambda *_a: lambda *_b, **_k: None)
    address.take_over({"quality_before": [given]} if given else {})
    column = SimpleNamespace(number_input=None)
    assert cost_roi._quality(column, "quality_before", "x", 0.7) == value
    assert address.lost() == lost


@pytest.mark.parametrize(
    ("given", "dollars"),
    [({}, 2.0), ({"currency": "EUR", "rate": ["USD=0.5"]}, 1.0),
     ({"currency": "EUR", "value_per_search": "1"}, None)],
)  # fmt: skip
def test_an_example_in_dollars_is_in_the_currency_of_the_page(session, monkeypatch, given, dollars):
    for name, value in given.items():
        address.choose(name, value)
    assert cost_roi._in_currency(2.0) == dollars
    monkeypatch.setattr(cost_roi.pickers, "show", lambda *_a: lambda *_b, **_k: None)
    column = SimpleNamespace(number_input=None)
    usual = cost_roi._in_currency(cost_roi.EXAMPLE_PRICE)
    assert cost_roi._price(column) == (None if usual is None else usual / 1000)
    address.choose("thousand", ["any=0"])
    assert cost_roi._price(column) == 0.0


@pytest.mark.parametrize(("per", "months"), [(None, 1), ("month", 1), ("year", 12), ("x", 1)])
def test_amounts_are_those_of_a_month_unless_a_year_is_chosen(session, per, months):
    address.settle("per", per)
    assert cost_terms.period().months == months


def test_a_slider_of_decades_goes_from_its_lowest_to_its_highest():
    for each in ASSUMPTIONS:
        if each.logarithmic:
            steps = sorted(set(cost_inputs._decades(each)))
            assert (steps[0], steps[-1]) == (each.low, each.high)
            ratios = [b / a for a, b in itertools.pairwise(steps) if a > each.low > 0]
            assert all(ratio <= 2.0001 for ratio in ratios)


@pytest.mark.parametrize(
    ("typed", "currency", "rates"),
    [(None, "USD", {}), (0.0, "USD", {}), (0.5, "EUR", {"USD": 0.5})],
)
def test_a_currency_is_gone_over_to_with_its_rate(session, typed, currency, rates):
    address.choose("value_per_search", "2")
    address.choose("thousand", ["any=4"])
    if typed:
        cost_currency._convert("USD", "EUR", typed)
    assert scenario.currency() == currency
    assert scenario.rates() == rates
    factor = typed or 1.0
    assert float(address.one("value_per_search")) == 2 * factor
    assert scenario.amounts("thousand") == {"any": 4 * factor}


def test_back_in_the_first_currency_amounts_are_what_they_were(session):
    address.choose("value_per_search", "2")
    address.choose("setup_cost", "100")
    cost_currency._convert("USD", "EUR", 0.5)
    cost_currency._go_over("EUR", "USD")
    assert scenario.currency() == "USD"
    assert float(address.one("setup_cost")) == 100.0
    assert scenario.rates() == {"EUR": 2.0}
    cost_currency._go_over("USD", "GBP")
    assert (scenario.currency(), address.one("into")) == ("USD", "GBP")
    cost_currency._go_over("USD", "USD")
    assert address.one("into") is None
    cost_currency._start_anew("GBP", 3.0)
    assert scenario.currency() == "GBP"
    assert address.one("value_per_search") == "3"
    assert address.one("setup_cost") is None and scenario.rates() == {}
