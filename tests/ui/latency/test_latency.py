"""The page on latency: what was measured, and what was not and why."""

from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest

from rankdash.ranking.measured import Level, Measured
from rankdash.ranking.ranking import Ranking, Reading
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.runs import jobs
from rankdash.runs.usage import MeasuredLoad
from rankdash.study.pricing import Waiting, priced
from rankdash.study.systems import Money
from rankdash.value.billing import Load, Price
from rankdash.value.price_list import ListedPrice
from tests.ui.test_pages import in_address, open_page, texts

QUERIES, DOCS = 16, 4
LEVELS = (
    Level(1, 2.0, 100, 0, 9.0, 20.0, 50.0, 200.0, 1.0),
    Level(4, 2.0, 160, 0, 40.0, 90.0, 80.0, 320.0, 2.0),
)


def said(app) -> str:
    return "\n".join([texts(app), *(str(each.value) for each in app.warning)])


@pytest.fixture
def save(workspace, stored):
    """A function that stores a run with times; ms NaN: not timed. Returns its id."""

    def store(name, ms, *, measured=None, state="done", full=30, **fields):
        ids = [f"q{q}" for q in range(QUERIES)]
        states = np.where(np.arange(QUERIES) == 15, state, "done")
        lists = [
            (query, [f"d{d}" for d in range(DOCS)], [4.0, 3.0, 2.0, 1.0])
            for query, each in zip(ids, states, strict=True)
            if each == "done"
        ]
        run = run_from_ranking(name, stored, Ranking.from_lists(lists), name)
        table = pd.DataFrame(
            {
                "query_id": pd.Series(ids, dtype="str"),
                "state": pd.Series(states, dtype="str"),
                "reason": pd.Series(np.where(states == "failed", "why", ""), dtype="str"),
                "latency_ms": np.where(states == "done", ms, np.nan),
                "index_ms": np.nan,
                "pairs": float(DOCS),
                "tokens": np.where(states == "done", 100.0 + np.arange(QUERIES), np.nan),
                "truncated": 0.0,
            }
        )
        rows = len(lists) * DOCS
        read = np.full(rows, 25, dtype=np.int32)
        run = replace(
            run,
            queries=table,
            measured=measured or Measured(pairs=64, seconds=0.5, threads=0),
            reading=Reading(read, np.full(rows, full, dtype=np.int32)),
            machine={"cpu": "a *quick* one"},
            load_ms=2100.0,
            **fields,
        )
        return workspace.save_run(run) or run.id

    return store


def test_without_a_measured_run_the_page_says_why_and_what_to_do(app, stored):
    title, state, _of, *sentences = said(open_page(app, "latency")).splitlines()
    assert (title, state) == ("Latency", "No latency measured yet")
    assert {*sentences} >= {
        "**First stage** has no latency: it is the order of the search before reranking.",
        "**better** has no latency: its ranking was read from a file, or is of an older version.",
        "A run times queries one at a time, on a warm model, with their own documents. None of the "
        "systems compared has such times.",
    }


def test_the_readout_says_how_fast_how_sure_and_on_what(app, save):
    save("MiniLM", np.arange(10.0, 26.0))
    assert {*said(open_page(app, "latency")).splitlines()} >= {
        "**MiniLM** answers 95% of queries within **24.2 ms** (16 queries, 95% interval from 22 "
        "up), 4 documents each. Half are answered within 17.5 ms.",
        ":gray-badge[:material/help: within 500 ms, too few queries to be sure]",
        # Trap 15: a cold start is never mixed with warm times.
        "16 of 16 within the target · no p99: needs 1,000 queries · mean 17.5 ms, standard "
        "deviation 4.76 ms · cold start 2.1 s, not included · 128 pairs/s over the whole run",
    }


def test_the_target_is_in_the_address_and_decides(app, save):
    save("MiniLM", np.arange(10.0, 26.0))
    assert "misses 12 ms" in said(open_page(app, "latency", target="12"))
    assert in_address(app, "target") == ["12"]
    app.selectbox(key="address.target").select("2000").run()
    assert in_address(app, "target") == ["2000"]
    assert "within 2,000 ms" in said(app)


@pytest.mark.parametrize("nonsense", ["-5", "0", "x", "9" * 40, "1e3", "٣"])
def test_a_strange_target_falls_back_to_the_usual(app, save, nonsense):
    save("MiniLM", 10.0)
    assert "16 of 16 within the target" in said(open_page(app, "latency", target=nonsense))
    assert app.selectbox(key="address.target").value == "500"


def test_what_failed_was_late_or_asked_again_stands_apart(app, save):
    calls = pd.DataFrame(
        {
            "query_id": ["q0", "q15"],
            "start_s": 0.0,
            "ms": [1610.0, 30_000.0],
            "attempts": [3, 1],
            "retry_wait_ms": [1500.0, 0.0],
            "status": [200, 0],
            "server_ms": [70.0, np.nan],
            "queue_ms": [10.0, np.nan],
            "billed": "{}",
            "error": ["", "time-out: no answer within 30 s"],
            "note": "",
        }
    )
    save("Remote", 10.0, state="failed", calls=calls)
    # What timed out is not in time, and is no failed query besides.
    assert {*said(open_page(app, "latency")).splitlines()} >= {
        "15 of 16 within the target · no p99: needs 1,000 queries · mean 10 ms, standard "
        "deviation 0 ms · cold start 2.1 s, not included · "
        "128 pairs/s over the whole run · of a call, 70 ms in the model and 30 ms on the network "
        "· 10 ms in the service's queue  ",
        "Not included: 1 query given up after 30 s, which counts as over the target; 1.5 s of "
        "waiting before retries, for 1 query.",
    }
    assert {*said(open_page(app, "latency", lang="zh")).splitlines()} >= {
        "不包括：1 条查询在 30 秒后放弃，计为未达到目标；1 条查询为重试而等待的 1.5 秒。"
    }


def test_a_measurement_on_a_busy_machine_is_marked(app, save):
    busy = Measured(pairs=64, seconds=2.0, cpu_seconds=0.4, threads=2)
    save("MiniLM", 10.0, measured=busy)
    assert {*said(open_page(app, "latency")).splitlines()} >= {
        ":orange-badge[:material/speed: on a busy machine]",
        "The machine was busy: scoring had 10% of its 2 threads. On an idle machine these times "
        "may be shorter.",
    }


def test_kept_scores_and_common_scoring_are_not_latencies(app, save):
    save("timed", 10.0)
    save("kept", np.nan, measured=Measured(cached_pairs=64))
    save("together", np.nan)
    assert {*said(open_page(app, "latency")).splitlines()} >= {
        "**kept** has no latency: its scores came from the cache, which is not included in "
        "latency. Run it again with the latency measured always.",
        "**together** has no latency: its queries were scored in batches, none by itself. Run it "
        "with the latency measured.",
    }


def test_two_systems_are_compared_on_the_same_queries(app, save):
    first = save("quick", np.arange(10.0, 26.0))
    second = save("slow", 3 * np.arange(10.0, 26.0))
    assert {*said(open_page(app, "latency", base=first, system=second)).splitlines()} >= {
        "**slow** takes **3 times** as long as quick, on the same 16 queries (95%: 3 … 3)."
    }


def test_throughput_is_measured_or_said_not_to_be(app, save):
    alone = save("MiniLM", 10.0)
    # Trap 17: it is not 1 / 10 ms.
    unmeasured = (
        "Not measured: MiniLM. Throughput cannot be derived from latency: concurrent queries "
        "share the machine. Open “What is measured” when you start a run."
    )
    words = said(open_page(app, "latency"))
    assert {*words.splitlines()} >= {unmeasured}
    assert "queries/s**" not in words
    other = save("served", 10.0, measured=Measured(pairs=64, seconds=0.5, throughput=LEVELS))
    words = said(open_page(app, "latency", target="50", base=alone, system=other))
    assert {*words.splitlines()} >= {
        "**served** serves **50 queries/s** within 50 ms (concurrency 1, p95 20 ms).",
        unmeasured,
    }


def test_growth_and_cut_texts_are_told(app, save):
    save("MiniLM", 1000 + 5 * np.arange(16.0))
    assert {*said(open_page(app, "latency")).splitlines()} >= {
        "**MiniLM**: 5,000 ms a thousand tokens (95%: 5,000 … 5,000), by 16 queries.",
        "**100% of the pairs are cut**: 17% of all tokens are never read. Half of the pairs have "
        "up to 30 tokens, 95% up to 30.",
    }
    assert {*said(open_page(app, "latency", against="documents")).splitlines()} >= {
        "**MiniLM**: no line is drawn, because the queries do not differ in it."
    }


@pytest.mark.parametrize("part", ["numbers", "machines", "levels", "lines", "length_table"])
def test_every_folded_part_is_a_table_that_is_made_when_opened(app, save, part):
    save("MiniLM", np.arange(10.0, 26.0), measured=Measured(pairs=9, seconds=1, throughput=LEVELS))
    open_page(app, "latency")
    closed = len(app.dataframe)
    app.session_state[f"latency.{part}"] = True
    app.run()
    assert not app.exception
    assert len(app.dataframe) > closed


def test_a_run_is_started_with_what_is_to_be_measured(app, workspace, stored, monkeypatch):
    from rankdash.runs.process import WorkerProcess

    monkeypatch.setattr(WorkerProcess, "ensure", lambda self: None)
    open_page(app, "run")
    app.multiselect(key="run.rerankers").set_value(["bm25"]).run()
    app.number_input(key="run.repeats").set_value(3).run()
    app.button_group(key="run.clients").set_value([4, 1]).run()
    assert "The throughput adds about 10 s to each run." in said(app)
    next(each for each in app.button if each.label == "Start 1 run").click().run()
    (job,) = jobs.list(workspace, stored)
    timing = jobs.Timing.from_mapping(job.timing)
    assert (timing.repeats, timing.concurrency, timing.latency) == (3, (1, 4), "auto")


def test_a_price_by_the_hour_takes_no_throughput_with_failures():
    price = Price(1.0, "hour", searches_per_second=3.0)
    listed = ListedPrice("own", "Us", "", price, "our invoice", date(2026, 11, 1))
    sent = MeasuredLoad(Load(10, 40, 90), estimated=False)
    failing = replace(LEVELS[1], failed=1)

    def served(*levels: Level) -> tuple[float, str]:
        found = priced(listed, sent, Waiting(9.0, 20.0, levels), Money()).served
        return found.per_second, found.way

    assert served(LEVELS[0], failing) == (50.0, "concurrent")
    assert served(failing) == (3.0, "listed")


@pytest.mark.parametrize(("timed", "boxes"), [(1, 0), (4, 0), (5, 1)])
def test_a_box_needs_as_many_queries_as_a_p95(app, save, timed, boxes):
    save("MiniLM", np.where(np.arange(QUERIES) < timed, 10.0 + np.arange(QUERIES), np.nan))
    page = open_page(app, "latency")
    needed = "A system needs 5 timed queries for a box." in said(page)
    assert (needed, "Whiskers: 5% to 95%" in said(page)) == (not boxes, bool(boxes))
