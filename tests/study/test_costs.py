"""What a search of a system sends and costs, by its run and its price."""

import math
from datetime import date

import numpy as np
import pandas as pd
import pytest

from rankdash.dataset import Dataset
from rankdash.ranking.measured import Level
from rankdash.ranking.ranking import Ranking, Run
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.costs import Choice, MeasuredLoad, Waiting, cost_at, equal_recall, load_of
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, systems_of
from rankdash.value.assumptions import Assumptions
from rankdash.value.billing import Load, Price
from rankdash.value.payoff import Option, outcome
from rankdash.value.price_list import ListedPrice

SCENARIO = Assumptions(latency_target_ms=500.0)


def choice(
    price: Price | None,
    *,
    levels: tuple[Level, ...] = (),
    foreign: bool = False,
    documents: int = 40,
) -> Choice:
    listed = price and ListedPrice("own", "Us", "", price, "our invoice", date(2026, 11, 1))
    option = Option("system", 0.0, None)
    return Choice(
        option=option,
        came=outcome(option, SCENARIO),
        system="system",
        price=listed,
        load=MeasuredLoad(Load(10, documents, 90), estimated=False),
        waiting=Waiting(None, None, levels),
        foreign=foreign,
    )


def served(rate: float, p95_ms: float) -> Level:
    return Level(1, 1.0, 1, 0, p95_ms, p95_ms, rate, rate, 1.0)


@pytest.mark.parametrize(
    ("price", "at"),
    [
        # $1 for a million tokens: 100 of each document, the query paid once for each.
        (Price(1.0, "tokens"), {20: 2.0, 40: 4.0, 80: 8.0}),
        # $2 for 1,000 units of a hundred documents.
        (Price(2.0, "search"), {1: 2.0, 100: 2.0, 101: 4.0}),
        # $3.60 for an hour of 10 searches a second at 40 documents: half of them take half of it.
        (Price(3.6, "hour", searches_per_second=10.0), {20: 0.05, 40: 0.1, 80: 0.2}),
    ],
    ids=lambda given: given.unit if isinstance(given, Price) else "",
)
def test_what_a_depth_costs_by_each_billing_unit(price, at):
    found = {depth: cost_at(choice(price), SCENARIO, depth) for depth in at}
    assert found == pytest.approx(at, rel=1e-12)


def test_an_hour_costs_at_a_depth_what_the_measured_throughput_makes_of_it():
    price = Price(3.6, "hour", searches_per_second=10.0)
    levels = (served(50.0, 500.0), served(80.0, 501.0))
    assert cost_at(choice(price, levels=levels), SCENARIO, 20) == pytest.approx(0.01, rel=1e-12)
    assert cost_at(choice(price, documents=0), SCENARIO, 20) == pytest.approx(0.1, rel=1e-12)


def test_a_depth_has_no_cost_without_a_price_in_the_currency():
    assert math.isnan(cost_at(choice(None), SCENARIO, 20))
    assert math.isnan(cost_at(choice(Price(1.0, "tokens"), foreign=True), SCENARIO, 20))


def run_of(rows: list[tuple[str, float, float]]) -> tuple[Ranking, Run]:
    """A run with (state, pairs, tokens) of each query, over lists of ten documents."""
    ids = [f"q{place}" for place in range(len(rows))]
    docs = [f"d{place}" for place in range(10)]
    ranking = Ranking.from_lists([(query, docs, np.arange(10.0, 0, -1)) for query in ids])
    table = pd.DataFrame(rows, columns=["state", "pairs", "tokens"]).assign(query_id=ids)
    return ranking, Run("r", "run", "d", ranking, "bm25", table)


@pytest.mark.parametrize(
    ("rows", "load", "estimated"),
    [
        # 40 tokens for each pair: 10 of the query, as the texts say, and 30 of the document.
        ([("done", 2, 80), ("done", 4, 160)], Load(10, 3, 30), False),
        # A query that failed sends nothing that counts.
        ([("done", 2, 80), ("failed", math.nan, math.nan)], Load(10, 2, 30), False),
        # One whose tokens nobody counted says nothing of how many a pair has.
        ([("done", 2, 80), ("done", 8, math.nan)], Load(10, 5, 30), False),
        # A pair never has fewer tokens than its query.
        ([("done", 2, 12)], Load(6, 2, 0), False),
        ([("done", 2, math.nan)], Load(10, 2, 50), True),
        ([("done", math.nan, math.nan)], Load(10, 10, 50), True),
        ([("failed", math.nan, math.nan)], Load(10, 10, 50), True),
    ],
)
def test_what_the_mean_search_of_a_run_sends(rows, load, estimated):
    assert load_of(*run_of(rows), (10.0, 50.0)) == MeasuredLoad(load, estimated)


def test_the_first_stage_would_send_its_whole_lists():
    ranking, _run = run_of([("done", 2, 80)])
    assert load_of(ranking, None, (10.0, 50.0)) == MeasuredLoad(Load(10, 10, 50), True)


@pytest.mark.parametrize(
    ("reranked", "passages", "enough"),
    [
        # "a" and "b" are relevant: the first stage has both among its first three, one before.
        ("abxy", 3, 2),
        ("abxy", 2, 1),
        ("axyb", 3, None),
        ("axyb", 1, 1),
        ("xaby", 3, 3),
    ],
)
def test_fewer_passages_are_enough_where_they_hold_as_much_as_those_read_now(
    reranked, passages, enough
):
    ids = [f"q{place}" for place in range(8)]

    def ranking(docs: str) -> Ranking:
        return Ranking.from_lists((query, list(docs), np.arange(4.0, 0, -1)) for query in ids)

    data = Dataset(
        "set",
        pd.DataFrame({"query_id": ids, "text": ids}),
        pd.DataFrame({"doc_id": list("abxy"), "title": "", "text": "text"}),
        pd.DataFrame([(query, doc, 1.0) for query in ids for doc in "ab"],
                     columns=["query_id", "doc_id", "label"]),
        ranking("axby"),
    )  # fmt: skip
    run = run_from_ranking("run", data.id, ranking(reranked), "run.trec")
    study = Study(data, systems_of(data, [run]), FIRST_STAGE, (run.id,))
    assert equal_recall(study, run.id, passages) == enough
