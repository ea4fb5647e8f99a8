"""What counts as chosen, what a link asked for in vain, and what the address leaves out."""

from types import SimpleNamespace
from typing import Any

import pytest

from rankdash.analysis.statistics.verdict import WORTHWHILE
from rankdash.metrics import Conventions
from rankdash.ui.sidebar import comparison_settings
from rankdash.ui.state import address, pickers, samples, scenario
from rankdash.value.assumptions import ASSUMPTIONS, Assumptions

DRAWN: list[dict[str, Any]] = []


def box(options=(), key="", on_change=None, index=0, format_func=str, **_settings: object) -> None:
    """In place of a widget: what it is given."""
    words = [format_func(option) for option in options]
    DRAWN.append({"key": key, "options": list(options), "index": index, "words": words})


@pytest.fixture(autouse=True)
def reader(session, monkeypatch):
    monkeypatch.setattr("streamlit.query_params", SimpleNamespace(get_all=list, __iter__=iter))
    monkeypatch.setattr(pickers, "_behind", lambda: False)
    monkeypatch.setattr(pickers, "_gone_back", lambda: False)
    DRAWN.clear()
    return session


def test_what_a_person_chose_is_told_from_what_stands_in_for_it():
    address.settle("metric", "ndcg")
    assert (address.one("metric"), address.by_hand("metric")) == ("ndcg", False)
    address.choose("metric", "mrr")
    assert (address.one("metric"), address.by_hand("metric")) == ("mrr", True)
    address.choose("tag", [])
    assert (address.several("tag"), address.one("tag"), address.is_set("tag")) == ([], None, True)
    address.choose("tag", None)
    assert not address.is_set("tag")
    address.take_over({"system": ["a", "b"]})
    assert (address.one("system"), address.several("system")) == ("a", ["a", "b"])
    assert address.by_hand("system") and not address.is_set("metric")


def test_what_a_link_asked_for_in_vain_is_said_once_and_until_it_is_chosen_anew():
    address.take_over({"metric": ["nonsense"], "k": ["10"]})
    assert address.came_by_link("metric")
    address.lose("metric", "nonsense")
    address.lose("k", None)
    assert address.lost() == {"metric": "nonsense"}
    assert not address.came_by_link("metric") and not address.came_by_link("k")
    # What no link asked for is not lost.
    address.lose("tag", "gone")
    address.lose("k", "11")
    assert address.lost() == {"metric": "nonsense"}
    address.choose("metric", "ndcg")
    assert address.lost() == {}
    address.take_over({"metric": ["nonsense"]})
    address.choose("metric", "ndcg")
    address.lose("metric", "nonsense")
    assert address.lost() == {}, "what was chosen since gives way to nothing"


def test_links_carry_what_does_not_go_without_saying():
    address.settle("metric", "ndcg")
    for name, value in {"sort": "hurt", "nonsense": "x", "tag": []}.items():
        address.choose(name, value)
    address.choose("currency", ["USD", "EUR"])
    assert address.offered() == {"metric": ["ndcg"], "currency": ["USD", "EUR"]}
    address.choose("sort", "helped")
    assert address.offered()["sort"] == ["helped"]
    assert address.is_known(address.offered())
    assert not address.is_known({"metric": ["mrr"]})


def test_what_one_page_settles_is_in_no_address_until_a_person_chooses_it():
    """Else the page would change its address as it is drawn, and going back lead to it again."""
    for name in ("data", "base", "system", "metric", "k", "lang", "q", "against", "trade", "vs"):
        address.settle(name, "x")
    of_every_page = {name: ["x"] for name in ("data", "base", "system", "metric", "k", "lang")}
    assert address.offered() == of_every_page
    address.choose("q", "q7")
    assert address.offered() == of_every_page | {"q": ["q7"]}
    # Going back to where nothing was chosen yet.
    address.take_over(dict(of_every_page))
    address.settle("q", "q1")
    assert address.offered() == of_every_page


@pytest.mark.parametrize(
    ("given", "default", "chosen", "lost"),
    [
        ("b", "c", "b", {}),
        ("x", "c", "c", {"metric": "x"}),
        # A default that is not to be had gives way to the first.
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
    assert pickers.pick_one("metric", [], box) is None
    assert len(DRAWN) == 1


@pytest.mark.parametrize(
    ("given", "default", "chosen"),
    [
        (["b", "x", "a"], ["c"], ["b", "a"]),
        (["x"], ["c", "y"], ["c"]),
        (None, ["c", "y"], ["c"]),
        ([], ["c"], []),
    ],
)
def test_several_keep_what_is_there_and_the_default_stands_in_for_no_choice(given, default, chosen):
    if given is not None:
        address.choose("tag", given)
    assert pickers.pick_several("tag", ["a", "b", "c"], box, default=default) == chosen


def test_options_of_one_name_are_told_apart():
    pickers.pick_one("metric", ["a", "b", "c"], box, format_func={"a": "x", "b": "x", "c": "z"}.get)
    assert len(set(DRAWN[0]["words"])) == 3
    assert DRAWN[0]["words"][2] == "z"


# The samples.


def row(source: str, name: str = "Help centre", key: str = "other") -> Any:
    return SimpleNamespace(id=key, name=name, source=source)


@pytest.fixture
def shipped(monkeypatch):
    monkeypatch.setattr(samples, "ids", lambda: {"en": "sample-en", "zh": "sample-zh"})


def test_the_lacking_samples_begin_with_that_of_the_interface(shipped):
    assert samples.lacking([], "zh") == ["zh", "en"]
    assert samples.lacking([], "en") == ["en", "zh"]
    assert samples.lacking(["sample-zh"], "zh") == ["en"]
    assert samples.lacking(["sample-zh", "sample-en"], "zh") == []


@pytest.mark.parametrize(
    ("rows", "language", "offered"),
    [
        (["sample-en", "sample-zh"], "zh", "sample-zh"),
        (["sample-en", "sample-zh", "own"], "en", "sample-en"),
        (["own", "sample-en", "sample-zh"], "en", None),
        (["sample-en"], "zh", None),
        ([], "en", None),
    ],
)
def test_the_sample_of_the_language_is_first_unless_the_oldest_set_is_a_persons_own(
    shipped, rows, language, offered
):
    known = {key: row("upload" if key == "own" else "sample", key=key) for key in rows}
    assert samples.offered(known, language) == offered


def test_a_sample_is_called_one_and_an_old_one_an_old_one(shipped):
    assert samples.called(row("upload", key="sample-en")) == "Help centre"
    assert samples.called(row("sample", key="sample-en")) == "Help centre (sample)"
    assert samples.called(row("sample")) == "Help centre (sample of an earlier version)"


# The scenario and the rules.


def test_a_number_out_of_range_is_left_at_its_default_and_said():
    address.take_over({"traffic_share": ["1.01"], "passages": ["5"], "setup_cost": ["words"]})
    assert scenario.assumptions() == Assumptions(passages=5.0)
    assert address.lost() == {"traffic_share": "1.01", "setup_cost": "words"}
    address.take_over({"traffic_share": ["1"]})
    assert scenario.assumptions() == Assumptions()
    assert address.lost() == {}


def test_an_assumption_is_changed_only_where_it_is_not_its_default():
    each = next(each for each in ASSUMPTIONS if each.name == "value_per_search")
    assert not scenario.changed(each)
    address.settle("value_per_search", "0.01")
    assert not scenario.changed(each)
    address.settle("value_per_search", "0.02")
    assert scenario.changed(each)
    assert scenario.number_of(each, None) is None
    assert scenario.number_of(each, "0") == 0.0
    assert scenario.number_of(each, "-0.01") is None


def test_rules_that_cannot_be_are_left_at_their_defaults():
    address.take_over({"threshold": ["2"], "missing": ["nonsense"], "level": ["0.9"]})
    assert comparison_settings.conventions() == Conventions(threshold=2.0)
    assert comparison_settings.statistics(100).level == 0.9
    assert address.lost() == {"missing": "nonsense"}
    address.take_over({"level": ["2"], "worthwhile": ["0.5"]})
    found = comparison_settings.statistics(100)
    assert found.level == 0.95
    assert found.worthwhile in (0.5, WORTHWHILE)
