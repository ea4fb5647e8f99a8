"""The pages say what the study says: tables have its numbers to the last digit, sentences have them
as it rounds them."""

import re
from collections.abc import Iterator

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import rankdash as rd
from rankdash.charts.style import INKS
from rankdash.i18n import brief, number, percent, signed, three_digits
from rankdash.reporting import figures
from rankdash.reporting.exports.zip_file import tables
from rankdash.reporting.report import PRESETS, Front, html
from rankdash.store import Workspace
from rankdash.study import costs, history, latency, leaderboard, queries
from rankdash.study.gains import hit_title
from rankdash.study.queries import listing
from rankdash.study.query_table import Filters
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money
from rankdash.ui.state import server
from rankdash.ui.widgets.text import markdown_safe
from rankdash.value.assumptions import Assumptions
from rankdash.words import caveats, prices
from rankdash.words.costs import MoneyContext, cell, headline, sureness
from rankdash.words.html import html_safe
from rankdash.words.money import month
from rankdash.words.reasons import reason_words
from rankdash.words.verdict_chips import chip, sentence
from tests.sets import ROOT
from tests.surfaces.case import Case
from tests.surfaces.reading import Page, assert_same, assert_says
from tests.surfaces.shown import RULES, differences, expected, study_of

FOLDED = ("overview.table", "overview.segments", "overview.unjudged", "overview.targets")


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


def texts(app: AppTest) -> list[str]:
    return [str(each.value) for kind in (app.markdown, app.caption) for each in kind]


def safe(name: str) -> str:
    """A name as Markdown shows it."""
    return markdown_safe(name, 60)


def named(study: Study) -> dict[str, str]:
    return {system: safe(name) for system, name in study.names.items()}


def about(app: AppTest, start: str) -> str:
    """The one text that starts so."""
    found = [text for text in texts(app) if text.startswith(start)]
    assert len(found) == 1, texts(app)
    return found[0]


def body(app: AppTest, part: str) -> str:
    """The one piece of HTML with a class."""
    (found,) = (each.proto.body for each in app.get("html") if part in each.proto.body)
    return found


@pytest.fixture(params=["first", "flaky"])
def system(request: pytest.FixtureRequest, case: Case) -> str:
    return case.flaky.id if request.param == "flaky" else case.runs[0].id


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


def test_overview_tells_the_verdict_on_the_system_in_focus_with_its_caveats(case, app, system):
    study = case.study_of(case.runs, money=Money())
    shown = texts(opened(app, "overview", vs=system))
    row = study.comparison.row(system, study.spec)
    assert sentence(study.comparison.verdict(system, study.spec, named(study))) in shown
    share = study.headroom(system).share_won
    [facts] = [text for text in shown if "minimum detectable change" in text]
    assert_says(
        facts,
        [
            number(row["p_corrected"], 4),
            *([percent(share)] if share is not None and share >= 0 else []),
            *(number(n, 0) for n in study.comparison.left_out(system, study.spec).values()),
            number(row["smallest_detectable"]),
        ],
    )
    said = re.findall("<li>(.*?)</li>", body(app, "rd-caveats"))
    assert said and said == caveats.lines(study, system, html_safe)


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
    standings = leaderboard.standings(study)
    assert [row.system for row in standings] == sorted(
        study.chosen, key=lambda system: -study.mean(system)[0]
    )
    assert [row.system for row in rd.standings(study)] == [row.system for row in standings]
    for row, cells in zip(standings, shown[1:], strict=True):
        name, mean, change, helped, p95, pareto = cells
        compared, timed = (
            study.comparison.row(row.system, study.spec),
            latency.summary(study, row.system),
        )
        assert name.startswith(f"{study.name(row.system)} {chip(compared['verdict'])}")
        assert_says(mean, map(number, study.mean(row.system)))
        assert pareto == {None: "–", True: "✓ optimal", False: "dominated"}[row.pareto["p95"]]
        if row.system == FIRST_STAGE:
            assert (change, helped, p95) == ("–", "–", "0 ms")
            continue
        ends = [signed(compared[each]) for each in ("delta", "delta_low", "delta_high")]
        assert_says(change, ends)
        assert_says(helped, [number(compared[each], 0) for each in ("helped", "hurt")])
        assert p95.startswith("–" if timed is None else brief(timed.p95))


def test_overview_looks_closely_at_each_challenger(case, app, system):
    study = case.study
    opened(app, "overview", vs=system, segment="judged")
    for card, name in zip(app.metric, ("ndcg", "mrr", "map", "judged"), strict=True):
        row = study.comparison.row(system, study.spec_of(name))
        if name == "judged":
            assert card.value == percent(row["mean"])
            assert_says(card.delta, [signed(100 * row["delta"], 0)])
        else:
            assert (card.value, card.delta) == (number(row["mean"]), signed(row["delta"]))
    assert_tally(case, app, system)
    counts, reasons = study.reason_counts(system), table(app, "reason", "adds")
    assert list(reasons["reason"]) == [reason_words()[code] for code in counts.index]
    for column in ("queries", "mean", "adds"):
        assert_same(reasons[column], counts[column])
    for key, drawn in (
        (f"deltas.{system}", figures.changes(study, system)),
        ("systems", figures.systems(study)),
        ("cutoffs", figures.cutoffs(study)),
        ("headroom", figures.headroom(study)),
    ):
        charts = {each.key: each.proto.spec for each in app.get("plotly_chart")}
        assert charts[f"overview.{key}"] == drawn.draw(INKS["light"]).to_json()


def assert_tally(case: Case, app: AppTest, system: str) -> None:
    study = case.study
    row = study.comparison.row(system, study.spec)
    out = study.comparison.left_out(system, study.spec)
    assert_says(
        next(each for each in texts(app) if each.startswith(f"**{safe(study.name(system))}**: ")),
        [
            *(number(row[each], 0) for each in ("helped", "same")),
            f"{study.statistics.tie_band:g}",
            *(number(row[each], 0) for each in ("hurt", "paired")),
            *(number(n, 0) for n in out.values()),
        ],
    )


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
    curves = table(app, *study.names.values())
    for system, name in study.names.items():
        own = study.curves[study.curves["system"] == system].set_index("k")
        assert_same(curves[name], own["mean"].loc[curves.index])
    bounds = table(app, "lowest possible")
    for column, of in (("lowest possible", "lowest"), ("highest possible", "highest")):
        assert_same(bounds[column], study.unjudged[of])


def test_targets_have_the_latency_and_the_price(case, app):
    study, system = case.study, case.flaky.id
    opened(app, "overview")
    (whole,) = Page(next(each.proto.body for each in app.get("html")
                         if "rd-table" in each.proto.body)).tables[""]  # fmt: skip
    rows = [row for row in whole if row[0] == case.flaky.name]
    cells = [row[2] for row in rows]
    # Of a ranking from a file nobody knows the price.
    assert brief(latency.summary(study, system).p95) in cells
    [row] = [row for row in rows if row[1] == "cost of a million tokens"]
    assert "not known" in row, row
    for spec in ("ndcg@10", "mrr", "recall@5", "precision@5"):
        assert number(study.evaluate(system, (spec,)).mean(spec)) in cells


def test_queries_have_every_value(case, app, system):
    study = case.study
    opened(app, "queries", vs=system)
    assert_tally(case, app, system)
    rows, shown = queries.table(study, system), table(app, "before", "after", "judged_after")
    assert len(shown) == len(rows) == len(listing(study, system).table)
    rows = rows.loc[listing(study, system).kept(Filters(), {}, "hurt").index]
    for column in (
        *("before", "after", "delta", "ceiling", "to_win", "spread", "latency_ms"),
        *("judged_before", "judged_after"),
    ):
        # A change is shown rounded: Streamlit would write one of -0.0004 as "-0.000".
        values = rows[column].round(3) if column == "delta" else rows[column]
        if column == "latency_ms":
            values = rows[column].map(three_digits)
        assert_same(shown[column], values)
    assert list(shown["reason"]) == [reason_words()[code] for code in rows["reason"]]
    (query,) = app.session_state["address.choices"]["q"]
    row = rows.set_index("query_id").loc[query]
    values = (number(row["before"]), number(row["after"]), signed(row["delta"]))
    assert_says(about(app, f"**{study.measure.title} "), values)


def test_cost_has_the_figures_of_every_option(case, app, system):
    study, span = case.study, month()
    opened(app, "cost", vs=system)
    choices = costs.choices(study)
    choice = next(each for each in choices if each.system == system)
    told = MoneyContext(
        currency="USD", metric=study.measure.title, hit=hit_title(study),
        level=study.statistics.level, baseline=study.name(study.baseline), period=span, safe=safe,
    )  # fmt: skip
    assert headline(told, choice, Assumptions()) in texts(app)
    assert any(sureness(told, choice) in each for each in texts(app))
    (found,) = Page(body(app, "rd-figures")).tables[""]
    rows = {cells[0].strip(): cells[1:] for cells in found}
    for at, choice in enumerate(choices):
        assert_says(
            rows[study.measure.title][at], map(number, study.mean(costs.system_of(study, choice)))
        )
        came = choice.came
        lack = "" if choice.bill is None else prices.lack(choice.bill)
        wanted = {
            "1,000 searches": (lack, "") if lack else cell(came.cost_per_thousand, "USD"),
            span.cost: ("–", "") if lack else cell(came.cost_per_month, "USD"),
        }
        if choice.system in study.challengers:
            for title, amount in (
                (span.value, came.value_per_month),
                (span.net, came.net_per_month),
            ):
                # What is known of no system has no row.
                rows.setdefault(title, ["–"] * len(choices))
                wanted[title] = ("–", "") if choice.lacks_value else cell(amount, "USD")
            p95 = choice.waiting.p95
            assert_says(rows["p95 added"][at], [] if p95 is None else [brief(p95)])
        for title, pair in wanted.items():
            assert rows[title][at].split() == " ".join(pair).split()


def test_latency_has_every_quantile(case, app):
    study, system = case.study, case.flaky.id
    opened(app, "latency")
    found, times = latency.summary(study, system), latency.times(study, system)
    shown = table(app, "p50", "p95").iloc[0]
    wanted = {
        "queries timed": found.n, "mean": found.mean, "standard deviation": found.deviation,
        "p50": found.p50, "p90": found.p90, "p95": found.p95, "p99": float("nan"),
        "p50, low": found.p50_interval[0], "p50, high": found.p50_interval[1],
        "p95, low": found.p95_interval[0], "p95, high": found.p95_interval[1],
        "failed": times.apart.failed, "not timed": times.apart.untimed,
    }  # fmt: skip
    assert_same([shown[each] for each in wanted], wanted.values())
    said = [brief(found.p95), number(found.n, 0), brief(found.p95_interval[0]), brief(found.p50)]
    assert_says(about(app, f"**{case.flaky.name}** "), said)


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


def test_two_runs_on_history_are_compared_as_on_overview(case, app):
    study = case.study_of((case.flaky,))
    system, found = case.flaky.id, study.comparison
    opened(app, "history", runs=[FIRST_STAGE, system])
    row = found.row(system, study.spec)
    assert sentence(found.verdict(system, study.spec, named(study))) in texts(app)
    wanted = [
        *(signed(row["delta"]), percent(0.95), signed(row["delta_low"]), signed(row["delta_high"])),
        number(row["p"], 4),
        *(number(row[each], 0) for each in ("helped", "same", "hurt")),
        *(number(n, 0) for n in found.left_out(system, study.spec).values()),
    ]
    assert_says(next(each for each in texts(app) if " helped, " in each), wanted)
