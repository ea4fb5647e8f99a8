"""The report: its text is approved, its numbers equal those in the analysis, a failure is never a
zero, and every option is respected."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

from rankdash.core.base.errors import DataError, SpecError
from rankdash.core.data.judgements import Judgements
from rankdash.core.data.measured import Level, Measured
from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import Conventions, registry
from rankdash.core.readers.checks.check import check
from rankdash.core.statistics.comparison import StatisticsSettings
from rankdash.core.study.study import Study
from rankdash.core.study.systems import FIRST_STAGE, Money, System
from rankdash.core.value.assumptions import ASSUMPTIONS
from rankdash.core.value.targets import Goals
from rankdash.features.judge.charts import three_ways
from rankdash.features.overview.report_systems import lines
from rankdash.features.report.report import ALL, PRESETS, Front, html
from rankdash.features.report.report_zip import drawings
from rankdash.kit.drawing.style import INKS
from rankdash.kit.html.html_page import LARGEST, data_uri
from tests.approved import table
from tests.charts.described import worded
from tests.reporting.builders import (
    FAILED,
    OWN,
    PNG,
    WEIGHTS,
    changed,
    labelled,
    moved,
    study_of,
)
from tests.reporting.reading import Read
from tests.study import parts as made_up

# Versions and the machine are also part of the report.
WRITTEN = tuple(each for each in ALL if each != "origin")


@pytest.fixture(scope="module")
def report(better) -> Read:
    return Read(html(better))


def read(study: Study, *sections: str, **front: object) -> Read:
    return Read(html(study, Front(sections=sections or ALL, **front)))


@pytest.mark.usefixtures("in_words")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_report_says_what_is_approved(better, samples, language, approved):
    own = {"value_per_search": 0.02, "searches_per_day": 4321.0}
    euros = dataclasses.replace(OWN, price=dataclasses.replace(OWN.price, currency="EUR"))
    rated = Money.of(own, prices={"run": euros}, rates={"EUR": 1.25})
    strict = {
        "conventions": Conventions(threshold=1, no_relevant="count", judged_only=True),
        "statistics": StatisticsSettings(resamples=500, family="all", worthwhile=0.02),
    }
    prepared = changed(better, measured=Measured(pairs=8, index_seconds=125.0))
    reports = {
        "sample": samples[language],
        "priced": dataclasses.replace(prepared, money=rated, **strict),
        "no_labels": labelled(study_of(timed=False), lambda query, label: False),
        "alone": dataclasses.replace(better, challengers=()),
        "judged": dataclasses.replace(
            made_up.study(), judge=made_up.judge(1), goals=Goals.of("faq")
        ),
    }
    for name, study in reports.items():
        content = html(study, Front(sections=WRITTEN, language=language)).decode()
        approved(f"report/{name}.{language}", Read(content).written())
        # Chinese has no spaces between sentences, except after bold text, as on pages of the app.
        body = content.partition("<main>")[2].replace("</strong> ", "")
        body = re.sub(r"<p>\[.*?\]</p>", "", body)
        assert not re.findall(r"[一-鿿]: |。 [一-鿿]", re.sub(r"<[^>]+>", "", body))
    for other, study in samples.items():
        page = read(study, *PRESETS["decision"], language=language)
        approved(f"report/decision_of_{other}.{language}", page.written())


def judged_at_90(study: Study) -> Study:
    """Return the study with a judge whose grades equal the labels, at a confidence of 90 %."""
    grades = study.dataset.qrels.rename(columns={"label": "grade"}).assign(error="")
    rules = dataclasses.replace(study.statistics, level=0.9)
    return dataclasses.replace(study, judge=Judgements("judge", (0, 1), grades), statistics=rules)


def test_charts_and_tables_name_the_level(better):
    study = judged_at_90(better)
    assert all(each.endswith("90% interval") for each in lines(study, "p95")[0][1:3])
    found = drawings(study)
    said = {
        name: [each for each in worded(drawn.draw(INKS["light"])) if re.match(r"\d+% int", each)]
        for name, drawn in found.items()
    }
    assert {"systems", "cutoffs", "segments-1-1"} <= {*filter(said.get, said)}
    assert all(each.startswith("90%") for own in said.values() for each in own)


def test_no_judge_alone_proves_a_change(better):
    study = judged_at_90(better)
    drawn = three_ways(study, study.challengers[0])
    assert drawn is not None and "90%" in "".join(worded(drawn.draw(INKS["light"])))
    ways = re.findall(r"\w+ only: [^)]*\)", drawn.alt)
    assert ["proven" in each for each in ways] == [True, False]


@pytest.mark.usefixtures("in_words")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_section_says_what_a_study_is_about(better, language, approved):
    value, prices = {"value_per_search": 0.01}, {"run": OWN}
    cases = {
        f"cost, set: {set_ or 'nothing'}": (dataclasses.replace(better, money=money), "cost")
        for set_, money in {
            "": Money.of({}), "value": Money.of(value), "price": Money.of({}, prices=prices),
            "both": Money.of(value, prices=prices),
            "everything": Money.of({each.name: each.default for each in ASSUMPTIONS}),
            "a price without a rate of exchange": Money.of(value, prices=prices, currency="EUR"),
        }.items()
    }  # fmt: skip
    for how in ("given", "corpus-bm25"):
        made = labelled(better, first_stage=how)
        checked = dataclasses.replace(made, check=check(made.dataset, (), {}))
        cases[f"data, first stage: {how}"] = (checked, "data")
    cases["no share of the headroom in harm"] = (moved(better, lambda at: 7, "harm"), "reasons")
    lost = better.run("run").queries.assign(state="failed")
    none = changed(better, "lost", ranking=Ranking.from_lists([]), queries=lost)
    cases["no query in common"] = (none, "verdict")
    fast = better.run("run").queries.assign(reason="")
    given_up = pd.DataFrame({"query_id": FAILED}).assign(
        ms=500.0,
        attempts=1,
        retry_wait_ms=0.0,
        server_ms=np.nan,
        queue_ms=np.nan,
        error="time-out",
        billed="{}",
    )
    busy = Measured(throughput=(Level(1, 2.0, 100, 0, 19.0, 38.0, 50.0, 200.0, 1.0),
                                Level(8, 2.0, 150, 3, 90.0, 180.0, 75.0, 300.0, 2.0)))  # fmt: skip
    timed = changed(better, "busy", calls=given_up, measured=busy, queries=fast)
    cases["two given up of thirty, and throughput"] = (timed, "latency")
    pages = {name: read(*case, language=language) for name, case in cases.items()}
    said = {name: "\n".join(page.lines(cases[name][1])) for name, page in pages.items()}
    approved(f"report/sections.{language}", table(said))


def test_the_origin_of_packaged_weights_is_in_the_report(report):
    text = report.text("origin")
    assert f"model_package: {WEIGHTS.package} {WEIGHTS.released}" in text
    for name in ("sha256", "origin", "licence"):
        assert f"model_{name}: {getattr(WEIGHTS, name)}" in text


def test_the_section_on_latency_names_the_reranker_of_each_system(better):
    assert ["mover plain", "plain"] in read(better, "latency").rows


def test_only_the_chosen_sections_are_written_in_the_order_of_the_report(better):
    page = read(better, "data", "verdict", title="Ours", note="a <b> c")
    assert list(page.parts)[1:] == ["verdict", "data"]
    assert [attrs["href"] for attrs in page.all("a")] == ["#verdict", "#data"]
    assert "Ours" in page.text("") and "a <b> c" in page.text("")
    for wrong in ({"sections": ("verdict", "price")}, {"sections": ()}, {"title": "x" * 1000}):
        with pytest.raises(SpecError):
            Front(**wrong)


def test_text_from_the_data_is_no_element_and_no_attribute(better):
    """With two challengers the report contains a leaderboard."""

    def compared(study: Study, name: str, front: Front) -> Read:
        other = System("other", name, ranking=study.dataset.candidates)
        systems = {**study.systems, "other": other}
        two = dataclasses.replace(study, systems=systems, challengers=("run", "other"))
        return Read(html(two, front))

    hostile = "</script><img src=x onerror=alert(1)> {0} %s **b** =1+1 \u202e"
    page = compared(study_of(hostile), hostile, Front(title=hostile, note=hostile, logo=PNG))
    plain = compared(better, "plain", Front())
    tags, expected = (
        [tag for tag, _ in each.elements if tag not in ("img", "div", "strong")]
        for each in (page, plain)
    )
    assert tags == expected
    assert all(str(image["src"]).startswith("data:image/") for image in page.all("img"))
    assert "data:image/png;base64," in str(page.all("img")[0]["src"])
    assert not [a for _, a in page.elements if any(name.startswith("on") for name in a)]
    assert "\u202e" not in page.text() and "onerror=alert(1)" in page.text("queries")


@pytest.mark.usefixtures("in_words")
@pytest.mark.parametrize("metric", sorted(registry))
def test_every_metric_makes_a_report(metric):
    study = study_of(metric=metric, cutoff=None if metric != "ndcg" else 3)
    said = read(study, "verdict", "systems", "queries", "reasons", "cost").text()
    assert not re.search(r"\bnan\b|\binf\b|\bNone\b", said)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (PNG, "png"),
        (b"\xff\xd8\xff\xe0rest", "jpeg"),
        (b"GIF89arest", "gif"),
        (b"RIFF\x00\x00\x00\x00WEBPrest", "webp"),
        *(
            (each, "not a supported image")
            for each in (b"<svg onload='x'/>", b"", b"<html>", b"RIFF0000AVI ")
        ),
        (PNG[1:], "not a supported image"),
        (PNG + b"0" * LARGEST, "the limit is"),
    ],
)
def test_a_logo_is_known_by_its_bytes_and_svg_is_refused(content, kind):
    if " " not in kind:
        assert data_uri(content).startswith(f"data:image/{kind};base64,")
        return
    with pytest.raises(DataError, match=kind):
        data_uri(content)


def test_it_loads_nothing_and_is_small(better):
    content = html(better, Front(logo=PNG))
    assert 1_000_000 < len(content) < 8_000_000
    assert "default-src 'none'" in content[: content.index(b"</head>")].decode()
    assert content.count(b"plotly.js v") <= 2
    # The decision is before the links to other sections.
    assert content.index(b'<section id="decision">') < content.index(b"<nav>")
    assert content.index(b"<nav>") < content.index(b'<section id="verdict">')
    page = Read(content)
    assert all(str(a.get("src", "data:")).startswith("data:") for _, a in page.elements)
    assert all(str(a.get("href", "#")).startswith("#") for _, a in page.elements)
    # A report without charts does not contain plotly.
    small = html(better, Front(sections=PRESETS["decision"]))
    assert len(small) < 50_000 and b"Plotly.newPlot" not in small


def test_every_chart_of_a_subject_is_offered_by_name(better):
    found = drawings(better)
    names = ["systems", "cutoffs", "headroom", "changes-1", "segments-1-1"]
    assert [each for each in found if each in names] == names
    for drawing in found.values():
        assert drawing.alt
        assert len(drawing.in_both_inks().light.data)


def test_the_first_page_draws_each_change_and_the_queries_that_it_helped(better):
    content = html(better, Front(sections=PRESETS["decision"])).decode()
    drawn = re.findall(r'role="img" aria-label="([^"]*)"', content)
    assert [re.sub(r"[^a-z ]", "", each).split()[0] for each in drawn] == ["change", "helped"]
    assert content.index('role="img"') < content.index("Findings")


def test_net_value_is_drawn_of_a_price_and_a_value_that_were_set_or_of_examples(better):
    assert drawings(better)["cost"].title.startswith("Break-even")
    shown = drawings(dataclasses.replace(better, money=Money(example=True)))["cost"]
    assert shown.title == "Net value per month by the price of 1,000 searches (example values)"
    notes = [each.text for each in shown.draw(INKS["light"]).layout.annotations]
    assert "example values" in notes


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"challengers": ("x",)}, "Unknown system 'x'"),
        ({"challengers": (FIRST_STAGE,)}, "with itself"),
        ({"metric": "nonsense"}, "nonsense"),
    ],
)
def test_a_subject_refuses_what_cannot_be_compared(better, changes, why):
    with pytest.raises(SpecError, match=why):
        dataclasses.replace(better, **changes)


@pytest.mark.parametrize(
    ("settings", "corrected"),
    [
        ({}, {"segments"}),
        ({"family": "all"}, {"verdict", "systems", "segments"}),
        ({"correction": "none"}, set()),
    ],
)
def test_a_p_is_called_corrected_where_it_is(settings, corrected):
    """With one challenger its p is not corrected; groups of queries are several comparisons."""
    sections = ("verdict", "systems", "segments")
    study = study_of(statistics=StatisticsSettings(resamples=500, **settings))
    content = html(study, Front(sections=(*sections, "rules")))
    page = Read(content)
    assert {each for each in sections if "corrected p" in page.text(each)} == corrected
    titles = {row[6] for row in page.rows if row[0] in ("metric", "grouped by") and len(row) > 6}
    assert titles == {"corrected p" if each in corrected else "p" for each in sections[1:]}
    limits = {*re.findall(r"(?:corrected )?p (?:\\u2264|≤)", content.decode())}
    assert {each.startswith("corrected") for each in limits} == {
        each in corrected for each in sections[1:]
    }
    word = "corrected p" if "verdict" in corrected else "p"
    assert f"its interval excludes 0 and the {word} is at most 0.05." in page.text("rules")
