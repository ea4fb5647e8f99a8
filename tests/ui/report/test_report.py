"""The Report page: its choices, its messages about missing data, and its files."""

import io
import json
import math
import re
import zipfile
from dataclasses import replace

import pytest

from rankdash.core.base.i18n import speaking
from rankdash.core.data.ranking import Ranking
from rankdash.core.rerankers.kinds.precomputed import run_from_ranking
from rankdash.features.report import charts_images
from rankdash.features.report import page as report_page
from rankdash.features.report.report import SECTIONS, Front
from rankdash.kit.widgets import view
from tests.approved import table
from tests.stored import keep_rows
from tests.ui.conftest import ROWS, lists_at, opened_at
from tests.ui.page_text import page_text
from tests.ui.parts import unlike
from tests.ui.sessions import page, part


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Name → id of data sets that no test changes."""
    with opened_at(tmp_path_factory.mktemp("home")) as workspace:
        blank = "query_id,doc_id,label,score\na b,c,1,1\na b,d,0,2\n"
        few = "".join(f"q{q},d{d},{int(d == q)},{3 - d}\n" for q in range(3) for d in range(3))
        found = {
            "shop": keep_rows(workspace, ROWS, "Shop"),
            "blank": keep_rows(workspace, blank, "Blank"),
            "few": keep_rows(workspace, f"query_id,doc_id,label,score\n{few}", "Few"),
            "alone": keep_rows(workspace, "query_id,doc_id,label,score\nq,a,1,1\n", "Alone"),
        }

        def keep(name, of, lists, ms=math.nan):
            run = run_from_ranking(name, found[of], Ranking.from_lists(lists), f"{name}.csv")
            own = {"queries": run.queries.assign(latency_ms=ms), "created": "2026-11-03T10:00:00"}
            workspace.save_run(replace(run, id=name, **own))

        keep("turned", "blank", [("a b", ["c", "d"], [2.0, 1.0])])
        keep("few", "few", [("q1", ["d1", "d0"], [2.0, 1.0])])
        for shift, name in enumerate(("better", "timed", "worse")):
            keep(name, "shop", lists_at(shift), 12.0 if name == "timed" else math.nan)
        yield found


def chosen_in(sets, of="shop", systems=("better",), **changed):
    usual = {"data": sets[of], "base": "first-stage", "metric": "ndcg", "k": "10"}
    return usual | {"system": list(systems)} | changed


LACKING = {
    "usual": ({}, {"latency": "No latency was measured"}),
    "one of two is timed": ({"systems": ["better", "timed"]}, {}),
    "a metric without a cutoff": (
        {"metric": "r_precision"},
        {"cutoffs": "has no cutoff", "latency": "No latency was measured"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", LACKING)
def test_a_section_that_would_be_empty_cannot_be_chosen_and_says_why(sets, why):
    changed, expected = LACKING[why]
    app = page("report", chosen=chosen_in(sets, **changed))
    closed = {
        each.key.removeprefix("report.section."): each.help
        for each in app.checkbox
        if each.disabled
    }
    assert closed.keys() == expected.keys()
    assert all(words in closed[section] for section, words in expected.items())


def first_page(app):
    [shown] = app.get("iframe")
    return shown.proto.srcdoc


def test_a_picture_of_the_first_page_follows_the_form_and_runs_nothing(sets):
    app = page("report", chosen=chosen_in(sets))
    before = first_page(app)
    assert "<script" not in before and "script-src &#x27;none&#x27;" in before.replace(
        "'", "&#x27;"
    )
    assert 'id="decision"' in before and 'href="#segments"' in before
    app.checkbox(key="report.section.segments").uncheck().run()
    app.text_input(key="report.title").set_value("Ship <it>?").run()
    now = first_page(app)
    assert 'href="#segments"' not in now and "Ship &lt;it&gt;?" in now
    app.checkbox(key="report.section.decision").uncheck().run()
    assert 'id="decision"' not in first_page(app) and 'id="verdict"' in first_page(app)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_the_page_cannot_offer(sets, approved, monkeypatch, lang):
    def offered(**given):
        return page("report", lang=lang, chosen=chosen_in(sets, **given))

    usual, blank = page_text(offered()), offered(of="blank", systems=["turned"])
    told = {"ids with blanks, no texts": page_text(blank)}
    told["no challenger"] = page_text(offered(of="alone", systems=[]))
    monkeypatch.setattr(charts_images, "browser", lambda: None)
    told["no browser on the machine"] = page_text(offered())
    cases = {why: unlike(usual, text) for why, text in told.items()}
    approved(f"pages/report.{lang}", table(cases))
    closed = [each.proto for each in blank.get("download_button") if each.proto.disabled]
    shown = {re.sub(r"\\(\W)", r"\1", each.help) for each in closed}
    assert lang == "zh" or shown == {
        "TREC files cannot contain IDs with spaces.",
        "The data set has no texts of queries and documents.",
        "The ID of query 'a b' is empty or contains blanks, which TREC files do not allow. Use an "
        "ID without spaces.",
        "The query 'a b' has no text, which the format needs. Add the texts to the data set, or "
        "choose another format.",
    }


def study_of(sets, **changed):
    def drawn():
        return report_page.for_report(view.study("report"))

    return part(drawn, chosen=chosen_in(sets, **changed)).session_state["found"]


def test_the_zip_holds_the_report_in_the_language_of_the_reader(sets, monkeypatch):
    monkeypatch.setattr(charts_images, "drawn", lambda _figures: {})
    front = Front(title="T", sections=tuple(each.id for each in SECTIONS), language="zh")
    with speaking("zh"):
        archive = zipfile.ZipFile(io.BytesIO(report_page.whole(study_of(sets), front)))
    assert json.loads(archive.read("manifest.json"))["data_set"]["id"] == sets["shop"]
    html = archive.read("report.html").decode()
    assert '<html lang="zh">' in html and "查询" in html
