"""The report: its numbers are those of the analysis, nothing that failed is a zero, and every
choice of whoever makes it is obeyed."""

import dataclasses
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.labels.check import check
from rankdash.analysis.statistics.comparison import StatisticsSettings
from rankdash.dataset import Dataset
from rankdash.errors import DataError, SpecError
from rankdash.metrics import Conventions, registry
from rankdash.ranking.measured import Measured
from rankdash.ranking.ranking import Ranking, Run
from rankdash.reporting.figures import drawings
from rankdash.reporting.logo import LARGEST, data_uri
from rankdash.reporting.report import ALL, SECTIONS, Front, html
from rankdash.rerankers.neural.packaged import MODELS
from rankdash.store.notes.notes import Note
from rankdash.study.costs import choices
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money, System
from rankdash.value.assumptions import ASSUMPTIONS
from rankdash.value.price_list import shipped
from rankdash.words.methods import cost
from tests.surfaces.reading import Page

QUERIES = [f"q{n:02}" for n in range(30)]
FAILED, SKIPPED = ("q03", "q07"), ("q11",)
DOCS = 8
WEIGHTS = MODELS[1]
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 40


def study_of(text: str = "plain", *, timed: bool = True, **changes: object) -> Study:
    """Thirty queries; the run puts the relevant document first for most, last for some, failed on
    two and was not asked for one."""
    rows = [(q, f"{q}-d{d}") for q in QUERIES for d in range(DOCS)]
    data = Dataset(
        f"Shop {text}",
        pd.DataFrame(
            {
                "query_id": QUERIES,
                "text": [f"{text} question {q}" for q in QUERIES],
                "kind": ["order", "return", f"other {text}"] * 10,
            }
        ),
        pd.DataFrame(
            {
                "doc_id": [doc for _, doc in rows],
                "title": [f"{text} {doc}" for _, doc in rows],
                "text": "words",
            }
        ),
        pd.DataFrame(
            {
                "query_id": [q for q, _ in rows],
                "doc_id": [doc for _, doc in rows],
                "label": [float(doc.endswith("d3")) for _, doc in rows],
            }
        ),
        Ranking.from_lists(
            (q, [f"{q}-d{d}" for d in range(DOCS)], np.arange(DOCS, 0, -1.0)) for q in QUERIES
        ),
    )

    def order(place: int, query: str) -> list[str]:
        rest = [f"{query}-d{d}" for d in range(DOCS) if d != 3]
        at = 7 if place % 6 == 0 else (3 if place % 5 == 0 else 0)
        return [*rest[:at], f"{query}-d3", *rest[at:]]

    done = [q for q in QUERIES if q not in FAILED + SKIPPED]
    ranking = Ranking.from_lists(
        (q, order(QUERIES.index(q), q), np.arange(DOCS, 0, -1.0)) for q in done
    )
    states = ["failed" if q in FAILED else "skipped" if q in SKIPPED else "done" for q in QUERIES]
    queries = pd.DataFrame(
        {
            "query_id": QUERIES,
            "state": states,
            "reason": [f"time-out {text}" if state == "failed" else "" for state in states],
            "latency_ms": [
                20.0 + place if timed and state == "done" else np.nan
                for place, state in enumerate(states)
            ],
            "index_ms": np.nan,
            "pairs": float(DOCS),
            "tokens": 400.0,
            "truncated": 0.0,
        }
    )
    run = Run(
        "run", f"mover {text}", data.id, ranking, "bi-encoder", queries,
        settings={"model": text}, machine={"cpu": text, **WEIGHTS.provenance},
    )  # fmt: skip
    given: dict[str, object] = {
        "statistics": StatisticsSettings(resamples=500),
        "notes": {"q00": Note("q00", (text,), f"look {text}")},
        **changes,
    }
    systems = {
        FIRST_STAGE: System(FIRST_STAGE, "first"),
        "run": System("run", run.name, load=lambda: run),
    }
    return Study(data, systems, FIRST_STAGE, ("run",), **given)


class Read(HTMLParser):
    """Elements with attributes, and the text of each section."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.sections: dict[str, list[str]] = {"": []}
        self.rows: list[list[str]] = []
        self.inside, self.section, self.in_cell = "", "", False
        self.feed(page.decode("utf-8"))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "section":
            self.section = str(dict(attrs)["id"])
            self.sections[self.section] = []
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag):
        self.inside = ""
        self.in_cell = self.in_cell and tag not in ("td", "th")
        if tag == "section":
            self.section = ""

    def handle_data(self, data):
        if self.inside in ("script", "style"):
            return
        self.sections[self.section].append(data)
        if self.in_cell:
            self.rows[-1][-1] += data

    def text(self, section: str) -> str:
        return " ".join(self.sections[section])

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def study() -> Study:
    return study_of()


@pytest.fixture(scope="module")
def report(study) -> Read:
    return Read(html(study))


def test_every_section_is_there_in_order_with_its_heading(report):
    assert list(report.sections)[1:] == list(ALL)
    for section in SECTIONS:
        assert section.title in report.text(section.id)


def test_the_origin_of_packaged_weights_is_in_the_report(report):
    text = report.text("origin")
    assert f"model_package: {WEIGHTS.package} {WEIGHTS.released}" in text
    assert f"model_sha256: {WEIGHTS.sha256}" in text
    assert f"model_origin: {WEIGHTS.origin}" in text
    assert f"model_licence: {WEIGHTS.licence}" in text


def test_means_and_changes_are_those_of_the_comparison(study, report):
    frame = study.comparison.frame
    shown = {tuple(row[:2]): row for row in report.rows if len(row) == 10}
    assert len(frame) == 2 * len(study.specs) == len(shown) - 1
    for _at, row in frame.iterrows():
        cells = shown[study.titles[row["metric"]], study.name(row["system"])]
        assert cells[2] == f"{row['mean']:.3f}"
        if row["system"] == "run":
            assert cells[4].lstrip("+") == f"{row['delta']:.3f}"
            ends = (
                f"{row[end]:+.3f}".replace("+0.000", "0.000") for end in ("delta_low", "delta_high")
            )
            spread = row["delta_low"] < row["delta_high"]
            assert cells[5] == (" … ".join(ends) if spread else "no spread")
            assert cells[7] == f"{row['paired']}"
            assert cells[8] == f"{row['left_out']}"
    assert frame.set_index(["metric", "system"]).loc[("ndcg@10", "run"), "verdict"] == "better"
    assert "better" in report.text("verdict")


def test_what_failed_is_named_counted_and_no_zero(study, report):
    said = report.text("queries")
    for query in FAILED + SKIPPED:
        assert query in said
    assert "time-out plain" in said
    assert "mover plain failed on it." in said
    assert "mover plain was not run on it." in said
    assert "3 queries are excluded on both sides" in report.text("verdict")
    assert "failed (2), not run (1)" in report.text("verdict")
    paired = study.pairs("run").dropna()
    assert len(paired) == 27
    row = study.comparison.row("run", "ndcg@10")
    assert row["delta"] == pytest.approx((paired["after"] - paired["before"]).mean(), abs=1e-12)


def test_the_most_telling_queries_come_with_values_reason_and_sentences(study, report):
    said = report.text("queries")
    pairs = study.pairs("run").set_index("query_id")
    worst, best = pairs["delta"].idxmin(), pairs["delta"].idxmax()
    for query in (worst, best):
        was, now, change = pairs.loc[query, ["before", "after", "delta"]]
        assert f"NDCG@10 {was:.3f} → {now:.3f} ({change:+.3f})" in said
        assert f"question {query}" in said
    assert said.index("Most hurt") < said.index(worst) < said.index("Most helped")
    assert "1 relevant document fell (4 → 8)." in said
    assert "1 relevant document rose (4 → 1)." in said
    assert "look plain" in said
    # At most five on either side, however many changed.
    assert len([each for each in report.attributes("div") if each.get("class") == "card hurt"]) == 5


def test_latency_is_told_with_what_was_measured_or_said_to_be_missing(report):
    said = report.text("latency")
    assert "first reranks nothing" in re.sub(r"\s+", " ", said)
    row = next(row for row in report.rows if row[:2] == ["mover plain", "27"])
    latencies = [20.0 + place for place, q in enumerate(QUERIES) if q not in FAILED + SKIPPED]
    assert row[6].startswith(f"{np.quantile(latencies, 0.95):.1f} (")
    assert "2 failed queries" in said
    assert ["mover plain", "plain"] in report.rows
    bare = Read(html(study_of(timed=False), Front(sections=("latency", "verdict"))))
    assert "no latency was measured" in bare.text("latency")
    assert "not measured" in bare.text("verdict")


def test_the_price_says_whose_assumptions_it_rests_on(study, report):
    defaults = "At their defaults: Searches a day (100,000), Share of the traffic"
    for section in ("cost", "verdict"):
        assert defaults in " ".join(report.text(section).split())
    said = " ".join(report.text("cost").split())
    assert "Nobody set prices or assumptions for this report. Price not set: mover plain." in said
    price = next(each for each in shipped() if each.price.unit == "tokens")
    money = Money.of({"searches_per_day": 4321.0}, prices={"run": price})
    own = dataclasses.replace(study, money=money)
    read = Read(html(own, Front(sections=("verdict", "cost"))))
    said = " ".join(read.text("cost").split())
    assert "Set for this report: Price of mover plain, Searches a day. At their defaults" in said
    assert "Searches a day (4,321" not in said
    assert "4,321" in said
    # 400 tokens a query at the price of a million, counted by the run.
    thousand = 400 * 1000 * price.price.amount / 1e6
    assert choices(own)[1].came.cost_per_thousand.value == pytest.approx(thousand)
    assert f"${thousand:.2f}" in read.text("verdict")
    assert "tokens estimated" not in read.text("cost")
    assert f"{price.provider}, {price.model}" in read.text("cost")
    every = {each.name: each.default for each in ASSUMPTIONS}
    read = Read(html(dataclasses.replace(study, money=Money.of(every)), Front(sections=("cost",))))
    assert "At their defaults" not in read.text("cost")


def test_a_price_in_another_currency_is_no_number_without_a_rate(study):
    price, set_here = shipped()[0], {"value_per_search": 0.02}
    money = Money.of(set_here, prices={"run": price}, currency="EUR")
    read = Read(html(dataclasses.replace(study, money=money), Front(sections=("cost",))))
    assert [row for row in read.rows if row[0].startswith("cost of")] == [
        ["cost of 1,000 searches", "€0.00", "no price known"]
    ]
    said = " ".join(read.text("cost").split())
    assert "Break-even only: mover plain has no price (no exchange rate). It pays while" in said
    money = Money.of({}, prices={"run": price}, currency="EUR", rates={"USD": 0.5})
    read = Read(html(dataclasses.replace(study, money=money), Front(sections=("cost",))))
    [row] = [row for row in read.rows if row[0].startswith("cost of")]
    assert row[1:] == ["€0.00", f"€{price.price.amount / 2:.2f}"]
    # An amount that nobody set is no less in another currency.
    assert "Value of a search (€0.005)" in " ".join(read.text("cost").split())
    with pytest.raises(DataError, match="value_per_search is not set, and its default is in USD"):
        Money.of({}, currency="EUR")


def test_only_the_chosen_sections_are_written_in_the_order_of_the_report(study):
    read = Read(html(study, Front(sections=("data", "verdict"), title="Ours", note="a <b> c")))
    assert list(read.sections)[1:] == ["verdict", "data"]
    assert [attrs["href"] for attrs in read.attributes("a")] == ["#verdict", "#data"]
    assert "Ours" in read.text("")
    assert "a <b> c" in read.text("")
    for wrong in (("verdict", "price"), ()):
        with pytest.raises(SpecError):
            Front(sections=wrong)
    with pytest.raises(SpecError):
        Front(title="x" * 1000)


def test_it_is_written_in_chinese_and_leaves_the_language_of_others_alone(study):
    read = Read(html(study, Front(language="zh")))
    assert read.attributes("html") == [{"lang": "zh"}]
    for section, heading in (("verdict", "结论"), ("cost", "成本与盈亏平衡"), ("data", "数据")):
        assert heading in read.text(section)
    assert "本报告没有设定价格或假设" in read.text("cost")
    english = [s.title for s in SECTIONS if any(s.title in part for part in read.sections[s.id])]
    assert english == []
    assert "What was found" in Read(html(study, Front(sections=("decision",)))).text("decision")


def test_text_from_the_data_is_no_element_and_no_attribute(study):
    """Of two challengers there is a leaderboard."""

    def compared(study: Study, name: str, front: Front) -> Read:
        other = System("other", name, ranking=study.dataset.candidates)
        systems = {**study.systems, "other": other}
        two = dataclasses.replace(study, systems=systems, challengers=("run", "other"))
        return Read(html(two, front))

    hostile = "</script><img src=x onerror=alert(1)> {0} %s **b** =1+1 \u202e"
    read = compared(study_of(hostile), hostile, Front(title=hostile, note=hostile, logo=PNG))
    plain = compared(study, "plain", Front())
    tags, expected = (
        [tag for tag, _ in each.elements if tag not in ("img", "div", "strong")]
        for each in (read, plain)
    )
    assert tags == expected
    assert all(str(image["src"]).startswith("data:image/") for image in read.attributes("img"))
    assert "data:image/png;base64," in str(read.attributes("img")[0]["src"])
    assert not [a for _, a in read.elements if any(name.startswith("on") for name in a)]
    assert "\u202e" not in read.text("queries")
    assert "onerror=alert(1)" in read.text("queries")


@pytest.mark.parametrize("metric", sorted(registry))
def test_every_metric_makes_a_report(metric):
    study = study_of(metric=metric, cutoff=None if metric != "ndcg" else 3)
    read = Read(html(study, Front(sections=("verdict", "systems", "queries", "reasons", "cost"))))
    for section in read.sections:
        assert not re.search(r"\bnan\b|\binf\b|\bNone\b", read.text(section)), section


def test_a_system_alone_and_a_challenger_without_a_common_query():
    study = study_of()
    alone = Read(html(dataclasses.replace(study, challengers=())))
    assert "nothing is compared" in alone.text("verdict")
    assert "0.431" in alone.text("verdict")
    run = study.run("run")
    assert run is not None
    lost = dataclasses.replace(
        run, ranking=Ranking.from_lists([]), queries=run.queries.assign(state="failed")
    )
    systems = {**study.systems, "run": System("run", "lost", load=lambda: lost)}
    read = Read(html(dataclasses.replace(study, systems=systems)))
    assert "no answered query in common" in read.text("verdict")
    assert "No answer for lost." in re.sub(r"\s+", " ", read.text("verdict")).replace(" .", ".")


def test_a_logo_is_known_by_its_bytes_and_svg_is_refused():
    for content, kind in (
        (PNG, "png"),
        (b"\xff\xd8\xff\xe0rest", "jpeg"),
        (b"GIF89arest", "gif"),
        (b"RIFF\x00\x00\x00\x00WEBPrest", "webp"),
    ):
        assert data_uri(content).startswith(f"data:image/{kind};base64,")
    for content in (b"<svg onload='x'/>", b"", b"<html>", b"RIFF0000AVI ", PNG[1:]):
        with pytest.raises(DataError, match="no picture"):
            data_uri(content)
    with pytest.raises(DataError, match="at most"):
        data_uri(PNG + b"0" * LARGEST)


def test_it_loads_nothing_and_is_small(study):
    page = html(study, Front(logo=PNG))
    assert len(page) < 8_000_000
    head = page[: page.index(b"</head>")].decode()
    assert "default-src 'none'" in head
    assert page.count(b"plotly.js v") <= 2
    read = Read(page)
    assert all(str(a.get("src", "data:")).startswith("data:") for _, a in read.elements)
    assert all(str(a.get("href", "#")).startswith("#") for _, a in read.elements)


def test_the_rules_in_force_are_those_of_the_subject():
    rules = Conventions(threshold=1, no_relevant="count", judged_only=True)
    read = Read(html(study_of(conventions=rules), Front(sections=("rules",))))
    said = [row[:2] for row in read.rows]
    assert ["Condensed lists (judged documents only)", "yes"] in said
    assert ["Resamples", "500"] in said


def test_every_chart_of_a_subject_is_offered_by_name(study):
    names = ["systems", "cutoffs", "headroom", "latency", "changes-1", "segments-1-1"]
    assert list(drawings(study)) == names
    # Where it pays can be drawn of a price and a value that were set, or of examples.
    shown = drawings(dataclasses.replace(study, money=Money(example=True)))
    assert list(shown) == [*names[:-1], "break-even-1", names[-1]]
    assert shown["break-even-1"].title.endswith("(example values)")
    for drawing in drawings(study).values():
        assert drawing.alt
        assert len(drawing.in_both_inks().light.data)


def test_a_subject_refuses_what_cannot_be_compared(study):
    with pytest.raises(SpecError, match="no system 'x'"):
        dataclasses.replace(study, challengers=("x",))
    with pytest.raises(SpecError, match="with itself"):
        dataclasses.replace(study, challengers=(FIRST_STAGE,))
    with pytest.raises(SpecError):
        dataclasses.replace(study, metric="nonsense")


def test_a_reader_of_the_file_alone_learns_what_its_words_stand_for(study, report):
    said = report.text("decision")
    assert "NDCG@10: How close the order is" in said
    assert "first: the order of the search, before any reranking." in said
    assert "95% of the 27 queries timed took no longer" in report.text("verdict")
    # A rule stands with what it decides.
    [worthwhile] = [row for row in report.rows if row[0] == "Minimum practically relevant gain"]
    assert worthwhile[1:] == [
        "not set",
        "The smallest gain that matters to you, as a share of the baseline's mean. If it is not "
        "set, each proven gain is “better”.",
    ]


def test_what_went_before_the_times_is_told_and_an_unknown_end_is_no_dash(study):
    run = study.run("run")
    assert run is not None
    measured = dataclasses.replace(run, measured=Measured(pairs=8, index_seconds=125.0))
    systems = {**study.systems, "run": System("run", run.name, load=lambda: measured)}
    page = html(dataclasses.replace(study, systems=systems), Front(sections=("latency",)))
    said = " ".join(Read(page).text("latency").split())
    assert "Not included in the times of mover plain: 2 min of preparation" in said
    # Which system met the target is said in the sentence before, in the same paragraph.
    assert "**" not in said
    assert re.search(r"half within [\d.]+ ms\. 27 of 27 queries took at most 500 ms", said)
    row = next(row for row in Read(page).rows if row[:2] == ["mover plain", "27"])
    assert re.fullmatch(r"[\d.]+ \(at least [\d.]+\)", row[6])


def test_whose_the_prices_are_is_told_apart_from_whose_the_assumptions_are(study):
    dearer = dataclasses.replace(shipped()[0].price, amount=9.0)
    own = dataclasses.replace(shipped()[0], source="our contract", price=dearer)
    nobody, example = "Nobody set prices or assumptions", "Price not set: mover plain."
    for given, prices, there, absent in (
        ({"value_per_search": 0.01}, {}, f"Set for this report: Value of a search. {example}",
         nobody),
        ({"value_per_search": 0.01}, {"run": own},
         "Set for this report: Price of mover plain, Value of a search. At their", example),
        ({}, {"run": own}, "Set for this report: Price of mover plain. At their", nobody),
        ({}, {}, f"{nobody} for this report. {example}", "Set for this report"),
    ):  # fmt: skip
        told = dataclasses.replace(study, money=Money.of(given, prices=prices))
        read = Read(html(told, Front(sections=("verdict", "cost"))))
        cost, verdict = (" ".join(read.text(each).split()) for each in ("cost", "verdict"))
        assert there in cost
        assert absent not in cost
        for section in (cost, verdict):
            left = section[section.index("At their defaults: ") :]
            assert ("Value of a search ($0.01)" in left) == (not given)
        assert ("Example prices that nobody set: mover plain." in verdict) == (not prices)
        assert ["Value of a search", "$0.01"] in [row[:2] for row in read.rows]


def test_how_cost_makes_its_intervals_stands_under_how_these_numbers_are_made(report):
    assert " ".join(cost().split()) in " ".join(report.text("rules").split())


def test_a_value_that_may_be_a_loss_is_told_with_it(study):
    run = study.run("run")
    assert run is not None
    # Few gain much and most lose a little, so the mean gain is not proven.
    mixed = Ranking.from_lists(
        (q, [f"{q}-d{d}" for d in order], np.arange(DOCS, 0, -1.0))
        for place, q in enumerate(run.ranking.query_ids)
        for order in [(3, 0, 1, 2, 4, 5, 6, 7) if place < 5 else (0, 1, 2, 4, 5, 6, 7, 3)]
    )
    system = System("run", "mixed", load=lambda: dataclasses.replace(run, ranking=mixed))
    unsure = dataclasses.replace(study, systems={**study.systems, "run": system})
    said = Read(html(unsure, Front(sections=("cost",)))).text("cost")
    # Nobody set a price, so no amount is said beside it.
    assert "a month, for" not in said
    dear = dataclasses.replace(shipped()[0].price, amount=1.0)
    own = dataclasses.replace(shipped()[0], source="our contract", price=dear)
    money = Money.of({"value_per_search": 0.01}, prices={"run": own})
    priced = dataclasses.replace(unsure, money=money)
    said = Read(html(priced, Front(sections=("cost",)))).text("cost")
    assert re.search(r"The value is \$[\d,.]+ \(-\$[\d,.]+ … \$[\d,.]+\) a month", said)


def test_a_share_of_the_headroom_is_not_told_of_harm(study):
    run = study.run("run")
    assert run is not None
    worse = Ranking.from_lists(
        (q, [f"{q}-d{d}" for d in (0, 1, 2, 4, 5, 6, 7, 3)], np.arange(DOCS, 0, -1.0))
        for q in run.ranking.query_ids
    )
    harm = dataclasses.replace(run, ranking=worse)
    systems = {**study.systems, "run": System("run", "harm", load=lambda: harm)}
    harmed = dataclasses.replace(study, systems=systems)
    split = harmed.headroom("run")
    assert split is not None
    assert split.share_won is not None
    assert split.share_won < 0
    read = Read(html(harmed, Front(sections=("reasons",))))
    [row] = [row for row in read.rows if row[0] == "harm"]
    assert row[-2:] == ["–", "candidates"]


def test_chinese_sentences_stand_without_blanks_and_with_their_own_colon(study):
    page = html(study, Front(language="zh")).decode().partition("<script")[0]
    # After bold text the same sentences need one on a page of the app.
    body = page.partition("<main>")[2].replace("</strong> ", "")
    text = re.sub(r"<[^>]+>", "", body)
    assert "NDCG@10：" in text
    assert re.findall(r"[一-鿿]: |。 [一-鿿]", text) == []


@pytest.mark.parametrize(
    ("settings", "corrected"),
    [
        ({}, {"segments"}),
        ({"family": "all"}, {"verdict", "systems", "segments"}),
        ({"correction": "none"}, set()),
    ],
)
def test_a_p_is_called_corrected_where_it_is(settings, corrected):
    """Not for one challenger, whose p is corrected for nothing; groups of queries are several."""
    page = html(study_of(statistics=StatisticsSettings(resamples=500, **settings)))
    read = Read(page)
    sections = ("verdict", "systems", "segments")
    assert {each for each in sections if "corrected p" in read.text(each)} == corrected
    titles = {row[6] for row in read.rows if row[0] in ("metric", "grouped by") and len(row) > 6}
    assert titles == {"corrected p" if each in corrected else "p" for each in sections[1:]}
    limits = {*re.findall(r"(?:corrected )?p (?:\\u2264|≤)", page.decode())}
    assert {each.startswith("corrected") for each in limits} == {
        each in corrected for each in sections[1:]
    }
    word = "corrected p" if "verdict" in corrected else "p"
    assert f"its interval excludes 0 and the {word} is at most 0.05." in read.text("rules")


@pytest.mark.parametrize("sections", [ALL, ("decision",)])
def test_without_labels_the_report_says_so_and_shows_no_number(sections):
    study = study_of()
    data = study.dataset
    bare = Dataset("Bare", data.queries, data.documents, data.qrels[:0], data.candidates)
    said = html(dataclasses.replace(study, dataset=bare), Front(sections=sections)).decode()
    assert "abel" in said
    assert "nan" not in re.sub(
        r"<script.*?</script>|<style.*?</style>|<[^>]+>", " ", said, flags=re.S
    )


@pytest.mark.parametrize(("kept", "charts"), [(slice(0), 0), (slice(None), 1)])
def test_the_chart_of_labels_is_drawn_only_where_there_are_any(kept, charts):
    study = study_of()
    data = study.dataset
    cut = Dataset("Cut", data.queries, data.documents, data.qrels[kept], data.candidates)
    checked = dataclasses.replace(study, dataset=cut, check=check(cut, (), {}))
    said = html(checked, Front(sections=("data",))).decode()
    [part] = re.findall(r"<h3>Judgments \(relevance labels\)</h3>(.*?)</div>", said, flags=re.S)
    assert ("No labels yet" in part) == (not charts)
    assert part.count("class=chart") + part.count('class="chart') == charts


@pytest.mark.parametrize(
    ("how", "name"), [("given", "First stage"), ("corpus-bm25", "First stage (BM25)")]
)
def test_a_first_stage_made_here_is_no_ranking_that_came_with_the_data(how, name):
    study = study_of()
    data = study.dataset
    made = Dataset(
        data.name, data.queries, data.documents, data.qrels, data.candidates, first_stage=how
    )
    report = html(
        dataclasses.replace(study, dataset=made, check=check(made, (), {})),
        Front(sections=("data",)),
    ).decode()
    [rows] = [each for each in Page(report).tables["data"] if each[0][0] == "ranking"]
    assert [row[0] for row in rows] == ["ranking", name]
    assert "<caption>Rankings</caption>" in report
