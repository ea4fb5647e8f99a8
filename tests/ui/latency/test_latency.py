"""The page Latency: each sentence of its parts on both sides of its threshold."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from rankdash.core.base.i18n import speaking
from rankdash.core.base.rules import StatisticsSettings
from rankdash.core.data.measured import Level, Measured
from rankdash.core.data.ranking import Reading, Run
from rankdash.core.runs.combining import KIND as FUSION
from rankdash.core.study import latency
from rankdash.core.study.latency import Fit
from rankdash.core.study.pricing import CASCADE
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE
from rankdash.features.latency import page as latency_page
from rankdash.features.latency import page_readout
from rankdash.features.latency.charts_load import Cloud
from tests.approved import table
from tests.ui.parts import LANGUAGES, dataset_of, run_of, said, study_of

QUERIES, DOCS = 80, 2
DATA = dataset_of(
    "query_id,query,doc_id,document,label,score\n"
    + "".join(f"q{q},find,d{d},text,{d},{9 - d}\n" for q in range(QUERIES) for d in range(DOCS))
)
EVEN = np.full(QUERIES, 10.0)
NONE = np.full(QUERIES, np.nan)


def timed(name: str, ms: np.ndarray, pairs: float | np.ndarray = 4.0, **fields: object) -> Run:
    run = run_of(DATA, name, {f"q{q}": ["d1", "d0"] for q in range(QUERIES)})
    rows = run.queries.assign(latency_ms=ms, pairs=pairs)
    usual = {"reranker": "bm25", "measured": Measured(), "queries": rows}
    return replace(run, **(usual | fields))


def first(count: int, ms: np.ndarray = EVEN) -> np.ndarray:
    """Return latencies of the first `count` queries; NaN for the others."""
    return np.where(np.arange(QUERIES) < count, ms, np.nan)


def late(count: int, of: int = 60) -> np.ndarray:
    """Return latencies with the last `count` of `of` queries over the target of 50 ms."""
    return first(of, np.where(np.arange(QUERIES) >= of - count, 51.0, 10.0))


def calls(**changes: object) -> pd.DataFrame:
    row = {"query_id": "q0", "start_s": 0.0, "ms": 30.0, "attempts": 1, "retry_wait_ms": 0.0,
           "status": 200, "server_ms": np.nan, "queue_ms": np.nan, "billed": "{}", "error": "",
           "note": ""}  # fmt: skip
    return pd.DataFrame([row | changes])


def level(clients: int, rate: float, p95: float) -> Level:
    return Level(clients, 2.0, 100, 0, p95 / 2, p95, rate, 4 * rate, 1.0)


BUSY = timed("a busy machine", first(5),
             measured=Measured(pairs=64, seconds=2.0, cpu_seconds=0.4, threads=2))  # fmt: skip
SYSTEMS = study_of(
    DATA,
    timed("59 in time prove it", first(59)),
    timed("58 in time do not", first(58)),
    timed("3 of 60 late are 5%", late(3)),
    timed("4 of 60 late are more", late(4)),
    timed("8 of 60 late prove that it misses", late(8)),
    timed("4 queries have no p95", first(4)),
    timed("1 query has no deviation", first(1)),
    timed("an interval with two ends", EVEN + np.arange(QUERIES) / 10),
    timed("1 document each", first(5), pairs=1.0),
    timed("4 to 5 documents each", first(6), pairs=np.arange(QUERIES) % 2 + 4.0),
    timed("a cold start and a rate", first(5), load_ms=2000.0,
          measured=Measured(pairs=64, seconds=0.5)),
    timed("preparation", first(5), measured=Measured(pairs=64, seconds=0.5, index_seconds=0.2)),
    BUSY,
    timed("a service that tells nothing", first(5), calls=calls()),
    timed("a service that tells its time", first(5), calls=calls(server_ms=20.0)),
    timed("a service that tells its queue", first(5), calls=calls(server_ms=20.0, queue_ms=3.5)),
    timed("retried", first(5), calls=calls(attempts=3, retry_wait_ms=1500.0)),
    timed("two stages", first(5), reranker=CASCADE),
    timed("fused", NONE, reranker=FUSION),
    timed("from a file", NONE, measured=None),
    timed("from the cache", NONE, measured=Measured(cached_pairs=1)),
    timed("in batches", NONE),
    replace(timed("all failed", NONE), queries=timed("", NONE).queries.assign(state="failed")),
)  # fmt: skip


def readout() -> None:
    found = latency.timed(SYSTEMS)
    known = found[next(iter(found))]
    p99 = replace(known, summary=replace(known.summary, p99=45.0))
    page_readout.details(SYSTEMS, found, 50.0)
    page_readout.details(SYSTEMS, {"first-stage": p99}, 50.0)
    page_readout.draw(SYSTEMS, found)


def of(*runs: Run, **fields: object) -> Study:
    return study_of(DATA, *runs, **fields)


def shows(part, *runs: Run, given: tuple = (), **fields: object):
    study = of(*runs, **fields)
    return lambda: part(study, latency.timed(study), *given)


compared = partial(shows, page_readout.details, given=(50.0,))


def grows(*runs: Run):
    return lambda: latency_page.growth(of(*runs))


def throughput(*levels: Level, target: float = 500.0):
    study = of(timed("A", EVEN, measured=Measured(throughput=levels)))
    return lambda: latency_page.draw_throughput(study, target)


def lengths(cut: int | None):
    read = np.full(QUERIES * DOCS, 3, dtype=np.int32)
    full = np.where(np.arange(len(read)) < (cut or 0), 4, 3).astype(np.int32)
    study = of(timed("A", EVEN, reading=None if cut is None else Reading(read, full)))
    return lambda: latency_page.draw_tokens(study)


def machine(measured: Measured | None):
    run = timed("A", EVEN, measured=measured, machine={"cpu": "x", "threads": 4})
    return shows(page_readout.machines, run)


TWICE = timed("B", 2 * EVEN)
LONGER = np.arange(QUERIES) % 5 + 1.0
PARTS = {
    "the others against the fastest": compared(TWICE, timed("A", EVEN), timed("C", 3 * EVEN)),
    "a few slow queries make none slower than twice as slow": compared(
        TWICE, timed("A", np.where(np.arange(QUERIES) < 4, 500.0, 10.0))
    ),
    "59 in time prove it at 95%, and not at 99%": shows(
        page_readout.draw, timed("A", first(59)),
        statistics=StatisticsSettings(level=0.99),
    ),
    "all numbers": shows(page_readout.numbers, timed(
        "A", late(4), load_ms=2000.0, measured=Measured(
            pairs=64, computed_tokens=960.0, seconds=2.0, first_call_ms=70.0, repeats=3)
    )),
    "one query in common has no interval": compared(timed("A", first(1)), TWICE),
    "no query in common": compared(timed("A", first(1)), timed("B", np.roll(first(1), 1))),
    "other numbers of documents": compared(timed("A", EVEN, np.arange(QUERIES) // 60 + 4), TWICE),
    "one system is compared with none": compared(TWICE),
    "growth, its line and points": grows(timed("A", 10.0 * LONGER, LONGER), TWICE),
    "no throughput": throughput(),
    "over the target": throughput(level(1, 10.0, 501.0)),
    "the most within the target": throughput(
        level(1, 10.0, 100.0), level(4, 30.0, 500.0), level(8, 50.0, 501.0)
    ),
    "nothing is cut": lengths(0),
    "0.6% are not nothing": lengths(1),
    "9.4% with a digit": lengths(15),
    "10% without": lengths(16),
    "all are cut": lengths(QUERIES * DOCS),
    "no tokens are counted": lengths(None),
    "a machine without measurements": machine(None),
    "a machine and its load": machine(
        Measured(seconds=2.0, cpu_seconds=3.0, threads=2, load_start=0.5, load_end=2.0)
    ),
    "a busy machine is measured again": shows(page_readout.draw, BUSY),
    "every system is too slow": shows(page_readout.draw, timed("A", 100 * EVEN)),
}  # fmt: skip

OPEN = ("latency.length_table", "latency.levels", "latency.lines")


def cloud(points: int, *slope: float) -> Cloud:
    line = Fit(*slope, 0.0, points, 1.0, 9.0) if slope else None
    return Cloud(FIRST_STAGE, "", pd.DataFrame({"x": [1.0] * points, "ms": 1.0}), line)


GROWTH = {
    "9 queries": (cloud(9), "documents"),
    "10 alike queries": (cloud(10), "documents"),
    "a document": (cloud(40, 2.0, 1.0, 3.0), "documents"),
    "tokens by the thousand": (cloud(40, 0.002, 0.001, 0.003), "tokens"),
    "an interval from 0 proves no growth": (cloud(40, 1.0, 0.0, 2.0), "documents"),
    "an interval to 0 neither": (cloud(40, -1.0, -2.0, 0.0), "documents"),
    "it falls": (cloud(40, -1.0, -2.0, -0.5), "documents"),
    "two digits, whatever the size": (cloud(40, 12.34, 1.234, 123.4), "documents"),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_page_says_of_latency(approved, language):
    cases = {"each system": said(readout, language)}
    cases |= {name: said(part, language, unfolded=OPEN) for name, part in PARTS.items()}
    with speaking(language):
        cases |= {
            f"growth: {name}": latency_page.growth_sentence(SYSTEMS, *given)
            for name, given in GROWTH.items()
        }
    approved(f"ui/latency.{language}", table(cases))


@pytest.mark.parametrize(
    ("typed", "target"),
    [("1", "1"), ("250 ms", "250"), ("1,500 ms", "1500"), ("600000", "600000"), ("0100", "100"),
     *((other, "500") for other in ("600001", "0", "-5", "1.5", "1e3", "x", "9" * 40, "٣", None))],
)  # fmt: skip
def test_a_target_is_whole_milliseconds_up_to_ten_minutes(typed, target):
    assert page_readout.whole_ms(typed) == target


def test_a_whole_search_is_not_compared_with_reranking():
    """The first stage was fetched: reranking is added to its latency."""
    data = DATA.named("fetched")
    data.timings = timed("", 9 * EVEN).queries
    study = study_of(data, timed("A", EVEN), timed("B", 2 * EVEN))
    shown = said(lambda: page_readout.details(study, latency.timed(study), 50.0))
    assert "**B** takes **2 times** as long as A" in shown
    assert "as long as First stage" not in shown and "**First stage** takes" not in shown
    assert shown.count("These are times of whole searches") == 1
