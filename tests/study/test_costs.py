"""What a search of a system sends and costs, by its run and its price."""

import json
import math
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest

from rankdash.dataset import Dataset
from rankdash.ranking.measured import Level, Measured
from rankdash.ranking.ranking import Ranking, Run
from rankdash.rerankers.fusion import Fusion
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.runs import combining
from rankdash.runs.combining import CombinedRun, fuse
from rankdash.runs.usage import MeasuredLoad, load_of
from rankdash.study.costs import BASELINE, choices, depths, equal_recall, listwise, system_of
from rankdash.study.latency import summary
from rankdash.study.leaderboard import standings
from rankdash.study.pricing import Bill, Served, Waiting, priced, waiting
from rankdash.study.pricing import bill as bill_of
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money, systems_of
from rankdash.value.assumptions import Assumptions
from rankdash.value.billing import Load, Price, Searches
from rankdash.value.price_list import ListedPrice, shipped
from rankdash.words import prices


def bill(price: Price | None, *, levels: tuple[Level, ...] = (), documents: int = 40) -> Bill:
    listed = price and ListedPrice("own", "Us", "", price, "our invoice", date(2026, 11, 1))
    sent = MeasuredLoad(Load(10, documents, 90), estimated=False)
    return priced(listed, sent, Waiting(None, None, levels), Money(shared=True))


def served(rate: float, p95_ms: float) -> Level:
    return Level(1, 1.0, 1, 0, p95_ms, p95_ms, rate, rate, 1.0)


@pytest.mark.parametrize(
    ("price", "at"),
    [
        # $1 for a million tokens: 100 of each document, the query paid once for each.
        (Price(1.0, "tokens"), {20: 2.0, 40: 4.0, 80: 8.0}),
        # $2 for 1,000 units of a hundred documents.
        (Price(2.0, "search"), {1: 2.0, 100: 2.0, 101: 4.0}),
        (Price(2.0, "flat"), {1: 2.0, 100: 2.0, 101: 2.0}),
        # $3.60 for an hour of 10 searches a second at 40 documents: half of them take half of it.
        (Price(3.6, "hour", searches_per_second=10.0), {20: 0.05, 40: 0.1, 80: 0.2}),
    ],
    ids=lambda given: given.unit if isinstance(given, Price) else "",
)
def test_what_a_depth_costs_by_each_billing_unit(price, at):
    found = {depth: bill(price).at(depth) for depth in at}
    assert found == pytest.approx(at, rel=1e-12)


def test_an_hour_costs_at_a_depth_what_the_measured_throughput_makes_of_it():
    price = Price(3.6, "hour", searches_per_second=10.0)
    levels = (served(50.0, 500.0), served(80.0, 501.0))
    assert bill(price, levels=levels).at(20) == pytest.approx(0.01, rel=1e-12)
    assert bill(price, documents=0).at(20) == pytest.approx(0.1, rel=1e-12)


@pytest.mark.parametrize(
    ("price", "lack"),
    [
        (None, "price"),
        (Price(1.0, "tokens", "EUR"), "rate"),
        (Price(1.0, "hour"), "throughput"),
    ],
)
def test_there_is_no_cost_where_something_is_not_known(price, lack):
    found = bill(price)
    assert (found.lack, found.per_thousand) == (lack, None)
    assert math.isnan(found.at(20))


def test_a_price_in_another_currency_goes_over_at_the_rate_that_was_typed():
    listed = ListedPrice("own", "Us", "", Price(2.0, "flat", "EUR"), "invoice", date(2026, 11, 1))
    sent = MeasuredLoad(Load(10, 40, 90), estimated=False)
    money = Money(currency="CNY", rates={"USD": 7.0, "EUR": 8.0})
    assert priced(listed, sent, Waiting(None, None), money).per_thousand == 16.0


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
    each = Searches(np.full(3, 10.0), np.full(30, 50.0), np.full(3, 10))
    assert load_of(*run_of(rows), each) == MeasuredLoad(load, estimated)


def test_the_first_stage_would_send_its_whole_lists():
    ranking, _run = run_of([("done", 2, 80)])
    each = Searches(np.array([10.0]), np.full(10, 50.0), np.array([10]))
    assert load_of(ranking, None, each) == MeasuredLoad(Load(10, 10, 50), True)


def search_of(texts: list[str], price: Price) -> Study:
    """One query of one word, whose challenger ranks documents of these texts, at a price; 900 short
    documents are in no list."""
    ids, word = [f"d{place}" for place in range(len(texts))], "word" if any(texts) else ""
    lists = Ranking.from_lists([("q", ids, np.arange(len(ids), 0.0, -1))])
    documents = {"doc_id": [*ids, *(f"x{n}" for n in range(900))], "text": [*texts, *[word] * 900]}
    data = Dataset(
        "one",
        pd.DataFrame({"query_id": ["q"], "text": [word]}),
        pd.DataFrame(documents).assign(title=""),
        pd.DataFrame({"query_id": ["q"], "doc_id": ids[:1], "label": 1.0}),
        lists,
    )
    run = run_from_ranking("up", data.id, lists, "up.trec")
    listed = ListedPrice("own", "Us", "", price, "our invoice", date(2026, 11, 1))
    money = Money(prices={run.id: listed}, given=frozenset({"value_per_search"}))
    return Study(data, systems_of(data, [run]), FIRST_STAGE, (run.id,), money=money)


def test_each_document_that_is_sent_counts_with_its_own_length():
    """A hundred documents, of which one has 600 words: 101 chunks, and none of the corpus."""
    texts = ["word " * 600, *["word"] * 99]
    found = {}
    for unit in ("search", "tokens"):
        study = search_of(texts, Price(2.0, unit))
        found[unit] = bill_of(study, study.challengers[0])
    assert found["search"].per_thousand == 4.0
    # The query is sent with each document.
    assert found["tokens"].per_thousand == pytest.approx((600 + 99 + 100) * 2.0 / 1000)
    assert found["search"].at(50) == 2.0


@pytest.mark.parametrize(
    ("price", "lack"),
    [
        (Price(2.0, "tokens"), "tokens"),
        (Price(2.0, "template", template_tokens=70), "tokens"),
        (Price(2.0, "search"), "tokens"),
        (Price(2.0, "search", chunk_tokens=0), ""),
        (Price(2.0, "flat"), ""),
    ],
)
def test_without_texts_a_price_that_depends_on_their_length_is_not_known(price, lack):
    study = search_of([""] * 50, price)
    [_first, up] = choices(study)
    found = up.bill
    assert (found.lack, found.per_thousand is None) == (lack, bool(lack))
    assert (up.option.cost_per_search is None) == bool(lack)
    assert up.lacks_value == bool(lack)


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


# The options of a study.


def own(amount: float, unit: str = "search", currency: str = "USD") -> ListedPrice:
    price = Price(amount, unit, currency, searches_per_second=10.0)
    return ListedPrice("own", "Us", "", price, "our invoice", date(2026, 11, 1))


def two(money: Money, *, levels: tuple[Level, ...] = (), **changes: object) -> Study:
    """Eight queries whose first document is the relevant one; "small" reranked two documents of
    each and "large" four, in 10 to 80 ms."""
    ids = [f"q{place}" for place in range(8)]
    ranking = Ranking.from_lists((query, list("abxy"), np.arange(4.0, 0, -1)) for query in ids)
    data = Dataset(
        "set",
        pd.DataFrame({"query_id": ids, "text": "a question of words"}),
        pd.DataFrame({"doc_id": list("abxy"), "title": "", "text": "some words here"}),
        pd.DataFrame({"query_id": ids, "doc_id": "a", "label": 1.0}),
        ranking,
    )
    runs = []
    for name, pairs in (("small", 2), ("large", 4)):
        made = run_from_ranking(name, data.id, ranking, f"{name}.trec")
        ms = [10.0 * (place + 1) for place in range(8)]
        table = made.queries.assign(pairs=pairs, tokens=pairs * 100, latency_ms=ms)
        measured = Measured(throughput=levels)
        runs.append(replace(made, id=name, queries=table, measured=measured, **changes))
    return Study(data, systems_of(data, runs), FIRST_STAGE, ("small", "large"), money=money)


def test_options_are_the_baseline_every_challenger_and_prices_alone_at_the_last_load():
    money = Money(prices={"small": own(1.0), "large": own(2.0)}, also=(own(5.0),))
    free, small, large, alone = choices(two(money))
    assert (free.name, free.system, free.bill) == ("No reranker: First stage", BASELINE, None)
    assert (free.option.cost_per_search, free.waiting) == (0.0, Waiting(0.0, 0.0))
    assert (small.name, small.system, large.system, alone.system) == ("small", "small", "large", "")
    assert [each.load.load.documents for each in (free, small, large, alone)] == [4, 2, 4, 4]
    assert alone.load == large.load and not alone.load.estimated
    assert alone.waiting == Waiting(None, None) and alone.option.gain is None
    costs = [each.option.cost_per_search for each in (small, large, alone)]
    assert costs == pytest.approx([0.001, 0.002, 0.005])
    study = two(money)
    assert [system_of(study, each) for each in (free, small, large, alone)] == [
        FIRST_STAGE, "small", "large", None
    ]  # fmt: skip


def test_waiting_is_the_median_and_what_is_in_another_currency_costs_nothing_known():
    money = Money(prices={"small": own(1.0, currency="EUR"), "large": own(2.0)})
    _free, small, large = choices(two(money))
    assert (small.bill.lack, small.option.cost_per_search) == ("rate", None)
    assert (large.bill.lack, large.option.cost_per_search) == ("", pytest.approx(0.002))
    assert (large.option.extra_ms, large.waiting.p50) == (45.0, 45.0)
    assert large.waiting.p95 > 75
    euros = replace(money, currency="EUR")
    assert [each.bill.lack for each in choices(two(euros))[1:]] == ["", "rate"]


@pytest.mark.parametrize(("read", "passages"), [(0, None), (1, 1), (2, 1)])
def test_passages_are_looked_at_from_the_first_one_that_an_llm_reads(read, passages):
    money = Money(Assumptions(passages=read), {"small": own(1.0), "large": own(1.0)})
    _free, small, _large = choices(two(money))
    assert (small.passages, small.option.passages_after) == (passages, passages)


def test_only_a_price_by_the_hour_has_a_measured_rate():
    levels = (served(50.0, 500.0),)
    money = Money(prices={"small": own(3.6, "hour"), "large": own(1.0)}, shared=True)
    small, large = (bill_of(two(money, levels=levels), each) for each in ("small", "large"))
    assert (small.served.way, small.served.in_flight, large.served) == ("concurrent", 1, None)
    # $3.60 for an hour of 50 searches a second; of 10 where these miss the target.
    assert small.per_thousand == pytest.approx(0.02)
    slow = bill_of(two(money, levels=(served(50.0, 501.0),)), "small")
    assert (slow.served.way, slow.per_thousand) == ("listed", pytest.approx(0.1))


def test_what_a_system_is_billed_is_its_price_by_the_search_and_by_the_token():
    study = two(Money(prices={"small": own(1.0, "tokens"), "large": own(2.0)}))
    small, large = bill_of(study, "small"), bill_of(study, "large")
    assert (small.listed.price.unit, small.load.estimated) == ("tokens", False)
    # Two pairs of 100 tokens each for every search.
    assert small.per_thousand == pytest.approx(0.2)
    assert small.per_million_tokens == pytest.approx(1.0)
    # Four of them for $2 a thousand.
    assert (large.per_thousand, large.per_million_tokens) == pytest.approx((2.0, 5.0))
    assert bill_of(study, FIRST_STAGE) is None
    data = study.dataset
    bare = Dataset(
        "set",
        data.queries.assign(text=""),
        data.documents.assign(text=""),
        data.qrels,
        data.candidates,
    )
    silent = replace(study.run("large"), queries=study.run("large").queries.assign(tokens=np.nan))
    wordless = Study(bare, systems_of(bare, [silent]), FIRST_STAGE, ("large",), money=study.money)
    assert bill_of(wordless, "large").per_million_tokens is None
    # How many chunks a document is depends on its length.
    assert bill_of(wordless, "large").per_thousand is None


def test_the_first_stage_adds_no_waiting_and_what_was_not_timed_is_unknown():
    levels = (served(50.0, 500.0),)
    study = two(Money(), levels=levels)
    assert waiting(study, FIRST_STAGE) == Waiting(0.0, 0.0)
    found = waiting(study, "small")
    assert (found.p50, found.levels) == (45.0, levels)
    assert found.p95 > found.p50
    untimed = replace(
        study.run("small"), queries=study.run("small").queries.assign(latency_ms=np.nan)
    )
    alone = Study(study.dataset, systems_of(study.dataset, [untimed]), FIRST_STAGE, ("small",))
    assert waiting(alone, "small") == Waiting(None, None, levels)


@pytest.mark.parametrize(
    ("kind", "together"),
    [("llm-listwise", True), ("cascade", True), (combining.KIND, True), ("bm25", False)],
)
def test_scores_of_lists_depend_on_which_documents_were_scored_together(kind, together):
    study = two(Money(), reranker=kind)
    assert listwise(study, "small") is together
    assert listwise(study, FIRST_STAGE) is False


def test_depths_leave_out_the_queries_that_failed_and_no_reranking_takes_no_time():
    study = two(Money(), depth=4)
    run = study.run("small")
    lists = [(query, list("bxya"), np.arange(4.0, 0, -1)) for query in run.ranking.query_ids]
    lost = run.queries["query_id"].isin(["q0", "q1"])
    run = replace(
        run,
        ranking=Ranking.from_lists(lists).without(["q0", "q1"]),
        queries=run.queries.assign(
            pairs=4,
            state=np.where(lost, "failed", "done"),
            latency_ms=run.queries["latency_ms"].mask(lost),
        ),
    )
    study = Study(study.dataset, systems_of(study.dataset, [run]), FIRST_STAGE, ("small",))
    found = depths(study, "small")
    table = found.curve.table
    assert (table["depth"].iloc[0], found.p95[0]) == (0, 0.0)
    assert found.p95[-1] == pytest.approx(waiting(study, "small").p95)
    # A zero for those that failed would be a gain of less than it is.
    assert table["gain"].iloc[-1] == pytest.approx(
        study.comparison.row("small", study.spec)["delta"]
    )
    assert table["mean"].iloc[0] == pytest.approx(1.0)
    assert depths(study, FIRST_STAGE) is None


QUERIES = [f"q{place}" for place in range(8)]
CPU = {"cpu": "AMD EPYC", "threads": 2}


def ranking(docs: str) -> Ranking:
    return Ranking.from_lists((query, list(docs), np.arange(4.0, 0, -1)) for query in QUERIES)


DATA = Dataset(
    "set",
    pd.DataFrame({"query_id": QUERIES, "text": QUERIES}),
    pd.DataFrame({"doc_id": list("abxy"), "title": "", "text": "text"}),
    pd.DataFrame([(query, doc, 1.0) for query in QUERIES for doc in "ab"],
                 columns=["query_id", "doc_id", "label"]),
    ranking("axby"),
)  # fmt: skip


def made(name: str, kind: str, *, ms: float = math.nan, **more: object) -> Run:
    """A run that took so long for each query and recorded what it ran on."""
    run = run_from_ranking(name, DATA.id, ranking("abxy"), f"{name}.trec")
    queries = run.queries.assign(latency_ms=ms)
    return replace(run, **{"reranker": kind, "queries": queries, "machine": CPU, **more})


def batches(pairs_per_second: float) -> Measured:
    return Measured(pairs=400, seconds=400 / pairs_per_second + 9.0, index_seconds=9.0, together=8)


def study_of(*runs: Run, **money: object) -> Study:
    systems, challengers = systems_of(DATA, runs), tuple(run.id for run in runs)
    return Study(DATA, systems, FIRST_STAGE, challengers, money=Money(**money))


def test_a_run_costs_what_its_machine_served_and_a_slower_one_as_much_more():
    fast = made("fast", "bi-encoder", ms=5.0, measured=batches(400.0))
    slow = made("slow", "cross-encoder", ms=35.0, measured=batches(400.0 / 7))
    on_card = {**CPU, "device": "cuda:0"}
    card = made("card", "cross-encoder", ms=5.0, machine=on_card, measured=batches(400.0))
    study = study_of(fast, slow, card, shared=True)
    bills = [bill_of(study, run.id) for run in (fast, slow, card)]
    assert [each.listed.key for each in bills] == ["own-cpu", "own-cpu", "own-gpu"]
    # Four documents a search: 100 searches a second, at $0.20 an hour in use for 30 % of it.
    costs = [0.2 / (100 * 3600 * 0.3) * 1000]
    costs += [7 * costs[0], costs[0] * 2.95 / 0.2]
    assert [each.per_thousand for each in bills] == pytest.approx(costs, rel=1e-9)
    assert [each.served.way for each in bills] == ["batches"] * 3
    board = {row.system: row.per_thousand for row in standings(study)}
    assert [board[run.id] for run in (fast, slow, card)] == [each.per_thousand for each in bills]


@pytest.mark.parametrize(("ran", "paid"), [("cpu", "gpu"), ("gpu", "cpu")])
@pytest.mark.parametrize("levels", [(), (served(50.0, 5.0),)])
def test_what_a_processor_served_is_no_throughput_of_a_graphics_card(ran, paid, levels):
    machine = CPU if ran == "cpu" else {**CPU, "device": "cuda:0"}
    measured = replace(batches(400.0), throughput=levels)
    run = made("model", "bi-encoder", ms=5.0, machine=machine, measured=measured)
    listed = {each.key: each for each in shipped()}
    typed = replace(listed[f"own-{paid}"].price, searches_per_second=7.0)
    prices = {
        "same": listed[f"own-{ran}"],
        "other": listed[f"own-{paid}"],
        "typed": replace(listed[f"own-{paid}"], price=typed),
        # Of another key nobody knows what it is for.
        "own": replace(listed[f"own-{paid}"], key="mine"),
    }
    bills = {name: bill_of(study_of(run, prices={run.id: each}), run.id)
             for name, each in prices.items()}  # fmt: skip
    assert {name: each.lack for name, each in bills.items()} == {
        "same": "", "other": "throughput", "typed": "", "own": ""
    }  # fmt: skip
    assert bills["typed"].served == Served(7.0, "listed")
    assert bills["own"].served == bills["same"].served


def charged(name: str, kind: str, dollars: list[float], pairs: float = 4.0, **more: object) -> Run:
    """An LLM that told what each call came to, a call a query."""
    calls = pd.DataFrame(
        {
            "query_id": QUERIES[: len(dollars)],
            "start_s": 0.0,
            "ms": 5.0,
            "attempts": 1,
            "retry_wait_ms": 0.0,
            "status": 200,
            "server_ms": math.nan,
            "queue_ms": math.nan,
            "error": "",
            "note": "",
            "billed": [json.dumps({"prompt_tokens": 900.0, "dollars": each}) for each in dollars],
        }
    )
    run = made(name, kind, calls=calls, **more)
    return replace(run, queries=run.queries.assign(pairs=pairs), created="2026-11-20T10:00:00.000")


def test_an_llm_costs_the_dollars_that_its_run_recorded():
    """8 queries of 4 documents for $0.04: $5 for 1,000 searches, not the price of a list."""
    run = charged("llm", "llm-pointwise", [0.005] * 8)
    # Half of the scores came from the cache, which was paid for before.
    cached = Measured(scored_pairs=16, cached_pairs=16)
    half = charged("half", "llm-listwise", [0.005] * 4, measured=cached)
    untold = charged("untold", "llm-pointwise", [0.0] * 8)
    typed = ListedPrice("own", "Us", "", Price(0.7, "flat"), "our invoice", date(2026, 11, 1))
    study = study_of(run, half, untold)
    found = [bill_of(study, each.id) for each in (run, half)]
    assert [each.per_thousand for each in found] == pytest.approx([5.0, 5.0], rel=1e-12)
    assert found[0].at(2) == pytest.approx(2.5, rel=1e-12)
    assert [(each.example, each.listed.as_of) for each in found] == [
        (False, date(2026, 11, 20))
    ] * 2
    assert prices.of(found[0]) == "Charged in this run: $5.00/1,000 searches"
    assert bill_of(study, untold.id).example
    board = {row.system: row.per_thousand for row in standings(study)}
    assert board[run.id] == found[0].per_thousand
    own = study_of(run, prices={run.id: typed})
    assert bill_of(own, run.id).per_thousand == 0.7


def test_a_query_that_failed_is_in_no_price():
    run = charged("llm", "llm-pointwise", [0.005] * 7 + [1.0])
    lost = run.queries["query_id"] == QUERIES[-1]
    queries = run.queries.assign(
        state=np.where(lost, "failed", "done"), pairs=run.queries["pairs"].mask(lost)
    )
    run = replace(run, queries=queries)
    assert bill_of(study_of(run), run.id).per_thousand == pytest.approx(5.0, rel=1e-12)


def test_every_way_of_pricing_says_one_amount_on_every_surface():
    """A machine, an LLM's dollars, a typed price, their fusion, and a file without a price."""
    machine = made("machine", "bi-encoder", ms=5.0, measured=batches(400.0))
    llm = charged("llm", "llm-pointwise", [0.005] * 8)
    given = made("given", "precomputed", machine={})
    file = made("file", "precomputed", machine={})
    parts = [CombinedRun(run.name, run.ranking, run) for run in (machine, llm, given)]
    fused = fuse(DATA, parts, Fusion(), "fused")
    flat = ListedPrice("own", "Us", "", Price(0.7, "flat"), "our invoice", date(2026, 11, 1))
    prices_of = {given.id: flat}
    study = study_of(machine, llm, given, file, fused, prices=prices_of, shared=True)
    hour = 0.2 / (100 * 3600 * 0.3) * 1000
    expected = {"machine": hour, "llm": 5.0, "given": 0.7, "fused": hour + 5.7}
    names = study.names
    board = {names[row.system]: row.per_thousand for row in standings(study)}
    cards = {each.name: each for each in choices(study)[1:]}
    billed = {name: each.bill.per_thousand for name, each in cards.items()}
    written = {name: each.came.cost_per_thousand.value for name, each in cards.items()}
    for found in (board, billed, written):
        assert found.pop("file") is None
        assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert [cards[name].unset for name in (*expected, "file")] == [True, False, False, True, True]


def test_a_cascade_is_priced_by_the_machine_unless_a_stage_asks_a_service():
    stages = {"first": "bm25", "second": "cross-encoder", "top": 20}
    machine = {**CPU, "second_device": "cuda"}
    local = made("local", "cascade", settings=stages, machine=machine, measured=batches(40.0))
    asking = made("asking", "cascade", settings=stages | {"second": "llm-pointwise"})
    study = study_of(local, asking, shared=True)
    assert bill_of(study, local.id).listed.key == "own-gpu"
    assert bill_of(study, local.id).per_thousand == pytest.approx(2.95 / (10 * 3600 * 0.3) * 1000)
    assert bill_of(study, asking.id).lack == "price"
    # What the service charged for one stage is not the price of both.
    part = charged("part", "cascade", [0.005] * 8, settings=asking.settings)
    assert bill_of(study_of(part), part.id).lack == "price"


@pytest.mark.parametrize("with_first_stage", [True, False])
def test_a_fused_run_takes_the_time_and_the_cost_of_its_parts(with_first_stage):
    fast = made("fast", "bi-encoder", ms=5.0, measured=batches(400.0))
    slow = made("slow", "cross-encoder", ms=35.0, measured=batches(400.0 / 7))
    parts = [CombinedRun(run.name, run.ranking, run) for run in (fast, slow)]
    if with_first_stage:
        parts.insert(0, CombinedRun("first stage", DATA.candidates))
    fused = fuse(DATA, parts, Fusion(), "fused")
    study = study_of(fast, slow, fused, shared=True)
    found = bill_of(study, fused.id)
    each = [bill_of(study, run.id).per_thousand for run in (fast, slow)]
    assert found.per_thousand == pytest.approx(sum(each), rel=1e-12)
    assert found.at(2) == pytest.approx(sum(each) / 2, rel=1e-12)
    assert [name for name, _bill in found.parts] == ["fast", "slow"]
    assert (summary(study, fused.id).n, summary(study, fused.id).p95) == (8, 40.0)
    shown = next(choice for choice in choices(study) if choice.system == fused.id)
    assert shown.option.cost_per_search * 1000 == pytest.approx(found.per_thousand, rel=1e-12)
    # Without one of its parts nothing is known, and nothing is half of it.
    alone = study_of(fused, slow)
    assert (bill_of(alone, fused.id).lack, summary(alone, fused.id)) == ("parts", None)


def test_runs_on_one_machine_cost_one_machine_alone_and_fused():
    fast = made("fast", "bi-encoder", ms=5.0, measured=batches(400.0))
    slow = made("slow", "cross-encoder", ms=35.0, measured=batches(400.0 / 7))
    fused = fuse(DATA, [CombinedRun(run.name, run.ranking, run) for run in (fast, slow)], Fusion(),
                 "fused")  # fmt: skip
    study = study_of(fast, slow, fused)
    thousand = 146.0 / (100_000 * 365 / 12) * 1000
    for run in (fast, slow, fused):
        found = bill_of(study, run.id)
        assert found.per_thousand == pytest.approx(thousand, rel=1e-9)
        assert "1 whole machine" in prices.marks(found)
        assert found.at(2) == pytest.approx(thousand, rel=1e-9)
    shown = {choice.name: choice.came.cost_per_month.value for choice in choices(study)}
    assert [shown[each] for each in ("fast", "slow", "fused")] == pytest.approx([146.0] * 3)
    # At 30 % use the fused one serves 3.75 searches a second, 324,000 a day.
    busy = study_of(fast, slow, fused, assumptions=Assumptions(searches_per_day=324_001))
    assert [len(bill_of(busy, each.id).machines) for each in (fast, fused)] == [1, 1]
    assert prices.marks(bill_of(busy, fused.id))[-1] == "2 whole machines"
    assert prices.marks(bill_of(busy, fast.id))[-1] == "1 whole machine"


def test_no_value_net_or_return_until_price_and_value_are_set_or_stood_in_for():
    run = made("run", "bi-encoder", ms=5.0, measured=batches(400.0))
    file = made("file", "precomputed", machine={})
    flat = ListedPrice("own", "Us", "", Price(0.7, "flat"), "our invoice", date(2026, 11, 1))
    given = frozenset({"value_per_search"})
    for system in (run, file):
        priced_, valued = {system.id: flat}, {"given": given}
        cases = {
            "none": study_of(system),
            "price": study_of(system, prices=priced_),
            "value": study_of(system, **valued),
            "both": study_of(system, prices=priced_, **valued),
            "example": study_of(system, example=True),
            "own": study_of(system, example=True, prices=priced_, **valued),
        }
        found = {name: choices(each)[1] for name, each in cases.items()}
        nets = {name: each.came.net_per_month.value for name, each in found.items()}
        assert {name for name, net in nets.items() if net is not None} == {"both", "example", "own"}
        assert [name for name, each in found.items() if each.demonstrated] == ["example"]
        assert found["price"].came.break_even_worth.value is not None
        assert found["value"].came.break_even_price.value is not None
        assert "example price" in prices.marks(found["example"].bill)


def test_a_price_that_the_user_chose_from_the_list_is_set():
    run = made("run", "bi-encoder", ms=5.0, measured=batches(400.0))
    listed = {each.key: each for each in shipped()}
    study = study_of(run, prices={run.id: listed["cohere-rerank"]})
    assert not choices(study)[1].unset


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://127.0.0.1:8080", None),
        ("http://localhost:8080/v1", None),
        ("http://[::1]:8080", None),
        ("https://api.cohere.com", "own"),
        ("", "own"),
    ],
)
@pytest.mark.parametrize("kind", ["endpoint", "llm-pointwise"])
def test_a_service_on_the_machine_itself_has_no_price(kind, url, key):
    settings = {"dialect": "cohere", "base_url": url, "key_variable": ""}
    run = made("run", kind, settings=settings, machine={})
    found = bill_of(study_of(run), run.id)
    if key is None:
        assert (found.lack, found.listed) == ("price", None)
        # For a demonstration it costs a machine and not a service.
        assert bill_of(study_of(run, example=True), run.id).listed.key == "own-cpu"
    else:
        assert found.listed.key == ("template-model" if kind == "llm-pointwise" else key)


def test_a_ranking_from_a_file_has_no_price_until_one_is_given():
    run = made("file", "precomputed", machine={})
    timed = made("timed", "precomputed", ms=50.0, machine={})
    assert bill_of(study_of(run, timed), run.id).lack == "price"
    hour = ListedPrice("own", "Us", "", Price(3.6, "hour"), "our invoice", date(2026, 11, 1))
    study = study_of(run, timed, prices={run.id: hour, timed.id: hour}, shared=True)
    assert bill_of(study, run.id).lack == "throughput"
    # 20 searches a second, one after the other.
    assert bill_of(study, timed.id).per_thousand == pytest.approx(0.05, rel=1e-12)
    assert bill_of(study, timed.id).served.way == "alone"
    flat = replace(hour, price=Price(0.7, "flat"))
    assert bill_of(study_of(run, prices={run.id: flat}), run.id).per_thousand == 0.7


def test_a_price_by_the_throughput_of_a_busy_machine_is_marked():
    slow = replace(batches(4.0), threads=2, cpu_seconds=1.0)
    run = made("run", "bi-encoder", ms=5.0, measured=slow)
    assert "machine was busy" in prices.marks(bill_of(study_of(run), run.id))
    typed = replace(shipped()[5], price=replace(shipped()[5].price, searches_per_second=7.0))
    assert "machine was busy" not in prices.marks(
        bill_of(study_of(run, prices={run.id: typed}), run.id)
    )
