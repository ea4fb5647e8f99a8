"""`approved/surfaces/rules.txt` shows which figures of the report move with which rule;
`approved/study/moved.txt` which parts of a study, and takes a tenth of the time."""

import re
from collections.abc import Iterator
from dataclasses import fields, replace

import pytest

from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.metrics import Conventions
from rankdash.reporting.report import Front, html
from rankdash.study.systems import Money
from rankdash.value.assumptions import Assumptions
from rankdash.value.price_list import shipped
from tests.surfaces.case import Case
from tests.surfaces.conftest import without_charts
from tests.surfaces.reading import Page

# Rule → another value, and a metric that it decides.
CONVENTIONS = {
    "ties": ("stable", "ndcg@5"),
    "threshold": (2.0, "recall@5"),
    "judged_only": (True, "ndcg@5"),
    "missing": ("skip", "ndcg@5"),
    "no_relevant": ("count", "ndcg@5"),
    "mrr_none": ("skip", "mrr@5"),
    "ap_norm": ("min(R,k)", "map@5"),
    "score_precision": ("float32", "ndcg@5"),
    "queries": ("both", "ndcg@5"),
    "negative": ("unjudged", "judged@5"),
    "err_top_label": (6.0, "err@5"),
}
STATISTICS = {
    "level": (0.8, "ndcg@5"),
    "interval": ("percentile", "err@5"),
    "test": ("t", "ndcg@5"),
    "correction": ("bh", "ndcg@5"),
    "family": ("all", "ndcg@5"),
    "resamples": (300, "ndcg@5"),
    "seed": (3, "ndcg@5"),
    "tie_band": (0.1, "ndcg@5"),
    "worthwhile": (0.5, "ndcg@5"),
}
FEW = StatisticsSettings(resamples=1000)
MONEY = Money(
    assumptions=Assumptions(
        value_per_search=0.05, setup_cost=1e6, monthly_cost=50.0, searches_per_day=9000
    ),
    given=frozenset({"value_per_search"}),
)
SECTIONS = ("verdict", "queries", "systems", "cutoffs", "segments", "reasons", "latency", "cost",
            "rules")  # fmt: skip
IN_FORCE = "rules: current value"


@pytest.fixture(scope="module")
def figures(case: Case):
    """Metric, conventions, statistics → the figures of the report: name → what it says there."""
    found: dict[object, dict[str, list[str]]] = {}
    runs = (case.runs[0], case.flaky)
    money = replace(MONEY, prices={run.id: shipped()[0] for run in runs})

    def made(spec: str, statistics: StatisticsSettings = FEW, **conventional: object):
        conventions = Conventions(**conventional)
        key = (spec, conventions, statistics)
        if key not in found:
            study = case.study_of(
                runs,
                spec,
                others=(spec, "hit@5"),
                conventions=conventions,
                statistics=statistics,
                money=money,
            )
            with without_charts():
                page = html(study, Front(sections=SECTIONS)).decode()
            found[key] = {}
            for name, text in _figures(page):
                found[key].setdefault(name, []).append(text)
        return found[key]

    return made


_FACT = re.compile(r"<dt>(.*?)</dt><dd>(.*?)</dd><dd class=muted>(.*?)</dd>")
_ENDS = re.compile(r"\((.* … .*|at least .*)\)")
_TOLD = re.compile(r"\d+ helped .* hurt, of.*|\S+ → \S+ \(.*?\)")


def _figures(page: str) -> Iterator[tuple[str, str]]:
    """By section and heading; what an interval is has a name of its own."""
    for title, value, beside in _FACT.findall(page):
        yield f"verdict: {title.split(' in ')[0]}", value
        yield f"verdict: {title.split(' in ')[0]}, beside", beside
    read = Page(page)
    for text in _TOLD.findall(read.texts["queries"]):
        yield f"queries: {'counts' if 'helped' in text else 'values'}", text
    for section in SECTIONS[2:]:
        for head, *rows in read.tables[section]:
            for row in rows:
                for title, cell in zip(head[1:], row[1:], strict=True):
                    name = {"cutoffs": "mean", "cost": row[0]}.get(section, title)
                    name = re.sub(r"\w+@5", "metric", name)
                    yield f"{section}: {name}", _ENDS.sub("", cell).strip()
                    yield from (
                        (f"{section}: {name}, interval", each) for each in _ENDS.findall(cell)
                    )


def moved(one: dict[str, list[str]], other: dict[str, list[str]]) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


@pytest.mark.thorough
def test_every_rule_moves_its_figures_and_no_other(figures, approved):
    assert list(CONVENTIONS) == [each.name for each in fields(Conventions)]
    assert list(STATISTICS) == [each.name for each in fields(StatisticsSettings)]
    by_rule = {
        f"{name} {value} ({spec})": moved(figures(spec), figures(spec, **{name: value}))
        for name, (value, spec) in CONVENTIONS.items()
    }
    for statistics, rules in (
        (FEW, STATISTICS),
        (replace(FEW, interval="bca"), ("resamples", "seed")),
    ):
        for name in rules:
            value, spec = STATISTICS[name]
            before = figures(spec, statistics)
            after = figures(spec, replace(statistics, **{name: value}))
            of = "" if statistics == FEW else ", bca"
            by_rule[f"{name} {value} ({spec}{of})"] = moved(before, after)
    assert all(IN_FORCE in names for names in by_rule.values()), by_rule
    figures_of_all = sorted(set().union(*by_rule.values()) | figures("ndcg@5").keys())
    width = max(map(len, figures_of_all))
    legend = [f"{chr(ord('a') + place)} {rule}" for place, rule in enumerate(by_rule)]
    letters = "".join(line[0] for line in legend)
    rows = [
        f"{name:{width}}  {''.join('x' if name in names else '.' for names in by_rule.values())}"
        for name in figures_of_all
    ]
    approved("surfaces/rules", "\n".join([*legend, "", f"{'':{width}}  {letters}", *rows]))
