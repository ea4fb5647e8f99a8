"""A rule in force is in force everywhere: every figure of the report that a rule has a say in moves
with it, and none that it has nothing to do with."""

from dataclasses import dataclass, fields, replace

import pytest

from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.metrics import Conventions
from tests.surfaces.conftest import without_charts
from tests.surfaces.ruled import SPECS, Ruled

MEANS = {
    *("verdict: change", "verdict: change, beside"),
    *("systems: mean", "systems: mean interval", "systems: change", "systems: change interval"),
    *("cutoffs", "cutoffs, interval"),
    *("segments: means", "segments: change", "segments: interval"),
    *("headroom: baseline", "headroom: realised", "headroom: potential gain left"),
    "reasons: adds to the mean",
}
P = {"verdict: corrected p", "verdict: corrected p, beside", "systems: p", "segments: p"}
TALLY = {"verdict: helped · same · hurt", "queries: helped, same, hurt", "segments: helped"}
COUNTS = {
    "verdict: helped · same · hurt, beside",
    *("systems: n", "systems: excluded", "segments: n"),
}
QUERIES = {"queries: values", "reasons: mean change"}
RELATIVE = {
    *("cost: value a month", "cost: net a month", "cost: return on the cost"),
    *("cost: months to pay back", "cost: break-even: value gained for 1% quality"),
    *("cost: break-even searches a day", "cost: break-even price of 1,000 searches"),
    "cost: break-even: value of 1% quality, 1,000 searches",
}
MONEY_INTERVALS = {f"{name}, interval" for name in RELATIVE if name.startswith("cost")}
ROUNDED = {"cost: break-even: value gained for 1% quality, interval"}
"""Shown in so few digits that a small change may not show."""
VALUE = {"cost: value a month, interval"}
"""Told of a proven gain only."""
SHARE_WON = {"headroom: potential gain realised", "verdict: potential gain realised"}
"""In whole percent."""
INTERVALS = {
    *("verdict: change, beside", "systems: mean interval", "systems: change interval"),
    *("cutoffs, interval", "segments: interval"),
}
WORDS = {"systems: verdict"}
ORDER = MEANS | P | TALLY | QUERIES | RELATIVE | MONEY_INTERVALS

UNRULED = {
    *("latency", "verdict: p95 latency", "cost: p95 added", "cost: price", "cost: cost a month"),
    *("cost: cost of 1,000 searches", "verdict: cost of 1,000 searches"),
}
"""What no rule of evaluation has a say in."""


@dataclass(frozen=True)
class Rule:
    """spec: a metric that the rule decides. moved: every figure that has to change with it.
    may: others that follow from those and may stay, such as a word for a number."""

    name: str
    value: object
    moved: set[str]
    spec: str = SPECS[0]
    may: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.name


CONVENTIONS = (
    Rule("ties", "trec", ORDER),
    Rule("threshold", 2.0, ORDER - VALUE | COUNTS | {"rules: queries of each system"}, "recall@5"),
    Rule("judged_only", True, ORDER | SHARE_WON),
    Rule("missing", "skip", (ORDER | COUNTS | SHARE_WON) - {"queries: values"}),
    # A change of 0 turns no flip, and no mean in relation to another.
    Rule("no_relevant", "count", MEANS | TALLY | COUNTS),
    Rule("mrr_none", "skip", (ORDER | COUNTS) - VALUE - {"queries: values"}, "mrr@5"),
    Rule("ap_norm", "min(R,k)", (ORDER | SHARE_WON) - TALLY, "map@5"),
    Rule("score_precision", "float32", ORDER | {"rules: queries of each system"}),
    Rule(
        "queries",
        "both",
        (ORDER | COUNTS | {"rules: queries of each system"}) - {"queries: values"},
    ),
    Rule("negative", "unjudged", {"systems: mean", "systems: mean interval", "systems: change"}),
    # Both ends of the return are beyond what is written as a number.
    Rule(
        "err_top_label",
        6.0,
        (ORDER | SHARE_WON) - {"cost: return on the cost, interval"},
        "err@5",
    ),
)

STATISTICS = (
    Rule("level", 0.8, INTERVALS | MONEY_INTERVALS | {"latency, interval"}, may=frozenset(WORDS)),
    Rule(
        "interval",
        "percentile",
        INTERVALS | MONEY_INTERVALS - ROUNDED,
        "err@5",
        may=frozenset(WORDS | ROUNDED),
    ),
    Rule("test", "t", P, may=frozenset(WORDS)),
    Rule("correction", "bh", {"systems: p", "segments: p"}, may=frozenset(WORDS)),
    Rule("family", "all", P - {"segments: p"}, may=frozenset(WORDS)),
    Rule("resamples", 300, P, may=frozenset(WORDS)),
    Rule("seed", 3, P, may=frozenset(WORDS)),
    Rule("tie_band", 0.1, TALLY | {"reasons: queries", "reasons: adds to the mean"},
         may=frozenset({"reasons: why", "reasons: mean change"})),
    Rule("worthwhile", 0.5, WORDS),
)  # fmt: skip


FEW = StatisticsSettings(resamples=1000)
RESAMPLED = replace(FEW, interval="bca")


@pytest.fixture(scope="module")
def ruled():
    with without_charts():
        yield Ruled()


def moved(one: dict[str, list[str]], other: dict[str, list[str]]) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def test_every_rule_has_its_figures():
    assert [each.name for each in CONVENTIONS] == [each.name for each in fields(Conventions)]
    assert [each.name for each in STATISTICS] == [each.name for each in fields(StatisticsSettings)]


@pytest.mark.parametrize("rule", CONVENTIONS, ids=str)
def test_a_convention_moves_every_figure_made_of_what_it_decides(ruled, rule):
    before = ruled.figures(rule.spec, Conventions(), FEW)
    after = ruled.figures(rule.spec, Conventions(**{rule.name: rule.value}), FEW)
    changed = moved(before, after)
    assert rule.moved <= before.keys()
    assert rule.moved - changed == set()
    assert "rules: in force" in changed
    assert changed & (UNRULED | {"latency, interval"}) == set()


@pytest.mark.parametrize("rule", STATISTICS, ids=str)
def test_a_rule_of_statistics_moves_its_figures_and_no_other(ruled, rule):
    before = ruled.figures(rule.spec, Conventions(), FEW)
    after = ruled.figures(rule.spec, Conventions(), replace(FEW, **{rule.name: rule.value}))
    assert rule.moved <= before.keys()
    assert moved(before, after) - rule.may == rule.moved | {"rules: in force"}


@pytest.mark.parametrize(("name", "value"), [("resamples", 300), ("seed", 3)])
def test_a_rule_of_resampling_moves_resampled_intervals(ruled, name, value):
    before = ruled.figures(SPECS[0], Conventions(), RESAMPLED)
    after = ruled.figures(SPECS[0], Conventions(), replace(RESAMPLED, **{name: value}))
    found = moved(before, after) - WORDS
    assert found == INTERVALS | MONEY_INTERVALS | P | {"rules: in force"}
