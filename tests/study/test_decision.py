"""The evidence of a decision and the next step, each rule on both sides of its threshold."""

import math
from dataclasses import replace
from functools import cache

from rankdash.core.base.errors import Finding
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, Money
from rankdash.core.value.assumptions import Assumptions
from rankdash.core.value.prices import ListedPrice, shipped
from rankdash.features.report.decision import Decision, decision
from rankdash.features.report.words import gaps, next_step
from tests.approved import table
from tests.study.builders import (
    FEW,
    FLAT,
    TOP,
    changed,
    compared,
    keeping,
    lists_of,
    moved,
    on,
    own_price,
    ranking,
    reversed_,
    rows,
    shown,
    timed,
    with_finding,
    without,
)

VALUE = Assumptions(value_per_search=1.0)
CHEAP = own_price(0.001)


def decided(of: Study) -> Decision:
    return decision(of, of.challengers[0])


@cache
def _gaining(ms: float) -> Study:
    loaded = rows(FLAT)
    return compared(loaded, timed(moved(loaded, TOP), ms), cache=keeping())


def gaining(money: Money | None = None, ms: float = 40.0) -> Study:
    """Return a proven gain with a price of "run"; studies of one latency share cached parts."""
    of = _gaining(ms)
    if money is not None and money.prices:
        money = replace(money, prices={of.challengers[0]: money.prices["run"]})
    return replace(of, money=money)


def priced(price: ListedPrice, scenario: Assumptions = VALUE, of: str = "run") -> Money:
    return Money(scenario, {of: price}, frozenset({"value_per_search"}))


def suspect(warned: bool) -> Study:
    finding = Finding("warning", "label_direction", "Labels look reversed.")
    return with_finding(rows(FLAT), *[finding] * warned)


def made_here(dear: bool) -> Study:
    loaded = rows(FLAT, scores=False)
    of = compared(loaded, moved(loaded, TOP))
    return replace(of, money=priced(own_price(1e6), of=of.challengers[0])) if dear else of


def failed_first() -> Study:
    loaded = rows([1] * 3 + [4] * 9)
    return compared(loaded, without(moved(loaded, [1, 2, 3] + [1] * 9), ["q0"]))


def lone_kind(failed: bool) -> Study:
    """Return two kinds of queries, the second with one query."""
    loaded = rows([3] * 11, kinds=["a"] * 10 + ["b"])
    run = moved(loaded, [3] * 11)
    return compared(loaded, without(run, ["q10"]) if failed else run)


def own_column(name: str) -> Study:
    loaded = rows([3] * 20 + [2] * 10, kinds=["a"] * 20 + ["b"] * 10)
    data = loaded.dataset
    queries = data.queries.rename(columns={"kind": name})
    loaded = replace(loaded, dataset=changed(data, queries=queries))
    return compared(loaded, moved(loaded, [1] * 20 + [2] * 10))


def half_labelled(lacking: int) -> Study:
    """Return ten documents per query, five with a label, four in the first queries; two swap
    ranks."""
    loaded = rows([1] * 10, labelled={q: 5 - (q < lacking) for q in range(10)})
    first = lists_of(loaded.dataset.candidates)
    run = moved(loaded, [1] * 10)
    lists = {query: [docs[1], docs[0], *docs[2:]] for query, docs in first.items()}
    return compared(loaded, replace(run, ranking=ranking(lists)))


def one_side_labelled(swapped: bool) -> Study:
    """Return lists whose top four are labelled in the first stage and not in the challenger."""
    loaded = rows([1] * 10, labelled=dict.fromkeys(range(10), 4))
    run = reversed_(loaded)
    of = compared(loaded, run, cutoff=4)
    return replace(of, baseline=run.id, challengers=(FIRST_STAGE,)) if swapped else of


def few_labelled(labelled: int) -> Study:
    loaded = rows(FLAT, labelled=dict.fromkeys(range(labelled, 10), 0))
    return compared(loaded, reversed_(loaded))


def nothing_in_common() -> Study:
    loaded = rows([3] * 12)
    one, other = (
        without(moved(loaded, [1] * 12, name), [f"q{q}" for q in range(12) if q not in kept])
        for name, kept in (("one", range(6)), ("other", range(6, 12)))
    )
    return compared(loaded, other, one, baseline=one.id, challengers=(other.id,))


def not_run(labelled: int) -> Study:
    """Return 60 queries, 20 of them run."""
    loaded = rows([3] * 60, labelled=dict.fromkeys(range(labelled, 60), 0))
    run = moved(rows([3] * 60), [1] * 4 + [3] * 56)
    return compared(loaded, without(run, [f"q{q}" for q in range(20, 60)], "skipped"))


def partly_labelled(**given: object) -> Study:
    """Return ten queries: two without labels, and one without a label of its relevant document."""
    loaded = rows([1] * 9 + [6], labelled={0: 0, 1: 0, 9: 5})
    return compared(loaded, reversed_(loaded), **given)


def unlabelled_first(metric: str) -> Study:
    """Return a study whose rankings have the same five unlabelled documents in the first query."""
    loaded = rows(FLAT, labelled={0: 5})
    return compared(loaded, moved(loaded, TOP), metric=metric)


# From rank 2 to 1 in four queries and to 10 in five: -5 % of the mean.
EVEN = [2] * 40, [1] * 4 + [10] * 5 + [2] * 31
HITS = [1] * 3 + [5] * 7, [2] * 7 + [3] * 2 + [5]
UNSET = frozenset[str]()


def cases() -> dict[str, Study]:
    loss = [3] + [9] * 9, [1] + [10] * 9
    twenties = ["a"] * 20
    return {
        "a gain": suspect(False),
        "a gain on implausible data": suspect(True),
        **{f"hits are counted at the cutoff {k}, or at 10": on(*HITS, cutoff=k)
           for k in (2, 3, None)},
        **{f"from rank 9 to 10 is -0.0111, the tie band {band}":
           on(*loss, statistics=replace(FEW, tie_band=band)) for band in (0.012, 0.011)},
        "a query that failed is not the worst": failed_first(),
        **{f"{size} queries of a kind without a gain": on(
            [3] * (20 + size), [1] * 20 + [3] * size, twenties + ["b"] * size,
        ) for size in (6, 5)},
        "the proven loss of b comes before the larger one of c": on(
            [3] * 20 + [2] * 12 + [1] * 6, [1] * 20 + [3] * 12 + [1] * 3 + [10] * 3,
            twenties + ["b"] * 12 + ["c"] * 6,
        ),
        "two kinds": lone_kind(False),
        "the one query of the second kind failed": lone_kind(True),
        "a column of one's own may be called difficulty": own_column("difficulty"),
        "six of six is p 0.03, and more once there are three kinds": on(
            [3] * 26 + [1] * 6, [1] * 26 + [2] * 6, twenties + ["b"] * 6 + ["c"] * 6,
        ),
        "price and value are set": gaining(priced(CHEAP)),
        "nobody set the value": gaining(replace(priced(CHEAP), given=UNSET)),
        "a price in another currency": gaining(priced(own_price(0.001, currency="EUR"))),
        "an example that the user chose is a price that was set": gaining(priced(shipped()[0])),
        "no price": gaining(),
        **{f"p95 of {ms} ms, the target is 500": gaining(priced(CHEAP), ms)
           for ms in (500.0, 500.1, math.nan)},
        **{f"p95 of {ms} ms, and no price": gaining(None, ms) for ms in (500.1, math.nan)},
        "no value and no cost: a net of exactly 0": gaining(
            priced(own_price(0.0), Assumptions(value_per_search=0.0, elasticity=2.0))
        ),
        "a net just above 0": gaining(priced(own_price(0.0), Assumptions(value_per_search=1e-6))),
        "too dear": gaining(priced(own_price(1e6))),
        "too dear, but nobody set the value": gaining(replace(priced(own_price(1e6)), given=UNSET)),
        "a baseline made here": made_here(dear=False),
        "a baseline made here, and too dear": made_here(dear=True),
        "half of the documents have no label": half_labelled(0),
        "and one more": half_labelled(1),
        "labels that only the challenger lacks": one_side_labelled(False),
        "labels that only the baseline lacks": one_side_labelled(True),
        **{f"labels of {n} queries": few_labelled(n) for n in (5, 2)},
        "no query in common": nothing_in_common(),
        "three of 40 gain: as many queries as the verdict says":
            on([3] * 40, [1] * 3 + [3] * 37),
        **{f"{n} of 60 queries labelled, 20 run": not_run(n) for n in (60, 21, 20)},
        **{f"-5 % of the mean, a minimum gain of {least}":
           on(*EVEN, statistics=replace(FEW, worthwhile=least)) for least in (None, 0, 0.05, 0.5)},
        **{f"two gains in {n} queries, a minimum gain of {least}": on(
            [3] * n, [1, 1] + [3] * (n - 2), statistics=replace(FEW, worthwhile=least),
        ) for n in (6, 19) for least in (None, 0.15)},
        "two gains in 20 queries: too few to say how large a change is":
            on([3] * 20, [1, 1] + [3] * 18),
        "four gains in 20 queries": on([3] * 20, [1] * 4 + [3] * 16),
        "documents of queries without a value lack labels too": partly_labelled(),
        "of the first five of both lists": partly_labelled(cutoff=5),
        "a metric of whole lists": partly_labelled(metric="map", cutoff=None),
        "a metric that describes labels": unlabelled_first("judged"),
        "five documents without a label": unlabelled_first("mrr"),
    }  # fmt: skip


def told(of: Study) -> str:
    found = decided(of)
    parts = {
        "verdict": found.kind, "step": found.step, "more": found.more or None,
        "hits": found.hits and (found.hits.before, found.hits.after, found.hits.n, found.hits.k),
        "worst": {} if found.worst is None else found.worst.drop("state").to_dict(),
        "kinds": [each for each in found.groups if each.column in ("kind", "difficulty")],
        "unlabelled": found.unlabelled, "priced": found.priced,
        "missing": gaps(of, found)[:1] if found.unlabelled else None,
    }  # fmt: skip
    said = [f"{name}: {shown(value)}" for name, value in parts.items() if value]
    return "\n".join([*said, next_step(of, found)])


def test_decisions_are_as_approved(approved):
    approved("study/decision", table((name, told(of)) for name, of in cases().items()))
