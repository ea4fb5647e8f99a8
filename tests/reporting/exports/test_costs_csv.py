"""The calculation of cost as a file: every figure under its name, its ends as numbers."""

import csv
import io
from types import SimpleNamespace

from rankdash.reporting.exports import costs_csv
from rankdash.value.payoff import Amount

FIGURES = (
    *("cost_per_thousand", "cost_per_month", "value_per_month", "net_per_month", "roi"),
    *("payback_months", "break_even_elasticity", "break_even_searches", "break_even_price"),
    "break_even_worth",
)


def test_a_row_for_each_figure_and_assumption_and_nothing_that_a_spreadsheet_would_run(monkeypatch):
    monkeypatch.setattr(costs_csv.assumptions, "rows", lambda *_: [("=title", "2", "-meaning")])
    came = {name: Amount(n, n - 0.5, n + 0.5) for n, name in enumerate(FIGURES, start=1)}
    # Paid back at once, at the lower end whatever comes, at the upper one not at all.
    came["payback_months"] = Amount(-0.0, "always", "never")
    came["break_even_price"] = Amount(reason="no_gain")
    came["roi"] = Amount(None, "loses", "tenfold", "loses")
    choice = SimpleNamespace(name="=name", came=SimpleNamespace(**came), demonstrated=True)
    content = costs_csv.as_csv(
        [choice], None, data="+data", metric="NDCG@10", hit="hit", currency="USD"
    )
    assert list(csv.reader(io.StringIO(content.decode("utf-8-sig")))) == [
        ["data set", "'+data"],
        ["metric", "NDCG@10"],
        ["currency", "USD"],
        ["example values", "'=name"],
        [],
        ["option", "figure", "value", "low", "high", "reason"],
        ["'=name", "1,000 searches", "1", "0.5", "1.5", ""],
        ["'=name", "cost a month", "2", "1.5", "2.5", ""],
        ["'=name", "value a month", "3", "2.5", "3.5", ""],
        ["'=name", "net a month", "4", "3.5", "4.5", ""],
        ["'=name", "cost a year", "24", "18", "30", ""],
        ["'=name", "value a year", "36", "30", "42", ""],
        ["'=name", "net a year", "48", "42", "54", ""],
        [
            "'=name",
            "return on the cost",
            "",
            "loses money",
            "more than ten times the cost",
            "loses money",
        ],
        ["'=name", "months to pay back", "0", "0", "never", ""],
        ["'=name", "break-even elasticity, %", "7", "6.5", "7.5", ""],
        ["'=name", "break-even searches a day", "8", "7.5", "8.5", ""],
        ["'=name", "break-even value of 1% quality, 1,000 searches", "10", "9.5", "10.5", ""],
        [
            "'=name",
            "break-even price of 1,000 searches",
            "",
            "",
            "",
            "none: the quality does not rise",
        ],
        [],
        ["assumption", "value", "meaning"],
        ["'=title", "2", "'-meaning"],
    ]
