import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankdash.dataset import Dataset
from rankdash.errors import SettingError
from rankdash.ranking.ranking import Ranking
from rankdash.runs.plan import MOST_CLIENTS, Timing, drawn, plan, sample_queries


def test_the_first_candidates_are_planned_in_first_stage_order(make_dataset):
    dataset = make_dataset(queries=3, depth=5)
    asked = plan(dataset, depth=2)
    assert list(asked.documents) == ["q0", "q1", "q2"]
    for query, docs in asked.documents.items():
        assert docs == dataset.candidates.documents_of(query)[0][:2]
    assert asked.pairs == 6
    assert asked.skipped == {}
    assert plan(dataset).pairs == 15


def test_why_queries_are_left_out(make_dataset):
    asked = plan(make_dataset(queries=4, without_candidates=["q1"]), query_ids=["q1", "q2"])
    assert list(asked.documents) == ["q2"]
    assert asked.skipped == {
        "q0": "not in the sample",
        "q1": "no candidates",
        "q3": "not in the sample",
    }
    # What could not be scored anyway was not left out by the sample.
    unasked = plan(make_dataset(queries=4, without_candidates=["q1"]), query_ids=["q2"])
    assert unasked.skipped["q1"] == "no candidates"


def test_wrong_wishes_are_refused(make_dataset):
    dataset = make_dataset()
    with pytest.raises(SettingError, match="depth must be at least 1, not 0"):
        plan(dataset, depth=0)
    with pytest.raises(SettingError, match="no query 'q99'"):
        plan(dataset, query_ids=["q0", "q99"])
    with pytest.raises(SettingError, match="at least 1 query"):
        sample_queries(dataset, 0, seed=1)


def test_a_sample_is_drawn_from_the_queries_with_candidates(make_dataset):
    dataset = make_dataset(queries=10, without_candidates=["q3", "q4"])
    assert len(sample_queries(dataset, 4, seed=7)) == 4
    everything = sample_queries(dataset, 100, seed=7)
    assert sorted(everything) == [f"q{number}" for number in range(10) if number not in (3, 4)]


def test_a_query_with_an_empty_list_has_no_candidates_to_be_sampled_by(make_dataset):
    empty = Ranking.from_lists([("q0", ["d1"], [1.0]), ("q1", [], []), ("q2", ["d0"], [1.0])])
    made = make_dataset(queries=3)
    dataset = Dataset(made.name, made.queries, made.documents, made.qrels, empty)
    assert sorted(sample_queries(dataset, 100, seed=7)) == ["q0", "q2"]


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 20))
def test_a_larger_sample_contains_the_smaller_one(seed, size):
    dataset = _lists([f"q{number}" for number in range(20)])
    small, large = sample_queries(dataset, size, seed), sample_queries(dataset, size + 3, seed)
    assert set(small) <= set(large)
    assert len(set(small)) == size
    assert small == sample_queries(dataset, size, seed)


@settings(max_examples=30)
@given(order=st.permutations(range(12)))
def test_the_order_of_the_files_does_not_change_the_sample(order):
    straight = _lists([f"q{number}" for number in range(12)])
    shuffled = _lists([f"q{number}" for number in order])
    assert sample_queries(straight, 5, 3) == sample_queries(shuffled, 5, 3)


def test_seeds_differ(make_dataset):
    dataset = make_dataset(queries=50)
    samples = {frozenset(sample_queries(dataset, 10, seed)) for seed in range(20)}
    assert len(samples) == 20


def _lists(queries):
    return Dataset(
        "lists",
        pd.DataFrame({"query_id": queries, "text": "x"}),
        pd.DataFrame({"doc_id": ["d"], "title": "", "text": "y"}),
        pd.DataFrame({"query_id": queries, "doc_id": "d", "label": 1.0}),
        Ranking.from_columns(queries, ["d"] * len(queries), np.ones(len(queries))),
    )


@pytest.mark.parametrize(
    ("name", "most"), [("repeats", 100), ("sample", 100_000), ("seconds", 600)]
)
def test_a_timing_is_within_its_range_to_both_ends(name, most):
    assert getattr(Timing(**{name: most}), name) == most
    assert getattr(Timing(**{name: 1}), name) == 1
    for beyond in (0, most + 1):
        with pytest.raises(SettingError, match=f"The {name} must be from 1 to {most}"):
            Timing(**{name: beyond})


def test_as_many_clients_as_allowed_are_measured():
    assert Timing(concurrency=(1, MOST_CLIENTS)).concurrency == (1, 256)
    for beyond in (0, MOST_CLIENTS + 1):
        with pytest.raises(SettingError, match="concurrency must be from 1 to 256"):
            Timing(concurrency=(1, beyond))


@pytest.mark.parametrize(
    ("needs_text", "without_text", "planned", "textless"),
    [
        (False, "exclude", ["d0", "d1", "d2"], 0),
        (True, "exclude", ["d0", "d2"], 1),
        (True, "empty", ["d0", "d1", "d2"], 1),
    ],
)
def test_candidates_without_a_text_are_left_out_where_texts_are_read(
    needs_text, without_text, planned, textless
):
    dataset = _texts({"d0": "a", "d1": " ", "d2": "b"})
    asked = plan(dataset, needs_text=needs_text, without_text=without_text)
    assert (asked.documents, asked.textless) == ({"q": planned}, textless)
    assert asked.without_text == without_text
    assert asked.pairs == len(planned)


def test_a_query_of_which_no_candidate_has_a_text_stays_and_the_depth_comes_first():
    silent = plan(_texts({"d0": "", "d1": ""}), needs_text=True)
    assert (silent.documents, silent.textless) == ({"q": ["d0", "d1"]}, 2)
    # What is below the depth takes no place of what has no text.
    deep = plan(_texts({"d0": "a", "d1": "", "d2": "b"}), 2, needs_text=True)
    assert (deep.documents, deep.textless) == ({"q": ["d0"]}, 1)
    with pytest.raises(SettingError, match="no rule 'drop'"):
        plan(_texts({"d0": "a"}), without_text="drop")
    assert plan(_texts({"d0": "a", "d1": "b"}), depth=1).pairs == 1


def _texts(documents):
    ids = list(documents)
    return Dataset(
        "texts",
        pd.DataFrame({"query_id": ["q"], "text": "x"}),
        pd.DataFrame({"doc_id": ids, "title": "", "text": list(documents.values())}),
        pd.DataFrame({"query_id": ["q"], "doc_id": ids[:1], "label": 1.0}),
        Ranking.from_lists([("q", ids, np.arange(len(ids), 0.0, -1.0))]),
    )


def test_a_timing_comes_back_from_what_was_kept_of_it_and_is_measured_in_one_of_four_ways():
    made = Timing("every", 3, 50, 7, (1, 4), 2.0)
    kept = json.loads(json.dumps(asdict(made)))
    assert Timing.from_mapping(kept) == made
    assert Timing.from_mapping({}) == Timing() == Timing("auto", 1, 200, 0, (), 5.0)
    with pytest.raises(SettingError, match="not 'sometimes'"):
        Timing("sometimes")


@pytest.mark.parametrize("seed", [0, 7])
def test_a_draw_is_the_permutation_of_the_ids_in_alphabetical_order(seed):
    order = np.random.default_rng(seed).permutation(5)
    assert drawn(iter("dbeac"), seed) == tuple("abcde"[place] for place in order)
    assert drawn((), seed) == ()


def test_a_depth_and_a_sample_of_one_are_the_smallest(make_dataset):
    dataset = make_dataset(queries=3, depth=4)
    assert plan(dataset, depth=1).pairs == 3
    assert len(sample_queries(dataset, 1, seed=1)) == 1
    nobody = plan(dataset, query_ids=[])
    assert (nobody.pairs, set(nobody.skipped.values())) == (0, {"not in the sample"})
