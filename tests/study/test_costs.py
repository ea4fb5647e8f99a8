"""The load and cost of a search of a system, by its run and its price."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rankdash.core.data.measured import Level, Measured
from rankdash.core.data.ranking import Run
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.core.runs import combining
from rankdash.core.runs.results import MeasuredLoad, load_of
from rankdash.core.sampling.estimate import Estimate
from rankdash.core.sampling.status import LabelStatus
from rankdash.core.study import pricing
from rankdash.core.study.costs import choices, equal_recall, gain, listwise, system_of
from rankdash.core.study.leaderboard import standings
from rankdash.core.study.pricing import Bill, Waiting, bill, priced, waiting
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, Money
from rankdash.core.value.assumptions import Assumptions
from rankdash.core.value.payoff import Gain, MeasuredChange
from rankdash.core.value.prices import ListedPrice, Load, Searches, shipped
from rankdash.core.words import prices
from tests.approved import table
from tests.study.builders import (
    changed,
    data_of,
    own_price,
    ranking,
    shown,
    six,
    study_on,
    timed,
    together,
)

VALUED = frozenset({"value_per_search"})
LISTED = {each.key: each for each in shipped()}


def served(rate: float, p95_ms: float) -> Level:
    return Level(1, 1.0, 1, 0, p95_ms, p95_ms, rate, rate, 1.0)


def sent(found: MeasuredLoad) -> str:
    load = found.load
    each = f"{six(load.query_tokens)} + {six(load.document_tokens)} tokens"
    return f"{six(load.documents)} × ({each}){' estimated' * found.estimated}"


def told(found: Bill | None) -> str:
    """Return a bill as text."""
    if found is None:
        return "no bill"
    key = "-" if found.listed is None else f"{found.listed.key} by the {found.listed.price.unit}"
    at = {f"{n} documents": six(found.at(n)) for n in (2, 20, 101)}
    rate = found.served
    marks = {
        "lacks": found.lack,
        "served": rate and f"{six(rate.per_second)}/s {rate.way} {rate.in_flight or ''}".strip(),
        "as of": found.listed and found.listed.key == "charged" and found.listed.as_of,
        "sends": sent(found.load), "at": shown(at), "unset": found.unset,
        "machines": len(found.machines), "marks": prices.marks(found),
        "parts": [name for name, _bill in found.parts],
        "per million tokens": found.per_million_tokens,
    }  # fmt: skip
    said = "; ".join(f"{name} {shown(each)}" for name, each in marks.items() if each)
    return f"{key}: {shown(found.per_thousand)} per 1,000; {said}"


# A price without a run, for 40 documents of 90 tokens and a query of 10.

ALONE = {
    "$1 for a million tokens: 100 of each document": own_price(1.0, "tokens"),
    "$2 for 1,000 units of a hundred documents": own_price(2.0),
    "$2, whatever is sent": own_price(2.0, "flat"),
    "$3.60 for an hour of 10 searches a second at 40 documents": own_price(
        3.6, "hour", searches_per_second=10.0
    ),
    "of an hour nobody knows what it serves": own_price(3.6, "hour"),
    "a currency without a rate": own_price(1.0, "tokens", "EUR"),
    "no price": None,
}


def alone(price: ListedPrice | None, documents: int = 40, **money: object) -> Bill:
    levels = money.pop("levels", ())
    load = MeasuredLoad(Load(10, documents, 90), estimated=False)
    return priced(price, load, Waiting(None, None, levels), Money(**({"shared": True} | money)))


def bills_of_prices() -> dict[str, Bill]:
    hour, euros = own_price(3.6, "hour", searches_per_second=10.0), own_price(2.0, "flat", "EUR")
    levels = (served(50.0, 500.0), served(80.0, 501.0))
    rates = {"USD": 7.0, "EUR": 8.0}
    return {
        **{name: alone(price) for name, price in ALONE.items()},
        "an hour at the measured 50 searches a second, as 80 miss the target": alone(
            hour, levels=levels
        ),
        "an hour, and no documents": alone(hour, documents=0),
        "€2 at 8 to 1": alone(euros, currency="CNY", rates=rates),
        "whole machines at €3.60 an hour at 8 to 1": alone(
            own_price(3.6, "hour", "EUR", searches_per_second=1.0),
            currency="CNY", rates=rates, shared=False,
        ),
    }  # fmt: skip


# Runs of queries whose first document is relevant, and one more.

QUERIES = [f"q{place}" for place in range(8)]
CPU = {"cpu": "AMD EPYC", "threads": 2}
LABELS = {query: {"a": 1.0, "b": 1.0} for query in QUERIES}
DATA = data_of(dict.fromkeys(QUERIES, "axby"), LABELS, "abxy")


def made(name: str, kind: str, docs: str = "abxy", *, ms: float = math.nan, **more: object) -> Run:
    """Return a run with this latency for each query, and with its machine."""
    lists = ranking(dict.fromkeys(QUERIES, docs))
    run = timed(run_from_ranking(name, DATA.id, lists, f"{name}.trec"), ms)
    return replace(run, **{"id": name, "reranker": kind, "machine": CPU, **more})


def batches(pairs_per_second: float, **more: object) -> Measured:
    seconds = 400 / pairs_per_second + 9.0
    return Measured(pairs=400, seconds=seconds, index_seconds=9.0, together=8, **more)


def of(*runs: Run, **money: object) -> Study:
    return study_on(DATA, *runs, money=Money(**money))


FAST = made("fast", "bi-encoder", ms=5.0, measured=batches(400.0))
SLOW = made("slow", "cross-encoder", ms=35.0, measured=batches(400.0 / 7))
CARD = {**CPU, "device": "cuda:0"}
FILE = made("file", "precomputed", machine={})


def charged(name: str, kind: str, dollars: list[float], **more: object) -> Run:
    """Return a run of an LLM that reports the cost of each call, one call per query."""
    calls = pd.DataFrame({"query_id": QUERIES[: len(dollars)], "start_s": 0.0, "ms": 5.0})
    told_ = [json.dumps({"prompt_tokens": 900.0, "dollars": each}) for each in dollars]
    calls = calls.assign(attempts=1, retry_wait_ms=0.0, status=200, server_ms=math.nan,
                         queue_ms=math.nan, error="", note="", billed=told_)  # fmt: skip
    run = made(name, kind, calls=calls, **more)
    return replace(run, queries=run.queries.assign(pairs=4.0), created="2026-11-20T10:00:00.000")


LLM = charged("llm", "llm-pointwise", [0.005] * 8)
STAGES = {"first": "bm25", "second": "cross-encoder", "top": 20}
ASKING = STAGES | {"second": "llm-pointwise"}
FUSED = together(DATA, FAST, SLOW, name="fused")


def machines() -> dict[str, tuple[Study, str]]:
    """Return case → a study and the system that is billed."""
    found = {}

    def case(name: str, system: Run, *others: Run, **money: object) -> None:
        found[name] = of(system, *others, **({"shared": True} | money)), system.id

    case("a processor: 100 searches a second at $0.20 an hour, in use for 30 % of it", FAST)
    case("seven times as slow", SLOW)
    case("a graphics card", replace(FAST, machine=CARD))
    for ran, machine, paid in (("cpu", CPU, "gpu"), ("gpu", CARD, "cpu")):
        for how, levels in (("in batches", ()), ("concurrently", (served(50.0, 5.0),))):
            run = replace(FAST, machine=machine, measured=batches(400.0, throughput=levels))
            where, dear = f"ran on a {ran}, {how}, and", LISTED[f"own-{paid}"]
            typed = replace(dear, price=replace(dear.price, searches_per_second=7.0))
            for name, price in {
                f"{where} its price is meant": LISTED[f"own-{ran}"],
                f"{where} a {paid} is paid: nobody knows what that serves": dear,
                f"{where} a {paid} is paid that serves 7 a second": typed,
                f"{where} a machine of an unknown kind is paid": replace(dear, key="mine"),
            }.items():
                case(name, run, prices={run.id: price})
    case("an LLM: $0.04 for 8 queries is $5 for 1,000", LLM)
    half = Measured(scored_pairs=16, cached_pairs=16)
    case("half of its scores came from the cache, which was paid for before",
         charged("half", "llm-listwise", [0.005] * 4, measured=half))  # fmt: skip
    case("an LLM that told no dollars", charged("untold", "llm-pointwise", [0.0] * 8))
    case("the user's own price, whatever it charged", LLM, prices={"llm": own_price(0.7, "flat")})
    lost = charged("llm", "llm-pointwise", [0.005] * 7 + [1.0])
    lost = replace(lost, queries=lost.queries.assign(
        state=["done"] * 7 + ["failed"], pairs=[4.0] * 7 + [math.nan]))  # fmt: skip
    case("a query that failed is in no price", lost)
    case("a cascade on one machine, whose second stage ran on a card", made(
        "local", "cascade", settings=STAGES, measured=batches(40.0),
        machine=CPU | {"second_device": "cuda"},
    ))  # fmt: skip
    case("a cascade that asks a service", made("asking", "cascade", settings=ASKING))
    case("what a service charged for one stage is not the price of both",
         charged("part", "cascade", [0.005] * 8, settings=ASKING))  # fmt: skip
    case("fused: the sum of its parts", FUSED, FAST, SLOW)
    first = together(DATA, FAST, SLOW, name="with first stage", first_stage=True)
    case("fused with the first stage, which costs nothing", first, FAST, SLOW)
    case("fused, and a part was deleted", FUSED, SLOW)
    case("a file: no price", FILE)
    case("a file at $0.70", FILE, prices={"file": own_price(0.7, "flat")})
    case("a file by the hour: no throughput", FILE, prices={"file": own_price(3.6, "hour")})
    slow = made("timed", "precomputed", ms=50.0, machine={})
    case("a file by the hour, 50 ms a query", slow, prices={"timed": own_price(3.6, "hour")})
    busy = made("busy", "bi-encoder", ms=5.0, measured=batches(4.0, threads=2, cpu_seconds=1.0))
    case("a throughput of a busy machine is marked", busy)
    listed = LISTED["own-cpu"]
    typed = replace(listed, price=replace(listed.price, searches_per_second=7.0))
    case("a busy machine whose throughput was typed", busy, prices={"busy": typed})
    case("a price that the user chose from the list is set", FAST,
         prices={"fast": LISTED["cohere-rerank"]})  # fmt: skip
    for run in (FAST, SLOW, FUSED):
        case(f"one whole machine for {run.name} and the others", run,
             *(each for each in (FAST, SLOW, FUSED) if each is not run), shared=False)  # fmt: skip
        traffic = Assumptions(searches_per_day=324_001)
        case(f"{run.name} at 324,001 searches a day, of which one fused serves 324,000", run,
             *(each for each in (FAST, SLOW, FUSED) if each is not run), shared=False,
             assumptions=traffic)  # fmt: skip
    for url in ("http://127.0.0.1:8080", "http://localhost:8080/v1", "http://[::1]:8080",
                "https://api.cohere.com", ""):  # fmt: skip
        settings = {"dialect": "cohere", "base_url": url, "key_variable": ""}
        for kind in ("endpoint", "llm-pointwise"):
            run = made("run", kind, settings=settings, machine={})
            case(f"{kind} at {url or 'its usual place'}", run)
    local = {"dialect": "cohere", "base_url": "http://127.0.0.1:8080", "key_variable": ""}
    case("for a demonstration a local service costs a machine",
         made("run", "endpoint", settings=local, machine={}), example=True)  # fmt: skip
    return found


def search_of(texts: list[str], price: ListedPrice) -> Study:
    """Return a study of one query of one word, whose challenger ranks documents of these texts, at
    a price; 900 short documents are in no list."""
    ids, word = [f"d{place}" for place in range(len(texts))], "word" if any(texts) else ""
    said: Mapping[str, str] = dict(zip(ids, texts, strict=True))
    docs = [*ids, *(f"x{n}" for n in range(900))]
    data = data_of({"q": ids}, {"q": {ids[0]: 1.0}}, docs, {doc: said.get(doc, word)
                                                            for doc in docs})  # fmt: skip
    data = changed(data, queries=data.queries.assign(text=word))
    run = run_from_ranking("up", data.id, data.candidates, "up.trec")
    return study_on(data, run, money=Money(prices={run.id: price}, given=VALUED))


def bills_of_lengths() -> dict[str, tuple[Study, str]]:
    long, none = ["word " * 600, *["word"] * 99], [""] * 50
    found = {f"one of a hundred documents has 600 words, by {unit}": (long, own_price(2.0, unit))
             for unit in ("search", "tokens")}  # fmt: skip
    for listed in (own_price(2.0, "tokens"), own_price(2.0, "template", template_tokens=70),
                   own_price(2.0), own_price(2.0, chunk_tokens=0),
                   own_price(2.0, "flat")):  # fmt: skip
        price = listed.price
        found[f"without texts, by {price.unit} of {price.chunk_tokens}"] = (none, listed)
    studies = {name: search_of(*each) for name, each in found.items()}
    return {name: (study, study.challengers[0]) for name, study in studies.items()}


def test_bills_are_as_approved(approved):
    cases = {name: told(found) for name, found in bills_of_prices().items()}
    cases |= {name: told(bill(*case)) for name, case in (machines() | bills_of_lengths()).items()}
    approved("study/bills", table(cases))


def loads() -> dict[str, str]:
    """Return the load of a run's mean search: a query has 10 tokens by its text, a document 50."""
    nan, each = math.nan, Searches(np.full(3, 10.0), np.full(30, 50.0), np.full(3, 10))
    found = {}
    for name, rows in {
        "40 tokens for each pair": [("done", 2, 80), ("done", 4, 160)],
        "a query that failed sends nothing that counts": [("done", 2, 80), ("failed", nan, nan)],
        "tokens that nobody counted": [("done", 2, 80), ("done", 8, nan)],
        "a pair has no fewer tokens than its query": [("done", 2, 12)],
        "no tokens": [("done", 2, nan)],
        "no pairs": [("done", nan, nan)],
        "all failed": [("failed", nan, nan)],
        "the first stage sends its whole lists": None,
    }.items():
        frame = pd.DataFrame(rows or [("done", 2, 80)], columns=["state", "pairs", "tokens"])
        ids = [f"q{place}" for place in range(len(frame))]
        lists = ranking(dict.fromkeys(ids, "0123456789"))
        run = Run("r", "run", "d", lists, "bm25", frame.assign(query_id=ids))
        found[name] = sent(load_of(lists, rows and run, each))
    return found


def test_loads_are_as_approved(approved):
    approved("study/loads", table(loads()))


@pytest.mark.parametrize(
    ("reranked", "passages", "enough"),
    [
        # "a" and "b" are relevant, at ranks 1 and 3 of the first stage.
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
    run = made("run", "precomputed", reranked)
    assert equal_recall(of(run), "run", passages) == enough


ONE = {"a": 1.0}


def test_fewer_than_six_queries_hold_no_recall_for_sure():
    for n, enough in ((6, 1), (5, None)):
        data = data_of(dict.fromkeys(QUERIES[:n], "ab"), dict.fromkeys(QUERIES[:n], ONE))
        run = run_from_ranking("run", data.id, data.candidates, "run.trec")
        assert equal_recall(study_on(data, run), run.id, 2) == enough


# Options of a study.


def two(money: Money, *, levels: tuple[Level, ...] = (), **more: object) -> Study:
    """Return a study: "small" reranked two documents per query, "large" four, in 10 to 80 ms."""
    data = changed(
        DATA,
        queries=DATA.queries.assign(text="a question of words"),
        documents=DATA.documents.assign(text="some words here"),
        qrels=DATA.qrels[DATA.qrels["doc_id"] == "a"],
    )
    ms = [10.0 * (place + 1) for place in range(8)]
    runs = []
    for name, pairs in (("small", 2), ("large", 4)):
        run = made(name, "precomputed", "axby", machine={}, measured=Measured(throughput=levels))
        run = timed(replace(run, dataset_id=data.id, **more), ms, pairs=pairs, tokens=pairs * 100)
        runs.append(run)
    return study_on(data, *runs, money=money)


PAIR = {"small": own_price(1.0), "large": own_price(2.0)}


def options() -> dict[str, Study]:
    euros = Money(
        prices={"small": own_price(1.0, currency="EUR"), "large": own_price(2.0)}, given=VALUED
    )
    tokens = {"small": own_price(1.0, "tokens"), "large": own_price(2.0)}
    hour = {"small": own_price(3.6, "hour", searches_per_second=10.0), "large": own_price(1.0)}
    within, beyond = (served(50.0, 500.0),), (served(50.0, 501.0),)
    value, price = {"given": VALUED}, {"prices": {"fast": own_price(0.7, "flat")}}
    return {
        "two systems, and a price alone at the last load": two(
            Money(prices=PAIR, also=(own_price(5.0),), given=VALUED)
        ),
        "what is in another currency costs nothing known": two(euros),
        "nor do dollars where euros are": two(replace(euros, currency="EUR")),
        **{f"an LLM reads {read} passages": two(Money(Assumptions(passages=read), PAIR))
           for read in (0, 1, 2)},
        "by the hour, of 50 searches a second": two(
            Money(prices=hour, shared=True), levels=within
        ),
        "by the hour, where these miss the target": two(
            Money(prices=hour, shared=True), levels=beyond
        ),
        "by the token: two pairs of 100 tokens": two(Money(prices=tokens)),
        "a processor, neither price nor value set": of(FAST),
        "its price set": of(FAST, **price),
        "the value set": of(FAST, **value),
        "both set": of(FAST, **price, **value),
        "examples for both": of(FAST, example=True),
        "examples, but both were set": of(FAST, example=True, **price, **value),
        "a file, and the value set": of(FILE, **value),
        "a file, and examples": of(FILE, example=True),
        "without texts, by the token": search_of([""] * 50, own_price(2.0, "tokens")),
        "one machine alone and fused: $146 a month": of(FAST, SLOW, FUSED),
    }  # fmt: skip


def said_of_options(study: Study) -> str:
    lines = []
    for each in choices(study):
        came, option = each.outcome, each.option
        parts = {
            "sends": sent(each.load), "waits": each.waiting.p50,
            "p95": each.waiting.p95, "adds": option.extra_ms, "search": option.cost_per_search,
            "gain": option.gain and option.gain.relative,
            "passages": each.passages, "lacks": each.bill and each.bill.lack,
            "net": came.net_per_month.value, "cost": came.cost_per_month.value,
            "1,000": came.cost_per_thousand.value, "break-even price": came.break_even_price.value,
            "break-even worth": came.break_even_worth.value,
        }  # fmt: skip
        flags = ("example", "unset", "lacks_value", "demonstrated")
        parts["is"] = [name for name in flags if getattr(each, name)]
        said = {name: value for name, value in parts.items() if value not in (None, "", [])}
        system = system_of(study, each)
        lines.append(f"{each.name} ({system and study.name(system)}): {shown(said)}")
    return "\n".join(lines)


def test_options_are_as_approved(approved):
    cases = {name: said_of_options(study) for name, study in options().items()}
    approved("study/options", table(cases))


@pytest.mark.parametrize(("state", "proof"), [("settled", "proven"), ("open", "unproven")])
def test_the_gain_by_sampled_labels_is_their_estimate_and_counts_those_known_before(state, proof):
    study = of(FAST)
    estimate = Estimate(
        study.name(FIRST_STAGE), "fast", "dcg@10", state, 0.1, 0.05, 0.2, math.nan, math.nan, 0.95,
        queries=8, labels=30, waiting=2, known=12, pairs=99, needed=0, saved=None,
        relative=0.2, relative_low=0.1, relative_high=0.4,
    )  # fmt: skip
    sampled = replace(study, labelling=LabelStatus("weight", (estimate,), 0, (), (), math.nan))
    change = MeasuredChange(0.2, 0.1, 0.4, proof)
    assert gain(sampled, "fast") == Gain(change, MeasuredChange(0.0), 8, labels=42)


def test_scores_of_lists_depend_on_which_documents_were_scored_together():
    kinds = {"llm-listwise": True, "cascade": True, combining.KIND: True, "bm25": False}
    assert {kind: listwise(two(Money(), reranker=kind), "small") for kind in kinds} == kinds
    levels = (served(50.0, 500.0),)
    study = two(Money(), levels=levels)
    untimed = study_on(study.dataset, timed(study.run("small"), math.nan))
    assert waiting(untimed, "small") == Waiting(None, None, levels)


def test_every_way_of_pricing_says_one_amount_on_every_surface():
    """A machine, an LLM's dollars, a price that the user entered, their fusion, a file without a
    price."""
    given = replace(FILE, id="given", name="given")
    fused = together(DATA, FAST, LLM, given, name="all of them")
    study = of(FAST, LLM, given, FILE, fused, prices={"given": own_price(0.7, "flat")}, shared=True)
    hour = 0.2 / (100 * 3600 * 0.3) * 1000
    expected = {"fast": hour, "llm": 5.0, "given": 0.7, fused.name: hour + 5.7}
    board = {study.name(row.system): row.per_thousand for row in standings(study)}
    unset = [name for name, amount in board.items() if amount is None]
    assert unset == ["fast", "file", fused.name]
    assert study.money is not None
    examples = replace(study, money=replace(study.money, example=True))
    board = {study.name(row.system): row.per_thousand for row in standings(examples)}
    cards = {each.name: each for each in choices(study)[1:]}
    billed = {name: each.bill.per_thousand for name, each in cards.items()}
    written = {name: each.outcome.cost_per_thousand.value for name, each in cards.items()}
    assert billed["file"] is written["file"] is None
    for found in (board, billed, written):
        assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert prices.of(bill(study, "llm")) == "Charged in this run: $5.00/1,000 searches"


def test_texts_of_a_fetch_and_their_deletion_change_the_payload_in_a_shared_cache():
    data = data_of({"q1": ["a", "b"], "q2": ["b", "a"]}, {"q1": {"a": 1}, "q2": {"b": 1}}, "ab")
    bare = changed(data, documents=data.documents.assign(text=None))
    texts = pd.DataFrame({"doc_id": ["a", "b"], "title": "", "text": ["one two", "three"]})
    kept = {}

    def shared(key, make):
        return kept[key] if key in kept else kept.setdefault(key, make())

    def tokens(dataset):
        study = study_on(dataset, dataset_id="set", cache=shared)
        load = pricing.load(study, FIRST_STAGE).load
        return None if load.searches is None else load.documents * load.document_tokens

    assert tokens(bare) is None
    assert tokens(bare.with_documents(texts)) == 3
    assert tokens(bare.with_documents(texts.assign(text="one two three"))) == 6
    assert tokens(bare) is None
