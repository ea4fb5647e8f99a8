"""Every reason is the one that docs/statistics.md leads to, for every metric and on real sets."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from rankdash.analysis.reasons.contributions import splits
from rankdash.analysis.reasons.reasons import CODES, reasons
from rankdash.analysis.unjudged.system_bounds import RankedLabels
from rankdash.metrics import judge, parse_measure, registry
from rankdash.ranking.ranking import Ranking
from tests.analysis.reasons import documented
from tests.sets import ROOT, SETS, loaded

SPLIT = [name for name in registry if splits(parse_measure(name))]
SPECS = [
    spec
    for name in SPLIT
    for spec in ((name, f"{name}@10") if registry[name].has_cutoff else (name,))
]


def labels_of(qrels: pd.DataFrame) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for query, doc, label in qrels[["query_id", "doc_id", "label"]].itertuples(index=False):
        found.setdefault(query, {})[doc] = float(label)
    return found


def differing(
    before: Ranking, after: Ranking, qrels: pd.DataFrame, spec: str
) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """How often (the reason given, the one that the documentation leads to) differ, and how often
    each reason is given."""
    measure = parse_measure(spec)
    sides = [RankedLabels(each, judge(each, qrels)) for each in (before, after)]
    given = reasons(*sides, measure).set_index("query_id")["reason"]
    top = max(float(qrels["label"].max()), 1.0)
    rule = documented.Rule(measure.metric.name, measure.k, measure.metric.binary, top)
    wrong: Counter[tuple[str, str]] = Counter()
    for query, known in labels_of(qrels).items():
        lists = [
            None
            if query not in each.positions
            else list(zip(*each.documents_of(query), strict=True))
            for each in (before, after)
        ]
        expected = documented.reason(*lists, known, rule)
        wrong[given[query], expected] += given[query] != expected
    return +wrong, Counter(given)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", SETS)
def test_the_reason_of_every_query_follows_from_the_documentation(name, spec):
    data, reranked = loaded(name).dataset, loaded(name).runs[-1].ranking
    assert differing(data.candidates, reranked, data.qrels, spec)[0] == {}


@pytest.mark.parametrize("spec", SPECS)
def test_it_does_for_small_lists_with_every_kind_of_label(spec):
    """Lists of up to 14 of 16 documents, labels from -1 to 3, near scores, and queries that a
    ranking lacks."""
    rng = np.random.default_rng(28)
    docs = np.array([f"d{number}" for number in range(16)], dtype=object)
    lists: tuple[list, list] = ([], [])
    rows = []
    for number in range(400):
        query = f"q{number}"
        for side in lists:
            length = int(rng.integers(0, 15))
            if length:
                scores = np.sort(np.round(rng.normal(size=length) * rng.choice([1, 8]), 2))[::-1]
                scores = scores - 1e-3 * np.arange(length)
                side.append((query, list(rng.permutation(docs)[:length]), list(scores)))
        for doc in rng.permutation(docs)[: rng.integers(1, 9)]:
            rows.append((query, doc, float(rng.choice([-1, 0, 0, 1, 2, 3]))))
    qrels = pd.DataFrame(rows, columns=["query_id", "doc_id", "label"])
    before, after = map(Ranking.from_lists, lists)
    wrong, given = differing(before, after, qrels, spec)
    assert wrong == {}
    assert len(given) >= 8


def test_the_documentation_lists_the_reasons_that_there_are():
    text = (ROOT / "docs" / "statistics.md").read_text()
    table = text.split("## Why queries changed")[1].split("## ")[0]
    codes = [
        line.split("`")[1] for line in table.splitlines() if line.startswith("| ") and "`" in line
    ]
    assert sorted(codes) == sorted(CODES)
