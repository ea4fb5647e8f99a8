"""Price lists: the shipped one is complete and dated, a broken one names its entry."""

import json
from dataclasses import replace
from datetime import date, timedelta

from rankdash.core.value.payoff import ARCHETYPES
from rankdash.core.value.prices import STALE_DAYS, parse_prices, shipped, title, to_json, usual
from tests.approved import masked
from tests.results import results

GOOD = {
    "key": "a", "provider": "A", "unit": "tokens", "amount": 1, "source": "s", "as_of": "2026-01-02"
}  # fmt: skip


def listed(*entries: object) -> bytes:
    return json.dumps({"prices": entries}).encode()


TOML = b"""[[prices]]
    key = "all"
    provider = "Own"
    unit = "search"
    amount = 2.0
    source = "our contract"
    as_of = 2026-11-01
"""
EXAMPLE = "An example: put in your hourly price and the searches per second that you measured"
HOUR = GOOD | {"unit": "hour", "searches_per_second": 20.0, "source": EXAMPLE}
CONTENTS = {
    # The second of two entries is broken.
    **{
        f"an entry with {change}": listed(GOOD, {**GOOD, "key": "b", **change})
        for change in (
            {"amount": "2"}, {"amount": -2}, {"amount": True}, {"amount": float("inf")},
            {"unit": "month"}, {"as_of": "soon"}, {"as_of": "2026-13-01"}, {"provider": ""},
            {"colour": "red"}, {"colour": 1, "a": 2}, {"model": ["x"]}, {"utilisation": 2},
            {"key": None}, {"machines": "share"}, {"searches_per_day": 5},
        )
    },
    "an entry that is a text": listed("x"),
    "two prices with one key": listed(GOOD, GOOD),
    **{
        f"content {content[:20]!r}": content
        for content in (b"", b"{", b"\xff\xfe", b"prices = 3", b"[1]", b'{"prices": []}')
    },
    # TOML's parser would take minutes for it.
    "a long line": b".".join([b"a"] * 300_000) + b" = 1",
    "a long name of a table": b"[" + b".".join([b"a"] * 1_001) + b"]",
    "too many digits": b'{"prices": [' + b"1" * 5_000 + b"]}",
    "too deep": b"[" * 100_000,
    "too deep in JSON": b'{"prices": ' + b"[" * 200_000,
    "too deep in TOML": b"prices = " + b"[" * 1_900,
    "500 entries": listed(*({**GOOD, "key": str(place)} for place in range(500))),
    "501 entries": listed(*({**GOOD, "key": str(place)} for place in range(501))),
    **{
        f"{field} of {length} letters": listed({**GOOD, field: "x" * length})
        for field in ("key", "provider", "model", "source") for length in (200, 201)
    },
    "TOML may begin with its first entry": TOML,
    "a byte order mark, a currency in small letters": b"\xef\xbb\xbf"
    + listed({**GOOD, "currency": "eur"}),
    "all that a price has": listed(GOOD | {
        "unit": "search", "chunk_tokens": 100.0, "currency": "eur", "as_of": "2026-01-02T03:04:05",
        "model": "m",
    }),
    # The rate of an unchanged example is dropped; your own values are not.
    "an example of a machine": listed(HOUR),
    "a machine of one's own": listed(HOUR | {"source": "mine"}),
    "a rate of one's own": listed(HOUR | {"searches_per_second": 21.0}),
}  # fmt: skip


def found_in(content: bytes) -> list[object]:
    found = parse_prices(content, "mine.toml")
    return [len(found), replace(found[0], **{
        name: getattr(found[0], name).replace("x" * 200, "200 x")
        for name in ("key", "provider", "model", "source")
    })]  # fmt: skip


def test_a_list_is_read_or_its_broken_entry_is_named(approved):
    found = results(CONTENTS, found_in)
    # The parser's message depends on the version of Python.
    approved("value/price_list", masked(found, parser=r"(?<=cannot be read: )Expecting[^.]*"))


def test_the_shipped_list(approved):
    own, *_ = prices = shipped()
    assert own.key == "own"
    assert {each.price.unit for each in prices} == {"search", "tokens", "template", "hour"}
    assert all(each.source and each.as_of <= date.today() for each in prices)
    assert parse_prices(to_json(prices).encode(), "mine.json") == prices
    by_key = {each.key: each for each in prices}
    cases = {f"called: {each.name}": title(each) for each in prices}
    cases |= {f"usual: {place}": usual(place, by_key) for place in ("cpu", "gpu", "service", "llm")}
    cases |= {"usual of none": usual("cpu", {})}
    cases |= {each.title: (each.per_thousand, each.p95_ms) for each in ARCHETYPES}
    approved("value/shipped_prices", results(cases))


def test_a_price_is_stale_after_half_a_year():
    price = shipped()[0]
    assert not price.stale(price.as_of + timedelta(days=STALE_DAYS))
    assert price.stale(price.as_of + timedelta(days=STALE_DAYS + 1))


def test_a_price_is_an_example_until_one_of_its_cells_is_ones_own(approved):
    example = shipped()[0]
    mine = replace(example, source="our contract")
    changed = {
        **{name: {"price": replace(example.price, **{name: value})}
           for name, value in (("amount", 3.0), ("unit", "tokens"), ("currency", "EUR"))},
        "key": {"key": "b"},
        "as_of": {"as_of": example.as_of + timedelta(days=1)},
    }  # fmt: skip
    cases = {f"its own {name}": replace(mine, **change).example for name, change in changed.items()}
    cases |= {
        "shipped": example.example,
        "its own source": mine.example,
        "its own key, the source of the example": replace(example, key="b").example,
    }
    approved("value/examples", results(cases))
