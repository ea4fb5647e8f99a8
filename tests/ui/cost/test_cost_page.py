"""The Cost page: its answers, each of its parts, and its buttons and fields."""

import json
import math
import re
from dataclasses import replace

import pytest

from rankdash.core.data.measured import Measured
from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers.fusion import Fusion
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.runs.combining import CombinedRun, fuse
from rankdash.core.study import costs
from rankdash.core.value.assumptions import MOST_SCENARIOS, Assumptions, write_scenarios
from rankdash.core.value.payoff import Gain, MeasuredChange, outcome
from rankdash.features.cost import page as cost_page
from rankdash.features.cost import (
    page_calculator,
    page_cards,
    page_currency,
    page_inputs,
    page_sensitivity,
)
from rankdash.kit.widgets import address, scenario, view
from tests.approved import table
from tests.stored import keep_rows
from tests.ui.conftest import opened_at
from tests.ui.lives import lives, play
from tests.ui.page_text import page_text, tag_free
from tests.ui.sessions import page as page_of
from tests.ui.sessions import part, said

OF_TEST = {"source": "a test", "as_of": "2026-11-21"}
FLAT = {"key": "flat", "provider": "Flat", "unit": "search", "amount": 1.0, **OF_TEST}
EURO = {"key": "euro", "provider": "Euro", "unit": "search", "amount": 1.0, "currency": "EUR",
        "source": "a test", "as_of": "2020-01-01"}  # fmt: skip


def save(workspace, *prices):
    workspace.set_setting("prices", json.dumps({"prices": prices}))


def first_places(workspace, name, n, before, *runs):
    """Store a data set of n queries, `before` of them with their relevant document at rank 1.
    runs: (name, number of queries with the relevant document at rank 1, p95 latency in ms)."""
    rows = "query_id,query,doc_id,document,label,score\n" + "".join(
        f"q{q},question {q},d{d},words of document {d},{int(d == 0)},{score}\n"
        for q in range(n)
        for d, score in ((0, 2 if q < before else 0), (1, 1))
    )
    dataset_id = keep_rows(workspace, rows, name)
    for run, after, p95 in runs:
        order = [("d0", "d1") if q < after else ("d1", "d0") for q in range(n)]
        lists = [(f"q{q}", docs, [2.0, 1.0]) for q, docs in enumerate(order)]
        made = run_from_ranking(run, dataset_id, Ranking.from_lists(lists), f"{run}.trec")
        queries = made.queries.assign(latency_ms=p95)
        workspace.save_run(replace(made, id=run, queries=queries))
    return dataset_id


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Name → id of data sets that no test changes. Hit@1 of the first stage is 0.72, and 0.87 for
    "better", as in the published example."""
    with opened_at(tmp_path_factory.mktemp("home")) as workspace:
        save(workspace, FLAT, EURO)
        shop = [("better", 87, 500.0), ("slightly", 74, 501.0), ("hardly", 73, math.nan),
                ("equal", 72, 0.0), ("worse", 60, math.nan)]  # fmt: skip
        bare = "".join(
            f"q{q},{d},{int(d == 'a')},{s}\n" for q in range(9) for d, s in (("a", 1), ("b", 2))
        )
        kept = keep_rows(workspace, f"query_id,doc_id,label,score\n{bare}", "Bare")
        best = [(f"q{q}", ["a", "b"], [2.0, 1.0]) for q in range(9)]
        made = run_from_ranking("bare", kept, Ranking.from_lists(best), "bare.trec")
        workspace.save_run(replace(made, id="bare"))
        yield {
            "shop": first_places(workspace, "Shop", 100, 72, *shop),
            "few": first_places(workspace, "Few", 4, 2, ("few", 4, math.nan)),
            "one": first_places(workspace, "One", 1, 0, ("one", 1, math.nan)),
            "bare": kept,
        }


def drawing(*draws, of, systems=("better",), **changed):
    """Return a function that draws parts for the first system, at $1 for 1,000 search units, and
    the address.

    draws: functions of the study, all options, the one of the first system, and the assumptions.
    """
    first = systems[0]
    chosen = {"data": of, "system": list(systems), "vs": first, "price": f"{first}=flat",
              "metric": "hit", "k": "1", "value_per_search": "0.010"} | changed  # fmt: skip

    def drawn():
        study = scenario.with_money(view.study("cost"))
        options, assumed = costs.choices(study), scenario.assumptions()
        choice = next(each for each in options if each.system == first)
        for draw in draws:
            draw(study, options, choice, assumed)

    return drawn, {name: value for name, value in chosen.items() if value}


def shown(sets, *draws, of="shop", lang="en", **changed):
    drawn, chosen = drawing(*draws, of=sets[of], **changed)
    return part(drawn, lang=lang, chosen=chosen)


def answer(study, options, choice, assumed):
    page_cards.answer(study, choice, assumed)
    cost_page.draw_picture(study, options, choice)
    cost_page.draw_table(study, options)


FEW, ONE = {"of": "few", "systems": ["few"]}, {"of": "one", "systems": ["one"]}
SLIGHTLY, WORSE = {"systems": ["slightly"]}, {"systems": ["worse"]}
ANSWERS = {
    "the published example": {},
    "no price": {"price": ""},
    "no value of a search": {"value_per_search": ""},
    "neither price nor value": {"price": "", "value_per_search": ""},
    "example values": {"price": "", "value_per_search": "", "example": "yes"},
    "example values change nothing that is set": {"example": "yes"},
    "it is worse": WORSE,
    "more than ten times the cost": {"value_per_search": "1"},
    "a gain that may be nothing is worth its whole interval": {
        "value_per_search": "0.05", "correction": "none"} | SLIGHTLY,
    "it costs more than it brings at its upper end": {
        "systems": ["hardly"], "value_per_search": "0.005"},
    "nothing to gain": {"searches_per_day": "10", "traffic_share": "0"},
    "a search is worth nothing": {"value_per_search": "0"},
    "no exchange rate, and an old price beside": {
        "currency": "EUR", "value_per_search": "0.02", "also": "euro"},
    "something to earn back": {"setup_cost": "1000", "monthly_cost": "400"},
    "amounts of a year, two systems": {"per": "year", "systems": ["better", "worse"]},
    "the LLM reads less, and that pays without a gain": {
        "systems": ["equal"], "passages": "10", "llm_price": "15"},
    "over the target": {"latency_target_ms": "500"} | SLIGHTLY,
    "too few queries": FEW,
    "one query": ONE,
}  # fmt: skip
IN_CHINESE = ("the published example", "it is worse", "no price", "something to earn back")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_the_page_answers(sets, approved, lang):
    cases = ANSWERS if lang == "en" else {each: ANSWERS[each] for each in IN_CHINESE}
    found = {
        why: page_text(shown(sets, answer, lang=lang, **changed)) for why, changed in cases.items()
    }
    approved(f"pages/cost_answers.{lang}", table(found))


def without_interval(study, _options, choice, assumed):
    option = replace(choice.option, gain=Gain(MeasuredChange(0.9), queries=4))
    made = replace(choice, option=option, outcome=outcome(option, assumed))
    page_sensitivity.swings(study, made, assumed)
    page_calculator.draw_scenarios(study, made, assumed)


PARTS = {
    "swings": lambda study, _o, choice, assumed: page_sensitivity.swings(study, choice, assumed),
    "map": lambda _s, _o, choice, assumed: page_sensitivity.where_it_pays(choice, assumed),
    "units": lambda study, _o, choice, _a: cost_page.draw_units(
        study, choice, scenario.listed_prices()
    ),
    "scenarios": lambda study, _o, choice, assumed: page_calculator.draw_scenarios(
        study, choice, assumed
    ),
    "simple": lambda study, _o, choice, _a: page_calculator.calculator(study, choice),
    "assumptions": lambda study, options, _c, assumed: page_cards.assumptions_table(
        study, assumed, options
    ),
}
# (part, case) → changed fields of the address.
SHOWN = {
    **{(each, "usual"): {} for each in PARTS},
    **{(each, "of a year"): {"per": "year"} for each in ("swings", "map", "scenarios")},
    ("swings", "without a price"): {"price": ""},
    ("swings", "without a gain"): FEW,
    ("map", "without a value"): {"value_per_search": ""},
    ("map", "one assumption twice"): {"across": "elasticity"},
    ("units", "without texts"): {"of": "bare", "systems": ["bare"]},
    ("simple", "the gain is not known"): FEW,
    ("simple", "one quality is typed"): FEW | {"quality_before": "0.5"},
    ("simple", "both are"): FEW | {"quality_before": "0.5", "quality_after": "0.6"},
    ("simple", "without a price"): {"price": ""},
    ("simple", "1% more quality is worth 0.5%"): {"elasticity": "0.5"},
    ("assumptions", "without a gain"): FEW,
}  # fmt: skip


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_part_of_the_page(sets, approved, lang):
    found = {
        f"{name}: {why}": page_text(shown(sets, PARTS[name], lang=lang, **changed))
        for (name, why), changed in SHOWN.items()
        if lang == "en" or why == "usual"
    }
    found["a gain without an interval"] = page_text(shown(sets, without_interval, lang=lang))
    approved(f"pages/cost_parts.{lang}", table(found))


@pytest.mark.parametrize("largest", ["searches_per_day", "value_per_search", "monthly_cost"])
def test_the_largest_amounts_are_written_out(sets, largest):
    app = shown(sets, answer, *PARTS.values(), **{largest: "1e10"})
    texts = [said(app), *(tag_free(str(each.value)) for each in app.get("html"))]
    for frame in app.dataframe:
        texts += [*map(str, frame.value.columns)]
        texts += [each for each in frame.value.to_numpy().ravel() if isinstance(each, str)]
    assert not [each for each in texts if re.search(r"\d[eE][+-]?\d|\b(nan|inf|None)\b", each)]


# Prices by machine time and by length.

MACHINE = {"key": "own", "provider": "Machine", "unit": "hour", "amount": 1800.0,
           "searches_per_second": 16.0, "utilisation": 0.5, **OF_TEST}  # fmt: skip


@pytest.fixture
def own(tmp_path):
    """Return a workspace that a test may change, and the id of its data set."""
    with opened_at(tmp_path) as workspace:
        yield workspace, first_places(workspace, "Shop", 20, 10, ("better", 19, math.nan))


def test_a_machine_is_cheaper_only_from_a_traffic_that_it_can_serve(own, approved):
    """It costs $0.5 a second and serves 16 searches in it, half of the time."""
    workspace, of = own
    found = {}
    for why, prices in {
        "it can serve half of it": [FLAT | {"amount": 125.0}, MACHINE],
        "all that it can serve costs as much": [FLAT | {"amount": 62.5}, MACHINE],
        "it cannot serve so many": [FLAT | {"amount": 62.4}, MACHINE],
        "nobody knows what it can serve": [FLAT, MACHINE | {"searches_per_second": None}],
        "prices that cost the same are one line": [
            FLAT, FLAT | {"key": "twin", "provider": "Twin"}, EURO,
            FLAT | {"key": "tokens", "provider": "Tokens", "unit": "tokens", "amount": 5.0},
            FLAT | {"key": "chunk", "provider": "Chunk", "chunk_tokens": 520},
        ],
    }.items():  # fmt: skip
        save(workspace, *({k: v for k, v in each.items() if v is not None} for each in prices))
        drawn, chosen = drawing(PARTS["units"], of=of)
        app = part(drawn, chosen=chosen)
        found[why] = "\n".join([*app.dataframe[0].value.columns, *(m.value for m in app.markdown)])
    drawn, chosen = drawing(PARTS["units"], of=of, machines="share")
    save(workspace, MACHINE)
    found["a share of a machine, and no price by length"] = page_text(part(drawn, chosen=chosen))
    approved("pages/cost_units.en", table(found))


def test_the_price_that_a_run_recorded_is_of_whole_machines_or_of_a_share(own):
    """Two documents a search at 400 pairs a second: 200 searches a second."""
    workspace, of = own
    run = workspace.run("better")
    fast = replace(
        run, id="fast", name="fast", reranker="cross-encoder",
        queries=run.queries.assign(latency_ms=10.0),
        machine={"cpu": "AMD EPYC", "threads": 2, "device": "cpu"},
        measured=Measured(pairs=80, seconds=0.2, together=20),
    )  # fmt: skip
    data = workspace.dataset(of)
    slow = replace(fast, id="slow", name="slow")
    parts = [CombinedRun(each.name, each.ranking, each) for each in (fast, slow)]
    fused = replace(fuse(data, parts, Fusion(), "fused"), id="fused")
    for each in (fast, slow, fused):
        workspace.save_run(each)
    usual = {"of": of, "price": "", "value_per_search": ""}
    for system, option, thousand in (
        # $0.20 an hour, never switched off, for 100,000 searches a day.
        ("fast", "As recorded: ", "$0.048"),
        ("fused", "As recorded: sum of its parts", "$0.048"),
        ("better", "no price set", "–"),
    ):
        drawn, chosen = drawing(choose_price, systems=(system,), **usual)
        app = part(drawn, chosen=chosen)
        assert app.selectbox(key=f"cost.price.{system}").options[0].startswith(option)
        field = app.number_input(key=f"cost.thousand.{system}.USD")
        assert (field.value, field.placeholder) == (None, thousand)
    month = 0.2 / (200 * 3600 * 0.3) * 100_000 * 365 / 12
    for machines, cost in (("", "$146.00"), ("share", f"${month:.2f}")):
        drawn, chosen = drawing(
            answer, PARTS["units"], systems=("fast",), machines=machines, **usual
        )
        text = page_text(part(drawn, chosen=chosen)).replace("\\", "")
        assert f" | {cost} | " in text
        assert ("1 machine at 200.0 searches per second" in text) is not bool(machines)


def test_a_run_of_a_service_that_has_ended_opens(own):
    workspace, of = own
    old = {"dialect": "zeroentropy", "base_url": "", "model": "zerank-2", "key_variable": ""}
    run = replace(workspace.run("better"), id="old", reranker="endpoint", settings=old)
    workspace.save_run(run)
    chosen = {"data": of, "base": "first-stage", "metric": "ndcg", "k": "10"}
    chosen |= dict.fromkeys(("system", "vs", "runs"), "old")
    for name in ("overview", "queries", "latency", "cost", "run", "report"):
        assert not page_of(name, chosen=chosen).error, name


def test_prices_with_hostile_names_stay_text(own):
    workspace, of = own
    name = "=1+1 <img src=x onerror=alert(1)> [a](http://x.y) **b** $1$"
    hostile = FLAT | {"provider": name, "source": name}
    save(workspace, hostile, hostile | {"key": "k"})
    drawn, chosen = drawing(answer, *PARTS.values(), of=of, also=["k"])
    app = part(drawn, chosen=chosen)
    assert "onerror" in page_text(app)
    assert "<img" not in "".join(str(each.value) for each in app.get("html")) + said(app)
    assert not any("](http" in each.value for each in (*app.markdown, *app.caption))


# Buttons and fields.

PRICES = {"flat": FLAT, "euro": EURO, "second": EURO | {"key": "second"}, "machine": MACHINE}


def choose_price(study, _options, choice, _assumed):
    page_inputs.choose_price(study, choice.system, scenario.listed_prices())


def calculator():
    cost_page.draw(view.study("cost"), "better")


def currencies():
    page_currency.choose_currency(scenario.listed_prices().values())
    return scenario.rates()


class Acts:
    """Acts on parts of the page, for an address such as "price=better=flat"."""

    def __init__(self, workspace, of):
        self.workspace, self.of, self.app, self.delete = workspace, of, None, None

    def _opened(self, given, draw, **usual):
        changed = dict(usual)
        for name, _, value in (each.partition("=") for each in given):
            changed[name] = [*changed.get(name, []), value] if value else ""
        drawn, chosen = drawing(choose_price, of=self.of, **changed)
        folds = dict.fromkeys(("cost.more", "cost.fields", "cost.table", "cost.parts"), True)
        self.app = part(draw or drawn, chosen=chosen, state=folds)
        return self.app

    def prices(self, *names):
        save(self.workspace, *(PRICES[each] for each in names))

    def open(self, *given):
        return self._opened(given, calculator)

    def price(self, *given):
        return self._opened(given, None)

    def currency(self, *given):
        typed = {"value_per_search": ["2"], "thousand": ["any=4"], "setup_cost": ["100"]}
        return self._opened(given, currencies, **typed)

    def before(self):
        return self._opened(
            ["value_per_search="], lambda: page_calculator.before_any_run(view.study("cost"))
        )

    def overview(self):
        _drawn, chosen = drawing(of=self.of, base="first-stage")
        self.app = page_of("overview", chosen=chosen, state={"overview.targets": True})
        return self.app

    def confirm(self):
        """Confirm the deletion."""
        self.delete()

    def full(self):
        """Store as many scenarios as the limit allows."""
        every = {f"s{place}": Assumptions() for place in range(MOST_SCENARIOS)}
        self.workspace.set_setting("scenarios", write_scenarios(every))


@pytest.mark.parametrize("life", lives("cost"))
def test_a_life_of_the_page(life, approved, own, monkeypatch):
    acts, workspace = Acts(*own), own[0]

    def delete(_title, sentences, confirmed):
        acts.delete = confirmed
        monkeypatch.setattr(acts, "asked", sentences, raising=False)

    monkeypatch.setattr(page_calculator.dialogs, "delete", delete)
    usual = ("data", "system", "vs", "metric", "k")

    def chosen():
        found = acts.app.session_state["address.choices"] if acts.app else {}
        return {name: value for name, value in found.items() if name not in usual}

    def kept():
        found = json.loads(workspace.setting("scenarios") or "{}")
        return {name: each["elasticity"] for name, each in found.items()}

    def rates():
        return acts.app and "found" in acts.app.session_state and acts.app.session_state["found"]

    facts = {"chosen": chosen, "scenarios": kept, "asked": lambda: getattr(acts, "asked", "")}
    if "currency" in life:
        facts["rates"] = rates
    every = {name: getattr(acts, name) for name in dir(acts) if name[0] != "_"}
    approved(life, play(life, every, facts))


def test_a_slider_is_not_put_back_by_the_server_and_has_room_for_its_number(own):
    """A value sent by the server would undo later changes by the user."""
    save(own[0], FLAT, EURO)
    app = Acts(*own).open("elasticity=7")
    (slider,) = [each for each in app.slider if "Value gained for each" in each.label]
    assert slider.value == 7 and slider.max == 7
    slider.set_value(0.5).run()
    app.select_slider(key="cost.value_per_search").set_value(0.001).run()
    slider = app.slider(key="cost.elasticity")
    assert slider.value == 0.5 and slider.max < 7 and not slider.proto.set_value
    assert not app.select_slider(key="cost.value_per_search").proto.set_value


# Before any run.

TYPED = {"quality_before": "0.5", "quality_after": "0.6", "thousand": "any=2"}
BEFORE_ANY_RUN = {
    "the published example": {},
    "typed numbers": TYPED | {"value_per_search": "0.02", "elasticity": "2"},
    "0 is a price": {"thousand": "any=0"},
    "in euros at a rate": {"currency": "EUR", "rate": "USD=0.5"},
    "in euros without a rate": {"currency": "EUR", "value_per_search": "1"},
    "a quality of 0": {"quality_before": "0"},
    "one out of range": {"quality_before": "10000000001", "quality_after": "-0.1"},
    "the largest": {"quality_before": "1e10"},
    "words": {"quality_before": "words"},
}


def test_the_calculator_before_any_run(sets, approved):
    def drawn():
        page_calculator.before_any_run(view.study("cost"))
        return address.lost()

    found = {}
    for why, chosen in BEFORE_ANY_RUN.items():
        app = part(drawn, chosen=chosen | {"data": sets["bare"], "metric": "hit", "k": "1"})
        lines = page_text(app).splitlines()
        start = next(at for at, line in enumerate(lines) if "Hit@1 without" in line)
        found[why] = "\n".join([*lines[start:], *map(str, app.session_state["found"].items())])
    approved("pages/cost_before_any_run.en", table(found))
