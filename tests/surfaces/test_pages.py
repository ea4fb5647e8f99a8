"""The tables of the pages have the numbers of the study to the last digit. Sentences are in
`approved/pages`."""

import re
from collections.abc import Iterator

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import rankdash as rd
from rankdash.i18n import number, signed, three_digits
from rankdash.reporting.exports.zip_file import tables
from rankdash.reporting.report import PRESETS, Front, html
from rankdash.store import Workspace
from rankdash.study import history, latency, leaderboard, queries
from rankdash.study.query_table import Filters
from rankdash.study.systems import FIRST_STAGE, Money
from rankdash.ui.state import server
from rankdash.words.reasons import reason_words
from rankdash.words.verdict_chips import chip
from tests.sets import ROOT
from tests.surfaces.case import Case
from tests.surfaces.reading import Page, assert_same, assert_says
from tests.surfaces.shown import RULES, differences, expected, study_of

FOLDED = ("overview.table", "overview.segments", "overview.unjudged")


@pytest.fixture(scope="module")
def workspace(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKDASH_HOME", str(tmp_path_factory.mktemp("home")))
        server.workspace.cache_clear()
        st.cache_resource.clear()
        found = server.workspace()
        found.save_dataset(
            case.loaded.dataset, source="upload", report_json=case.loaded.report.to_json()
        )
        for run in case.runs:
            found.save_run(run)
        yield found
        server.workspace.cache_clear()


def started(case: Case, **rules: object) -> AppTest:
    made = AppTest.from_file(str(ROOT / "rankdash" / "ui" / "main.py"), default_timeout=300)
    made.query_params["data"] = case.loaded.dataset.id
    made.query_params["system"] = [run.id for run in case.runs]
    for name, value in rules.items():
        made.query_params[name] = str(value)
    made.session_state["latency.numbers"] = True
    for part in FOLDED:
        made.session_state[part] = True
    return made.run()


@pytest.fixture(scope="module")
def app(case: Case, workspace: Workspace, quick_starts: None) -> AppTest:
    return started(case)


def opened(app: AppTest, name: str, **chosen: str | list[str]) -> AppTest:
    """The page with what is chosen, as a click chooses it: an address that the session has seen is
    taken for one of before."""
    choices = app.session_state["address.choices"]
    for field, value in chosen.items():
        choices[field] = [value] if isinstance(value, str) else value
    app.switch_page(str(ROOT / "pages" / f"{name}.py")).run()
    assert not app.exception
    return app


def table(app: AppTest, *columns: str) -> pd.DataFrame:
    """The one table that has these columns."""
    found = [each.value for each in app.dataframe if {*columns} <= {*map(str, each.value.columns)}]
    assert len(found) == 1
    return found[0]


def body(app: AppTest, part: str) -> str:
    """The one piece of HTML with a class."""
    (found,) = (each.proto.body for each in app.get("html") if part in each.proto.body)
    return found


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_overview_has_every_number_of_the_comparison(case, workspace, quick_starts, rules):
    shown = table(opened(started(case, **rules.changed), "overview"), "mean", "p_corrected")
    study = study_of(case, rules, case.runs)
    specs = {title: spec for spec, title in study.titles.items()}
    found = {}
    for row in shown.to_dict("records"):
        key = row["system"], specs[row["metric"]]
        assert row.pop("verdict") == chip(study.comparison.row(
            {name: each for each, name in study.names.items()}[key[0]], key[1]
        )["verdict"])  # fmt: skip
        for column in (
            *("mean", "p", "p_corrected", "effect_size", "helped", "same", "hurt", "n", "left_out"),
            *("smallest_detectable", "more_queries", "delta"),
        ):
            if row[column] == row[column]:
                found[*key, column] = row[column]
    numbers = expected(case, rules, "overview", found)
    own = study.name(study.baseline)
    numbers = {key: each for key, each in numbers.items() if key[::2] != (own, "delta")}
    assert differences(found, numbers) == {}


def test_one_table_is_that_of_the_overview_of_the_report_of_the_files_and_of_python(case, app):
    [shown] = Page(body(opened(app, "overview"), "rd-board")).tables[""]
    study = case.study_of(case.runs, money=Money())
    front = Front(sections=PRESETS["decision"])
    [reported] = Page(html(study, front).decode()).tables["decision"]
    assert reported == shown
    [summary] = [part.make().decode() for part in tables(study) if part.name == "summary.md"]
    lines = [
        re.split(r" (?<!\\)\| ", line[2:-2]) for line in summary.splitlines()[2 : 3 + len(shown)]
    ]
    del lines[1]
    assert shown == [
        [re.sub(r"\\(.)", r"\1", cell).replace(" · ", " ", 1) for cell in row] for row in lines
    ]
    order = [row.system for row in leaderboard.standings(study)]
    assert order == sorted(study.chosen, key=lambda system: -study.mean(system)[0])
    assert [row.system for row in rd.standings(study)] == order
    for system, (name, mean, change, helped, *_) in zip(order, shown[1:], strict=True):
        row = study.comparison.row(system, study.spec)
        assert name.startswith(f"{study.name(system)} {chip(row['verdict'])}")
        assert_says(mean, map(number, study.mean(system)))
        if system != FIRST_STAGE:
            ends = (row[each] for each in ("delta", "delta_low", "delta_high"))
            assert_says(change, map(signed, ends))
            assert_says(helped, [number(row[each], 0) for each in ("helped", "hurt")])


def test_overview_has_every_cutoff_group_and_bound(case, app):
    study, system = case.study, case.runs[0].id
    for segment in study.segments:
        opened(app, "overview", vs=system, segment=segment)
        found = study.segment(system, segment)
        # One group alone is corrected for nothing.
        p = "corrected p" if found["p"].count() > 1 else "p"
        shown = table(app, "group", p)
        of_group = {"queries": "n", "change": "delta", "low": "low", "high": "high"}
        for column, of in (*of_group.items(), (p, "p_corrected")):
            assert_same(shown[column], found[of])
    counts, reasons = study.reason_counts(system), table(app, "reason", "adds")
    for column in ("queries", "mean", "adds"):
        assert_same(reasons[column], counts[column])
    curves = table(app, *study.names.values())
    for system, name in study.names.items():
        own = study.curves[study.curves["system"] == system].set_index("k")
        assert_same(curves[name], own["mean"].loc[curves.index])
    bounds = table(app, "lowest possible")
    for column, of in (("lowest possible", "lowest"), ("highest possible", "highest")):
        assert_same(bounds[column], study.unjudged[of])


def test_queries_have_every_value(case, app):
    study, system = case.study, case.flaky.id
    opened(app, "queries", vs=system)
    rows, shown = queries.table(study, system), table(app, "before", "after", "judged_after")
    assert len(shown) == len(rows)
    rows = rows.loc[queries.listing(study, system).kept(Filters(), {}, "hurt").index]
    for column in ("before", "after", "ceiling", "to_win", "spread", "judged_before",
                   "judged_after"):  # fmt: skip
        assert_same(shown[column], rows[column])
    # A change is shown rounded: Streamlit would write one of -0.0004 as "-0.000".
    assert_same(shown["delta"], rows["delta"].round(3))
    assert_same(shown["latency_ms"], rows["latency_ms"].map(three_digits))
    assert list(shown["reason"]) == [reason_words()[code] for code in rows["reason"]]


def test_latency_has_every_quantile(case, app):
    opened(app, "latency")
    found, times = (of(case.study, case.flaky.id) for of in (latency.summary, latency.times))
    shown = table(app, "p50", "p95").iloc[0]
    wanted = {
        "queries timed": found.n, "mean": found.mean, "standard deviation": found.deviation,
        "p50": found.p50, "p90": found.p90, "p95": found.p95, "p99": float("nan"),
        "p50, low": found.p50_interval[0], "p50, high": found.p50_interval[1],
        "p95, low": found.p95_interval[0], "p95, high": found.p95_interval[1],
        "failed": times.apart.failed, "not timed": times.apart.untimed,
    }  # fmt: skip
    assert_same([shown[each] for each in wanted], wanted.values())


def test_history_has_the_means_of_the_common_queries_and_what_each_run_took(case, app):
    study = case.study
    found = history.trend(study, tuple(study.systems), every=False).frame.set_index("system")
    shown = table(opened(app, "history"), "mean", "change_interval").set_index("name")
    for system in study.systems:
        row, own = shown.loc[study.name(system)], found.loc[system]
        assert_same([row["mean"], row["p"]], [own["mean"], own["p_corrected"]])
        assert_says(row["interval"], map(number, (own["mean_low"], own["mean_high"])))
        if system == FIRST_STAGE:
            continue
        assert_same([row["change"]], [own["delta"]])
        assert_says(row["change_interval"], map(signed, (own["delta_low"], own["delta_high"])))
        assert row["verdict"] == chip(own["verdict"])
        timed = latency.summary(study, system)
        assert_same([row["p95"]], [float("nan") if timed is None else timed.p95])
        assert row["failed"] == len(study.failures(system))
