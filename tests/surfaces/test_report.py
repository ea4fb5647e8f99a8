"""The report says what the study says, each number rounded as everywhere."""

from datetime import date

import pytest

from rankdash.i18n import brief, number, percent, signed
from rankdash.reporting.report import Front, html
from rankdash.study import costs, latency, leaderboard
from rankdash.study.decision import decision
from rankdash.study.pricing import bill
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money
from rankdash.value.billing import Price
from rankdash.value.price_list import ListedPrice
from rankdash.words import prices
from rankdash.words.costs import cell
from rankdash.words.headroom import documents
from rankdash.words.reasons import reason_words
from rankdash.words.verdict_chips import change_interval, chip, interval, sentence
from tests.surfaces.conftest import Case, without_charts
from tests.surfaces.reading import Page, assert_says

PRICE = ListedPrice("own", "Mine", "", Price(0.3, "search"), "", date(2026, 11, 1))


@pytest.fixture(scope="module")
def priced(case: Case) -> Study:
    """The comparison with every price and the value of a search set."""
    money = Money(
        prices={run.id: PRICE for run in case.runs}, given=frozenset({"value_per_search"})
    )
    return case.study_of(case.runs, money=money)


@pytest.fixture(scope="module")
def priced_report(priced: Study) -> Page:
    with without_charts():
        return Page(html(priced, Front(sections=("decision", "cost"))).decode())


def test_every_metric_of_every_system(case, report):
    study, frame = case.study, case.study.comparison.frame
    (rows,) = report.tables["systems"]
    assert len(rows) == 1 + len(frame)
    for cells, (_at, row) in zip(rows[1:], frame.iterrows(), strict=True):
        own = row["system"] == study.baseline
        dash = "–"
        assert cells == [
            study.titles[row["metric"]],
            study.name(row["system"]),
            number(row["mean"]),
            interval(row["mean_low"], row["mean_high"]),
            dash if own else signed(row["delta"]),
            dash if own else change_interval(row["delta_low"], row["delta_high"]),
            number(row["p_corrected"], 4),
            number(row["n"] if own else row["paired"], 0),
            dash if own else number(row["left_out"], 0),
            chip(row["verdict"]),
        ]


def test_the_page_to_decide_by(case, report):
    study, said = case.study, report.texts["decision"]
    best = leaderboard.best_challenger(study)
    assert best is not None
    hit, row = study.comparison.row(best, "hit@10"), study.comparison.row(best, study.spec)
    hits = study.pairs(best, "hit@10").dropna(subset="delta")
    worst = study.pairs(best).dropna(subset="delta").nsmallest(1, "delta").iloc[0]
    unlabelled = decision(study, best).unlabelled
    assert_says(
        said,
        [
            *(number(hits[side].sum(), 0) for side in ("before", "after")),
            number(len(hits), 0),
            *(signed(hit[f"delta{end}"]) for end in ("", "_low", "_high")),
            sentence(study.comparison.verdict(best, study.spec, study.names)),
            *(number(row["hurt"], 0), number(row["paired"], 0)),
            *(number(worst["before"]), number(worst["after"])),
            *([number(unlabelled, 0)] if unlabelled else []),
        ],
    )
    # Nobody set a price or what a search is worth.
    assert "$" not in said[said.index("What it costs") : said.index("Risk")]
    (rows,) = report.tables["decision"]
    for cells, each in zip(rows[1:], leaderboard.standings(study), strict=True):
        assert cells[0].startswith(f"{study.name(each.system)} {chip(each.kind)}")
        assert_says(cells[1], map(number, (each.mean, each.low, each.high)))
        assert_says(cells[2], map(signed, (each.delta, each.delta_low, each.delta_high)))
        # The search itself takes nothing. No price is known, and so no column of prices is there.
        own = each.system == FIRST_STAGE
        pareto = {None: "–", True: "✓ optimal", False: "dominated"}[each.pareto["p95"]]
        assert cells[4:] == [
            "0 ms" if own else "– not measured" if each.p95 is None else f"{brief(each.p95)} ms",
            pareto,
        ]


def test_the_page_to_decide_by_at_a_set_price_and_value(priced, priced_report):
    best = leaderboard.best_challenger(priced)
    choices = {each.system: each for each in costs.choices(priced)}
    choice = choices[best]
    said = priced_report.texts["decision"]
    of_cost = said[said.index("What it costs") : said.index("Risk")]
    assert_says(of_cost, cell(choice.came.break_even_elasticity, "USD", "elasticity"))
    (rows,) = priced_report.tables["decision"]
    for cells, each in zip(rows[1:], leaderboard.standings(priced), strict=True):
        own = choices.get(each.system)
        price = "$0.00" if own is None else cell(own.came.cost_per_thousand, "USD")[0]
        assert cells[5].startswith(price)
        assert (price == "$0.00") is (each.system == FIRST_STAGE)
        assert cells[6] == ("✓ optimal" if each.pareto["cost"] else "dominated")


def test_the_verdict_of_each_system(case, report):
    study, said = case.study, report.texts["verdict"]
    for system in study.challengers:
        row = study.comparison.row(system, study.spec)
        assert sentence(study.comparison.verdict(system, study.spec, study.names)) in said
        split, timed = study.headroom(system), latency.summary(study, system)
        share = split.share_won
        start = said.index(sentence(study.comparison.verdict(system, study.spec, study.names)))
        wanted = [
            signed(row["delta"]),
            *(percent(0.95), signed(row["delta_low"]), signed(row["delta_high"])),
            *(number(row[each], 0) for each in ("helped", "same", "hurt", "paired")),
            number(row["p_corrected"], 4),
            *([percent(share)] if share is not None and share >= 0 else []),
            *([brief(timed.p95), number(timed.n, 0)] if timed is not None else []),
            # Of a ranking from a file nobody knows the price.
            "not set",
            prices.lack(bill(study, system)),
            *(number(n, 0) for n in study.comparison.left_out(system, study.spec).values()),
        ]
        assert_says(said[start:], wanted)


def test_every_cutoff(case, report):
    study, curves = case.study, case.study.curves.set_index(["k", "system"])
    (rows,) = report.tables["cutoffs"]
    assert [row[0] for row in rows[1:]] == [str(k) for k in sorted(set(study.curves["k"]))]
    for k, *cells in rows[1:]:
        for system, shown in zip(study.chosen, cells, strict=True):
            own = curves.loc[(int(k), system)]
            assert shown == f"{number(own['mean'])} ({interval(own['low'], own['high'])})"


def test_queries_helped_and_hurt(case, report):
    study, said = case.study, report.texts["queries"]
    for system in study.challengers:
        row = study.comparison.row(system, study.spec)
        assert_says(
            said,
            [
                *(number(row[each], 0) for each in ("helped", "same")),
                f"{study.statistics.tie_band:g}",
                *(number(row[each], 0) for each in ("hurt", "paired")),
            ],
        )
        pairs = study.pairs(system).dropna(subset="delta")
        most = pairs.loc[[pairs["delta"].idxmin(), pairs["delta"].idxmax()]]
        for _at, each in most[most["delta"].abs() > study.statistics.tie_band].iterrows():
            values = f"{number(each['before'])} → {number(each['after'])} ({signed(each['delta'])})"
            assert values in said
    out = study.comparison.left_out(case.flaky.id, study.spec)
    assert len(report.tables["queries"][-1]) == 1 + sum(out.values())


def test_kinds_of_queries(case, report):
    study = case.study
    shown = [row for rows in report.tables["segments"] for row in rows[1:]]
    assert shown
    found = [
        study.segment(system, segment) for system in study.challengers for segment in study.segments
    ]
    numbers = {
        (
            number(row["n"], 0),
            f"{number(row['before'])} → {number(row['after'])}",
            signed(row["delta"]),
            change_interval(row["low"], row["high"]),
            number(row["p_corrected"], 4),
            f"{row['helped']} · {row['same']} · {row['hurt']}",
        )
        for table in found
        for _at, row in table.iterrows()
    }
    assert {tuple(row[2:]) for row in shown} <= numbers


def test_reasons_and_headroom(case, report):
    study = case.study
    headroom, *reasons = report.tables["reasons"]
    for system, rows in zip(study.challengers, reasons, strict=True):
        counts = study.reason_counts(system)
        assert [row[:4] for row in rows[1:]] == [
            [
                reason_words()[code],
                number(row["queries"], 0),
                signed(row["mean"]),
                signed(row["adds"]),
            ]
            for code, row in counts.iterrows()
        ]
    for system, row in zip(study.challengers, headroom[1:], strict=True):
        split = study.headroom(system)
        parts = (split.baseline, split.won, split.to_win, split.retriever, split.perfect)
        share = split.share_won
        won = percent(share) if share is not None and share >= 0 else "–"
        assert row == [study.name(system), *map(number, parts), won, documents(split.own)]


def test_latency(case, report):
    found = latency.summary(case.study, case.flaky.id)
    rows = report.tables["latency"][0]
    assert len(rows) == 2
    name, n, mean, deviation, p50, p90, p95, *_rest = rows[1]
    assert (name, n, p90) == (case.flaky.name, number(found.n, 0), brief(found.p90))
    assert (mean, deviation) == (brief(found.mean), brief(found.deviation))
    assert_says(p50, map(brief, (found.p50, *found.p50_interval)))
    assert_says(p95, [brief(found.p95), brief(found.p95_interval[0])])


def test_cost(case, report):
    """Nobody set a price or what a search is worth: nothing follows from a default."""
    rows = {title: cells for title, *cells in report.tables["cost"][0][1:]}
    choices = costs.choices(case.study)
    assert set(rows) == {"price", "cost of 1,000 searches", "cost a month", "p95 added"}
    for at, choice in enumerate(choices):
        assert_cell(rows["cost of 1,000 searches"][at], cell(choice.came.cost_per_thousand, "USD"))
        assert_cell(rows["cost a month"][at], cell(choice.came.cost_per_month, "USD"))
        assert ("$" in rows["cost of 1,000 searches"][at]) is choice.option.free
        p95 = None if choice.option.free else choice.waiting.p95
        assert_says(rows["p95 added"][at], [] if p95 is None else [brief(p95)])


def test_cost_at_a_set_price_and_value(priced, priced_report):
    rows = {title: cells for title, *cells in priced_report.tables["cost"][0][1:]}
    for at, choice in enumerate(costs.choices(priced)):
        came = choice.came
        assert_cell(rows["cost of 1,000 searches"][at], cell(came.cost_per_thousand, "USD"))
        assert_cell(rows["cost a month"][at], cell(came.cost_per_month, "USD"))
        if choice.system in priced.challengers:
            assert_cell(rows["value a month"][at], cell(came.value_per_month, "USD"))
            assert_cell(rows["net a month"][at], cell(came.net_per_month, "USD"))


def assert_cell(shown: str, found: tuple[str, str]) -> None:
    value, interval = found
    assert shown == (f"{value} ({interval})" if interval else value)
