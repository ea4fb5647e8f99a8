"""Bounds, to-label list and headroom on sets with sparse labels."""

import pytest

from rankdash.analysis.labels.labelling import merge_labels, to_label
from rankdash.analysis.reasons.headroom import SHARES, headroom, limits
from rankdash.analysis.unjudged.system_bounds import RankedLabels, UnjudgedComparison, bounds_table
from rankdash.metrics import evaluate, judge
from rankdash.readers import Source, read
from rankdash.spreadsheet import csv_bytes
from tests.sets import SETS, loaded

SPECS = ("ndcg@10", "mrr@10", "map@10", "recall@10", "precision@5")


@pytest.fixture(scope="module", params=SETS)
def real(request):
    found = loaded(request.param)
    data = found.dataset
    rankings = {"first": data.candidates, "other": found.runs[-1].ranking}
    return data, {
        name: RankedLabels(ranking, judge(ranking, data.qrels))
        for name, ranking in rankings.items()
    }


def test_what_is_shown_lies_within_the_bounds(real):
    _, sides = real
    table = bounds_table(sides, list(SPECS))
    assert len(table) == 2 * len(SPECS)
    assert (table["lowest"] <= table["value"] + 1e-12).all()
    assert (table["value"] <= table["highest"] + 1e-12).all()
    assert (table["kind"] == "tight").all()
    for spec in SPECS:
        bounds = UnjudgedComparison(sides["first"], sides["other"], spec).bounds()
        assert bounds.lowest - 1e-12 <= bounds.delta <= bounds.highest + 1e-12


def test_labelling_what_the_list_says_settles_the_sign(real):
    data, sides = real
    comparison = UnjudgedComparison(sides["first"], sides["other"], "ndcg@10")
    enough = comparison.labels_to_settle()
    assert 0 < enough < len(comparison.pool)
    frame = to_label(data, comparison, ("first", "other"), most=enough)
    frame["label"] = 0
    parsed = read([Source("labels.csv", csv_bytes(frame))])
    merged = merge_labels(data, parsed.qrels)
    assert merged.added == enough
    assert merged.unknown == 0
    now = {
        name: RankedLabels(side.ranking, judge(side.ranking, merged.dataset.qrels))
        for name, side in sides.items()
    }
    settled = UnjudgedComparison(now["first"], now["other"], "ndcg@10").bounds()
    assert settled.sign != "open"
    assert settled.delta == pytest.approx(comparison.bounds().delta)
    one_less = merge_labels(data, parsed.qrels.head(enough - 1)).dataset
    before = [
        RankedLabels(side.ranking, judge(side.ranking, one_less.qrels)) for side in sides.values()
    ]
    assert UnjudgedComparison(before[0], before[1], "ndcg@10").bounds().sign == "open"


def test_headroom_adds_up_for_every_query(real):
    _, sides = real
    evaluations = {name: evaluate(side.judged, SPECS) for name, side in sides.items()}
    for spec in SPECS:
        far = limits(sides["first"].judged, spec, evaluations["first"].conventions)
        found = headroom(evaluations["first"], evaluations["other"], far)
        rows = found.queries.dropna()
        assert len(rows) == found.n
        assert rows[list(SHARES)].sum(axis=1).to_numpy() == pytest.approx(rows["perfect"])
        assert (rows[["retriever", "to_win"]] >= -1e-12).all(axis=None)
