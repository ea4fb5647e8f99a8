"""Price lists: the shipped one is whole and dated, a broken one names its entry."""

import json
from dataclasses import replace
from datetime import date, timedelta

import pytest

from rankdash.errors import DataError
from rankdash.value.archetypes import ARCHETYPES
from rankdash.value.price_list import (
    STALE_DAYS,
    parse_prices,
    shipped,
    title,
    to_json,
    usual,
)

GOOD = {
    "key": "a", "provider": "A", "unit": "tokens", "amount": 1, "source": "s", "as_of": "2026-01-02"
}  # fmt: skip


def test_the_shipped_list_has_every_unit_and_ones_own_contract_first():
    listed = shipped()
    assert listed[0].key == "own"
    assert {each.price.unit for each in listed} == {"search", "tokens", "template", "hour"}
    assert all(each.source and each.as_of <= date.today() for each in listed)


def test_a_price_is_stale_after_half_a_year():
    price = shipped()[0]
    assert not price.stale(price.as_of + timedelta(days=STALE_DAYS))
    assert price.stale(price.as_of + timedelta(days=STALE_DAYS + 1))


def test_a_list_written_is_read_back_the_same():
    assert parse_prices(to_json(shipped()).encode(), "mine.json") == shipped()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"amount": "2"}, "amount is not a number"),
        ({"amount": -2}, "its amount must be"),
        ({"unit": "month"}, "unit is not one of"),
        ({"as_of": "soon"}, "not a day"),
        ({"provider": ""}, "no provider"),
        ({"colour": "red"}, "'colour'"),
        ({"model": ["x"]}, "model is not a text"),
        ({"utilisation": 2}, "its utilisation must be"),
    ],
)
def test_a_broken_entry_is_named(change: dict[str, object], reason: str):
    second = {**GOOD, "key": "b", **change}
    with pytest.raises(DataError, match=reason) as caught:
        parse_prices(json.dumps({"prices": [GOOD, second]}).encode(), "mine.json")
    assert "Price 2" in str(caught.value)
    assert caught.value.file == "mine.json"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"prices = 3", b"[1]", b'{"prices": []}', b"[" * 100_000]
)
def test_a_file_that_is_no_price_list_is_refused(content: bytes):
    with pytest.raises(DataError):
        parse_prices(content, "mine.toml")


def test_two_prices_need_two_keys():
    with pytest.raises(DataError, match="'a'"):
        parse_prices(json.dumps({"prices": [GOOD, GOOD]}).encode(), "mine.json")


def test_a_list_in_toml_may_begin_with_its_first_entry():
    text = """[[prices]]
    key = "all"
    provider = "Own"
    unit = "search"
    amount = 2.0
    source = "our contract"
    as_of = 2026-11-01
    """
    (found,) = parse_prices(text.encode(), "mine.toml")
    assert (found.key, found.price.amount) == ("all", 2.0)


def listed(*entries: dict[str, object]) -> bytes:
    return json.dumps({"prices": entries}).encode()


@pytest.mark.parametrize(("count", "read"), [(500, True), (501, False)])
def test_a_list_has_at_most_500_entries(count, read):
    content = listed(*({**GOOD, "key": str(place)} for place in range(count)))
    if read:
        assert len(parse_prices(content, "p.json")) == count
    else:
        with pytest.raises(DataError, match="has 501 entries; at most 500 are read"):
            parse_prices(content, "p.json")


@pytest.mark.parametrize("field", ["key", "provider", "model", "source"])
def test_a_text_has_at_most_200_letters(field):
    (found,) = parse_prices(listed({**GOOD, field: "x" * 200}), "p.json")
    assert getattr(found, field) == "x" * 200
    with pytest.raises(DataError, match=f"its {field} is not a text of at most 200 letters"):
        parse_prices(listed({**GOOD, field: "x" * 201}), "p.json")


def test_an_amount_is_a_number_and_a_currency_in_capitals_behind_a_byte_order_mark_too():
    with pytest.raises(DataError, match="its amount is not a number"):
        parse_prices(listed({**GOOD, "amount": True}), "p.json")
    (found,) = parse_prices(b"\xef\xbb\xbf" + listed({**GOOD, "currency": "eur"}), "p.json")
    assert found.price.currency == "EUR"


def test_a_price_is_an_example_until_one_of_its_cells_is_ones_own():
    example = shipped()[0]
    assert example.example
    mine = replace(example, source="our contract")
    assert mine.example, "all that is paid by is the example's"
    assert replace(example, key="b").example, "its source is"
    for changes in (
        {"key": "b"},
        {"as_of": example.as_of + timedelta(days=1)},
        *({"price": replace(example.price, **each)} for each in (
            {"amount": 3.0}, {"unit": "tokens"}, {"currency": "EUR"},
        )),
    ):  # fmt: skip
        assert not replace(mine, **changes).example


def test_the_usual_price_of_a_place_is_the_one_of_its_key():
    prices = {each.key: each for each in shipped()}
    assert [usual(place, prices).key for place in ("cpu", "gpu", "service")] == [
        "own-cpu", "own-gpu", "own",
    ]  # fmt: skip
    assert usual("llm", prices).price.unit in ("template", "tokens")
    assert usual("cpu", {}) is None


def test_a_price_is_called_by_its_provider_and_its_model_if_it_has_one():
    bare, of_model = shipped()[0], shipped()[1]
    assert (bare.name, title(bare)) == ("Hosted reranker", "Hosted reranker")
    assert of_model.name == "Cohere Rerank 3.5 and 4.0"
    assert title(of_model) == "Cohere, Rerank 3.5 and 4.0"


def test_what_an_example_of_a_machine_once_said_is_forgotten_and_ones_own_is_not():
    was = "An example: put in your hourly price and the searches per second that you measured"
    entry = GOOD | {"unit": "hour", "searches_per_second": 20.0}
    for source, rate, kept in ((was, 20.0, None), ("mine", 20.0, 20.0), (was, 21.0, 21.0)):
        given = entry | {"source": source, "searches_per_second": rate}
        (found,) = parse_prices(listed(given), "p.json")
        assert found.price.searches_per_second == kept


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("x", "not a set of named fields"),
        (GOOD | {"amount": float("inf")}, "amount is not a number"),
        (GOOD | {"key": None}, "it has no key"),
        (GOOD | {"colour": 1, "a": 2}, "unknown field 'a'"),
        (GOOD | {"machines": "share"}, r"machines belongs above the first \[\[prices\]\]"),
        (GOOD | {"searches_per_day": 5}, "searches_per_day belongs above"),
        (GOOD | {"as_of": "2026-13-01"}, "not a day"),
    ],
)
def test_an_entry_that_is_none_is_named_by_its_place(entry, reason):
    with pytest.raises(DataError, match=f"Price 1 .*{reason}"):
        parse_prices(json.dumps({"prices": [entry]}).encode(), "p.json")


def test_an_entry_says_all_that_its_price_holds():
    given = GOOD | {
        "unit": "search", "chunk_tokens": 100.0, "currency": "eur", "as_of": "2026-01-02T03:04:05",
        "model": "m",
    }  # fmt: skip
    (found,) = parse_prices(listed(given), "p.json")
    assert (found.provider, found.model, found.source) == ("A", "m", "s")
    assert (found.price.chunk_tokens, found.price.currency) == (100, "EUR")
    assert found.as_of == date(2026, 1, 2)


def test_the_examples_of_ways_to_rerank_cost_what_they_read():
    found = {each.title: (round(each.per_thousand, 4), each.p95_ms) for each in ARCHETYPES}
    assert found == {
        "No reranker": (0.0, 0.0), "Cross-encoder": (1.0, 300.0),
        # (12 + 200 + 70) × 50 and 12 + 10,000 + 70 tokens at $0.20 for a million.
        "LLM pointwise": (2.82, None), "LLM listwise": (2.0164, None),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        # TOML's parser would take minutes for it.
        (b".".join([b"a"] * 300_000) + b" = 1", "line 1 has more than 2000 characters"),
        (b"[" + b".".join([b"a"] * 1_001) + b"]", "line 1 has more than 2000 characters"),
        (b'{"prices": [' + b"1" * 5_000 + b"]}", "a number of too many digits"),
        (b'{"prices": ' + b"[" * 200_000, "lists inside lists, too deep"),
        (b"prices = " + b"[" * 1_900, "lists inside lists, too deep"),
        (b"\xff\xfe", "can't decode"),
    ],
)
def test_what_no_parser_can_read_is_told_in_words(content, reason):
    with pytest.raises(DataError, match=f"The price list cannot be read: .*{reason}") as refused:
        parse_prices(content, "own.toml")
    assert refused.value.file == "own.toml"
