"""What a decision rests on and the next step, each rule from both sides of where it turns."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import cache

import numpy as np
import pytest

from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.findings import Finding
from rankdash.loading import Loaded
from rankdash.ranking.ranking import Ranking, Run
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.decision import Decision, decision
from rankdash.study.query_groups import Group
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money
from rankdash.value.assumptions import Assumptions
from rankdash.value.billing import Price
from rankdash.value.price_list import ListedPrice, shipped
from rankdash.words.costs import MoneyContext, headline
from rankdash.words.decision import gaps, next_step
from rankdash.words.money import month
from tests.study.test_caveats import DOCS, FLAT, TOP, rows, run
from tests.study.test_caveats import study as study_of
from tests.study.test_queries import keeping

VALUE = Assumptions(value_per_search=1.0)
# No rule here hangs on the last digit of an interval.
FEW = StatisticsSettings(resamples=1000)


def study(loaded: Loaded, *runs: Run, **changes: object) -> Study:
    return study_of(loaded, *runs, **({"statistics": FEW} | changes))


def decided(of: Study) -> Decision:
    return decision(of, of.challengers[0])


def listed(amount: float = 0.001, currency: str = "USD") -> ListedPrice:
    price = Price(amount, "search", currency)
    return ListedPrice("own", "Us", "", price, "our invoice", date(2026, 11, 1))


def on(before: Sequence[int], after: Sequence[int], **changes: object) -> Study:
    """A comparison of the ranks of the one relevant document of each query."""
    loaded = rows(before, **({"kinds": changes.pop("kinds")} if "kinds" in changes else {}))
    return study(loaded, run(loaded, after), **changes)


@cache
def _gaining(ms: float) -> Study:
    loaded = rows(FLAT)
    made = run(loaded, TOP)
    made = replace(made, queries=made.queries.assign(latency_ms=ms))
    return study(loaded, made, cache=keeping())


def gaining(money: Money | None = None, ms: float = 40.0) -> Study:
    """A proven gain under a price of "run"; all of one latency share what money does not change."""
    of = _gaining(ms)
    if money is not None and money.prices:
        money = replace(money, prices={of.challengers[0]: money.prices["run"]})
    return replace(of, money=money)


def priced(price: ListedPrice, scenario: Assumptions = VALUE, of: str = "run") -> Money:
    return Money(scenario, {of: price}, frozenset({"value_per_search"}))


def test_a_gain_on_implausible_data_asks_for_other_data_first():
    loaded = rows(FLAT)
    finding = Finding("warning", "label_direction", "Labels look reversed.")
    wrong = replace(loaded.report, findings=(*loaded.report.findings, finding))
    made = run(loaded, TOP)
    steps = [decided(study(loaded, made, check=each)).step for each in (loaded.report, wrong)]
    assert steps == ["latency", "data"]
    said = next_step(study(loaded, made, check=wrong), decided(study(loaded, made, check=wrong)))
    assert said == "Correct the data first, then compare again."


# Who is shown something, and who loses.


@pytest.mark.parametrize(
    ("cutoff", "k", "before", "after"), [(2, 2, 3, 7), (3, 3, 3, 9), (None, 10, 10, 10)]
)
def test_queries_that_show_something_are_counted_at_the_cutoff_or_at_ten(cutoff, k, before, after):
    of = on([1] * 3 + [5] * 7, [2] * 7 + [3] * 2 + [5], cutoff=cutoff)
    hits = decided(of).hits
    assert (hits.before, hits.after, hits.n, hits.k) == (before, after, 10, k)


@pytest.mark.parametrize(("tie_band", "worst"), [(0.012, None), (0.011, "q1")])
def test_the_worst_query_loses_more_than_the_tie_band(tie_band, worst):
    """From rank 9 to 10 is a loss of 0.0111; the first of equal losses is named."""
    of = on([3] + [9] * 9, [1] + [10] * 9)
    found = decided(replace(of, statistics=replace(of.statistics, tie_band=tie_band))).worst
    assert (None if found is None else found["query_id"]) == worst


def test_the_worst_query_is_the_one_that_loses_most_and_one_that_failed_is_none():
    loaded = rows([1] * 3 + [4] * 9)
    made = run(loaded, [1, 2, 3] + [1] * 9)
    states = made.queries.assign(state=["failed", *["done"] * 11], reason=["time-out", *[""] * 11])
    made = replace(made, ranking=made.ranking.without(["q0"]), queries=states)
    worst = decided(study(loaded, made)).worst
    assert (worst["query_id"], worst["before"]) == ("q2", 1.0)
    assert worst["delta"] == pytest.approx(-2 / 3)


# Kinds of queries.


def kinds_of(of: Study) -> list[Group]:
    return [each for each in decided(of).groups if each.column == "kind"]


@pytest.mark.parametrize(("size", "named"), [(6, True), (5, False)])
def test_a_kind_of_six_queries_without_a_proven_gain_is_named_and_one_of_five_is_not(size, named):
    of = on([3] * (20 + size), [1] * 20 + [3] * size, kinds=["a"] * 20 + ["b"] * size)
    expected = [Group("kind", "b", size, 0.0, proven=False)]
    assert kinds_of(of) == (expected if named else [])


def test_proven_losses_come_first_and_then_the_kinds_that_lose_most():
    """Of "c" three of six lose more than those of "b" all do, which is not proven."""
    of = on(
        [3] * 20 + [2] * 12 + [1] * 6,
        [1] * 20 + [3] * 12 + [1] * 3 + [10] * 3,
        kinds=["a"] * 20 + ["b"] * 12 + ["c"] * 6,
    )
    found = kinds_of(of)
    assert [(each.value, each.proven) for each in found] == [("b", True), ("c", False)]
    assert [each.delta for each in found] == pytest.approx([-1 / 6, -0.45])
    assert [each.n for each in found] == [12, 6]


@pytest.mark.parametrize(("failed", "named"), [(False, ["a"]), (True, [])])
def test_kinds_are_told_apart_only_where_two_of_them_have_a_query_that_counts(failed, named):
    """The one query of the second kind is all that makes two kinds of them."""
    loaded = rows([3] * 11, kinds=["a"] * 10 + ["b"])
    made = run(loaded, [3] * 11)
    if failed:
        states = made.queries.assign(state=["done"] * 10 + ["failed"])
        made = replace(made, ranking=made.ranking.without(["q10"]), queries=states)
    of = study(loaded, made)
    assert of.segment(made.id, "kind")["n"].tolist() == [10, int(not failed)]
    assert [each.value for each in kinds_of(of)] == named


def test_a_column_of_ones_own_is_a_kind_whatever_it_is_called():
    loaded = rows([3] * 20 + [2] * 10, kinds=["a"] * 20 + ["b"] * 10)
    made = run(loaded, [1] * 20 + [2] * 10)
    assert "difficulty" not in {each.column for each in decided(study(loaded, made)).groups}
    data = loaded.dataset
    renamed = type(data)(
        data.name,
        data.queries.rename(columns={"kind": "difficulty"}),
        data.documents,
        data.qrels,
        data.candidates,
    )
    found = decided(study(replace(loaded, dataset=renamed), made)).groups
    assert [each for each in found if each.column == "difficulty"] == [
        Group("difficulty", "b", 10, 0.0, proven=False)
    ]


def test_a_kind_is_proven_by_the_p_that_its_number_of_kinds_leaves():
    """Six of six is p 0.03 by itself, and more once there are three kinds."""
    three = on([3] * 26 + [1] * 6, [1] * 26 + [2] * 6, kinds=["a"] * 20 + ["b"] * 6 + ["c"] * 6)
    table = three.segment(three.challengers[0], "kind").set_index("segment")
    assert table.loc["c", "p"] < 0.05 < table.loc["c", "p_corrected"]
    assert [(each.value, each.proven) for each in kinds_of(three)] == [("c", False), ("b", False)]


# What is at its default.


def test_an_assumption_is_left_at_its_default_only_where_it_counts():
    def names(**given: float) -> set[str]:
        of = gaining(Money.of(given, prices={"run": listed()}))
        return {each.name for each in decided(of).defaults}

    always = {
        *("searches_per_day", "traffic_share", "value_per_search", "elasticity"),
        *("setup_cost", "monthly_cost", "latency_target_ms"),
    }
    assert names() == always
    assert names(value_per_search=1.0) == always - {"value_per_search"}
    assert names(passages=5.0) == always | {"passage_tokens", "llm_price"}
    assert names(passages=5.0, llm_price=1.0) == always | {"passage_tokens"}
    assert names(ticket_share=0.1) == always | {"ticket_cost"}
    assert names(seconds_saved=5.0) == always | {"hourly_wage"}
    assert names(loss_per_100_ms=0.01) == always


@pytest.mark.parametrize(
    ("money", "known"),
    [
        (priced(listed()), True),
        (replace(priced(listed()), given=frozenset()), False),
        (priced(listed(currency="EUR")), False),
        # An example that the user chose from the list is a price that was set.
        (priced(shipped()[0]), True),
        (None, False),
    ],
)
def test_a_price_is_set_by_a_person_in_the_currency_beside_what_a_search_is_worth(money, known):
    assert decided(gaining(money)).priced is known


# What to do next.


@pytest.mark.parametrize(
    ("p95", "step"), [(500.0, "trial"), (500.1, "faster"), (math.nan, "latency")]
)
def test_a_system_is_to_be_faster_only_beyond_its_target(p95, step):
    found = decided(gaining(priced(listed()), p95))
    assert (found.step, found.target_ms) == (step, 500.0)
    assert decided(gaining(None, p95)).step == ("price" if step == "trial" else step)


@pytest.mark.parametrize(
    ("money", "step"),
    [
        # It brings nothing and costs nothing: a net of exactly 0 is no gain.
        (priced(listed(0.0), Assumptions(value_per_search=0.0, elasticity=2.0)), "loss"),
        (priced(listed(0.0), Assumptions(value_per_search=1e-6)), "trial"),
        (priced(listed(1e6)), "loss"),
        # What nobody set says nothing of a loss.
        (replace(priced(listed(1e6)), given=frozenset()), "price"),
    ],
)
def test_what_brings_no_more_than_it_costs_is_stopped_where_both_were_set(money, step):
    assert decided(gaining(money)).step == step


def test_a_baseline_made_here_is_replaced_before_anything_is_measured():
    loaded = rows(FLAT, scores=False)
    assert decided(study(loaded, run(loaded, TOP))).step == "baseline"
    dear = study(loaded, run(loaded, TOP))
    dear = replace(dear, money=priced(listed(1e6), of=dear.challengers[0]))
    assert decided(dear).step == "loss"


def partly_labelled(labelled: int, reverse: bool, *, at: int) -> tuple[Loaded, Run]:
    """Ten queries with so many of their first documents labelled, and one less in the first of
    them; the challenger reverses every list, or swaps the first two documents."""
    loaded = rows([1] * 10, labelled={q: labelled - (q < at) for q in range(10)})
    first = loaded.dataset.candidates

    def order(query: str) -> list[str]:
        docs = list(first.documents_of(query)[0])
        return docs[::-1] if reverse else [docs[1], docs[0], *docs[2:]]

    lists = [(query, order(query), list(range(DOCS, 0, -1))) for query in first.query_ids]
    made = run_from_ranking("new", loaded.dataset.id, Ranking.from_lists(lists), "new.trec")
    return loaded, made


@pytest.mark.parametrize(("lacking", "step"), [(0, "worse"), (1, "judge")])
def test_labels_come_first_where_more_than_half_of_them_are_missing(lacking, step):
    """Exactly half of what both show has no label, and one document more."""
    loaded, made = partly_labelled(5, reverse=False, at=lacking)
    assert decided(study(loaded, made)).step == step


@pytest.mark.parametrize("swapped", [False, True])
def test_labels_that_only_one_side_lacks_come_first_too(swapped):
    """In its first four the first stage is all labelled, and the challenger not at all."""
    loaded, made = partly_labelled(4, reverse=True, at=0)
    of = study(loaded, made, cutoff=4)
    if swapped:
        of = replace(of, baseline=made.id, challengers=(FIRST_STAGE,))
    row = of.comparison.row(of.challengers[0], of.spec)
    assert row["verdict"] == ("better" if swapped else "worse")
    assert decided(of).step == "judge"


@pytest.mark.parametrize(("labelled", "more"), [(5, 1), (2, 4)])
def test_so_many_more_queries_are_asked_for_as_make_six(labelled, more):
    loaded = rows(FLAT, labelled=dict.fromkeys(range(labelled, 10), 0))
    first = loaded.dataset.candidates
    lists = [
        (query, list(first.documents_of(query)[0])[::-1], list(range(DOCS, 0, -1)))
        for query in first.query_ids
    ]
    made = run_from_ranking("new", loaded.dataset.id, Ranking.from_lists(lists), "new.trec")
    found = decided(study(loaded, made))
    assert (found.step, found.more) == ("queries", more)
    assert found.hits.n == labelled


def test_systems_that_answered_no_query_in_common_answer_the_same_ones_first():
    loaded = rows([3] * 12)

    def half(name: str, kept: range) -> Run:
        made = run(loaded, [1] * 12, name)
        lost = [f"q{q}" for q in range(12) if q not in kept]
        gone = made.queries["query_id"].isin(lost)
        states = made.queries.assign(state=np.where(gone, "failed", "done"))
        return replace(made, ranking=made.ranking.without(lost), queries=states)

    one, other = half("one", range(6)), half("other", range(6, 12))
    of = study(loaded, other, one, baseline=one.id, challengers=(other.id,))
    found = decided(of)
    assert (found.step, found.more, found.hits) == ("same_queries", 0, None)


def test_the_number_of_queries_to_settle_it_is_that_of_the_verdict():
    of = on([3] * 40, [1] * 3 + [3] * 37)
    more = of.comparison.verdict(of.challengers[0], of.spec).more
    found = decided(of)
    assert (found.step, found.more) == ("settle", more)
    assert more > 0


@pytest.mark.parametrize(("labelled", "step"), [(60, "rerank"), (21, "settle"), (20, "settle")])
def test_labelled_queries_that_were_not_run_are_run_if_they_are_enough(labelled, step):
    """Of 60 queries 20 were run; others than these are labelled, or hardly any."""
    loaded = rows([3] * 60, labelled=dict.fromkeys(range(labelled, 60), 0))
    made = run(rows([3] * 60), [1] * 4 + [3] * 56)
    lost = [f"q{q}" for q in range(20, 60)]
    states = np.where(made.queries["query_id"].isin(lost), "skipped", "done")
    made = replace(
        made, ranking=made.ranking.without(lost), queries=made.queries.assign(state=states)
    )
    of = study(loaded, made)
    found = decided(of)
    assert found.step == step
    if step == "rerank":
        assert found.more == 40
        assert next_step(of, found) == (
            "Rerank 40 more labelled queries, which were not run, then compare again."
        )


# From rank 2 to 1 in four queries and to 10 in five: -5 % of the mean.
EVEN = [2] * 40, [1] * 4 + [10] * 5 + [2] * 31


@pytest.mark.parametrize(
    ("minimum", "step"), [(None, "minimum"), (0.0, "open"), (0.05, "open"), (0.5, "unprovable")]
)
def test_to_stop_follows_only_from_a_minimum_that_was_set_and_is_excluded(minimum, step):
    of = on(*EVEN, statistics=replace(FEW, worthwhile=minimum))
    assert (decided(of).step, decided(of).more) == (step, 0)
    said = next_step(of, decided(of))
    assert ("Stop" in said) is (step == "unprovable")
    assert ("set by the user" in said) is (minimum is not None)


@pytest.mark.parametrize("minimum", [None, 0.15])
@pytest.mark.parametrize("n", [6, 19])
def test_fewer_than_twenty_queries_are_no_reason_to_stop(n, minimum):
    """What cannot be estimated from a few queries may well be proven by more."""
    of = on([3] * n, [1, 1] + [3] * (n - 2), statistics=replace(FEW, worthwhile=minimum))
    found = decided(of)
    assert (found.kind, found.step, found.more) == ("unproven", "more", 20 - n)
    assert "Stop" not in next_step(of, found)
    # With two changes only, the size of a change is not known before there are 30 queries.
    assert (two := decided(on([3] * 20, [1, 1] + [3] * 18))).step == "more" and two.more == 10
    assert decided(on([3] * 20, [1] * 4 + [3] * 16)).step == "settle"


def test_documents_of_queries_without_a_value_lack_labels_too():
    """Of ten queries, two have no label at all and one has none of its relevant document."""
    loaded = rows([1] * 9 + [6], labelled={0: 0, 1: 0, 9: 5})
    first = loaded.dataset.candidates
    lists = [
        (query, list(first.documents_of(query)[0])[::-1], list(range(DOCS, 0, -1)))
        for query in first.query_ids
    ]
    made = run_from_ranking("new", loaded.dataset.id, Ranking.from_lists(lists), "new.trec")
    whole, shallow = study(loaded, made), study(loaded, made, cutoff=5)
    assert decided(whole).unlabelled == 2 * DOCS + 5
    assert "Missing: labels of 25 documents in the top 10 of" in gaps(whole, decided(whole))[0]
    # The first five of both lists, which share no document.
    assert decided(shallow).unlabelled == 25
    assert decided(replace(whole, metric="map", cutoff=None)).unlabelled == 25


@pytest.mark.parametrize(("upkeep", "said"), [(0.0, "it brings nothing"), (9.0, "its upkeep")])
def test_why_no_price_is_low_enough_names_an_upkeep_only_if_there_is_one(upkeep, said):
    """Without upkeep the change falls; with it, the gain is less than the upkeep."""
    of = on(*EVEN) if not upkeep else on([3] * 40, [1] * 3 + [3] * 37)
    given = frozenset({"value_per_search"})
    money = Money(Assumptions(value_per_search=1e-6, monthly_cost=upkeep), given=given)
    choice = decided(replace(of, money=money)).choice
    context = MoneyContext("USD", "NDCG@10", "Hit@10", 0.95, "first", month(), str)
    text = headline(context, choice, money.assumptions)
    assert text.startswith("**Not proven that")
    [sentence] = [each for each in text.split(". ") if "No price" in each or "no price" in each]
    assert said in sentence and ("upkeep" in sentence) is (upkeep > 0)


def test_a_metric_that_describes_labels_asks_for_another_and_counts_none_that_is_missing():
    loaded = rows(FLAT, labelled={0: 5})
    of = study(loaded, run(loaded, TOP), metric="judged")
    assert (decided(of).step, decided(of).unlabelled) == ("metric", 0)
    # Of the first query both rank the same five documents without a label.
    assert decided(study(loaded, run(loaded, TOP))).unlabelled == 5
