"""Systems laid beside each other: whose value stands where, and what a system can reach."""

import math

import numpy as np
import pytest

from rankdash.analysis.statistics.alignment import ABSENT, HAS_VALUE, REASONS, align, reason_counts
from rankdash.errors import SpecError
from rankdash.metrics import STATES, Conventions, Evaluation, parse_measure

SPECS = ("mrr", "judged@10", "dcg@5")


def made(rows: dict[str, tuple[float | str, ...]], specs: tuple[str, ...] = SPECS) -> Evaluation:
    """query id → a value for each of the measures, or a state that has none; 0 and a state where
    the state counts 0."""
    cells = list(rows.values())
    states = [[each if isinstance(each, str) else "scored" for each in row] for row in cells]
    values = [
        [0.0 if each == "missing" else math.nan if isinstance(each, str) else each for each in row]
        for row in cells
    ]
    return Evaluation(
        query_ids=np.array(list(rows), dtype=object),
        values=np.array(values, dtype=np.float64).reshape(len(rows), len(specs)),
        states=np.array([row[0] for row in states], dtype=object),
        cell_states=np.array(
            [[STATES.index(state) for state in row] for row in states], dtype=np.int8
        ).reshape(len(rows), len(specs)),
        measures=tuple(parse_measure(spec) for spec in specs),
        conventions=Conventions(),
        counts={},
    )


ONE = made({"q2": (0.5, 0.1, 2.0), "q1": ("missing", 0.2, 0.0), "q3": ("failed",) * 3})
OTHER = made({"q4": (1.0, 0.3, 9.0), "q1": (0.25, 0.4, 1.0), "q2": ("no_relevant", 0.5, 3.0)})


def test_the_baseline_comes_first_with_its_queries_and_then_the_others_in_their_order():
    aligned = align({"other": OTHER, "one": ONE, "again": OTHER}, "one")
    assert aligned.systems == ("one", "other", "again")
    assert aligned.query_ids.tolist() == ["q2", "q1", "q3", "q4"]
    assert [measure.spec for measure in aligned.measures] == list(SPECS)
    np.testing.assert_array_equal(aligned.values[0, :, 0], [0.5, 0.0, np.nan, np.nan])
    np.testing.assert_array_equal(aligned.values[1, :, 0], [np.nan, 0.25, np.nan, 1.0])
    np.testing.assert_array_equal(aligned.values[1], aligned.values[2])
    # One past the states: it did not evaluate the query.
    assert aligned.states[0, :, 0].tolist() == [
        *map(STATES.index, ("scored", "missing", "failed")), len(STATES)
    ]  # fmt: skip
    assert aligned.states[1, 2, 0] == len(STATES)


def test_a_value_that_stands_for_no_documents_is_known_and_no_answer():
    aligned = align({"one": ONE, "other": OTHER}, "one")
    assert aligned.known[:, :, 0].tolist() == [
        [True, True, False, False], [False, True, False, True]
    ]  # fmt: skip
    assert aligned.answered[:, :, 0].tolist() == [
        [True, False, False, False], [False, True, False, True]
    ]  # fmt: skip


def test_measures_may_be_some_and_in_another_order():
    measures = [parse_measure(spec) for spec in ("dcg@5", "mrr")]
    aligned = align({"one": ONE, "other": OTHER}, "one", measures)
    np.testing.assert_array_equal(aligned.values[1, 1], [1.0, 0.25])
    assert align({"one": ONE}, "one", []).values.shape == (1, 3, 0)


def test_of_each_pair_with_the_baseline_the_weightier_reason_is_told():
    aligned = align({"one": ONE, "other": OTHER}, "one")
    names = (*REASONS, "both")
    told = [[names[code] for code in row] for row in aligned.reasons()[:, :, 0]]
    assert told == [
        ["both", "both", "failed", ABSENT],
        ["no_relevant", "both", "failed", ABSENT],
    ]
    assert reason_counts(aligned.reasons()[1, :, 0]) == {"failed": 1, "no_relevant": 1, ABSENT: 1}
    assert reason_counts(np.full(4, HAS_VALUE, dtype=np.int8)) == {}


def test_what_can_be_reached_is_the_best_order_what_a_system_has_or_the_top_of_the_metric():
    aligned = align({"one": ONE, "other": OTHER}, "one")
    top = [1.0, 1.0, math.inf]
    assert aligned.highest(None).tolist() == [top] * 4
    best = made({"q1": (0.75, 0.01, 4.0), "q4": (0.5, 0.01, 8.0), "q2": ("no_relevant", 0.0, 2.5)})
    assert aligned.highest(best).tolist() == [
        # q2: a value of another system is higher; without one in `best`, the top.
        [1.0, 1.0, 3.0],
        [0.75, 1.0, 4.0],
        # q3 has none in `best`, q4 a higher one than the best order of the candidates.
        top,
        [1.0, 1.0, 9.0],
    ]


@pytest.mark.parametrize("name", ["two", ""])
def test_a_baseline_that_is_none_of_the_systems_is_refused(name):
    with pytest.raises(SpecError, match="is not among the systems: one, other"):
        align({"one": ONE, "other": OTHER}, name)


def test_a_system_without_a_measure_is_refused():
    with pytest.raises(SpecError):
        align({"one": ONE, "other": made({"q1": (0.5,)}, ("mrr",))}, "one")
