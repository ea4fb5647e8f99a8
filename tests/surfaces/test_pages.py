"""The tables of the pages. Overview shows the exact numbers of the study under all settings.
Sentences are in `approved/pages`."""

import json
import re
from collections.abc import Iterator
from typing import get_args

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

import rankdash as rd
from rankdash.core.base.i18n import number, signed
from rankdash.core.data.ranking import Run
from rankdash.core.study import leaderboard
from rankdash.core.study.groups import contrasts
from rankdash.core.study.systems import FIRST_STAGE, Money
from rankdash.core.words.columns import Surface, columns
from rankdash.core.words.verdicts import chip
from rankdash.core.workspace import Workspace
from rankdash.features.overview.report_systems import leaderboard_html
from rankdash.features.report.report import PRESETS, Front, html
from rankdash.features.report.report_zip import tables
from tests.approved import table as sections
from tests.sets import ROOT
from tests.surfaces.case import SPEC, Case
from tests.surfaces.reading import Page, assert_says
from tests.surfaces.shown import (
    RULES,
    command,
    compare,
    differences,
    existing,
    expected,
    study_of,
)
from tests.ui.conftest import opened_at
from tests.ui.page_text import table_text
from tests.ui.parts import component
from tests.ui.sessions import whole

UNFOLDED = ("overview.table", "overview.unjudged", "latency.numbers")
COLUMNS = (
    *("mean", "p", "p_corrected", "effect_size", "helped", "same", "hurt", "n", "left_out"),
    *("smallest_detectable", "more_queries", "delta"),
)


@pytest.fixture(scope="module")
def workspace(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with opened_at(tmp_path_factory.mktemp("home")) as found:
        report = case.loaded.report.to_json()
        found.save_dataset(case.loaded.dataset, source="upload", report_json=report)
        for run in case.runs:
            found.save_run(run)
        yield found


def started(case: Case, **rules: object) -> AppTest:
    return whole(
        "overview",
        dict.fromkeys(UNFOLDED, True),
        data=case.loaded.dataset.id,
        system=[run.id for run in case.runs],
        **{name: str(value) for name, value in rules.items()},
    )


@pytest.fixture(scope="module")
def app(case: Case, workspace: Workspace, quick_starts: None) -> AppTest:
    return started(case)


def opened(app: AppTest, name: str, **chosen: str | list[str]) -> AppTest:
    """Open a page after choices by clicks: an address that the session has seen would count as
    going back."""
    choices = app.session_state["address.choices"]
    for field, value in chosen.items():
        choices[field] = [value] if isinstance(value, str) else value
    app.switch_page(str(ROOT / "pages" / f"{name}.py")).run()
    assert not app.exception
    return app


def table(app: AppTest, *columns: str) -> pd.DataFrame:
    """Return the one table that has these columns."""
    found = [each.value for each in app.dataframe if {*columns} <= {*map(str, each.value.columns)}]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_overview_has_every_number_of_the_comparison(case, workspace, quick_starts, rules):
    shown = table(opened(started(case, **rules.changed), "overview"), "mean", "p_corrected")
    study = study_of(case, rules, case.runs)
    specs = {title: spec for spec, title in study.titles.items()}
    ids = {name: system for system, name in study.names.items()}
    found = {}
    for row in shown.to_dict("records"):
        key = row["system"], specs[row["metric"]]
        assert row["verdict"] == chip(study.comparison.row(ids[key[0]], key[1])["verdict"])
        found |= existing({(*key, column): row[column] for column in COLUMNS})
    numbers = expected(case, rules, "overview", found)
    own = study.name(study.baseline)
    numbers = {key: each for key, each in numbers.items() if key[::2] != (own, "delta")}
    assert differences(found, numbers) == {}


def test_a_column_is_on_every_surface_that_it_names(case, app):
    study = case.study_of(case.runs, money=Money())
    level, title = study.statistics.level, study.measure.title
    shown = {on: columns(on, level, corrected=True, metric=title) for on in get_args(Surface)}

    def grid(page: str, *names: str) -> list[str]:
        """Return the titles of the table with these columns."""
        labels = (json.loads(each.proto.columns) for each in opened(app, page).dataframe)
        (own,) = (each for each in labels if {*names} <= {*each})
        return [each["label"] for each in own.values() if "label" in each]

    def titles(on: Surface, **changed: str) -> list[str]:
        return [changed.get(each.name, each.title) for each in shown[on]]

    assert grid("overview", "mean", "p_corrected")[2:] == titles("overview", mean="mean")
    assert {*titles("history")} <= {*grid("history", "remarks")}
    board = Page(leaderboard_html(study, "p95")).tables[""][0][0]
    names = [f"{each.title[0].upper()}{each.title[1:]} {each.small}".strip()
             for each in shown["leaderboard"]]  # fmt: skip
    assert board[1 : 1 + len(names)] == names
    page = Page(html(study, Front(sections=("systems",))).decode())
    assert page.tables["systems"][0][0][2:] == titles("report", mean="mean")

    head = [each.short or each.title for each in columns("file", level, corrected=True)]
    assert f"| system | {' | '.join(head)} |" in compare(case, RULES[0], "markdown")
    lines = (line.split() for line in compare(case, RULES[0], "text").splitlines())
    assert [title, *" ".join(head).split()] in lines
    latex = compare(case, RULES[0], "latex").replace(r"$\Delta$", "Δ").replace(r"\%", "%")
    assert f"system & {' & '.join(head)} " in latex

    known = {each.name for each in shown["data"]}
    (made,) = (part.make().decode() for part in tables(study) if part.name == "comparison.csv")
    for written in (made, compare(case, RULES[0], "csv")):
        assert known <= {*written.splitlines()[0].split(",")}
    assert known <= {*json.loads(compare(case, RULES[0], "json"))["comparisons"][0]}
    sides = ("--qrels", case.qrels, "--baseline", case.initial)
    challenger = ("--challenger", case.files[case.flaky.id])
    gated = json.loads(command("gate", *sides, *challenger, "--min", f"{SPEC}=0", "--json"))
    assert [*gated["comparisons"][0]][1:] == [each.name for each in shown["gate"]]


def test_one_table_is_that_of_the_overview_of_the_report_of_the_files_and_of_python(case, app):
    drawn = component(opened(app, "overview"), "leaderboard")
    study = case.study_of(case.runs, money=Money())
    front = Front(sections=PRESETS["decision"])
    [shown] = Page(html(study, front).decode()).tables["decision"]
    for row, (name, *cells) in zip(drawn["rows"], shown[1:], strict=True):
        verdict, *numbers = [cell[0] for cell in row["cells"]]
        assert name.startswith(f"{row['whole']} {verdict}")
        own = zip(numbers, cells, strict=True)
        assert all(cell.startswith(number or "–") for number, cell in own), (numbers, cells)
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


def test_the_tables_of_the_pages(case, app, approved):
    """Only some rows of the long ones."""

    def said(page: str, run: Run) -> str:
        frames = [each.value for each in opened(app, page, vs=run.id).dataframe]
        frames = [frame[:: -(-len(frame) // 12) or 1] for frame in frames]
        return "\n".join(table_text(each.drop(columns="made", errors="ignore")) for each in frames)

    shown = {page: said(page, case.flaky) for page in ("queries", "latency", "history")}
    shown["overview"] = said("overview", case.runs[0])
    for segment in contrasts(case.study, case.runs[0].id):
        shown[f"overview, {segment}"] = table_text(
            table(opened(app, "overview", segment=segment), "group")
        )
    approved("surfaces/tables.en", sections(shown))
