"""Every metric of the registry × the properties of its kind, on random lists.

A metric that is added to the registry is tested here without any change.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rankdash.core.data.ranking import Ranking
from rankdash.core.metrics import evaluate, judge, registry

EVERY = tuple(registry)
QUALITY = tuple(name for name, metric in registry.items() if metric.measures_quality)
LABELS = st.lists(st.sampled_from([None, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0]), min_size=1, max_size=12)
UNRANKED = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0]), max_size=6)
CUTOFFS = st.one_of(st.none(), st.integers(1, 14))
SPEEDY = settings(max_examples=40)

BINARY_TWIN = {"ndcg_exp": "ndcg", "map_graded": "map", "map_graded_norm": "map"}


def those(names, wanted):
    """Return the names of the metrics that satisfy a predicate."""
    return [name for name in names if wanted(registry[name])]


def at(names, k):
    """Return the specs of metrics, with a cutoff if the metric has one."""
    return [
        f"{name}@{k}" if k is not None and registry[name].has_cutoff else name for name in names
    ]


def relevant(labels, unranked=(), threshold=1.0):
    return any(label is not None and label >= threshold for label in (*labels, *unranked))


def changed(labels, change):
    return [None if label is None else change(label) for label in labels]


def one_moved_up(data, labels, below):
    """Return the labels with one moved up by one rank. below: whether two neighbours may swap."""
    places = [at for at in range(len(labels) - 1) if below(labels[at], labels[at + 1])]
    assume(places)
    place = data.draw(st.sampled_from(places))
    return [*labels[:place], labels[place + 1], labels[place], *labels[place + 2 :]]


def assert_all(names, held):
    """Raise AssertionError with the names that fail. held: (names,) whether each one passes."""
    failed = [name for name, each in zip(names, held, strict=True) if not each]
    assert not failed


def close(values, others):
    return np.isclose(values, others, rtol=0, atol=1e-12, equal_nan=True)


@SPEEDY
@given(labels=LABELS, unranked=UNRANKED, k=CUTOFFS, judged_only=st.booleans())
def test_value_is_in_the_stated_range(values_of, labels, unranked, k, judged_only):
    assume(any(label is not None for label in (*labels, *unranked)))
    rules = {"judged_only": judged_only, "no_relevant": "count"}
    values = values_of(at(EVERY, k), labels, unranked, **rules)
    low, high = np.array([registry[name].range for name in EVERY]).T
    assert_all(EVERY, np.isnan(values) | ((low <= values) & (values <= high + 1e-12)))


@SPEEDY
@given(labels=st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]), min_size=1, max_size=12))
def test_perfect_order_reaches_the_top_or_the_note_says_why_not(values_of, labels):
    assume(relevant(labels))
    perfect = values_of(EVERY, sorted(labels, reverse=True))
    top = np.array([registry[name].range[1] for name in EVERY])
    reaches = np.array([registry[name].perfect_is_top for name in EVERY])
    assert_all(EVERY, np.where(reaches, close(perfect, top), perfect <= top))
    for name in those(EVERY, lambda metric: not metric.perfect_is_top):
        limited = np.isfinite(registry[name].range[1])
        why = "perfect order does not reach 1" if limited else "no upper limit"
        assert why in registry[name].note


@SPEEDY
@given(labels=LABELS, k=CUTOFFS, data=st.data())
def test_names_of_documents_and_order_of_rows_change_nothing(tables, labels, k, data):
    run, qrels = tables({"q": labels, "other": [1.0, 0.0, 2.0]})
    assume(len(qrels) > 3)
    specs = at(EVERY, k)
    before = evaluate(judge(Ranking.from_columns(*run.to_numpy().T), qrels), specs)
    docs = sorted(set(run["doc_id"]))
    renamed = dict(zip(docs, data.draw(st.permutations(docs)), strict=True))
    rows = data.draw(st.permutations(range(len(run))))
    run = run.assign(doc_id=run["doc_id"].map(renamed)).iloc[rows]
    qrels = qrels.assign(doc_id=qrels["doc_id"].map(renamed)).iloc[::-1]
    after = evaluate(judge(Ranking.from_columns(*run.to_numpy().T), qrels), specs)
    pd.testing.assert_frame_equal(
        before.wide()[specs].sort_index(), after.wide()[specs].sort_index(), rtol=0, atol=1e-12
    )


@SPEEDY
@given(labels=LABELS, unranked=UNRANKED, k=CUTOFFS, tail=st.integers(1, 5))
def test_a_tail_without_labels_never_raises_it(values_of, labels, unranked, k, tail):
    assume(relevant(labels, unranked))
    specs = at(QUALITY, k)
    longer = values_of(specs, [*labels, *[None] * tail], unranked)
    assert_all(QUALITY, longer <= values_of(specs, labels, unranked) + 1e-12)


@SPEEDY
@given(labels=LABELS, unranked=UNRANKED, k=CUTOFFS, data=st.data())
def test_moving_a_relevant_document_up_past_an_irrelevant_one_never_lowers_it(
    values_of, labels, unranked, k, data
):
    moved = one_moved_up(data, labels, lambda one, next_one: (one or 0) < 1 <= (next_one or 0))
    specs = at(QUALITY, k)
    before, after = values_of(specs, labels, unranked), values_of(specs, moved, unranked)
    assert_all(QUALITY, after >= before - 1e-12)


@SPEEDY
@given(labels=LABELS, k=CUTOFFS, data=st.data())
def test_moving_a_higher_grade_up_past_a_lower_one_never_lowers_a_metric_of_gains(
    values_of, labels, k, data
):
    names = those(EVERY, lambda metric: metric.needs_grades and not metric.binary)
    specs = at(names, k)
    moved = one_moved_up(data, labels, lambda one, next_one: max(one or 0, 0) < (next_one or 0))
    assert_all(names, values_of(specs, moved) >= values_of(specs, labels) - 1e-12)


@pytest.mark.parametrize("name", those(EVERY, lambda metric: metric.needs_grades and metric.binary))
def test_a_graded_map_can_fall_by_it_and_says_so(value_of, name):
    assert "moving a higher grade above a lower one lowers the value" in registry[name].note
    assert value_of(name, [0, 3, 1]) < value_of(name, [0, 1, 3])


@SPEEDY
@given(labels=st.lists(st.sampled_from([None, 0.0, 1.0]), min_size=1, max_size=12), k=CUTOFFS)
def test_graded_is_binary_on_labels_of_0_and_1(values_of, labels, k):
    assume(relevant(labels))
    graded, binary = at(BINARY_TWIN, k), at(BINARY_TWIN.values(), k)
    twins = close(values_of(graded, labels), values_of(binary, labels))
    # Normalised by the best value within the cutoff, so its twin is AP over min(R, k).
    norm = {"ap_norm": "min(R,k)"}
    other = close(values_of(graded, labels, **norm), values_of(binary, labels, **norm))
    within_reach = [name == "map_graded_norm" for name in BINARY_TWIN]
    assert_all(BINARY_TWIN, twins & (other | ~np.array(within_reach)))


@SPEEDY
@given(labels=LABELS, unranked=UNRANKED, k=CUTOFFS)
def test_a_binary_metric_sees_only_the_threshold(values_of, labels, unranked, k):
    assume(relevant(labels, unranked))
    names = those(EVERY, lambda metric: metric.binary and not metric.needs_grades)
    specs = at(names, k)
    binary = (changed(each, lambda label: float(label >= 1)) for each in (labels, unranked))
    np.testing.assert_array_equal(values_of(specs, labels, unranked), values_of(specs, *binary))


@SPEEDY
@given(labels=LABELS, k=CUTOFFS, threshold=st.sampled_from([0.5, 2.0, 3.0, 9.0]))
def test_a_graded_metric_ignores_the_threshold(values_of, labels, k, threshold):
    assume(relevant(labels))
    specs = at(those(EVERY, lambda metric: not metric.binary), k)
    np.testing.assert_array_equal(
        values_of(specs, labels, threshold=threshold), values_of(specs, labels)
    )


@SPEEDY
@given(labels=LABELS, unranked=UNRANKED, k=st.integers(1, 14))
def test_a_cutoff_sees_nothing_below_it(values_of, labels, unranked, k):
    assume(relevant(labels, unranked))
    assume(any(label is not None for label in labels))
    names = those(EVERY, lambda metric: metric.has_cutoff)
    below = [label for label in labels[k:] if label is not None]
    whole = values_of(at(names, k), labels, unranked)
    assert_all(names, close(whole, values_of(at(names, k), labels[:k], [*unranked, *below])))


@SPEEDY
@given(labels=LABELS, unranked=UNRANKED, k=CUTOFFS)
def test_a_negative_label_is_a_label_of_0(values_of, labels, unranked, k):
    assume(any(label is not None for label in (*labels, *unranked)))
    specs = at(EVERY, k)
    clipped = (changed(each, lambda label: max(label, 0.0)) for each in (labels, unranked))
    np.testing.assert_array_equal(values_of(specs, labels, unranked), values_of(specs, *clipped))


@SPEEDY
@given(labels=LABELS, k=CUTOFFS)
def test_judged_only_is_the_list_without_unlabelled_documents(values_of, labels, k):
    condensed = [label for label in labels if label is not None]
    assume(relevant(condensed))
    specs = at(QUALITY, k)
    only = values_of(specs, labels, judged_only=True)
    assert_all(QUALITY, close(only, values_of(specs, condensed)))


@pytest.mark.parametrize("name", EVERY)
def test_what_a_definition_says_of_its_metric_is_so(value_of, name):
    metric = registry[name]
    graded = [3.0, 0.0, 1.0]
    beyond = value_of(name, graded, threshold=4.0, no_relevant="count")
    assert metric.binary == (beyond == 0.0 != value_of(name, graded, no_relevant="count"))
    assert metric.needs_grades == (value_of(name, graded) != value_of(name, [1.0, 0.0, 1.0]))
    unlabelled = [None, 0.0, 1.0, None, 0.0, 1.0]
    # Recall and hit of a whole list do not depend on the order.
    spec = name if metric.skips_unlabelled or not metric.has_cutoff else f"{name}@2"
    same = value_of(spec, unlabelled) == value_of(spec, [0.0, 1.0, 0.0, 1.0])
    assert same == metric.skips_unlabelled
    best = value_of(name, [3.0, 1.0, 0.0])
    assert metric.perfect_is_top == (best == pytest.approx(metric.range[1]))
    assert metric.has_cutoff == (name != "r_precision")
    assert metric.measures_quality == (name != "judged")
    assert metric.range == (0.0, np.inf if name in ("dcg", "dcg_exp") else 1.0)
