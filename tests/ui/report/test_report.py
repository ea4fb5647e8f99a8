"""The Report page: what it offers, what it says is missing, and what its files hold."""

import io
import json
import zipfile
from datetime import UTC, datetime

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from rankdash.i18n import speaking
from rankdash.reporting.exports import images, queries_csv
from rankdash.reporting.report import SECTIONS
from rankdash.ui.report import report_exports
from rankdash.ui.sidebar.view import PAGES
from tests.stored import keep_lists, keep_rows
from tests.ui.test_pages import open_page, texts

# What the page does, and the files that its buttons would make.
FILES = """
import streamlit as st
from rankdash.ui.report import report_exports, report_view
from rankdash.ui.report import report_view
from rankdash.ui.sidebar import sidebar, view
from rankdash.ui.state import address, pickers
from rankdash.reporting.report import Front, SECTIONS
pickers.restore()
sidebar.choose_language()
sidebar.draw_sidebar(analysis=True)
study = view.study("report")
study = report_view.for_report(study)
front = Front(title="T", sections=tuple(each.id for each in SECTIONS), language={language!r})
st.session_state["study"] = study
st.session_state["front"] = front
"""


def labels(app: AppTest) -> list[str]:
    return [each.label for each in app.get("download_button")]


def made(language: str = "en", **params: str) -> AppTest:
    app = AppTest.from_string(FILES.replace("{language!r}", repr(language)), default_timeout=300)
    for name, value in params.items():
        app.query_params[name] = value
    return app.run()


def test_it_offers_the_report_and_every_file_with_a_line_on_what_it_is_for(app, stored):
    page = open_page(app, "report")
    assert labels(page) == [
        *("Make the report and save it", "ZIP", "CSV", "Parquet", "JSON"),
        *(
            "Markdown",
            "LaTeX",
            "LaTeX with intervals",
            "CSV",
            "Judgments (relevance labels)",
            "First stage",
            "better",
        ),
        # Hard negatives of each.
        *("First stage", "better"),
    ]
    said = texts(page)
    for purpose in ("for decision makers", "For a spreadsheet", "for a paper", "trec_eval"):
        assert purpose.casefold() in said.casefold()


def test_each_section_says_what_it_would_say_or_who_gives_what_is_missing(app, stored):
    page = open_page(app, "report")
    told = {box.key: box for box in page.checkbox}
    assert len(told) == len(SECTIONS)
    said = texts(page)
    assert "better: better" in said
    assert "better: 11 helped, 0 hurt" in said
    # The ranking came from a file.
    assert "Nothing was timed" in said
    assert told["report.section.latency"].disabled
    assert not told["report.section.verdict"].disabled


def test_a_preset_chooses_sections_and_those_can_be_changed_after_it(app, stored):
    page = open_page(app, "report")

    def in_force():
        buttons = {name: page.button(key=f"report.preset.{name}") for name in ("decision", "full")}
        return [name for name, button in buttons.items() if button.proto.type == "primary"]

    # Latency was not measured, so that all that there is counts as the full report.
    assert in_force() == ["full"]
    page.button(key="report.preset.decision").click().run()
    assert [box.key for box in page.checkbox if box.value] == ["report.section.decision"]
    assert in_force() == ["decision"]
    page.checkbox(key="report.section.data").check().run()
    assert in_force() == []
    page.checkbox(key="report.section.data").uncheck().run()
    assert in_force() == ["decision"]
    page.button(key="report.preset.full").click().run()
    assert all(box.value for box in page.checkbox if not box.disabled)
    assert in_force() == ["full"]


def test_what_was_typed_stays_while_another_page_is_looked_at(app, stored):
    page = open_page(app, "report")
    page.text_input(key="report.title").set_value("Ship it?").run()
    page.text_area(key="report.note").set_value("We **will**.").run()
    page.checkbox(key="report.section.verdict").uncheck().run()
    page.switch_page(str(PAGES / "overview.py")).run()
    page.switch_page(str(PAGES / "report.py")).run()
    assert page.text_input(key="report.title").value == "Ship it?"
    assert page.text_area(key="report.note").value == "We **will**."
    assert not page.checkbox(key="report.section.verdict").value


def test_a_logo_is_kept_and_can_be_taken_away(app, stored):
    page = open_page(app, "report")
    page.file_uploader[0].set_value(
        ("logo.png", b"\x89PNG\r\n\x1a\n" + bytes(9), "image/png")
    ).run()
    assert "Logo: logo" in texts(page)
    assert not page.error
    page.switch_page(str(PAGES / "overview.py")).run()
    page.switch_page(str(PAGES / "report.py")).run()
    assert not page.file_uploader
    page.button(key="report.logo.away").click().run()
    assert page.file_uploader
    assert "Logo: logo" not in texts(page)


def test_a_logo_that_is_no_picture_is_refused_in_words(app, stored):
    page = open_page(app, "report")
    page.file_uploader[0].set_value(("logo.png", b"<svg onload=alert(1)>", "image/png")).run()
    assert "no picture that a report can hold" in page.error[0].value
    # And it is not in the report.
    assert page.file_uploader


def test_without_a_section_there_is_nothing_to_make(app, stored):
    page = open_page(app, "report")
    for box in page.checkbox:
        if not box.disabled:
            page.checkbox(key=box.key).uncheck()
    page.run()
    assert "Choose at least one section." in texts(page)
    assert page.get("download_button")[0].proto.disabled


def test_without_a_challenger_it_says_what_to_do(app, workspace):
    keep_rows(workspace, "query_id,doc_id,label,score\nq,a,1,1\n", "Alone")
    page = open_page(app, "report")
    assert "Nothing to compare with yet" in texts(page)
    assert not page.get("download_button")


def test_ids_with_blanks_keep_the_trec_files_back_and_say_why(app, workspace):
    rows = "query_id,doc_id,label,score\na b,c,1,1\na b,d,0,2\n"
    kept = keep_rows(workspace, rows, "Blank")
    keep_lists(workspace, kept, [("a b", ["c", "d"], [2.0, 1.0])], "turned.csv", "turned")
    page = open_page(app, "report")
    disabled = {each.label for each in page.get("download_button") if each.proto.disabled}
    assert disabled == {"Judgments (relevance labels)", "First stage", "turned"}
    helps = {each.proto.help for each in page.get("download_button") if each.proto.disabled}
    # The second is of the hard negatives.
    assert helps == {
        "Ids with blanks cannot stand in a TREC file.",
        "The data set has no texts of queries and documents.",
    }


def test_without_a_browser_on_the_machine_it_says_that_the_zip_has_no_pictures(
    app, stored, monkeypatch
):
    assert "has no pictures" not in texts(open_page(app, "report"))
    monkeypatch.setattr(images, "browser", lambda: None)
    assert {*texts(open_page(app, "report")).splitlines()} >= {
        "The zip has no pictures: drawing them needs Chrome, Chromium or Edge on the machine that "
        "runs rankdash. The camera above any chart saves it as SVG, in the colours you see it in."
    }


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.browser
def test_the_zip_holds_the_report_in_the_language_of_the_reader(stored, language):
    # The manifest counts in whole seconds.
    started = datetime.now(UTC).replace(microsecond=0)
    files = made(language, lang=language)
    study, front = files.session_state["study"], files.session_state["front"]
    with speaking(language):
        archive = zipfile.ZipFile(io.BytesIO(report_exports.whole(study, front)))
    manifest = json.loads(archive.read("manifest.json"))
    assert manifest["data_set"]["id"] == stored
    page = archive.read("report.html").decode()
    assert f'<html lang="{language}">' in page
    assert ("各系统" in page or "查询" in page) == (language == "zh")
    assert started <= datetime.fromisoformat(manifest["made_utc"]) <= datetime.now(UTC)
    # What the manifest names is what a program finds in the table.
    table = pd.read_parquet(io.BytesIO(archive.read("queries.parquet")))
    assert set(table.columns) == set(manifest["query_columns"])
    assert len(table) == len(queries_csv.frame(study)) == 32


def test_the_scenario_of_the_cost_page_is_in_it(stored):
    plain = made().session_state["study"]
    assert not plain.money.given
    (system,) = plain.challengers
    own = made(
        searches_per_day="5000", currency="EUR", rate="USD=0.9", thousand=f"{system}=2"
    ).session_state["study"]
    assert own.money.given
    assert own.money.currency == "EUR"
    assert own.money.assumptions.searches_per_day == 5000
    assert own.money.rates == {"USD": 0.9}
    assert {name: each.price.amount for name, each in own.money.prices.items()} == {system: 2.0}
