"""A comparison on which every rule of evaluation has something to decide, and the figures of a
report by name.

Scores are tied, in single precision more of them; labels are negative, fractional or missing;
queries have no relevant label or no ranking. Both challengers gain a little, so that no p is at
an end of its scale.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from rankdash.analysis.statistics.settings import StatisticsSettings
from rankdash.dataset import Dataset
from rankdash.metrics import Conventions
from rankdash.ranking.ranking import Ranking, Run
from rankdash.reporting.report import html
from rankdash.rerankers.kinds.precomputed import run_from_ranking
from rankdash.study.study import Study
from rankdash.study.systems import FIRST_STAGE, Money, systems_of
from rankdash.value.assumptions import Assumptions
from rankdash.value.price_list import shipped
from tests.surfaces.reading import Page

QUERIES, DOCUMENTS = 72, 14
SPECS = ("ndcg@5", "mrr@5", "map@5", "recall@5", "err@5", "judged@5")
_GRADES = (-1.0, 0.0, 0.0, 0.5, 1.0, 2.0, 3.0, np.nan, np.nan)
_MONEY = Money(
    assumptions=Assumptions(
        value_per_search=0.05, setup_cost=1e6, monthly_cost=50.0, searches_per_day=9000
    ),
    given=frozenset({"value_per_search"}),
)


class Ruled:
    """The data, its runs, and the reports that were made of them."""

    def __init__(self) -> None:
        drawn = np.random.default_rng(11)
        self._labels = drawn.choice(_GRADES, (QUERIES, DOCUMENTS))
        # A grade that only the labels hold.
        self._labels[:, -1] = 4.0
        self._labels[4:7] = np.fmin(self._labels[4:7], 1.0)
        self._labels[:4] = np.where(np.isnan(self._labels[:4]), np.nan, 0.0)
        noise = drawn.normal(0, 1.6, (3, QUERIES, DOCUMENTS))
        worth = np.nan_to_num(self._labels, nan=0.7)
        scores = np.round(noise + np.array([0.0, 0.35, 0.25])[:, None, None] * worth, 1)
        # Told apart in double precision only.
        scores += drawn.integers(0, 2, scores.shape) * 1e-9
        first, *others = (
            self._ranking(each, lost)
            for each, lost in zip(scores, ({7, 8}, {8, 9}, {10}), strict=True)
        )
        self.dataset = self._dataset(first)
        self.runs = tuple(
            run_from_ranking(name, self.dataset.id, ranking, f"{name}.trec")
            for name, ranking in zip(("one", "two"), others, strict=True)
        )
        self.runs = (_timed(self.runs[0]), self.runs[1])
        self._found: dict[object, dict[str, list[str]]] = {}

    def _ranking(self, scores: np.ndarray, lost: set[int]) -> Ranking:
        rows = [
            (f"q{query}", f"q{query}-{(5 * doc) % DOCUMENTS}", scores[query, doc])
            for query in range(QUERIES)
            if query not in lost
            for doc in range(DOCUMENTS - 1)
        ]
        return Ranking.from_columns(*zip(*rows, strict=True))

    def _dataset(self, first: Ranking) -> Dataset:
        pairs = [(query, doc) for query in range(QUERIES) for doc in range(DOCUMENTS)]
        labelled = [(q, doc) for q, doc in pairs if not np.isnan(self._labels[q, doc])]
        texts = ["some words in a row"] * DOCUMENTS * QUERIES
        return Dataset(
            "ruled",
            queries=pd.DataFrame(
                {
                    "query_id": [f"q{query}" for query in range(QUERIES)],
                    "text": ["how to " + "return " * (query % 3) for query in range(QUERIES)],
                    "kind": [("how", "what", "why")[query % 3] for query in range(QUERIES)],
                }
            ),
            documents=pd.DataFrame(
                {
                    "doc_id": [_name(*each) for each in pairs],
                    "title": [""] * len(texts),
                    "text": texts,
                }
            ),
            qrels=pd.DataFrame(
                {
                    "query_id": [f"q{query}" for query, _doc in labelled],
                    "doc_id": [_name(*each) for each in labelled],
                    "label": [self._labels[each] for each in labelled],
                }
            ),
            candidates=first,
        )

    def figures(
        self, spec: str, conventions: Conventions, statistics: StatisticsSettings
    ) -> dict[str, list[str]]:
        """Name → what the report says there."""
        key = (spec, conventions, statistics)
        if key not in self._found:
            study = Study.on(
                spec,
                dataset=self.dataset,
                systems=systems_of(self.dataset, self.runs),
                baseline=FIRST_STAGE,
                challengers=tuple(run.id for run in self.runs),
                others=SPECS,
                conventions=conventions,
                statistics=statistics,
                money=replace(_MONEY, prices={run.id: shipped()[0] for run in self.runs}),
            )
            self._found[key] = dict(_figures(html(study).decode()))
        return self._found[key]


def _name(query: int, doc: int) -> str:
    return f"q{query}-{(5 * doc) % DOCUMENTS}"


def _timed(run: Run) -> Run:
    place = np.arange(len(run.queries))
    return replace(run, queries=run.queries.assign(latency_ms=11 + 97 * (place * 0.618 % 1)))


_FACT = re.compile(r"<dt>(.*?)</dt><dd>(.*?)</dd><dd class=muted>(.*?)</dd>")
_ENDS = re.compile(r"\((.*? … .*?|at least .*?)\)")


def _figures(page: str) -> Iterator[tuple[str, list[str]]]:
    read = Page(page)
    facts: dict[str, list[str]] = {}
    for title, value, beside in _FACT.findall(page):
        facts.setdefault(title.split(" in ")[0], []).append(value)
        facts.setdefault(f"{title.split(' in ')[0]}, beside", []).append(beside)
    for title, values in facts.items():
        yield f"verdict: {title}", values
    (systems,) = read.tables["systems"]
    names = ("mean", "mean interval", "change", "change interval", "p", "n", "excluded", "verdict")
    for place, name in enumerate(names, start=2):
        yield f"systems: {name}", _column([systems], place)
    (cutoffs,) = read.tables["cutoffs"]
    yield from _values("cutoffs", [cell for row in cutoffs[1:] for cell in row[1:]])
    yield (
        "queries: helped, same, hurt",
        re.findall(r"\d+ helped .* hurt, of.*", read.texts["queries"]),
    )
    yield "queries: values", re.findall(r"\S+ → \S+ \(.*?\)", read.texts["queries"])
    segments = read.tables["segments"]
    for place, name in enumerate(("n", "means", "change", "interval", "p", "helped"), start=2):
        yield f"segments: {name}", _column(segments, place)
    headroom, *reasons = read.tables["reasons"]
    for place, name in enumerate(headroom[0][1:], start=1):
        yield f"headroom: {name}", _column([headroom], place)
    for place, name in enumerate(("why", "queries", "mean change", "adds to the mean")):
        yield f"reasons: {name}", _column(reasons, place)
    timed = read.tables["latency"][0]
    yield from _values("latency", [cell for row in timed[1:] for cell in row[1:]])
    for title, *cells in read.tables["cost"][0][1:]:
        yield from _values(f"cost: {title}", cells)
    counts = read.tables["rules"][-1]
    yield "rules: queries of each system", [cell for row in counts[1:] for cell in row[1:]]
    yield "rules: in force", [row[1] for row in read.tables["rules"][1][1:]]


def _column(tables: list[list[list[str]]], place: int) -> list[str]:
    return [row[place] for rows in tables for row in rows[1:]]


def _values(name: str, cells: list[str]) -> Iterator[tuple[str, list[str]]]:
    """What stands in the cells and, where one has an interval, what stands in its brackets."""
    yield name, [_ENDS.sub("", cell).strip() for cell in cells]
    ends = [each for cell in cells for each in _ENDS.findall(cell)]
    if ends:
        yield f"{name}, interval", ends
