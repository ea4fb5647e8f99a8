"""The chosen values, invalid values of a link, and the values that the address omits."""

from dataclasses import replace

import pytest

from rankdash.core.metrics import Conventions
from rankdash.core.value.assumptions import ASSUMPTIONS, Assumptions
from rankdash.core.value.prices import shipped as shipped_prices
from rankdash.core.value.targets import shipped as shipped_targets
from rankdash.kit.widgets import address, pickers, scenario, settings_form, stored
from tests.ui.state.test_cache import made

BY_NAME = {each.name: each for each in ASSUMPTIONS}
DRAWN = []


def box(options=(), key="", on_change=None, index=0, format_func=str, **_settings):
    """Return the arguments of a widget."""
    words = [format_func(option) for option in options]
    DRAWN.append({"key": key, "options": list(options), "words": words, "heard": on_change})


class Query(dict):
    """A replacement for the address."""

    def get_all(self, name):
        return self[name]

    def from_dict(self, wanted):
        self.clear()
        self.update(wanted)
        self.steps.append(wanted)


@pytest.fixture(autouse=True)
def reader(session, monkeypatch):
    query = Query()
    query.steps = []
    monkeypatch.setattr("streamlit.query_params", query)
    monkeypatch.setattr(pickers, "behind", lambda: False)
    monkeypatch.setattr(pickers, "gone_back", lambda: False)
    DRAWN.clear()
    return query


def test_a_link_loses_what_it_asked_for_unless_that_was_chosen_since():
    address.take_over({"metric": ["nonsense"], "k": ["10"]})
    address.choose("k", "3")
    for name in ("metric", "k", "tag"):
        address.lose(name, "gone")
    assert address.lost() == {"metric": "gone"}


def test_links_carry_what_does_not_go_without_saying():
    address.set_default("metric", "ndcg")
    for name, value in {"sort": "hurt", "nonsense": "x", "tag": None, "system": []}.items():
        address.choose(name, value)
    address.choose("currency", ["USD", "EUR"])
    expected = {"metric": ["ndcg"], "currency": ["USD", "EUR"], "system": [""]}
    assert address.offered() == expected
    address.choose("sort", "helped")
    assert address.offered()["sort"] == ["helped"]
    assert address.is_known(address.offered()) and not address.is_known({"metric": ["mrr"]})


def test_what_a_page_settles_is_written_with_the_next_choice_and_is_no_step_by_itself(reader):
    """Otherwise a page would change its address while drawn, and the back button return to it."""
    first = {name: ["x"] for name in ("data", "base", "system", "metric", "k", "vs", "lang")}
    for name in first:
        address.set_default(name, "x")
    address.publish()
    for name in ("q", "against", "trade"):
        address.set_default(name, "y")
    address.publish()
    assert reader.steps == [first] and address.written() == first
    address.choose("metric", "mrr")
    address.publish()
    settled = {name: ["y"] for name in ("q", "against", "trade")}
    assert reader.steps[1:] == [first | {"metric": ["mrr"]} | settled]
    assert address.written() == reader.steps[1]
    # Back to an address without choices.
    address.take_over(dict(first))
    reader.clear()
    reader.update(first)
    address.set_default("q", "z")
    address.publish()
    assert len(reader.steps) == 2


@pytest.mark.parametrize(
    ("given", "default", "chosen", "lost"),
    [
        ("b", "c", "b", {}),
        ("x", "c", "c", {"metric": "x"}),
        # The first option replaces a default that does not exist.
        ("x", "y", "a", {"metric": "x"}),
        (None, "c", "c", {}),
        (None, None, "a", {}),
    ],
)
def test_one_of_several_falls_back_to_the_default_and_then_to_the_first(
    given, default, chosen, lost
):
    address.take_over({"metric": [given]} if given else {})
    assert pickers.pick_one("metric", ["a", "b", "c"], box, default=default) == chosen
    assert address.lost() == lost
    assert pickers.pick_one("metric", [], box) is None and len(DRAWN) == 1


def test_options_of_one_name_are_told_apart():
    pickers.pick_one("metric", ["a", "b", "c"], box, format_func={"a": "x", "b": "x", "c": "z"}.get)
    assert len(set(DRAWN[0]["words"])) == 3 and DRAWN[0]["words"][2] == "z"


# Objects that another window deleted.


def test_a_data_set_that_this_session_deleted_is_not_named():
    address.set_default("data", "a")
    assert stored.deleted_dataset({"a": "Shop"}) is None
    stored.by_this_session(["a"])
    assert stored.deleted_dataset({}) is None


def test_runs_that_were_compared_and_are_gone_are_named_once_and_for_their_data_set():
    every = {"base": "First", "one": "One", "two": "Two"}
    address.set_default("base", "base")
    address.set_default("system", ["one", "two"])
    stored.note_runs("shop", every)
    assert stored.runs() == []
    stored.note_runs("shop", {"two": "Two"})
    stored.note_runs("shop", {"two": "Two"})
    assert stored.runs() == ["First", "One"]
    stored.note_runs("autumn", every)
    assert stored.runs() == []
    stored.note_runs("autumn", {"base": "First", "one": "One"})
    assert stored.runs() == ["Two"]
    stored.dismiss()
    assert stored.runs() == []


# The scenario and the settings of evaluation.


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["a=0", "b=1.5"], {"a": 0.0, "b": 1.5}), (["a=1e10"], {"a": 1e10}),
        (["a=10000000001"], None), (["a=-0.01"], None), (["a=nan"], None), (["a=words"], None),
        (["a"], None),
    ],
)  # fmt: skip
def test_an_amount_is_from_nothing_to_the_most_and_another_is_said(given, found):
    address.take_over({"thousand": given})
    assert scenario.amounts("thousand") == (found or {})
    assert address.lost() == ({} if found else {"thousand": given[0]})


def test_a_typed_amount_of_nothing_stays_and_an_emptied_one_goes_and_a_rate_of_nothing_is_none():
    address.choose("thousand", ["a=2", "b=3"])
    scenario.choose_amount("thousand", "a", 0.0)
    assert scenario.amounts("thousand") == {"a": 0.0, "b": 3.0}
    scenario.choose_amount("thousand", "a", None)
    assert scenario.amounts("thousand") == {"b": 3.0}
    scenario.choose_amount("thousand", "b", None)
    assert not address.is_set("thousand")
    address.choose("rate", ["USD=0", "EUR=1.1"])
    assert scenario.rates() == {"EUR": 1.1}


@pytest.mark.parametrize("name", ["searches_per_day", "value_per_search"])
def test_a_default_that_a_person_typed_is_told_from_one_that_nobody_set(name):
    each, usual = BY_NAME[name], address.FIELDS[name]
    assert not scenario.changed(each)
    address.set_default(name, usual)
    assert not scenario.changed(each)
    scenario.choose(each, float(usual))
    assert scenario.changed(each)
    assert scenario.number_of(each, address.one(name)) == float(usual)
    assert scenario.number_of(each, None) is None
    assert scenario.number_of(each, "0") == 0.0 and scenario.number_of(each, "-0.01") is None


def test_prices_are_those_of_the_systems_compared(monkeypatch):
    flat, hour = shipped_prices()[:2]
    listed = {"flat": flat, "hour": hour}
    study = made()
    # The id of a run contains no "=", so the first one ends it.
    address.choose("price", ["run=flat", "b=c=hour", "gone=flat", "nothing"])
    assert scenario.price_keys() == {"run": "flat", "b": "c=hour", "gone": "flat"}
    assert scenario.chosen_prices(study, listed) == {"run": flat}
    address.choose("thousand", ["run=0", "gone=2"])
    typed = scenario.typed_prices(study)
    assert list(typed) == ["run"]
    assert (typed["run"].price.amount, typed["run"].price.unit) == (0.0, "flat")
    # `also` adds prices to the comparison, and `given` contains the assumptions that were changed.
    monkeypatch.setattr(scenario, "listed_prices", lambda: listed)
    address.choose("also", ["hour", "gone"])
    address.choose("passages", "5")
    money = scenario.with_money(study).money
    assert money.prices == {"run": typed["run"]}
    assert (money.also, money.listed) == ((hour,), (flat, hour))
    assert money.given == {"passages"} and money.assumptions.passages == 5.0


@pytest.mark.parametrize(("chosen", "found"), [("faq", "faq"), ("gone", None), (None, None)])
def test_a_profile_counts_once_a_person_chose_it(monkeypatch, chosen, found):
    monkeypatch.setattr(scenario, "saved_targets", shipped_targets)
    address.choose("profile", chosen)
    goal = scenario.chosen_goals()
    assert (goal and goal.key) == found


def test_own_targets_stand_before_the_shipped_ones_and_the_rest_beside_them(workspace):
    shipped = shipped_targets()
    own = replace(shipped.profiles["faq"], title="Ours")
    saved = replace(shipped, profiles={"faq": own, "ours": own})
    workspace.set_setting("targets", saved.to_json())
    found = scenario.saved_targets().profiles
    assert set(found) == {*shipped.profiles, "ours"} and found["faq"].title == "Ours"
    assert found["production"] == shipped.profiles["production"]


def test_a_number_or_a_rule_out_of_range_is_left_at_its_default_and_said():
    address.take_over({"traffic_share": ["1.01"], "passages": ["5"], "setup_cost": ["words"]})
    assert scenario.assumptions() == Assumptions(passages=5.0)
    assert address.lost() == {"traffic_share": "1.01", "setup_cost": "words"}
    address.take_over({"traffic_share": ["1"]})
    assert scenario.assumptions() == Assumptions() and address.lost() == {}
    address.take_over({"threshold": ["2"], "missing": ["nonsense"], "level": ["0.9"]})
    assert settings_form.conventions() == Conventions(threshold=2.0)
    assert settings_form.statistics(100).level == 0.9
    assert address.lost() == {"missing": "nonsense"}
    address.take_over({"level": ["2"], "worthwhile": ["0.5"]})
    found = settings_form.statistics(100)
    assert found.level == 0.95 and found.worthwhile == 0.5
