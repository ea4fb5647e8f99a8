"""What runs cost by what they recorded, one number on every surface; and prices that are typed."""

import csv
import io
import math
from dataclasses import replace
from datetime import UTC, datetime
from zipfile import ZipFile

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import rankdash as rd
from rankdash.ranking.measured import Measured
from rankdash.ranking.ranking import Ranking, Run
from rankdash.reporting.exports.zip_file import bundle
from rankdash.rerankers.fusion import Fusion
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.runs.combining import CombinedRun, fuse
from rankdash.store import Workspace
from rankdash.study import costs
from rankdash.study.study import Study
from rankdash.study.systems import Money
from rankdash.ui.sidebar.view import PAGES
from tests.stored import keep_rows
from tests.surfaces.reading import Page

QUERIES = [f"q{place}" for place in range(20)]
ROWS = "query_id,query,doc_id,document,label,score\n" + "".join(
    f"{query},question {query},{query}-d{d},words of document {d},{int(d == 2)},{4 - d}\n"
    for query in QUERIES
    for d in range(4)
)
# A machine at $0.20 an hour that is never switched off and serves 100,000 searches a day of any.
WHOLE = 0.2 * 24 / 100_000 * 1000
THOUSAND = {"fast": WHOLE, "slow": WHOLE, "fused": WHOLE, "file": None}
# Four documents a search at 400 pairs a second: 100 searches a second, in use 30 % of the time.
SHARE = 0.2 / (100 * 3600 * 0.3) * 1000


def recorded(dataset_id: str, name: str, pairs_per_second: float) -> Run:
    lists = [(q, [f"{q}-d{d}" for d in (2, 0, 1, 3)], np.arange(4.0, 0, -1)) for q in QUERIES]
    run = run_from_ranking(name, dataset_id, Ranking.from_lists(lists), f"{name}.trec")
    if math.isnan(pairs_per_second):
        return run
    return replace(
        run,
        reranker="cross-encoder",
        queries=run.queries.assign(latency_ms=4000 / pairs_per_second),
        machine={"cpu": "AMD EPYC", "threads": 2, "device": "cpu"},
        measured=Measured(pairs=80, seconds=80 / pairs_per_second, together=20),
    )


@pytest.fixture
def runs(workspace: Workspace, app: AppTest) -> list[Run]:
    """One run, one 7 times slower, both fused, and one from a file; kept and chosen."""
    dataset_id = keep_rows(workspace, ROWS, "Shop")
    fast, slow = recorded(dataset_id, "fast", 400.0), recorded(dataset_id, "slow", 400 / 7)
    parts = [CombinedRun(run.name, run.ranking, run) for run in (fast, slow)]
    data = workspace.dataset(dataset_id)
    made = [
        fast,
        slow,
        fuse(data, parts, Fusion(), "fused"),
        recorded(dataset_id, "file", math.nan),
    ]
    for run in made:
        workspace.save_run(run)
    app.query_params["data"] = dataset_id
    app.query_params["system"] = [run.id for run in made]
    return made


@pytest.fixture
def study(workspace: Workspace, runs: list[Run]) -> Study:
    return rd.study_of(workspace.dataset(runs[0].dataset_id), runs)


def tables(app: AppTest, name: str) -> list[list[str]]:
    """The rows of the table in the one block of HTML that has a class of that name."""
    [body] = [str(h.value) for h in app.get("html") if f"class='{name}'" in str(h.value)]
    return Page(body).tables[""][0]


def opened(app: AppTest, page: str) -> AppTest:
    app.switch_page(str(PAGES / f"{page}.py")).run()
    assert not app.exception
    return app


def digits(amount: float | None) -> str:
    """As money below a cent is written: two digits that tell."""
    return "" if amount is None else f"{amount:.{1 - math.floor(math.log10(amount))}f}".rstrip("0")


def test_every_surface_has_the_price_that_the_run_recorded(app, runs, study, tmp_path):
    found = {choice.name: choice for choice in costs.choices(study)}
    for name, thousand in THOUSAND.items():
        assert found[name].came.cost_per_thousand.value == (
            None if thousand is None else pytest.approx(thousand, rel=1e-9)
        )
        p95 = {"fast": 10.0, "slow": 70.0, "fused": 80.0, "file": None}[name]
        assert found[name].waiting.p95 == (None if p95 is None else pytest.approx(p95))
    board = {row[0].split()[0]: row for row in tables(opened(app, "overview"), "rd-board")[1:]}
    rows = {row[0].strip(): row for row in tables(opened(app, "cost"), "rd-figures")}
    names = [each.strip() for each in rows[""]]
    path = rd.report(study.dataset, runs, tmp_path / "report.html")
    report = Page(path.read_text())
    figures = {row[0]: row for row in report.tables["cost"][0]}
    packed = ZipFile(io.BytesIO(bundle(
        replace(study, money=Money()), datetime(2026, 1, 2, tzinfo=UTC), pictures=False
    )))  # fmt: skip
    exported = [
        row for row in csv.reader(io.StringIO(packed.read("cost.csv").decode("utf-8-sig"))) if row
    ]
    for name, thousand in THOUSAND.items():
        shown = digits(thousand)
        at = figures["figure"].index(name)
        [line] = [row for row in exported if row[:2] == [name, "1,000 searches"]]
        if thousand is None:
            assert board[name][5] == "– no price given"
            assert rows["1,000 searches"][names.index(name)].strip() == "no price given"
            assert figures["cost of 1,000 searches"][at] == "no price known"
            assert line[2:] == ["", "", "", "no price known"]
            continue
        assert board[name][5] == f"${shown} example price"
        assert rows["1,000 searches"][names.index(name)].strip() == f"${shown}"
        assert figures["cost of 1,000 searches"][at] == f"${shown}"
        assert float(line[2]) == pytest.approx(thousand, rel=1e-9)
    # The first page of the report has the same table, where an example is called one.
    reported = {row[0].split()[0]: row for row in report.tables["decision"][0][1:]}
    assert reported == board
    assert board["fused"][4] == "80 ms sum of its parts"
    assert "At their defaults: Searches a day (100,000)" in " ".join(
        report.texts["decision"].split()
    )


def test_the_menu_of_prices_begins_with_what_was_recorded_if_anything_was(app, runs):
    app.query_params["vs"] = runs[0].id
    opened(app, "cost")
    field = app.number_input(key=f"cost.thousand.{runs[0].id}.USD")
    assert (field.value, field.placeholder) == (None, f"${digits(WHOLE)}")
    for place, usual in ((2, "As recorded: sum of its parts"), (3, "no price given")):
        assert app.selectbox(key=f"cost.price.{runs[place].id}").options[0] == usual


@pytest.mark.parametrize("page", ["overview", "queries", "latency", "cost", "run", "report"])
def test_a_run_of_a_service_that_has_ended_opens(app, runs, workspace, page):
    old = {"dialect": "zeroentropy", "base_url": "", "model": "zerank-2", "key_variable": ""}
    run = replace(runs[0], id="0123456789abcdef", name="zerank-2", reranker="endpoint",
                  settings=old, machine={}, measured=None)  # fmt: skip
    workspace.save_run(run)
    app.query_params["system"] = [run.id]
    app.query_params["runs"] = [run.id]
    assert not opened(app, page).error


def test_a_share_of_a_machine_is_a_choice_and_one_page_has_one_price(app, runs):
    fast = runs[0]
    app.query_params["vs"], app.query_params["part"] = fast.id, "units"
    opened(app, "cost")
    rows = {row[0].strip(): row for row in tables(app, "rd-figures")}
    assert rows["cost a month"][2].strip() == "$146.00"
    page = " ".join(each.value for each in app.markdown).replace("\\", "")
    assert "$146.00 a month" in page and "1 machine at 100.0 searches per second" in page
    app.radio(key=next(each.key for each in app.radio if each.label == "Machines by the hour")
              ).set_value("share").run()  # fmt: skip
    rows = {row[0].strip(): row for row in tables(app, "rd-figures")}
    month = SHARE / 1000 * 100_000 * 365 / 12
    assert rows["cost a month"][2].strip() == f"${month:.2f}"
    page = " ".join(each.value for each in app.markdown).replace("\\", "")
    assert "never switched off" not in page
    assert app.query_params["machines"] in ("share", ["share"])
