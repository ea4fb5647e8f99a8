"""The list of what to label on sets with sparse labels."""

import pytest

from rankdash.analysis.labels.labelling import merge_labels, to_label
from rankdash.analysis.unjudged.system_bounds import RankedLabels, UnjudgedComparison
from rankdash.metrics import judge
from rankdash.readers import Source, read
from rankdash.spreadsheet import csv_bytes
from tests.sets import SETS, loaded


@pytest.fixture(scope="module", params=SETS)
def real(request):
    found = loaded(request.param)
    data = found.dataset
    rankings = {"first": data.candidates, "other": found.runs[-1].ranking}
    return data, {
        name: RankedLabels(ranking, judge(ranking, data.qrels))
        for name, ranking in rankings.items()
    }


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
