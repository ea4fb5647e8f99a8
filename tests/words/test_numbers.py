"""No sentence shows an exponent, a signed zero or NaN, for any input."""

import re
from dataclasses import fields
from datetime import date
from itertools import chain

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.core.base import i18n
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.metrics import Conventions
from rankdash.core.runs.results import MeasuredLoad
from rankdash.core.statistics.verdict import Facts, verdict_on
from rankdash.core.study.costs import Choice
from rankdash.core.study.latency import Apart
from rankdash.core.study.pricing import Waiting, priced
from rankdash.core.study.systems import Money
from rankdash.core.value.assumptions import ASSUMPTIONS, Assumptions
from rankdash.core.value.payoff import Amount, Gain, MeasuredChange, Option, outcome
from rankdash.core.value.prices import UNITS, ListedPrice, Load, Price, cost_per_search
from rankdash.core.words import costs as cost_words
from rankdash.core.words import prices
from rankdash.core.words.costs import year
from rankdash.core.words.latency import excluded_from_times
from rankdash.core.words.methods import methods, rules_in_words
from rankdash.core.words.prices import money
from rankdash.core.words.queries import excluded_text, grade, label_words
from rankdash.core.words.verdicts import change_facts, change_interval, interval, p_value, sentence
from rankdash.features.cost import words as page_words
from rankdash.kit.drawing import draw as drawing_draw
from rankdash.kit.drawing import style

NONSENSE = re.compile(
    r"\d[eE][+-]?\d|\b(?:nan|inf|infinity)\b|[-−+]\$?0(?:[.,]0*)?(?![\d.,]*[1-9])", re.IGNORECASE
)
LONGEST = 24
"""Digits and separators in a row: $1,000,000,000,000,000 has 21."""

anything = st.floats() | st.sampled_from([0.0, -0.0, 1e-7, -1e-7, 1e16, 5.1e33, -5.1e33, 1e300])
shares = st.floats(-1, 1e6) | st.floats(-1e-9, 1e-9)
chances = st.floats(0, 1) | st.floats(0, 1e-4)
counts = st.integers(0, 10**10)


def test_what_is_looked_for_is_found():
    for wrong in ("5.1e+33", "1e-05", "2E6", "-0.00", "-0%", "+0.000", "-$0.00", "nan", "−0.0"):
        assert NONSENSE.search(wrong), wrong
    fits("-0.001", "+0.05", "-0.000004", "10", "infinite")


def fits(*said: str) -> None:
    for text in said:
        assert not NONSENSE.search(text), text


@settings(max_examples=60)
@given(anything, st.integers(0, 6), st.sampled_from(["en", "zh"]))
def test_a_number_is_written_as_one(value, digits, language):
    with i18n.speaking(language):
        fits(
            *(
                write(value, digits)
                for write in (i18n.number, i18n.percent, i18n.signed, i18n.signed_percent)
            ),
            *(write(value, digits + 1) for write in (i18n.quantity, i18n.plain)),
            *(money(value, "USD"), money(value, "JPY"), i18n.duration(abs(value))),
            *(
                style.number(value, digits),
                style.signed(value, digits),
                drawing_draw.span(value, 1),
            ),
            *(i18n.brief(abs(value), value), p_value(min(abs(value), 1)), interval(value, value)),
            change_interval(value, value),
            *(drawing_draw.chance(min(abs(value), 1)), grade(value, 3.0), label_words(value)),
        )


@given(st.floats(1e-3, 1e6), st.floats(-0.01, 0.01).filter(lambda share: abs(share) > 1e-6))
def test_a_latency_beside_its_limit_is_written_on_its_side_of_it(limit, share):
    taken = limit * (1 + share)
    written = [
        float(i18n.brief(*pair).replace(",", "")) for pair in ((taken, limit), (limit, taken))
    ]
    assert (written[0] < written[1], written[0] > written[1]) == (taken < limit, taken > limit)
    assert i18n.brief(limit, limit) == i18n.brief(limit)


@st.composite
def changes(draw: st.DrawFn, values: st.SearchStrategy[float]) -> MeasuredChange:
    low, value, high = sorted(draw(st.tuples(values, values, values)))
    ends = draw(st.sampled_from([(low, high), (None, None)]))
    proof = "proven" if low > 0 or high < 0 else "same" if low == high else "unproven"
    return MeasuredChange(value, *ends, "too_few" if ends[0] is None else proof)


scenarios = st.builds(
    Assumptions,
    **{
        each.name: st.floats(each.least, each.most)
        | st.sampled_from([each.least, each.default, each.most])
        for each in ASSUMPTIONS
    },
)
listed = st.builds(
    ListedPrice,
    key=st.just("own"), provider=st.just("own"), model=st.just("mini"),
    price=st.builds(
        Price,
        amount=st.floats(0, 1e10), unit=st.sampled_from([*UNITS]),
        template_tokens=st.floats(0, 1e10), chunk_tokens=st.integers(0, 10**10),
        searches_per_second=st.floats(1e-12, 1e10), utilisation=st.floats(1e-12, 1),
    ),
    source=st.just("a contract"), as_of=st.just(date(2026, 1, 2)),
)  # fmt: skip
gains = st.builds(
    Gain, changes(shares.filter(lambda value: value < 1e6)), changes(st.floats(-1, 1)), counts
)


@settings(max_examples=30)
@given(scenarios, listed, st.none() | gains, st.none() | st.floats(0, 1e6), st.integers(0, 99))
def test_what_money_comes_to_is_written_in_numbers(scenario, price, gain, p95, passages):
    load = Load(9.0, 100.0, 80.0)
    option = Option("mini", float(cost_per_search(price.price, load)), gain, p95, passages)
    sent, waited = MeasuredLoad(load, True), Waiting(p95, p95)
    bill = priced(price, sent, waited, Money())
    choice = Choice(option, outcome(option, scenario), "run", bill, sent, waited,
                    passages=passages, example_values=True)  # fmt: skip
    context = cost_words.MoneyContext("USD", "NDCG@10", "Hit@10", 0.95, "BM25", year(), str)
    written = {"roi": "percent", "payback_months": "months", "break_even_searches": "count"}
    written["break_even_elasticity"] = "elasticity"
    figures = {
        each.name: getattr(choice.outcome, each.name)
        for each in fields(choice.outcome)
        if isinstance(getattr(choice.outcome, each.name), Amount)
    }
    said = [
        *(part for name, figure in figures.items()
          for part in cost_words.cell(context.period.of(figure) if name not in written else figure,
                                 "USD", written.get(name, "money"))),
        cost_words.headline(context, choice, scenario),
        *(cost_words.sureness(context, choice), page_words.passages(choice, scenario)),
        *page_words.cautions(choice, scenario.latency_target_ms),
        *(prices.words(price), *prices.notes(bill)),
        *chain.from_iterable(page_words.assumption_table(scenario, [choice], "USD", "Hit@10")),
    ]  # fmt: skip
    fits(*said)
    # No figure has more digits than the longest amount.
    assert max(len(each) for text in said for each in re.findall(r"[\d,.]+", text)) <= LONGEST


statistics = st.builds(
    StatisticsSettings,
    level=st.floats(0.5, 0.9999), tie_band=st.floats(0, 1), worthwhile=st.none() | st.floats(0, 10),
    resamples=st.integers(100, 100_000), seed=st.integers(0, 2**63 - 1),
)  # fmt: skip


@settings(max_examples=30)
@given(statistics, changes(st.floats(-1, 1)), chances, chances, counts, st.booleans(), st.data())
def test_verdicts_and_rules_are_written_in_numbers(rules, change, p, before, n, corrected, data):
    low, high = (float("nan") if end is None else end for end in (change.low, change.high))
    n = min(n, 4) if change.proof == "too_few" else n + 5
    before = max(before, -change.value)
    facts = Facts(
        baseline="BM25", challenger="mini", metric="NDCG@10", n=n, in_common=n, n_before=n,
        n_after=n, before=before, after=before + change.value, delta=change.value,
        low=low, high=high, p=p, identical=change.proof == "same", exact=data.draw(st.booleans()),
        comparisons=2, corrected=corrected, level=rules.level, tie_band=rules.tie_band,
        worthwhile=rules.worthwhile, quality=True,
    )  # fmt: skip
    row = pd.Series(
        {"delta": change.value, "delta_low": low, "delta_high": high, "p": p, "p_corrected": p,
         "planned_level": rules.level, "helped": n, "same": n, "hurt": n}
    )  # fmt: skip
    conventions = Conventions(threshold=data.draw(st.floats(1e-9, 1e9)))
    said = [
        sentence(verdict_on(facts)),
        *change_facts(row, rules, "p_corrected"),
        *(how for _what, how in methods(rules, corrected)),
        *(value for _title, value in rules_in_words(conventions, rules)),
        drawing_draw.p_limit(corrected).format(p=round(1 - rules.level, 6)),
        excluded_text({"failed": n}),
        excluded_from_times(
            Apart(n, n, n, n, n, n, retry_wait_ms=p, cached_pairs=n, limit_ms=p),
            None,
        ),
    ]  # fmt: skip
    fits(*said)
