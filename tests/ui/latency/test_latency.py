"""The page on latency as a person uses it; what its parts say is in `test_latency_texts`."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from rankdash.ranking.measured import Level, Measured
from rankdash.ranking.ranking import Ranking, Reading
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.runs import jobs
from rankdash.runs.process import WorkerProcess
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


@pytest.fixture
def measured(app, workspace, stored):
    """The app with a run whose queries took 10 to 25 ms."""
    lists = [
        (f"q{q}", [f"d{d}" for d in range(DOCS)], [4.0, 3.0, 2.0, 1.0]) for q in range(QUERIES)
    ]
    run = run_from_ranking("MiniLM", stored, Ranking.from_lists(lists), "MiniLM")
    rows = run.queries.assign(latency_ms=np.arange(10.0, 26.0), pairs=4.0, tokens=100.0)
    read = np.full(QUERIES * DOCS, 25, dtype=np.int32)
    workspace.save_run(
        replace(
            run,
            queries=rows,
            measured=Measured(pairs=64, seconds=0.5, throughput=LEVELS),
            reading=Reading(read, read + 5),
        )
    )
    return app


def test_the_target_is_in_the_address_and_decides(measured):
    assert "misses 12 ms" in texts(open_page(measured, "latency", target="12"))
    assert in_address(measured, "target") == ["12"]
    measured.selectbox(key="address.target").select("2000").run()
    assert in_address(measured, "target") == ["2000"]
    assert "within 2,000 ms" in texts(measured)


def test_a_strange_target_falls_back_to_the_usual(measured):
    assert "16 of 16 within the target" in texts(open_page(measured, "latency", target="1e3"))
    assert measured.selectbox(key="address.target").value == "500"


def test_growth_is_by_tokens_where_documents_do_not_differ_unless_chosen(measured):
    open_page(measured, "latency")
    assert measured.button_group(key="address.against").value == "tokens"
    open_page(measured, "latency", against="documents")
    assert measured.button_group(key="address.against").value == "documents"


@pytest.mark.parametrize("part", ["numbers", "machines", "levels", "lines", "length_table"])
def test_every_folded_part_is_a_table_that_is_made_when_opened(measured, part):
    open_page(measured, "latency")
    closed = len(measured.dataframe)
    measured.session_state[f"latency.{part}"] = True
    measured.run()
    assert not measured.exception
    assert len(measured.dataframe) > closed


def test_a_run_is_started_with_what_is_to_be_measured(app, workspace, stored, monkeypatch):
    monkeypatch.setattr(WorkerProcess, "ensure", lambda self: None)
    open_page(app, "run")
    app.multiselect(key="run.rerankers").set_value(["bm25"]).run()
    app.number_input(key="run.repeats").set_value(3).run()
    app.button_group(key="run.clients").set_value([4, 1]).run()
    assert "The throughput adds about 10 s to each run." in texts(app)
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
