"""Each set under each rules: what rankdash says in its report and exports, and what the files say
by the documented definitions."""

import io
import math
import zipfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rankdash.reporting.exports.zip_file import bundle
from rankdash.reporting.report import html
from rankdash.study.study import Study
from rankdash.study.systems import Money
from rankdash.value.price_list import shipped
from tests.referee import given
from tests.referee.definitions import NAMES, value
from tests.referee.rules import RULES, Rules
from tests.surfaces import conftest as surfaces
from tests.surfaces.conftest import Case
from tests.surfaces.reading import Page

Values = dict[str, float]

case = surfaces.case


class Own:
    """The comparison as the files and the rules have it. systems: name → its lists, the first stage
    first. lost: queries that a system failed on or was not asked, which leave every pair."""

    def __init__(self, case: Case, rules: Rules) -> None:
        self.labels = given.labels(case.qrels)
        self.queries = given.queries(case.folder / "queries.jsonl")
        top = max(label for known in self.labels.values() for label in known.values())
        self.rules = rules.fitting(top)
        lists = {"first": given.ranking(case.initial, single=rules.single)}
        for run in case.runs:
            if run.name not in ("fused", "flaky"):
                file = case.files[run.id]
                lists[run.name] = given.ranking(file, single=rules.single)
        plain = [given.ranking(each, single=False) for each in (case.initial, self._turned(case))]
        lists["fused"] = given.reciprocal_rank_fusion(*plain, by_trec=rules.single)
        ends = [list(lists["first"])[at] for at in (0, -1)]
        lists["flaky"] = {q: rows for q, rows in lists["turned"].items() if q not in ends}
        self.systems = lists
        self.lost = {"flaky": set(ends)}
        self.baseline, *self.challengers = lists
        self.latencies = given.latencies(case.timings)

    @staticmethod
    def _turned(case: Case) -> Path:
        return next(case.files[run.id] for run in case.runs if run.name == "turned")

    def values(self, system: str, name: str, k: int = 10) -> Values:
        """Query → value, of the queries that have one."""
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
        """(metric, system) → `values`, in the order of the report."""
        return {(name, each): self.values(each, name) for name in NAMES for each in self.systems}

    def changes(self, system: str, name: str = "ndcg") -> Values:
        """Query → change, of the queries with a value on both sides."""
        before, after = self.table[name, self.baseline], self.table[name, system]
        found = {query: after[query] - before[query] for query in before if query in after}
        return {query: 0.0 if abs(each) < 1e-12 else each for query, each in found.items()}

    def tally(self, changes: Values) -> tuple[int, int, int]:
        """Helped, same, hurt."""
        signs = [0 if abs(each) <= 0.005 + 1e-12 else math.copysign(1, each)
                 for each in changes.values()]  # fmt: skip
        return signs.count(1), signs.count(0), signs.count(-1)


@dataclass(frozen=True, eq=False)
class Said:
    """What rankdash says. comparison, queries: the exports, to the last digit."""

    study: Study
    page: Page
    comparison: pd.DataFrame
    queries: pd.DataFrame


@pytest.fixture(scope="session", params=RULES, ids=str)
def own(request: pytest.FixtureRequest, case: Case) -> Own:
    return Own(case, request.param)


@pytest.fixture(scope="session")
def said(case: Case, own: Own) -> Said:
    rules = own.rules
    # Runs from files have no price of their own. A document of any length is one chunk.
    listed = shipped()[0]
    whole = replace(listed, price=replace(listed.price, chunk_tokens=0))
    prices = {run.id: whole for run in case.runs}
    study = case.study_of(
        case.runs,
        conventions=rules.conventions,
        statistics=rules.statistics,
        money=Money(prices=prices, given=frozenset({"value_per_search"})),
    )
    with surfaces.without_charts():
        page = Page(html(study).decode())
    packed = bundle(study, datetime(2026, 1, 2, tzinfo=UTC), pictures=False)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        comparison, queries = (
            pd.read_csv(io.BytesIO(archive.read(name)), dtype={"query_id": str})
            for name in ("comparison.csv", "queries.csv")
        )
    return Said(study, page, comparison, queries)


def array(values: Values) -> np.ndarray:
    return np.array(list(values.values()), dtype=np.float64)
