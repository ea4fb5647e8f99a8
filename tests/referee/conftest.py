"""Sets under rules: the figures of rankdash's report and exports, and the figures computed from the
files by the documented definitions."""

import functools
import io
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rankdash.core.study.study import Study
from rankdash.core.study.systems import Money
from rankdash.core.value.prices import shipped
from rankdash.features.report.report import Front, html
from rankdash.features.report.report_zip import tables
from tests.referee import given
from tests.referee.definitions import NAMES, value
from tests.referee.rules import RULES, Rules
from tests.sets import SAMPLE, SETS
from tests.surfaces.case import Case, made
from tests.surfaces.conftest import without_charts
from tests.surfaces.reading import Page

Values = dict[str, float]
SECTIONS = ("systems", "cutoffs", "queries", "segments", "reasons", "latency", "cost")


_DEFAULTS, TREC_EVAL, JUDGED_ONLY = RULES
# The sample under all rules; of the real sets the graded one under the rules that use its grades,
# and the other one, in which scores tie, under the rules that break ties differently.
COMPARED = [(SAMPLE.name, rules) for rules in RULES]
REAL = [("medquad", JUDGED_ONLY), ("cmrc_zh", TREC_EVAL)]
COMPARED += [(name, rules) for name, rules in REAL if name in SETS]


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Case]:
    return functools.cache(lambda name: made(SETS[name], tmp_path_factory.mktemp(name)))


@pytest.fixture(scope="session", params=COMPARED, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def compared(request: pytest.FixtureRequest) -> tuple[str, Rules]:
    return request.param


@pytest.fixture(scope="session")
def case(compared: tuple[str, Rules], cases: Callable[[str], Case]) -> Case:
    return cases(compared[0])


class Own:
    """The comparison computed from the files and the rules. systems: name → its lists, the first
    stage first. lost: queries on which a system failed or did not run, excluded from every pair."""

    def __init__(self, qrels: Path, systems: dict[str, given.Lists], rules: Rules) -> None:
        self.labels = given.labels(qrels)
        self.queries = given.queries(qrels.parent / "queries.jsonl")
        top = max(label for known in self.labels.values() for label in known.values())
        self.rules = rules.fitting(top)
        self.systems = systems
        self.lost: dict[str, set[str]] = {}
        self.latencies: list[float] = []
        self.baseline, *self.challengers = systems

    @classmethod
    def of(cls, case: Case, rules: Rules) -> "Own":
        lists = {"first": given.ranking(case.initial, single=rules.single)}
        plain = [given.ranking(case.initial, single=False)]
        for run in case.answered[:-1]:
            lists[run.name] = given.ranking(case.files[run.id], single=rules.single)
        plain.append(given.ranking(case.file("turned"), single=False))
        lists["fused"] = given.reciprocal_rank_fusion(*plain, by_trec=rules.single)
        ends = [list(lists["first"])[at] for at in (0, -1)]
        lists["flaky"] = {q: rows for q, rows in lists["turned"].items() if q not in ends}
        own = cls(case.qrels, lists, rules)
        own.lost = {"flaky": set(ends)}
        own.latencies = given.latencies(case.timings)
        return own

    def values(self, system: str, name: str, k: int = 10) -> Values:
        """Return query → value, for queries with a value."""
        found = {}
        for query, known in self.labels.items():
            if query in self.lost.get(system, ()):
                continue
            rows = self.systems[system].get(query)
            if rows is None and not (self.rules.missing_counts and name != "judged"):
                continue
            listed = [known.get(document) for document, _score in rows or ()]
            each = value(name, listed, list(known.values()), self.rules, k)
            if not math.isnan(each):
                found[query] = each
        return found

    @cached_property
    def table(self) -> dict[tuple[str, str], Values]:
        """Return (metric, system) → `values`, in the order of the report."""
        return {(name, each): self.values(each, name) for name in NAMES for each in self.systems}

    def changes(self, system: str, name: str = "ndcg") -> Values:
        """Return query → change, for queries with a value on both sides."""
        before, after = self.table[name, self.baseline], self.table[name, system]
        found = {query: after[query] - before[query] for query in before if query in after}
        return {query: 0.0 if abs(each) < 1e-12 else each for query, each in found.items()}

    def tally(self, changes: Values) -> tuple[int, int, int]:
        """Return the numbers of queries: helped, same, hurt."""
        signs = [0 if abs(each) <= 0.005 + 1e-12 else math.copysign(1, each)
                 for each in changes.values()]  # fmt: skip
        return signs.count(1), signs.count(0), signs.count(-1)


@dataclass(frozen=True, eq=False)
class Said:
    """The figures of rankdash. comparison, queries: the exports, to the last digit."""

    study: Study
    page: Page
    comparison: pd.DataFrame
    queries: pd.DataFrame


@pytest.fixture(scope="session")
def own(compared: tuple[str, Rules], case: Case) -> Own:
    return Own.of(case, compared[1])


@pytest.fixture(scope="session")
def said(case: Case, own: Own) -> Said:
    rules = own.rules
    # Runs from files have no price. A document of any length is one chunk.
    listed = shipped()[0]
    whole = replace(listed, price=replace(listed.price, chunk_tokens=0))
    prices = {run.id: whole for run in case.runs}
    study = case.study_of(
        case.runs,
        conventions=rules.conventions,
        statistics=rules.statistics,
        money=Money(prices=prices, given=frozenset({"value_per_search"})),
    )
    with without_charts():
        page = Page(html(study, Front(sections=SECTIONS)).decode())
    written = {part.name: part.make for part in tables(study)}
    comparison, queries = (
        pd.read_csv(io.BytesIO(written[name]()), dtype={"query_id": str})
        for name in ("comparison.csv", "queries.csv")
    )
    return Said(study, page, comparison, queries)


def array(values: Values) -> np.ndarray:
    return np.array(list(values.values()), dtype=np.float64)
