"""Latency and what it costs: as the definitions have it."""

import numpy as np
from scipy.stats import binom

from tests.referee.conftest import array
from tests.referee.shown import assert_shows

SEARCHES = 100_000 * 365 / 12
"""A month, at the searches a day that are assumed where nobody says otherwise."""
WORTH, PRICE = 0.01, 2.00
"""Of a search; of 1,000 search units, each a query with up to 100 documents."""


def test_latencies(own, said):
    (rows, *_others) = said.page.tables["latency"]
    assert len(rows) == 2
    values, (_name, n, p50, p90, p95, p99, _cold) = own.latencies, [*rows[1], ""][:7]
    assert n == str(len(values))
    for cell, share in ((p50, 0.5), (p90, 0.9), (p95, 0.95)):
        assert_shows(cell, np.quantile(values, share))
    assert p99 == "–"
    assert len(values) < 1000
    for cell, share in ((p50, 0.5), (p95, 0.95)):
        below = binom.ppf((1 - own.rules.level) / 2, len(values), share)
        above = binom.ppf((1 + own.rules.level) / 2, len(values), share)
        low = values[int(below) - 1]
        if above < len(values):
            ends = cell.partition("(")[2].rstrip(")").split(" … ")
            assert_shows(ends[0], low)
            assert_shows(ends[1], values[int(above)])
        else:
            assert_shows(cell.partition("at least ")[2], low)


def test_costs(own, said):
    rows = {row[0]: row[2:] for row in said.page.tables["cost"][0][1:]}
    for place, system in enumerate(own.challengers):

        def shows(title: str, expected: float, place: int = place) -> None:
            assert_shows(rows[title][place].partition(" (")[0], expected)

        changes = own.changes(system)
        before = np.mean([own.table["ndcg", own.baseline][query] for query in changes])
        relative = array(changes).mean() / before
        cost, value = SEARCHES * PRICE / 1000, SEARCHES * WORTH * relative
        shows("cost of 1,000 searches", PRICE)
        shows("cost a month", cost)
        shows("net a month", value - cost)
        shows("return on the cost", (value - cost) / cost)
        if relative > 0:
            shows("break-even: value gained for 1 % quality", cost / value)
            shows("break-even price of 1,000 searches", WORTH * relative * 1000)
