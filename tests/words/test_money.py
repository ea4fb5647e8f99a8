"""Amounts, prices and labels in words, each from both sides of where the words change."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from types import SimpleNamespace

import pytest

from rankdash.runs.usage import MeasuredLoad
from rankdash.settings import Setting
from rankdash.study.pricing import Bill, Served
from rankdash.study.systems import Money
from rankdash.value.assumptions import ASSUMPTIONS, Assumptions
from rankdash.value.billing import Load, Price
from rankdash.value.price_list import STALE_DAYS, ListedPrice
from rankdash.words import assumptions, prices, queries, settings
from rankdash.words.html import html_safe
from rankdash.words.money import money

TODAY = date(2026, 11, 1)


@pytest.fixture(autouse=True)
def _today(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test ends on another day than it began."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(*TODAY.timetuple()[:3], tzinfo=tz)

    monkeypatch.setattr(prices, "datetime", Clock)


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (None, "–"),
        (float("inf"), "–"),
        (0.0, "$0.00"),
        (-0.0, "$0.00"),
        (0.001, "$0.001"),
        (0.00123, "$0.0012"),
        (0.5, "$0.50"),
        (1.0, "$1.00"),
        (999.99, "$999.99"),
        (-999.994, "-$999.99"),
        (1000.0, "$1,000"),
        (1000.4, "$1,000"),
        (1e15, "$1,000,000,000,000,000"),
        (1.1e15, "> $1,000,000,000,000,000"),
        (-1.1e15, "< -$1,000,000,000,000,000"),
        (1e-12, "$0.00"),
    ],
)
def test_an_amount_has_the_digits_that_say_something(amount, said):
    assert money(amount, "USD") == said


def listed(unit: str = "search", age: int = 0, currency: str = "USD") -> ListedPrice:
    price = Price(2.0, unit, currency)
    return ListedPrice("own", "Ours", "", price, "our contract", TODAY - timedelta(days=age))


def bill(price: ListedPrice | None = None, *, estimated: bool = False, **more: object) -> Bill:
    return Bill(price, MeasuredLoad(Load(10, 40, 90), estimated=estimated), "USD", **more)


@pytest.mark.parametrize(
    ("unit", "estimated", "age", "way", "marks"),
    [
        ("search", False, STALE_DAYS, None, []),
        ("search", False, STALE_DAYS + 1, None, ["old price"]),
        ("search", True, 0, None, ["tokens estimated"]),
        ("tokens", True, 0, None, ["tokens estimated"]),
        # What is paid by the hour or by the search costs the same whatever is sent.
        ("flat", True, 0, None, []),
        ("hour", True, 0, "concurrent", []),
        ("hour", False, 0, "listed", ["assumed searches per second"]),
        ("hour", False, 0, "batches", ["throughput of batches"]),
        ("hour", False, 0, "alone", ["throughput of one query at a time"]),
    ],
)
def test_a_price_is_marked_where_it_is_to_be_checked(unit, estimated, age, way, marks):
    served = None if way is None else Served(5.0, way)
    assert prices.marks(bill(listed(unit, age), estimated=estimated, served=served)) == marks


def test_the_marks_of_a_sum_are_those_of_its_parts_each_once():
    old = bill(listed(age=STALE_DAYS + 1))
    both = bill(parts=(("one", old), ("two", old)))
    assert prices.marks(both) == ["sum of its parts", "old price"]
    assert prices.of(both) == "sum of its parts"
    assert prices.marks(bill(lack="price")) == []
    assert prices.of(bill(lack="price")) == "no price given"
    assert prices.of(old) == "Ours: $2.00/1,000 units"


def test_the_notes_of_a_price_name_source_age_rate_and_what_is_lacking():
    source = f"our contract, {TODAY.isoformat()}"
    assert prices.notes(bill(listed(), rate=1.0)) == [source]
    euro = bill(listed(currency="EUR"), rate=1.25)
    assert prices.notes(euro) == [source, "1 EUR = 1.25 USD, as typed"]
    unknown = bill(listed(currency="EUR"), rate=None, lack="rate")
    assert prices.notes(unknown) == [source, "no exchange rate"]
    stale = prices.notes(bill(listed(age=STALE_DAYS + 1)))
    assert stale[1] == f"⚠ older than {STALE_DAYS} days: check it"
    both = prices.notes(bill(parts=(("one", bill(listed())), ("two", bill(lack="price")))))
    assert both == [f"one: {source}", "two: no price given"]


def test_how_a_machine_was_measured_stands_with_its_clients_and_its_processor():
    hour = replace(listed("hour"), price=Price(2.0, "hour", utilisation=0.3))
    served = Served(12.345, "concurrent", 4, "AMD EPYC")
    assert prices.notes(bill(hour, served=served))[1] == (
        "at 12.3 searches per second and 30% use, measured with 4 at once (AMD EPYC)"
    )
    alone = prices.notes(bill(hour, served=Served(5.0, "alone")))[1]
    assert alone.endswith("measured one query at a time (a machine that was not recorded)")
    assert "as the price list says" in prices.notes(bill(hour, served=Served(5.0, "listed")))[1]


BY_NAME = {each.name: each for each in ASSUMPTIONS}


@pytest.mark.parametrize(
    ("name", "amount", "said"),
    [
        ("traffic_share", 0.5, "50.0%"),
        ("value_per_search", 0.02, "$0.02"),
        ("elasticity", 1.5, "1.5%"),
        ("latency_target_ms", 500.0, "500 ms"),
    ],
)
def test_an_assumption_is_written_by_its_unit(name, amount, said):
    assert assumptions.value(BY_NAME[name], amount, "USD") == said
    assert "money" not in assumptions.unit(BY_NAME[name], "USD")


def test_a_unit_is_said_where_the_title_does_not_say_it():
    assert assumptions.unit(BY_NAME["traffic_share"], "USD") == ""
    assert assumptions.unit(BY_NAME["latency_target_ms"], "USD") == "ms"
    assert assumptions.unit(BY_NAME["value_per_search"], "EUR") == "€"
    alike = SimpleNamespace(unit="Searches", title="searches")
    assert assumptions.unit(alike, "USD") == ""


def test_defaults_are_said_at_the_value_in_force_and_not_at_all_where_there_are_none():
    found = SimpleNamespace(
        assumptions=Assumptions(traffic_share=0.5), currency="USD",
        defaults=(BY_NAME["traffic_share"],),
    )  # fmt: skip
    said = assumptions.defaults(found)
    assert said.startswith("At their defaults: ") and said.endswith(" (50.0%).")
    assert assumptions.defaults(replace(Money(), given=frozenset(BY_NAME))) == ""


def rows_of(choice: SimpleNamespace) -> list[tuple[str, str, str]]:
    """The price and the load of a system, as the table of assumptions lists them."""
    return assumptions.rows(Assumptions(), [choice], "USD", "Hit@10")[-2:]


def test_a_price_is_listed_with_its_unit_or_as_the_sum_of_its_parts_or_not():
    def priced(own: Bill) -> str:
        return rows_of(SimpleNamespace(name="mini", load=own.load, bill=own))[0][1]

    assert priced(bill(listed("flat"))).startswith("$2.00 ")
    assert priced(bill()) == "–"
    both = bill(parts=(("one", bill(listed("flat"))), ("two", bill(listed("flat")))))
    assert priced(both) == "$4.00"


@pytest.mark.parametrize("estimated", [True, False])
def test_what_a_search_sends_was_counted_or_estimated(estimated):
    load = MeasuredLoad(Load(10, 40, 90), estimated=estimated)
    name, sent, how = rows_of(SimpleNamespace(name="mini", load=load, bill=bill()))[1]
    assert name == "What a search of mini sends"
    assert sent == "40 documents of 90 tokens, query of 10"
    assert how == (
        "tokens estimated: this run counted none" if estimated else "tokens counted by the run"
    )


# Queries, labels and settings.


def test_excluded_queries_are_summed_and_named():
    counts = {"failed": 2, "missing": 1}
    assert queries.left_out_text(counts).startswith("3 queries are excluded on both sides")
    assert queries.left_out_text(counts).endswith(": failed (2), not ranked (1).")
    assert queries.left_out_text({}) == ""
    assert queries.excluded(counts) == ["2 excluded (failed)", "1 excluded (not ranked)"]


@pytest.mark.parametrize(
    ("label", "said", "words"),
    [(2.0, "2 of 3", "2"), (0.0, "0 of 3", "0"), (float("nan"), "not judged", None)],
)
def test_a_label_of_0_is_a_label(label, said, words):
    assert queries.grade(label, 3.0) == said
    assert queries.label_words(None if words is None else label) == words or words is None
    assert queries.label_words(None) == "not judged"
    assert (queries.judged_title(None), queries.judged_title(5)) == ("Judged", "Judged@5")


def setting(default: object, **more: object) -> Setting:
    return Setting(default, "X", "", **({"name": "x", "unset": "taken from the labels"} | more))


@pytest.mark.parametrize(
    ("default", "numbers", "options"),
    [
        (True, (), {"False": "no", "True": "yes"}),
        (1.0, (3.0, 0.5), {"0.5": "0.5", "1": "1", "3": "3"}),
        (None, (2.0,), {"auto": "taken from the labels", "2": "2"}),
        (5, (10, 5), {"5": "5", "10": "10"}),
    ],
)
def test_the_options_of_a_setting_begin_with_what_goes_without_saying(default, numbers, options):
    found = settings.options_of(setting(default), numbers)
    assert list(found.items()) == list(options.items())
    assert settings.options_of(setting(None, choices={"a": "A"}), ()) == {"a": "A"}


def test_a_setting_in_force_is_said_though_it_is_not_offered():
    rules = SimpleNamespace(x=0.25)
    assert settings.in_words([setting(1.0)], rules) == [("X", "0.25")]


def test_a_quote_in_a_name_ends_no_attribute_and_what_cannot_be_seen_is_dropped():
    safe = html_safe("<a title='x' class=\"y\">&\x00\u202e\t")
    assert safe == "&lt;a title=&#x27;x&#x27; class=&quot;y&quot;&gt;&amp;\t"
