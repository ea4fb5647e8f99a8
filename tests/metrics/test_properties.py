"""Every metric of the registry × what must hold of it, on random lists.

A metric that is added to the registry is tested here without a line more.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rankdash.metrics import Conventions, evaluate, judge, judge_frame, registry
from rankdash.ranking.ranking import Ranking

EVERY = pytest.mark.parametrize("name", list(registry))
QUALITY = pytest.mark.parametrize(
    "name", [name for name, metric in registry.items() if metric.measures_quality]
)
LABELS = st.lists(st.sampled_from([None, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0]), min_size=1, max_size=12)
UNRANKED = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0]), max_size=6)
CUTOFFS = st.one_of(st.none(), st.integers(1, 14))
SPEEDY = settings(max_examples=30)

BINARY_TWIN = {"ndcg_exp": "ndcg", "map_graded": "map", "map_graded_norm": "map"}


def spec_of(name, k):
    return f"{name}@{k}" if k is not None and registry[name].has_cutoff else name


def relevant(labels, unranked=(), threshold=1.0):
    return any(label is not None and label >= threshold for label in (*labels, *unranked))


@EVERY
@SPEEDY
@given(labels=LABELS, unranked=UNRANKED, k=CUTOFFS, judged_only=st.booleans())
def test_value_is_in_the_stated_range(value_of, name, labels, unranked, k, judged_only):
    assume(any(label is not None for label in (*labels, *unranked)))
    value = value_of(
        spec_of(name, k), labels, unranked, judged_only=judged_only, no_relevant="count"
    )
    low, high = registry[name].range
    assert np.isnan(value) or low <= value <= high + 1e-12


@EVERY
@SPEEDY
@given(labels=st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]), min_size=1, max_size=12))
def test_perfect_order_reaches_the_top_or_the_note_says_why_not(value_of, name, labels):
    assume(relevant(labels))
    metric = registry[name]
    perfect = value_of(name, sorted(labels, reverse=True))
    if metric.perfect_is_top:
        assert perfect == pytest.approx(metric.range[1], abs=1e-12)
    else:
        assert "perfect order does not reach 1" in metric.note
        assert perfect <= metric.range[1]


@EVERY
@SPEEDY
@given(labels=LABELS, k=CUTOFFS, data=st.data())
def test_names_of_documents_and_order_of_rows_change_nothing(tables, name, labels, k, data):
    run, qrels = tables({"q": labels, "other": [1.0, 0.0, 2.0]})
    assume(len(qrels) > 3)
    spec = spec_of(name, k)
    before = evaluate(judge(Ranking.from_columns(*run.to_numpy().T), qrels), [spec])
    docs = sorted(set(run["doc_id"]))
    renamed = dict(zip(docs, data.draw(st.permutations(docs)), strict=True))
    rows = data.draw(st.permutations(range(len(run))))
    run = run.assign(doc_id=run["doc_id"].map(renamed)).iloc[rows]
    qrels = qrels.assign(doc_id=qrels["doc_id"].map(renamed)).iloc[::-1]
    after = evaluate(judge(Ranking.from_columns(*run.to_numpy().T), qrels), [spec])
    pd.testing.assert_series_equal(
        before.wide()[spec].sort_index(), after.wide()[spec].sort_index(), rtol=0, atol=1e-12
    )


@QUALITY
@SPEEDY
@given(labels=LABELS, unranked=UNRANKED, k=CUTOFFS, tail=st.integers(1, 5))
def test_a_tail_without_labels_never_raises_it(value_of, name, labels, unranked, k, tail):
    assume(relevant(labels, unranked))
    spec = spec_of(name, k)
    longer = value_of(spec, [*labels, *[None] * tail], unranked)
    assert longer <= value_of(spec, labels, unranked) + 1e-12


@QUALITY
@SPEEDY
@given(labels=LABELS, unranked=UNRANKED, k=CUTOFFS, data=st.data())
def test_moving_a_relevant_document_up_past_an_irrelevant_one_never_lowers_it(
    value_of, name, labels, unranked, k, data
):
    threshold = 1.0
    better = [
        place
        for place in range(len(labels) - 1)
        if (labels[place] or 0.0) < threshold <= (labels[place + 1] or 0.0)
    ]
    assume(better)
    place = data.draw(st.sampled_from(better))
    moved = [*labels]
    moved[place], moved[place + 1] = moved[place + 1], moved[place]
    spec = spec_of(name, k)
    assert value_of(spec, moved, unranked) >= value_of(spec, labels, unranked) - 1e-12


@pytest.mark.parametrize("name", [n for n, m in registry.items() if m.needs_grades])
@SPEEDY
@given(labels=LABELS, k=CUTOFFS, data=st.data())
def test_moving_a_higher_grade_up_past_a_lower_one(value_of, name, labels, k, data):
    """Never lowers a metric of gains; the graded MAPs can fall, and say so."""
    if registry[name].binary:
        assert "moving a higher grade above a lower one lowers it" in registry[name].note
        assert value_of(name, [0, 3, 1]) < value_of(name, [0, 1, 3])
        return
    values = [max(label or 0.0, 0.0) for label in labels]
    better = [place for place in range(len(values) - 1) if values[place] < values[place + 1]]
    assume(better)
    place = data.draw(st.sampled_from(better))
    moved = [*labels]
    moved[place], moved[place + 1] = moved[place + 1], moved[place]
    spec = spec_of(name, k)
    assert value_of(spec, moved) >= value_of(spec, labels) - 1e-12


@pytest.mark.parametrize(("graded", "binary"), BINARY_TWIN.items())
@SPEEDY
@given(labels=st.lists(st.sampled_from([None, 0.0, 1.0]), min_size=1, max_size=12), k=CUTOFFS)
def test_graded_is_binary_on_labels_of_0_and_1(value_of, graded, binary, labels, k):
    assume(relevant(labels))
    left, right = spec_of(graded, k), spec_of(binary, k)
    if graded == "map_graded_norm":
        # Normalised by the best within reach, so its twin is AP over min(R, k).
        assert value_of(left, labels, ap_norm="min(R,k)") == pytest.approx(
            value_of(right, labels, ap_norm="min(R,k)"), abs=1e-12
        )
    assert value_of(left, labels) == pytest.approx(value_of(right, labels), abs=1e-12)


@pytest.mark.parametrize(
    "name", [n for n, m in registry.items() if m.binary and not m.needs_grades]
)
@SPEEDY
@given(labels=LABELS, unranked=UNRANKED, k=CUTOFFS)
def test_a_binary_metric_sees_only_the_threshold(value_of, name, labels, unranked, k):
    def binarise(values):
        return [None if value is None else float(value >= 1) for value in values]

    assume(relevant(labels, unranked))
    spec = spec_of(name, k)
    assert value_of(spec, labels, unranked) == value_of(spec, binarise(labels), binarise(unranked))


@pytest.mark.parametrize("name", [n for n, m in registry.items() if not m.binary])
@SPEEDY
@given(labels=LABELS, k=CUTOFFS, threshold=st.sampled_from([0.5, 2.0, 3.0, 9.0]))
def test_a_graded_metric_ignores_the_threshold(value_of, name, labels, k, threshold):
    assume(relevant(labels))
    spec = spec_of(name, k)
    assert value_of(spec, labels, threshold=threshold) == value_of(spec, labels)


@pytest.mark.parametrize("name", [n for n, m in registry.items() if m.has_cutoff])
@SPEEDY
@given(labels=LABELS, unranked=UNRANKED, k=st.integers(1, 14))
def test_a_cutoff_sees_nothing_below_it(value_of, name, labels, unranked, k):
    assume(relevant(labels, unranked))
    assume(any(label is not None for label in labels))
    spec = f"{name}@{k}"
    below = [label for label in labels[k:] if label is not None]
    assert value_of(spec, labels, unranked) == pytest.approx(
        value_of(spec, labels[:k], [*unranked, *below]), abs=1e-12, nan_ok=True
    )


@EVERY
@SPEEDY
@given(labels=LABELS, unranked=UNRANKED, k=CUTOFFS)
def test_a_negative_label_is_a_label_of_0(value_of, name, labels, unranked, k):
    assume(any(label is not None for label in (*labels, *unranked)))

    def clip(values):
        return [None if value is None else max(value, 0.0) for value in values]

    spec = spec_of(name, k)
    np.testing.assert_equal(
        value_of(spec, labels, unranked), value_of(spec, clip(labels), clip(unranked))
    )


@QUALITY
@SPEEDY
@given(labels=LABELS, k=CUTOFFS)
def test_judged_only_is_the_list_without_unlabelled_documents(value_of, name, labels, k):
    condensed = [label for label in labels if label is not None]
    assume(relevant(condensed))
    spec = spec_of(name, k)
    assert value_of(spec, labels, judged_only=True) == pytest.approx(
        value_of(spec, condensed), abs=1e-12
    )


@EVERY
@pytest.mark.parametrize("conventions", [Conventions(), Conventions.trec_eval()])
def test_labels_in_the_table_and_labels_apart_give_the_same(generated_set, name, conventions):
    run, _ = generated_set(5, tied=True)
    rng = np.random.default_rng(5)
    frame = run.assign(label=rng.choice([np.nan, -1.0, 0.0, 1.0, 2.0], len(run)))
    apart = frame[["query_id", "doc_id", "label"]].dropna()
    ranking = Ranking.from_columns(frame["query_id"], frame["doc_id"], frame["score"])
    left = evaluate(judge_frame(frame, conventions), [name], conventions)
    right = evaluate(judge(ranking, apart, conventions), [name], conventions)
    pd.testing.assert_frame_equal(left.wide().sort_index(), right.wide().sort_index())
    assert left.counts == right.counts
